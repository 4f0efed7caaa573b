//! Numbers for people: scaled to a unit, with a fixed number of characters.
//!
//! The rule is the one that users of fio know: a number may have as many characters as there are significant figures.
//! It is divided by the base until its integer part fits. The decimal point and decimals take the remaining room. So
//! with four figures, 4096 stays `4096`, 16384 is `16.0Ki`, 102400 is `100Ki`, and 1000 Mi is not yet shown in Gi.
//! Whether the integer part fits is decided before rounding: 10239488 bytes are `10000KiB`.

/// Prefixes of the powers of 1000.
const DECIMAL: [&str; 6] = ["", "k", "M", "G", "T", "P"];
/// Prefixes of the powers of 1024.
const BINARY: [&str; 6] = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/// More figures than any number here has; this limit prevents overflow.
const MAX_FIGURES: u32 = 15;

/// The number of characters for minima and maxima of latencies.
const LATENCY_FIGURES: u32 = 6;

/// How amounts of data and rates are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// The base of the prefix that comes first: 1024 or 1000. The other one follows in parentheses.
    pub kb_base: u32,
    /// 0 or 8 = rates in bytes, 1 = rates in bits. Amounts are always in bytes.
    pub unit_base: u32,
    /// Significant figures.
    pub figures: u32,
}

impl Units {
    /// An amount of data in the first base: `16.0MiB`.
    pub fn bytes(self, bytes: u64) -> String {
        scaled(u128::from(bytes), self.first(), self.figures) + "B"
    }

    /// An amount of data in the other base: `16.8MB`.
    pub fn bytes_other(self, bytes: u64) -> String {
        scaled(u128::from(bytes), self.first().other(), self.figures) + "B"
    }

    /// A rate in the first base: `214MiB/s`.
    pub fn rate(self, bytes_per_second: u64) -> String {
        self.rate_in(bytes_per_second, self.first())
    }

    /// A rate in the other base: `224MB/s`.
    pub fn rate_other(self, bytes_per_second: u64) -> String {
        self.rate_in(bytes_per_second, self.first().other())
    }

    /// A rate on the status line, where the smallest unit is 1024 (or 1000) bytes: `4000KiB/s`, `0KiB/s`.
    pub fn live_rate(self, bytes_per_second: u64) -> String {
        let base = self.first();
        let (value, unit) = self.in_unit(bytes_per_second);
        scaled_from(value / base.factor(), 1, base, self.figures) + unit
    }

    fn in_unit(self, bytes_per_second: u64) -> (u128, &'static str) {
        match self.unit_base {
            1 => (u128::from(bytes_per_second) * 8, "bit/s"),
            _ => (u128::from(bytes_per_second), "B/s"),
        }
    }

    fn rate_in(self, bytes_per_second: u64, base: Base) -> String {
        let (value, unit) = self.in_unit(bytes_per_second);
        scaled(value, base, self.figures) + unit
    }

    fn first(self) -> Base {
        if self.kb_base == 1000 { Base::Decimal } else { Base::Binary }
    }
}

/// An exact, readable amount: `512 B`, `1 MiB`, `953.9 GiB (1024209543168 B)`.
pub fn exact_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let whole = (1..=6).rev().find(|power| bytes > 0 && bytes.is_multiple_of(1 << (10 * power)));
    let fitting = (1..=6).rev().find(|power| bytes >= 1 << (10 * power));
    match (whole, fitting) {
        (Some(whole), Some(fitting)) if bytes >> (10 * whole) < 4096 || whole == fitting => {
            format!("{} {}", bytes >> (10 * whole), UNITS[whole - 1])
        }
        (_, Some(fitting)) => {
            let value = bytes as f64 / (1u64 << (10 * fitting)) as f64;
            format!("{value:.1} {} ({bytes} B)", UNITS[fitting - 1])
        }
        _ => format!("{bytes} B"),
    }
}

/// A plain count: `54.7k`.
pub fn count(value: u64, figures: u32) -> String {
    scaled(u128::from(value), Base::Decimal, figures)
}

/// The minimum or maximum of latencies, in the unit of its line: `8063.1k`.
pub fn extreme(value: u64) -> String {
    count(value, LATENCY_FIGURES)
}

