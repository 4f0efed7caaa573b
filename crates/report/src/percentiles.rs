//! The table of percentiles in the normal report.

use crate::latency::Scale;
use iolite_stats::Histogram;
use std::io::{self, Write};

/// The width of the table in columns, without its margin.
const LINE: usize = 73;
/// The least number of characters of a value.
const NARROWEST: usize = 5;
/// The most decimals of a percentile.
const MOST_DECIMALS: usize = 9;

/// Writes the table of a histogram's percentiles: a heading, then as many entries per line as fit. Writes nothing if
/// the histogram or the list is empty.
pub fn write(kind: &str, histogram: &Histogram, percentiles: &[f64], out: &mut dyn Write) -> io::Result<()> {
    let values = histogram.percentiles(percentiles);
    let (Some(&min), Some(&max)) = (values.iter().min(), values.iter().max()) else { return Ok(()) };
    if histogram.total() == 0 {
        return Ok(());
    }
    let scale = Scale::of_range(min, max);
    let decimals = decimals(percentiles);
    let width = max.div_ceil(scale.divisor).to_string().len().max(NARROWEST);
    let label_width = decimals + 3;
    let per_line = (LINE / (width + decimals + 10)).max(1);

    write!(out, "    {kind} percentiles ({}):", scale.name)?;
    for (position, (percentile, value)) in percentiles.iter().zip(values).enumerate() {
        write!(
            out,
            "{}",
            match position {
                0 => "\n     | ",
                _ if position % per_line == 0 => ",\n     | ",
                _ => ", ",
            }
        )?;
        // Rounded up, so that the value shown is never below the one measured.
        let value = value.div_ceil(scale.divisor);
        write!(out, "{percentile:label_width$.decimals$}th=[{value:width$}]")?;
    }
    writeln!(out)
}

/// The number of decimals that the most precise percentile needs.
fn decimals(percentiles: &[f64]) -> usize {
    let needs = |percentile: &f64| {
        let text = format!("{percentile:.MOST_DECIMALS$}");
        text.trim_end_matches('0').split_once('.').map_or(0, |(_, fraction)| fraction.len())
    };
    percentiles.iter().map(needs).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(counts: &[(u64, usize)], percentiles: &[f64]) -> String {
        let mut histogram = Histogram::default();
        for &(value, count) in counts {
            (0..count).for_each(|_| histogram.record(value));
        }
        let mut out = Vec::new();
        write("clat", &histogram, percentiles, &mut out).expect("memory takes everything");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn four_narrow_entries_fit_on_a_line() {
        let expected = "    clat percentiles (usec):\n     |   1th=[ 2999],   5th=[ 2999],  10th=[ 2999],  \
                        20th=[ 2999],\n     |  30th=[ 2999],  40th=[ 2999],  50th=[ 2999]\n";
        let list = [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0];
        assert_eq!(table(&[(3_000_000, 75), (12_345_678, 25)], &list), expected);
    }

    #[test]
    fn wide_values_make_three_columns() {
        let expected = "    clat percentiles (nsec):\n     |  1.00th=[    1004],  5.00th=[    1004], \
                        10.00th=[    1004],\n     | 99.99th=[12386304]\n";
        assert_eq!(table(&[(1000, 75), (12_345_678, 25)], &[1.0, 5.0, 10.0, 99.99]), expected);
    }

    #[test]
    fn precise_percentiles_make_two() {
        let expected = "    clat percentiles (nsec):\n     |  1.000000th=[     1004],  5.000000th=[     1004],\n     \
                        | 10.000000th=[     1004], 20.000000th=[     1004],\n     | 99.123456th=[123207680]\n";
        let list = [1.0, 5.0, 10.0, 20.0, 99.123456];
        assert_eq!(table(&[(1000, 75), (123_456_789, 25)], &list), expected);
    }

    #[test]
    fn values_round_up() {
        // 12 345 678 ns is in a bucket whose midpoint is 12 386 304.
        let expected = "    clat percentiles (usec):\n     |   1th=[  100],  99th=[12387]\n";
        assert_eq!(table(&[(99_999, 1), (12_345_678, 1)], &[1.0, 99.0]), expected);
    }

    #[test]
    fn nothing_of_nothing() {
        assert_eq!(table(&[], &[50.0]), "");
        assert_eq!(table(&[(1, 1)], &[]), "");
    }
}
