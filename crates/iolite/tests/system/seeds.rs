//! The commands of five well-known documents: how-tos and notes by users of fio, with the output of every command. Here
//! they run with files and loop devices in place of disks, with smaller sizes and times, and have to print what the
//! documents show.

use crate::common::devices::Loop;
use crate::common::program::Finished;
use crate::common::skeleton::{assert_same, skeleton};
use crate::common::{Program, files_in, scratch, sizes, words};
use iolite_testing::{partly_skipped, this_test};
use std::fs;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// The files after a run in a directory with two directories, `0` and `1`.
#[track_caller]
fn layout_of(line: &str) -> Vec<(String, u64)> {
    let dir = scratch();
    for name in ["0", "1"] {
        fs::create_dir(dir.path().join(name)).expect("a directory");
    }
    Program::under_test().line(dir.path(), line).ok();
    files_in(dir.path())
}

/// `JOB.CLONE.FILE` for six clones that alternate between the two directories.
fn alternating(files: u64, size: u64) -> Vec<(String, u64)> {
    let mut expected = Vec::new();
    for clone in 0..6 {
        expected.extend((0..files).map(|file| (format!("{}/test.{clone}.{file}", clone % 2), size)));
    }
    expected.sort();
    expected
}

#[test]
fn six_clones_have_a_file_each() {
    let files = layout_of("--name=test --size=10M --directory=0/ --runtime=10s --numjobs=6");
    let expected: Vec<_> = (0..6).map(|clone| (format!("0/test.{clone}.0"), 10 * MIB)).collect();
    assert_eq!(files, expected);
}

#[test]
fn six_clones_share_out_two_directories() {
    let files = layout_of("--name=test --size=10M --directory=0/:1/ --runtime=10s --numjobs=6");
    assert_eq!(files, alternating(1, 10 * MIB));
}

#[test]
fn a_file_name_is_shared_by_the_clones_and_is_in_the_first_directory() {
    let files =
        layout_of("--name=test --size=10M --directory=0/:1/ --filename=hello --runtime=10s --numjobs=6");
    assert_eq!(files, sizes(&[("0/hello", 10 * MIB)]));
}

#[test]
fn two_file_names_have_half_the_size_each() {
    let files = layout_of(
        "--name=test --size=10M --directory=0/:1/ --filename=hello:world --runtime=10s --numjobs=6",
    );
    assert_eq!(files, sizes(&[("0/hello", 5 * MIB), ("0/world", 5 * MIB)]));
}

#[test]
fn filesize_decides_the_size_of_named_files() {
    let files = layout_of(
        "--name=test --size=10M --directory=0/:1/ --filename=hello:world --runtime=10s --numjobs=6 --filesize=7M",
    );
    assert_eq!(files, sizes(&[("0/hello", 7 * MIB), ("0/world", 7 * MIB)]));
}

#[test]
fn nrfiles_divides_the_size() {
    let files = layout_of("--name=test --size=10M --directory=0/:1/ --runtime=10s --numjobs=6 --nrfiles=5");
    assert_eq!(files, alternating(5, 2 * MIB));
}

#[test]
fn filesize_decides_the_size_of_numbered_files() {
    let files = layout_of(
        "--name=test --size=10M --directory=0/:1/ --runtime=10s --numjobs=6 --nrfiles=5 --filesize=1M",
    );
    assert_eq!(files, alternating(5, MIB));
}

/// The target of a document's command.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    /// A block device; here a loop device.
    Device,
    /// A named file.
    File,
    /// A directory with a file named after the job.
    Directory,
}

/// A command of a document and the expected shape of its output.
struct Seed {
    /// The command of the document, without the program's name.
    command: &'static str,
    target: Target,
    /// The size of each clone in bytes, in place of the document's gigabytes.
    size: u64,
    /// The total reads and writes of a command that ends with its size; `None` = it ends with its time.
    ios: Option<[u64; 2]>,
}

const fn device(command: &'static str, size: u64, ios: Option<[u64; 2]>) -> Seed {
    Seed { command, target: Target::Device, size, ios }
}

