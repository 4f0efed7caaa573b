//! Student's t distribution, and confidence intervals: of a mean, and of the difference of two means with different
//! variances.
//!
//! Sources: B. L. Welch, "The generalization of 'Student's' problem when several different population variances are
//! involved", Biometrika 34 (1947); F. E. Satterthwaite, Biometrics Bulletin 2 (1946), for the degrees of freedom.
//! The distribution is computed from the incomplete beta function (NIST Digital Library of Mathematical Functions:
//! 8.17.22 for its continued fraction, 5.11.1 for the logarithm of the gamma function).

/// The difference of the means of two samples, and half the width of its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// New minus base.
    pub centre: f64,
    /// Half the width of the interval.
    pub half: f64,
}

/// The difference of the means of two samples with at least two values each. `alpha` is the probability that the
/// interval misses the true difference. The interval extends at least `resolution` to either side, because a value
/// that is measured in steps cannot be known more precisely.
///
/// The standard error is the larger of Welch's and the pooled one, and the degrees of freedom are Welch's. Welch's
/// error alone would trust a small sample that has no spread by chance: if runs jump between two levels, all five
/// runs of a side may be at the same level.
pub fn difference(base: &[f64], new: &[f64], alpha: f64, resolution: f64) -> Difference {
    let samples = [base, new].map(|values| {
        let (count, mean) = (values.len() as f64, mean(values));
        (count, mean, variance(values, mean))
    });
    let [(of_base, base, base_variance), (of_new, new, new_variance)] = samples;
    let parts = [(base_variance / of_base, of_base - 1.0), (new_variance / of_new, of_new - 1.0)];
    let apart = parts[0].0 + parts[1].0;
    let squares = base_variance * (of_base - 1.0) + new_variance * (of_new - 1.0);
    let pooled = squares / (of_base + of_new - 2.0) * (1.0 / of_base + 1.0 / of_new);
    let below: f64 = parts.iter().map(|(part, freedom)| part * part / freedom).sum();
    let half =
        if below > 0.0 { quantile(alpha, apart * apart / below) * apart.max(pooled).sqrt() } else { 0.0 };
    Difference { centre: new - base, half: half.max(resolution) }
}

/// The mean of at least two values, and how far its interval extends to either side: at least `resolution`. `alpha`
/// is the probability that the interval misses the true mean.
pub fn mean_within(values: &[f64], alpha: f64, resolution: f64) -> (f64, f64) {
    let (count, mean) = (values.len() as f64, mean(values));
    let error = (variance(values, mean) / count).sqrt();
    let half = if error > 0.0 { quantile(alpha, count - 1.0) * error } else { 0.0 };
    (mean, half.max(resolution))
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample variance.
pub fn variance(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// The value that |t| exceeds with probability `alpha`. Found by false position, with the Illinois rule: an end that stays
/// twice counts half (M. Dowell and P. Jarratt, BIT 11 (1971)).
pub fn quantile(alpha: f64, freedom: f64) -> f64 {
    let above = |t: f64| beyond(t, freedom) - alpha;
    let (mut low, mut high) = (0.0, 1.0);
    let (mut at_low, mut at_high) = (1.0 - alpha, above(high));
    while at_high > 0.0 && high < 1e9 {
        (low, at_low, high) = (high, at_high, high * 2.0);
        at_high = above(high);
    }
    let mut was_above = None;
    for _ in 0..100 {
        let next = (low * at_high - high * at_low) / (at_high - at_low);
        let at_next = above(next);
        if at_next.abs() <= 1e-9 * alpha {
            return next;
        }
        let is_above = at_next > 0.0;
        let stays_twice = was_above.replace(is_above) == Some(is_above);
        let weight = if stays_twice { 0.5 } else { 1.0 };
        if is_above {
            (low, at_low, at_high) = (next, at_next, at_high * weight);
        } else {
            (high, at_high, at_low) = (next, at_next, at_low * weight);
        }
    }
    high
}

/// The probability that |t| is larger than `t`.
fn beyond(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// The regularised incomplete beta function.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let factor = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast below this point. Above it, the fraction of the complement does.
    if x < (a + 1.0) / (a + b + 2.0) {
        factor * fraction(x, a, b) / a
    } else {
        1.0 - factor * fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction 1/(1 + d₁/(1 + d₂/(1 + …))), computed from its tail.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TERMS: u32 = 120;
    let mut value = 1.0;
    for term in (1..=TERMS).rev() {
        let m = f64::from(term / 2);
        let d = if term % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        value = 1.0 + d / value;
    }
    1.0 / value
}

/// The logarithm of the gamma function of a positive number, from Stirling's series. The series needs a large
/// argument, so small ones are raised with Γ(x + 1) = x Γ(x).
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let square = x * x;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From tables of Student's t (two-sided).
    #[test]
    fn quantiles_are_those_of_tables() {
        for (alpha, freedom, expected) in [
            (0.05, 1.0, 12.706),
            (0.05, 4.0, 2.776),
            (0.05, 8.0, 2.306),
            (0.01, 8.0, 3.355),
            (0.001, 4.0, 8.610),
            (0.05, 18.0, 2.101),
            (0.01, 100.0, 2.626),
            (0.05, 1e5, 1.960),
        ] {
            let found = quantile(alpha, freedom);
            assert!((found - expected).abs() < 0.001, "{alpha} {freedom}: {found}, not {expected}");
        }
        // With thousands of figures, the tail beyond the quantile still has the requested probability. (With two
        // degrees of freedom, the distribution has a closed form.)
        let t = quantile(1e-6, 2.0);
        assert!((1.0 - t / (2.0 + t * t).sqrt() - 1e-6).abs() < 1e-8, "{t}");
    }

    #[test]
    fn an_interval_by_hand() {
        // Means 3 and 4, variances 2.5 and 2.5: the standard error of the difference is 1, with 8 degrees of freedom.
        let found = difference(&[1., 2., 3., 4., 5.], &[2., 3., 4., 5., 6.], 0.05, 0.0);
        assert!((found.centre - 1.0).abs() < 1e-12 && (found.half - 2.306).abs() < 0.001, "{found:?}");
        // A side without spread does not contribute to the degrees of freedom.
        let found = difference(&[3.; 5], &[1., 2., 3., 4., 5.], 0.05, 0.0);
        assert!((found.half - 2.776 * 0.5_f64.sqrt()).abs() < 0.001, "{found:?}");
        assert_eq!(difference(&[3.; 5], &[3.; 5], 0.05, 0.01).half, 0.01);
        // Its lack of spread does not make the error of the other side smaller, although it has more runs.
        let (five, twenty) = ([3.; 5], [2., 4.].repeat(10));
        let half = difference(&five, &twenty, 0.05, 0.0).half;
        let pooled = (20.0 / 23.0 * 0.25_f64).sqrt();
        assert!((half - quantile(0.05, 19.0) * pooled).abs() < 1e-6, "{half}");
    }
}
