//! Engines of fio for other libraries whose work an engine of this program does: `xnvme` and `libzbc`. When all options of a
//! job are known, the job gets that engine, and a warning says which one.

use super::own::{Obstacle, OwnOptions, own, own_options, place};
use super::shared::{HIPRI, option};
use super::{Checks, EngineOptions, IoUringCmdOptions, IoUringOptions, engine};
use crate::definition::{Definition, Kind, Places};
use crate::typed::MemoryKind;
use crate::{JobOptions, Origin, SubmitMode};
use serde::{Deserialize, Serialize};

/// The interface of xNVMe by which I/Os are in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of xNVMe")]
pub enum XnvmeAsync {
    #[default]
    Emu,
    Thrpool,
    IoUring,
    IoUringCmd,
    Libaio,
    Posix,
    Vfio,
    Nil,
}

/// The interface of xNVMe for single I/Os, by which others are emulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of xNVMe")]
pub enum XnvmeSync {
    #[default]
    Nvme,
    Psync,
    Block,
}

own_options! {
    /// The options of `xnvme`.
    pub struct XnvmeOptions declared by OPTIONS with places {
        /// Poll the device for completions.
        pub hipri: bool,
        /// Let a kernel thread pick up submissions.
        pub sqthread_poll: bool,
        /// The back end, of which only that of Linux is there; empty = the first that works.
        pub xnvme_be: String,
        /// The interface by which I/Os are in flight.
        pub xnvme_async: XnvmeAsync,
        /// The interface for single I/Os.
        pub xnvme_sync: XnvmeSync,
        /// The interface for commands that are no I/O.
        pub xnvme_admin: String,
        /// The namespace, for drivers in this process.
        pub xnvme_dev_nsid: u32,
        /// The subsystem on a network, for drivers in this process.
        pub xnvme_dev_subnqn: String,
        /// The memory of buffers.
        pub xnvme_mem: String,
        /// Use vectored commands.
        pub xnvme_iovec: bool,
        /// Bytes of the metadata buffer of each I/O.
        pub md_per_io_size: u32,
        /// The device makes and checks protection information.
        pub pi_act: bool,
        /// The checks of protection information.
        pub pi_chk: Checks,
        /// Its application tag.
        pub apptag: u16,
        /// Bits of the application tag that count.
        pub apptag_mask: u16,
    }
}

impl Places for XnvmeOptions {
    fn hipri(&mut self) -> Option<&mut bool> {
        Some(&mut self.hipri)
    }
}

impl OwnOptions for XnvmeOptions {
    /// A job for which no engine stands in keeps this one, and is refused.
    fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        self.stand_in(job).err().into_iter().collect()
    }
}

/// Whether this is the generic device of an NVMe namespace, as its name says: `/dev/ng0n1`.
fn is_generic(name: &str) -> bool {
    let node = name.strip_prefix("/dev/ng").unwrap_or_default();
    node.starts_with(|first: char| first.is_ascii_digit())
}

