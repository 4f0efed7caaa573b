//! The way along a course: when the next I/O of a rate that changes over time is due.

use iolite_plan::resolve::{Course, CourseStep};
use std::sync::Arc;

/// A time that never comes.
const NEVER_NS: u64 = 1 << 62;

/// A place on a course, which only moves on.
#[derive(Clone, Debug)]
pub(crate) struct OnCourse {
    course: Arc<Course>,
    step: usize,
    /// When the present period began, and the amount until then.
    since: u64,
    before: u128,
    /// What has been issued, in parts ([`Course::UNIT`]).
    issued: u128,
}

impl OnCourse {
    /// The beginning.
    pub(crate) fn new(course: Arc<Course>) -> OnCourse {
        OnCourse { course, step: 0, since: 0, before: 0, issued: 0 }
    }

    /// Counts what was issued, in parts.
    pub(crate) fn count(&mut self, parts: u128) {
        self.issued += parts;
    }

    /// When the next I/O is due, in nanoseconds from the beginning.
    pub(crate) fn due(&mut self) -> u64 {
        loop {
            let step = self.course.steps[self.step];
            let left = self.issued - self.before - step.before;
            // Where the rate is 0, the next I/O is due behind it.
            if step.length_ns == 0 || left < step.amount() {
                let reached = reached(&step, left);
                return self.since.saturating_add(step.at_ns).saturating_add(reached).min(NEVER_NS);
            }
            self.step += 1;
            if self.step == self.course.steps.len() {
                let (length, amount) =
                    self.course.period.expect("only a course that repeats has a last step that ends");
                // Many periods at once, if a block is larger than what they have.
                let whole = (self.issued - self.before) / amount;
                let passed = u64::try_from(whole).unwrap_or(u64::MAX).saturating_mul(length);
                self.since = self.since.saturating_add(passed);
                self.before += whole * amount;
                self.step = 0;
            }
        }
    }
}

/// How long after the beginning of a step an amount is reached, which the step has.
fn reached(step: &CourseStep, amount: u128) -> u64 {
    let CourseStep { from, to, length_ns, .. } = *step;
    if from == to {
        return match from {
            0 => NEVER_NS,
            _ => u64::try_from(amount / (2 * u128::from(from))).unwrap_or(NEVER_NS),
        };
    }
    if amount == 0 {
        return 0;
    }
    // 2·from·t + slope·t² = amount, solved in the form that loses no digits for small slopes.
    let slope = (to as f64 - from as f64) / length_ns as f64;
    let (from, amount) = (2.0 * from as f64, amount as f64);
    let root = (from * from + 4.0 * slope * amount).max(0.0).sqrt();
    ((2.0 * amount / (from + root)) as u64).min(length_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{RateSchedule, RateStep};

    const SECOND: u64 = 1_000_000_000;

    fn course(steps: &[(u64, Option<u64>, u64, u64)], repeat: Option<u64>, speed: u64) -> OnCourse {
        let steps = steps.iter().map(|&(at, until, from, to)| RateStep {
            at_us: at * 1_000_000,
            until_us: until.map(|until| until * 1_000_000),
            from,
            to,
        });
        let repeat_us = repeat.map(|repeat| repeat * 1_000_000);
        let schedule = RateSchedule { is_bytes: false, steps: steps.collect(), repeat_us };
        OnCourse::new(Arc::new(Course::of(&schedule, speed)))
    }

    /// How many I/Os are due before each of these seconds.
    fn due_before(mut course: OnCourse, seconds: &[u64]) -> Vec<u64> {
        let mut count = 0;
        let mut counts = Vec::new();
        for second in seconds {
            while course.due() < second * SECOND {
                course.count(Course::UNIT);
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
        end.count(2 * Course::UNIT);
        assert_eq!(end.due(), NEVER_NS);
    }

    #[test]
    fn large_blocks_skip_what_they_use_up() {
        let mut bytes = course(&[(0, None, 1000, 1000), (1, None, 0, 0)], Some(2), 1);
        bytes.count(10_500 * Course::UNIT);
        assert_eq!(bytes.due(), 20 * SECOND + SECOND / 2);
    }
}
