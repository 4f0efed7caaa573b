//! The size of each file, and the part of it that a worker may use.
//!
//! Sizes may be shares of existing files, or default to their size, so a layout is decided from facts about the files.
//! [`layout`] is a pure function of the options and those facts.

use crate::Names;
use iolite_options::engines::{Data, Facets, NameUse};
use iolite_options::{JobOptions, RandomDistribution, Range, SizeValue};
use iolite_types::{Direction, FileKind};
use iolite_workload::FileSizes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Facts about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// The kind of the file, or of the file that would be made.
    pub kind: FileKind,
    /// Its size in bytes; `None` = it does not exist, or has no size (pipes, character devices).
    pub size: Option<u64>,
}

impl FileFacts {
    /// Whether it is a device of fixed capacity.
    pub fn is_device_of_a_size(self) -> bool {
        self.kind == FileKind::Block || (self.kind == FileKind::Char && self.size.is_some())
    }
}

/// The zones of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZonedFile {
    /// Bytes from one zone to the next.
    pub size: u64,
    /// They are the device's own.
    pub is_real: bool,
    /// The limit of open zones, of all workers together; 0 = no limit.
    pub most_open: u32,
}

/// A file of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLayout {
    /// Its name.
    pub path: PathBuf,
    /// The kind of the file.
    pub kind: FileKind,
    /// Whether it exists already.
    pub exists: bool,
    /// The first byte that may be touched.
    pub offset: u64,
    /// How many bytes may be touched.
    pub length: u64,
    /// How many of them count as the size. Strided zones go on behind these.
    pub amount: u64,
    /// The size to which it must be created or extended before the job can run.
    pub extend_to: Option<u64>,
    /// The region is the complete file: then a sequential skip past its end continues at its beginning.
    pub is_whole: bool,
    /// Its zones, if it is used by zones (`zonemode=zbd`).
    pub zoned: Option<ZonedFile>,
}

/// A worker's files and how much it moves in one pass over them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The files, in order.
    pub files: Vec<FileLayout>,
    /// Bytes to move in one pass, where that is not the sum of the files' lengths.
    pub pass_bytes: Option<u64>,
    /// The files that `opendir` found and that it does not use.
    pub left_out: LeftOut,
    /// The files of an engine that acts on names, which are not among `files`.
    pub named: Option<NamedFiles>,
}

/// Files of an engine that uses only their names. There may be millions, so only facts about all of them together are
/// kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFiles {
    /// Their names.
    pub names: Names,
    /// How the engine uses them.
    pub name_use: NameUse,
    /// The sizes that they count as.
    pub counted: FileSizes,
    /// The sizes of files that are created before the job; `None` = they must exist.
    pub sizes: Option<FileSizes>,
    /// Missing files may be created.
    pub may_be_made: bool,
}

/// Files that were found but are smaller than one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// How many of them are empty.
    pub empty: u64,
    /// How many others are too short.
    pub short: u64,
    /// The smallest block, in bytes.
    pub block: u64,
}

impl LeftOut {
    /// A note about them for the user; `None` = none were left out.
    pub fn in_words(&self) -> Option<String> {
        let &LeftOut { empty, short, block } = self;
        let files = |count| if count == 1 { "file is" } else { "files are" };
        match (empty, short) {
            (0, 0) => None,
            (_, 0) => Some(format!("{empty} {} left out: empty", files(empty))),
            (0, _) => Some(format!("{short} {} left out: less than one block ({block} bytes)", files(short))),
            _ => Some(format!(
                "{} files are left out: {empty} empty, {short} with less than one block ({block} bytes)",
                empty + short
            )),
        }
    }
}

impl Layout {
    /// How many files there are.
    pub fn count(&self) -> usize {
        self.named.as_ref().map_or(self.files.len(), |named| named.names.len())
    }