impl XnvmeOptions {
    /// The engine that does the work.
    fn stand_in(&self, job: &JobOptions) -> Result<&'static str, Obstacle> {
        let stand_in = self.by_interface(job)?;
        match self.of_metadata().filter(|_| !stand_in.starts_with("io_uring")) {
            None => Ok(stand_in),
            Some(option) => Err((
                option,
                format!(
                    "{option}: the work of this job is done by ioengine={stand_in}, which has no metadata; use \
                     xnvme_async=io_uring_cmd with the generic device (/dev/ng0n1), or leave {option} out"
                ),
            )),
        }
    }

    /// An option for metadata that has not its default.
    fn of_metadata(&self) -> Option<&'static str> {
        let default = XnvmeOptions::default();
        [
            ("md_per_io_size", self.md_per_io_size != default.md_per_io_size),
            ("pi_act", self.pi_act != default.pi_act),
            ("pi_chk", self.pi_chk != default.pi_chk),
            ("apptag", self.apptag != default.apptag),
            ("apptag_mask", self.apptag_mask != default.apptag_mask),
        ]
        .into_iter()
        .find_map(|(option, is_set)| is_set.then_some(option))
    }

    /// The engine that does the work of these interfaces.
    fn by_interface(&self, job: &JobOptions) -> Result<&'static str, Obstacle> {
        self.needs_no_driver()?;
        let names = &job.files.filename;
        let generic = names.iter().filter(|name| is_generic(name)).count();
        let is_generic = generic > 0;
        if is_generic && generic < names.len() {
            let message = "filename: generic devices (/dev/ng0n1) and others need different interfaces; give each kind a job";
            return Err(("filename", message.to_owned()));
        }
        let refused = |interface: &str, remedy: &str| {
            Err(("xnvme_async", format!("xnvme_async={interface}: {remedy}")))
        };
        let needs_blocks = "it needs a block device or a file (/dev/nvme0n1); for a generic device use \
                            xnvme_async=io_uring_cmd";
        match (self.xnvme_async, is_generic) {
            (XnvmeAsync::Nil, _) => Ok("null"),
            (XnvmeAsync::IoUringCmd, true) => Ok("io_uring_cmd"),
            (XnvmeAsync::IoUringCmd, false) => refused(
                "io_uring_cmd",
                "commands are passed through generic devices; use filename=/dev/ng0n1 in the place of /dev/nvme0n1, or \
                 xnvme_async=io_uring",
            ),
            (XnvmeAsync::Emu | XnvmeAsync::Thrpool, true) if self.xnvme_sync != XnvmeSync::Nvme => Err((
                "xnvme_sync",
                "xnvme_sync: a generic device (/dev/ng0n1) takes commands only; use xnvme_sync=nvme, or the block device"
                    .to_owned(),
            )),
            (XnvmeAsync::Emu | XnvmeAsync::Thrpool, true) => Ok("io_uring_cmd"),
            (XnvmeAsync::Emu, false) if self.xnvme_iovec => Ok("pvsync"),
            (XnvmeAsync::Emu, false) => Ok("psync"),
            (XnvmeAsync::Thrpool | XnvmeAsync::Posix, false) => Ok("posixaio"),
            (XnvmeAsync::IoUring, false) => Ok("io_uring"),
            (XnvmeAsync::Libaio, false) => Ok("libaio"),
            (XnvmeAsync::IoUring, true) => refused("io_uring", needs_blocks),
            (XnvmeAsync::Libaio, true) => refused("libaio", needs_blocks),
            (XnvmeAsync::Posix, true) => refused("posix", needs_blocks),
            (XnvmeAsync::Vfio, _) => refused("vfio", NO_DRIVER),
        }
    }

    /// Whether the job asks for drivers that run in its process, which are not here.
    fn needs_no_driver(&self) -> Result<(), Obstacle> {
        let refused =
            |option: &'static str, value: &str| Err((option, format!("{option}={value}: {NO_DRIVER}")));
        match (self.xnvme_be.as_str(), self.xnvme_mem.as_str(), self.xnvme_dev_subnqn.as_str()) {
            ("" | "linux", "posix" | "hugepage", "") => Ok(()),
            ("" | "linux", "posix" | "hugepage", _) => Err((
                "xnvme_dev_subnqn",
                "xnvme_dev_subnqn: subsystems on a network are reached through the kernel; connect with nvme connect, and \
                 use the device that appears"
                    .to_owned(),
            )),
            ("" | "linux", memory, _) => refused("xnvme_mem", memory),
            ("spdk" | "vfio", ..) => refused("xnvme_be", &self.xnvme_be),
            (other, ..) => {
                Err(("xnvme_be", format!("xnvme_be={other}: only linux is here; leave xnvme_be out")))
            }
        }
    }

    /// Whether xNVMe would pass commands to the driver where the engine that stands in uses the page cache.
    fn is_cached(&self, job: &JobOptions, stand_in: &str) -> bool {
        let of_files = matches!(stand_in, "psync" | "pvsync" | "posixaio");
        let passes = self.xnvme_async != XnvmeAsync::Posix && self.xnvme_sync == XnvmeSync::Nvme;
        let is_device = job.files.filename.iter().any(|name| name.starts_with("/dev/nvme"));
        of_files && passes && is_device && !job.durability.direct
    }

    /// The options of the engine that stands in.
    fn options_of(&self, stand_in: &str) -> EngineOptions {
        let ring = IoUringOptions {
            hipri: self.hipri,
            sqthread_poll: self.sqthread_poll,
            nonvectored: self.xnvme_iovec.then_some(false),
            ..IoUringOptions::default()
        };
        let XnvmeOptions { md_per_io_size, pi_act, pi_chk, apptag, apptag_mask, .. } = *self;
        match stand_in {
            "io_uring" => {
                IoUringOptions { md_per_io_size, pi_act, pi_chk, apptag, apptag_mask, ..ring }.into()
            }
            "io_uring_cmd" => IoUringCmdOptions {
                ring,
                md_per_io_size,
                pi_act,
                pi_chk,
                apptag,
                apptag_mask,
                ..IoUringCmdOptions::default()
            }
            .into(),
            other => engine(other).map_or(EngineOptions::None, |entry| (entry.own)()),
        }
    }
}

