//! `--live=full`: a run on the whole terminal, which is as before afterwards, however the run ends.

use crate::common::program::{send, wait_until_gone};
use crate::common::tmux::Tmux;
use crate::common::{Program, scratch};
use crate::remote::{Agent, job};
use iolite_testing::{or_skip, skip};
use std::fs;
use std::path::Path;

/// The keys that are always in view.
const KEYS: &str = "q end the run";
/// Two jobs that would take an hour.
const ENDLESS: &str = "--ioengine=null --size=1g --time_based --runtime=1h --rate_iops=100 --name=one --rw=read --name=two --rw=randrw";

/// A run on a terminal.
struct Shown {
    terminal: Tmux,
    pid: i32,
}

impl Shown {
    fn start(dir: &Path, size: (u16, u16), environment: &str, line: &str) -> Result<Shown, String> {
        let program = Program::under_test().path;
        let command = format!(
            "sh -c 'echo $$ >pid; exec env LC_ALL=C.UTF-8 {environment} {} --live=full {line}'",
            program.display()
        );
        let terminal = Tmux::start(dir, size, &command)?;
        terminal.wait_until("the run is in view", |screen| screen.contains(KEYS));
        let pid = fs::read_to_string(dir.join("pid")).unwrap().trim().parse().unwrap();
        Ok(Shown { terminal, pid })
    }

    /// The process that draws.
    fn drawer(&self) -> i32 {
        let is_it = |pid: &&i32| {
            fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.contains("--full-screen-of-a-run"))
        };
        *iolite_os::process::children_of(self.pid).iter().find(is_it).expect("a process that draws")
    }

    /// Waits for the end; returns the exit status and the screen, on which nothing of the run is left. The terminal is as
    /// before.
    fn end(&self) -> (i32, String) {
        let (status, screen) = self.terminal.end();
        assert!(!screen.contains(KEYS), "{screen}");
        // (What is off has a minus.)
        let settings = self.terminal.settings();
        for word in ["icanon", "echo", "isig", "icrnl", "opost"] {
            assert!(settings.split_whitespace().any(|one| one == word), "{word}: {settings}");
        }
        assert!(!self.terminal.is_alternate(), "{screen}");
        (status, screen)
    }
}

fn has_lines(screen: &str, begins: &[&str]) -> bool {
    begins.iter().all(|begin| screen.lines().any(|line| line.starts_with(begin)))
}

#[test]
pub fn a_run_on_the_whole_terminal() {
    let dir = scratch();
    let run = or_skip!(Shown::start(dir.path(), (80, 24), "", ENDLESS));
    let begins = ["iolite-", "running ", "all jobs read", "one ", "two      read", "two      write", KEYS];
    for (columns, rows) in [(80, 24), (200, 50), (45, 12)] {
        run.terminal.resize_to(columns, rows);
        let screen = run.terminal.wait_until("it fits", |screen| {
            has_lines(screen, &begins)
                && screen.lines().count() == usize::from(rows)
                && screen.lines().last().is_some_and(|line| line.starts_with(KEYS))
                && screen.contains(" 100 ")
                && screen.contains(" 200 ")
        });
        let longest = screen.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(columns.into()), "{screen}");
        assert_eq!(screen.contains("depth"), columns >= 80, "{screen}");
        assert_eq!(screen.matches("iolite-").count(), 1, "nothing of the other size is left: {screen}");
    }
    run.terminal.press("s");
    run.terminal.wait_until("sorted", |screen| screen.contains("s sort: IOPS"));
    run.terminal.press("q");
    let (status, screen) = run.end();
    assert_eq!(status, 128, "{screen}");
    // Now the ordinary report is there.
    assert!(has_lines(&screen, &["all jobs", "  read "]), "{screen}");
}

#[test]
fn more_jobs_than_lines() {
    let dir = scratch();
    let line = "--ioengine=null --size=1g --time_based --runtime=1h --rate_iops=10 --thread --rw=read";
    let jobs: String = (10..40).map(|number| format!(" --name=job{number}")).collect();
    let run = or_skip!(Shown::start(dir.path(), (80, 24), "", &format!("{line}{jobs}")));
    let shows = |what, shown: &'static str, hidden: &'static str| {
        run.terminal.wait_until(what, |screen| {
            has_lines(screen, &[shown, "all jobs "]) && !has_lines(screen, &[hidden])
        });
    };
    shows("the first jobs", "job10", "job39");
    run.terminal.press("End");
    shows("the last jobs", "job39", "job10");
    run.terminal.press("Home");
    run.terminal.press("Down");
    shows("all but the first", "job11", "job10");
    run.terminal.interrupt();
    assert_eq!(run.end().0, 128);
}