    /// The path of the file with this number.
    pub fn path(&self, file: usize) -> Option<Cow<'_, Path>> {
        match &self.named {
            Some(named) => named.names.get(file),
            None => self.files.get(file).map(|file| Cow::Borrowed(file.path.as_path())),
        }
    }

    /// The bytes of all files that count as their sizes.
    pub fn total_length(&self) -> u64 {
        let named = self.named.as_ref().map_or(0, |named| named.counted.total(named.names.len() as u32));
        self.files.iter().fold(named, |sum, file| sum.saturating_add(file.amount))
    }

    /// The layout with every regular file as large as it has become, for files that were made until the file system
    /// was full. Files without room for one block are left out.
    pub fn reached(&self, min_block: u64, size_of: impl Fn(&Path) -> u64) -> Layout {
        let clipped = |file: &FileLayout| {
            if file.kind != FileKind::Regular {
                return Some(file.clone());
            }
            let size = size_of(&file.path);
            let room = size.saturating_sub(file.offset) / min_block * min_block;
            let length = file.length.min(room);
            let extend_to = file.extend_to.map(|wanted| wanted.min(size));
            let amount = file.amount.min(length);
            (length >= min_block).then(|| FileLayout { length, amount, extend_to, ..file.clone() })
        };
        let files: Vec<FileLayout> = self.files.iter().filter_map(clipped).collect();
        Layout { files, ..self.clone() }
    }

    /// The layout after its regular files have been removed: all of them have to be made again.
    pub fn removed(&self) -> Layout {
        let missing = |file: &FileLayout| match file.kind {
            FileKind::Regular => {
                let end = file.offset.saturating_add(file.length);
                let extend_to = file.extend_to.or(file.exists.then_some(end));
                FileLayout { exists: false, extend_to, ..file.clone() }
            }
            _ => file.clone(),
        };
        Layout { files: self.files.iter().map(missing).collect(), ..self.clone() }
    }

    /// Whether all passes of this job are one ([`JobOptions::passes_go_on`]), which ends with the files' regions. Devices have
    /// no end that could move.
    pub fn is_appended(&self, options: &JobOptions, facets: Facets) -> bool {
        options.passes_go_on()
            && facets.data != Data::OtherEnd
            && !self.files.is_empty()
            && self.files.iter().all(|file| file.kind == FileKind::Regular)
    }

    /// Bytes of one pass.
    pub fn bytes_per_pass(&self) -> u64 {
        self.pass_bytes.unwrap_or_else(|| self.total_length())
    }
}

/// Why there is no layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Neither an option nor an existing file determines the size.
    #[error("{path} {state}, so its size is unknown; you need to specify size=")]
    NoSize {
        /// The file.
        path: String,
        /// Whether it is missing, empty, or without a size.
        state: &'static str,
    },
    /// No option limits the amount of work, and the engine has no files.
    #[error("the data is {place}, so its size is unknown; you need to specify size=")]
    NoAmount {
        /// Where its data lives.
        place: &'static str,
    },
    /// The region lies outside of the file.
    #[error(
        "offset={offset} lies behind the end of {path}, which has {size} bytes; you need a valid offset="
    )]
    OffsetBehindEnd {
        /// The file.
        path: String,
        /// The requested offset.
        offset: u64,
        /// The size of the file.
        size: u64,
    },
    /// A percentage of nothing.
    #[error("size={percent}% is a share of the size of {path}, which {state}; give the size in bytes")]
    PercentOfNothing {
        /// The file.
        path: String,
        /// The percentage.
        percent: u32,
        /// Whether it is missing, empty, or without a size.
        state: &'static str,
    },
    /// No file offset can be that large.
    #[error("{path}: offset={offset} and {length} bytes from there are beyond the largest offset, 2^63 - 1")]
    BeyondOffsets {
        /// The file.
        path: String,
        /// Where the region begins.
        offset: u64,
        /// Its length.
        length: u64,
    },
    /// No file that was found has room for a block.
    #[error("opendir={directory}: there is nothing to work on; {}", .left_out.in_words().unwrap_or_default())]
    NothingFound {
        /// The directory.
        directory: String,
        /// The files that were left out.
        left_out: LeftOut,
    },
    /// A zone of `random_distribution=zoned_abs` ends behind the region.
    #[error(
        "random_distribution: zoned_abs sizes exceed file size: the zones of {}s have {zones} bytes, and {path} has {length} to work on; \
         make the zones smaller, or size= larger", .direction.name()
    )]
    ZonesBehindEnd {
        /// The file.
        path: String,
        /// The direction of the zones.
        direction: Direction,
        /// The sum of their sizes.
        zones: u64,
        /// The length of the region.
        length: u64,
    },
    /// Not one block fits.
    #[error("{path}: the {length} bytes to work on are less than the smallest block size, {block}")]
    SmallerThanBlock {
        /// The file.
        path: String,
        /// The length of the region.
        length: u64,
        /// The smallest block size.
        block: u64,
    },
}

