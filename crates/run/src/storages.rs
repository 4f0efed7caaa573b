//! Asks engines and their storages before a run, often in a child process, because that means connecting, and loading
//! libraries.

use iolite_engine::{EngineConfig, in_child_process_with_progress};
use iolite_engines::storage_of;
use iolite_plan::Storages;
use std::cell::RefCell;
use std::path::PathBuf;

/// Asks storages by connecting to them. This process has to be single-threaded.
#[derive(Default)]
pub struct Connected {
    /// Engines that did not get an answer in time, with their options and the error. The next question would take that
    /// time again.
    silent: RefCell<Vec<(String, EngineConfig, String)>>,
}

impl Connected {
    /// Checks that an engine can be used on this machine.
    ///
    /// # Errors
    /// It cannot, or what its options name does not answer.
    pub fn probe(&self, engine: &str, config: &EngineConfig) -> Result<(), String> {
        self.known(engine, config)?;
        iolite_engines::probe(engine, config).map_err(|error| {
            let words = error.to_string();
            if error.errno() == libc::ETIMEDOUT {
                self.silent.borrow_mut().push((engine.to_owned(), config.clone(), words.clone()));
            }
            words
        })
    }

    fn known(&self, engine: &str, config: &EngineConfig) -> Result<(), String> {
        let silent = self.silent.borrow();
        let known = silent.iter().find(|(name, known, _)| name == engine && known.options == config.options);
        known.map_or(Ok(()), |(.., error)| Err(error.clone()))
    }
}

impl Storages for Connected {
    fn sizes(
        &self,
        engine: &str,
        config: &EngineConfig,
        names: &[PathBuf],
    ) -> Result<Vec<Option<u64>>, String> {
        self.known(engine, config)?;
        let asked = in_child_process_with_progress(engine, config.options.patience_us(), |progress| {
            Ok(storage_of(engine, config)?.sizes(names, progress))
        });
        asked.map_err(|error| error.to_string())?
    }
}
