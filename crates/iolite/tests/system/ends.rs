//! All ways in which a run can end early: any of its processes dies, at any time. Each planned worker either runs to
//! its end or has an error that says what happened, the exit status shows the failure, and nothing is left behind.

use super::signals::{descendants, have_read, workers_on};
use crate::common::program::{Finished, Running, send};
use crate::common::{Json, Program, scratch};
use iolite_testing::{partly_skipped, this_test};
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// The victim of a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// The process that forks all others.
    Spawner,
    /// The process that lays out files.
    Layout,
    /// The process of the first worker.
    Worker,
    /// The process of the thread workers.
    ThreadHost,
    /// The process that measures how idle the CPUs are.
    IdleMeter,
    /// A socket of the first process: its first or second one.
    Socket(usize),
}

/// When the victim is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// While files are laid out.
    LayingOut,
    /// When only the spawner exists, because workers wait for their start time.
    Waiting,
    /// While the first worker reads the file `f`.
    Running,
    /// When the first worker has done its I/O and waits for its last command.
    Finishing,
    /// When all workers have ended, and the run waits for a command.
    Over,
}

/// A way in which a run ends.
struct Way {
    victim: Victim,
    moment: Moment,
    /// Options of the first job, besides those for its moment.
    first: &'static str,
    /// The jobs after it.
    others: &'static str,
    /// Whether each job has an error.
    errors: &'static [bool],
    /// A part of the message.
    says: &'static str,
}

const fn way(
    victim: Victim,
    moment: Moment,
    (first, others): (&'static str, &'static str),
    errors: &'static [bool],
    says: &'static str,
) -> Way {
    Way { victim, moment, first, others, errors, says }
}

/// A job that begins when the first one is over.
const BEHIND: &str = "--name=behind --stonewall --ioengine=null --size=64k";
/// The same as a thread.
const THREAD_BEHIND: &str = "--name=behind --stonewall --thread --ioengine=null --size=64k";
/// A job that ends at once.
const BESIDE: &str = "--name=beside --ioengine=null --size=64k";

/// The only thread of the thread host is the one that keeps the time.
const CLOCK: (&str, &str) = ("--gtod_cpu=0", BEHIND);

const CLOCK_LOST: &str = "func=gtod_cpu: the thread that kept the time";
const KILLED: &str = "func=killed by signal 9";
const SPAWNER_KILLED: &str = "func=spawner: killed by signal 9";
const SPAWNER_LOST: &str = "func=spawner: the connection to it was lost";

const WAYS: [Way; 26] = {
    use Moment::*;
    use Victim::*;
    let both = &[true, true];
    let first = &[true, false];
    [
        way(Layout, LayingOut, ("", BEHIND), both, "func=layout: killed by signal 9"),
        way(Layout, LayingOut, ("--exitall", BESIDE), both, "func=layout: killed by signal 9"),
        way(Spawner, LayingOut, ("", BEHIND), both, SPAWNER_KILLED),
        way(Socket(0), LayingOut, ("", BEHIND), both, SPAWNER_LOST),
        way(Socket(1), LayingOut, ("", BEHIND), both, SPAWNER_LOST),
        way(ThreadHost, LayingOut, CLOCK, both, CLOCK_LOST),
        way(Spawner, Waiting, ("", BEHIND), both, SPAWNER_KILLED),
        way(Spawner, Waiting, ("--thread", BEHIND), both, SPAWNER_KILLED),
        way(Spawner, Waiting, ("--exitall", BESIDE), first, SPAWNER_KILLED),
        way(Socket(0), Waiting, ("", BEHIND), both, SPAWNER_LOST),
        way(Socket(1), Waiting, ("", BEHIND), both, SPAWNER_LOST),
        way(ThreadHost, Waiting, CLOCK, both, CLOCK_LOST),
        way(Worker, Running, ("", BEHIND), first, KILLED),
        way(ThreadHost, Running, ("--thread", BEHIND), first, KILLED),
        way(ThreadHost, Running, ("--thread", THREAD_BEHIND), first, KILLED),
        way(ThreadHost, Running, CLOCK, both, CLOCK_LOST),
        way(Spawner, Running, ("", BEHIND), both, SPAWNER_KILLED),
        way(Spawner, Running, ("--thread", BEHIND), both, SPAWNER_KILLED),
        way(Spawner, Running, ("--startdelay=1", BESIDE), first, SPAWNER_KILLED),
        way(Socket(0), Running, ("", BEHIND), both, SPAWNER_LOST),
        way(Socket(1), Running, ("", BEHIND), both, SPAWNER_LOST),
        way(Socket(1), Running, ("--thread", BEHIND), both, SPAWNER_LOST),
        way(Worker, Finishing, ("", BEHIND), first, KILLED),
        way(Spawner, Finishing, ("", BEHIND), both, SPAWNER_KILLED),
        way(
            IdleMeter,
            Finishing,
            ("--idle-prof=system", BEHIND),
            &[false, false],
            "--idle-prof: the process that measures is gone",
        ),
        way(Spawner, Over, ("", BEHIND), &[false, false], ""),
    ]
};