/// A time in nanoseconds in the largest unit in which it is more than one, as with fio: `500.00us`, `1000.00ms`.
pub fn duration(ns: u64) -> String {
    let (divisor, unit) = match ns {
        0..=1_000 => (1.0, "ns"),
        1_001..=1_000_000 => (1e3, "us"),
        1_000_001..=1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{:.2}{unit}", ns as f64 / divisor)
}

/// The base by whose powers a number is scaled.
#[derive(Clone, Copy)]
enum Base {
    Decimal,
    Binary,
}

impl Base {
    fn other(self) -> Self {
        match self {
            Base::Decimal => Base::Binary,
            Base::Binary => Base::Decimal,
        }
    }

    fn factor(self) -> u128 {
        match self {
            Base::Decimal => 1000,
            Base::Binary => 1024,
        }
    }

    fn prefixes(self) -> &'static [&'static str; 6] {
        match self {
            Base::Decimal => &DECIMAL,
            Base::Binary => &BINARY,
        }
    }
}

fn scaled(value: u128, base: Base, figures: u32) -> String {
    scaled_from(value, 0, base, figures)
}

/// Scales a value in units of the `power`th prefix.
///
/// The remainders of all divisions but the last are dropped. Without decimals, a half rounds up. Decimals come from the
/// last remainder as a double, so 51150048 is `51.1M` and 51250048 is `51.2M`.
fn scaled_from(mut value: u128, mut power: usize, base: Base, figures: u32) -> String {
    let figures = figures.clamp(1, MAX_FIGURES) as usize;
    let prefixes = base.prefixes();
    let mut remainder = None;
    while digits(value) > figures && power + 1 < prefixes.len() {
        remainder = Some(value % base.factor());
        value /= base.factor();
        power += 1;
    }
    let decimals = figures.saturating_sub(digits(value) + 1);
    let number = match remainder {
        Some(remainder) if decimals > 0 => {
            let fraction = format!("{:.decimals$}", remainder as f64 / base.factor() as f64);
            let (carry, fraction) = fraction.split_once('.').unwrap_or((&fraction, ""));
            let whole = value + u128::from(carry == "1");
            format!("{whole}.{fraction}")
        }
        Some(remainder) => (value + u128::from(remainder * 2 >= base.factor())).to_string(),
        None => value.to_string(),
    };
    number + prefixes[power]
}

