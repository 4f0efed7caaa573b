//! Reads a state file, which may hold anything.

use super::layout::{CHECKED, Covered, FRONT, Layout, MAGIC, VERSION};
use super::mapping::Mapping;
use super::{Setup, entry};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use xxhash_rust::xxh3::xxh3_64;

/// Descriptions are no longer than this.
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
    /// It is something else.
    #[error("not a verify state of Iolite (no \"iolstate\" at its beginning)")]
    Foreign,
    /// A layout that we do not know.
    #[error("its layout has version {0}, and this program knows version {VERSION}")]
    Version(u64),
    /// It is shorter or longer than it says.
    #[error("cut or extended: it has {found} bytes and should have {wanted}")]
    Length {
        /// Its bytes.
        found: u64,
        /// What they should be.
        wanted: u64,
    },
    /// It contradicts itself.
    #[error("corrupt: {0}")]
    Corrupt(String),
}

/// Which writes are insisted upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Those that were acknowledged: enough where only the process was killed.
    Completed,
    /// Those that were covered by a flush: all that storage promises when the power fails.
    Fsynced,
}

/// A write that had been issued and not been acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Its number.
    pub number: u64,
    /// Index of its file.
    pub file: u32,
    /// Where.
    pub offset: u64,
    /// How much.
    pub length: u64,
}

/// A place, and what may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Index of the file.
    pub file: u32,
    /// Where the write began.
    pub offset: u64,
    /// Its length.
    pub length: u64,
    /// The writes that may be found.
    pub accepted: Accepted,
}

/// Writes that are good answers: those from `oldest` to `latest`, and one that was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The oldest one.
    pub oldest: u64,
    /// The latest one that was acknowledged.
    pub latest: u64,
    /// One that may have been done or not.
    pub in_flight: Option<u64>,
}

/// How much of everything there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Blocks of which something is known.
    pub blocks: u64,
    /// Writes that stand as a whole.
    pub writes: u64,
    /// Those that the policy insists upon.
    pub demands: u64,
    /// Of these, those for which there is more than one good answer.
    pub open: u64,
}

/// A state file that was read.
#[derive(Debug)]
pub struct Saved {
    /// What was known before the first write.
    pub setup: Setup,
    /// Writes that were issued.
    pub issued: u64,
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// Writes in flight.
    pub in_flight: Vec<InFlight>,
    /// For each file: the writes that are covered by a flush.
    pub flushed: Vec<Covered>,
    layout: Layout,
    mapping: Arc<Mapping>,
}

impl Saved {
    /// Reads a state file.
    ///
    /// # Errors
    ///
    /// It cannot be read, is something else, or is damaged.
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
        // The job may go on while this is read: how many writes were issued is read after all that follows from it.
        let flushed = (0..setup.files.len() as u32).map(|number| covered(&mapping, &setup, &layout, number));
        let flushed = flushed.collect::<Result<_, _>>()?;
        let in_flight = in_flight(&mapping, &setup, &layout)?;
        let acknowledged = load(&mapping, layout.issued + 8);
        let issued = load(&mapping, layout.issued);
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

    /// What has to be in a file.
    ///
    /// # Errors
    ///
    /// The tables are damaged.
    pub fn file(&self, file: u32, policy: Policy) -> Result<SavedFile, StateError> {
        let saved = self.file_unseen(file, policy);
        self.check_table(file, &saved.acknowledged)?;
        saved.flushed.iter().try_for_each(|table| self.check_table(file, table))?;
        Ok(saved)
    }

    /// The same, without a look at the tables, which may be large: what is damaged there is taken for some number.
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
                // The entry may be of a write that was issued meanwhile.
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

/// A table of blocks. It stays in the file, where the job that it is of may go on writing: an entry may be another one the
/// next time.
#[derive(Clone, Debug)]
struct Table {
    mapping: Arc<Mapping>,
    at: u64,
    blocks: u64,
    /// Where it is written how many writes were issued.
    issued_at: u64,
}

impl Table {
    fn len(&self) -> usize {
        self.blocks as usize
    }

    fn entry(&self, block: usize) -> u32 {
        u32::from_le(self.mapping.entries(self.at, self.blocks)[block].load(Acquire))
    }

    /// How many writes have been issued: more than any entry that was read before.
    fn issued(&self) -> u64 {
        load(&self.mapping, self.issued_at)
    }

    /// The write that an entry stands for.
    fn latest(&self, entry: u32) -> u64 {
        latest(entry, self.issued())
    }

