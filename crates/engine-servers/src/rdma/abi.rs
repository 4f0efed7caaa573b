//! The data structures of libibverbs and librdmacm, as in infiniband/verbs.h and rdma/rdma_cma.h.
//!
//! Only fields that are used have names. Posting requests and polling for completions are not exported functions:
//! callers find them in the operations table of the device's driver ([`Operations`]).

use libc::{c_int, c_void, sockaddr_storage};

/// An opaque object of the libraries.
pub(super) enum Opaque {}

/// A device that has been opened (`ibv_context`).
#[repr(C)]
pub(super) struct Context {
    device: *mut Opaque,
    pub(super) operations: Operations,
}

/// The operations table of a device's driver (`ibv_context_ops`).
#[repr(C)]
pub(super) struct Operations {
    _before_poll: [*mut c_void; 11],
    pub(super) poll: unsafe extern "C" fn(*mut CompletionQueue, c_int, *mut WorkCompletion) -> c_int,
    pub(super) notify: unsafe extern "C" fn(*mut CompletionQueue, c_int) -> c_int,
    _before_send: [*mut c_void; 12],
    pub(super) send: unsafe extern "C" fn(*mut QueuePair, *mut SendRequest, *mut *mut SendRequest) -> c_int,
    pub(super) receive:
        unsafe extern "C" fn(*mut QueuePair, *mut ReceiveRequest, *mut *mut ReceiveRequest) -> c_int,
}

/// `ibv_pd`
pub(super) type ProtectionDomain = Opaque;

/// The beginning of `ibv_comp_channel`.
#[repr(C)]
pub(super) struct CompletionChannel {
    context: *mut Context,
    pub(super) descriptor: c_int,
}

/// The beginning of `ibv_cq`.
#[repr(C)]
pub(super) struct CompletionQueue {
    pub(super) context: *mut Context,
}

/// The beginning of `ibv_qp`.
#[repr(C)]
pub(super) struct QueuePair {
    pub(super) context: *mut Context,
}

/// Memory that the device may use (`ibv_mr`).
#[repr(C)]
pub(super) struct MemoryRegion {
    context: *mut Context,
    domain: *mut ProtectionDomain,
    address: *mut c_void,
    length: usize,
    handle: u32,
    pub(super) local_key: u32,
    pub(super) remote_key: u32,
}

/// Access rights of registered memory (`ibv_access_flags`).
pub(super) mod access {
    pub const LOCAL_WRITE: i32 = 1;
    pub const REMOTE_WRITE: i32 = 1 << 1;
    pub const REMOTE_READ: i32 = 1 << 2;
}

/// `ibv_sge`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Piece {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) key: u32,
}

/// The operation of a send request (`ibv_wr_opcode`).
pub(super) mod opcode {
    pub const WRITE: i32 = 0;
    pub const SEND: i32 = 2;
    pub const READ: i32 = 4;
}

/// `IBV_SEND_SIGNALED`: the request has a completion.
pub(super) const SIGNALED: u32 = 1 << 1;

/// `ibv_send_wr`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct SendRequest {
    pub(super) id: u64,
    pub(super) next: *mut SendRequest,
    pub(super) pieces: *mut Piece,
    pub(super) count: c_int,
    pub(super) opcode: c_int,
    pub(super) flags: u32,
    pub(super) immediate: u32,
    pub(super) remote_address: u64,
    pub(super) remote_key: u32,
    pub(super) _rest: [u32; 19],
}

impl SendRequest {
    /// A request with this opcode for one piece of memory, which reports its completion.
    pub(super) fn new(id: u64, opcode: c_int) -> SendRequest {
        SendRequest {
            id,
            next: std::ptr::null_mut(),
            pieces: std::ptr::null_mut(),
            count: 1,
            opcode,
            flags: SIGNALED,
            immediate: 0,
            remote_address: 0,
            remote_key: 0,
            _rest: [0; 19],
        }
    }
}

/// `ibv_recv_wr`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct ReceiveRequest {
    pub(super) id: u64,
    pub(super) next: *mut ReceiveRequest,
    pub(super) pieces: *mut Piece,
    pub(super) count: c_int,
}

/// `ibv_wc`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct WorkCompletion {
    pub(super) id: u64,
    pub(super) status: c_int,
    opcode: c_int,
    vendor_error: u32,
    /// The number of bytes received.
    pub(super) length: u32,
    _rest: [u32; 6],
}

