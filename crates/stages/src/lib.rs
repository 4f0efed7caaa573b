//! Where the time of I/Os went: joins the stamps of workers with those of the kernel's tracepoints.
//!
//! A worker writes one [`IoStamps`] for each I/O into a ring of its own ([`StageArea`]). The collector, a process
//! beside the workers, reads these rings and those of the kernel, puts everything in the order of time, and finds out
//! which requests belonged to which I/O. It gives [`StageTimes`](iolite_stats::StageTimes) per worker and direction. It
//! knows nothing of options and reports.
//!
//! # How an I/O finds its requests
//!
//! | the I/O was submitted by | its requests are those that |
//! |---|---|
//! | a call that waits for it | the worker's thread started between issue and completion |
//! | io_uring | the submitting thread started behind `io_uring_submit_req` with the unit's number, also a kernel thread |
//! | another call that submits | the worker's thread started during that call; of several I/Os, in their order and with their lengths |
//! | another thread | touched its place on the device, if that is known |
//!
//! Requests are followed by their sectors from the block layer to completion, through device mapper and md by remap
//! records. What cannot be joined is counted with its reason, never guessed.
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | the memory that workers and collector share | `area.rs` |
//! | the pages of the kernel's buffers; their records, decoded | `pages.rs`; `kernel.rs` |
//! | requests in flight | `requests.rs` |
//! | which I/O they belong to | `join.rs` |
//! | where files lie on devices | `places.rs` |
//! | reading, ordering, and the results; a line for each I/O | `collector.rs`; `log.rs` |

mod area;
mod collector;
mod join;
mod kernel;
mod log;
mod pages;
mod places;
mod requests;

pub use area::{IoStamps, OldRequest, StageArea};
pub use collector::{Collector, Results, WorkerStages, remove_leftovers};
pub use join::Observed;
