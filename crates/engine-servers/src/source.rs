//! Where the connections of a worker come from (`bind`).

use iolite_options::engines::of_worker;
use iolite_os::local_end::LocalEnd;

/// The address or the interface of this worker in the list of `bind`; `None` = the system chooses.
///
/// # Errors
/// The machine does not have it, or the user may not choose it. The error names the option.
pub(crate) fn source_of(bind: &str, worker: u32) -> Result<Option<LocalEnd>, String> {
    let source = of_worker(bind, worker)?.map(|name| LocalEnd::of_machine(&name)).transpose();
    source.map_err(|why| format!("bind={why}"))
}
