//! `cmdprio_bssplit`: the I/Os that have a separate priority, by block size: `4k/10:64k/50/1/0`.

use super::{Notes, integer, split};
use crate::PriorityShare;
use iolite_types::io_priority;

/// Parses the shares of one direction: `size/percent`, `size/percent/class/level` or `size/percent/class/level/hint`,
/// separated by colons.
///
/// # Errors
/// A number is missing or out of range, a class has no level, or the percentages of one size add up to more than 100.
pub fn priority_shares(text: &str, kb_base: u32, notes: &mut Notes) -> Result<Vec<PriorityShare>, String> {
    let mut shares: Vec<PriorityShare> = Vec::new();
    for part in split(text, &[':']).into_iter().filter(|part| !part.is_empty()) {
        let share = share(part, kb_base, notes)?;
        let others = shares.iter().filter(|other| other.size == share.size);
        let sum = share.percent + others.map(|other| other.percent).sum::<u32>();
        if sum > 100 {
            return Err(format!("the percentages of size {} add up to {sum}, more than 100", share.size));
        }
        shares.push(share);
    }
    Ok(shares)
}

fn share(part: &str, kb_base: u32, notes: &mut Notes) -> Result<PriorityShare, String> {
    let pieces = split(part, &['/']);
    let mut number = |index: usize, what: &str, low: u64, high: u64| match pieces.get(index) {
        None | Some(&"") => Ok(None),
        Some(text) => match u64::try_from(integer(text, kb_base, notes)?) {
            Ok(value) if (low..=high).contains(&value) => Ok(Some(value)),
            _ => Err(format!("\"{part}\": {text} is not a {what} ({low} to {high})")),
        },
    };
    let size = number(0, "block size", 1, i64::MAX as u64)?;
    let percent = number(1, "percentage", 0, 100)?;
    let class = number(2, "priority class", 1, 3)?;
    let level = number(3, "priority level", 0, 7)?;
    let hint = number(4, "priority hint", 0, 1023)?;
    let Some(size) = size else { return Err(format!("\"{part}\" has no block size")) };
    if pieces.len() > 5 {
        notes.ignore(format!("\"/{}\" in \"{part}\" means nothing", pieces[5..].join("/")), ", ignored")?;
    }
    let percent = percent.unwrap_or_else(|| {
        notes.push(format!("\"{part}\" has no percentage: none of the I/Os of this size"));
        0
    });
    let priority = match (class, level) {
        (None, None) => None,
        (Some(class), Some(level)) => Some((class, level)),
        _ => {
            return Err(format!("\"{part}\": a class and a level belong together: size/percent/class/level"));
        }
    };
    Ok(PriorityShare {
        size,
        percent: percent as u32,
        priority: priority
            .map(|(class, level)| io_priority(class as u32, level as u32, hint.unwrap_or(0) as u32)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<(u64, u32, Option<u16>)>, String> {
        let shares = priority_shares(text, 1024, &mut Notes::of(Name::Fio))?;
        Ok(shares.into_iter().map(|share| (share.size, share.percent, share.priority)).collect())
    }

    #[test]
    fn the_three_forms() {
        assert_eq!(read("4k/50:8k/10"), Ok(vec![(4096, 50, None), (8192, 10, None)]));
        let real_time = Some(1 << 13 | 2);
        assert_eq!(
            read("4k/50/2/3:4k/50/1/2"),
            Ok(vec![(4096, 50, Some(2 << 13 | 3)), (4096, 50, real_time)])
        );
        assert_eq!(read("4k/50/1/2/5"), Ok(vec![(4096, 50, Some(1 << 13 | 5 << 3 | 2))]));
        assert_eq!(read("4k"), Ok(vec![(4096, 0, None)]));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("4k/50:4k/60", "the percentages of size 4096 add up to 110, more than 100"),
            ("4k/50/9/1", "\"4k/50/9/1\": 9 is not a priority class (1 to 3)"),
            ("4k/50/1", "\"4k/50/1\": a class and a level belong together: size/percent/class/level"),
            ("4k/200", "\"4k/200\": 200 is not a percentage (0 to 100)"),
            ("/50", "\"/50\" has no block size"),
        ] {
            assert_eq!(read(text), Err(message.to_owned()), "{text}");
        }
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in "[0-9kx/:%,-]{0,40}") {
            let _ = read(&text);
        }
    }
}
