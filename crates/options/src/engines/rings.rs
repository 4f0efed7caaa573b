//! Options of the engines that queue in the kernel: io_uring, libaio, and sg beside them.

use super::local::{HIPRI, NOWAIT, UNCACHED};
use crate::JobOptions;
use crate::definition::{Definition, Kind};
use crate::values::{Given, per_direction, priority_shares};

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

/// An option of commands that are passed through to a device. io_uring proper has them in its table as well, and no use
/// for them: they are read, and a warning says so.
fn passed_through(_: &mut JobOptions, given: &mut Given<'_>) -> Result<(), String> {
    match given.definition.kind {
        _ if !given.definition.keywords.is_empty() => drop(given.keyword()?),
        Kind::Int => drop(given.integer()?),
        Kind::Bool => drop(given.boolean()?),
        _ => drop(given.required()?),
    }
    if given.text != given.definition.default {
        let message = "has no effect: it is about commands passed through to a device (io_uring_cmd, sg)";
        given.notes.push(message.to_owned());
    }
    Ok(())
}

static READFUA: Definition = option("readfua", Kind::Bool, "Set the force-unit-access bit of reads")
    .default("0")
    .lands(passed_through);
static WRITEFUA: Definition = option("writefua", Kind::Bool, "Set the force-unit-access bit of writes")
    .default("0")
    .lands(passed_through);
static SG_WRITE_MODE: Definition =
    option("sg_write_mode", Kind::Str, "SCSI command for writes").default("write").keywords(&[
        ("write", "WRITE"),
        ("write_and_verify", "WRITE AND VERIFY"),
        ("verify", "Same as write_and_verify"),
        ("write_same", "WRITE SAME"),
        ("same", "Same as write_same"),
        ("write_same_ndob", "WRITE SAME without a data buffer"),
        ("verify_bytchk_00", "VERIFY of the medium alone"),
        ("verify_bytchk_01", "VERIFY against the data"),
        ("verify_bytchk_11", "VERIFY of every block against one"),
        ("write_stream", "WRITE STREAM"),
    ]);
static STREAM_ID: Definition =
    option("stream_id", Kind::Int, "Stream of WRITE STREAM; 0 opens one").default("0");

/// `sg`
pub static SG: &[&Definition] = &[&HIPRI, &READFUA, &WRITEFUA, &SG_WRITE_MODE, &STREAM_ID];

static WRITE_MODE: Definition =
    option("write_mode", Kind::Str, "Device command for writes").default("write").lands(passed_through);
static VERIFY_MODE: Definition = option("verify_mode", Kind::Str, "Device command when checking data")
    .default("read")
    .keywords(&[("read", "Read"), ("compare", "Compare")])
    .lands(passed_through);
static FIXEDBUFS: Definition = option("fixedbufs", Kind::Flag, "Register the I/O buffers with the kernel")
    .lands(|job, given| {
        job.engine.fixedbufs = given.boolean()?;
        Ok(())
    });
static REGISTERFILES: Definition = option("registerfiles", Kind::Flag, "Register the files with the kernel")
    .lands(|job, given| {
        job.engine.registerfiles = given.boolean()?;
        Ok(())
    });
static SQTHREAD_POLL: Definition =
    option("sqthread_poll", Kind::Flag, "Let a kernel thread pick up submissions").lands(|job, given| {
        job.engine.sqthread_poll = given.boolean()?;
        Ok(())
    });
static SQTHREAD_POLL_CPU: Definition = option("sqthread_poll_cpu", Kind::Int, "CPU of that kernel thread")
    .lands(|job, given| {
        job.engine.sqthread_poll_cpu = Some(given.number()?);
        Ok(())
    });
static NONVECTORED: Definition =
    option("nonvectored", Kind::Int, "Submit plain reads and writes, not vectors; -1 decides itself")
        .default("-1")
        .lands(|job, given| {
            job.engine.nonvectored = match given.integer()? {
                -1 => None,
                value => Some(value != 0),
            };
            Ok(())
        });
static FORCE_ASYNC: Definition =
    option("force_async", Kind::Int, "Hand one request in this many to a kernel worker at once").lands(
        |job, given| {
            job.engine.force_async = given.number()?;
            Ok(())
        },
    );
static CMD_TYPE: Definition = option("cmd_type", Kind::Str, "Kind of passed-through command")
    .default("nvme")
    .keywords(&[("nvme", "NVMe"), ("bsg", "SCSI by the block layer's generic driver")])
    .lands(passed_through);
static CDB_LEN: Definition = option("cdb_len", Kind::Str, "Length of SCSI command blocks")
    .default("0")
    .keywords(&[("0", "As needed"), ("10", "10 bytes"), ("16", "16 bytes"), ("32", "32 bytes")])
    .lands(passed_through);
