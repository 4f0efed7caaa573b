//! Reads of data that was never written, which a device need not read at all.

use crate::numbers::{bytes, percent};
use crate::{Finding, Kind, Sampled, Subject};

/// The share of zeros from which most reads may be answered without the medium.
const MOSTLY_ZERO: f64 = 0.5;
/// A quarter of a file without space changes its figures more than runs differ.
const HOLES: f64 = 0.25;

pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    let words = "Blocks that were never written, or that were trimmed, were read: storage answers them without its \
                 medium, faster than data. Fill it first to see what reads cost.";
    if let Some((size, allocated)) = subject.allocated
        && (allocated as f64) < (1.0 - HOLES) * size as f64
    {
        let evidence =
            format!("of the {} of the file, {} are stored", bytes(size as f64), bytes(allocated as f64));
        return vec![Finding { kind: Kind::Unwritten, words: words.to_owned(), evidence }];
    }
    match subject.sampled {
        Some(Sampled { blocks, zero, .. }) if blocks > 0 && zero as f64 >= MOSTLY_ZERO * blocks as f64 => {
            let share = percent(100.0 * zero as f64 / blocks as f64);
            let evidence =
                format!("{zero} of {blocks} blocks at random places have nothing but zeros ({share})");
            vec![Finding { kind: Kind::Unwritten, words: words.to_owned(), evidence }]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_and_holes() {
        let of = |zero, allocated| {
            findings(&Subject {
                sampled: Some(Sampled { blocks: 64, zero, compressed: 1.0 }),
                allocated: Some((1 << 30, allocated)),
                ..Subject::default()
            })
        };
        assert_eq!(of(31, 1 << 30), []);
        assert!(of(32, 1 << 30)[0].evidence.starts_with("32 of 64 blocks"));
        assert_eq!(of(0, 800 << 20), []);
        assert!(of(0, 700 << 20)[0].evidence.contains("of the 1 GiB of the file, 700 MiB are stored"));
    }
}
