//! The engines: an entry holds all facts about an engine that are needed before it runs.

use super::{
    Capabilities, Capability, Completion, Data, EngineInfo, EngineOptions, Facets, Target, UnitKind,
};
use super::{
    CpuioOptions, DirReadOptions, E4defragOptions, ExecOptions, ExternalOptions, GfapiOptions, HdfsOptions,
    HttpOptions, IoUringCmdOptions, IoUringOptions, IscsiOptions, LibaioOptions, LibblkioOptions,
    LibcufileOptions, MmapOptions,
};
use super::{
    FileWriteOptions, MtdOptions, NameOptions, NbdOptions, NetOptions, NewNameOptions, NfsOptions,
    Pvsync2Options, SgOptions, StatOptions, XattrOptions,
};
use super::{RadosOptions, RbdOptions, RdmaOptions, XnvmeOptions};
use super::{
    ceph, external, files, gluster, hdfs, http, io_uring, iscsi, libaio, libblkio, libcufile, local, mmap,
    nbd, network, nfs, pvsync2, sg, stand_ins,
};
use crate::definition::Definition;

use super::{ExtentAct, NameAct, NameKind, NameUse};
use Capability::{
    AtomicWrites, Coalesce, CopyIntoFile, CountBits, Extend, FeignVerify, FixedSize, LendBuffers,
    MadeByWriting, OnlyLook, OnlyWritersMake, Placement, Polling, Priorities, Ranges, Sync, TimeAnswers,
    TimeSending, Trim,
};
use ExtentAct::{CutOff, Reserve, Swap};
use NameAct::{LookUp, Make, Remove};
use NameKind::{Directory, File};

/// The capabilities of engines that read and write local files by system calls.
const USUAL: &[Capability] = &[Sync, Trim, Extend];

/// An engine that transfers data to and from local files, and completes it in the call that issues it.
const fn engine(name: &'static str, help: &'static str) -> EngineInfo {
    EngineInfo {
        name,
        aliases: &[],
        help,
        facets: Facets {
            data: Data::LocalFiles,
            target: Target::Any,
            unit: UnitKind::Transfers,
            completion: Completion::Call,
            capabilities: Capabilities::of(USUAL),
        },
        loads_library: false,
        is_stood_in_for: false,
        takes_aio_requests: false,
        options: &[],
        own: || EngineOptions::None,
    }
}

impl EngineInfo {
    const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn data(mut self, data: Data) -> Self {
        self.facets.data = data;
        self
    }

    /// Sets the only kind of files that it can work on; they have a fixed size.
    const fn works_on(mut self, target: Target) -> Self {
        self.facets.target = target;
        self
    }

    const fn unit(mut self, unit: UnitKind) -> Self {
        self.facets.unit = unit;
        self
    }

    /// No file is open that could be synced.
    const fn acts_on_names(self, of: NameKind, act: NameAct) -> Self {
        let looks = matches!(act, LookUp);
        self.unit(UnitKind::ActsOnNames(NameUse { of, act })).can(if looks {
            &[Trim, Extend, OnlyLook]
        } else {
            &[Trim, Extend]
        })
    }

    const fn completion(mut self, completion: Completion) -> Self {
        self.facets.completion = completion;
        self
    }

    /// Sets all of its capabilities.
    const fn can(mut self, list: &[Capability]) -> Self {
        self.facets.capabilities = Capabilities::of(list);
        self
    }

    const fn loads_library(mut self) -> Self {
        self.loads_library = true;
        self
    }

    const fn stood_in_for(mut self) -> Self {
        self.is_stood_in_for = true;
        self
    }

    const fn takes_aio_requests(mut self) -> Self {
        self.takes_aio_requests = true;
        self
    }

    /// Sets its own options, and the struct in which they land.
    const fn own(mut self, own: fn() -> EngineOptions, options: &'static [&'static Definition]) -> Self {
        self.own = own;
        self.options(options)
    }

    /// Sets its own options.
    const fn options(mut self, options: &'static [&'static Definition]) -> Self {
        self.options = options;
        self
    }
}