static VERIFY_BYTCHK: Definition = option("verify_bytchk", Kind::Str, "What a SCSI VERIFY compares")
    .default("0")
    .keywords(&[("0", "The medium alone"), ("1", "Each block with its data"), ("3", "Every block with one")])
    .lands(passed_through);
static READ_MODE: Definition = option("read_mode", Kind::Str, "Device command for reads")
    .default("read")
    .keywords(&[("read", "Read"), ("prefetch", "Prefetch into the device's cache")])
    .lands(passed_through);
static MD_PER_IO_SIZE: Definition = option("md_per_io_size", Kind::Int, "Bytes of separate metadata per I/O")
    .default("0")
    .lands(passed_through);
static PI_ACT: Definition =
    option("pi_act", Kind::Bool, "Let the device make and check protection information")
        .default("1")
        .lands(passed_through);
static PI_CHK: Definition =
    option("pi_chk", Kind::Str, "Which protection fields are checked: GUARD, REFTAG, APPTAG with commas")
        .lands(passed_through);
static APPTAG: Definition = option("apptag", Kind::Int, "Application tag of the protection information")
    .default("0x1234")
    .lands(passed_through);
static APPTAG_MASK: Definition =
    option("apptag_mask", Kind::Int, "Bits of that tag that count").default("0xffff").lands(passed_through);
static DEAC: Definition =
    option("deac", Kind::Bool, "Deallocate with write-zeroes commands").default("0").lands(passed_through);

/// Which share of the I/Os has a priority of its own, and which.
static CMDPRIO_PERCENTAGE: Definition =
    option("cmdprio_percentage", Kind::Int, "Percent of I/Os with an I/O priority of their own")
        .range(0, 100)
        .lands(|job, given| given.numbers_into(&mut job.engine.cmdprio_percentage));
static CMDPRIO_CLASS: Definition = option("cmdprio_class", Kind::Int, "Class of that priority")
    .range(1, 3)
    .lands(|job, given| given.numbers_into(&mut job.engine.cmdprio_class));
static CMDPRIO_HINT: Definition = option("cmdprio_hint", Kind::Int, "Hint of that priority")
    .range(0, 1023)
    .lands(|job, given| given.numbers_into(&mut job.engine.cmdprio_hint));
static CMDPRIO: Definition = option("cmdprio", Kind::Int, "Level of that priority, 0 (highest) to 7")
    .range(0, 7)
    .lands(|job, given| given.numbers_into(&mut job.engine.cmdprio));
static CMDPRIO_BSSPLIT: Definition =
    option("cmdprio_bssplit", Kind::Str, "Percent of I/Os with their own priority, per block size").lands(
        |job, given| {
            let parts = per_direction(given.required()?, &[','], &mut given.notes)?;
            for (shares, part) in job.engine.cmdprio_bssplit.values.iter_mut().zip(parts) {
                if let Some(part) = part {
                    *shares = priority_shares(part, given.kb_base, &mut given.notes)?;
                }
            }
            given.notes.dedup();
            Ok(())
        },
    );

/// `io_uring` and `io_uring_cmd`
pub static IO_URING: &[&Definition] = &[
    &HIPRI,
    &READFUA,
    &WRITEFUA,
    &WRITE_MODE,
    &VERIFY_MODE,
    &FIXEDBUFS,
    &REGISTERFILES,
    &SQTHREAD_POLL,
    &SQTHREAD_POLL_CPU,
    &NONVECTORED,
    &UNCACHED,
    &NOWAIT,
    &FORCE_ASYNC,
    &CMD_TYPE,
    &CDB_LEN,
    &VERIFY_BYTCHK,
    &READ_MODE,
    &CMDPRIO_PERCENTAGE,
    &CMDPRIO_CLASS,
    &CMDPRIO_HINT,
    &CMDPRIO,
    &CMDPRIO_BSSPLIT,
    &MD_PER_IO_SIZE,
    &PI_ACT,
    &PI_CHK,
    &APPTAG,
    &APPTAG_MASK,
    &DEAC,
];

static USERSPACE_REAP: Definition =
    option("userspace_reap", Kind::Flag, "Fetch completions from the ring without a system call").lands(
        |job, given| {
            job.engine.userspace_reap = given.boolean()?;
            Ok(())
        },
    );
static LIBAIO_VECTORED: Definition =
    option("libaio_vectored", Kind::Bool, "Submit vectors, not plain reads and writes").lands(
        |job, given| {
            job.engine.libaio_vectored = given.boolean()?;
            Ok(())
        },
    );

/// `libaio`
pub static LIBAIO: &[&Definition] = &[
    &USERSPACE_REAP,
    &NOWAIT,
    &LIBAIO_VECTORED,
    &CMDPRIO_PERCENTAGE,
    &CMDPRIO_CLASS,
    &CMDPRIO_HINT,
    &CMDPRIO,
    &CMDPRIO_BSSPLIT,
];
