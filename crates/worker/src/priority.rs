//! I/Os with a priority of their own: `cmdprio_percentage`, `cmdprio_bssplit` and related options.
//!
//! The priority of each I/O is drawn independently, so a share holds on average in any part of the run.

use iolite_plan::resolve::{PriorityRules, PriorityShare};
use iolite_types::{Direction, PerDirection};
use iolite_workload::rng::Rng;

// The plan refuses more priorities than the statistics have room for.
const _: () = assert!(iolite_plan::MOST_PRIORITIES == iolite_stats::live::MOST_PRIORITIES);

/// The random number stream for priorities.
const STREAM: u64 = 0x7072_696f;

/// Draws the priority of each I/O.
#[derive(Clone, Debug)]
pub struct Priorities {
    /// The worker's own priority, for I/Os that draw no other.
    own: u16,
    shares: PerDirection<Vec<PriorityShare>>,
    rng: Rng,
}

impl Priorities {
    /// Priorities drawn as these rules say.
    pub fn new(rules: &PriorityRules) -> Priorities {
        Priorities { own: rules.own, shares: rules.shares.clone(), rng: Rng::stream(rules.seed, STREAM) }
    }

    /// All possible priorities without duplicates: the worker's first, then those of the options in order.
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

    /// Draws the priority of the next I/O.
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
    use super::Priorities;
    use iolite_options::engines::engine;
    use iolite_options::{JobOptions, PlacementOptions, PriorityShare};
    use iolite_plan::resolve::priority_rules;
    use iolite_types::{Direction, PerDirection};
    use std::collections::BTreeMap;

    fn drawn(options: &JobOptions, direction: Direction, length: u64) -> BTreeMap<u16, u32> {
        let mut priorities = Priorities::new(&priority_rules(options, 7).unwrap());
        let mut counts = BTreeMap::new();
        for _ in 0..10_000 {
            *counts.entry(priorities.draw(direction, length)).or_default() += 1;
        }
        counts
    }

    #[test]
    fn shares_hold_per_direction() {
        let mut options = JobOptions {
            placement: PlacementOptions { prio: Some(5), ..PlacementOptions::default() },
            ..JobOptions::default()
        };
        assert!(priority_rules(&options, 1).is_none());
        options.choose_engine(engine("libaio").unwrap());
        options.engine.priorities_mut().unwrap().percentage = PerDirection::new(30, 0, 0);
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
        options.choose_engine(engine("io_uring").unwrap());
        let asked = options.engine.priorities_mut().unwrap();
        asked.by_size[Direction::Write] =
            vec![share(4096, 50, Some(7)), share(4096, 50, None), share(8192, 100, None)];
        asked.class[Direction::Write] = 3;
        asked.level[Direction::Write] = 1;
        let usual = 3 << 13 | 1;
        let small = drawn(&options, Direction::Write, 4096);
        assert!(small[&7].abs_diff(5000) < 250, "{small:?}");
        assert_eq!(small[&7] + small[&usual], 10_000);
        assert_eq!(drawn(&options, Direction::Write, 8192), BTreeMap::from([(usual, 10_000)]));
        assert_eq!(drawn(&options, Direction::Write, 512), BTreeMap::from([(0, 10_000)]));
    }
}
