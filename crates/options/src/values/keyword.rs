//! Keywords: one of a fixed set.

use super::Notes;

use crate::spelling::{closest, did_you_mean};

/// Finds the keyword that exactly equals the text. A keyword ends at a comma or a colon, as in fio; the text after that
/// is ignored with a note under the name `fio`.
///
/// # Errors
/// The text is none of the keywords (the message suggests the nearest), or, under our own name, more than one.
pub fn keyword(
    text: &str,
    keywords: &'static [(&'static str, &'static str)],
    notes: &mut Notes,
) -> Result<&'static str, String> {
    let names = || keywords.iter().map(|(name, _)| *name);
    let exactly = |word: &str| names().find(|name| *name == word);
    if let Some(found) = exactly(text) {
        return Ok(found);
    }
    let (word, ignored) = text.split_once([',', ':']).unwrap_or((text, ""));
    let found = exactly(word.trim_end()).ok_or_else(|| not_one_of(names(), text))?;
    let ignored = ignored.trim();
    if !ignored.is_empty() {
        let what = format!("takes one keyword; \"{ignored}\" behind \"{found}\" has no effect, leave it out");
        notes.ignore(what, "")?;
    }
    Ok(found)
}

/// The message for a word that is not one of a set. It suggests the nearest word of the set.
pub(crate) fn not_one_of<'a>(names: impl Iterator<Item = &'a str> + Clone, text: &str) -> String {
    let list = names.clone().collect::<Vec<_>>().join(", ");
    format!("not one of {list}{}", did_you_mean(closest(text, names)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    #[test]
    fn a_different_letter_is_not_a_misspelling() {
        let words = &[("0", ""), ("1", ""), ("both", "")];
        assert_eq!(keyword("3", words, &mut Notes::of(Name::Fio)), Err("not one of 0, 1, both".to_owned()));
    }

    #[test]
    fn exact_words_only() {
        let words = &[("none", ""), ("exclusive", ""), ("readwrite", "")];
        let keyword = |text| keyword(text, words, &mut Notes::of(Name::Fio));
        assert_eq!(keyword("exclusive"), Ok("exclusive"));
        assert_eq!(keyword("ex"), Err("not one of none, exclusive, readwrite".to_owned()));
        assert_eq!(
            keyword("exclusiv"),
            Err("not one of none, exclusive, readwrite; did you mean \"exclusive\"?".to_owned())
        );
    }
    /// Where fio 3.33 cuts them.
    #[test]
    fn they_end_at_a_comma_or_a_colon() {
        let words = &[("read", ""), ("write", "")];
        for (text, ignored) in [("read,write", "write"), ("read:x,y", "x,y"), ("read , write", "write")] {
            let mut notes = Notes::of(Name::Fio);
            assert_eq!(keyword(text, words, &mut notes), Ok("read"), "{text}");
            assert_eq!(
                *notes,
                [format!("takes one keyword; \"{ignored}\" behind \"read\" has no effect, leave it out")]
            );
        }
        let mut notes = Notes::of(Name::Fio);
        assert_eq!(keyword("write,", words, &mut notes), Ok("write"));
        assert_eq!(*notes, [""; 0]);
        assert!(keyword("reads,write", words, &mut notes).is_err());
        assert!(keyword(",write", words, &mut notes).is_err());
    }
}
