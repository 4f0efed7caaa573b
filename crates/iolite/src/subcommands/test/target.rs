//! What a target is, what may be done to it, and the facts about it.

use super::cases::{FIRST, Pace, Place};
use super::own_directory::OwnDirectory;
use super::remote::{self, Layout, OwnNames, POOL_OBJECT, POOL_OBJECTS, Remote};
use crate::subcommands::device::can_be_named;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use iolite_findings::{Backing, Disk as DiskFacts, Sampled, Subject};
use iolite_host::{Access, Device, Disk, FileSystem, Machine, Mounts, Refusal, ThisMachine};
use iolite_options::commands::Asked;
use iolite_page::text::bytes;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The least room for the test's file, and the least size of an existing one.
const LEAST: u64 = 16 << 20;
/// The most bytes of the test's file on a server: others use it, too.
const MOST_ON_SERVERS: u64 = 1 << 30;
/// The share of the free space that a test takes at most.
const SHARE: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    Device,
    /// Storage of a server.
    Remote,
}

/// A target.
#[derive(Clone, Debug)]
pub struct Target {
    /// As the user has named it.
    pub name: String,
    pub path: PathBuf,
    pub kind: Kind,
    /// The user has confirmed that its data may be lost.
    pub is_destroyed: bool,
    /// Bytes of an existing file or a device.
    size: u64,
    disk: Option<Disk>,
    file_system: Option<String>,
    /// Its files are in memory.
    is_memory: bool,
    /// The storage of a server.
    pub remote: Option<Remote>,
}

/// The targets that the user has named.
pub fn all(asked: &Asked) -> Result<Vec<Target>, String> {
    let confirmed: Vec<&str> = asked.values("destroy").collect();
    let mut targets: Vec<Target> = Vec::new();
    let mut mistakes = Vec::new();
    for word in &asked.operands {
        match Target::of(&word.to_string_lossy(), &confirmed) {
            Ok(target) if targets.iter().any(|other| other.path == target.path || other.is(&target.path)) => {
                mistakes.push(format!("{}: this target is named twice", target.name));
            }
            Ok(target) => targets.push(target),
            Err(why) => mistakes.push(why),
        }
    }
    for name in confirmed {
        if !asked.operands.iter().any(|word| word.to_string_lossy() == name) {
            mistakes.push(format!(
                "--destroy={name}: this is no target; it repeats the name of one exactly, so that nothing is destroyed by \
                 mistake"
            ));
        }
    }
    if mistakes.is_empty() { Ok(targets) } else { Err(mistakes.join("; ")) }
}

impl Target {
    fn of(name: &str, confirmed: &[&str]) -> Result<Target, String> {
        let path = Path::new(name);
        let told = |why: &str| Err(format!("{name}: {why}"));
        let found = match fs::metadata(path) {
            Ok(found) => found,
            Err(error) => {
                if let Some(remote) = Remote::of(name) {
                    let told = |why| format!("{}: {why}", remote::shown(name));
                    return remote
                        .and_then(|remote| Target::of_server(name, remote, confirmed))
                        .map_err(told);
                }
                let remedy = match error.kind() {
                    std::io::ErrorKind::NotFound => {
                        "; name an existing directory, file or block device (nothing was created)"
                    }
                    _ => "",
                };
                return told(&format!("{}{remedy}", iolite_types::describe_error(&error)));
            }
        };
        let kind = match found.file_type() {
            kind if kind.is_dir() => Kind::Directory,
            kind if kind.is_file() => Kind::File,
            kind if kind.is_block_device() => Kind::Device,
            _ => return told("this is neither a directory, nor a file, nor a block device"),
        };
        if !can_be_named(path) {
            return told("a job file would take this name for something else; give it a plain name (a link)");
        }
        let is_destroyed = confirmed.contains(&name);
        if is_destroyed && kind == Kind::Directory {
            return told(
                "--destroy is for devices and existing files; in a directory nothing is overwritten",
            );
        }
        check_access(path, kind, is_destroyed).map_err(|why| {
            let remedy = match (why.errno, kind) {
                (Some(libc::EACCES | libc::EPERM), Kind::Directory) => "; a test makes files in it",
                (Some(libc::EACCES | libc::EPERM), _) => "; root may",
                _ => "",
            };
            format!("{name}: {}{remedy}", why.words)
        })?;
        let machine = ThisMachine::new();
        let size = match kind {
            Kind::Directory => 0,
            _ => machine.size(path).map_err(|why| format!("{name}: {}", why.words))?.unwrap_or(0),
        };
        if kind != Kind::Directory && size < LEAST {
            return told(&format!(
                "it has {}, and a test needs {} at least",
                bytes(size as f64),
                bytes(LEAST as f64)
            ));
        }
        let mut target = Target {
            name: name.to_owned(),
            path: path.to_owned(),
            kind,
            is_destroyed,
            size,
            disk: machine.disk(path),
            file_system: None,
            is_memory: false,
            remote: None,
        };
        if kind == Kind::Device {
            if is_destroyed && let Some(use_) = machine.in_use(path) {
                return told(&format!("{use_}; a device in use is never written to"));
            }
        } else {
            let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            target.file_system = Mounts::now().file_system(&place).map(str::to_owned);
            let magic = machine.file_system(path).map(|found| found.magic).ok();
            target.is_memory =
                magic.is_some_and(|magic| [FileSystem::TMPFS, FileSystem::RAMFS].contains(&magic));
        }
        Ok(target)
    }