const NO_DRIVER: &str = "there are no drivers in this process; leave the device to the kernel's nvme driver, and use \
                         xnvme_async=io_uring_cmd with /dev/ng0n1";

/// The most I/Os that xNVMe has in flight on a generic device with this interface; `None` = as many as the job.
fn most_in_flight(interface: XnvmeAsync) -> Option<(&'static str, u32)> {
    match interface {
        XnvmeAsync::Emu => Some(("emu", 1)),
        // fio's manual names this number of threads, and its engine has no option for another.
        XnvmeAsync::Thrpool => Some(("thrpool", 4)),
        _ => None,
    }
}

/// Gives a job the engine that does the work of the one it names. Returns a line about it; `None` = the job keeps its engine.
pub(crate) fn settle(job: &mut JobOptions) -> Option<String> {
    let named = job.ioengine.clone();
    let (stand_in, options, words) = match named.as_str() {
        "libzbc" => {
            // Jobs of libzbc have it. Generic devices have no cache to bypass, and sg refuses it there.
            if job.files.filename.iter().all(|name| name.starts_with("/dev/sg")) {
                job.durability.direct = false;
            }
            ("sg", engine("sg").map(|entry| (entry.own)())?, "which sends SCSI commands".to_owned())
        }
        "xnvme" => {
            let own = job.engine.of::<XnvmeOptions>()?;
            let stand_in = own.stand_in(job).ok()?;
            let is_polled = own.hipri || own.sqthread_poll;
            let mut idle = Vec::new();
            idle.extend(
                (is_polled && !stand_in.starts_with("io_uring")).then_some("hipri and sqthread_poll have"),
            );
            idle.extend(job.is_set("xnvme_admin").then_some("xnvme_admin has"));
            idle.extend(job.is_set("xnvme_dev_nsid").then_some("xnvme_dev_nsid has"));
            let is_vectored = stand_in == "pvsync" || stand_in.starts_with("io_uring");
            idle.extend((own.xnvme_iovec && !is_vectored).then_some("xnvme_iovec has"));
            let mut words = match idle.is_empty() {
                true => "with the same options".to_owned(),
                false => format!("where {} no effect", idle.join(" no effect and ")),
            };
            if own.is_cached(job, stand_in) {
                words += ", through the page cache; use direct=1 or the character device /dev/ng0n1";
            }
            let (options, is_huge) = (own.options_of(stand_in), own.xnvme_mem == "hugepage");
            // Threads that submit have a queue each. (Other engines that stand in are synchronous, or have threads of their own.)
            let is_one_queue = stand_in == "io_uring_cmd" && job.depth.io_submit_mode == SubmitMode::Inline;
            let limit = most_in_flight(own.xnvme_async).filter(|_| is_one_queue);
            if let Some((interface, most)) = limit.filter(|(_, most)| job.depth.iodepth > *most) {
                words += &format!(
                    ", and iodepth={most}, because xnvme_async={interface} has no more commands in flight; \
                     xnvme_async=io_uring_cmd has"
                );
                job.depth.iodepth = most;
            }
            if is_huge && !job.is_set("mem") {
                job.buffers.mem = MemoryKind::MmapHuge;
            }
            (stand_in, options, words)
        }
        _ => return None,
    };
    let entry = engine(stand_in)?;
    // Options that both have stay set.
    let kept: Vec<(String, Origin)> = job
        .origins
        .iter()
        .filter(|(name, _)| entry.option(name).is_some())
        .map(|(name, origin)| (name.clone(), origin.clone()))
        .collect();
    job.choose_engine(entry);
    job.engine = options;
    job.origins.extend(kept);
    Some(format!(
        "ioengine={named}: its work is done by ioengine={stand_in}, {words} (docs/engines.md says how)"
    ))
}

