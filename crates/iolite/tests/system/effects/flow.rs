//! Options of how jobs go together: which run, when, and what ends them; and what becomes of errors.

use super::see::See::*;
use super::{ABSENT, Effect, row, test};

/// A job that runs for two seconds, and the beginning of a short one behind it.
macro_rules! long_and {
    ($short:literal) => {
        concat!("--name=long --ioengine=null --size=4k --time_based --runtime=2s --name=short ", $short)
    };
}
const CUT_SHORT: super::See = AtLeast("jobs.0.read.runtime", 1900.0);

pub const TABLE: &[Effect] = &[
    row("name", "--ioengine=null --size=4k", "a", "b", Json("jobs.0.jobname")),
    row("numjobs", "--size=4k --rw=write", "1", "2", Files),
    row(
        "wait_for",
        "--name=a --filename=fa --size=64k --rw=write --thinktime=20ms --unlink=1 --name=b --filename=fb --size=4k --exec_prerun=./see-files",
        ABSENT,
        "a",
        File("b.prerun.txt"),
    ),
    row(
        "stonewall",
        long_and!("--ioengine=null --size=4k --startdelay=0"),
        ABSENT,
        "",
        Json("jobs.1.groupid"),
    ),
    row("new_group", long_and!("--ioengine=null --size=4k"), ABSENT, "", Json("jobs.1.groupid")),
    row("exitall", long_and!("--ioengine=null --size=4k"), ABSENT, "", CUT_SHORT),
    row("exit_what", long_and!("--new_group --ioengine=null --size=4k --exitall"), "group", "all", CUT_SHORT),
    row(
        "exitall_on_error",
        long_and!("--filename=/dev/full --rw=write --size=4k --ioengine=psync"),
        ABSENT,
        "",
        OfFailing(&CUT_SHORT),
    ),
    row("exec_prerun", "@", ABSENT, "./see-files", Files),
    row("exec_postrun", "@", ABSENT, "./see-files", Files),
    test!("flow", order::jobs_of_a_flow_keep_the_ratio_of_their_weights),
    test!("flow_id", order::nobody_waits_for_one_that_has_ended_or_is_in_another_flow),
    test!("flow_sleep", order::those_ahead_sleep_as_long_as_they_are_told),
    row(
        "ignore_error",
        "--filename=/dev/full --rw=write --size=16k",
        ABSENT,
        ",ENOSPC",
        Refused("No space left on device"),
    ),
    row(
        "continue_on_error",
        "--filename=/dev/full --rw=write --size=16k",
        "none",
        "all",
        OfFailing(&Json("jobs.0.total_err")),
    ),
    test!("error_dump", failures::errors_that_do_not_end_the_job_are_described_on_demand),
];
