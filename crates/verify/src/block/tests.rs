//! Written blocks pass the check, others do not.

use super::*;
use iolite_content::{Fill, PatternPiece};

pub(super) fn pattern() -> Fill {
    Fill::Pattern(vec![PatternPiece::Bytes(b"\xabxy".to_vec()), PatternPiece::Offset])
}

/// A kind with the content it needs.
pub(super) fn spec(kind: Kind) -> Spec {
    let fill = if kind.compares_pattern() { pattern() } else { Fill::Random };
    Spec { fill, ..Spec::new(kind) }
}

pub(super) fn identity(offset: u64, sequence: u64) -> Identity {
    let seed = 0x1234_5678_9abc_def0 ^ sequence << 17;
    Identity { offset, sequence, seed, seconds: 1_700_000_000, nanoseconds: 123_456_789, job: 3 }
}

pub(super) fn block(spec: &Spec, size: usize, identity: &Identity) -> Vec<u8> {
    let mut block = vec![0xee; size];
    Stamper::new(spec).stamp(&mut block, identity);
    block
}

/// Everything that can be known of a write.
pub(super) fn write(identity: &Identity) -> Write {
    Write { sequence: Some(identity.sequence), seed: Some(identity.seed), job: Some(identity.job) }
}

/// Kinds, layouts, intervals, and places of the header.
fn variants() -> impl Iterator<Item = Spec> {
    let shapes = [(0, 0), (1024, 0), (0, 1000), (512, 200), (3000, 0)];
    let fills = [None, Some(Fill::Zeros), Some(pattern())];
    Kind::all().flat_map(move |kind| {
        let fills = fills.clone();
        shapes.into_iter().flat_map(move |(interval, offset)| {
            fills.clone().into_iter().flat_map(move |fill| {
                [HeaderFormat::V342, HeaderFormat::V333].into_iter().map(move |format| {
                    let base = spec(kind);
                    let fill = if kind.compares_pattern() { None } else { fill.clone() };
                    Spec { interval, offset, format, fill: fill.unwrap_or(base.fill.clone()), ..base }
                })
            })
        })
    })
}

#[test]
fn written_blocks_pass_the_check() {
    for spec in variants() {
        let written = identity(12_288, 70_000);
        let block = block(&spec, 4096, &written);
        let writes = [write(&identity(0, 1)), write(&written)];
        let mut verifier = Verifier::new(&spec);
        for writes in [&[][..], &writes[1..], &writes] {
            assert_eq!(verifier.check(&block, &Expected { offset: 12_288, writes }), Ok(()), "{spec:?}");
        }
    }
}

/// A reader may use smaller blocks if they consist of complete intervals.
#[test]
fn intervals_can_be_read_one_by_one() {
    let spec = Spec { interval: 512, ..spec(Kind::Crc32c) };
    let block = block(&spec, 8192, &identity(8192, 1));
    let mut verifier = Verifier::new(&spec);
    for (part, offset) in block.chunks(512).zip((8192..).step_by(512)) {
        assert_eq!(verifier.check(part, &Expected { offset, writes: &[] }), Ok(()));
    }
}

/// Checksums of the second block of 4 KiB of a file with `verify_pattern=0xab%o"xyz"`, as fio 3.33 wrote them. (It has
/// other ones for SHA-256 and SHA-512; those here were computed by hand.)
const VECTORS: [(Kind, &str); 14] = [
    (Kind::Md5, "ebfd19b3e1726cb4223a310c6042e96e"),
    (Kind::Sha1, "8258d56e849029fc1f1953fa288d1f58d9565e81"),
    (Kind::Crc64, "d3db3a476f692ebe"),
    (Kind::Crc32, "6de9a80e"),
    (Kind::Crc32c, "a79935a1"),
    (Kind::Xxhash, "194ba236"),
    (Kind::Crc16, "feba"),
    (Kind::Crc7, "29"),
    (Kind::Sha3_224, "83e3f29ddf4699837f542a5c77cfc48a3fcd47c3f2bffac8e5f4a7fd"),
    (Kind::Sha3_256, "b741dd3ccf0bf6d7fb0fd412475bd723ea27b9356bdccfb65121f2f807964d1b"),
    (
        Kind::Sha3_384,
        "d77e9b4dcabe351d3835e3f60389a82fe87bce375152dc67bd172334c91e0da118973c8b5370dbc3e84e70516a534387",
    ),
    (
        Kind::Sha3_512,
        "3e8640ce4d2b1145f40888ee8bf5e165133c9114d4a0457cf926a088d536da79\
         5d66b3dba654cc81df5d96913541ad1c569863394a96fddb7225e22b5b776528",
    ),
    (
        Kind::Sha256,
        "0685b4867e3b98b77d471166660d7b6f1e098277a343aea1c7a3664f72614633\
         0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        Kind::Sha512,
        "500fdc1411ce3811bd56d890259b6ac3b4131ac80799c10fc663bbd7580cc50a18d85c043987044373d0dc8e7b8f3cbb\
         bc4f7537c482d2d0bc011d9ed730f27b\
         0000000000000000000000000000000000000000000000000000000000000000\
         0000000000000000000000000000000000000000000000000000000000000000",
    ),
];

