//! When a device is in a steady state: the rule of the specification's definition of it (2.1.24 in version 2.0.2).
//!
//! Five rounds in sequence are a window. In a steady state, the tracked values of the window differ by at most a fifth of their
//! average, and the line that fits them best (least squares) rises or falls by at most a tenth of their average within the
//! window.

/// Rounds of a window.
pub const ROUNDS: usize = 5;
/// The most that values may differ, as a share of their average: the data excursion.
pub const EXCURSION: f64 = 0.20;
/// The most that the fitted line may rise or fall, as a share of the average: the slope excursion.
pub const SLOPE: f64 = 0.10;
/// Values come from divisions; a value exactly at a limit is within it.
const ROUNDING: f64 = 1e-9;

/// Five rounds, and what the rule says about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The number of the first round, from 1.
    pub first: usize,
    /// The average of the values.
    pub average: f64,
    /// The difference between the largest and the smallest value, as a share of the average.
    pub excursion: f64,
    /// The change of the fitted line from the first round of the window to the last, as a share of the average.
    pub slope: f64,
    /// The fitted line: its value at round 0, and its change per round.
    pub line: (f64, f64),
}

impl Window {
    /// The window that ends with this round, counted from 1; `None` = it has too few rounds.
    pub fn ending(values: &[f64], round: usize) -> Option<Window> {
        let first = (round + 1).checked_sub(ROUNDS).filter(|first| *first > 0)?;
        let values = values.get(first - 1..round)?;
        let count = ROUNDS as f64;
        let average = values.iter().sum::<f64>() / count;
        let middle = first as f64 + (count - 1.0) / 2.0;
        let (mut products, mut squares) = (0.0, 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (value, round) in values.iter().zip(first..) {
            let apart = round as f64 - middle;
            products += apart * (value - average);
            squares += apart * apart;
            (low, high) = (low.min(*value), high.max(*value));
        }
        let rise = products / squares;
        Some(Window {
            first,
            average,
            excursion: (high - low) / average,
            slope: (rise * (count - 1.0)).abs() / average,
            line: (average - rise * middle, rise),
        })
    }

    /// Whether the rule holds. It never does for an average of 0.
    pub fn is_steady(&self) -> bool {
        self.excursion <= EXCURSION + ROUNDING && self.slope <= SLOPE + ROUNDING
    }

    /// The number of its last round.
    pub fn last(&self) -> usize {
        self.first + ROUNDS - 1
    }
}

/// The first window of the state in which a device ends: the rule holds, and half of what follows is as near to the average as values
/// of a window may be. A device that is fast and even while it is fresh is not there yet; single odd values do not count.
pub fn settled(values: &[f64]) -> Option<Window> {
    let is_final = |window: &Window| {
        let mut rest = values[window.first - 1..].to_vec();
        let middle = rest.len() / 2;
        let (_, median, _) = rest.select_nth_unstable_by(middle, f64::total_cmp);
        (*median - window.average).abs() <= EXCURSION * window.average
    };
    let windows = (ROUNDS..=values.len()).filter_map(|round| Window::ending(values, round));
    windows.filter(Window::is_steady).find(is_final)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    /// Worked by hand: the average of 100, 104, 98, 102, 96 is 100; they differ by 8. With x = -2 … 2 the line's rise is
    /// (-2·0 - 1·4 + 0 + 1·2 + 2·(-4)) / 10 = -1, which is 4 within the window.
    #[test]
    fn a_window_is_worked_out() {
        let values = [500.0, 100.0, 104.0, 98.0, 102.0, 96.0];
        let window = Window::ending(&values, 6).unwrap();
        assert_eq!((window.first, window.last()), (2, 6));
        assert!(near(window.average, 100.0) && near(window.excursion, 0.08) && near(window.slope, 0.04));
        // 104 - 1·x: 102 at round 2, 98 at round 6.
        assert!(near(window.line.0, 104.0) && near(window.line.1, -1.0), "{window:?}");
        assert!(window.is_steady());
        assert!(!Window::ending(&values, 5).unwrap().is_steady(), "the first value counts there");
        assert_eq!((Window::ending(&values, 4), Window::ending(&values, 7)), (None, None));
    }

    #[test]
    fn both_limits_count_and_belong_to_what_is_allowed() {
        // The values differ by exactly a fifth, and the line is flat.
        assert!(Window::ending(&[90.0, 110.0, 100.0, 110.0, 90.0], 5).unwrap().is_steady());
        assert!(!Window::ending(&[89.9, 110.0, 100.0, 110.1, 90.0], 5).unwrap().is_steady());
        // The line rises by exactly a tenth: 95, 97.5, 100, 102.5, 105; and by a little more, where the values differ little.
        let rising = |step: f64| [-2.0, -1.0, 0.0, 1.0, 2.0].map(|place| 100.0 + place * step);
        assert!(Window::ending(&rising(2.5), 5).unwrap().is_steady());
        let steeper = Window::ending(&rising(2.6), 5).unwrap();
        assert!(steeper.excursion < 0.2 && !steeper.is_steady(), "{steeper:?}");
        assert!(Window::ending(&rising(-2.5), 5).unwrap().is_steady(), "falling is as good");
    }

    #[test]
    fn the_first_steady_window_is_found() {
        // Fast when fresh, falling, then settled from round 6 on.
        let values = [1000.0, 900.0, 700.0, 500.0, 300.0, 200.0, 201.0, 199.0, 200.0, 200.0, 200.0];
        assert_eq!(settled(&values).map(|window| (window.first, window.last())), Some((6, 10)));
        assert_eq!(settled(&values[..9]), None);
        let halving: Vec<f64> = (0..25).map(|round| 1e6 / 1.1_f64.powi(round)).collect();
        assert_eq!(settled(&halving), None, "10% less in each round is 32% less in a window");
        assert_eq!(settled(&[0.0; 25]), None);
        assert_eq!(settled(&[]), None);
    }

    #[test]
    fn a_fresh_device_has_not_settled() {
        let of = |values: &[f64]| settled(values).map(|window| (window.first, window.last()));
        let mut values = vec![270.0; 6];
        values.extend([100.0; 12]);
        assert_eq!(of(&values), Some((7, 11)));
        // What is odd does not count, wherever it is.
        values[15] = 20.0;
        values.extend([300.0, 20.0]);
        assert_eq!(of(&values), Some((7, 11)));
        // Even while it is fresh, and falling ever since.
        let mut values = vec![270.0; 6];
        values.extend((1..25).map(|round| 270.0 * 0.9_f64.powi(round)));
        assert_eq!(of(&values), None);
        let falling: Vec<f64> = (0..25).map(|round| 1e6 / 1.1_f64.powi(round)).collect();
        assert_eq!((of(&falling), of(&[]), of(&[5.0; 5])), (None, None, Some((1, 5))));
    }
}
