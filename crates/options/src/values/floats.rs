//! Lists of floating point numbers: `1:50:99.9`.

use super::Notes;

/// The end of the note about an entry that is not a number.
pub(crate) const NOT_A_NUMBER: &str = "is not a number, ignored";
/// The words of fio about a list with too many numbers.
pub(crate) const LIST_TOO_LONG: &str = "the list exceeding max length";

/// Parses numbers separated by colons, each within the bounds. Keeps at most `most` of them.
///
/// If the first entry is a number, the list is accepted: later entries that are not numbers, and those beyond `most`,
/// are ignored with a note under the name `fio`.
///
/// # Errors
/// The first entry is not a number, or a number is out of bounds; or, under our own name, an entry would be ignored.
pub fn floats(text: &str, bounds: (f64, f64), most: usize, notes: &mut Notes) -> Result<Vec<f64>, String> {
    let mut values = Vec::new();
    for (index, part) in text.split(':').map(str::trim).enumerate() {
        if values.len() == most {
            let entries = if most == 1 { "one number".to_owned() } else { format!("at most {most} numbers") };
            let what = format!("takes {entries}; those from \"{part}\" on have no effect, leave them out");
            let what = notes.refusal(format_args!("{LIST_TOO_LONG} {most}"), what);
            notes.ignore(what, "")?;
            break;
        }
        match leading_float(part) {
            Some((value, rest)) => {
                if !(bounds.0..=bounds.1).contains(&value) {
                    let (limit, bound) = if value < bounds.0 { ("min", bounds.0) } else { ("max", bounds.1) };
                    return Err(notes.refusal(
                        format_args!("value out of range: {value:.6} (range {limit}: {bound:.6})"),
                        format!("{value} is not between {} and {}", bounds.0, bounds.1),
                    ));
                }
                if !rest.is_empty() {
                    let what =
                        format!("\"{rest}\" is not a part of a number; numbers are separated by colons");
                    notes.ignore(what, "; ignored")?;
                }
                values.push(value);
            }
            None if index == 0 => {
                let reason = format!("\"{part}\" is not a number");
                return Err(notes.refusal(format_args!("not a floating point value: {part}"), reason));
            }
            None => notes.ignore(format!("\"{part}\" is not a number"), ", ignored")?,
        }
    }
    Ok(values)
}

/// The longest number at the start of the text, and the rest of the text.
pub(super) fn leading_float(text: &str) -> Option<(f64, &str)> {
    let end =
        text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-' | 'e' | 'E')).unwrap_or(text.len());
    (1..=end).rev().find_map(|end| {
        let value: f64 = text[..end].parse().ok()?;
        value.is_finite().then_some((value, &text[end..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use proptest::prelude::*;

    fn read(text: &str) -> (Result<Vec<f64>, String>, usize) {
        let mut notes = Notes::of(Name::Fio);
        let value = floats(text, (0.0, 100.0), 20, &mut notes);
        (value, notes.len())
    }

    #[test]
    fn lists() {
        assert_eq!(read("1:50:99.9"), (Ok(vec![1.0, 50.0, 99.9]), 0));
        assert_eq!(read("1e1"), (Ok(vec![10.0]), 0));
        assert_eq!(read("10:x"), (Ok(vec![10.0]), 1));
        assert_eq!(read("50:"), (Ok(vec![50.0]), 1));
        assert_eq!(read("10,20"), (Ok(vec![10.0]), 1));
        let (many, notes) = read("1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20:21");
        assert_eq!((many.unwrap().len(), notes), (20, 1));
        let out = "value out of range: 101.000000 (range max: 100.000000) (101 is not between 0 and 100)";
        assert_eq!(read("101").0, Err(out.to_owned()));
        let out = "value out of range: -0.500000 (range min: 0.000000) (-0.5 is not between 0 and 100)";
        assert_eq!(read("-.5").0, Err(out.to_owned()));
        assert_eq!(read("x").0, Err("not a floating point value: x (\"x\" is not a number)".to_owned()));
        let own = |text| floats(text, (0.0, 100.0), 1, &mut Notes::default());
        assert_eq!(own("101"), Err("101 is not between 0 and 100".to_owned()));
        assert_eq!(own("x"), Err("\"x\" is not a number".to_owned()));
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in ".{0,40}") {
            let _ = read(&text);
        }

        #[test]
        fn reads_back_what_was_written(values in prop::collection::vec(0.0..100.0f64, 1..20)) {
            let text: Vec<String> = values.iter().map(f64::to_string).collect();
            prop_assert_eq!(read(&text.join(":")), (Ok(values), 0));
        }
    }
}
