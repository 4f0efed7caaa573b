//! The program finds and classifies damage to verified files, for every type and every local engine.
//! (`verify/tests/campaign.rs` does the same for many more kinds of damage, on blocks in memory.)
//!
//! Each case is a job with its own file, and one run does all cases.

use crate::common::{Program, scratch};
use crate::verify::TYPES;
use std::fs;
use std::path::Path;

const BLOCK: usize = 4096;
const BASE: &str = "[global]\nsize=64k\nbs=4k\nrw=randwrite\nthread\niodepth=4\n";

/// A kind of damage. It is computed from the file, the file after the first of its two passes, and the file with
/// larger blocks.
struct Sort {
    name: &'static str,
    damage: fn(&mut [u8], &[u8], &[u8]),
    /// The text that the report has to contain.
    says: &'static str,
    /// The types that detect it.
    seen_by: fn(&str) -> bool,
}

const SORTS: &[Sort] = &[
    Sort {
        name: "flip",
        damage: |file, _, _| file[5 * BLOCK + 1000] ^= 8,
        says: "a bit flip: bit 3 of the byte at offset 21480",
        seen_by: |kind| kind != "meta",
    },
    Sort {
        name: "header-flip",
        damage: |file, _, _| file[5 * BLOCK + 20] ^= 8,
        says: "a bit flip: bit 3 of the byte at offset 20500",
        seen_by: |_| true,
    },
    Sort {
        name: "zeroed-sector",
        damage: |file, _, _| file[5 * BLOCK + 1024..][..512].fill(0),
        says: "zeroed sectors: 512 bytes at offset 21504 are zero",
        seen_by: |kind| kind != "meta",
    },
    Sort {
        name: "zeroed-block",
        damage: |file, _, _| file[5 * BLOCK..][..BLOCK].fill(0),
        says: "zeros: never written",
        seen_by: |_| true,
    },
    Sort {
        name: "swapped",
        damage: |file, _, _| {
            let (front, back) = file.split_at_mut(9 * BLOCK);
            front[2 * BLOCK..3 * BLOCK].swap_with_slice(&mut back[..BLOCK]);
        },
        says: "a misdirected block: it belongs to offset ",
        seen_by: |_| true,
    },
    Sort {
        name: "stale",
        // The first write of the second pass is lost. (Without the last one, the run may have ended before it.)
        damage: |file, old, _| {
            let number = |block: &&[u8]| block[32..40].iter().rev().copied().collect::<Vec<u8>>();
            let (first, _) = file.chunks(BLOCK).enumerate().min_by_key(|(_, block)| number(block)).unwrap();
            file[first * BLOCK..][..BLOCK].copy_from_slice(&old[first * BLOCK..][..BLOCK]);
        },
        says: "an older generation: write ",
        seen_by: |kind| kind != "pattern",
    },
    Sort {
        name: "torn",
        damage: |file, old, _| {
            let rest = 5 * BLOCK + 1536..6 * BLOCK;
            file[rest.clone()].copy_from_slice(&old[rest]);
        },
        says: "a torn write: what is before offset 22016 is right, and behind it is other data",
        seen_by: |kind| !["meta", "pattern", "pattern_hdr"].contains(&kind),
    },
    Sort {
        name: "shifted",
        damage: |file, _, _| {
            file.copy_within(5 * BLOCK..6 * BLOCK - 99, 5 * BLOCK + 99);
            file[5 * BLOCK..5 * BLOCK + 99].fill(0xa5);
        },
        says: "shifted data: it has moved by ",
        seen_by: |_| true,
    },
    Sort {
        name: "length",
        damage: |file, _, larger| file[6 * BLOCK..7 * BLOCK].copy_from_slice(&larger[6 * BLOCK..7 * BLOCK]),
        says: "a block of wrong length: it was written as one of 8192 bytes",
        seen_by: |kind| kind != "pattern",
    },
];

/// A job: its type or engine, and the damage to its file.
struct Case {
    name: String,
    options: String,
    kind: &'static str,
    sort: &'static Sort,
}

/// Runs all cases with these options, and returns the content of their files.
fn written(dir: &Path, cases: &[Case], options: &str) -> Vec<Vec<u8>> {
    jobs(dir, cases, &format!("{options}\ndo_verify=0"));
    Program::under_test().line(dir, "jobs.fio").ok();
    let files = cases.iter().map(|case| fs::read(dir.join(&case.name)).unwrap());
    files.collect()
}

fn jobs(dir: &Path, cases: &[Case], options: &str) {
    let mut text = format!("{BASE}{options}\n");
    for case in cases {
        text += &format!("[{0}]\nfilename={0}\n{1}\n", case.name, case.options);
    }
    fs::write(dir.join("jobs.fio"), text).unwrap();
}

/// Writes the files twice, damages them, and checks them.
fn campaign(cases: &[Case]) {
    let dir = scratch();
    let dir = dir.path();
    let old = written(dir, cases, "loops=1");
    let larger = written(dir, cases, "bs=8k");
    let new = written(dir, cases, "loops=2");
    let check = |what: &str| {
        jobs(dir, cases, "loops=2\nverify_only");
        let run = Program::under_test().line(dir, "jobs.fio");
        assert!(run.code() <= 1, "{what}: {}", run.output());
        run.output()
    };
    let clean = check("nothing is wrong");
    assert!(!clean.contains("verify") && !clean.contains("err=84"), "{clean}");
    for (case, ((new, old), larger)) in cases.iter().zip(new.iter().zip(&old).zip(&larger)) {
        let mut file = new.clone();
        (case.sort.damage)(&mut file, old, larger);
        fs::write(dir.join(&case.name), file).unwrap();
    }
    let text = check("damaged");
    for case in cases {
        // The report on a file begins at the line with its name.
        let start = text.find(&format!(" at file {} offset", case.name));
        let report = start.map(|start| text[start..].lines().take(4).collect::<String>());
        let should = case.kind != "null" && (case.sort.seen_by)(case.kind);
        match report {
            Some(report) if should => assert!(report.contains(case.sort.says), "{}: {report}", case.name),
            Some(report) => panic!("{} is reported, but the type cannot detect it: {report}", case.name),
            None => assert!(!should, "{} is not found in {text}", case.name),
        }
    }
}

#[test]
fn every_verify_type_finds_the_damage_it_can() {
    let cases = TYPES.iter().flat_map(|options| {
        let kind = options.split(' ').next().unwrap_or(options);
        // A pattern needs an offset (%o) to tell blocks apart.
        let options = match kind {
            "pattern" | "pattern_hdr" => format!("verify={kind}\nverify_pattern=0xabcd%o\"xyz\""),
            _ => format!("verify={kind}"),
        };
        SORTS.iter().map(move |sort| {
            let name = format!("{kind}.{}", sort.name);
            Case { name, options: options.clone(), kind, sort }
        })
    });
    campaign(&cases.collect::<Vec<_>>());
}

#[test]
fn every_engine_brings_it_to_light() {
    let engines = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "libaio", "io_uring", "posixaio"];
    let cases = engines.iter().flat_map(|engine| {
        SORTS.iter().map(move |sort| Case {
            name: format!("{engine}.{}", sort.name),
            options: format!("ioengine={engine}\nverify=crc32c"),
            kind: "crc32c",
            sort,
        })
    });
    campaign(&cases.collect::<Vec<_>>());
}
