//! The options of `io_uring`. `io_uring_cmd` has the same list, and stores more of them in its struct
//! ([`IoUringCmdOptions`]).

mod obstacles;

use super::facets::{Capabilities, Capability, Facets, Target};
use super::io_uring_cmd::{ByteCheck, CdbLength, Checks, CommandType, NvmeWriteMode, WriteModes};
use super::own::{Idle, Obstacle, OwnOptions, own_options};
use super::priorities::{
    CMDPRIO, CMDPRIO_BSSPLIT, CMDPRIO_CLASS, CMDPRIO_HINT, CMDPRIO_PERCENTAGE, CommandPriorities,
};
use super::shared::{HIPRI, NOWAIT, READFUA, UNCACHED, WRITEFUA, option, passed_through};
use crate::definition::{Definition, Given, Kind, Places, found};
use crate::{DataPlacementOptions, JobOptions};
use std::any::Any;

own_options! {
    /// The options of `io_uring`.
    pub struct IoUringOptions declared by OPTIONS with places {
        /// Poll the device for completions.
        pub hipri: bool,
        /// Register the I/O buffers with the kernel.
        pub fixedbufs: bool,
        /// Register the files with the kernel.
        pub registerfiles: bool,
        /// Let a kernel thread pick up submissions.
        pub sqthread_poll: bool,
        /// The CPU of that kernel thread; `None` = any.
        pub sqthread_poll_cpu: Option<u32>,
        /// Submit plain reads and writes, not vectors; `None` = the engine decides (the default, -1).
        pub nonvectored: Option<bool>,
        /// Drop pages from the cache after use (RWF_DONTCACHE).
        pub uncached: bool,
        /// Fail rather than wait (RWF_NOWAIT).
        pub nowait: bool,
        /// 0: never; N: every Nth request is handed to a kernel worker at once.
        pub force_async: u32,
        /// The priorities of single I/Os.
        pub priorities: CommandPriorities,
        /// Bytes of the metadata buffer of each I/O.
        pub md_per_io_size: u32,
        /// The kernel creates and checks protection information; otherwise it is created and checked here, and
        /// transferred.
        pub pi_act: bool,
        /// The checks of protection information.
        pub pi_chk: Checks,
        /// Its application tag.
        pub apptag: u16,
        /// Bits of the application tag that count.
        pub apptag_mask: u16,
        /// Where the device should put written data, according to the job's own options.
        pub placement: DataPlacementOptions,
    }
}

impl IoUringOptions {
    /// Whether reads and writes carry metadata.
    pub fn has_metadata(&self) -> bool {
        !self.pi_act && self.md_per_io_size > 0
    }
}

impl Places for IoUringOptions {
    fn hipri(&mut self) -> Option<&mut bool> {
        Some(&mut self.hipri)
    }

    fn uncached(&mut self) -> Option<&mut bool> {
        Some(&mut self.uncached)
    }

    fn nowait(&mut self) -> Option<&mut bool> {
        Some(&mut self.nowait)
    }

    fn part(&mut self) -> Option<&mut dyn Any> {
        Some(&mut self.priorities)
    }
}

impl OwnOptions for IoUringOptions {
    fn priorities(&self) -> Option<&CommandPriorities> {
        Some(&self.priorities)
    }

    fn registers_files(&self) -> bool {
        self.registerfiles
    }

    fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        if !self.has_metadata() || job.durability.direct {
            return Vec::new();
        }
        let why = "md_per_io_size: the page cache takes no metadata; add direct=1, or leave pi_act=0 out";
        vec![("md_per_io_size", why.to_owned())]
    }

    fn without_effect(&self) -> Vec<Idle> {
        if self.has_metadata() {
            return Vec::new();
        }
        let why = "io_uring transfers metadata with pi_act=0 and md_per_io_size only; otherwise the kernel makes and checks it";
        ["md_per_io_size", "pi_act", "pi_chk", "apptag", "apptag_mask"].map(|name| (name, why)).to_vec()
    }
}

own_options! {
    /// The options of `io_uring_cmd`.
    pub struct IoUringCmdOptions declared by OPTIONS with places {
        /// The options of its ring.
        pub ring: IoUringOptions,
        /// The kind of commands that are passed through.
        pub cmd_type: CommandType,
        /// Reads bypass the device's cache.
        pub readfua: bool,
        /// Writes are on the medium when they are complete.
        pub writefua: bool,
        /// The commands that writes become.
        pub write_mode: WriteModes,
        /// The device verifies written data (Compare); otherwise it is read.
        pub compares: bool,
        /// Bytes of the separate metadata buffer of each I/O.
        pub md_per_io_size: u32,
        /// The device creates and strips protection information; otherwise it is created and checked here.
        pub pi_act: bool,
        /// The checks of protection information.
        pub pi_chk: Checks,
        /// Its application tag.
        pub apptag: u16,
        /// Bits of the application tag that count.
        pub apptag_mask: u16,
        /// Where the device should put written data, according to the job's own options.
        pub placement: DataPlacementOptions,
        /// Write Zeroes may deallocate the blocks.
        pub deac: bool,
        /// The form of SCSI commands.
        pub cdb_len: CdbLength,
        /// The data that the SCSI command VERIFY compares.
        pub verify_bytchk: ByteCheck,
        /// Reads become the SCSI command PRE-FETCH, which transfers no data.
        pub prefetches: bool,
    }
}