static SQTHREAD_POLL: Definition =
    option("sqthread_poll", Kind::Flag, "Let a kernel thread pick up submissions")
        .lands_in_engine(own!(XnvmeOptions.sqthread_poll, boolean()));
static BE: Definition = option("xnvme_be", Kind::Str, "Back end of xNVMe; only linux is here")
    .lands_in_engine(own!(XnvmeOptions.xnvme_be, string()));
static ASYNC: Definition = option("xnvme_async", Kind::Str, "Interface by which I/Os are in flight")
    .default("emu")
    .keywords(&[
        ("emu", "Single I/Os, one after the other"),
        ("thrpool", "Single I/Os on threads"),
        ("io_uring", "The kernel's rings, on block devices and files"),
        ("io_uring_cmd", "NVMe commands through the kernel's rings, on generic devices"),
        ("libaio", "The kernel's older asynchronous I/O"),
        ("posix", "aio_read(3) and aio_write(3)"),
        ("vfio", "A driver in the process, which is not here"),
        ("nil", "Nothing is transferred"),
    ])
    .lands_in_engine(|own, given| {
        place::<XnvmeOptions>(own)?.xnvme_async = match given.keyword()? {
            "thrpool" => XnvmeAsync::Thrpool,
            "io_uring" => XnvmeAsync::IoUring,
            "io_uring_cmd" => XnvmeAsync::IoUringCmd,
            "libaio" => XnvmeAsync::Libaio,
            "posix" => XnvmeAsync::Posix,
            "vfio" => XnvmeAsync::Vfio,
            "nil" => XnvmeAsync::Nil,
            _ => XnvmeAsync::Emu,
        };
        Ok(())
    });
static SYNC: Definition = option("xnvme_sync", Kind::Str, "Interface for single I/Os")
    .default("nvme")
    .keywords(&[
        ("nvme", "NVMe commands on generic devices, otherwise as psync"),
        ("psync", "pread(2) and pwrite(2)"),
        ("block", "As psync; zones are those of zonemode=zbd"),
    ])
    .lands_in_engine(|own, given| {
        place::<XnvmeOptions>(own)?.xnvme_sync = match given.keyword()? {
            "psync" => XnvmeSync::Psync,
            "block" => XnvmeSync::Block,
            _ => XnvmeSync::Nvme,
        };
        Ok(())
    });
static ADMIN: Definition =
    option("xnvme_admin", Kind::Str, "Interface for commands that are no I/O; both are the same here")
        .default("nvme")
        .keywords(&[("nvme", "The driver's ioctls"), ("block", "The block layer's ioctls, and sysfs")])
        .lands_in_engine(|own, given| {
            place::<XnvmeOptions>(own)?.xnvme_admin = given.keyword()?.to_owned();
            Ok(())
        });
