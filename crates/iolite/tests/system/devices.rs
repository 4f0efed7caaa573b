//! Block and character devices, standard input and output.

use crate::common::devices::{Loop, Mounted};
use crate::common::{Json, Program, files_in, scratch, sizes};
use iolite_testing::{or_skip, skip};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};

const MIB: u64 = 1 << 20;

/// A loop device whose image is full of ones; the error says why there is none.
fn full_device(dir: &std::path::Path) -> Result<Loop, String> {
    let image = dir.join("loop.img");
    fs::write(&image, vec![1; 4 * MIB as usize]).expect("an image can be written");
    Loop::on(&image)
}

#[test]
fn trims_discard_every_block_once() {
    for engine in ["psync", "libaio", "io_uring", "pvsync2", "posixaio", "sync"] {
        for rw in ["trim", "randtrim"] {
            let dir = scratch();
            let device = or_skip!(full_device(dir.path()));
            let line = format!(
                "--name=t --filename={} --ioengine={engine} --rw={rw} --bs=64k --size=2M --offset=1M --output-format=json",
                device.path
            );
            let run = Program::under_test().line(dir.path(), &line).ok();
            let json = Json::parse(&run.stdout);
            assert_eq!(json.job().ios(), [0, 0, 32], "{engine} {rw}");
            assert_eq!(json.job().bytes(), [0, 0, 2 * MIB], "{engine} {rw}");
            for share in ["iodepth_level.1", "iodepth_submit.4", "iodepth_complete.4"] {
                assert_eq!(json.job().float(share), 100.0, "{engine} {rw} {share}");
            }
            drop(device);
            // A discard punches a hole into the image.
            let image = fs::File::open(dir.path().join("loop.img")).unwrap();
            let mut content = vec![0; 4 * MIB as usize];
            image.read_exact_at(&mut content, 0).unwrap();
            let (first, rest) = content.split_at(MIB as usize);
            let (trimmed, last) = rest.split_at(2 * MIB as usize);
            assert!(first.iter().chain(last).all(|&byte| byte == 1), "{engine} {rw}: outside is untouched");
            assert!(trimmed.iter().all(|&byte| byte == 0), "{engine} {rw}: all of it is trimmed");
        }
    }
}

#[test]
fn trimwrite_trims_before_it_writes() {
    let dir = scratch();
    let device = or_skip!(full_device(dir.path()));
    let line =
        format!("--name=t --filename={} --rw=trimwrite --bs=64k --size=2M --output-format=json", device.path);
    let run = Program::under_test().line(dir.path(), &line).ok();
    let json = Json::parse(&run.stdout);
    // Every block is trimmed, then written.
    assert_eq!(json.job().ios(), [0, 32, 32]);
    assert_eq!(json.job().bytes(), [0, 2 * MIB, 2 * MIB]);
}

#[test]
fn disk_statistics_begin_when_the_files_are_laid_out() {
    let dir = scratch();
    let mounted = or_skip!(Mounted::new(dir.path(), 128 * MIB));
    let line = "--name=t --filename=f --size=64M --direct=1 --rw=randread --bs=4k --number_ios=50 --output-format=json";
    let run = Program::under_test().line(&mounted.directory, line).ok();
    let disk = &Json::parse(&run.stdout).0["disk_util"][0];
    assert_eq!(disk["name"], mounted.device.name());
    let counter = |name: &str| disk[name].as_u64().expect("a counter");
    assert!(counter("read_ios") >= 50 && counter("read_sectors") >= 50 * 8, "{run}");
    // The file system may write about itself at any time, but not 64 MiB.
    assert!(counter("write_sectors") < 64 * MIB / 512 / 4, "{run}");
}

