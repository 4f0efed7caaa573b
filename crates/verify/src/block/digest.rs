//! Checksums of blocks, by libraries that use the processor's instructions for them.
//!
//! The variants of the CRCs (initial value, bit order, inversion at the end) are those of fio 3.33:
//!
//! | kind | polynomial | bits | initial value | at the end |
//! |---|---|---|---|---|
//! | crc64 | 0xad93d23594c935a9 | reflected | 0 | as it is |
//! | crc32 | 0x04c11db7 | not reflected | 0 | as it is |
//! | crc32c | 0x1edc6f41 | reflected | all ones | not inverted |
//! | crc16 | 0x8005 | reflected | 0 | as it is |
//! | crc7 | 0x09 | not reflected | 0 | as it is |
//!
//! `xxhash` is XXH32 with seed 1. The words of a SHA-1 sum are stored in the machine's byte order, little endian.
//! SHA-256 and SHA-512 fill half of the space that is reserved for them; the rest is zeros.

use super::kind::Kind;
use crc_fast::CrcAlgorithm;
use sha2::digest::OutputSizeUser;
use xxhash_rust::xxh32::Xxh32;

/// The most bytes that a checksum takes.
const LARGEST: usize = 128;
const XXHASH_SEED: u32 = 1;

const CRC7: crc::Crc<u8, crc::Table<16>> = crc::Crc::<u8, crc::Table<16>>::new(&crc::CRC_7_MMC);

/// A checksum as it is stored.
#[derive(Clone)]
pub(super) struct Digest {
    bytes: [u8; LARGEST],
    length: usize,
}

impl Digest {
    fn new(kind: Kind, sum: &[u8]) -> Digest {
        let mut bytes = [0; LARGEST];
        bytes[..sum.len()].copy_from_slice(sum);
        Digest { bytes, length: kind.digest_size() }
    }

    /// The bytes that are stored behind the header.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The checksum of a block, as it is stored; empty for kinds without a checksum.
pub fn checksum(kind: Kind, block: &[u8]) -> Vec<u8> {
    digest(kind, &[block]).as_bytes().to_vec()
}

/// The checksum over these pieces, as if they were contiguous; empty for kinds without a checksum.
pub(super) fn digest(kind: Kind, pieces: &[&[u8]]) -> Digest {
    let stored = |sum: &[u8]| Digest::new(kind, sum);
    match kind {
        Kind::Meta | Kind::Pattern | Kind::PatternHeader | Kind::Null => stored(&[]),
        Kind::Crc64 => stored(&crc(CrcAlgorithm::Crc64Redis, pieces).to_le_bytes()),
        // The library's CRC of `cksum` is this one, inverted.
        Kind::Crc32 => stored(&(!crc(CrcAlgorithm::Crc32Cksum, pieces) as u32).to_le_bytes()),
        Kind::Crc32c => stored(&(!crc(CrcAlgorithm::Crc32Iscsi, pieces) as u32).to_le_bytes()),
        Kind::Crc16 => stored(&(crc(CrcAlgorithm::Crc16Arc, pieces) as u16).to_le_bytes()),
        Kind::Crc7 => {
            let mut sum = CRC7.digest();
            pieces.iter().for_each(|piece| sum.update(piece));
            stored(&[sum.finalize()])
        }
        Kind::Xxhash => {
            let mut sum = Xxh32::new(XXHASH_SEED);
            pieces.iter().for_each(|piece| sum.update(piece));
            stored(&sum.digest().to_le_bytes())
        }
        Kind::Sha1 => {
            let mut words = hash::<sha1::Sha1>(pieces);
            words.as_mut_slice().chunks_mut(4).for_each(<[u8]>::reverse);
            stored(&words)
        }
        Kind::Md5 => stored(&hash::<md5::Md5>(pieces)),
        Kind::Sha256 => stored(&hash::<sha2::Sha256>(pieces)),
        Kind::Sha512 => stored(&hash::<sha2::Sha512>(pieces)),
        Kind::Sha3_224 => stored(&hash::<sha3::Sha3_224>(pieces)),
        Kind::Sha3_256 => stored(&hash::<sha3::Sha3_256>(pieces)),
        Kind::Sha3_384 => stored(&hash::<sha3::Sha3_384>(pieces)),
        Kind::Sha3_512 => stored(&hash::<sha3::Sha3_512>(pieces)),
    }
}

/// What computes checksums on this processor, by their kinds. (xxhash and sha3 have one implementation.)
pub fn implementations() -> [(&'static str, String); 2] {
    #[cfg(target_arch = "x86_64")]
    let has_sha = std::arch::is_x86_feature_detected!("sha");
    #[cfg(target_arch = "aarch64")]
    let has_sha = std::arch::is_aarch64_feature_detected!("sha2");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let has_sha = false;
    let sha = if has_sha { "the processor's instructions" } else { "portable" };
    [("crc", crc_fast::get_calculator_target(CrcAlgorithm::Crc32Iscsi)), ("sha1, sha256", sha.to_owned())]
}

fn crc(algorithm: CrcAlgorithm, pieces: &[&[u8]]) -> u64 {
    if let [piece] = pieces {
        return crc_fast::checksum(algorithm, piece);
    }
    let mut sum = crc_fast::Digest::new(algorithm);
    pieces.iter().for_each(|piece| sum.update(piece));
    sum.finalize()
}

fn hash<D: sha2::digest::Digest + OutputSizeUser>(pieces: &[&[u8]]) -> sha2::digest::Output<D> {
    let mut sum = D::new();
    pieces.iter().for_each(|piece| sum.update(piece));
    sum.finalize()
}

/// The checksum in a header, over the bytes before it.
pub(super) fn header_checksum(bytes: &[u8]) -> u32 {
    !(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32)
}