static NSID: Definition = option(
    "xnvme_dev_nsid",
    Kind::Int,
    "Namespace for drivers in the process; a device of the kernel is one",
)
.lands_in_engine(own!(XnvmeOptions.xnvme_dev_nsid, number()));
static SUBNQN: Definition = option(
    "xnvme_dev_subnqn",
    Kind::Str,
    "Subsystem on a network, for drivers in the process, which are not here",
)
.lands_in_engine(own!(XnvmeOptions.xnvme_dev_subnqn, string()));
static MEM: Definition = option("xnvme_mem", Kind::Str, "Memory of buffers")
    .default("posix")
    .keywords(&[
        ("posix", "The heap, or what mem says"),
        ("hugepage", "Huge pages, as with mem=mmaphuge"),
        ("spdk", "That of SPDK, which is not here"),
        ("vfio", "That of libvfn, which is not here"),
    ])
    .lands_in_engine(|own, given| {
        place::<XnvmeOptions>(own)?.xnvme_mem = given.keyword()?.to_owned();
        Ok(())
    });
static IOVEC: Definition = option("xnvme_iovec", Kind::Flag, "Use vectored commands")
    .lands_in_engine(own!(XnvmeOptions.xnvme_iovec, boolean()));
static MD_PER_IO_SIZE: Definition = option("md_per_io_size", Kind::Int, "Bytes of separate metadata per I/O")
    .default("0")
    .lands_in_engine(own!(XnvmeOptions.md_per_io_size, number()));
static PI_ACT: Definition =
    option("pi_act", Kind::Bool, "Let the device make and check protection information")
        .default("1")
        .lands_in_engine(own!(XnvmeOptions.pi_act, boolean()));
static PI_CHK: Definition =
    option("pi_chk", Kind::Str, "Which protection fields are checked: GUARD, REFTAG, APPTAG with commas")
        .lands_in_engine(|own, given| {
            place::<XnvmeOptions>(own)?.pi_chk = Checks::read(given.required()?)?;
            Ok(())
        });
static APPTAG: Definition = option("apptag", Kind::Int, "Application tag of the protection information")
    .default("0x1234")
    .lands_in_engine(own!(XnvmeOptions.apptag, number()));
static APPTAG_MASK: Definition = option("apptag_mask", Kind::Int, "Bits of that tag that count")
    .default("0xffff")
    .lands_in_engine(own!(XnvmeOptions.apptag_mask, number()));

