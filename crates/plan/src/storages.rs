//! Engines with their own storage: questions to it before a run, and which names mean the same object.

use crate::{FileFacts, FileKind, JobPlan};
use iolite_engine::EngineConfig;
use iolite_options::EngineOptions;
use iolite_options::engines::Data;
use std::path::PathBuf;

/// Answers questions about storages. That means connecting to a storage, and often loading a library, so a plan does
/// not do it itself.
pub trait Storages {
    /// How many bytes each of these names holds; `None` = it does not exist.
    ///
    /// # Errors
    /// The storage does not answer, or refuses.
    fn sizes(
        &self,
        engine: &str,
        config: &EngineConfig,
        names: &[PathBuf],
    ) -> Result<Vec<Option<u64>>, String>;
}

/// For plans without storages: local files, and engines that keep no data.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStorages;

impl Storages for NoStorages {
    fn sizes(&self, engine: &str, _: &EngineConfig, _: &[PathBuf]) -> Result<Vec<Option<u64>>, String> {
        Err(format!("ioengine={engine}: its storage cannot be queried here"))
    }
}

/// The namespace of a name: the same name means different objects in different storages. Local files are one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Namespace(usize);

impl Namespace {
    /// The namespace of files of this machine.
    pub(crate) const LOCAL: Namespace = Namespace(0);
}

/// The namespaces of a plan: engines, their options, and the block size if it is a part of names. Engines with equal
/// options connect to the same storage.
#[derive(Debug, Default)]
pub(crate) struct Namespaces(Vec<(&'static str, EngineOptions, u64)>);

impl Namespaces {
    /// The namespace of a job's names; `None` if they have no meaning.
    pub(crate) fn of(&mut self, job: &JobPlan) -> Option<Namespace> {
        match job.engine.facets.data {
            Data::OtherEnd | Data::Nowhere => return None,
            Data::LocalFiles => return Some(Namespace::LOCAL),
            Data::OwnStorage => {}
        }
        let block = if job.options.engine.blocks_are_objects() { job.storage_config().block } else { 0 };
        let wanted = (job.engine.name, &job.options.engine, block);
        let known = self.0.iter().position(|(name, options, block)| (*name, options, *block) == wanted);
        let place = known.unwrap_or_else(|| {
            self.0.push((job.engine.name, job.options.engine.clone(), block));
            self.0.len() - 1
        });
        Some(Namespace(place + 1))
    }
}

/// Facts about the names of a job in its storage.
///
/// # Errors
/// The storage does not answer, or refuses.
pub(crate) fn facts(
    job: &JobPlan,
    names: &[PathBuf],
    storages: &dyn Storages,
) -> Result<Vec<FileFacts>, String> {
    let config = job.storage_config();
    let sizes = storages.sizes(job.engine.name, &config, names)?;
    Ok(sizes.into_iter().map(|size| FileFacts { kind: FileKind::Regular, size }).collect())
}
