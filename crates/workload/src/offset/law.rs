//! The laws of popularity as functions: the weight of a range of ranks.
//!
//! Weights are sums or integrals over whole ranges. They are computed so that long ranges cost no more than short ones,
//! and short ranges at high ranks do not lose precision. Nothing here is done per I/O.
//!
//! **zipf.** Sums of 1 / i^θ. The first terms are added one by one, the others by the midpoint rule with its first
//! correction (Euler and Maclaurin), which is exact to seven digits there.
//!
//! **pareto.** The first x of all ranks have the weight x^k.
//!
//! **normal.** fio's manual only says "a normal deviation between 0 and 100", so fio's behaviour was measured: it takes
//! the mean of twelve uniform numbers (the classic approximation of a Gaussian, an Irwin-Hall law with a standard
//! deviation of 1/12 of the range) and adds uniform jitter. The width of the jitter is the deviation, in percent of the
//! range, at most 50. So the standard deviation is sqrt(1/144 + d²/12) of the range, from 8.3% (d = 0) to 16.7% (d ≥
//! 50). The twelve uniform numbers have the distribution F(s) = 1/12! Σ (-1)^k C(12, k) (s - k)^12 over k ≤ s (Irwin
//! 1927, Hall 1927). Values beyond one end of the range wrap to the other. Ranks of this law are not in the order of
//! popularity: the most popular one is in the middle.

use crate::Law;

/// A law over `n` ranks.
#[derive(Clone, Copy, Debug)]
pub struct Curve {
    law: Law,
    n: u64,
}