/// Those of `xnvme`.
pub static OPTIONS: &[&Definition] = &[
    &HIPRI,
    &SQTHREAD_POLL,
    &BE,
    &ASYNC,
    &SYNC,
    &ADMIN,
    &NSID,
    &SUBNQN,
    &MEM,
    &IOVEC,
    &MD_PER_IO_SIZE,
    &PI_ACT,
    &PI_CHK,
    &APPTAG,
    &APPTAG_MASK,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, change: impl FnOnce(&mut XnvmeOptions)) -> JobOptions {
        let mut job = JobOptions::default();
        job.files.filename = vec![name.to_owned()];
        job.choose_engine(engine("xnvme").unwrap());
        change(job.engine.of_mut().unwrap());
        job
    }

    #[test]
    fn each_interface_has_an_engine_that_does_its_work() {
        use XnvmeAsync::{Emu, IoUring, IoUringCmd, Libaio, Nil, Posix, Thrpool};
        for (name, interface, stand_in) in [
            ("/dev/ng0n1", Emu, "io_uring_cmd"),
            ("/dev/ng0n1", Thrpool, "io_uring_cmd"),
            ("/dev/ng0n1", IoUringCmd, "io_uring_cmd"),
            ("/dev/nvme0n1", Emu, "psync"),
            ("/dev/nvme0n1", Thrpool, "posixaio"),
            ("/dev/nvme0n1", Posix, "posixaio"),
            ("/dev/nvme0n1", IoUring, "io_uring"),
            ("file", Libaio, "libaio"),
            ("file", Nil, "null"),
        ] {
            let mut job = job(name, |own| own.xnvme_async = interface);
            let note = settle(&mut job).unwrap();
            assert!(note.contains(&format!("by ioengine={stand_in},")), "{note}");
            assert_eq!(job.ioengine, stand_in);
            assert_eq!(settle(&mut job), None, "it is settled");
        }
    }

    #[test]
    fn emulated_queues_are_as_deep_as_those_of_xnvme() {
        use XnvmeAsync::{Emu, IoUringCmd, Thrpool};
        for (interface, asked, most) in
            [(Emu, 32, 1), (Thrpool, 32, 4), (Thrpool, 3, 3), (IoUringCmd, 32, 32)]
        {
            let mut job = job("/dev/ng0n1", |own| own.xnvme_async = interface);
            job.depth.iodepth = asked;
            let note = settle(&mut job).unwrap();
            assert_eq!(job.depth.iodepth, most, "{note}");
            assert_eq!(note.contains(&format!("iodepth={most}, because")), asked != most, "{note}");
        }
        let mut offloaded = job("/dev/ng0n1", |_| ());
        (offloaded.depth.iodepth, offloaded.depth.io_submit_mode) = (8, SubmitMode::Offload);
        settle(&mut offloaded).unwrap();
        assert_eq!(offloaded.depth.iodepth, 8);
    }

    #[test]
    fn what_no_engine_does_is_refused_with_a_remedy() {
        let told = |name: &str, change: fn(&mut XnvmeOptions)| {
            let mut job = job(name, change);
            assert_eq!(settle(&mut job), None);
            let [(option, message)] = &job.engine.obstacles(&job)[..] else { panic!("one") };
            assert!(message.starts_with(option), "{message}");
            message.clone()
        };
        let (block, generic) = ("/dev/nvme0n1", "/dev/ng0n1");
        assert!(
            told(block, |own| own.xnvme_async = XnvmeAsync::IoUringCmd).contains("use filename=/dev/ng0n1")
        );
        for interface in [XnvmeAsync::IoUring, XnvmeAsync::Libaio, XnvmeAsync::Posix] {
            let mut job = job(generic, |own| own.xnvme_async = interface);
            assert_eq!(settle(&mut job), None);
            assert!(job.engine.obstacles(&job)[0].1.contains("use xnvme_async=io_uring_cmd"));
        }
        assert!(told(generic, |own| own.xnvme_sync = XnvmeSync::Psync).contains("takes commands only"));
        for change in [
            (|own| own.xnvme_be = "spdk".into()) as fn(&mut XnvmeOptions),
            |own| own.xnvme_mem = "vfio".into(),
            |own| own.xnvme_async = XnvmeAsync::Vfio,
        ] {
            assert!(told(generic, change).contains("leave the device to the kernel's nvme driver"));
        }
        assert!(told(generic, |own| own.xnvme_be = "fbsd".into()).contains("only linux is here"));
        assert!(told(generic, |own| own.xnvme_dev_subnqn = "nqn".into()).contains("nvme connect"));
        let mut mixed = job(generic, |_| ());
        mixed.files.filename.push(block.to_owned());
        assert_eq!(settle(&mut mixed), None);
        assert!(mixed.engine.obstacles(&mixed)[0].1.contains("give each kind a job"));
    }

    #[test]
    fn options_go_with_the_work() {
        let change = |own: &mut XnvmeOptions| {
            own.xnvme_async = XnvmeAsync::IoUringCmd;
            (own.hipri, own.sqthread_poll, own.xnvme_iovec) = (true, true, true);
            (own.md_per_io_size, own.pi_act, own.apptag) = (64, false, 7);
            own.xnvme_mem = "hugepage".into();
        };
        let mut passed = job("/dev/ng0n1", change);
        settle(&mut passed).unwrap();
        assert_eq!(passed.buffers.mem, MemoryKind::MmapHuge);
        let own = passed.engine.of::<IoUringCmdOptions>().unwrap();
        assert!(own.ring.hipri && own.ring.sqthread_poll && own.ring.nonvectored == Some(false));
        assert_eq!((own.md_per_io_size, own.pi_act, own.apptag), (64, false, 7));
        let mut vectored = job("file", |own| (own.xnvme_iovec, own.hipri) = (true, true));
        assert!(settle(&mut vectored).unwrap().contains("hipri and sqthread_poll have no effect"));
        assert_eq!(vectored.ioengine, "pvsync");
        for (interface, is_idle) in [
            (XnvmeAsync::Posix, true),
            (XnvmeAsync::Libaio, true),
            (XnvmeAsync::Nil, true),
            (XnvmeAsync::IoUring, false),
        ] {
            let mut job = job("file", |own| (own.xnvme_async, own.xnvme_iovec) = (interface, true));
            let note = settle(&mut job).unwrap();
            assert_eq!(note.contains("xnvme_iovec has no effect"), is_idle, "{note}");
        }
    }

    #[test]
    fn metadata_is_not_dropped() {
        use XnvmeAsync::{Emu, IoUring, IoUringCmd, Libaio, Nil, Posix, Thrpool};
        type Change = fn(&mut XnvmeOptions);
        let changes: [(&str, Change); 5] = [
            ("md_per_io_size", |own| own.md_per_io_size = 64),
            ("pi_act", |own| own.pi_act = false),
            ("pi_chk", |own| own.pi_chk = Checks::read("GUARD").unwrap()),
            ("apptag", |own| own.apptag = 7),
            ("apptag_mask", |own| own.apptag_mask = 7),
        ];
        for (option, change) in changes {
            for interface in [Emu, Thrpool, Posix, Libaio, Nil] {
                let mut job = job("/dev/nvme0n1", change);
                job.engine.of_mut::<XnvmeOptions>().unwrap().xnvme_async = interface;
                assert_eq!(settle(&mut job), None);
                let [(named, message)] = &job.engine.obstacles(&job)[..] else { panic!("one") };
                assert_eq!(*named, option);
                assert!(
                    message.contains("use xnvme_async=io_uring_cmd with the generic device"),
                    "{message}"
                );
            }
            for (name, interface) in [("/dev/nvme0n1", IoUring), ("/dev/ng0n1", IoUringCmd)] {
                let mut job = job(name, change);
                job.engine.of_mut::<XnvmeOptions>().unwrap().xnvme_async = interface;
                assert!(settle(&mut job).is_some(), "{option} with {name}");
            }
        }
    }

    #[test]
    fn the_page_cache_is_named() {
        let told = |name: &str, direct: bool, change: fn(&mut XnvmeOptions)| {
            let mut job = job(name, change);
            job.durability.direct = direct;
            settle(&mut job).unwrap().contains("through the page cache; use direct=1")
        };
        assert!(told("/dev/nvme0n1", false, |_| ()));
        assert!(told("/dev/nvme0n1", false, |own| own.xnvme_async = XnvmeAsync::Thrpool));
        assert!(!told("/dev/nvme0n1", true, |_| ()));
        assert!(!told("file", false, |_| ()));
        assert!(!told("/dev/ng0n1", false, |_| ()));
        assert!(!told("/dev/nvme0n1", false, |own| own.xnvme_sync = XnvmeSync::Psync));
        assert!(!told("/dev/nvme0n1", false, |own| own.xnvme_async = XnvmeAsync::Posix));
    }

    #[test]
    fn zoned_disks_get_scsi_commands() {
        let mut job = JobOptions::default();
        job.choose_engine(engine("libzbc").unwrap());
        assert!(settle(&mut job).unwrap().starts_with("ioengine=libzbc: its work is done by ioengine=sg,"));
        assert_eq!(job.engine, (engine("sg").unwrap().own)());
    }
}
