//! The options of `nbd`.

use super::own::{OwnOptions, own, own_options, place};
use super::shared::BIND;
use super::url::Url;
use crate::definition::{Definition, Kind, Places};

own_options! {
    /// The options of `nbd`.
    pub struct NbdOptions declared by OPTIONS with places {
        /// The server and its export: `nbd://SERVER/EXPORT`, `nbd+unix:///EXPORT?socket=FILE`.
        pub uri: Url,
        /// The longest silence of the server, in microseconds; 0 = no limit.
        pub nbd_timeout: u64,
        /// Addresses or interfaces of this machine to connect from, a list; empty = the system chooses.
        pub bind: String,
    }
}

impl Places for NbdOptions {
    fn bind(&mut self) -> Option<&mut String> {
        Some(&mut self.bind)
    }
}

impl OwnOptions for NbdOptions {
    fn patience_us(&self) -> Option<u64> {
        Some(self.nbd_timeout)
    }
}

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static URI: Definition =
    option("uri", Kind::Str, "Server and export, as in nbd://server/export or nbd+unix:///?socket=file")
        .lands_in_engine(|own, given| {
            place::<NbdOptions>(own)?.uri = Url::new(given.string()?);
            Ok(())
        });
static NBD_TIMEOUT: Definition =
    option("nbd_timeout", Kind::Time, "The longest time that the server may be silent; 0 = no limit")
        .default("60s")
        .lands_in_engine(own!(NbdOptions.nbd_timeout, time(1_000_000)));

/// All of them.
pub static OPTIONS: &[&Definition] = &[&URI, &NBD_TIMEOUT, &BIND];
