//! `ramp_size`: how many bytes have to be moved before counting begins.
//!
//! Each worker counts the bytes of its ramp in a word that only it writes. Workers whose reports are merged share one
//! ramp: it ends for all of them when together they have moved enough.

use iolite_os::shared::Control;
use std::sync::atomic::Ordering::Relaxed;

/// A ramp measured in bytes.
pub struct SizedRamp<'a> {
    bytes: u64,
    own: &'a Control,
    others: Vec<&'a Control>,
}

impl<'a> SizedRamp<'a> {
    /// A ramp of this many bytes, moved by the worker with the word `own` together with these others.
    pub fn new(bytes: u64, own: &'a Control, others: Vec<&'a Control>) -> Self {
        SizedRamp { bytes, own, others }
    }

    /// Counts moved bytes.
    pub fn moved(&self, bytes: u64) {
        let own = &self.own.ramp_bytes;
        own.store(own.load(Relaxed) + bytes, Relaxed);
    }

    /// Whether enough has been moved.
    pub fn is_over(&self) -> bool {
        let moved = |control: &Control| control.ramp_bytes.load(Relaxed);
        moved(self.own) + self.others.iter().map(|control| moved(control)).sum::<u64>() >= self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_os::shared::Arena;

    #[test]
    fn those_who_share_a_ramp_add_up() {
        let arena = Arena::new(2).unwrap();
        let (one, other) = (&arena.slot(0).control, &arena.slot(1).control);
        let alone = SizedRamp::new(100, one, Vec::new());
        let shared = SizedRamp::new(100, other, vec![one]);
        alone.moved(60);
        assert!(!alone.is_over());
        shared.moved(40);
        assert!(shared.is_over() && !alone.is_over());
    }
}