/// Other facts that the layout depends on, besides the options and the files.
#[derive(Clone, Copy, Debug)]
pub struct LayoutContext {
    /// The number of the clone.
    pub clone: u32,
    /// The facets of the engine. If it keeps data, files must exist and be as large as the job needs them; otherwise
    /// sizes are taken as given. For engines that act on names, each file is one unit.
    pub facets: Facets,
    /// Seed for `filesize` ranges.
    pub seed: u64,
}

/// The layout of an engine that acts on names in this way.
pub(crate) fn layout_of_names(
    options: &JobOptions,
    context: LayoutContext,
    names: &Names,
    name_use: NameUse,
) -> Result<Layout, LayoutError> {
    let block = options.smallest_block();
    let sizes = |least, most| FileSizes { least, most, block, seed: context.seed };
    let all_alike = |size| sizes(size, size);
    let wanted = match (options.extent.filesize, options.extent.size) {
        (Some(range), _) => Some(sizes(range.low, range.high)),
        (None, Some(SizeValue::Bytes(bytes))) => Some(all_alike(bytes / (names.len() as u64).max(1))),
        (None, _) => None,
    };
    // (A file that is smaller than a block counts as one: the unit is its name.)
    let named = NamedFiles {
        names: names.clone(),
        name_use,
        counted: wanted.unwrap_or_else(|| all_alike(block)),
        sizes: wanted,
        may_be_made: options.files.allow_file_create,
    };
    let mut layout =
        Layout { files: Vec::new(), pass_bytes: None, left_out: LeftOut::default(), named: Some(named) };
    layout.pass_bytes = pass_bytes(options, context.facets, &layout);
    Ok(layout)
}

/// The seed of the next file's size.
fn next_seed(seed: u64) -> u64 {
    seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1)
}

/// Decides the layout of these files.
pub fn layout(
    options: &JobOptions,
    context: LayoutContext,
    files: &[(PathBuf, FileFacts)],
) -> Result<Layout, LayoutError> {
    let mut left_out = LeftOut { block: options.smallest_block(), ..LeftOut::default() };
    let keeps_sizes = keeps_sizes(options, context);
    let is_used =
        |(_, facts): &&(PathBuf, FileFacts)| !keeps_sizes || has_room(options, context, facts, &mut left_out);
    let used: Vec<_> = files.iter().filter(is_used).collect();
    if used.is_empty() && !files.is_empty() {
        let directory = options.files.opendir.clone().unwrap_or_default();
        return Err(LayoutError::NothingFound { directory, left_out });
    }
    let mut seed = context.seed;
    let laid_out = used
        .iter()
        .map(|(path, facts)| {
            seed = next_seed(seed);
            one(options, context, seed, used.len() as u64, path, *facts)
        })
        .collect::<Result<Vec<_>, _>>()?;
    for (file, (path, _)) in laid_out.iter().zip(used) {
        zones_fit(options, path, file.length)?;
    }
    let mut layout = Layout { files: laid_out, pass_bytes: None, left_out, named: None };
    layout.pass_bytes = pass_bytes(options, context.facets, &layout);
    Ok(layout)
}

