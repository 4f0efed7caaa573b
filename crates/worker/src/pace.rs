//! When the next I/O may be issued: rates and think time.
//!
//! A rate is a schedule, not a gap: the n-th byte (or I/O) of a direction is due at origin + n / rate. A job that falls
//! behind catches up, as with fio. With `rate_ignore_thinktime`, a job does not catch up on think time: each pause
//! moves the origin by its length. With `rate_process=poisson` the gaps are drawn from an exponential distribution with
//! the same mean, so that I/Os arrive like those of many independent users. A rate may change over time (`rate_schedule`).
//!
//! This decides when; `io_loop/waiting.rs` waits until then.

use crate::course::OnCourse;
use iolite_plan::resolve::RateProcess;
use iolite_plan::resolve::{self, Amount, Course, PaceRules};
use iolite_types::{Direction, PerDirection};
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;

/// The time after the start (or the ramp) in which minimum rates are not checked, as in fio.
const SETTLING_NS: u64 = 2 * SECOND_NS;

/// Decides when I/Os may be issued.
#[derive(Clone, Debug)]
pub struct Pace {
    limits: PerDirection<Option<Limit>>,
    minima: PerDirection<Option<Minimum>>,
    /// The percentages of a mix, in which one direction may continue while others wait.
    mix: Option<PerDirection<u32>>,
    random: u64,
    think: Option<Think>,
    ignore_thinktime: bool,
}

/// The I/O that may be issued next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The earliest time, in nanoseconds of the clock.
    pub at: u64,
    /// The only direction allowed; `None` = the workload chooses.
    pub direction: Option<Direction>,
}

/// The schedule of one direction.
#[derive(Clone, Debug)]
struct Limit {
    amount: Amount,
    /// Bytes or I/Os per second.
    rate: u64,
    process: RateProcess,
    /// The rate changes over time.
    course: Option<OnCourse>,
    /// The start of the schedule.
    origin: u64,
    /// Bytes or I/Os issued since the origin.
    issued: u64,
    /// When the next I/O may be issued.
    due: u64,
    random: u64,
}

/// A minimum rate that ends the job when it is missed.
#[derive(Clone, Debug)]
struct Minimum {
    amount: Amount,
    rate: u64,
    cycle_ns: u64,
    /// When the present cycle began, moved by the time that does not count. Before the first cycle: the earliest time
    /// at which it may begin.
    since: u64,
    is_watched: bool,
    /// The amount that has completed in the cycle. It is counted here, because the job's own counters may be reset in
    /// mid-cycle.
    done: u64,
}

/// A missed minimum rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The option.
    pub option: &'static str,
    /// The rate that was asked for, per second.
    pub asked: u64,
    /// The rate that was measured, per second.
    pub got: u64,
}

/// Pauses between I/Os.
#[derive(Clone, Debug)]
struct Think {
    rules: resolve::Think,
    /// I/Os since the last pause.
    seen: u64,
    /// When the last pause ended, in nanoseconds of the clock.
    since: u64,
}

/// A pause that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The whole pause, in nanoseconds.
    pub length_ns: u64,
    /// The part of the pause that is spent spinning, in nanoseconds.
    pub spin_ns: u64,
    /// Processor cycles to burn in addition.
    pub cycles: u64,
}

impl Pace {
    /// The pace that these rules describe.
    pub fn new(rules: &PaceRules) -> Pace {
        let course = rules.schedule.clone().map(Arc::new);
        let limit = |limit: resolve::Limit| Limit {
            amount: limit.amount,
            rate: limit.rate,
            process: limit.process,
            course: course.clone().map(OnCourse::new),
            origin: 0,
            issued: 0,
            due: 0,
            random: limit.seed,
        };
        let minimum = |minimum: resolve::Minimum| Minimum {
            amount: minimum.amount,
            rate: minimum.rate,
            cycle_ns: minimum.cycle_ns,
            since: 0,
            is_watched: false,
            done: 0,
        };
        Pace {
            limits: PerDirection { values: rules.limits.values.map(|rule| rule.map(limit)) },
            minima: PerDirection { values: rules.minima.values.map(|rule| rule.map(minimum)) },
            mix: rules.mix,
            random: 0x9e37_79b9_7f4a_7c15,
            think: rules.think.map(|rules| Think { rules, seen: 0, since: 0 }),
            ignore_thinktime: rules.ignore_thinktime,
        }
    }

    /// The job starts.
    pub fn start(&mut self, now: u64) {
        for limit in self.limits.values.iter_mut().flatten() {
            limit.origin = now;
            limit.due = now + limit.course.as_mut().map_or(0, OnCourse::due);
        }
        self.watch_from(now);
        if let Some(think) = &mut self.think {
            think.since = now;
        }
    }

