//! Errors of the operating system with a text of our own that keep their errno.

use std::io;

/// The same error with this text.
pub fn explained(error: &io::Error, text: String) -> io::Error {
    io::Error::new(error.kind(), NamedError { errno: Some(errno_of(error)), text })
}

/// An error of the operating system with a text of our own. It keeps its errno.
#[derive(Debug)]
pub struct NamedError {
    /// The errno, if there is one.
    pub errno: Option<i32>,
    text: String,
}

impl std::fmt::Display for NamedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for NamedError {}

/// The result of a system call.
///
/// # Errors
/// The error in `errno`, if the result is negative.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The errno of an error, including one that was [`explained`]; `EIO` if it has none.
pub fn errno_of(error: &io::Error) -> i32 {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<NamedError>());
    error.raw_os_error().or_else(|| inner.and_then(|inner| inner.errno)).unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_types::describe_error;

    #[test]
    fn errors_keep_their_number() {
        let error = explained(&io::Error::from_raw_os_error(libc::ENOSPC), "/x: no room".to_owned());
        assert_eq!(errno_of(&error), libc::ENOSPC);
        let words = io::Error::from_raw_os_error(libc::ENOSPC);
        let error = explained(&error, format!("{error}: {words}, and so on"));
        assert_eq!(errno_of(&error), libc::ENOSPC);
        assert_eq!(describe_error(&error), "/x: no room: No space left on device, and so on");
    }
}
