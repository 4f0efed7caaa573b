//! The options of verification.

use crate::typed::{PatternPiece, keyword_enum};
use serde::{Deserialize, Serialize};

keyword_enum!(/// `verify`
    Verify { None = "0", Md5 = "md5", Crc64 = "crc64", Crc32 = "crc32", Crc32cIntel = "crc32c-intel",
        Crc32c = "crc32c", Crc16 = "crc16", Crc7 = "crc7", Sha1 = "sha1", Sha256 = "sha256", Sha512 = "sha512",
        Sha3_224 = "sha3-224", Sha3_256 = "sha3-256", Sha3_384 = "sha3-384", Sha3_512 = "sha3-512",
        Xxhash = "xxhash", Meta = "meta", Pattern = "pattern", PatternHeader = "pattern_hdr", Null = "null" });
keyword_enum!(/// `verify_policy`
    VerifyPolicy { Completed = "completed", Fsynced = "fsynced" });
keyword_enum!(/// `verify_header_format`
    VerifyHeaderFormat { V342 = "3.42", V333 = "3.33" });

options! {
    /// The options of verification. If `verify` is [`Verify::None`], the others have no effect.
    pub struct VerifyOptions at verification {
        pub verify: Verify,
        pub do_verify: bool,
        pub verify_policy: VerifyPolicy,
        pub verify_header_format: VerifyHeaderFormat,
        /// 0 = one header for each block.
        pub verify_interval: u64,
        /// 0 = the header comes first.
        pub verify_offset: u64,
        /// Empty = none.
        pub verify_pattern: Vec<PatternPiece>,
        /// 0 = the pattern starts with each block.
        pub verify_pattern_interval: u64,
        pub verify_fatal: bool,
        pub verify_dump: bool,
        /// The number of threads; 0 = the worker itself verifies.
        pub verify_async: u32,
        /// Empty = wherever the worker may run.
        pub verify_async_cpus: Vec<u32>,
        /// 0 = everything at the end.
        pub verify_backlog: u64,
        /// 0 = as many as `verify_backlog`.
        pub verify_backlog_batch: u64,
        pub experimental_verify: bool,
        pub verify_write_sequence: bool,
        pub verify_header_seed: bool,
        pub verify_state_load: bool,
        pub verify_state_save: bool,
        /// Percent of the writes that are trimmed afterwards.
        pub trim_percentage: u32,
        pub trim_verify_zero: bool,
        /// 0 = before anything is read back.
        pub trim_backlog: u64,
        /// 0 = all that are pending.
        pub trim_backlog_batch: u64,
        pub verify_only: bool,
    }
}

impl VerifyOptions {
    /// Whether blocks are verified at all.
    pub fn is_on(&self) -> bool {
        self.verify != Verify::None
    }
}