fn vector_spec(kind: Kind, format: HeaderFormat) -> Spec {
    let bytes = |bytes: &[u8]| PatternPiece::Bytes(bytes.to_vec());
    let fill = Fill::Pattern(vec![bytes(b"\xab"), PatternPiece::Offset, bytes(b"xyz")]);
    Spec { fill, format, ..Spec::new(kind) }
}

#[test]
fn checksums_are_those_of_the_peer() {
    for (kind, sum) in VECTORS {
        let spec = vector_spec(kind, HeaderFormat::V333);
        let block = block(&spec, 4096, &Identity { offset: 4096, ..Identity::default() });
        assert_eq!(fault::hex(&block[40..40 + kind.digest_size()]), sum, "{}", kind.name());
    }
}

#[test]
fn the_old_header_is_that_of_the_peer() {
    let nanoseconds = 0x074d_0e39;
    let written = Identity { offset: 4096, sequence: 1, nanoseconds, job: 1, ..Identity::default() };
    let block = block(&vector_spec(Kind::Md5, HeaderFormat::V333), 4096, &written);
    let header = "caac0200001000000000000000000000001000000000000000000000390e4d0701000100ade2188e";
    assert_eq!(fault::hex(&block[..40]), header);
}

/// Field by field, as the layout of 3.42 is described.
#[test]
fn the_new_header_has_its_fields_in_their_places() {
    let written = Identity {
        offset: 0x0102_0304_0506_0708,
        sequence: 0x1112_1314_1516_1718,
        seed: 0x2122_2324_2526_2728,
        seconds: 0x3132_3334,
        nanoseconds: 0x0142_4344,
        job: 0x5152,
    };
    let block = block(&Spec::new(Kind::Sha1), 4096, &written);
    let fields = "caac8110\
                  00100000\
                  2827262524232221\
                  0807060504030201\
                  34333231\
                  44434201\
                  1817161514131211\
                  5251\
                  0000";
    assert_eq!(fault::hex(&block[..44]), fields);
    let sum = header::Header::load(&block[..48]).unwrap();
    assert_eq!((sum.sequence, sum.job, sum.offset), (written.sequence, written.job, written.offset));
}

#[test]
fn invalid_verification_specs_are_refused() {
    let small = Spec { interval: 512, ..Spec::new(Kind::Sha512) };
    assert_eq!(small.validate(4096), Ok(()));
    let text = |spec: &Spec, block: usize| spec.validate(block).unwrap_err().to_string();
    let small = Spec { interval: 128, ..small };
    assert_eq!(
        text(&small, 4096),
        "intervals of 128 bytes are too small for verify=sha512: header and checksum take 176"
    );
    assert!(text(&Spec::new(Kind::Md5), 64).contains("64 bytes are too small"));
    for (offset, good) in [(0, true), (48, false), (63, false), (64, true), (448, true), (449, false)] {
        let spec = Spec { interval: 512, offset, ..Spec::new(Kind::Md5) };
        assert_eq!(spec.validate(4096).is_ok(), good, "{offset}");
    }
    let misplaced = Spec { interval: 512, offset: 48, ..Spec::new(Kind::Md5) };
    assert!(text(&misplaced, 4096).contains("verify_offset=48 does not fit"), "{}", text(&misplaced, 4096));
    assert!(text(&misplaced, 4096).contains("0, or 64 to 448"), "{}", text(&misplaced, 4096));
    let bare = Spec { fill: Fill::Random, ..Spec::new(Kind::Pattern) };
    assert_eq!(text(&bare, 4096), "verify=pattern needs a verify_pattern");
    assert_eq!(Spec::new(Kind::Null).validate(1), Ok(()));
}

