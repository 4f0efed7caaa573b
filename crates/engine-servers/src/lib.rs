//! The engines whose I/O a server or a library completes later: objects, exports, images, volumes, connections, and
//! engines in shared objects.
//!
//! What they share is in [`iolite_engine::completed_later`] (units in flight at a library, its threads), `driven_by_worker`
//! (connections that make progress only while the worker drives them), `server_timeout`, and `source` (`bind`).

mod ceph;
mod driven_by_worker;
mod external;
mod gfapi;
mod http;
mod libblkio;
mod libcufile;
mod libiscsi;
mod nbd;
mod net;
mod nfs;
mod rados;
mod rbd;
mod rdma;
mod server_timeout;
mod source;

pub use self::external::{OpenedExternal, describe_external, open_external};
pub use self::gfapi::{GfapiAsyncEngine, GfapiEngine};
pub use self::http::HttpEngine;
pub use self::libblkio::LibblkioEngine;
pub use self::libcufile::LibcufileEngine;
pub use self::libiscsi::LibiscsiEngine;
pub use self::nbd::NbdEngine;
pub use self::net::{NetEngine, NetspliceEngine};
pub use self::nfs::NfsEngine;
pub use self::rados::RadosEngine;
pub use self::rbd::RbdEngine;
pub use self::rdma::RdmaEngine;
