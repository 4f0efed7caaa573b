//! How large each file is to be, and which part of it a worker may touch.
//!
//! Sizes may be shares of existing files, or default to their size, so a layout is decided from facts about the files.
//! [`layout`] is a pure function of the options and those facts.

use crate::Names;
use iolite_options::engines::{Facets, NameUse};
use iolite_options::{JobOptions, Range, SizeValue};
use iolite_types::FileKind;
use iolite_workload::FileSizes;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What was found under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// What it is, or would become.
    pub kind: FileKind,
    /// Its size in bytes; `None` = it does not exist, or has none (pipes, character devices).
    pub size: Option<u64>,
}

impl FileFacts {
    /// Whether it is a device that holds so much and no more.
    pub fn is_device_of_a_size(self) -> bool {
        self.kind == FileKind::Block || (self.kind == FileKind::Char && self.size.is_some())
    }
}

/// A file of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLayout {
    /// Its name.
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// Whether it exists already.
    pub exists: bool,
    /// The first byte that may be touched.
    pub offset: u64,
    /// How many bytes may be touched.
    pub length: u64,
    /// The size that it has to be made or extended to before the job can run.
    pub extend_to: Option<u64>,
    /// The region is all of the file: then a sequential skip past its end goes on at its beginning.
    pub is_whole: bool,
}

/// A worker's files and how much it moves in one pass over them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The files, in order.
    pub files: Vec<FileLayout>,
    /// Bytes to move in one pass, where that is not the sum of the files' lengths.
    pub pass_bytes: Option<u64>,
    /// The files that were found (`opendir`) and that it does not use.
    pub left_out: LeftOut,
    /// The files of an engine that acts on names, which are not among `files`.
    pub named: Option<NamedFiles>,
}

/// Files of which an engine only uses the names. There may be millions, so what is known of them is known of all at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFiles {
    /// Their names.
    pub names: Names,
    /// What the engine does to them.
    pub name_use: NameUse,
    /// The sizes that they count as.
    pub counted: FileSizes,
    /// The sizes that files are made with which have to be there; `None` = they have to be there already.
    pub sizes: Option<FileSizes>,
    /// What is missing may be made.
    pub may_be_made: bool,
}

/// Files that were found and have no room for one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// How many of them are empty.
    pub empty: u64,
    /// How many others there are.
    pub short: u64,
    /// The smallest block, in bytes.
    pub block: u64,
}

impl LeftOut {
    /// What is to be told about them; `None` = there are none.
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

    /// Bytes that may be touched.
    pub fn total_length(&self) -> u64 {
        let named = self.named.as_ref().map_or(0, |named| named.counted.total(named.names.len() as u32));
        self.files.iter().fold(named, |sum, file| sum.saturating_add(file.length))
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
            (length >= min_block).then(|| FileLayout { length, extend_to, ..file.clone() })
        };
        let files: Vec<FileLayout> = self.files.iter().filter_map(clipped).collect();
        Layout { files, ..self.clone() }
    }

    /// The layout after its regular files have been removed: all of them have to be made.
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

    /// Bytes of one pass.
    pub fn bytes_per_pass(&self) -> u64 {
        self.pass_bytes.unwrap_or_else(|| self.total_length())
    }
}