const fn file(command: &'static str, size: u64, ios: Option<[u64; 2]>) -> Seed {
    Seed { command, target: Target::File, size, ios }
}

const fn directory(command: &'static str, size: u64, ios: Option<[u64; 2]>) -> Seed {
    Seed { command, target: Target::Directory, size, ios }
}

/// A how-to about testing disks and file systems: synchronous I/O from one and from many threads.
const HOW_TO: &[Seed] = &[
    device(
        "-name=write -filename=/dev/sdp -direct=1 -rw=write -ioengine=sync -bs=1M -size=10G -thread -numjobs=1 -runtime=300 -group_reporting",
        32 * MIB,
        Some([0, 32]),
    ),
    device(
        "-name=read -filename=/dev/sdq -direct=1 -rw=read -ioengine=sync -bs=1M -size=10G -runtime=300",
        32 * MIB,
        Some([32, 0]),
    ),
    device(
        "-name=read -filename=/dev/sdq -direct=1 -rw=read -ioengine=sync -bs=1M -size=10G -thread -numjobs=16 -runtime=300 -group_reporting",
        8 * MIB,
        Some([128, 0]),
    ),
    device(
        "-name=read -filename=/dev/sdq -direct=1 -rw=read -iodepth=32 -ioengine=posixaio -bs=1M -size=10G -runtime=300",
        64 * MIB,
        Some([64, 0]),
    ),
    device(
        "-name=randwrite -filename=/dev/sdp -direct=1 -rw=randwrite -ioengine=sync -bs=4k -size=10G -thread -numjobs=16 -runtime=600 -group_reporting",
        MIB,
        Some([0, 4096]),
    ),
    device(
        "-name=randread -filename=/dev/sdq -direct=1 -rw=randread -ioengine=sync -bs=4k -size=10G -thread -numjobs=16 -runtime=300 -group_reporting",
        MIB,
        Some([4096, 0]),
    ),
    directory(
        "-name=test1 -directory=/mnt/0 -direct=1 -rw=write -ioengine=sync -bs=1M -size=10G -thread -numjobs=1 -runtime=300 -group_reporting",
        32 * MIB,
        Some([0, 32]),
    ),
    directory(
        "-name=test2 -directory=/mnt/0 -direct=1 -rw=write -ioengine=sync -bs=1M -size=10G -thread -numjobs=16 -runtime=300 -group_reporting",
        4 * MIB,
        Some([0, 64]),
    ),
];

/// An article about measuring a database's disk: 8k blocks at depth 32 on a file, a raw disk, a fresh file
/// system, and one on LVM.
const DATABASE: &[Seed] = &[
    file(
        "--filename=/data/testfile --direct=1 --ioengine=libaio --bs=8k --iodepth=32 --rw=read --size=8G --name=seqread_8k --time_based --runtime=60 --group_reporting",
        8 * MIB,
        None,
    ),
    file(
        "--filename=/data/testfile --direct=1 --ioengine=libaio --bs=8k --iodepth=32 --numjobs=4 --rw=randread --size=8G --name=randread_8k --time_based --runtime=60 --group_reporting",
        8 * MIB,
        None,
    ),
    file(
        "--filename=/data/testfile --direct=1 --ioengine=libaio --bs=8k --iodepth=32 --rw=write --size=8G --name=seqwrite_8k --time_based --runtime=60 --group_reporting",
        8 * MIB,
        None,
    ),
    file(
        "--filename=/data/testfile --direct=1 --ioengine=libaio --bs=8k --iodepth=32 --numjobs=4 --rw=randwrite --size=8G --name=randwrite_8k --time_based --runtime=60 --group_reporting",
        8 * MIB,
        None,
    ),
    file(
        "--filename=/data/testfile --direct=1 --ioengine=libaio --bs=8k --iodepth=32 --numjobs=4 --rw=randrw --rwmixread=70 --size=8G --name=randrw_8k --time_based --runtime=60 --group_reporting",
        8 * MIB,
        None,
    ),
    device(
        "--filename=/dev/sdb --direct=1 --ioengine=libaio --rw=randwrite --bs=8k --iodepth=32 --name=randwrite --size=16G --time_based --runtime=120 --ramp_time=10",
        16 * MIB,
        None,
    ),
    device(
        "--filename=/dev/sdb --direct=1 --ioengine=libaio --rw=read --bs=8k --iodepth=32 --name=seqread --size=16G --time_based --runtime=120",
        16 * MIB,
        None,
    ),
    device(
        "--filename=/dev/sdb --direct=1 --ioengine=libaio --rw=randread --bs=8k --iodepth=32 --name=randread --size=16G --time_based --runtime=120 --ramp_time=10",
        16 * MIB,
        None,
    ),
    file(
        "--filename=/data/xfsfio --direct=1 --ioengine=libaio --rw=randwrite --bs=8k --iodepth=32 --name=randwrite --size=16G --time_based --runtime=120 --ramp_time=10",
        16 * MIB,
        None,
    ),
    file(
        "--filename=/data/xfsfio --direct=1 --ioengine=libaio --rw=read --bs=8k --iodepth=32 --name=seqread --size=16G --time_based --runtime=120",
        16 * MIB,
        None,
    ),
    file(
        "--filename=/data/fiotest --direct=1 --ioengine=libaio --rw=randread --bs=8k --iodepth=32 --name=randread --size=16G --time_based --runtime=120 --ramp_time=10",
        16 * MIB,
        None,
    ),
];

