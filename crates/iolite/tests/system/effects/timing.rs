//! Options for time: durations, starts, rates, and limits.

use super::see::See::*;
use super::{ABSENT, Effect, row, test};

const NULL: &str = "--ioengine=null --size=64k";

/// A job of sixteen I/Os with the null engine.
macro_rules! null {
    ($more:literal) => {
        concat!("--ioengine=null --size=64k ", $more)
    };
}

/// The same with a live line.
macro_rules! live {
    ($more:literal) => {
        concat!("--eta=always --eta-interval=250ms --ioengine=null --size=64k ", $more)
    };
}

/// A job that is too slow for its rate, and runs longer than two seconds, because rates are checked only after that.
const SLOW: &str = "--ioengine=null --size=112k --thinktime=100ms --rate_min=100m";
const SLOW_CYCLES: &str = "--ioengine=null --size=112k --thinktime=100ms --rate_cycle=200";

pub const TABLE: &[Effect] = &[
    row("startdelay", live!("--time_based --runtime=1ms"), "0", "90m", Shows("[eta 01h:", 1)),
    row("runtime", live!("--time_based"), "50ms", "1h", Shows("[eta 59m:", 1)),
    row("time_based", live!("--runtime=1h"), ABSENT, "", Shows("[eta 59m:", 1)),
    row("ramp_time", live!("--time_based --runtime=1ms"), ABSENT, "1h", Shows(": [/(1)]", 1)),
    test!("client_barrier", in_step::stages_begin_together),
    test!("ramp_size", order::a_ramp_of_bytes_is_not_counted),
    row("thinktime", NULL, "0", "20ms", Sleeps(100)),
    test!("thinktime_spin", rates::thinktime_spin_is_not_slept),
    row("thinkcycles", null!("--thinktime=1us"), "0", "100000000", Works(200)),
    // There are fifteen pauses, or one.
    row("thinktime_blocks", null!("--thinktime=100ms"), "1", "8", Sleeps(400)),
    row(
        "thinktime_blocks_type",
        null!("--iodepth=8 --thinktime=1ms --thinktime_blocks=4"),
        "complete",
        "issue",
        // The first pause comes when four I/Os have completed, and three more are in flight at that time.
        Json("jobs.0.iodepth_level.4"),
    ),
    test!("thinktime_iotime", rates::thinktime_can_come_by_time),
    row("rate", NULL, ABSENT, "64k", Sleeps(300)),
    row("rate_iops", NULL, ABSENT, "16", Sleeps(300)),
    row("rate_min", SLOW_CYCLES, ABSENT, "100m", Refused("func=rate_min")),
    row("rate_iops_min", SLOW_CYCLES, ABSENT, "1000", Refused("func=rate_iops_min")),
    row("rate_cycle", SLOW, "200", "100000", Refused("func=rate_min")),
    test!("rate_scope", in_step::rates_are_shared),
    test!("rate_schedule", rates::a_rate_follows_its_schedule),
    test!("write_asked_log", rates::a_log_has_what_was_asked),
    test!("rate_schedule_speed", rates::a_rate_follows_its_schedule),
    row("batch_size", null!("--batch_compute=1us"), "4", "8", Json("jobs.0.accelerator.batches")),
    test!("batch_sample", ai::a_sample_is_a_read_a_file_or_bytes),
    row("batch_compute", null!("--batch_size=4"), "1us", "2us", Json("jobs.0.accelerator.compute_ns")),
    // Fifteen batches are computed before the last one is read, or none.
    row("batch_prefetch", null!("--batch_size=1 --batch_compute=20ms"), "16", "0", Sleeps(200)),
    test!("rate_process", rates::poisson_keeps_the_rate_but_not_the_distance),
    test!("rate_ignore_thinktime", rates::a_job_that_was_held_up_catches_up),
    test!("io_submit_mode", offload::iodepth_decides_the_number_of_submitting_threads),
    row("max_latency", "@ --direct=1", ABSENT, "1us", Refused("exceeds max_latency")),
    test!("latency_target", rates::a_latency_target_is_reported_with_its_depth),
    // Every depth meets the target, and the next one is tried after each window.
    row(
        "latency_window",
        null!("--iodepth=8 --latency_target=60s --time_based --runtime=1"),
        "10ms",
        "1h",
        Json("jobs.0.latency_depth"),
    ),
    test!("latency_percentile", rates::a_latency_percentile_says_how_many_may_be_late),
    row(
        "latency_run",
        // Every depth meets the target, so the search ends soon, and the run with it.
        live!("--iodepth=8 --latency_target=60s --latency_window=20ms --time_based --runtime=1h"),
        "0",
        "1",
        Shows("[eta 59m:", 4),
    ),
    row(
        "clocksource",
        "@ --direct=1",
        "cpu",
        "gettimeofday",
        Multiples(&["jobs.0.read.clat_ns.min", "jobs.0.read.clat_ns.max"], 1000),
    ),
];
