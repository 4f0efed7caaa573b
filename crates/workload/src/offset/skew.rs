//! Draws ranks by a law, exactly and in constant time.
//!
//! The ranks are cut into pieces within which the law hardly changes: in each piece, the least popular rank has at
//! least 96% of the weight of the most popular one. A draw picks a piece by its weight ([alias method](super::alias))
//! and then any rank of the piece with equal probability. It accepts the rank with a probability that is the rank's
//! weight in relation to the largest weight of the piece: rejection sampling, as in von Neumann's "Various techniques
//! used in connection with random digits" (1951). Nearly always the law need not be evaluated for this, because the
//! random number lies below the smallest weight. So a draw takes two random numbers and two loads from a table of about
//! a thousand pieces, for any law and any number of ranks.

use super::{alias::Alias, law::Curve};
use crate::{Law, rng::Rng};

/// The smallest weight in a piece in relation to the largest.
const EVENNESS: f64 = 0.96;

/// Pieces with a smaller share of the weight than this are not cut further.
const RARE: f64 = 1e-6;

/// A law prepared for drawing.
#[derive(Clone, Debug)]
pub struct Skewed {
    curve: Curve,
    shares: Alias,
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    first: u64,
    count: u64,
    /// Random numbers up to this one accept every rank of the piece.
    sure: u64,
    /// The largest weight of a rank.
    most: f64,
}

impl Skewed {
    /// Prepares a law over `n` ranks.
    pub fn new(law: Law, n: u64) -> Self {
        let curve = Curve::new(law, n);
        let total = curve.weight(0, curve.ranks());
        let mut pieces = Vec::new();
        let mut weights = Vec::new();
        // A stack of the ranges that have yet to be cut, the first one on top.
        let mut ranges = vec![(curve.turn(), curve.ranks()), (0, curve.turn())];
        while let Some((start, end)) = ranges.pop() {
            if start >= end {
                continue;
            }
            let (a, b) = (curve.mass(start), curve.mass(end - 1));
            let (least, most) = if a < b { (a, b) } else { (b, a) };
            let weight = curve.weight(start, end);
            if end - start > 1 && least < most * EVENNESS && weight > total * RARE {
                let middle = start + (end - start) / 2;
                ranges.extend([(middle, end), (start, middle)]);
                continue;
            }
            // Slightly below the true quotient, so that rounding never accepts too many.
            let sure =
                if most > 0.0 { (least / most * (1.0 - 1e-12) * 2f64.powi(64)) as u64 } else { u64::MAX };
            pieces.push(Piece { first: start, count: end - start, sure, most });
            weights.push(weight);
        }
        Skewed { curve, shares: Alias::new(&weights), pieces }
    }

    /// The most popular rank, if it is the first rank or the turn of the law.
    pub fn favourite(&self) -> u64 {
        self.curve.turn()
    }

    /// Draws a rank.
    #[inline(always)]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let piece = &self.pieces[self.shares.pick(rng.next_u64())];
        let product = u128::from(rng.next_u64()) * u128::from(piece.count);
        let rank = piece.first + (product >> 64) as u64;
        // The low half of the product is another random number, as the rank uses only the upper half.
        if product as u64 <= piece.sure { rank } else { self.reconsider(piece, rank, product as u64, rng) }
    }

    /// Accepts the rank, or draws others from the same piece until one is accepted.
    #[cold]
    #[inline(never)]
    fn reconsider(&self, piece: &Piece, mut rank: u64, mut coin: u64, rng: &mut Rng) -> u64 {
        while coin as f64 * 2f64.powi(-64) * piece.most > self.curve.mass(rank) {
            let product = u128::from(rng.next_u64()) * u128::from(piece.count);
            rank = piece.first + (product >> 64) as u64;
            coin = product as u64;
        }
        rank
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAWS: [Law; 13] = [
        Law::Zipf(-1.0),
        Law::Zipf(0.0),
        Law::Zipf(0.5),
        Law::Zipf(0.99),
        Law::Zipf(1.0),
        Law::Zipf(1.2),
        Law::Zipf(5.0),
        Law::Pareto(0.05),
        Law::Pareto(0.2),
        Law::Pareto(0.5),
        Law::Pareto(0.97),
        Law::Normal(0.0),
        Law::Normal(40.0),
    ];

    /// Chi-square of `draws` draws against the law, over groups of ranks with at least 20 expected draws each, and the
    /// degrees of freedom: the number of groups less one.
    fn chi_square(law: Law, n: u64, draws: u32, seed: u64) -> (f64, f64) {
        let table = Skewed::new(law, n);
        let curve = Curve::new(law, n);
        let mut ranks: Vec<u64> = {
            let mut rng = Rng::new(seed);
            (0..draws).map(|_| table.draw(&mut rng)).collect()
        };
        ranks.sort_unstable();
        assert!(*ranks.last().unwrap() < n);
        // The limits of the groups: quantiles of the law, found by bisection.
        let mut limits = vec![0];
        let groups = 400;
        for group in 1..groups {
            let target = f64::from(group) / f64::from(groups);
            let (mut low, mut high) = (0, n);
            while low < high {
                let middle = low + (high - low) / 2;
                if curve.share(0, middle) < target { low = middle + 1 } else { high = middle }
            }
            let last = *limits.last().unwrap();
            if low > last && low < n && f64::from(draws) * curve.share(last, low) >= 20.0 {
                limits.push(low);
            }
        }
        if limits.len() > 1 && f64::from(draws) * curve.share(*limits.last().unwrap(), n) < 20.0 {
            limits.pop();
        }
        limits.push(n);
        let below = |limit: u64| ranks.partition_point(|&rank| rank < limit);
        let chi = limits
            .windows(2)
            .map(|pair| {
                let seen = (below(pair[1]) - below(pair[0])) as f64;
                let expected = f64::from(draws) * curve.share(pair[0], pair[1]);
                (seen - expected).powi(2) / expected
            })
            .sum();
        (chi, limits.len() as f64 - 2.0)
    }

    #[test]
    fn draws_follow_the_law() {
        for (index, law) in LAWS.into_iter().enumerate() {
            for n in [1, 2, 3, 10, 1000, 65_537, 1 << 30, 1 << 45] {
                let (chi, freedom) = chi_square(law, n, 200_000, 100 + index as u64);
                // Five standard deviations of a normal law, by the cube root of Wilson and Hilferty.
                let part = 2.0 / (9.0 * freedom.max(1.0));
                let limit = freedom * (1.0 - part + 5.0 * part.sqrt()).powi(3);
                assert!(chi <= limit, "{law:?} over {n}: {chi} with {freedom} degrees of freedom");
            }
        }
    }

    /// The test above would notice a small deviation from the law.
    #[test]
    fn the_test_tells_laws_apart() {
        let curve = Curve::new(Law::Zipf(1.0), 1000);
        let table = Skewed::new(Law::Zipf(1.01), 1000);
        let mut rng = Rng::new(1);
        let first = (0..200_000).filter(|_| table.draw(&mut rng) < 10).count() as f64;
        let expected = 200_000.0 * curve.share(0, 10);
        let deviation = (expected * (1.0 - curve.share(0, 10))).sqrt();
        assert!((first - expected).abs() > 5.0 * deviation, "{first} against {expected}");
    }

    #[test]
    fn tables_are_small() {
        for law in LAWS {
            let table = Skewed::new(law, 1 << 50);
            assert!(table.pieces.len() < 3000, "{law:?}: {} pieces", table.pieces.len());
            let ranks: u64 = table.pieces.iter().map(|piece| piece.count).sum();
            assert_eq!(ranks, 1 << 50);
        }
    }
}
