//! The course of a rate over time (`rate_schedule`): which amount is due until when.

use super::Amount;
use iolite_options::{JobOptions, RateSchedule, RateStep};
use iolite_stats::Asked;
use serde::{Deserialize, Serialize};

/// A course: steps that follow each other without gaps. Amounts are in parts of a byte or an I/O ([`Course::UNIT`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// The steps; there is at least one.
    pub steps: Vec<CourseStep>,
    /// When it begins anew, and the amount until then, which is above 0; `None` = the last step has no end.
    pub period: Option<(u64, u128)>,
}

/// A step of a course.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CourseStep {
    /// When it begins, in nanoseconds.
    pub at_ns: u64,
    /// Its length; 0 = it is the last one, and has no end.
    pub length_ns: u64,
    /// The rate at its beginning, per second.
    pub from: u64,
    /// The rate at its end.
    pub to: u64,
    /// The amount before it.
    pub before: u128,
}

impl CourseStep {
    /// The amount of the step.
    pub fn amount(&self) -> u128 {
        (u128::from(self.from) + u128::from(self.to)) * u128::from(self.length_ns)
    }

    /// The amount of its beginning, this long.
    fn reached(&self, ns: u64) -> u128 {
        let (from, to, ns) = (u128::from(self.from), u128::from(self.to), u128::from(ns));
        if from == to {
            return 2 * from * ns;
        }
        // The change of the rate after ns, times ns. A float has digits enough for what is only shown.
        let changed = (ns as f64 / self.length_ns as f64 * from.abs_diff(to) as f64 * ns as f64) as u128;
        if to > from { 2 * from * ns + changed } else { (2 * from * ns).saturating_sub(changed) }
    }
}

impl Course {
    /// A byte or an I/O has this many parts: a rate of 1 per second is 2 of them in a nanosecond, so that the amount of each
    /// nanosecond of a ramp is whole.
    pub const UNIT: u128 = 2_000_000_000;

    /// The course of a schedule whose time goes this many times faster.
    pub fn of(schedule: &RateSchedule, speed: u64) -> Course {
        let ns = |us: u64| us.saturating_mul(1000) / speed.max(1);
        let mut course = Course { steps: Vec::new(), period: None };
        let mut end = 0;
        let mut rate = 0;
        for &RateStep { at_us, until_us, from, to } in &schedule.steps {
            course.add(end, ns(at_us), rate, rate);
            end = ns(at_us);
            if let Some(until) = until_us {
                course.add(end, ns(until), from, to);
                end = ns(until);
            }
            rate = to;
        }
        if let Some(repeat) = schedule.repeat_us.map(ns) {
            course.add(end, repeat, rate, rate);
            let all = course.steps.last().map_or(0, |last| last.before + last.amount());
            course.period = (all > 0).then_some((repeat, all));
        }
        // (Also if the speed has left nothing to repeat.)
        if course.period.is_none() {
            course.push(end, 0, rate, rate);
        }
        course
    }

    /// The amount until this time from the beginning, rounded down.
    pub fn until(&self, ns: u64) -> u64 {
        let (periods, ns) = self.period.map_or((0, ns), |(length, _)| (ns / length, ns % length));
        let whole = self.period.map_or(0, |(_, amount)| u128::from(periods) * amount);
        let step = &self.steps[self.steps.partition_point(|step| step.at_ns <= ns).max(1) - 1];
        u64::try_from((whole + step.before + step.reached(ns - step.at_ns)) / Course::UNIT)
            .unwrap_or(u64::MAX)
    }

    fn add(&mut self, from_ns: u64, until_ns: u64, from: u64, to: u64) {
        if until_ns > from_ns {
            self.push(from_ns, until_ns - from_ns, from, to);
        }
    }

    fn push(&mut self, at_ns: u64, length_ns: u64, from: u64, to: u64) {
        let before = self.steps.last().map_or(0, |last| last.before + last.amount());
        self.steps.push(CourseStep { at_ns, length_ns, from, to, before });
    }
}

/// What each worker of a job is asked to do over time, in each of its directions.
#[derive(Clone, Debug)]
pub struct Demand {
    amount: Amount,
    course: Course,
}

impl Demand {
    /// `None` = the job has no schedule that its own times follow ([`JobOptions::fixed_schedule`]).
    pub fn of(options: &JobOptions) -> Option<Demand> {
        let schedule = options.fixed_schedule()?;
        let amount = if schedule.is_bytes { Amount::Bytes } else { Amount::Ios };
        Some(Demand { amount, course: Course::of(schedule, options.rates.rate_schedule_speed) })
    }

    /// What was asked for this long after the worker began.
    pub fn until(&self, ns: u64) -> Asked {
        let amount = self.course.until(ns);
        match self.amount {
            Amount::Ios => Asked { ios: amount, bytes: 0 },
            Amount::Bytes => Asked { ios: 0, bytes: amount },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_amount_until_any_time() {
        let step = |at: u64, until: Option<u64>, from, to| RateStep {
            at_us: at * 1_000_000,
            until_us: until.map(|until| until * 1_000_000),
            from,
            to,
        };
        let steps = vec![step(1, None, 100, 100), step(2, Some(4), 100, 0), step(4, Some(6), 0, 50)];
        let at =
            |course: &Course, seconds: [f64; 7]| seconds.map(|second| course.until((second * 1e9) as u64));
        let mut schedule = RateSchedule { is_bytes: false, steps, repeat_us: None };
        let course = Course::of(&schedule, 1);
        assert_eq!(at(&course, [0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0]), [0, 0, 50, 100, 175, 200, 212]);
        assert_eq!(at(&course, [6.0, 8.0, 100.0, 0.5, 2.5, 3.5, 5.5]), [250, 350, 4950, 0, 143, 193, 228]);
        schedule.repeat_us = Some(7_000_000);
        let course = Course::of(&schedule, 1);
        // 250 in the steps, 50 in the second behind them.
        assert_eq!(
            at(&course, [7.0, 8.5, 14.0, 70.0, 72.0, 6.5, 7.5]),
            [300, 350, 600, 3000, 3100, 275, 300]
        );
        assert_eq!(Course::of(&schedule, 2).until(3_500_000_000), 150);
    }
}
