//! The encoding of numbers, texts and data on the wire (XDR, RFC 4506): in units of four bytes, the most significant
//! byte first.

use crate::NfsError;

/// Appends to a buffer.
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Appends data, preceded by its length and padded.
    pub(crate) fn opaque(&mut self, bytes: &[u8]) -> &mut Self {
        self.u32(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(&[0; 3][..padding(bytes.len())]);
        self
    }
}

/// How many bytes of padding follow data of this length, up to a multiple of four.
pub(crate) const fn padding(length: usize) -> usize {
    length.wrapping_neg() % 4
}

/// Reads from the beginning of a buffer.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// How many bytes have been read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], NfsError> {
        let end =
            self.at.checked_add(count).filter(|&end| end <= self.bytes.len()).ok_or(NfsError::Malformed)?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, NfsError> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, NfsError> {
        Ok(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }

    pub(crate) fn boolean(&mut self) -> Result<bool, NfsError> {
        Ok(self.u32()? != 0)
    }

    /// Data with its length in front, of at most `most` bytes.
    pub(crate) fn opaque(&mut self, most: usize) -> Result<&'a [u8], NfsError> {
        let length = self.u32()? as usize;
        if length > most {
            return Err(NfsError::Malformed);
        }
        let bytes = self.take(length)?;
        self.take(padding(length))?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_are_read_back() {
        let mut bytes = Vec::new();
        Writer(&mut bytes).u32(7).u64(1 << 40).opaque(b"abcde").opaque(b"");
        assert_eq!(bytes.len(), 4 + 8 + 4 + 8 + 4);
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.u32().unwrap(), reader.u64().unwrap()), (7, 1 << 40));
        assert_eq!(reader.opaque(5).unwrap(), b"abcde");
        assert_eq!(reader.opaque(5).unwrap(), b"");
        assert_eq!(reader.at(), bytes.len());
        assert!(reader.u32().is_err() && Reader::new(&bytes[12..]).opaque(4).is_err());
    }
}
