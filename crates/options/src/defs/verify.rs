//! Checking data that was written.

use crate::definition::{Category, Definition, Given, Kind};
use crate::values::{cpu_list, files_in_patterns, pattern};

const fn verify(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Verify, kind, help).under("verify")
}

/// A size in bytes that is 0 (off) or within the limits.
fn off_or_size(given: &mut Given<'_>) -> Result<u64, String> {
    if given.text == Some("0") { Ok(0) } else { given.number() }
}

/// All options of verification.
pub static VERIFY: &[Definition] = &[
    Definition::job("verify", Category::Verify, Kind::Str, "Check writes, by this method")
        .default(crate::Verify::DEFAULT)
        .keywords(&[
            ("0", "Not at all"),
            ("md5", "MD5 sum"),
            ("crc64", "CRC of 64 bits"),
            ("crc32", "CRC of 32 bits"),
            ("crc32c-intel", "Same as crc32c"),
            ("crc32c", "CRC-32C, by the processor where it can"),
            ("crc16", "CRC of 16 bits"),
            ("crc7", "CRC of 7 bits"),
            ("sha1", "SHA-1"),
            ("sha256", "SHA-256"),
            ("sha512", "SHA-512"),
            ("sha3-224", "SHA3-224"),
            ("sha3-256", "SHA3-256"),
            ("sha3-384", "SHA3-384"),
            ("sha3-512", "SHA3-512"),
            ("xxhash", "xxHash"),
            ("meta", "Where and when the block was written"),
            ("pattern", "The pattern of verify_pattern, without a header"),
            ("pattern_hdr", "The pattern of verify_pattern, with a header"),
            ("null", "Go through the motions"),
        ])
        .lands(put_keyword!(verification.verify, Verify)),
    verify("do_verify", Kind::Bool, "Read everything back when the writes are done")
        .default("1")
        .lands(put!(verification.do_verify, boolean())),
    verify("verify_policy", Kind::StrNumber, "Which writes are checked")
        .default(crate::VerifyPolicy::DEFAULT)
        .keywords(&[("completed", "Those that have completed"), ("fsynced", "Those that were flushed since")])
        .lands(put_keyword!(verification.verify_policy, VerifyPolicy)),
    verify("verify_interval", Kind::Int, "Write one header per this many bytes").min(96).off(&["0"]).lands(
        |job, given| {
            job.verification.verify_interval = off_or_size(given)?;
            Ok(())
        },
    ),
    verify("verify_offset", Kind::Int, "Move the header this many bytes into its block")
        .min(48)
        .off(&["0"])
        .lands(|job, given| {
            job.verification.verify_offset = off_or_size(given)?;
            Ok(())
        }),
    verify("verify_pattern", Kind::Str, "Bytes to write and to expect")
        .names_files(|job| files_in_patterns(job, "verify_pattern"))
        .lands(|job, given| {
            job.verification.verify_pattern = pattern(given.required()?)?;
            Ok(())
        }),
    verify("verify_pattern_interval", Kind::Int, "Restart the pattern after this many bytes")
        .default("0")
        .min(0)
        .lands(put!(verification.verify_pattern_interval, number())),
    verify("verify_fatal", Kind::Bool, "End the job at the first wrong block")
        .default("0")
        .lands(put!(verification.verify_fatal, boolean())),
    verify("verify_dump", Kind::Bool, "Save the data read and the expected data")
        .default("0")
        .lands(put!(verification.verify_dump, boolean())),
    verify("verify_async", Kind::Int, "Threads that check beside the worker")
        .default("0")
        .min(0)
        .lands(put!(verification.verify_async, number())),
    verify("verify_async_cpus", Kind::Str, "CPUs for those threads").lands(|job, given| {
        job.verification.verify_async_cpus = cpu_list(given.required()?, &mut given.notes)?;
        Ok(())
    }),
    verify("verify_backlog", Kind::Str, "Check whenever this many blocks were written, not only at the end")
        .off(&["0"])
        .lands(put!(verification.verify_backlog, number())),
    verify("verify_backlog_batch", Kind::Int, "How many blocks are checked each time")
        .min(0)
        .lands(put!(verification.verify_backlog_batch, number())),
    verify("experimental_verify", Kind::Bool, "Determine the writes to check by running the workload again")
        .range(0, 1)
        .lands(put!(verification.experimental_verify, boolean())),
    verify(
        "verify_state_load",
        Kind::Bool,
        "Check only the writes that the saved state of an interrupted run lists",
    )
    .range(0, 1)
    .lands(put!(verification.verify_state_load, boolean())),
    verify("verify_state_save", Kind::Bool, "Save a list of the writes when a run is interrupted")
        .default("1")
        .lands(put!(verification.verify_state_save, boolean())),
    verify("verify_write_sequence", Kind::Bool, "Check the order in which blocks were written")
        .default("1")
        .lands(put!(verification.verify_write_sequence, boolean())),
    verify("verify_header_seed", Kind::Bool, "Check the random seed in the header")
        .default("1")
        .lands(put!(verification.verify_header_seed, boolean())),
    verify("trim_percentage", Kind::Int, "Percent of the checked blocks that are trimmed")
        .default("0")
        .range(0, 100)
        .lands(put!(verification.trim_percentage, number())),
    verify("trim_verify_zero", Kind::Bool, "Expect zeroes in trimmed blocks")
        .under("trim_percentage")
        .default("1")
        .lands(put!(verification.trim_verify_zero, boolean())),
    verify("trim_backlog", Kind::Str, "Trim whenever this many blocks were written")
        .under("trim_percentage")
        .off(&["0"])
        .lands(put!(verification.trim_backlog, number())),
    verify("trim_backlog_batch", Kind::Int, "How many blocks are trimmed each time")
        .under("trim_percentage")
        .min(0)
        .lands(put!(verification.trim_backlog_batch, number())),
];
