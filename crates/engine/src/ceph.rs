//! The common part of `rados` and `rbd`: the library that talks to a Ceph cluster, the connection, and how requests complete.

mod cluster;
mod coalescing;
mod failure;
mod librados;

pub(crate) use cluster::{Pool, text};
pub(crate) use coalescing::{Coalescing, Pollable};
pub(crate) use failure::{Failed, in_words, is_down};
pub(crate) use librados::{Callback, Librados};
