//! What an accelerator did that takes samples in batches (`batch_size`).
//!
//! The figures follow MLPerf Storage (rules of version 2.0, section 4): utilisation is the time of computing as a share of all
//! time, without the first batch, whose reading nothing hides; samples per second are those of all batches.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// What an accelerator did; or several, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceleratorReport {
    /// Accelerators.
    pub count: u64,
    /// Batches that were read completely.
    pub batches: u64,
    /// Their samples.
    pub samples: u64,
    /// Nanoseconds from the first read to the end of the last batch's computation; of several, the longest.
    pub elapsed_ns: u64,
    /// Nanoseconds of computing that count.
    pub compute_ns: u64,
    /// Nanoseconds of waiting for samples that count.
    pub wait_ns: u64,
}

impl AcceleratorReport {
    /// Computing as a share of all time that counts, from 0 to 1; `None` = there was none.
    pub fn utilisation(&self) -> Option<f64> {
        let all = self.compute_ns as f64 + self.wait_ns as f64;
        (all > 0.0).then(|| self.compute_ns as f64 / all)
    }

    /// Samples per second.
    pub fn samples_per_second(&self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.samples as f64 * 1e9 / self.elapsed_ns as f64 }
    }
}

impl AddAssign<&AcceleratorReport> for AcceleratorReport {
    fn add_assign(&mut self, other: &AcceleratorReport) {
        for (mine, theirs) in [
            (&mut self.count, other.count),
            (&mut self.batches, other.batches),
            (&mut self.samples, other.samples),
            (&mut self.compute_ns, other.compute_ns),
            (&mut self.wait_ns, other.wait_ns),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilisation_is_the_share_of_computing() {
        let mut one = AcceleratorReport {
            count: 1,
            batches: 5,
            samples: 20,
            elapsed_ns: 4_000_000_000,
            compute_ns: 900,
            wait_ns: 100,
        };
        assert_eq!(one.utilisation(), Some(0.9));
        assert_eq!(one.samples_per_second(), 5.0);
        one += &AcceleratorReport { elapsed_ns: 2_000_000_000, wait_ns: 900, ..one };
        assert_eq!((one.count, one.samples, one.elapsed_ns), (2, 40, 4_000_000_000));
        assert_eq!(one.utilisation(), Some(1800.0 / 2800.0));
        assert_eq!(AcceleratorReport::default().utilisation(), None);
        assert_eq!(AcceleratorReport::default().samples_per_second(), 0.0);
    }
}
