//! I/Os that do not come back: the status line and SIGUSR1 say which they are.

use crate::common::devices::{Mounted, tool};
use crate::common::program::Running;
use crate::common::{Json, Program, scratch};
use iolite_testing::{NbdServer, or_skip};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A pipe without a reader; writing to it does not wait.
fn pipe(path: &Path) -> File {
    let name = CString::new(path.as_os_str().as_bytes()).expect("a path has no zeros");
    // SAFETY: a plain system call with a valid string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0, "a pipe can be made");
    File::options().read(true).write(true).open(path).expect("a pipe can be opened")
}

/// A frozen file system: I/O waits in the kernel, and no signal ends that.
struct Frozen<'a>(&'a Mounted);

impl<'a> Frozen<'a> {
    fn new(mounted: &'a Mounted) -> Result<Frozen<'a>, String> {
        tool("fsfreeze", &["-f", &mounted.directory.to_string_lossy()])?;
        Ok(Frozen(mounted))
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = tool("fsfreeze", &["-u", &self.0.directory.to_string_lossy()]);
    }
}

/// The rows of the table of I/Os in flight that a run has printed, without ages.
fn rows(output: &str) -> Vec<Vec<String>> {
    let table = output.lines().skip_while(|line| !line.ends_with("in flight:")).skip(2);
    let rows = table.take_while(|line| line.starts_with("  ")).map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // An age is a number and its unit, or a dash.
        words[if words[0] == "-" { 1 } else { 2 }..].iter().map(|word| (*word).to_owned()).collect()
    });
    rows.collect()
}

/// Asks for the table until it has this many rows.
fn table(running: &mut Running, count: usize) -> Vec<Vec<String>> {
    running.signal(libc::SIGUSR1);
    running.wait_until("the table", |running| rows(&running.output()).len() >= count);
    rows(&running.output())
}

#[test]
fn a_read_that_waits_is_shown_with_its_age() {
    let dir = scratch();
    let ways = ["psync", "psync --thread", "vsync", "io_uring", "libaio", "psync --io_submit_mode=offload"];
    let mut runs: Vec<(File, Running)> = ways
        .iter()
        .enumerate()
        .map(|(number, way)| {
            let name = format!("pipe{number}");
            let held = pipe(&dir.path().join(&name));
            let line =
                format!("--name=a --filename={name} --rw=read --size=64k --eta=always --ioengine={way}");
            (held, Program::under_test().start(dir.path(), line.split_whitespace()))
        })
        .collect();
    for (number, (held, running)) in runs.iter_mut().enumerate() {
        let place = format!(" s: pipe{number} offset 0]");
        let is_told = |text: &str| text.contains("[1 I/O in flight for ") && text.contains(&place);
        running.wait_until("the age", |run| is_told(&run.output()));
        let found = table(running, 1);
        assert_eq!(found, [["a", "1", "read", &format!("pipe{number}"), "0", "4096"]], "{}", ways[number]);
        held.write_all(&[0; 64 << 10]).expect("the pipe takes it");
    }
    runs.into_iter().for_each(|(_, running)| drop(running.wait().ok()));
}

/// Also while a worker sleeps in the kernel where no signal wakes it.
#[test]
fn writes_to_a_frozen_file_system_are_shown() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 64 << 20));
    for name in ["a", "b"] {
        fs::write(mounted.directory.join(name), vec![1; 4 << 20]).expect("a file can be written");
    }
    let line = "--directory=mounted --rw=randwrite --size=4m --time_based --runtime=1 --eta=always --overwrite=1 \
                --name=a --filename=a --ioengine=psync --name=b --filename=b --ioengine=io_uring --iodepth=4 --direct=1";
    let frozen = or_skip!(Frozen::new(&mounted));
    let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
    running.wait_until("the ages", |run| {
        run.output().contains("[5 I/Os in flight for more than 5 s, the oldest for ")
    });
    let found = table(&mut running, 5);
    let of = |job: &str, worker: &str, count: usize| {
        let file = format!("mounted/{job}");
        let is_one = |row: &&Vec<String>| row[..4] == [job, worker, "write", &file] && row[5] == "4096";
        assert_eq!(found.iter().filter(is_one).count(), count, "{found:?}");
    };
    of("a", "1", 1);
    of("b", "2", 4);
    drop(frozen);
    running.wait().ok();
}

/// Also for an engine whose loop does not know its type.
#[test]
fn requests_to_a_server_that_has_stopped_are_shown() {
    let dir = scratch();
    let server = or_skip!(NbdServer::nbdkit(dir.path(), "memory 4M"));
    let line = format!(
        "--name=a --ioengine=nbd --uri={} --rw=randread --size=4m --iodepth=3 --time_based --runtime=1h --eta=always",
        server.uri()
    );
    let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
    running.wait_until("I/O", |run| run.output().contains("[r(1)]"));
    server.signal(libc::SIGSTOP);
    running.wait_until("the ages", |run| {
        run.output().contains("[3 I/Os in flight for more than 5 s, the oldest for ")
    });
    assert_eq!(table(&mut running, 3).len(), 3);
    server.signal(libc::SIGCONT);
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().code(), 128);
}