    /// First and last block of the first write in this range of which all blocks are there.
    fn whole_write(&self, range: Range<usize>) -> Option<(usize, usize)> {
        let number = |entry: u32| entry & entry::NUMBER;
        let mut first = range.start;
        while first < range.end {
            let begins = self.entry(first);
            let (mut last, mut ends) = (first, begins);
            if begins & entry::FIRST != 0 {
                while ends & entry::LAST == 0 && last + 1 < range.end {
                    let next = self.entry(last + 1);
                    if next & entry::FIRST != 0 || number(next) != number(begins) {
                        break;
                    }
                    (last, ends) = (last + 1, next);
                }
                if ends & entry::LAST != 0 {
                    return Some((first, last));
                }
            }
            first = last + 1;
        }
        None
    }
}

/// What is known of a file.
#[derive(Debug)]
pub struct SavedFile {
    file: u32,
    start: u64,
    block: u64,
    is_uniform: bool,
    covered: Covered,
    needs_flushed: bool,
    acknowledged: Table,
    flushed: Option<Table>,
    /// Sorted by offset; they do not overlap.
    in_flight: Vec<InFlight>,
}

impl SavedFile {
    /// What has to be there, in the order of offsets.
    pub fn demands(&self) -> impl Iterator<Item = Demand> {
        self.writes().filter_map(|(first, last)| self.demand(first, last))
    }

    /// The first demand at or behind this block (of the table), and the block behind it.
    pub fn next_demand(&self, from: usize) -> Option<(Demand, usize)> {
        let mut from = from;
        loop {
            let (first, last) = self.acknowledged.whole_write(from..self.acknowledged.len())?;
            from = last + 1;
            if let Some(demand) = self.demand(first, last) {
                return Some((demand, from));
            }
        }
    }

    /// What has to be there at or behind this block (of the table).
    pub fn demands_from(&self, from: usize) -> impl Iterator<Item = Demand> {
        let mut from = from;
        std::iter::from_fn(move || {
            let (demand, next) = self.next_demand(from)?;
            from = next;
            Some(demand)
        })
    }

    /// How much there is of everything.
    pub fn summary(&self) -> Summary {
        let demands = || self.demands().map(|demand| demand.accepted);
        let is_open =
            |accepted: &Accepted| accepted.oldest != accepted.latest || accepted.in_flight.is_some();
        let entries = || (0..self.acknowledged.len()).map(|block| self.acknowledged.entry(block));
        Summary {
            blocks: entries().filter(|&entry| entry != 0).count() as u64,
            writes: self.writes().count() as u64,
            demands: demands().count() as u64,
            open: demands().filter(is_open).count() as u64,
        }
    }

    /// First and last block of the writes that stand as a whole.
    fn writes(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let (first, last) = self.acknowledged.whole_write(from..self.acknowledged.len())?;
            from = last + 1;
            Some((first, last))
        })
    }

    fn demand(&self, first: usize, last: usize) -> Option<Demand> {
        let offset = self.start + first as u64 * self.block;
        let length = (last - first + 1) as u64 * self.block;
        // Of a write that is overwritten in part, nobody knows what is there.
        let in_flight = match self.over(offset, length) {
            Over::Nothing => None,
            Over::Same(number) => Some(number),
            Over::Part => return None,
        };
        let number = self.acknowledged.latest(self.acknowledged.entry(first));
        let is_flushed = !self.needs_flushed || self.covered.has(number);
        let oldest = if is_flushed { number } else { self.flushed_before(first, last)? };
        Some(Demand {
            file: self.file,
            offset,
            length,
            // (In a damaged table they may be the other way round.)
            accepted: Accepted { oldest: oldest.min(number), latest: number, in_flight },
        })
    }

    /// What may have been left in a place, in whole or in part: each write that was acknowledged there and not overwritten
    /// by a later one of this job, with those that the policy takes for as good, and each that was in flight.
    pub fn standing(&self, offset: u64, length: u64) -> Vec<Accepted> {
        let block = |at: u64| (at.saturating_sub(self.start) / self.block) as usize;
        let end = block((offset + length).saturating_add(self.block - 1)).min(self.acknowledged.len());
        let mut standing: Vec<Accepted> =
            (block(offset)..end).filter_map(|block| self.acknowledged_at(block)).collect();
        standing.dedup();
        let is_there =
            |write: &&InFlight| write.offset < offset + length && offset < write.offset + write.length;
        let in_flight = self.in_flight.iter().filter(is_there).map(|write| write.number);
        standing.extend(in_flight.map(|number| Accepted {
            oldest: number,
            latest: number,
            in_flight: Some(number),
        }));
        standing
    }

    fn acknowledged_at(&self, block: usize) -> Option<Accepted> {
        let entry = Some(self.acknowledged.entry(block)).filter(|&entry| entry != 0)?;
        let number = self.acknowledged.latest(entry);
        let is_flushed = !self.needs_flushed || self.covered.has(number);
        let flushed = || self.flushed.as_ref().map_or(0, |flushed| flushed.latest(flushed.entry(block)));
        let oldest = if is_flushed { number } else { flushed().min(number) };
        Some(Accepted { oldest, latest: number, in_flight: None })
    }

    /// The flushed write that was here before. Where writes have all sizes, others may have come between that
    /// overwrote a part, and any mixture may be left.
    fn flushed_before(&self, first: usize, last: usize) -> Option<u64> {
        let flushed = self.flushed.as_ref().filter(|_| self.is_uniform)?;
        let is_whole = flushed.whole_write(first..last + 1) == Some((first, last));
        is_whole.then(|| flushed.latest(flushed.entry(first)))
    }

    fn over(&self, offset: u64, length: u64) -> Over {
        let after = self.in_flight.partition_point(|write| write.offset + write.length <= offset);
        match self.in_flight.get(after) {
            Some(write) if (write.offset, write.length) == (offset, length) => Over::Same(write.number),
            Some(write) if write.offset < offset + length => Over::Part,
            _ => Over::Nothing,
        }
    }
}

