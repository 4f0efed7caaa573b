//! What `rados` and `rbd` share: the library that talks to a Ceph cluster, the connection, and units that threads of the
//! library complete.
//!
//! Both libraries are opened at run time, stay loaded until the process ends (they have threads, and things to do at exit),
//! and are called by nobody else.

mod cluster;
mod failure;
mod librados;
mod tickets;

pub(crate) use cluster::{Pool, text};
pub(crate) use failure::{Failed, in_words};
pub(crate) use librados::{Callback, Handle, Librados, functions, open};
pub(crate) use tickets::{Act, Ticket, Tickets};
