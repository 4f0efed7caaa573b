//! A pattern repeated over a buffer.

use crate::PatternPiece;

/// The bytes of one repetition, and the places of the offset in it.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    unit: Vec<u8>,
    offsets: Vec<usize>,
}

impl Pattern {
    /// A pattern of these pieces, one after the other. Without any bytes, it is zeros.
    pub(crate) fn new(pieces: &[PatternPiece]) -> Self {
        let mut unit = Vec::new();
        let mut offsets = Vec::new();
        for piece in pieces {
            match piece {
                PatternPiece::Bytes(bytes) => unit.extend_from_slice(bytes),
                PatternPiece::Offset => {
                    offsets.push(unit.len());
                    unit.extend_from_slice(&[0; 8]);
                }
            }
        }
        if unit.is_empty() {
            unit.push(0);
        }
        Pattern { unit, offsets }
    }

    /// Whether the content depends on the offset of the block.
    pub(crate) fn has_offset(&self) -> bool {
        !self.offsets.is_empty()
    }

    /// Fills a block that is written at `offset`.
    pub(crate) fn fill(&mut self, buffer: &mut [u8], offset: u64) {
        for &position in &self.offsets {
            self.unit[position..position + 8].copy_from_slice(&offset.to_le_bytes());
        }
        let first = self.unit.len().min(buffer.len());
        buffer[..first].copy_from_slice(&self.unit[..first]);
        // Until the end of the buffer, the filled part is a whole number of repetitions, so it can be doubled.
        let mut filled = first;
        while filled < buffer.len() {
            let more = filled.min(buffer.len() - filled);
            buffer.copy_within(..more, filled);
            filled += more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(pieces: &[PatternPiece], size: usize, offset: u64) -> Vec<u8> {
        let mut buffer = vec![0xee; size];
        Pattern::new(pieces).fill(&mut buffer, offset);
        buffer
    }

    fn bytes(bytes: &[u8]) -> PatternPiece {
        PatternPiece::Bytes(bytes.to_vec())
    }

    /// The first bytes of files that fio 3.33 wrote: `"abcd"`, `0xdeadbeef`, `-12`, `0xdeadface"abcd"-12`.
    #[test]
    fn matches_files_of_the_reference() {
        assert_eq!(filled(&[bytes(b"abcd")], 10, 0), b"abcdabcdab");
        let hex = [0xde, 0xad, 0xbe, 0xef];
        assert_eq!(filled(&[bytes(&hex)], 6, 0), [0xde, 0xad, 0xbe, 0xef, 0xde, 0xad]);
        let combined = [bytes(&[0xde, 0xad, 0xfa, 0xce]), bytes(b"abcd"), bytes(&(-12i32).to_le_bytes())];
        assert_eq!(filled(&combined, 16, 0), *b"\xde\xad\xfa\xceabcd\xf4\xff\xff\xff\xde\xad\xfa\xce");
    }

    /// `0xab%o"xy"`, in the blocks at 0 and at 4096.
    #[test]
    fn the_offset_is_that_of_the_block() {
        let pieces = [bytes(&[0xab]), PatternPiece::Offset, bytes(b"xy")];
        assert_eq!(filled(&pieces, 14, 0), *b"\xab\0\0\0\0\0\0\0\0xy\xab\0\0");
        let block = filled(&pieces, 4096, 4096);
        assert_eq!(block[..14], *b"\xab\0\x10\0\0\0\0\0\0xy\xab\0\x10");
        // 4096 = 372 × 11 + 4.
        assert_eq!(block[4092..], *b"\xab\0\x10\0");
    }

    #[test]
    fn an_empty_pattern_is_zeros() {
        assert_eq!(filled(&[], 3, 9), [0; 3]);
        assert_eq!(filled(&[bytes(b"")], 3, 9), [0; 3]);
        assert_eq!(filled(&[bytes(b"x")], 0, 9), []);
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn every_byte_is_the_pattern_s(
            unit in prop::collection::vec(any::<u8>(), 1..100), size in 0usize..2000,
        ) {
            let expected: Vec<u8> = unit.iter().copied().cycle().take(size).collect();
            prop_assert_eq!(filled(&[bytes(&unit)], size, 0), expected);
        }
    }
}
