//! `file_service_type`: `random`, `roundrobin:4`.

use super::{integer, keyword};
use crate::{FileService, FileServiceKind};

/// Reads the way in which files take turns, and how many I/Os each gets.
pub fn file_service(
    text: &str,
    keywords: &'static [(&'static str, &'static str)],
    kb_base: u32,
    notes: &mut Vec<String>,
) -> Result<FileService, String> {
    let (word, count) = match text.split_once(':') {
        Some((word, count)) => (word.trim(), count.trim()),
        None => (text, ""),
    };
    let word = keyword(word, keywords)?;
    let kind =
        FileServiceKind::from_keyword(word).ok_or_else(|| format!("\"{word}\" is not supported yet"))?;
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
    use crate::registry;

    fn read(text: &str) -> Result<(FileServiceKind, u64), String> {
        let keywords = registry::find_job("file_service_type").unwrap().keywords;
        file_service(text, keywords, 1024, &mut Vec::new()).map(|service| (service.kind, service.ios))
    }

    #[test]
    fn kinds_and_counts() {
        assert_eq!(read("random"), Ok((FileServiceKind::Random, 1)));
        assert_eq!(read("roundrobin:4"), Ok((FileServiceKind::RoundRobin, 4)));
        assert_eq!(read("sequential:"), Ok((FileServiceKind::Sequential, 1)));
        assert_eq!(read("zipf:1.2"), Err("\"zipf\" is not supported yet".to_owned()));
        assert_eq!(read("random:x"), Err("\"x\" is not a number".to_owned()));
        assert!(read("rand").unwrap_err().starts_with("not one of random, "));
    }
}
