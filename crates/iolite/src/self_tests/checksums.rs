//! `--crctest`: how fast each checksum of `verify` is calculated.

use super::{Write, black_box, chosen, speed};
use iolite_verify::block::{Kind, checksum};

/// Bytes that are summed at a time.
const BLOCK: usize = 128 << 10;

/// The checksums, in the order in which users know the list.
const KINDS: [Kind; 14] = [
    Kind::Md5,
    Kind::Crc64,
    Kind::Crc32,
    Kind::Crc32c,
    Kind::Crc16,
    Kind::Crc7,
    Kind::Sha1,
    Kind::Sha256,
    Kind::Sha512,
    Kind::Xxhash,
    Kind::Sha3_224,
    Kind::Sha3_256,
    Kind::Sha3_384,
    Kind::Sha3_512,
];

/// The table.
pub fn measure(names: &[String]) -> Result<String, String> {
    let table = KINDS.map(|kind| (kind.name(), kind));
    let block: Vec<u8> = (0..BLOCK).map(|byte| ((byte * 37) >> 3) as u8).collect();
    let mut text = String::new();
    for (name, kind) in chosen("--crctest", &table, names)? {
        let rate = speed(BLOCK, || {
            black_box(checksum(*kind, black_box(&block)));
        });
        // Writing to a String does not fail.
        let _ = writeln!(text, "{:<15} {rate:8.2} MiB/sec", format!("{name}:"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_checksum_is_measured() {
        let with_sum = Kind::all().filter(|kind| kind.has_digest());
        assert!(with_sum.into_iter().all(|kind| KINDS.contains(&kind)));
    }
}