/// The options of the first job that make it reach the moment and stay there.
fn job_at(moment: Moment) -> &'static str {
    match moment {
        // The job never begins, so the process that has its file open is the one that lays it out.
        Moment::LayingOut => {
            "--name=a --filename=large --size=1g --rw=read --fallocate=none --startdelay=300"
        }
        Moment::Waiting => "--name=a --ioengine=null --size=64k --startdelay=300",
        Moment::Running => "--name=a --filename=f --size=1m --rw=read --time_based --runtime=300",
        Moment::Finishing => "--name=a --filename=f --size=1m --rw=read --exec_postrun=sh",
        Moment::Over => "--name=a --ioengine=null --size=64k",
    }
}

fn children(pid: i32) -> Vec<i32> {
    descendants(pid).into_iter().filter(|&child| parent(child) == Some(pid)).collect()
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Whether a process has a thread of this name.
fn has_thread(pid: i32, name: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.any(|found| found.starts_with(name))
}

/// The sockets of the process, in the order of their descriptors.
fn sockets(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| {
        fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
    });
    let mut numbers: Vec<i32> =
        sockets.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Cuts a connection of another process; `None` = this is not permitted here.
fn cut(pid: i32, socket: i32) -> Option<()> {
    // SAFETY: plain system calls; nothing else owns the descriptors that they return.
    unsafe {
        let process =
            i32::try_from(libc::syscall(libc::SYS_pidfd_open, pid, 0)).ok().filter(|&fd| fd >= 0)?;
        let process = OwnedFd::from_raw_fd(process);
        let got = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), socket, 0);
        let got = OwnedFd::from_raw_fd(i32::try_from(got).ok().filter(|&fd| fd >= 0)?);
        assert_eq!(libc::shutdown(got.as_raw_fd(), libc::SHUT_RDWR), 0);
    }
    Some(())
}

/// The process to kill; `None` = it does not exist yet.
fn find(victim: Victim, moment: Moment, running: &Running, dir: &Path) -> Option<i32> {
    let spawner = *children(running.pid()).first()?;
    let on = |name: &str| workers_on(running, &dir.join(name)).first().copied();
    match (victim, moment) {
        (Victim::Spawner, _) => Some(spawner),
        (Victim::Layout, _) => on("large"),
        (Victim::Worker, Moment::Finishing) => children(spawner).first().copied(),
        (Victim::Worker, _) => on("f"),
        (Victim::ThreadHost, _) => {
            let is_host = |&pid: &i32| has_thread(pid, "iolite-time") || has_thread(pid, "iolite-0");
            children(spawner).into_iter().find(is_host)
        }
        (Victim::IdleMeter, _) => children(spawner).into_iter().find(|&pid| has_thread(pid, "iolite-idle")),
        (Victim::Socket(_), _) => Some(running.pid()),
    }
}

/// Whether the run has reached its moment. The run stays there until the test continues.
fn has_come(way: &Way, running: &Running, dir: &Path) -> bool {
    let Some(&spawner) = children(running.pid()).first() else { return false };
    let on = |name: &str| workers_on(running, &dir.join(name));
    // Other jobs have to be over, except while files are laid out.
    if way.others == BESIDE
        && way.moment != Moment::LayingOut
        && !running.output().contains("worker 2 is done")
    {
        return false;
    }
    match way.moment {
        Moment::LayingOut => {
            // Stops the process, so that it stays at this moment.
            on("large").first().is_some_and(|&pid| {
                send(pid, libc::SIGSTOP);
                true
            })
        }
        Moment::Waiting => running.output().contains("wave 1 of") && children(spawner).len() <= 1,
        Moment::Running => have_read(&on("f")),
        Moment::Finishing => dir.join("finishing").exists(),
        Moment::Over => dir.join("over").exists() && children(spawner).is_empty(),
    }
}