/// Only required fields are compared, and several writes may be valid.
#[test]
fn only_required_header_fields_are_compared() {
    let written = identity(0, 7);
    let check = |spec: &Spec, writes: &[Write]| {
        let block = block(spec, 4096, &written);
        Verifier::new(spec).check(&block, &Expected { offset: 0, writes }).map_err(|mismatch| mismatch.field)
    };
    let spec = spec(Kind::Crc32c);
    let known = write(&written);
    let other = Write { sequence: Some(8), ..known };
    assert_eq!(check(&spec, &[known]), Ok(()));
    assert_eq!(check(&spec, &[other]), Err(Field::Sequence));
    assert_eq!(check(&spec, &[other, known]), Ok(()));
    assert_eq!(check(&spec, &[Write { seed: Some(1), ..known }]), Err(Field::Seed));
    assert_eq!(check(&spec, &[Write { job: Some(9), ..known }]), Err(Field::Job));
    assert_eq!(check(&spec, &[Write::default()]), Ok(()));
    assert_eq!(check(&Spec { check_sequence: false, ..spec.clone() }, &[other]), Ok(()));
    assert_eq!(check(&Spec { check_seed: false, ..spec }, &[Write { seed: Some(1), ..known }]), Ok(()));
}

#[test]
fn the_pattern_starts_anew_where_it_is_asked_to() {
    let spec = Spec { pattern_interval: 1000, ..spec(Kind::Pattern) };
    let block = block(&spec, 4096, &identity(8192, 0));
    for start in [0u64, 1000, 2000, 3000, 4000] {
        let at = start as usize;
        assert_eq!(&block[at..at + 3], b"\xabxy");
        assert_eq!(block[at + 3..at + 11], (8192 + start).to_le_bytes());
    }
}

