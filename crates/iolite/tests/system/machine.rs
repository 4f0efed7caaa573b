//! Options that change the worker of a job, and commands before and after a job.

use crate::common::devices::{Loop, Mounted, tool};
use crate::common::program::Running;
use crate::common::{Json, Program, is_root, scratch, trace, words};
use iolite_testing::{or_skip, skip};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn commands_run_before_and_after_a_job() {
    let dir = scratch();
    let args = [
        "--name=j",
        "--filename=f",
        "--size=8k",
        "--rw=write",
        "--unlink=1",
        "--exec_prerun=test ! -e ran && echo before && echo aloud >&2",
        "--exec_postrun=test ! -e f && echo after; touch ran",
    ];
    let run = Program::under_test().run(dir.path(), args).ok();
    let kept = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(kept("j.prerun.txt"), "before\naloud\n");
    assert_eq!(kept("j.postrun.txt"), "after\n");
    assert!(dir.path().join("ran").exists());
    assert!(run.stdout.contains("Saving output of prerun in j.prerun.txt"), "{run}");
}

#[test]
fn a_command_that_fails_keeps_the_job_from_running() {
    let dir = scratch();
    let args = ["--name=j", "--filename=f", "--size=8k", "--rw=write", "--exec_prerun=exit 3"];
    let run = Program::under_test().run(dir.path(), args).refused();
    assert!(run.stdout.contains("exit status: 3"), "{run}");
    assert!(!run.stdout.contains("issued rwts: total=0,2"), "{run}");
}

#[test]
fn commands_whose_output_cannot_be_saved_are_reported() {
    let dir = scratch();
    let line = "--name=j --ioengine=null --size=4k";
    std::fs::create_dir(dir.path().join("j.prerun.txt")).unwrap();
    let run = Program::under_test().line(dir.path(), &format!("{line} --exec_prerun=true")).refused();
    assert!(
        run.stdout.contains("cannot be kept in j.prerun.txt: Is a directory, error=Is a directory"),
        "{run}"
    );
    std::fs::create_dir(dir.path().join("j.postrun.txt")).unwrap();
    let run = Program::under_test().line(dir.path(), &format!("{line} --exec_postrun=true")).ok();
    assert!(
        run.stderr.contains("j: func=exec: the output of \"true\" cannot be kept in j.postrun.txt"),
        "{run}"
    );
}

#[test]
fn workers_have_the_name_that_comm_gives() {
    let dir = scratch();
    for thread in ["", "--thread"] {
        // A child of the worker prints the worker's name.
        let line = format!("--name=j --ioengine=null --size=4k --comm=iolite-probe {thread}");
        let mut args = crate::common::words(&line);
        args.push("--exec_postrun=cat /proc/$PPID/task/*/comm".to_owned());
        Program::under_test().run(dir.path(), &args).ok();
        let names = std::fs::read_to_string(dir.path().join("j.postrun.txt")).unwrap();
        assert!(names.lines().any(|name| name == "iolite-probe"), "{names}");
    }
}

#[test]
fn a_job_can_run_as_another_user() {
    if !is_root() {
        skip!("only root can change the user");
    }
    let dir = scratch();
    for thread in ["", "--thread"] {
        let line = format!("--name=j --ioengine=null --size=4k --uid=12345 --gid=12346 {thread}");
        let mut args = crate::common::words(&line);
        args.push("--exec_prerun=id -u; id -g".to_owned());
        // The other user must be able to write to the directory.
        std::os::unix::fs::chown(dir.path(), Some(12345), Some(12346)).unwrap();
        Program::under_test().run(dir.path(), &args).ok();
        let ids = std::fs::read_to_string(dir.path().join("j.prerun.txt")).unwrap();
        assert_eq!(ids, "12345\n12346\n", "{thread}");
        std::fs::remove_file(dir.path().join("j.prerun.txt")).unwrap();
    }
}

