//! The options of `pvsync2`.

use super::own::{OwnOptions, own, own_options};
use super::shared::{HIPRI, NOWAIT, UNCACHED, option};
use crate::definition::{Definition, Kind, Places};

own_options! {
    /// The options of `pvsync2`.
    pub struct Pvsync2Options declared by OPTIONS with places {
        /// Poll the device for completions (RWF_HIPRI).
        pub hipri: bool,
        /// Percent of the I/Os for which that is done.
        pub hipri_percentage: u32,
        /// Drop pages from the cache after use (RWF_DONTCACHE).
        pub uncached: bool,
        /// Fail rather than wait (RWF_NOWAIT).
        pub nowait: bool,
    }
}

impl Places for Pvsync2Options {
    fn hipri(&mut self) -> Option<&mut bool> {
        Some(&mut self.hipri)
    }

    fn uncached(&mut self) -> Option<&mut bool> {
        Some(&mut self.uncached)
    }

    fn nowait(&mut self) -> Option<&mut bool> {
        Some(&mut self.nowait)
    }
}

impl OwnOptions for Pvsync2Options {}

static HIPRI_PERCENTAGE: Definition =
    option("hipri_percentage", Kind::Int, "Percent of I/Os to which hipri applies")
        .default("100")
        .range(0, 100)
        .lands_in_engine(own!(Pvsync2Options.hipri_percentage, number()));

/// All of them.
pub(super) static OPTIONS: &[&Definition] = &[&HIPRI, &HIPRI_PERCENTAGE, &UNCACHED, &NOWAIT];