/// Notes about the behaviour of fio, on a SATA SSD. The longest commands are cut off at the edge of the page; the
/// output shows the rest: one report for the group, of a job called mytest.
const NOTES: &[Seed] = &[
    device(
        "-filename=/dev/sdb -direct=1 -zero_buffers=1 -iodepth=16 -thread -rw=randwrite -ioengine=psync -bs=4k -size=100G -numjobs=4 -runtime=36 -group_reporting -name=mytest",
        4 * MIB,
        Some([0, 4096]),
    ),
    device(
        "-filename=/dev/sdb -direct=1 -zero_buffers=1 -iodepth=1 -thread -rw=randwrite -ioengine=libaio -bs=4k -size=100G -numjobs=1 -runtime=30 -group_reporting -name=mytest",
        8 * MIB,
        Some([0, 2048]),
    ),
    device(
        "-filename=/dev/sdb -direct=1 -zero_buffers=1 -iodepth=1 -thread -rw=randwrite -ioengine=psync -bs=4k -size=100G -numjobs=1 -runtime=30 -group_reporting -name=mytest",
        8 * MIB,
        Some([0, 2048]),
    ),
    device(
        "-filename=/dev/sdb -direct=1 -rw=randwrite -bs=4k -size=1G -numjobs=1 -name=mytest",
        8 * MIB,
        Some([0, 2048]),
    ),
    device(
        "-filename=/dev/sdb -direct=1 -iodepth=4 -thread -rw=randwrite -ioengine=libaio -bs=512 -size=100G -numjobs=1 -runtime=30 -group_reporting -name=mytest",
        2 * MIB,
        Some([0, 4096]),
    ),
    device(
        "-filename=/dev/sdb -direct=1 -iodepth=4 -thread -rw=randwrite -ioengine=libaio -bs=4k -size=100G -numjobs=1 -runtime=30 -group_reporting -name=mytest",
        8 * MIB,
        Some([0, 2048]),
    ),
    device(
        "-filename=/dev/sdb -direct=1 -iodepth=4 -thread -rw=write -ioengine=libaio -bs=4k -size=100G -numjobs=1 -runtime=30 -group_reporting -name=mytest",
        8 * MIB,
        Some([0, 2048]),
    ),
    device(
        "-filename=/dev/sdb -direct=1 -iodepth=4 -thread -rw=write -ioengine=libaio -bs=512 -size=100G -numjobs=1 -runtime=30 -group_reporting -name=mytest",
        2 * MIB,
        Some([0, 4096]),
    ),
];

