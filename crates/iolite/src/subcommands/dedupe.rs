//! `iolite dedupe FILE`: how much of a file or device occurs more than once, and how well it compresses.
//!
//! Threads take stretches of the file in turn, hash the blocks in them, and count the hashes in a common [`Table`].

mod table;

use flate2::{Compress, Compression, FlushCompress, Status};
use iolite_host::Memory;
use iolite_options::commands::Asked;
use std::fmt::Write;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use table::{Run, Seen, Table, Totals};

/// How many bytes a thread takes at once.
const STRETCH: u64 = 1 << 20;
/// The alignment of addresses for direct I/O.
const ALIGNMENT: usize = 4096;
/// How often progress is shown.
const PROGRESS: Duration = Duration::from_millis(250);
/// Distinct blocks that are counted exactly: as many as fill a table of 8 Mi places to seven eighths.
const ROOM: usize = 7 << 20;
/// The capacity with `-B 1`.
const LITTLE_ROOM: usize = 7 << 14;

/// The options.
struct Setting {
    block: usize,
    threads: usize,
    list: bool,
    direct: bool,
    compare: bool,
    compress: bool,
    progress: bool,
    room: usize,
}

/// Returns the answer.
pub fn run(asked: &Asked) -> Result<String, String> {
    let [path] = &asked.operands[..] else {
        return Err("needs the name of one file or device".to_owned());
    };
    let setting = Setting::new(asked)?;
    let path = Path::new(path);
    let named = |error: io::Error| format!("{}: {}", path.display(), iolite_types::describe_error(&error));
    let check = Check::new(path, &setting).map_err(named)?;
    if check.size == 0 {
        return Err(format!("{}: smaller than one block of {} bytes", path.display(), setting.block));
    }
    let found = check.all().map_err(named)?;
    Ok(check.report(path, &found))
}

impl Setting {
    fn new(asked: &Asked) -> Result<Setting, String> {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let switch = |name, default| asked.value(name).map_or(default, |value| value == "1");
        let block = asked.number("block-size", 512)?.unwrap_or(4096);
        let direct = switch("direct", false);
        if direct && block % 512 != 0 {
            return Err(format!("--block-size={block}: must be a multiple of 512 with --direct=1"));
        }
        let setting = Setting {
            block: usize::try_from(block)
                .ok()
                .filter(|&block| block <= 1 << 30)
                .ok_or_else(|| format!("--block-size={block}: must be at most 1g"))?,
            threads: match asked.number("threads", 0)? {
                None | Some(0) => processors(),
                Some(threads) => usize::try_from(threads.min(1024)).unwrap_or(1024),
            },
            list: switch("duplicates", false),
            direct,
            compare: switch("collisions", false),
            compress: switch("compress", false),
            progress: switch("progress", io::stderr().is_terminal()),
            room: if switch("little-memory", false) { LITTLE_ROOM } else { ROOM },
        };
        let needed = setting.buffers();
        if needed > Memory::now().obtainable() {
            let (block, threads) = (setting.block, setting.threads);
            let needed = needed >> 20;
            return Err(format!(
                "--block-size={block}: {threads} threads need {needed} MiB for their buffers, more than there is; use smaller blocks, \
                 or fewer --threads"
            ));
        }
        Ok(setting)
    }

    /// How many bytes a thread takes at once: a multiple of the block.
    fn stretch(&self) -> u64 {
        (STRETCH / self.block as u64).max(1) * self.block as u64
    }

    /// Bytes of all buffers.
    fn buffers(&self) -> u64 {
        let further = u64::from(self.compare) + u64::from(self.compress);
        let each = self.stretch() + further * self.block as u64;
        each.saturating_mul(self.threads as u64)
    }
}

/// A file that is being checked.
struct Check<'a> {
    setting: &'a Setting,
    file: File,
    /// Bytes to check: a multiple of the block.
    size: u64,
    table: Table,
    /// Where the next stretch begins.
    next: AtomicU64,
    stop: AtomicBool,
    /// Bytes of the compressed blocks, before and after compression.
    before: AtomicU64,
    after: AtomicU64,
}