    /// Counting starts, with the job or after its ramp. Minimum rates are checked only after the settling time.
    pub fn watch_from(&mut self, now: u64) {
        for minimum in self.minima.values.iter_mut().flatten() {
            minimum.since = now + SETTLING_NS;
            minimum.done = 0;
            minimum.is_watched = false;
        }
    }

    /// When the next I/O may be issued, and in which direction.
    #[inline]
    pub fn turn(&mut self, now: u64) -> Turn {
        match self.mix {
            // One direction, or trims and writes that alternate.
            None => Turn { at: self.last_due(|_| true), direction: None },
            Some(shares) => self.turn_of(shares, now),
        }
    }

    /// When the I/O of this direction is due.
    fn due(&self, direction: Direction) -> u64 {
        self.limits[direction].as_ref().map_or(0, |limit| limit.due)
    }

    /// When the last of these directions is due.
    fn last_due(&self, is_meant: impl Fn(Direction) -> bool) -> u64 {
        Direction::ALL
            .map(|direction| if is_meant(direction) { self.due(direction) } else { 0 })
            .into_iter()
            .max()
            .unwrap_or(0)
    }

    /// [`turn`](Self::turn) of directions with these shares.
    fn turn_of(&mut self, shares: PerDirection<u32>, now: u64) -> Turn {
        let last = self.last_due(|direction| shares[direction] > 0);
        // None has to wait.
        if last <= now {
            return Turn { at: last, direction: None };
        }
        let mixed = || Direction::ALL.into_iter().filter(|direction| shares[*direction] > 0);
        let due = Direction::ALL.map(|direction| self.due(direction));
        let due = |direction: Direction| due[direction.index()];
        let is_due = |direction: &Direction| due(*direction) <= now;
        let ready: u32 = mixed().filter(is_due).map(|direction| shares[direction]).sum();
        let next = if ready == 0 {
            mixed().min_by_key(|direction| due(*direction))
        } else {
            let mut number = (random_bits(&mut self.random) % u64::from(ready)) as u32;
            mixed().filter(is_due).find(|direction| {
                let is_it = number < shares[*direction];
                number = number.wrapping_sub(shares[*direction]);
                is_it
            })
        };
        Turn { at: next.map_or(0, due), direction: next }
    }

    /// Counts an issued I/O. Returns the time at which its rate scheduled it; `None` = its direction has no rate.
    pub fn issued(&mut self, direction: Direction, bytes: u64) -> Option<u64> {
        let limit = self.limits[direction].as_mut();
        let intended = limit.map(|limit| {
            let due = limit.due;
            limit.count(bytes);
            due
        });
        if let Some(think) = &mut self.think
            && think.rules.by_issue
        {
            think.seen += 1;
        }
        intended
    }

    /// Counts a completed I/O, whose last part had this many bytes.
    pub fn completed(&mut self, direction: Direction, bytes: u64) {
        if let Some(minimum) = &mut self.minima[direction] {
            minimum.done += minimum.amount.of(bytes);
        }
        if let Some(think) = &mut self.think
            && !think.rules.by_issue
        {
            think.seen += 1;
        }
    }

    /// Counts a completed part of a short I/O whose rest follows.
    pub fn partly_completed(&mut self, direction: Direction, bytes: u64) {
        if let Some(minimum) = &mut self.minima[direction]
            && minimum.amount == Amount::Bytes
        {
            minimum.done += bytes;
        }
    }

    /// The most I/Os that may be in flight: as many as there are between two pauses.
    pub fn most_in_flight(&self) -> u64 {
        self.think.as_ref().map_or(u64::MAX, |think| think.rules.blocks)
    }

    /// The pause that is due, if any. Each is returned once. Completions from now on count towards the next.
    pub fn pause(&mut self, now: u64) -> Option<Pause> {
        let think = self.think.as_mut()?;
        let by_time = think.rules.every_ns > 0 && now.saturating_sub(think.since) >= think.rules.every_ns;
        if think.seen < think.rules.blocks && !by_time {
            return None;
        }
        think.seen = think.seen.saturating_sub(think.rules.blocks);
        Some(Pause {
            length_ns: think.rules.pause_ns,
            spin_ns: think.rules.spin_ns,
            cycles: think.rules.cycles,
        })
    }

    /// A pause has ended.
    pub fn paused(&mut self, began: u64, now: u64) {
        if let Some(think) = &mut self.think {
            think.since = now;
        }
        if self.ignore_thinktime {
            for limit in self.limits.values.iter_mut().flatten() {
                limit.origin += now - began;
                limit.due += now - began;
            }
        }
    }

