//! The options of `libhdfs`.

use super::own::{Idle, OwnOptions, own, own_options};
use crate::JobOptions;
use crate::definition::{Definition, Kind};
use iolite_types::Direction;

own_options! {
    /// The options of `libhdfs`.
    pub struct HdfsOptions declared by OPTIONS {
        /// The host of the namenode, or the name service of several; empty = as in Hadoop's configuration.
        pub namenode: String,
        /// The port of the namenode; 0 = not given.
        pub port: u64,
        /// The directory with the chunks.
        pub hdfsdirectory: String,
        /// Bytes of a chunk, a file of HDFS.
        pub chunk_size: u64,
        /// Workers that share a process share a connection.
        pub single_instance: bool,
        /// Accepted, and without effect.
        pub hdfs_use_direct: bool,
        /// The longest time for a request, in microseconds; 0 = no limit.
        pub hdfs_timeout: u64,
    }
}

impl OwnOptions for HdfsOptions {
    /// Refuses workloads that write in other ways than appending and replacing.
    fn obstacle_to_run(&self, job: &JobOptions) -> Option<String> {
        let (rw, skips) = (job.pattern.rw, job.pattern.rw_modifier.0);
        let is_in_order = !rw.is_random() && !rw.reads() && skips == 0;
        if !rw.writes() || is_in_order || job.is_replay() {
            return None;
        }
        if !rw.is_random() && skips != 0 {
            return Some(format!(
                "rw={}:{skips}: files of HDFS are written from their beginning to their end, without gaps; use rw={0}",
                rw.name()
            ));
        }
        let block = job.block_size(Direction::Write);
        let size = block.not_multiple_of(self.chunk_size, job.pattern.bs_unaligned)?;
        let chunk = self.chunk_size;
        Some(format!(
            "rw={}: files of HDFS are written from their beginning to their end, so that writes which are not in order are \
             of whole chunks, and {size} bytes are not a multiple of chunk_size={chunk}; use bs={chunk}, or rw=write",
            rw.name()
        ))
    }

    fn patience_us(&self) -> Option<u64> {
        Some(self.hdfs_timeout)
    }

    fn without_effect(&self) -> Vec<Idle> {
        vec![("hdfs_use_direct", "there is no Java, whose buffers it is about: data goes into the job's own")]
    }
}

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static NAMENODE: Definition =
    option("namenode", Kind::Str, "Host of the namenode, or name of a name service")
        .lands_in_engine(own!(HdfsOptions.namenode, string()));
static PORT: Definition =
    option("port", Kind::Int, "Port of the namenode; 8020 where nothing else says which")
        .range(1, 65535)
        .lands_in_engine(own!(HdfsOptions.port, number()));
static HDFSDIRECTORY: Definition =
    option("hdfsdirectory", Kind::Str, "Directory of HDFS in which the chunks are")
        .lands_in_engine(own!(HdfsOptions.hdfsdirectory, string()));
static CHUNK_SIZE: Definition =
    option("chunk_size", Kind::Int, "Size of a chunk; each chunk is a file of HDFS")
        .default("1m")
        .min(1)
        .lands_in_engine(own!(HdfsOptions.chunk_size, number()));
static SINGLE_INSTANCE: Definition =
    option("single_instance", Kind::Bool, "One connection for all workers of a process (thread=1)")
        .lands_in_engine(own!(HdfsOptions.single_instance, boolean()));
static HDFS_USE_DIRECT: Definition =
    option("hdfs_use_direct", Kind::Bool, "Has no effect: there are no buffers of Java")
        .lands_in_engine(own!(HdfsOptions.hdfs_use_direct, boolean()));
static HDFS_TIMEOUT: Definition =
    option("hdfs_timeout", Kind::Time, "The longest time that a request may take; 0 = no limit")
        .default("60s")
        .lands_in_engine(own!(HdfsOptions.hdfs_timeout, time(1_000_000)));

/// All of them.
pub static OPTIONS: &[&Definition] =
    &[&NAMENODE, &PORT, &HDFSDIRECTORY, &CHUNK_SIZE, &SINGLE_INSTANCE, &HDFS_USE_DIRECT, &HDFS_TIMEOUT];
