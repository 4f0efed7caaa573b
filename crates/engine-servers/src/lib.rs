//! The engines whose I/O a server or a library completes later: objects, exports, images, volumes, connections, and
//! engines in shared objects.
//!
//! What they share (units in flight at a library, its threads, silent servers, connections that the worker drives) is in
//! `completed_later`.

mod by_index;
mod ceph;
mod completed_later;
mod external;
mod gfapi;
mod http;
mod libblkio;
mod libcufile;
#[cfg(feature = "hdfs")]
mod libhdfs;
mod libiscsi;
mod nbd;
mod net;
mod nfs;
mod rados;
mod rbd;
mod rdma;

pub use self::completed_later::has_lent_memory;
pub use self::external::{OpenedExternal, describe_external, open_external};
pub use self::gfapi::{GfapiAsyncEngine, GfapiEngine};
pub use self::http::HttpEngine;
pub use self::libblkio::LibblkioEngine;
pub use self::libcufile::LibcufileEngine;
#[cfg(feature = "hdfs")]
pub use self::libhdfs::LibhdfsEngine;
pub use self::libiscsi::LibiscsiEngine;
pub use self::nbd::NbdEngine;
pub use self::net::{NetEngine, NetspliceEngine};
pub use self::nfs::NfsEngine;
pub use self::rados::RadosEngine;
pub use self::rbd::RbdEngine;
pub use self::rdma::RdmaEngine;
