//! Files of a replay: how each is opened, files that a live trace adds, and the recording of I/O.

use super::FileTable;
use crate::record::TraceRecorder;
use iolite_engine::{FileKind, FileSpec, OpenMode};
use iolite_host::{FileKey, Machine, ThisMachine};
use iolite_logs::LogError;
use iolite_plan::resolve::LiveFileRules;
use iolite_types::Operation;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The rules for files that a live trace adds.
#[derive(Clone, Debug)]
pub(super) struct LiveRules {
    /// The engine uses files of this machine.
    has_local_files: bool,
    readonly: bool,
    allow_mounted_write: bool,
    allow_file_create: bool,
    keeps_lengths: bool,
    /// The traces that the job reads.
    traces: Vec<FileKey>,
}

impl LiveRules {
    /// The rules of a live replay.
    pub(super) fn new(rules: &LiveFileRules, has_local_files: bool) -> LiveRules {
        LiveRules {
            has_local_files,
            readonly: rules.readonly,
            allow_mounted_write: rules.allow_mounted_write,
            allow_file_create: rules.allow_file_create,
            keeps_lengths: rules.keeps_lengths,
            traces: rules.traces.iter().map(|trace| FileKey::of(trace)).collect(),
        }
    }
}

/// The names of files, by the file that they refer to.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<FileKey, PathBuf>);

impl Names {
    /// Notes a name.
    ///
    /// # Errors
    /// The file is already known under another name.
    fn note(&mut self, path: &Path) -> Result<(), String> {
        // The file may be created at any time. Until then it has the second key.
        for key in [FileKey::of(path), FileKey::missing(path)] {
            let known = self.0.entry(key).or_insert_with(|| path.to_owned());
            if known != path {
                let (known, path) = (known.display(), path.display());
                return Err(format!(
                    "{known} and {path} are the same file, and verify takes it for two; name it once"
                ));
            }
        }
        Ok(())
    }
}

impl FileTable {
    /// Adds a file that a live trace has named, after checking that the job may use it.
    ///
    /// # Errors
    /// Why the job cannot use the file, as text for the user.
    pub fn add(&mut self, file: u32, path: PathBuf) -> Result<(), String> {
        let Some(rules) = self.live.clone() else {
            return Err(format!("{} is not expected", path.display()));
        };
        if (file as usize) < self.specs.len() {
            return Ok(());
        }
        if let (Some(names), true) = (&mut self.names, rules.has_local_files) {
            names.note(&path)?;
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.added(&path);
        }
        // Other jobs may have changed the file since the run began.
        let machine = ThisMachine::new();
        let (kind, size) = if rules.has_local_files {
            machine.usable_file(&path).map_err(|refusal| format!("{}: {refusal}", path.display()))?
        } else {
            (FileKind::Regular, None)
        };
        let is_new = kind == FileKind::Regular && rules.has_local_files && size.is_none();
        if is_new && iolite_plan::is_missing_device(&machine, &path) {
            return Err(format!("{} does not exist, and no file is made among devices", path.display()));
        }
        if is_new && !rules.allow_file_create {
            return Err(format!("{} does not exist, and allow_file_create=0", path.display()));
        }
        self.ends.push(size.filter(|_| kind == FileKind::Regular && rules.keeps_lengths));
        let size = size.filter(|_| kind != FileKind::Regular).unwrap_or(0);
        let protected = if rules.readonly {
            Some("--readonly forbids that".to_owned())
        } else if rules.has_local_files && rules.traces.contains(&FileKey::of(&path)) {
            Some(
                "it is the trace that is replayed; send it elsewhere with replay_redirect or directory"
                    .to_owned(),
            )
        } else if rules.has_local_files && !rules.allow_mounted_write {
            machine.in_use(&path).map(|why| format!("{why}; allow_mounted_write=1 overrides this"))
        } else {
            None
        };
        let mode = OpenMode { read: true, write: self.usual.write && protected.is_none(), ..self.usual };
        self.modes.push(OpenMode { create: mode.write && rules.allow_file_create, ..mode });
        self.protected.push(protected);
        self.specs.push(FileSpec { path, kind, size });
        self.open.push(false);
        self.written.push(false);
        Ok(())
    }

    /// Why this file must not be written to, if so.
    pub fn protected(&self, file: u32) -> Option<&str> {
        self.protected.get(file as usize)?.as_deref()
    }

    /// Where this file ends, if it must not become longer.
    pub fn end(&self, file: u32) -> Option<u64> {
        self.ends.get(file as usize).copied().flatten()
    }

    /// After a failed open: falls back to read-only access for a file of a live trace that cannot be written to.
    /// Returns whether to try again.
    pub(super) fn settle_for_reading(&mut self, file: u32, error: &io::Error) -> bool {
        if self.live.is_none() {
            return false;
        }
        let mode = &mut self.modes[file as usize];
        let may_settle = mode.write
            && matches!(error.raw_os_error(), Some(libc::EACCES | libc::EROFS | libc::EPERM | libc::ETXTBSY));
        if may_settle {
            *mode = OpenMode { write: false, create: false, ..*mode };
            self.protected[file as usize] = Some("it can only be opened for reading".to_owned());
        }
        may_settle
    }

    /// Starts the recording. Files that were added or opened before are part of it.
    pub fn begin_recording(&mut self, now: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(now);
        }
    }

    /// Records an I/O. Returns false if the recording cannot be written; [`Self::finish_recording`] returns the error.
    #[inline]
    pub fn record(&mut self, operation: Operation, file: u32, offset: u64, length: u64) -> bool {
        let Some(recorder) = &mut self.recorder else { return true };
        recorder.io(operation, file, offset, length);
        !recorder.has_failed()
    }

    /// Records that a file was opened.
    pub(super) fn record_open(&mut self, file: u32) {
        if let Some(recorder) = &mut self.recorder {
            recorder.opened(file);
        }
    }

    /// Records that a file was closed.
    pub(super) fn record_close(&mut self, file: u32) {
        if let Some(recorder) = &mut self.recorder {
            recorder.closed(file);
        }
    }

    /// Finishes the recording. Returns how long the job has waited for it.
    ///
    /// # Errors
    /// The recording cannot be written.
    pub fn finish_recording(&mut self) -> Result<Duration, LogError> {
        self.recorder.take().map_or(Ok(Duration::ZERO), TraceRecorder::finish)
    }

    /// Records everything that happens to these files from now on.
    pub fn record_to(&mut self, mut recorder: TraceRecorder) {
        self.specs.iter().for_each(|(_, spec)| recorder.added(&spec.path));
        self.recorder = Some(recorder);
    }
}
