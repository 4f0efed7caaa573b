//! Zones of the workload.

use crate::typed::{ZoneMode, ZoneSkip};

options! {
    /// Zones of the workload.
    pub struct ZoneOptions at zones {
        pub zonemode: ZoneMode,
        /// Bytes of I/O in a zone before the next; 0 only without zones.
        pub zonesize: u64,
        /// Bytes of the file that a zone covers; with zones, `zonesize` if it was not given.
        pub zonerange: u64,
        pub zoneskip: ZoneSkip,
        /// Bytes of a zone that can be used; 0 = all.
        pub zonecapacity: u64,
        pub read_beyond_wp: bool,
        /// 0 = no limit but the device's.
        pub max_open_zones: u32,
        /// 0 = no limit.
        pub job_max_open_zones: u32,
        pub ignore_zone_limits: bool,
        pub zone_reset_threshold: f64,
        pub zone_reset_frequency: f64,
        pub recover_zbd_write_error: bool,
        pub write_zone_remainder: bool,
    }
}

impl ZoneOptions {
    /// Whether the zones are those of zoned devices, or are treated like them.
    pub fn is_zbd(&self) -> bool {
        self.zonemode == ZoneMode::Zbd
    }

    /// Bytes to skip from one zone to the next, where a zone has `zone` bytes.
    pub fn skipped(&self, zone: u64) -> u64 {
        match self.zoneskip {
            ZoneSkip::Bytes(bytes) => bytes,
            ZoneSkip::Zones(count) => zone.saturating_mul(count.into()),
        }
    }
}
