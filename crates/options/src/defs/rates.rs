//! Rates, think time, latency targets, and flows.

use crate::definition::{Category, Definition, Kind, Limits};
use crate::values::SECOND;

/// Times are in µs.
const MICROSECOND: u64 = 1;

const fn rates(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Rates, kind, help)
}

/// Rates, pauses, latencies.
pub static RATES: &[Definition] = &[
    rates("thinktime", Kind::Int, "Pause between I/Os, in µs")
        .default("0")
        .min(0)
        .lands(put!(rates.thinktime, time(MICROSECOND))),
    rates("thinktime_spin", Kind::Int, "How much of the pause is spent busy, in µs")
        .under("thinktime")
        .default("0")
        .min(0)
        .lands(put!(rates.thinktime_spin, time(MICROSECOND))),
    rates("thinkcycles", Kind::Int, "Processor cycles to burn in each pause")
        .under("thinktime")
        .default("0")
        .min(0)
        .lands(put!(rates.thinkcycles, number())),
    rates("thinktime_blocks", Kind::Int, "I/Os from one pause to the next; no more are in flight")
        .under("thinktime")
        .default("1")
        .min(0)
        .lands(put!(rates.thinktime_blocks, number())),
    rates("thinktime_blocks_type", Kind::Str, "The event that counts as an I/O here")
        .under("thinktime")
        .default(crate::ThinktimeBlocks::DEFAULT)
        .keywords(&[("complete", "Its completion"), ("issue", "Its submission")])
        .lands(put_keyword!(rates.thinktime_blocks_type, ThinktimeBlocks)),
    rates("thinktime_iotime", Kind::Int, "Time from one pause to the next, in seconds")
        .under("thinktime")
        .default("0")
        .min(0)
        .lands(put!(rates.thinktime_iotime, time(SECOND))),
    rates("rate", Kind::Int, "Limit of bytes per second, per direction")
        .min(0)
        .lands(|job, given| given.numbers_into(&mut job.rates.rate)),
    rates("rate_min", Kind::Int, "Minimum of bytes per second; a slower job ends")
        .under("rate")
        .aliases(&["ratemin"])
        .min(0)
        .lands(|job, given| given.numbers_into(&mut job.rates.rate_min)),
    rates("rate_process", Kind::Str, "How I/Os are spaced in time")
        .under("rate")
        .default(crate::RateProcess::DEFAULT)
        .keywords(&[("linear", "Evenly"), ("poisson", "At random, as independent users would")])
        .lands(put_keyword!(rates.rate_process, RateProcess)),
    rates("rate_cycle", Kind::Int, "Window over which the minimum rates are measured, in ms")
        .under("rate")
        .aliases(&["ratecycle"])
        .default("1000")
        .min(0)
        .lands(put!(rates.rate_cycle, number())),
    rates("rate_ignore_thinktime", Kind::Bool, "Do not make up for pauses: continue at the rate after each")
        .under("rate")
        .range(0, 1)
        .lands(put!(rates.rate_ignore_thinktime, boolean())),
    rates("rate_iops", Kind::Int, "Limit of I/Os per second, per direction")
        .min(0)
        .lands(|job, given| given.numbers_into(&mut job.rates.rate_iops)),
    rates("rate_iops_min", Kind::Int, "Minimum of I/Os per second; a slower job ends")
        .under("rate_iops")
        .min(0)
        .lands(|job, given| given.numbers_into(&mut job.rates.rate_iops_min)),
    rates("max_latency", Kind::Int, "End the job when one I/O takes longer than this, in µs").min(0).lands(
        |job, given| {
            // Each entry of the list is a separate duration.
            let text = given.required()?.to_owned();
            let mut parts = text.split(',');
            let mut last = 0;
            for direction in iolite_types::Direction::ALL {
                match parts.next() {
                    Some("") | None => {}
                    Some(part) => last = crate::values::time(part, MICROSECOND, &mut given.notes)?,
                }
                job.rates.max_latency[direction] = last;
            }
            match parts.next() {
                None => Ok(()),
                Some(_) => Err("has more than three values (read, write, trim)".to_owned()),
            }
        },
    ),
    rates("latency_target", Kind::Time, "Find the depth at which I/Os take no longer than this, in µs")
        .lands(put!(rates.latency_target, time(MICROSECOND))),
    rates("latency_window", Kind::Time, "How long each depth is tried, in µs")
        .lands(put!(rates.latency_window, time(MICROSECOND))),
    rates("latency_percentile", Kind::FloatList, "Percent of I/Os that must meet the target")
        .default("100")
        .limits(Limits::Floats(0.0, 100.0))
        .lands(|job, given| {
            job.rates.latency_percentile = given.floats(1)?.first().copied().unwrap_or(100.0);
            Ok(())
        }),
    rates("latency_run", Kind::Bool, "Keep searching when a depth has been found")
        .default("0")
        .lands(put!(rates.latency_run, boolean())),
];

/// Jobs that share a flow.
pub static FLOW: &[Definition] = &[
    rates("flow_id", Kind::Int, "Number of the flow; jobs of one flow keep in step")
        .default("0")
        .min(0)
        .lands(put!(rates.flow_id, number())),
    rates("flow", Kind::Int, "Weight of this job in its flow; 0 leaves it out")
        .under("flow_id")
        .default("0")
        .range(0, 1000)
        .lands(|job, given| {
            // Old job files have weights with opposite signs for the jobs of a flow.
            let text = given.required()?;
            given.text = Some(text.strip_prefix('-').unwrap_or(text));
            job.rates.flow = given.number()?;
            Ok(())
        }),
    rates("flow_sleep", Kind::Int, "How long a job that is ahead sleeps, in µs")
        .under("flow_id")
        .default("0")
        .min(0)
        .lands(put!(rates.flow_sleep, time(MICROSECOND))),
];