/// What is in flight over a write.
enum Over {
    Nothing,
    Same(u64),
    Part,
}

impl Accepted {
    /// The number of the write to check a block for, in whose header is the number `found`: that one if it is a
    /// good answer, otherwise the latest. `bits` of a number are in a header (64, or 16 in the old layout).
    pub fn pick(&self, found: Option<u64>, bits: u32) -> u64 {
        let mask = u64::MAX >> (64 - bits.clamp(1, 64));
        let candidates = self.in_flight.into_iter().chain([self.latest]);
        let Some(found) = found else { return self.latest };
        if let Some(number) = candidates.into_iter().find(|number| number & mask == found & mask) {
            return number;
        }
        // The latest number up to `latest` that ends like this.
        let back = (self.latest.wrapping_sub(found)) & mask;
        match self.latest.checked_sub(back) {
            Some(number) if number >= self.oldest => number,
            _ => self.latest,
        }
    }
}

/// The largest number below `issued` that an entry can stand for. (After a thousand million writes an entry that is
/// older than those is taken for a younger one.)
pub(super) fn latest(value: u32, issued: u64) -> u64 {
    let kept = u64::from(value & entry::NUMBER).saturating_sub(1);
    let last = issued.saturating_sub(1);
    let number = last - last % entry::CYCLE + kept;
    if number > last { number.saturating_sub(entry::CYCLE) } else { number }
}

/// A job that goes on changes what is read. So often it is read again.
const TRIES: u32 = 1000;

fn covered(mapping: &Mapping, setup: &Setup, layout: &Layout, number: u32) -> Result<Covered, StateError> {
    if !setup.has_flushes {
        return Ok(Covered::default());
    }
    let which_at = layout.which_flush(number);
    for _ in 0..TRIES {
        let which = load(mapping, which_at);
        if which > 1 {
            return Err(corrupt(format_args!("flush {which} of two counts for file {number}")));
        }
        let places = (layout.covered(number, which)..).step_by(8);
        let words: Vec<u64> =
            (0..Layout::covered_words(setup.depth)).zip(places).map(|(_, at)| load(mapping, at)).collect();
        if load(mapping, which_at) != which {
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
    Err(corrupt(format_args!("what is flushed of file {number} does not stand still")))
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

/// Number, file, offset and length of the write at a place. No two writes have the same number: where it has not
/// changed, the rest has not either.
fn write_at(mapping: &Mapping, at: u64) -> Result<Option<(u64, [u64; 3])>, StateError> {
    for _ in 0..TRIES {
        let stored = load(mapping, at);
        let Some(number) = stored.checked_sub(1) else { return Ok(None) };
        let rest = [1, 2, 3].map(|behind| load(mapping, at + 8 * behind));
        if load(mapping, at) == stored {
            return Ok(Some((number, rest)));
        }
    }
    Err(corrupt(format_args!("the write in flight at byte {at} does not stand still")))
}

/// Words are read in this order.
fn load(mapping: &Mapping, at: u64) -> u64 {
    u64::from_le(mapping.word(at).load(Acquire))
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
