//! Every engine moves the right bytes to and from the right places, at several depths.

use crate::common::*;
use iolite_engine::{AccessPattern, Engine, EngineConfig, Errno, OpenMode};
use iolite_engines::Visitor;
use iolite_testing::skip;
use iolite_types::Operation;
use std::path::{Path, PathBuf};

const BLOCKS: u64 = 128;

/// Writes all blocks, reads all blocks, and syncs, all out of order.
struct RoundTrip<'a> {
    path: &'a Path,
    depth: usize,
    batch: usize,
    mode: OpenMode,
}

impl Visitor for RoundTrip<'_> {
    type Out = ();
    fn visit<E: Engine>(self, mut engine: E) {
        let mut buffers = Buffers::new(BLOCK, self.depth);
        let size = BLOCKS * BLOCK as u64;
        engine.open(0, &spec(self.path, size), self.mode).unwrap();
        engine.prepare(&buffers.layout).unwrap();

        let mut written = 0;
        let offsets = scattered(BLOCKS, BLOCK as u64);
        run_all(&mut engine, &mut buffers, Operation::Write, &offsets, self.batch, |offset, outcome, _| {
            assert_eq!(outcome, Ok(BLOCK as u64), "write at {offset}");
            written += 1;
        });
        assert_eq!(written, BLOCKS);
        for operation in [Operation::Sync, Operation::DataSync, Operation::SyncFileRange] {
            assert_eq!(
                perform(&mut engine, &buffers.unit(0, operation, 0, BLOCK as u64)),
                Ok(0),
                "{operation:?}"
            );
        }
        let on_disk = std::fs::read(self.path).unwrap();
        assert_eq!(on_disk.len() as u64, size);
        for &offset in &offsets {
            let place = offset as usize;
            assert_eq!(on_disk[place..place + BLOCK], content(offset, BLOCK), "on disk at {offset}");
        }

        let mut read = 0;
        let sequential: Vec<u64> = (0..BLOCKS).map(|block| block * BLOCK as u64).collect();
        for offsets in [&offsets, &sequential] {
            run_all(
                &mut engine,
                &mut buffers,
                Operation::Read,
                offsets,
                self.batch,
                |offset, outcome, bytes| {
                    assert_eq!(outcome, Ok(BLOCK as u64), "read at {offset}");
                    assert_eq!(bytes, content(offset, BLOCK), "read at {offset}");
                    read += 1;
                },
            );
        }
        assert_eq!(read, 2 * BLOCKS);
        engine.close(0).unwrap();
    }
}

fn round_trip(directory: &Path, direct: bool) {
    for variant in VARIANTS {
        for (depth, batch) in [(1, 1), (4, 1), (32, 8)] {
            for defer_submission in [false, true] {
                let (name, about) = variant;
                if direct && is_uncached(variant) {
                    continue; // there is no cache to stay out of
                }
                eprintln!("{name} {about} depth {depth} batch {batch} defer {defer_submission}");
                let path = directory.join(format!("{name}.{depth}"));
                let config = EngineConfig {
                    direct,
                    defer_submission,
                    access: AccessPattern::Random,
                    ..EngineConfig::new(options_of(variant), depth)
                };
                with_engine(
                    name,
                    &config,
                    RoundTrip { path: &path, depth, batch, mode: OpenMode { direct, ..BOTH } },
                );
                std::fs::remove_file(&path).unwrap();
            }
        }
    }
}

/// A directory on a real file system: the build's, not one in memory.
fn disk_directory() -> tempfile::TempDir {
    tempfile::tempdir_in(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))).unwrap()
}

#[test]
fn every_engine_moves_the_right_bytes() {
    let directory = disk_directory();
    round_trip(directory.path(), false);
}

#[test]
fn every_engine_moves_the_right_bytes_past_the_page_cache() {
    let directory = disk_directory();
    let probe = directory.path().join("probe");
    std::fs::write(&probe, b"x").unwrap();
    let config = config("psync", 1);
    struct CanOpen<'a>(&'a Path);
    impl Visitor for CanOpen<'_> {
        type Out = bool;
        fn visit<E: Engine>(self, mut engine: E) -> bool {
            engine.open(0, &spec(self.0, 1), OpenMode { direct: true, ..READ }).is_ok()
        }
    }
    if !with_engine("psync", &config, CanOpen(&probe)) {
        skip!("no O_DIRECT on the file system of {}", directory.path().display());
    }
    round_trip(directory.path(), true);
}

