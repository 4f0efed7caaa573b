//! Command lines are resolved on made-up machines: no test depends on this machine.

use iolite_host::{Format, InUse, Machine, MadeUp, Namespace, ZoneGeometry, ZoneModel, Zones};
use iolite_options::{Invocation, Name, parse_with};
use iolite_plan::resolve::ResolvedWorker;
use iolite_plan::verification::Rivalries;
use iolite_plan::{FileKind, Plan};
use iolite_types::{BlockSize, Direction};
use std::ffi::OsString;
use std::path::Path;

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// Resolves all workers, or returns the obstacles.
fn resolved(machine: &MadeUp, arguments: &str) -> Result<Vec<ResolvedWorker>, Vec<String>> {
    let arguments: Vec<OsString> = arguments.split_whitespace().map(OsString::from).collect();
    let parsed = parse_with(&arguments, &|_| None, &mut std::io::empty(), Name::Iolite)
        .expect("the language is known");
    let Invocation::Run { mut batches, run, .. } = parsed else { panic!("jobs are to run") };
    let words = |problems: Vec<iolite_plan::Problem>| {
        problems.into_iter().map(|problem| problem.message).collect::<Vec<String>>()
    };
    let plan = Plan::build(batches.remove(0), &run, machine).map_err(words)?;
    let impossible = words(iolite_plan::impossible(&plan, machine));
    if !impossible.is_empty() {
        return Err(impossible);
    }
    let layouts = plan.layouts(machine, &iolite_plan::NoStorages).map_err(words)?;
    if let Some(problem) = iolite_plan::too_large_buffers(&plan, &layouts, machine) {
        return Err(vec![problem.message]);
    }
    plan.zoned_devices(&layouts, machine).map_err(words)?;
    let rivalries = Rivalries::of(&plan, &layouts, machine).map_err(words)?;
    let workers = plan.workers.iter().zip(&layouts);
    Ok(workers
        .map(|(worker, layout)| plan.resolve(worker, layout, rivalries.of_worker(worker.index)))
        .collect())
}

#[test]
fn a_device_of_100_tib() {
    let machine = MadeUp::new().with_block_device("/dev/big", 100 * TIB);
    let job = "--name=j --filename=/dev/big --rw=randwrite --bsrange=4k-64k --offset=20% --offset_increment=10t \
               --size=10t --numjobs=4 --iodepth=64 --ioengine=libaio";
    let workers = resolved(&machine, job).unwrap();
    let regions: Vec<(u64, u64)> = workers
        .iter()
        .map(|worker| {
            let file = &worker.layout.files[0];
            assert_eq!((file.kind, file.extend_to, file.is_whole), (FileKind::Block, None, false));
            (file.offset / TIB, file.length / TIB)
        })
        .collect();
    assert_eq!(regions, [(20, 10), (30, 10), (40, 10), (50, 10)]);
    let worker = &workers[3];
    assert_eq!(worker.workload.block_size[Direction::Write], BlockSize::Range(4 << 10, 64 << 10));
    // Memory follows from the depth and the block size, not from the size of the device.
    assert_eq!((worker.buffers.count, worker.buffers.largest), (64, 64 << 10));
    // A resolved worker can be stored and sent.
    let text = serde_json::to_string(worker).unwrap();
    assert_eq!(&serde_json::from_str::<ResolvedWorker>(&text).unwrap(), worker);
}

#[test]
fn regions_behind_the_end_of_a_large_device() {
    let machine = MadeUp::new().with_block_device("/dev/big", 100 * TIB);
    let found = resolved(&machine, "--name=j --filename=/dev/big --rw=read --offset=101t").unwrap_err();
    assert!(
        found[0].contains("lies behind the end of /dev/big, which has 109951162777600 bytes"),
        "{found:?}"
    );
}

