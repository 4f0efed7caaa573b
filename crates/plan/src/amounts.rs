//! Checks that a job has something to do, and that it ends.

use iolite_options::{JobOptions, SizeValue};

/// The obstacles: each with the option to blame and the reason.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let block = options.smallest_block();
    if let (Some(SizeValue::Bytes(size)), None) = (options.extent.size, options.extent.filesize)
        && size < block
        && !options.is_replay()
    {
        found.push(("size", format!("size={size} is smaller than the smallest block size, {block}")));
    }
    found
}
