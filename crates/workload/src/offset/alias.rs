//! Draws one of many weighted entries in constant time: Walker's alias method (Electronics Letters 10, 1974), with the
//! set-up of Vose (IEEE Transactions on Software Engineering 17, 1991).
//!
//! Each entry has a column in the table. It keeps a part of the column and leaves the rest to one other entry. A draw
//! picks a column and then one of its two owners, both with one random number.

use std::hint::select_unpredictable;

#[derive(Clone, Debug)]
pub(crate) struct Alias {
    columns: Vec<Column>,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    /// The part of the column that the entry keeps, in units of 2^-64.
    own: u64,
    /// The entry that has the rest.
    other: u32,
}

impl Alias {
    /// A table for these weights. They must be finite, not negative and not all zero, and fewer than 2^32.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        let scaled = weights.len() as f64 / total;
        let mut left: Vec<f64> = weights.iter().map(|weight| weight * scaled).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..left.len()).partition(|&i| left[i] < 1.0);
        let mut columns: Vec<Column> =
            (0..left.len()).map(|i| Column { own: u64::MAX, other: i as u32 }).collect();
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            columns[poor] = Column { own: (left[poor] * 2f64.powi(64)) as u64, other: rich as u32 };
            left[rich] -= 1.0 - left[poor];
            if left[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Alias { columns }
    }

    /// The entry that 64 random bits select.
    #[inline(always)]
    pub(crate) fn pick(&self, bits: u64) -> usize {
        let product = u128::from(bits) * self.columns.len() as u128;
        let index = (product >> 64) as usize;
        let column = &self.columns[index];
        // No processor can predict which owner it is.
        select_unpredictable((product as u64) < column.own, index, column.other as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn entries_come_as_often_as_they_weigh() {
        let weights = [5.0, 0.0, 1.0, 0.25, 3.75];
        let table = Alias::new(&weights);
        let mut rng = Rng::new(3);
        let mut counts = [0u32; 5];
        for _ in 0..100_000 {
            counts[table.pick(rng.next_u64())] += 1;
        }
        assert_eq!(counts[1], 0);
        for (count, weight) in counts.iter().zip(weights) {
            // The largest standard deviation is that of a share of one half: 158.
            assert!((f64::from(*count) - weight * 10_000.0).abs() < 5.0 * 158.0, "{counts:?}");
        }
    }

    #[test]
    fn a_single_entry_is_always_it() {
        let table = Alias::new(&[0.1]);
        assert!([0, 1, u64::MAX].iter().all(|&bits| table.pick(bits) == 0));
    }
}