/// How a request has ended (`ibv_wc_status`).
pub(super) mod status {
    pub const SUCCESS: i32 = 0;
    pub const TOO_LONG: i32 = 1;
    pub const FLUSHED: i32 = 5;
    pub const REMOTE_INVALID: i32 = 9;
    pub const REMOTE_ACCESS: i32 = 10;
    pub const NO_ANSWER: i32 = 12;
    pub const NOT_READY: i32 = 13;
}

/// `ibv_qp_cap`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Capacity {
    pub(super) sends: u32,
    pub(super) receives: u32,
    pub(super) send_pieces: u32,
    pub(super) receive_pieces: u32,
    pub(super) inline_bytes: u32,
}

/// `IBV_QPT_RC`: messages arrive, once and in order.
pub(super) const RELIABLE: c_int = 2;

/// `ibv_qp_init_attr`
#[repr(C)]
pub(super) struct NewQueuePair {
    pub(super) context: *mut c_void,
    pub(super) send_queue: *mut CompletionQueue,
    pub(super) receive_queue: *mut CompletionQueue,
    pub(super) shared_receives: *mut Opaque,
    pub(super) capacity: Capacity,
    pub(super) kind: c_int,
    pub(super) signals_all: c_int,
}

/// `IBV_QP_MIN_RNR_TIMER`: only that attribute is changed.
pub(super) const NOT_READY_TIMER: c_int = 1 << 15;

/// `ibv_qp_attr`
#[repr(C)]
pub(super) struct QueuePairAttributes {
    _before: [u64; 16],
    /// The delay before a sender without a posted receive retries: 1 = 10 µs, 0 = 655 ms.
    pub(super) not_ready_timer: u8,
    _after: [u8; 15],
}

impl QueuePairAttributes {
    /// Attributes with this RNR timer; see the InfiniBand specification, table 45.
    pub(super) fn with_not_ready_timer(timer: u8) -> QueuePairAttributes {
        QueuePairAttributes { _before: [0; 16], not_ready_timer: timer, _after: [0; 15] }
    }
}

/// `ibv_device_attr`
#[repr(C)]
pub(super) struct DeviceAttributes {
    _names: [u64; 13],
    _numbers: u32,
    _pairs: c_int,
    /// The maximum number of requests in a queue.
    pub(super) requests: c_int,
    _flags: [u32; 4],
    /// The maximum number of entries of a completion queue.
    pub(super) completions: c_int,
    _memory: [c_int; 2],
    /// The maximum number of incoming reads that a queue pair answers at once.
    pub(super) reads_answered: c_int,
    _contexts: [c_int; 2],
    /// The maximum number of reads that a queue pair has in flight.
    pub(super) reads_begun: c_int,
    _rest: [u64; 64],
}

impl DeviceAttributes {
    /// Zeroed attributes, with room for the structure of any version of the library.
    pub(super) fn room() -> DeviceAttributes {
        // SAFETY: the structure is plain data, valid as zeros.
        unsafe { std::mem::zeroed() }
    }
}

/// The beginning of `rdma_event_channel`.
#[repr(C)]
pub(super) struct EventChannel {
    pub(super) descriptor: c_int,
}

/// The beginning of `rdma_cm_id`: one end of a connection, or a listener.
#[repr(C)]
pub(super) struct End {
    /// The device; null until it is known.
    pub(super) device: *mut Context,
    channel: *mut EventChannel,
    context: *mut c_void,
    pub(super) pair: *mut QueuePair,
    source: sockaddr_storage,
    pub(super) destination: sockaddr_storage,
}

/// `RDMA_PS_TCP`
pub(super) const RELIABLE_PORTS: c_int = 0x0106;

/// `rdma_conn_param`
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Parameters {
    pub(super) data: *const c_void,
    pub(super) data_length: u8,
    pub(super) reads_answered: u8,
    pub(super) reads_begun: u8,
    pub(super) flow_control: u8,
    pub(super) retries: u8,
    pub(super) not_ready_retries: u8,
    pub(super) shared_receives: u8,
    pub(super) pair_number: u32,
}

/// The beginning of `rdma_cm_event`.
#[repr(C)]
pub(super) struct Event {
    pub(super) end: *mut End,
    listener: *mut End,
    pub(super) kind: c_int,
    /// An error number (negative), or the reason of a rejection.
    pub(super) status: c_int,
    pub(super) parameters: Parameters,
}

