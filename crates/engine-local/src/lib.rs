//! The engines for local files and block devices that every job may use.
//!
//! One file per engine. The loop of a worker is compiled for the hot ones (`null`, `psync`, `libaio`, `io_uring`);
//! `engines/src/registry.rs` says which.

pub mod io_uring;
mod libaio;
pub mod mmap;
mod null;
mod posixaio;
mod psync;
mod pvsync;
mod pvsync2;
mod splice;
mod sync;
mod vsync;

pub use self::io_uring::IoUringEngine;
pub use self::libaio::LibaioEngine;
pub use self::mmap::MmapEngine;
pub use self::null::NullEngine;
pub use self::posixaio::PosixAioEngine;
pub use self::psync::PsyncEngine;
pub use self::pvsync::PvsyncEngine;
pub use self::pvsync2::Pvsync2Engine;
pub use self::splice::SpliceEngine;
pub use self::sync::SyncEngine;
pub use self::vsync::VsyncEngine;
