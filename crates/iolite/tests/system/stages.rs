//! `--stages`: where the time of each I/O went, on real devices whose truth is known.

use crate::common::devices::{Loop, Mounted};
use crate::common::{Finished, Json, Program, is_root, scratch, words};
use iolite_testing::skip;
use iolite_testing::volatile::VolatileDisk;
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const STAGES: [&str; 4] = ["submit", "queue", "device", "reap"];

/// Why stages cannot be measured here.
fn obstacle() -> Option<&'static str> {
    let has_tracepoints = || {
        let dir = scratch();
        let line = "--name=j --filename=f --size=4k --stages";
        !Program::under_test().line(dir.path(), line).output().contains("stages: ")
    };
    match () {
        () if !is_root() => Some("the kernel's tracepoints need root"),
        () if !has_tracepoints() => Some("this kernel does not show its tracepoints"),
        () => None,
    }
}

fn run(dir: &Path, line: &str) -> Finished {
    Program::under_test().line(dir, &format!("{line} --stages --output-format=json")).ok()
}

/// The stages of a direction of the first job.
fn stages_of(finished: &Finished, direction: &str) -> Value {
    let json = Json::parse(&finished.stdout);
    json.0["iolite"]["stages"][0][direction].clone()
}

fn number(value: &Value, path: &str) -> u64 {
    let pointer = format!("/{}", path.replace('.', "/"));
    value.pointer(&pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {path} in {value}"))
}

fn unmatched(stages: &Value) -> u64 {
    stages["unmatched"].as_object().expect("reasons").values().filter_map(Value::as_u64).sum()
}

/// The columns of a log.
fn entries(path: &Path) -> Vec<Vec<u64>> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let line = |line: &str| line.split(", ").map(|cell| cell.trim().parse().expect("a number")).collect();
    text.lines().map(line).collect()
}

/// Every I/O of every engine that goes through the block layer is found, and its stages add up to its latency.
#[test]
pub fn every_io_is_found_and_its_stages_add_up() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    let dir = scratch();
    let device = iolite_testing::or_skip!(Loop::new(dir.path(), 64 << 20));
    let jobs = [
        ("clat", "--ioengine=psync"),
        ("clat", "--ioengine=pvsync2 --thread"),
        ("lat", "--ioengine=libaio --iodepth=8"),
        ("lat", "--ioengine=libaio --iodepth=16 --iodepth_batch=8 --iodepth_batch_complete_min=4"),
        ("lat", "--ioengine=io_uring --iodepth=1"),
        ("lat", "--ioengine=io_uring --iodepth=32 --iodepth_batch=16 --iodepth_batch_complete_max=16"),
        ("lat", "--ioengine=io_uring --iodepth=4 --sqthread_poll"),
        ("lat", "--ioengine=io_uring --iodepth=4 --fixedbufs --registerfiles"),
        ("lat", "--ioengine=io_uring --iodepth=4 --force_async=1"),
        ("lat", "--ioengine=posixaio --iodepth=4"),
    ];
    for (whole, job) in jobs {
        let line = format!(
            "--name=j --filename={} --direct=1 --bs=4k --rw=randrw --randrepeat=0 --size=8m {job} \
             --write_stages_log=log --write_lat_log=log --log_offset=1",
            device.path
        );
        let finished = run(dir.path(), &line);
        let json = Json::parse(&finished.stdout);
        let mut latencies: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for entry in entries(&dir.path().join(format!("log_{whole}.1.log"))) {
            latencies.insert((entry[2], entry[4]), entry[1]);
        }
        for direction in ["read", "write"] {
            let stages = stages_of(&finished, direction);
            let ios = json.job().int(&format!("{direction}.total_ios"));
            assert_eq!(stages["whole"], whole, "{job}");
            assert_eq!((number(&stages, "ios"), unmatched(&stages)), (ios, 0), "{job} {direction}: {stages}");
        }
        let logged = entries(&dir.path().join("log_stages.1.log"));
        assert_eq!(logged.len(), latencies.len(), "{job}");
        for entry in logged {
            let sum: u64 = entry[1..5].iter().sum();
            let latency = latencies[&(entry[5], entry[7])];
            assert!(sum.abs_diff(latency) <= 1000, "{job}: {entry:?} are {sum} ns, not {latency}");
        }
    }
}

