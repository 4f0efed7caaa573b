//! Every I/O engine, in processes and in threads: the numbers and sizes of I/Os are right, and the data is in the right
//! places.

use crate::common::devices::Loop;
use crate::common::{Json, Program, files_in, scratch, sizes};
use iolite_testing::or_skip;
use std::fs;
use std::io::Write;
use std::path::Path;

const BLOCK: usize = 4096;
const BLOCKS: usize = 256;
const SIZE: usize = BLOCK * BLOCKS;

/// Engines that work on files, and whether they can have more than one I/O in flight.
pub const FILE_ENGINES: &[(&str, bool)] = &[
    ("sync", false),
    ("psync", false),
    ("vsync", false),
    ("pvsync", false),
    ("pvsync2", false),
    ("mmap", false),
    ("libaio", true),
    ("io_uring", true),
    ("posixaio", true),
];

/// Each engine is run in a separate process, and in a thread.
const MODES: &[&str] = &["--thread=0", "--thread=1"];

/// Runs one job on the file `f` of `dir` and returns its report.
#[track_caller]
fn run(dir: &Path, args: &[&str]) -> Json {
    let common = ["--name=job", "--filename=f", "--bs=4k", "--output-format=json"];
    let program = Program::under_test();
    let run = program.run(dir, common.iter().chain(args)).ok();
    let json = Json::parse(&run.stdout);
    for job in json.jobs() {
        job.check_consistency();
        if !program.is_peer {
            job.check_latencies();
        }
    }
    json
}

/// A file that has something other than zeros in every block.
fn filled(dir: &Path) -> Vec<u8> {
    let content: Vec<u8> = (0..SIZE).map(|at| (at / BLOCK % 251) as u8 + 1).collect();
    let file = fs::File::create(dir.join("f")).and_then(|mut file| {
        file.write_all(&content)?;
        // After this, a read of the device need not wait for writeback.
        file.sync_all()
    });
    file.expect("a file can be written");
    content
}

fn zeros(dir: &Path) {
    fs::write(dir.join("f"), vec![0; SIZE]).expect("a file can be written");
}

/// The number of blocks of the file that contain data other than zeros.
fn blocks_with_data(dir: &Path) -> usize {
    let content = fs::read(dir.join("f")).expect("the file is there");
    assert_eq!(content.len(), SIZE, "the file has kept its size");
    content.chunks(BLOCK).filter(|block| block.iter().any(|&byte| byte != 0)).count()
}

fn for_each_engine(mut check: impl FnMut(&str, bool, &str)) {
    for &(engine, queues) in FILE_ENGINES {
        for mode in MODES {
            check(&format!("--ioengine={engine}"), queues, mode);
        }
    }
}

#[test]
fn reading_reads_every_block_once_and_changes_nothing() {
    for_each_engine(|engine, _, mode| {
        for rw in ["--rw=read", "--rw=randread"] {
            let dir = scratch();
            let content = filled(dir.path());
            let json = run(dir.path(), &[engine, mode, rw, "--size=1M"]);
            assert_eq!(json.job().ios(), [256, 0, 0], "{engine} {mode} {rw}");
            assert_eq!(json.job().bytes(), [SIZE as u64, 0, 0], "{engine} {mode} {rw}");
            assert!(fs::read(dir.path().join("f")).unwrap() == content, "{engine} {mode} {rw}: file changed");
        }
    });
}

#[test]
fn writing_writes_every_block_once() {
    for_each_engine(|engine, _, mode| {
        for rw in ["--rw=write", "--rw=randwrite"] {
            let dir = scratch();
            zeros(dir.path());
            let json = run(dir.path(), &[engine, mode, rw, "--size=1M"]);
            assert_eq!(json.job().ios(), [0, 256, 0], "{engine} {mode} {rw}");
            assert_eq!(json.job().bytes(), [0, SIZE as u64, 0], "{engine} {mode} {rw}");
            // There are as many writes as blocks, and every block was written: each exactly once.
            assert_eq!(blocks_with_data(dir.path()), BLOCKS, "{engine} {mode} {rw}");
        }
    });
}

#[test]
fn a_mix_does_as_much_as_its_size_says() {
    for_each_engine(|engine, _, mode| {
        for rw in ["--rw=rw", "--rw=randrw"] {
            let dir = scratch();
            zeros(dir.path());
            let json = run(dir.path(), &[engine, mode, rw, "--size=1M"]);
            let [reads, writes, trims] = json.job().ios();
            assert_eq!((reads + writes, trims), (256, 0), "{engine} {mode} {rw}");
            // Reads and writes are equally likely: of 256 I/Os, 128 within 5 standard deviations of 8 are reads.
            assert!((88..=168).contains(&reads), "{engine} {mode} {rw}: {reads} reads");
            let [read, written, _] = json.job().bytes();
            assert_eq!((read, written), (reads * 4096, writes * 4096), "{engine} {mode} {rw}");
            // Reads and writes share one pass over the file: a block is either read or written.
            assert_eq!(blocks_with_data(dir.path()) as u64, writes, "{engine} {mode} {rw}");
        }
    });
}

