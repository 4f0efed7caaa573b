//! `zoneskip`: bytes, or a number of zones: `64k`, `2z`.

use super::{Notes, size};
use crate::{SizeValue, ZoneSkip};

/// Parses the distance to skip between two zones.
///
/// # Errors
/// As [`size()`]; percentages are not accepted.
pub fn zone_skip(text: &str, kb_base: u32, notes: &mut Notes) -> Result<ZoneSkip, String> {
    let text = text.trim();
    match size(text, kb_base, notes)? {
        SizeValue::Bytes(bytes) => Ok(ZoneSkip::Bytes(bytes)),
        SizeValue::Zones(zones) => Ok(ZoneSkip::Zones(zones)),
        SizeValue::Percent(_) => Err("is in bytes (64k) or zones (2z), not in percent".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    #[test]
    fn bytes_or_zones() {
        let read = |text| zone_skip(text, 1024, &mut Notes::of(Name::Fio));
        assert_eq!(read("64k"), Ok(ZoneSkip::Bytes(65536)));
        assert_eq!(read("0"), Ok(ZoneSkip::Bytes(0)));
        assert_eq!(read("2z"), Ok(ZoneSkip::Zones(2)));
        assert!(read("5%").unwrap_err().contains("not in percent"));
        assert_eq!(read("-1"), Err("must not be negative".to_owned()));
        assert!(read("z").is_err());
    }
}
