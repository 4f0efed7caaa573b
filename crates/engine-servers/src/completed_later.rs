//! What engines share whose units a server or a library completes later.
//!
//! | an engine whose … | uses |
//! |---|---|
//! | library completes units on its own threads | `tickets`, over `completions` |
//! | library starts threads | `library_threads`: their CPU time is the job's |
//! | connections make progress only while the worker drives them | `driven_by_worker` |
//! | server may fall silent | `server_timeout` |

pub(crate) mod completions;
pub(crate) mod driven_by_worker;
pub(crate) mod library_threads;
pub(crate) mod server_timeout;
pub(crate) mod tickets;

pub(crate) use self::completions::{Completer, Completions};
pub(crate) use self::library_threads::threads_started_by;
pub use self::tickets::has_lent_memory;
