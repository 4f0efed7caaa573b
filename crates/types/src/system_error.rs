//! The operating system's texts for its errors.

use std::io;

/// The operating system's text for an error, without the number that the standard library appends: `No space left on
/// device`, not `No space left on device (os error 28)`.
pub fn describe_error(error: &io::Error) -> String {
    without_error_numbers(&error.to_string())
}

/// A text without the error numbers that the standard library adds to the operating system's text.
pub fn without_error_numbers(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(start) = text.find(" (os error ")
        && let Some(length) = text[start..].find(')')
    {
        text.replace_range(start..=start + length, "");
    }
    text
}

/// The operating system's text for an error number, as [`describe_error`] gives it.
pub fn describe_errno(errno: i32) -> String {
    describe_error(&io::Error::from_raw_os_error(errno))
}

/// The error of wrong data: `EILSEQ`, as fio reports it. The system's text for it is about characters.
pub const WRONG_DATA: i32 = 84;

/// Describes the error of a job: what wrong data is, and the operating system's text for any other error.
pub fn describe_job_error(errno: i32) -> String {
    if errno == WRONG_DATA { "wrong data".to_owned() } else { describe_errno(errno) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_left_out() {
        assert_eq!(describe_errno(28), "No space left on device");
        assert!(describe_errno(99_999).starts_with("Unknown error"));
        let error = io::Error::other("f: Permission denied (os error 13), g: No such file (os error 2)");
        assert_eq!(describe_error(&error), "f: Permission denied, g: No such file");
    }
}
