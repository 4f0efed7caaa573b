//! `buffer_pattern`: bytes written as text, numbers or a file, in any order: `0xdeadface"abcd"-12'file'%o`.

use crate::{JobOptions, PatternPiece};

/// No buffer is larger than this, so the end of a longer pattern would never be used.
const MOST_BYTES: usize = 1 << 24;

/// Parses a pattern. A `'file'` is read here.
///
/// Hexadecimal digits are bytes in the order in which they are written (an odd number of digits gets a leading 0). A
/// decimal number is stored lowest byte first, without the zero bytes above its value; a negative number takes four
/// bytes.
///
/// # Errors
/// A piece is malformed, a file cannot be read, or the pattern is empty or too long.
pub fn pattern(text: &str) -> Result<Vec<PatternPiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '"' => {
                let (bytes, after) = quoted(&rest[1..], '"')?;
                push_bytes(&mut pieces, bytes.as_bytes())?;
                after
            }
            '\'' => {
                let (path, after) = quoted(&rest[1..], '\'')?;
                push_bytes(&mut pieces, &read_file(path)?)?;
                after
            }
            '%' => {
                let after =
                    rest.strip_prefix("%o").ok_or("the only format is %o, the offset of the block")?;
                pieces.push(PatternPiece::Offset);
                after
            }
            _ => number(&mut pieces, rest)?,
        };
    }
    if pieces.is_empty() { Err("is empty".to_owned()) } else { Ok(pieces) }
}

fn quoted(text: &str, quote: char) -> Result<(&str, &str), String> {
    match text.split_once(quote) {
        Some((inside, after)) if !inside.is_empty() => Ok((inside, after)),
        Some(_) => Err(format!("nothing stands between {quote} and {quote}")),
        None => Err(format!("the closing {quote} is missing")),
    }
}

fn read_file(path: &str) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MOST_BYTES as u64).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot read {path}: {error}"))?;
    if bytes.is_empty() { Err(format!("{path} is empty")) } else { Ok(bytes) }
}

/// Appends the number at the start of the text, and returns the rest of the text.
fn number<'a>(pieces: &mut Vec<PatternPiece>, text: &'a str) -> Result<&'a str, String> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = end_of_digits(hex, |c| c.is_ascii_hexdigit());
        if end == 0 {
            return Err("0x has no hexadecimal digit behind it".to_owned());
        }
        let digits = if end % 2 == 0 { hex[..end].to_owned() } else { format!("0{}", &hex[..end]) };
        let nibble =
            |byte: u8| (byte as char).to_digit(16).expect("only hexadecimal digits were taken") as u8;
        let bytes: Vec<u8> =
            digits.as_bytes().chunks(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])).collect();
        push_bytes(pieces, &bytes)?;
        return Ok(&hex[end..]);
    }
    // As strtol(3) reads it: after blanks and a sign.
    let signed = text.trim_start();
    let digits = signed.strip_prefix(['-', '+']).unwrap_or(signed);
    let end = text.len() - digits.len() + end_of_digits(digits, |c| c.is_ascii_digit());
    if end == text.len() - digits.len() {
        return Err(format!("\"{text}\" is neither a number, 0x…, \"text\", 'file' nor %o"));
    }
    let value: i32 = text[..end]
        .trim_start()
        .parse()
        .map_err(|_| format!("{} does not fit into 32 bits", &text[..end]))?;
    let bytes = value.to_le_bytes();
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    push_bytes(pieces, &bytes[..used])?;
    Ok(&text[end..])
}

/// The end of a number: the first character that is not one of its digits, or the `0x` of the next number.
fn end_of_digits(text: &str, is_digit: impl Fn(char) -> bool) -> usize {
    let end = text.find(|c| !is_digit(c)).unwrap_or(text.len());
    // The digit before an x belongs to it.
    let next = text[end..].starts_with(['x', 'X']) && end > 1 && text[..end].ends_with('0');
    if next { end - 1 } else { end }
}

/// Appends bytes to the last piece if that consists of bytes, otherwise as a new piece.
fn push_bytes(pieces: &mut Vec<PatternPiece>, bytes: &[u8]) -> Result<(), String> {
    match pieces.last_mut() {
        Some(PatternPiece::Bytes(before)) if before.len() + bytes.len() > MOST_BYTES => {
            Err(format!("is longer than {MOST_BYTES} bytes"))
        }
        Some(PatternPiece::Bytes(before)) => {
            before.extend_from_slice(bytes);
            Ok(())
        }
        _ => {
            pieces.push(PatternPiece::Bytes(bytes.to_owned()));
            Ok(())
        }
    }
}

