//! Lists: splitting a value at separators, and assigning up to three entries to the directions.

use super::Notes;

/// Splits at each separator that is not inside parentheses (those belong to an arithmetic expression).
pub fn split<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut depth = 0usize;
    let mut start = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && separators.contains(&c) => {
                parts.push(text[start..at].trim());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// The entry for each direction. `None` leaves the direction unchanged.
///
/// A single entry is for all directions. In `reads,writes[,trims]` an empty entry leaves its direction unchanged, and
/// trims get the entry of writes if they have no entry. A trailing comma ends the list: `8k,` is for reads only.
///
/// # Errors
/// All entries are empty; or, under our own name, there are more than three.
pub fn per_direction<'a>(
    text: &'a str,
    separators: &[char],
    notes: &mut Notes,
) -> Result<[Option<&'a str>; 3], String> {
    let parts = split(text, separators);
    if parts.iter().all(|part| part.is_empty()) {
        return Err("has no value for any direction".to_owned());
    }
    if parts.len() > 3 && parts[3..].iter().any(|part| !part.is_empty()) {
        let fourth = parts[3..].join(",");
        let what = format!("there are only three directions; \"{fourth}\" has no effect, leave it out");
        notes.ignore(what, "")?;
    }
    let entry = |index: usize| parts.get(index).copied().filter(|part| !part.is_empty());
    Ok(match parts.len() {
        1 => [entry(0); 3],
        2 => [entry(0), entry(1), entry(1)],
        _ => [entry(0), entry(1), entry(2)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    #[test]
    fn entries_reach_the_directions_they_are_meant_for() {
        let a = Some("a");
        let b = Some("b");
        let c = Some("c");
        for (text, expected) in [
            ("a", [a, a, a]),
            ("a,", [a, None, None]),
            ("a,b", [a, b, b]),
            ("a,b,", [a, b, None]),
            (",b", [None, b, b]),
            (",b,", [None, b, None]),
            ("a,b,c", [a, b, c]),
            (",,c", [None, None, c]),
            ("a,,c", [a, None, c]),
            ("a, b", [a, b, b]),
        ] {
            assert_eq!(per_direction(text, &[','], &mut Notes::of(Name::Fio)), Ok(expected), "{text}");
        }
        assert!(per_direction(",", &[','], &mut Notes::of(Name::Fio)).is_err());
        let mut notes = Notes::of(Name::Fio);
        assert_eq!(per_direction("a,b,c,d", &[','], &mut notes), Ok([a, b, c]));
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn parentheses_keep_together() {
        assert_eq!(split("(1-2)-(3-4)", &['-']), ["(1-2)", "(3-4)"]);
        assert_eq!(split("a)b,c", &[',']), ["a)b", "c"]);
    }
}
