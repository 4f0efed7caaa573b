//! How much memory the thread at hand has in use: an allocator that counts.
//!
//! A test binary makes it its own with `#[global_allocator]`; without that, everything is 0.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting per thread.
pub struct Counting;

thread_local! {
    /// What was allocated less what was freed, and the most that it has been. A thread may free what another
    /// allocated, so the first may be negative.
    static USED: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(change: isize) {
    // A thread that is about to end has nothing to count with any more.
    let _ = USED.try_with(|used| {
        let (now, peak) = used.get();
        let now = now + change;
        used.set((now, peak.max(now)));
    });
}

// SAFETY: everything is handed on to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is that of this call.
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

/// What this thread has in use now; the peak is counted anew.
pub fn begin() -> isize {
    USED.with(|used| {
        let (now, _) = used.get();
        used.set((now, now));
        now
    })
}

/// The most that this thread has had in use since then, beyond what it had.
pub fn peak_since(before: isize) -> usize {
    USED.with(|used| usize::try_from(used.get().1 - before).unwrap_or(0))
}
