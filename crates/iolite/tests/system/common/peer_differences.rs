//! The one list of what the releases of fio that can be had (3.33 in Debian 12, 3.41 by `scripts/peer-fio`) print
//! differently from 3.42, the release whose language we speak. The tests translate the peer's output to 3.42
//! before they compare; a difference that is not in this list is a failure.

use serde_json::Value;

/// A skeleton line of 3.33 or 3.41 in the words of 3.42.
pub fn in_words_of_3_42(line: &str) -> String {
    let mut line = line.to_string();
    for (theirs, ours) in NORMAL {
        line = line.replace(theirs, ours);
    }
    line
}

/// Fragments of skeleton lines in the `normal` format: 3.33 (some of them also 3.41), 3.42.
const NORMAL: &[(&str, &str)] = &[
    // The number of zone resets follows writes only where zones are in use.
    ("; N zone resets", ""),
    // Sectors joined the disk statistics.
    (": ios=N/N, merge=", ": ios=N/N, sectors=N/N, merge="),
    // Latency targets have units.
    ("target=N, window=N, percentile", "target=Ns, window=Ns, percentile"),
    // syncfs joined the block of sync latencies.
    ("  fsync/fdatasync/sync_file_range:", "  fsync/fdatasync/sync_file_range/syncfs:"),
];

/// Whether an object of `jobs` in JSON is that of a job without statistics (`stats=0`). Here it is left out; 3.33 prints
/// it without a name, 3.41 with an empty one.
pub fn is_silent(job: &Value) -> bool {
    job.get("jobname").is_none_or(|name| name == "")
}

/// Keys of our own that a job of fio's language has in JSON, as paths of the key tree.
pub const JSON_OWN: &[&str] = &["iolite version"];

/// Keys that 3.42 prints in JSON and 3.33 does not (3.41 lacks those of latency targets), as paths of the key tree.
pub const JSON_ADDED: &[&str] = &[
    "jobs[].job_start",
    "jobs[].latency_target_ns",
    "jobs[].latency_window_us",
    "disk_util[].read_sectors",
    "disk_util[].write_sectors",
];
