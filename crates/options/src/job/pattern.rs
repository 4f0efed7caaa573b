//! The pattern of the I/O: directions, block sizes, random offsets.

use crate::typed::{
    BlockSizes, RandomDistribution, RandomGenerator, ReadWrite, ReadWriteModifier, Sequencer,
};
use iolite_types::PerDirection;

options! {
    /// The pattern of the I/O: directions, block sizes, random offsets.
    pub struct PatternOptions at pattern {
        pub rw: ReadWrite,
        pub rw_modifier: ReadWriteModifier,
        pub rw_sequencer: Sequencer,
        /// Percent of reads in a mixed workload; `rwmixwrite` lands here as 100 − value.
        pub rwmixread: u32,
        /// Percent of reads, writes and trims in a mixed workload; `None` = `rwmixread` holds.
        pub rwtmix: Option<PerDirection<u32>>,
        pub percentage_random: PerDirection<u32>,
        pub bs: PerDirection<u64>,
        /// The block size alignment of random offsets; 0 = the smallest block size of the direction.
        pub ba: PerDirection<u64>,
        /// `bsrange` and `bssplit`, for each direction the one that was given last.
        pub block_sizes: PerDirection<BlockSizes>,
        pub bs_unaligned: bool,
        pub bs_is_seq_rand: bool,
        pub norandommap: bool,
        pub softrandommap: bool,
        pub random_generator: RandomGenerator,
        pub random_distribution: RandomDistribution,
        pub random_sequence_stride: bool,
        pub sprandom: bool,
        /// Over-provisioning that sprandom assumes, as a fraction of the addressable capacity.
        pub spr_op: f64,
        pub spr_cs: u64,
        pub spr_num_regions: u32,
        pub randrepeat: bool,
        pub randseed: u64,
    }
}
