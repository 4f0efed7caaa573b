//! `--serve-only`: a run and all its processes can use only the files that the server serves.
//!
//! The kernel enforces it (Landlock): the process of the run gives up all other files before it reads its jobs, for
//! itself and for all workers and programs that it starts, and cannot get them back. The kernel checks the file that is
//! actually opened, created or removed, whatever links, mounts and names lead to it, so swapping a link does not help.
//! In addition to the served files, a run can read files that every program needs (`READ`), and use devices that keep
//! no data (`USED`).
//!
//! Landlock does not restrict connecting to a socket in the file system, nor asking for the existence and the size of a
//! file. Sockets are refused by their names ([`covers`]).

use std::ffi::c_long;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Paths that every run may read: the system's libraries, name resolution, and facts about the machine.
const READ: [&str; 31] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/proc",
    "/sys",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/protocols",
    "/etc/services",
    "/etc/passwd",
    "/etc/group",
    "/etc/ca-certificates",
    // Private keys are in a directory next to this one, and a server that runs as root could read them.
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust",
];
/// Devices that every run may use.
const USED: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Places of settings of the machine.
const SETTINGS: [&str; 2] = ["/sys/block", "/sys/fs/cgroup"];

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
/// Creating device nodes: never allowed, because they could give access to other devices.
const MAKE_DEVICES: u64 = 1 << 6 | 1 << 11;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
/// The rights that apply to files that are not directories.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// The rights that each version of the kernel's interface knows: version 1 has 13 rights, 2 has one more, and so on.
const KNOWN: [u64; 5] = [(1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1, (1 << 16) - 1];

/// The files and rights of a run.
#[derive(Clone, Copy, Debug)]
pub struct Confinement<'a> {
    /// The served files and directories, which exist, with links resolved.
    pub only: &'a [PathBuf],
    /// The run's own directory.
    pub own: &'a Path,
    /// The served files may be changed.
    pub changes: bool,
    /// Programs may run, and settings of the machine be changed.
    pub exec: bool,
}

/// The served paths with all links resolved.
///
/// # Errors
/// One of them does not exist, or the kernel cannot confine a run.
pub fn prepare(only: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    version()?;
    let resolved =
        only.iter().map(|path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display())));
    resolved.collect()
}

/// Whether this path leads, or will lead, into the served files. Links are followed as far as the path exists.
pub fn covers(only: &[PathBuf], path: &Path) -> bool {
    let Ok(mut place) = std::path::absolute(path) else { return false };
    let mut rest = Vec::new();
    let resolved = loop {
        if let Ok(found) = place.canonicalize() {
            break found;
        }
        // A link to a path that does not exist yet may lead elsewhere as well.
        if place.symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            let Ok(target) = place.read_link() else { return false };
            let parent = place.parent().unwrap_or(Path::new("/")).to_owned();
            place = parent.join(target);
            if rest.len() > 40 {
                return false;
            }
            rest.push(None);
            continue;
        }
        // The parent of a path that does not exist is not known.
        let (Some(name), Some(parent)) = (place.file_name(), place.parent()) else { return false };
        rest.push(Some(name.to_owned()));
        place = parent.to_owned();
    };
    let whole = rest.into_iter().rev().flatten().fold(resolved, |whole, part| whole.join(part));
    only.iter().any(|served| whole.starts_with(served))
}

/// Gives up access to all other files, for this process and all that it will start. The process must have one thread.
///
/// # Errors
/// The kernel cannot do that, or a served path is gone.
pub fn confine(asked: Confinement<'_>) -> Result<(), String> {
    let known = KNOWN[(version()? as usize - 1).min(KNOWN.len() - 1)];
    let rules = create(known, version()? >= SCOPES_SINCE)
        .map_err(|error| format!("the run cannot be confined: {error}"))?;
    let mut reading = READ_FILE | READ_DIR;
    if asked.exec {
        reading |= EXECUTE;
    }
    let mut anything = if asked.changes { known & !MAKE_DEVICES } else { READ_FILE | READ_DIR | IOCTL_DEV };
    if !asked.exec {
        anything &= !EXECUTE;
    }
    let allow = |path: &Path, rights: u64| -> Result<(), String> {
        add(&rules, path, rights & known).map_err(|error| format!("{}: {error}", path.display()))
    };
    let there = |path: &&Path| path.exists();
    let paths = |list: &'static [&'static str]| list.iter().map(Path::new);
    for path in paths(&READ).filter(there) {
        allow(path, reading)?;
    }
    for path in paths(&USED).filter(there) {
        allow(path, READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV)?;
    }
    for path in paths(&SETTINGS).filter(there).filter(|_| asked.exec) {
        allow(path, known & !MAKE_DEVICES)?;
    }
    allow(asked.own, known & !MAKE_DEVICES)?;
    asked.only.iter().try_for_each(|path| allow(path, anything))?;
    restrict(&rules).map_err(|error| format!("the run cannot be confined: {error}"))
}