/// File systems, several workers, and I/O of strangers on the same device.
#[test]
fn file_systems_and_strangers_are_told_apart() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    let dir = scratch();
    let _mounted = iolite_testing::or_skip!(Mounted::xfs(dir.path()));
    // The stranger has the same device, the same kind of I/O, and a file of its own.
    let stranger =
        "--name=other --filename=mounted/other --direct=1 --rw=randread --size=8m --time_based --runtime=1h";
    let mut stranger = Program::under_test().start(dir.path(), words(&format!("{stranger} --eta=always")));
    stranger.wait_until("its I/O", |run| run.output().contains("[r(1)]"));
    for job in
        ["--ioengine=psync", "--ioengine=libaio --iodepth=8", "--ioengine=io_uring --iodepth=8 --thread"]
    {
        let line = format!(
            "--name=j --directory=mounted --direct=1 --bs=4k --rw=randread --size=2m --numjobs=3 --group_reporting {job}"
        );
        let stages = stages_of(&run(dir.path(), &line), "read");
        assert_eq!((number(&stages, "ios"), unmatched(&stages)), (3 * 512, 0), "{job}: {stages}");
    }
    let line = "--name=m --filename=mounted/m --bs=4k --rw=randread --size=2m --ioengine=mmap";
    let faults = stages_of(&run(dir.path(), line), "read");
    assert_eq!(number(&faults, "ios") + number(&faults, "no_device") + unmatched(&faults), 512, "{faults}");
    assert!(number(&faults, "ios") > 0, "{faults}");
    stranger.signal(libc::SIGINT);
    stranger.wait();
}

/// A worker that gets no CPU: that is its own time, and not the device's.
#[test]
fn a_worker_without_cpu_is_not_the_devices_fault() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        skip!("needs a CPU for the device beside that of the worker");
    }
    let dir = scratch();
    let device = iolite_testing::or_skip!(Loop::new(dir.path(), 16 << 20));
    let line = format!(
        "--name=j --filename={} --direct=1 --bs=4k --rw=randread --number_ios=200 --cpus_allowed=0 --nice=19",
        device.path
    );
    let busy =
        "--name=busy --ioengine=cpuio --cpuload=100 --cpus_allowed=0 --numjobs=4 --time_based --runtime=1h";
    let mut busy = Program::under_test().start(dir.path(), words(&format!("{busy} --eta=always")));
    busy.wait_until("the load", |run| run.output().contains("Jobs: 4"));
    let stages = stages_of(&run(dir.path(), &line), "read");
    busy.signal(libc::SIGINT);
    busy.wait();
    assert_eq!((number(&stages, "ios"), unmatched(&stages)), (200, 0), "{stages}");
    let mean = |stage: &str| stages[format!("{stage}_ns")]["mean"].as_f64().expect("a mean");
    let device = stages["device_ns"]["percentile"]["50.000000"].as_f64().expect("a median");
    assert!(mean("submit") + mean("reap") > 2.0 * device, "{stages}");
}

/// While a run goes on, its reports have stages, too, and what is stuck has its place.
#[test]
fn the_place_of_a_stuck_io_is_told() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    let dir = scratch();
    let disk = iolite_testing::or_skip!(VolatileDisk::new(dir.path(), 1 << 20, false));
    let device = iolite_testing::or_skip!(Loop::on(&disk.path));
    for engine in ["psync", "io_uring --iodepth=2"] {
        let line = format!(
            "--name=j --filename={} --direct=1 --bs=4k --rw=randread --time_based --runtime=1h --stages --eta=always \
             --ioengine={engine}",
            device.path
        );
        disk.delay_reads(&[]);
        let mut running = Program::under_test().start(dir.path(), words(&line));
        running.wait_until("I/O", |run| run.output().contains("[r(1)]"));
        // The first reports may come before any stages are known.
        let asked = Cell::new(None::<Instant>);
        running.wait_until("a report", |run| {
            if asked.get().is_none_or(|at| at.elapsed() > Duration::from_secs(1)) {
                run.signal(libc::SIGUSR1);
                asked.set(Some(Instant::now()));
            }
            run.output().contains("stages, read: where the time went")
        });
        disk.delay_reads(&[Duration::from_secs(9)]);
        running.wait_until("the place", |run| run.output().contains(", in the device]"));
        disk.delay_reads(&[]);
        running.signal(libc::SIGINT);
        let run = running.wait();
        assert!(run.output().contains("stages, read: where the time went"), "{engine}: {run}");
    }
}

/// The page cache takes part in what is buffered: only what reached the device has stages.
#[test]
fn buffered_io_has_no_device() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    let dir = scratch();
    let writes = run(dir.path(), "--name=j --filename=f --size=1m --bs=4k --rw=write --ioengine=psync");
    let written = stages_of(&writes, "write");
    assert_eq!(number(&written, "ios") + number(&written, "no_device") + unmatched(&written), 256);
    let reads = run(dir.path(), "--name=j --filename=f --size=1m --bs=4k --rw=read --invalidate=0");
    let read = stages_of(&reads, "read");
    assert_eq!((number(&read, "no_device"), number(&read, "ios")), (256, 0));
}

