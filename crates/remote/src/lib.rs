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
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | an agent and its runs | `agent.rs`, `agent/run.rs`; in a process of its own: `child.rs`; how much clients may send: `agent/intake.rs`, `unidentified.rs` |
//! | the coordinator | `coordinator.rs` (clocks, the moment of the start), `coordinator/listener.rs` (a thread per agent), `coordinator/step.rs` (barriers, common steady states), `coordinator/turns.rs` |
//! | bytes, frames, greetings, messages | `stream.rs`, `connection.rs`; `frame.rs`; `greeting.rs`; `message.rs` |
//! | keys and TLS | `tls.rs`, `keys.rs`, `keys/home.rs` |
//! | agents started by ssh | `ssh.rs`, `carrier_process.rs`, `Agent::serve_starter` |
//! | ranks of a launcher (`--mpi`) | `ranks.rs`, `ranks/meeting.rs` |
//! | files that come back: logs, states | `returned.rs`; until then: `spool.rs` |
//! | what clients may do; files that a run may use (`--serve-only`) | `permissions.rs`; `confine.rs` |
//!
//! An agent has a thread per connection, which is affordable for a thousand agents; an event loop would need an asynchronous runtime
//! in the one place that has no other use for it. Frames hold CBOR, because its parsers can be limited (depth, length) and skip unknown
//! parts. An agent forwards the messages between its run and the coordinator unread. The run's controller opens its barriers (the
//! first one is the start) at times that it receives. It is tied to the agent's thread: if the agent is killed, the kernel kills it,
//! and the spawner ends its children.

pub mod address;
pub mod agent;
mod carrier_process;
pub mod child;
pub mod confine;
mod connection;
pub mod coordinator;
pub mod frame;
mod greeting;
pub mod keys;
pub mod message;
pub mod permissions;
pub mod pushed;
pub mod ranks;
pub mod returned;
pub mod spool;
mod ssh;
pub mod stand_in;
pub mod stream;
mod tls;
pub mod unidentified;
mod user;

pub use address::Address;

/// The environment variable that stands for `--insecure`.
pub const INSECURE: &str = "IOLITE_INSECURE";
