//! libiscsi, opened at run time, so that only jobs that use it need it. The declarations follow its header. Only
//! functions whose types have never changed are used, and none of its structures except the one for data to send.

use iolite_engine::EngineError;
use iolite_engine::library::{functions, open};
use libc::{c_char, c_int, c_uchar, c_void};
use std::ffi::CStr;

/// The file names of the library in distributions.
const FILES: [&str; 6] =
    ["libiscsi.so.7", "libiscsi.so.8", "libiscsi.so.9", "libiscsi.so.10", "libiscsi.so.11", "libiscsi.so"];

/// A session of the library.
pub(crate) enum Context {}
/// A command of the library.
pub(crate) enum Task {}

/// The data that is sent with a command.
#[repr(C)]
pub(crate) struct Sent {
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
pub(crate) type Callback = unsafe extern "C" fn(*mut Context, c_int, *mut c_void, *mut c_void);

functions! {
    /// The functions of the library that this engine uses.
    Library {
        create = "iscsi_create_context": fn(*const c_char) -> *mut Context;
        destroy = "iscsi_destroy_context": fn(*mut Context) -> c_int;
        error = "iscsi_get_error": fn(*mut Context) -> *const c_char;
        set_target = "iscsi_set_targetname": fn(*mut Context, *const c_char) -> c_int;
        set_kind = "iscsi_set_session_type": fn(*mut Context, c_int) -> c_int;
        set_user = "iscsi_set_initiator_username_pwd": fn(*mut Context, *const c_char, *const c_char) -> c_int;
        set_proof = "iscsi_set_target_username_pwd": fn(*mut Context, *const c_char, *const c_char) -> c_int;
        stay_broken = "iscsi_set_noautoreconnect": fn(*mut Context, c_int);
        connect_from = "iscsi_set_bind_interfaces": fn(*mut Context, *mut c_char);
        connect = "iscsi_full_connect_async": fn(*mut Context, *const c_char, c_int, Callback, *mut c_void) -> c_int;
        descriptor = "iscsi_get_fd": fn(*mut Context) -> c_int;
        events = "iscsi_which_events": fn(*mut Context) -> c_int;
        service = "iscsi_service": fn(*mut Context, c_int) -> c_int;
        new_task = "scsi_create_task": fn(c_int, *mut c_uchar, c_int, c_int) -> *mut Task;
        free_task = "scsi_free_scsi_task": fn(*mut Task);
        receive_into = "scsi_task_add_data_in_buffer": fn(*mut Task, c_int, *mut c_uchar) -> c_int;
        begin = "iscsi_scsi_command_async":
            fn(*mut Context, c_int, *mut Task, Callback, *mut Sent, *mut c_void) -> c_int;
    }
}

impl Library {
    /// Loads the library, by the first of its names that is there.
    pub(super) fn load() -> Result<Library, EngineError> {
        // SAFETY: libiscsi does nothing when it is loaded. The types are those of its header.
        let mut tried = FILES.iter().map(|file| unsafe { open(file, |library| Library::found(library)) });
        let first = tried.next().unwrap_or_else(|| Err(String::new()));
        first.or_else(|why| tried.find_map(Result::ok).ok_or(why)).map_err(|why| EngineError::Library {
            engine: "libiscsi",
            library: FILES[0],
            debian: "libiscsi7",
            rhel: "libiscsi",
            why,
        })
    }

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