/// A device that is throttled makes I/Os wait in the queue, and the device is as quick as before.
#[test]
fn throttling_is_time_in_the_queue() {
    const GROUPS: &str = "/sys/fs/cgroup/blkio";
    let limit = Path::new(GROUPS).join("blkio.throttle.read_iops_device");
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    if !limit.exists() && !Path::new(GROUPS).join("tasks").exists() {
        skip!("needs control groups with blkio.throttle");
    }
    let dir = scratch();
    let device = iolite_testing::or_skip!(Loop::new(dir.path(), 16 << 20));
    let number_of_device = fs::read_to_string(format!("/sys/block/{}/dev", device.name())).unwrap();
    let name = format!("iolite-stages-{}", std::process::id());
    let group = Path::new(GROUPS).join(&name);
    fs::create_dir(&group).unwrap();
    let limited = fs::write(
        group.join("blkio.throttle.read_iops_device"),
        format!("{} 200\n", number_of_device.trim()),
    );
    let job =
        format!("--name=j --filename={} --direct=1 --bs=4k --rw=randread --ioengine=psync", device.path);
    let free =
        limited.is_ok().then(|| stages_of(&run(dir.path(), &format!("{job} --number_ios=200")), "read"));
    let throttled = limited.is_ok().then(|| {
        let line = format!("{job} --number_ios=200 --cgroup={name} --cgroup_nodelete=1");
        stages_of(&run(dir.path(), &line), "read")
    });
    fs::remove_dir(&group).ok();
    let (Some(free), Some(throttled)) = (free, throttled) else { skip!("reads cannot be throttled here") };
    assert_eq!((number(&throttled, "ios"), unmatched(&throttled)), (200, 0), "{throttled}");
    // 5 ms each on average, in bursts.
    let at = |stages: &Value, stage: &str| {
        stages[format!("{stage}_ns")]["percentile"]["50.000000"].as_u64().expect("a median")
    };
    let mean = |stages: &Value| stages["queue_ns"]["mean"].as_f64().expect("a mean");
    assert!(mean(&throttled) > 1e6, "{} ns in the queue", mean(&throttled));
    assert!(at(&free, "queue") < 2_000_000, "{} ns in the queue", at(&free, "queue"));
    for stage in ["submit", "device", "reap"] {
        assert!(at(&throttled, stage) < 2_000_000, "{stage}: {} ns", at(&throttled, stage));
    }
}

/// A disk whose delay is known: it is the device's time, and no other's.
#[test]
fn a_known_delay_is_the_time_of_the_device() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    let dir = scratch();
    let disk = iolite_testing::or_skip!(VolatileDisk::new(dir.path(), 1 << 20, false));
    let device = iolite_testing::or_skip!(Loop::on(&disk.path));
    let ms = Duration::from_millis;
    // The last one has two modes: every tenth read is slow.
    let mut two_modes = vec![ms(2); 9];
    two_modes.push(ms(30));
    for (delays, usual, slowest) in [(vec![ms(2)], 2, 2), (vec![ms(20)], 20, 20), (two_modes, 2, 30)] {
        disk.delay_reads(&delays);
        let line = "--direct=1 --bs=4k --rw=randread --number_ios=60 --ioengine=psync";
        let stages =
            stages_of(&run(dir.path(), &format!("--name=j --filename={} {line}", device.path)), "read");
        assert_eq!((number(&stages, "ios"), unmatched(&stages)), (60, 0));
        let at = |stage: &str, percentile: &str| {
            stages[format!("{stage}_ns")]["percentile"][percentile].as_u64().expect("a percentile")
        };
        assert!(at("device", "50.000000") >= usual * 1_000_000, "{} ns", at("device", "50.000000"));
        assert!(at("device", "99.000000") >= slowest * 990_000, "{} ns", at("device", "99.000000"));
        for stage in ["submit", "queue", "reap"] {
            assert!(at(stage, "50.000000") < 2_000_000, "{stage}: {} ns", at(stage, "50.000000"));
        }
        let share = stages["slowest_part"]["device_share"].as_f64().expect("a share");
        assert!(usual < 20 || share > 0.5, "{share}");
    }
}

