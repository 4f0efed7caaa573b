//! Verified jobs without faults, on devices that most machines lack: SCSI disks, flash, persistent memory, zoned
//! disks and NVMe namespaces, in the virtual machine of the tests ([`iolite_testing::vm`]). Neither the run that writes nor a later one may
//! report damage.

use crate::jobs::{any_method, sometimes};
use crate::reading::{jobs, tells_of_damage};
use crate::stop::Stop;
use crate::trial::Trial;
use iolite_testing::vm::{self, Ran};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// How many jobs a trial puts one after the other onto one device.
const JOBS: usize = 4;

/// Jobs for a kind of device.
struct Kind {
    /// The commands that create it, in a script of the virtual machine.
    made_by: &'static [&'static str],
    /// The first options of jobs for it.
    engines: &'static [&'static str],
    /// Their sizes.
    sizes: &'static [&'static str],
    /// How they write.
    ways: &'static [&'static str],
    /// Their blocks.
    blocks: &'static [&'static str],
    /// Additional options of some jobs.
    extras: &'static [&'static str],
}

const SIZES: &[&str] = &["1m", "2m", "4m"];
const ZONES: &[&str] = &["1z", "2z", "4z"];

const KINDS: &[Kind] = &[
    Kind {
        made_by: &["scsi_disk dev_size_mb=16 lbpu=1", "scsi_disk dev_size_mb=16 sector_size=4096"],
        engines: &[
            "--ioengine=sg --filename=$disk",
            "--ioengine=sg --filename=$sg",
            "--ioengine=sg --filename=$sg --iodepth=8",
        ],
        sizes: SIZES,
        ways: &["write", "randwrite", "rw", "randrw", "randrw --rwmixread=80"],
        blocks: &["--bs=4k", "--bs=64k", "--bsrange=4k-32k", "--bssplit=4k/60:12k/20:64k/20"],
        extras: &["--readfua=1", "--writefua=1", "--fsync=8", "--thread", "--verify_backlog=16", "--loops=2"],
    },
    Kind {
        made_by: &["flash total_size=2048 erase_size=64", "flash total_size=1024 erase_size=16"],
        engines: &["--ioengine=mtd --filename=$mtd"],
        sizes: SIZES,
        // Flash has to be erased before it is written again.
        ways: &["trimwrite"],
        blocks: &["--bs=64k", "--bs=128k"],
        extras: &["--fsync=4", "--thread", "--end_fsync=1"],
    },
    Kind {
        made_by: &["dax_device"],
        engines: &["--ioengine=dev-dax --filename=$dax"],
        sizes: SIZES,
        ways: &["write", "randwrite", "rw", "randrw"],
        blocks: &["--bs=4k", "--bs=64k", "--bsrange=4k-32k"],
        extras: &["--fsync=8", "--thread", "--verify_backlog=16", "--loops=2", "--offset=2m"],
    },
    Kind {
        made_by: &["dax_file_system"],
        engines: &["--ioengine=libpmem --directory=$dax_directory"],
        sizes: SIZES,
        ways: &["write", "randwrite", "rw", "randrw"],
        blocks: &["--bs=4k", "--bs=64k", "--bsrange=4k-32k"],
        extras: &[
            "--sync=1",
            "--direct=1",
            "--numjobs=3",
            "--nrfiles=3",
            "--fsync=8",
            "--thread",
            "--unlink=0",
        ],
    },
    Kind {
        made_by: &["zoned_disk 0", "zoned_disk 4", "zoned_disk 0 3", "zoned_disk 4 3 4"],
        engines: &[
            "--ioengine=psync --direct=1 --zonemode=zbd --filename=$disk",
            "--ioengine=libaio --iodepth=8 --direct=1 --zonemode=zbd --filename=$disk",
            "--ioengine=io_uring --iodepth=8 --direct=1 --zonemode=zbd --filename=$disk",
        ],
        sizes: ZONES,
        ways: &["write", "randwrite", "rw", "randrw", "randrw --rwmixread=80"],
        blocks: &["--bs=4k", "--bs=64k", "--bssplit=4k/60:12k/20:64k/20"],
        extras: &["--max_open_zones=2", "--offset=8z", "--numjobs=2", "--thread", "--fsync=8", "--loops=2"],
    },
    Kind {
        made_by: &["nvme_namespaces", "nvme_namespaces poll_queues=1"],
        engines: &[
            "--ioengine=io_uring_cmd --filename=$ng",
            "--ioengine=io_uring_cmd --filename=$ng --iodepth=8",
            "--ioengine=io_uring_cmd --filename=$ng4k --iodepth=32",
        ],
        sizes: SIZES,
        ways: &["write", "randwrite", "rw", "randrw", "randrw --rwmixread=80"],
        blocks: &["--bs=4k", "--bs=64k", "--bsrange=4k-32k", "--bssplit=4k/60:12k/20:64k/20"],
        extras: &[
            "--readfua=1",
            "--writefua=1",
            "--fsync=8",
            "--thread",
            "--fixedbufs",
            "--registerfiles",
            "--hipri",
            "--nonvectored=0",
            "--force_async=3",
            "--verify_mode=compare",
            "--verify_backlog=16",
            "--loops=2",
        ],
    },
    Kind {
        made_by: &["nvme_namespaces"],
        engines: &[
            "--ioengine=io_uring_cmd --zonemode=zbd --filename=$zoned --write_mode=append",
            "--ioengine=io_uring_cmd --zonemode=zbd --filename=$zoned --write_mode=append --iodepth=8",
            "--ioengine=io_uring_cmd --zonemode=zbd --filename=$zoned --write_mode=append --iodepth=8 --force_async=2",
            "--ioengine=io_uring_cmd --zonemode=zbd --filename=$zoned --iodepth=4",
        ],
        sizes: ZONES,
        ways: &["write", "randwrite", "rw", "randrw", "randrw --rwmixread=80"],
        blocks: &["--bs=4k", "--bs=64k", "--bssplit=4k/60:12k/20:64k/20"],
        extras: &["--max_open_zones=2", "--offset=2z", "--thread", "--fsync=8", "--loops=2"],
    },
    // Protection information of each format, by the device or by us. Metadata is as much as the largest I/O has.
    Kind {
        made_by: &["nvme_namespaces"],
        engines: &[
            "--ioengine=io_uring_cmd --filename=$separate --pi_chk=GUARD,APPTAG,REFTAG",
            "--ioengine=io_uring_cmd --filename=$separate --pi_chk=GUARD,APPTAG,REFTAG --pi_act=0 --md_per_io_size=1024 --iodepth=8",
            "--ioengine=io_uring_cmd --filename=$interleaved --pi_chk=GUARD,APPTAG,REFTAG --iodepth=8",
            "--ioengine=io_uring_cmd --filename=$guard64 --pi_chk=GUARD,APPTAG,REFTAG --iodepth=8",
            "--ioengine=io_uring_cmd --filename=$type3 --pi_chk=GUARD,APPTAG --md_per_io_size=2048 --iodepth=8",
            "--ioengine=io_uring_cmd --filename=$type3 --pi_chk=GUARD,APPTAG --pi_act=0 --md_per_io_size=2048",
        ],
        sizes: SIZES,
        // (A read of blocks that are being written meets data and metadata of different writes: QEMU writes one after the other.)
        ways: &["write", "randwrite"],
        blocks: &["--bs=4k", "--bs=64k", "--bsrange=4k-32k", "--bssplit=4k/60:12k/20:64k/20"],
        extras: &["--apptag=0x4321", "--fsync=8", "--thread", "--fixedbufs", "--nonvectored=0", "--loops=2"],
    },
];