#[test]
fn each_of_512_cpus_has_a_worker() {
    let machine = MadeUp::new().with_cpus(512).with_nodes(4);
    let job =
        "--name=j --ioengine=null --size=1m --numjobs=513 --cpus_allowed=0-511 --cpus_allowed_policy=split";
    let workers = resolved(&machine, job).unwrap();
    let cpus: Vec<u32> =
        workers.into_iter().map(|worker| worker.placement.affinity.expect("a share")[0]).collect();
    assert_eq!(cpus, (0..512).chain([0]).collect::<Vec<u32>>());
    let found = resolved(&machine, "--name=j --ioengine=null --size=1m --cpus_allowed=512").unwrap_err();
    assert_eq!(found, ["cpus_allowed: there is no CPU 512, the last is 511"]);
    // One CPU of the list may be offline.
    let found = resolved(&machine.unusable_cpu(300), job).unwrap_err();
    assert_eq!(found, ["cpus_allowed: this program may not run on CPU 300"]);
}

#[test]
fn four_memory_nodes() {
    let machine = MadeUp::new().with_cpus(512).with_nodes(4);
    let job = "--name=j --ioengine=null --size=1m --numa_cpu_nodes=1,3 --numa_mem_policy=bind:3";
    let placement = resolved(&machine, job).unwrap().remove(0).placement;
    assert_eq!(placement.node_cpus, Some((128..256).chain(384..512).collect()));
    assert_eq!(placement.memory_policy.map(|policy| policy.nodes), Some(vec![3]));
    let found = resolved(&machine, "--name=j --ioengine=null --size=1m --numa_cpu_nodes=4").unwrap_err();
    assert_eq!(found, ["numa_cpu_nodes: there is no memory node 4, only 0, 1, 2, 3"]);
}

/// Buffers that will be used take memory; buffers of depths that are not reached, or without data, do not.
#[test]
fn buffers_for_which_there_is_no_memory() {
    let machine = MadeUp::new().with_memory(GIB).with_block_device("/dev/big", 100 * TIB);
    let job = |options: &str| format!("--name=j --filename=/dev/big --allow_mounted_write=1 {options}");
    let refused = |options: &str| resolved(&machine, &job(options)).unwrap_err().remove(0);
    assert_eq!(
        refused("--bs=16g"),
        "bs: the buffers need 16384 MiB of memory (here: 1 of 17179869184 bytes), and 1024 MiB are available; use \
         smaller blocks"
    );
    assert!(
        refused("--bs=1m --ioengine=libaio --iodepth=2048").starts_with("iodepth: the buffers need 2048 MiB")
    );
    assert!(refused("--bs=16m --numjobs=65").starts_with("numjobs: the buffers of 65 workers need 1040 MiB"));
    assert!(refused("--bs=16g --ioengine=null --rw=write --size=1t").starts_with("bs: "));
    for taken in [
        // Synchronous engines have one I/O in flight, and others no more than the job has.
        "--bs=1m --ioengine=psync --iodepth=100000",
        "--bs=1m --ioengine=libaio --iodepth=100000 --number_ios=64",
        "--bs=1m --ioengine=io_uring --iodepth=100000 --size=64m",
        "--bs=16m --numjobs=60",
        "--bs=600m --name=b --stonewall --filename=/dev/big --bs=600m",
        // No data is moved.
        "--bs=16g --ioengine=null --iodepth=64 --size=1t",
        // Huge pages are reserved separately.
        "--bs=16g --mem=mmaphuge",
        "--bs=16g --mem=mmap:/tmp/buffers",
        // Most of the blocks may be small.
        "--bsrange=4k-16g",
    ] {
        resolved(&machine, &job(taken)).unwrap();
    }
}

/// The number of buffers that are prepared before the first I/O.
#[test]
fn buffers_that_are_ready_at_the_start() {
    let machine = MadeUp::new().with_memory(TIB).with_block_device("/dev/big", 100 * TIB);
    let ready = |options: &str| {
        let job = format!("--name=j --filename=/dev/big --size=1t {options}");
        let rules = resolved(&machine, &job).unwrap().remove(0).buffers;
        (rules.count, rules.ready)
    };
    for (options, expected) in [
        ("", (1, 1)),
        ("--iodepth=64", (64, 1)),
        ("--iodepth=64 --ioengine=libaio", (64, 64)),
        ("--iodepth=64 --io_submit_mode=offload", (64, 64)),
        ("--iodepth=64 --rw=write --verify=md5 --verify_async=2", (64, 64)),
        ("--iodepth=64 --ioengine=null", (64, 0)),
        ("--iodepth=64 --ioengine=null --rw=rw", (64, 64)),
        ("--iodepth=64 --ioengine=libaio --io_size=40k", (64, 10)),
        ("--iodepth=64 --ioengine=libaio --number_ios=7", (64, 7)),
        ("--iodepth=64 --ioengine=libaio --size=4k --time_based --runtime=1", (64, 64)),
        // 256 MiB of buffers.
        ("--iodepth=1024 --ioengine=libaio --bs=1m", (1024, 256)),
        ("--bs=1g", (1, 1)),
    ] {
        assert_eq!(ready(options), expected, "{options}");
    }
}

