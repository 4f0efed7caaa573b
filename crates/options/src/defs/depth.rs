//! The engine and how many I/Os are in flight.

use crate::definition::{Category, Definition, Kind};
use crate::engines;
use crate::values::not_one_of;

const fn depth(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Depth, kind, help)
}

/// The engine and its queue.
pub static ENGINE: &[Definition] = &[
    depth("ioengine", Kind::Str, "How I/O is issued; --enghelp lists the engines and their options")
        .default("psync")
        .keywords(&[
            ("sync", "lseek(2), read(2) and write(2)"),
            ("psync", "pread(2) and pwrite(2)"),
            ("vsync", "readv(2) and writev(2), neighbouring I/Os in one call"),
            ("pvsync", "preadv(2) and pwritev(2)"),
            ("pvsync2", "preadv2(2) and pwritev2(2)"),
            ("libaio", "The kernel's asynchronous I/O, io_submit(2)"),
            ("io_uring", "The kernel's submission and completion rings"),
            ("posixaio", "POSIX asynchronous I/O, aio_read(3) and aio_write(3)"),
            ("rbd", "Ceph block devices by librbd"),
            ("mmap", "Files mapped into memory"),
            ("splice", "splice(2) and vmsplice(2)"),
            ("netsplice", "splice(2) over the network"),
            ("sg", "SCSI commands by the generic driver"),
            ("null", "No I/O at all: what the tester itself costs"),
            ("net", "Network sockets"),
            ("cpuio", "Processor cycles in place of I/O"),
            ("rdma", "Remote memory access over InfiniBand or RoCE"),
            ("e4defrag", "Defragmentation of ext4 files"),
            ("falloc", "Space reserved and released by fallocate(2)"),
            ("gfapi", "GlusterFS by its library"),
            ("gfapi_async", "GlusterFS by its library, asynchronously"),
            ("dev-dax", "Persistent memory by a DAX device"),
            ("filecreate", "Files created, without data"),
            ("external", "An engine in a file of its own (external:FILE)"),
            ("libpmem", "Persistent memory by libpmem"),
            ("http", "Objects over HTTP: WebDAV, S3, Swift"),
            ("nbd", "Network block devices"),
            ("nfs", "NFS servers by libnfs"),
        ])
        .lands(|job, given| {
            let name = given.required()?;
            let word = name.split_once(':').map_or(name, |(word, _)| word);
            let listed = given.definition.keywords.iter().map(|(keyword, _)| *keyword);
            let supported =
                engines::engines().iter().filter(|engine| engine.supported).map(|engine| engine.name);
            match engines::engine(word) {
                Some(engine) if engine.supported && word == name => {
                    job.ioengine = engine.name.to_owned();
                    Ok(())
                }
                Some(engine) if engine.supported => Err(format!("{word} takes nothing behind a colon")),
                None if !listed.clone().any(|keyword| keyword == word) => Err(not_one_of(supported, word)),
                _ => Err(format!("the engine {word} is not supported yet")),
            }
        }),
    depth("iodepth", Kind::Int, "I/Os that each worker keeps in flight")
        .default("1")
        .min(1)
        .lands(put!(iodepth, number())),
    depth("iodepth_batch", Kind::Int, "I/Os that are submitted at once")
        .under("iodepth")
        .aliases(&["iodepth_batch_submit"])
        .default("1")
        .min(0)
        .lands(put!(iodepth_batch, number())),
    depth(
        "iodepth_batch_complete_min",
        Kind::Int,
        "Fewest completions to wait for at once; 0 waits for none",
    )
    .under("iodepth")
    .aliases(&["iodepth_batch_complete"])
    .default("1")
    .min(0)
    .lands(put!(iodepth_batch_complete_min, number())),
    depth(
        "iodepth_batch_complete_max",
        Kind::Int,
        "Most completions to fetch at once; 0 is as many as the fewest",
    )
    .under("iodepth")
    .min(0)
    .lands(put!(iodepth_batch_complete_max, number())),
    depth("iodepth_low", Kind::Int, "Once the queue was full, let it drain to this before filling it again")
        .under("iodepth")
        .min(0)
        .lands(put!(iodepth_low, number())),
    depth("serialize_overlap", Kind::Bool, "Let an I/O wait for those in flight that touch the same bytes")
        .under("iodepth")
        .default("0")
        .lands(put!(serialize_overlap, boolean())),
    depth("io_submit_mode", Kind::Str, "Who submits I/O")
        .default("inline")
        .keywords(&[("inline", "The worker itself"), ("offload", "A pool of threads beside it")])
        .lands(put_keyword!(io_submit_mode, SubmitMode)),
];
