//! `sync_file_range`: `wait_before,write:8`.

use super::{Notes, integer, keyword};
use crate::SyncFileRange;

/// Parses flags (separated by commas or colons) and, after the last colon, the number of writes between two calls.
/// Without a number, or with 0, there are no syncs.
///
/// # Errors
/// A flag is unknown, the number is negative, or there is a number without any flag.
pub fn sync_file_range(
    text: &str,
    keywords: &'static [(&'static str, &'static str)],
    kb_base: u32,
    notes: &mut Notes,
) -> Result<Option<SyncFileRange>, String> {
    let mut words: Vec<&str> = text.split([',', ':']).map(str::trim).collect();
    let starts_a_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let interval = match words.pop_if(|word| starts_a_number(word)) {
        Some(number) => integer(number, kb_base, notes)?,
        None => 0,
    };
    let mut flags = 0;
    for word in words {
        flags |= match keyword(word, keywords, notes)? {
            "wait_before" => libc_flags::WAIT_BEFORE,
            "write" => libc_flags::WRITE,
            _ => libc_flags::WAIT_AFTER,
        };
    }
    match u64::try_from(interval) {
        Ok(0) => {
            notes.push("no number of writes is given (as in write:8), so nothing is synced".to_owned());
            Ok(None)
        }
        Ok(interval) if flags != 0 => Ok(Some(SyncFileRange { flags, interval })),
        _ => Err("needs flags and a number of writes, such as write:8".to_owned()),
    }
}

/// The kernel's flags, `SYNC_FILE_RANGE_*` in sync_file_range(2).
mod libc_flags {
    pub const WAIT_BEFORE: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const WAIT_AFTER: u32 = 4;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use crate::registry;

    fn read(text: &str) -> Result<Option<(u32, u64)>, String> {
        let keywords = registry::find_job("sync_file_range").unwrap().keywords;
        let value = sync_file_range(text, keywords, 1024, &mut Notes::of(Name::Fio))?;
        Ok(value.map(|value| (value.flags, value.interval)))
    }

    #[test]
    fn flags_and_interval() {
        assert_eq!(read("write:8"), Ok(Some((2, 8))));
        assert_eq!(read("wait_before,write:8"), Ok(Some((3, 8))));
        assert_eq!(read("wait_before:write:wait_after:1k"), Ok(Some((7, 1024))));
        assert_eq!(read("write"), Ok(None));
        assert_eq!(read("write:0"), Ok(None));
        assert_eq!(read("x:8"), Err("not one of wait_before, write, wait_after".to_owned()));
        assert!(read("8").is_err());
        assert!(read("write:x").is_err());
    }
}