#[test]
fn little_memory() {
    let machine = MadeUp::new().with_memory(64 << 20);
    let job = |files: u64| format!("--name=j --ioengine=null --size=1g --rw=read --nrfiles={files}");
    assert!(resolved(&machine, &job(1000)).is_ok());
    let found = resolved(&machine, &job(1_000_000)).unwrap_err();
    assert_eq!(
        found,
        [
            "nrfiles=1000000: files need about 488 MiB of memory, and 64 MiB are available; use a smaller nrfiles"
        ]
    );
    let deep = "--name=j --ioengine=null --size=1g --rw=read --numjobs=1000 --iodepth=1024";
    assert!(
        resolved(&machine, deep).unwrap_err()[0].starts_with("iodepth=1024: I/Os in flight of 1000 workers")
    );
}

#[test]
fn a_zoned_disk() {
    let zones =
        Zones { model: ZoneModel::HostManaged, size: 256 << 20, count: 64, most_open: 14, most_active: 14 };
    let machine = MadeUp::new().with_block_device("/dev/zns", 16 * GIB).zoned("/dev/zns", zones);
    assert_eq!(machine.disk(Path::new("/dev/zns")).unwrap().queue.zones, Some(zones));
    let workers = resolved(&machine, "--name=j --filename=/dev/zns --rw=read --bs=64k").unwrap();
    assert_eq!(workers[0].layout.total_length(), 16 * GIB);
}

/// A disk of 16 zones, and a file and a disk without any.
fn zoned_machine() -> MadeUp {
    let zones =
        Zones { model: ZoneModel::HostManaged, size: 256 << 20, count: 16, most_open: 4, most_active: 6 };
    MadeUp::new()
        .with_block_device("/dev/zns", 4 * GIB)
        .zoned("/dev/zns", zones)
        .with_block_device("/dev/plain", 4 * GIB)
        .with_file("/tmp/file", 1 << 30)
}

#[test]
fn regions_of_whole_zones() {
    let machine = zoned_machine();
    let zone = 256 << 20;
    let region = |file: &str, rest: &str| {
        let job = format!("--name=j --filename={file} --zonemode=zbd --direct=1 --rw=write --bs=64k {rest}");
        let worker = resolved(&machine, &job).unwrap().remove(0);
        let file = &worker.layout.files[0];
        assert_eq!(worker.workload.device_zones, Some(file.zoned.unwrap().size));
        (file.offset, file.length)
    };
    assert_eq!(region("/dev/zns", ""), (0, 16 * zone));
    assert_eq!(region("/dev/zns", "--offset=2z --size=3z"), (2 * zone, 3 * zone));
    assert_eq!(region("/dev/zns", "--offset=1m --size=600m"), (zone, zone), "the offset up, the end down");
    assert_eq!(region("/dev/zns", "--offset=10%"), (2 * zone, 14 * zone));
    assert_eq!(region("/dev/plain", "--zonesize=100m --size=3z"), (0, 300 << 20));
    assert_eq!(region("/tmp/file", "--zonesize=300m"), (0, 900 << 20), "what is left is not a zone");
    // Filling a device ends with its zones, however long a file may become.
    assert_eq!(region("/tmp/file", "--zonesize=256m --fill_device=1"), (0, 1 << 30));
}

