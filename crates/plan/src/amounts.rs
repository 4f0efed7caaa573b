//! Checks that a job has something to do, and that it ends.

use iolite_options::{JobOptions, SizeValue};

/// The obstacles: each with the option to blame and the reason.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if options.schedule.numjobs == 0 {
        found.push(("numjobs", "numjobs=0: a job needs at least one worker".into()));
    }
    if options.depth.iodepth == 0 {
        found.push(("iodepth", "iodepth=0: the depth is at least 1".into()));
    }
    let block = options.smallest_block();
    if let (Some(SizeValue::Bytes(size)), None) = (options.extent.size, options.extent.filesize)
        && size < block
        && !options.is_replay()
    {
        found.push(("size", format!("size={size} is smaller than the smallest block size, {block}")));
    }
    found
}