/// As in nice(2), the value is added to the current one, and unprivileged users may not lower it.
#[test]
fn nice_values_are_added_and_refused_as_with_fio() {
    let dir = scratch();
    let run = |before: &[&str], program: &Program, more: &[&str]| {
        let job = ["--name=j", "--ioengine=null", "--size=4k"];
        let mut command = Command::new(before[0]);
        command.args(&before[1..]).arg(&program.path).args(job).args(more).current_dir(dir.path());
        Running::start(&mut command).wait()
    };
    let check = |program: &Program| {
        run(&["nice", "-n", "3"], program, &["--nice=5", "--exec_postrun=nice"]).ok();
        let text = std::fs::read_to_string(dir.path().join("j.postrun.txt")).unwrap();
        // The tests may run with some nice value themselves; 19 is the maximum.
        let expected = (own_nice_value() + 3 + 5).min(19);
        assert_eq!(text, format!("{expected}\n"));
        if !is_root() || tool("setpriv", &["--version"]).is_err() {
            skip!("needs root and setpriv");
        }
        let refused = run(&["setpriv", "--bounding-set=-sys_nice"], program, &["--nice=-5"]).refused();
        refused.says("err=1/").says("func=nice").says("error=Operation not permitted");
    };
    check(&Program::under_test());
    for peer in Program::peers() {
        check(&peer);
    }
}

/// The nice value of the tests.
fn own_nice_value() -> i32 {
    let printed = Command::new("nice").output().unwrap().stdout;
    String::from_utf8(printed).unwrap().trim().parse().unwrap()
}

/// The current scheduler of a device.
fn scheduler(device: &Loop) -> String {
    let setting = std::fs::read_to_string(format!("/sys/block/{}/queue/scheduler", device.name())).unwrap();
    setting.split_once('[').unwrap().1.split_once(']').unwrap().0.to_owned()
}

#[test]
pub fn the_io_scheduler_is_set_and_stays() {
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), 16 << 20));
    let other = if scheduler(&device) == "none" { "mq-deadline" } else { "none" };
    let line = format!("--name=j --filename={} --size=64k --ioscheduler=", device.path);
    Program::under_test().line(dir.path(), &format!("{line}{other}")).ok();
    assert_eq!(scheduler(&device), other);
    let refused = Program::under_test().line(dir.path(), &format!("{line}nonsense")).refused();
    refused.says("ioscheduler=nonsense").says("it can be none");
    assert_eq!(scheduler(&device), other);
    for peer in Program::peers() {
        peer.line(dir.path(), &format!("{line}none")).ok();
        assert_eq!(scheduler(&device), "none");
    }
}

