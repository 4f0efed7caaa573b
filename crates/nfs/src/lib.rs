//! Files on NFS servers (version 3 over TCP): many requests at a time, from one thread, over one connection.
//!
//! [`Session`] begins requests, and sends and receives when its owner says so ([`Session::flush`], [`Session::drive`]).
//! There is no thread and no queue in between. What is written goes to the socket from the caller's memory, and large
//! reads come from the socket into it; small replies are received many at a time and copied.
//!
//! # What is on stable storage
//!
//! A server may answer a write before the data is on stable storage (UNSTABLE). COMMIT puts it there. Both answers
//! carry the server's *verifier*, which changes when the server restarts: then uncommitted data may be lost. If its
//! owner says that the data matters, a session keeps a copy of it until it is committed, and sends it again when the
//! verifier has changed. Without a copy, it reports that data may be lost.
//!
//! A connection that breaks is made again, within the time that [`Limits::patience`] allows. First, uncommitted data is
//! committed; then the requests in flight are sent again. All of them may be repeated without harm.
//!
//! | file | what |
//! |---|---|
//! | `url.rs` | the parts of `nfs://…` |
//! | `xdr.rs` | the encoding of numbers and texts |
//! | `rpc.rs` | calls and replies of remote procedures; the caller's credentials |
//! | `socket.rs` | connecting |
//! | `connection.rs` | records to and from one socket |
//! | `mount.rs` | from a server's name to the handle of its export |
//! | `protocol.rs` | the procedures of NFS, their answers and errors |
//! | `session.rs` | requests in flight, and a connection that breaks; `session/` files, names, uncommitted data |

mod connection;
mod error;
mod mount;
mod protocol;
mod rpc;
mod session;
mod socket;
mod url;
mod xdr;

pub use self::error::NfsError;
pub use self::protocol::{Attributes, Kind};
pub use self::session::{Counts, Done, Handle, Limits, Session, Stability};
pub use self::url::{Address, UrlError};