#[test]
fn the_end_of_a_file_is_a_short_read_and_then_nothing() {
    struct AtEnd<'a>(&'a Path, &'a str);
    impl Visitor for AtEnd<'_> {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let mut buffers = Buffers::new(BLOCK, 4);
            engine.open(0, &spec(self.0, 10_000), READ).unwrap();
            engine.prepare(&buffers.layout).unwrap();
            // 10000 = 2 × 4096 + 1808
            let last = perform(&mut engine, &buffers.unit(1, Operation::Read, 8192, 4096));
            assert_eq!(last, Ok(1808), "{}", self.1);
            assert_eq!(buffers.of(1)[..1808], content(0, 10_000)[8192..]);
            let beyond = perform(&mut engine, &buffers.unit(2, Operation::Read, 12288, 4096));
            assert_eq!(beyond, Ok(0), "{}", self.1);
            // The units before the end are complete even if they were submitted together with those at the end.
            let mut bytes = Vec::new();
            let offsets = [0, 4096, 8192, 12288];
            run_all(&mut engine, &mut buffers, Operation::Read, &offsets, 4, |offset, outcome, _| {
                bytes.push((offset, outcome));
            });
            bytes.sort_by_key(|&(offset, _)| offset);
            assert_eq!(
                bytes,
                [(0, Ok(4096)), (4096, Ok(4096)), (8192, Ok(1808)), (12288, Ok(0))],
                "{}",
                self.1
            );
        }
    }
    let directory = disk_directory();
    let path = directory.path().join("f");
    std::fs::write(&path, content(0, 10_000)).unwrap();
    for variant in VARIANTS {
        let config = EngineConfig::new(options_of(variant), 4);
        with_engine(variant.0, &config, AtEnd(&path, variant.0));
    }
}

#[test]
fn a_full_device_and_a_closed_file_are_errors_of_the_unit() {
    struct Failing<'a>(&'a str);
    impl Visitor for Failing<'_> {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let buffers = Buffers::new(BLOCK, 4);
            engine.open(0, &spec(Path::new("/dev/full"), 1 << 20), BOTH).unwrap();
            engine.prepare(&buffers.layout).unwrap();
            let write = buffers.unit(3, Operation::Write, 0, 4096);
            // Linux AIO refuses devices whose driver has only the plain write method.
            let refused = if self.0 == "libaio" { libc::EINVAL } else { libc::ENOSPC };
            assert_eq!(perform(&mut engine, &write), Err(Errno(refused)), "{}", self.0);
            // Reading it gives zeros: the engine goes on after an error.
            assert_eq!(
                perform(&mut engine, &buffers.unit(2, Operation::Read, 0, 4096)),
                Ok(4096),
                "{}",
                self.0
            );
            let trim = buffers.unit(1, Operation::Trim, 0, 4096);
            assert_eq!(perform(&mut engine, &trim), Err(Errno(libc::ENOTTY)), "{}", self.0);
            engine.close(0).unwrap();
            for operation in [Operation::Write, Operation::Read, Operation::Trim, Operation::Sync] {
                let unit = buffers.unit(0, operation, 0, 4096);
                assert_eq!(perform(&mut engine, &unit), Err(Errno(libc::EBADF)), "{} {operation:?}", self.0);
            }
        }
    }
    for variant in VARIANTS {
        // This device cannot be mapped, and does not support uncached transfers (EOPNOTSUPP).
        if variant.0 != "mmap" && !is_uncached(variant) {
            with_engine(variant.0, &EngineConfig::new(options_of(variant), 4), Failing(variant.0));
        }
    }
}

#[test]
fn mmap_without_an_open_file_is_an_error_of_the_unit() {
    struct Closed;
    impl Visitor for Closed {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let buffers = Buffers::new(BLOCK, 1);
            engine.prepare(&buffers.layout).unwrap();
            for operation in [Operation::Write, Operation::Read, Operation::Trim, Operation::Sync] {
                let unit = buffers.unit(0, operation, 0, 4096);
                assert_eq!(perform(&mut engine, &unit), Err(Errno(libc::EBADF)), "{operation:?}");
            }
        }
    }
    with_engine("mmap", &config("mmap", 1), Closed);
}

#[test]
fn regular_files_have_no_trim() {
    struct Trim<'a>(&'a Path);
    impl Visitor for Trim<'_> {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let buffers = Buffers::new(BLOCK, 1);
            engine.open(0, &spec(self.0, 4096), BOTH).unwrap();
            engine.prepare(&buffers.layout).unwrap();
            let unit = buffers.unit(0, Operation::Trim, 0, 4096);
            assert_eq!(perform(&mut engine, &unit), Err(Errno(libc::ENOTTY)));
        }
    }
    let directory = disk_directory();
    for variant in VARIANTS {
        with_engine(variant.0, &EngineConfig::new(options_of(variant), 1), Trim(&directory.path().join("f")));
    }
}

#[test]
fn the_null_engine_answers_with_the_length() {
    struct Null;
    impl Visitor for Null {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let mut buffers = Buffers::new(BLOCK, 8);
            engine.open(0, &spec(Path::new("no/such/file"), 0), READ).unwrap();
            engine.prepare(&buffers.layout).unwrap();
            let mut count = 0;
            run_all(&mut engine, &mut buffers, Operation::Read, &scattered(100, 4096), 3, |_, outcome, _| {
                assert_eq!(outcome, Ok(4096));
                count += 1;
            });
            assert_eq!(count, 100);
            assert_eq!(perform(&mut engine, &buffers.unit(0, Operation::Sync, 0, 0)), Ok(0));
        }
    }
    for depth in [1, 8] {
        with_engine("null", &config("null", depth), Null);
    }
}
