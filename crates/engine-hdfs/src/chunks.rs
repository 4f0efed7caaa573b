//! Reads and writes the chunks of a file.
//!
//! HDFS lets a single writer write a file from start to end. Afterwards the file can only be appended to or replaced.
//! So a file of a job consists of many HDFS files, `NAME.0`, `NAME.1` and so on, each with `chunk_size` bytes except
//! the last. A write at offset 0 of a chunk replaces the chunk; any other write has to append to it. Readers see a
//! chunk once it is closed: when it is full, before it is read, or when its file is closed.
//!
//! Units of the same chunk run in the order in which they were queued: queueing a unit takes its place in the queue of
//! the chunk. They do not wait for units of other chunks.

use super::cluster::Cluster;
use super::failure::Failure;
use bytes::Bytes;
use hdfs_native::file::{FileReader, FileWriter};
use hdfs_native::{HdfsError, WriteOptions};
use std::collections::HashMap;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex as PlainMutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// The part of an I/O that lies in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) chunk: u64,
    /// Its offset in the chunk.
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

/// Splits a range of a file at the chunk boundaries.
pub(crate) fn parts(offset: u64, length: u64, chunk_size: u64) -> impl Iterator<Item = Part> {
    let end = offset + length;
    let mut at = offset;
    std::iter::from_fn(move || {
        let (chunk, within) = (at / chunk_size, at % chunk_size);
        let length = (chunk_size - within).min(end - at);
        at += length;
        (length > 0).then_some(Part { chunk, offset: within, length: length as usize })
    })
}

/// The name of a chunk.
pub(crate) fn chunk_name(file: &str, chunk: u64) -> String {
    format!("{file}.{chunk}")
}

/// The file and the chunk number of a chunk's name.
pub(crate) fn chunk_of(name: &str) -> Option<(&str, u64)> {
    let (file, number) = name.rsplit_once('.')?;
    let chunk: u64 = number.parse().ok()?;
    // Names like `job.01` are not names of chunks.
    (chunk.to_string() == number && !file.is_empty()).then_some((file, chunk))
}

/// The maximum number of readers that are kept for a file. They know the locations of a chunk's blocks.
const MOST_READERS: usize = 1024;

/// A chunk that is open for writing.
struct Writer {
    file: FileWriter,
    /// The bytes written so far.
    at: u64,
}

/// The state of a chunk, which its units lock in turn.
#[derive(Default)]
pub(crate) struct Slot {
    writer: Option<Writer>,
    /// Bytes of successful writes that the datanodes have neither synced nor all acknowledged. After an error they may be
    /// lost.
    at_risk: u64,
    /// When the last unit timed out here, and its error.
    timeout: Option<(Instant, Failure)>,
}

impl Slot {
    /// Notes that a unit has timed out, if it has.
    pub(crate) fn note_timeout(&mut self, result: &Result<(), Failure>) {
        if let Err(failure) = result
            && failure.errno == libc::ETIMEDOUT
        {
            self.timeout = Some((Instant::now(), failure.clone()));
        }
    }

    /// Fails a unit that was queued before an earlier unit of the chunk timed out. Otherwise each of them would wait for
    /// the whole time limit, one after the other.
    pub(crate) fn check_timeout(&self, queued: Instant) -> Result<(), Failure> {
        match &self.timeout {
            Some((at, failure)) if *at >= queued => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    /// Fails, once, if the chunk cannot be written any more and the cluster may not have all of its data.
    fn check_losses(&mut self) -> Result<(), Failure> {
        match self.at_risk {
            0 => Ok(()),
            _ => Err(self.with_losses(Failure::new(libc::EIO, "an earlier request failed"))),
        }
    }

    /// Adds to a failure how much data may be lost. Each loss is reported once.
    pub(crate) fn with_losses(&mut self, failure: Failure) -> Failure {
        match std::mem::take(&mut self.at_risk) {
            0 => failure,
            bytes => failure.about(&format!("{bytes} bytes that were written may be lost")),
        }
    }
}

/// The queue of a chunk: its lock is fair.
pub(crate) type Line = Arc<Mutex<Slot>>;

/// A place in a queue.
pub(crate) type Place = Pin<Box<dyn Future<Output = OwnedMutexGuard<Slot>> + Send>>;

/// Takes the next place in a queue.
pub(crate) fn take_place(line: &Line) -> Place {
    let mut place: Place = Box::pin(line.clone().lock_owned());
    // The first poll takes the place in the queue.
    match place.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(turn) => Box::pin(ready(turn)),
        Poll::Pending => place,
    }
}

/// Whether a queue can be removed: no unit waits in it, the chunk is not open for writing, and there is no loss to
/// report.
pub(crate) fn is_idle(line: &Line) -> bool {
    let is_over = |slot: &Slot| slot.writer.is_none() && slot.at_risk == 0;
    Arc::strong_count(line) == 1 && line.try_lock().is_ok_and(|slot| is_over(&slot))
}

/// When datanodes have to sync written data to disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syncs {
    /// After each write.
    pub(crate) each_write: bool,
    /// Before a chunk is closed, because a closed chunk cannot be synced.
    pub(crate) each_chunk: bool,
}

