//! The common part of `rados` and `rbd`: the library that talks to a Ceph cluster, and the connection.

mod cluster;
mod failure;
mod librados;

pub(crate) use cluster::{Pool, text};
pub(crate) use failure::{Failed, in_words, is_down};
pub(crate) use librados::{Callback, Librados};
