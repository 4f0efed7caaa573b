//! The options of one job, typed: every option that has an effect, with defaults filled in.
//!
//! Field names are option names. Times are in microseconds unless a field says otherwise, sizes in bytes.
//! [`JobOptions::is_set`] tells whether an option was given rather than left at its default, because some rules
//! depend on that.

/// Makes a group of options. Its default consists of the defaults of its options' definitions.
macro_rules! options {
    ($(#[$meta:meta])* pub struct $name:ident at $place:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[expect(missing_docs, reason = "the names are the options' own")]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)+ }

        impl $name {
            /// All options off, empty or zero.
            pub(super) fn blank() -> Self {
                $name { $($field: Default::default(),)+ }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $crate::JobOptions::default().$place
            }
        }
    };
}

mod batches;
mod buffers;
mod data_placement;
mod depth;
mod durability;
mod errors;
mod extent;
mod files;
mod logs;
mod measurement;
mod pattern;
mod placement;
mod rates;
mod replay;
mod schedule;
mod verification;
mod zones;

pub use batches::*;
pub use buffers::*;
pub use data_placement::*;
pub use depth::*;
pub use durability::*;
pub use errors::*;
pub use extent::*;
pub use files::*;
pub use logs::*;
pub use measurement::*;
pub use pattern::*;
pub use placement::*;
pub use rates::*;
pub use replay::*;
pub use schedule::*;
pub use verification::*;
pub use zones::*;

use crate::Origin;
use crate::engines::{EngineInfo, EngineOptions, ExternalOptions, engine};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The options of one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the options, and of the groups")]
pub struct JobOptions {
    pub name: String,
    pub description: Option<String>,
    /// The name of an engine in the catalogue; see [`JobOptions::choose_engine`].
    pub ioengine: String,
    /// The own options of that engine.
    pub engine: EngineOptions,
    pub schedule: ScheduleOptions,
    pub files: FileOptions,
    pub extent: ExtentOptions,
    pub pattern: PatternOptions,
    pub zones: ZoneOptions,
    pub data_placement: DataPlacementOptions,
    pub durability: DurabilityOptions,
    pub buffers: BufferOptions,
    pub replay: ReplayOptions,
    pub depth: DepthOptions,
    pub verification: VerifyOptions,
    pub rates: RateOptions,
    pub batches: BatchOptions,
    pub placement: PlacementOptions,
    pub errors: ErrorOptions,
    pub measurement: MeasurementOptions,
    pub logs: LogOptions,

    /// The options that this section set (without the global ones): canonical name and text, in order, for the JSON
    /// report. A flag without a value has empty text.
    pub given: Vec<(String, String)>,
    /// The options that the `[global]` sections before this job set, likewise.
    pub given_global: Vec<(String, String)>,
    /// Where each option that was set (canonical name) got its value, from this section or a global one.
    pub origins: BTreeMap<String, Origin>,
    /// The number of workers of the earlier jobs that `--section` leaves out.
    pub left_out_before: u64,
    /// The program is called `fio` ([`JobOptions::be_as_fio`]): what fio refuses is refused, in its words.
    pub as_fio: bool,
}

impl JobOptions {
    /// All options off, empty or zero. Options with a default in the tables are set afterwards.
    pub(crate) fn blank() -> Self {
        JobOptions {
            name: Default::default(),
            description: Default::default(),
            ioengine: Default::default(),
            engine: Default::default(),
            schedule: ScheduleOptions::blank(),
            files: FileOptions::blank(),
            extent: ExtentOptions::blank(),
            pattern: PatternOptions::blank(),
            zones: ZoneOptions::blank(),
            data_placement: DataPlacementOptions::blank(),
            durability: DurabilityOptions::blank(),
            buffers: BufferOptions::blank(),
            replay: ReplayOptions::blank(),
            depth: DepthOptions::blank(),
            verification: VerifyOptions::blank(),
            rates: RateOptions::blank(),
            batches: BatchOptions::blank(),
            placement: PlacementOptions::blank(),
            errors: ErrorOptions::blank(),
            measurement: MeasurementOptions::blank(),
            logs: LogOptions::blank(),
            given: Default::default(),
            given_global: Default::default(),
            origins: Default::default(),
            left_out_before: Default::default(),
            as_fio: Default::default(),
        }
    }

    /// Whether this option (canonical name) was set, in this section or a global one.
    pub fn is_set(&self, canonical_name: &str) -> bool {
        self.origins.contains_key(canonical_name)
    }

    /// Chooses an engine. If it differs from the previous one, the old engine's options are discarded, and the new
    /// one's have their defaults.
    pub fn choose_engine(&mut self, chosen: &EngineInfo) {
        if chosen.name == self.ioengine {
            return;
        }
        for definition in engine(&self.ioengine).map_or(&[][..], |before| before.options) {
            self.origins.remove(definition.name);
        }
        self.ioengine = chosen.name.to_owned();
        self.engine = (chosen.own)();
    }

    /// Chooses the engine in this shared object.
    pub(crate) fn choose_library(&mut self, external: &EngineInfo, library: PathBuf) {
        if self.engine.of::<ExternalOptions>().is_some_and(|own| own.library != library) {
            // It is a different engine, although it has the same name.
            self.choose_engine(&EngineInfo { name: "", ..*external });
        }
        self.choose_engine(external);
        if let Some(own) = self.engine.of_mut::<ExternalOptions>() {
            own.library = library;
        }
    }

    /// The I/O priority of the workers (`prio`, `prioclass`, `priohint`), encoded as in the kernel; `None` =
    /// unchanged.
    pub fn io_priority(&self) -> Option<u16> {
        // A level without a class is one of the default class.
        const BEST_EFFORT: u32 = 2;
        let given = [self.placement.prioclass, self.placement.prio, self.placement.priohint];
        given.iter().any(Option::is_some).then(|| {
            let class = self.placement.prioclass.unwrap_or(BEST_EFFORT);
            iolite_types::io_priority(
                class,
                self.placement.prio.unwrap_or(0),
                self.placement.priohint.unwrap_or(0),
            )
        })
    }
}
