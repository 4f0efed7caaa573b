//! Vendors' libraries, opened at run time.
//!
//! They stay loaded until the process ends, because threads and exit handlers of some of them need them, and only the
//! engine calls them.

use libc::c_void;
use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};

/// An opaque pointer of a library: a cluster, a pool, a completion, an image.
pub type Handle = *mut c_void;

/// Declares the functions of a library, and how they are found in it. With a second name for each, the library may be
/// one of two, and the argument of `found` says which.
#[macro_export]
macro_rules! functions {
    ($(#[$meta:meta])* $library:ident { $($name:ident = $symbol:literal or $other:literal: fn($($argument:ty),*) $(-> $result:ty)?;)+ }) => {
        $(#[$meta])*
        pub struct $library {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl $library {
            /// Finds all functions, by their second names if `is_other`.
            ///
            /// # Safety
            /// The library has these functions with these types, and stays loaded.
            unsafe fn found(
                loaded: &libloading::os::unix::Library,
                is_other: bool,
            ) -> Result<$library, libloading::Error> {
                // SAFETY: the caller promises that the types are right.
                unsafe {
                    Ok($library {
                        $($name: *loaded.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                            if is_other { concat!($other, "\0") } else { concat!($symbol, "\0") }.as_bytes(),
                        )?,)+
                    })
                }
            }
        }
    };
    ($(#[$meta:meta])* $library:ident { $($name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)+ }) => {
        $(#[$meta])*
        pub struct $library {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl $library {
            /// Finds all functions.
            ///
            /// # Safety
            /// The library has these functions with these types, and stays loaded.
            unsafe fn found(loaded: &libloading::os::unix::Library) -> Result<$library, libloading::Error> {
                // SAFETY: the caller promises that the types are right.
                unsafe {
                    Ok($library {
                        $($name: *loaded.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                            concat!($symbol, "\0").as_bytes(),
                        )?,)+
                    })
                }
            }
        }
    };
}

pub use crate::functions;

/// Opens a library that stays loaded, and finds its functions.
///
/// # Errors
/// It is not installed, or has not all of these functions.
///
/// # Safety
/// Loading the library does no harm, and it fulfils the demands of `find`.
pub unsafe fn open<T>(
    file: &str,
    find: impl FnOnce(&Loaded) -> Result<T, libloading::Error>,
) -> Result<T, String> {
    if cfg!(target_feature = "crt-static") {
        return Err("this program is static, and loads no libraries".to_owned());
    }
    // SAFETY: the caller promises that.
    let loaded =
        unsafe { Loaded::open(Some(file), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| error.to_string())?;
    let found = find(&loaded).map_err(|error| error.to_string());
    // Its threads and exit handlers need it.
    std::mem::forget(loaded);
    found
}
