//! Access to mapped files that the system cannot satisfy.
//!
//! A page of a mapped file can be unavailable: the file system has no room for it, the medium cannot be read, or the
//! file has been truncated. The kernel then sends SIGBUS, which kills the process. A copy that is [`guarded`] survives
//! this and reports it, so that it can be repeated by a system call, which returns the error.
//!
//! The handler puts anonymous memory in place of the missing page, and the copy continues there. So after a fault, a
//! mapping no longer shows the file, and has to be created again.

use crate::error::check;
use crate::memory;
use std::cell::Cell;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};
use std::sync::{Mutex, OnceLock};

thread_local! {
    // Constants without destructors: the handler may read them at any moment.
    /// The part of a mapping that this thread is accessing.
    static GUARDED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// Pages of it were missing.
    static FAULTED: Cell<bool> = const { Cell::new(false) };
}

/// Bytes of a page.
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// The previous handler of the signal.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Makes [`guarded`] work in this process.
///
/// # Errors
/// The handler cannot be installed.
pub fn catch() -> io::Result<()> {
    static FIRST: Mutex<()> = Mutex::new(());
    let _first = FIRST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if PREVIOUS.get().is_some() {
        return Ok(());
    }
    // SAFETY: the structures are plain data, valid as zeros. The handler calls nothing but system calls, and reads nothing
    // but thread-local constants and an atomic. It runs on the alternate stack where the thread has one.
    unsafe {
        let mut previous: libc::sigaction = std::mem::zeroed();
        check(libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut previous))?;
        PAGE.store(memory::page_size(), Ordering::Relaxed);
        // The handler needs both from the moment that it is installed.
        let _ = PREVIOUS.set(previous);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        check(libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()))?;
    }
    Ok(())
}

/// Accesses a part of a mapping. Returns whether all of its pages were available.
///
/// If not, the data copied is undefined, and the mapping must not be used any more.
#[inline(always)]
#[must_use]
pub fn guarded(start: *const u8, length: usize, access: impl FnOnce()) -> bool {
    GUARDED.set((start.addr(), start.addr() + length));
    compiler_fence(Ordering::SeqCst);
    access();
    compiler_fence(Ordering::SeqCst);
    GUARDED.set((0, 0));
    !FAULTED.get() || forgive()
}

/// Forgets the fault of this thread.
#[cold]
fn forgive() -> bool {
    FAULTED.set(false);
    false
}

extern "C" fn handle(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid structure.
    let address = unsafe { (*info).si_addr() }.addr();
    let (start, end) = GUARDED.get();
    if (start..end).contains(&address) && replace(address, end) {
        FAULTED.set(true);
        return;
    }
    // Restore the previous handler: the access is repeated and reaches it.
    if let Some(previous) = PREVIOUS.get() {
        // SAFETY: the structure was filled in by the kernel.
        unsafe { libc::sigaction(libc::SIGBUS, ptr::from_ref(previous), ptr::null_mut()) };
    }
}

/// Puts anonymous memory in place of the pages from this address to the end.
fn replace(address: usize, end: usize) -> bool {
    let page = PAGE.load(Ordering::Relaxed);
    let start = address / page * page;
    let length = end.next_multiple_of(page) - start;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: whole pages of a mapping that the accessing thread owns, and that is given up after this.
    let mapped = unsafe { libc::mmap(ptr::without_provenance_mut(start), length, access, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    const PAGES: usize = 4;

    /// A mapping of a file of four pages, of which only this many bytes are left, and the file.
    fn shortened(left: u64) -> (*mut u8, usize, File) {
        catch().unwrap();
        let page = PAGE.load(Ordering::Relaxed);
        let file = tempfile::tempfile().unwrap();
        file.set_len((PAGES * page) as u64).unwrap();
        let start = memory::map(PAGES * page, libc::MAP_SHARED, file.as_raw_fd()).unwrap();
        file.set_len(left).unwrap();
        (start.cast(), page, file)
    }

    #[test]
    fn missing_pages_are_reported_once() {
        let (start, page, _file) = shortened(1);
        let fill = |at: usize, length: usize| {
            let at = start.wrapping_add(at);
            // SAFETY: inside the mapping.
            guarded(at, length, || unsafe { ptr::write_bytes(at, 7, length) })
        };
        assert!(fill(0, page));
        assert!(!fill(10, 3 * page));
        assert!(fill(0, page), "the fault before is forgotten");
        // SAFETY: the mapping is this test's own.
        unsafe { memory::unmap(start.cast(), PAGES * page) };
    }

    #[test]
    fn each_thread_has_its_own_faults() {
        let threads: Vec<_> = [0u64, 1 << 20]
            .map(|left| {
                std::thread::spawn(move || {
                    let (start, page, _file) = shortened(left);
                    let mut byte = [0];
                    // SAFETY: both are valid for one byte.
                    let complete = guarded(start, page, || unsafe {
                        ptr::copy_nonoverlapping(start, byte.as_mut_ptr(), 1)
                    });
                    // SAFETY: the mapping is this test's own.
                    unsafe { memory::unmap(start.cast(), PAGES * page) };
                    complete
                })
            })
            .into_iter()
            .collect();
        let complete: Vec<bool> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(complete, [false, true]);
    }
}