/// `rdma_cm_event_type`
pub(super) mod event {
    pub const ADDRESS_RESOLVED: i32 = 0;
    pub const ADDRESS_ERROR: i32 = 1;
    pub const ROUTE_RESOLVED: i32 = 2;
    pub const ROUTE_ERROR: i32 = 3;
    pub const CONNECT_REQUEST: i32 = 4;
    pub const CONNECT_ERROR: i32 = 6;
    pub const UNREACHABLE: i32 = 7;
    pub const REJECTED: i32 = 8;
    pub const ESTABLISHED: i32 = 9;
    pub const DISCONNECTED: i32 = 10;
    pub const DEVICE_REMOVAL: i32 = 11;
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_testing::skip;
    use std::fmt::Write as _;
    use std::mem::offset_of;
    use std::path::Path;
    use std::process::Command;

    /// Claims about the headers for the C compiler to check: a C expression, and our value.
    fn claims() -> Vec<(&'static str, i64)> {
        macro_rules! offsets {
            ($($c:literal, $type:ident: $($member:literal = $field:ident $(. $inner:ident)*),+;)+) => {
                vec![$($((concat!("offsetof(struct ", $c, ", ", $member, ")"),
                          offset_of!($type, $field $(. $inner)*) as i64),)+)+]
            };
        }
        let mut all = offsets! {
            "ibv_context", Context: "ops.poll_cq" = operations.poll, "ops.req_notify_cq" = operations.notify,
                "ops.post_send" = operations.send, "ops.post_recv" = operations.receive;
            "ibv_comp_channel", CompletionChannel: "fd" = descriptor;
            "ibv_cq", CompletionQueue: "context" = context;
            "ibv_qp", QueuePair: "context" = context;
            "ibv_mr", MemoryRegion: "lkey" = local_key, "rkey" = remote_key;
            "ibv_sge", Piece: "addr" = address, "length" = length, "lkey" = key;
            "ibv_send_wr", SendRequest: "wr_id" = id, "next" = next, "sg_list" = pieces, "num_sge" = count,
                "opcode" = opcode, "send_flags" = flags, "wr.rdma.remote_addr" = remote_address,
                "wr.rdma.rkey" = remote_key;
            "ibv_recv_wr", ReceiveRequest: "wr_id" = id, "next" = next, "sg_list" = pieces, "num_sge" = count;
            "ibv_wc", WorkCompletion: "wr_id" = id, "status" = status, "byte_len" = length;
            "ibv_qp_cap", Capacity: "max_send_wr" = sends, "max_recv_wr" = receives, "max_send_sge" = send_pieces,
                "max_recv_sge" = receive_pieces, "max_inline_data" = inline_bytes;
            "ibv_qp_init_attr", NewQueuePair: "qp_context" = context, "send_cq" = send_queue,
                "recv_cq" = receive_queue, "srq" = shared_receives, "cap" = capacity, "qp_type" = kind,
                "sq_sig_all" = signals_all;
            "ibv_qp_attr", QueuePairAttributes: "min_rnr_timer" = not_ready_timer;
            "ibv_device_attr", DeviceAttributes: "max_qp_wr" = requests, "max_cqe" = completions,
                "max_qp_rd_atom" = reads_answered, "max_qp_init_rd_atom" = reads_begun;
            "rdma_event_channel", EventChannel: "fd" = descriptor;
            "rdma_cm_id", End: "verbs" = device, "qp" = pair, "route.addr.dst_storage" = destination;
            "rdma_conn_param", Parameters: "private_data" = data, "private_data_len" = data_length,
                "responder_resources" = reads_answered, "initiator_depth" = reads_begun,
                "flow_control" = flow_control, "retry_count" = retries, "rnr_retry_count" = not_ready_retries,
                "srq" = shared_receives, "qp_num" = pair_number;
            "rdma_cm_event", Event: "id" = end, "event" = kind, "status" = status, "param.conn" = parameters;
        };
        all.extend([
            ("sizeof(struct ibv_sge)", size_of::<Piece>() as i64),
            ("sizeof(struct ibv_send_wr)", size_of::<SendRequest>() as i64),
            ("sizeof(struct ibv_recv_wr)", size_of::<ReceiveRequest>() as i64),
            ("sizeof(struct ibv_wc)", size_of::<WorkCompletion>() as i64),
            ("sizeof(struct ibv_qp_init_attr)", size_of::<NewQueuePair>() as i64),
            ("sizeof(struct ibv_qp_attr)", size_of::<QueuePairAttributes>() as i64),
            ("sizeof(struct rdma_conn_param)", size_of::<Parameters>() as i64),
            ("IBV_ACCESS_LOCAL_WRITE", i64::from(access::LOCAL_WRITE)),
            ("IBV_ACCESS_REMOTE_WRITE", i64::from(access::REMOTE_WRITE)),
            ("IBV_ACCESS_REMOTE_READ", i64::from(access::REMOTE_READ)),
            ("IBV_WR_RDMA_WRITE", i64::from(opcode::WRITE)),
            ("IBV_WR_SEND", i64::from(opcode::SEND)),
            ("IBV_WR_RDMA_READ", i64::from(opcode::READ)),
            ("IBV_SEND_SIGNALED", i64::from(SIGNALED)),
            ("IBV_WC_SUCCESS", i64::from(status::SUCCESS)),
            ("IBV_WC_LOC_LEN_ERR", i64::from(status::TOO_LONG)),
            ("IBV_WC_WR_FLUSH_ERR", i64::from(status::FLUSHED)),
            ("IBV_WC_REM_INV_REQ_ERR", i64::from(status::REMOTE_INVALID)),
            ("IBV_WC_REM_ACCESS_ERR", i64::from(status::REMOTE_ACCESS)),
            ("IBV_WC_RETRY_EXC_ERR", i64::from(status::NO_ANSWER)),
            ("IBV_WC_RNR_RETRY_EXC_ERR", i64::from(status::NOT_READY)),
            ("IBV_QPT_RC", i64::from(RELIABLE)),
            ("IBV_QP_MIN_RNR_TIMER", i64::from(NOT_READY_TIMER)),
            ("RDMA_PS_TCP", i64::from(RELIABLE_PORTS)),
            ("RDMA_CM_EVENT_ADDR_RESOLVED", i64::from(event::ADDRESS_RESOLVED)),
            ("RDMA_CM_EVENT_ADDR_ERROR", i64::from(event::ADDRESS_ERROR)),
            ("RDMA_CM_EVENT_ROUTE_RESOLVED", i64::from(event::ROUTE_RESOLVED)),
            ("RDMA_CM_EVENT_ROUTE_ERROR", i64::from(event::ROUTE_ERROR)),
            ("RDMA_CM_EVENT_CONNECT_REQUEST", i64::from(event::CONNECT_REQUEST)),
            ("RDMA_CM_EVENT_CONNECT_ERROR", i64::from(event::CONNECT_ERROR)),
            ("RDMA_CM_EVENT_UNREACHABLE", i64::from(event::UNREACHABLE)),
            ("RDMA_CM_EVENT_REJECTED", i64::from(event::REJECTED)),
            ("RDMA_CM_EVENT_ESTABLISHED", i64::from(event::ESTABLISHED)),
            ("RDMA_CM_EVENT_DISCONNECTED", i64::from(event::DISCONNECTED)),
            ("RDMA_CM_EVENT_DEVICE_REMOVAL", i64::from(event::DEVICE_REMOVAL)),
        ]);
        all
    }

