//! The I/O engines by name, with what they can do and their own options.
//!
//! This is the catalogue only: it knows what can be asked of an engine, not how the engine works. An option that
//! several engines have is declared once and listed by each of them.

mod files;
mod local;
mod network;
mod objects;
mod rings;

use crate::definition::Definition;

/// One I/O engine as the option language knows it.
#[derive(Debug)]
pub struct EngineInfo {
    /// The value of `ioengine`.
    pub name: &'static str,
    /// Other names under which it is known.
    pub aliases: &'static [&'static str],
    /// One line of help.
    pub help: &'static str,
    /// It can be used; otherwise only its name and options are known.
    pub supported: bool,
    /// Each I/O is complete when the call that issues it returns: a depth above 1 means nothing.
    pub synchronous: bool,
    /// It needs no file to exist: nothing is laid out, opened or sized on disk.
    pub diskless: bool,
    /// It copies the data into its place itself, into memory that is mapped: a write ends where it is interrupted.
    pub copies: bool,
    /// Its own options, in the order in which the help lists them.
    pub options: &'static [&'static Definition],
}

impl EngineInfo {
    /// An engine that exists, works on files and completes later than it submits.
    const fn new(name: &'static str, help: &'static str) -> Self {
        EngineInfo {
            name,
            aliases: &[],
            help,
            supported: true,
            synchronous: false,
            diskless: false,
            copies: false,
            options: &[],
        }
    }

    const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn synchronous(mut self) -> Self {
        self.synchronous = true;
        self
    }

    const fn diskless(mut self) -> Self {
        self.diskless = true;
        self
    }

    const fn copies(mut self) -> Self {
        self.copies = true;
        self
    }

    const fn not_yet(mut self) -> Self {
        self.supported = false;
        self
    }

    const fn options(mut self, options: &'static [&'static Definition]) -> Self {
        self.options = options;
        self
    }

    /// Its option of this name or alias.
    pub fn option(&self, name: &str) -> Option<&'static Definition> {
        self.options.iter().copied().find(|definition| definition.answers_to(name))
    }
}

static ENGINES: &[EngineInfo] = &[
    EngineInfo::new("cpuio", "Burns processor cycles in place of I/O")
        .synchronous()
        .diskless()
        .not_yet()
        .options(local::CPUIO),
    EngineInfo::new("mmap", "Copies from and to files mapped into memory")
        .synchronous()
        .copies()
        .options(local::MMAP),
    EngineInfo::new("sync", "lseek(2), then read(2) or write(2)").synchronous(),
    EngineInfo::new("psync", "pread(2) and pwrite(2)").synchronous(),
    EngineInfo::new("vsync", "readv(2) and writev(2); neighbouring I/Os go in one call"),
    EngineInfo::new("pvsync", "preadv(2) and pwritev(2)").synchronous(),
    EngineInfo::new("pvsync2", "preadv2(2) and pwritev2(2) with their flags")
        .synchronous()
        .options(local::PVSYNC2),
    EngineInfo::new("null", "Completes everything at once: shows what the tester itself costs").diskless(),
    EngineInfo::new("net", "Sends and receives over sockets")
        .synchronous()
        .diskless()
        .not_yet()
        .options(network::NET),
    EngineInfo::new("netsplice", "Sends and receives over sockets by splice(2)")
        .synchronous()
        .diskless()
        .not_yet()
        .options(network::NET),
    EngineInfo::new("ftruncate", "Sets file sizes").synchronous().not_yet(),
    EngineInfo::new("filecreate", "Creates files").synchronous().diskless().not_yet(),
    EngineInfo::new("filestat", "Looks up files").synchronous().diskless().not_yet().options(files::STAT),
    EngineInfo::new("filedelete", "Deletes files").synchronous().diskless().not_yet(),
    EngineInfo::new("dircreate", "Creates directories").synchronous().diskless().not_yet(),
    EngineInfo::new("dirstat", "Looks up directories")
        .synchronous()
        .diskless()
        .not_yet()
        .options(files::STAT),
    EngineInfo::new("dirdelete", "Deletes directories").synchronous().diskless().not_yet(),
    EngineInfo::new("exec", "Runs another program").synchronous().diskless().not_yet().options(local::EXEC),
    EngineInfo::new("page_fault", "Touches pages of anonymous memory").synchronous().diskless().not_yet(),
    EngineInfo::new("nfs", "Talks to an NFS server by libnfs").not_yet().options(network::NFS),
    EngineInfo::new("posixaio", "aio_read(3) and aio_write(3)"),
    EngineInfo::new("falloc", "Reserves and releases space by fallocate(2)").synchronous().not_yet(),
    EngineInfo::new("e4defrag", "Swaps extents of ext4 files")
        .synchronous()
        .not_yet()
        .options(files::E4DEFRAG),
    EngineInfo::new("splice", "splice(2) and vmsplice(2)").synchronous().not_yet(),
    EngineInfo::new("gfapi", "Talks to GlusterFS by its library")
        .synchronous()
        .diskless()
        .not_yet()
        .options(objects::GFAPI),
    EngineInfo::new("gfapi_async", "Talks to GlusterFS by its library, asynchronously")
        .diskless()
        .not_yet()
        .options(objects::GFAPI),
    EngineInfo::new("mtd", "Reads, writes and erases flash devices")
        .synchronous()
        .not_yet()
        .options(local::MTD),
    EngineInfo::new("sg", "SCSI commands by the generic driver").not_yet().options(rings::SG),
    EngineInfo::new("io_uring", "The kernel's submission and completion rings").options(rings::IO_URING),
    EngineInfo::new("io_uring_cmd", "Commands passed through to the device by io_uring")
        .not_yet()
        .options(rings::IO_URING),
    EngineInfo::new("libaio", "The kernel's asynchronous I/O, io_submit(2)")
        .aliases(&["aio", "linuxaio"])
        .options(rings::LIBAIO),
    EngineInfo::new("rdma", "Remote memory access over InfiniBand or RoCE")
        .diskless()
        .not_yet()
        .options(network::RDMA),
    EngineInfo::new("rados", "Ceph objects by librados").diskless().not_yet().options(objects::RADOS),
    EngineInfo::new("rbd", "Ceph block devices by librbd").diskless().not_yet().options(objects::RBD),
    EngineInfo::new("http", "Objects over HTTP: WebDAV, S3, Swift")
        .synchronous()
        .diskless()
        .not_yet()
        .options(network::HTTP),
    EngineInfo::new("dev-dax", "Persistent memory by a DAX device").synchronous().copies().not_yet(),
    EngineInfo::new("libpmem", "Persistent memory by libpmem").synchronous().copies().not_yet(),
];

/// All engines, in the order in which the help lists them.
pub fn engines() -> &'static [EngineInfo] {
    ENGINES
}

/// The engine of this name or alias.
pub fn engine(name: &str) -> Option<&'static EngineInfo> {
    ENGINES.iter().find(|engine| engine.name == name || engine.aliases.contains(&name))
}