/// The files that the patterns of this option name, in all texts that were given for it. Their contents have been read
/// already.
pub fn files_in_patterns(job: &JobOptions, option: &str) -> Vec<String> {
    let given = job.given_global.iter().chain(&job.given).filter(|(name, _)| name == option);
    given.flat_map(|(_, text)| files_in(text)).map(str::to_owned).collect()
}

/// The texts between apostrophes. (Within quotation marks they may be data, but count as paths all the same.)
fn files_in(text: &str) -> impl Iterator<Item = &str> {
    text.split('\'').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_patterns_are_found() {
        let found = |text| files_in(text).collect::<Vec<_>>();
        assert_eq!(found("0xdead'/etc/passwd'\"x\"'b'%o"), ["/etc/passwd", "b"]);
        assert_eq!(found("0xdeadface"), [""; 0]);
    }

    use proptest::prelude::*;

    /// The bytes were compared with files that the reference program wrote.
    #[test]
    fn bytes_as_written() {
        for (text, bytes) in [
            ("\"abcd\"", &b"abcd"[..]),
            ("\"abc\"123", b"abc\x7b"),
            ("0x1234", b"\x12\x34"),
            ("0x123", b"\x01\x23"),
            ("0xDEADface01", b"\xde\xad\xfa\xce\x01"),
            ("0x0", b"\0"),
            ("0x0001", b"\0\x01"),
            ("0", b"\0"),
            ("123", b"\x7b"),
            ("010", b"\x0a"),
            ("256", b"\0\x01"),
            ("65535", b"\xff\xff"),
            ("65536", b"\0\0\x01"),
            ("-1", b"\xff\xff\xff\xff"),
            ("-129", b"\x7f\xff\xff\xff"),
            ("-2147483648", b"\0\0\0\x80"),
            ("12\"a\"0x10", b"\x0ca\x10"),
            ("\"a\"-12", b"a\xf4\xff\xff\xff"),
            ("\"abcd\"-120xdeadface", b"abcd\xf4\xff\xff\xff\xde\xad\xfa\xce"),
            ("0x120x34", b"\x12\x34"),
            ("0x1200x34", b"\x01\x20\x34"),
            ("10x5", b"\x01\x05"),
            ("+5", b"\x05"),
            ("1+2 3 -1", b"\x01\x02\x03\xff\xff\xff\xff"),
        ] {
            assert_eq!(pattern(text), Ok(vec![PatternPiece::Bytes(bytes.to_vec())]), "{text}");
        }
    }

    #[test]
    fn offsets_and_files() {
        let bytes = |bytes: &[u8]| PatternPiece::Bytes(bytes.to_vec());
        assert_eq!(pattern("0xff%o\"z\""), Ok(vec![bytes(b"\xff"), PatternPiece::Offset, bytes(b"z")]));
        let path = std::env::temp_dir().join(format!("iolite-pattern-{}", std::process::id()));
        std::fs::write(&path, "file\nbytes").unwrap();
        let read = pattern(&format!("'{}'\"z\"", path.display()));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read, Ok(vec![bytes(b"file\nbytesz")]));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("", "is empty"),
            ("abc", "neither a number"),
            ("12x", "neither a number"),
            ("-0x10", "neither a number"),
            ("\"open", "closing \" is missing"),
            ("'no/such/file'", "cannot read no/such/file"),
            ("0x", "no hexadecimal digit"),
            ("%x", "only format is %o"),
            ("2147483648", "32 bits"),
            ("\"a\" \"b\"", "neither a number"),
            ("1+", "neither a number"),
            ("0x12 0x34", "neither a number"),
        ] {
            let error = pattern(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in "[-0-9a-fx\"%oé ]{0,30}") {
            let _ = pattern(&text);
        }

        #[test]
        fn reads_back_hexadecimal(bytes in prop::collection::vec(any::<u8>(), 1..40)) {
            let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            prop_assert_eq!(pattern(&format!("0x{text}")), Ok(vec![PatternPiece::Bytes(bytes)]));
        }
    }
}
