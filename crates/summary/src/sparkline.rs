//! A row of numbers in a few characters.

use std::collections::BTreeMap;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['_', '.', ',', '-', '~', '=', '*', '#'];

/// The rates, from zero to the highest one, in this many columns.
pub fn of(rates: &[f64], columns: usize, is_ascii: bool) -> String {
    let columns = columns.min(rates.len());
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let cut = |column: usize| column * rates.len() / columns.max(1);
    let means: Vec<f64> = (0..columns).map(|column| mean(&rates[cut(column)..cut(column + 1)])).collect();
    drawn(&means, is_ascii)
}

/// How latencies are distributed, from the smallest to the largest one that occurred, in at most this many columns of
/// equal ratio. A column without any is blank.
pub fn of_distribution(latencies: &BTreeMap<u64, u64>, columns: usize, is_ascii: bool) -> String {
    let logarithm = |latency: u64| (latency.max(1) as f64).ln();
    let (Some((&least, _)), Some((&most, _))) = (latencies.first_key_value(), latencies.last_key_value())
    else {
        return String::new();
    };
    let (begin, span) = (logarithm(least), logarithm(most) - logarithm(least));
    // The histogram has bins of one part in 64: narrower columns would have gaps.
    let columns = columns.min((span * 32.0) as usize).max(1);
    let mut counts = vec![0.0; columns];
    for (latency, count) in latencies {
        let place = if span > 0.0 { (logarithm(*latency) - begin) / span } else { 0.0 };
        counts[((place * columns as f64) as usize).min(columns - 1)] += *count as f64;
    }
    let drawn = drawn(&counts, is_ascii);
    drawn.chars().zip(counts).map(|(level, count)| if count > 0.0 { level } else { ' ' }).collect()
}

fn drawn(values: &[f64], is_ascii: bool) -> String {
    let levels = if is_ascii { ASCII } else { BLOCKS };
    let most = values.iter().copied().fold(0.0, f64::max);
    let level =
        |value: &f64| if most > 0.0 { ((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1 } else { 0 };
    values.iter().map(|value| levels[level(value)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_heights() {
        assert_eq!(of(&[0.0, 1.0, 4.0, 8.0], 12, false), "▁▁▄█");
        assert_eq!(of(&[0.0, 1.0, 4.0, 8.0], 12, true), "__-#");
        assert_eq!(of(&[1.0; 100], 5, false), "█████");
        assert_eq!((of(&[], 5, false), of(&[0.0], 5, false)), (String::new(), "▁".to_owned()));
    }

    #[test]
    fn distributions_have_gaps() {
        let of = |pairs: &[(u64, u64)]| of_distribution(&pairs.iter().copied().collect(), 7, false);
        assert_eq!(of(&[(10, 8), (100, 4), (10_000_000, 1)]), "█▄    ▁");
        assert_eq!(of(&[(500, 3)]), "█");
        assert_eq!(of(&[(0, 1), (u64::MAX, 1)]), "█     █");
        assert_eq!(of(&[]), "");
    }
}