/// Whether the zones of `random_distribution=zoned_abs` lie within a region of this length. (Otherwise the accesses would
/// go to others than those that were asked for.)
fn zones_fit(options: &JobOptions, path: &Path, length: u64) -> Result<(), LayoutError> {
    let RandomDistribution::Zoned(all) = &options.pattern.random_distribution else { return Ok(()) };
    let used = Direction::ALL.into_iter().filter(|direction| options.pattern.rw.uses(*direction));
    for direction in used.filter(|_| options.pattern.rw.is_random()) {
        let bytes = all[direction].iter().map(|zone| match zone.size {
            SizeValue::Bytes(bytes) => bytes,
            SizeValue::Percent(_) | SizeValue::Zones(_) => 0,
        });
        let zones = bytes.fold(0, u64::saturating_add);
        if zones > length {
            return Err(LayoutError::ZonesBehindEnd {
                path: path.display().to_string(),
                direction,
                zones,
                length,
            });
        }
    }
    Ok(())
}

/// Whether files keep their sizes because the job found them and they belong to others. A job that writes may extend
/// them if its options give sizes, or ask to append.
fn keeps_sizes(options: &JobOptions, context: LayoutContext) -> bool {
    let says_sizes = options.extent.file_append || options.extent.filesize.is_some();
    options.finds_files() && context.facets.needs_files() && !(options.pattern.rw.writes() && says_sizes)
}

/// Whether a file of its present size has room for one block. Counts files without room.
fn has_room(options: &JobOptions, context: LayoutContext, facts: &FileFacts, left_out: &mut LeftOut) -> bool {
    let (real, block) = (facts.size.unwrap_or(0), options.smallest_block());
    let has_room = real.saturating_sub(start(options, context.clone, facts, block)) >= block;
    match real {
        _ if has_room => {}
        0 => left_out.empty += 1,
        _ => left_out.short += 1,
    }
    has_room
}

/// The bytes of a pass, where that is not the sum of the regions.
fn pass_bytes(options: &JobOptions, facets: Facets, layout: &Layout) -> Option<u64> {
    let of_one = bytes_of_one_pass(options, layout);
    if !layout.is_appended(options, facets) {
        return of_one;
    }
    // All passes are one.
    let (schedule, total) = (&options.schedule, layout.total_length());
    of_one.map(
        |bytes| if schedule.time_based { total } else { bytes.saturating_mul(schedule.loops).min(total) },
    )
}

/// `io_size`, or `size` if `filesize` gives the sizes of files.
fn bytes_of_one_pass(options: &JobOptions, layout: &Layout) -> Option<u64> {
    match (options.extent.io_size, options.extent.filesize, options.extent.size) {
        (Some(SizeValue::Bytes(bytes)), _, _) => Some(bytes),
        (Some(SizeValue::Percent(percent)), _, _) => Some(share(layout.total_length(), percent)),
        // Without time_based a pass over smaller files ends with them; it does not start over to reach the size.
        (None, filesize, Some(SizeValue::Bytes(bytes)))
            if (filesize.is_some() || options.finds_files()) && bytes < layout.total_length() =>
        {
            Some(bytes)
        }
        // (A percentage of filesize is the size of each region already.)
        _ => None,
    }
}

