//! Power failures while a verified job runs on a block device: flushed writes have to survive, any part of the rest
//! may, and a disk that only pretends to flush is detected.
//!
//! `IOLITE_TEST_KILLS=200 cargo test -p iolite --test system power_cut::` sets the number of repetitions.

use crate::common::devices::Loop;
use crate::common::program::Finished;
use crate::common::{Program, scratch};
use iolite_testing::volatile::VolatileDisk;
use iolite_testing::{Luck, or_skip};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::Duration;

const SIZE: usize = 4 << 20;

/// A function that damages a file.
type Damage<'a> = &'a dyn Fn(&mut [u8]);

/// Runs a job on a new disk, cuts the power at a random moment, and checks the required writes. The error says why such
/// a disk cannot be created here.
fn power_cut(block: &str, job: &str, lies: bool, luck: &mut Luck) -> Result<Finished, String> {
    let dir = scratch();
    let disk = VolatileDisk::new(dir.path(), SIZE, lies)?;
    let device = Loop::on(&disk.path)?;
    let base =
        format!("--name=v --filename={} --bs={block} --direct=1 --verify=crc32c --eta=never", device.path);
    let line = format!("{base} {job} --rw=randwrite --norandommap --time_based --runtime=60 --do_verify=0");
    let mut running = Program::under_test().start(dir.path(), line.split_whitespace());
    // A lying disk keeps writes pending after a flush, so with this many pending writes there was a flush.
    let enough = if lies { 64 } else { 0 };
    running.wait_until("its first writes", |_| disk.pending() > enough);
    std::thread::sleep(Duration::from_millis(luck.below(300)));
    running.signal(libc::SIGKILL);
    running.wait();
    disk.power_cut(|| luck.below(2) == 0);
    let line = format!("{base} --rw=read --verify_state_load=1 --verify_policy=fsynced");
    Ok(Program::under_test().line(dir.path(), &line))
}

fn rounds() -> u64 {
    std::env::var("IOLITE_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

#[test]
fn flushed_data_survives_a_power_failure() {
    let mut luck = Luck::new();
    for (block, job) in [
        ("4k", "--fsync=16 --size=4m"),
        ("4k", "--fdatasync=10 --size=1m --ioengine=libaio --iodepth=8"),
        ("4k", "--fsync=40 --size=512k --ioengine=io_uring --iodepth=16"),
        ("4k", "--sync=1 --size=1m"),
        // The disk receives these writes in pieces and loses some of them.
        ("256k", "--fsync=12 --size=1m"),
        ("256k --verify_interval=4k", "--fsync=12 --size=1m --ioengine=libaio --iodepth=4"),
    ] {
        for _ in 0..rounds() {
            or_skip!(power_cut(block, job, false, &mut luck)).ok();
        }
    }
}

/// After a power failure, an unflushed write may have reached the disk in any of its sectors, but other changes are
/// damage.
#[test]
fn an_unflushed_write_may_be_torn() {
    const MIB: usize = 1 << 20;
    for shape in ["", "--verify_interval=64k", "--verify=md5 --verify_offset=512"] {
        let dir = scratch();
        let base = format!("--name=v --filename=data --size=8m --bs=1m --verify=crc32c {shape}");
        let write = format!("{base} --rw=write --do_verify=0 --verify_state_save=1 --fsync=12");
        let run = |line: &str| Program::under_test().line(dir.path(), line);
        let path = dir.path().join("data");
        run(&write).ok();
        let old = fs::read(&path).unwrap();
        // Writes 0 to 11 are flushed: the first pass, and the first four blocks of the second pass.
        run(&format!("{write} --loops=2")).ok();
        let new = fs::read(&path).unwrap();
        let check = |what: &str, policy: &str, damage: Damage| {
            let mut file = new.clone();
            damage(&mut file);
            fs::write(&path, file).unwrap();
            let line = format!("{base} --rw=read --verify_state_load=1 --verify_policy={policy}");
            let run = run(&line);
            assert!(run.code() <= 1, "{shape}: {what}: {run}");
            run.code() == 0
        };
        let stale = |file: &mut [u8], range: std::ops::Range<usize>| {
            file[range.clone()].copy_from_slice(&old[range]);
        };
        let tail = |file: &mut [u8]| stale(file, 5 * MIB + 65536..6 * MIB);
        let head = |file: &mut [u8]| stale(file, 5 * MIB..6 * MIB - 1024);
        let hole = |file: &mut [u8]| stale(file, 5 * MIB + 70 * 512..5 * MIB + 90 * 512);
        let all = |file: &mut [u8]| stale(file, 5 * MIB..6 * MIB);
        let torn: [(&str, Damage); 4] =
            [("its end", &tail), ("its beginning", &head), ("a hole", &hole), ("all of it", &all)];
        for (what, damage) in torn {
            assert!(check(what, "fsynced", damage), "{shape}: {what}");
            assert!(!check(what, "completed", damage), "{shape}: {what} was acknowledged");
        }
        let bit = |file: &mut [u8]| {
            tail(file);
            file[6 * MIB - 7] ^= 1;
        };
        let header = |file: &mut [u8]| {
            tail(file);
            file[5 * MIB + if shape.contains("offset") { 532 } else { 20 }] ^= 1;
        };
        let within_a_sector = |file: &mut [u8]| stale(file, 5 * MIB + 65536 + 100..6 * MIB);
        let flushed = |file: &mut [u8]| stale(file, 2 * MIB + 65536..3 * MIB);
        let wrong: [(&str, Damage); 4] = [
            ("a bit of the data", &bit),
            ("a bit of the header", &header),
            ("a part of a sector", &within_a_sector),
            ("what was flushed", &flushed),
        ];
        for (what, damage) in wrong {
            assert!(!check(what, "fsynced", damage), "{shape}: {what}");
        }
    }
}

#[test]
fn a_disk_that_fakes_flushes_is_detected() {
    let mut luck = Luck::new();
    for job in ["--fsync=16 --size=1m", "--fsync=16 --size=1m --ioengine=libaio --iodepth=4"] {
        or_skip!(power_cut("4k", job, true, &mut luck)).refused().says("verify");
    }
}

/// The simulated disk of these tests works as described.
#[test]
fn unflushed_data_is_lost() {
    let dir = scratch();
    let disk = or_skip!(VolatileDisk::new(dir.path(), 1 << 20, false));
    let file = OpenOptions::new().read(true).write(true).open(&disk.path).unwrap();
    file.write_all_at(b"flushed", 0).unwrap();
    file.sync_all().unwrap();
    file.write_all_at(b"not yet", 0).unwrap();
    file.write_all_at(b"lucky", 4096).unwrap();
    assert_eq!(disk.pending(), 2);
    let mut luck = [false, true].into_iter();
    disk.power_cut(|| luck.next().unwrap());
    drop(file);
    let after = fs::read(&disk.path).unwrap();
    assert_eq!((&after[..7], &after[4096..4101]), (&b"flushed"[..], &b"lucky"[..]));
    let device = or_skip!(Loop::on(&disk.path));
    let file = OpenOptions::new().write(true).open(&device.path).unwrap();
    file.write_all_at(&[7; 4096], 8192).unwrap();
    file.sync_all().unwrap();
    assert_eq!(disk.pending(), 0, "a flush of the device is one of the file");
    drop(file);
    drop(device);
    disk.power_cut(|| false);
    assert_eq!(fs::read(&disk.path).unwrap()[8192], 7);
}
