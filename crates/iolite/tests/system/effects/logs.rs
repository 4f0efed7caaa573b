//! Options of logs.

use super::see::See::*;
use super::{ABSENT, Effect, row, test};

/// A job of sixteen I/Os, with a log.
macro_rules! logged {
    ($more:literal) => {
        concat!("--ioengine=null --size=64k --write_lat_log=x ", $more)
    };
}
const NULL: &str = "--ioengine=null --size=64k";
const LOG: super::See = Shape("x_lat.1.log");

pub const TABLE: &[Effect] = &[
    row("write_bw_log", NULL, ABSENT, "x", Names),
    row("write_lat_log", NULL, ABSENT, "x", Names),
    row("write_iops_log", NULL, ABSENT, "x", Names),
    row("write_hist_log", NULL, ABSENT, "x", Names),
    test!("write_stages_log", stages::every_io_is_found_and_its_stages_add_up),
    row("per_job_logs", logged!(""), "1", "0", Names),
    test!("log_entries", logs::a_job_waits_for_its_log_and_says_so),
    row("log_avg_msec", logged!(""), "0", "100000", LOG),
    test!("log_hist_msec", logs::histograms_count_every_io),
    row(
        "log_hist_coarseness",
        "--ioengine=null --size=64k --write_hist_log=h --log_hist_msec=100000",
        "0",
        "2",
        Shape("h_clat_hist.1.log"),
    ),
    row("log_window_value", logged!("--log_avg_msec=100000"), "avg", "both", LOG),
    row("log_offset", logged!(""), "0", "1", Column("x_lat.1.log", 4)),
    row("log_prio", logged!("--prioclass=2 --prio=3"), "0", "1", Column("x_lat.1.log", 4)),
    row("log_issue_time", logged!(""), "0", "1", LOG),
    test!("log_compression", logs::compressed_logs_go_both_ways),
    test!("log_compression_cpus", logs::the_writer_keeps_to_its_processors),
    row("log_store_compressed", logged!(""), "0", "1", Names),
    test!("log_alternate_epoch", logs::times_of_another_clock),
    test!("log_alternate_epoch_clock_id", logs::times_of_another_clock),
    test!("steadystate", steady_state::a_steady_state_ends_the_job),
    test!("steadystate_duration", steady_state::a_steady_state_ends_the_job),
    test!("steadystate_ramp_time", steady_state::the_ramp_comes_first),
    test!("steadystate_check_interval", steady_state::a_steady_state_ends_the_job),
];