/// Why there is no layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Nothing says how large a file should be.
    #[error("{path} {state}, so there is no size of its own to go by; you need to specify size=")]
    NoSize {
        /// The file.
        path: String,
        /// Whether it is missing, empty, or nothing that has a size.
        state: &'static str,
    },
    /// The region lies outside of the file.
    #[error(
        "offset={offset} lies behind the end of {path}, which has {size} bytes; you need a valid offset="
    )]
    OffsetBehindEnd {
        /// The file.
        path: String,
        /// The offset asked for.
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
        /// Whether it is missing, empty, or nothing that has a size.
        state: &'static str,
    },
    /// No offset of a file can be that large.
    #[error("{path}: offset={offset} and {length} bytes from there are beyond the largest offset, 2^63 - 1")]
    BeyondOffsets {
        /// The file.
        path: String,
        /// Where the region begins.
        offset: u64,
        /// Its length.
        length: u64,
    },
    /// Of the files that were found, none has room for a block.
    #[error("opendir={directory}: there is nothing to work on; {}", .left_out.in_words().unwrap_or_default())]
    NothingFound {
        /// The directory.
        directory: String,
        /// What there is.
        left_out: LeftOut,
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

/// What else the layout depends on, beyond the options and the files.
#[derive(Clone, Copy, Debug)]
pub struct LayoutContext {
    /// Which clone of the job.
    pub clone: u32,
    /// What the engine is. Where its data is kept, files have to be there, and as large as the job needs them;
    /// otherwise sizes are taken as given. Of engines that act on names, each file is one unit.
    pub facets: Facets,
    /// Seed for `filesize` ranges.
    pub seed: u64,
}

/// The layout of an engine that does this to names.
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
    if let Some(FileSizes { least, .. }) = wanted
        && least < block
    {
        let path = names.get(0).map_or_else(String::new, |name| name.display().to_string());
        return Err(LayoutError::SmallerThanBlock { path, length: least, block });
    }
    let named = NamedFiles {
        names: names.clone(),
        name_use,
        counted: wanted.unwrap_or_else(|| all_alike(block)),
        sizes: wanted,
        may_be_made: options.files.allow_file_create,
    };
    let mut layout =
        Layout { files: Vec::new(), pass_bytes: None, left_out: LeftOut::default(), named: Some(named) };
    layout.pass_bytes = pass_bytes(options, &layout);
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
    let mut layout = Layout { files: laid_out, pass_bytes: None, left_out, named: None };
    layout.pass_bytes = pass_bytes(options, &layout);
    Ok(layout)
}

/// Whether files stay as large as they are, because they were found: they are somebody else's. A job that writes may
/// make them longer where it says how large files are to be, or that it appends.
fn keeps_sizes(options: &JobOptions, context: LayoutContext) -> bool {
    let says_sizes = options.extent.file_append || options.extent.filesize.is_some();
    options.finds_files() && context.facets.needs_files() && !(options.pattern.rw.writes() && says_sizes)
}

/// Whether a file of its present size has room for one block. Those that do not are counted.
fn has_room(options: &JobOptions, context: LayoutContext, facts: &FileFacts, left_out: &mut LeftOut) -> bool {
    let (real, block) = (facts.size.unwrap_or(0), options.smallest_block());
    let start =
        if options.extent.file_append { real } else { start_offset(options, context.clone, real, block) };
    let has_room = real.saturating_sub(start) >= block;
    match real {
        _ if has_room => {}
        0 => left_out.empty += 1,
        _ => left_out.short += 1,
    }
    has_room
}

/// `io_size`, or `size` where `filesize` has taken over its other meaning.
fn pass_bytes(options: &JobOptions, layout: &Layout) -> Option<u64> {
    match (options.extent.io_size, options.extent.filesize, options.extent.size) {
        (Some(SizeValue::Bytes(bytes)), _, _) => Some(bytes),
        (Some(SizeValue::Percent(percent)), _, _) => Some(share(layout.total_length(), percent)),
        // Without time_based a pass over smaller files ends with them; it does not start over to reach the size.
        (None, Some(_), Some(SizeValue::Bytes(bytes))) if bytes < layout.total_length() => Some(bytes),
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
    let offset = start_offset(options, context.clone, real, min_block);
    let found = Found { path, facts, real, offset, keeps_size: keeps_sizes(options, context) };
    let length = found.length(options, seed, count, min_block)?;
    let offset = if options.extent.file_append && facts.kind == FileKind::Regular { real } else { offset };
    let needs_data = facts.kind == FileKind::Regular && context.facets.needs_files();
    let end = offset.saturating_add(length);
    if end > i64::MAX as u64 && context.facets.keeps_data() {
        return Err(LayoutError::BeyondOffsets { path: found.name(), offset, length });
    }
    // What a verified job writes where must be the same in the run that checks it, and files become longer.
    let is_whole_whatever_the_size = options.verification.is_on() && facts.kind == FileKind::Regular;
    Ok(FileLayout {
        path: path.to_owned(),
        kind: facts.kind,
        exists: facts.size.is_some() || facts.kind != FileKind::Regular,
        offset,
        length,
        extend_to: (needs_data && real < end).then_some(end),
        is_whole: offset == 0 && (length >= real || is_whole_whatever_the_size),
    })
}

/// A file that was looked at, and where the region in it is to begin.
struct Found<'a> {
    path: &'a Path,
    facts: FileFacts,
    /// Its size, 0 where it has none.
    real: u64,
    offset: u64,
    /// It stays as large as it is.
    keeps_size: bool,
}

