//! The options of `nfs`.

use super::own::{OwnOptions, own, own_options, place};
use super::shared::BIND;
use super::url::Url;
use crate::definition::{Definition, Kind, Places};

own_options! {
    /// The options of `nfs`.
    pub struct NfsOptions declared by OPTIONS with places {
        /// The server and its export: `nfs://SERVER/EXPORT?…`.
        pub nfs_url: Url,
        /// How long the server may be silent or unreachable, in microseconds; 0 = no limit.
        pub nfs_timeout: u64,
        /// About how many bytes of data may wait for stable storage before the server is asked to commit them.
        pub nfs_uncommitted: u64,
        /// Addresses or interfaces of this machine to connect from, a list; empty = the system chooses.
        pub bind: String,
    }
}

impl Places for NfsOptions {
    fn bind(&mut self) -> Option<&mut String> {
        Some(&mut self.bind)
    }
}

impl OwnOptions for NfsOptions {
    fn patience_us(&self) -> Option<u64> {
        Some(self.nfs_timeout)
    }
}

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static NFS_URL: Definition = option(
    "nfs_url",
    Kind::Str,
    "Server and export, as in nfs://server/export?version=3; version=4 is NFS 4.1",
)
.lands_in_engine(|own, given| {
    place::<NfsOptions>(own)?.nfs_url = Url::new(given.string()?);
    Ok(())
});
static NFS_TIMEOUT: Definition =
    option("nfs_timeout", Kind::Time, "The longest time that the server may be silent or away; 0 = no limit")
        .default("60s")
        .lands_in_engine(own!(NfsOptions.nfs_timeout, time(1_000_000)));
static NFS_UNCOMMITTED: Definition = option(
    "nfs_uncommitted",
    Kind::Int,
    "How much uncommitted data is kept for resending before the server is asked to commit it",
)
.default("64m")
.min(1)
.lands_in_engine(own!(NfsOptions.nfs_uncommitted, number()));

/// All of them.
pub static OPTIONS: &[&Definition] = &[&NFS_URL, &NFS_TIMEOUT, &NFS_UNCOMMITTED, &BIND];
