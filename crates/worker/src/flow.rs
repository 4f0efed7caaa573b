//! Jobs that keep each other in step: `flow`, `flow_id`, `flow_sleep`.
//!
//! Each worker of a flow counts the I/Os it issues in a word of its own and only reads those of the others, so there
//! is nothing to lock and nothing that a dying worker could leave behind. It may go on while its count over its
//! weight is not above that of all running members together; the slowest of a flow sets the pace. Who begins later
//! begins level with the others, and who has ended no longer counts.

use iolite_os::shared::{Control, Phase};
use std::sync::atomic::Ordering::Relaxed;

/// A worker's place in its flow.
pub struct Flow<'a> {
    own: &'a Control,
    weight: u64,
    others: Vec<(&'a Control, u64)>,
    /// Nanoseconds to sleep when ahead; 0 = only look again.
    sleep_ns: u64,
    /// It may issue until it has issued so many, whatever the others do.
    limit: u64,
}

impl<'a> Flow<'a> {
    /// The worker that counts in `own`, beside `others` with their weights. Weights are positive.
    pub fn new(own: &'a Control, weight: u32, others: Vec<(&'a Control, u32)>, sleep_ns: u64) -> Self {
        Flow {
            own,
            weight: u64::from(weight),
            others: others.into_iter().map(|(control, weight)| (control, u64::from(weight))).collect(),
            sleep_ns,
            limit: 0,
        }
    }

    /// Nanoseconds to sleep when ahead.
    pub fn sleep_ns(&self) -> u64 {
        self.sleep_ns
    }

    /// What those of the others that run have issued, and what they weigh.
    fn running(&self) -> (u64, u64) {
        let running = self.others.iter().filter(|(control, _)| {
            // Those that are about to begin count as well: nobody is to run ahead of them at the start.
            (Phase::Ready..=Phase::Syncing).contains(&control.phase()) && control.ended_ns.load(Relaxed) == 0
        });
        running.fold((0, 0), |(issued, weights), (control, weight)| {
            (issued + control.flow_ios.load(Relaxed), weights + weight)
        })
    }

    /// The worker begins: level with those that run.
    pub fn start(&mut self) {
        let (issued, weights) = self.running();
        if let Some(level) = (u128::from(issued) * u128::from(self.weight)).checked_div(u128::from(weights)) {
            self.own.flow_ios.store(level as u64, Relaxed);
        }
    }

    /// Whether the next I/O may be issued now.
    pub fn may_go(&mut self) -> bool {
        let own = self.own.flow_ios.load(Relaxed);
        if own < self.limit {
            return true;
        }
        let (issued, weights) = self.running();
        if weights == 0 {
            // Alone. Looked at again soon, as somebody may come.
            self.limit = own + self.weight;
            return true;
        }
        let level = (u128::from(issued) * u128::from(self.weight) / u128::from(weights)) as u64;
        // At the level itself one more is allowed, or nobody could begin.
        self.limit = level.saturating_add(1);
        own < self.limit
    }

    /// An I/O was issued.
    pub fn issued(&self) {
        let own = &self.own.flow_ios;
        own.store(own.load(Relaxed) + 1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_os::shared::Arena;

    /// Workers with these weights, all running.
    fn flows<'a>(arena: &'a Arena, weights: &[u32]) -> Vec<Flow<'a>> {
        let control = |index: usize| &arena.slot(index).control;
        (0..weights.len())
            .map(|index| {
                control(index).set_phase(Phase::Running);
                let others = (0..weights.len()).filter(|&other| other != index);
                let others = others.map(|other| (control(other), weights[other])).collect();
                Flow::new(control(index), weights[index], others, 0)
            })
            .collect()
    }

    /// Lets everybody who may go do one I/O, so many times.
    fn rounds(flows: &mut [Flow<'_>], rounds: usize) -> Vec<u64> {
        for _ in 0..rounds {
            for flow in flows.iter_mut() {
                if flow.may_go() {
                    flow.issued();
                }
            }
        }
        flows.iter().map(|flow| flow.own.flow_ios.load(Relaxed)).collect()
    }

    #[test]
    fn counts_keep_the_ratio_of_the_weights() {
        for weights in [vec![3, 1], vec![3, 2, 1], vec![1, 1, 1, 1], vec![1000, 1]] {
            let arena = Arena::new(weights.len()).unwrap();
            let counts = rounds(&mut flows(&arena, &weights), 30_000);
            let sum: u64 = counts.iter().sum();
            let all: u64 = weights.iter().copied().map(u64::from).sum();
            assert!(sum > 25_000, "{weights:?}: {counts:?} stands still");
            for (count, weight) in counts.iter().zip(&weights) {
                let fair = sum * u64::from(*weight) / all;
                assert!(count.abs_diff(fair) <= u64::from(*weight) + 2, "{weights:?}: {counts:?}");
            }
        }
    }

    #[test]
    fn the_slowest_sets_the_pace_until_it_has_ended() {
        let arena = Arena::new(2).unwrap();
        let mut flows = flows(&arena, &[1, 1]);
        let (fast, slow) = flows.split_at_mut(1);
        assert_eq!(rounds(fast, 100), [1]);
        assert_eq!(rounds(slow, 1), [1]);
        assert_eq!(rounds(fast, 100), [2]);
        slow[0].own.ended_ns.store(5, Relaxed);
        assert_eq!(rounds(fast, 100), [102]);
    }

    #[test]
    fn a_late_one_begins_level() {
        let arena = Arena::new(2).unwrap();
        let mut flows = flows(&arena, &[2, 1]);
        flows[1].own.set_phase(Phase::SettingUp);
        rounds(&mut flows[..1], 1000);
        flows[1].start();
        flows[1].own.set_phase(Phase::Running);
        let counts = rounds(&mut flows, 300);
        assert!(counts[0] > 1100 && counts[0].abs_diff(2 * counts[1]) <= 4, "{counts:?}");
    }
}
