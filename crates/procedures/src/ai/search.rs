//! The search for the largest number of accelerators that storage keeps busy.
//!
//! Numbers are doubled until one is too large, and the gap is then halved. Utilisation falls as the number rises, so this is the
//! number from which on it is too low, as far as measurements repeat.

/// The next number to try, given what was measured (numbers, and whether they are kept busy); `None` = the search is over.
/// `most`: the largest number that can be tried.
pub fn next(measured: &[(u64, bool)], most: u64) -> Option<u64> {
    let held = held(measured);
    let failed = measured.iter().filter(|(_, is_held)| !is_held).map(|(number, _)| *number).min();
    let next = match (held, failed) {
        (None, None) => 1,
        (None, Some(_)) => return None,
        (Some(held), None) => (held * 2).min(most),
        (Some(held), Some(failed)) => held + failed.saturating_sub(held) / 2,
    };
    let is_new = measured.iter().all(|(number, _)| *number != next);
    (is_new && next >= 1 && next <= most).then_some(next)
}

/// The largest number that is kept busy, below all that are not.
pub fn held(measured: &[(u64, bool)]) -> Option<u64> {
    let failed = measured.iter().filter(|(_, is_held)| !is_held).map(|(number, _)| *number).min();
    let held =
        measured.iter().filter(|(number, is_held)| *is_held && failed.is_none_or(|failed| *number < failed));
    held.map(|(number, _)| *number).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches storage that keeps up to `can` accelerators busy. Returns the answer, and the numbers tried.
    fn search(can: u64, most: u64) -> (Option<u64>, Vec<u64>) {
        let mut measured = Vec::new();
        while let Some(number) = next(&measured, most) {
            assert!(measured.len() < 100);
            measured.push((number, number <= can));
        }
        (held(&measured), measured.into_iter().map(|(number, _)| number).collect())
    }

    #[test]
    fn the_largest_number_is_found() {
        for can in 1..200 {
            assert_eq!(search(can, 1000).0, Some(can));
        }
        assert_eq!(search(5, 1000), (Some(5), vec![1, 2, 4, 8, 6, 5]));
        assert_eq!(search(0, 1000), (None, vec![1]));
        // No more can be tried.
        assert_eq!(search(500, 48), (Some(48), vec![1, 2, 4, 8, 16, 32, 48]));
        assert_eq!(search(500, 1), (Some(1), vec![1]));
    }

    #[test]
    fn a_number_that_held_by_chance_does_not_count() {
        assert_eq!(held(&[(1, true), (2, false), (4, true)]), Some(1));
    }
}
