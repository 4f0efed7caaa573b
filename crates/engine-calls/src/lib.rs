//! The engines that act on names and extents of local files, or work without I/O.
//!
//! Those that act on a name (`filecreate`, `dirstat`, …) leave everything but the action to `NameEngine`, which calls
//! it, or to `RingNameEngine`, which gives it to a ring.

mod cpuio;
mod dircreate;
mod dirdelete;
mod dirread;
mod e4defrag;
mod exec;
mod falloc;
mod filecreate;
mod filedelete;
mod filestat;
mod filewrite;
mod filexattr;
mod ftruncate;
mod names;
mod new_name;
mod page_fault;

pub use self::cpuio::CpuioEngine;
pub use self::dircreate::DirCreate;
pub use self::dirdelete::DirDelete;
pub use self::dirread::DirRead;
pub use self::e4defrag::E4defragEngine;
pub use self::exec::ExecEngine;
pub use self::falloc::FallocEngine;
pub use self::filecreate::FileCreate;
pub use self::filedelete::FileDelete;
pub use self::filestat::Stat;
pub use self::filewrite::{FileRead, FileWrite};
pub use self::filexattr::FileXattr;
pub use self::ftruncate::FtruncateEngine;
pub use self::names::{Act, NameEngine, RingAct, RingNameEngine};
pub use self::new_name::NewName;
pub use self::page_fault::PageFaultEngine;
