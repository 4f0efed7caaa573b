//! The facts about each file before it is opened.

use iolite_engine::{FileKind, FileSpec};
use iolite_plan::{Layout, Names};
use std::borrow::Cow;

/// The files of a worker, by their numbers.
#[derive(Debug)]
pub(super) enum Specs {
    /// Facts about each file.
    Listed(Vec<FileSpec>),
    /// Only names; there may be millions of them.
    Named(Names),
}

impl Specs {
    /// The files of this layout.
    pub(super) fn new(layout: &Layout) -> Specs {
        if let Some(named) = &layout.named {
            return Specs::Named(named.names.clone());
        }
        let spec = |file: &iolite_plan::FileLayout| FileSpec {
            path: file.path.clone(),
            kind: file.kind,
            size: file.offset.saturating_add(file.length),
        };
        Specs::Listed(layout.files.iter().map(spec).collect())
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Specs::Listed(specs) => specs.len(),
            Specs::Named(names) => names.len(),
        }
    }

    pub(super) fn get(&self, file: u32) -> Option<Cow<'_, FileSpec>> {
        match self {
            Specs::Listed(specs) => specs.get(file as usize).map(Cow::Borrowed),
            Specs::Named(names) => names.get(file as usize).map(|path| {
                Cow::Owned(FileSpec { path: path.into_owned(), kind: FileKind::Regular, size: 0 })
            }),
        }
    }

    /// Adds a file, which gets the next number.
    pub(super) fn push(&mut self, spec: FileSpec) {
        match self {
            Specs::Listed(specs) => specs.push(spec),
            Specs::Named(_) => unreachable!("no trace is replayed by acting on names"),
        }
    }

    /// All of them, with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Cow<'_, FileSpec>)> {
        (0..self.len() as u32).filter_map(|file| Some((file, self.get(file)?)))
    }
}
