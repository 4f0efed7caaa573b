//! The place where a case runs: a fresh directory, and a block device if it needs one. Both are removed at the end.

use crate::arguments::Arguments;
use iolite_testing::{Ceph, Ganesha, Minio, NbdServer, Nginx};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The kind of place where a case runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A file system in memory.
    Memory,
    /// A file system on a disk.
    Disk,
    /// A compressed block device in memory, made for the case and filled with random data.
    Zram,
    /// A MinIO that keeps its data in memory.
    ObjectStore,
    /// A Ceph cluster that keeps its data in memory, with the object and the image `bench`, of 64 MiB each.
    Cluster,
    /// An nginx with WebDAV that keeps its files in memory.
    WebServer,
    /// An nbdkit with 256 MiB of memory.
    NbdMemory,
    /// An nfs-ganesha with a file of 64 MiB, reached through a relay.
    NfsExport,
}

/// A place that was made for one case.
pub struct Place {
    directory: TempDir,
    device: Option<Zram>,
    server: Option<(Server, TempDir)>,
    cluster: Option<&'static Ceph>,
}

/// A server that was started for a case.
enum Server {
    Objects(Minio),
    Web(Nginx),
    Device(NbdServer),
    Export(Ganesha),
}

/// Bytes of the file that an export has.
const EXPORTED: usize = 64 << 20;

impl Server {
    /// The value of `{host}` in jobs: the server, or a URL on it.
    fn host(&self) -> String {
        match self {
            Server::Objects(server) => server.host(),
            Server::Web(server) => server.host(),
            Server::Device(server) => server.uri().to_owned(),
            Server::Export(server) => server.url(),
        }
    }
}

impl Place {
    /// Makes a place of this kind.
    pub fn new(kind: Kind, arguments: &Arguments) -> Result<Place, String> {
        let parent = match kind {
            Kind::Disk => &arguments.disk,
            _ => &arguments.directory,
        };
        let make = || {
            let made = tempfile::Builder::new().prefix("iolite-bench-").tempdir_in(parent);
            made.map_err(|error| format!("{}: {error}", parent.display()))
        };
        let device = if kind == Kind::Zram { Some(Zram::new()?) } else { None };
        let server = match kind {
            Kind::ObjectStore => {
                let data = make()?;
                Some((Server::Objects(Minio::start(data.path(), false)?), data))
            }
            Kind::WebServer => {
                let data = make()?;
                Some((Server::Web(Nginx::start(data.path())?), data))
            }
            Kind::NbdMemory => {
                let data = make()?;
                Some((Server::Device(NbdServer::nbdkit(data.path(), "memory 256M")?), data))
            }
            Kind::NfsExport => {
                let data = make()?;
                let export = Ganesha::start(data.path())?;
                // Readers make nothing on a server.
                let file = export.export().join("data");
                fs::write(&file, vec![1; EXPORTED])
                    .map_err(|error| format!("{}: {error}", file.display()))?;
                Some((Server::Export(export), data))
            }
            _ => None,
        };
        let cluster = if kind == Kind::Cluster { Some(cluster()?) } else { None };
        Ok(Place { directory: make()?, device, server, cluster })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The block device, if there is one.
    pub fn device(&self) -> Option<&Path> {
        self.device.as_ref().map(|device| device.path.as_path())
    }

    /// The configuration file of the cluster, if there is one.
    pub fn conf(&self) -> Option<PathBuf> {
        self.cluster.map(Ceph::conf)
    }

    /// A job's options with `{directory}`, `{device}`, `{host}` and `{conf}` replaced by those of this place.
    pub fn fill_in(&self, job: &str) -> String {
        let device = self.device().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let host = self.server.as_ref().map(|(server, _)| server.host()).unwrap_or_default();
        job.replace("{directory}", &self.directory().to_string_lossy())
            .replace("{device}", &device)
            .replace("{host}", &host)
            .replace("{conf}", &self.conf().unwrap_or_default().to_string_lossy())
    }

    /// Removes the files that a run left in the directory.
    pub fn tidy(&self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.directory().display());
        for entry in fs::read_dir(self.directory()).map_err(failed)? {
            fs::remove_file(entry.map_err(failed)?.path()).map_err(failed)?;
        }
        Ok(())
    }
}

/// The cluster of all cases, with an object and an image that are full of random data.
fn cluster() -> Result<&'static Ceph, String> {
    static MADE: OnceLock<Result<&'static Ceph, String>> = OnceLock::new();
    let make = || {
        let cluster = Ceph::shared()?;
        let data = cluster.conf().with_file_name("data");
        let failed = |error: std::io::Error| format!("{}: {error}", data.display());
        let random = fs::File::open("/dev/urandom").map_err(failed)?;
        let mut file = fs::File::create(&data).map_err(failed)?;
        std::io::copy(&mut std::io::Read::take(random, 64 << 20), &mut file).map_err(failed)?;
        let (pool, data) = (Ceph::POOL, data.display());
        cluster.try_tool("rados", &format!("-p {pool} put bench {data}"))?;
        cluster.try_tool("rbd", &format!("import {data} {pool}/bench"))?;
        Ok(cluster)
    };
    MADE.get_or_init(make).clone()
}

/// A compressed block device in memory, made for this program.
#[derive(Debug)]
struct Zram {
    number: u32,
    path: PathBuf,
}

/// Small enough for any machine, larger than any cache.
const ZRAM_BYTES: u64 = 1 << 30;

impl Zram {
    fn new() -> Result<Zram, String> {
        let control = "/sys/class/zram-control/hot_add";
        // Reading this file makes the kernel add a device.
        let number = fs::read_to_string(control).map_err(|error| {
            format!("{control}: {error} (root and the module zram are needed for cases on zram)")
        })?;
        let number: u32 = number.trim().parse().map_err(|_| format!("{control}: no number: {number}"))?;
        let device = Zram { number, path: format!("/dev/zram{number}").into() };
        let size = format!("/sys/block/zram{number}/disksize");
        fs::write(&size, ZRAM_BYTES.to_string()).map_err(|error| format!("{size}: {error}"))?;
        device.fill()?;
        Ok(device)
    }

    /// Fills the device with random data, which does not compress: reads of zeros would not touch any data.
    fn fill(&self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let mut random = fs::File::open("/dev/urandom").map_err(failed)?;
        let mut device = fs::OpenOptions::new().write(true).open(&self.path).map_err(failed)?;
        std::io::copy(&mut std::io::Read::take(&mut random, ZRAM_BYTES), &mut device).map_err(failed)?;
        device.sync_all().map_err(failed)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let control = "/sys/class/zram-control/hot_remove";
        // Programs that look at new block devices (udev, for example) may still have it open for a moment.
        let mut removed = Ok(());
        for _ in 0..50 {
            removed = fs::write(control, self.number.to_string());
            if removed.is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        if let Err(error) = removed {
            eprintln!("iolite-bench: {control}: {}: {error}", self.path.display());
        }
    }
}
