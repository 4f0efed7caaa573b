//! Options that fio does not have.

use crate::definition::{Category, Definition, Kind};
use crate::values::{files_in_schedule, rate_schedule, sample, shares};

const fn own(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Own, kind, help)
}

/// The options that only Iolite has.
pub static OWN: &[Definition] = &[
    own(
        "client_barrier",
        Kind::Bool,
        "With --client: start behind a stonewall or wait_for, end a ramp_size, and judge a steady state, on all hosts together",
    )
    .default("0")
    .lands(put!(schedule.client_barrier, boolean())),
    own("rate_scope", Kind::Str, "With --client: the scope of the rates")
        .under("rate")
        .default(crate::RateScope::DEFAULT)
        .keywords(&[
            ("host", "Each host has the whole rate"),
            ("all", "The hosts share it in equal parts"),
        ])
        .lands(put_keyword!(rates.rate_scope, RateScope)),
    own(
        "rwtmix",
        Kind::Str,
        "Percent of reads, writes and trims in a mix (60/30/10; the sum is 100). It makes rw=rw or rw=randrw trim as well; the \
         latest of rwmixread, rwmixwrite and rwtmix counts",
    )
    .under("rwmixread")
    .lands(|job, given| {
        job.pattern.rwtmix = Some(shares(given.required()?, &mut given.notes)?);
        Ok(())
    }),
    own(
        "rate_schedule",
        Kind::Str,
        "Rates that change over time: TIME:RATE,… with ramps TIME..TIME:RATE..RATE and TIME:repeat, or file:PATH with a line for \
         each second. RATE is I/Os per second, or bytes with B (64MiB), for each direction",
    )
    .names_files(files_in_schedule)
    .lands(|job, given| {
        let text = given.required()?.to_owned();
        job.rates.rate_schedule = Some(rate_schedule(&text, given.kb_base, &mut given.notes)?);
        Ok(())
    }),
    own("rate_schedule_speed", Kind::Int, "How many times faster the time of the schedule goes, its rates unchanged")
        .under("rate_schedule")
        .default("1")
        .range(1, 1_000_000)
        .lands(put!(rates.rate_schedule_speed, number())),
    own(
        "write_asked_log",
        Kind::Str,
        "Log what rate_schedule asks for to files of this name, in windows of log_avg_msec (without it, of a second)",
    )
    .under("rate_schedule")
    .standing_alone()
    .lands(super::logs::put_prefix!(write_asked_log)),
    own(
        "lat_from_intended_start",
        Kind::Bool,
        "Also measure latency from the time at which the rate intended an I/O to start (ilat)",
    )
    .default("0")
    .lands(put!(measurement.lat_from_intended_start, boolean())),
    own("batch_size", Kind::Int, "Samples that an accelerator takes at once; all workers of the job read for it (0 = no accelerator)")
        .default("0")
        .range(0, 1 << 40)
        .lands(put!(batches.batch_size, number())),
    own("batch_sample", Kind::Str, "What a sample is: a read (io), a whole file (file), or this many bytes")
        .under("batch_size")
        .default("io")
        .lands(|job, given| {
            let text = given.required()?.to_owned();
            job.batches.batch_sample = sample(&text, given.kb_base, &mut given.notes)?;
            Ok(())
        }),
    own("batch_compute", Kind::Int, "How long the accelerator computes with a batch, in µs")
        .under("batch_size")
        .default("0")
        .min(0)
        .lands(put!(batches.batch_compute, time(1))),
    own("batch_prefetch", Kind::Int, "Batches that are read ahead of the one that is computed; 0 = reading and computing take turns")
        .under("batch_size")
        .default("2")
        .range(0, 1 << 20)
        .lands(put!(batches.batch_prefetch, number())),
    own(
        "filenum_increment",
        Kind::Int,
        "The first $filenum of each clone is this much higher than that of the clone before: clones share out numbered files",
    )
    .default("0")
    .range(0, 1 << 30)
    .lands(put!(files.filenum_increment, number())),
    own("stages", Kind::Flag, "Measure where the time of each I/O goes: submission, queue, device or server, completion")
        .lands(put!(measurement.stages, boolean())),
    own("write_stages_log", Kind::Str, "Log the stages of each I/O to files of this name")
        .standing_alone()
        .lands(super::logs::put_prefix!(write_stages_log)),
    own("filenum_first", Kind::Int, "The first $filenum of filename_format")
        .under("nrfiles")
        .default("0")
        .range(0, 4_000_000_000)
        .lands(put!(files.filenum_first, number())),
    own("tree_depth", Kind::Int, "Spread files over a tree of directories: its levels below that of the files' names")
        .under("nrfiles")
        .default("0")
        .range(0, 32)
        .lands(put!(files.tree_depth, number())),
    own("tree_breadth", Kind::Int, "The number of directories in each directory of the tree, except those of the last level")
        .under("nrfiles")
        .default("2")
        .range(1, 65_536)
        .lands(put!(files.tree_breadth, number())),
    own("io_timeout", Kind::Time, "An I/O that takes longer than this has failed (ETIMEDOUT); 0 = no limit")
        .default("0")
        .lands(put!(errors.io_timeout, time(1_000_000))),
    own("verify_header_format", Kind::Str, "Layout of verify headers: that of this version of fio")
        .under("verify")
        .default(crate::VerifyHeaderFormat::DEFAULT)
        .keywords(&[("3.42", "With room for many writes"), ("3.33", "For fio 3.33 and older")])
        .lands(put_keyword!(verification.verify_header_format, VerifyHeaderFormat)),
];