/// The version of the kernel's interface (Landlock).
///
/// # Errors
/// It has none.
pub fn version() -> Result<u32, String> {
    /// Asks for the version instead of creating a set of rules.
    const ASK: c_long = 1;
    // SAFETY: without attributes, the call only answers a number.
    let answer =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, ASK) };
    u32::try_from(answer).ok().filter(|version| *version > 0).ok_or_else(|| {
        "this kernel cannot confine programs to files (Landlock: Linux 5.13 or later, with landlock among the modules of \
         /sys/kernel/security/lsm)"
            .to_owned()
    })
}

/// The first version that keeps signals, and connections to sockets without a file, within the run.
const SCOPES_SINCE: u32 = 6;

fn create(handled: u64, scopes: bool) -> io::Result<OwnedFd> {
    /// Files, network, and communication with processes outside the run: abstract sockets (1) and signals (2).
    #[repr(C)]
    struct Attributes([u64; 3]);
    let attributes = Attributes([handled, 0, 1 | 2]);
    // An older kernel knows the first word only.
    let length = if scopes { size_of::<Attributes>() } else { size_of::<u64>() };
    // SAFETY: the attributes have at least `length` bytes, in the kernel's layout.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, length, 0 as c_long)
    };
    match i32::try_from(descriptor) {
        // SAFETY: the kernel has just made it for this process.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn add(rules: &OwnedFd, path: &Path, rights: u64) -> io::Result<()> {
    #[repr(C, packed)]
    struct Beneath {
        rights: u64,
        place: i32,
    }
    /// The kind of rule: for whatever is beneath a place.
    const BENEATH: c_long = 1;
    let place = File::options().read(true).custom_flags(libc::O_PATH).open(path)?;
    let is_directory = place.metadata()?.is_dir();
    let rights = if is_directory { rights } else { rights & OF_FILES };
    let rule = Beneath { rights, place: place.as_raw_fd() };
    // SAFETY: the rule has the type that belongs to this kind, and is valid during the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            rules.as_raw_fd() as c_long,
            BENEATH,
            &raw const rule,
            0 as c_long,
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn restrict(rules: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers are involved. From now on, setuid programs run as this user.
    let answers = unsafe {
        let answer = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (
            c_long::from(answer),
            libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd() as c_long, 0 as c_long),
        )
    };
    if answers == (0, 0) { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn private_keys_of_the_machine_are_out_of_reach() {
        for key in
            ["/etc/ssl/private/machine.key", "/etc/pki/tls/private/machine.key", "/etc/pki/rsyslog/key.pem"]
        {
            let over = READ.iter().find(|place| Path::new(key).starts_with(place));
            assert_eq!(over, None, "{key}");
        }
    }

    #[test]
    fn links_are_followed_before_anything_is_served() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().canonicalize().unwrap().join(name);
        for name in ["served", "served/deep", "other"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::fs::write(at("device"), "").unwrap();
        symlink(at("other"), at("served/out")).unwrap();
        symlink(at("served/deep"), at("other/in")).unwrap();
        symlink("../other/new", at("served/dangling")).unwrap();
        symlink("deep/new", at("served/fine")).unwrap();
        symlink("round", at("served/round")).unwrap();
        let only = [at("served"), at("device")];
        for (path, expected) in [
            ("served", true),
            ("served/new", true),
            ("served/new/newer", true),
            ("served/deep/../new", true),
            ("other/in/new", true),
            ("served/fine", true),
            ("device", true),
            ("served/out/new", false),
            ("served/dangling", false),
            ("served/round", false),
            ("served/../other/x", false),
            ("served/new/../../other/x", false),
            ("other", false),
            ("servedtoo", false),
            ("devices", false),
        ] {
            assert_eq!(covers(&only, &at(path)), expected, "{path}");
        }
    }
}