fn digits(value: u128) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BINARY_FIRST: Units = Units { kb_base: 1024, unit_base: 0, figures: 4 };
    const DECIMAL_FIRST: Units = Units { kb_base: 1000, unit_base: 0, figures: 4 };

    #[test]
    fn amounts_are_exact() {
        let cases = [
            (0, "0 B"),
            (512, "512 B"),
            (4096, "4 KiB"),
            (1 << 30, "1 GiB"),
            (1_024_209_543_168, "953.9 GiB (1024209543168 B)"),
            (3 << 29, "1536 MiB"),
            (1000, "1000 B"),
            (1025, "1.0 KiB (1025 B)"),
        ];
        cases.into_iter().for_each(|(amount, words)| assert_eq!(exact_bytes(amount), words));
    }

    /// Block sizes, as fio 3.33 shows them in a job's header line.
    #[test]
    fn amounts_as_the_peer_shows_them() {
        let vectors = [
            (89, "89B"),
            (658, "658B"),
            (696, "696B"),
            (8871, "8871B"),
            (9995, "9995B"),
            (102399, "100.0KiB"),
            (102400, "100KiB"),
            (1000448, "977KiB"),
            (1022976, "999KiB"),
            (1023487, "999KiB"),
            (1023488, "1000KiB"),
            (6095315, "5952KiB"),
            (9999999, "9766KiB"),
            (10239487, "9999KiB"),
            (10239488, "10000KiB"),
            (10239999, "10000KiB"),
            (10484735, "10.00MiB"),
            (10484736, "10.00MiB"),
            (98956253, "94.4MiB"),
            (764066412, "729MiB"),
            (916020244, "874MiB"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(BINARY_FIRST.bytes(bytes), text, "{bytes}");
        }
        let vectors = [
            (6513, "6513B"),
            (9995, "9995B"),
            (84386, "84.4kB"),
            (102399, "102kB"),
            (102400, "102kB"),
            (660521, "661kB"),
            (753647, "754kB"),
            (861325, "861kB"),
            (1000448, "1000kB"),
            (1022976, "1023kB"),
            (1023487, "1023kB"),
            (1023488, "1023kB"),
            (9999999, "10000kB"),
            (10239487, "10.2MB"),
            (10239487, "10.2MB"),
            (10239488, "10.2MB"),
            (10239999, "10.2MB"),
            (10484735, "10.5MB"),
            (10484736, "10.5MB"),
            (96227205, "96.2MB"),
            (664120946, "664MB"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(DECIMAL_FIRST.bytes(bytes), text, "{bytes}");
        }
        assert_eq!(BINARY_FIRST.bytes(10_239), "10.00KiB");
    }

    #[test]
    fn halves_as_the_peer_rounds_them() {
        let shown = [10_050, 51_150, 51_250, 47_050, 100_500, 101_500, 51_150_048, 100_500_001]
            .map(|bytes| DECIMAL_FIRST.bytes(bytes));
        assert_eq!(shown, ["10.1kB", "51.1kB", "51.2kB", "47.1kB", "101kB", "102kB", "51.1MB", "101MB"]);
        let shown = [10_496, 11_008, 102_912, 103_936].map(|bytes| BINARY_FIRST.bytes(bytes));
        assert_eq!(shown, ["10.2KiB", "10.8KiB", "101KiB", "102KiB"]);
    }

    /// 100 I/Os of 1234567 bytes in one millisecond, as fio 3.33 shows them with each number of figures.
    #[test]
    fn significant_figures() {
        let vectors = [
            (1, "0M", "0TiB/s", "0GB"),
            (2, "0M", "0TiB/s", "0GB"),
            (3, "100k", "115GiB/s", "123MB"),
            (4, "100k", "115GiB/s", "123MB"),
            (5, "100.0k", "115.0GiB/s", "123.5MB"),
            (6, "100000", "117737MiB/s", "123457kB"),
            (7, "100000", "117737MiB/s", "123457kB"),
            (8, "100000", "117737.5MiB/s", "123456.7kB"),
            (9, "100000", "120563184KiB/s", "123456700B"),
            (10, "100000", "120563184KiB/s", "123456700B"),
        ];
        for (figures, iops, rate, amount) in vectors {
            let units = Units { figures, ..BINARY_FIRST };
            assert_eq!(count(100_000, figures), iops);
            assert_eq!(units.rate(123_456_700_000), rate);
            assert_eq!(units.bytes_other(123_456_700), amount);
        }
    }

    #[test]
    fn bits_are_for_rates_only() {
        let binary = Units { unit_base: 1, ..BINARY_FIRST };
        assert_eq!(
            (binary.rate(12_300_000), binary.rate_other(12_300_000)),
            ("93.8Mibit/s".into(), "98.4Mbit/s".into())
        );
        assert_eq!(binary.rate(218), "1744bit/s");
        assert_eq!(binary.bytes(12_300), "12.0KiB");
        let decimal = Units { unit_base: 1, ..DECIMAL_FIRST };
        assert_eq!(
            (decimal.rate(12_300_000), decimal.rate_other(12_300_000)),
            ("98.4Mbit/s".into(), "93.8Mibit/s".into())
        );
    }

    #[test]
    fn rates_on_the_status_line_start_at_a_thousand() {
        let shown = [0, 1023, 1024, 4_096_000, 21_495_808].map(|rate| BINARY_FIRST.live_rate(rate));
        assert_eq!(shown, ["0KiB/s", "0KiB/s", "1KiB/s", "4000KiB/s", "20.5MiB/s"]);
    }

    #[test]
    fn extremes_of_latencies() {
        let shown = [30_733, 164_435, 1_999_001, 2_000_500, 8_063_100, 101_996_999, 102_000_500].map(extreme);
        assert_eq!(shown, ["30733", "164435", "1999.0k", "2000.5k", "8063.1k", "101997k", "102001k"]);
    }

    #[test]
    fn durations() {
        let shown = [0, 999, 500_000, 500_000_000, 1_500_000_000].map(duration);
        assert_eq!(shown, ["0.00ns", "999.00ns", "500.00us", "500.00ms", "1.50s"]);
        let full = [1_000, 1_000_000, 1_000_000_000].map(duration);
        assert_eq!(full, ["1000.00ns", "1000.00us", "1000.00ms"]);
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn no_number_is_too_large(value in any::<u64>(), figures in any::<u32>(), kb_base in any::<u32>(), unit_base in 0u32..9) {
            let units = Units { kb_base, unit_base, figures };
            for text in [units.bytes(value), units.bytes_other(value), units.rate(value), units.rate_other(value),
                         units.live_rate(value), count(value, figures), extreme(value), duration(value)] {
                prop_assert!(text.starts_with(|first: char| first.is_ascii_digit()));
            }
        }

        #[test]
        fn a_scaled_number_keeps_its_width(value in 0u64..1 << 50, figures in 3u32..10) {
            let text = count(value, figures);
            let number = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
            // Rounding up may add a digit: 9999.9 is 10000.
            prop_assert!(number.len() <= figures as usize + 1, "{}", text);
        }
    }
}
