//! The small unsafe room: what Iolite asks of the operating system, behind safe functions.
//!
//! One module for each thing that is wrapped: the system's clocks ([`time`]) and the clock of a run ([`clock`]), memory
//! mappings ([`memory`]), pages of mapped files that are missing ([`faults`]) and the memory that the processes of a run
//! share ([`shared`]), futexes ([`futex`]), sockets ([`socket`]) and the messages that go through them ([`message`]), waiting for descriptors ([`poll`]), signals
//! ([`signals`]), processes ([`process`]), what they use of the machine ([`usage`]) and which processors they run on
//! ([`processors`]), facts about files ([`files`]), SCSI commands ([`scsi`]), NVMe commands ([`nvme`]), zones of block devices ([`zones`]),
//! locks that survive their owner ([`robust`]). Nothing here knows what a job is.

pub mod clock;
pub mod error;
pub mod faults;
pub mod files;
pub mod futex;
pub mod memory;
pub mod message;
pub mod nvme;
pub mod poll;
pub mod process;
pub mod processors;
pub mod robust;
pub mod scsi;
pub mod shared;
pub mod signals;
pub mod socket;
pub mod time;
pub mod usage;
pub mod zones;

pub use clock::{Clock, ClockSource};
pub use error::{NamedError, errno_of, explained};