/// fio lays the files out, and then its first trim fails, whatever the engine.
#[test]
fn impossible_trims_are_refused_before_files_are_created() {
    let dir = scratch();
    fs::write(dir.path().join("old"), vec![1; 65536]).unwrap();
    for engine in ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "libaio", "io_uring", "posixaio"] {
        for (file, is) in [("new", "would be a regular file"), ("old", "is a regular file")] {
            for (args, option) in [
                ("--rw=trim", "rw=trim"),
                ("--rw=randtrim --thread", "rw=randtrim"),
                ("--rw=trimwrite", "rw=trimwrite"),
                (
                    "--rw=randwrite --verify=crc32c --trim_percentage=10 --trim_backlog=4",
                    "trim_percentage=10",
                ),
            ] {
                let line = format!("--name=t --ioengine={engine} --size=64k --filename={file} {args}");
                Program::under_test()
                    .line(dir.path(), &line)
                    .refused()
                    .says(&format!("{option}: {file} {is}"));
            }
        }
    }
    let refused = |args: &str, words: &str| {
        Program::under_test().line(dir.path(), &format!("--name=t --size=64k {args}")).refused().says(words);
    };
    refused("--filename=/dev/null --rw=trim", "rw=trim: /dev/null is a character device");
    refused("--opendir=. --rw=trim", "rw=trim: . holds regular files");
    refused("--nrfiles=2 --rw=trim", "rw=trim: t.0.0 would be a regular file");
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["old"]);
    assert_eq!(fs::read(dir.path().join("old")).unwrap(), vec![1; 65536]);
    // Jobs that do not really trim are accepted.
    let line = |args: &str| Program::under_test().line(dir.path(), &format!("--name=t --size=64k {args}"));
    line("--rw=trim --ioengine=null").ok();
    line("--filename=old --rw=randwrite --trim_percentage=10").ok();
}

#[test]
fn the_whole_device_is_the_default_size_and_percentages_are_of_it() {
    let dir = scratch();
    let device = or_skip!(full_device(dir.path()));
    for (size, expected) in [("", 64), ("--size=50%", 32), ("--size=25% --offset=50%", 16), ("--size=1M", 16)]
    {
        let line =
            format!("--name=d --filename={} --rw=read --bs=64k {size} --output-format=json", device.path);
        let run = Program::under_test().line(dir.path(), &line).ok();
        assert_eq!(Json::parse(&run.stdout).job().ios()[0], expected, "{size:?}");
    }
}

#[test]
fn an_offset_increment_gives_each_clone_its_part() {
    let dir = scratch();
    let device = or_skip!(full_device(dir.path()));
    let line = format!(
        "--name=d --filename={} --rw=write --bs=64k --size=1M --offset_increment=1M --numjobs=3 --zero_buffers",
        device.path
    );
    Program::under_test().line(dir.path(), &line).ok();
    drop(device);
    let content = fs::read(dir.path().join("loop.img")).unwrap();
    let (written, rest) = content.split_at(3 * MIB as usize);
    assert!(written.iter().all(|&byte| byte == 0) && rest.iter().all(|&byte| byte == 1));
}

#[test]
fn character_devices() {
    let dir = scratch();
    let cases =
        [("/dev/zero", "read", [16, 0]), ("/dev/null", "write", [0, 16]), ("/dev/full", "read", [16, 0])];
    for (device, rw, expected) in cases {
        let line = format!("--name=c --filename={device} --rw={rw} --bs=4k --size=64k --output-format=json");
        let run = Program::under_test().line(dir.path(), &line).ok();
        let json = Json::parse(&run.stdout);
        let [reads, writes, _] = json.job().ios();
        assert_eq!([reads, writes], expected, "{device}");
    }
    assert_eq!(files_in(dir.path()), sizes(&[]));
}

/// `filename=-` is standard output for writes; the report must go elsewhere.
#[test]
fn standard_output_as_a_target() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio 3.33 documents it and fails with \"failed to get file size of -\"");
    }
    let dir = scratch();
    let line = "--name=o --filename=- --rw=write --bs=4k --size=16k --buffer_pattern=0x61 --output=report --ioengine=sync";
    let run = program.line(dir.path(), line).ok();
    assert_eq!(run.stdout, "a".repeat(16384));
    assert!(fs::read_to_string(dir.path().join("report")).unwrap().contains("issued rwts: total=0,4,0,0"));
}

