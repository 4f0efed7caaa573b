//! Checks the priorities of single I/Os.

use iolite_options::JobOptions;
use std::collections::BTreeSet;

/// The most priorities of a direction with separate latencies, including the priority of the job.
pub const MOST_PRIORITIES: usize = 16;

/// The obstacles: each with the option to blame and the reason.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    let Some(priorities) = options.engine.priorities() else { return Vec::new() };
    let (by_size, by_chance) = (&priorities.by_size.values, priorities.percentage.values);
    let mut found = Vec::new();
    if by_size.iter().any(|shares| !shares.is_empty()) && by_chance.iter().any(|&percent| percent > 0) {
        let message = "cmdprio_percentage and cmdprio_bssplit exclude each other: give one of them";
        found.push(("cmdprio_bssplit", message.to_owned()));
    }
    let different = by_size.iter().map(|shares| {
        let own: BTreeSet<_> = shares.iter().map(|share| share.priority).collect();
        own.len()
    });
    let most = different.max().unwrap_or(0);
    // The priority of the job itself counts, too.
    if most >= MOST_PRIORITIES {
        let message = format!(
            "cmdprio_bssplit: {most} different priorities are more than the {} whose latency can be kept separately",
            MOST_PRIORITIES - 1
        );
        found.push(("cmdprio_bssplit", message));
    }
    found
}