fn one(
    options: &JobOptions,
    context: LayoutContext,
    seed: u64,
    count: u64,
    path: &Path,
    facts: FileFacts,
) -> Result<FileLayout, LayoutError> {
    let real = facts.size.unwrap_or(0);
    let min_block = options.smallest_block();
    let data = context.facets.data;
    // The length counts from here, even for appended I/O.
    let offset = start_offset(options, context.clone, real, min_block);
    let found = Found { path, facts, data, real, offset, keeps_size: keeps_sizes(options, context) };
    let amount = found.length(options, seed, count, min_block)?;
    let offset = start(options, context.clone, &facts, min_block);
    let needs_data = facts.kind == FileKind::Regular && context.facets.needs_files();
    let end = offset.saturating_add(amount);
    if end > i64::MAX as u64 && context.facets.keeps_data() {
        return Err(LayoutError::BeyondOffsets { path: found.name(), offset, length: amount });
    }
    // A verified job must write to the same places as the run that checks it, although files become longer.
    let counts_as_whole = options.verification.is_on() && facts.kind == FileKind::Regular;
    let goes_on = options.walks_through_zones() && context.facets.keeps_data() && !counts_as_whole;
    let length = if goes_on { amount.max(real.saturating_sub(offset)) } else { amount };
    Ok(FileLayout {
        path: path.to_owned(),
        kind: facts.kind,
        exists: facts.size.is_some() || facts.kind != FileKind::Regular,
        offset,
        length,
        amount,
        extend_to: (needs_data && real < end).then_some(end),
        is_whole: offset == 0 && (amount >= real || counts_as_whole),
        zoned: None,
    })
}

/// An existing file, and where its region begins.
struct Found<'a> {
    path: &'a Path,
    facts: FileFacts,
    /// Where the engine's data lives.
    data: Data,
    /// Its size; 0 = no size.
    real: u64,
    offset: u64,
    /// It keeps its present size.
    keeps_size: bool,
}

impl Found<'_> {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Why it has no usable size.
    fn state(&self) -> &'static str {
        match self.facts.kind {
            FileKind::Char => "is a character device",
            FileKind::Pipe => "is a pipe or a socket",
            FileKind::Regular | FileKind::Block if self.facts.size.is_none() => "does not exist",
            FileKind::Regular | FileKind::Block => "is empty",
        }
    }

    /// The error for a file without a usable size.
    fn without_size(&self) -> LayoutError {
        match self.data {
            Data::OtherEnd => LayoutError::NoAmount { place: "at the other end of a connection" },
            Data::Nowhere => LayoutError::NoAmount { place: "in no file" },
            Data::LocalFiles | Data::OwnStorage => {
                LayoutError::NoSize { path: self.name(), state: self.state() }
            }
        }
    }

    fn behind_end(&self, size: u64) -> LayoutError {
        LayoutError::OffsetBehindEnd { path: self.name(), offset: self.offset, size }
    }

    /// The length of the region: the requested one, limited by the capacity of the file.
    fn length(
        &self,
        options: &JobOptions,
        seed: u64,
        count: u64,
        min_block: u64,
    ) -> Result<u64, LayoutError> {
        let fixed_size = self.facts.is_device_of_a_size() || self.keeps_size;
        if fixed_size && self.offset >= self.real {
            return Err(self.behind_end(self.real));
        }
        let available = self.real.saturating_sub(self.offset);
        // Files that were found share the size in whole blocks. A sequential I/O may begin anywhere in its file's share, so
        // it takes the block in which the share ends. A random one does not, but each file has at least one block as long
        // as the size has one. (Observed in fio's I/O logs. The job ends when it has moved its size.)
        let shares_size = match options.extent.size {
            Some(SizeValue::Bytes(bytes)) => self.keeps_size && bytes >= min_block,
            _ => false,
        };
        let wanted = self.wanted(options, seed, count, min_block)?.map(|wanted| match shares_size {
            true if options.pattern.rw.is_random() => wanted.max(min_block),
            true => wanted.checked_next_multiple_of(min_block).unwrap_or(wanted),
            false => wanted,
        });
        let length = match wanted {
            Some(wanted) if fixed_size => wanted.min(available),
            Some(wanted) => wanted,
            None if self.real == 0 => return Err(self.without_size()),
            None if available == 0 => return Err(self.behind_end(self.real)),
            None => available,
        };
        if length < min_block {
            return Err(LayoutError::SmallerThanBlock { path: self.name(), length, block: min_block });
        }
        Ok(length)
    }

    /// The requested length; `None` = up to the end of the file.
    fn wanted(
        &self,
        options: &JobOptions,
        seed: u64,
        count: u64,
        min_block: u64,
    ) -> Result<Option<u64>, LayoutError> {
        let &Found { offset, real, .. } = self;
        if let Some(range) = options.extent.filesize {
            let whole = pick(range, seed, min_block);
            return match options.extent.size {
                Some(SizeValue::Percent(percent)) => Ok(Some(share(whole, percent))),
                // The size of the file: the region is the rest behind the offset. (Appending starts at its end.)
                _ if offset > whole => Err(self.behind_end(whole)),
                _ => Ok(Some(whole - offset)),
            };
        }
        Ok(match options.extent.size {
            Some(SizeValue::Bytes(bytes)) => Some(bytes / count.max(1)),
            // Zones are converted to bytes before a layout is made.
            Some(SizeValue::Zones(_)) => None,
            Some(SizeValue::Percent(percent)) if real == 0 => {
                let state = self.state();
                return Err(LayoutError::PercentOfNothing { path: self.name(), percent, state });
            }
            Some(SizeValue::Percent(percent)) => Some(share(real, percent).min(real.saturating_sub(offset))),
            // To the end of the file system: the region has no end. Offsets stay positive as i64.
            None if is_endless(options) && self.facts.kind != FileKind::Block => {
                Some((i64::MAX as u64).saturating_sub(offset) / min_block * min_block)
            }
            None => None,
        })
    }
}

