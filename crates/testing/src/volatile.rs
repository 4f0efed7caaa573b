//! A disk with a volatile cache: when the power fails, each unflushed write may be lost or not.
//!
//! It is a FUSE file system with one file, `disk`, in the memory of the test. A loop device on the file makes it a
//! block device, whose flushes arrive here as `fsync`.

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

const FILE: INodeNo = INodeNo(2);
const ALWAYS: Duration = Duration::from_secs(3600);

/// The content of the disk.
#[derive(Debug)]
struct Content {
    /// The content that survives a power failure.
    durable: Vec<u8>,
    /// The content that reads return.
    cached: Vec<u8>,
    /// The writes since the last flush, in order.
    pending: Vec<(usize, Vec<u8>)>,
    /// The disk ignores flushes but reports success.
    lies: bool,
    /// How long each read takes, one after the other; empty = no time. The list is used again and again.
    delays: Vec<Duration>,
    reads: usize,
}

/// The disk, mounted until it is dropped.
pub struct VolatileDisk {
    content: Arc<Mutex<Content>>,
    /// The path of the file.
    pub path: PathBuf,
    _session: fuser::BackgroundSession,
}

impl VolatileDisk {
    /// A disk of zeros, mounted below `dir`.
    ///
    /// # Errors
    /// FUSE is not possible here; the text says why.
    pub fn new(dir: &Path, bytes: usize, lies: bool) -> Result<VolatileDisk, String> {
        let content = Content {
            durable: vec![0; bytes],
            cached: vec![0; bytes],
            pending: Vec::new(),
            lies,
            delays: Vec::new(),
            reads: 0,
        };
        let content = Arc::new(Mutex::new(content));
        let mount = dir.join("volatile");
        std::fs::create_dir(&mount).map_err(|error| error.to_string())?;
        let served = Served(Arc::clone(&content));
        let session = fuser::spawn_mount(served, &mount, &Config::default())
            .map_err(|error| format!("no FUSE here: {error}"))?;
        Ok(VolatileDisk { content, path: mount.join("disk"), _session: session })
    }

    /// Simulates a power failure. For each write since the last flush, `luck` decides whether it survives.
    pub fn power_cut(&self, mut luck: impl FnMut() -> bool) {
        let mut content = self.content.lock().unwrap();
        for (at, bytes) in std::mem::take(&mut content.pending) {
            if luck() {
                content.durable[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        content.cached = content.durable.clone();
    }

    /// Makes reads take this long, one after the other, again and again.
    pub fn delay_reads(&self, delays: &[Duration]) {
        self.content.lock().unwrap().delays = delays.to_vec();
    }

    /// The number of unflushed writes.
    pub fn pending(&self) -> usize {
        self.content.lock().unwrap().pending.len()
    }
}

/// Unmounts lazily, because a process that another test has just started may still have the file open.
impl Drop for VolatileDisk {
    fn drop(&mut self) {
        let mount = self.path.parent().expect("it is in the mount").as_os_str().as_bytes();
        let mount = CString::new(mount).expect("the path contains no zero byte");
        // Without permission for this, the session unmounts with fusermount afterwards.
        // SAFETY: the path ends with a zero byte.
        unsafe { libc::umount2(mount.as_ptr(), libc::MNT_DETACH) };
    }
}

struct Served(Arc<Mutex<Content>>);

impl Served {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_file = inode == FILE;
        let size = if is_file { self.0.lock().unwrap().cached.len() as u64 } else { 0 };
        FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: 0o777,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Served {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == "disk" {
            reply.entry(&ALWAYS, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&ALWAYS, &self.attributes(inode));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // Bypasses the page cache, which would survive the simulated power failure.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut content = self.0.lock().unwrap();
        content.reads += 1;
        let delay = match content.delays.len() {
            0 => Duration::ZERO,
            count => content.delays[content.reads % count],
        };
        std::thread::sleep(delay);
        let start = (offset as usize).min(content.cached.len());
        let end = (start + size as usize).min(content.cached.len());
        reply.data(&content.cached[start..end]);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut content = self.0.lock().unwrap();
        let at = offset as usize;
        let Some(place) = content.cached.get_mut(at..at + data.len()) else {
            return reply.error(Errno::ENOSPC);
        };
        place.copy_from_slice(data);
        content.pending.push((at, data.to_vec()));
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let mut content = self.0.lock().unwrap();
        if !content.lies {
            for (at, bytes) in std::mem::take(&mut content.pending) {
                content.durable[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        reply.ok();
    }
}
