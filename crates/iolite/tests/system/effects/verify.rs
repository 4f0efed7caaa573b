//! Options for verification.

use super::see::See::*;
use super::{ABSENT, Effect, row, test};

/// A job that writes blocks and reads them back.
macro_rules! written {
    ($more:literal) => {
        concat!("@ --rw=write --verify=crc32c ", $more)
    };
}
/// A job that checks the writes of an earlier run of the same job.
macro_rules! rechecked {
    ($more:literal) => {
        concat!("--name=j --filename=f --size=64k --verify=crc32c --verify_only ", $more)
    };
}
const WRITTEN: super::See =
    StatusAfter("--name=j --filename=f --size=64k --rw=write --verify=crc32c --do_verify=0");
/// A job that reads a file without verifiable data.
const WRONG: &str = "--filename=in/x --rw=read --verify=crc32c";

pub const TABLE: &[Effect] = &[
    row("verify", "@ --rw=write", "crc32c", "md5", Bytes(0, 8)),
    row("do_verify", written!(""), "1", "0", Json("jobs.0.read.total_ios")),
    row("verify_only", written!(""), ABSENT, "", Refused("verify: bad")),
    test!("verify_policy", crashes::flushed_data_survives_a_power_cut),
    test!("verify_state_save", crashes::a_state_is_there_until_everything_was_read_back),
    test!("verify_state_load", crashes::a_state_is_there_until_everything_was_read_back),
    test!("trim_percentage", trims::trimmed_blocks_are_zeros),
    test!("trim_verify_zero", trims::trimmed_blocks_are_zeros),
    test!("trim_backlog", trims::trims_wait_for_the_configured_number_of_writes),
    test!("trim_backlog_batch", trims::trims_wait_for_the_configured_number_of_writes),
    row("verify_interval", written!(""), "4k", "1k", Bytes(0, 8)),
    row("verify_offset", written!("--scramble_buffers=0 --buffer_pattern=0"), "0", "512", Bytes(0, 8)),
    row("verify_pattern", "@ --rw=write --verify=pattern", "0xab", "0xcd", Content),
    row("verify_pattern_interval", "@ --rw=write --verify=pattern --verify_pattern=%o", "0", "512", Content),
    row("verify_fatal", WRONG, "0", "1", OfFailing(&Json("jobs.0.read.total_ios"))),
    row("verify_dump", WRONG, "0", "1", OfFailing(&Names)),
    row("verify_async", written!(""), "0", "2", CallsWith("prctl", "PR_SET_NAME")),
    row("verify_async_cpus", written!("--verify_async=1"), "0", "1", Calls("sched_setaffinity")),
    row("verify_backlog", written!(""), "0", "4", Calls("pread64,pwrite64")),
    row("verify_backlog_batch", written!("--verify_backlog=4"), "1", "4", Calls("pread64,pwrite64")),
    row(
        "experimental_verify",
        "@ --rw=randwrite --norandommap --verify=crc32c",
        "0",
        "1",
        Says("history of writes: 4 bytes per block, at most 64 bytes"),
    ),
    row("verify_write_sequence", rechecked!("--rw=randwrite --verify_header_seed=0"), "0", "1", WRITTEN),
    row(
        "verify_header_seed",
        rechecked!("--rw=write --verify_write_sequence=0 --randseed=7"),
        "0",
        "1",
        WRITTEN,
    ),
    row("verify_header_format", written!("--do_verify=0"), "3.42", "3.33", Bytes(0, 8)),
];
