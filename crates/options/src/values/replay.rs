//! The directions that a replay leaves out, and how often merged traces are run.

use crate::ReplaySkip;

/// Parses kinds of I/O, separated by commas: `read,sync`.
///
/// # Errors
/// A word is not a kind of I/O.
pub fn replay_skip(text: &str) -> Result<ReplaySkip, String> {
    let mut skip = ReplaySkip::default();
    for word in text.split(',').map(str::trim) {
        match word {
            "read" => skip.read = true,
            "write" => skip.write = true,
            "trim" => skip.trim = true,
            "sync" => skip.sync = true,
            _ => return Err(format!("\"{word}\" is not one of read, write, trim, sync")),
        }
    }
    Ok(skip)
}

/// Converts to whole numbers of at least 1.
///
/// # Errors
/// A number is smaller, or has a fraction.
pub fn repetitions(numbers: &[f64]) -> Result<Vec<u64>, String> {
    let whole = |&number: &f64| {
        (number.fract() == 0.0 && (1.0..=1e15).contains(&number))
            .then_some(number as u64)
            .ok_or_else(|| format!("{number} is not a number of times: a whole number of at least 1"))
    };
    numbers.iter().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let skip = replay_skip("read, trim").unwrap();
        assert_eq!(skip, ReplaySkip { read: true, trim: true, ..ReplaySkip::default() });
        assert_eq!(replay_skip("read,foo").unwrap_err(), "\"foo\" is not one of read, write, trim, sync");
    }

    #[test]
    fn only_whole_times() {
        assert_eq!(repetitions(&[2.0, 1.0]), Ok(vec![2, 1]));
        assert!(
            repetitions(&[0.0]).is_err() && repetitions(&[1.5]).is_err() && repetitions(&[-1.0]).is_err()
        );
    }
}
