//! Sets of CPUs: `cpus_allowed=0,5,8-15`, `cpumask=0xff`.

use super::{Notes, integer};

/// The largest CPU or node number that is accepted: far above any machine, and small enough that a range can be
/// listed.
const MOST: u32 = 65_535;

/// Parses a list of CPUs, separated by commas or colons. The result is sorted and has no duplicates.
///
/// # Errors
/// As [`number_set`].
pub fn cpu_list(text: &str, notes: &mut Notes) -> Result<Vec<u32>, String> {
    number_set(text, &[',', ':'], notes)
}

/// The CPUs whose bits are set.
///
/// # Errors
/// No bit is set.
pub fn cpu_mask(mask: u64) -> Result<Vec<u32>, String> {
    if mask == 0 {
        return Err("a mask without a bit allows no CPU at all".to_owned());
    }
    Ok((0..64).filter(|bit| mask >> bit & 1 == 1).collect())
}

/// Parses numbers and ranges of numbers (`0,5,8-15`). The result is sorted and has no duplicates.
///
/// # Errors
/// An entry is not a number up to 65535, a range is empty, or there is no number at all.
pub fn number_set(text: &str, separators: &[char], notes: &mut Notes) -> Result<Vec<u32>, String> {
    let mut numbers = Vec::new();
    for part in text.split(separators).map(str::trim).filter(|part| !part.is_empty()) {
        if part.starts_with('-') {
            return Err(format!("\"{part}\" is not between 0 and {MOST}"));
        }
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first, notes)?, number(last, notes)?),
            None => {
                let number = number(part, notes)?;
                (number, number)
            }
        };
        if first > last {
            return Err(format!("the range \"{part}\" is empty"));
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() { Err("names no number".to_owned()) } else { Ok(numbers) }
}

fn number(text: &str, notes: &mut Notes) -> Result<u32, String> {
    match u32::try_from(integer(text, 1024, notes)?) {
        Ok(number @ 0..=MOST) => Ok(number),
        _ => Err(format!("\"{}\" is not between 0 and {MOST}", text.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use proptest::prelude::*;

    #[test]
    fn lists_and_masks() {
        let mut notes = Notes::of(Name::Fio);
        assert_eq!(cpu_list("0,5,8-11", &mut notes), Ok(vec![0, 5, 8, 9, 10, 11]));
        assert_eq!(cpu_list("3:1,1", &mut notes), Ok(vec![1, 3]));
        assert_eq!(cpu_list("0,", &mut notes), Ok(vec![0]));
        assert_eq!(notes.len(), 0);
        assert_eq!(cpu_list("1-0", &mut notes), Err("the range \"1-0\" is empty".to_owned()));
        assert_eq!(cpu_list("0,-1", &mut notes), Err("\"-1\" is not between 0 and 65535".to_owned()));
        assert_eq!(cpu_list("all", &mut notes), Err("\"all\" is not a number".to_owned()));
        assert_eq!(
            cpu_list("0-99999999999", &mut notes),
            Err("\"99999999999\" is not between 0 and 65535".to_owned())
        );
        assert_eq!(cpu_mask(0b1011), Ok(vec![0, 1, 3]));
        assert_eq!(cpu_mask(1 << 63), Ok(vec![63]));
        assert!(cpu_mask(0).is_err());
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in "[0-9,:x-]{0,20}") {
            let _ = cpu_list(&text, &mut Notes::of(Name::Fio));
        }

        #[test]
        fn mask_and_list_agree(mask in 1u64..) {
            let cpus = cpu_mask(mask).unwrap();
            let text: Vec<String> = cpus.iter().map(u32::to_string).collect();
            prop_assert_eq!(cpu_list(&text.join(","), &mut Notes::of(Name::Fio)), Ok(cpus));
        }
    }
}