#[test]
fn a_pattern_is_written_as_it_is() {
    for_each_engine(|engine, _, mode| {
        let dir = scratch();
        run(dir.path(), &[engine, mode, "--rw=randwrite", "--size=1M", "--buffer_pattern=0xdeadbeef"]);
        let expected: Vec<u8> = [0xde, 0xad, 0xbe, 0xef].into_iter().cycle().take(SIZE).collect();
        assert!(fs::read(dir.path().join("f")).unwrap() == expected, "{engine} {mode}");
    });
}

#[test]
fn a_queue_is_filled() {
    for_each_engine(|engine, queues, mode| {
        if !queues {
            return;
        }
        let dir = scratch();
        zeros(dir.path());
        let json =
            run(dir.path(), &[engine, mode, "--rw=randwrite", "--size=1M", "--iodepth=8", "--direct=1"]);
        assert_eq!(json.job().ios(), [0, 256, 0], "{engine} {mode}");
        assert_eq!(blocks_with_data(dir.path()), BLOCKS, "{engine} {mode}");
        // The queue is filled before the job waits, so at least one submission in eight makes it full.
        let deep = json.job().float("iodepth_level.8");
        assert!(deep >= 12.0, "{engine} {mode}: depth 8 or more in {deep}% of the submissions");
        assert_eq!(json.job().float("iodepth_level.16"), 0.0, "{engine} {mode}: never deeper");
        // Submission is measured separately if it is a separate step.
        assert_eq!(json.job().int("write.slat_ns.N"), 256, "{engine} {mode}");
    });
}

#[test]
fn batches_lose_nothing() {
    let variants: &[&[&str]] = &[
        &["--iodepth=16", "--iodepth_batch=4"],
        &[
            "--iodepth=16",
            "--iodepth_batch_submit=8",
            "--iodepth_batch_complete_min=4",
            "--iodepth_batch_complete_max=8",
        ],
        &["--iodepth=16", "--iodepth_batch_complete_min=0"],
        &["--iodepth=16", "--iodepth_low=4"],
        &["--iodepth=300"],
        &["--iodepth=7", "--bsrange=1k-8k", "--norandommap"],
        &["--iodepth=8", "--serialize_overlap=1", "--norandommap"],
    ];
    for engine in ["--ioengine=libaio", "--ioengine=io_uring", "--ioengine=posixaio"] {
        for variant in variants {
            let dir = scratch();
            filled(dir.path());
            let args = [&[engine, "--rw=randrw", "--size=1M"], *variant].concat();
            let json = run(dir.path(), &args);
            let [read, written, trimmed] = json.job().bytes();
            // With a range of block sizes, the last I/O need not end exactly at the size.
            let tolerance = if variant.iter().any(|word| word.contains("bsrange")) { 8192 } else { 0 };
            let off = (read + written).abs_diff(SIZE as u64);
            assert!(off <= tolerance, "{engine} {variant:?}: {read} read and {written} written");
            assert_eq!(trimmed, 0);
        }
    }
}

#[test]
fn options_of_the_engines() {
    // Options that need kernel or file system support have separate tests below.
    let options: &[&[&str]] = &[
        &["--ioengine=pvsync2", "--hipri"],
        &["--ioengine=pvsync2", "--hipri=1", "--hipri_percentage=50"],
        &["--ioengine=libaio", "--userspace_reap"],
        &["--ioengine=io_uring", "--fixedbufs"],
        &["--ioengine=io_uring", "--fixedbufs=1", "--registerfiles=1"],
        &["--ioengine=io_uring", "--sqthread_poll"],
        &["--ioengine=io_uring", "--sqthread_poll=1", "--sqthread_poll_cpu=0"],
        &["--ioengine=io_uring", "--nonvectored=0"],
        &["--ioengine=io_uring", "--nonvectored=1"],
        &["--ioengine=io_uring", "--force_async=2"],
        &["--ioengine=io_uring", "--fixedbufs", "--registerfiles", "--sqthread_poll"],
    ];
    for option in options {
        for mode in MODES {
            for direct in ["--direct=0", "--direct=1"] {
                let dir = scratch();
                zeros(dir.path());
                let args = [*option, &[*mode, direct, "--rw=randwrite", "--size=1M", "--iodepth=4"]].concat();
                let json = run(dir.path(), &args);
                assert_eq!(json.job().ios(), [0, 256, 0], "{args:?}");
                assert_eq!(blocks_with_data(dir.path()), BLOCKS, "{args:?}");
            }
        }
    }
}