    #[test]
    fn structures_are_those_of_the_headers() {
        let directory = tempfile::tempdir().unwrap();
        let mut source =
            "#include <stdio.h>\n#include <stddef.h>\n#include <rdma/rdma_cma.h>\nint main(void) {\n"
                .to_owned();
        let claims = claims();
        for (expression, _) in &claims {
            writeln!(source, "printf(\"%lld\\n\", (long long)({expression}));").unwrap();
        }
        // There must be room for the structure of any version.
        source += "return sizeof(struct ibv_device_attr) > 512;\n}\n";
        let (file, program) = (directory.path().join("sizes.c"), directory.path().join("sizes"));
        std::fs::write(&file, source).unwrap();
        let compiles = |arguments: &[&Path]| Command::new("cc").args(arguments).output();
        let lone = directory.path().join("lone.c");
        std::fs::write(&lone, "#include <rdma/rdma_cma.h>\n").unwrap();
        match compiles(&[Path::new("-fsyntax-only"), &lone]) {
            Ok(output) if output.status.success() => {}
            Ok(_) => skip!("the headers are not installed (librdmacm-dev)"),
            Err(error) => skip!("cc: {error}"),
        }
        let output = compiles(&[&file, Path::new("-o"), &program]).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let output = Command::new(program).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let found: Vec<(&str, i64)> = claims
            .iter()
            .map(|&(expression, _)| expression)
            .zip(text.lines().map(|n| n.parse().unwrap()))
            .collect();
        assert_eq!(found, claims);
    }

    #[test]
    fn there_is_room_for_the_attributes_of_a_device() {
        assert!(size_of::<DeviceAttributes>() >= 512);
    }
}