/// An introduction to measuring a cloud provider's virtual disk.
const CLOUD_DISK: &[Seed] = &[
    device(
        "--bs=4k --ioengine=libaio --iodepth=1 --direct=1 --rw=read --time_based --runtime=600 --refill_buffers --norandommap --randrepeat=0 --group_reporting --name=fio-read --size=100G --filename=/dev/vdb",
        16 * MIB,
        None,
    ),
    device(
        "-direct=1 -iodepth=64 -rw=read -ioengine=libaio -bs=4096k -size=100G -numjobs=1 -runtime=300 -group_reporting -filename=/dev/vdb -name=Write_PPS_Testing",
        64 * MIB,
        Some([16, 0]),
    ),
    device(
        "--bs=4k --ioengine=libaio --iodepth=128 --direct=1 --rw=randwrite --time_based --runtime=300 --refill_buffers --norandommap --randrepeat=0 --group_reporting --name=fio-write --size=1G --filename=/dev/vdb",
        16 * MIB,
        None,
    ),
    device(
        "--bs=4k --ioengine=libaio --iodepth=128 --direct=1 --rw=randread --time_based --runtime=300 --refill_buffers --norandommap --randrepeat=0 --group_reporting --name=fio-write --size=1G --filename=/dev/vdb",
        16 * MIB,
        None,
    ),
    device(
        "-direct=1 -iodepth=64 -rw=write -ioengine=libaio -bs=4096k -size=100G -numjobs=1 -runtime=300 -group_reporting -filename=/dev/vdb -name=Write_PPS_Testing",
        64 * MIB,
        Some([0, 16]),
    ),
];

/// A comparison of file systems, with an abbreviated option, a value after a space, and a job whose name
/// is a path.
const FILE_SYSTEMS: &[Seed] = &[file(
    "-filename=/mnt/s3/perf.txt -rw=read -direct=1 -iodepth 32 -thread -ioengine=libaio -bs=4k -size=1G -numjobs=8 -group_reporting -runtime=30 -time_base -name=/root/fio_result_s3_read.txt",
    MIB,
    None,
)];

#[test]
fn the_how_to() {
    run_all(HOW_TO);
}

#[test]
fn the_database_article() {
    run_all(DATABASE);
}

#[test]
fn the_notes() {
    run_all(NOTES);
}

#[test]
fn the_cloud_disk_introduction() {
    run_all(CLOUD_DISK);
}

#[test]
fn the_comparison_of_file_systems() {
    run_all(FILE_SYSTEMS);
}

/// A sequential write that is longer than its ramp. (The article writes 16G.)
#[test]
fn a_ramp_within_a_run_that_ends_with_its_size() {
    let dir = scratch();
    let command = "--filename=fiotest --direct=1 --ioengine=libaio --rw=write --bs=8k --iodepth=32 --name=seqwrite --size=512M --ramp_time=100ms";
    let run = Program::under_test().line(dir.path(), command).ok();
    let skeleton = skeleton(&Program::under_test(), &run);
    assert!(skeleton.iter().any(|line| line.starts_with("  write: IOPS=N, BW=NB/s")), "{run}");
    assert_eq!(files_in(dir.path()), sizes(&[("fiotest", 512 * MIB)]));
}

/// `-nrfiles=1024 -filesize=5M -openfiles=10 -numjobs=16` in the document.
#[test]
fn many_files_with_few_of_them_open() {
    let dir = scratch();
    fs::create_dir(dir.path().join("0")).expect("a directory");
    let command = "-name=test3 -directory=0 -direct=1 -rw=write -ioengine=sync -bs=1M -nrfiles=32 -filesize=2M -openfiles=10 -thread -numjobs=4 -runtime=300 -group_reporting";
    let run = Program::under_test().line(dir.path(), command).ok();
    let mut expected = Vec::new();
    for clone in 0..4 {
        expected.extend((0..32).map(|file| (format!("0/test3.{clone}.{file}"), 2 * MIB)));
    }
    expected.sort();
    assert_eq!(files_in(dir.path()), expected);
    let layout = run.stdout.matches("test3: Laying out IO files (32 files / total 64MiB)\n").count();
    assert_eq!(layout, 4, "{run}");
    assert!(run.stdout.contains("issued rwts: total=0,256,0,0 short=0,0,0,0 dropped=0,0,0,0\n"), "{run}");
}

