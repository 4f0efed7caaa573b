//! The kinds of logs, and the names of their files.

use std::path::PathBuf;

/// The value that a log records of each I/O or window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum LogKind {
    /// Bandwidth.
    Bandwidth = 0,
    /// I/Os per second.
    Iops = 1,
    /// Submission latency.
    Submission = 2,
    /// Completion latency.
    Completion = 3,
    /// Total latency.
    Total = 4,
    /// The time to the first byte of an answer, of units that are requests.
    FirstByte = 5,
    /// I/Os per second that a schedule of rates asks for.
    AskedIops = 6,
    /// Bandwidth that a schedule of rates asks for.
    AskedBandwidth = 7,
    /// Histograms of completion latency.
    Histogram = 8,
}

impl LogKind {
    /// The kinds whose entries are values of I/Os or windows of I/Os.
    pub const VALUES: [LogKind; 6] = [
        LogKind::Bandwidth,
        LogKind::Iops,
        LogKind::Submission,
        LogKind::Completion,
        LogKind::Total,
        LogKind::FirstByte,
    ];

    /// All kinds.
    pub fn all() -> impl Iterator<Item = LogKind> {
        LogKind::VALUES.into_iter().chain([LogKind::AskedIops, LogKind::AskedBandwidth, LogKind::Histogram])
    }

    /// The position in [`LogKind::all`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether it logs what a schedule asks for, also while no I/O is done.
    pub const fn is_asked(self) -> bool {
        matches!(self, LogKind::AskedIops | LogKind::AskedBandwidth)
    }

    /// Whether an entry of a single I/O has the time when that was issued: its value begins or ends with it. (In fio's
    /// logs as well: "this field has valid values in completion latency log file (clat), or submit latency log file
    /// (slat)".)
    pub const fn has_issue_time(self) -> bool {
        matches!(self, LogKind::Submission | LogKind::Completion | LogKind::FirstByte)
    }

    /// The part of the file's name that stands for the kind.
    pub const fn suffix(self) -> &'static str {
        match self {
            LogKind::Bandwidth => "bw",
            LogKind::Iops => "iops",
            LogKind::Submission => "slat",
            LogKind::Completion => "clat",
            LogKind::Total => "lat",
            LogKind::FirstByte => "ttfb",
            LogKind::AskedIops => "asked_iops",
            LogKind::AskedBandwidth => "asked_bw",
            LogKind::Histogram => "clat_hist",
        }
    }

    /// The name of this log's file: `PREFIX_bw.3.log`, or `PREFIX_bw.log` if all workers share one file. `worker`
    /// counts from 0, the name from 1.
    pub fn file_name(self, prefix: &str, worker: Option<usize>, compressed: bool) -> PathBuf {
        let number = worker.map_or_else(String::new, |worker| format!(".{}", worker + 1));
        let packed = if compressed { ".fz" } else { "" };
        format!("{prefix}_{}{number}.log{packed}", self.suffix()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_tools_look_for_them() {
        let name = |kind: LogKind, worker| kind.file_name("dir/x", worker, false);
        assert_eq!(name(LogKind::Bandwidth, Some(0)), PathBuf::from("dir/x_bw.1.log"));
        assert_eq!(name(LogKind::Histogram, Some(11)), PathBuf::from("dir/x_clat_hist.12.log"));
        assert_eq!(name(LogKind::Submission, None), PathBuf::from("dir/x_slat.log"));
        assert_eq!(LogKind::Total.file_name("x", Some(0), true), PathBuf::from("x_lat.1.log.fz"));
        assert_eq!(name(LogKind::AskedBandwidth, Some(0)), PathBuf::from("dir/x_asked_bw.1.log"));
        for (index, kind) in LogKind::all().enumerate() {
            assert_eq!(kind.index(), index);
        }
    }
}