impl Found<'_> {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Why it has no size to go by.
    fn state(&self) -> &'static str {
        match self.facts.kind {
            FileKind::Char => "is a character device",
            FileKind::Pipe => "is a pipe or a socket",
            FileKind::Regular | FileKind::Block if self.facts.size.is_none() => "does not exist",
            FileKind::Regular | FileKind::Block => "is empty",
        }
    }

    fn behind_end(&self, size: u64) -> LayoutError {
        LayoutError::OffsetBehindEnd { path: self.name(), offset: self.offset, size }
    }

    /// The length of the region: what was asked for, limited by what the file can hold.
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
        let length = match self.wanted(options, seed, count, min_block)? {
            Some(wanted) if fixed_size => wanted.min(available),
            Some(wanted) => wanted,
            None if self.real == 0 => {
                return Err(LayoutError::NoSize { path: self.name(), state: self.state() });
            }
            None if available == 0 => return Err(self.behind_end(self.real)),
            None => available,
        };
        if length < min_block {
            return Err(LayoutError::SmallerThanBlock { path: self.name(), length, block: min_block });
        }
        Ok(length)
    }

    /// How long it was asked for; `None` = all that is there.
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
                // The size of the file: the region is what the offset leaves of it. (Appending starts at its end.)
                _ if offset > whole => Err(self.behind_end(whole)),
                _ => Ok(Some(whole - offset)),
            };
        }
        Ok(match options.extent.size {
            Some(SizeValue::Bytes(bytes)) => Some(bytes / count.max(1)),
            Some(SizeValue::Percent(percent)) if real == 0 => {
                let state = self.state();
                return Err(LayoutError::PercentOfNothing { path: self.name(), percent, state });
            }
            Some(SizeValue::Percent(percent)) => Some(share(real, percent).min(real.saturating_sub(offset))),
            // To the end of the file system: the region has no end of its own. Offsets stay positive as i64.
            None if is_endless(options) && self.facts.kind != FileKind::Block => {
                Some((i64::MAX as u64).saturating_sub(offset) / min_block * min_block)
            }
            None => None,
        })
    }
}

/// Whether only the end of the file system ends the files: `fill_device` without a size.
pub fn is_endless(options: &JobOptions) -> bool {
    options.extent.fill_device && options.extent.size.is_none() && options.extent.filesize.is_none()
}

/// `offset` plus the clone's `offset_increment`s. Where one of them is a percentage (of the real size), the sum is
/// rounded up to `offset_align`, or to the smallest block (both as the peer does it).
fn start_offset(options: &JobOptions, clone: u32, real: u64, min_block: u64) -> u64 {
    let bytes = |value: SizeValue, times: u64| match value {
        SizeValue::Bytes(bytes) => bytes.saturating_mul(times),
        SizeValue::Percent(percent) => share(real.saturating_mul(times), percent),
    };
    let sum = bytes(options.extent.offset, 1)
        .saturating_add(bytes(options.extent.offset_increment, u64::from(clone)));
    let is_share = |value| matches!(value, SizeValue::Percent(_));
    if !is_share(options.extent.offset) && !is_share(options.extent.offset_increment) {
        return sum;
    }
    let align = if options.extent.offset_align > 0 { options.extent.offset_align } else { min_block };
    sum.checked_next_multiple_of(align).unwrap_or(sum)
}

