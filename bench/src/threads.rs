//! CPU time as the kernel counts it, of all of a program and of the thread that its job runs in.
//!
//! Programs do not agree whose CPU time a report is of: fio runs jobs on some libraries as threads, and counts their own time
//! without that of the library's threads. Here both programs are looked at in the same way, in `/proc`.

use crate::memory::jobs;
use std::collections::HashMap;
use std::fs;
use std::process::Child;
use std::time::Duration;

/// The interval of samples: at most this much is missed at the end.
const LOOK: Duration = Duration::from_millis(20);

/// CPU time in nanoseconds, user and system together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worked {
    /// Of all threads of all processes of the program.
    pub all: u64,
    /// Of the thread that a job runs in, if there is one job: the busiest of those that are called as their process is. (A
    /// library gives its threads names.)
    pub own: u64,
}

/// Waits for the program, and tells how much it has worked.
pub fn worked(child: &mut Child) -> std::io::Result<Worked> {
    let (mut processes, mut threads): (HashMap<u32, u64>, HashMap<u32, u64>) = Default::default();
    let mut looks = 0u32;
    let mut present = Vec::new();
    while child.try_wait()?.is_none() {
        // Looking for threads takes longer than looking at them.
        if looks.is_multiple_of(10) {
            present = jobs(child.id()).map(|id| (id, jobs_of(id))).collect();
        }
        looks += 1;
        for (process, own) in &present {
            processes.extend(time(&format!("/proc/{process}/stat")).map(|time| (*process, time)));
            for &thread in own {
                let stat = format!("/proc/{process}/task/{thread}/stat");
                threads.extend(time(&stat).map(|time| (thread, time)));
            }
        }
        std::thread::sleep(LOOK);
    }
    Ok(Worked { all: processes.into_values().sum(), own: threads.into_values().max().unwrap_or(0) })
}

/// The threads of a process that are called as it is.
fn jobs_of(process: u32) -> Vec<u32> {
    let name = |thread: u32| fs::read_to_string(format!("/proc/{process}/task/{thread}/comm")).ok();
    let Some(own) = name(process) else { return Vec::new() };
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let threads = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    threads.filter(|&thread| name(thread).as_ref() == Some(&own)).collect()
}

/// User and system time in a file like `/proc/self/stat`, in nanoseconds; `None` when it is gone.
fn time(stat: &str) -> Option<u64> {
    let stat = fs::read_to_string(stat).ok()?;
    // The name is in parentheses and may contain anything. proc(5): utime and stime are fields 14 and 15, in ticks.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    // SAFETY: takes nothing but a number.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    Some(ticks * 1_000_000_000 / u64::try_from(per_second).ok()?.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_process_that_works_is_found() {
        let work = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 0.5) & sleep 1; wait";
        let mut child = Command::new("sh").args(["-c", work]).spawn().unwrap();
        let worked = worked(&mut child).unwrap();
        assert!(worked.own >= 10_000_000 && worked.all >= worked.own, "{worked:?}");
    }

    #[test]
    fn threads_with_names_of_their_own_are_no_jobs() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let named = std::thread::Builder::new().name("of-a-library".into()).spawn(move || {
            // SAFETY: takes nothing.
            tell.send(unsafe { libc::gettid() }).unwrap();
            ended.recv().ok();
        });
        let thread = told.recv().unwrap() as u32;
        let jobs = jobs_of(std::process::id());
        assert!(jobs.contains(&std::process::id()) && !jobs.contains(&thread), "{jobs:?}");
        drop(end);
        named.unwrap().join().unwrap();
    }
}
