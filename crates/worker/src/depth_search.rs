//! `latency_target`: finds the depth at which I/Os still meet a latency.
//!
//! Each depth is tried for one window. A window is good if enough I/Os meet the target. The depth doubles while windows
//! are good. After the first bad window, the search bisects between the largest good depth and the smallest bad one.
//! Counting starts over with each change of depth, so the results are those of the last depth. The job ends one window
//! after the depth is found, or at once if the full depth is good. If not even depth 1 is good, the job runs on. With
//! `latency_run` the job runs on after the search, the depth follows the storage by one step per window, and everything
//! counts. All of this is as in fio.

use iolite_plan::resolve::TargetRules;

/// The search.
#[derive(Clone, Copy, Debug)]
pub struct LatencyTarget {
    rules: TargetRules,
    /// The largest good depth; 0 = none yet.
    good: u32,
    /// The smallest bad depth; one more than the largest allowed = none yet.
    bad: u32,
    depth: u32,
    found: bool,
    since: u64,
    seen: u64,
    within: u64,
}

/// The decision at the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Continue as before.
    Stay,
    /// Change to this depth.
    Depth(u32),
    /// The depth has been found and measured: end the job.
    Finished,
}

impl LatencyTarget {
    /// A search that has not begun.
    pub fn new(rules: TargetRules) -> LatencyTarget {
        LatencyTarget {
            rules,
            good: 0,
            bad: rules.most + 1,
            depth: 1,
            found: false,
            since: 0,
            seen: 0,
            within: 0,
        }
    }

    /// Whether counting restarts with each change of depth.
    pub fn counts_anew(&self) -> bool {
        !self.rules.follows
    }

    /// The job starts. Returns its first depth.
    pub fn start(&mut self, now: u64) -> u32 {
        self.begin_window(now);
        self.depth
    }

    fn begin_window(&mut self, now: u64) {
        self.since = now;
        self.seen = 0;
        self.within = 0;
    }

    /// Counts a completed I/O with this latency.
    #[inline]
    pub fn completed(&mut self, latency_ns: u64) {
        self.seen += 1;
        self.within += u64::from(latency_ns <= self.rules.target_ns);
    }

    /// Checks whether the window is over. A window without any I/O is extended until it has one.
    pub fn step(&mut self, now: u64) -> Step {
        if now.saturating_sub(self.since) < self.rules.window_ns || self.seen == 0 {
            return Step::Stay;
        }
        let is_good = self.within as f64 >= self.rules.share * self.seen as f64;
        self.begin_window(now);
        if self.found {
            return self.after(is_good);
        }
        if is_good {
            self.good = self.depth;
            // The full depth is good and has been measured, so the search is over.
            if self.depth == self.rules.most && !self.rules.follows {
                return Step::Finished;
            }
        } else {
            self.bad = self.depth;
        }
        let next = if self.bad > self.rules.most {
            (self.depth * 2).min(self.rules.most)
        } else {
            self.good + (self.bad - self.good) / 2
        };
        if self.good + 1 >= self.bad {
            self.found = true;
        }
        self.change(next.max(1))
    }

    /// A window after the search has ended.
    fn after(&mut self, is_good: bool) -> Step {
        if self.rules.follows {
            let next = if is_good { self.depth + 1 } else { self.depth - 1 };
            return self.change(next.clamp(1, self.rules.most));
        }
        if self.good == 0 { Step::Stay } else { Step::Finished }
    }

    fn change(&mut self, depth: u32) -> Step {
        if depth == self.depth {
            return Step::Stay;
        }
        self.depth = depth;
        Step::Depth(depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 90% of the I/Os within 100 µs, depths up to 4.
    fn rules() -> TargetRules {
        TargetRules { target_ns: 100_000, window_ns: 1000, share: 0.9, follows: false, most: 4 }
    }

    /// Runs windows against a storage whose I/Os take `latency(depth)` µs. Returns the depths that were tried, and
    /// whether the job ended by itself.
    fn search(most: u32, follows: bool, latency: impl Fn(u32) -> u64) -> (Vec<u32>, bool) {
        let mut target = LatencyTarget::new(TargetRules { most, follows, window_ns: 1_000_000, ..rules() });
        let mut depth = target.start(0);
        let mut tried = vec![depth];
        for window in 1..20 {
            for _ in 0..10 {
                target.completed(latency(depth) * 1000);
            }
            assert_eq!(target.step(window * 1_000_000 - 1), Step::Stay, "the window is not over");
            match target.step(window * 1_000_000) {
                Step::Stay => {}
                Step::Depth(next) => {
                    depth = next;
                    tried.push(depth);
                }
                Step::Finished => return (tried, true),
            }
        }
        (tried, false)
    }

    #[test]
    fn doubles_then_narrows_down() {
        let (tried, finished) = search(64, false, |depth| u64::from(depth) * 9);
        assert_eq!(tried, [1, 2, 4, 8, 16, 12, 10, 11]);
        assert!(finished);
    }

    #[test]
    fn the_full_depth_ends_the_search() {
        assert_eq!(search(10, false, |_| 50), (vec![1, 2, 4, 8, 10], true));
        assert_eq!(search(1, false, |_| 50), (vec![1], true));
        assert_eq!(search(10, true, |_| 50), (vec![1, 2, 4, 8, 10], false));
    }

    #[test]
    fn a_target_out_of_reach_leaves_a_depth_of_one() {
        assert_eq!(search(64, false, |_| 500), (vec![1], false));
    }

    #[test]
    fn the_depth_keeps_following_if_asked() {
        let (tried, finished) = search(64, true, |depth| u64::from(depth) * 30);
        assert!(!finished);
        assert!(tried[3..].iter().all(|depth| (2..=5).contains(depth)), "{tried:?}");
        assert!(tried.len() > 8);
    }

    #[test]
    fn a_share_of_slow_ios_is_allowed() {
        for (slow, expected) in [(10, Step::Depth(2)), (11, Step::Stay)] {
            let mut target = LatencyTarget::new(rules());
            target.start(0);
            (0..100).for_each(|io| target.completed(if io < slow { 200_000 } else { 50_000 }));
            assert_eq!(target.step(1_000_000), expected, "{slow} of 100 slow");
        }
    }
}