    /// The job has read back its writes. The workload was blocked meanwhile, so this time does not count for minimum
    /// rates.
    pub fn read_back(&mut self, began: u64, now: u64) {
        for minimum in self.minima.values.iter_mut().flatten() {
            minimum.since += now - began;
        }
    }

    /// The minimum rate that was missed in a cycle that has ended, if any. Do not call this during the ramp: the first
    /// cycle begins with the first call after the settling time.
    pub fn missed(&mut self, now: u64) -> Option<Missed> {
        self.minima.values.iter_mut().flatten().find_map(|minimum| minimum.missed(now))
    }
}

impl Minimum {
    fn missed(&mut self, now: u64) -> Option<Missed> {
        let cycle_ns = if self.is_watched { self.cycle_ns } else { 0 };
        if now < self.since.saturating_add(cycle_ns) {
            return None;
        }
        let span = u128::from(now - std::mem::replace(&mut self.since, now)).max(1);
        let done = std::mem::take(&mut self.done);
        if !std::mem::replace(&mut self.is_watched, true) {
            return None;
        }
        // A cycle ends a little late, with the I/O that follows it. Round to the nearest, or a job that runs exactly at
        // its minimum would miss it.
        let got = ((u128::from(done) * u128::from(SECOND_NS) + span / 2) / span) as u64;
        let option = match self.amount {
            Amount::Bytes => "rate_min",
            Amount::Ios => "rate_iops_min",
        };
        (got < self.rate).then_some(Missed { option, asked: self.rate, got })
    }
}

impl Limit {
    fn count(&mut self, bytes: u64) {
        let amount = self.amount.of(bytes);
        if let Some(course) = &mut self.course {
            let even = u128::from(amount) * Course::UNIT;
            course.count(match self.process {
                RateProcess::Linear => even,
                RateProcess::Poisson => (exponential(&mut self.random) * even as f64) as u128,
            });
            self.due = self.origin + course.due();
            return;
        }
        match self.process {
            RateProcess::Linear => {
                self.issued += amount;
                let after = u128::from(self.issued) * u128::from(SECOND_NS) / u128::from(self.rate);
                self.due = self.origin + after as u64;
            }
            RateProcess::Poisson => {
                let mean = amount as f64 * SECOND_NS as f64 / self.rate as f64;
                self.due += (exponential(&mut self.random) * mean) as u64;
            }
        }
    }
}

/// The next 53 bits of xorshift64* (Vigna, 2016).
fn random_bits(random: &mut u64) -> u64 {
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
}

