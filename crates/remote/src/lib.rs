//! Many machines: agents that run jobs, and the coordinator that asks them to.
//!
//! An agent ([`agent`]) waits for a coordinator ([`coordinator`]) and runs its jobs, one run at a time, in a child process of
//! the same program ([`child`]), because nothing with threads forks. Job files travel as options and are resolved on the
//! agent's machine; events and the report travel back. They talk in frames with a limit each ([`frame`]) that hold
//! messages ([`message`]) in CBOR (RFC 8949).
//!
//! Everything is set up on all machines first. Then the coordinator compares clocks and gives each machine the same moment.
//! Whoever is silent for too long is given up: the coordinator names the machine, and an agent ends its workers.

pub mod address;
pub mod agent;
mod carrier;
pub mod child;
pub mod confine;
mod connection;
pub mod coordinator;
pub mod frame;
mod greeting;
pub mod keys;
pub mod message;
pub mod ranks;
pub mod returned;
mod ssh;
pub mod stand_in;
pub mod stream;
mod tls;
mod user;

pub use address::Address;

/// The environment variable that stands for `--insecure`.
pub const INSECURE: &str = "IOLITE_INSECURE";