/// All engines, in the order in which the help lists them.
pub(super) const ALL: [EngineInfo; 53] = [
    engine("cpuio", "Burns processor cycles instead of I/O")
        .data(Data::Nowhere)
        .unit(UnitKind::Works)
        .own(|| CpuioOptions::default().into(), local::CPUIO),
    engine("mmap", "Copies from and to files mapped into memory")
        .can(&[Sync, Trim, CopyIntoFile])
        .own(|| MmapOptions::default().into(), mmap::OPTIONS),
    engine("sync", "read(2) and write(2), after lseek(2) where the position differs"),
    engine("psync", "pread(2) and pwrite(2)"),
    engine("vsync", "readv(2) and writev(2); neighbouring I/Os go in one call")
        .completion(Completion::Engine)
        .can(&[Sync, Trim, Extend, Coalesce]),
    engine("pvsync", "preadv(2) and pwritev(2)"),
    engine("pvsync2", "preadv2(2) and pwritev2(2) with their flags")
        .can(&[Sync, Trim, Extend, AtomicWrites, Polling])
        .own(|| Pvsync2Options::default().into(), pvsync2::OPTIONS),
    engine("null", "Completes everything at once: shows the cost of the tester itself")
        .data(Data::Nowhere)
        .completion(Completion::Engine)
        .can(&[Sync, Trim, Extend, FeignVerify]),
    engine("net", "Sends and receives over sockets")
        .data(Data::OtherEnd)
        .can(&[CountBits, TimeAnswers])
        .own(|| NetOptions::default().into(), network::NET),
    engine("netsplice", "Sends and receives over sockets by splice(2)")
        .data(Data::OtherEnd)
        .can(&[LendBuffers])
        .own(|| NetOptions::default().into(), network::NET),
    engine("ftruncate", "Sets file sizes").unit(UnitKind::ActsOnExtents(CutOff)).can(&[Sync, Extend]),
    engine("filecreate", "Creates files")
        .acts_on_names(File, Make)
        .own(|| NameOptions::default().into(), files::NAME),
    engine("filestat", "Looks up files")
        .acts_on_names(File, LookUp)
        .own(|| StatOptions::default().into(), files::STAT),
    engine("filedelete", "Deletes files")
        .acts_on_names(File, Remove)
        .own(|| NameOptions::default().into(), files::NAME),
    engine("filewrite", "Creates small files with their data: open, write, close")
        .acts_on_names(File, Make)
        .own(|| FileWriteOptions::default().into(), files::FILE_WRITE),
    engine("fileread", "Reads small files: open, read, close").acts_on_names(File, LookUp),
    engine("filerename", "Renames files")
        .acts_on_names(File, Remove)
        .own(|| NewNameOptions::default().into(), files::NEW_NAME),
    engine("filelink", "Gives files a second name, a hard link")
        .acts_on_names(File, Remove)
        .own(|| NewNameOptions::default().into(), files::NEW_NAME),
    engine("filesetxattr", "Sets an extended attribute of files")
        .acts_on_names(File, LookUp)
        .can(&[Trim, Extend])
        .own(|| XattrOptions::default().into(), files::XATTR),
    engine("filegetxattr", "Reads an extended attribute of files")
        .acts_on_names(File, LookUp)
        .own(|| XattrOptions::default().into(), files::XATTR),
    engine("dircreate", "Creates directories")
        .acts_on_names(Directory, Make)
        .own(|| NameOptions::default().into(), files::NAME),
    engine("dirstat", "Looks up directories")
        .acts_on_names(Directory, LookUp)
        .own(|| StatOptions::default().into(), files::STAT),
    engine("dirdelete", "Deletes directories")
        .acts_on_names(Directory, Remove)
        .own(|| NameOptions::default().into(), files::NAME),
    engine("dirread", "Lists directories")
        .acts_on_names(Directory, LookUp)
        .own(|| DirReadOptions::default().into(), files::DIR_READ),
    engine("exec", "Runs another program")
        .data(Data::Nowhere)
        .unit(UnitKind::Works)
        .own(|| ExecOptions::default().into(), local::EXEC),
    engine("page_fault", "Touches pages of anonymous memory").data(Data::Nowhere).can(&[Sync]),
    engine("nfs", "Files on an NFS server, without the kernel's client")
        .data(Data::OwnStorage)
        .completion(Completion::Engine)
        .can(&[Sync, Extend, OnlyWritersMake, TimeAnswers])
        .loads_library()
        .own(|| NfsOptions::default().into(), nfs::OPTIONS),
    engine("nbd", "Network block devices by libnbd")
        .data(Data::OwnStorage)
        .completion(Completion::Engine)
        .can(&[Sync, Trim, FixedSize, TimeAnswers])
        .loads_library()
        .own(|| NbdOptions::default().into(), nbd::OPTIONS),
    engine("posixaio", "aio_read(3) and aio_write(3)").completion(Completion::LibraryThreads),
    engine("falloc", "Reserves and releases space by fallocate(2)").unit(UnitKind::ActsOnExtents(Reserve)),
    engine("e4defrag", "Swaps extents of ext4 files")
        .unit(UnitKind::ActsOnExtents(Swap))
        .can(&[Sync])
        .own(|| E4defragOptions::default().into(), files::E4DEFRAG),
    engine("splice", "splice(2) and vmsplice(2)"),
    engine("gfapi", "Files on GlusterFS volumes by libgfapi")
        .data(Data::OwnStorage)
        .can(&[Sync, Trim, Extend, OnlyWritersMake])
        .loads_library()
        .own(|| GfapiOptions::default().into(), gluster::GFAPI),
    engine("gfapi_async", "Files on GlusterFS volumes by libgfapi, asynchronously")
        .data(Data::OwnStorage)
        .completion(Completion::LibraryThreads)
        .can(&[Sync, Trim, Extend, OnlyWritersMake, TimeAnswers])
        .loads_library()
        .own(|| GfapiOptions::default().into(), gluster::GFAPI),
    engine("mtd", "Reads, writes and erases flash devices")
        .works_on(Target::Flash)
        .can(&[Sync, Trim])
        .own(|| MtdOptions::default().into(), local::MTD),
    engine("sg", "SCSI commands by the generic driver")
        .works_on(Target::Scsi)
        .completion(Completion::Kernel)
        .can(&[Sync, Trim, Polling])
        .own(|| SgOptions::default().into(), sg::OPTIONS),
    engine("io_uring", "The kernel's submission and completion rings")
        .completion(Completion::Kernel)
        .can(&[Sync, Trim, Extend, AtomicWrites, Priorities, Polling, Placement])
        .own(|| IoUringOptions::default().into(), io_uring::OPTIONS),
    engine("io_uring_cmd", "Commands passed through to the device by io_uring")
        .works_on(Target::Nvme)
        .completion(Completion::Kernel)
        .can(&[Sync, Trim, Ranges, Placement, Polling])
        .own(|| IoUringCmdOptions::default().into(), io_uring::OPTIONS),
    engine("libaio", "The kernel's asynchronous I/O, io_submit(2)")
        .aliases(&["aio", "linuxaio"])
        .completion(Completion::Kernel)
        .can(&[Sync, Trim, Extend, AtomicWrites, Priorities])
        .takes_aio_requests()
        .own(|| LibaioOptions::default().into(), libaio::OPTIONS),
    engine("rdma", "Remote memory access over InfiniBand or RoCE")
        .data(Data::OtherEnd)
        .completion(Completion::Engine)
        .can(&[])
        .loads_library()
        .own(|| RdmaOptions::default().into(), network::RDMA),
    engine("rados", "Ceph objects by librados")
        .data(Data::OwnStorage)
        .completion(Completion::LibraryThreads)
        .can(&[Sync, Trim, Extend, OnlyWritersMake, TimeAnswers])
        .loads_library()
        .own(|| RadosOptions::default().into(), ceph::RADOS),
    engine("rbd", "Ceph block devices by librbd")
        .data(Data::OwnStorage)
        .completion(Completion::LibraryThreads)
        .can(&[Sync, Trim, FixedSize, TimeAnswers])
        .loads_library()
        .own(|| RbdOptions::default().into(), ceph::RBD),
    engine("http", "Objects over HTTP: WebDAV, S3, Swift")
        .data(Data::OwnStorage)
        .completion(Completion::Engine)
        .can(&[Sync, Trim, Extend, MadeByWriting, TimeSending])
        .loads_library()
        .own(|| HttpOptions::default().into(), http::OPTIONS),
    engine("libhdfs", "Files on HDFS, Hadoop's file system, in chunks")
        .data(Data::OwnStorage)
        .completion(Completion::LibraryThreads)
        .can(&[Sync, Extend, OnlyWritersMake, TimeAnswers])
        .loads_library()
        .own(|| HdfsOptions::default().into(), hdfs::OPTIONS),
    engine("libiscsi", "Disks of iSCSI targets, without the kernel's initiator")
        .data(Data::OwnStorage)
        .completion(Completion::Engine)
        .can(&[Sync, Trim, FixedSize, TimeAnswers])
        .loads_library()
        .own(|| IscsiOptions::default().into(), iscsi::OPTIONS),
    engine("libblkio", "Block devices by libblkio: files, NVMe, vhost-user, vDPA, VFIO")
        .data(Data::OwnStorage)
        .completion(Completion::Engine)
        .can(&[Sync, Trim, FixedSize, Polling])
        .loads_library()
        .own(|| LibblkioOptions::default().into(), libblkio::OPTIONS),
    engine("libcufile", "Files and memory of NVIDIA's GPUs, by GPUDirect Storage")
        .completion(Completion::Engine)
        .loads_library()
        .own(|| LibcufileOptions::default().into(), libcufile::OPTIONS),
    engine("libhipfile", "Files and memory of AMD's GPUs, by hipFile")
        .loads_library()
        .own(|| LibcufileOptions::of_amd().into(), libcufile::OF_HIPFILE),
    engine("dev-dax", "Persistent memory by a DAX device")
        .works_on(Target::DaxDevice)
        .can(&[Sync, CopyIntoFile])
        .loads_library(),
    engine("libpmem", "Persistent memory by libpmem")
        .works_on(Target::DaxFile)
        .can(&[Sync, CopyIntoFile])
        .loads_library(),
    // Their facets are those of the engines that stand in.
    engine("xnvme", "xNVMe's interfaces, by the engines that do the same here")
        .can(&[Sync, Trim, Extend, Polling])
        .stood_in_for()
        .own(|| XnvmeOptions::default().into(), stand_ins::OPTIONS),
    engine("libzbc", "Zoned disks by libzbc, for which sg sends the same commands")
        .works_on(Target::Scsi)
        .stood_in_for(),
    // Its library declares the other facets.
    engine("external", "An engine in a shared object (external:FILE, or a path)")
        .completion(Completion::Engine)
        .loads_library()
        .own(|| ExternalOptions::default().into(), external::OPTIONS),
];