/// With huge pages, fio maps private memory: the I/Os are counted, but the file does not change.
#[test]
pub fn huge_pages_in_the_mmap_engine() {
    for mode in MODES {
        let dir = scratch();
        zeros(dir.path());
        let json = run(dir.path(), &["--ioengine=mmap", "--thp=1", mode, "--rw=randrw", "--size=1M"]);
        let [reads, writes, _] = json.job().ios();
        assert_eq!(reads + writes, 256, "{mode}");
    }
}

/// With `nowait`, the kernel returns EAGAIN if it would have to wait. For the job, this is an error like any other.
/// Direct I/O on an idle file does not wait.
#[test]
fn nowait_works_where_nothing_waits() {
    for engine in ["--ioengine=pvsync2", "--ioengine=libaio", "--ioengine=io_uring"] {
        let dir = scratch();
        filled(dir.path());
        let json = run(dir.path(), &[engine, "--nowait=1", "--direct=1", "--rw=randread", "--size=1M"]);
        assert_eq!(json.job().ios(), [256, 0, 0], "{engine}");
    }
}

#[test]
fn several_files_several_clones() {
    for_each_engine(|engine, _, mode| {
        let dir = scratch();
        let program = Program::under_test();
        let args = [
            "--name=job",
            "--directory=.",
            "--nrfiles=4",
            "--size=1M",
            "--bs=4k",
            "--numjobs=3",
            "--rw=randwrite",
            "--output-format=json",
            engine,
            mode,
        ];
        let json = Json::parse(&program.run(dir.path(), args).ok().stdout);
        assert_eq!(json.jobs().len(), 3, "{engine} {mode}");
        for job in json.jobs() {
            job.check_consistency();
            assert_eq!(job.ios(), [0, 256, 0], "{engine} {mode}");
        }
        let names: Vec<String> =
            (0..3).flat_map(|clone| (0..4).map(move |file| format!("job.{clone}.{file}"))).collect();
        let expected: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1 << 18)).collect();
        assert_eq!(files_in(dir.path()), sizes(&expected), "{engine} {mode}");
    });
}

#[test]
fn the_null_engine_counts_and_touches_nothing() {
    for mode in MODES {
        for (rw, expected) in [("read", [1024, 0]), ("randwrite", [0, 1024])] {
            let dir = scratch();
            let json = run(
                dir.path(),
                &["--ioengine=null", mode, &format!("--rw={rw}"), "--size=4M", "--iodepth=8"],
            );
            let [reads, writes, _] = json.job().ios();
            assert_eq!([reads, writes], expected, "{mode} {rw}");
            assert_eq!(files_in(dir.path()), sizes(&[]), "{mode} {rw}");
        }
    }
}

#[test]
fn io_of_several_sizes_at_once() {
    for_each_engine(|engine, _, mode| {
        let dir = scratch();
        let json = run(dir.path(), &[engine, mode, "--rw=write", "--size=1M", "--bsrange=512-16k"]);
        let [_, ios, _] = json.job().ios();
        let [_, bytes, _] = json.job().bytes();
        // Sizes are drawn until none fits any more, so less than the largest is left over.
        assert!(bytes <= SIZE as u64 && bytes > (SIZE - 16384) as u64, "{engine} {mode}: {bytes} bytes");
        assert!(bytes > ios * 512 && bytes < ios * 16384, "{engine} {mode}: {ios} I/Os of {bytes} bytes");
    });
}

#[test]
fn block_devices() {
    let dir = scratch();
    let device = or_skip!(Loop::new(dir.path(), SIZE as u64));
    for_each_engine(|engine, queues, mode| {
        let depth = if queues { "--iodepth=16" } else { "--iodepth=1" };
        let filename = format!("--filename={}", device.path);
        // No size: the whole device.
        let args = ["--name=job", &filename, "--bs=4k", engine, mode, depth, "--output-format=json"];
        for (rw, expected) in [("read", [256, 0]), ("randwrite", [0, 256])] {
            let rw = format!("--rw={rw}");
            let run = Program::under_test().run(dir.path(), args.iter().copied().chain([rw.as_str()])).ok();
            let json = Json::parse(&run.stdout);
            let [reads, writes, _] = json.job().ios();
            assert_eq!([reads, writes], expected, "{engine} {mode} {rw}");
            assert_eq!(json.0["disk_util"][0]["name"], device.name(), "{engine} {mode} {rw}");
        }
    });
}
