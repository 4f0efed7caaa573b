//! What a sample of a batch is: `io`, `file`, or a number of bytes.

use super::{Notes, integer};
use crate::typed::Sample;

/// The most bytes of a sample. Many of them can be added up.
const MOST: i128 = 1 << 50;

/// Parses what a sample is.
///
/// # Errors
/// The text is neither a word nor a number of bytes.
pub fn sample(text: &str, kb_base: u32, notes: &mut Notes) -> Result<Sample, String> {
    match text.trim() {
        "io" => Ok(Sample::Io),
        "file" => Ok(Sample::File),
        size if size.starts_with(|first: char| first.is_ascii_digit() || first == '(') => {
            match integer(size, kb_base, notes)? {
                bytes @ 1..=MOST => Ok(Sample::Bytes(bytes as u64)),
                other => Err(super::outside(other, 1, MOST)),
            }
        }
        other => Err(format!("\"{other}\" is not io, file or a number of bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_sizes() {
        let read = |text: &str| sample(text, 1024, &mut Notes::default());
        assert_eq!(read("io"), Ok(Sample::Io));
        assert_eq!(read("file"), Ok(Sample::File));
        assert_eq!(read("114660"), Ok(Sample::Bytes(114_660)));
        assert_eq!(read("2m"), Ok(Sample::Bytes(2 << 20)));
        assert!(read("files").unwrap_err().contains("not io, file or a number of bytes"));
        assert!(read("0").is_err() && read("").is_err() && read("2000t").is_err());
    }
}