/// Under the name `fio`, all output is fio's.
#[test]
fn fio_does_not_say_what_is_in_flight() {
    let dir = scratch();
    let mut held = pipe(&dir.path().join("pipe"));
    let line = "--name=a --filename=pipe --rw=read --size=64k --eta=always --ioengine=psync";
    let mut running = Program::called_fio(dir.path()).start(dir.path(), line.split_whitespace());
    running.wait_until("eight lines", |run| run.output().matches("Jobs: 1 (f=1)").count() >= 8);
    running.signal(libc::SIGUSR1);
    running.wait_until("the report", |run| run.output().contains("Run status group 0"));
    held.write_all(&[0; 64 << 10]).expect("the pipe takes it");
    let run = running.wait().ok();
    assert!(!run.output().contains("in flight"), "{run}");
    assert!(run.stderr.is_empty(), "{run}");
}

/// Whether they queue, hang in a call or cannot even be killed: workers whose I/O does not come back end with an error,
/// and the report has everything else.
#[test]
fn an_io_that_takes_too_long_ends_its_job() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 64 << 20));
    let ways = [
        "--ioengine=psync",
        "--ioengine=psync --thread",
        "--ioengine=vsync",
        "--ioengine=io_uring --iodepth=4 --direct=1",
        "--ioengine=libaio --iodepth=4 --direct=1",
        "--ioengine=psync --iodepth=2 --io_submit_mode=offload",
    ];
    let mut line =
        "--output-format=json --output=report --directory=mounted --size=1m --bs=4k --overwrite=1".to_owned();
    for (number, way) in ways.iter().enumerate() {
        fs::write(mounted.directory.join(format!("f{number}")), vec![1; 1 << 20])
            .expect("a file can be written");
        line += &format!(" --name=j{number} --filename=f{number} --rw=randwrite --io_timeout=1s {way}");
    }
    line += " --name=last --filename=f0 --rw=read --ioengine=psync";
    let frozen = or_skip!(Frozen::new(&mounted));
    let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
    let report = dir.path().join("report");
    running.wait_until("the report", |_| fs::read_to_string(&report).is_ok_and(|text| text.ends_with("}\n")));
    drop(frozen);
    let run = running.wait();
    assert_eq!(run.code(), 1, "{run}");
    let report = Json::last_in(&fs::read_to_string(&report).expect("there is a report"));
    assert!(run.stderr.contains("Connection timed out (in flight for 1."), "{run}");
    let errors: Vec<u64> = report.jobs().iter().map(|job| job.int("error")).collect();
    let expected: Vec<u64> = ways.iter().map(|_| libc::ETIMEDOUT as u64).chain([0]).collect();
    assert_eq!(errors, expected, "{run}");
    assert_eq!(report.jobs()[ways.len()].ios()[0], 256, "{run}");
    for (number, _) in ways.iter().enumerate() {
        let told = format!("err=110/file=mounted/f{number}, func=write, error=Connection timed out");
        assert!(run.stderr.contains(&told), "{number}: {run}");
    }
}

/// I/Os that are tolerated are no longer waited for. If they come back, their units are used again.
#[test]
fn a_job_goes_on_after_ios_that_took_too_long() {
    for more in ["", "--iodepth=1", "--thread", "--rw=randwrite --verify=crc32c --runtime=3"] {
        let dir = scratch();
        let server = or_skip!(NbdServer::nbdkit(dir.path(), "memory 4M"));
        let line = format!(
            "--name=a --ioengine=nbd --uri={} --rw=randrw --size=4m --iodepth=3 --time_based --runtime=1h --eta=always \
             --io_timeout=500ms --continue_on_error=io --output-format=json --output=report --rate_iops=2000 {more}",
            server.uri()
        );
        let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
        running.wait_until("I/O", |run| run.output().contains(" IOPS][eta"));
        server.signal(libc::SIGSTOP);
        running.wait_until("an error", |run| run.output().contains("(in flight for 0.5 s: io_timeout)"));
        server.signal(libc::SIGCONT);
        let verifies = more.contains("verify");
        if !verifies {
            let lines = running.output().matches("Jobs: ").count();
            running.wait_until("more I/O", |run| {
                let output = run.output();
                let last = output.rmatch_indices("Jobs: ").next().map_or("", |(at, _)| &output[at..]);
                output.matches("Jobs: ").count() > lines + 2 && !last.contains("=0 IOPS]")
            });
            running.signal(libc::SIGINT);
        }
        let run = running.wait();
        assert_eq!(run.code(), if verifies { 0 } else { 128 }, "{more}: {run}");
        let report =
            Json::last_in(&fs::read_to_string(dir.path().join("report")).expect("there is a report"));
        let job = report.job();
        assert_eq!(job.int("error"), libc::ETIMEDOUT as u64, "{more}: {run}");
        assert!((1..=3).contains(&job.int("total_err")), "{more}: {run}");
        assert!(!verifies || job.ios()[0] > 0, "{run}");
    }
}

/// A read that waits for a pipe is interrupted.
#[test]
pub fn a_read_from_a_pipe_may_take_too_long() {
    for way in ["psync", "psync --thread", "io_uring", "io_uring --thread", "libaio"] {
        let dir = scratch();
        let _held = pipe(&dir.path().join("pipe"));
        let line = format!("--name=a --filename=pipe --rw=read --size=64k --io_timeout=1s --ioengine={way}");
        let run = Program::under_test().line(dir.path(), &line);
        assert_eq!(run.code(), 1, "{way}: {run}");
        let run = run.says("(in flight for ").says(": io_timeout): read offset=0, buflen=4096");
        run.says("err=110 (file=pipe, func=read, error=Connection timed out)");
    }
}

#[test]
fn work_without_io_cannot_take_too_long() {
    let dir = scratch();
    let line = "--name=a --ioengine=cpuio --cpuload=10 --io_timeout=1s --runtime=1";
    Program::under_test().line(dir.path(), line).refused().says("io_timeout: ioengine=cpuio issues no I/O");
}