/// A file, for its readers and writers.
pub(crate) struct Chunks {
    pub(crate) cluster: Arc<Cluster>,
    /// The path of its chunks, without the dot and the number.
    pub(crate) place: String,
    /// The final size in bytes; 0 = unknown.
    pub(crate) size: u64,
    syncs: Syncs,
    readers: PlainMutex<HashMap<u64, Arc<FileReader>>>,
}

impl Chunks {
    pub(crate) fn new(cluster: Arc<Cluster>, place: String, size: u64, syncs: Syncs) -> Chunks {
        Chunks { cluster, place, size, syncs, readers: PlainMutex::default() }
    }

    /// The path of a chunk on the cluster.
    pub(crate) fn name(&self, chunk: u64) -> String {
        chunk_name(&self.place, chunk)
    }

    fn readers(&self) -> MutexGuard<'_, HashMap<u64, Arc<FileReader>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The final size of a chunk in bytes.
    fn whole(&self, chunk: u64) -> u64 {
        let chunk_size = self.cluster.chunk_size;
        match self.size.saturating_sub(chunk * chunk_size) {
            0 => chunk_size,
            rest => rest.min(chunk_size),
        }
    }

    /// Writes a part of a chunk. After an error, the content of the chunk is undefined; it can be replaced.
    pub(crate) async fn write(&self, slot: &mut Slot, part: Part, bytes: Bytes) -> Result<(), Failure> {
        let name = self.name(part.chunk);
        let written = self.write_named(slot, part, bytes, &name).await;
        written.map_err(|failure| failure.about(&name))
    }

    async fn write_named(
        &self,
        slot: &mut Slot,
        part: Part,
        bytes: Bytes,
        name: &str,
    ) -> Result<(), Failure> {
        let mut writer = match slot.writer.take() {
            Some(writer) if writer.at == part.offset => writer,
            Some(writer) if part.offset > 0 => {
                let at = writer.at;
                slot.writer = Some(writer);
                return Err(out_of_order(at, part));
            }
            earlier => {
                if let Some(mut earlier) = earlier {
                    // The chunk is about to be replaced.
                    let _ = earlier.file.close().await;
                }
                let writer = self.begin(part, name).await?;
                if part.offset == 0 {
                    slot.at_risk = 0;
                }
                writer
            }
        };
        writer.file.write_bytes(bytes).await.map_err(Failure::of_data)?;
        writer.at += part.length as u64;
        if writer.at >= self.whole(part.chunk) {
            self.close(writer).await?;
            slot.at_risk = 0;
            return Ok(());
        }
        if self.syncs.each_write {
            writer.file.hsync().await.map_err(Failure::of_data)?;
        } else {
            slot.at_risk += part.length as u64;
        }
        slot.writer = Some(writer);
        Ok(())
    }

    /// Replaces a chunk, or opens it for appending.
    async fn begin(&self, part: Part, name: &str) -> Result<Writer, Failure> {
        self.readers().remove(&part.chunk);
        let client = &self.cluster.client;
        if part.offset == 0 {
            let file = client.create(name, WriteOptions::default().overwrite(true)).await?;
            return Ok(Writer { file, at: 0 });
        }
        let found = match client.get_file_info(name).await {
            Ok(status) => status.length as u64,
            Err(HdfsError::FileNotFound(_)) => 0,
            Err(error) => return Err(error.into()),
        };
        if found != part.offset {
            return Err(out_of_order(found, part));
        }
        Ok(Writer { file: client.append(name).await?, at: part.offset })
    }

    /// Closes a chunk that is open for writing, so that readers see all of it.
    pub(crate) async fn finish(&self, slot: &mut Slot, chunk: u64) -> Result<(), Failure> {
        let about = |failure: Failure| failure.about(&self.name(chunk));
        let Some(writer) = slot.writer.take() else { return slot.check_losses().map_err(about) };
        self.readers().remove(&chunk);
        self.close(writer).await.map_err(about)?;
        slot.at_risk = 0;
        Ok(())
    }

    async fn close(&self, mut writer: Writer) -> Result<(), Failure> {
        if self.syncs.each_chunk {
            writer.file.hsync().await.map_err(Failure::of_data)?;
        }
        writer.file.close().await.map_err(Failure::of_data)
    }