/// Trims reset zones of zoned disks and of files; on other disks of the job they stay trims.
#[test]
fn trims_reset_zones_only_where_there_are_some() {
    let machine = zoned_machine();
    let resets = |files: &str| {
        let job = format!(
            "--name=j --filename={files} --zonemode=zbd --zonesize=256m --direct=1 --rw=trim --bs=256m"
        );
        let rules = resolved(&machine, &job).unwrap().remove(0).files;
        (
            rules.mode.trims_reset_zones,
            rules.modes.iter().map(|mode| mode.trims_reset_zones).collect::<Vec<_>>(),
        )
    };
    assert_eq!(resets("/dev/zns:/dev/plain"), (true, vec![true, false]));
    assert_eq!(resets("/dev/zns"), (true, vec![]));
    assert_eq!(resets("/dev/plain"), (false, vec![]));
    assert_eq!(resets("/tmp/file"), (true, vec![]), "zones of a file exist only in the run");
}

#[test]
fn zone_rules_follow_from_the_job() {
    let machine = zoned_machine();
    let rules = |rest: &str| {
        let job = format!("--name=j --filename=/dev/zns --zonemode=zbd --direct=1 --bs=64k {rest}");
        let worker = resolved(&machine, &job).unwrap().remove(0);
        (worker.zones.unwrap(), worker.layout.files[0].zoned.unwrap().most_open)
    };
    let (plain, most_open) = rules("--rw=write");
    assert_eq!(
        (plain.rewrites, plain.begins_empty, plain.one_by_one, plain.skip_wraps),
        (true, false, false, true)
    );
    assert_eq!((most_open, plain.reset_every, plain.most_open), (4, 0, 0));
    assert_eq!(rules("--rw=write --max_open_zones=2").1, 2);
    assert_eq!(rules("--rw=write --ignore_zone_limits=1").1, 0);
    assert_eq!(rules("--rw=write --ignore_zone_limits=1 --max_open_zones=9").1, 9);
    let (verified, _) = rules("--rw=write --verify=crc32c --zone_reset_frequency=0.1");
    assert_eq!((verified.rewrites, verified.begins_empty, verified.reset_every), (false, true, 0));
    assert_eq!(rules("--rw=write --zone_reset_frequency=0.1").0.reset_every, 10);
    assert_eq!(rules("--rw=write --zoneskip=2z").0.skip, 512 << 20);
    let laps = |rest: &str| rules(&format!("--rw=write {rest}")).0.laps;
    assert!(laps("--io_size=2z") && !laps("--size=2z") && !laps("--filesize=1g --size=768m"));
    assert!(!rules("--rw=write --size=2z").0.skip_wraps, "a part does not begin anew");
    for unordered in
        ["--ioengine=posixaio", "--ioengine=io_uring --force_async=1", "--io_submit_mode=offload"]
    {
        assert!(rules(&format!("--rw=write --iodepth=8 {unordered}")).0.one_by_one, "{unordered}");
    }
    assert!(!rules("--rw=write --iodepth=8 --ioengine=io_uring").0.one_by_one);
}