#[test]
fn a_report_describes_the_damage_in_words() {
    let spec = spec(Kind::Crc32c);
    let (here, there) = (identity(4096, 2), identity(8192, 3));
    let moved = block(&spec, 4096, &there);
    let expected = [write(&here)];
    let check = |block: &[u8]| {
        let expected = Expected { offset: 4096, writes: &expected };
        Verifier::new(&spec).check(block, &expected).unwrap_err().text("dir/f")
    };
    assert_eq!(
        check(&moved),
        "verify: bad header offset 8192, wanted 4096 at file dir/f offset 4096, length 4096 \
         (requested block: offset=4096, length=4096)\n  \
         looks like: a misdirected block: it belongs to offset 8192\n  \
         holds: write 3 of job 3, for offset 8192, made 2023-11-14 22:13:20.123456789 UTC\n  \
         expected: write 2 of job 3 with seed 123456789ab8def0"
            .to_owned()
            + &check(&moved)[check(&moved).find("\n  differs").unwrap()..]
    );
    let mut flipped = block(&spec, 4096, &here);
    flipped[1000] ^= 8;
    let text = check(&flipped);
    for part in [
        "crc32c: verify failed at file dir/f offset 4096, length 4096",
        ", flags=8)\n       Expected CRC: ",
        "\n       Received CRC: ",
        "\n  looks like: a bit flip: bit 3 of the byte at offset 5096\n",
        "\n  differs in: 1 byte and 1 bit, from offset 5096 to 5096",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

/// Data of another program cannot be generated again. A single wrong bit is found even so.
#[test]
fn a_wrong_bit_in_data_of_others() {
    for (kind, format, offset) in [
        (Kind::Crc32c, HeaderFormat::V342, 0),
        (Kind::Md5, HeaderFormat::V333, 200),
        (Kind::Sha3_256, HeaderFormat::V342, 300),
        (Kind::Xxhash, HeaderFormat::V333, 0),
    ] {
        let spec = Spec { format, offset, ..Spec::new(kind) };
        let theirs = Spec { fill: Fill::Pattern(vec![PatternPiece::Bytes(vec![9, 1, 7])]), ..spec.clone() };
        let right = block(&theirs, 2048, &identity(4096, 3));
        let mut verifier = Verifier::new(&spec);
        let expected = Expected { offset: 4096, writes: &[] };
        assert_eq!(verifier.check(&right, &expected), Ok(()));
        for at in [offset + format.size(), 2047, 1000, 120, if offset > 0 { 5 } else { 199 }] {
            let mut wrong = right.clone();
            wrong[at] ^= 0x20;
            let found = verifier.check(&wrong, &expected).unwrap_err();
            let wanted = Diagnosis::BitFlip { offset: 4096 + at as u64, bit: 5 };
            assert_eq!(found.diagnosis, wanted, "{} {at}", kind.name());
        }
    }
}

/// The diagnosis names it, whether or not the writer of the block is known.
#[test]
fn a_damaged_header_before_intact_data() {
    for (kind, format, offset) in [
        (Kind::Crc32c, HeaderFormat::V342, 0),
        (Kind::Md5, HeaderFormat::V333, 200),
        (Kind::Sha512, HeaderFormat::V342, 300),
        (Kind::Crc16, HeaderFormat::V333, 0),
    ] {
        let spec = Spec { format, offset, interval: 1024, ..Spec::new(kind) };
        let here = identity(4096, 3);
        let right = block(&spec, 2048, &here);
        let known = [write(&here)];
        for writes in [&known[..], &[]] {
            let mut verifier = Verifier::new(&spec);
            let mut diagnosis = |block: &[u8]| {
                let found = verifier.check(block, &Expected { offset: 4096, writes }).unwrap_err();
                (found.field, found.diagnosis)
            };
            // Magic number, seed, time: none of these can be repaired by flipping one bit.
            for damaged in [0..2, 8..16, 0..30] {
                let mut wrong = right.clone();
                wrong[offset..][damaged.clone()].iter_mut().for_each(|byte| *byte ^= 0xff);
                let field = if damaged.start == 0 { Field::Magic } else { Field::HeaderChecksum };
                assert_eq!(
                    diagnosis(&wrong),
                    (field, Diagnosis::DamagedHeader),
                    "{} {damaged:?}",
                    kind.name()
                );
                // Then more than the header is damaged.
                wrong[900..904].iter_mut().for_each(|byte| *byte ^= 0xff);
                assert_ne!(diagnosis(&wrong).1, Diagnosis::DamagedHeader, "{} {damaged:?}", kind.name());
            }
        }
    }
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn any_spec() -> impl Strategy<Value = Spec> {
        let kinds: Vec<Kind> = Kind::all().collect();
        let sizes = prop::sample::select(vec![0usize, 96, 100, 512, 1024, 4096]);
        let formats = prop::sample::select(vec![HeaderFormat::V342, HeaderFormat::V333]);
        let fills = prop::sample::select(vec![Fill::Random, Fill::Zeros, pattern()]);
        (prop::sample::select(kinds), sizes.clone(), sizes, formats, fills).prop_map(
            |(kind, interval, offset, format, fill)| Spec {
                interval,
                offset,
                format,
                fill,
                ..Spec::new(kind)
            },
        )
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        /// Any bytes can be checked with any settings, and the report can be printed.
        #[test]
        fn any_bytes_are_checked(
            spec in any_spec(), bytes in prop::collection::vec(any::<u8>(), 0..2000), offset: u64,
        ) {
            let writes = [Write { sequence: Some(offset), seed: Some(offset ^ 5), job: Some(1) }];
            for writes in [&[][..], &writes] {
                let offset = offset >> 1;
                if let Err(mismatch) = Verifier::new(&spec).check(&bytes, &Expected { offset, writes }) {
                    prop_assert!(!mismatch.text("f").is_empty());
                }
            }
        }

        /// The same with bytes that look like a block in most places.
        #[test]
        fn damaged_blocks_are_checked(
            spec in any_spec(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
            cut in 0usize..64,
        ) {
            let spec = Spec { fill: if spec.kind.compares_pattern() { pattern() } else { spec.fill.clone() }, ..spec };
            if spec.validate(4096).is_err() {
                return Ok(());
            }
            let right = block(&spec, 4096, &identity(4096, 1));
            let mut bytes = right.clone();
            for (index, value) in changes {
                let at = index.index(bytes.len());
                bytes[at] = value;
            }
            let expected = Expected { offset: 4096, writes: &[write(&identity(4096, 1))] };
            let checked = Verifier::new(&spec).check(&bytes, &expected);
            prop_assert!(bytes != right || checked.is_ok());
            if let Err(mismatch) = checked {
                prop_assert!(!mismatch.text("f").is_empty());
                let differences = mismatch.differences.expect("the writes are known");
                prop_assert!(differences.bytes > 0 || mismatch.kind == Kind::Meta);
            }
            bytes.truncate(4096 - cut * 64);
            let _ = Verifier::new(&spec).check(&bytes, &expected);
        }
    }
}
