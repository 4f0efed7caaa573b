//! Local time in the form of `ctime`.

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time in the local time zone: `Fri Nov 20 12:33:20 2026`, the day padded with a blank.
pub fn local(milliseconds: u64) -> String {
    let Some(time) = broken_down(milliseconds / 1000) else {
        // The year does not fit, so there is no local time.
        return format!("{} seconds after 1970", milliseconds / 1000);
    };
    text(&time)
}

/// A time in the local time zone, to the minute: `2026-11-20 12:33`.
pub fn minute(milliseconds: u64) -> String {
    let Some(time) = broken_down(milliseconds / 1000) else { return local(milliseconds) };
    let (year, month) = (i64::from(time.tm_year) + 1900, time.tm_mon + 1);
    format!("{year:04}-{month:02}-{:02} {:02}:{:02}", time.tm_mday, time.tm_hour, time.tm_min)
}

/// The milliseconds since 1970 of a time in the local time zone: `2026-11-20`, optionally followed by `12:33`. `None` =
/// not a time.
pub fn of_local(text: &str) -> Option<u64> {
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00"));
    let number = |text: &str| {
        text.parse::<libc::c_int>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut parts = date.splitn(3, '-').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let (hour, minute) = time.split_once(':')?;
    let (hour, minute) = (number(hour)?, number(minute)?);
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 {
        return None;
    }
    // SAFETY: a tm is plain numbers and a pointer that may be null; mktime reads and writes it only.
    let seconds = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        (time.tm_year, time.tm_mon, time.tm_mday) = (year - 1900, month - 1, day);
        (time.tm_hour, time.tm_min, time.tm_isdst) = (hour, minute, -1);
        libc::mktime(&mut time)
    };
    u64::try_from(seconds).ok()?.checked_mul(1000)
}

fn text(time: &libc::tm) -> String {
    let name = |names: &[&'static str], index: i32| {
        usize::try_from(index).ok().and_then(|index| names.get(index).copied()).unwrap_or("???")
    };
    format!(
        "{} {} {:2} {:02}:{:02}:{:02} {}",
        name(&DAYS, time.tm_wday),
        name(&MONTHS, time.tm_mon),
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec,
        i64::from(time.tm_year) + 1900
    )
}

fn broken_down(seconds: u64) -> Option<libc::tm> {
    let seconds = libc::time_t::try_from(seconds).ok()?;
    let mut time = std::mem::MaybeUninit::<libc::tm>::uninit();
    // SAFETY: both pointers are valid during the call, and `time` is read only if localtime_r has written it.
    unsafe {
        if libc::localtime_r(&seconds, time.as_mut_ptr()).is_null() { None } else { Some(time.assume_init()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_of_ctime() {
        let mut time = broken_down(0).expect("the epoch has a local time");
        (time.tm_wday, time.tm_mon, time.tm_mday, time.tm_year) = (4, 8, 5, 125);
        (time.tm_hour, time.tm_min, time.tm_sec) = (7, 0, 9);
        assert_eq!(text(&time), "Thu Sep  5 07:00:09 2025");
    }

    #[test]
    fn written_times_are_read_back() {
        for milliseconds in [1_795_178_000_000, 1_700_000_000_000_u64] {
            let text = minute(milliseconds);
            assert_eq!(of_local(&text), Some(milliseconds / 60_000 * 60_000), "{text}");
        }
        assert_eq!(of_local("2026-11-20"), of_local("2026-11-20T00:00"));
        for bad in [
            "",
            "2026",
            "2026-13-01",
            "2026-1-32",
            "2026-11-20 24:00",
            "2026-11-20 1",
            "+026-11-20",
            "x-y-z",
            "99999-1-1",
        ] {
            assert_eq!(of_local(bad), None, "{bad}");
        }
    }

    #[test]
    fn no_time_is_too_late() {
        assert!(local(u64::MAX).ends_with(" 584556019"));
        assert_eq!(local(1_795_178_000_000).len(), "Fri Nov 20 12:33:20 2026".len());
    }
}
