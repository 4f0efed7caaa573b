//! I/O errors: those that end a job, those after which it continues, and their report.

use crate::common::devices::{Loop, Mounted, image};
use crate::common::program::Finished;
use crate::common::{Json, Program, peers, scratch};
use iolite_testing::{or_skip, skip};
use std::fs::{self, File};
use std::path::Path;

/// 16 writes to a full device.
const FULL: &str = "--name=e --filename=/dev/full --rw=write --size=64k --bs=4k";

/// A device whose second half cannot be read.
struct HalfBroken {
    device: Loop,
}

impl HalfBroken {
    fn new(dir: &Path) -> Result<HalfBroken, String> {
        let path = image(dir, "broken.img", 16 << 20);
        let device = Loop::on(&path)?;
        // Behind the end of its image, a loop device returns only errors.
        let file = File::options().write(true).open(path).map_err(|error| error.to_string())?;
        file.set_len(8 << 20).map_err(|error| error.to_string())?;
        Ok(HalfBroken { device })
    }

    fn job(&self) -> String {
        format!("--name=e --filename={} --direct=1 --offset=8128k --size=128k --bs=4k", self.device.path)
    }
}

/// The error, total errors, first error, I/Os, bytes and latencies of the only job, for any exit status.
fn outcome(run: &Finished, direction: &str) -> [u64; 6] {
    let json = Json::parse(&run.stdout);
    let job = json.job();
    let of = |key: &str| job.int(&format!("{direction}.{key}"));
    [
        job.int("error"),
        job.int("total_err"),
        job.int("first_error"),
        of("total_ios"),
        of("io_bytes"),
        of("clat_ns.N"),
    ]
}

#[test]
fn ignored_errors_are_counted() {
    let dir = scratch();
    let program = Program::under_test();
    for list in [",ENOSPC", ",28", "EIO,ENOSPC:EDQUOT"] {
        if program.is_peer && list.contains("EDQUOT") {
            continue;
        }
        let run =
            program.line(dir.path(), &format!("{FULL} --ignore_error={list} --output-format=json")).ok();
        assert_eq!(outcome(&run, "write"), [28, 16, 28, 16, 0, 0], "{run}");
    }
    let run = program.line(dir.path(), &format!("{FULL} --ignore_error=,ENOSPC")).ok();
    run.says("err=28").says("     errors    : total=16, first_error=28/<No space left on device>\n");
    let run = program.line(dir.path(), &format!("{FULL} --ignore_error=,ENOSPC --output-format=terse")).ok();
    assert!(run.stdout.ends_with(";16;28\n"), "{run}");
}

#[test]
fn only_the_right_kind_is_ignored() {
    let dir = scratch();
    for list in ["ENOSPC", ",EIO", ",,ENOSPC"] {
        let line = format!("{FULL} --ignore_error={list}");
        let run = Program::under_test().line(dir.path(), &line).refused();
        run.says("write offset=0, buflen=4096").says("total=0,1,0,0").says("errors    : total=");
    }
}

#[test]
fn errors_without_data_loss_end_the_job() {
    let dir = scratch();
    for (kinds, total) in [("all", 1), ("1", 1), ("write", 1), ("io", 1), ("read", 0), ("verify", 0)] {
        let line = format!("{FULL} --continue_on_error={kinds} --output-format=json");
        let run = Program::under_test().line(dir.path(), &line).refused();
        assert_eq!(outcome(&run, "write"), [28, total, 28 * total, 1, 0, 0], "{kinds}: {run}");
    }
    let run = Program::under_test().line(dir.path(), FULL).refused();
    assert!(!run.output().contains("total=1, first_error"), "{run}");
}

#[test]
fn jobs_go_on_after_lost_data() {
    let dir = scratch();
    let broken = or_skip!(HalfBroken::new(dir.path()));
    for engine in ["psync", "libaio", "io_uring", "posixaio"] {
        for kinds in ["read", "io", "all", "1"] {
            let line = format!(
                "{} --rw=read --ioengine={engine} --iodepth=4 --continue_on_error={kinds} --output-format=json",
                broken.job()
            );
            let run = Program::under_test().line(dir.path(), &line).ok();
            assert_eq!(outcome(&run, "read"), [5, 16, 5, 32, 65536, 16], "{engine} {kinds}: {run}");
        }
    }
    for kinds in ["none", "0", "write", "verify"] {
        let line = format!("{} --rw=read --continue_on_error={kinds}", broken.job());
        let run = Program::under_test().line(dir.path(), &line).refused();
        run.says("Input/output error: read offset=8388608, buflen=4096").says("total=17,0,0,0");
    }
}

