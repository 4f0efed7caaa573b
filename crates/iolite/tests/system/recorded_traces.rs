//! Replays traces that blktrace recorded on a real machine (crates/trace/tests/data), and compares with fio.

use crate::common::devices::{Loop, image};
use crate::common::trace::{system_calls, whole_calls};
use crate::common::{Program, scratch, words};
use iolite_testing::{or_skip, skip};
use iolite_trace::blk::{self, BlkReader, BlkRecord, ByteOrder};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data").join(name)
}

/// Converts the trace to the other byte order.
fn swap(from: &Path, to: &Path) {
    let bytes = fs::read(from).unwrap();
    let mut reader = BlkReader::new(&bytes[..], "t");
    let (mut record, mut other) = (BlkRecord::default(), Vec::new());
    while reader.read(&mut record).unwrap() {
        blk::write(&mut other, ByteOrder::Big, &record).unwrap();
    }
    fs::write(to, other).unwrap();
}

/// The I/Os that blkparse shows as queued, as texts. A flush is a sync followed by its data, which fio omits.
fn queued(is_peer: bool) -> Vec<String> {
    let mut queued = Vec::new();
    for line in fs::read_to_string(recorded("queued.txt")).unwrap().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [sector, sectors] = [2, 3].map(|place| words[place].parse::<u64>().unwrap());
        let (kind, has_flush) = words[1].strip_prefix('F').map_or((words[1], false), |kind| (kind, true));
        if has_flush {
            queued.push("sync".to_owned());
        }
        if sectors > 0 && !(has_flush && is_peer) {
            let name = match &kind[..1] {
                "R" => "read",
                "W" => "write",
                _ => "trim",
            };
            queued.push(format!("{name} {} {}", sector * 512, sectors * 512));
        }
    }
    queued
}

/// The I/Os on this device in a log of strace.
fn issued(log: &str, device: &str) -> Vec<String> {
    let on_device = format!("<{device}");
    let of_call = |call: &String| {
        let (name, rest) = call.split_once('(')?;
        let (_, rest) = rest.split_once(&on_device)?;
        // Data may contain anything, so the numbers are parsed from the end.
        let (arguments, _) = rest.rsplit_once(" = ")?;
        let mut numbers = arguments.trim_end().trim_end_matches(')').rsplit(", ");
        match name {
            "fsync" => Some("sync".to_owned()),
            "ioctl" if rest.contains("BLKDISCARD") => {
                let (_, range) = arguments.split_once("BLKDISCARD, [")?;
                let (offset, length) = range.split_once("])")?.0.split_once(", ")?;
                Some(format!("trim {offset} {length}"))
            }
            "pread64" | "pwrite64" => {
                let (offset, length) = (numbers.next()?, numbers.next()?);
                Some(format!("{} {offset} {length}", &name[1..name.len() - 2]))
            }
            _ => None,
        }
    };
    whole_calls(log).iter().filter_map(of_call).collect()
}

#[test]
fn a_replay_issues_what_was_queued_as_the_peer_does() {
    let dir = scratch();
    let device = or_skip!(Loop::on(&image(dir.path(), "image", 64 << 20)));
    let swapped = dir.path().join("swapped");
    swap(&recorded("both.dump"), &swapped);
    for trace in [&recorded("both.dump"), &swapped] {
        let line = format!(
            "--name=p --read_iolog={} --replay_redirect={} --replay_no_stall=1",
            trace.display(),
            device.path
        );
        for program in Program::all() {
            let calls = "pread64,pwrite64,fsync,ioctl";
            let Some((finished, log)) = system_calls(&program, dir.path(), calls, &words(&line)) else {
                skip!("strace may not trace here")
            };
            finished.ok();
            let (seen, queued) = (issued(&log, &device.path), queued(program.is_peer));
            if program.is_peer {
                // On a busy machine, strace may lose calls of fio, but the recorded ones are in order.
                let mut left = queued.iter();
                assert!(seen.iter().all(|call| left.any(|expected| expected == call)), "{seen:?} {queued:?}");
                assert!(!seen.is_empty());
            } else {
                assert_eq!(seen, queued);
            }
        }
    }
}

#[test]
fn a_summary_has_the_figures_of_blkparse() {
    let dir = scratch();
    let of = |name: &str| -> Value {
        let line = format!("trace --json {}", recorded(name).display());
        crate::common::json::strict(&Program::under_test().line(dir.path(), &line).ok().stdout).expect("JSON")
    };
    let both = of("both.dump");
    assert_eq!(both["format"], "blktrace");
    assert_eq!((&both["ios"], &both["syncs"]), (&Value::from(85), &Value::from(14)));
    assert_eq!(both["read"]["bytes"], (120 + 125) * 1024);
    assert_eq!(both["write"]["ios"], 44);
    assert_eq!(both["trim"]["bytes"], 512 * 1024);
    assert_eq!(both["depth"]["max"], 5);
    let names: Vec<&str> =
        both["files"].as_array().unwrap().iter().filter_map(|file| file["name"].as_str()).collect();
    assert_eq!(names, ["253:0", "254:0"]);
    assert_eq!(of("nullb0.blktrace.0")["files"].as_array().unwrap().len(), 1);
}

/// Writes the trace with a damaged record: `value` replaces the number at offset `at` of the first record of a read.
fn damaged(to: &Path, at: usize, value: u32) -> u64 {
    let mut bytes = fs::read(recorded("both.dump")).unwrap();
    let mut start = 0;
    for number in 1.. {
        let word = |at: usize| u32::from_le_bytes(bytes[start + at..start + at + 4].try_into().unwrap());
        let is_queued = word(28) & 0xffff == blk::action::QUEUE && word(28) & blk::category::NOTIFY == 0;
        if is_queued && word(28) & blk::category::READ != 0 {
            bytes[start + at..start + at + 4].copy_from_slice(&value.to_le_bytes());
            fs::write(to, bytes).unwrap();
            return number;
        }
        start += blk::RECORD_BYTES + (word(44) >> 16) as usize;
    }
    unreachable!("there are reads in it")
}

#[test]
fn a_damaged_length_does_not_make_files_grow() {
    let dir = scratch();
    let number = damaged(&dir.path().join("trace"), 24, 0xc000_1000);
    let line = "--name=p --read_iolog=trace --replay_redirect=target --replay_skip=trim";
    Program::under_test()
        .line(dir.path(), line)
        .refused()
        .says(&format!("trace: record {number}: a read of 3221229568 bytes"))
        .says("bs=3221229568 allows it");
    assert!(!dir.path().join("target").exists());
    // On a device, an offset that is too large is reported with its record, too.
    let device = or_skip!(Loop::on(&image(dir.path(), "image", 64 << 20)));
    let number = damaged(&dir.path().join("trace"), 16, 0x4000_0000);
    let line = format!("--name=p --read_iolog=trace --replay_redirect={}", device.path);
    Program::under_test()
        .line(dir.path(), &line)
        .refused()
        .says(&format!("trace: record {number} reaches byte 549755817984 of {}", device.path));
}
