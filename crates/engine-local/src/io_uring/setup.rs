//! Creating a ring: the flags that the kernel supports, and the meaning of its refusals.

use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use iolite_engine::{EngineConfig, EngineError};
use iolite_engine::{memory_lock_limit, proc_number};
use iolite_options::engines::IoUringOptions;
use std::io;
use std::os::fd::AsRawFd;

/// Most entries of a submission queue (IORING_MAX_ENTRIES).
const MOST_ENTRIES: usize = 32768;

/// How long the kernel's polling thread polls for work before it sleeps, in milliseconds.
const POLL_IDLE: u32 = 1000;

/// io_uring_register(2) with this makes the ring's descriptor a registered one (since Linux 5.18).
const REGISTER_RING_DESCRIPTORS: libc::c_uint = 20;
const UNREGISTER_RING_DESCRIPTORS: libc::c_uint = 21;

/// Where the kernel runs the work after a completion, from the best way to the one that every kernel supports.
#[derive(Clone, Copy)]
enum TaskRun {
    /// This thread, when it asks for completions (since Linux 6.1).
    Deferred,
    /// This thread, at its next system call (since Linux 5.19).
    Cooperative,
    /// This thread, interrupted for it.
    Interrupting,
}

/// A ring with at least `depth` entries in both of its queues, up to the kernel's limit.
///
/// # Errors
/// The system refuses it. The error names the remedy.
pub fn ring<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    config: &EngineConfig,
    options: &IoUringOptions,
) -> Result<IoUring<S, C>, EngineError> {
    let mut last = None;
    for task_run in [TaskRun::Deferred, TaskRun::Cooperative, TaskRun::Interrupting] {
        match attempt(config, options, task_run) {
            Ok(ring) => return Ok(ring),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = Some(error),
            Err(error) => return Err(refusal::<S, C>(config, options, error)),
        }
    }
    let error = last.unwrap_or_else(|| io::Error::from_raw_os_error(libc::EINVAL));
    Err(refusal::<S, C>(config, options, error))
}

/// Whether the kernel has read and write commands without a vector (since Linux 5.6).
pub fn has_plain_transfers<S: squeue::EntryMarker, C: cqueue::EntryMarker>(ring: &IoUring<S, C>) -> bool {
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).is_ok()
        && probe.is_supported(opcode::Read::CODE)
        && probe.is_supported(opcode::Write::CODE)
}

fn attempt<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    config: &EngineConfig,
    options: &IoUringOptions,
    task_run: TaskRun,
) -> io::Result<IoUring<S, C>> {
    let entries = config.depth.min(MOST_ENTRIES) as u32;
    let mut builder = IoUring::<S, C>::builder();
    builder.setup_cqsize(entries.next_power_of_two());
    if options.sqthread_poll {
        builder.setup_sqpoll(POLL_IDLE);
        if let Some(cpu) = options.sqthread_poll_cpu {
            builder.setup_sqpoll_cpu(cpu);
        }
    }
    if options.hipri {
        builder.setup_iopoll();
    }
    match (task_run, options.sqthread_poll) {
        // The polling thread submits and completes: there is nothing for us to defer.
        (TaskRun::Deferred, true) => {
            builder.setup_single_issuer().setup_submit_all();
        }
        (TaskRun::Deferred, false) => {
            builder.setup_single_issuer().setup_submit_all().setup_defer_taskrun().setup_taskrun_flag();
        }
        (TaskRun::Cooperative, false) => {
            builder.setup_submit_all().setup_coop_taskrun().setup_taskrun_flag();
        }
        (TaskRun::Cooperative, true) | (TaskRun::Interrupting, _) => {}
    }
    builder.build(entries)
}

