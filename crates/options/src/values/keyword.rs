//! Keywords: one of a fixed set.

use crate::registry::closest;

/// The listed keyword that the text is, spelt exactly.
pub fn keyword(
    text: &str,
    keywords: &'static [(&'static str, &'static str)],
) -> Result<&'static str, String> {
    let names = || keywords.iter().map(|(name, _)| *name);
    names().find(|name| *name == text).ok_or_else(|| not_one_of(names(), text))
}

/// The complaint about a word outside a set, with the one that was probably meant.
pub(crate) fn not_one_of<'a>(names: impl Iterator<Item = &'a str> + Clone, text: &str) -> String {
    let list = names.clone().collect::<Vec<_>>().join(", ");
    match closest(text, names) {
        Some(meant) => format!("not one of {list}; did you mean \"{meant}\"?"),
        None => format!("not one of {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_words_only() {
        let words = &[("none", ""), ("exclusive", ""), ("readwrite", "")];
        assert_eq!(keyword("exclusive", words), Ok("exclusive"));
        assert_eq!(keyword("ex", words), Err("not one of none, exclusive, readwrite".to_owned()));
        assert_eq!(
            keyword("exclusiv", words),
            Err("not one of none, exclusive, readwrite; did you mean \"exclusive\"?".to_owned())
        );
    }
}
