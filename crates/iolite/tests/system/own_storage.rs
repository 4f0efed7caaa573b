//! The files of an engine with its own storage are laid out, verified, synced, sized and removed like local files. The
//! engine is `drawers`, whose files are parts of one file, `cabinet`, which outlives the run.

use crate::common::{Finished, Json, Program, scratch};
use iolite_testing::{engine_of, example_engine, or_skip};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The offset of the first drawer in the cabinet.
const FIRST: u64 = 1 << 20;
const ROOM: u64 = 64 << 20;

const DRAWERS: &str = "--ioengine=./drawers.so --arguments=cabinet --bs=4k --output-format=json --name=job";

fn start(dir: &Path, line: &str) -> Finished {
    Program::under_test().line(dir, &format!("{DRAWERS} {line}"))
}

#[track_caller]
fn run(dir: &Path, line: &str) -> Json {
    let json = Json::parse(&start(dir, line).ok().stdout);
    json.jobs().iter().for_each(|job| job.check_consistency());
    json
}

/// The names and sizes in the table of the cabinet.
fn drawers(dir: &Path) -> Vec<(String, u64)> {
    let table = fs::read(dir.join("cabinet")).unwrap_or_default();
    let drawers = table.chunks_exact(256).take(32).map(|entry| {
        let name: Vec<u8> = entry[..248].iter().copied().take_while(|&byte| byte != 0).collect();
        let size = u64::from_ne_bytes(entry[248..].try_into().unwrap());
        (String::from_utf8(name).unwrap(), size)
    });
    drawers.filter(|(name, _)| !name.is_empty()).collect()
}

/// The bytes of a drawer, by its number.
fn content(dir: &Path, drawer: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let cabinet = fs::File::open(dir.join("cabinet")).unwrap();
    cabinet.read_exact_at(&mut bytes, FIRST + drawer * ROOM).unwrap();
    bytes
}

#[test]
fn data_to_be_read_is_laid_out() {
    let dir = scratch();
    or_skip!(example_engine("drawers", dir.path()));
    let read =
        start(dir.path(), "--filename=a:b --size=2m --rw=randread --iodepth=8 --output-format=normal").ok();
    assert!(read.output().contains("Laying out IO files (2 files / total 2MiB)"), "{}", read.output());
    assert_eq!(drawers(dir.path()), [("a".into(), 1 << 20), ("b".into(), 1 << 20)]);
    for drawer in [0, 1] {
        let bytes = content(dir.path(), drawer, 1 << 20);
        let filled = bytes.chunks(4096).filter(|block| block.iter().any(|&byte| byte != 0)).count();
        assert_eq!(filled, 256, "no block of drawer {drawer} is empty");
    }
    // The drawers exist now: nothing is laid out again, and sizes need not be given.
    let json = run(dir.path(), "--filename=a:b --rw=read");
    assert_eq!(json.job().bytes(), [2 << 20, 0, 0]);
    let half = run(dir.path(), "--filename=a --rw=read --size=50%");
    assert_eq!(half.job().bytes(), [1 << 19, 0, 0]);
    assert!(!dir.path().join("a").exists(), "names of drawers are not paths");
}

#[test]
fn files_are_made_and_nothing_else_where_that_is_all() {
    let dir = scratch();
    or_skip!(example_engine("drawers", dir.path()));
    for serialize in [1, 0] {
        let line = format!(
            "--filename=made{serialize} --size=1m --rw=read --create_only=1 --create_serialize={serialize}"
        );
        assert_eq!(run(dir.path(), &line).job().ios(), [0, 0, 0]);
    }
    assert_eq!(drawers(dir.path()), [("made1".into(), 1 << 20), ("made0".into(), 1 << 20)]);
    let line = "--filename=none --size=1m --rw=write --allow_file_create=0";
    start(dir.path(), line).refused().says("none does not exist, and allow_file_create=0");
    let large = start(dir.path(), "--filename=large --size=65m --rw=read").refused();
    large.says("large: No space left on device");
}

#[test]
fn writes_are_verified_in_every_mode() {
    for how in [
        "--thread=0",
        "--thread=1",
        "--io_submit_mode=offload",
        "--create_serialize=0",
        "--loops=2 --unlink_each_loop=1",
    ] {
        let dir = scratch();
        or_skip!(example_engine("drawers", dir.path()));
        let line = format!(
            "{how} --filename=a:b --size=1m --rw=randwrite --iodepth=8 --verify=crc32c --fsync=32 --end_fsync=1"
        );
        let json = run(dir.path(), &line);
        let passes = if how.contains("loops") { 2 } else { 1 };
        assert_eq!(json.job().ios(), [256 * passes, 256 * passes, 0], "{how}");
        assert!(json.job().int("sync.total_ios") >= 7, "{how}");
    }
}