#[test]
fn jobs_that_violate_zone_rules_are_refused() {
    let machine = zoned_machine();
    for (rest, remedy) in [
        ("--filename=/dev/zns --rw=write --direct=0", "add direct=1"),
        ("--filename=/dev/zns --rw=write --ioengine=mmap", "use psync, libaio or io_uring"),
        ("--filename=/dev/zns --rw=trim", "use bs=,,268435456"),
        ("--filename=/dev/zns --rw=write --zonesize=1m", "leave zonesize out"),
        ("--filename=/dev/zns --rw=write --zoneskip=1m", "use zoneskip=1z"),
        ("--filename=/dev/zns --rw=write --size=1m", "use sizes in zones (size=1z)"),
        ("--filename=/dev/zns --rw=write --bs=512m", "use smaller blocks"),
        (
            "--filename=/dev/zns --rw=write --max_open_zones=5",
            "use max_open_zones=4, or ignore_zone_limits=1",
        ),
        ("--filename=/dev/zns --rw=write --recover_zbd_write_error=1", "add continue_on_error=write"),
        ("--filename=/dev/zns --rw=write --openfiles=1", "all devices are open all the time"),
        (
            "--filename=/dev/zns --rw=write --verify=crc32c --ioengine=libaio --continue_on_error=write \
             --recover_zbd_write_error=1",
            "use a synchronous engine (psync)",
        ),
        (
            "--filename=/dev/zns --rw=write --verify=crc32c --numjobs=2",
            "give each its own zones (offset_increment=",
        ),
        (
            "--filename=/dev/zns --rw=randwrite --verify=crc32c --verify_only --ioengine=libaio --iodepth=2",
            "use iodepth=1",
        ),
        (
            "--filename=/dev/zns --rw=rw --verify=crc32c --verify_only --ioengine=libaio --iodepth=2",
            "use iodepth=1, or only writes",
        ),
        (
            "--filename=/dev/zns --rw=rw --verify=crc32c --verify_state_load=1 --ioengine=libaio --iodepth=2",
            "use iodepth=1, or only writes",
        ),
        ("--filename=/dev/plain --rw=write --zonesize=1m --job_max_open_zones=2", "add max_open_zones="),
        (
            "--filename=/dev/zns --rw=write --ignore_zone_limits=1 --job_max_open_zones=2",
            "add max_open_zones=",
        ),
        ("--filename=/dev/plain --rw=write", "give the size of a zone (zonesize=)"),
        ("--filename=/dev/plain --rw=write --size=2z", "give zonesize=, or the size in bytes"),
        ("--filename=/dev/plain --rw=write --zonesize=100", "a zone has at least 512 bytes"),
        ("--filename=/dev/plain --rw=write --zonesize=1m --zonecapacity=2m", "no more than the zone itself"),
        ("--filename=/dev/plain --rw=write --zonesize=5g", "less than a zone (5 GiB); make it larger"),
        ("--filename=/dev/plain --rw=write --zonesize=512 --bs=512", "use larger zones"),
        (
            "--filename=/dev/zns --rw=write --zonesize=1m",
            "the zones of /dev/zns have 256 MiB; leave zonesize out",
        ),
        (
            "--filename=/dev/zns --rw=write --offset=4k --size=1m",
            "in the 1 MiB from there; zones have 256 MiB, use sizes in zones (size=1z)",
        ),
        ("--filename=/dev/zns --rw=write --ioengine=null", "use psync, libaio or io_uring"),
    ] {
        let job = format!("--name=j --zonemode=zbd --direct=1 --bs=64k {rest}");
        let found = resolved(&machine, &job).expect_err(rest);
        assert!(found.iter().any(|found| found.contains(remedy)), "{rest}: {found:?}");
    }
    for taken in [
        "--filename=/dev/zns --rw=read --direct=0",
        "--filename=/dev/zns --rw=write --verify=crc32c --numjobs=2 --size=2z --offset_increment=2z",
        "--filename=/dev/zns --rw=trim --bs=64k,64k,256m",
        "--filename=/dev/zns --rw=rw --verify=crc32c --verify_only --ioengine=libaio",
        "--filename=/dev/zns --rw=rw --verify=crc32c --verify_only --ioengine=psync --iodepth=2",
        "--filename=/dev/zns --rw=write --verify=crc32c --verify_only --ioengine=libaio --iodepth=2",
        "--filename=/dev/plain --rw=write --zonesize=1m --direct=0",
    ] {
        let job = format!("--name=j --zonemode=zbd --direct=1 --bs=64k {taken}");
        assert!(resolved(&machine, &job).is_ok(), "{taken}");
    }
}

/// Accepted settings that waste space, or make jobs wait, produce notes.
/// A namespace by its block device and by its generic device, and a second one with zones.
fn machine_with_namespaces() -> MadeUp {
    let format = Format { data: 4096, metadata: 0, extended: false, protection: None };
    let plain = Namespace { number: 1, blocks: GIB / 4096, format, optional: 0, zones: None };
    let geometry =
        ZoneGeometry { blocks: (256 << 20) / 4096, most_open: 4, most_active: 6, largest_append: 0 };
    let zones =
        Zones { model: ZoneModel::HostManaged, size: 256 << 20, count: 4, most_open: 4, most_active: 6 };
    MadeUp::new()
        .with_block_device("/dev/nvme0n1", GIB)
        .with_namespace("/dev/ng0n1", plain)
        .same("/dev/ng0n1", "/dev/nvme0n1")
        .with_namespace("/dev/ng1n1", plain)
        .with_block_device("/dev/nvme0n2", GIB)
        .zoned("/dev/nvme0n2", zones)
        .with_namespace("/dev/ng0n2", Namespace { zones: Some(geometry), ..plain })
        .same("/dev/ng0n2", "/dev/nvme0n2")
}