impl<'a> Check<'a> {
    fn new(path: &Path, setting: &'a Setting) -> io::Result<Self> {
        // Opening a pipe would wait for its other end.
        let kind = std::fs::metadata(path)?.file_type();
        if !(kind.is_file() || kind.is_block_device()) {
            return Err(io::Error::other("neither a regular file nor a block device"));
        }
        let mut options = OpenOptions::new();
        options.read(true);
        if setting.direct {
            options.custom_flags(libc::O_DIRECT);
        }
        let mut file = options.open(path)?;
        let size = file.seek(SeekFrom::End(0))?;
        Ok(Check {
            setting,
            file,
            size: size - size % setting.block as u64,
            table: Table::new(setting.room, setting.list),
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            before: AtomicU64::new(0),
            after: AtomicU64::new(0),
        })
    }

    /// Checks the complete file.
    fn all(&self) -> io::Result<Totals> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.setting.threads)
                .map(|_| {
                    scope.spawn(|| {
                        let result = self.some();
                        if result.is_err() {
                            self.stop.store(true, Relaxed);
                        }
                        result
                    })
                })
                .collect();
            if self.setting.progress {
                while threads.iter().any(|thread| !thread.is_finished()) {
                    let done = self.next.load(Relaxed).min(self.size);
                    eprint!("\r{:.2}% done ", 100.0 * done as f64 / self.size as f64);
                    std::thread::sleep(PROGRESS);
                }
                eprintln!("\r100.00% done");
            }
            threads.into_iter().try_for_each(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        Ok(self.table.totals())
    }

    /// A thread's work: stretches, until there are no more.
    fn some(&self) -> io::Result<()> {
        let block = self.setting.block;
        let stretch = self.setting.stretch();
        let mut buffer = Buffer::new(stretch as usize);
        let mut other = Buffer::new(if self.setting.compare { block } else { 0 });
        let mut compressor = Compressor::new(block);
        let (mut before, mut after) = (0, 0);
        while !self.stop.load(Relaxed) {
            let start = self.next.fetch_add(stretch, Relaxed);
            if start >= self.size {
                break;
            }
            let length = stretch.min(self.size - start) as usize;
            let data = &mut buffer.bytes()[..length];
            let is_hole = self.is_hole(start, length as u64);
            if is_hole {
                data[..block].fill(0);
            } else {
                self.file.read_exact_at(data, start)?;
            }
            for (number, block_data) in (0..).zip(data.chunks(block)) {
                let offset = start + number * block as u64;
                // All blocks of a hole are like its first one.
                let times = if is_hole { (length / block) as u64 } else { 1 };
                if self.count(block_data, offset, times, other.bytes())? && self.setting.compress {
                    before += block as u64;
                    after += compressor.compressed(block_data);
                }
                if is_hole {
                    break;
                }
            }
        }
        self.before.fetch_add(before, Relaxed);
        self.after.fetch_add(after, Relaxed);
        Ok(())
    }

    /// Whether this is a hole, according to the file system.
    fn is_hole(&self, start: u64, length: u64) -> bool {
        let Ok(from) = libc::off_t::try_from(start) else { return false };
        // SAFETY: the descriptor is valid; nothing depends on the position of the file.
        let next = unsafe { libc::lseek(self.file.as_raw_fd(), from, libc::SEEK_DATA) };
        match u64::try_from(next) {
            Ok(next) => next >= start + length,
            Err(_) => io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO),
        }
    }

    /// Counts this many successive equal blocks. Returns whether the block is new.
    fn count(&self, data: &[u8], offset: u64, times: u64, other: &mut [u8]) -> io::Result<bool> {
        let mut hash = xxhash_rust::xxh3::xxh3_128(data);
        loop {
            let seen = self.table.look(hash);
            if self.setting.compare
                && let Some(first) = seen
            {
                self.file.read_exact_at(other, first)?;
                if other != data {
                    // A different block with the same hash: count it under the next hash.
                    hash = hash.wrapping_add(1 << 64);
                    continue;
                }
            }
            let run = Run { first: offset, step: data.len() as u64, times };
            return Ok(self.table.count(hash, run) == Seen::New);
        }
    }

    fn report(&self, path: &Path, found: &Totals) -> String {
        let Setting { threads, block, .. } = *self.setting;
        let blocks = self.size / block as u64;
        let repeated = blocks.saturating_sub(found.unique);
        let mut text = String::new();
        line!(text, "Will check <{}>, size <{}>, using {threads} threads", path.display(), self.size);
        line!(text, "Threads({threads}): {blocks} items processed");
        for (hash, offsets) in &found.listed {
            line!(text, "hash {hash:032x}, count {}", offsets.len());
            offsets.iter().for_each(|offset| line!(text, "\toffset {offset}"));
        }
        if found.sampled > 1 {
            line!(text, "Estimated from 1 of {} distinct blocks", found.sampled);
        }
        line!(
            text,
            "Extents={blocks}, Unique extents={} Duplicated extents={}",
            found.unique,
            found.duplicated
        );
        line!(text, "De-dupe ratio: 1:{:.2}", repeated as f64 / found.unique.max(1) as f64);
        if found.duplicated > 0 {
            let share = 100.0 * found.duplicated as f64 / blocks as f64;
            line!(text, "De-dupe working set at least: {share:.2}%");
        }
        line!(text, "Fio setting: dedupe_percentage={:.0}", 100.0 * repeated as f64 / blocks as f64);
        if self.setting.compress {
            let share = self.after.load(Relaxed) as f64 / self.before.load(Relaxed).max(1) as f64;
            let capacity = share * (found.unique * block as u64) as f64;
            line!(text, "Unique capacity {}", size(capacity));
            line!(text, "Fio setting: buffer_compress_percentage={:.0}", 100.0 * (1.0 - share));
        }
        text
    }
}

