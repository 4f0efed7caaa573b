//! A campaign of corruption: every kind of `verify` in several shapes, and every way in which storage damages data.
//!
//! All damage that can be found is found and named, and correct data is never reported. The counts form the table of
//! kinds and damage in docs/verification.md, which must contain exactly that table.

mod corruption;

use corruption::{BLOCK, BLOCKS, Corrupt, Image, all};
use iolite_content::{Compress, Fill, PatternPiece};
use iolite_verify::block::{Diagnosis, Expected, HeaderFormat, Kind, Mismatch, Spec, Verifier, Write};

/// How many damages of each sort are made for the table,
const SAMPLES: u64 = 700;
/// and for the other shapes.
const FEW: u64 = 12;

fn pattern() -> Fill {
    Fill::Pattern(vec![PatternPiece::Bytes(b"\xabxy".to_vec()), PatternPiece::Offset])
}

fn spec(kind: Kind) -> Spec {
    let fill = if kind.compares_pattern() { pattern() } else { Fill::Random };
    Spec { fill, ..Spec::new(kind) }
}

/// Checks all blocks, or only those that were changed. Returns all wrong intervals, and how many blocks they are in.
fn check(spec: &Spec, image: &Image, bytes: &[u8], known: bool, all: bool) -> (Vec<Mismatch>, u64) {
    let mut verifier = Verifier::new(spec);
    let (mut wrong, mut count) = (Vec::new(), 0);
    let blocks = bytes.chunks(BLOCK).zip(image.new.chunks(BLOCK)).take(BLOCKS).enumerate();
    for (number, (block, right)) in blocks {
        // Blocks that are right are checked once, below.
        if !all && block == right {
            continue;
        }
        let writes = [image.write(number)];
        let writes: &[Write] = if known { &writes } else { &[] };
        let expected = Expected { offset: (number * BLOCK) as u64, writes };
        let mut from = 0;
        while let Err(mismatch) = verifier.check_from(from, block, &expected) {
            from = (mismatch.offset - mismatch.block_offset) as usize + mismatch.length;
            wrong.push(*mismatch);
        }
        count += u64::from(from > 0);
    }
    (wrong, count)
}

/// How often a sort of damage was found, and how often it was made.
fn found(spec: &Spec, sort: &Corrupt, samples: u64, known: bool) -> (u64, u64) {
    let mut image = Image::new(spec, 0);
    let mut found = 0;
    for sample in 0..samples {
        if sample % 50 == 49 {
            image = Image::new(spec, sample);
        }
        let damage = (sort.inject)(&image, spec, sample);
        assert_ne!(damage.bytes, image.new, "{}: nothing was damaged", sort.name);
        let (wrong, count) = check(spec, &image, &damage.bytes, known, false);
        found += u64::from(count > 0);
        assert!(count <= damage.blocks, "{}: {count} blocks are called wrong", sort.name);
        for mismatch in wrong {
            let is_right = (damage.is_right)(spec, known, &mismatch);
            assert!(is_right, "{} sample {sample}, {known}, {spec:?}\n{}", sort.name, mismatch.text("f"));
        }
    }
    (found, samples)
}

/// The table of the results when the writes are known.
fn table() -> String {
    let sorts = all();
    let names: Vec<&str> = sorts.iter().map(|sort| sort.name).collect();
    let mut table = format!("| type | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    let mut kinds: Vec<Kind> = Kind::all().collect();
    kinds.sort_by_key(|kind| (!kind.has_digest(), !kind.has_header(), *kind == Kind::Meta, kind.name()));
    for kind in kinds {
        let cells = sorts.iter().map(|sort| match found(&spec(kind), sort, SAMPLES, true) {
            (0, _) => "no",
            (found, samples) if found == samples => "yes",
            _ => "part",
        });
        table += &format!("| {} | {} |\n", kind.name(), cells.collect::<Vec<_>>().join(" | "));
    }
    table
}

#[test]
fn the_page_has_the_table_of_detected_damage() {
    let table = table();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verification.md");
    let text = std::fs::read_to_string(page).expect("docs/verification.md");
    assert!(text.contains(&table), "docs/verification.md should contain this table:\n\n{table}");
}

/// Other layouts, intervals, places of the header and contents, with known and unknown writes.
#[test]
fn damage_is_diagnosed_in_every_layout() {
    let compress = Some(Compress { percentage: 50, chunk: 512 });
    for kind in Kind::all() {
        let base = || spec(kind);
        let shapes = [
            Spec { format: HeaderFormat::V333, ..base() },
            Spec { interval: 1024, ..base() },
            Spec { offset: 600, ..base() },
            Spec { interval: 1024, offset: 512, format: HeaderFormat::V333, ..base() },
            Spec { compress, ..base() },
            Spec { fill: pattern(), ..base() },
        ];
        for spec in shapes {
            for sort in all() {
                for known in [true, false] {
                    found(&spec, &sort, FEW, known);
                }
            }
        }
    }
}

#[test]
fn intact_data_is_not_reported() {
    for kind in Kind::all() {
        let spec = spec(kind);
        let image = Image::new(&spec, 0);
        for known in [true, false] {
            assert_eq!(check(&spec, &image, &image.new, known, true), (vec![], 0), "{}", kind.name());
        }
    }
}

/// A block of an earlier write is wrong, but only a check that knows the writes detects it.
#[test]
fn a_lost_write_is_found_only_if_the_writes_are_known() {
    let spec = spec(Kind::Xxhash);
    let image = Image::new(&spec, 0);
    let mut bytes = image.new.clone();
    bytes[..BLOCK].copy_from_slice(&image.old[..BLOCK]);
    assert_eq!(check(&spec, &image, &bytes, false, true), (vec![], 0));
    let (wrong, _) = check(&spec, &image, &bytes, true, true);
    let expected = image.write(0).sequence.unwrap();
    let lost = Diagnosis::Older { found: 0, expected, passes: None, in_flight_above: None };
    assert_eq!(wrong[0].diagnosis, lost);
}

/// A pattern resembles itself some repetitions further on. Still, an overwritten part must not be mistaken for a move.
#[test]
fn damage_in_a_pattern_is_not_a_move() {
    let bytes = |bytes: &[u8]| PatternPiece::Bytes(bytes.to_vec());
    let thirty: Vec<u8> = (1..=30).collect();
    let overwritten = all().into_iter().find(|sort| sort.name == "overwritten bytes").unwrap();
    for pieces in [
        vec![bytes(b"\xde\xad\xbe\xef")],
        vec![bytes(b"abcdefgh")],
        vec![bytes(&thirty)],
        vec![bytes(&[7])],
        vec![PatternPiece::Offset],
    ] {
        for kind in [Kind::Pattern, Kind::PatternHeader, Kind::Crc32c] {
            let spec = Spec { fill: Fill::Pattern(pieces.clone()), ..Spec::new(kind) };
            for known in [true, false] {
                assert_eq!(found(&spec, &overwritten, SAMPLES / 10, known), (SAMPLES / 10, SAMPLES / 10));
            }
        }
    }
}
