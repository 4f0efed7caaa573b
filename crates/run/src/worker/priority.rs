//! Which I/Os have a priority of their own: `cmdprio_percentage`, `cmdprio_bssplit` and what belongs to them.
//!
//! Each I/O draws for itself, so a share holds on average and in any part of the run.

use iolite_options::JobOptions;
use iolite_types::{Direction, PerDirection, io_priority};
use iolite_workload::rng::Rng;

// The plan refuses more than the statistics have places for.
const _: () = assert!(iolite_plan::MOST_PRIORITIES == iolite_stats::live::MOST_PRIORITIES);

/// The class that counts when none is given: real time, the highest.
const HIGHEST_CLASS: u32 = 1;

/// The stream of random numbers that priorities are drawn from.
const STREAM: u64 = 0x7072_696f;

/// Draws the priority of each I/O.
#[derive(Clone, Debug)]
pub struct Priorities {
    /// Of those that draw none.
    own: u16,
    shares: PerDirection<Vec<Share>>,
    rng: Rng,
}

/// So many of some I/Os have this priority.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// The block size; `None` = any.
    size: Option<u64>,
    percent: u32,
    priority: u16,
}

impl Priorities {
    /// The priorities of a job; `None` when all of its I/Os have the same.
    pub fn new(options: &JobOptions, seed: u64) -> Option<Priorities> {
        let engine = &options.engine;
        // Trims carry no priority.
        let of = |direction: Direction| {
            let class = match engine.cmdprio_class[direction] {
                0 => HIGHEST_CLASS,
                class => class,
            };
            let usual = io_priority(class, engine.cmdprio[direction], engine.cmdprio_hint[direction]);
            let all = Share { size: None, percent: engine.cmdprio_percentage[direction], priority: usual };
            let by_size = engine.cmdprio_bssplit[direction].iter().map(|share| Share {
                size: Some(share.size),
                percent: share.percent,
                priority: share.priority.unwrap_or(usual),
            });
            std::iter::once(all).chain(by_size).filter(|share| share.percent > 0).collect::<Vec<_>>()
        };
        let shares = PerDirection::new(of(Direction::Read), of(Direction::Write), Vec::new());
        let any = shares.values.iter().any(|shares| !shares.is_empty());
        any.then(|| Priorities {
            own: options.io_priority().unwrap_or(0),
            shares,
            rng: Rng::stream(seed, STREAM),
        })
    }

    /// All that may be drawn, each once: that of the worker, then those of the options in order.
    pub fn possible(&self, direction: Direction) -> impl Iterator<Item = u16> + '_ {
        let all = move |count: usize| {
            std::iter::once(self.own)
                .chain(self.shares[direction].iter().map(|share| share.priority))
                .take(count)
        };
        all(usize::MAX)
            .enumerate()
            .filter(move |&(place, one)| all(place).all(|before| before != one))
            .map(|(_, one)| one)
    }

    /// The priority of the next I/O.
    pub fn draw(&mut self, direction: Direction, length: u64) -> u16 {
        let shares = &self.shares[direction];
        if shares.is_empty() {
            return self.own;
        }
        let mut drawn = self.rng.below(100) as u32;
        for share in shares.iter().filter(|share| share.size.is_none_or(|size| size == length)) {
            if drawn < share.percent {
                return share.priority;
            }
            drawn -= share.percent;
        }
        self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::PriorityShare;
    use std::collections::BTreeMap;

    fn drawn(options: &JobOptions, direction: Direction, length: u64) -> BTreeMap<u16, u32> {
        let mut priorities = Priorities::new(options, 7).unwrap();
        let mut counts = BTreeMap::new();
        for _ in 0..10_000 {
            *counts.entry(priorities.draw(direction, length)).or_default() += 1;
        }
        counts
    }

    #[test]
    fn shares_hold_per_direction() {
        let mut options = JobOptions { prio: Some(5), ..JobOptions::default() };
        assert!(Priorities::new(&options, 1).is_none());
        options.engine.cmdprio_percentage = PerDirection::new(30, 0, 0);
        let own = 2 << 13 | 5;
        let counts = drawn(&options, Direction::Read, 4096);
        // Five standard deviations of a share of 30% are 2.3%.
        assert!(counts[&(1 << 13)].abs_diff(3000) < 230, "{counts:?}");
        assert_eq!(counts[&own] + counts[&(1 << 13)], 10_000);
        assert_eq!(drawn(&options, Direction::Write, 4096), BTreeMap::from([(own, 10_000)]));
    }

    #[test]
    fn sizes_have_their_own_shares() {
        let mut options = JobOptions::default();
        let share = |size, percent, priority| PriorityShare { size, percent, priority };
        options.engine.cmdprio_bssplit[Direction::Write] =
            vec![share(4096, 50, Some(7)), share(4096, 50, None), share(8192, 100, None)];
        options.engine.cmdprio_class[Direction::Write] = 3;
        options.engine.cmdprio[Direction::Write] = 1;
        let usual = 3 << 13 | 1;
        let small = drawn(&options, Direction::Write, 4096);
        assert!(small[&7].abs_diff(5000) < 250, "{small:?}");
        assert_eq!(small[&7] + small[&usual], 10_000);
        assert_eq!(drawn(&options, Direction::Write, 8192), BTreeMap::from([(usual, 10_000)]));
        assert_eq!(drawn(&options, Direction::Write, 512), BTreeMap::from([(0, 10_000)]));
    }
}
