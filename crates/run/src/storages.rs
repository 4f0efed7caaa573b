//! Asking the storages of engines that have one of their own, before a run: in a process of its own, because to ask is to
//! connect, and often to load a library.

use iolite_engine::{EngineConfig, apart, storage_of};
use iolite_plan::Storages;
use iolite_types::describe_error;
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
        let asked = apart(engine, || {
            let mut storage = storage_of(engine, config)?;
            let size = |name: &PathBuf| {
                storage.size(name).map_err(|error| format!("{}: {}", name.display(), describe_error(&error)))
            };
            Ok(names.iter().map(size).collect::<Result<Vec<_>, String>>())
        });
        asked.map_err(|error| error.to_string())?
    }
}
