//! The processes of a run: which there are, and which are left.

use std::fs;
use std::time::{Duration, Instant};

/// The variable in the environment of a trial's processes, by which they are known wherever they end up.
pub const MARK: &str = "IOLITE_CAMPAIGN_TRIAL";

/// The role of a process in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The process that was started.
    Controller,
    /// Its child.
    Spawner,
    /// A child of the spawner: lays out files, works, is the host of workers that are threads, or measures.
    Worker,
}

/// The processes of a run, with their roles.
pub fn family(controller: i32) -> Vec<(i32, Role)> {
    let all = parents();
    let children = |of: i32| all.iter().filter(move |&&(_, parent)| parent == of).map(|&(pid, _)| pid);
    let mut family = vec![(controller, Role::Controller)];
    for spawner in children(controller) {
        family.push((spawner, Role::Spawner));
        family.extend(children(spawner).map(|pid| (pid, Role::Worker)));
    }
    family
}

/// All processes with their parents.
fn parents() -> Vec<(i32, i32)> {
    let parent = |pid: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in parentheses and may contain anything; behind it are the state and the parent.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    all().filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The processes that bear this mark. (One that has ended and that nobody has waited for yet bears none.)
fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let bears = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    all().filter(bears).collect()
}

/// Waits, up to a time limit, until no process bears this mark. Returns descriptions of those that are left, and ends
/// them.
pub fn left(mark: &str, grace: Duration) -> Vec<String> {
    let patience = Instant::now() + grace;
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return Vec::new();
        }
        if Instant::now() > patience {
            let told = left.iter().map(|&pid| told(pid)).collect();
            left.into_iter().for_each(|pid| {
                signal(pid, libc::SIGKILL);
            });
            return told;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Describes a process: its number, its state, and what it waits for.
fn told(pid: i32) -> String {
    let line = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let stat = line("stat");
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').next()).unwrap_or("?");
    format!("{pid} ({state}, {})", line("wchan"))
}

/// Sends a signal to a process of a trial. Returns whether it was there.
pub fn signal(pid: i32, signal: i32) -> bool {
    // SAFETY: a plain system call; the process is one that the trial has started.
    unsafe { libc::kill(pid, signal) == 0 }
}

/// Sends a signal to the process group of a run, which has been made for it.
pub fn signal_group(leader: i32, signal: i32) -> bool {
    // SAFETY: as above.
    unsafe { libc::kill(-leader, signal) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_is_left_is_found_by_its_mark() {
        let mark = format!("test-{}", std::process::id());
        let mut shell =
            Command::new("sh").args(["-c", "sleep 60 & sleep 60"]).env(MARK, &mark).spawn().unwrap();
        while family(shell.id() as i32).len() < 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(left(&mark, Duration::ZERO).len(), 3);
        shell.wait().unwrap();
        assert_eq!(left(&mark, Duration::from_secs(60)), [""; 0]);
    }
}
