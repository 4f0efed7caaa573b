//! Numbers for people: three significant figures and a unit. Screens, pages and findings all use these.

/// Three significant figures, without zeros at the end.
pub fn digits(value: f64) -> String {
    // No measurement is that large, but a stored file may say anything, and 1e308 has 309 digits.
    const MOST: f64 = 1e9;
    if value.abs() >= MOST {
        return format!("{value:.2e}");
    }
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        0.0 => 0,
        size => (2 - size.log10().floor() as i32).clamp(0, 9),
    };
    let text = format!("{value:.*}", decimals.unsigned_abs() as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn scaled(value: f64, base: f64, units: &[&str], between: &str) -> String {
    let mut rest = value;
    let mut units = units.iter().peekable();
    let mut unit = units.next().copied().unwrap_or_default();
    while rest.abs() >= base * 0.9995
        && let Some(next) = units.next()
    {
        rest /= base;
        unit = next;
    }
    format!("{}{between}{unit}", digits(rest))
}

/// A count: `54.7k`.
pub fn count(value: f64) -> String {
    scaled(value, 1000.0, &["", "k", "M", "G", "T"], "")
}

/// Bytes per second: `214 MiB/s`.
pub fn bandwidth(value: f64) -> String {
    DataUnits::default().rate(value)
}

/// In which units rates of data are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataUnits {
    /// In powers of 1000.
    pub is_decimal: bool,
    /// In bits.
    pub is_bits: bool,
}

impl DataUnits {
    /// Bytes per second: `214 MiB/s`, `224 MB/s`, `1.67 Gib/s`, `1.79 Gb/s`.
    pub fn rate(self, bytes_per_second: f64) -> String {
        let (value, unit) =
            if self.is_bits { (bytes_per_second * 8.0, "b/s") } else { (bytes_per_second, "B/s") };
        let (base, prefixes) = match self.is_decimal {
            true => (1000.0, ["", "k", "M", "G", "T"]),
            false => (1024.0, ["", "Ki", "Mi", "Gi", "Ti"]),
        };
        scaled(value, base, &prefixes, " ") + unit
    }
}

/// Bytes: `1.86 TiB`.
pub fn bytes(value: f64) -> String {
    scaled(value, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"], " ")
}

/// Nanoseconds: `82.4 µs`.
pub fn latency(value: f64) -> String {
    scaled(value, 1000.0, &["ns", "µs", "ms", "s"], " ")
}

/// Seconds: `0.5 s`.
pub fn seconds(value: f64) -> String {
    match value {
        few if few < 120.0 => format!("{} s", digits(few)),
        minutes if minutes < 7200.0 => format!("{} min", digits(minutes / 60.0)),
        hours => format!("{} h", digits(hours / 3600.0)),
    }
}

/// A share: `3.2%`.
pub fn percent(value: f64) -> String {
    format!("{}%", digits(value))
}

/// A relative change as a percentage with its sign.
pub fn signed(change: f64) -> String {
    let percent = change * 100.0;
    match percent.abs() {
        small if small < 0.995 => format!("{percent:+.2}%"),
        middling if middling < 99.95 => format!("{percent:+.1}%"),
        large if large < 1e6 => format!("{percent:+.0}%"),
        _ => format!("{percent:+.1e}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_figures() {
        let counts = [0.0, 0.25, 7.0, 999.4, 999.6, 1000.0, 54_740.0, 1_234_567.0].map(count);
        assert_eq!(counts, ["0", "0.25", "7", "999", "1k", "1k", "54.7k", "1.23M"]);
        assert_eq!([0.0, 1023.0, 224_395_264.0].map(bandwidth), ["0 B/s", "1023 B/s", "214 MiB/s"]);
        let rates = [(false, false), (true, false), (false, true), (true, true)];
        let rates = rates.map(|(is_decimal, is_bits)| DataUnits { is_decimal, is_bits }.rate(224_395_264.0));
        assert_eq!(rates, ["214 MiB/s", "224 MB/s", "1.67 Gib/s", "1.8 Gb/s"]);
        assert_eq!([1e308, -1e308, 1e24].map(count), ["1.00e296T", "-1.00e296T", "1.00e12T"]);
        assert_eq!((percent(1e308), latency(f64::MAX)), ("1.00e308%".to_owned(), "1.80e299 s".to_owned()));
        assert_eq!([41.0, 1500.0, 82_432.0, 12e9].map(latency), ["41 ns", "1.5 µs", "82.4 µs", "12 s"]);
        assert_eq!([0.1, 60.0, 300.0, 86_400.0].map(seconds), ["0.1 s", "60 s", "5 min", "24 h"]);
    }
}
