//! Zones of the workload.

use crate::typed::{ZoneMode, ZoneSkip};

options! {
    /// Zones of the workload.
    pub struct ZoneOptions at zones {
        pub zonemode: ZoneMode,
        /// Bytes of I/O in a zone before the next; 0 only without zones.
        pub zonesize: u64,
        /// Bytes of the file that a zone covers; with zones, `zonesize` where it was not given.
        pub zonerange: u64,
        pub zoneskip: ZoneSkip,
    }
}
