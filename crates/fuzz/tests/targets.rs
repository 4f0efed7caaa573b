//! Everything that parses bytes.

use iolite_content::verify::{Expected, HeaderFormat, Kind, Spec, Verifier, Write};
use iolite_content::{Fill, PatternPiece};
use iolite_fuzz::{Target, run};
use iolite_options::registry;
use iolite_run::verify_state::{Policy, Saved};
use iolite_trace::TraceReader;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

const OPTION_WORDS: &[&str] = &[
    "rw=randrw",
    "bs=",
    "4k/50:8k/50",
    "size=",
    "100%",
    "include ",
    "[global]\n",
    "[",
    "]",
    "$",
    "${HOME}",
    "$ncpus",
    "(4*1024)",
    ",",
    ":",
    "/",
    "%o",
    "\"",
    "'",
    "0x",
    "-",
    "numjobs=",
    "zipf:1.2",
    "time_based",
    "=",
    "\n",
    "ki",
    "1-3",
    "filename=",
    "ioengine=io_uring",
    "verify=md5",
    "verify_pattern=",
];

/// Words that name something on this machine are left out: reading it may not end.
fn is_harmless(word: &OsString) -> bool {
    let text = word.to_string_lossy();
    let value = text.rsplit('=').next().unwrap_or(&text).trim_matches(['\'', '"']);
    *word != "-" && !Path::new(word).exists() && !value.starts_with('/')
}

fn understood(words: &[OsString]) {
    match iolite_options::parse(words, &|_| None, false) {
        Ok(_) => {}
        Err(errors) => {
            assert!(errors.iter().all(|error| !error.to_string().is_empty()) && !errors.is_empty())
        }
    }
}

#[test]
fn command_line() {
    let mut feed = |input: &[u8]| {
        let words = input.split(|&byte| byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
        let words: Vec<OsString> = words.filter(is_harmless).collect();
        understood(&words);
    };
    run(&mut Target { name: "command_line", words: OPTION_WORDS, feed: &mut feed });
}

#[test]
fn job_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("job.fio");
    let mut feed = |input: &[u8]| {
        // What it includes may be anything on this machine.
        let lines = input.split_inclusive(|&byte| byte == b'\n');
        let lines = lines.filter(|line| !line.windows(7).any(|word| word == b"include"));
        let lines = lines.filter(|line| is_harmless(&OsString::from_vec(line.trim_ascii().to_vec())));
        fs::write(&path, lines.collect::<Vec<_>>().concat()).unwrap();
        understood(&[path.clone().into_os_string()]);
        understood(&["--showcmd".into(), path.clone().into_os_string()]);
    };
    run(&mut Target { name: "job_file", words: OPTION_WORDS, feed: &mut feed });
}

/// Each input is given to an option that its first bytes choose.
#[test]
fn value() {
    let names: Vec<&str> = registry::job_options().map(|option| option.name).collect();
    let mut feed = |input: &[u8]| {
        let (choice, value) = input.split_at(input.len().min(2));
        let choice = choice.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        let mut word = OsString::from(format!("--{}=", names[choice % names.len()]));
        word.push(OsString::from_vec(value.to_vec()));
        if is_harmless(&word) {
            understood(&["--name=x".into(), word]);
        }
    };
    run(&mut Target { name: "value", words: OPTION_WORDS, feed: &mut feed });
}

/// Gives a header its checksum, so that what is behind it is looked at.
fn with_checksum(block: &mut [u8], at: usize, size: usize) {
    if let Some(header) = block.get_mut(at..at + size) {
        let (front, sum) = header.split_at_mut(size - 4);
        let right = !crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, front) as u32;
        sum.copy_from_slice(&right.to_le_bytes());
    }
}

