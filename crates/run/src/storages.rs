//! Asks the storages of engines about names before a run, in a child process, because that means connecting, and often
//! loading a library.

use iolite_engine::{EngineConfig, in_child_process_with_progress};
use iolite_engines::storage_of;
use iolite_plan::Storages;
use std::path::PathBuf;

/// Asks storages by connecting to them. This process has to be single-threaded.
pub struct Connected;

impl Storages for Connected {
    fn sizes(
        &self,
        engine: &str,
        config: &EngineConfig,
        names: &[PathBuf],
    ) -> Result<Vec<Option<u64>>, String> {
        let asked = in_child_process_with_progress(engine, config.options.patience_us(), |progress| {
            Ok(storage_of(engine, config)?.sizes(names, progress))
        });
        asked.map_err(|error| error.to_string())?
    }
}
