//! libiscsi, opened at run time, so that only jobs that use it need it. The declarations follow its header. Only
//! functions whose types have never changed are used, and none of its structures except the one for data to send.

use iolite_engine::EngineError;
use libc::{c_char, c_int, c_uchar, c_void};
use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use std::ffi::CStr;

/// The file names of the library in distributions.
const FILES: [&str; 6] =
    ["libiscsi.so.7", "libiscsi.so.8", "libiscsi.so.9", "libiscsi.so.10", "libiscsi.so.11", "libiscsi.so"];

/// A session of the library.
pub(super) enum Context {}
/// A command of the library.
pub(super) enum Task {}

/// The data that is sent with a command.
#[repr(C)]
pub(super) struct Sent {
    pub(super) size: usize,
    pub(super) data: *const u8,
}

/// A session for disks, not for finding targets.
pub(super) const NORMAL: c_int = 2;
/// The direction of a command's data.
pub(super) const NO_DATA: c_int = 0;
pub(super) const FROM_DISK: c_int = 1;
pub(super) const TO_DISK: c_int = 2;

/// Called when an operation is done: with the session, a status, and the caller's data.
pub(super) type Callback = unsafe extern "C" fn(*mut Context, c_int, *mut c_void, *mut c_void);

macro_rules! library {
    ($($name:ident = $symbol:literal: fn($($type:ty),*) $(-> $result:ty)?,)+) => {
        /// The functions of the library that this engine uses. The library stays loaded as long as this exists.
        pub(super) struct Library {
            $(pub(super) $name: unsafe extern "C" fn($($type),*) $(-> $result)?,)+
            pub(super) _loaded: Loaded,
        }

        impl Library {
            /// Loads the library.
            pub(super) fn load() -> Result<Library, EngineError> {
                let missing = |error: libloading::Error| EngineError::Library {
                    engine: "libiscsi",
                    library: FILES[0],
                    debian: "libiscsi7",
                    rhel: "libiscsi",
                    why: error.to_string(),
                };
                // SAFETY: libiscsi does nothing when it is loaded. The types are those of its header, and the
                // functions are not used after the library is unloaded.
                unsafe {
                    let open = |file: &&str| Loaded::open(Some(*file), RTLD_NOW | RTLD_LOCAL);
                    let loaded = match FILES.iter().skip(1).find_map(|file| open(file).ok()) {
                        Some(other) if open(&FILES[0]).is_err() => other,
                        _ => open(&FILES[0]).map_err(missing)?,
                    };
                    Ok(Library {
                        $($name: *loaded
                            .get::<unsafe extern "C" fn($($type),*) $(-> $result)?>(concat!($symbol, "\0").as_bytes())
                            .map_err(missing)?,)+
                        _loaded: loaded,
                    })
                }
            }
        }
    };
}

library! {
    create = "iscsi_create_context": fn(*const c_char) -> *mut Context,
    destroy = "iscsi_destroy_context": fn(*mut Context) -> c_int,
    error = "iscsi_get_error": fn(*mut Context) -> *const c_char,
    set_target = "iscsi_set_targetname": fn(*mut Context, *const c_char) -> c_int,
    set_kind = "iscsi_set_session_type": fn(*mut Context, c_int) -> c_int,
    set_user = "iscsi_set_initiator_username_pwd": fn(*mut Context, *const c_char, *const c_char) -> c_int,
    set_proof = "iscsi_set_target_username_pwd": fn(*mut Context, *const c_char, *const c_char) -> c_int,
    stay_broken = "iscsi_set_noautoreconnect": fn(*mut Context, c_int),
    connect = "iscsi_full_connect_async": fn(*mut Context, *const c_char, c_int, Callback, *mut c_void) -> c_int,
    descriptor = "iscsi_get_fd": fn(*mut Context) -> c_int,
    events = "iscsi_which_events": fn(*mut Context) -> c_int,
    service = "iscsi_service": fn(*mut Context, c_int) -> c_int,
    new_task = "scsi_create_task": fn(c_int, *mut c_uchar, c_int, c_int) -> *mut Task,
    free_task = "scsi_free_scsi_task": fn(*mut Task),
    receive_into = "scsi_task_add_data_in_buffer": fn(*mut Task, c_int, *mut c_uchar) -> c_int,
    begin = "iscsi_scsi_command_async":
        fn(*mut Context, c_int, *mut Task, Callback, *mut Sent, *mut c_void) -> c_int,
}

impl Library {
    /// The library's message about the last failure in a session.
    pub(super) fn words(&self, context: *mut Context) -> String {
        // SAFETY: the session exists. The text is valid until the next call, and ends with a zero byte.
        unsafe {
            let text = (self.error)(context);
            if text.is_null() {
                return String::new();
            }
            CStr::from_ptr(text).to_string_lossy().trim().to_owned()
        }
    }
}
