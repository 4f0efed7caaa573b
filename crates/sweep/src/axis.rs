//! The values of an option, and the points of several options.

/// The most values of an option.
const MOST_VALUES: usize = 1000;
/// The most points of a sweep.
pub const MOST_POINTS: usize = 10_000;

/// An option and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The option.
    pub name: String,
    /// Its values, in the given order.
    pub values: Vec<String>,
}

/// The values of one run: the option's name and its value, for each axis.
pub type Point = Vec<(String, String)>;

impl Axis {
    /// Parses a list of values and ranges: `4k,64k`, `1..256x2`, `1..16+1`, `1,4..64x4`. A comma within a value is
    /// `\,`.
    ///
    /// # Errors
    /// Why the text is not such a list.
    pub fn parse(name: &str, text: &str) -> Result<Axis, String> {
        let mut values: Vec<String> = Vec::new();
        for part in parts(text) {
            if part.is_empty() {
                return Err("an empty value in the list".to_owned());
            }
            let more = match range(&part)? {
                Some(range) => range,
                None => vec![part],
            };
            for value in more {
                if values.contains(&value) {
                    return Err(format!("{value} is given twice"));
                }
                values.push(value);
            }
            if values.len() > MOST_VALUES {
                return Err(format!("more than {MOST_VALUES} values"));
            }
        }
        Ok(Axis { name: name.to_owned(), values })
    }
}

/// The parts between commas.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let last = parts.len() - 1;
        match character {
            '\\' if characters.peek() == Some(&',') => parts[last].extend(characters.next()),
            ',' => parts.push(String::new()),
            other => parts[last].push(other),
        }
    }
    parts
}

/// The values of a range; `None` = the text is not a range.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let Some((first, rest)) = text.split_once("..") else { return Ok(None) };
    let Some((first, _)) = number(first).filter(|(_, rest)| rest.is_empty()) else { return Ok(None) };
    let Some((last, step)) = number(rest) else { return Ok(None) };
    let by = |step: &str| number(step).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value);
    let bad =
        || format!("{text}: a range is FIRST..LASTxFACTOR or FIRST..LAST+STEP, such as 1..256x2 or 1..16+1");
    let (factor, summand) = match step.split_at_checked(1) {
        Some(("x", factor)) => (by(factor).filter(|&factor| factor >= 2).ok_or_else(bad)?, 0),
        Some(("+", summand)) => (1, by(summand).filter(|&summand| summand >= 1).ok_or_else(bad)?),
        _ => return Err(bad()),
    };
    if first > last || (factor > 1 && first == 0) {
        return Err(bad());
    }
    let mut values = Vec::new();
    let mut value = first;
    while value <= last {
        values.push(shown(value));
        if values.len() > MOST_VALUES {
            return Err(format!("{text}: more than {MOST_VALUES} values"));
        }
        let Some(next) = value.checked_mul(factor).and_then(|value| value.checked_add(summand)) else {
            break;
        };
        value = next;
    }
    Ok(Some(values))
}

const SUFFIXES: [(char, u32); 5] = [('k', 10), ('m', 20), ('g', 30), ('t', 40), ('p', 50)];

/// Splits a number with an optional suffix off the start of a text.
fn number(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let mut characters = rest.chars();
    let suffix = characters.next().and_then(|letter| {
        SUFFIXES.iter().find(|(known, _)| *known == letter.to_ascii_lowercase()).map(|(_, shift)| *shift)
    });
    match suffix {
        Some(shift) => Some((number.checked_mul(1 << shift)?, characters.as_str())),
        None => Some((number, rest)),
    }
}

/// A readable form, with the largest suffix that leaves an integer.
fn shown(value: u64) -> String {
    let suffix = SUFFIXES.iter().rev().find(|(_, shift)| value > 0 && value.is_multiple_of(1 << shift));
    suffix.map_or_else(|| value.to_string(), |(letter, shift)| format!("{}{letter}", value >> shift))
}

/// All points: the product of all values, with the last option changing fastest; or each option alone, while the others
/// have their first values.
///
/// # Errors
/// There are too many.
pub fn points(axes: &[Axis], one_at_a_time: bool) -> Result<Vec<Point>, String> {
    let first: Point = axes.iter().map(|axis| (axis.name.clone(), axis.values[0].clone())).collect();
    let mut points = vec![Point::new()];
    if one_at_a_time {
        points = vec![first.clone()];
        for (place, axis) in axes.iter().enumerate() {
            for value in &axis.values[1..] {
                let mut point = first.clone();
                point[place].1.clone_from(value);
                points.push(point);
            }
        }
    } else {
        for axis in axes {
            if points.len().saturating_mul(axis.values.len()) > MOST_POINTS {
                return Err(format!("more than {MOST_POINTS} points; take fewer values, or --one-at-a-time"));
            }
            let with = |point: &Point, value: &String| {
                let mut point = point.clone();
                point.push((axis.name.clone(), value.clone()));
                point
            };
            points = points
                .iter()
                .flat_map(|point| axis.values.iter().map(move |value| with(point, value)))
                .collect();
        }
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Result<Vec<String>, String> {
        Axis::parse("x", text).map(|axis| axis.values)
    }

    #[test]
    fn lists_and_ranges() {
        for (text, expected) in [
            ("4k,64k", "4k 64k"),
            ("1..256x2", "1 2 4 8 16 32 64 128 256"),
            ("1..5+2", "1 3 5"),
            ("1..10x3", "1 3 9"),
            ("0..2+1", "0 1 2"),
            ("4k..1mx4", "4k 16k 64k 256k 1m"),
            ("512..4kx2", "512 1k 2k 4k"),
            ("1,8..16+4,64", "1 8 12 16 64"),
            ("7..7x2", "7"),
            ("read,write", "read write"),
            ("/mnt/a,../b,a..b", "/mnt/a ../b a..b"),
            ("4k\\,8k,16k", "4k,8k 16k"),
        ] {
            assert_eq!(values(text).map(|values| values.join(" ")), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn mistakes() {
        for text in [
            "",
            "1,",
            "1,1",
            "1..4",
            "1..4x",
            "1..4x1",
            "1..4+0",
            "4..1x2",
            "0..4x2",
            "1..4y2",
            "1..4x2z",
            "1..4x2,4",
            "1..9999+1",
            "1..18446744073709551615+1",
        ] {
            assert!(values(text).is_err(), "{text}: {:?}", values(text));
        }
        assert_eq!(values("1..18446744073709551615x4294967296").unwrap().len(), 2);
    }

    #[test]
    fn products_and_one_at_a_time() {
        let axes = [Axis::parse("a", "1,2,3").unwrap(), Axis::parse("b", "x,y").unwrap()];
        let told = |points: Vec<Point>| {
            let words: Vec<String> =
                points.iter().map(|point| point.iter().map(|(_, value)| value.as_str()).collect()).collect();
            words.join(" ")
        };
        assert_eq!(told(points(&axes, false).unwrap()), "1x 1y 2x 2y 3x 3y");
        assert_eq!(told(points(&axes, true).unwrap()), "1x 2x 3x 1y");
        assert_eq!(points(&[], false).unwrap(), [Point::new()]);
        let many = Axis::parse("a", "1..1000+1").unwrap();
        assert!(points(&[many.clone(), many], false).is_err());
    }
}
