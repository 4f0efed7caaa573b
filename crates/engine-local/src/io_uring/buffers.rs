//! Buffers registered with the kernel (`fixedbufs`), so that it need not pin their pages for each unit.

use io_uring::{IoUring, cqueue, squeue};
use iolite_engine::{BufferLayout, EngineError};
use iolite_engine::{FIXED_BUFFERS, memory_lock_limit};
use std::io;

/// The most the kernel registers as one buffer.
const MOST_BYTES: usize = 1 << 30;
/// The most buffers the kernel registers.
const MOST_PIECES: usize = 1 << 14;

/// How the buffers of a worker are registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// As few as the kernel allows.
    Few,
    /// One for each buffer, for NVMe commands: kernels before 6.12 count everything up to the end of the piece, and
    /// refuse the command if that is more than the device takes at once.
    OnePerBuffer,
}

/// The worker's buffers as registered: pieces that consist of complete buffers.
#[derive(Debug)]
pub struct FixedBuffers {
    start: usize,
    bytes: usize,
    /// Bytes of a piece (the last may be shorter).
    piece: usize,
}

impl FixedBuffers {
    /// Divides the region into pieces.
    fn cut(layout: &BufferLayout, pieces: Pieces) -> Result<FixedBuffers, EngineError> {
        if layout.stride > MOST_BYTES {
            return Err(EngineError::BufferTooLarge { bytes: layout.stride });
        }
        let bytes = layout.stride * layout.count;
        let most = (MOST_BYTES / layout.stride.max(1)).min(layout.count.max(1));
        let buffers_a_piece = match pieces {
            Pieces::Few => most,
            Pieces::OnePerBuffer => layout.count.div_ceil(MOST_PIECES).clamp(1, most),
        };
        Ok(FixedBuffers { start: layout.start as usize, bytes, piece: buffers_a_piece * layout.stride })
    }

    /// Registers the region with the ring.
    ///
    /// # Errors
    /// The memory cannot be locked, or the kernel refuses to register it.
    pub fn register<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
        ring: &IoUring<S, C>,
        layout: &BufferLayout,
        pieces: Pieces,
    ) -> Result<Option<FixedBuffers>, EngineError> {
        let fixed = Self::cut(layout, pieces)?;
        if fixed.bytes == 0 {
            return Ok(None);
        }
        let pieces: Vec<libc::iovec> = (0..fixed.bytes)
            .step_by(fixed.piece)
            .map(|offset| libc::iovec {
                iov_base: layout.start.wrapping_add(offset).cast(),
                iov_len: fixed.piece.min(fixed.bytes - offset),
            })
            .collect();
        // SAFETY: the region belongs to the worker for as long as the engine lives.
        match unsafe { ring.submitter().register_buffers(&pieces) } {
            Ok(()) => Ok(Some(fixed)),
            Err(source) => Err(refusal(fixed.bytes, source)),
        }
    }

    /// The piece that contains all of these bytes, if any. They usually belong to this unit.
    #[inline(always)]
    pub fn piece_of(&self, unit: u32, buffer: *mut u8, length: u64) -> Option<u16> {
        let offset = (buffer as usize).wrapping_sub(self.start);
        let length = length as usize;
        if offset >= self.bytes || length > self.bytes - offset {
            return None;
        }
        if self.piece == self.bytes {
            return Some(0);
        }
        // With one buffer per piece, this saves the division.
        let begin = unit as usize * self.piece;
        if offset >= begin && offset + length <= begin + self.piece {
            return Some(unit as u16);
        }
        let piece = offset / self.piece;
        (offset + length <= (piece + 1) * self.piece).then_some(piece as u16)
    }
}

/// Room for this many words of metadata, zeroed.
///
/// Each page is written to: Linux 6.12 lets a device write into pages as they are mapped, and an unwritten page is the
/// page of zeros that all processes of the system share.
pub fn metadata_buffers(words: usize) -> Vec<u64> {
    // (Otherwise the compiler would request zeroed pages from the system, and write nothing.)
    let mut buffers = std::hint::black_box(vec![1; words]);
    buffers.fill(0);
    buffers
}

fn refusal(bytes: usize, source: io::Error) -> EngineError {
    match source.raw_os_error() {
        Some(libc::ENOMEM) => {
            EngineError::MemoryLock { purpose: FIXED_BUFFERS, bytes, limit: memory_lock_limit(), source }
        }
        _ => EngineError::System { engine: "io_uring", call: "registering buffers (fixedbufs)", source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn layout(stride: usize, count: usize) -> BufferLayout {
        BufferLayout { start: 0x10_0000 as *mut u8, stride, count, depth: count, files: 1 }
    }

    #[test]
    fn a_small_region_is_one_piece() {
        let fixed = FixedBuffers::cut(&layout(4096, 32), Pieces::Few).unwrap();
        let at = |offset: usize| (0x10_0000 + offset) as *mut u8;
        assert_eq!(fixed.piece, 32 * 4096);
        assert_eq!(fixed.piece_of(0, at(0), 32 * 4096), Some(0));
        assert_eq!(fixed.piece_of(0, at(31 * 4096), 4096), Some(0));
        assert_eq!(fixed.piece_of(0, at(31 * 4096), 4097), None);
        assert_eq!(fixed.piece_of(0, at(32 * 4096), 1), None);
        assert_eq!(fixed.piece_of(0, (0x10_0000 - 1) as *mut u8, 1), None);
    }

    #[test]
    fn a_large_region_is_cut_between_buffers() {
        // 300 MiB a buffer: three fit into the kernel's GiB, so seven buffers make three pieces.
        let fixed = FixedBuffers::cut(&layout(300 * MIB, 7), Pieces::Few).unwrap();
        assert_eq!(fixed.piece, 900 * MIB);
        let at = |buffer: usize| (0x10_0000 + buffer * 300 * MIB) as *mut u8;
        let pieces: Vec<_> = (0..7).map(|buffer| fixed.piece_of(0, at(buffer), 300 * MIB as u64)).collect();
        assert_eq!(pieces, [0, 0, 0, 1, 1, 1, 2].map(Some));
        assert_eq!(fixed.piece_of(0, at(2), 301 * MIB as u64), None);
    }

    #[test]
    fn buffers_for_commands_are_pieces_of_their_own_while_there_are_enough() {
        let at = |buffer: usize| (0x10_0000 + buffer * 4096) as *mut u8;
        let fixed = FixedBuffers::cut(&layout(4096, 3), Pieces::OnePerBuffer).unwrap();
        assert_eq!([0, 1, 2].map(|buffer| fixed.piece_of(0, at(buffer), 4096)), [0, 1, 2].map(Some));
        assert_eq!([0, 1, 2].map(|unit| fixed.piece_of(unit, at(1), 4096)), [Some(1); 3]);
        assert_eq!(fixed.piece_of(0, at(0), 4097), None);
        let fixed = FixedBuffers::cut(&layout(4096, 16385), Pieces::OnePerBuffer).unwrap();
        assert_eq!(
            [0, 1, 2, 16384].map(|buffer| fixed.piece_of(0, at(buffer), 4096)),
            [0, 0, 1, 8192].map(Some)
        );
    }

    #[test]
    fn a_buffer_above_the_limit_is_refused() {
        let error = FixedBuffers::cut(&layout(2 << 30, 1), Pieces::Few).unwrap_err();
        assert!(matches!(error, EngineError::BufferTooLarge { .. }));
    }
}
