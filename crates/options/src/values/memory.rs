//! `mem`: `malloc`, `mmap`, `mmaphuge:/mnt/huge/buffer`.

use super::{Notes, keyword};
use crate::MemoryKind;

/// Parses the kind of memory and the file that follows it.
///
/// # Errors
/// The keyword is unknown, or the file after the colon is missing; or, under our own name, memory without a file has one.
pub fn memory(
    text: &str,
    keywords: &'static [(&'static str, &'static str)],
    notes: &mut Notes,
) -> Result<(MemoryKind, Option<String>), String> {
    let (word, file) = match text.split_once(':') {
        Some((word, file)) => (word.trim(), Some(file.trim())),
        None => (text, None),
    };
    let word = keyword(word, keywords, notes)?;
    let kind = MemoryKind::from_keyword(word).ok_or_else(|| format!("\"{word}\" is not supported yet"))?;
    let mapped = matches!(kind, MemoryKind::Mmap | MemoryKind::MmapShared | MemoryKind::MmapHuge);
    match file {
        Some("") if mapped => Err("the file behind the colon is missing".to_owned()),
        Some(file) if !mapped => {
            notes.ignore(format!("{word} memory has no file; \"{file}\" has no effect, leave it out"), "")?;
            Ok((kind, None))
        }
        file => Ok((kind, file.map(str::to_owned))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use crate::registry;

    fn read(text: &str) -> Result<(MemoryKind, Option<String>), String> {
        memory(text, registry::find_job("mem").unwrap().keywords, &mut Notes::of(Name::Fio))
    }

    #[test]
    fn kinds_and_files() {
        assert_eq!(read("shmhuge"), Ok((MemoryKind::ShmHuge, None)));
        assert_eq!(read("mmap:/tmp/a:b"), Ok((MemoryKind::Mmap, Some("/tmp/a:b".to_owned()))));
        assert_eq!(read("malloc:/x"), Ok((MemoryKind::Malloc, None)));
        assert!(read("mmap:").is_err());
        assert!(read("mall").unwrap_err().starts_with("not one of malloc, "));
    }
}
