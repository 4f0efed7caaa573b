//! Keeps the state of a worker while it writes.

use crate::rules::{Keep, Rules};
use crate::state::{Covered, FileIdentity, Recorder, Setup, StateFile, place_of};
use iolite_workload::Io;
use iolite_workload::history::Written;
use std::io;
use std::path::Path;

/// The state that is kept while a worker writes. A unit of the loop is a slot of the state.
#[derive(Debug)]
pub struct Keeper {
    recorder: Recorder,
    /// For each unit, the file that it flushes, and the writes that the flush will cover.
    flushes: Vec<Option<(u32, Covered)>>,
    /// The file is kept even if everything has been checked.
    stays: bool,
}

impl Keeper {
    /// Begins the state file.
    ///
    /// # Errors
    ///
    /// Errors of the file system, above all a lack of space.
    pub(crate) fn begin(keep: &Keep, rules: &Rules) -> io::Result<Keeper> {
        let files = keep.files.iter().map(|file| StateFile {
            identity: FileIdentity::of(&file.name).filter(|_| keep.are_local && !keep.are_made_again),
            place: place_of(&file.name).filter(|_| keep.are_local),
            ..file.clone()
        });
        let setup = Setup {
            program: concat!("iolite-", env!("CARGO_PKG_VERSION")).to_owned(),
            job: rules.job.clone(),
            number: rules.number,
            kind: keep.method.clone(),
            began: std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs(),
            seed: rules.seed,
            block: keep.block,
            depth: rules.depth,
            is_uniform: keep.is_uniform,
            is_durable: keep.is_durable,
            is_copied: keep.is_copied,
            per_pass: keep.per_pass,
            has_flushes: keep.has_flushes,
            imprint: Some(keep.imprint.clone()),
            files: files.collect(),
        };
        let recorder = Recorder::create(&keep.path, &setup)?;
        Ok(Keeper { recorder, flushes: vec![None; rules.depth as usize], stays: keep.is_asked_for })
    }

    /// A write is about to be issued with this unit.
    pub fn issue(&self, unit: u32, written: &Written) {
        let Io { file, offset, length, .. } = written.io;
        self.recorder.issue(unit, written.number, file, offset, length);
    }

    /// The write of this unit has been acknowledged.
    pub fn acknowledge(&self, unit: u32) {
        self.recorder.acknowledge(unit);
    }

    /// The write of this unit has failed.
    pub fn failed(&self, unit: u32) {
        self.recorder.failed(unit);
    }

    /// This place is about to be trimmed.
    pub fn forget(&self, io: &Io) {
        self.recorder.forget(io.file, io.offset, io.length);
    }

    /// A flush of this file is about to be issued with this unit.
    pub fn flush(&mut self, unit: u32, file: u32) {
        self.flushes[unit as usize] = Some((file, self.recorder.flush(file)));
    }

    /// The flush of this unit has ended; `done` = without an error.
    pub fn flushed(&mut self, unit: u32, done: bool) {
        if let Some((file, covered)) = self.flushes[unit as usize].take()
            && done
        {
            self.recorder.flushed(file, covered);
        }
    }

    /// A file has been flushed while nothing was in flight.
    pub fn flushed_file(&mut self, file: u32) {
        let covered = self.recorder.flush(file);
        self.recorder.flushed(file, covered);
    }

    /// Removes the file, because everything has been checked; unless it must stay.
    ///
    /// # Errors
    ///
    /// Errors of the file system.
    pub fn remove(self) -> io::Result<()> {
        if self.stays { Ok(()) } else { self.recorder.remove() }
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.recorder.bytes()
    }

    /// The name of the file.
    pub fn path(&self) -> &Path {
        self.recorder.path()
    }
}
