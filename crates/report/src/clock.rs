//! Local time, as `ctime` writes it.

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
    fn no_time_is_too_late() {
        assert!(local(u64::MAX).ends_with(" 584556019"));
        assert_eq!(local(1_795_178_000_000).len(), "Fri Nov 20 12:33:20 2026".len());
    }
}