impl Curve {
    /// The law over `n` ranks, at least 1.
    pub fn new(law: Law, n: u64) -> Self {
        Curve { law, n: n.max(1) }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u64 {
        self.n
    }

    /// The share of the accesses that goes to the ranks from `start` up to `end`, exclusive.
    pub fn share(&self, start: u64, end: u64) -> f64 {
        self.weight(start, end) / self.weight(0, self.n)
    }

    /// The weight of a range of ranks, in an arbitrary unit.
    pub(super) fn weight(&self, start: u64, end: u64) -> f64 {
        if start >= end {
            return 0.0;
        }
        match self.law {
            Law::Zipf(theta) => zipf(theta, start, end),
            Law::Pareto(h) => pareto(h, self.n, start, end),
            Law::Normal(deviation) => {
                let at = |rank: u64| wrapped(deviation, self.position(rank as f64));
                (at(end) - at(start)).max(0.0)
            }
        }
    }

    /// The weight of one rank, in an arbitrary unit (not always the unit of [`weight`](Self::weight)).
    pub(super) fn mass(&self, rank: u64) -> f64 {
        match self.law {
            // The difference of two sums near 1 would have no precision left. Over a millionth of the range, the bell
            // is flat.
            Law::Normal(deviation) if self.n > 1 << 20 => {
                let x = self.position(rank as f64 + 0.5);
                density(deviation, x) + density(deviation, x - 1.0) + density(deviation, x + 1.0)
            }
            _ => self.weight(rank, rank + 1),
        }
    }

    /// The rank at which the law changes from rising to falling; 0 if it does not.
    pub(super) fn turn(&self) -> u64 {
        match self.law {
            Law::Normal(_) => self.n / 2,
            _ => 0,
        }
    }

    /// A rank as a fraction of the range, from -1/2 to 1/2.
    fn position(&self, rank: f64) -> f64 {
        rank / self.n as f64 - 0.5
    }
}

/// The sum of 1 / i^theta over the ranks, the first of which is i = 1.
fn zipf(theta: f64, start: u64, end: u64) -> f64 {
    const ONE_BY_ONE: u64 = 64;
    let term = |i: f64| i.powf(-theta);
    let near = (start..end.min(ONE_BY_ONE)).map(|rank| term(rank as f64 + 1.0)).sum::<f64>();
    let start = start.max(ONE_BY_ONE);
    if start >= end {
        return near;
    }
    if end - start == 1 {
        return near + term(start as f64 + 1.0);
    }
    // The terms i = start + 1 to end as the integral from half a step before to half a step after.
    let (a, b) = (start as f64 + 0.5, end as f64 + 0.5);
    let s = 1.0 - theta;
    let integral =
        if s.abs() < 1e-12 { (b / a).ln() } else { a.powf(s) * (s * ((b - a) / a).ln_1p()).exp_m1() / s };
    let slope = |x: f64| -theta * x.powf(-theta - 1.0);
    near + integral - (slope(b) - slope(a)) / 24.0
}

/// (end / n)^k - (start / n)^k.
fn pareto(h: f64, n: u64, start: u64, end: u64) -> f64 {
    let k = (1.0 - h).ln() / h.ln();
    let (start, end) = (start as f64, end as f64);
    let top = (end / n as f64).powf(k);
    if start == 0.0 { top } else { top * -(k * ((start - end) / end).ln_1p()).exp_m1() }
}

/// The width of the jitter as a fraction of the range, for a deviation in percent.
fn jitter(deviation: f64) -> f64 {
    deviation.clamp(0.0, 50.0) / 100.0
}

/// The part of the bell below `x`, wrapped around the range from -1/2 to 1/2, plus a constant.
fn wrapped(deviation: f64, x: f64) -> f64 {
    below(deviation, x) + below(deviation, x - 1.0) + below(deviation, x + 1.0)
}

/// The part of the unwrapped bell below `x`.
fn below(deviation: f64, x: f64) -> f64 {
    let width = jitter(deviation);
    let at = |x: f64| 12.0 * (x + 0.5);
    if width < 1e-4 {
        return sum_below(at(x));
    }
    (integral(at(x + width / 2.0)) - integral(at(x - width / 2.0))) / (12.0 * width)
}

/// The height of the unwrapped bell at `x`.
fn density(deviation: f64, x: f64) -> f64 {
    let width = jitter(deviation).max(1e-4);
    let at = |x: f64| 12.0 * (x + 0.5);
    (sum_below(at(x + width / 2.0)) - sum_below(at(x - width / 2.0))) / width
}

/// Σ (-1)^k C(12, k) (s - k)^power / power! over k ≤ s, for s up to 6.
fn powers(s: f64, power: i32) -> f64 {
    const CHOOSE: [f64; 7] = [1.0, 12.0, 66.0, 220.0, 495.0, 792.0, 924.0];
    let factorial: f64 = (1..=power).map(f64::from).product();
    let terms = (0i32..).zip(CHOOSE).take_while(|&(k, _)| f64::from(k) < s);
    let term = |(k, choose): (i32, f64)| {
        let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
        sign * choose * (s - f64::from(k)).powi(power) / factorial
    };
    terms.map(term).sum()
}

/// The probability that twelve uniform numbers sum to less than `s`.
fn sum_below(s: f64) -> f64 {
    match s {
        ..=0.0 => 0.0,
        12.0.. => 1.0,
        ..=6.0 => powers(s, 12),
        _ => 1.0 - powers(12.0 - s, 12),
    }
}

/// The integral of [`sum_below`] from 0 to `s`.
fn integral(s: f64) -> f64 {
    match s {
        ..=0.0 => 0.0,
        12.0.. => s - 6.0,
        ..=6.0 => powers(s, 13),
        _ => powers(12.0 - s, 13) + s - 6.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1e-300), "{a} is not {b}");
    }

    #[test]
    fn zipf_sums_are_those_of_the_terms() {
        for theta in [-1.0, 0.0, 0.5, 0.99, 1.0, 1.2, 3.0] {
            for (start, end) in [(0, 1), (0, 100), (10, 5000), (64, 66), (1000, 100_000), (99_999, 100_000)] {
                let terms: f64 = (start..end).rev().map(|i| (i as f64 + 1.0).powf(-theta)).sum();
                close(zipf(theta, start, end), terms, 1e-7);
            }
        }
        // ζ(2) = π²/6.
        close(zipf(2.0, 0, 1 << 60), std::f64::consts::PI.powi(2) / 6.0, 1e-9);
        // The harmonic numbers are ln n + γ + 1/2n.
        close(zipf(1.0, 0, 1 << 40), 40.0 * 2f64.ln() + 0.577_215_664_901_532_9, 1e-9);
    }

    #[test]
    fn pareto_is_self_similar() {
        let curve = Curve::new(Law::Pareto(0.2), 1 << 40);
        let ranks = (1u64 << 40) as f64;
        close(curve.share(0, (ranks * 0.2) as u64), 0.8, 1e-9);
        close(curve.share(0, (ranks * 0.04) as u64), 0.64, 1e-9);
        let even = Curve::new(Law::Pareto(0.5), 1000);
        close(even.share(300, 400), 0.1, 1e-12);
        // Single high ranks keep their precision: the derivative of x^k at 1 is k.
        close(curve.mass((1 << 40) - 1) * ranks, 0.8f64.ln() / 0.2f64.ln(), 1e-9);
    }

    fn deviation_of(curve: Curve) -> f64 {
        let n = curve.ranks();
        let square = |rank: u64| curve.position(rank as f64 + 0.5).powi(2);
        (0..n).map(|rank| curve.share(rank, rank + 1) * square(rank)).sum::<f64>().sqrt()
    }

    /// The standard deviations of 131072 I/Os of fio 3.33 for `normal:0`, 10, 20, 40, 50 and 99.
    #[test]
    fn normal_is_as_wide_as_measured() {
        for (deviation, measured) in [
            (0.0, 0.08348),
            (10.0, 0.08856),
            (20.0, 0.10180),
            (40.0, 0.14283),
            (50.0, 0.16705),
            (99.0, 0.16705),
        ] {
            // The standard error of such a measurement is 0.2%.
            close(deviation_of(Curve::new(Law::Normal(deviation), 4096)), measured, 0.01);
        }
    }

    #[test]
    fn normal_is_symmetric_and_complete() {
        for deviation in [0.0, 0.005, 1.0, 30.0, 50.0] {
            let curve = Curve::new(Law::Normal(deviation), 1 << 30);
            close(curve.weight(0, 1 << 30), 1.0, 1e-9);
            close(curve.weight(0, 1 << 29), 0.5, 1e-9);
            close(curve.weight(1 << 28, 1 << 29), curve.weight(1 << 29, 3 << 28), 1e-9);
            let small = Curve::new(Law::Normal(deviation), 1 << 20);
            for rank in [1 << 17, 1 << 18, (1 << 19) - 3] {
                let density = density(deviation, small.position(rank as f64 + 0.5)) / small.n as f64;
                if density > 1e-9 {
                    close(small.mass(rank), density, 1e-2);
                }
            }
        }
    }
}
