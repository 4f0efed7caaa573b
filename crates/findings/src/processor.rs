//! Cases in which this machine's processors are the limit.

use crate::numbers::percent;
use crate::{Finding, Kind, Subject};

/// The share of its time that a worker is on a processor from which it, and not the storage, sets the pace: it waits for a
/// tenth at most.
const BUSY: f64 = 0.9;

pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    if subject.memory.is_some() {
        return Vec::new();
    }
    let busy = |case: &&crate::Case| {
        case.workers > 0
            && case.measured.figures.cpu_percent >= BUSY * 100.0 * f64::from(case.workers)
            && case.role != crate::Role::Names
    };
    let found: Vec<&crate::Case> = subject.cases.iter().filter(busy).collect();
    let Some(first) = found.first() else { return Vec::new() };
    let others = match found.len() - 1 {
        0 => String::new(),
        1 => "; another case as well".to_owned(),
        more => format!("; {more} other cases as well"),
    };
    vec![Finding {
        kind: Kind::Processor,
        words: "This machine is the limit there, not the storage: the storage may do more with more workers (numjobs) on \
                other processors."
            .to_owned(),
        evidence: format!(
            "the {} of {} {} busy for {} of a processor{others}",
            if first.workers == 1 { "worker".to_owned() } else { format!("{} workers", first.workers) },
            first.name,
            if first.workers == 1 { "was" } else { "were" },
            percent(first.measured.figures.cpu_percent),
        ),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;
    use crate::made_up::{case, flash};

    #[test]
    fn workers_that_never_wait() {
        let of = |cpu_percent, workers| {
            let mut read = case("read", Role::Read, 10_000.0, 4096.0, 90.0);
            read.measured.figures.cpu_percent = cpu_percent;
            read.workers = workers;
            findings(&flash(vec![read]))
        };
        assert_eq!(of(89.0, 1), []);
        assert_eq!(of(91.0, 1)[0].evidence, "the worker of read was busy for 91% of a processor");
        assert_eq!(of(179.0, 2), []);
        assert_eq!(of(181.0, 2).len(), 1);
    }
}
