//! Dates, without the system's calendar.

/// The date (year, month, day) in the Gregorian calendar, this many days after 1970-01-01. Years are counted from
/// March, so that the extra day of a leap year is its last.
pub fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_IN_400_YEARS: u64 = 146_097;
    const BEFORE_1970: u64 = 719_468;
    let days = days + BEFORE_1970;
    let (era, day) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day_of_month)
}

/// A time, given in seconds since 1970, as a date in UTC: `2026-11-27 23:57:21 UTC`.
pub fn utc(seconds: u64) -> String {
    utc_with(seconds, "")
}

/// The same with nanoseconds: `2026-11-27 23:57:21.000000042 UTC`.
pub fn utc_to_the_nanosecond(seconds: u64, nanoseconds: u32) -> String {
    utc_with(seconds, &format!(".{nanoseconds:09}"))
}

fn utc_with(seconds: u64, fraction: &str) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // Values from date(1).
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc_to_the_nanosecond(1_735_689_599, 42), "2024-12-31 23:59:59.000000042 UTC");
        assert!(utc(u64::MAX).ends_with(" UTC"));
    }
}
