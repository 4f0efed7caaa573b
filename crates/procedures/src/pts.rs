//! The SNIA Solid State Storage Performance Test Specification, version 2.0.2 (October 2020), from its public text.
//!
//! Each test purges the device, writes twice its capacity in order (workload-independent preconditioning), and runs rounds of
//! cells, which are the workload-dependent preconditioning and the measurement at once, until the device is in a steady state
//! (`steady.rs`). Some tests differ from that: write saturation and cross stimulus recovery begin with the purged device.
//!
//! What is chosen for a procedure is [`Settings`]; `cells.rs` has the cells of each test and their jobs. [`Unit::walk`] says what
//! comes next, or what a test came to, from what has been done (`course.rs`). [`result`] is its form in JSON, and [`compare`]
//! puts two of them beside each other.
//!
//! Where the text leaves something to the test operator, docs/standard-tests.md names what is chosen here.

mod cells;
pub mod compare;
mod course;
mod figures;
pub mod result;
mod settings;
pub mod steady;
#[cfg(test)]
mod tests;

pub use cells::{Block, Cell, discard, preconditioned};
pub use course::{Done, MOST_ROUNDS, Next, Outcome, Quantity, Rounds, Single, Step, Unit, units};
pub use figures::{Figures, PERCENTILES};
pub use settings::{Class, MINUTE, Pattern, QUICK, QUICK_RANGE, Settings, Test};
