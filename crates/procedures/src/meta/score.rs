//! The formula of IO500: the geometric mean of the bandwidths in GiB/s, that of the rates in thousands per second, and
//! the square root of their product.

use super::Phase;

/// A score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// GiB/s
    pub bandwidth: f64,
    /// Thousands of operations per second.
    pub metadata: f64,
    /// √(bandwidth × metadata)
    pub total: f64,
}

/// The score of the phases' rates: bytes per second, or operations per second. `None` = a phase is missing, or has done
/// nothing.
pub fn score(rates: &[(Phase, f64)]) -> Option<Score> {
    let is_whole = super::IO500.iter().all(|phase| rates.iter().any(|(of, rate)| of == phase && *rate > 0.0));
    if !is_whole {
        return None;
    }
    let mean = |is_bandwidth: bool, unit: f64| {
        let logs: Vec<f64> = rates
            .iter()
            .filter(|(phase, _)| phase.is_bandwidth() == is_bandwidth)
            .map(|(_, rate)| (rate / unit).ln())
            .collect();
        (logs.iter().sum::<f64>() / logs.len() as f64).exp()
    };
    let (bandwidth, metadata) = (mean(true, (1u64 << 30) as f64), mean(false, 1000.0));
    Some(Score { bandwidth, metadata, total: (bandwidth * metadata).sqrt() })
}
