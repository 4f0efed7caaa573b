//! Verified jobs that trim: `trim_percentage`, and the trims of `rw=trimwrite`.

use crate::common::devices::{Loop, image};
use crate::common::program::Finished;
use crate::common::trace::system_calls;
use crate::common::{Json, Program, scratch, words};
use crate::skip;
use std::fs;

/// The I/Os of the only job.
#[track_caller]
fn ios(run: Finished) -> [u64; 3] {
    Json::parse(&run.ok().stdout).job().ios()
}

/// Blocks that were trimmed after they were written have to be zeros, on a device that forgets them.
#[test]
pub fn trimmed_blocks_are_zeros() {
    let dir = scratch();
    let path = image(dir.path(), "disk.img", 4 << 20);
    let device = match Loop::on(&path) {
        Ok(device) => device,
        Err(why) => skip!("{why}"),
    };
    let base =
        format!("--name=v --filename={} --size=1m --bs=4k --verify=crc32c --output-format=json", device.path);
    let run = |args: &str| Program::under_test().line(dir.path(), &format!("{base} {args}"));
    for (args, reads, trims) in [
        ("--rw=write --trim_percentage=100", 256..=256, 256..=256),
        ("--rw=randwrite --trim_percentage=30", 256..=256, 40..=120),
        ("--rw=randwrite --trim_percentage=30 --trim_verify_zero=0", 136..=216, 40..=120),
        ("--rw=randwrite --trim_percentage=50 --trim_backlog=16", 256..=256, 80..=176),
        ("--rw=randwrite --trim_percentage=50 --trim_backlog=16 --trim_backlog_batch=2", 256..=256, 80..=176),
        ("--rw=randwrite --trim_percentage=50 --verify_backlog=16", 256..=256, 80..=176),
        ("--rw=randwrite --trim_percentage=50 --norandommap --io_size=4m", 200..=256, 80..=500),
        (
            "--rw=randwrite --trim_percentage=50 --norandommap --trim_backlog=8 --io_size=4m",
            200..=256,
            80..=700,
        ),
        ("--rw=randwrite --trim_percentage=50 --ioengine=io_uring --iodepth=16", 256..=256, 80..=176),
        ("--rw=trimwrite", 256..=256, 256..=256),
    ] {
        let [read, written, trimmed] = ios(run(args));
        assert!(
            written >= 256 && reads.contains(&read) && trims.contains(&trimmed),
            "{args}: {read} {trimmed}"
        );
        // A later run knows which.
        if args.contains("trim_percentage") {
            let [again, ..] = ios(run(&format!("{args} --verify_only")));
            assert_eq!(again, read, "{args}");
        }
    }
    // A trim that was lost.
    run("--rw=write --trim_percentage=50 --do_verify=0").ok();
    fs::write(&path, vec![7; 4 << 20]).unwrap();
    run("--rw=write --trim_percentage=100 --verify_only --invalidate=1")
        .refused()
        .says("wanted '00 (it was trimmed)'");
}

/// Writes and trims as they follow each other: every so many writes, so many trims, and the rest before reading back.
#[test]
pub fn trims_wait_for_as_many_writes_as_they_are_told() {
    let dir = scratch();
    let device = match Loop::on(&image(dir.path(), "disk.img", 1 << 20)) {
        Ok(device) => device,
        Err(why) => skip!("{why}"),
    };
    let base = format!(
        "--name=v --filename={} --size=48k --bs=4k --rw=write --verify=crc32c --trim_percentage=100",
        device.path
    );
    for (args, expected) in [
        ("", "wwwwwwwwwwwwtttttttttttt"),
        ("--trim_backlog=4", "wwwwttttwwwwttttwwwwtttt"),
        ("--trim_backlog=3 --trim_backlog_batch=1", "wwwtwwwtwwwtwwwttttttttt"),
        ("--trim_backlog=6 --trim_backlog_batch=4", "wwwwwwttttwwwwwwtttttttt"),
        ("--trim_backlog=5 --trim_backlog_batch=100", "wwwwwtttttwwwwwtttttwwtt"),
    ] {
        let line = words(&format!("{base} {args}"));
        let calls = system_calls(&Program::under_test(), dir.path(), "pwrite64,ioctl,fallocate", &line);
        let Some((run, log)) = calls else { skip!("needs strace") };
        run.ok();
        let letter = |line: &str| match line {
            _ if !line.contains(&device.path) => None,
            _ if line.contains("pwrite64(") => Some('w'),
            _ if line.contains("BLKDISCARD") || line.contains("fallocate(") => Some('t'),
            _ => None,
        };
        assert_eq!(log.lines().filter_map(letter).collect::<String>(), expected, "{args}: {log}");
    }
}
