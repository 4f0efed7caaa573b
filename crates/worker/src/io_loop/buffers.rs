//! The buffers of the units.
//!
//! A generator is safe code, but engines and content trust the length of its I/Os when they access a buffer. So every
//! pointer into the buffers is made here, and asserted to stay within the unit's buffer.

use iolite_types::Direction;
use iolite_workload::Io;

/// The buffers of all units. Unit `i` owns the one that starts `i × stride` bytes after the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitBuffers {
    /// The first buffer.
    first: *mut u8,
    /// Bytes from one buffer to the next, which is the most that an I/O can move.
    pub stride: usize,
}

/// The stride of units that move no data, so that any length fits: their buffers are never accessed.
pub const NO_DATA: usize = usize::MAX >> 2;

impl UnitBuffers {
    pub fn new(first: *mut u8, stride: usize) -> Self {
        UnitBuffers { first, stride }
    }

    /// The first byte of a unit's buffer. Units that move no data ([`NO_DATA`]) have no valid address.
    #[inline(always)]
    pub fn start_of(self, index: u32) -> *mut u8 {
        self.first.wrapping_add((index as usize).wrapping_mul(self.stride))
    }

    /// All bytes of a unit's buffer.
    pub fn whole(self, index: u32) -> *mut [u8] {
        std::ptr::slice_from_raw_parts_mut(self.start_of(index), self.stride)
    }

    /// The bytes that an I/O moves. A trim moves none, so it may be longer than the buffer.
    ///
    /// # Panics
    ///
    /// If the I/O is longer than the buffer, which is a bug in the generator.
    #[inline(always)]
    pub fn of_io(self, index: u32, io: &Io) -> *mut [u8] {
        let length = if io.direction == Direction::Trim { 0 } else { io.length };
        assert!(length <= self.stride as u64, "an I/O is longer than its buffer");
        std::ptr::slice_from_raw_parts_mut(self.start_of(index), length as usize)
    }

    /// `length` bytes of a unit's buffer, starting at offset `from`.
    ///
    /// # Panics
    ///
    /// If they are not all within the buffer.
    pub fn part(self, index: u32, from: usize, length: u64) -> *const [u8] {
        let stride = self.stride as u64;
        assert!(length <= stride && from as u64 <= stride - length, "a block is not within its buffer");
        std::ptr::slice_from_raw_parts(self.start_of(index).wrapping_add(from), length as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(direction: Direction, length: u64) -> Io {
        Io { offset: 0, length, file: 0, direction }
    }

    fn buffers() -> UnitBuffers {
        UnitBuffers::new(std::ptr::without_provenance_mut(0x10000), 4096)
    }

    #[test]
    fn units_that_move_no_data_may_be_many_and_long() {
        let buffers = UnitBuffers::new(std::ptr::without_provenance_mut(0x10000), NO_DATA);
        assert_eq!(buffers.of_io(u32::MAX, &io(Direction::Write, 1 << 40)).len(), 1 << 40);
    }

    #[test]
    fn an_io_has_the_bytes_of_its_units_buffer() {
        let whole = buffers().of_io(2, &io(Direction::Write, 4096));
        assert_eq!((whole.addr(), whole.len()), (0x12000, 4096));
        assert_eq!(buffers().of_io(0, &io(Direction::Trim, 1 << 40)).len(), 0);
        let part = buffers().part(1, 512, 3584);
        assert_eq!((part.addr(), part.len()), (0x11200, 3584));
    }

    #[test]
    #[should_panic(expected = "longer than its buffer")]
    fn a_longer_io_is_not_issued() {
        buffers().of_io(0, &io(Direction::Read, 4097));
    }

    #[test]
    #[should_panic(expected = "not within its buffer")]
    fn a_block_beyond_the_buffer_is_not_looked_at() {
        buffers().part(0, 512, 4096);
    }
}
