//! `filesetxattr` and `filegetxattr`: setxattr(2) and getxattr(2).
//!
//! The value is the last component of the file's name, repeated: so it differs from file to file, and can be checked.

use crate::names::{Act, answer, last_of};
use iolite_engine::{Errno, Outcome};
use iolite_options::engines::XattrOptions;
use std::ffi::{CStr, CString};

/// Sets or reads an extended attribute per unit.
#[derive(Debug)]
pub struct FileXattr {
    attribute: CString,
    value: Vec<u8>,
    sets: bool,
}

impl FileXattr {
    /// `sets`: whether it sets the attribute, or reads it.
    pub fn new(options: &XattrOptions, sets: bool) -> FileXattr {
        FileXattr {
            // (No option has a zero in it.)
            attribute: CString::new(options.xattr_name.as_str()).unwrap_or_default(),
            value: vec![0; options.xattr_size as usize],
            sets,
        }
    }
}

impl Act for FileXattr {
    fn act(&mut self, name: &CStr, length: u64) -> Outcome {
        if self.sets {
            fill(&mut self.value, last_of(name));
            // SAFETY: the names end with a zero, and the value has this many bytes.
            let result = unsafe {
                libc::setxattr(
                    name.as_ptr(),
                    self.attribute.as_ptr(),
                    self.value.as_ptr().cast(),
                    self.value.len(),
                    0,
                )
            };
            return answer(result, length);
        }
        // SAFETY: as above. A value that is longer is an error (ERANGE).
        let bytes = unsafe {
            libc::getxattr(
                name.as_ptr(),
                self.attribute.as_ptr(),
                self.value.as_mut_ptr().cast(),
                self.value.len(),
            )
        };
        if bytes < 0 { Err(Errno::last()) } else { Ok(length) }
    }
}

/// Repeats a text.
fn fill(value: &mut [u8], text: &[u8]) {
    for (byte, &of_text) in value.iter_mut().zip(text.iter().cycle()) {
        *byte = of_text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_repeats_the_name() {
        let mut value = [0; 7];
        fill(&mut value, b"f12");
        assert_eq!(&value, b"f12f12f");
    }
}
