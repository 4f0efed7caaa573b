//! The methods of `verify`, and their numbers on disk.

use serde::{Deserialize, Serialize};

/// How written data is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the algorithms")]
pub enum Kind {
    /// Only the header.
    Meta,
    Md5,
    Crc64,
    Crc32,
    Crc32c,
    Crc16,
    Crc7,
    Sha1,
    Sha256,
    Sha512,
    Sha3_224,
    Sha3_256,
    Sha3_384,
    Sha3_512,
    Xxhash,
    /// A pattern behind a header.
    PatternHeader,
    /// Only a pattern.
    Pattern,
    /// Data is written, but not checked.
    Null,
}

/// Number on disk, name, bytes behind the header.
const TABLE: [(Kind, u8, &str, usize); 18] = [
    (Kind::Meta, 1, "meta", 0),
    (Kind::Md5, 2, "md5", 16),
    (Kind::Crc64, 3, "crc64", 8),
    (Kind::Crc32, 4, "crc32", 4),
    (Kind::Crc32c, 5, "crc32c", 4),
    (Kind::Crc16, 7, "crc16", 2),
    (Kind::Crc7, 8, "crc7", 1),
    (Kind::Sha256, 9, "sha256", 64),
    (Kind::Sha512, 10, "sha512", 128),
    (Kind::Sha3_224, 11, "sha3-224", 28),
    (Kind::Sha3_256, 12, "sha3-256", 32),
    (Kind::Sha3_384, 13, "sha3-384", 48),
    (Kind::Sha3_512, 14, "sha3-512", 64),
    (Kind::Xxhash, 15, "xxhash", 4),
    (Kind::Sha1, 16, "sha1", 20),
    (Kind::PatternHeader, 17, "pattern_hdr", 0),
    (Kind::Pattern, 18, "pattern", 0),
    (Kind::Null, 19, "null", 0),
];

/// `crc32c-intel` is the same as `crc32c` and is stored as `crc32c`. Other programs may store this number.
const CRC32C_INTEL: u8 = 6;

impl Kind {
    /// All kinds.
    pub fn all() -> impl Iterator<Item = Kind> {
        TABLE.iter().map(|row| row.0)
    }

    /// The kind that `verify=NAME` means; `None` for unknown names and for `0`.
    pub fn from_name(name: &str) -> Option<Kind> {
        if name == "crc32c-intel" {
            return Some(Kind::Crc32c);
        }
        TABLE.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// The kind with this number in a header.
    pub fn from_number(number: u8) -> Option<Kind> {
        if number == CRC32C_INTEL {
            return Some(Kind::Crc32c);
        }
        TABLE.iter().find(|row| row.1 == number).map(|row| row.0)
    }

    fn row(self) -> &'static (Kind, u8, &'static str, usize) {
        TABLE.iter().find(|row| row.0 == self).expect("every kind has its row")
    }

    /// Its name as a value of the option.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// Its number on disk.
    pub fn number(self) -> u8 {
        self.row().1
    }

    /// Bytes that the checksum takes behind the header.
    pub fn digest_size(self) -> usize {
        self.row().3
    }

    /// Whether blocks have headers.
    pub fn has_header(self) -> bool {
        !matches!(self, Kind::Pattern | Kind::Null)
    }

    /// Whether there is a checksum of the data.
    pub fn has_digest(self) -> bool {
        self.digest_size() > 0
    }

    /// Whether the data itself is compared with the pattern.
    pub fn compares_pattern(self) -> bool {
        matches!(self, Kind::Pattern | Kind::PatternHeader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_find_their_kind() {
        for kind in Kind::all() {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
            assert_eq!(Kind::from_number(kind.number()), Some(kind));
        }
        assert_eq!(Kind::from_name("crc32c-intel"), Some(Kind::Crc32c));
        assert_eq!(Kind::from_number(6), Some(Kind::Crc32c));
        assert_eq!(Kind::from_name("0"), None);
        assert_eq!(Kind::from_number(0), None);
        assert_eq!(Kind::from_number(20), None);
    }
}
