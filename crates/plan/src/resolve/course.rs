//! The course of a rate over time (`rate_schedule`): which amount is due until when.

use iolite_options::{RateSchedule, RateStep};
use serde::{Deserialize, Serialize};

/// Amounts are counted in this part of a byte or an I/O, so that the amount of any nanosecond of a ramp is whole.
const UNIT: u128 = 2_000_000_000;

/// A time that never comes.
const NEVER_NS: u64 = 1 << 62;

/// A course: steps that follow each other without gaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    steps: Vec<CourseStep>,
    /// When it begins anew, and the amount until then; `None` = the last step has no end.
    period: Option<(u64, u128)>,
}

/// A step of a course.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CourseStep {
    /// When it begins, in nanoseconds.
    pub at_ns: u64,
    /// Its length; 0 = it is the last one, and has no end.
    pub length_ns: u64,
    /// The rate at its begin, per second.
    pub from: u64,
    /// The rate at its end.
    pub to: u64,
    /// The amount before it.
    before: u128,
}

impl CourseStep {
    /// The amount of the step.
    fn amount(&self) -> u128 {
        (u128::from(self.from) + u128::from(self.to)) * u128::from(self.length_ns)
    }

    /// How long after its begin this amount is reached. The step has at least so much.
    fn reached(&self, amount: u128) -> u64 {
        let CourseStep { from, to, length_ns, .. } = *self;
        if from == to {
            return match from {
                0 => NEVER_NS,
                _ => u64::try_from(amount / (2 * u128::from(from))).unwrap_or(NEVER_NS),
            };
        }
        if amount == 0 {
            return 0;
        }
        // 2·from·t + slope·t² = amount, in a form that loses no digits for small slopes.
        let slope = (to as f64 - from as f64) / length_ns as f64;
        let (from, amount) = (2.0 * from as f64, amount as f64);
        let root = (from * from + 4.0 * slope * amount).max(0.0).sqrt();
        ((2.0 * amount / (from + root)) as u64).min(length_ns)
    }
}

impl Course {
    /// The course of a schedule whose time goes this many times faster.
    pub(super) fn of(schedule: &RateSchedule, speed: u64) -> Course {
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
        match schedule.repeat_us.map(ns) {
            Some(repeat) => {
                course.add(end, repeat, rate, rate);
                let all = course.steps.last().map_or(0, |last| last.before + last.amount());
                // (If the speed has left nothing, the last rate stays.)
                course.period = (all > 0).then_some((repeat, all));
            }
            None => course.push(end, 0, rate, rate),
        }
        if course.period.is_none() && course.steps.last().is_none_or(|last| last.length_ns > 0) {
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

/// A place on a course, which only moves on.
#[derive(Clone, Debug)]
pub struct OnCourse {
    course: Course,
    step: usize,
    /// When the present period began, and the amount until then.
    since: u64,
    before: u128,
    /// What has been issued.
    issued: u128,
}

impl OnCourse {
    /// The begin.
    pub fn new(course: Course) -> OnCourse {
        OnCourse { course, step: 0, since: 0, before: 0, issued: 0 }
    }

    /// Counts an amount that was issued: bytes, or I/Os. `factor`: how much longer than at an even pace.
    pub fn count(&mut self, amount: u64, factor: f64) {
        // A float for the draw only: even paces are exact.
        self.issued += match factor {
            1.0 => u128::from(amount) * UNIT,
            _ => (amount as f64 * UNIT as f64 * factor) as u128,
        };
    }

    /// When the next I/O is due, in nanoseconds from the begin.
    pub fn due(&mut self) -> u64 {
        loop {
            let step = self.course.steps[self.step];
            let left = self.issued - self.before - step.before;
            // Where the rate is 0, the next I/O is due behind it.
            if step.length_ns == 0 || left < step.amount() {
                let reached = step.reached(left);
                return self.since.saturating_add(step.at_ns).saturating_add(reached).min(NEVER_NS);
            }
            self.step += 1;
            if self.step == self.course.steps.len() {
                let (length, amount) =
                    self.course.period.expect("only a course that repeats has a last step that ends");
                // Many periods at once, if a block is larger than what they have.
                let whole = (self.issued - self.before) / amount;
                self.since = self
                    .since
                    .saturating_add(u64::try_from(whole).unwrap_or(u64::MAX).saturating_mul(length));
                self.before += whole * amount;
                self.step = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn course(steps: &[(u64, Option<u64>, u64, u64)], repeat: Option<u64>, speed: u64) -> OnCourse {
        let steps = steps.iter().map(|&(at, until, from, to)| RateStep {
            at_us: at * 1_000_000,
            until_us: until.map(|until| until * 1_000_000),
            from,
            to,
        });
        let repeat_us = repeat.map(|repeat| repeat * 1_000_000);
        OnCourse::new(Course::of(&RateSchedule { is_bytes: false, steps: steps.collect(), repeat_us }, speed))
    }

    /// How many I/Os are due before each of these seconds.
    fn due_before(mut course: OnCourse, seconds: &[u64]) -> Vec<u64> {
        let mut count = 0;
        let mut counts = Vec::new();
        for second in seconds {
            while course.due() < second * SECOND {
                course.count(1, 1.0);
                count += 1;
            }
            counts.push(count);
        }
        counts
    }

    #[test]
    fn steps_have_their_rates() {
        let steps = [(1, None, 100, 100), (3, None, 10, 10)];
        assert_eq!(due_before(course(&steps, None, 1), &[1, 2, 3, 4, 14]), [0, 100, 200, 210, 310]);
        // Twice as fast: half of the time at each rate.
        assert_eq!(due_before(course(&steps, None, 2), &[1, 2]), [50, 105]);
    }

    #[test]
    fn a_ramp_has_the_mean_of_its_ends() {
        let up = [(0, Some(10), 0, 1000)];
        let counts = due_before(course(&up, None, 1), &[5, 10, 11]);
        for (count, exact) in counts.iter().zip([1250, 5000, 6000]) {
            assert!(count.abs_diff(exact) <= 1, "{counts:?}");
        }
        let down = [(0, Some(10), 1000, 0), (10, None, 7, 7)];
        let counts = due_before(course(&down, None, 1), &[5, 10, 11]);
        for (count, exact) in counts.iter().zip([3750, 5000, 5007]) {
            assert!(count.abs_diff(exact) <= 1, "{counts:?}");
        }
    }

    #[test]
    fn bursts_come_again_and_pauses_are_kept() {
        let bursts = [(0, None, 50, 50), (1, None, 0, 0)];
        assert_eq!(
            due_before(course(&bursts, Some(4), 1), &[1, 4, 5, 8, 9, 400]),
            [50, 50, 100, 100, 150, 5000]
        );
        let mut end = course(&[(0, None, 2, 2), (1, None, 0, 0)], None, 1);
        end.count(2, 1.0);
        assert_eq!(end.due(), NEVER_NS);
    }

    #[test]
    fn large_blocks_skip_what_they_use_up() {
        let mut bytes = course(&[(0, None, 1000, 1000), (1, None, 0, 0)], Some(2), 1);
        bytes.count(10_500, 1.0);
        assert_eq!(bytes.due(), 20 * SECOND + SECOND / 2);
    }
}
