//! Options for the order of jobs (which ones run, when they begin and end) and for errors.

use super::see::See::*;
use super::{ABSENT, Effect, row, test};

/// Two jobs of one I/O each.
macro_rules! two {
    ($second:literal) => {
        concat!("--name=first --ioengine=null --size=4k --name=second --ioengine=null --size=4k ", $second)
    };
}
/// A job that ends at once, and another one that waits for it and does its I/O, unless the end of the first ends the
/// run.
macro_rules! last_behind {
    ($first:literal, $last:literal) => {
        concat!("--name=first ", $first, " {} --name=last --ioengine=null --size=4k --wait_for=first ", $last)
    };
}
const LAST: super::See = Json("jobs.1.read.total_ios");

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
    row("stonewall", two!("--startdelay=0"), ABSENT, "", Json("jobs.1.groupid")),
    row("new_group", two!(""), ABSENT, "", Json("jobs.1.groupid")),
    row("exitall", last_behind!("--ioengine=null --size=4k", ""), ABSENT, "", LAST),
    row(
        "exit_what",
        last_behind!("--ioengine=null --size=4k --exitall", "--new_group"),
        "group",
        "all",
        LAST,
    ),
    row(
        "exitall_on_error",
        last_behind!("--filename=/dev/full --rw=write --size=4k --ioengine=psync", ""),
        ABSENT,
        "",
        OfFailing(&LAST),
    ),
    row("exec_prerun", "@", ABSENT, "./see-files", Files),
    row("exec_postrun", "@", ABSENT, "./see-files", Files),
    test!("flow", order::jobs_of_a_flow_keep_the_ratio_of_their_weights),
    test!("flow_id", order::ended_jobs_and_other_flows_delay_no_job),
    test!("flow_sleep", order::jobs_ahead_of_their_flow_sleep_for_flow_sleep),
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
    test!("io_timeout", stuck::a_read_from_a_pipe_may_take_too_long),
    test!("error_dump", failures::errors_that_do_not_end_the_job_are_described_on_demand),
];