/// The features of this kernel's rings that the engines use if they are there, with the release that brought each.
///
/// # Errors
/// The kernel has no rings, or does not permit them.
pub fn features() -> io::Result<Vec<&'static str>> {
    let ring = IoUring::<squeue::Entry, cqueue::Entry>::builder().build(2)?;
    let builds = |set_up: &dyn Fn(&mut io_uring::Builder<squeue::Entry, cqueue::Entry>)| {
        let mut builder = IoUring::builder();
        set_up(&mut builder);
        builder.build(2).is_ok()
    };
    let mut probe = Probe::new();
    let is_probed = ring.submitter().register_probe(&mut probe).is_ok();
    let all = [
        (has_plain_transfers(&ring), "plain reads and writes (5.6)"),
        (is_probed && probe.is_supported(opcode::UringCmd80::CODE), "commands to devices (5.19)"),
        (register_ring(&ring).is_some(), "registered rings (5.18)"),
        (
            builds(&|builder| {
                builder.setup_submit_all().setup_coop_taskrun().setup_taskrun_flag();
            }),
            "cooperative completion (5.19)",
        ),
        (
            builds(&|builder| {
                builder.setup_single_issuer().setup_defer_taskrun();
            }),
            "deferred completion (6.1)",
        ),
    ];
    Ok(all.into_iter().filter(|(has, _)| *has).map(|(_, name)| name).collect())
}

/// `struct io_uring_rsrc_update` of <linux/io_uring.h>.
#[repr(C)]
struct Update {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// Registers the ring's own descriptor, which saves the kernel a lookup per call; `None` = not supported.
pub fn register_ring<S: squeue::EntryMarker, C: cqueue::EntryMarker>(ring: &IoUring<S, C>) -> Option<u32> {
    let descriptor = ring.as_raw_fd();
    let mut update = Update { offset: u32::MAX, reserved: 0, data: descriptor as u64 };
    // SAFETY: the kernel reads and writes one update.
    let registered = unsafe {
        libc::syscall(libc::SYS_io_uring_register, descriptor, REGISTER_RING_DESCRIPTORS, &mut update, 1)
    };
    (registered == 1).then_some(update.offset)
}

/// Removes the registration: otherwise the ring would outlive its descriptor.
pub fn unregister_ring<S: squeue::EntryMarker, C: cqueue::EntryMarker>(ring: &IoUring<S, C>, offset: u32) {
    let update = Update { offset, reserved: 0, data: 0 };
    // SAFETY: the kernel reads one update.
    unsafe {
        libc::syscall(libc::SYS_io_uring_register, ring.as_raw_fd(), UNREGISTER_RING_DESCRIPTORS, &update, 1)
    };
}

fn refusal<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    config: &EngineConfig,
    options: &IoUringOptions,
    source: io::Error,
) -> EngineError {
    let setting = proc_number("/proc/sys/kernel/io_uring_disabled").unwrap_or(0) as u32;
    match (source.raw_os_error(), options.sqthread_poll_cpu) {
        (Some(libc::EPERM), _) if setting != 0 => EngineError::UringDisabled { setting },
        (Some(libc::EPERM | libc::EACCES), _) => EngineError::UringForbidden,
        (Some(libc::ENOSYS), _) => EngineError::NoSystemCall { engine: "io_uring", call: "io_uring_setup" },
        (Some(libc::ENOMEM), _) => EngineError::MemoryLock {
            purpose: "the ring",
            // The submission and completion entries, and the indirection between them.
            bytes: config.depth.min(MOST_ENTRIES).next_power_of_two() * (size_of::<S>() + size_of::<C>() + 4),
            limit: memory_lock_limit(),
            source,
        },
        (Some(libc::EINVAL), _) if size_of::<S>() > 64 && !options.sqthread_poll => EngineError::System {
            engine: "io_uring_cmd",
            call: match options.hipri {
                true => "io_uring_setup with polled entries of 128 bytes, which Linux has since 6.1",
                false => "io_uring_setup with entries of 128 bytes, which Linux has since 5.19",
            },
            source,
        },
        (Some(libc::EINVAL), Some(cpu)) if options.sqthread_poll => EngineError::PollCpu { cpu, source },
        _ => EngineError::System { engine: "io_uring", call: "io_uring_setup", source },
    }
}
