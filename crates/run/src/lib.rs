//! Performs a plan: processes, threads, the I/O loop, live snapshots.
//!
//! The controller (the process that was started) runs no worker. Before anything else it forks a *spawner*, a small
//! single-threaded process; the spawner forks workers on demand and tells how they ended. Workers that are threads
//! live in one process of their own, which the spawner also forks. So one run can mix both, and nothing with threads
//! ever forks. What they share is one mapping ([`shared`]); what they say in words goes through one socket
//! ([`message`]).

mod abilities;
mod cgroup;
mod clock;
mod collect;
mod content;
mod controller;
mod debug;
mod disk;
mod eta;
mod idle;
mod layout;
mod limits;
mod message;
mod processors;
mod scheduler;
mod shared;
mod spawner;
mod sys;
mod ticker;
pub mod verify_state;
mod worker;

pub use clock::Clock;
pub use controller::{Observer, Outcome, Prepared, RunError, Settings, Trigger};
pub use idle::calibrate_cpus;
use processors::run_when_idle;
pub use processors::{processors, run_on};