    /// Syncs the writes to a chunk to stable storage.
    pub(crate) async fn sync(&self, slot: &mut Slot, chunk: u64) -> Result<(), Failure> {
        let about = |failure: Failure| failure.about(&self.name(chunk));
        let Some(mut writer) = slot.writer.take() else { return slot.check_losses().map_err(about) };
        writer.file.hsync().await.map_err(|error| about(Failure::of_data(error)))?;
        slot.at_risk = 0;
        slot.writer = Some(writer);
        Ok(())
    }

    /// Reads a part of a chunk into `buffer`, which is as long as the part.
    pub(crate) async fn read(&self, part: Part, buffer: &mut [u8]) -> Result<(), Failure> {
        let name = self.name(part.chunk);
        let read = self.read_named(part, buffer, &name).await;
        read.map_err(|failure| failure.about(&name))
    }

    async fn read_named(&self, part: Part, buffer: &mut [u8], name: &str) -> Result<(), Failure> {
        let end = part.offset + part.length as u64;
        let known = self.readers().get(&part.chunk).cloned();
        if let Some(reader) = known.filter(|reader| reader.file_length() as u64 >= end) {
            match reader.read_range_buf(buffer, part.offset as usize).await {
                Ok(()) => return Ok(()),
                // The chunk may have been replaced, or its blocks may have moved.
                Err(_) => drop(self.readers().remove(&part.chunk)),
            }
        }
        let reader = Arc::new(self.cluster.client.read(name).await?);
        let length = reader.file_length() as u64;
        if length < end {
            let words = format!(
                "it has {length} bytes, and the read ends at {end}; if its writer was killed, this makes its data \
                 readable: hdfs debug recoverLease -path {name}"
            );
            return Err(Failure::new(libc::ENODATA, words));
        }
        reader.read_range_buf(buffer, part.offset as usize).await.map_err(Failure::of_data)?;
        let mut readers = self.readers();
        if readers.len() >= MOST_READERS {
            readers.clear();
        }
        readers.insert(part.chunk, reader);
        Ok(())
    }
}

/// The error of a write that does not start at the end of the chunk.
fn out_of_order(length: u64, part: Part) -> Failure {
    let words = format!(
        "it has {length} bytes, and the write begins at {}: files of HDFS are written from their beginning to their end, \
         and then only appended to or made anew; write in order, or whole chunks (bs=CHUNK_SIZE)",
        part.offset
    );
    Failure::new(libc::EINVAL, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn bytes_are_in_one_chunk_or_in_several() {
        let all = |offset, length| -> Vec<_> {
            parts(offset, length, 10).map(|part| (part.chunk, part.offset, part.length)).collect()
        };
        assert_eq!(all(0, 10), [(0, 0, 10)]);
        assert_eq!(all(12, 3), [(1, 2, 3)]);
        assert_eq!(all(8, 15), [(0, 8, 2), (1, 0, 10), (2, 0, 3)]);
        assert_eq!(all(10, 0), []);
    }

    #[test]
    fn names_of_chunks_say_whose_they_are() {
        assert_eq!(chunk_of(&chunk_name("job.0.0", 12)), Some(("job.0.0", 12)));
        for other in ["job", "job.", "job.x", "job.01", "job.-1", ".3"] {
            assert_eq!(chunk_of(other), None, "{other}");
        }
    }

    #[test]
    fn units_queued_before_a_timeout_fail_with_it() {
        let mut slot = Slot::default();
        let before = Instant::now();
        slot.note_timeout(&Err(Failure::new(libc::EIO, "it is damaged")));
        assert!(slot.check_timeout(before).is_ok());
        slot.note_timeout(&Err(Failure::timeout(Duration::from_secs(1))));
        assert_eq!(slot.check_timeout(before).unwrap_err().errno, libc::ETIMEDOUT);
        std::thread::sleep(Duration::from_millis(1));
        assert!(slot.check_timeout(Instant::now()).is_ok(), "a later unit tries again");
    }

    #[test]
    fn losses_are_reported_once() {
        let line = Line::default();
        assert!(is_idle(&line));
        line.try_lock().unwrap().at_risk = 4096;
        assert!(!is_idle(&line));
        let told = line.try_lock().unwrap().check_losses().unwrap_err();
        assert!(told.words.starts_with("4096 bytes that were written may be lost: "), "{}", told.words);
        assert!(line.try_lock().unwrap().check_losses().is_ok() && is_idle(&line));
    }

    #[test]
    fn places_are_taken_in_the_order_of_asking() {
        let line = Line::default();
        let (mut first, second, mut third) = (take_place(&line), take_place(&line), take_place(&line));
        let ask = |place: &mut Place| match place.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        };
        // Polling a later place first does not let it overtake.
        assert!(ask(&mut third).is_none());
        let turn = ask(&mut first).unwrap();
        assert!(ask(&mut third).is_none());
        drop(turn);
        assert!(ask(&mut third).is_none(), "the second is next");
        drop(second);
        assert!(ask(&mut third).is_some());
        drop((first, third));
        assert!(is_idle(&line));
    }
}
