//! What the system calls its error numbers.

use std::io;

/// The system's words for an error number: `No space left on device`.
pub fn describe(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    let number = format!(" (os error {errno})");
    text.strip_suffix(&number).unwrap_or(&text).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_number_is_not_repeated() {
        assert_eq!(super::describe(28), "No space left on device");
        assert!(super::describe(99_999).starts_with("Unknown error"));
    }
}