/// Whether the files grow until the file system is full: `fill_device` without a size.
pub fn is_endless(options: &JobOptions) -> bool {
    options.extent.fill_device && options.extent.size.is_none() && options.extent.filesize.is_none()
}

/// Where the I/O of a file starts: at the end of a regular file, if it is appended.
fn start(options: &JobOptions, clone: u32, facts: &FileFacts, min_block: u64) -> u64 {
    let real = facts.size.unwrap_or(0);
    match options.extent.file_append && facts.kind == FileKind::Regular {
        true => real,
        false => start_offset(options, clone, real, min_block),
    }
}

/// `offset` plus the clone's `offset_increment`s. If one of them is a percentage (of the real size), the sum is rounded
/// up to `offset_align`, or to the smallest block (both as in fio).
fn start_offset(options: &JobOptions, clone: u32, real: u64, min_block: u64) -> u64 {
    let bytes = |value: SizeValue, times: u64| match value {
        SizeValue::Bytes(bytes) => bytes.saturating_mul(times),
        SizeValue::Percent(percent) => share(real.saturating_mul(times), percent),
        // Zones are converted to bytes before a layout is made.
        SizeValue::Zones(_) => 0,
    };
    let sum = bytes(options.extent.offset, 1)
        .saturating_add(bytes(options.extent.offset_increment, u64::from(clone)));
    // (Also of the first clone, which has no increment.)
    if start_share(options, clone.max(1)).is_none() {
        return sum;
    }
    let align = if options.extent.offset_align > 0 { options.extent.offset_align } else { min_block };
    sum.checked_next_multiple_of(align).unwrap_or(sum)
}

/// The option that makes the start of a clone's region a share of its file, if any, and the percentage.
pub(crate) fn start_share(options: &JobOptions, clone: u32) -> Option<(&'static str, u32)> {
    match (options.extent.offset, options.extent.offset_increment) {
        (SizeValue::Percent(percent), _) => Some(("offset", percent)),
        (_, SizeValue::Percent(percent)) if clone > 0 => Some(("offset_increment", percent)),
        _ => None,
    }
}

fn share(of: u64, percent: u32) -> u64 {
    (u128::from(of) * u128::from(percent) / 100) as u64
}

/// A size in the range; a multiple of the block if the range is wide enough.
fn pick(range: Range, seed: u64, block: u64) -> u64 {
    let width = (range.high - range.low).saturating_add(1);
    let value = range.low + ((u128::from(seed) * u128::from(width)) >> 64) as u64;
    let aligned = value / block * block;
    if aligned >= range.low { aligned } else { value }
}

#[cfg(test)]
mod tests;