#[test]
fn a_file_on_no_disk_has_no_scheduler() {
    if !Path::new("/dev/shm").is_dir() {
        skip!("needs /dev/shm");
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let line = "--name=j --filename=f --size=64k --ioscheduler=none";
    Program::under_test().line(dir.path(), line).ok().says("is on no disk");
}

/// The directory of control groups for block I/O.
const GROUPS: &str = "/sys/fs/cgroup/blkio";

/// A unique name for a control group, and its directory.
fn group(name: &str) -> (String, std::path::PathBuf) {
    let name = format!("iolite-test-{name}-{}", std::process::id());
    let directory = Path::new(GROUPS).join(&name);
    (name, directory)
}

#[test]
pub fn workers_run_in_their_control_group() {
    if !is_root() || !Path::new(GROUPS).join("tasks").exists() {
        skip!("needs root and {GROUPS}");
    }
    let dir = scratch();
    let (name, directory) = group("in");
    for thread in ["", "--thread"] {
        let line = format!("--name=j --ioengine=null --size=4k --cgroup={name} {thread}");
        let mut args = words(&line);
        args.push("--exec_prerun=cat /proc/self/cgroup".to_owned());
        Program::under_test().run(dir.path(), &args).ok();
        let groups = std::fs::read_to_string(dir.path().join("j.prerun.txt")).unwrap();
        assert!(groups.contains(&format!(":blkio:/{name}\n")), "{thread}: {groups}");
        assert!(!directory.exists(), "{thread}: the group was not removed");
    }
    let line = format!("--name=j --ioengine=null --size=4k --cgroup={name}");
    Program::under_test().line(dir.path(), &format!("{line} --cgroup_nodelete=1")).ok();
    assert!(directory.exists(), "the group was removed");
    // A group that existed before is not removed.
    Program::under_test().line(dir.path(), &line).ok();
    assert!(directory.exists(), "a foreign group was removed");
    std::fs::remove_dir(&directory).unwrap();
}

#[test]
fn a_killed_run_leaves_no_control_group() {
    if !is_root() || !Path::new(GROUPS).join("tasks").exists() {
        skip!("needs root and {GROUPS}");
    }
    let dir = scratch();
    let (name, directory) = group("killed");
    for signal in [libc::SIGKILL, libc::SIGHUP] {
        for thread in ["", "--thread"] {
            let line = format!(
                "--name=j --ioengine=null --size=1g --rate_iops=10 --cgroup={name} --numjobs=3 {thread}"
            );
            let mut running = Program::under_test().start(dir.path(), words(&line));
            let tasks = directory.join("tasks");
            let inside = || std::fs::read_to_string(&tasks).unwrap_or_default().lines().count();
            running.wait_until("the workers are in their group", |_| inside() == 3);
            running.signal(signal);
            running.wait();
            let patience = Instant::now() + Duration::from_secs(120);
            while directory.exists() {
                assert!(Instant::now() < patience, "signal {signal} {thread}: the group is still there");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

#[test]
pub fn a_weight_is_written_or_refused_clearly() {
    if !is_root() || !Path::new(GROUPS).join("tasks").exists() {
        skip!("needs root and {GROUPS}");
    }
    let dir = scratch();
    let (name, directory) = group("weight");
    let line = format!("--name=j --filename=f --size=4k --rw=write --cgroup={name} --cgroup_weight=500");
    std::fs::create_dir(&directory).unwrap();
    let mut files = ["blkio.weight", "blkio.bfq.weight"].iter().map(|file| directory.join(file));
    let weight = files.find(|file| file.exists());
    std::fs::remove_dir(&directory).unwrap();
    match weight {
        Some(file) => {
            Program::under_test().line(dir.path(), &format!("{line} --cgroup_nodelete=1")).ok();
            let written = std::fs::read_to_string(&file);
            std::fs::remove_dir(&directory).unwrap();
            assert_eq!(written.unwrap().trim().trim_start_matches("default "), "500");
        }
        None => {
            let run = Program::under_test().line(dir.path(), &line).refused();
            run.says("this kernel has neither blkio.weight nor blkio.bfq.weight");
            assert!(!dir.path().join("f").exists(), "the file was created all the same");
        }
    }
    assert!(!directory.exists());
    let line = "--name=j --ioengine=null --size=4k --cgroup=../out";
    Program::under_test().line(dir.path(), line).refused().says("relative to the root of its hierarchy");
}

/// Runs in a mount namespace that has only the second version.
#[test]
fn control_groups_of_the_second_version() {
    let dir = scratch();
    let (name, _) = group("two");
    let script = format!("umount {GROUPS} && cd \"$0\" && exec \"$@\"");
    let program = Program::under_test().path;
    let run = |more: &[&str]| {
        let directory = dir.path().to_str().unwrap();
        let mut args = vec!["--mount", "sh", "-c", &script, directory, program.to_str().unwrap()];
        let cgroup = format!("--cgroup={name}");
        args.extend(["--name=j", "--ioengine=null", "--size=4k", &cgroup]);
        args.extend(more);
        tool("unshare", &args)
    };
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let Some(root) = mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        (fields[2] == "cgroup2").then(|| fields[1].to_owned())
    }) else {
        skip!("version 2 is not mounted")
    };
    if tool("unshare", &["--mount", "umount", GROUPS]).is_err() {
        skip!("needs root and {GROUPS}");
    }
    run(&["--exec_prerun=cat /proc/self/cgroup"]).unwrap();
    let groups = std::fs::read_to_string(dir.path().join("j.prerun.txt")).unwrap();
    assert!(groups.contains(&format!("0::/{name}\n")), "{groups}");
    assert!(!Path::new(&root).join(&name).exists());
    let error = run(&["--thread"]).unwrap_err();
    assert!(error.contains("leave thread out"), "{error}");
    if !std::fs::read_to_string(format!("{root}/cgroup.controllers")).unwrap().contains("io") {
        let error = run(&["--cgroup_weight=200"]).unwrap_err();
        assert!(error.contains("neither io.weight nor io.bfq.weight"), "{error}");
    }
    assert!(!Path::new(&root).join(&name).exists());
}

#[test]
fn files_that_are_written_get_the_hint() {
    let dir = scratch();
    let hints = |line: &str| {
        let line = format!("--name=j --filename=f --size=64k {line}");
        let (run, log) = trace::system_calls(&Program::under_test(), dir.path(), "fcntl", &words(&line))?;
        run.ok();
        // 1036 is F_SET_RW_HINT, which strace prints by number or by name.
        Some(log.lines().filter(|line| line.contains("0x40c") || line.contains("F_SET_RW_HINT")).count())
    };
    let Some(count) = hints("--rw=write --write_hint=short") else { skip!("needs strace") };
    assert_eq!(count, 1);
    assert_eq!(hints("--rw=read --write_hint=short"), Some(0));
    assert_eq!(hints("--rw=write"), Some(0));
}

/// The hint is a property of the file, so it can be read back.
#[test]
pub fn the_hint_is_the_one_that_was_given() {
    use std::os::fd::AsRawFd;
    let dir = scratch();
    for (word, number) in [("none", 1), ("short", 2), ("medium", 3), ("long", 4), ("extreme", 5)] {
        let line = format!("--name=j --filename=f --size=64k --rw=write --overwrite=1 --write_hint={word}");
        Program::under_test().line(dir.path(), &line).ok();
        let file = std::fs::File::open(dir.path().join("f")).unwrap();
        let mut found = 0u64;
        // SAFETY: F_GET_RW_HINT writes one u64.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), 1024 + 11, &raw mut found) };
        assert_eq!((result, found), (0, number), "{word}");
    }
}

#[test]
pub fn atomic_writes_are_asked_for_or_refused_clearly() {
    let dir = scratch();
    let program = Program::under_test();
    let line = "--name=j --filename=f --size=64k --rw=write --atomic=1";
    program.line(dir.path(), line).refused().says("ioengine=psync cannot ask for atomic writes");
    std::fs::write(dir.path().join("f"), [0; 65536]).unwrap();
    let run = program.line(dir.path(), &format!("{line} --ioengine=pvsync2"));
    if run.code() != 0 {
        // Nearly all disks refuse.
        run.refused().says("cannot be written atomically");
    }
    // For a new file, the program cannot check this, so the kernel refuses the writes, and strace shows the flag.
    let fresh =
        "--name=j --filename=g --create_on_open=1 --size=64k --rw=write --atomic=1 --ioengine=pvsync2";
    let Some((_, log)) = trace::system_calls(&program, dir.path(), "pwritev2", &words(fresh)) else {
        skip!("needs strace")
    };
    assert!(log.contains("RWF_ATOMIC") || log.contains("0x40"), "{log}");
}

#[test]
pub fn job_start_is_measured_by_the_requested_clock() {
    let dir = scratch();
    let start = |clock: libc::clockid_t| {
        let line =
            format!("--name=j --ioengine=null --size=4k --output-format=json --job_start_clock_id={clock}");
        let run = Program::under_test().line(dir.path(), &line).ok();
        Json::parse(&run.stdout).job().float("job_start")
    };
    let now = |clock: libc::clockid_t| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is valid.
        assert_eq!(unsafe { libc::clock_gettime(clock, &raw mut time) }, 0);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    for clock in [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC, libc::CLOCK_BOOTTIME] {
        let before = now(clock);
        let told = start(clock);
        // One millisecond of rounding either way.
        assert!(told >= before - 2.0 && told <= now(clock) + 2.0, "{clock}: {told}");
    }
    let line = "--name=j --ioengine=null --size=4k --job_start_clock_id=77";
    Program::under_test().line(dir.path(), line).refused().says("the system has no such clock");
}

#[test]
pub fn a_thread_of_its_own_keeps_the_time() {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        skip!("needs a second CPU");
    }
    let dir = scratch();
    for thread in ["", "--thread"] {
        let line = format!(
            "--name=j --ioengine=null --size=1t --time_based --runtime=1 --gtod_cpu=0 --output-format=json {thread}"
        );
        let mut args = words(&line);
        args.push("--exec_prerun=grep Cpus_allowed_list /proc/self/status".to_owned());
        let run = Program::under_test().run(dir.path(), &args).ok();
        let allowed = std::fs::read_to_string(dir.path().join("j.prerun.txt")).unwrap();
        let first = allowed.split_whitespace().nth(1).unwrap();
        assert!(!first.starts_with('0'), "CPU 0 is not for workers: {allowed}");
        let report = Json::parse(&run.stdout);
        let runtime = report.job().int("read.runtime");
        assert!(report.job().ios()[0] > 0 && runtime >= 900, "{runtime}");
    }
    let line = "--name=j --ioengine=null --size=4k --gtod_cpu=4000";
    Program::under_test().line(dir.path(), line).refused().says("gtod_cpu: there is no CPU 4000");
}

/// If the program may run on one CPU only, gtod_cpu cannot reserve it, and the run is refused before any change.
#[test]
fn the_cpu_that_keeps_the_time_is_not_the_only_one() {
    if tool("taskset", &["--version"]).is_err() {
        skip!("needs taskset");
    }
    let dir = scratch();
    let cpu = std::fs::read_to_string("/proc/self/status").unwrap();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let cpu = cpu.split([',', '-']).next().unwrap();
    let tied = |more: &str| {
        let mut command = Command::new("taskset");
        command.args(["-c", cpu]).arg(Program::under_test().path).current_dir(dir.path());
        command.args(words(&format!("--name=j --filename=f --size=4k --rw=write {more}")));
        Running::start(&mut command).wait()
    };
    let refused = tied(&format!("--gtod_cpu={cpu}")).refused();
    refused.says(&format!("gtod_cpu: CPU {cpu} does nothing but keep the time"));
    assert!(!dir.path().join("f").exists(), "the file was created all the same");
    tied("").ok();
}

/// Without the thread that keeps the time, time would stand still for the workers, so the run ends.
#[test]
fn a_clock_that_is_lost_ends_the_run() {
    let dir = scratch();
    let line = "--name=j --ioengine=null --size=1t --time_based --runtime=100 --gtod_cpu=0";
    let mut running = Program::under_test().start(dir.path(), words(line));
    let keeper = |running: &crate::common::program::Running| {
        crate::signals::descendants(running.pid()).into_iter().find(|pid| {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            tasks.into_iter().any(|task| {
                std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "iolite-time\n")
            })
        })
    };
    running.wait_until("the time is kept", |running| keeper(running).is_some());
    std::thread::sleep(std::time::Duration::from_millis(300));
    crate::common::program::send(keeper(&running).unwrap(), libc::SIGKILL);
    running.wait().refused().says("the thread that kept the time (gtod_cpu) is gone");
}

/// strace shows the requested size even if no huge pages are available.
#[test]
fn huge_pages_have_the_size_that_was_asked_for() {
    let dir = scratch();
    let flags = |size: &str| {
        let line = format!("--name=j --ioengine=null --size=4k --mem=mmaphuge --hugepage-size={size}");
        let (_, log) = trace::system_calls(&Program::under_test(), dir.path(), "mmap", &words(&line))?;
        let asked = log.lines().find(|line| line.contains("MAP_HUGETLB"))?.to_owned();
        Some(asked)
    };
    let Some(asked) = flags("2m") else { skip!("needs strace, and a kernel with huge pages") };
    if !Path::new("/sys/kernel/mm/hugepages/hugepages-2048kB").is_dir() {
        skip!("this machine has huge pages of other sizes");
    }
    assert!(asked.contains("21<<MAP_HUGE_SHIFT"), "{asked}");
    // 6 MiB is not a valid page size: the buffers are a multiple of it, but consist of default huge pages.
    let asked = flags("6m").unwrap();
    assert!(!asked.contains("MAP_HUGE_SHIFT") && asked.contains(&(6 << 20).to_string()), "{asked}");
}

#[test]
fn memory_can_be_spread_over_all_nodes() {
    let dir = scratch();
    let line = "--name=j --ioengine=null --size=4k --numa_mem_policy=interleave";
    let Some((run, log)) =
        trace::system_calls(&Program::under_test(), dir.path(), "set_mempolicy", &words(line))
    else {
        skip!("needs strace")
    };
    run.ok();
    assert!(log.contains("MPOL_INTERLEAVE"), "{log}");
}

/// XFS can write any file atomically on newer kernels.
#[test]
fn xfs_files_are_written_atomically() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::xfs(dir.path()));
    std::fs::write(mounted.directory.join("f"), vec![0; 96 << 10]).unwrap();
    for engine in ["pvsync2", "libaio", "io_uring"] {
        let line = format!(
            "--name=j --filename=f --size=96k --rw=write --overwrite=1 --atomic=1 --ioengine={engine}"
        );
        let run = Program::under_test().line(&mounted.directory, &format!("{line} --bs=8k"));
        if run.output().contains("cannot do that") {
            skip!("this kernel's XFS cannot write atomically");
        }
        run.ok().says("total=0,12,0,0");
        let odd = Program::under_test().line(&mounted.directory, &format!("{line} --bs=12k"));
        odd.refused().says("it takes powers of two").says("not blocks of 12288");
    }
}

/// gettimeofday has microseconds only; the other clocks are more precise.
#[test]
fn latencies_have_the_resolution_of_the_clock() {
    let dir = scratch();
    let odd = |source: &str| {
        let line = format!("--name=j --filename=f --size=4m --output-format=json --clocksource={source}");
        let report = Json::parse(&Program::under_test().line(dir.path(), &line).ok().stdout);
        ["min", "max"]
            .into_iter()
            .any(|key| !report.job().int(&format!("read.clat_ns.{key}")).is_multiple_of(1000))
    };
    assert!(!odd("gettimeofday"));
    assert!(odd("clock_gettime") && odd("cpu"));
}
