//! The options of `libaio`.

use super::own::{OwnOptions, own, own_options};
use super::priorities::{
    CMDPRIO, CMDPRIO_BSSPLIT, CMDPRIO_CLASS, CMDPRIO_HINT, CMDPRIO_PERCENTAGE, CommandPriorities,
};
use super::shared::{NOWAIT, option};
use crate::definition::{Definition, Kind, Places};
use std::any::Any;

own_options! {
    /// The options of `libaio`.
    pub struct LibaioOptions declared by OPTIONS with places {
        /// Fetch completions from the ring without a system call. The engine always does this if the kernel allows it.
        pub userspace_reap: bool,
        /// Fail rather than wait (RWF_NOWAIT).
        pub nowait: bool,
        /// Submit vectors, not plain reads and writes.
        pub libaio_vectored: bool,
        /// The priorities of single I/Os.
        pub priorities: CommandPriorities,
    }
}

impl Places for LibaioOptions {
    fn nowait(&mut self) -> Option<&mut bool> {
        Some(&mut self.nowait)
    }

    fn part(&mut self) -> Option<&mut dyn Any> {
        Some(&mut self.priorities)
    }
}

impl OwnOptions for LibaioOptions {
    fn priorities(&self) -> Option<&CommandPriorities> {
        Some(&self.priorities)
    }
}

static USERSPACE_REAP: Definition =
    option("userspace_reap", Kind::Flag, "Fetch completions from the ring without a system call")
        .lands_in_engine(own!(LibaioOptions.userspace_reap, boolean()));
static LIBAIO_VECTORED: Definition =
    option("libaio_vectored", Kind::Bool, "Submit vectors, not plain reads and writes")
        .lands_in_engine(own!(LibaioOptions.libaio_vectored, boolean()));

/// All of them.
pub(super) static OPTIONS: &[&Definition] = &[
    &USERSPACE_REAP,
    &NOWAIT,
    &LIBAIO_VECTORED,
    &CMDPRIO_PERCENTAGE,
    &CMDPRIO_CLASS,
    &CMDPRIO_HINT,
    &CMDPRIO,
    &CMDPRIO_BSSPLIT,
];
