//! The resources that a worker has used since its I/O began.

use crate::shared::Control;
use crate::sys::{ThreadUsage, thread_usage};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

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

/// Counting begins now.
pub fn begin() {
    BEFORE.set(thread_usage());
}

/// Counting begins anew (the ramp is over).
pub fn reset(control: &Control) {
    begin();
    publish(control);
}

/// Publishes what has been used so far.
pub fn publish(control: &Control) {
    let (before, now) = (BEFORE.get(), thread_usage());
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
