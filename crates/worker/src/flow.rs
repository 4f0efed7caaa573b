//! Jobs that stay in step with each other: `flow`, `flow_id`, `flow_sleep`.
//!
//! Each worker of a flow counts its issued I/Os in a word that only it writes, and reads the words of the others. No
//! lock is needed, and a worker that dies leaves nothing behind. A worker may issue I/O while its count divided by its
//! weight is not above the same ratio of all other running members together, so the slowest member sets the pace. A
//! member that starts late starts level with the others. Members that have ended no longer count.

use iolite_os::shared::{Control, Phase};
use std::sync::atomic::Ordering::Relaxed;

/// A worker's place in its flow.
pub struct Flow<'a> {
    own: &'a Control,
    weight: u64,
    others: Vec<(&'a Control, u64)>,
    /// Nanoseconds to sleep while ahead of the others; 0 = check again at once.
    sleep_ns: u64,
    /// The worker may issue up to this count without checking the others.
    limit: u64,
}

impl<'a> Flow<'a> {
    /// The worker whose word is `own`, in a flow with `others` and their weights. Weights are positive.
    pub fn new(own: &'a Control, weight: u32, others: Vec<(&'a Control, u32)>, sleep_ns: u64) -> Self {
        Flow {
            own,
            weight: u64::from(weight),
            others: others.into_iter().map(|(control, weight)| (control, u64::from(weight))).collect(),
            sleep_ns,
            limit: 0,
        }
    }

    /// Nanoseconds to sleep while ahead of the others.
    pub fn sleep_ns(&self) -> u64 {
        self.sleep_ns
    }

    /// The sums of the issued I/Os and of the weights of the other running members.
    fn running(&self) -> (u64, u64) {
        let running = self.others.iter().filter(|(control, _)| {
            // Members that are about to start count too, so that no member runs ahead of them.
            (Phase::Ready..=Phase::Syncing).contains(&control.phase()) && control.ended_ns.load(Relaxed) == 0
        });
        running.fold((0, 0), |(issued, weights), (control, weight)| {
            (issued + control.flow_ios.load(Relaxed), weights + weight)
        })
    }

    /// The worker starts, level with the running members.
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
            // No other member runs. Check again soon, because one may start.
            self.limit = own + self.weight;
            return true;
        }
        let level = (u128::from(issued) * u128::from(self.weight) / u128::from(weights)) as u64;
        // A worker at the level may issue one more I/O. Otherwise no worker could start.
        self.limit = level.saturating_add(1);
        own < self.limit
    }

    /// Counts an issued I/O.
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

    /// Lets each worker that may go issue one I/O, for this many rounds.
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
