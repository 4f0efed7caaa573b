//! The job itself: its name, how often and when it runs, and which jobs run at the same time.

use crate::definition::{Category, Definition, Kind, Limits};
use crate::values::{SECOND, range_with, time};

const fn job(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Job, kind, help)
}

/// The name of the job.
pub static IDENTITY: &[Definition] = &[
    job("description", Kind::Str, "Free text about the job, repeated in the report").lands(|job, given| {
        job.description = Some(given.string()?);
        Ok(())
    }),
    job("name", Kind::Str, "Name of the job; on a command line (--name) also the stem of its file names")
        .lands(put!(name, string())),
    job("wait_for", Kind::Str, "Start only when every worker of the job of this name has ended").lands(
        |job, given| {
            job.schedule.wait_for = Some(given.string()?);
            Ok(())
        },
    ),
];

/// How often and how long it runs.
pub static RUN: &[Definition] = &[
    job("loops", Kind::Int, "How many times the job does all of its I/O").default("1").min(0).lands(
        |job, given| {
            job.schedule.loops = given.number::<u64>()?.max(1);
            Ok(())
        },
    ),
    job("numjobs", Kind::Int, "How many workers run this job at the same time").default("1").min(0).lands(
        |job, given| match given.number()? {
            0 => Err("a job needs at least 1 worker".to_owned()),
            workers => {
                job.schedule.numjobs = workers;
                Ok(())
            }
        },
    ),
    job(
        "startdelay",
        Kind::Time,
        "Wait this long before starting; from a range, each worker picks its own delay",
    )
    .default("0")
    .lands(|job, given| {
        let text = given.required()?;
        let delay = range_with(text, true, |part| time(part, SECOND, &mut given.notes))?;
        job.schedule.startdelay = (delay.high > 0).then_some(delay);
        Ok(())
    }),
    job("runtime", Kind::Time, "End the job after this time, done or not; 0 is not a limit")
        .aliases(&["timeout"])
        .default("0")
        .lands(put!(schedule.runtime, time(SECOND))),
    job("time_based", Kind::Flag, "Start over until the run time is up, even when all I/O is done")
        .lands(put!(schedule.time_based, boolean())),
    job("verify_only", Kind::Flag, "Write nothing: check the writes of an earlier run of the same job")
        .lands(put!(verification.verify_only, boolean())),
    job("ramp_time", Kind::Time, "Run this long before measuring; runtime counts from then")
        .lands(put!(schedule.ramp_time, time(SECOND))),
    job("ramp_size", Kind::Str, "Move this much data before measuring; runtime counts from then")
        .limits(Limits::OnlyMin(1))
        .lands(|job, given| {
            if given.required()?.ends_with('%') {
                return Err("is in bytes, not in percent".to_owned());
            }
            // 0 is the same as not giving it.
            job.schedule.ramp_size = if given.text == Some("0") { 0 } else { given.number()? };
            Ok(())
        }),
];

/// Commands before and after the job, and its environment.
pub static SURROUNDINGS: &[Definition] = &[
    job("exec_prerun", Kind::Str, "Shell command to run before the job starts").lands(|job, given| {
        job.schedule.exec_prerun = Some(given.string()?);
        Ok(())
    }),
    job("exec_postrun", Kind::Str, "Shell command to run after the job has ended").lands(|job, given| {
        job.schedule.exec_postrun = Some(given.string()?);
        Ok(())
    }),
    job(
        "ioscheduler",
        Kind::Str,
        "I/O scheduler to set for the device before the job runs; it is not restored",
    )
    .lands(|job, given| {
        job.placement.ioscheduler = Some(given.string()?);
        Ok(())
    }),
];

/// How jobs follow each other.
pub static ORDER: &[Definition] = &[
    job("exitall", Kind::Flag, "When this job ends, others end too (exit_what says which)")
        .lands(put!(schedule.exitall, boolean())),
    job("exit_what", Kind::Str, "Which jobs exitall and exitall_on_error end")
        .default(crate::ExitWhat::DEFAULT)
        .keywords(&[
            ("group", "Those of the same reporting group"),
            ("stonewall", "All that are running; those behind a stonewall still start"),
            ("all", "All, also those that have not started"),
        ])
        .lands(put_keyword!(schedule.exit_what, ExitWhat)),
    job("exitall_on_error", Kind::Flag, "When this job fails, others end too (exit_what says which)")
        .lands(put!(schedule.exitall_on_error, boolean())),
    job("stonewall", Kind::Flag, "Start only when every job before this one has ended; begins a new group")
        .aliases(&["wait_for_previous"])
        .lands(put!(schedule.stonewall, boolean())),
    job("new_group", Kind::Flag, "Begin a new reporting group with this job")
        .lands(put!(schedule.new_group, boolean())),
    job("thread", Kind::Flag, "Run the workers as threads, not as processes")
        .lands(put!(schedule.thread, boolean())),
];
