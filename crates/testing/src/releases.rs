//! All differences in output and behaviour between the available releases of fio and 3.42, the release that we follow.
//! Available are 3.33 of Debian 12, and 3.41, which `scripts/peer-fio` unpacks. Tests translate the output of a peer to
//! that of 3.42 before they compare; a difference that is neither here nor in docs/compatibility.md is a failure.

/// The differences of one release.
#[derive(Debug)]
pub struct Release {
    /// The minor version: 41 for 3.41.
    pub minor: u32,
    /// Functions that translate a line of the `normal` format to that of 3.42; `None` = the function does not apply.
    lines: &'static [fn(&str) -> Option<String>],
    /// Keys of 3.42's JSON that it does not print, as paths: `jobs[].job_start`.
    lacks_keys: &'static [&'static str],
    /// Whether "job options" and "global options" leave out options that were given without a value, which 3.42 lists
    /// with an empty string.
    hides_flags: bool,
    /// Job options of 3.42 that it does not know.
    lacks_options: &'static [&'static str],
    /// Whether a pattern with a header at `verify_offset` still contains the header of an earlier write.
    pub leaves_old_headers: bool,
    /// Whether the layout of compressed logs is different.
    pub packs_logs_otherwise: bool,
    /// Whether priorities are printed without their hint: `prio 2/4` instead of `prio 2/4/0`.
    pub knows_no_hints: bool,
    /// Whether a replay whose writes overlap reports its own data as damaged.
    pub misjudges_overlapping_replays: bool,
    /// Whether clones that write the same blocks one after the other report each other's writes as damage.
    pub misjudges_later_clones: bool,
    /// Whether it counts syncs differently at the ends of laps and of queues.
    pub counts_last_syncs_otherwise: bool,
    /// Whether it ignores a word, nothing or 0 behind the colon of `rw`.
    pub ignores_words_behind_rw: bool,
    /// The `verify_header_format` of the headers that it writes and reads.
    pub header: &'static str,
}

/// The known releases.
const RELEASES: [&Release; 3] = [&V3_33, &V3_41, &V3_42];

/// The release of Debian 12.
static V3_33: Release = Release {
    minor: 33,
    lines: &[zone_resets, sectors, latency_units, syncfs],
    lacks_keys: &[
        "jobs[].job_start",
        "jobs[].latency_target_ns",
        "jobs[].latency_window_us",
        "disk_util[].read_sectors",
        "disk_util[].write_sectors",
    ],
    hides_flags: true,
    lacks_options: &[
        "comm",
        "dataplacement",
        "dp_scheme",
        "end_syncfs",
        "fdp",
        "filetype",
        "job_start_clock_id",
        "log_issue_time",
        "log_window_value",
        "num_range",
        "plid_select",
        "plids",
        "priohint",
        "ramp_size",
        "random_sequence_stride",
        "recover_zbd_write_error",
        "spr_cs",
        "spr_num_regions",
        "spr_op",
        "sprandom",
        "steadystate_check_interval",
        "thinkcycles",
        "verify_header_seed",
        "verify_pattern_interval",
        "verify_policy",
        "verify_write_sequence",
        "write_zone_remainder",
    ],
    leaves_old_headers: true,
    packs_logs_otherwise: true,
    knows_no_hints: true,
    misjudges_overlapping_replays: false,
    misjudges_later_clones: false,
    counts_last_syncs_otherwise: true,
    ignores_words_behind_rw: true,
    header: "3.33",
};

/// The release of Debian forky.
static V3_41: Release = Release {
    minor: 41,
    lines: &[zone_resets, latency_units, syncfs],
    lacks_keys: &["jobs[].latency_target_ns", "jobs[].latency_window_us"],
    hides_flags: false,
    lacks_options: &[
        "comm",
        "end_syncfs",
        "ramp_size",
        "random_sequence_stride",
        "spr_cs",
        "verify_policy",
        "write_zone_remainder",
    ],
    leaves_old_headers: false,
    packs_logs_otherwise: false,
    knows_no_hints: false,
    misjudges_overlapping_replays: true,
    misjudges_later_clones: true,
    counts_last_syncs_otherwise: false,
    ignores_words_behind_rw: false,
    header: "3.42",
};

