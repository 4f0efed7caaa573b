//! Priorities of single I/Os: `cmdprio_percentage`, `cmdprio_bssplit` and the related options.

use super::issue::each;
use iolite_options::JobOptions;
use iolite_types::{Direction, PerDirection, io_priority};
use serde::{Deserialize, Serialize};

/// The default class: real time, the highest.
const HIGHEST_CLASS: u32 = 1;

/// The priorities that I/Os draw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorityRules {
    /// The priority of the other I/Os, in the kernel's encoding; 0 = the thread's.
    pub own: u16,
    /// The shares to draw from, per direction. Trims carry no priority.
    pub shares: PerDirection<Vec<PriorityShare>>,
    /// The seed of the draws.
    pub seed: u64,
}

/// A share of I/Os with this priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorityShare {
    /// The block size; `None` = any.
    pub size: Option<u64>,
    /// Percent of the I/Os of this size, more than 0.
    pub percent: u32,
    /// The priority, in the kernel's encoding.
    pub priority: u16,
}

/// The priorities of a job; `None` = all of its I/Os have the same.
pub fn rules(options: &JobOptions, seed: u64) -> Option<PriorityRules> {
    let asked = options.engine.priorities()?;
    let shares = each(|direction| {
        if direction == Direction::Trim {
            return Vec::new();
        }
        let class = match asked.class[direction] {
            0 => HIGHEST_CLASS,
            class => class,
        };
        let usual = io_priority(class, asked.level[direction], asked.hint[direction]);
        let all = PriorityShare { size: None, percent: asked.percentage[direction], priority: usual };
        let by_size = asked.by_size[direction].iter().map(|share| PriorityShare {
            size: Some(share.size),
            percent: share.percent,
            priority: share.priority.unwrap_or(usual),
        });
        std::iter::once(all).chain(by_size).filter(|share| share.percent > 0).collect()
    });
    let any = shares.values.iter().any(|shares: &Vec<PriorityShare>| !shares.is_empty());
    any.then(|| PriorityRules { own: options.io_priority().unwrap_or(0), shares, seed })
}
