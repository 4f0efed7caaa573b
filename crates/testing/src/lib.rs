//! What the tests of all crates share: counted skips, repeatable seeds, engines in C, an object server that misbehaves
//! on request, real servers (also a Ceph cluster), a disk that loses what was not flushed, the releases of fio to compare
//! with, and a virtual machine.
//!
//! | variable | meaning |
//! |---|---|
//! | `IOLITE_HDFS` | the directory that `scripts/hdfs` fills (default: `target/hdfs`) |
//! | `IOLITE_LIBBLKIO` | the directory with libblkio (default: `target/libblkio`, which `scripts/libblkio` fills) |
//! | `IOLITE_MINIO` | the MinIO to test against (default: what `scripts/minio` has built) |
//! | `IOLITE_PEERS` | the releases of fio to compare with: paths, separated by colons (default: those that are found) |
//! | `IOLITE_TEST_SEED` | the seed of all random numbers in tests (default: a new one each time) |
//! | `IOLITE_TEST_SKIPS` | the file to which skips are appended; `scripts/test` sets it, and counts them |
//! | `IOLITE_VM` | the directory that `scripts/vm` fills (default: `target/vm`); with its `backports`, all tests run in the newer machine |

pub mod blocks;
pub mod ceph;
pub mod engines;
pub mod exports;
pub mod gluster;
pub mod hdfs;
pub mod kernel;
pub mod libraries;
pub mod objects;
pub mod peers;
pub mod programs;
pub mod releases;
pub mod seed;
pub mod servers;
pub mod skip;
pub mod slurm;
pub mod sshd;
pub mod vm;
pub mod volatile;
pub mod zones;

pub use blocks::{NbdServer, Tgt, VhostUserDisk};
pub use ceph::{Ceph, Gateway};
pub use engines::{engine_of, example_engine};
pub use exports::Ganesha;
pub use gluster::Gluster;
pub use hdfs::Hdfs;
pub use libraries::{libblkio, stand_in};
pub use objects::{ObjectServer, Reply, Seen, certificate};
pub use peers::{Peer, peers};
pub use programs::{copy_program, write_program};
pub use releases::Release;
pub use seed::{Luck, properties, seed, seed_or};
pub use servers::{ClosedPort, Minio, Nginx};
pub use skip::partly_skipped;
pub use slurm::Slurm;
pub use sshd::Sshd;
