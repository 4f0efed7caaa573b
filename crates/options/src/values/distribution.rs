//! `random_distribution`: `zipf:1.2:0.25`, `zoned:60/10:40/90`, `sequence:4,0,2`; and the distributions that
//! `file_service_type` accepts.

use super::floats::leading_float;
use super::{Notes, integer, keyword, per_direction, size, split};
use crate::{RandomDistribution, SizeValue, Skew, SkewLaw, ZoneShare};
use iolite_types::PerDirection;

/// The most zones that one direction may have.
const MOST_ZONES: usize = 256;

/// Parses a distribution with its parameters.
///
/// # Errors
/// The keyword is unknown, or its parameters are missing, malformed or out of range.
pub fn distribution(
    text: &str,
    keywords: &'static [(&'static str, &'static str)],
    kb_base: u32,
    notes: &mut Notes,
) -> Result<RandomDistribution, String> {
    let (word, rest) = match text.split_once([':', '=']) {
        Some((word, rest)) => (word.trim(), Some(rest.trim())),
        None => (text, None),
    };
    Ok(match keyword(word, keywords, notes)? {
        "zipf" => RandomDistribution::Skewed(skew(SkewLaw::Zipf, rest, notes)?),
        "pareto" => RandomDistribution::Skewed(skew(SkewLaw::Pareto, rest, notes)?),
        "normal" => RandomDistribution::Skewed(skew(SkewLaw::Normal, rest, notes)?),
        "zoned" => RandomDistribution::Zoned(zones(word, rest, &mut |text| {
            let percent = number(text.trim_end_matches('%'), kb_base, notes)?;
            if percent > 100 { Err(not_a_percentage(text)) } else { Ok(SizeValue::Percent(percent as u32)) }
        })?),
        "zoned_abs" => {
            RandomDistribution::Zoned(zones(word, rest, &mut |text| match size(text, kb_base, notes)? {
                SizeValue::Bytes(bytes) => Ok(SizeValue::Bytes(bytes)),
                SizeValue::Percent(_) | SizeValue::Zones(_) => {
                    Err(format!("\"{text}\": zoned_abs takes bytes, zoned takes percent"))
                }
            })?)
        }
        "sequence" => {
            let Some(list) = rest.filter(|rest| !rest.is_empty()) else {
                return Err("needs the numbers of the blocks, as in sequence:2,0,1".to_owned());
            };
            let blocks = split(list, &[',', ':']);
            let blocks = blocks.into_iter().map(|block| number(block, kb_base, notes));
            RandomDistribution::Sequence(blocks.collect::<Result<_, _>>()?)
        }
        _ => {
            if let Some(rest) = rest {
                notes.ignore(
                    format!("random takes no parameter; \"{rest}\" has no effect, leave it out"),
                    "",
                )?;
            }
            RandomDistribution::Random
        }
    })
}

fn number(text: &str, kb_base: u32, notes: &mut Notes) -> Result<u64, String> {
    let value = integer(text, kb_base, notes)?;
    u64::try_from(value).map_err(|_| super::outside(value, 0, i128::from(u64::MAX)))
}

fn not_a_percentage(text: &str) -> String {
    format!("\"{text}\" is not a percentage from 0 to 100")
}

/// Parses `[value[:centre]]`, the parameters that follow the name of a distribution.
///
/// # Errors
/// A parameter is not a number or is out of the distribution's range, or there are too many parameters.
pub fn skew(law: SkewLaw, text: Option<&str>, notes: &mut Notes) -> Result<Skew, String> {
    if notes.are_of_fio() && text == Some("") {
        let reason = "a number is missing behind the colon".to_owned();
        return Err(notes.refusal("random postfix parsing failed", reason));
    }
    let mut parts = text.unwrap_or_default().split(':').map(str::trim);
    let mut float = |part: &str| {
        let (value, rest) = leading_float(part).ok_or_else(|| format!("\"{part}\" is not a number"))?;
        if !rest.is_empty() {
            notes.ignore(format!("\"{part}\" is not a number"), &format!("; \"{rest}\" is ignored"))?;
        }
        Ok::<f64, String>(value)
    };
    let value = match parts.next() {
        None | Some("") => law.default_value(),
        Some(part) => float(part)?,
    };
    let centre = parts.next().map(&mut float).transpose()?;
    if let Some(more) = parts.next() {
        return Err(format!("\"{more}\" is too much: a law has one value and a centre"));
    }
    match law {
        SkewLaw::Zipf if value == 1.0 && notes.are_of_fio() => {
            let reason = "fio cannot compute that; 0.9999 is close to it".to_owned();
            return Err(notes.refusal("zipf theta must different than 1.0", reason));
        }
        SkewLaw::Pareto if value <= 0.0 || value >= 1.0 => {
            return Err(format!("the pareto power {value} is not between 0 and 1"));
        }
        SkewLaw::Normal if !(0.0..100.0).contains(&value) => {
            return Err(format!("the deviation {value} is not a percentage below 100"));
        }
        _ => {}
    }
    match centre {
        Some(centre) if !(0.0..=1.0).contains(&centre) => {
            Err(format!("the centre {centre} is not between 0 and 1"))
        }
        _ => Ok(Skew { law, value, centre }),
    }
}

