//! The small unsafe room: the operating system's services that Iolite needs, behind safe functions.
//!
//! Each module wraps one service: the system's clocks ([`time`]) and the clock of a run ([`clock`]) from the
//! processor's counter ([`counter`]), memory mappings ([`memory`]), missing pages of mapped files ([`faults`]), the shared memory of a run's processes ([`shared`]),
//! futexes ([`futex`]), sockets ([`socket`], [`local_end`]) and messages through them ([`message`]), waiting for descriptors
//! ([`poll`]), signals ([`signals`]), processes ([`process`]), their resource usage ([`usage`]) and CPU affinity
//! ([`processors`]), facts about files ([`files`]), SCSI commands ([`scsi`]), NVMe commands ([`nvme`]), metadata and
//! write streams of block devices ([`integrity`]), zones of block devices ([`zones`]), locks that survive their
//! owner ([`robust`]), the kernel's tracepoints ([`tracefs`]), the service manager ([`service`]), and what old C libraries
//! lack ([`by_number`]). Nothing here knows what a job is.

#[cfg(not(target_os = "linux"))]
compile_error!("Iolite runs on Linux only; docs/platforms.md says what a port to another system needs");

pub mod appearance;
pub mod by_number;
pub mod clock;
pub mod counter;
pub mod error;
pub mod faults;
pub mod files;
pub mod futex;
pub mod integrity;
pub mod local_end;
pub mod memory;
pub mod message;
pub mod nvme;
pub mod pipe;
pub mod poll;
pub mod process;
pub mod processors;
pub mod robust;
pub mod scsi;
pub mod service;
pub mod shared;
pub mod shared_ring;
pub mod signals;
pub mod socket;
pub mod time;
pub mod tracefs;
pub mod usage;
mod zone;
pub mod zones;

pub use clock::{Clock, ClockSource};
pub use error::{NamedError, errno_of, explained};
