//! Gathers whole records of a trace that arrives piece by piece.

use crate::blk::{self, ByteOrder};
use crate::text::LONGEST_LINE;
use std::io::{self, ErrorKind, Read};

/// The bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Passes on the data of a nonblocking source in whole lines or records. So a reader gets [`ErrorKind::WouldBlock`]
/// only between two of them. When the source ends, the rest is passed on as it is.
#[derive(Debug)]
pub struct WholeRecords<S> {
    source: S,
    chunk: Box<[u8]>,
    /// Data that has been read. A first part of it may have been passed on already.
    bytes: Vec<u8>,
    /// The number of bytes that have been passed on.
    given: usize,
    /// The number of bytes that may be passed on.
    whole: usize,
    ended: bool,
    /// Whether the trace is binary, as soon as that is known.
    is_binary: Option<bool>,
}

impl<S: Read> WholeRecords<S> {
    /// Gathers the records of `source`, which is at the beginning of a trace.
    pub fn new(source: S) -> Self {
        WholeRecords {
            source,
            chunk: vec![0; CHUNK].into(),
            bytes: Vec::new(),
            given: 0,
            whole: 0,
            ended: false,
            is_binary: None,
        }
    }

    /// Whether a read would not block: there is data, or the end of the trace.
    ///
    /// # Errors
    ///
    /// The errors of the source, except for [`ErrorKind::WouldBlock`].
    pub fn has_some(&mut self) -> io::Result<bool> {
        match self.gather() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// Reads until there is data to pass on.
    fn gather(&mut self) -> io::Result<()> {
        while self.given == self.whole && !self.ended {
            self.bytes.drain(..self.given);
            (self.given, self.whole) = (0, 0);
            let read = self.source.read(&mut self.chunk);
            match read {
                Ok(count) => {
                    self.ended = count == 0;
                    self.bytes.extend_from_slice(&self.chunk[..count]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            self.whole = if self.ended { self.bytes.len() } else { self.whole() };
        }
        Ok(())
    }

    /// The length of the whole lines or records at the beginning of the bytes. Errors in them are left to the reader.
    fn whole(&mut self) -> usize {
        let bytes = &self.bytes[..];
        if self.is_binary.is_none() {
            self.is_binary = bytes.first_chunk().map(|magic| ByteOrder::of_magic(*magic).is_some());
        }
        match self.is_binary {
            None => 0,
            Some(true) => {
                let mut end = 0;
                while let Some(length) =
                    blk::length_of(&bytes[end..]).filter(|length| end + length <= bytes.len())
                {
                    end += length.max(1);
                }
                end
            }
            Some(false) => match bytes.iter().rposition(|&byte| byte == b'\n') {
                Some(last) => last + 1,
                None if bytes.len() as u64 >= LONGEST_LINE => bytes.len(),
                None => 0,
            },
        }
    }
}

impl<S: Read> Read for WholeRecords<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.gather()?;
        let count = buffer.len().min(self.whole - self.given);
        buffer[..count].copy_from_slice(&self.bytes[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blk::BlkRecord;
    use crate::{TraceError, TraceReader};

    /// A source that returns pieces, and would block between two of them.
    struct Pieces(Vec<Vec<u8>>, bool);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let Some(piece) = (!self.0.is_empty()).then(|| self.0.remove(0)) else { return Ok(0) };
            buffer[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    /// Reads a trace that arrives in pieces of `size` bytes. Returns the number of records, and the error.
    fn read(trace: &[u8], size: usize) -> (u64, Option<String>) {
        let mut input = WholeRecords::new(Pieces(trace.chunks(size).map(<[u8]>::to_vec).collect(), false));
        while !input.has_some().unwrap() {}
        let mut reader = TraceReader::new(input, "t").unwrap();
        let mut count = 0;
        loop {
            match reader.next_record() {
                Ok(Some(_)) => count += 1,
                Ok(None) => return (count, None),
                Err(error) if error.is_nothing_yet() => {}
                Err(error) => return (count, Some(TraceError::to_string(&error))),
            }
        }
    }

    #[test]
    fn pieces_of_any_size_are_one_trace() {
        let text = b"fio version 3 iolog\n0 a file add\n0 a file open\n\n70 a file write 0 4096\n";
        let mut binary = Vec::new();
        for payload in [0, 7, 300] {
            let record = BlkRecord {
                action: blk::action::QUEUE | blk::category::READ,
                bytes: 512,
                payload: vec![b'x'; payload],
                ..BlkRecord::default()
            };
            blk::write(&mut binary, ByteOrder::Big, &record).unwrap();
        }
        let whole = read(&binary, binary.len());
        assert!(whole.0 >= 3 && whole.1.is_none(), "{whole:?}");
        let line = "80 a file write 8192 512\n";
        let long = [&text[..], line.repeat(1500).as_bytes()].concat();
        assert_eq!(read(&long, 9999), (1503, None));
        let endless = [&text[..], &[b'x'; 20_000]].concat();
        assert_eq!(read(&endless, 999).1.unwrap(), "t:6: the line is too long for a trace");
        for size in 1..100 {
            assert_eq!(read(text, size), (3, None), "{size}");
            assert_eq!(read(&binary, size), whole, "{size}");
            let cut = read(&text[..text.len() - 6], size).1.unwrap();
            assert!(cut.starts_with("t:5: the trace is cut off"), "{cut}");
            let cut = read(&binary[..binary.len() - 3], size).1.unwrap();
            assert!(cut.starts_with("t: record 3: the trace is cut off"), "{cut}");
        }
    }
}
