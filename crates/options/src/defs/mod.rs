//! The job options, one file per theme, and the list that fixes their order.

mod job;

use crate::definition::Definition;

/// Every job option, in the order in which the help lists them.
pub static ALL: &[&[Definition]] = &[job::IDENTITY];
