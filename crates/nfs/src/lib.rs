//! Files on NFS servers (version 3 over TCP): many requests at a time, from one thread, over one connection.
//!
//! [`Session`] begins requests, and sends and receives when its owner says so ([`Session::flush`], [`Session::drive`]).
//! There is no thread and no queue in between. What is written goes to the socket from the caller's memory, and large
//! reads come from the socket into it; small replies are received many at a time and copied.
//!
//! # What is on stable storage
//!
//! A server may answer a write before the data is on stable storage (UNSTABLE). COMMIT puts it there. Both answers carry the
//! server's *verifier*, which changes when the server starts anew: then what was not committed may be lost. A session
//! whose owner says that the data matters keeps a copy of it until it is committed, and sends it again where the verifier
//! has changed. Without a copy it tells that data may be lost.
//!
//! A connection that breaks is made again, for as long as [`Limits::patience`] says. Before anything else, what has not been
//! committed is; then the requests in flight are sent again. They may all be repeated without harm.
//!
//! | file | what |
//! |---|---|
//! | `url.rs` | what `nfs://…` says |
//! | `xdr.rs` | how numbers and texts are written |
//! | `rpc.rs` | calls and replies of remote procedures; who calls |
//! | `socket.rs` | connecting |
//! | `connection.rs` | records to and from one socket |
//! | `mount.rs` | from a server's name to the handle of its export |
//! | `protocol.rs` | the procedures of NFS, what their answers hold and what their errors mean |
//! | `session.rs` | requests in flight, and a connection that breaks; `session/` files, names, what is not committed |

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
