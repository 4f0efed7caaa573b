//! Reads a state file, which may contain anything.

use super::entry;
use super::file::{InFlight, Policy, SavedFile};
use super::layout::{CHECKED, Covered, FRONT, Layout, MAGIC, VERSION};
use super::mapping::Mapping;
use super::setup::Setup;
use super::table::Table;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the longest description.
const LONGEST_DESCRIPTION: u64 = 1 << 30;

/// Why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a device, a pipe or a socket.
    #[error("not a regular file, as the states of jobs are")]
    NoFile,
    /// It is not a state file.
    #[error("not a verify state of Iolite (no \"iolstate\" at its beginning)")]
    Foreign,
    /// Its layout is unknown.
    #[error("its layout has version {0}, and this program knows version {VERSION}")]
    Version(u64),
    /// It is shorter or longer than its header states.
    #[error("cut or extended: it has {found} bytes and should have {wanted}")]
    Length {
        /// Its actual length in bytes.
        found: u64,
        /// The stated length in bytes.
        wanted: u64,
    },
    /// It contradicts itself.
    #[error("corrupt: {0}")]
    Corrupt(String),
}

/// A state file that was read.
#[derive(Debug)]
pub struct Saved {
    /// The description, written before the first write.
    pub setup: Setup,
    /// Writes that were issued.
    pub issued: u64,
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Writes in flight.
    pub in_flight: Vec<InFlight>,
    /// For each file, the writes that are covered by a flush.
    pub flushed: Vec<Covered>,
    layout: Layout,
    mapping: Arc<Mapping>,
}

impl Saved {
    /// Reads a state file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not a state file, or is damaged.
    pub fn open(path: &Path) -> Result<Saved, StateError> {
        // Opening a pipe would wait for its other end, and a socket cannot be opened.
        let kind = std::fs::metadata(path)?.file_type();
        if kind.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::EISDIR).into());
        }
        if !kind.is_file() {
            return Err(StateError::NoFile);
        }
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let length = file.metadata()?.len();
        let mut front = [0; FRONT as usize];
        if length < MAGIC.len() as u64 || read(&file, 0, MAGIC.len() as u64)? != MAGIC {
            return Err(StateError::Foreign);
        }
        if length < FRONT {
            return Err(StateError::Length { found: length, wanted: FRONT });
        }
        file.read_exact_at(&mut front, 0)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| front[at + byte]));
        let (version, sum, wanted, description) = (word(8), word(16), word(24), word(32));
        if version != VERSION {
            return Err(StateError::Version(version));
        }
        if length != wanted {
            return Err(StateError::Length { found: length, wanted });
        }
        if description > LONGEST_DESCRIPTION || FRONT + description > length {
            return Err(corrupt(format_args!("a description of {description} bytes")));
        }
        let checked = read(&file, CHECKED, FRONT - CHECKED + description)?;
        if xxh3_64(&checked) != sum {
            let end = FRONT + description;
            return Err(corrupt(format_args!(
                "the description, bytes {CHECKED} to {end}, does not have the checksum at byte 16"
            )));
        }
        let setup: Setup = serde_json::from_slice(&checked[(FRONT - CHECKED) as usize..])
            .map_err(|why| corrupt(format_args!("the description: {why}")))?;
        let layout = Layout::new(&setup, description)
            .filter(|layout| layout.total == length)
            .ok_or_else(|| corrupt(format_args!("the sizes of the description make no sense together")))?;
        // The tables may be larger than memory.
        let mapping = Arc::new(Mapping::readable(&file, length)?);
        // The job may still be running: the number of issued writes is read after all values that it limits.
        let flushed = (0..setup.files.len() as u32).map(|number| covered(&mapping, &setup, &layout, number));
        let flushed = flushed.collect::<Result<_, _>>()?;
        let in_flight = in_flight(&mapping, &setup, &layout)?;
        let acknowledged = mapping.load(layout.issued + 8);
        let issued = mapping.load(layout.issued);
        let saved = Saved { setup, issued, acknowledged, in_flight, flushed, layout, mapping };
        saved.check_counts()?;
        Ok(saved)
    }

    fn check_counts(&self) -> Result<(), StateError> {
        if let Some(InFlight { number, file, offset, length }) =
            self.in_flight.iter().find(|write| write.number >= self.issued)
        {
            let issued = self.issued;
            return Err(corrupt(format_args!(
                "write {number} in flight at offset {offset}, length {length} of file {file}, of {issued} writes"
            )));
        }
        if self.acknowledged > self.issued {
            let (acknowledged, issued) = (self.acknowledged, self.issued);
            let at = self.layout.issued + 8;
            return Err(corrupt(format_args!("byte {at}: {acknowledged} writes acknowledged of {issued}")));
        }
        if let Some(flushed) = self.flushed.iter().find(|flushed| flushed.below > self.issued) {
            return Err(corrupt(format_args!("{} writes flushed of {}", flushed.below, self.issued)));
        }
        Ok(())
    }

    /// The state of the file with this index. The tables are checked once.
    ///
    /// # Errors
    ///
    /// The tables of the file are damaged.
    pub fn file(&self, file: u32, policy: Policy) -> Result<SavedFile, StateError> {
        let saved = self.file_unseen(file, policy);
        self.check_table(file, &saved.acknowledged)?;
        saved.flushed.iter().try_for_each(|table| self.check_table(file, table))?;
        Ok(saved)
    }

    /// The same without checking the tables, which may be large: a damaged entry stands for some number.
    pub fn file_unseen(&self, file: u32, policy: Policy) -> SavedFile {
        let tables = &self.layout.tables[file as usize];
        let needs_flushed = policy == Policy::Fsynced && !self.setup.is_durable;
        let table = |at| Table {
            mapping: Arc::clone(&self.mapping),
            at,
            blocks: tables.blocks,
            issued_at: self.layout.issued,
        };
        let mut in_flight: Vec<_> =
            self.in_flight.iter().filter(|write| write.file == file).copied().collect();
        in_flight.sort_unstable_by_key(|write| write.offset);
        SavedFile {
            file,
            start: self.setup.files[file as usize].offset,
            block: self.setup.block,
            is_uniform: self.setup.is_uniform,
            covered: self.flushed[file as usize].clone(),
            needs_flushed,
            acknowledged: table(tables.acknowledged),
            flushed: tables.flushed.filter(|_| needs_flushed).map(table),
            in_flight,
        }
    }

    fn check_table(&self, file: u32, table: &Table) -> Result<(), StateError> {
        let mut limit = 0;
        for block in 0..table.len() {
            let value = table.entry(block);
            let number = u64::from(value & entry::NUMBER);
            if number > limit {
                // The entry may belong to a write that was issued in the meantime.
                limit = table.issued().min(entry::CYCLE);
            }
            if value != 0 && !(1..=limit).contains(&number) {
                let (file, issued) = (&self.setup.files[file as usize].name, table.issued());
                return Err(corrupt(format_args!(
                    "byte {}: block {block} of file {file} has the entry {value:#x}, and {issued} writes were issued",
                    table.at + 4 * block as u64
                )));
            }
        }
        Ok(())
    }
}

