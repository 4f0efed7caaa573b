//! The memory that the current thread has in use: an allocator that counts.
//!
//! A test binary installs it with `#[global_allocator]`; without that, all numbers are 0.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting per thread.
pub struct Counting;

thread_local! {
    /// The allocated bytes minus the freed bytes, and the maximum of that. A thread may free what another one
    /// allocated, so the first number may be negative.
    static USED: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(change: isize) {
    // A thread that is ending has no counter any more.
    let _ = USED.try_with(|used| {
        let (now, peak) = used.get();
        let now = now + change;
        used.set((now, peak.max(now)));
    });
}

// SAFETY: all calls are passed to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// The memory in bytes that this thread has in use now. Resets the peak.
pub fn begin() -> isize {
    USED.with(|used| {
        let (now, _) = used.get();
        used.set((now, now));
        now
    })
}

/// The peak memory of this thread in bytes since [`begin`], minus its memory at that time.
pub fn peak_since(before: isize) -> usize {
    USED.with(|used| usize::try_from(used.get().1 - before).unwrap_or(0))
}
