//! Errors of engines that cannot be used here, with remedies.

use std::io;

/// Reasons why an engine cannot be made, with the remedies.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No engine of that name.
    #[error("ioengine={0}: no such engine")]
    Unknown(String),
    /// The program was built without the feature that the engine is part of.
    #[error("ioengine={engine}: {}", iolite_types::built_without(.feature))]
    LeftOut {
        /// The engine.
        engine: String,
        /// The feature of cargo.
        feature: &'static str,
    },
    /// The administrator switched io_uring off.
    #[error(
        "io_uring is disabled on this system (kernel.io_uring_disabled = {setting}); allow it with \
         'sysctl kernel.io_uring_disabled=0'{}", group_hint(*.setting)
    )]
    UringDisabled {
        /// The value of the sysctl.
        setting: u32,
    },
    /// EPERM although the sysctl allows io_uring: a sandbox.
    #[error(
        "io_uring is not permitted here although kernel.io_uring_disabled allows it; a seccomp filter (container \
         runtime) or security policy forbids it, use one that allows io_uring_setup, or another engine"
    )]
    UringForbidden,
    /// The kernel has no such system call, or a filter hides it.
    #[error(
        "{engine}: the kernel does not offer {call} (ENOSYS): it is too old, built without it, or a seccomp filter \
         (container runtime) hides it"
    )]
    NoSystemCall {
        /// The engine.
        engine: &'static str,
        /// The missing system call.
        call: &'static str,
    },
    /// The kernel's io_uring does not have a command.
    #[error("uring=1: io_uring of this kernel has no {call}; leave uring out")]
    NoRingCommand {
        /// The corresponding system call.
        call: &'static str,
    },
    /// The system-wide number of AIO requests is used up.
    #[error(
        "libaio: io_setup for {depth} requests was refused (EAGAIN): fs.aio-nr = {used} of fs.aio-max-nr = {limit} \
         are in use; raise the limit with 'sysctl fs.aio-max-nr=N', or lower iodepth or numjobs"
    )]
    AioLimit {
        /// The depth that was asked for.
        depth: usize,
        /// fs.aio-nr
        used: u64,
        /// fs.aio-max-nr
        limit: u64,
    },
    /// The depth is more than the kernel interface can take at all.
    #[error("{engine}: the kernel does not take iodepth={depth} ({source}); lower iodepth")]
    Depth {
        /// The engine.
        engine: &'static str,
        /// The depth that was asked for.
        depth: usize,
        /// The kernel's error.
        source: io::Error,
    },
    /// Memory could not be pinned.
    #[error(
        "io_uring: {bytes} bytes could not be locked for {purpose} ({source}); RLIMIT_MEMLOCK is {}: raise it with \
         'ulimit -l' or in limits.conf, or lower iodepth{}",
        limit_text(*.limit), if *.purpose == FIXED_BUFFERS { " or leave fixedbufs out" } else { "" }
    )]
    MemoryLock {
        /// The purpose of the pinned memory.
        purpose: &'static str,
        /// The amount.
        bytes: usize,
        /// The soft limit; `None` = unlimited.
        limit: Option<u64>,
        /// The kernel's error.
        source: io::Error,
    },
    /// Polled completions need direct I/O.
    #[error(
        "io_uring: hipri needs direct=1 (and a device with poll queues, such as nvme with poll_queues > 0); set \
         direct=1 or leave hipri out"
    )]
    PolledNeedsDirect,
    /// The CPU asked for the kernel's polling thread cannot be used.
    #[error(
        "io_uring: sqthread_poll_cpu={cpu} cannot be used ({source}); name an online CPU this job may run on"
    )]
    PollCpu {
        /// The CPU.
        cpu: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// A buffer is too large to be registered.
    #[error(
        "io_uring: fixedbufs cannot register blocks of {bytes} bytes (the kernel's limit is 1 GiB); leave fixedbufs out"
    )]
    BufferTooLarge {
        /// The size of one buffer.
        bytes: usize,
    },
    /// The system refuses a pipe.
    #[error("{engine}: no pipe could be made ({source}); raise the limit of open files with 'ulimit -n'")]
    Pipe {
        /// The engine.
        engine: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The file to swap blocks with cannot be opened.
    #[error("e4defrag: donorname={}: {source}", name.display())]
    Donor {
        /// The file.
        name: std::path::PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// An object server, or the options for it, cannot be used.
    #[error("ioengine=http: {0}")]
    Http(String),
    /// A server, or the options for it, cannot be used.
    #[error("ioengine={engine}: {why}")]
    Remote {
        /// The engine.
        engine: &'static str,
        /// The most similar error number of the system.
        errno: i32,
        /// The reason.
        why: String,
    },
    /// A library that an engine needs is not installed.
    #[error(
        "ioengine={engine}: the library {library} cannot be used ({why}); {}",
        library_remedy(debian, rhel)
    )]
    Library {
        /// The engine.
        engine: &'static str,
        /// The file.
        library: &'static str,
        /// The package of Debian that has it.
        debian: &'static str,
        /// The package's name in RHEL; empty = distributions have none, and `debian` is that of the vendor.
        rhel: &'static str,
        /// The loader's error message.
        why: String,
    },
    /// The engine in a shared object cannot be used.
    #[error("ioengine=external:{library}: {why}")]
    External {
        /// The file name as given.
        library: String,
        /// The reason.
        why: String,
    },
    /// An error of the child process that tried the engine.
    #[error("{message}")]
    InChild {
        /// The error number behind it.
        errno: i32,
        /// The error there.
        message: String,
    },
    /// The child process that tried the engine died.
    #[error("ioengine={engine}: its library cannot be used here: the process that tried it ended with {how}")]
    Died {
        /// The engine.
        engine: String,
        /// A signal, or an exit status.
        how: String,
    },
    /// The child process that tries the engine takes too long.
    #[error(
        "ioengine={engine}: no answer within {seconds} s: its library, or the storage that it asked, hangs"
    )]
    Silent {
        /// The engine.
        engine: String,
        /// Its time limit.
        seconds: u64,
    },
    /// The program to run does not exist.
    #[error("exec: program={program} cannot be run: {}", iolite_types::describe_error(source))]
    Program {
        /// Its name as given.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// Any other refusal.
    #[error("{engine}: {call}: {source}")]
    System {
        /// The engine.
        engine: &'static str,
        /// The system call or step.
        call: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

impl EngineError {
    /// The error number behind it, for reports that want one.
    pub fn errno(&self) -> i32 {
        match self {
            EngineError::LeftOut { .. } => libc::ENOSYS,
            EngineError::Unknown(_) | EngineError::Http(_) | EngineError::External { .. } => libc::EINVAL,
            EngineError::UringDisabled { .. } | EngineError::UringForbidden => libc::EPERM,
            EngineError::NoRingCommand { .. } | EngineError::NoSystemCall { .. } => libc::ENOSYS,
            EngineError::Library { .. } => libc::ELIBACC,
            EngineError::AioLimit { .. } => libc::EAGAIN,
            EngineError::PolledNeedsDirect => libc::EOPNOTSUPP,
            EngineError::BufferTooLarge { .. } => libc::EFAULT,
            EngineError::InChild { errno, .. } | EngineError::Remote { errno, .. } => *errno,
            EngineError::Died { .. } => libc::EIO,
            EngineError::Silent { .. } => libc::ETIMEDOUT,
            EngineError::Depth { source, .. }
            | EngineError::MemoryLock { source, .. }
            | EngineError::PollCpu { source, .. }
            | EngineError::Pipe { source, .. }
            | EngineError::System { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
            EngineError::Donor { source, .. } | EngineError::Program { source, .. } => {
                iolite_os::errno_of(source)
            }
        }
    }
}

/// The purpose of the pinned memory: the option that asks for registered buffers.
pub const FIXED_BUFFERS: &str = "fixedbufs";

/// Where an engine's library is found. A static program (`iolite-push`) loads none.
fn library_remedy(debian: &str, rhel: &str) -> String {
    if cfg!(target_feature = "crt-static") {
        return "use the program of a package or of the archive iolite-*-linux-*.tar.zst there".to_owned();
    }
    if rhel.is_empty() {
        return format!("install it (package {debian} of its vendor's repository)");
    }
    format!("install it (package {debian} of Debian and Ubuntu, {rhel} of RHEL and Fedora)")
}

fn group_hint(setting: u32) -> &'static str {
    if setting == 1 { ", or run as root or as a member of the group kernel.io_uring_group" } else { "" }
}

fn limit_text(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_string(), |bytes| format!("{bytes} bytes"))
}

/// A number from a file under /proc; `None` = the file is missing, or holds no number.
pub fn proc_number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The soft RLIMIT_MEMLOCK; `None` = unlimited.
pub fn memory_lock_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes the struct it is given.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_setting_and_the_remedy() {
        let disabled = EngineError::UringDisabled { setting: 1 };
        let text = disabled.to_string();
        assert!(text.contains("kernel.io_uring_disabled = 1"), "{text}");
        assert!(text.contains("io_uring_group"), "{text}");
        assert!(!EngineError::UringDisabled { setting: 2 }.to_string().contains("group"));

        let limit = EngineError::AioLimit { depth: 7, used: 65530, limit: 65536 }.to_string();
        assert!(limit.contains("fs.aio-nr = 65530 of fs.aio-max-nr = 65536"), "{limit}");

        let lock = EngineError::MemoryLock {
            purpose: FIXED_BUFFERS,
            bytes: 4096,
            limit: Some(1024),
            source: io::Error::from_raw_os_error(libc::ENOMEM),
        };
        assert!(lock.to_string().contains("RLIMIT_MEMLOCK is 1024 bytes"), "{lock}");
        assert!(lock.to_string().ends_with("leave fixedbufs out"), "{lock}");
        assert_eq!(lock.errno(), libc::ENOMEM);
    }

    #[test]
    fn proc_numbers_are_read_or_missing() {
        assert!(proc_number("/proc/sys/fs/aio-max-nr").is_some_and(|limit| limit > 0));
        assert_eq!(proc_number("/proc/version"), None);
        assert_eq!(proc_number("/proc/no/such/file"), None);
    }
}