#[test]
fn two_nodes_of_a_device_are_one_device() {
    let machine = machine_with_namespaces();
    let pair = |generic: &str, rest: &str| {
        let jobs = format!(
            "--bs=4k --rw=randwrite --size=64m --name=block --ioengine=io_uring --filename=/dev/nvme0n1 \
             --verify=crc32c --name=generic --ioengine=io_uring_cmd --filename={generic} {rest}"
        );
        resolved(&machine, &jobs).map(|_| ())
    };
    let refused = pair("/dev/ng0n1", "--verify=md5").unwrap_err();
    assert_eq!(refused.len(), 2, "both are told: {refused:?}");
    assert!(
        refused[0].starts_with("verify: job generic uses the same device by /dev/ng0n1 at the same time"),
        "{refused:?}"
    );
    assert!(refused[1].starts_with("verify: job block uses the same device by /dev/nvme0n1"), "{refused:?}");
    let refused = pair("/dev/ng0n1", "").unwrap_err();
    assert!(refused[0].contains("job generic writes to /dev/nvme0n1 without verify"), "{refused:?}");
    for (generic, rest) in [("/dev/ng0n1", "--offset=64m"), ("/dev/ng0n1", "--stonewall"), ("/dev/ng1n1", "")]
    {
        assert_eq!(pair(generic, &format!("--verify=md5 {rest}")), Ok(()), "{generic} {rest}");
    }
}

#[test]
fn zones_are_changed_by_one_node_at_a_time() {
    let machine = machine_with_namespaces();
    let pair = |first: &str, second: &str| {
        let jobs = format!(
            "--bs=64k --zonemode=zbd --size=2z --name=block --ioengine=io_uring --direct=1 --filename=/dev/nvme0n2 {first} \
             --name=generic --ioengine=io_uring_cmd --filename=/dev/ng0n2 {second}"
        );
        resolved(&machine, &jobs).map(|_| ())
    };
    let refused = pair("--rw=write", "--rw=randwrite").unwrap_err();
    let expected =
        "filename: job generic changes the same zones by /dev/ng0n2, which /dev/nvme0n2 does not see";
    assert!(refused.len() == 2 && refused[0].starts_with(expected), "{refused:?}");
    for (first, second) in [
        ("--rw=write", "--rw=read"),
        ("--rw=read", "--rw=write"),
        ("--rw=write", "--rw=write --offset=2z"),
        ("--rw=write", "--rw=write --stonewall"),
    ] {
        assert_eq!(pair(first, second), Ok(()), "{first} {second}");
    }
}

#[test]
fn notes_about_zones() {
    let machine = zoned_machine();
    let notes = |rest: &str| {
        let job = format!("--name=j --filename=/dev/zns --zonemode=zbd --direct=1 --rw=write {rest}");
        let arguments: Vec<OsString> = job.split_whitespace().map(OsString::from).collect();
        let parsed = parse_with(&arguments, &|_| None, &mut std::io::empty(), Name::Iolite).unwrap();
        let Invocation::Run { mut batches, run, .. } = parsed else { panic!("jobs are to run") };
        let plan = Plan::build(batches.remove(0), &run, &machine).unwrap();
        let layouts = plan.layouts(&machine, &iolite_plan::NoStorages).unwrap();
        let devices = plan.zoned_devices(&layouts, &machine).unwrap();
        assert_eq!((devices.len(), devices[0].zones.len(), devices[0].counts_closed), (1, 16, true));
        devices.into_iter().flat_map(|device| device.notes).map(|(_, text)| text).collect::<Vec<String>>()
    };
    assert_eq!(notes("--bs=64k --numjobs=4 --size=1z --offset_increment=1z"), [""; 0]);
    let found = notes("--bs=96k --numjobs=3 --size=1z --offset_increment=1z");
    assert_eq!(found.len(), 1, "once for a job: {found:?}");
    assert!(found[0].contains("96 KiB do not divide the 256 MiB of a zone of /dev/zns: 64 KiB"));
    assert_eq!(notes("--bs=96k --write_zone_remainder=1"), [""; 0]);
    let found = notes("--bs=64k --numjobs=5 --size=1z --offset_increment=1z");
    assert!(
        found.len() == 1 && found[0].contains("5 workers write to /dev/zns, and only 4 of its zones"),
        "{found:?}"
    );
    assert_eq!(notes("--bs=64k --numjobs=5 --size=1z --offset_increment=1z --ignore_zone_limits=1"), [""; 0]);
}

