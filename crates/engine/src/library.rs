//! Libraries that are opened at run time and have threads of their own.
//!
//! They stay loaded until the process ends, as their threads and what they do at exit need them, and are called by nobody
//! but the engine.

use libc::c_void;
use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};

/// What a library gives and takes without telling what it is: clusters, pools, completions, images.
pub(crate) type Handle = *mut c_void;

/// Declares the functions of a library, and how they are found in it.
macro_rules! functions {
    ($(#[$meta:meta])* $library:ident { $($name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)+ }) => {
        $(#[$meta])*
        pub(crate) struct $library {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl $library {
            /// Finds all of them.
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

pub(crate) use functions;

/// Opens a library that stays loaded, and finds its functions.
///
/// # Safety
/// Loading it does no harm, and `find` demands what it has.
pub(crate) unsafe fn open<T>(
    file: &str,
    find: impl FnOnce(&Loaded) -> Result<T, libloading::Error>,
) -> Result<T, String> {
    // SAFETY: the caller promises that.
    let loaded =
        unsafe { Loaded::open(Some(file), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| error.to_string())?;
    let found = find(&loaded).map_err(|error| error.to_string());
    // Its threads and what it does at exit need it.
    std::mem::forget(loaded);
    found
}