#[test]
pub fn errors_that_do_not_end_the_job_are_described_on_demand() {
    let dir = scratch();
    let broken = or_skip!(HalfBroken::new(dir.path()));
    for (dump, told) in [(1, 16), (0, 0)] {
        let line = format!("{} --rw=read --error_dump={dump} --continue_on_error=read", broken.job());
        let run = Program::under_test().line(dir.path(), &line).ok();
        assert_eq!(run.output().matches(": Input/output error: read offset=").count(), told, "{run}");
    }
}

#[test]
fn errors_of_a_group_add_up() {
    let dir = scratch();
    let line = format!("--numjobs=3 --group_reporting --ignore_error=,ENOSPC {FULL} --output-format=json");
    let run = Program::under_test().line(dir.path(), &line).ok();
    assert_eq!(outcome(&run, "write"), [28, 48, 28, 48, 0, 0], "{run}");
}

#[test]
fn a_file_that_is_cut_off_under_its_job() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio 3.33 aborts");
    }
    let dir = scratch();
    let file = dir.path().join("f");
    for (more, code) in [("--continue_on_error=all", 0), ("", 1)] {
        fs::write(&file, vec![1; 1 << 20]).expect("a file");
        let line = format!(
            "--name=e --filename=f --rw=read --bs=4k --size=1M --rate_iops=100 --invalidate=0 --eta=never \
             --exec_prerun=true {more}"
        );
        let mut running = program.start(dir.path(), line.split_whitespace());
        running.wait_until("its start", |running| running.stdout().contains("Saving output of prerun"));
        File::options().write(true).open(&file).and_then(|file| file.set_len(4096)).expect("shorter");
        let run = running.wait();
        assert_eq!(run.code(), code, "{run}");
        if code == 0 {
            assert!(run.output().contains("first_error=5/<Input/output error>"), "{run}");
            assert!(run.output().contains("issued rwts: total=256,0,0,0"), "{run}");
        } else {
            assert!(
                run.output().contains("Input/output error (the file ends before): read offset="),
                "{run}"
            );
        }
    }
}

#[test]
fn a_mapped_file_whose_medium_fails() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio dies of it");
    }
    let dir = scratch();
    let broken = or_skip!(HalfBroken::new(dir.path()));
    let line = format!("{} --direct=0 --rw=read --ioengine=mmap", broken.job());
    let run = program.line(dir.path(), &line).refused();
    run.says("Input/output error: read offset=8388608, buflen=4096").says("total=17,0,0,0");
    let run = program.line(dir.path(), &format!("{line} --continue_on_error=read --output-format=json")).ok();
    assert_eq!(outcome(&run, "read"), [5, 16, 5, 32, 65536, 16], "{run}");
}

#[test]
fn a_full_file_system_ends_a_fill_device_job() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 8 << 20));
    let file = mounted.directory.join("f");
    let line =
        format!("--name=e --filename={} --rw=write --bs=64k --size=20M --fill_device=1", file.display());
    let run = Program::under_test().line(dir.path(), &line).ok();
    let size = fs::metadata(&file).expect("it was written").len();
    let expected = format!("No space left on device: write offset={size}, buflen=65536");
    let issued = format!("issued rwts: total=0,{},0,0 ", size / 65536 + 1);
    run.says(&expected).says(&issued).says("err= 0");
    fs::remove_file(&file).expect("own file");
    // Without fill_device, a full file system is a failure.
    let line = line.replace("--fill_device=1", "--fallocate=none");
    Program::under_test().line(dir.path(), &line).refused().says("err=28").says("No space left on device");
}

