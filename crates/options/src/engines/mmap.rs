//! The options of `mmap`.

use super::own::{OwnOptions, own_options, place};
use super::shared::option;
use crate::definition::{Definition, Kind};

own_options! {
    /// The options of `mmap`.
    pub struct MmapOptions declared by OPTIONS {
        /// Ask for transparent huge pages in the mapping.
        pub thp: bool,
    }
}

impl OwnOptions for MmapOptions {}

static THP: Definition = option("thp", Kind::Int, "Ask for transparent huge pages in the mapping")
    .lands_in_engine(|own, given| {
        place::<MmapOptions>(own)?.thp = given.integer()? != 0;
        Ok(())
    });

/// All of them.
pub(super) static OPTIONS: &[&Definition] = &[&THP];
