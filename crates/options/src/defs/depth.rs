//! The engine and how many I/Os are in flight.

use crate::definition::{Category, Definition, Kind};
use crate::engines::{self, ExternalOptions};

const fn depth(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Depth, kind, help)
}

/// The engine of a job that does not choose one.
pub(crate) const DEFAULT_ENGINE: &str = "psync";

/// The engine and its queue.
pub static ENGINE: &[Definition] = &[
    depth("ioengine", Kind::Str, "How I/O is issued; --enghelp lists the engines and their options")
        .default(DEFAULT_ENGINE)
        .keywords(&engines::KEYWORDS)
        .names_files(|job| {
            let own = job.engine.of::<ExternalOptions>();
            own.map(|own| own.library.to_string_lossy().into_owned()).into_iter().collect()
        })
        .lands(|job, given| {
            match engines::choose(given.required()?, &mut given.notes)? {
                (engine, None) => job.choose_engine(engine),
                (engine, Some(library)) => job.choose_library(engine, library),
            }
            Ok(())
        }),
    depth("iodepth", Kind::Int, "I/Os that each worker keeps in flight")
        .default("1")
        .min(1)
        .lands(put!(depth.iodepth, number())),
    depth("iodepth_batch", Kind::Int, "Number of I/Os to submit at once")
        .under("iodepth")
        .aliases(&["iodepth_batch_submit"])
        .default("1")
        .min(0)
        .lands(put!(depth.iodepth_batch, number())),
    depth("iodepth_batch_complete_min", Kind::Int, "Minimum of completions to wait for; 0 does not wait")
        .under("iodepth")
        .aliases(&["iodepth_batch_complete"])
        .default("1")
        .min(0)
        .lands(put!(depth.iodepth_batch_complete_min, number())),
    depth(
        "iodepth_batch_complete_max",
        Kind::Int,
        "Maximum of completions to fetch at once; 0 is the minimum",
    )
    .under("iodepth")
    .min(0)
    .lands(put!(depth.iodepth_batch_complete_max, number())),
    depth("iodepth_low", Kind::Int, "Once the queue was full, let it drain to this before filling it again")
        .under("iodepth")
        .min(0)
        .lands(put!(depth.iodepth_low, number())),
    depth("serialize_overlap", Kind::Bool, "Let an I/O wait for those in flight that touch the same bytes")
        .under("iodepth")
        .default("0")
        .lands(put!(depth.serialize_overlap, boolean())),
    depth("io_submit_mode", Kind::Str, "The thread that submits I/O")
        .default(crate::SubmitMode::DEFAULT)
        .keywords(&[("inline", "The worker itself"), ("offload", "A separate pool of threads")])
        .lands(put_keyword!(depth.io_submit_mode, SubmitMode)),
];
