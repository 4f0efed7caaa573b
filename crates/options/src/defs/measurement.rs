//! Measurements, and how they are reported.

use crate::ClockSource;
use crate::UnifiedReporting;
use crate::definition::{Category, Definition, Kind, Limits};

const fn measurement(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Measurement, kind, help)
}

/// The clock.
pub static CLOCK: &[Definition] = &[measurement("clocksource", Kind::Str, "Source of the time")
    .keywords(&[
        ("gettimeofday", "gettimeofday(2)"),
        ("clock_gettime", "clock_gettime(2)"),
        ("cpu", "The processor's own counter"),
    ])
    .lands(|job, given| {
        job.measurement.clocksource = ClockSource::from_keyword(given.keyword()?);
        Ok(())
    })];

/// Jobs that are reported together.
pub static GROUPS: &[Definition] = &[
    measurement("group_reporting", Kind::Flag, "Report the workers of a group as one")
        .lands(put!(measurement.group_reporting, boolean())),
    measurement("stats", Kind::Bool, "Report this job")
        .default("1")
        .lands(put!(measurement.stats, boolean())),
];

/// The most percentiles that a report lists. (Under the name `fio`, it lists fewer.)
const MOST_PERCENTILES: usize = 100;

/// Latencies, and the cost of measuring them.
pub static LATENCIES: &[Definition] = &[
    measurement("clat_percentiles", Kind::Bool, "Report percentiles of the completion latency")
        .default("1")
        .lands(put!(measurement.clat_percentiles, boolean())),
    measurement("lat_percentiles", Kind::Bool, "Report percentiles of the total latency")
        .default("0")
        .lands(put!(measurement.lat_percentiles, boolean())),
    measurement("slat_percentiles", Kind::Bool, "Report percentiles of the submission latency")
        .default("0")
        .lands(put!(measurement.slat_percentiles, boolean())),
    measurement("percentile_list", Kind::FloatList, "Which percentiles: at most 100; 20 under the name fio")
        .default("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99")
        .limits(Limits::Floats(0.0, 100.0))
        .lands(|job, given| {
            job.measurement.percentile_list = given.floats(MOST_PERCENTILES)?;
            Ok(())
        }),
    measurement("significant_figures", Kind::Int, "Significant figures of numbers in the normal report")
        .default("4")
        .range(1, 10)
        .lands(put!(measurement.significant_figures, number())),
    measurement("disk_util", Kind::Bool, "Report the activity of the disks below")
        .default("1")
        .lands(put!(measurement.disk_util, boolean())),
    measurement("gtod_reduce", Kind::Bool, "Take as few times as possible: sets all four disable options")
        .default("0")
        .lands(|job, given| {
            // The order of the options matters: a later disable_… takes precedence. A later gtod_reduce=0 changes
            // nothing, as in fio: settings of an earlier gtod_reduce=1 stay.
            if given.boolean()? {
                job.measurement.gtod_reduce = true;
                job.measurement.disable_lat = true;
                job.measurement.disable_clat = true;
                job.measurement.disable_slat = true;
                job.measurement.disable_bw = true;
            }
            Ok(())
        }),
    measurement("disable_lat", Kind::Bool, "Do not measure total latencies")
        .under("gtod_reduce")
        .default("0")
        .lands(put!(measurement.disable_lat, boolean())),
    measurement("disable_clat", Kind::Bool, "Do not measure completion latencies")
        .under("gtod_reduce")
        .default("0")
        .lands(put!(measurement.disable_clat, boolean())),
    measurement("disable_slat", Kind::Bool, "Do not measure submission latencies")
        .under("gtod_reduce")
        .default("0")
        .lands(put!(measurement.disable_slat, boolean())),
    measurement("disable_bw_measurement", Kind::Bool, "Do not sample bandwidth")
        .under("gtod_reduce")
        .aliases(&["disable_bw"])
        .default("0")
        .lands(put!(measurement.disable_bw, boolean())),
    measurement("gtod_cpu", Kind::Int, "CPU of a thread that keeps the time for all workers").min(0).lands(
        |job, given| {
            job.measurement.gtod_cpu = Some(given.number()?);
            Ok(())
        },
    ),
    measurement("job_start_clock_id", Kind::Int, "Clock of the job's start in the report, by number")
        .min(0)
        .lands(put!(measurement.job_start_clock_id, number())),
    measurement("unified_rw_reporting", Kind::Str, "Whether directions are reported separately")
        .default("none")
        .keywords(&[
            ("none", "Separately"),
            ("mixed", "As one"),
            ("both", "Separately, and then as one"),
            ("0", "Same as none"),
            ("1", "Same as mixed"),
            ("2", "Same as both"),
        ])
        .lands(|job, given| {
            job.measurement.unified_rw_reporting = match given.keyword()? {
                "mixed" | "1" => UnifiedReporting::Mixed,
                "both" | "2" => UnifiedReporting::Both,
                _ => UnifiedReporting::None,
            };
            Ok(())
        }),
];

/// Units of sizes.
pub static UNITS: &[Definition] = &[
    measurement("kb_base", Kind::Str, "The meaning of k, m, g in values and in the report")
        .default("1024")
        .keywords(&[
            ("1024", "k is 1024 and kib is 1000 in values, as old scripts expect; reports prefer KiB"),
            ("1000", "k is 1000 and kib is 1024 in values; reports prefer kB"),
        ])
        .lands(|job, given| {
            job.measurement.kb_base = if given.keyword()? == "1000" { 1000 } else { 1024 };
            Ok(())
        }),
    measurement("unit_base", Kind::Str, "Whether reports count bytes or bits")
        .keywords(&[("0", "As fits"), ("8", "Bytes"), ("1", "Bits")])
        .lands(|job, given| {
            job.measurement.unit_base = match given.keyword()? {
                "8" => 8,
                "1" => 1,
                _ => 0,
            };
            Ok(())
        }),
];

/// Ending a run when results are steady.
pub static STEADY_STATE: &[Definition] = &[
    measurement(
        "steadystate",
        Kind::Str,
        "End the run when this criterion has stayed within its limit: iops:5%",
    )
    .aliases(&["ss"])
    .default("iops_slope:0.01%")
    .keywords(&[
        ("iops", "Deviation of I/Os per second from their mean"),
        ("iops_slope", "Slope of I/Os per second"),
        ("bw", "Deviation of the bandwidth from its mean"),
        ("bw_slope", "Slope of the bandwidth"),
        ("lat", "Deviation of the latency from its mean"),
        ("lat_slope", "Slope of the latency"),
    ])
    .lands(|job, given| {
        let (text, keywords) = (given.required()?, given.definition.keywords);
        job.measurement.steadystate =
            crate::values::steady_state(text, keywords, given.kb_base, &mut given.notes)?;
        Ok(())
    }),
    measurement("steadystate_duration", Kind::Time, "How long it must stay within its limit")
        .under("steadystate")
        .aliases(&["ss_dur"])
        .default("0")
        .lands(put!(measurement.steadystate_duration, time(crate::values::SECOND))),
    measurement("steadystate_ramp_time", Kind::Time, "How long to wait before measuring it")
        .under("steadystate")
        .aliases(&["ss_ramp"])
        .default("0")
        .lands(put!(measurement.steadystate_ramp_time, time(crate::values::SECOND))),
    measurement("steadystate_check_interval", Kind::Time, "Time between two measurements of it")
        .under("steadystate")
        .aliases(&["ss_interval"])
        .default("1")
        .lands(put!(measurement.steadystate_check_interval, time(crate::values::SECOND))),
];
