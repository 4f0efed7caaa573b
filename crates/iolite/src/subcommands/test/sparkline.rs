//! A rate over time in a few characters.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['_', '.', ',', '-', '~', '=', '*', '#'];

/// The rates, from zero to the highest one, in this many columns.
pub fn of(rates: &[f64], columns: usize, is_ascii: bool) -> String {
    let levels = if is_ascii { ASCII } else { BLOCKS };
    let columns = columns.min(rates.len());
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let cut = |column: usize| column * rates.len() / columns.max(1);
    let means: Vec<f64> = (0..columns).map(|column| mean(&rates[cut(column)..cut(column + 1)])).collect();
    let most = means.iter().copied().fold(0.0, f64::max);
    let level =
        |rate: &f64| if most > 0.0 { ((rate / most * 8.0).ceil() as usize).clamp(1, 8) - 1 } else { 0 };
    means.iter().map(|rate| levels[level(rate)]).collect()
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
}
