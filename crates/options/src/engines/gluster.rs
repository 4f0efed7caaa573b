//! Options of `gfapi` and `gfapi_async`.

use super::own::{OwnOptions, own, own_options};
use crate::definition::{Definition, Kind};

own_options! {
    /// The options of `gfapi` and `gfapi_async`.
    pub struct GfapiOptions declared by GFAPI {
        /// The volume.
        pub volume: String,
        /// A server that knows the volume.
        pub brick: String,
        /// Workers that share a process share a connection.
        pub single_instance: bool,
        /// The longest silence of a brick, in microseconds; 0 = the limit of the volume.
        pub gluster_timeout: u64,
    }
}

impl OwnOptions for GfapiOptions {
    fn patience_us(&self) -> Option<u64> {
        Some(self.gluster_timeout).filter(|&limit| limit > 0)
    }
}

impl GfapiOptions {
    /// The longest silence of a brick, in whole seconds, the unit of the library; 0 = the limit of the volume.
    pub fn limit_in_seconds(&self) -> u64 {
        self.gluster_timeout.div_ceil(1_000_000)
    }

    /// The same, for messages.
    pub fn limit_in_words(&self) -> String {
        match self.limit_in_seconds() {
            0 => "the volume allows (network.ping-timeout, 42 s by default)".to_owned(),
            seconds => format!("{seconds} s (gluster_timeout)"),
        }
    }
}

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static VOLUME: Definition =
    option("volume", Kind::Str, "GlusterFS volume").lands_in_engine(own!(GfapiOptions.volume, string()));
static BRICK: Definition =
    option("brick", Kind::Str, "Server of the volume").lands_in_engine(own!(GfapiOptions.brick, string()));
static SINGLE_INSTANCE: Definition =
    option("single-instance", Kind::Bool, "One connection for all workers of a process (thread=1)")
        .lands_in_engine(own!(GfapiOptions.single_instance, boolean()));
static GLUSTER_TIMEOUT: Definition = option(
    "gluster_timeout",
    Kind::Time,
    "The longest time that a brick may be silent, in whole seconds; 0 = as the volume is configured",
)
.default("0")
.lands_in_engine(own!(GfapiOptions.gluster_timeout, time(1_000_000)));

/// `gfapi` and `gfapi_async`
pub static GFAPI: &[&Definition] = &[&VOLUME, &BRICK, &SINGLE_INSTANCE, &GLUSTER_TIMEOUT];
