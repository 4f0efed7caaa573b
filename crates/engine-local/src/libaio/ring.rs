//! The ring of completion events that the kernel maps into the process for each AIO context.
//!
//! Its layout is not in a public header, but has always had a magic number, and libaio itself reads it: a header, then
//! an array of events, with the kernel moving `tail` and the reader moving `head`.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// The magic number of this layout.
const MAGIC: u32 = 0xa10a_10a1;

/// `struct io_event` of <linux/aio_abi.h>.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Event {
    /// The `data` field of the control block.
    pub(super) data: u64,
    /// The address of the control block.
    block: u64,
    /// Bytes, or a negated errno.
    pub(super) result: i64,
    second_result: i64,
}

#[repr(C)]
struct Header {
    id: u32,
    /// Events in the array.
    capacity: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible_features: u32,
    incompatible_features: u32,
    /// Bytes from here to the array.
    header_length: u32,
}

/// The reader's side of the ring.
#[derive(Debug)]
pub(super) struct EventRing {
    header: *const Header,
    events: *const Event,
    capacity: u32,
}

impl EventRing {
    /// The ring at the address of a context, if its layout is known.
    ///
    /// # Safety
    /// A context, or other memory at least as large as the header, must be mapped there for as long as the ring is
    /// used; no one else may read completions of that context.
    pub(super) unsafe fn at(address: *mut u8) -> Option<EventRing> {
        if address.is_null() || !address.cast::<Header>().is_aligned() {
            return None;
        }
        // SAFETY: the caller promises a header there. `id`, `capacity` and the other fields read here never change.
        let header = unsafe { &*address.cast::<Header>() };
        let known = header.magic == MAGIC
            && header.incompatible_features == 0
            && header.header_length as usize == size_of::<Header>()
            && header.capacity > 0;
        known.then(|| EventRing {
            header,
            // SAFETY: the array follows the header inside the same mapping.
            events: unsafe { address.add(size_of::<Header>()) }.cast(),
            capacity: header.capacity,
        })
    }

    /// Passes at most `max` events to `each`. Returns their number.
    #[inline(always)]
    pub(super) fn take(&self, max: usize, mut each: impl FnMut(&Event)) -> usize {
        // SAFETY: the header is mapped while the ring exists, see `at`.
        let header = unsafe { &*self.header };
        // We alone move the head (the kernel does so only inside io_getevents, called by this thread).
        let mut head = header.head.load(Ordering::Relaxed);
        // Acquire: the events before the tail are written.
        let tail = header.tail.load(Ordering::Acquire);
        let mut count = 0;
        while head != tail && count < max {
            // SAFETY: `head` is below the capacity: it starts there and wraps below; the event was published.
            let event = unsafe { ptr::read(self.events.add(head as usize)) };
            each(&event);
            head += 1;
            if head >= self.capacity {
                head = 0;
            }
            count += 1;
        }
        if count > 0 {
            // Release: the events are copied before the kernel may overwrite them.
            header.head.store(head, Ordering::Release);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Ring {
        header: Header,
        events: [Event; 4],
    }

    fn ring(head: u32, tail: u32) -> Box<Ring> {
        let event = |data| Event { data, block: 0, result: 0, second_result: 0 };
        Box::new(Ring {
            header: Header {
                id: 0,
                capacity: 4,
                head: AtomicU32::new(head),
                tail: AtomicU32::new(tail),
                magic: MAGIC,
                compatible_features: 1,
                incompatible_features: 0,
                header_length: 32,
            },
            events: [event(10), event(11), event(12), event(13)],
        })
    }

    fn taken(memory: &mut Ring, max: usize) -> Vec<u64> {
        // SAFETY: the memory is a ring that outlives the reader.
        let reader = unsafe { EventRing::at(ptr::from_mut(memory).cast()) }.unwrap();
        let mut data = Vec::new();
        let count = reader.take(max, |event| data.push(event.data));
        assert_eq!(count, data.len());
        data
    }

    #[test]
    fn events_are_taken_in_order_around_the_end() {
        let mut memory = ring(3, 2);
        assert_eq!(taken(&mut memory, 2), [13, 10]);
        assert_eq!(memory.header.head.load(Ordering::Relaxed), 1);
        assert_eq!(taken(&mut memory, 9), [11]);
        assert_eq!(taken(&mut memory, 9), [0u64; 0]);
        assert_eq!(memory.header.head.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn unknown_layouts_are_left_alone() {
        for change in [
            |header: &mut Header| header.magic = 1,
            |header: &mut Header| header.incompatible_features = 1,
            |header: &mut Header| header.header_length = 64,
        ] {
            let mut memory = ring(0, 1);
            change(&mut memory.header);
            // SAFETY: the memory is as large as a header.
            assert!(unsafe { EventRing::at(ptr::from_mut(&mut *memory).cast()) }.is_none());
        }
    }
}