    fn of_server(name: &str, remote: Remote, confirmed: &[&str]) -> Result<Target, String> {
        let is_destroyed = confirmed.contains(&name);
        if is_destroyed && remote.layout != Layout::Disk {
            return Err(
                "--destroy is for disks; here the test has names of its own, and nothing is overwritten"
                    .to_owned(),
            );
        }
        // Before anything is measured, it is clear whether the server answers.
        let size = match remote.layout {
            Layout::Disk => remote.size()?,
            Layout::File | Layout::Objects => {
                remote.check()?;
                0
            }
        };
        if remote.layout == Layout::Disk && size < LEAST {
            return Err(format!(
                "it has {}, and a test needs {} at least",
                bytes(size as f64),
                bytes(LEAST as f64)
            ));
        }
        Ok(Target {
            name: remote::shown(name),
            path: name.into(),
            kind: Kind::Remote,
            is_destroyed,
            size,
            disk: None,
            file_system: None,
            is_memory: false,
            remote: Some(remote),
        })
    }

    /// Whether this is the same file, device or directory.
    pub fn is(&self, other: &Path) -> bool {
        match (fs::metadata(&self.path), fs::metadata(other)) {
            (Ok(one), Ok(two)) => (one.dev(), one.ino()) == (two.dev(), two.ino()),
            _ => false,
        }
    }

    /// Whether the test writes to it, or in it.
    pub fn may_write(&self) -> bool {
        let has_own = self.remote.as_ref().is_some_and(|remote| remote.layout != Layout::Disk);
        self.kind == Kind::Directory || has_own || self.is_destroyed
    }

    /// What it is, in a line.
    pub fn words(&self) -> String {
        let what = match self.kind {
            Kind::Directory => "directory".to_owned(),
            Kind::File => format!("file of {}", bytes(self.size as f64)),
            Kind::Device => format!("device of {}", bytes(self.size as f64)),
            Kind::Remote => {
                let words = self.remote.as_ref().map_or("", |remote| remote.words);
                if self.size > 0 {
                    format!("{words} of {}", bytes(self.size as f64))
                } else {
                    words.to_owned()
                }
            }
        };
        let on = self.file_system.as_ref().map(|kind| format!(" on {kind}")).unwrap_or_default();
        let disk = self.disk.as_ref().map(|disk| {
            let model = Device::of(disk, None);
            let model = model.fact("identity", "model").map(|model| format!(" ({})", model.text()));
            format!(", {}{}", disk.name, model.unwrap_or_default())
        });
        format!("{what}{on}{}", disk.unwrap_or_default())
    }

    /// The most bytes that the test writes to it.
    pub fn room(&self, pace: &Pace) -> Result<u64, String> {
        let machine = ThisMachine::new();
        let memory = machine.memory();
        // Larger than memory, no cache of this machine has all of it.
        let wanted =
            memory.total.map_or(pace.most_bytes, |total| total.saturating_mul(2)).min(pace.most_bytes);
        let mut most = match self.kind {
            Kind::Directory => {
                let found =
                    machine.file_system(&self.path).map_err(|why| format!("{}: {}", self.name, why.words))?;
                // Some have no size; those in memory are limited by that.
                if found.bytes == 0 { u64::MAX } else { found.available / SHARE }
            }
            // A server does not always know how much room it has.
            Kind::Remote if self.remote.as_ref().is_some_and(Remote::is_pool) => POOL_OBJECT * POOL_OBJECTS,
            Kind::Remote if self.size == 0 => MOST_ON_SERVERS,
            _ => self.size,
        };
        if self.is_memory {
            most = most.min(memory.available.unwrap_or(u64::MAX) / SHARE);
        }
        let room = wanted.min(most) >> 20 << 20;
        if self.kind == Kind::Directory && room < LEAST {
            return Err(format!(
                "{}: a test takes at most a tenth of the free space, and that is too little here: {} of the {} that it needs \
                 at least",
                self.name,
                bytes(room as f64),
                bytes(LEAST as f64)
            ));
        }
        Ok(room)
    }

    /// Where the cases are, given the file that is used.
    pub fn place(&self, file: PathBuf, pace: &Pace) -> Result<Place, String> {
        let may_write = self.may_write();
        let bytes = if may_write { self.room(pace)? } else { self.size };
        let is_direct =
            self.remote.is_none() && !self.is_memory && has_direct_io(&file, self.kind == Kind::Directory);
        Ok(Place {
            remote: self.remote.clone(),
            file,
            bytes: bytes & !4095,
            is_new: may_write,
            may_write,
            has_stages: is_direct && ThisMachine::new().tracing().is_ok(),
            is_direct,
            // Buffered I/O is asynchronous only there.
            engine: match &self.remote {
                Some(remote) => remote.engine,
                None if is_direct => "libaio",
                None => "io_uring",
            },
            has_names: self.kind == Kind::Directory,
            files: pace.files,
            processors: ThisMachine::new().cpus().allowed.len() as u32,
            read: FIRST,
            write: FIRST,
        })
    }

