//! Loop devices and mounted images. They are removed at the end of the test, even if it is killed.
//!
//! A device is detached as soon as it is held open, so that the kernel clears it when its last user closes it. A mount
//! is in a mount namespace of the test's thread, which programs that the test starts inherit.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::ptr;

/// A block device backed by a file.
#[derive(Debug)]
pub struct Loop {
    /// `/dev/loopN`
    pub path: String,
    /// Keeps the device attached.
    held: File,
}

impl Loop {
    /// A loop device on a new image of `size` bytes in `dir`; the error says why there is none.
    pub fn new(dir: &Path, size: u64) -> Result<Loop, String> {
        Loop::on(&image(dir, "loop.img", size))
    }

    /// A loop device on an existing image.
    pub fn on(image: &Path) -> Result<Loop, String> {
        if !crate::common::is_root() {
            return Err("loop devices need root".into());
        }
        // Another process may take the free device before it is attached.
        let mut last = String::new();
        for _ in 0..20 {
            match tool("losetup", &["--find", "--show", &image.to_string_lossy()]) {
                Ok(output) => return Loop::held(output.trim().to_string()),
                Err(error) => last = error,
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Err(last)
    }

    fn held(path: String) -> Result<Loop, String> {
        let held = File::open(&path);
        // For an open device, this only sets the flag to clear it at its last close (loop(4), LO_FLAGS_AUTOCLEAR).
        tool("losetup", &["--detach", &path])?;
        let held = held.map_err(|error| format!("{path}: {error}"))?;
        Ok(Loop { path, held })
    }

    /// Its name in disk statistics, without the directory.
    pub fn name(&self) -> &str {
        self.path.trim_start_matches("/dev/")
    }
}

impl Drop for Loop {
    /// Writes back the kernel's cache of the device, so that its image can be read. Closing the device does this only
    /// if no other process has it open.
    fn drop(&mut self) {
        // (This fails for devices with simulated errors, which their tests check.)
        self.held.sync_all().ok();
    }
}

/// A file system on a loop device, mounted.
#[derive(Debug)]
pub struct Mounted {
    /// The mount point.
    pub directory: PathBuf,
    /// The device below, closed after the unmount (fields are dropped in order, after `drop`).
    pub device: Loop,
}

impl Mounted {
    /// Creates and mounts an ext4 file system of `size` bytes below `dir`; the error says why this is not possible.
    pub fn new(dir: &Path, size: u64) -> Result<Mounted, String> {
        Mounted::formatted(dir, size, "ext4", &["-q", "-F", "-m", "0"])
    }

    /// The same without a journal.
    pub fn without_journal(dir: &Path, size: u64) -> Result<Mounted, String> {
        Mounted::formatted(dir, size, "ext4", &["-q", "-F", "-m", "0", "-O", "^has_journal"])
    }

    /// The same with XFS, which has at least 300 MiB.
    pub fn xfs(dir: &Path) -> Result<Mounted, String> {
        Mounted::formatted(dir, 512 << 20, "xfs", &["-q", "-f"])
    }

    fn formatted(dir: &Path, size: u64, kind: &str, options: &[&str]) -> Result<Mounted, String> {
        let image = image(dir, &format!("{kind}.img"), size);
        let path = image.to_string_lossy();
        let options: Vec<&str> = options.iter().copied().chain([&*path]).collect();
        tool(&format!("mkfs.{kind}"), &options)?;
        let device = Loop::on(&image)?;
        private_mounts()?;
        let directory = dir.join("mounted");
        std::fs::create_dir(&directory).map_err(|error| error.to_string())?;
        tool("mount", &["-t", kind, &device.path, &directory.to_string_lossy()])?;
        Ok(Mounted { directory, device })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        unmount(&self.directory);
    }
}

/// A file system in memory that cannot punch holes, so that a loop device on one of its files does not support trims.
#[derive(Debug)]
pub struct Ramfs {
    /// The mount point.
    pub directory: PathBuf,
}

impl Ramfs {
    /// Mounts one below `dir`; the error says why this is not possible.
    pub fn new(dir: &Path) -> Result<Ramfs, String> {
        Ramfs::of_kind(dir, "ramfs", &[])
    }

    /// A tmpfs of this many bytes instead.
    pub fn tmpfs(dir: &Path, size: u64) -> Result<Ramfs, String> {
        Ramfs::of_kind(dir, "tmpfs", &["-o", &format!("size={size}")])
    }

    fn of_kind(dir: &Path, kind: &str, options: &[&str]) -> Result<Ramfs, String> {
        if !crate::common::is_root() {
            return Err("mounts need root".into());
        }
        private_mounts()?;
        let directory = dir.join("ramfs");
        std::fs::create_dir(&directory).map_err(|error| error.to_string())?;
        let place = directory.to_string_lossy();
        tool("mount", &[&["-t", kind], options, &["none", &place]].concat())?;
        Ok(Ramfs { directory })
    }
}

impl Drop for Ramfs {
    fn drop(&mut self) {
        unmount(&self.directory);
    }
}

/// What is ending still uses the file system perhaps, and must not keep the directory of a test.
fn unmount(directory: &Path) {
    report(tool("umount", &["--lazy", &directory.to_string_lossy()]));
}

/// Moves this thread, and its future children, into a private mount namespace.
fn private_mounts() -> Result<(), String> {
    let root = c"/".as_ptr();
    // SAFETY: unshare takes only flags; mount reads two static strings and ignores the other pointers with these flags.
    let done = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(root, root, ptr::null(), libc::MS_REC | libc::MS_PRIVATE, ptr::null()) == 0
    };
    if done { Ok(()) } else { Err(format!("a mount namespace: {}", io::Error::last_os_error())) }
}

/// A sparse file of `size` bytes.
pub fn image(dir: &Path, name: &str, size: u64) -> PathBuf {
    let path = dir.join(name);
    File::create(&path).and_then(|file| file.set_len(size)).expect("an image file can be made");
    path
}

/// Runs an administration tool. Returns its output, or the error.
pub fn tool(program: &str, args: &[&str]) -> Result<String, String> {
    // These tools are in sbin, which is not in every PATH.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let Output { status, stdout, stderr } = Command::new(program)
        .args(args)
        .env("PATH", &path)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if status.success() {
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    } else {
        Err(format!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&stderr).trim()))
    }
}

/// Prints a failed cleanup. (A panic while a test fails would hide the failure.)
fn report(result: Result<String, String>) {
    if let Err(error) = result {
        eprintln!("cleaning up: {error}");
    }
}
