//! A ring of values in memory that processes share: one process writes, another one reads.

use crate::memory;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Positions that only one side writes, each in its own cache line.
#[repr(C, align(128))]
struct Position(AtomicU64);

#[repr(C)]
struct Positions {
    written: Position,
    read: Position,
}

/// A ring of `T`, created before the processes fork.
pub struct SharedRing<T: Copy> {
    positions: *mut Positions,
    room: u64,
    values: PhantomData<T>,
}

// SAFETY: values are copied in and out; positions are atomics, and [`SharedRing::push`] and [`SharedRing::pop`] say who
// may call them.
unsafe impl<T: Copy + Send> Send for SharedRing<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Send> Sync for SharedRing<T> {}

impl<T: Copy> SharedRing<T> {
    /// A ring with room for at least this many values. Pages take no memory until they are used.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(room: usize) -> io::Result<SharedRing<T>> {
        assert!(align_of::<T>() <= align_of::<Positions>());
        let room = room.next_power_of_two() as u64;
        let positions = memory::map_shared(Self::bytes(room))?.cast();
        Ok(SharedRing { positions, room, values: PhantomData })
    }

    fn bytes(room: u64) -> usize {
        size_of::<Positions>() + room as usize * size_of::<T>()
    }

    fn positions(&self) -> &Positions {
        // SAFETY: mapped as long as the ring exists, aligned to a page, and zero bytes are valid positions.
        unsafe { &*self.positions }
    }

    fn place(&self, position: u64) -> *mut T {
        let number = (position & (self.room - 1)) as usize;
        // SAFETY: the mapping has room for that many values behind the positions.
        unsafe { self.positions.add(1).cast::<T>().add(number) }
    }

    /// Adds a value, unless the ring is full. Only one thread may do so at a time.
    #[inline]
    pub fn push(&self, value: T) -> bool {
        let Positions { written, read } = self.positions();
        let position = written.0.load(Relaxed);
        if position - read.0.load(Acquire) >= self.room {
            return false;
        }
        // SAFETY: the reader has left this place, and does not come back before `written` moves on.
        unsafe { self.place(position).write(value) };
        written.0.store(position + 1, Release);
        true
    }

    /// Takes the oldest value. Only one thread may do so at a time.
    pub fn pop(&self) -> Option<T> {
        let Positions { written, read } = self.positions();
        let position = read.0.load(Relaxed);
        if position == written.0.load(Acquire) {
            return None;
        }
        // SAFETY: the writer has filled this place, and does not come back before `read` moves on.
        let value = unsafe { self.place(position).read() };
        read.0.store(position + 1, Release);
        Some(value)
    }
}

impl<T: Copy> Drop for SharedRing<T> {
    fn drop(&mut self) {
        // SAFETY: the ring owns the mapping, and nothing refers into it.
        unsafe { memory::unmap(self.positions.cast(), Self::bytes(self.room)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_in_order_and_none_is_overwritten() {
        let ring = SharedRing::new(4).unwrap();
        assert_eq!(ring.pop(), None);
        for round in 0..10_u64 {
            assert!((0..4).all(|number| ring.push((round, number))));
            assert!(!ring.push((99, 99)), "it is full");
            assert_eq!(ring.pop(), Some((round, 0)));
            assert!(ring.push((round, 4)));
            for number in 1..5 {
                assert_eq!(ring.pop(), Some((round, number)));
            }
            assert_eq!(ring.pop(), None);
        }
    }

    #[test]
    fn another_process_reads_what_was_written() {
        let ring = SharedRing::new(1 << 16).unwrap();
        let pid = crate::process::fork(|| i32::from(!(0..1000_u64).all(|number| ring.push(number)))).unwrap();
        assert_eq!(crate::process::wait_for_child(pid), Some(crate::process::ChildEnd::Exited(0)));
        assert!((0..1000).all(|number| ring.pop() == Some(number)));
    }
}