#[test]
fn a_device_in_use_is_only_read() {
    let machine = MadeUp::new()
        .with_block_device("/dev/root", 512 * GIB)
        .used("/dev/root", InUse::Mounted("/".into()))
        .with_block_device("/dev/member", 512 * GIB)
        .used("/dev/member", InUse::Held("md0".into()));
    let job = |file: &str, rest: &str| format!("--name=j --filename={file} --bs=4k {rest}");
    assert!(resolved(&machine, &job("/dev/root", "--rw=randread")).is_ok());
    assert!(resolved(&machine, &job("/dev/root", "--rw=randwrite --allow_mounted_write=1")).is_ok());
    let remedy = "allow_mounted_write=1 overrides this";
    assert_eq!(
        resolved(&machine, &job("/dev/root", "--rw=randwrite")).unwrap_err(),
        [format!("rw=randwrite would change data on /dev/root, but it is mounted on /; {remedy}")]
    );
    assert_eq!(
        resolved(&machine, &job("/dev/member", "--rw=trim")).unwrap_err(),
        [format!("rw=trim would change data on /dev/member, but the device md0 is built on it; {remedy}")]
    );
}

#[test]
fn files_and_devices_that_are_missing() {
    let machine = MadeUp::new().with_directory("/data");
    let job = |file: &str, rest: &str| format!("--name=j --filename={file} --rw=read {rest}");
    // A file is made as large as it is read.
    let workers = resolved(&machine, &job("/data/new", "--size=1g")).unwrap();
    assert_eq!(workers[0].layout.files[0].extend_to, Some(GIB));
    let found = resolved(&machine, &job("/data/new", "")).unwrap_err();
    assert!(found[0].starts_with("/data/new does not exist, so its size is unknown"), "{found:?}");
    let found = resolved(&machine, &job("/dev/nvme9n1", "--size=1g")).unwrap_err();
    assert_eq!(found, ["/dev/nvme9n1 does not exist, and no file is made among devices"]);
}

/// The other ends of each worker's connections.
#[test]
fn directories_are_missing_only_for_jobs_that_read() {
    let machine =
        MadeUp::new().without_directory("/no").without_directory("/no/such").with_file("/data/f", GIB);
    let of = |jobs: &str| resolved(&machine, &format!("--size=4k {jobs}")).map(|workers| workers.len());
    let refusal = "/no/such/f: there is no directory /no/such, and a job that only reads makes none; correct the name, or \
                   make it (mkdir -p /no/such)";
    let reads = "--name=r --filename=/no/such/f --rw=randread";
    assert_eq!(of(reads).unwrap_err(), [refusal]);
    assert_eq!(of("--name=w --filename=/no/such/f --rw=randwrite"), Ok(1));
    assert_eq!(of(&format!("--name=w --filename=/no/such/g --rw=write {reads}")), Ok(2));
    assert_eq!(of(&format!("--name=w --filename=/no/g --rw=write {reads}")).unwrap_err(), [refusal]);
    assert_eq!(of("--name=r --filename=/data/g --rw=read"), Ok(1));
}

fn other_ends(machine: &MadeUp, arguments: &str) -> Vec<Vec<usize>> {
    resolved(machine, arguments).unwrap().into_iter().map(|worker| worker.other_ends).collect()
}

