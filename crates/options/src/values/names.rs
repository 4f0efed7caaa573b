//! Lists of file names: `/dev/sda:/dev/sdb`, where `\:` is a colon in a name.

/// Splits at colons. Drops empty names, and blanks around names.
///
/// # Errors
/// The list contains no name.
pub fn names(text: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&':') => {
                chars.next();
                names.last_mut().expect("starts with one").push(':');
            }
            ':' => names.push(String::new()),
            _ => names.last_mut().expect("starts with one").push(c),
        }
    }
    let names: Vec<String> =
        names.into_iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    if names.is_empty() { Err("names no file".to_owned()) } else { Ok(names) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn colons_separate_unless_escaped() {
        assert_eq!(names("a:b"), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(names(r"/dev/pci-0\:1:x"), Ok(vec!["/dev/pci-0:1".to_owned(), "x".to_owned()]));
        assert_eq!(names("a::b:"), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(names(r"a\b"), Ok(vec![r"a\b".to_owned()]));
        assert!(names(":").is_err());
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn reads_back_what_was_written(list in prop::collection::vec("[a-z/:]{1,10}", 1..5)) {
            let text: Vec<String> = list.iter().map(|name| name.replace(':', r"\:")).collect();
            prop_assert_eq!(names(&text.join(":")), Ok(list));
        }

        #[test]
        fn never_panics(text in ".{0,30}") {
            let _ = names(&text);
        }
    }
}
