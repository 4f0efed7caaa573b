//! Log files of single I/Os or averages.

use crate::definition::{Category, Definition, Kind};

const fn logs(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Logs, kind, help)
}

/// All of it, with the windows over which the report's own averages are taken.
pub static LOGS: &[Definition] = &[
    logs("per_job_logs", Kind::Bool, "One log per worker, not one for all").default("1"),
    logs("write_bw_log", Kind::Str, "Log bandwidth to files of this name"),
    Definition::job("bwavgtime", Category::Measurement, Kind::Int, "Window of one bandwidth sample, in ms")
        .under("write_bw_log")
        .default("500")
        .min(0)
        .lands(put!(bwavgtime, number())),
    logs("write_lat_log", Kind::Str, "Log latencies to files of this name"),
    logs("write_iops_log", Kind::Str, "Log I/Os per second to files of this name"),
    Definition::job("iopsavgtime", Category::Measurement, Kind::Int, "Window of one IOPS sample, in ms")
        .under("write_iops_log")
        .default("500")
        .min(0)
        .lands(put!(iopsavgtime, number())),
    logs("log_entries", Kind::Int, "Entries for which a log has room at first")
        .default("1024")
        .range(1024, 1 << 20),
    logs("log_avg_msec", Kind::Int, "One entry per this many ms, not one per I/O").default("0").min(0),
    logs("log_hist_msec", Kind::Int, "One latency histogram per this many ms").default("0").min(0),
    logs("log_hist_coarseness", Kind::Int, "How many times neighbouring buckets are merged in pairs")
        .default("0")
        .range(0, 6),
    logs("write_hist_log", Kind::Str, "Log latency histograms to files of this name"),
    logs("log_window_value", Kind::Str, "What an entry for a time holds")
        .aliases(&["log_max_value"])
        .default("avg")
        .keywords(&[
            ("avg", "The mean"),
            ("max", "The largest value"),
            ("both", "Both"),
            ("0", "Same as avg"),
            ("1", "Same as max"),
        ])
        .off(&["0"]),
    logs("log_offset", Kind::Bool, "Log offsets too").default("0"),
    logs("log_prio", Kind::Bool, "Log I/O priorities too").default("0"),
    logs("log_issue_time", Kind::Bool, "Log times of submission too").default("0"),
    logs("log_compression", Kind::Int, "Compress a log in memory after this many bytes")
        .range(1024, 512 << 20)
        .off(&["0"]),
    logs("log_compression_cpus", Kind::Str, "CPUs that compress").under("log_compression"),
    logs("log_store_compressed", Kind::Bool, "Store logs compressed").range(0, 1),
    logs("log_alternate_epoch", Kind::Bool, "Count log times from the clock's own zero, not from the start")
        .aliases(&["log_unix_epoch"])
        .range(0, 1),
    logs("log_alternate_epoch_clock_id", Kind::Int, "Which clock that is, by number").min(0),
    logs("block_error_percentiles", Kind::Bool, "Report percentiles of erased and rewritten blocks (MTD)")
        .default("0"),
];