/// An engine of fio that is not part of this program: for a library that is not available, or for another system.
pub(super) struct Elsewhere {
    pub(super) name: &'static str,
    /// A description.
    pub(super) what: &'static str,
    /// The alternative in this program.
    pub(super) instead: &'static str,
}

const fn elsewhere(name: &'static str, what: &'static str, instead: &'static str) -> Elsewhere {
    Elsewhere { name, what, instead }
}

const IME: &str = "the interface of the Infinite Memory Engine, a burst buffer";

/// What people call an engine that has another name, and the options for it.
pub(super) static MEANT: &[(&str, &str)] = &[
    ("s3", "http with http_mode=s3"),
    ("minio", "http with http_mode=s3"),
    ("swift", "http with http_mode=swift"),
    ("webdav", "http with http_mode=webdav"),
    ("https", "http with https=on"),
    ("ceph", "rbd for images, rados for objects"),
    ("cephfs", "psync or io_uring on its mount point"),
    ("gluster", "gfapi"),
    ("glusterfs", "gfapi"),
    ("nvme", "io_uring_cmd for NVMe commands of your own, or io_uring on the block device"),
    ("scsi", "sg"),
    ("tcp", "net with protocol=tcp"),
    ("udp", "net with protocol=udp"),
    ("posix", "psync, or posixaio"),
    ("async", "libaio, or io_uring"),
    ("file", "psync, libaio or io_uring"),
    ("directio", "libaio or io_uring with direct=1"),
    ("zfs", "psync or io_uring on its mount point"),
    ("ext4", "psync or io_uring on its mount point"),
    ("xfs", "psync or io_uring on its mount point"),
    ("btrfs", "psync or io_uring on its mount point"),
    ("smb", "psync or io_uring on its mount point"),
    ("cifs", "psync or io_uring on its mount point"),
    ("dax", "dev-dax for a device, libpmem for a file"),
];

/// All of them.
pub(super) static ELSEWHERE: &[Elsewhere] = &[
    elsewhere(
        "dfs",
        "the file system interface of DAOS",
        "mount the container with dfuse, and use psync or io_uring there",
    ),
    elsewhere("ime_psync", IME, "use psync on the mount point of its client"),
    elsewhere("ime_psyncv", IME, "use vsync on the mount point of its client"),
    elsewhere("ime_aio", IME, "use libaio on the mount point of its client"),
    elsewhere("windowsaio", "the asynchronous I/O of Windows", "use io_uring or libaio"),
    elsewhere("solarisaio", "the asynchronous I/O of Solaris", "use io_uring, libaio or posixaio"),
    elsewhere(
        "guasi",
        "the library GUASI, which makes system calls asynchronous by threads and is not maintained any more",
        "use posixaio, or io_submit_mode=offload with psync",
    ),
];
