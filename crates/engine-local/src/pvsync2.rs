//! `pvsync2`: preadv2(2) and pwritev2(2), which take flags per call.
//!
//! `hipri` polls for the completion (RWF_HIPRI) of `hipri_percentage` percent of the units, `uncached` keeps the
//! data out of the page cache (RWF_DONTCACHE), `nowait` fails with EAGAIN rather than block (RWF_NOWAIT).

use iolite_engine::file::Files;
use iolite_engine::transfer::{Transfer, has_files, retry};
use iolite_engine::{EngineConfig, EngineError, Outcome, Unit};
use iolite_options::engines::Pvsync2Options;
use iolite_os::by_number;

/// One preadv2 or pwritev2 with a single segment per unit.
#[derive(Debug)]
pub struct Pvsync2Engine {
    files: Files,
    /// Flags that every unit gets.
    flags: TransferFlags,
    priority: Priority,
}

/// Which units poll for their completion.
#[derive(Debug)]
enum Priority {
    None,
    All,
    /// A unit polls if the next random number is below the threshold.
    Some {
        threshold: u64,
        state: u64,
    },
}

impl Priority {
    fn new(config: &EngineConfig, own: &Pvsync2Options) -> Self {
        match (own.hipri, own.hipri_percentage) {
            (false, _) | (true, 0) => Priority::None,
            (true, 100..) => Priority::All,
            (true, percent) => Priority::Some {
                threshold: u64::MAX / 100 * u64::from(percent),
                // The generator below never leaves 0.
                state: config.seed.max(1),
            },
        }
    }

    #[inline(always)]
    fn flag(&mut self) -> libc::c_int {
        let polled = match self {
            Priority::None => false,
            Priority::All => true,
            Priority::Some { threshold, state } => next_random(state) < *threshold,
        };
        if polled { libc::RWF_HIPRI } else { 0 }
    }
}

/// Marsaglia's xorshift64* (Vigna 2016): a choice between two flags needs no better.
#[inline]
fn next_random(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_F491_4F6C_DD1D)
}

/// The flags of reads and of writes that the options request, without polling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransferFlags {
    pub(crate) read: libc::c_int,
    pub(crate) write: libc::c_int,
}

impl TransferFlags {
    pub(crate) fn new(config: &EngineConfig, uncached: bool, nowait: bool) -> TransferFlags {
        let both = if uncached { libc::RWF_DONTCACHE } else { 0 } | if nowait { libc::RWF_NOWAIT } else { 0 };
        TransferFlags { read: both, write: both | if config.atomic { libc::RWF_ATOMIC } else { 0 } }
    }

    #[inline(always)]
    pub(crate) fn of(self, write: bool) -> libc::c_int {
        if write { self.write } else { self.read }
    }
}

impl Pvsync2Engine {
    /// An engine with no file open.
    ///
    /// # Errors
    /// Never: it needs nothing of the system before its files are opened.
    pub fn new(config: &EngineConfig, own: &Pvsync2Options) -> Result<Self, EngineError> {
        Ok(Pvsync2Engine {
            files: Files::new(config),
            flags: TransferFlags::new(config, own.uncached, own.nowait),
            priority: Priority::new(config, own),
        })
    }
}

impl Transfer for Pvsync2Engine {
    has_files!();

    #[inline(always)]
    unsafe fn transfer(&mut self, unit: &Unit, write: bool) -> Outcome {
        let segments = [libc::iovec { iov_base: unit.buffer.cast(), iov_len: unit.length as usize }];
        let offset = unit.offset as i64;
        let flags = self.flags.of(write) | self.priority.flag();
        retry(&self.files, unit.file, |descriptor| {
            if write {
                // SAFETY: the caller promises a buffer of this length.
                unsafe { by_number::pwritev2(descriptor, &segments, offset, flags) }
            } else {
                // SAFETY: as above, and the worker does not touch it meanwhile.
                unsafe { by_number::preadv2(descriptor, &segments, offset, flags) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polled_of_10_000(percent: u32) -> usize {
        let own = Pvsync2Options { hipri: true, hipri_percentage: percent, ..Pvsync2Options::default() };
        let mut priority = Priority::new(&EngineConfig::default(), &own);
        (0..10_000).filter(|_| priority.flag() == libc::RWF_HIPRI).count()
    }

    #[test]
    fn the_share_of_polled_units_is_the_percentage() {
        assert_eq!(polled_of_10_000(0), 0);
        assert_eq!(polled_of_10_000(100), 10_000);
        // Five standard deviations of a binomial distribution around 3000: ±230.
        assert!((2770..=3230).contains(&polled_of_10_000(30)));
    }

    #[test]
    fn flags_follow_the_options() {
        let flags = |atomic, uncached, nowait| {
            TransferFlags::new(&EngineConfig { atomic, ..EngineConfig::default() }, uncached, nowait)
        };
        assert_eq!(flags(false, false, false), TransferFlags { read: 0, write: 0 });
        assert_eq!(flags(true, false, false), TransferFlags { read: 0, write: 0x40 });
        // The kernel's numbers: RWF_NOWAIT 0x8, RWF_DONTCACHE 0x80.
        assert_eq!(flags(true, true, true), TransferFlags { read: 0x88, write: 0xc8 });
    }
}
