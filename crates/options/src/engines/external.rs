//! The options of `external`: an engine in a shared object, which a job names as `external:FILE` or by a path.

use super::Facets;
use super::own::{OwnOptions, own, own_options};
use super::shared::option;
use crate::definition::{Definition, Kind};
use std::path::PathBuf;

own_options! {
    /// What `external` is told.
    pub struct ExternalOptions declared by OPTIONS {
        /// The shared object. A relative path begins in the current directory; it is not searched for.
        pub library: PathBuf,
        /// Text that the engine is handed as it is.
        pub arguments: String,
        /// What the engine says that it is. Whoever makes a plan finds that out before, if the jobs come from somebody who
        /// may have code of their own run on this machine: a job that is not told this is refused. It never travels, so
        /// nobody elsewhere can claim to have been told.
        #[serde(skip)]
        pub described: Option<Facets>,
    }
}

impl OwnOptions for ExternalOptions {}

static ARGUMENTS: Definition = option("arguments", Kind::Str, "Text that the engine is handed as it is")
    .lands_in_engine(own!(ExternalOptions.arguments, string()));

/// All of them.
pub(super) static OPTIONS: &[&Definition] = &[&ARGUMENTS];