    /// The same before anything was made.
    pub fn place_before(&self, pace: &Pace) -> Result<Place, String> {
        match self.kind {
            Kind::Directory => {
                let mut place = self.place(self.path.join("iolite-test.jobs/data"), pace)?;
                place.is_direct = !self.is_memory;
                place.engine = if place.is_direct { "libaio" } else { "io_uring" };
                Ok(place)
            }
            _ => self.place(self.own_file(), pace),
        }
    }

    /// The file, device or name that is used, unless it is in a directory of the test.
    pub fn own_file(&self) -> PathBuf {
        match &self.remote {
            Some(remote) if remote.layout != Layout::Disk => remote.own_name().into(),
            _ => self.path.clone(),
        }
    }

    /// Makes the test's directory in a target that is one.
    pub fn own_directory(&self) -> Result<Option<OwnDirectory>, String> {
        (self.kind == Kind::Directory)
            .then(|| OwnDirectory::make(&self.path, &super::own_directory::OF_TESTS))
            .transpose()
    }

    /// The names that the test will have on a server.
    pub fn own_names(&self) -> Option<OwnNames> {
        self.remote.as_ref().filter(|remote| remote.layout != Layout::Disk).map(OwnNames::of)
    }

    /// The disk below it.
    pub fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// What is known of it, without measurements. Looks at some of its data, if the test does not write it.
    pub fn subject(&self) -> Subject {
        let is_read = !self.may_write() && self.remote.is_none();
        let stored = || fs::metadata(&self.path).ok().map(|found| (found.len(), found.blocks() * 512));
        Subject {
            memory: self.file_system.clone().filter(|_| self.is_memory),
            disk: self.disk.as_ref().map(|disk| facts(disk, &self.path)),
            sampled: if is_read { sample(&self.path, self.size) } else { None },
            allocated: if is_read && self.kind == Kind::File { stored() } else { None },
            cases: Vec::new(),
        }
    }
}

/// Whether the user may do what the test does. Changes nothing.
fn check_access(target: &Path, kind: Kind, is_destroyed: bool) -> Result<(), Refusal> {
    let machine = ThisMachine::new();
    match kind {
        Kind::Directory => {
            fs::read_dir(target)?;
            machine.access(target, Access::MakeFiles)
        }
        _ => {
            File::open(target)?;
            if is_destroyed { machine.access(target, Access::Write) } else { Ok(()) }
        }
    }
}

fn facts(disk: &Disk, path: &Path) -> DiskFacts {
    let text = |name: &str| {
        let text = fs::read_to_string(disk.directory.join(name)).ok()?;
        Some(text.trim().to_owned())
    };
    DiskFacts {
        name: disk.name.clone(),
        rotational: disk.queue.rotational,
        scheduler: disk.queue.scheduler.as_ref().and_then(|scheduler| scheduler.chosen.clone()),
        is_flushed: text("queue/write_cache").map(|cache| cache == "write back"),
        queue: text("device/queue_depth").and_then(|depth| depth.parse().ok()),
        physical_block: disk.queue.physical_block,
        partition_start: Disk::partition_start(path),
        backing: text("loop/backing_file")
            .map(|file| Backing { file, is_direct: text("loop/dio").as_deref() == Some("1") }),
    }
}

/// Whether a file can be opened for direct I/O. One of the test's own is made for that.
fn has_direct_io(file: &Path, is_own: bool) -> bool {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_DIRECT);
    if is_own {
        options.write(true).create(true);
    }
    options.open(file).is_ok()
}

/// Looks at blocks at random places.
fn sample(path: &Path, size: u64) -> Option<Sampled> {
    const BLOCKS: u64 = 64;
    const BLOCK: usize = 4096;
    let file = File::open(path).ok()?;
    let machine = ThisMachine::new();
    let (mut sampled, mut compressed) = (Sampled::default(), 0);
    for _ in 0..BLOCKS {
        let mut block = [0; BLOCK];
        let offset = machine.random() % (size / BLOCK as u64).max(1) * BLOCK as u64;
        file.read_exact_at(&mut block, offset).ok()?;
        sampled.blocks += 1;
        sampled.zero += u64::from(block.iter().all(|byte| *byte == 0));
        // A block that does not compress is stored as it is.
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        let made = encoder.write_all(&block).and_then(|()| encoder.finish());
        compressed += made.map_or(BLOCK, |bytes| bytes.len().min(BLOCK));
    }
    sampled.compressed = compressed as f64 / (sampled.blocks as usize * BLOCK) as f64;
    Some(sampled)
}
