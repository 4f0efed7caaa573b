//! When I/Os may be issued: rates and think time.

use super::course::Course;
use super::issue::each;
use iolite_options::{JobOptions, RateProcess, ThinktimeBlocks};
use iolite_types::PerDirection;
use serde::{Deserialize, Serialize};

/// The unit of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Amount {
    /// Bytes.
    Bytes,
    /// I/Os.
    Ios,
}

impl Amount {
    /// The amount of an I/O of this many bytes.
    #[inline]
    pub fn of(self, bytes: u64) -> u64 {
        match self {
            Amount::Bytes => bytes,
            Amount::Ios => 1,
        }
    }
}

/// The rate that a direction must not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The unit.
    pub amount: Amount,
    /// The amount per second; 0 = the schedule of the job decides.
    pub rate: u64,
    /// How I/Os are distributed over time.
    pub process: RateProcess,
    /// The seed of the random distances.
    pub seed: u64,
}

/// The rate that a direction must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Minimum {
    /// The unit.
    pub amount: Amount,
    /// The amount per second.
    pub rate: u64,
    /// Nanoseconds over which the rate is averaged.
    pub cycle_ns: u64,
}

/// Pauses between I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// Nanoseconds of a pause.
    pub pause_ns: u64,
    /// Nanoseconds of the pause that are spent busy.
    pub spin_ns: u64,
    /// Processor cycles to burn in addition.
    pub cycles: u64,
    /// I/Os from one pause to the next; `u64::MAX` = only time counts.
    pub blocks: u64,
    /// I/Os count when they are issued, not when they complete.
    pub by_issue: bool,
    /// Nanoseconds from one pause to the next; 0 = only I/Os count.
    pub every_ns: u64,
}

/// When I/Os may be issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaceRules {
    /// The rates not to be exceeded.
    pub limits: PerDirection<Option<Limit>>,
    /// The rates to be reached.
    pub minima: PerDirection<Option<Minimum>>,
    /// The schedule of all limits; `None` = their rates are constant.
    pub schedule: Option<Course>,
    /// The percentages of a mix whose directions are drawn: those that are due may go on while others wait.
    pub mix: Option<PerDirection<u32>>,
    /// Pauses.
    pub think: Option<Think>,
    /// Pauses do not count as time in which a rate could have been reached.
    pub ignore_thinktime: bool,
}

/// The pace of a job; `None` = I/Os are issued at once.
pub fn rules(options: &JobOptions, seed: u64) -> Option<PaceRules> {
    let amount = |ios: u64, bytes: u64| match (ios, bytes) {
        (0, 0) => None,
        (0, bytes) => Some((Amount::Bytes, bytes)),
        (ios, _) => Some((Amount::Ios, ios)),
    };
    let limits = each(|direction| {
        let schedule = options.rates.rate_schedule.as_ref();
        let scheduled = schedule.map(|schedule| if schedule.is_bytes { Amount::Bytes } else { Amount::Ios });
        let constant = amount(options.rates.rate_iops[direction], options.rates.rate[direction]);
        let (amount, rate) = scheduled.map(|amount| (amount, 0)).or(constant)?;
        let seed = seed ^ (direction.index() as u64 + 1);
        options.pattern.rw.uses(direction).then_some(Limit {
            amount,
            rate,
            process: options.rates.rate_process,
            seed,
        })
    });
    let minima = each(|direction| {
        let (amount, rate) =
            amount(options.rates.rate_iops_min[direction], options.rates.rate_min[direction])?;
        let cycle_ns = options.rates.rate_cycle.max(1).saturating_mul(1_000_000);
        options.pattern.rw.uses(direction).then_some(Minimum { amount, rate, cycle_ns })
    });
    let think = (options.rates.thinktime > 0).then(|| Think {
        pause_ns: options.rates.thinktime.saturating_mul(1000),
        spin_ns: options.rates.thinktime_spin.saturating_mul(1000),
        cycles: options.rates.thinkcycles,
        // Only time counts if only a time was given.
        blocks: if options.rates.thinktime_iotime > 0 && !options.is_set("thinktime_blocks") {
            u64::MAX
        } else {
            options.rates.thinktime_blocks.max(1)
        },
        by_issue: options.rates.thinktime_blocks_type == ThinktimeBlocks::Issue,
        every_ns: options.rates.thinktime_iotime.saturating_mul(1000),
    });
    let is_paced = limits.values.iter().any(Option::is_some) || minima.values.iter().any(Option::is_some);
    (is_paced || think.is_some()).then(|| PaceRules {
        limits,
        minima,
        schedule: options
            .rates
            .rate_schedule
            .as_ref()
            .map(|it| Course::of(it, options.rates.rate_schedule_speed)),
        mix: options.mix().filter(|_| options.has_choice()),
        think,
        ignore_thinktime: options.rates.rate_ignore_thinktime,
    })
}
