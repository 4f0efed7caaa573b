//! Block devices: sizes, trims, and direct I/O, on a loop device made for the test.

use crate::common::*;
use iolite_engine::{Engine, EngineConfig, FileKind, OpenMode};
use iolite_engines::Visitor;
use iolite_host::{Machine, ThisMachine};
use iolite_testing::or_skip;
use iolite_types::Operation;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Small, because mmap with `direct` flushes the device after every block.
const SIZE: u64 = 1 << 20;

/// A loop device over its own file; removed when dropped.
struct LoopDevice {
    path: PathBuf,
    image: tempfile::NamedTempFile,
    /// Keeps the device attached; the kernel clears it at its last close, also when the test is killed.
    _held: File,
}

impl LoopDevice {
    /// Creates a loop device, or returns why that is impossible (no root, no losetup, no loop driver).
    fn new() -> Result<LoopDevice, String> {
        let directory = env!("CARGO_TARGET_TMPDIR");
        let image = tempfile::NamedTempFile::new_in(directory).unwrap();
        image.as_file().set_len(SIZE).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(image.path()).output();
        match made {
            Ok(made) if made.status.success() => {
                let path = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
                let held = File::open(&path);
                let detached = Command::new("losetup").arg("--detach").arg(&path).status();
                assert!(detached.is_ok_and(|status| status.success()), "{} stays attached", path.display());
                Ok(LoopDevice { path, image, _held: held.unwrap() })
            }
            other => Err(format!("no loop device ({other:?})")),
        }
    }
}

/// Writes the device full, trims every other block, and reads everything back.
struct TrimSome<'a> {
    path: &'a Path,
    name: &'a str,
    direct: bool,
}

impl Visitor for TrimSome<'_> {
    type Out = ();
    fn visit<E: Engine>(self, mut engine: E) {
        let mut buffers = Buffers::new(BLOCK, 8);
        let mode = OpenMode { direct: self.direct, create: false, ..BOTH };
        engine.open(0, &spec(self.path, SIZE), mode).unwrap();
        engine.prepare(&buffers.layout).unwrap();
        let blocks = scattered(SIZE / BLOCK as u64, BLOCK as u64);
        run_all(&mut engine, &mut buffers, Operation::Write, &blocks, 4, |offset, outcome, _| {
            assert_eq!(outcome, Ok(BLOCK as u64), "{} write {offset}", self.name);
        });
        assert_eq!(perform(&mut engine, &buffers.unit(0, Operation::Sync, 0, 0)), Ok(0));
        let is_trimmed = |offset: u64| (offset / BLOCK as u64) % 2 == 1;
        let trims: Vec<u64> = blocks.iter().copied().filter(|&offset| is_trimmed(offset)).collect();
        run_all(&mut engine, &mut buffers, Operation::Trim, &trims, 4, |offset, outcome, _| {
            assert_eq!(outcome, Ok(BLOCK as u64), "{} trim {offset}", self.name);
        });
        let mut checked = 0;
        run_all(&mut engine, &mut buffers, Operation::Read, &blocks, 4, |offset, outcome, bytes| {
            assert_eq!(outcome, Ok(BLOCK as u64), "{} read {offset}", self.name);
            let expected = if is_trimmed(offset) { vec![0; BLOCK] } else { content(offset, BLOCK) };
            assert!(bytes == expected, "{} content at {offset}", self.name);
            checked += 1;
        });
        assert_eq!(checked, blocks.len());
        engine.close(0).unwrap();
    }
}

#[test]
fn every_engine_trims_and_transfers_on_a_device() {
    let device = or_skip!(LoopDevice::new());
    assert_eq!(ThisMachine::new().usable_file(&device.path), Ok((FileKind::Block, Some(SIZE))));
    for variant in VARIANTS {
        for direct in [false, true] {
            if is_uncached(variant) {
                continue; // block devices know no uncached transfers
            }
            let config = EngineConfig { direct, ..EngineConfig::new(options_of(variant), 8) };
            let name = format!("{} {} direct={direct}", variant.0, variant.1);
            with_engine(variant.0, &config, TrimSome { path: &device.path, name: &name, direct });
        }
    }
    // The image lost the trimmed range, so the request reached the image.
    use std::os::unix::fs::MetadataExt;
    let allocated = device.image.as_file().metadata().unwrap().blocks() * 512;
    assert!(allocated < SIZE * 3 / 4, "{allocated} bytes are still allocated");
}

#[test]
fn a_trim_past_the_end_is_an_error_of_the_unit() {
    struct PastEnd<'a>(&'a Path);
    impl Visitor for PastEnd<'_> {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let buffers = Buffers::new(BLOCK, 1);
            engine.open(0, &spec(self.0, SIZE), OpenMode { create: false, ..BOTH }).unwrap();
            engine.prepare(&buffers.layout).unwrap();
            let outcome = perform(&mut engine, &buffers.unit(0, Operation::Trim, SIZE, 4096));
            assert!(outcome.is_err(), "{outcome:?}");
        }
    }
    let device = or_skip!(LoopDevice::new());
    for name in ["psync", "libaio", "io_uring"] {
        with_engine(name, &config(name, 1), PastEnd(&device.path));
    }
}
