//! `filerename` and `filelink`: rename(2) and link(2) to a name that follows from the old one.

use crate::names::{Act, answer, last_of};
use iolite_engine::{Errno, Outcome};
use iolite_options::engines::NewNameOptions;
use std::ffi::CStr;

/// The end of new names in the directory of the old ones, unless the job gives another one.
const USUAL_SUFFIX: &str = ".new";

/// What a new name is for.
#[derive(Clone, Copy, Debug)]
enum Call {
    Rename,
    Link,
}

/// Gives a file another name, or a second one, per unit.
#[derive(Debug)]
pub struct NewName {
    call: Call,
    directory: Vec<u8>,
    suffix: Vec<u8>,
    /// The new name, with a zero at its end.
    name: Vec<u8>,
}

impl NewName {
    /// `filerename`
    pub fn rename(options: &NewNameOptions) -> NewName {
        NewName::with(Call::Rename, options)
    }

    /// `filelink`
    pub fn link(options: &NewNameOptions) -> NewName {
        NewName::with(Call::Link, options)
    }

    fn with(call: Call, options: &NewNameOptions) -> NewName {
        let name = Vec::with_capacity(libc::PATH_MAX as usize);
        let suffix = match (options.new_suffix.as_str(), options.new_directory.as_str()) {
            ("", "") => USUAL_SUFFIX,
            (given, _) => given,
        };
        NewName {
            call,
            directory: options.new_directory.clone().into_bytes(),
            suffix: suffix.as_bytes().to_vec(),
            name,
        }
    }

    /// Makes the new name.
    fn make(&mut self, old: &CStr) -> Result<&CStr, Errno> {
        self.name.clear();
        if self.directory.is_empty() {
            self.name.extend_from_slice(old.to_bytes());
        } else {
            self.name.extend_from_slice(&self.directory);
            self.name.push(b'/');
            self.name.extend_from_slice(last_of(old));
        }
        self.name.extend_from_slice(&self.suffix);
        self.name.push(0);
        CStr::from_bytes_with_nul(&self.name).map_err(|_| Errno(libc::EINVAL))
    }
}

impl Act for NewName {
    fn act(&mut self, name: &CStr, length: u64) -> Outcome {
        let call = self.call;
        let new = self.make(name)?.as_ptr();
        // SAFETY: both names end with a zero.
        let result = unsafe {
            match call {
                Call::Rename => libc::rename(name.as_ptr(), new),
                Call::Link => libc::link(name.as_ptr(), new),
            }
        };
        answer(result, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_names_follow_from_the_old_ones() {
        let made = |suffix: &str, directory: &str, old: &CStr| {
            let options =
                NewNameOptions { new_suffix: suffix.to_owned(), new_directory: directory.to_owned() };
            NewName::rename(&options).make(old).unwrap().to_owned()
        };
        assert_eq!(made("", "", c"d/f"), c"d/f.new".to_owned());
        assert_eq!(made("", "e", c"d/f"), c"e/f".to_owned());
        assert_eq!(made("~", "/e", c"f"), c"/e/f~".to_owned());
    }
}
