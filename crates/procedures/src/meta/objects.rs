//! The job files of phases on the objects of a bucket (S3): PUT, HEAD, GET, LIST and DELETE.
//!
//! The objects of a worker are the blocks of one name, so that no list of names is needed.

use super::{Course, Phase, Setup};
use std::ops::Range;

/// The names that a request lists, the most that servers give.
pub(super) const PAGE: u64 = 1000;
/// A request for names counts as a block of this size.
const BLOCK: u64 = 4096;

/// The options that all workers share.
pub(super) fn global(setup: &Setup, bucket: &[(String, String)], phase: Phase) -> String {
    let (rw, more) = match phase {
        Phase::Create => ("write", ""),
        Phase::Stat => ("read", "http_read=head\n"),
        Phase::Readdir => ("read", "http_s3_list=1000\n"),
        Phase::Unlink => ("trim", ""),
        _ => ("read", ""),
    };
    let bs = if phase == Phase::Readdir { BLOCK } else { setup.size };
    let options: String = bucket.iter().map(|(option, value)| format!("{option}={value}\n")).collect();
    format!("{options}rw={rw}\nbs={bs}\n{more}")
}

/// The options of a worker, `own`, with the objects of `of`.
pub(super) fn lines(course: &Course, phase: Phase, [own, of]: [&str; 2], range: Range<u64>) -> String {
    let Setup { directory, is_shared, size, .. } = &course.setup;
    let name = |worker: &str| {
        if *is_shared { format!("{directory}/all/{worker}.f") } else { format!("{directory}/w{worker}/f") }
    };
    if phase == Phase::Readdir {
        let listed = if *is_shared { format!("{directory}/all") } else { name(own) };
        return format!("filename={listed}\nsize={}\n", pages(course) * BLOCK);
    }
    let (offset, length) = (range.start * size, range.end.saturating_sub(range.start) * size);
    format!("filename={}\noffset={offset}\nsize={length}\n", name(of))
}

/// The requests that list the names of a worker, or of all if they are together.
pub(super) fn pages(course: &Course) -> u64 {
    let workers = if course.setup.is_shared { u64::from(course.setup.workers()) } else { 1 };
    (course.made.files * workers).div_ceil(PAGE).max(1)
}