/// The release that Iolite follows.
static V3_42: Release = Release {
    minor: 42,
    lines: &[],
    lacks_keys: &[],
    hides_flags: false,
    lacks_options: &[],
    leaves_old_headers: false,
    packs_logs_otherwise: false,
    knows_no_hints: false,
    misjudges_overlapping_replays: false,
    misjudges_later_clones: false,
    counts_last_syncs_otherwise: false,
    ignores_words_behind_rw: false,
    header: "3.42",
};

impl Release {
    /// The release with this minor version, or else the last known one before it.
    pub fn of(minor: u32) -> &'static Release {
        RELEASES.into_iter().rev().find(|release| release.minor <= minor).unwrap_or(RELEASES[0])
    }

    /// The release that Iolite follows.
    pub fn ours() -> &'static Release {
        &V3_42
    }

    /// Its version: `3.41`.
    pub fn name(&self) -> String {
        format!("3.{}", self.minor)
    }

    /// Translates a line of its `normal` output to that of 3.42.
    pub fn in_words_of_3_42(&self, line: &str) -> String {
        self.lines.iter().fold(line.to_owned(), |line, rewrite| rewrite(&line).unwrap_or(line))
    }

    /// Whether it prints this key of 3.42's JSON: `jobs[].job_start`.
    pub fn prints(&self, key: &str) -> bool {
        !self.lacks_keys.contains(&key)
    }

    /// The last parts of the keys of 3.42's JSON that it does not print.
    pub fn lacking_keys(&self) -> impl Iterator<Item = &'static str> {
        self.lacks_keys.iter().map(|path| path.rsplit('.').next().unwrap_or(path))
    }

    /// Whether it leaves out options without a value where JSON lists options.
    pub fn hides_flags(&self) -> bool {
        self.hides_flags
    }

    /// Whether it knows a job option of 3.42.
    pub fn knows(&self, option: &str) -> bool {
        !self.lacks_options.contains(&option)
    }
}

/// Later releases print the number of zone resets only if zones are in use.
fn zone_resets(line: &str) -> Option<String> {
    Some(line.strip_suffix("; 0 zone resets")?.to_owned())
}

/// Later releases added sectors to the statistics of disks. The translation adds `0/0`.
fn sectors(line: &str) -> Option<String> {
    let (ios, merge) = line.split_once(", merge=").filter(|(ios, _)| ios.contains(": ios="))?;
    Some(format!("{ios}, sectors=0/0, merge={merge}"))
}

/// Later releases added units to latency targets. Without units, the target is in nanoseconds and the window in
/// microseconds.
fn latency_units(line: &str) -> Option<String> {
    let (before, rest) = line.split_once(" : target=").filter(|(before, _)| before.trim() == "latency")?;
    let (target, rest) = rest.split_once(", window=")?;
    let (window, rest) = rest.split_once(", percentile=")?;
    let (target, window): (u64, u64) = (target.parse().ok()?, window.parse().ok()?);
    Some(format!("{before} : target={target}.00ns, window={}.00ns, percentile={rest}", window * 1000))
}

/// Later releases added syncfs to the latencies of syncs.
fn syncfs(line: &str) -> Option<String> {
    Some(format!(
        "{}/syncfs:",
        line.strip_suffix("fsync/fdatasync/sync_file_range:").map(|_| line.trim_end_matches(':'))?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_3_33_become_those_of_3_42() {
        let of_3_33 = Release::of(33);
        for (theirs, ours) in [
            (
                "  write: IOPS=1, BW=2KiB/s (2kB/s)(4KiB/1msec); 0 zone resets",
                "  write: IOPS=1, BW=2KiB/s (2kB/s)(4KiB/1msec)",
            ),
            ("  vda: ios=1/2, merge=0/0, ticks=3/4", "  vda: ios=1/2, sectors=0/0, merge=0/0, ticks=3/4"),
            (
                "     latency   : target=0, window=0, percentile=100.00%, depth=1",
                "     latency   : target=0.00ns, window=0.00ns, percentile=100.00%, depth=1",
            ),
            ("  fsync/fdatasync/sync_file_range:", "  fsync/fdatasync/sync_file_range/syncfs:"),
            ("Starting 1 process", "Starting 1 process"),
        ] {
            assert_eq!(of_3_33.in_words_of_3_42(theirs), ours);
            assert_eq!(Release::ours().in_words_of_3_42(theirs), theirs);
        }
    }

    #[test]
    fn releases_between_are_like_the_last_known_one_before() {
        let of = |minor| Release::of(minor).minor;
        assert_eq!([33, 36, 41, 42, 57, 7].map(of), [33, 33, 41, 42, 42, 33]);
    }
}
