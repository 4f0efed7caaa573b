//! All I/O engines by name: the one place that knows them all.
//!
//! The caller writes its loop once, as a [`Visitor`], and [`build`] makes the engine that a job names and passes it to
//! the visitor: as its own type if that makes a difference, and otherwise behind a pointer
//! ([`iolite_engine::BoxedEngine`]), so that the loop is not compiled for every engine. First, the controlling process
//! finds out with [`probe`] whether the engine is usable at all.

mod registry;

pub use self::registry::{build, probe, stack_of, storage_of};
pub use iolite_engine::Visitor;
pub use iolite_engine_local::io_uring::setup::features as io_uring_features;
#[cfg(feature = "servers")]
pub use iolite_engine_servers::describe_external;
#[cfg(not(feature = "servers"))]
pub use registry::describe_external;
