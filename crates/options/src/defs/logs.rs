//! Log files of single I/Os or averages.

use crate::LogWindow;
use crate::definition::{Category, Definition, Kind};
use crate::values::cpu_list;

const fn logs(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Logs, kind, help)
}

/// Stores the prefix of the names of log files; without a value it is the job's name.
macro_rules! put_prefix {
    ($field:ident) => {
        |job, given| {
            // Without a value it keeps the prefix that `[global]` gave, if any.
            let kept = job.logs.$field.take().unwrap_or_default();
            job.logs.$field = Some(given.text.map_or(kept, str::to_owned));
            Ok(())
        }
    };
}
pub(super) use put_prefix;

/// All options of logs, and the periods of the report's own averages.
pub static LOGS: &[Definition] = &[
    logs("per_job_logs", Kind::Bool, "One log per worker, not one for all")
        .default("1")
        .lands(put!(logs.per_job_logs, boolean())),
    logs("write_bw_log", Kind::Str, "Log bandwidth to files of this name")
        .standing_alone()
        .lands(put_prefix!(write_bw_log)),
    Definition::job("bwavgtime", Category::Measurement, Kind::Int, "Window of one bandwidth sample, in ms")
        .under("write_bw_log")
        .default("500")
        .min(0)
        .lands(put!(measurement.bwavgtime, number())),
    logs("write_lat_log", Kind::Str, "Log latencies to files of this name")
        .standing_alone()
        .lands(put_prefix!(write_lat_log)),
    logs("write_iops_log", Kind::Str, "Log I/Os per second to files of this name")
        .standing_alone()
        .lands(put_prefix!(write_iops_log)),
    Definition::job("iopsavgtime", Category::Measurement, Kind::Int, "Window of one IOPS sample, in ms")
        .under("write_iops_log")
        .default("500")
        .min(0)
        .lands(put!(measurement.iopsavgtime, number())),
    logs(
        "log_entries",
        Kind::Int,
        "Limit of entries that wait to be written; by default it depends on the number of jobs",
    )
    .default("1024")
    .range(1024, 1 << 20)
    .lands(put!(logs.log_entries, number())),
    logs("log_avg_msec", Kind::Int, "One entry per this many ms, not one per I/O")
        .default("0")
        .min(0)
        .lands(put!(logs.log_avg_msec, number())),
    logs("log_hist_msec", Kind::Int, "One latency histogram per this many ms")
        .default("0")
        .min(0)
        .lands(put!(logs.log_hist_msec, number())),
    logs("log_hist_coarseness", Kind::Int, "How many times neighbouring buckets are merged in pairs")
        .default("0")
        .range(0, 6)
        .lands(put!(logs.log_hist_coarseness, number())),
    logs("write_hist_log", Kind::Str, "Log latency histograms to files of this name")
        .standing_alone()
        .lands(put_prefix!(write_hist_log)),
    logs("log_window_value", Kind::Str, "The content of an entry for a window")
        .aliases(&["log_max_value"])
        .default("avg")
        .keywords(&[
            ("avg", "The mean"),
            ("max", "The largest value"),
            ("both", "Both"),
            ("0", "Same as avg"),
            ("1", "Same as max"),
        ])
        .lands(|job, given| {
            job.logs.log_window_value = match given.keyword()? {
                "max" | "1" => LogWindow::Most,
                "both" => LogWindow::Both,
                _ => LogWindow::Mean,
            };
            Ok(())
        }),
    logs("log_offset", Kind::Bool, "Log offsets too").default("0").lands(put!(logs.log_offset, boolean())),
    logs("log_prio", Kind::Bool, "Log I/O priorities too").default("0").lands(put!(logs.log_prio, boolean())),
    logs("log_issue_time", Kind::Bool, "Log times of submission too")
        .default("0")
        .lands(put!(logs.log_issue_time, boolean())),
    logs("log_compression", Kind::Int, "Compress a log in memory after this many bytes")
        .range(1024, 512 << 20)
        .lands(put!(logs.log_compression, number())),
    logs("log_compression_cpus", Kind::Str, "CPUs that format, compress and write logs")
        .under("log_compression")
        .lands(|job, given| {
            job.logs.log_compression_cpus = cpu_list(given.required()?, &mut given.notes)?;
            Ok(())
        }),
    logs("log_store_compressed", Kind::Bool, "Store logs compressed")
        .range(0, 1)
        .lands(put!(logs.log_store_compressed, boolean())),
    logs("log_alternate_epoch", Kind::Bool, "Count log times from the clock's own zero, not from the start")
        .aliases(&["log_unix_epoch"])
        .range(0, 1)
        .lands(put!(logs.log_alternate_epoch, boolean())),
    logs("log_alternate_epoch_clock_id", Kind::Int, "Which clock that is, by number")
        .min(0)
        .lands(put!(logs.log_alternate_epoch_clock_id, number())),
    logs("block_error_percentiles", Kind::Bool, "Report how many trims blocks survive, and how they fail")
        .default("0")
        .lands(put!(measurement.block_error_percentiles, boolean())),
];
