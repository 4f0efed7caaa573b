//! Operations on files by name: size, create, sync, unlink, list.
//!
//! The size of a file is the sum of its chunks, from the first one up to the first gap. A directory is listed once for
//! all of its files.

use super::chunks::{Line, Syncs, chunk_name, chunk_of, parts};
use super::failure::Failure;
use super::{Chunks, LibhdfsEngine, hdfs_name};
use bytes::Bytes;
use iolite_engine::{Room, Storage, Stored};
use iolite_options::Fallocate;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

/// The chunks of the files in a directory: for each file name, the sizes of its chunks by number.
type Found = HashMap<String, BTreeMap<u64, u64>>;

/// A file that is open for layout.
struct Opened {
    chunks: Chunks,
    name: String,
    /// The chunk that is being written.
    current: (u64, Line),
    size: u64,
}

/// The directory and the last component of a name.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

impl LibhdfsEngine {
    /// The files of this directory.
    fn found_in(&self, directory: &str) -> Result<Found, Failure> {
        let place = self.cluster.place(directory);
        let place = match place.trim_end_matches('/') {
            "" => "/",
            place => place,
        };
        let entries = match self.cluster.wait(self.cluster.client.list_status(place, false)) {
            Ok(entries) => entries,
            Err(failure) if failure.is_missing() => return Ok(Found::new()),
            Err(failure) => return Err(failure.about(place)),
        };
        let mut found = Found::new();
        for entry in entries.iter().filter(|entry| !entry.isdir) {
            if let Some((file, chunk)) = chunk_of(split(&entry.path).1) {
                found.entry(file.to_owned()).or_default().insert(chunk, entry.length as u64);
            }
        }
        Ok(found)
    }

    fn chunks_of(&self, name: &str) -> Result<BTreeMap<u64, u64>, Failure> {
        let (directory, file) = split(name);
        Ok(self.found_in(directory)?.remove(file).unwrap_or_default())
    }

    /// The size of a file with these chunks.
    fn size_of(&self, name: &str, chunks: &BTreeMap<u64, u64>) -> Result<Option<u64>, Failure> {
        if chunks.is_empty() {
            return Ok(None);
        }
        let chunk_size = self.cluster.chunk_size;
        let mut size = 0;
        for ((&chunk, &length), expected) in chunks.iter().zip(0..) {
            if length > chunk_size {
                let words = format!(
                    "{} has {length} bytes, more than chunk_size={chunk_size}: it was written with another chunk_size, \
                     which reads it; or remove it",
                    self.cluster.place(&chunk_name(name, chunk))
                );
                return Err(Failure::new(libc::EINVAL, words));
            }
            if chunk != expected {
                break;
            }
            size += length;
            if length < chunk_size {
                break;
            }
        }
        Ok(Some(size))
    }
}

impl Storage for LibhdfsEngine {
    fn size(&mut self, name: &Path) -> io::Result<Option<u64>> {
        let name = hdfs_name(name)?;
        Ok(self.size_of(name, &self.chunks_of(name)?)?)
    }

    fn sizes(&mut self, names: &[PathBuf], progress: &mut dyn FnMut()) -> Result<Vec<Option<u64>>, String> {
        let mut directories: HashMap<&str, Found> = HashMap::new();
        let none = BTreeMap::new();
        let mut sizes = Vec::with_capacity(names.len());
        for name in names {
            let name = hdfs_name(name).map_err(|error| error.to_string())?;
            let (directory, file) = split(name);
            if !directories.contains_key(directory) {
                let found = self.found_in(directory).map_err(|failure| failure.words)?;
                directories.insert(directory, found);
                progress();
            }
            let chunks = directories[directory].get(file).unwrap_or(&none);
            sizes.push(self.size_of(name, chunks).map_err(|failure| failure.words)?);
        }
        Ok(sizes)
    }

    fn open(&mut self, name: &Path) -> io::Result<Box<dyn Stored + '_>> {
        let name = hdfs_name(name)?.to_owned();
        let size = self.size_of(&name, &self.chunks_of(&name)?)?.unwrap_or(0);
        let syncs = Syncs { each_write: false, each_chunk: true };
        let chunks = Chunks::new(self.cluster.clone(), self.cluster.place(&name), 0, syncs);
        Ok(Box::new(Opened { chunks, name, current: (0, Line::default()), size }))
    }

    fn sync(&mut self, name: &Path) -> io::Result<()> {
        let place = self.cluster.place(hdfs_name(name)?);
        // Closed chunks were synced before they were closed.
        let opened = self.files.iter_mut().find(|file| file.chunks.place == place);
        Ok(opened.map_or(Ok(()), |file| file.sync())?)
    }

    fn unlink(&mut self, name: &Path) -> io::Result<()> {
        let name = hdfs_name(name)?;
        let chunks = self.chunks_of(name)?;
        if chunks.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        for chunk in chunks.into_keys() {
            let place = self.cluster.place(&chunk_name(name, chunk));
            match self.cluster.wait(self.cluster.client.delete(&place, false)) {
                // (`false` means that another client removed it first.)
                Ok(_) => {}
                Err(failure) => return Err(failure.about(&place).into()),
            }
        }
        Ok(())
    }

    fn list(&mut self, directory: &Path, progress: &mut dyn FnMut()) -> io::Result<Vec<PathBuf>> {
        let found = self.found_in(hdfs_name(directory)?.trim_end_matches('/'))?;
        progress();
        let mut names: Vec<PathBuf> = found.into_keys().map(|file| directory.join(file)).collect();
        names.sort();
        Ok(names)
    }
}

impl Opened {
    /// Closes the current chunk.
    fn finish(&mut self) -> Result<(), Failure> {
        let (chunk, line) = &self.current;
        let mut slot = line.try_lock().map_err(|_| Failure::new(libc::EBUSY, self.name.clone()))?;
        self.chunks.cluster.wait(self.chunks.finish(&mut slot, *chunk))
    }
}

impl Stored for Opened {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn room(&mut self) -> io::Result<Option<Room>> {
        // The client has no call for the free space.
        Ok(None)
    }

    fn extend(&mut self, size: u64, how: Fallocate) -> io::Result<()> {
        // With the final size known, the last chunk counts as full, and is closed, when it reaches this size.
        self.chunks.size = size;
        match how {
            Fallocate::None => Ok(()),
            Fallocate::Native | Fallocate::Keep | Fallocate::Posix => {
                Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))
            }
            Fallocate::Truncate => {
                let words = format!(
                    "{}: a file of HDFS becomes longer only by being written; use fallocate=none",
                    self.chunks.place
                );
                Err(Failure::new(libc::EOPNOTSUPP, words).into())
            }
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut rest = bytes;
        for part in parts(offset, bytes.len() as u64, self.chunks.cluster.chunk_size) {
            if part.chunk != self.current.0 {
                self.finish()?;
                self.current = (part.chunk, Line::default());
            }
            let (now, later) = rest.split_at(part.length);
            rest = later;
            let line = &self.current.1;
            let mut slot = line.try_lock().map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))?;
            let written = self.chunks.write(&mut slot, part, Bytes::copy_from_slice(now));
            self.chunks.cluster.wait(written)?;
        }
        self.size = self.size.max(offset + bytes.len() as u64);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(self.finish()?)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // A caller that needs the data on stable storage has called `sync` and seen its error.
        let _ = self.finish();
    }
}