/// How often to retry reading a value that a running job keeps changing.
const TRIES: u32 = 1000;

fn covered(mapping: &Mapping, setup: &Setup, layout: &Layout, number: u32) -> Result<Covered, StateError> {
    if !setup.has_flushes {
        return Ok(Covered::default());
    }
    let which_at = layout.which_flush(number);
    for _ in 0..TRIES {
        let which = mapping.load(which_at);
        if which > 1 {
            return Err(corrupt(format_args!("flush {which} of two counts for file {number}")));
        }
        let places = (layout.covered(number, which)..).step_by(8);
        let words: Vec<u64> =
            (0..Layout::covered_words(setup.depth)).zip(places).map(|(_, at)| mapping.load(at)).collect();
        if mapping.load(which_at) != which {
            continue;
        }
        return match words[..] {
            [below, count, ref except @ ..] if count <= except.len() as u64 => {
                Ok(Covered { below, except: except[..count as usize].to_vec() })
            }
            _ => Err(corrupt(format_args!(
                "more writes in flight during a flush of file {number} than the depth allows"
            ))),
        };
    }
    Err(corrupt(format_args!("the flushed writes of file {number} keep changing")))
}

fn in_flight(mapping: &Mapping, setup: &Setup, layout: &Layout) -> Result<Vec<InFlight>, StateError> {
    let mut writes = Vec::new();
    for place in 0..setup.depth {
        let Some((number, [file, offset, length])) = write_at(mapping, layout.place(place))? else {
            continue;
        };
        let region = usize::try_from(file).ok().and_then(|file| setup.files.get(file));
        let fits = region.is_some_and(|region| {
            let end = offset.checked_add(length).filter(|_| length > 0);
            offset >= region.offset && end.is_some_and(|end| end <= region.offset + region.length)
        });
        if !fits {
            return Err(corrupt(format_args!(
                "write {number} in flight at offset {offset}, length {length} of file {file}"
            )));
        }
        writes.push(InFlight { number, file: file as u32, offset, length });
    }
    Ok(writes)
}

/// Number, file, offset and length of the write in a slot. No two writes have the same number: if the number has not
/// changed while the rest was read, the rest belongs to it.
fn write_at(mapping: &Mapping, at: u64) -> Result<Option<(u64, [u64; 3])>, StateError> {
    for _ in 0..TRIES {
        let stored = mapping.load(at);
        let Some(number) = stored.checked_sub(1) else { return Ok(None) };
        let rest = [1, 2, 3].map(|behind| mapping.load(at + 8 * behind));
        if mapping.load(at) == stored {
            return Ok(Some((number, rest)));
        }
    }
    Err(corrupt(format_args!("the write in flight at byte {at} does not stand still")))
}

fn read(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    bytes.resize(length, 0);
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

fn corrupt(what: std::fmt::Arguments) -> StateError {
    StateError::Corrupt(what.to_string())
}