fn share(of: u64, percent: u32) -> u64 {
    (u128::from(of) * u128::from(percent) / 100) as u64
}

/// A size in the range, a multiple of the block where the range is wide enough.
fn pick(range: Range, seed: u64, block: u64) -> u64 {
    let width = (range.high - range.low).saturating_add(1);
    let value = range.low + ((u128::from(seed) * u128::from(width)) >> 64) as u64;
    let aligned = value / block * block;
    if aligned >= range.low { aligned } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::ReadWrite;

    const MIB: u64 = 1 << 20;

    fn regular(size: Option<u64>) -> FileFacts {
        FileFacts { kind: FileKind::Regular, size }
    }

    fn block(size: u64) -> FileFacts {
        FileFacts { kind: FileKind::Block, size: Some(size) }
    }

    fn run(
        facts: &[FileFacts],
        clone: u32,
        change: impl FnOnce(&mut JobOptions),
    ) -> Result<Layout, LayoutError> {
        let mut options = JobOptions::default();
        change(&mut options);
        let files: Vec<_> =
            facts.iter().enumerate().map(|(i, facts)| (PathBuf::from(format!("f{i}")), *facts)).collect();
        layout(
            &options,
            LayoutContext {
                clone,
                facets: iolite_options::engines::engine("psync").unwrap().facets,
                seed: 12345,
            },
            &files,
        )
    }

    fn size(bytes: u64) -> impl Fn(&mut JobOptions) {
        move |options| options.extent.size = Some(SizeValue::Bytes(bytes))
    }

    #[test]
    fn size_is_shared_out_over_the_files() {
        let layout = run(&[regular(None); 5], 0, size(10 * MIB)).unwrap();
        assert!(layout.files.iter().all(|file| file.length == 2 * MIB && file.extend_to == Some(2 * MIB)));
        let layout = run(&[regular(None); 3], 0, size(MIB)).unwrap();
        assert!(layout.files.iter().all(|file| file.length == 349_525));
    }

    #[test]
    fn filesize_overrides_size_which_becomes_the_amount() {
        let both = |o: &mut JobOptions| {
            size(300 << 10)(o);
            o.extent.filesize = Some(Range { low: MIB, high: MIB });
        };
        let layout = run(&[regular(None); 3], 0, both).unwrap();
        assert!(layout.files.iter().all(|file| file.length == MIB));
        assert_eq!(layout.bytes_per_pass(), 300 << 10);
        let layout = run(&[regular(None); 3], 0, |o| {
            both(o);
            o.extent.io_size = Some(SizeValue::Bytes(5 * MIB));
        });
        assert_eq!(layout.unwrap().bytes_per_pass(), 5 * MIB);
    }

    #[test]
    fn a_larger_file_keeps_its_size_and_a_smaller_one_grows() {
        assert_eq!(run(&[regular(Some(4 * MIB))], 0, size(MIB)).unwrap().files[0].extend_to, None);
        let grown = run(&[regular(Some(4 * MIB))], 0, |o| {
            size(5 * MIB)(o);
            o.extent.offset = SizeValue::Bytes(MIB);
        });
        assert_eq!(grown.unwrap().files[0].extend_to, Some(6 * MIB));
    }

    /// Lengths of regions, sizes to extend to, and what is left out.
    type Found = (Vec<u64>, Vec<Option<u64>>, LeftOut);

    /// What becomes of files of these sizes that were found.
    fn found(sizes: &[u64], change: impl Fn(&mut JobOptions)) -> Result<Found, LayoutError> {
        let facts: Vec<_> = sizes.iter().map(|&size| regular(Some(size))).collect();
        let layout = run(&facts, 0, |o| {
            o.files.opendir = Some("d".into());
            change(o);
        })?;
        let lengths = layout.files.iter().map(|file| file.length).collect();
        Ok((lengths, layout.files.iter().map(|file| file.extend_to).collect(), layout.left_out))
    }

    #[test]
    fn found_files_stay_as_large_as_they_are() {
        let sizes = [9, MIB, 0, 10_000, 4096];
        let out = LeftOut { empty: 1, short: 1, block: 4096 };
        let kept = |lengths: &[u64]| Ok((lengths.to_vec(), vec![None; lengths.len()], out));
        for rw in [ReadWrite::RandRead, ReadWrite::Write, ReadWrite::RandRw] {
            let of = |change: &dyn Fn(&mut JobOptions)| {
                found(&sizes, |o| {
                    o.pattern.rw = rw;
                    change(o);
                })
            };
            assert_eq!(of(&|_| ()), kept(&[MIB, 10_000, 4096]));
            assert_eq!(of(&size(30_000)), kept(&[10_000, 10_000, 4096]), "each of three has a share");
            assert_eq!(of(&size(1 << 40)), kept(&[MIB, 10_000, 4096]));
            assert_eq!(of(&|o| o.extent.fill_device = true), kept(&[MIB, 10_000, 4096]));
            assert_eq!(
                of(&|o| o.extent.size = Some(SizeValue::Percent(50))).map(|found| found.2),
                Err(LayoutError::SmallerThanBlock { path: "f4".into(), length: 2048, block: 4096 })
            );
        }
    }

    #[test]
    fn found_files_grow_only_where_a_writer_says_how_large_they_are() {
        let filesize = |o: &mut JobOptions| o.extent.filesize = Some(Range { low: MIB, high: MIB });
        let writes = |o: &mut JobOptions| o.pattern.rw = ReadWrite::Write;
        let sizes = [4096, 0];
        let limited = found(&sizes, filesize).unwrap();
        assert_eq!((limited.0, limited.1, limited.2.empty), (vec![4096], vec![None], 1));
        let grown = found(&sizes, |o| {
            filesize(o);
            writes(o);
        });
        assert_eq!(grown.unwrap().1, [Some(MIB), Some(MIB)]);
        let appended = found(&sizes, |o| {
            size(2 * MIB)(o);
            writes(o);
            o.extent.file_append = true;
        });
        assert_eq!(appended.unwrap().1, [Some(MIB + 4096), Some(MIB)]);
        // A reader finds nothing behind the end.
        let nothing = found(&sizes, |o| o.extent.file_append = true).unwrap_err();
        let text = "opendir=d: there is nothing to work on; 2 files are left out: 1 empty, 1 with less than one block \
                    (4096 bytes)";
        assert_eq!(nothing.to_string(), text);
    }

    #[test]
    fn what_is_left_out_is_told() {
        let words = |empty, short| LeftOut { empty, short, block: 512 }.in_words();
        assert_eq!(words(0, 0), None);
        assert_eq!(words(1, 0).unwrap(), "1 file is left out: empty");
        assert_eq!(words(2, 0).unwrap(), "2 files are left out: empty");
        assert_eq!(words(0, 1).unwrap(), "1 file is left out: less than one block (512 bytes)");
    }

    #[test]
    fn what_is_the_whole_of_a_verified_file_does_not_depend_on_its_size() {
        let is_whole = |facts, verifies: bool, offset| {
            let layout = run(&[facts], 0, |o| {
                size(MIB)(o);
                o.extent.offset = SizeValue::Bytes(offset);
                o.verification.verify =
                    if verifies { iolite_options::Verify::Md5 } else { iolite_options::Verify::None };
            });
            layout.unwrap().files[0].is_whole
        };
        let longer = regular(Some(4 * MIB));
        assert!(is_whole(regular(None), false, 0) && is_whole(regular(None), true, 0));
        assert!(!is_whole(longer, false, 0) && is_whole(longer, true, 0));
        assert!(!is_whole(longer, true, 4096) && !is_whole(regular(None), true, 4096));
        assert!(!is_whole(block(4 * MIB), true, 0) && is_whole(block(MIB), true, 0));
    }

    #[test]
    fn without_a_size_what_is_there_serves() {
        let layout = run(&[regular(Some(4 * MIB))], 0, |o| o.extent.offset = SizeValue::Bytes(MIB)).unwrap();
        assert_eq!((layout.files[0].offset, layout.files[0].length), (MIB, 3 * MIB));
        assert!(matches!(run(&[regular(None)], 0, |_| {}), Err(LayoutError::NoSize { .. })));
        assert!(matches!(run(&[regular(Some(0))], 0, |_| {}), Err(LayoutError::NoSize { .. })));
    }

    #[test]
    fn percentages_are_of_the_real_size() {
        let layout = run(&[regular(Some(6 * MIB))], 0, |o| {
            o.extent.offset = SizeValue::Percent(50);
            o.extent.size = Some(SizeValue::Percent(25));
        });
        let file = &layout.unwrap().files[0];
        assert_eq!((file.offset, file.length), (3 * MIB, 3 * MIB / 2));
    }

    #[test]
    fn shares_are_rounded_up_to_the_alignment() {
        // 33% of 1 MiB is 346 030 bytes; values as the peer starts at.
        let start = |clone, offset, increment, align| {
            let layout = run(&[regular(Some(MIB))], clone, |o| {
                size(8192)(o);
                o.extent.offset = offset;
                o.extent.offset_increment = increment;
                o.extent.offset_align = align;
            });
            layout.unwrap().files[0].offset
        };
        use SizeValue::{Bytes, Percent};
        assert_eq!(start(0, Percent(33), Bytes(0), 0), 348_160);
        assert_eq!(start(0, Percent(33), Bytes(0), 65_536), 393_216);
        assert_eq!(start(2, Bytes(0), Percent(33), 0), 692_224);
        assert_eq!(start(1, Percent(33), Bytes(10_240), 0), 356_352);
        assert_eq!(start(0, Bytes(10_240), Percent(33), 0), 12_288);
        assert_eq!(start(1, Bytes(10_240), Bytes(10_240), 16_384), 20_480);
    }

    #[test]
    fn devices_clip_and_clones_step() {
        let file = &run(&[block(64 * MIB)], 0, size(100 * MIB)).unwrap().files[0];
        assert_eq!((file.length, file.extend_to), (64 * MIB, None));
        let file = &run(&[block(64 * MIB)], 2, |o| {
            size(16 * MIB)(o);
            o.extent.offset_increment = SizeValue::Bytes(16 * MIB);
        })
        .unwrap()
        .files[0];
        assert_eq!((file.offset, file.length), (32 * MIB, 16 * MIB));
        let behind = run(&[block(64 * MIB)], 0, |o| o.extent.offset = SizeValue::Bytes(65 * MIB));
        assert!(matches!(behind, Err(LayoutError::OffsetBehindEnd { .. })));
    }

    #[test]
    fn a_region_smaller_than_a_block_is_refused() {
        assert!(matches!(run(&[regular(None)], 0, size(1024)), Err(LayoutError::SmallerThanBlock { .. })));
        let small = run(&[regular(None)], 0, |o| {
            size(1024)(o);
            o.pattern.rw = ReadWrite::Write;
            o.pattern.bs[iolite_types::Direction::Write] = 512;
        });
        assert!(small.is_ok());
    }

    #[test]
    fn file_sizes_from_a_range_stay_in_it() {
        let layout = run(&[regular(None); 50], 0, |o| {
            o.extent.filesize = Some(Range { low: 100 << 10, high: MIB });
        });
        let sizes: Vec<u64> = layout.unwrap().files.iter().map(|file| file.length).collect();
        assert!(sizes.iter().all(|size| (100 << 10..=MIB).contains(size) && size % 4096 == 0));
        assert!(sizes.iter().any(|&size| size != sizes[0]));
    }

    #[test]
    fn appending_starts_at_the_end() {
        let layout = run(&[regular(Some(MIB))], 0, |o| {
            size(MIB)(o);
            o.extent.file_append = true;
            o.pattern.rw = ReadWrite::Write;
        });
        let file = &layout.unwrap().files[0];
        assert_eq!((file.offset, file.length, file.extend_to), (MIB, MIB, Some(2 * MIB)));
    }

    #[test]
    fn filesize_is_the_size_of_the_file_not_of_the_region() {
        let region = |facts, offset, filesize: u64, size: Option<SizeValue>| {
            let layout = run(&[facts], 0, |o| {
                o.extent.offset = offset;
                o.extent.filesize = Some(Range { low: filesize, high: filesize });
                o.extent.size = size;
            })?;
            let file = &layout.files[0];
            Ok((file.offset, file.length, file.extend_to))
        };
        use SizeValue::{Bytes, Percent};
        const KIB: u64 = 1024;
        assert_eq!(region(regular(None), Bytes(900 * KIB), MIB, None), Ok((900 * KIB, 124 * KIB, Some(MIB))));
        assert_eq!(region(regular(None), Bytes(256 * KIB), MIB, None), Ok((256 * KIB, 768 * KIB, Some(MIB))));
        assert_eq!(region(regular(Some(4 * MIB)), Bytes(0), MIB, None), Ok((0, MIB, None)));
        // Percentages are of the filesize, and start at the offset.
        assert_eq!(region(regular(None), Bytes(0), MIB, Some(Percent(50))), Ok((0, MIB / 2, Some(MIB / 2))));
        assert_eq!(
            region(regular(None), Bytes(256 * KIB), MIB, Some(Percent(50))),
            Ok((256 * KIB, MIB / 2, Some(768 * KIB)))
        );
        assert!(matches!(
            region(regular(None), Bytes(2 * MIB), MIB, None),
            Err(LayoutError::OffsetBehindEnd { size: MIB, .. })
        ));
        assert!(matches!(
            region(regular(None), Bytes(MIB), MIB, None),
            Err(LayoutError::SmallerThanBlock { .. })
        ));
    }

    #[test]
    fn io_size_is_a_share_of_the_region_that_filesize_and_size_give() {
        let layout = run(&[regular(None)], 0, |o| {
            o.extent.filesize = Some(Range { low: MIB, high: MIB });
            o.extent.size = Some(SizeValue::Percent(50));
            o.extent.io_size = Some(SizeValue::Percent(25));
        });
        assert_eq!(layout.unwrap().bytes_per_pass(), 128 << 10);
    }

    #[test]
    fn filling_a_device_ends_with_the_size_where_one_is_given() {
        let fill = |o: &mut JobOptions| {
            o.extent.fill_device = true;
            o.pattern.rw = ReadWrite::Write;
        };
        let zero = FileFacts { kind: FileKind::Char, size: None };
        for facts in [regular(None), zero] {
            let layout = run(&[facts], 0, |o| {
                fill(o);
                size(MIB)(o);
            });
            assert_eq!(layout.unwrap().files[0].length, MIB);
            assert!(run(&[facts], 0, fill).unwrap().files[0].length > 1 << 62);
        }
    }

    #[test]
    fn what_was_filled_is_as_large_as_it_became() {
        let layout = run(&[regular(None); 3], 0, |o| {
            o.extent.fill_device = true;
            o.extent.offset = SizeValue::Bytes(4096);
        });
        let sizes = |path: &Path| if path == Path::new("f0") { 21_000 } else { 5000 };
        let reached = layout.unwrap().reached(4096, sizes);
        assert_eq!(reached.files.len(), 1);
        assert_eq!((reached.files[0].length, reached.files[0].extend_to), (16_384, Some(21_000)));
        assert_eq!(reached.bytes_per_pass(), 16_384);
    }

    #[test]
    fn what_has_no_size_is_not_called_missing() {
        for (kind, words) in [(FileKind::Char, "is a character device"), (FileKind::Pipe, "is a pipe")] {
            let facts = FileFacts { kind, size: None };
            let error = run(&[facts], 0, |_| {}).unwrap_err().to_string();
            assert!(error.contains("need to specify size=") && error.contains(words), "{error}");
            let percent = run(&[facts], 0, |o| o.extent.size = Some(SizeValue::Percent(50))).unwrap_err();
            assert!(percent.to_string().contains(words), "{percent}");
        }
    }
}
