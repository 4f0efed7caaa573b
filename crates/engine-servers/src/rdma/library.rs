//! librdmacm, which makes connections, and libibverbs, which moves data, opened at run time. rdma_cm(7) and ibv_*(3)
//! describe their functions. The functions for each block are in the operations table of the device's driver
//! (`abi.rs`).

use super::abi::{
    CompletionChannel, CompletionQueue, Context, DeviceAttributes, End, Event, EventChannel, MemoryRegion,
    NewQueuePair, Parameters, ProtectionDomain, QueuePair, QueuePairAttributes,
};
use iolite_engine::EngineError;
use iolite_engine::library::{functions, open};
use libc::{c_char, c_int, c_uint, c_void, size_t, sockaddr};
use std::sync::OnceLock;

functions! {
    /// The functions of libibverbs that this engine uses.
    Verbs {
        device_attributes = "ibv_query_device": fn(*mut Context, *mut DeviceAttributes) -> c_int;
        new_domain = "ibv_alloc_pd": fn(*mut Context) -> *mut ProtectionDomain;
        free_domain = "ibv_dealloc_pd": fn(*mut ProtectionDomain) -> c_int;
        register = "ibv_reg_mr": fn(*mut ProtectionDomain, *mut c_void, size_t, c_int) -> *mut MemoryRegion;
        unregister = "ibv_dereg_mr": fn(*mut MemoryRegion) -> c_int;
        new_channel = "ibv_create_comp_channel": fn(*mut Context) -> *mut CompletionChannel;
        free_channel = "ibv_destroy_comp_channel": fn(*mut CompletionChannel) -> c_int;
        new_queue = "ibv_create_cq": fn(*mut Context, c_int, *mut c_void, *mut CompletionChannel, c_int) -> *mut CompletionQueue;
        free_queue = "ibv_destroy_cq": fn(*mut CompletionQueue) -> c_int;
        next_notice = "ibv_get_cq_event": fn(*mut CompletionChannel, *mut *mut CompletionQueue, *mut *mut c_void) -> c_int;
        noticed = "ibv_ack_cq_events": fn(*mut CompletionQueue, c_uint);
        change_pair = "ibv_modify_qp": fn(*mut QueuePair, *mut QueuePairAttributes, c_int) -> c_int;
        status_words = "ibv_wc_status_str": fn(c_int) -> *const c_char;
    }
}

functions! {
    /// The functions of librdmacm that this engine uses.
    Manager {
        new_channel = "rdma_create_event_channel": fn() -> *mut EventChannel;
        free_channel = "rdma_destroy_event_channel": fn(*mut EventChannel);
        new_end = "rdma_create_id": fn(*mut EventChannel, *mut *mut End, *mut c_void, c_int) -> c_int;
        free_end = "rdma_destroy_id": fn(*mut End) -> c_int;
        bind = "rdma_bind_addr": fn(*mut End, *const sockaddr) -> c_int;
        listen = "rdma_listen": fn(*mut End, c_int) -> c_int;
        resolve_address = "rdma_resolve_addr": fn(*mut End, *const sockaddr, *const sockaddr, c_int) -> c_int;
        resolve_route = "rdma_resolve_route": fn(*mut End, c_int) -> c_int;
        new_pair = "rdma_create_qp": fn(*mut End, *mut ProtectionDomain, *mut NewQueuePair) -> c_int;
        free_pair = "rdma_destroy_qp": fn(*mut End);
        connect = "rdma_connect": fn(*mut End, *mut Parameters) -> c_int;
        accept = "rdma_accept": fn(*mut End, *mut Parameters) -> c_int;
        reject = "rdma_reject": fn(*mut End, *const c_void, u8) -> c_int;
        disconnect = "rdma_disconnect": fn(*mut End) -> c_int;
        next_event = "rdma_get_cm_event": fn(*mut EventChannel, *mut *mut Event) -> c_int;
        acknowledge = "rdma_ack_cm_event": fn(*mut Event) -> c_int;
    }
}

/// Both libraries.
pub(super) struct Library {
    pub(super) verbs: Verbs,
    pub(super) manager: Manager,
}

/// The file names of the libraries.
const VERBS: &str = "libibverbs.so.1";
const MANAGER: &str = "librdmacm.so.1";

impl Library {
    /// Loads the libraries, once per process.
    ///
    /// # Errors
    /// One of them is not installed, or too old.
    pub(super) fn load() -> Result<&'static Library, EngineError> {
        static LOADED: OnceLock<Result<Library, (&'static str, String)>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| {
            // SAFETY: the types are those of the headers, with structures as `abi.rs` has them.
            let verbs =
                unsafe { open(VERBS, |library| Verbs::found(library)) }.map_err(|why| (VERBS, why))?;
            // SAFETY: as above.
            let manager =
                unsafe { open(MANAGER, |library| Manager::found(library)) }.map_err(|why| (MANAGER, why))?;
            Ok(Library { verbs, manager })
        });
        loaded.as_ref().map_err(|(library, why)| EngineError::Library {
            engine: "rdma",
            library,
            debian: "libibverbs1, librdmacm1 and ibverbs-providers",
            rhel: "libibverbs and librdmacm",
            why: why.clone(),
        })
    }
}
