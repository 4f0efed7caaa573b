//! Many machines: agents that run jobs, and the coordinator that controls them.
//!
//! An agent ([`agent`]) waits for a coordinator ([`coordinator`]) and runs its jobs, one run at a time, in a child
//! process of the same program ([`child`]), because a process with threads must not fork. Job files travel as options
//! and are resolved on the agent's machine; events and the report travel back. They exchange frames of limited size
//! ([`frame`]) that contain messages ([`message`]) in CBOR (RFC 8949).
//!
//! Everything is set up on all machines first. Then the coordinator compares clocks and gives each machine the same
//! moment. A silent peer counts as lost after a time limit: the coordinator names the machine, and an agent ends its
//! workers.

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
pub mod spool;
mod ssh;
pub mod stand_in;
pub mod stream;
mod tls;
mod user;

pub use address::Address;

/// The environment variable that stands for `--insecure`.
pub const INSECURE: &str = "IOLITE_INSECURE";
