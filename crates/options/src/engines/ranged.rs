//! Lists of hosts and addresses with ranges of numbers: `node[1-4]:9000,other:9000`.

/// The maximum number of names in a list.
const MOST: usize = 4096;

/// The names in a list. Brackets contain a range of numbers; a first number with zeros in front gives all of them as
/// many digits. Other brackets are part of the name: `[::1]:9000`.
///
/// # Errors
/// A name is empty, a range is, or there are too many names. The error says which.
pub fn ranged(list: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for item in list.split(',').map(str::trim) {
        if item.is_empty() {
            return Err(format!("\"{list}\": a name is empty; give NAME,NAME,…, or NAME[1-4]"));
        }
        add(item, 0, &mut names)?;
    }
    Ok(names)
}

/// The name in a list that is that of a worker: they share the names in turn. `None` = the list is empty.
///
/// # Errors
/// As [`ranged`].
pub fn of_worker(list: &str, worker: u32) -> Result<Option<String>, String> {
    if list.is_empty() {
        return Ok(None);
    }
    let mut names = ranged(list)?;
    Ok(Some(names.swap_remove(worker as usize % names.len())))
}

/// Adds the names that an item stands for. Before `from` there are no ranges.
fn add(item: &str, from: usize, names: &mut Vec<String>) -> Result<(), String> {
    for (open, _) in item[from..].match_indices('[').map(|(place, sign)| (from + place, sign)) {
        let Some(length) = item[open..].find(']') else { break };
        let Some((first, last)) = item[open + 1..open + length].split_once('-') else { continue };
        let (Ok(start), Ok(end)) = (first.parse::<u32>(), last.parse::<u32>()) else { continue };
        if start > end {
            return Err(format!(
                "\"{item}\": the range [{first}-{last}] is empty; give the smaller number first"
            ));
        }
        let (before, after) = (&item[..open], &item[open + length + 1..]);
        for number in start..=end {
            let digits =
                format!("{number:0width$}", width = if first.starts_with('0') { first.len() } else { 0 });
            add(&format!("{before}{digits}{after}"), open + digits.len(), names)?;
        }
        return Ok(());
    }
    if names.len() == MOST {
        return Err(format!("there are more than {MOST} names"));
    }
    names.push(item.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stand_for_names() {
        for (list, names) in [
            ("h", "h"),
            ("h:9000, [::1]:9000", "h:9000 [::1]:9000"),
            ("n[8-10]:1", "n8:1 n9:1 n10:1"),
            ("n[08-10]", "n08 n09 n10"),
            ("r[1-2]n[0-1],x", "r1n0 r1n1 r2n0 r2n1 x"),
            ("10.0.0.[7-7]", "10.0.0.7"),
        ] {
            assert_eq!(ranged(list).unwrap().join(" "), names, "{list}");
        }
        for (list, why) in [
            ("", "a name is empty"),
            ("a,,b", "a name is empty"),
            ("a[3-1]", "range [3-1] is empty"),
            ("a[0-4294967295]", "more than 4096"),
        ] {
            assert!(ranged(list).unwrap_err().contains(why), "{list}");
        }
    }
}
