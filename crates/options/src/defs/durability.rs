//! How data gets to the storage: caches, synchronous I/O, flushes.

use crate::definition::{Category, Definition, Kind};
use crate::values::sync_file_range;
use crate::{SyncMode, WriteHint};

const fn durability(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Durability, kind, help)
}

/// Flushes between writes, and I/O past the page cache.
pub static FLUSHES: &[Definition] = &[
    durability("fsync", Kind::Int, "Flush data and metadata (fsync) after this many writes; 0 never")
        .default("0")
        .min(0)
        .lands(put!(durability.fsync, number())),
    durability("fdatasync", Kind::Int, "Flush data (fdatasync) after this many writes; 0 never")
        .default("0")
        .min(0)
        .lands(put!(durability.fdatasync, number())),
    durability("write_barrier", Kind::Int, "Make one write in this many a barrier; 0 none")
        .default("0")
        .min(0)
        .lands(put!(durability.write_barrier, number())),
    durability(
        "sync_file_range",
        Kind::StrNumber,
        "Call sync_file_range(2) with these flags after every N writes: write:N",
    )
    .keywords(&[
        ("wait_before", "SYNC_FILE_RANGE_WAIT_BEFORE"),
        ("write", "SYNC_FILE_RANGE_WRITE"),
        ("wait_after", "SYNC_FILE_RANGE_WAIT_AFTER"),
    ])
    .lands(|job, given| {
        let keywords = given.definition.keywords;
        job.durability.sync_file_range =
            sync_file_range(given.required()?, keywords, given.kb_base, &mut given.notes)?;
        Ok(())
    }),
    durability("direct", Kind::Bool, "Bypass the page cache (O_DIRECT); the opposite of buffered")
        .default("0")
        .lands(put!(durability.direct, boolean())),
    durability("atomic", Kind::Bool, "Write atomically (RWF_ATOMIC); implies direct")
        .default("0")
        .lands(put!(durability.atomic, boolean())),
    durability("buffered", Kind::Bool, "Use the page cache; the opposite of direct").default("1").lands(
        |job, given| {
            job.durability.direct = !given.boolean()?;
            Ok(())
        },
    ),
];

/// The page cache, and write barriers.
pub static CACHE: &[Definition] = &[
    durability("invalidate", Kind::Bool, "Drop the cached pages of each file before the job starts")
        .default("1")
        .lands(put!(files.invalidate, boolean())),
    durability("sync", Kind::Str, "Open files so that each write waits for the storage")
        .default("none")
        .keywords(&[
            ("none", "Writes do not wait"),
            ("0", "Same as none"),
            ("sync", "Data and metadata (O_SYNC)"),
            ("1", "Same as sync"),
            ("dsync", "Data (O_DSYNC)"),
        ])
        .lands(|job, given| {
            job.durability.sync = match given.keyword()? {
                "sync" | "1" => SyncMode::Sync,
                "dsync" => SyncMode::DSync,
                _ => SyncMode::None,
            };
            Ok(())
        }),
    durability("write_hint", Kind::Str, "How long written data is expected to live")
        .keywords(&[
            ("none", "Unknown"),
            ("short", "Short"),
            ("medium", "Longer than short"),
            ("long", "Longer than medium"),
            ("extreme", "Longer than long"),
        ])
        .lands(|job, given| {
            job.durability.write_hint = WriteHint::from_keyword(given.keyword()?);
            Ok(())
        }),
];

/// Flushes at the end.
pub static CLOSING: &[Definition] = &[
    durability("end_fsync", Kind::Bool, "Flush each file when all of its I/O is done")
        .default("0")
        .lands(put!(durability.end_fsync, boolean())),
    durability("fsync_on_close", Kind::Bool, "Flush each file whenever it is closed")
        .default("0")
        .lands(put!(durability.fsync_on_close, boolean())),
    durability(
        "end_syncfs",
        Kind::Bool,
        "Flush the whole file system of each file when all of its I/O is done",
    )
    .default("0")
    .lands(put!(durability.end_syncfs, boolean())),
];