/// Starts a run, waits for the moment, and ends the run this way; `None` = this is not possible here.
fn go(way: &Way) -> Option<Finished> {
    let dir = scratch();
    let root = dir.path().canonicalize().expect("the directory exists");
    fs::write(root.join("f"), vec![1; 1 << 20]).unwrap();
    let mut words: Vec<&str> = "--output=report --output-format=json --debug=process".split(' ').collect();
    let wait = "touch over; while [ ! -e go ]; do sleep 0.05; done";
    let trigger = ["--trigger-timeout=1".to_owned(), format!("--trigger={wait}")];
    if way.moment == Moment::Over {
        words.extend(trigger.iter().map(String::as_str));
    }
    let finish = "--exec_postrun=touch finishing; while [ ! -e go ]; do sleep 0.05; done";
    for word in job_at(way.moment).split(' ').chain(way.first.split_whitespace()) {
        words.push(if word.starts_with("--exec_postrun") { finish } else { word });
    }
    if way.moment == Moment::Over {
        // The trigger needs a running job.
        words.extend("--time_based --runtime=300 --rate_iops=100".split(' '));
    }
    words.extend(way.others.split(' '));
    let mut running = Program::under_test().start(&root, words);
    running.wait_until("its moment", |running| has_come(way, running, &root));
    running.wait_until("its victim", |running| find(way.victim, way.moment, running, &root).is_some());
    let pid = find(way.victim, way.moment, &running, &root).expect("it was there");
    match way.victim {
        Victim::Socket(which) => cut(pid, sockets(pid)[which])?,
        _ => send(pid, libc::SIGKILL),
    }
    if way.moment == Moment::LayingOut {
        // A stopped process cannot end when asked to.
        workers_on(&running, &root.join("large")).into_iter().for_each(|pid| {
            // SAFETY: a plain system call; the process is one that this test started, or has just ended.
            unsafe { libc::kill(pid, libc::SIGCONT) };
        });
    }
    if way.moment == Moment::Over {
        running.wait_until("its end", |_| parent(pid).is_none_or(|_| is_zombie(pid)));
    }
    if way.victim == Victim::Spawner && way.moment == Moment::Finishing {
        // The worker will end by itself, so the test waits until the death of the spawner has been noticed.
        running.wait_until("the end of its worker", |running| running.output().contains("was killed"));
    }
    if way.victim == Victim::IdleMeter {
        // The jobs do not need the victim, and could end before its death is noticed.
        running.wait_until("the message", |running| running.output().contains(way.says));
    }
    fs::write(root.join("go"), "").unwrap();
    let run = running.wait();
    let report = fs::read_to_string(root.join("report")).unwrap_or_default();
    Some(Finished { stdout: report, ..run })
}

fn is_zombie(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

#[test]
fn any_process_may_die_at_any_time() {
    let cpus = fs::read_to_string("/proc/self/status").unwrap();
    let cpus = cpus.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t")).unwrap().to_owned();
    for way in &WAYS {
        if way.first.contains("gtod_cpu=0") && !(cpus.starts_with("0-") || cpus.starts_with("0,")) {
            partly_skipped(&this_test!(), "needs CPU 0 and another one");
            continue;
        }
        let what = format!("{:?} while {:?}: {} {}", way.victim, way.moment, way.first, way.others);
        let Some(run) = go(way) else {
            partly_skipped(&this_test!(), "descriptors of other processes are not accessible (pidfd_getfd)");
            continue;
        };
        let json = Json::parse(&run.stdout);
        let errors: Vec<bool> = json.jobs().iter().map(|job| job.int("error") != 0).collect();
        assert_eq!(errors, way.errors, "{what}\n{run}");
        let is_well = way.says.is_empty();
        assert_eq!(run.code(), i32::from(!is_well), "{what}\n{run}");
        assert!(run.stderr.contains(way.says), "{what}: {:?}\n{run}", way.says);
        if way.moment == Moment::Running {
            assert!(json.jobs()[0].ios()[0] > 0, "the measurements are lost: {what}\n{run}");
        }
    }
}

/// A worker exits with status 0 without having reported its end.
#[test]
fn a_worker_that_ends_by_itself_has_an_error() {
    let text = "#include \"iolite-engine.h\"\n#include <stdlib.h>\n\
        static int64_t queue(void *state, const struct iolite_unit *unit)\n\
        { (void)state; (void)unit; _Exit(0); }\n\
        static int create(const struct iolite_worker *worker, void **state, char *why, size_t room)\n\
        { (void)worker; (void)why; (void)room; *state = 0; return 0; }\n\
        const struct iolite_engine iolite_engine = { IOLITE_ENGINE_HEAD, .name = \"x\", .data = IOLITE_NOWHERE,\n\
            .create = create, .queue = queue };";
    let dir = scratch();
    iolite_testing::or_skip!(iolite_testing::engine_of(text, "gone", dir.path()));
    for thread in [0, 1] {
        let line = format!("--name=a --ioengine=./gone.so --size=64k --thread={thread} {BEHIND}");
        let run = Program::under_test().line(dir.path(), &format!("--output-format=json {line}")).refused();
        let run = run.says("func=worker: ended with status 0 while it was running");
        let json = Json::parse(&run.stdout);
        let errors: Vec<bool> = json.jobs().iter().map(|job| job.int("error") != 0).collect();
        assert_eq!(errors, [true, false], "{run}");
    }
}