/// Why this part cannot be tried here; `None` = it can.
pub fn obstacle() -> Option<String> {
    // Two parts ask, and a script runs once.
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    FOUND.get_or_init(|| vm::run("devices-obstacle", "true").err()).clone()
}

/// Performs one trial.
pub fn perform(trial: &mut Trial, number: u64) -> Result<(), Stop> {
    let kind = &KINDS[(number % KINDS.len() as u64) as usize];
    let lines: Vec<String> = (0..JOBS).map(|_| job(trial, kind)).collect();
    let program = fs::canonicalize(trial.program()).map_err(Stop::of("the program"))?;
    let mut script = format!(
        "try() {{ local n=$1; shift; '{}' \"$@\" --output-format=json --eta=never >$n.out 2>$n.err; echo $? >$n.status; }}\n",
        program.display()
    );
    script += &format!("{} || exit\n", trial.one_of(kind.made_by));
    for (at, line) in lines.iter().enumerate() {
        script += &format!("try {at} {line}\ntry {at}-later {line} --verify_only\n");
    }
    let ran = catch_unwind(AssertUnwindSafe(|| vm::run(&format!("devices-{number}"), &script)))
        .map_err(|_| Stop(format!("the virtual machine was lost:\n{script}")))?
        .map_err(Stop)?;
    if ran.status != 0 {
        return Err(Stop(format!("no device: {}\n{script}", ran.output)));
    }
    for (at, line) in lines.iter().enumerate() {
        let has_run = look(trial, &ran, &at.to_string(), line)?;
        // Where a job was refused, the data is that of the one before.
        if has_run {
            look(trial, &ran, &format!("{at}-later"), &format!("{line} --verify_only"))?;
        }
    }
    Ok(())
}

/// Judges the output of one of its runs. Returns false if the job was refused.
fn look(trial: &mut Trial, ran: &Ran, name: &str, line: &str) -> Result<bool, Stop> {
    let read = |kind: &str| fs::read_to_string(ran.directory.join(format!("{name}.{kind}")));
    let [status, stdout, stderr] = ["status", "out", "err"].map(read);
    let (status, stdout, stderr) = (
        status.map_err(Stop::of("its exit status"))?,
        stdout.map_err(Stop::of("its output"))?,
        stderr.map_err(Stop::of("its errors"))?,
    );
    let first: Vec<&str> = stderr.lines().take(6).collect();
    let said = format!("exit status {}: {line}\n{}", status.trim(), first.join("\n"));
    let Ok(report) = jobs(&stdout) else {
        trial.wrong(said);
        return Ok(true);
    };
    // A job that cannot be verified is refused before it writes.
    let is_refused =
        status.trim() == "1" && !stderr.is_empty() && report.iter().all(|job| job.all_ios() == 0);
    let is_right = status.trim() == "0" && report.iter().all(|job| job.error == 0);
    if is_refused {
        trial.moot();
    } else if !is_right || tells_of_damage(&format!("{stdout}{stderr}")) {
        trial.false_alarm(said);
    }
    Ok(!is_refused)
}

/// A verified job.
fn job(trial: &mut Trial, kind: &Kind) -> String {
    let method = any_method(trial);
    let mut line = format!(
        "--name=v --size={} --rw={} {} {} {}",
        trial.one_of(kind.sizes),
        trial.one_of(kind.ways),
        trial.one_of(kind.blocks),
        trial.one_of(kind.engines),
        method.options
    );
    line += &sometimes(trial, 2, kind.extras);
    line += &sometimes(trial, 3, kind.extras);
    line += &sometimes(trial, 6, &["--randrepeat=0", "--norandommap", "--random_distribution=zipf:1.1"]);
    line
}
