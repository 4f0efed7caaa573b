//! The course of a rate over time (`rate_schedule`): which amount is due until when.

use iolite_options::{RateSchedule, RateStep};
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
