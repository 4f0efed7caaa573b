//! The small unsafe room: what Iolite asks of the operating system, in safe words.
//!
//! System calls ([`sys`]), the clock of a run ([`clock`]), the memory that its processes share ([`shared`]), what they
//! say to each other ([`message`]), and on which processors they run ([`processors`]). Nothing here knows what a job is.

pub mod clock;
pub mod error;
pub mod message;
pub mod processors;
pub mod shared;
pub mod sys;
pub mod usage;

pub use clock::{Clock, ClockSource};
pub use error::{NamedError, errno_of, explained};