#[test]
fn data_is_verified_after_reconnecting_and_damage_is_found() {
    let dir = scratch();
    or_skip!(example_engine("drawers", dir.path()));
    let job = "--filename=a --size=1m --rw=randwrite --iodepth=4 --verify=crc32c --verify_state_save=0";
    assert_eq!(run(dir.path(), &format!("{job} --do_verify=0")).job().ios(), [0, 256, 0]);
    let again = format!("{job} --verify_only=1");
    assert_eq!(run(dir.path(), &again).job().ios(), [256, 0, 0]);
    let cabinet = fs::OpenOptions::new().read(true).write(true).open(dir.path().join("cabinet")).unwrap();
    let mut byte = [0];
    cabinet.read_exact_at(&mut byte, FIRST + 123_456).unwrap();
    cabinet.write_all_at(&[!byte[0]], FIRST + 123_456).unwrap();
    let damaged = start(dir.path(), &again);
    assert_eq!(damaged.code(), 1);
    assert!(damaged.output().contains("verify"), "{}", damaged.output());
    assert!(damaged.output().contains("offset 122880"), "{}", damaged.output());
}

#[test]
fn unlink_removes_files_from_own_storage() {
    let dir = scratch();
    or_skip!(example_engine("drawers", dir.path()));
    // A local file of the same name must not be touched.
    fs::write(dir.path().join("a"), "precious").unwrap();
    run(dir.path(), "--filename=a:b --size=1m --rw=write");
    run(dir.path(), "--filename=a --size=512k --rw=write --unlink=1");
    assert_eq!(drawers(dir.path()), [("b".into(), 1 << 19)]);
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"precious");
}

#[test]
fn a_sync_that_fails_fails_the_job() {
    let dir = scratch();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/engines/drawers.c");
    let text = fs::read_to_string(source).unwrap();
    let sync = "return -ENOENT;\n    return fsync(cabinet->descriptor) ? -errno : 0;";
    assert!(text.contains(sync), "the example has changed");
    or_skip!(engine_of(&text.replace(sync, "return -ENOENT;\n    return -EIO;"), "drawers", dir.path()));
    start(dir.path(), "--filename=a --size=1m --rw=write")
        .refused()
        .says("func=layout: a: Input/output error");
    let line = "--filename=a --size=1m --rw=write --create_fsync=0";
    run(dir.path(), line);
    for option in ["end_fsync", "fsync_on_close", "end_syncfs"] {
        let failed = start(dir.path(), &format!("{line} --{option}=1"));
        assert_eq!(failed.code(), 1, "{option}");
        assert!(
            failed.output().contains("Input/output error") || failed.output().contains("\"error\" : 5"),
            "{}",
            failed.output()
        );
    }
}

#[test]
fn all_names_in_a_directory_are_those_that_begin_like_it() {
    let dir = scratch();
    or_skip!(example_engine("drawers", dir.path()));
    run(dir.path(), "--filename=box/a:box/b:other --size=3m --rw=write");
    assert_eq!(run(dir.path(), "--opendir=box/ --rw=read").job().bytes(), [2 << 20, 0, 0]);
    start(dir.path(), "--opendir=empty/ --rw=read")
        .refused()
        .says("opendir=empty/: no name begins with this");
}

#[test]
fn jobs_that_cannot_take_turns_are_refused() {
    let dir = scratch();
    or_skip!(example_engine("drawers", dir.path()));
    let line = "--filename=a --size=1m --rw=randwrite --verify=crc32c --numjobs=2";
    start(dir.path(), line)
        .refused()
        .says("several workers write to a at the same time, and cannot take turns");
    // Workers that write to separate parts are accepted, and a local file with the same name is another file.
    run(dir.path(), &format!("{line} --offset_increment=1m --group_reporting=1"));
    let beside = "--filename=a --size=1m --rw=write --verify=crc32c --name=other --filename=a --size=1m --rw=write \
                  --ioengine=psync --bs=4k --verify=crc32c";
    assert_eq!(run(dir.path(), beside).jobs().len(), 2);
}
