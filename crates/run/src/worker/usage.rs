//! The resources that a worker has used since its I/O began.

use crate::shared::Control;
use crate::sys::{ThreadUsage, thread_usage};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

thread_local! {
    /// What the thread had used before; a worker is one thread.
    static BEFORE: Cell<ThreadUsage> = const { Cell::new(ThreadUsage {
        user_us: 0,
        system_us: 0,
        context_switches: 0,
        major_faults: 0,
        minor_faults: 0,
    }) };
}

thread_local! {
    /// What other threads have used for this worker.
    static OTHERS: RefCell<Arc<[SharedUsage]>> = RefCell::new(Arc::new([]));
}

/// What a thread that works for a worker has used. Written by that thread.
#[derive(Debug, Default)]
pub struct SharedUsage {
    user_us: AtomicU64,
    system_us: AtomicU64,
    context_switches: AtomicU64,
    major_faults: AtomicU64,
    minor_faults: AtomicU64,
}

impl SharedUsage {
    /// Publishes what the calling thread has used.
    pub fn publish(&self) {
        let used = thread_usage();
        self.user_us.store(used.user_us, Relaxed);
        self.system_us.store(used.system_us, Relaxed);
        self.context_switches.store(used.context_switches, Relaxed);
        self.major_faults.store(used.major_faults, Relaxed);
        self.minor_faults.store(used.minor_faults, Relaxed);
    }
}

/// The calling thread is a worker for which others work.
pub fn count_also(others: Arc<[SharedUsage]>) {
    OTHERS.set(others);
}

/// What the worker and those who work for it have used in all.
fn used() -> ThreadUsage {
    OTHERS.with_borrow(|others| {
        others.iter().fold(thread_usage(), |mut sum, other| {
            sum.user_us += other.user_us.load(Relaxed);
            sum.system_us += other.system_us.load(Relaxed);
            sum.context_switches += other.context_switches.load(Relaxed);
            sum.major_faults += other.major_faults.load(Relaxed);
            sum.minor_faults += other.minor_faults.load(Relaxed);
            sum
        })
    })
}

/// Counting begins now.
pub fn begin() {
    BEFORE.set(used());
}

/// Counting begins anew (the ramp is over).
pub fn reset(control: &Control) {
    begin();
    publish(control);
}

/// Publishes what has been used so far.
pub fn publish(control: &Control) {
    let (before, now) = (BEFORE.get(), used());
    control.user_us.store(now.user_us - before.user_us, Relaxed);
    control.system_us.store(now.system_us - before.system_us, Relaxed);
    control.context_switches.store(now.context_switches - before.context_switches, Relaxed);
    control.major_faults.store(now.major_faults - before.major_faults, Relaxed);
    control.minor_faults.store(now.minor_faults - before.minor_faults, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Arena;

    #[test]
    fn usage_is_counted_from_the_beginning() {
        let arena = Arena::new(1).unwrap();
        let control = &arena.slot(0).control;
        begin();
        let pages: Vec<Vec<u8>> = (0..256).map(|_| vec![1; 65_536]).collect();
        publish(control);
        assert!(control.minor_faults.load(Relaxed) > 0, "{}", pages.len());
        reset(control);
        assert!(control.minor_faults.load(Relaxed) < 256);
    }
}