#[track_caller]
fn run_all(seeds: &[Seed]) {
    for seed in seeds {
        let dir = scratch();
        let device = match seed.target {
            Target::Device => match Loop::new(dir.path(), 64 * MIB) {
                Ok(device) => Some(device),
                Err(reason) => {
                    partly_skipped(&this_test!(), &format!("{}: {reason}", seed.command));
                    continue;
                }
            },
            Target::File | Target::Directory => None,
        };
        run_seed(seed, dir.path(), device.as_ref());
    }
}

fn run_seed(seed: &Seed, dir: &Path, device: Option<&Loop>) {
    let scaled = scale(seed, device);
    let program = Program::under_test();
    let run = program.run(dir, &scaled).ok();
    let mut ours = skeleton(&program, &run);
    // Only releases newer than the documents print this note about a depth that the engine cannot use.
    ours.retain(|line| !line.starts_with("note: both iodepth"));
    // For files, the disk and whether it has statistics depend on the machine.
    if seed.target != Target::Device
        && let Some(at) = ours.iter().position(|line| line.starts_with("Disk stats"))
    {
        ours.truncate(at - 1);
    }
    if seed.ios.is_none() {
        for line in &mut ours {
            if line.starts_with("     issued rwts: ") {
                *line = measured_issues(line);
            }
        }
    }
    assert_same(seed.command, &ours, &expected(seed, &scaled, &run));
}

/// The command with its target, size and times scaled down for a test.
fn scale(seed: &Seed, device: Option<&Loop>) -> Vec<String> {
    let replace = |word: String| {
        let bare = word.trim_start_matches('-');
        let dashes = &word[..word.len() - bare.len()];
        let Some((option, value)) = bare.split_once('=') else { return word };
        let value = match option {
            "filename" => device.map_or("target", |device| &device.path).to_string(),
            "directory" => ".".to_string(),
            "size" => seed.size.to_string(),
            "ramp_time" => "300ms".to_string(),
            "runtime" if seed.ios.is_none() => "1".to_string(),
            _ => value.to_string(),
        };
        format!("{dashes}{option}={value}")
    };
    words(seed.command).into_iter().map(replace).collect()
}

/// The value of an option in a scaled command.
fn option<'a>(command: &'a [String], name: &str) -> Option<&'a str> {
    let words: Vec<&str> = command.iter().map(|word| word.trim_start_matches('-')).collect();
    let of_equals = words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    of_equals
        .or_else(|| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1).copied()))
}

/// `issued rwts: total=N,0,0,0 …` shows which directions had I/Os, but not how many.
fn measured_issues(line: &str) -> String {
    let (total, rest) = line.split_once(" short=").expect("issued I/Os are followed by short ones");
    let (label, counts) = total.split_once("total=").expect("issued I/Os have a total");
    let counts: Vec<&str> = counts.split(',').map(|count| if count == "0" { "0" } else { "N" }).collect();
    format!("{label}total={} short={rest}", counts.join(","))
}

