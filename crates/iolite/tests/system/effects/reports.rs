//! Options for measurements and their presentation.

use super::see::See::*;
use super::{ABSENT, Effect, row, test};

const NULL: &str = "--ioengine=null --size=64k";

pub const TABLE: &[Effect] = &[
    row("description", NULL, "one", "two", Json("jobs.0.desc")),
    row("group_reporting", "--ioengine=null --size=64k --numjobs=2", ABSENT, "", Json("jobs.1.jobname")),
    row("stats", NULL, "1", "0", Json("jobs.0.jobname")),
    row(
        "bwavgtime",
        "--ioengine=null --size=4k --time_based --runtime=1s",
        "5000",
        "50",
        AtLeast("jobs.0.read.bw_samples", 3.0),
    ),
    row(
        "iopsavgtime",
        "--ioengine=null --size=4k --time_based --runtime=1s",
        "5000",
        "50",
        AtLeast("jobs.0.read.iops_samples", 3.0),
    ),
    row("clat_percentiles", NULL, "1", "0", Keys("jobs.0.read.clat_ns")),
    row("lat_percentiles", NULL, "0", "1", Keys("jobs.0.read.lat_ns")),
    row("slat_percentiles", "--ioengine=null --size=64k --iodepth=2", "0", "1", Keys("jobs.0.read.slat_ns")),
    row("percentile_list", NULL, "50:90", "10:20:30", Keys("jobs.0.read.clat_ns.percentile")),
    row("significant_figures", "--ioengine=null --size=1234567 --bs=1234567", "4", "2", Word("io=")),
    row("kb_base", "--ioengine=null --size=1000000 --bs=1000000", "1024", "1000", Word("io=")),
    row("unit_base", "--ioengine=null --size=1m", "8", "1", Says("bit/s")),
    row("disk_util", "@", "1", "0", Says("Disk stats")),
    row("gtod_reduce", NULL, "0", "1", Json("jobs.0.read.lat_ns.N")),
    row("disable_lat", NULL, "0", "1", Json("jobs.0.read.lat_ns.N")),
    row("disable_clat", NULL, "0", "1", Json("jobs.0.read.clat_ns.N")),
    row("disable_slat", "--ioengine=null --size=64k --iodepth=2", "0", "1", Json("jobs.0.read.slat_ns.N")),
    row("unified_rw_reporting", NULL, "none", "mixed", Keys("jobs.0.mixed")),
    test!("lat_from_intended_start", reporting::latency_from_the_intended_start_includes_the_delay),
    test!("stages", stages::every_io_is_found_and_its_stages_add_up),
    test!("block_error_percentiles", failures::block_states_and_lifetimes_are_reported),
    Effect::None(
        "disable_bw_measurement",
        "samples cost the workers nothing, so they are taken all the same, as fio takes them for its reports",
    ),
];
