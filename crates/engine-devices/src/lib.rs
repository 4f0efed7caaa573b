//! The engines that give a device its own commands.
//!
//! `sg` and `bsg` send SCSI commands (`scsi` builds them and reads a disk's complaints), `nvme_passthrough` sends NVMe
//! commands through a ring, `mtd` works on raw flash, and `pmem` on persistent memory.

mod bsg;
mod command_shares;
mod mtd;
mod nvme_passthrough;
mod pmem;
mod scsi;
mod sg;

pub use self::bsg::BsgEngine;
pub use self::mtd::MtdEngine;
pub use self::nvme_passthrough::IoUringCmdEngine;
pub use self::pmem::{DevDaxEngine, LibpmemEngine};
pub use self::sg::SgEngine;