#[test]
fn the_same_as_the_peer() {
    for peer in peers!() {
        let dir = scratch();
        let broken = or_skip!(HalfBroken::new(dir.path()));
        let mut jobs = vec![(format!("{FULL} --ignore_error=,ENOSPC"), "write")];
        for kinds in ["read", "write", "all"] {
            jobs.push((format!("{} --rw=read --continue_on_error={kinds}", broken.job()), "read"));
            jobs.push((format!("{FULL} --continue_on_error={kinds}"), "write"));
        }
        jobs.push((format!("{} --rw=read --continue_on_error=all --ignore_error=84", broken.job()), "read"));
        for (line, direction) in jobs {
            let line = format!("{line} --output-format=json");
            let [ours, theirs] =
                [&Program::under_test(), &peer].map(|program| program.line(dir.path(), &line));
            assert_eq!(ours.code(), theirs.code(), "{ours}\n{theirs}");
            assert_eq!(outcome(&ours, direction), outcome(&theirs, direction), "{ours}\n{theirs}");
        }
    }
}

#[test]
fn bad_lists_of_errors() {
    let dir = scratch();
    let program = Program::under_test();
    program.line(dir.path(), &format!("{FULL} --ignore_error=EFOO")).refused().says("EFOO");
    program.line(dir.path(), &format!("{FULL} --ignore_error=1,2,3,4")).refused();
    program.line(dir.path(), &format!("{FULL} --continue_on_error=sometimes")).refused().says("sometimes");
}

#[test]
pub fn block_states_and_lifetimes_are_reported() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio 3.33 aborts");
    }
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), 16 << 20));
    let line = format!("--name=e --filename={} --bs=64k --block_error_percentiles=1", device.path);
    let states = |run: &Finished| {
        let json = Json::parse(&run.stdout);
        let states = json.job().0["block"]["states"].clone();
        ["unwritten", "trimmed", "written", "trim failure", "write failure"]
            .map(|state| states[state].as_u64().unwrap_or_else(|| panic!("no {state} in {run}")))
    };
    let run = |more: &str| program.line(dir.path(), &format!("{line} {more} --output-format=json")).ok();
    assert_eq!(states(&run("--rw=trim --size=1M --io_size=512k")), [8, 8, 0, 0, 0]);
    assert_eq!(states(&run("--rw=trimwrite --size=1M")), [0, 0, 16, 0, 0]);
    assert_eq!(states(&run("--rw=trim --size=1M --loops=3 --numjobs=2 --group_reporting")), [0, 32, 0, 0, 0]);
    // On a full device, the first write to each block fails.
    let line = format!("{FULL} --block_error_percentiles=1 --ignore_error=,ENOSPC");
    let run = program.line(dir.path(), &format!("{line} --output-format=json")).ok();
    assert_eq!(states(&run), [0, 0, 0, 0, 16]);
    assert_eq!(Json::parse(&run.stdout).job().0["block"]["percentiles"]["50.000000"], 0);
    let run = program.line(dir.path(), &line).ok();
    run.says("  block lifetime percentiles :\n").says(
        "   |        states               : unwritten=0, trimmed=0, written=0, trim failure=0, write failure=16\n",
    );
    let line = "--name=e --ioengine=null --size=1M --rw=read --block_error_percentiles=1";
    program.line(dir.path(), line).ok().says("no effect without trims or writes");
    let line =
        "--name=e --ioengine=null --size=1T --rw=write --bs=4k --block_error_percentiles=1 --number_ios=1";
    program.line(dir.path(), line).refused().says("blocks of 4096 bytes are more than");
}

#[test]
fn unlockable_memory_is_reported_with_job_and_remedy() {
    let dir = scratch();
    let line = "--name=greedy --ioengine=null --size=4k --lockmem=1000t";
    let run = Program::under_test().line(dir.path(), line).refused();
    assert!(run.stderr.contains("lockmem: job greedy asks for") && run.stderr.contains("ulimit -l"), "{run}");
}

#[test]
fn too_many_open_files_have_a_remedy() {
    let dir = scratch();
    let job = "--name=j --nrfiles=200 --size=800k";
    let limited = |more: &str| {
        let script = format!("ulimit -n 64; exec {} {job} {more}", Program::own().path.display());
        std::process::Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().unwrap()
    };
    let refused = limited("");
    let told = String::from_utf8_lossy(&refused.stdout);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    for words in ["Too many open files", "a process may have 64 (ulimit -n)", "the job has 200", "openfiles="]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(limited("--openfiles=20").status.success());
}