#[test]
fn ends_of_several_connections_are_distinguished() {
    let machine = MadeUp::new().with_address("192.0.2.1".parse().unwrap());
    let net = "--ioengine=net --size=64k --port=7 --thread";
    // One port may have several groups, or a group and a single address.
    let line = format!(
        "{net} --protocol=udp --name=a --rw=read --hostname=239.0.0.1 --name=b --rw=read --hostname=239.0.0.2 \
         --name=c --rw=write --hostname=239.0.0.2 --name=d --rw=write --hostname=239.0.0.1 \
         --name=e --rw=read --name=f --rw=write --hostname=localhost"
    );
    assert_eq!(other_ends(&machine, &line), [[3], [2], [1], [0], [5], [4]]);
    // A connection to another machine has no end here.
    let line =
        |host: &str| format!("{net} --name=a --rw=read --listen --name=b --rw=write --hostname={host}");
    for here in ["127.0.0.1", "192.0.2.1", "localhost", "a.name"] {
        assert_eq!(other_ends(&machine, &line(here)), [[1], [0]], "{here}");
    }
    assert_eq!(other_ends(&machine, &line("192.0.2.2")), [[]; 2] as [[usize; 0]; 2]);
    // Several pairs use a port one after the other.
    let pair = |names: [&str; 2], later: &str| {
        let [receiver, sender] = names;
        format!(
            "--name={receiver} {later} --rw=read --listen --name={sender} --rw=write \
             --hostname=localhost"
        )
    };
    let line = format!("{net} {} {}", pair(["a", "b"], ""), pair(["c", "d"], "--stonewall"));
    assert_eq!(other_ends(&machine, &line), [[1], [0], [3], [2]]);
    // An end that starts too late never connects.
    let line =
        format!("{net} --name=b --rw=write --hostname=localhost --name=a --stonewall --rw=read --listen");
    assert_eq!(other_ends(&machine, &line), [[1], [0]]);
    // Servers at different addresses of this machine.
    let line = "--ioengine=rdma --size=64k --port=7 --name=a --rw=read --bindname=127.0.0.1 --name=b --rw=read \
                --bindname=192.0.2.1 --name=c --rw=write --hostname=192.0.2.1 \
                --name=d --rw=write --hostname=127.0.0.1 --name=e --rw=write --hostname=192.0.2.2";
    assert_eq!(other_ends(&machine, line), [vec![3], vec![2], vec![1], vec![0], vec![]]);
}

/// A job whose writes surely do not fit is refused before it begins, so what it surely writes has to be known exactly.
#[test]
fn what_a_job_surely_writes() {
    let surely = |arguments: &str| {
        let machine = MadeUp::new();
        let arguments: Vec<OsString> = arguments.split_whitespace().map(OsString::from).collect();
        let parsed = parse_with(&arguments, &|_| None, &mut std::io::empty(), Name::Iolite).unwrap();
        let Invocation::Run { mut batches, run, .. } = parsed else { panic!("jobs are to run") };
        let plan = Plan::build(batches.remove(0), &run, &machine).unwrap();
        let layouts = plan.layouts(&machine, &iolite_plan::NoStorages).unwrap();
        plan.creation(&plan.workers[0], &layouts[0]).surely_written
    };
    let all = Some(u64::MAX);
    for (more, expected) in [
        ("--rw=write", all),
        ("--rw=randwrite", all),
        ("--rw=write --nrfiles=4", all),
        ("--rw=write --unlink=1", all),
        ("--rw=write --io_size=1m", Some(1 << 20)),
        ("--rw=write --io_size=1m --nrfiles=4", None),
        ("--rw=write --io_size=8g", all),
        ("--rw=read", None),
        ("--rw=randwrite --norandommap", None),
        ("--rw=randwrite --random_distribution=zipf:1.1", None),
        ("--rw=randwrite --percentage_random=50", None),
        ("--rw=randwrite:8", None),
        ("--rw=write --runtime=5", None),
        ("--rw=write --number_ios=5", None),
        ("--rw=write --continue_on_error=all", None),
        ("--rw=write --ioengine=null", None),
        ("--rw=write --ioengine=falloc", None),
        ("--rw=write --zero_buffers", None),
        ("--rw=write --buffer_compress_percentage=50", None),
        ("--rw=write --create_only=1", None),
        ("--rw=write --verify=md5 --verify_only=1", None),
        ("--rw=write --unlink=1 --numjobs=2", None),
        ("--rw=write --name=k --filename=/k --size=1g --rw=trim --ioengine=null --exitall", None),
    ] {
        let line = format!("--name=j --filename=/f --size=1g {more}");
        let line = if more.contains("nrfiles") { line.replace("--filename=/f ", "") } else { line };
        assert_eq!(surely(&line), expected, "{more}");
    }
}
