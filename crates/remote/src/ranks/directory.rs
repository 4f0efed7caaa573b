//! A board of files, for launchers without an interface: a directory that all machines see, and that only this user can
//! read.
//!
//! Rank 0 creates it, and removes it at the end. A value appears completely or not at all, because a file is renamed
//! after it was written. So there is no need to wait for all ranks: a reader waits for the value that it reads.

use super::Board;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long ranks wait for each other: launchers do not start them all at once.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time between two checks.
const LOOK: Duration = Duration::from_millis(20);
/// The most bytes that are read of a file.
const LONGEST: u64 = 1 << 20;

/// The variables in which launchers pass the number of this rank, and the number of ranks.
const VARIABLES: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("PMI_RANK", "PMI_SIZE"),
    ("IOLITE_RANK", "IOLITE_RANKS"),
];

/// The variable in which the launcher passes the number of this rank; `None` = there is none.
pub fn variable() -> Option<&'static str> {
    let all = std::iter::once("PMIX_RANK").chain(VARIABLES.iter().map(|(rank, _)| *rank));
    all.into_iter().find(|name| std::env::var_os(name).is_some())
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    rank: u32,
    size: u32,
}

impl Directory {
    pub fn join(path: &Path) -> Result<Directory, String> {
        let (rank, size) = place()?;
        let shown = path.display();
        // Only for a directory that this rank has created or may read, because dropping the value removes it.
        let joined = || Directory { path: path.to_owned(), rank, size };
        if rank == 0 {
            DirBuilder::new().mode(0o700).create(path).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    format!("dir:{shown} exists already, from another run or one that was killed; remove it")
                }
                _ => format!("dir:{shown}: {error}"),
            })?;
            return Ok(joined());
        }
        let until = Instant::now() + PATIENCE;
        loop {
            match fs::symlink_metadata(path) {
                Ok(found)
                    if found.is_dir() && found.uid() == crate::user::own() && found.mode() & 0o077 == 0 =>
                {
                    return Ok(joined());
                }
                Ok(_) => {
                    return Err(format!("dir:{shown} is not a directory of this user alone (mode 0700)"));
                }
                Err(_) if Instant::now() < until => thread::sleep(LOOK),
                Err(error) => {
                    return Err(format!("dir:{shown}: rank 0 has not made it in {PATIENCE:?}: {error}"));
                }
            }
        }
    }

    fn file(&self, rank: u32, key: &str) -> PathBuf {
        self.path.join(format!("{rank}.{key}"))
    }
}

/// The number of this rank, and the number of ranks, from the launcher's variables.
///
/// # Errors
/// There are none, or they contradict each other.
pub fn place() -> Result<(u32, u32), String> {
    for (rank, size) in VARIABLES {
        let number = |variable: &str| std::env::var(variable).ok()?.trim().parse::<u32>().ok();
        if let Some(found) = number(rank) {
            let size = number(size).filter(|size| found < *size);
            return size
                .map(|size| (found, size))
                .ok_or_else(|| format!("{rank}={found} without a number of ranks above it"));
        }
    }
    let names: Vec<&str> = VARIABLES.iter().map(|(rank, _)| *rank).collect();
    Err(format!("which rank this is, no launcher says ({})", names.join(", ")))
}

impl Board for Directory {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn put(&mut self, key: &str, words: &str) -> Result<(), String> {
        let path = self.file(self.rank, key);
        let unfinished = path.with_extension(format!("{key}.part"));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished);
        let written = made.and_then(|mut file| file.write_all(words.as_bytes()));
        written
            .and_then(|()| fs::rename(&unfinished, &path))
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    fn fence(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn get(&mut self, rank: u32, key: &str) -> Result<String, String> {
        use std::io::Read;
        let path = self.file(rank, key);
        let until = Instant::now() + PATIENCE;
        loop {
            let opened = fs::File::open(&path);
            let read = opened.and_then(|file| {
                let mut words = String::new();
                file.take(LONGEST).read_to_string(&mut words).map(|_| words)
            });
            match read {
                Ok(words) => return Ok(words),
                Err(error) if error.kind() == io::ErrorKind::NotFound && Instant::now() < until => {
                    thread::sleep(LOOK)
                }
                Err(error) => return Err(format!("rank {rank} does not come: {}: {error}", path.display())),
            }
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // The other ranks have read everything that they need: rank 0 has their last values.
        if self.rank == 0 {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