/// The skeleton that the documents show for this command.
fn expected(seed: &Seed, command: &[String], run: &Finished) -> Vec<String> {
    let name = option(command, "name").expect("every command names its job");
    let rw = option(command, "rw").expect("every command has rw");
    let engine = option(command, "ioengine").unwrap_or("psync");
    let depth = option(command, "iodepth").unwrap_or("1");
    let clones: u64 = option(command, "numjobs").unwrap_or("1").parse().expect("a number of jobs");
    let block = match option(command, "bs").expect("every command says how large an I/O is") {
        "512" => "512B",
        "4k" => "4096B",
        "8k" => "8192B",
        "1M" => "1024KiB",
        "4096k" => "4096KiB",
        other => panic!("how is {other} shown?"),
    };
    let kind = if command.iter().any(|word| word == "-thread") { "thread" } else { "process" };
    let plural = match (kind, clones) {
        (_, 1) => "",
        ("process", _) => "es",
        _ => "s",
    };
    let asynchronous = ["libaio", "posixaio"].contains(&engine);
    let directions: &[&str] = match rw {
        "read" | "randread" => &["read"],
        "write" | "randwrite" => &["write"],
        "randrw" => &["read", "write"],
        other => panic!("what does {other} do?"),
    };

    let mut lines = vec![format!(
        "{name}: (g=0): rw={rw}, bs=(R) {block}-{block}, (W) {block}-{block}, (T) {block}-{block}, ioengine={engine}, iodepth={depth}"
    )];
    if clones > 1 {
        lines.push("...".into());
    }
    lines.push("PROGRAM-VERSION".into());
    lines.push(format!("Starting {clones} {kind}{plural}"));
    let layout = format!("{name}: Laying out IO file (1 file / {}MiB)", seed.size / MIB);
    let layouts = match seed.target {
        Target::Device => 0,
        // The clones share the file, and only the first lays it out.
        Target::File => 1,
        Target::Directory => clones,
    };
    for _ in 0..layouts {
        lines.push(layout.clone());
    }
    lines.push(String::new());
    lines.push(format!("{name}: (groupid=0, jobs={clones}): err= 0: pid=N: DATE"));
    for direction in directions {
        lines.push(format!("  {direction}: IOPS=N, BW=NB/s (NB/s)(NB/Nmsec)"));
        if asynchronous {
            lines.push("    slat (TIME): min=N, max=N, avg=N, stdev=N".into());
        }
        lines.push("    clat (TIME): min=N, max=N, avg=N, stdev=N".into());
        lines.push("     lat (TIME): min=N, max=N, avg=N, stdev=N".into());
        lines.push("    clat percentiles (TIME):".into());
        lines.push(
            "     | 1.00th 5.00th 10.00th 20.00th 30.00th 40.00th 50.00th 60.00th 70.00th 80.00th 90.00th 95.00th 99.00th 99.50th 99.90th 99.95th 99.99th"
                .into(),
        );
    }
    let issued = match seed.ios {
        Some([reads, writes]) => format!("{reads},{writes}"),
        None => match directions {
            ["read"] => "N,0".into(),
            ["write"] => "0,N".into(),
            _ => "N,N".into(),
        },
    };
    lines.push("  lat (TIME)   : N=N%".into());
    lines.push("  cpu          : usr=N%, sys=N%, ctx=N, majf=N, minf=N".into());
    lines.push("  IO depths    : 1=N%, 2=N%, 4=N%, 8=N%, 16=N%, 32=N%, >=64=N%".into());
    lines.push("     submit    : 0=N%, 4=N%, 8=N%, 16=N%, 32=N%, 64=N%, >=64=N%".into());
    lines.push("     complete  : 0=N%, 4=N%, 8=N%, 16=N%, 32=N%, 64=N%, >=64=N%".into());
    lines.push(format!("     issued rwts: total={issued},0,0 short=0,0,0,0 dropped=0,0,0,0"));
    lines.push("     latency   : target=Ns, window=Ns, percentile=N%, depth=N".into());
    lines.push(String::new());
    lines.push("Run status group 0 (all jobs):".into());
    for direction in directions {
        lines.push(format!(
            "{:>7}: bw=NB/s (NB/s), NB/s-NB/s (NB/s-NB/s), io=NB (NB), run=N-Nmsec",
            direction.to_uppercase()
        ));
    }
    if seed.target == Target::Device {
        lines.push(String::new());
        lines.push("Disk stats (read/write):".into());
        lines.push("  loop: ios=N/N, sectors=N/N, merge=N/N, ticks=N/N, in_queue=N, util=N%".into());
    }
    // Iolite may print warnings, but no other messages.
    let complaint = run.stderr.lines().find(|line| !line.contains("warning: "));
    assert_eq!(complaint, None, "{run}");
    lines
}
