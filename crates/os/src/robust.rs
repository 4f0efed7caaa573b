//! Locks in memory that processes share, which survive the death of their owner.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// A lock in shared memory. If its owner ends or is killed, the next thread that locks it gets the lock and is told so.
#[repr(transparent)]
pub struct RobustLock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the mutex synchronises by itself, also between processes.
unsafe impl Send for RobustLock {}
// SAFETY: as above.
unsafe impl Sync for RobustLock {}

/// The result of an attempt to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// It is held by this thread now.
    Yes,
    /// It is held by this thread now, and its last owner died while holding it.
    Inherited,
    /// Another thread holds it.
    No,
}

impl RobustLock {
    /// Creates an unlocked lock in this memory.
    ///
    /// # Errors
    /// The system does not support such locks.
    ///
    /// # Safety
    /// The memory is valid, aligned and unused, and it is shared by all processes that will use the lock.
    pub unsafe fn place(memory: *mut RobustLock) -> io::Result<()> {
        let check = |errno| if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) };
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the attributes are initialised first; the caller guarantees the memory.
        unsafe {
            check(libc::pthread_mutexattr_init(attributes))?;
            let made = check(libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED))
                .and_then(|()| {
                    check(libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST))
                })
                .and_then(|()| check(libc::pthread_mutex_init(memory.cast(), attributes)));
            libc::pthread_mutexattr_destroy(attributes);
            made
        }
    }

    /// Locks it if it is free. The thread must not hold it already.
    pub fn try_lock(&self) -> Locked {
        // SAFETY: the mutex was initialised by `place`.
        self.outcome(unsafe { libc::pthread_mutex_trylock(self.0.get()) })
    }

    /// Locks it, and waits for it at most this long. The thread must not hold it already.
    pub fn lock_within(&self, time: Duration) -> Locked {
        let mut until = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the clock is read before its value is used; the mutex was initialised by `place`.
        let errno = unsafe {
            libc::clock_gettime(libc::CLOCK_REALTIME, until.as_mut_ptr());
            let mut until = until.assume_init();
            let ns = until.tv_nsec as u64 + u64::from(time.subsec_nanos());
            until.tv_sec += (time.as_secs() + ns / 1_000_000_000) as libc::time_t;
            until.tv_nsec = (ns % 1_000_000_000) as libc::c_long;
            libc::pthread_mutex_timedlock(self.0.get(), &raw const until)
        };
        self.outcome(errno)
    }

    fn outcome(&self, errno: libc::c_int) -> Locked {
        match errno {
            0 => Locked::Yes,
            libc::EOWNERDEAD => {
                // SAFETY: this thread holds it.
                unsafe { libc::pthread_mutex_consistent(self.0.get()) };
                Locked::Inherited
            }
            _ => Locked::No,
        }
    }

    /// Unlocks it. The thread must hold it.
    pub fn unlock(&self) {
        // SAFETY: the mutex was initialised by `place`.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;

    fn made() -> &'static RobustLock {
        let memory = memory::map_shared(size_of::<RobustLock>()).unwrap().cast::<RobustLock>();
        // SAFETY: the mapping is fresh, aligned, and stays.
        unsafe {
            RobustLock::place(memory).unwrap();
            &*memory
        }
    }

    #[test]
    fn one_thread_has_it_at_a_time() {
        let lock = made();
        assert_eq!(lock.try_lock(), Locked::Yes);
        let other = || std::thread::spawn(|| made_by_other(lock)).join().unwrap();
        assert_eq!(other(), Locked::No);
        lock.unlock();
        assert_eq!(other(), Locked::Yes);
    }

    fn made_by_other(lock: &'static RobustLock) -> Locked {
        let locked = lock.lock_within(Duration::from_millis(5));
        if locked != Locked::No {
            lock.unlock();
        }
        locked
    }

    #[test]
    fn it_survives_its_owner() {
        iolite_testing::or_skip!(iolite_testing::kernel::has_robust_locks());
        let lock = made();
        std::thread::spawn(|| assert_eq!(lock.try_lock(), Locked::Yes)).join().unwrap();
        assert_eq!(lock.lock_within(Duration::from_secs(60)), Locked::Inherited);
        lock.unlock();
        assert_eq!(lock.try_lock(), Locked::Yes);
        lock.unlock();
    }
}
