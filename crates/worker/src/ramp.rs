//! `ramp_size`: how many bytes have to be moved before counting begins.
//!
//! Each worker counts the bytes of its ramp in a word that only it writes. Workers whose reports are merged share one
//! ramp: it ends for all of them when together they have moved enough. The controller may hold a ramp until those of
//! other machines are over as well (`client_barrier`).

use iolite_os::message::Message;
use iolite_os::shared::Control;
use iolite_os::socket::Socket;
use std::sync::atomic::Ordering::Relaxed;

/// A ramp measured in bytes.
pub struct SizedRamp<'a> {
    bytes: u64,
    own: &'a Control,
    others: Vec<&'a Control>,
    /// The socket on which the worker reports that a held ramp has moved enough.
    messages: &'a Socket,
}

impl<'a> SizedRamp<'a> {
    /// A ramp of this many bytes, which the worker with the word `own` and these others move together.
    pub fn new(bytes: u64, own: &'a Control, others: Vec<&'a Control>, messages: &'a Socket) -> Self {
        SizedRamp { bytes, own, others, messages }
    }

    /// Counts moved bytes.
    pub fn moved(&self, bytes: u64) {
        let own = &self.own.ramp_bytes;
        own.store(own.load(Relaxed) + bytes, Relaxed);
    }

    /// Whether enough has been moved and the controller does not hold the ramp. Tells the controller, once, if only the
    /// hold remains.
    pub fn is_over(&self) -> bool {
        let moved = |control: &Control| control.ramp_bytes.load(Relaxed);
        if moved(self.own) + self.others.iter().map(|control| moved(control)).sum::<u64>() < self.bytes {
            return false;
        }
        let is_held = self.own.holds_ramp();
        if is_held && !self.own.is_ramp_moved() && self.own.note_ramp_moved() {
            Message::Look.send(self.messages);
        }
        !is_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_os::shared::Arena;

    #[test]
    fn jobs_that_share_a_ramp_add_up() {
        let arena = Arena::new(2).unwrap();
        let (one, other) = (&arena.slot(0).control, &arena.slot(1).control);
        let (_controller, messages) = Socket::pair().unwrap();
        let alone = SizedRamp::new(100, one, Vec::new(), &messages);
        let shared = SizedRamp::new(100, other, vec![one], &messages);
        alone.moved(60);
        assert!(!alone.is_over());
        shared.moved(40);
        assert!(shared.is_over() && !alone.is_over());
    }

    #[test]
    fn a_held_ramp_continues_and_reports_once() {
        let arena = Arena::new(1).unwrap();
        let control = &arena.slot(0).control;
        let (controller, messages) = Socket::pair().unwrap();
        let ramp = SizedRamp::new(100, control, Vec::new(), &messages);
        control.hold_ramp();
        let told = || controller.try_receive_or_end(&mut [0; 64]).unwrap().is_some();
        assert!(!ramp.is_over() && !control.is_ramp_moved() && !told());
        ramp.moved(100);
        assert!(!ramp.is_over() && control.is_ramp_moved() && told());
        assert!(!ramp.is_over() && !told());
        control.release_ramp();
        assert!(ramp.is_over() && !told());
    }
}
