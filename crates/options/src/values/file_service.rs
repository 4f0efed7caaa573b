//! `file_service_type`: `random`, `roundrobin:4`, `zipf:1.2`.

use super::{Notes, integer, keyword, skew};
use crate::{FileService, FileServiceKind, SkewLaw};

/// Parses how the next file is chosen, and how many I/Os each file gets.
///
/// # Errors
/// The keyword is unknown, the number of I/Os is less than one, or a parameter of the distribution is wrong.
pub fn file_service(
    text: &str,
    keywords: &'static [(&'static str, &'static str)],
    kb_base: u32,
    notes: &mut Notes,
) -> Result<FileService, String> {
    let (word, count) = match text.split_once(':') {
        Some((word, count)) => (word.trim(), Some(count.trim())),
        None => (text, None),
    };
    let word = keyword(word, keywords, notes)?;
    let law = match word {
        "zipf" => Some(SkewLaw::Zipf),
        "pareto" => Some(SkewLaw::Pareto),
        "normal" | "gauss" => Some(SkewLaw::Normal),
        _ => None,
    };
    if let Some(law) = law {
        let kind = FileServiceKind::Skewed(skew(law, count, notes)?);
        return Ok(FileService { kind, ios: 1 });
    }
    let kind = match word {
        "random" => FileServiceKind::Random,
        "sequential" => FileServiceKind::Sequential,
        _ => FileServiceKind::RoundRobin,
    };
    let count = count.unwrap_or_default();
    let ios = match count {
        "" => 1,
        _ => match u64::try_from(integer(count, kb_base, notes)?) {
            Ok(ios) => ios.max(1),
            Err(_) => return Err(format!("\"{count}\" I/Os per file are fewer than one")),
        },
    };
    Ok(FileService { kind, ios })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use crate::{Skew, registry};

    fn read(text: &str) -> Result<(FileServiceKind, u64), String> {
        let keywords = registry::find_job("file_service_type").unwrap().keywords;
        file_service(text, keywords, 1024, &mut Notes::of(Name::Fio))
            .map(|service| (service.kind, service.ios))
    }

    #[test]
    fn kinds_and_counts() {
        assert_eq!(read("random"), Ok((FileServiceKind::Random, 1)));
        assert_eq!(read("roundrobin:4"), Ok((FileServiceKind::RoundRobin, 4)));
        assert_eq!(read("sequential:"), Ok((FileServiceKind::Sequential, 1)));
        let law = |law, value, centre| Ok((FileServiceKind::Skewed(Skew { law, value, centre }), 1));
        assert_eq!(read("zipf:1.2"), law(SkewLaw::Zipf, 1.2, None));
        assert_eq!(read("pareto"), law(SkewLaw::Pareto, 0.2, None));
        assert_eq!(read("gauss:20:0.5"), law(SkewLaw::Normal, 20.0, Some(0.5)));
        assert_eq!(read("pareto:2"), Err("the pareto power 2 is not between 0 and 1".to_owned()));
        assert_eq!(read("zipf:x"), Err("\"x\" is not a number".to_owned()));
        assert_eq!(read("random:x"), Err("\"x\" is not a number".to_owned()));
        assert!(read("rand").unwrap_err().starts_with("not one of random, "));
    }
}