#[test]
fn the_report_says_whose_the_tail_is() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    let dir = scratch();
    let device = iolite_testing::or_skip!(Loop::new(dir.path(), 16 << 20));
    let line =
        format!("--name=j --filename={} --direct=1 --bs=4k --rw=randread --size=1m --stages", device.path);
    for name in ["iolite", "fio"] {
        let program = if name == "fio" { Program::called_fio(dir.path()) } else { Program::under_test() };
        let finished = program.line(dir.path(), &line).ok().says("stages, read: where the time went");
        let finished = finished.says("unmatched 0 of 256, lost records 0").says("of the slowest 0.1%.");
        for stage in STAGES {
            assert!(finished.stdout.contains(&format!("\n  {stage}")), "{stage}: {}", finished.stdout);
        }
        let plain = program.line(dir.path(), &line.replace(" --stages", "")).ok();
        assert!(!plain.output().contains("stages"), "{}", plain.output());
    }
}

#[test]
pub fn what_cannot_be_observed_is_refused() {
    let dir = scratch();
    for (line, words) in [
        ("--ioengine=null --size=4k", "ioengine=null does not go through the kernel's block layer"),
        ("--filename=f --size=4k --clocksource=cpu", "leave clocksource out"),
        ("--filename=f --size=4k --gtod_cpu=0", "leave gtod_cpu out"),
        ("--filename=f --size=4k --io_submit_mode=offload --ioengine=libaio", "leave io_submit_mode out"),
        ("--filename=f --size=4k --write_stages_log=missing/log", "there is no directory missing"),
    ] {
        let run = Program::under_test().line(dir.path(), &format!("--name=j {line} --stages")).refused();
        run.says(words);
        assert!(!dir.path().join("f").exists(), "{line}: the file was made all the same");
    }
}

/// Someone without rights is told what to do, and nothing is made.
#[test]
fn rights_are_checked_before_the_run() {
    if !is_root() {
        skip!("becomes another user, which needs root");
    }
    let dir = scratch();
    fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let is_reachable = |directory: &Path| fs::metadata(directory).unwrap().permissions().mode() & 1 != 0;
    if !dir.path().ancestors().all(is_reachable) {
        skip!("other users cannot reach the temporary directory");
    }
    let program = dir.path().join("program");
    iolite_testing::copy_program(&Program::under_test().path, &program).unwrap();
    let mut args = words("--reuid=65534 --clear-groups");
    args.push(program.to_string_lossy().into_owned());
    args.extend(words("--name=j --filename=f --size=4k --rw=write --stages"));
    let output = std::process::Command::new("setpriv").args(&args).current_dir(dir.path()).output();
    let Ok(output) = output else { skip!("setpriv is not installed") };
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("stages: ") && text.contains("root"), "{text}");
    assert!(!dir.path().join("f").exists());
}

/// The kernel's instances of runs of this program. Several tests may have some.
fn instances() -> Vec<String> {
    // Where tracefs is not mounted, this process mounts it for itself.
    let tracing = iolite_os::tracefs::TraceFs::open().expect("the kernel shows its tracepoints");
    let all = tracing.instances().expect("root may look");
    all.into_iter().filter(|name| name.starts_with("iolite-")).collect()
}

/// Also if all processes of a run are killed at once, the next run removes what it has left.
#[test]
fn a_killed_run_leaves_no_instance() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    let dir = scratch();
    let line =
        "--name=j --filename=f --size=1m --rw=randread --time_based --runtime=100 --stages --eta=never";
    let mut running = Program::under_test().start(dir.path(), words(line));
    let begun = |_: &crate::common::program::Running| dir.path().join("f").exists();
    running.wait_until("the job has begun", begun);
    let collector = |name: &String| {
        let process = name.strip_prefix("iolite-").expect("see above");
        let parent = |process: &str| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            stat.rsplit(") ").next()?.split(' ').nth(1).map(str::to_owned)
        };
        // The spawner is its parent, and the run is that of the spawner.
        parent(process).and_then(|spawner| parent(&spawner)).as_deref() == Some(&running.pid().to_string())
    };
    let mine: Vec<String> = instances().into_iter().filter(collector).collect();
    assert_eq!(mine.len(), 1, "{mine:?}");
    let number: i32 =
        mine[0].strip_prefix("iolite-").and_then(|number| number.parse().ok()).expect("a number");
    // The collector cannot remove it any more, and nobody else either.
    crate::common::program::send(number, libc::SIGKILL);
    running.signal(libc::SIGKILL);
    running.wait();
    run(dir.path(), "--name=j --filename=f --size=64k --rw=read");
    assert!(!instances().contains(&mine[0]), "{mine:?} is still there");
}