impl Places for IoUringCmdOptions {
    fn hipri(&mut self) -> Option<&mut bool> {
        Some(&mut self.ring.hipri)
    }

    fn readfua(&mut self) -> Option<&mut bool> {
        Some(&mut self.readfua)
    }

    fn writefua(&mut self) -> Option<&mut bool> {
        Some(&mut self.writefua)
    }

    fn part(&mut self) -> Option<&mut dyn Any> {
        Some(&mut self.ring)
    }
}

impl OwnOptions for IoUringCmdOptions {
    fn registers_files(&self) -> bool {
        self.ring.registerfiles
    }

    fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        obstacles::of_commands(job, self).into_iter().collect()
    }

    fn without_effect(&self) -> Vec<Idle> {
        let is_idle = match self.cmd_type {
            CommandType::Nvme => self.idle_in_nvme(),
            CommandType::Bsg => self.idle_in_scsi(),
        };
        let deac = (
            "deac",
            self.deac && !self.write_mode.has(NvmeWriteMode::Zeroes),
            "only commands that write zeros may deallocate (write_mode=zeroes)",
        );
        is_idle
            .into_iter()
            .chain([deac])
            .filter(|(_, is_idle, _)| *is_idle)
            .map(|(name, _, why)| (name, why))
            .collect()
    }

    fn facets(&self, facets: Facets) -> Facets {
        match self.cmd_type {
            CommandType::Nvme => facets,
            CommandType::Bsg => Facets {
                target: Target::Bsg,
                capabilities: Capabilities::of(&[Capability::Sync, Capability::Trim]),
                ..facets
            },
        }
    }
}

/// An option, whether it has a value that is useless for one kind of commands, and the reason.
type Asked = (&'static str, bool, &'static str);

impl IoUringCmdOptions {
    fn idle_in_nvme(&self) -> Vec<Asked> {
        let why = "it is about SCSI commands (cmd_type=bsg)";
        vec![
            ("cdb_len", self.cdb_len != CdbLength::AsNeeded, why),
            ("verify_bytchk", self.verify_bytchk != ByteCheck::Medium, why),
            ("read_mode", self.prefetches, why),
        ]
    }

    fn idle_in_scsi(&self) -> Vec<Asked> {
        let writes = |mode| self.write_mode.has(mode);
        let names = ["md_per_io_size", "pi_act", "pi_chk", "apptag", "apptag_mask"];
        let mut all: Vec<Asked> =
            names.map(|name| (name, true, "it is about NVMe commands (cmd_type=nvme)")).to_vec();
        all.extend([
            ("nonvectored", true, "SCSI commands (cmd_type=bsg) name their data by its address"),
            (
                "verify_bytchk",
                self.verify_bytchk != ByteCheck::Medium && !writes(NvmeWriteMode::Verify),
                "it is about VERIFY (write_mode=verify)",
            ),
            (
                "writefua",
                self.writefua && !writes(NvmeWriteMode::Write),
                "of the SCSI commands for writes, only WRITE has this bit (write_mode=write)",
            ),
            ("readfua", self.readfua && self.prefetches, "PRE-FETCH (read_mode=prefetch) has no such bit"),
        ]);
        all
    }
}

/// Assigns a value to an option that the ring engines share.
macro_rules! ring {
    ($field:ident, $method:ident()) => {
        |own, given| {
            found(own.find::<IoUringOptions>())?.$field = given.$method()?;
            Ok(())
        }
    };
}

/// Stores an option in the struct of `io_uring_cmd`; `io_uring` has no use for it.
fn in_commands<'a>(
    own: &'a mut dyn Places,
    given: &mut Given<'_>,
) -> Result<Option<&'a mut IoUringCmdOptions>, String> {
    if !(own as &mut dyn Any).is::<IoUringCmdOptions>() {
        passed_through(own, given)?;
        return Ok(None);
    }
    Ok((own as &mut dyn Any).downcast_mut())
}

