//! Files on NFS servers (versions 3 and 4.1, over TCP): many requests at a time, from one thread, over one connection.
//!
//! [`Session`] sends and receives only when its owner calls it ([`Session::flush`], [`Session::drive`]). There is no
//! thread and no queue in between. Written data goes from the caller's memory to the socket, and the data of large
//! reads goes from the socket to the caller's memory. Small replies are received many at a time and copied.
//!
//! # What is on stable storage
//!
//! A server may answer a write before the data is on stable storage (UNSTABLE). COMMIT puts it there. Both answers
//! carry the server's *verifier*, which changes when the server restarts: then uncommitted data may be lost. If the
//! data matters ([`Limits::keep`]), a session keeps a copy of it until it is committed, and sends it again if the
//! verifier has changed. Without a copy, the session reports that data may be lost.
//!
//! If the connection breaks, the session connects again, within the time that [`Limits::patience`] allows. It first
//! commits uncommitted data, and then sends the requests in flight again. Repeating them is harmless.
//!
//! | file | what |
//! |---|---|
//! | `url.rs` | the parts of `nfs://…` |
//! | `xdr.rs` | the encoding of numbers and texts |
//! | `rpc.rs` | calls and replies of remote procedures; the caller's credentials |
//! | `socket.rs` | connects to a server |
//! | `connection.rs` | sends and receives records on one socket |
//! | `protocol.rs` | what versions of the protocol have in common, and have to provide |
//! | `v3.rs`, `v3/` | version 3: procedures, the mount protocol, statuses |
//! | `v4.rs`, `v4/` | version 4.1: compounds, sessions, open files, statuses |
//! | `session.rs` | requests in flight; `session/`: files, names, uncommitted data, reconnecting, calls that wait for their answer, damaged answers |

mod connection;
mod error;
mod protocol;
mod rpc;
mod session;
mod socket;
mod url;
mod v3;
mod v4;
mod xdr;

pub use self::error::NfsError;
pub use self::protocol::{Attributes, Kind, Version};
pub use self::session::{Counts, Done, Handle, Limits, Session, Stability};
pub use self::session::{samples, take_answers};
pub use self::socket::Stopping;
pub use self::url::{Address, UrlError};