/// Compresses blocks one by one.
struct Compressor {
    state: Compress,
    output: Vec<u8>,
}

impl Compressor {
    fn new(block: usize) -> Self {
        // If the output does not fit, it is not smaller than the block, which then counts as uncompressed.
        Compressor { state: Compress::new(Compression::default(), false), output: vec![0; block] }
    }

    /// The compressed size of a block, at most its own size.
    fn compressed(&mut self, block: &[u8]) -> u64 {
        self.state.reset();
        match self.state.compress(block, &mut self.output, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => self.state.total_out(),
            _ => block.len() as u64,
        }
    }
}

/// A buffer whose address suits direct reads.
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    fn new(length: usize) -> Self {
        let bytes = vec![0; length + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Buffer { bytes, start, length }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

/// Bytes as an integer with the letter of its unit.
fn size(bytes: f64) -> String {
    let mut value = bytes;
    let mut unit = "b";
    for larger in ["KB", "MB", "GB", "TB", "PB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.0}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::commands;
    use std::os::unix::ffi::OsStrExt;

    fn answer(data: &[u8], line: &str) -> Result<String, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, data).unwrap();
        let dedupe = commands::ALL.iter().find(|command| command.name == "dedupe").unwrap();
        let mut words: Vec<_> = line.split_whitespace().map(Into::into).collect();
        words.push(std::ffi::OsStr::from_bytes(path.as_os_str().as_bytes()).to_owned());
        run(&dedupe.read(&words)?)
    }

    /// A block of bytes that do not compress, different for each number.
    fn block(number: u64, size: usize) -> Vec<u8> {
        let mut state = number;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        (0..size).map(|_| next()).collect()
    }

    /// The output of fio-dedupe 3.33 (with -B 0) for 16 blocks repeated three times, and for zeros only.
    #[test]
    fn the_words_of_the_reference() {
        let once: Vec<u8> = (0..16).flat_map(|number| block(number, 4096)).collect();
        let text = answer(&once.repeat(3), "-t 1").unwrap();
        assert!(
            text.ends_with(
                "size <196608>, using 1 threads\nThreads(1): 48 items processed\n\
             Extents=48, Unique extents=16 Duplicated extents=16\nDe-dupe ratio: 1:2.00\n\
             De-dupe working set at least: 33.33%\nFio setting: dedupe_percentage=67\n"
            ),
            "{text}"
        );
        let text = answer(&vec![0; 1 << 20], "-t 1").unwrap();
        assert!(
            text.ends_with(
                "Extents=256, Unique extents=1 Duplicated extents=1\nDe-dupe ratio: 1:255.00\n\
             De-dupe working set at least: 0.39%\nFio setting: dedupe_percentage=100\n"
            ),
            "{text}"
        );
        let text = answer(&once, "-b 64k").unwrap();
        assert!(
            text.ends_with(
                "Extents=1, Unique extents=1 Duplicated extents=0\nDe-dupe ratio: 1:0.00\n\
             Fio setting: dedupe_percentage=0\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn threads_and_comparing_change_nothing() {
        let data: Vec<u8> = (0..3000).flat_map(|number| block(number % 1000, 512)).collect();
        for line in ["-t 1", "-t 7", "-c 1", "-o 0 -p 0 -t 3"] {
            let text = answer(&data, &format!("-b 512 {line}")).unwrap();
            assert!(text.contains("Extents=3000, Unique extents=1000 Duplicated extents=1000\n"), "{text}");
        }
    }

    #[test]
    fn compressible_blocks() {
        let half: Vec<u8> =
            (0..256).flat_map(|number| [block(number, 2048), vec![0; 2048]].concat()).collect();
        let text = answer(&half, "-C 1").unwrap();
        let setting = text.lines().last().unwrap().rsplit('=').next().unwrap().parse::<u32>().unwrap();
        assert!((48..=51).contains(&setting), "{text}");
        assert!(text.contains("Unique capacity 52"), "{text}");
        let noise: Vec<u8> = (0..64).flat_map(|number| block(number, 4096)).collect();
        assert!(answer(&noise, "-C 1").unwrap().contains("buffer_compress_percentage=0\n"));
    }

    #[test]
    fn duplicates_are_listed_with_their_places() {
        let data = [block(1, 512), block(2, 512), block(1, 512)].concat();
        let text = answer(&data, "-b 512 -d 1").unwrap();
        assert!(text.contains(", count 2\n\toffset 0\n\toffset 1024\n"), "{text}");
    }

    #[test]
    fn with_little_room_the_numbers_are_estimates() {
        let data: Vec<u8> = (0..160_000u64).flat_map(|n| (n % 130_000).to_le_bytes().repeat(64)).collect();
        let text = answer(&data, "-b 512 -B 1").unwrap();
        let unique: f64 =
            text.split("Unique extents=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(text.contains("Estimated from 1 of 2 distinct blocks\n"), "{text}");
        assert!((unique / 130_000.0 - 1.0).abs() < 0.02, "{text}");
        // 30,000 of 160,000 are repetitions: 18.75%.
        assert!(
            [17, 18, 19, 20].iter().any(|n| text.contains(&format!("dedupe_percentage={n}\n"))),
            "{text}"
        );
    }

    #[test]
    fn mistakes() {
        assert!(answer(b"short", "").unwrap_err().contains("smaller than one block"));
        assert!(answer(&[0; 4096], "-b 100").unwrap_err().contains("at least 512"));
        assert!(answer(&[0; 4096], "second").unwrap_err().contains("one file"));
    }

    #[test]
    fn holes_are_zeros() {
        let directory = tempfile::tempdir().unwrap();
        let (sparse, full) = (directory.path().join("sparse"), directory.path().join("full"));
        let (length, at) = (64 << 20, 37 << 20);
        let file = File::create(&sparse).unwrap();
        file.set_len(length).unwrap();
        file.write_all_at(&block(1, 8192), at).unwrap();
        let mut data = vec![0; length as usize];
        data[at as usize..][..8192].copy_from_slice(&block(1, 8192));
        std::fs::write(&full, data).unwrap();
        for line in ["", "-c 1 -C 1", "-d 1 -b 512", "-b 4m"] {
            let told = |path: &Path| {
                let dedupe = commands::ALL.iter().find(|command| command.name == "dedupe").unwrap();
                let words = line.split_whitespace().map(Into::into).chain([path.as_os_str().to_owned()]);
                let text = run(&dedupe.read(&words.collect::<Vec<_>>()).unwrap()).unwrap();
                text.lines().skip(1).collect::<Vec<_>>().join("\n")
            };
            assert_eq!(told(&sparse), told(&full), "{line}");
        }
    }

    #[test]
    fn units() {
        assert_eq!(size(12.0), "12b");
        assert_eq!(size(333.0 * 1024.0), "333KB");
        assert_eq!(size(24.0e6), "23MB");
    }
}