/// Parses the zones of each direction. Directions that are not mentioned have none.
fn zones(
    word: &str,
    text: Option<&str>,
    size: &mut dyn FnMut(&str) -> Result<SizeValue, String>,
) -> Result<PerDirection<Vec<ZoneShare>>, String> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Err(format!("needs zones: {word}:SHARE/SIZE:SHARE/SIZE…, with shares that add up to 100"));
    };
    let mut zones = PerDirection::all(Vec::new());
    let parts = per_direction(text, &[','], &mut Notes::default())?;
    for (zones, part) in zones.values.iter_mut().zip(parts) {
        if let Some(part) = part {
            // The word may be repeated for each direction.
            let part = part.strip_prefix(word).map_or(part, |rest| rest.trim_start_matches([':', '=']));
            *zones = one_direction(part, word == "zoned", size)?;
        }
    }
    Ok(zones)
}

fn one_direction(
    text: &str,
    in_percent: bool,
    read_size: &mut dyn FnMut(&str) -> Result<SizeValue, String>,
) -> Result<Vec<ZoneShare>, String> {
    let mut entries = Vec::new();
    for part in split(text, &[':']) {
        let (share, size) = part.split_once('/').map_or((part, ""), |(share, size)| (share, size.trim()));
        let share = share.trim().trim_end_matches('%');
        let share = share.parse::<u32>().ok().filter(|share| *share <= 100);
        let share =
            share.ok_or_else(|| format!("\"{part}\": the share is not a percentage from 0 to 100"))?;
        let size = if size.is_empty() { None } else { Some(read_size(size)?) };
        if size.is_none() && !in_percent {
            return Err(format!("\"{part}\": a zone needs a size in bytes"));
        }
        entries.push((share, size));
    }
    if entries.len() > MOST_ZONES {
        return Err(format!("{} zones are more than {MOST_ZONES}", entries.len()));
    }
    let shares: u32 = entries.iter().map(|entry| entry.0).sum();
    if shares != 100 {
        return Err(format!("the shares add up to {shares}, not to 100"));
    }
    let percent = |size: &Option<SizeValue>| match size {
        Some(SizeValue::Percent(percent)) => *percent,
        _ => 0,
    };
    let given: u32 = entries.iter().map(|(_, size)| percent(size)).sum();
    if given > 100 {
        return Err(format!("the sizes add up to {given}%, more than 100%"));
    }
    // Zones without a size share the rest evenly; the remainder of the division goes to the last ones.
    let mut open = entries.iter().filter(|(_, size)| size.is_none()).count() as u32;
    let mut left = 100 - given;
    let zones = entries.into_iter().map(|(share, size)| ZoneShare {
        share,
        size: size.unwrap_or_else(|| {
            let percent = left / open;
            open -= 1;
            left -= percent;
            SizeValue::Percent(percent)
        }),
    });
    Ok(zones.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use crate::registry;
    use proptest::prelude::*;

    fn read_as(name: Name, text: &str) -> Result<RandomDistribution, String> {
        let keywords = registry::find_job("random_distribution").unwrap().keywords;
        distribution(text, keywords, 1024, &mut Notes::of(name))
    }

    fn read(text: &str) -> Result<RandomDistribution, String> {
        read_as(Name::Fio, text)
    }

    fn law(law: SkewLaw, value: f64, centre: Option<f64>) -> Result<RandomDistribution, String> {
        Ok(RandomDistribution::Skewed(Skew { law, value, centre }))
    }

    #[test]
    fn laws_have_a_value_and_a_centre() {
        assert_eq!(read("random"), Ok(RandomDistribution::Random));
        assert_eq!(read("zipf"), law(SkewLaw::Zipf, 1.1, None));
        assert_eq!(read("zipf:1.2"), law(SkewLaw::Zipf, 1.2, None));
        assert_eq!(read("zipf:1.2:0.25"), law(SkewLaw::Zipf, 1.2, Some(0.25)));
        assert_eq!(read_as(Name::Iolite, "zipf:1.0"), law(SkewLaw::Zipf, 1.0, None));
        assert!(read("zipf:1.0").unwrap_err().starts_with("zipf theta must different than 1.0"));
        assert!(read("zipf:").unwrap_err().starts_with("random postfix parsing failed"));
        assert_eq!(read("zipf:1.2,1.5"), law(SkewLaw::Zipf, 1.2, None));
        assert!(read_as(Name::Iolite, "zipf:1.2,1.5").is_err());
        assert_eq!(read("pareto"), law(SkewLaw::Pareto, 0.2, None));
        assert_eq!(read("pareto:0.5:1"), law(SkewLaw::Pareto, 0.5, Some(1.0)));
        assert_eq!(read("normal"), law(SkewLaw::Normal, 0.0, None));
        assert_eq!(read("normal:20:0"), law(SkewLaw::Normal, 20.0, Some(0.0)));
    }

    /// The values that fio 3.33 refuses as well, with the reasons.
    #[test]
    fn laws_have_limits() {
        assert_eq!(read("pareto:0").unwrap_err(), "the pareto power 0 is not between 0 and 1");
        assert_eq!(read("pareto:1").unwrap_err(), "the pareto power 1 is not between 0 and 1");
        assert_eq!(read("normal:100").unwrap_err(), "the deviation 100 is not a percentage below 100");
        assert_eq!(read("normal:-1").unwrap_err(), "the deviation -1 is not a percentage below 100");
        assert_eq!(read("zipf:0.5:2").unwrap_err(), "the centre 2 is not between 0 and 1");
        assert_eq!(read("zipf:abc").unwrap_err(), "\"abc\" is not a number");
        assert_eq!(read("zipf:0.5:").unwrap_err(), "\"\" is not a number");
        assert!(read("zipf:1.2:0.5:3").is_err());
        assert!(read("zip").unwrap_err().contains("did you mean \"zipf\"?"));
    }

    fn percent(zones: &[(u32, u32)]) -> Vec<ZoneShare> {
        zones.iter().map(|&(share, size)| ZoneShare { share, size: SizeValue::Percent(size) }).collect()
    }

    #[test]
    fn zones_have_shares_and_sizes() {
        let same = |zones: &[(u32, u32)]| Ok(RandomDistribution::Zoned(PerDirection::all(percent(zones))));
        let parts = [(60, 10), (30, 20), (8, 30), (2, 40)];
        assert_eq!(read("zoned:60/10:30/20:8/30:2/40"), same(&parts));
        assert_eq!(read("zoned:60/10:40/20"), same(&[(60, 10), (40, 20)]));
        assert_eq!(read("zoned:60/10:30:10"), same(&[(60, 10), (30, 45), (10, 45)]));
        assert_eq!(read("zoned:60%/10%:40/90"), same(&[(60, 10), (40, 90)]));
        let bytes = |zones: &[(u32, u64)]| {
            zones.iter().map(|&(share, size)| ZoneShare { share, size: SizeValue::Bytes(size) }).collect()
        };
        let absolute =
            Ok(RandomDistribution::Zoned(PerDirection::all(bytes(&[(60, 20 << 30), (40, 1 << 20)]))));
        assert_eq!(read("zoned_abs:60/20G:40/1m"), absolute);
        assert_eq!(read("zoned_abs=60/20G:40/1m"), absolute, "as the manual writes it");
    }

    #[test]
    fn zones_may_differ_by_direction() {
        let (a, b) = (percent(&[(100, 25)]), percent(&[(50, 10), (50, 90)]));
        let zoned = |read: &[ZoneShare], write: &[ZoneShare], trim: &[ZoneShare]| {
            Ok(RandomDistribution::Zoned(PerDirection::new(read.to_vec(), write.to_vec(), trim.to_vec())))
        };
        assert_eq!(read("zoned:100/25,50/10:50/90"), zoned(&a, &b, &b));
        assert_eq!(read("zoned:100/25,zoned:50/10:50/90"), zoned(&a, &b, &b));
        assert_eq!(read("zoned:,100/25,"), zoned(&[], &a, &[]));
    }

    #[test]
    fn zones_that_do_not_add_up_are_refused() {
        assert_eq!(read("zoned:60/10").unwrap_err(), "the shares add up to 60, not to 100");
        assert_eq!(read("zoned:60/10:60/20").unwrap_err(), "the shares add up to 120, not to 100");
        assert_eq!(read("zoned:50/60:50/60").unwrap_err(), "the sizes add up to 120%, more than 100%");
        assert!(read("zoned").unwrap_err().starts_with("needs zones"));
        assert!(read("zoned:60.5/10:39.5/90").is_err());
        assert!(read("zoned:50/20:/80").is_err());
        assert!(read("zoned_abs:50/1m:50").is_err());
        assert!(read("zoned_abs:50/10%:50/1m").is_err());
        let many = |count: usize| format!("zoned_abs:100/1k{}", ":0/1k".repeat(count - 1));
        assert!(read(&many(256)).is_ok());
        assert_eq!(read(&many(257)).unwrap_err(), "257 zones are more than 256");
    }

    #[test]
    fn sequences_are_lists() {
        assert_eq!(read("sequence:4,0,2"), Ok(RandomDistribution::Sequence(vec![4, 0, 2])));
        assert_eq!(read("sequence:4:0"), Ok(RandomDistribution::Sequence(vec![4, 0])));
        assert!(read("sequence").unwrap_err().contains("sequence:2,0,1"));
        assert_eq!(read("sequence:-1").unwrap_err(), "must not be negative");
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(word in "(zipf|pareto|normal|zoned|zoned_abs|sequence)", rest in "[0-9a-z:/%,.-]{0,30}") {
            let _ = read(&format!("{word}:{rest}"));
        }
    }
}