/// The first two bytes choose how the rest is checked.
#[test]
fn verified_block() {
    let kinds: Vec<Kind> = Kind::all().collect();
    let pattern = || Fill::Pattern(vec![PatternPiece::Bytes(b"\xab".to_vec()), PatternPiece::Offset]);
    let mut feed = |input: &[u8]| {
        let [kind, shape, block @ ..] = input else { return };
        let kind = kinds[usize::from(*kind) % kinds.len()];
        let fill = if kind.compares_pattern() || shape & 16 != 0 { pattern() } else { Fill::Random };
        let spec = Spec {
            interval: [0, 512, 96, 100][usize::from(shape & 3)],
            offset: [0, 200, 48, 5000][usize::from(shape >> 2 & 3)],
            format: if shape & 32 == 0 { HeaderFormat::V342 } else { HeaderFormat::V333 },
            fill,
            ..Spec::new(kind)
        };
        let mut block = block.to_vec();
        if shape & 128 != 0 {
            with_checksum(&mut block, spec.offset, spec.format.size());
        }
        let writes = [Write { sequence: Some(1), seed: Some(7), job: Some(1) }];
        let writes = if shape & 64 == 0 { &[][..] } else { &writes };
        if let Err(mismatch) = Verifier::new(&spec).check(&block, &Expected { offset: 4096, writes }) {
            assert!(!mismatch.text("f").is_empty());
        }
    };
    run(&mut Target {
        name: "verified_block",
        words: &["\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}"],
        feed: &mut feed,
    });
}

/// Half of the inputs get the length and the checksum that they say they have.
#[test]
fn verify_state() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state");
    let mut feed = |input: &[u8]| {
        let mut bytes = input.to_vec();
        let description = bytes.get(32..40).map(|word| usize::from_le_bytes(word.try_into().unwrap()));
        let (is_mended, end) =
            (bytes.len().is_multiple_of(2), description.and_then(|length| length.checked_add(40)));
        if let Some(end) = end.filter(|&end| is_mended && end <= bytes.len()) {
            let length = bytes.len() as u64;
            bytes[24..32].copy_from_slice(&length.to_le_bytes());
            let sum = xxhash_rust::xxh3::xxh3_64(&bytes[24..end]);
            bytes[16..24].copy_from_slice(&sum.to_le_bytes());
        }
        fs::write(&path, bytes).unwrap();
        let told = Saved::open(&path).and_then(|saved| {
            for file in 0..saved.setup.files.len() as u32 {
                for policy in [Policy::Completed, Policy::Fsynced] {
                    let file = saved.file(file, policy)?;
                    assert_eq!(file.demands().count() as u64, file.summary().demands);
                }
            }
            Ok(())
        });
        if let Err(why) = told {
            assert!(!why.to_string().is_empty());
        }
    };
    run(&mut Target { name: "verify_state", words: &["iolstate", "{", "}", "\"files\":["], feed: &mut feed });
}

/// Reads a trace to its end or to what is wrong with it.
fn traced(input: &[u8]) {
    let told = TraceReader::new(input, "trace").and_then(iolite_trace::summary::summarise);
    if let Err(why) = told {
        assert!(!why.to_string().is_empty());
    }
}

#[test]
fn text_trace() {
    let words = &[
        "fio version 3 iolog\n",
        " read ",
        " write ",
        " add\n",
        " open\n",
        " close\n",
        " wait ",
        " 0\n",
        "trim",
    ];
    run(&mut Target { name: "text_trace", words, feed: &mut |input| traced(input) });
}

#[test]
fn binary_trace() {
    run(&mut Target { name: "binary_trace", words: &["\u{7}tae"], feed: &mut |input| traced(input) });
}

#[test]
fn compressed_log() {
    let mut feed = |input: &[u8]| {
        let mut lines = Vec::new();
        // Damaged or cut, it is an error; whole, it is lines.
        let _ = iolite_logs::inflate::streams(&mut &*input, &mut lines);
    };
    run(&mut Target { name: "compressed_log", words: &[], feed: &mut feed });
}