/// Assigns an option of commands.
macro_rules! command {
    ($field:ident, $value:expr) => {
        |own, given| {
            if let Some(commands) = in_commands(own, given)? {
                let value: fn(&mut Given<'_>) -> Result<_, String> = $value;
                commands.$field = value(given)?;
            }
            Ok(())
        }
    };
}

/// Assigns a metadata option, which both engines have.
macro_rules! metadata {
    ($field:ident, $value:expr) => {
        |own, given| {
            let value: fn(&mut Given<'_>) -> Result<_, String> = $value;
            let value = value(given)?;
            let own = own as &mut dyn Any;
            if let Some(commands) = own.downcast_mut::<IoUringCmdOptions>() {
                commands.$field = value;
            } else if let Some(ring) = own.downcast_mut::<IoUringOptions>() {
                ring.$field = value;
            }
            Ok(())
        }
    };
}

static WRITE_MODE: Definition = option(
    "write_mode",
    Kind::Str,
    "Device command for writes: write, uncor, zeroes, verify or append (zone_append is the same), or shares of several \
     (write/80:zeroes/20)",
)
.default("write")
.lands_in_engine(command!(write_mode, |given| WriteModes::read(given.required()?)));
static VERIFY_MODE: Definition = option("verify_mode", Kind::Str, "Device command when checking data")
    .default("read")
    .keywords(&[("read", "Read"), ("compare", "Compare")])
    .lands_in_engine(command!(compares, |given| Ok(given.keyword()? == "compare")));
static FIXEDBUFS: Definition = option("fixedbufs", Kind::Flag, "Register the I/O buffers with the kernel")
    .lands_in_engine(ring!(fixedbufs, boolean()));
static REGISTERFILES: Definition = option("registerfiles", Kind::Flag, "Register the files with the kernel")
    .lands_in_engine(ring!(registerfiles, boolean()));
static SQTHREAD_POLL: Definition =
    option("sqthread_poll", Kind::Flag, "Let a kernel thread pick up submissions")
        .lands_in_engine(ring!(sqthread_poll, boolean()));
static SQTHREAD_POLL_CPU: Definition = option("sqthread_poll_cpu", Kind::Int, "CPU of that kernel thread")
    .lands_in_engine(|own, given| {
        found(own.find::<IoUringOptions>())?.sqthread_poll_cpu = Some(given.number()?);
        Ok(())
    });
static NONVECTORED: Definition =
    option("nonvectored", Kind::Int, "Submit plain reads and writes, not vectors; -1 decides itself")
        .default("-1")
        .lands_in_engine(|own, given| {
            found(own.find::<IoUringOptions>())?.nonvectored = match given.integer()? {
                -1 => None,
                value => Some(value != 0),
            };
            Ok(())
        });
static FORCE_ASYNC: Definition =
    option("force_async", Kind::Int, "Hand one request in this many to a kernel worker at once")
        .lands_in_engine(ring!(force_async, number()));
static CMD_TYPE: Definition = option("cmd_type", Kind::Str, "Kind of passed-through command")
    .default("nvme")
    .keywords(&[("nvme", "NVMe"), ("bsg", "SCSI by the block layer's generic driver")])
    .lands_in_engine(command!(cmd_type, |given| Ok(match given.keyword()? {
        "bsg" => CommandType::Bsg,
        _ => CommandType::Nvme,
    })));
static CDB_LEN: Definition = option("cdb_len", Kind::Str, "Length of SCSI command blocks")
    .default("0")
    .keywords(&[("0", "As needed"), ("10", "10 bytes"), ("16", "16 bytes"), ("32", "32 bytes")])
    .lands_in_engine(command!(cdb_len, |given| Ok(CdbLength::of(given.keyword()?))));
static VERIFY_BYTCHK: Definition = option("verify_bytchk", Kind::Str, "The data that a SCSI VERIFY compares")
    .default("0")
    .keywords(&[("0", "The medium alone"), ("1", "Each block with its data"), ("3", "Every block with one")])
    .lands_in_engine(command!(verify_bytchk, |given| Ok(ByteCheck::of(given.keyword()?))));
static READ_MODE: Definition = option("read_mode", Kind::Str, "Device command for reads")
    .default("read")
    .keywords(&[("read", "Read"), ("prefetch", "Prefetch into the device's cache")])
    .lands_in_engine(command!(prefetches, |given| Ok(given.keyword()? == "prefetch")));
static MD_PER_IO_SIZE: Definition = option("md_per_io_size", Kind::Int, "Bytes of separate metadata per I/O")
    .default("0")
    .lands_in_engine(metadata!(md_per_io_size, |given| given.number()));
static PI_ACT: Definition =
    option("pi_act", Kind::Bool, "Let the device make and check protection information")
        .default("1")
        .lands_in_engine(metadata!(pi_act, |given| given.boolean()));
static PI_CHK: Definition =
    option("pi_chk", Kind::Str, "Which protection fields are checked: GUARD, REFTAG, APPTAG with commas")
        .lands_in_engine(metadata!(pi_chk, |given| Checks::read(given.required()?)));
static APPTAG: Definition = option("apptag", Kind::Int, "Application tag of the protection information")
    .default("0x1234")
    .lands_in_engine(metadata!(apptag, |given| given.number()));
static APPTAG_MASK: Definition = option("apptag_mask", Kind::Int, "Bits of that tag that count")
    .default("0xffff")
    .lands_in_engine(metadata!(apptag_mask, |given| given.number()));
static DEAC: Definition = option("deac", Kind::Bool, "Deallocate with write-zeroes commands")
    .default("0")
    .lands_in_engine(command!(deac, |given| given.boolean()));

/// All of them.
pub(super) static OPTIONS: &[&Definition] = &[
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
