//! The options of `external`: an engine in a shared object, which a job names as `external:FILE` or by a path.

use super::Facets;
use super::own::{OwnOptions, own, own_options};
use super::shared::option;
use crate::definition::{Definition, Kind};
use std::path::PathBuf;

own_options! {
    /// The options of `external`.
    pub struct ExternalOptions declared by OPTIONS {
        /// The shared object. A relative path starts at the current directory; there is no search path.
        pub library: PathBuf,
        /// Text passed to the engine unchanged.
        pub arguments: String,
        /// The facets that the library declares. The front end fills this in, for jobs of this machine only; a job
        /// without it is refused. It is never serialized, so a remote job cannot name code to be loaded here.
        #[serde(skip)]
        pub described: Option<Facets>,
    }
}

impl OwnOptions for ExternalOptions {
    fn facets(&self, facets: Facets) -> Facets {
        self.described.unwrap_or(facets)
    }
}

static ARGUMENTS: Definition = option("arguments", Kind::Str, "Text passed to the engine unchanged")
    .lands_in_engine(own!(ExternalOptions.arguments, string()));

/// All of them.
pub(super) static OPTIONS: &[&Definition] = &[&ARGUMENTS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leave_to_load_code_does_not_travel() {
        let facets = crate::engines::engine("psync").map(|entry| entry.facets);
        let here =
            ExternalOptions { library: "./e.so".into(), described: facets, ..ExternalOptions::default() };
        let text = serde_json::to_string(&here).unwrap();
        let there: ExternalOptions = serde_json::from_str(&text).unwrap();
        assert_eq!((there.library, there.described), (here.library, None));
    }
}
