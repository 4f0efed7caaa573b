//! Data that is smaller on storage that compresses.

use crate::numbers::percent;
use crate::{Finding, Kind, Sampled, Subject};

/// The share of their size to which blocks compress: at half, storage that compresses reads and writes half of the bytes.
const HALF: f64 = 0.5;
/// The share of zeros from which the finding is another one (`unwritten.rs`).
const MOSTLY_ZERO: f64 = 0.5;

pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    match subject.sampled {
        Some(Sampled { blocks, zero, compressed })
            if blocks > 0 && (zero as f64) < MOSTLY_ZERO * blocks as f64 && compressed <= HALF =>
        {
            vec![Finding {
                kind: Kind::Compressible,
                words: "The data that was read compresses well: if the storage compresses, it moved fewer bytes than these \
                        figures count, and other data will be slower."
                    .to_owned(),
                evidence: format!(
                    "{blocks} blocks at random places compress to {} of their size (zlib)",
                    percent(100.0 * compressed)
                ),
            }]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_is_much() {
        let of = |zero, compressed| {
            findings(&Subject {
                sampled: Some(Sampled { blocks: 64, zero, compressed }),
                ..Subject::default()
            })
        };
        assert!(of(0, 0.5)[0].evidence.starts_with("64 blocks at random places compress to 50%"));
        assert_eq!(of(0, 0.51), []);
        assert_eq!(of(32, 0.1), [], "they are unwritten");
    }
}
