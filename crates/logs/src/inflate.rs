//! Decompresses logs, for `--inflate-log`.

use crate::packed::Layout;
use flate2::bufread::ZlibDecoder;
use std::io::{self, BufRead, Read, Write};

/// Writes the lines of all compressed streams in `from` to `to`.
///
/// # Errors
///
/// The errors of reading and writing. If `from` is not a compressed log, or is damaged, an error of the kind
/// `InvalidData`, and if it is cut off, of the kind `UnexpectedEof`, that names the place and the reason.
pub fn streams(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    let mut place = 0;
    while !from.fill_buf()?.is_empty() {
        let mut decoder = ZlibDecoder::new(&mut *from);
        let done = stream(&mut decoder, to);
        place += decoder.total_in();
        done.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                let (kind, reason) = match error.kind() {
                    kind @ io::ErrorKind::UnexpectedEof => (kind, "it ends in the middle".to_owned()),
                    _ => (io::ErrorKind::InvalidData, error.to_string()),
                };
                io::Error::new(kind, format!("not a compressed log at byte {place}: {reason}"))
            }
            _ => error,
        })?;
    }
    Ok(())
}

fn stream(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut block = vec![0; 64 << 10];
    // The bytes that are left of the previous block: less than an entry.
    let mut kept = 0;
    let mut found = None;
    loop {
        let read = fill(from, &mut block[kept..])?;
        let bytes = &block[..kept + read];
        if read == 0 {
            return if kept == 0 { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        let Some(layout) = *found.get_or_insert_with(|| {
            (!looks_like_text(bytes)).then(|| Layout::of(bytes, bytes.len() < block.len()))
        }) else {
            to.write_all(bytes)?;
            continue;
        };
        let mut lines = String::new();
        let mut at = 0;
        while let Some((sample, columns, length)) = layout.take(&bytes[at..]) {
            lines += &sample.line(columns);
            at += length;
        }
        to.write_all(lines.as_bytes())?;
        kept = bytes.len() - at;
        block.copy_within(at..at + kept, 0);
    }
}

/// Reads until the buffer is full or the input ends. Returns the number of bytes.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Text has no zero bytes, but an entry begins with a time in milliseconds, whose highest byte is zero for two million
/// years.
fn looks_like_text(bytes: &[u8]) -> bool {
    bytes.len() >= 8 && bytes.iter().take(8).all(|byte| b"0123456789, \n".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Columns, Sample, packed};

    fn inflated(mut bytes: &[u8]) -> Result<String, String> {
        let mut out = Vec::new();
        streams(&mut bytes, &mut out).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn streams_follow_each_other() {
        let mut entries = Vec::new();
        let columns = Columns { offset: true, ..Columns::default() };
        // More than one block of entries of 48 bytes, which 64 KiB are not a multiple of.
        let samples: Vec<Sample> = (0..5000)
            .map(|number| Sample { time_ms: number, value: number * 3, ..Sample::default() })
            .collect();
        samples.iter().for_each(|sample| packed::put(&mut entries, sample, columns));
        let text = "12, 0, 4096, 1, 2, 3\n";
        let file =
            [packed::compress(&entries), packed::compress(b""), packed::compress(text.as_bytes())].concat();
        let expected: String = samples.iter().map(|sample| sample.line(columns)).collect();
        assert_eq!(inflated(&file), Ok(expected + text));
        assert_eq!(inflated(b""), Ok(String::new()));
    }

    #[test]
    fn invalid_compressed_logs_are_reported_with_their_place() {
        let message = inflated(b"hello, this is not a log").unwrap_err();
        assert!(message.starts_with("not a compressed log at byte "), "{message}");
        let good = packed::compress(&[7; 40]);
        let message = inflated(&[&good[..], &good[..good.len() / 2]].concat()).unwrap_err();
        assert!(message.contains("it ends in the middle"), "{message}");
        let message = inflated(&packed::compress(&[0; 33])).unwrap_err();
        assert!(message.contains("it ends in the middle"), "{message}");
    }
}