/// However the run ends, the terminal is as before, and shows what was said in the meantime.
#[test]
fn the_terminal_is_given_back() {
    let dir = scratch();
    let path = dir.path();
    let end_by = |line: &str, end: &dyn Fn(&Shown)| -> Result<(i32, String), String> {
        let run = Shown::start(path, (100, 30), "", line)?;
        run.terminal.wait_until("rates", |screen| screen.contains(" runs"));
        let family = iolite_os::process::descendants_of(run.pid);
        end(&run);
        wait_until_gone(&family);
        Ok(run.end())
    };
    let (status, screen) = or_skip!(end_by(ENDLESS, &|run| run.terminal.interrupt()));
    assert!(status == 128 && has_lines(&screen, &["all jobs"]), "^C: {screen}");
    let (status, screen) = or_skip!(end_by(ENDLESS, &|run| send(run.pid, libc::SIGTERM)));
    assert!(status == 128 && has_lines(&screen, &["all jobs"]), "SIGTERM: {screen}");
    let (status, _) = or_skip!(end_by(ENDLESS, &|run| send(run.pid, libc::SIGKILL)));
    assert_eq!(status, 137, "SIGKILL");
    // What draws dies, and the run goes on.
    let (status, screen) = or_skip!(end_by(ENDLESS, &|run| {
        send(run.drawer(), libc::SIGKILL);
        let words = "the screen of this run (--live=full) is gone: its process had signal: 9";
        run.terminal.wait_until("it is told", |screen| screen.contains(words));
        run.terminal.interrupt();
    }));
    assert!(status == 128 && has_lines(&screen, &["all jobs"]), "without its screen: {screen}");
    // Errors are in view while the run goes on, and on the terminal afterwards.
    let failing = format!("{ENDLESS} --name=bad --rw=read --exec_prerun=false");
    let (status, screen) = or_skip!(end_by(&failing, &|run| {
        run.terminal.wait_until("the error", |screen| has_lines(screen, &["! bad: "]));
        run.terminal.press("q");
    }));
    assert!(
        status == 128
            && has_lines(&screen, &["all jobs"])
            && screen.contains("\"false\" ended with exit status: 1"),
        "{screen}"
    );
}

#[test]
fn it_needs_a_terminal() {
    let dir = scratch();
    let program = Program::own();
    let piped = program.line(dir.path(), &format!("--live=full {ENDLESS}")).refused();
    assert!(piped.stderr.contains("--live=full: standard output is no terminal; leave it out"), "{piped}");
    let wrong = program.line(dir.path(), &format!("--live=no {ENDLESS}")).refused();
    assert!(wrong.stderr.contains("--live=no: expected line or full"), "{wrong}");
    let fio = Program::called_fio(dir.path()).line(dir.path(), &format!("--live=full {ENDLESS}")).refused();
    assert!(fio.stderr.contains("unknown option \"live\""), "{fio}");
    let line = format!("{} --live=full --name=a --filename=- --rw=write --size=4k", program.path.display());
    let (status, screen) = or_skip!(Tmux::start(dir.path(), (120, 24), &line)).end();
    assert!(
        status == 1 && screen.contains("--live=full: a job writes its data to standard output"),
        "{screen}"
    );
    let dumb = format!("env TERM=dumb {} --live=full {ENDLESS}", program.path.display());
    let (status, screen) = or_skip!(Tmux::start(dir.path(), (100, 24), &dumb)).end();
    assert!(status == 1 && screen.contains("--live=full: TERM=dumb places no text"), "{screen}");
}

#[test]
fn colours_and_characters() {
    let dir = scratch();
    for (environment, options, is_colored, is_ascii) in
        [("", "", true, false), ("NO_COLOR=1", "", false, false), ("LC_ALL=C", "--color=never", false, true)]
    {
        let line = format!("{options} {ENDLESS}");
        let run = or_skip!(Shown::start(dir.path(), (80, 24), environment, &line));
        let curve = if is_ascii { '#' } else { '█' };
        run.terminal.wait_until("a curve", |screen| {
            screen.lines().any(|line| line.starts_with("one") && line.contains(curve))
        });
        let screen = run.terminal.screen(true);
        assert_eq!(screen.contains('\x1b'), is_colored, "{environment}: {screen}");
        assert_eq!(screen.is_ascii(), is_ascii, "{environment}: {screen}");
        run.terminal.press("q");
        run.end();
    }
}

#[test]
fn machines_are_rows() {
    let dir = scratch();
    let path = dir.path();
    let agents = ["first", "second"].map(|name| Agent::on_socket(path, name));
    job(path, "[long]\nrw=write\nbs=4k\nsize=64k\nthinktime=1ms\ntime_based\nruntime=1h\n");
    let clients = agents.each_ref().map(|agent| format!("{} job.fio", agent.client())).join(" ");
    let run = Shown::start(path, (120, 30), "", &clients);
    let run = match run {
        Ok(run) => run,
        Err(why) => skip!("{why}"),
    };
    let host = iolite_remote::message::machine_name();
    let is_machine =
        |line: &&str| line.starts_with(&host) && line.contains(" write ") && line.contains(" runs");
    run.terminal.wait_until("two machines", |screen| {
        screen.lines().filter(is_machine).count() == 2 && screen.contains(" 2 machines at work")
    });
    run.terminal.press("q");
    let (status, screen) = run.end();
    assert!(status == 128 && screen.contains("All clients"), "{screen}");
    agents.into_iter().for_each(|agent| drop(agent.end()));
}
