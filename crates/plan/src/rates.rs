//! Checks that rates are consistent, and divides those that hosts share.
//!
//! A direction has one limit and one minimum, each in bytes or in I/Os. No storage can meet a minimum above the limit.

use crate::Problem;
use iolite_options::{JobOptions, RateScope};
use iolite_types::{Direction, PerDirection};

/// The index of this host among several with the same jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The index of this host, from 0.
    pub index: u64,
    /// The number of hosts.
    pub of: u64,
}

impl Share {
    /// Its even part of an amount. The remainder goes to the first hosts, one each, so that the parts add up.
    fn part(self, amount: u64) -> u64 {
        amount / self.of.max(1) + u64::from(self.index < amount % self.of.max(1))
    }

    /// Reduces the rates of a job to this host's part if hosts share them (`rate_scope=all`). Returns the problems.
    pub fn take(self, job: &mut JobOptions) -> Vec<Problem> {
        if job.rates.rate_scope == RateScope::Host {
            return Vec::new();
        }
        if job.rates.rate_schedule.is_some() {
            let why = "rate_scope=all: a rate_schedule is that of each host; leave rate_scope out, and give a part of the rates";
            return vec![Problem::of(job, "rate_scope", why.to_owned())];
        }
        let rates = &mut job.rates;
        let all = [
            ("rate", &mut rates.rate),
            ("rate_iops", &mut rates.rate_iops),
            ("rate_min", &mut rates.rate_min),
            ("rate_iops_min", &mut rates.rate_iops_min),
        ];
        let mut blamed = Vec::new();
        for (option, amounts) in all {
            for amount in amounts.values.iter_mut().filter(|amount| **amount > 0) {
                let part = self.part(*amount);
                let why = format!("{option}={amount}: {} hosts cannot share it (rate_scope=all)", self.of);
                // 0 would mean no limit.
                if part == 0 && !blamed.contains(&(option, why.clone())) {
                    blamed.push((option, why));
                }
                *amount = part;
            }
        }
        blamed.into_iter().map(|(option, why)| Problem::of(job, option, why)).collect()
    }
}

/// The obstacles: each with the option to blame and the reason.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    let used = [options.pattern.rw.reads(), options.pattern.rw.writes(), options.pattern.rw.trims()];
    let mut found: Vec<(&'static str, String)> = Vec::new();
    // Most jobs have the same rates for all directions. One message is enough.
    let mut blame = |option, message| {
        let told = (option, message);
        if !found.contains(&told) {
            found.push(told);
        }
    };
    let any = |rates: &PerDirection<u64>| rates.values.iter().any(|rate| *rate > 0);
    if let Some(schedule) = &options.rates.rate_schedule {
        for (option, is_there) in
            [("rate", any(&options.rates.rate)), ("rate_iops", any(&options.rates.rate_iops))]
        {
            if is_there {
                blame(option, format!("rate_schedule and {option} exclude each other: give one of them"));
            }
        }
        let ends_idle =
            schedule.repeat_us.is_none() && schedule.steps.last().is_some_and(|last| last.to == 0);
        if ends_idle && options.schedule.runtime == 0 {
            let why = "rate_schedule: its last rate is 0, so the job would wait for ever; give a runtime, a last step with a \
                       rate, or TIME:repeat";
            blame("rate_schedule", why.to_owned());
        }
    }
    for direction in Direction::ALL.into_iter().filter(|direction| used[direction.index()]) {
        let (rate, rate_min) = (options.rates.rate[direction], options.rates.rate_min[direction]);
        let (iops, iops_min) = (options.rates.rate_iops[direction], options.rates.rate_iops_min[direction]);
        for (one, other, both) in [
            ("rate", "rate_iops", rate > 0 && iops > 0),
            ("rate_min", "rate_iops_min", rate_min > 0 && iops_min > 0),
        ] {
            if both {
                blame(other, format!("{one} and {other} exclude each other: give one of them"));
            }
        }
        for (limit, minimum, asked, least) in
            [("rate", "rate_min", rate, rate_min), ("rate_iops", "rate_iops_min", iops, iops_min)]
        {
            if asked > 0 && least > asked {
                blame(minimum, format!("{minimum}={least}: is more than {limit}={asked} allows"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{PatternOptions, ReadWrite};
    use iolite_types::PerDirection;

    fn found(rw: ReadWrite, change: impl FnOnce(&mut JobOptions)) -> Vec<String> {
        let mut options = JobOptions {
            pattern: PatternOptions { rw, ..PatternOptions::default() },
            ..JobOptions::default()
        };
        change(&mut options);
        obstacles(&options).into_iter().map(|(_, message)| message).collect()
    }

    #[test]
    fn a_direction_has_one_limit_and_one_minimum() {
        let both = |o: &mut JobOptions| {
            (o.rates.rate, o.rates.rate_iops) = (PerDirection::all(1 << 20), PerDirection::new(0, 100, 0));
        };
        assert_eq!(found(ReadWrite::Read, both), [""; 0]);
        let refused = ["rate and rate_iops exclude each other: give one of them"];
        assert_eq!(found(ReadWrite::Write, both), refused);
        assert_eq!(found(ReadWrite::RandRw, both), refused);
        let minima = found(ReadWrite::RandRw, |o| {
            (o.rates.rate_min, o.rates.rate_iops_min) = (PerDirection::all(1), PerDirection::all(1));
        });
        assert_eq!(minima, ["rate_min and rate_iops_min exclude each other: give one of them"]);
    }

    #[test]
    fn parts_of_a_rate_add_up() {
        let shared = |index, of, scope| {
            let mut job = JobOptions::default();
            job.rates.rate_scope = scope;
            (job.rates.rate, job.rates.rate_iops_min) = (PerDirection::new(11, 3, 0), PerDirection::all(3));
            let problems = Share { index, of }.take(&mut job);
            (job.rates.rate.values, job.rates.rate_iops_min.values, problems.len())
        };
        let parts: Vec<_> = (0..3).map(|index| shared(index, 3, RateScope::All)).collect();
        assert_eq!(parts, [([4, 1, 0], [1; 3], 0), ([4, 1, 0], [1; 3], 0), ([3, 1, 0], [1; 3], 0)]);
        assert_eq!(shared(2, 3, RateScope::Host), ([11, 3, 0], [3; 3], 0));
        assert_eq!(shared(0, 1, RateScope::All), ([11, 3, 0], [3; 3], 0));
        // A host would have no limit.
        assert_eq!(shared(3, 4, RateScope::All).2, 2);
    }

    #[test]
    fn a_minimum_is_within_its_limit() {
        let iops = |limit, minimum| {
            found(ReadWrite::Read, |o| {
                (o.rates.rate_iops, o.rates.rate_iops_min) =
                    (PerDirection::all(limit), PerDirection::all(minimum));
            })
        };
        assert_eq!(iops(1000, 1000), [""; 0]);
        assert_eq!(iops(0, 1000), [""; 0]);
        assert_eq!(iops(1000, 1001), ["rate_iops_min=1001: is more than rate_iops=1000 allows"]);
        let bytes = found(ReadWrite::Read, |o| {
            (o.rates.rate, o.rates.rate_min) = (PerDirection::new(10, 1, 1), PerDirection::new(11, 1, 1));
        });
        assert_eq!(bytes, ["rate_min=11: is more than rate=10 allows"]);
    }
}