/// A value with an exponential distribution and the mean 1: -ln(u).
fn exponential(random: &mut u64) -> f64 {
    -((random_bits(random) + 1) as f64 / (1u64 << 53) as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{JobOptions, RateOptions, ReadWrite};
    use iolite_plan::resolve::pace_rules;

    fn pace(change: impl FnOnce(&mut JobOptions)) -> Pace {
        let mut options = JobOptions::default();
        change(&mut options);
        let mut pace = Pace::new(&pace_rules(&options, 99).unwrap());
        pace.start(1000);
        pace
    }

    #[test]
    fn a_job_without_rates_has_no_pace() {
        assert!(pace_rules(&JobOptions::default(), 1).is_none());
        // A rate for a direction that the job does not use has no effect.
        let options = JobOptions {
            rates: RateOptions { rate: PerDirection::new(0, 1, 0), ..RateOptions::default() },
            ..JobOptions::default()
        };
        assert!(pace_rules(&options, 1).is_none());
    }

    #[test]
    fn a_rate_is_a_schedule() {
        let mut pace = pace(|o| o.rates.rate_iops[Direction::Read] = 3);
        let due: Vec<u64> = (0..4)
            .map(|_| {
                let at = pace.turn(u64::MAX / 2).at;
                pace.issued(Direction::Read, 4096);
                at
            })
            .collect();
        // No drift: after three I/Os the next is due at exactly one second.
        assert_eq!(due, [1000, 1000 + 333_333_333, 1000 + 666_666_666, 1000 + SECOND_NS]);
    }

    #[test]
    fn bytes_count_as_they_are() {
        let mut pace = pace(|o| o.rates.rate[Direction::Read] = 1 << 20);
        pace.issued(Direction::Read, 1 << 19);
        pace.issued(Direction::Read, 1 << 18);
        assert_eq!(pace.turn(0).at, 1000 + SECOND_NS * 3 / 4);
    }

    #[test]
    fn in_a_mix_the_one_that_is_due_goes_on() {
        let mut pace = pace(|o| {
            o.pattern.rw = ReadWrite::RandRw;
            o.pattern.rwmixread = 50;
            o.rates.rate_iops = PerDirection::new(10, 5, 5);
        });
        assert_eq!(pace.turn(1000).direction, None);
        pace.issued(Direction::Read, 4096);
        assert_eq!(pace.turn(1000), Turn { at: 1000, direction: Some(Direction::Write) });
        pace.issued(Direction::Write, 4096);
        assert_eq!(pace.turn(1000), Turn { at: 100_001_000, direction: Some(Direction::Read) });
    }

    /// Those that are due go on by their shares while another one waits.
    #[test]
    fn three_directions_wait_for_themselves_only() {
        let mut pace = pace(|o| {
            (o.pattern.rw, o.pattern.rwtmix) = (ReadWrite::RandRwTrim, Some(PerDirection::new(50, 40, 10)));
            o.rates.rate_iops[Direction::Read] = 10;
        });
        assert_eq!(pace.turn(1000).direction, None);
        pace.issued(Direction::Read, 4096);
        let turns: Vec<Direction> = (0..1000).map(|_| pace.turn(1000).direction.unwrap()).collect();
        let writes = turns.iter().filter(|turn| **turn == Direction::Write).count();
        assert!(!turns.contains(&Direction::Read) && (700..900).contains(&writes), "{writes}");
        assert_eq!(pace.turn(100_001_000).direction, None);
        // If none is due, the next one is that which is due first.
        let mut pace = self::pace(|o| {
            (o.pattern.rw, o.pattern.rwtmix) = (ReadWrite::RwTrim, Some(PerDirection::new(0, 40, 60)));
            o.rates.rate_iops = PerDirection::new(1, 10, 20);
        });
        for direction in [Direction::Write, Direction::Trim] {
            pace.issued(direction, 4096);
        }
        assert_eq!(pace.turn(1000), Turn { at: 50_001_000, direction: Some(Direction::Trim) });
    }

    /// A rate does not add writes to a mix without writes.
    #[test]
    fn a_mix_of_one_direction_has_its_rate_and_no_choice() {
        for (share, direction) in [(100, Direction::Read), (0, Direction::Write)] {
            for rates in
                [PerDirection::new(10, 10, 10), PerDirection::new(10, 0, 0), PerDirection::new(0, 10, 0)]
            {
                let mut pace = pace(|o| {
                    o.pattern.rw = ReadWrite::RandRw;
                    o.pattern.rwmixread = share;
                    o.rates.rate_iops = rates;
                });
                pace.issued(direction, 4096);
                let at = if rates[direction] > 0 { 100_001_000 } else { 1000 };
                assert_eq!(pace.turn(1000), Turn { at, direction: None }, "{share}, {rates:?}");
            }
        }
    }

    #[test]
    fn poisson_distances_have_the_mean_and_spread_of_their_law() {
        let mut pace = pace(|o| {
            o.rates.rate_iops[Direction::Read] = 1000;
            o.rates.rate_process = RateProcess::Poisson;
        });
        let mut last = 1000;
        let gaps: Vec<f64> = (0..20_000)
            .map(|_| {
                pace.issued(Direction::Read, 4096);
                let at = pace.turn(0).at;
                let gap = (at - last) as f64;
                last = at;
                gap
            })
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        // The standard error of the mean of 20 000 exponential values is 0.7%.
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "{mean}");
        assert!((deviation / 1e6 - 1.0).abs() < 0.05, "{deviation}");
    }

    #[test]
    fn pauses_come_by_blocks_and_shift_the_schedule_if_asked() {
        for (ignore, expected) in [(false, 1000 + SECOND_NS / 10), (true, 1500 + SECOND_NS / 10)] {
            let mut pace = pace(|o| {
                o.rates.rate_iops[Direction::Read] = 10;
                o.rates.thinktime = 7;
                o.rates.thinktime_spin = 3;
                o.rates.thinktime_blocks = 2;
                o.rates.rate_ignore_thinktime = ignore;
            });
            pace.completed(Direction::Read, 1);
            assert_eq!(pace.pause(2000), None);
            pace.completed(Direction::Read, 1);
            assert_eq!(pace.pause(2000), Some(Pause { length_ns: 7000, spin_ns: 3000, cycles: 0 }));
            pace.issued(Direction::Read, 1);
            pace.paused(2000, 2500);
            assert_eq!(pace.pause(2500), None);
            assert_eq!(pace.turn(0).at, expected);
        }
    }

    /// Depth 3, a pause after 2: an I/O that completes while the job drains for a pause counts towards the next pause.
    #[test]
    fn ios_in_flight_at_a_pause_count_towards_the_next() {
        let mut pace = pace(|o| {
            o.rates.thinktime = 7;
            o.rates.thinktime_blocks = 2;
        });
        assert_eq!(pace.most_in_flight(), 2);
        let complete = |pace: &mut Pace| pace.completed(Direction::Read, 1);
        complete(&mut pace);
        complete(&mut pace);
        assert!(pace.pause(2000).is_some());
        complete(&mut pace);
        pace.paused(2000, 9000);
        assert_eq!(pace.pause(9000), None);
        complete(&mut pace);
        assert!(pace.pause(9000).is_some());
    }

    #[test]
    fn a_pause_that_comes_by_time_caps_no_depth() {
        let mut pace = pace(|o| {
            o.rates.thinktime = 7;
            o.rates.thinktime_iotime = 1;
        });
        assert_eq!(pace.most_in_flight(), u64::MAX);
        assert!(pace.pause(2_000_000).is_some());
    }

    #[test]
    fn a_minimum_is_looked_at_once_per_cycle() {
        let mut pace = pace(|o| {
            o.rates.rate_iops_min[Direction::Read] = 100;
            o.rates.rate_cycle = 500;
        });
        let watched_from = 1000 + SETTLING_NS;
        let complete =
            |pace: &mut Pace, ios: u32| (0..ios).for_each(|_| pace.completed(Direction::Read, 4096));
        // The settling time does not count.
        assert_eq!(pace.missed(watched_from - 1), None);
        complete(&mut pace, 1000);
        assert_eq!(pace.missed(watched_from), None);
        assert_eq!(pace.missed(watched_from + 400_000_000), None);
        complete(&mut pace, 50);
        // Just a little late.
        let cycle_end = watched_from + 500_000_100;
        assert_eq!(pace.missed(cycle_end), None);
        complete(&mut pace, 10);
        let missed = pace.missed(cycle_end + 500_000_000);
        assert_eq!(missed, Some(Missed { option: "rate_iops_min", asked: 100, got: 20 }));
    }

    #[test]
    fn a_job_settles_once_more_after_its_ramp() {
        let mut pace = pace(|o| o.rates.rate_iops_min[Direction::Read] = 1000);
        let over = 1000 + 5 * SECOND_NS;
        assert_eq!(pace.missed(over - 1), None);
        pace.completed(Direction::Read, 4096);
        pace.watch_from(over);
        // Earlier I/O does not count, and nothing is checked before the settling time is over.
        assert_eq!(pace.missed(over + SETTLING_NS), None);
        let missed = pace.missed(over + SETTLING_NS + SECOND_NS);
        assert_eq!(missed, Some(Missed { option: "rate_iops_min", asked: 1000, got: 0 }));
    }

    #[test]
    fn time_of_reading_back_is_in_no_cycle() {
        let mut pace = pace(|o| {
            o.pattern.rw = ReadWrite::Write;
            o.rates.rate_iops_min[Direction::Write] = 100;
            o.rates.rate_cycle = 500;
        });
        pace.read_back(2000, 2000 + SECOND_NS);
        let watched_from = 1000 + SETTLING_NS + SECOND_NS;
        assert_eq!(pace.missed(watched_from), None);
        (0..50).for_each(|_| pace.completed(Direction::Write, 4096));
        pace.read_back(watched_from, watched_from + 10 * SECOND_NS);
        // 50 I/Os in half a second.
        let rest = watched_from + 10 * SECOND_NS;
        assert_eq!(pace.missed(rest + 499_999_999), None);
        assert_eq!(pace.missed(rest + 500_000_000), None);
        let missed = pace.missed(rest + SECOND_NS);
        assert_eq!(missed, Some(Missed { option: "rate_iops_min", asked: 100, got: 0 }));
    }

    #[test]
    fn a_minimum_of_bytes_counts_parts() {
        let mut pace = pace(|o| {
            o.rates.rate_min[Direction::Read] = 4096;
            o.rates.rate_iops_min[Direction::Write] = 9;
        });
        let watched_from = 1000 + SETTLING_NS;
        assert_eq!(pace.missed(watched_from), None);
        pace.partly_completed(Direction::Read, 1000);
        pace.completed(Direction::Read, 3095);
        let missed = pace.missed(watched_from + SECOND_NS);
        assert_eq!(missed, Some(Missed { option: "rate_min", asked: 4096, got: 4095 }));
    }
}
