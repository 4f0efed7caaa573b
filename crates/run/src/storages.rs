//! Asks engines and their storages before a run, often in a child process, because that means connecting, and loading
//! libraries.

use iolite_engine::{EngineConfig, EngineError, in_child_process_with_progress};
use iolite_engines::storage_of;
use iolite_plan::Storages;
use std::cell::RefCell;
use std::path::PathBuf;

/// Asks storages by connecting to them. This process has to be single-threaded.
#[derive(Default)]
pub struct Connected {
    /// Storages that did not answer in time, with the error. The next question would take that time again.
    silent: RefCell<Vec<(String, EngineConfig, String)>>,
}

impl Connected {
    /// Checks that an engine can be used on this machine.
    ///
    /// # Errors
    /// It cannot, or its storage does not answer.
    pub fn probe(&self, engine: &str, config: &EngineConfig) -> Result<(), String> {
        self.ask(engine, config, || iolite_engines::probe(engine, config))
    }

    fn ask<T>(
        &self,
        engine: &str,
        config: &EngineConfig,
        question: impl FnOnce() -> Result<T, EngineError>,
    ) -> Result<T, String> {
        let known = self.silent.borrow();
        let is_it = |(name, known, _): &&(String, EngineConfig, String)| {
            name == engine && known.options == config.options
        };
        if let Some((.., error)) = known.iter().find(is_it) {
            return Err(error.clone());
        }
        drop(known);
        question().map_err(|error| {
            let words = error.to_string();
            if error.errno() == libc::ETIMEDOUT {
                let silent = (engine.to_owned(), config.clone(), words.clone());
                self.silent.borrow_mut().push(silent);
            }
            words
        })
    }
}

impl Storages for Connected {
    fn sizes(
        &self,
        engine: &str,
        config: &EngineConfig,
        names: &[PathBuf],
    ) -> Result<Vec<Option<u64>>, String> {
        self.ask(engine, config, || {
            in_child_process_with_progress(engine, config.options.patience_us(), |progress| {
                Ok(storage_of(engine, config)?.sizes(names, progress))
            })
        })?
    }
}
