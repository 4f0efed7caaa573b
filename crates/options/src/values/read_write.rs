//! `rw`: the directions, and the modifier after the colon.

use super::{Notes, integer, keyword};
use crate::{ReadWrite, ReadWriteModifier};
use iolite_types::PerDirection;

/// Parses `randread`, `write:8k`, `randrw:16`.
///
/// # Errors
/// The keyword is unknown; or the number after the colon is missing, does not fit, or is less than 1 where it counts I/Os.
pub fn read_write(
    text: &str,
    keywords: &'static [(&'static str, &'static str)],
    kb_base: u32,
    notes: &mut Notes,
) -> Result<(ReadWrite, ReadWriteModifier), String> {
    let (word, modifier) = match text.split_once(':') {
        Some((word, modifier)) => (word, Some(modifier.trim())),
        None => (text, None),
    };
    let rw = match keyword(word, keywords, notes)? {
        "read" => ReadWrite::Read,
        "write" => ReadWrite::Write,
        "trim" => ReadWrite::Trim,
        "randread" => ReadWrite::RandRead,
        "randwrite" => ReadWrite::RandWrite,
        "randtrim" => ReadWrite::RandTrim,
        "randrw" => ReadWrite::RandRw,
        "trimwrite" => ReadWrite::TrimWrite,
        "randtrimwrite" => ReadWrite::RandTrimWrite,
        // The two spellings of the sequential mix.
        _ => ReadWrite::Rw,
    };
    let Some(modifier) = modifier else { return Ok((rw, ReadWriteModifier::default())) };
    if !modifier.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+')) {
        let (meaning, example) = match rw.is_random() {
            true => ("how many I/Os come between two random offsets", 8),
            false => ("bytes that are added to each offset", 4096),
        };
        return Err(format!("behind the colon is a number, {meaning}, such as \"{word}:{example}\""));
    }
    let value = i64::try_from(integer(modifier, kb_base, notes)?).map_err(|_| super::number::too_large())?;
    if rw.is_random() && value < 1 {
        return Err(format!("{value} I/Os between two random offsets are less than one"));
    }
    Ok((rw, ReadWriteModifier(value)))
}

/// Parses the percentages of reads, writes and trims: `60/30/10`.
///
/// # Errors
/// They are not three numbers whose sum is 100.
pub fn shares(text: &str, notes: &mut Notes) -> Result<PerDirection<u32>, String> {
    let form = "gives the percentages of reads, writes and trims, such as 60/30/10";
    let share = |share: &str| match integer(share.trim(), 1000, notes) {
        Ok(value) => u32::try_from(value).map_err(|_| {
            if value < 0 { format!("{form}; none is negative") } else { super::number::too_large() }
        }),
        Err(_) => Err(form.to_owned()),
    };
    let shares = text.split('/').map(share).collect::<Result<Vec<u32>, String>>()?;
    let [reads, writes, trims] = shares[..] else { return Err(form.to_owned()) };
    match [writes, trims].into_iter().fold(reads, u32::saturating_add) {
        100 => Ok(PerDirection::new(reads, writes, trims)),
        sum => Err(format!("the sum of the percentages is {sum}; make it 100")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use crate::registry;

    fn read(text: &str) -> Result<(ReadWrite, i64), String> {
        let keywords = registry::find_job("rw").unwrap().keywords;
        read_write(text, keywords, 1024, &mut Notes::of(Name::Fio)).map(|(rw, modifier)| (rw, modifier.0))
    }

    #[test]
    fn every_keyword() {
        use ReadWrite::*;
        for (text, rw) in [
            ("read", Read),
            ("write", Write),
            ("trim", Trim),
            ("randread", RandRead),
            ("randwrite", RandWrite),
            ("randtrim", RandTrim),
            ("rw", Rw),
            ("readwrite", Rw),
            ("randrw", RandRw),
            ("trimwrite", TrimWrite),
            ("randtrimwrite", RandTrimWrite),
        ] {
            assert_eq!(read(text), Ok((rw, 0)), "{text}");
        }
        assert_eq!(registry::find_job("rw").unwrap().keywords.len(), 11);
    }

    #[test]
    fn modifiers() {
        assert_eq!(read("randread:8"), Ok((ReadWrite::RandRead, 8)));
        assert_eq!(read("write:8k"), Ok((ReadWrite::Write, 8192)));
        assert_eq!(read("read:-4k"), Ok((ReadWrite::Read, -4096)));
        assert_eq!(read("read:-x"), Err("\"-x\" is not a number".to_owned()));
    }

    #[test]
    fn text_ignored_by_fio_is_noted() {
        let keywords = registry::find_job("rw").unwrap().keywords;
        let mut notes = Notes::of(Name::Fio);
        let read = read_write("read,write:8", keywords, 1024, &mut notes).map(|(rw, _)| rw);
        assert_eq!(read, Ok(ReadWrite::Read));
        assert!(notes.len() == 1 && notes[0].contains("write"), "{notes:?}");
    }

    #[test]
    fn behind_the_colon_is_a_number() {
        for text in ["randrw:foo", "randread:", "read:foo", "read:", "rw:sequential", "read:z", "trim:(8*2)"]
        {
            let message = read(text).unwrap_err();
            assert!(message.starts_with("behind the colon is a number"), "{text}: {message}");
        }
        for text in ["randread:0", "randtrimwrite:0", "randrw:-1"] {
            assert!(read(text).unwrap_err().ends_with("are less than one"), "{text}");
        }
        assert_eq!(read("write:0"), Ok((ReadWrite::Write, 0)));
    }

    #[test]
    fn mistakes_are_named() {
        let list = "read, write, trim, randread, randwrite, randtrim, rw, readwrite, randrw, trimwrite, randtrimwrite";
        assert_eq!(read("sideways"), Err(format!("not one of {list}")));
        assert_eq!(read("readwirte"), Err(format!("not one of {list}; did you mean \"readwrite\"?")));
        assert!(read("READ").is_err(), "keywords are lower case");
    }

    #[test]
    fn shares_are_three_percentages() {
        let read = |text: &str| shares(text, &mut Notes::of(Name::Iolite));
        assert_eq!(read("60/30/10"), Ok(PerDirection::new(60, 30, 10)));
        assert_eq!(read(" 0 / 0 / 100 "), Ok(PerDirection::new(0, 0, 100)));
        for (text, words) in [
            ("60/40", "percentages of reads, writes and trims"),
            ("60/30/10/0", "percentages of reads, writes and trims"),
            ("60/30/11", "the sum of the percentages is 101; make it 100"),
            ("4294967295/1/100", "make it 100"),
            ("60/-5/45", "none is negative"),
            ("60//40", "percentages of reads, writes and trims"),
            ("a/b/c", "percentages of reads, writes and trims"),
            ("60:30:10", "percentages of reads, writes and trims"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