#[test]
fn fallocate_decides_what_is_allocated() {
    // With create_only, the file is laid out, but there is no I/O.
    for (how, allocated) in
        [("native", true), ("posix", true), ("none", false), ("truncate", false), ("keep", true)]
    {
        let dir = scratch();
        let line = format!("--name=f --filename=f --rw=write --size=1M --fallocate={how} --create_only=1");
        Program::under_test().line(dir.path(), &line).ok();
        let file = fs::metadata(dir.path().join("f")).unwrap();
        let has_blocks = file.blocks() * 512 >= MIB;
        assert_eq!(has_blocks, allocated, "{how}: {} bytes, {} blocks", file.len(), file.blocks());
    }
}

/// Write streams and metadata need a device that supports them. Loop devices do not, and older kernels have neither.
#[test]
pub fn streams_and_metadata_need_a_device_that_has_them() {
    let program = Program::under_test();
    if program.is_peer {
        skip!("fio has them for commands only");
    }
    let dir = scratch();
    fs::write(dir.path().join("file"), vec![0; 65536]).unwrap();
    let refused = |filename: &str, words: &str, says: &str| {
        let line = format!(
            "--name=t --ioengine=io_uring --filename={filename} --rw=write --bs=4k --size=64k {words}"
        );
        program.line(dir.path(), &line).refused().says(says);
    };
    let filename = "file";
    refused(
        filename,
        "--dataplacement=streams --plids=1",
        "the page cache keeps nothing of it; add direct=1",
    );
    refused(filename, "--fdp=1", "add direct=1");
    refused(filename, "--dataplacement=streams --direct=1", "plids= is missing");
    refused(filename, "--dataplacement=streams --plids=70000 --direct=1", "is not between 0 and 65535");
    let streams = "is a regular file, and only block devices have write streams";
    refused(filename, "--dataplacement=streams --plids=1 --direct=1", streams);
    refused(filename, "--pi_act=0 --md_per_io_size=8", "the page cache takes no metadata; add direct=1");
    let metadata = "is a regular file, and only block devices have metadata";
    refused(filename, "--pi_act=0 --md_per_io_size=8 --direct=1", metadata);
    refused("new", "--dataplacement=streams --plids=1 --direct=1", "new would be a regular file");
    assert!(!dir.path().join("new").exists(), "it is refused before the file is made");
    refused(
        filename,
        "--pi_act=0 --md_per_io_size=8 --direct=1 --pi_chk=GUARDS",
        "none of GUARD, APPTAG, REFTAG",
    );
    let line = "--name=t --ioengine=io_uring --filename=file --rw=write --bs=4k --size=64k --md_per_io_size=8 --pi_chk=GUARD";
    program
        .line(dir.path(), line)
        .ok()
        .says("md_per_io_size: has no effect: io_uring transfers metadata with pi_act=0");
    let reads = "--name=t --ioengine=io_uring --filename=file --rw=read --bs=4k --size=64k --fdp=1";
    program.line(dir.path(), reads).ok();
    let device = or_skip!(full_device(dir.path()));
    let scheme = "--fdp=1 --direct=1 --plid_select=scheme --dp_scheme=none";
    refused(&device.path, scheme, "No such file or directory");
    refused(&device.path, "--dataplacement=streams --plids=1 --direct=1", "write streams");
    refused(&device.path, "--fdp=1 --direct=1", "write streams");
    refused(&device.path, "--pi_act=0 --md_per_io_size=8 --direct=1", "metadata with ");
    drop(device);
    let content = fs::read(dir.path().join("loop.img")).unwrap();
    assert!(content.iter().all(|&byte| byte == 1), "nothing was written");
}

#[test]
fn a_loop_device_is_described_with_the_disk_below() {
    let dir = scratch();
    let device = or_skip!(full_device(dir.path()));
    let describe =
        |words: &str| Program::own().line(dir.path(), &format!("device {words} {}", device.path)).ok();
    let told: serde_json::Value = crate::common::json::strict(&describe("--json").stdout).unwrap();
    assert_eq!((&told["what"], &told["path"]), (&"block device".into(), &device.path.as_str().into()));
    let loops = &told["device"];
    assert_eq!(
        (&loops["kind"], &loops["capacity"]["size_bytes"]),
        (&"loop device".into(), &(4 * MIB).into())
    );
    assert!(loops["loop"]["file"].as_str().unwrap().ends_with("loop.img"), "{loops}");
    assert_eq!(loops["queue"]["logical_block_bytes"], 512);
    let same = describe("--output-format=json");
    assert_eq!(crate::common::json::strict(&same.stdout).unwrap()["device"]["kind"], "loop device");
    let table = describe("").stdout;
    for words in ["loop device", "4 MiB", "[random-reads]", "; [verified-writes]"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    // The printed job file can be run, comments included, and each job in JSON can be run alone.
    let before = fs::read(dir.path().join("loop.img")).unwrap();
    let jobs = describe("--output-format=jobs").stdout.replace("runtime=10s", "runtime=100ms");
    fs::write(dir.path().join("jobs.fio"), jobs).unwrap();
    let run = Program::own().line(dir.path(), "--output-format=json jobs.fio").ok();
    let json = Json::parse(&run.stdout);
    assert_eq!(json.jobs().len(), 2);
    assert!(json.jobs().iter().all(|job| job.ios()[0] > 0 && job.ios()[1..] == [0, 0]));
    assert_eq!(fs::read(dir.path().join("loop.img")).unwrap(), before, "the printed job file has written");
    for job in told["jobs"].as_array().unwrap() {
        fs::write(dir.path().join("job.fio"), job["job"].as_str().unwrap()).unwrap();
        Program::own().line(dir.path(), "--parse-only job.fio").ok();
    }
    // The report of a run has the same facts.
    let line = format!("--name=j --filename={} --rw=read --bs=64k --output-format=json", device.path);
    let report: serde_json::Value =
        crate::common::json::strict(&Program::own().line(dir.path(), &line).ok().stdout).unwrap();
    let target = &report["iolite"]["targets"][0];
    assert_eq!(
        (&target["kind"], &target["size_bytes"]),
        (&"loop device".into(), &(4 * MIB).to_string().into()),
        "{target}"
    );
}

#[test]
fn invalid_device_arguments_are_refused_with_a_remedy() {
    let dir = scratch();
    fs::write(dir.path().join("file"), b"x").unwrap();
    let made = std::process::Command::new("mkfifo").arg(dir.path().join("fifo")).status();
    for (words, reason) in [
        ("nosuch", "nosuch: no such file or device; name a block device"),
        (".", "it is a directory; name a device, or a file in it"),
        ("/dev/null", "it is a character device that holds no data"),
        ("/proc/self/stat", "it lies on a proc file system, which is on no disk of this machine"),
        ("-", "it is a FIFO or a socket"),
        ("", "needs the name of one device or file"),
        ("file file", "needs the name of one device or file"),
        ("--output-format=xml file", "--output-format=xml: not one of table, json, jobs"),
        ("--json --output-format=table file", "only one of them"),
        ("--serial file", "unknown option --serial"),
    ] {
        let run = Program::own().line(dir.path(), &format!("device {words}")).refused().says(reason);
        assert_eq!(run.code(), 1, "{words}");
    }
    if made.is_ok_and(|status| status.success()) {
        Program::own().line(dir.path(), "device fifo").refused().says("it is a FIFO or a socket");
    }
}
