//! The available releases of fio to compare with.

use crate::releases::Release;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// A fio to compare with.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The path of the program.
    pub path: PathBuf,
    /// The differences of its output and behaviour from 3.42.
    pub release: &'static Release,
}

/// All releases of fio to compare with: those that `IOLITE_PEERS` names, separated by colons or spaces, or else the
/// installed one and those that `scripts/peer-fio` has put below `target/peers`. They are looked for once in a process.
pub fn peers() -> &'static [Peer] {
    static PEERS: LazyLock<Vec<Peer>> = LazyLock::new(|| {
        let paths = match std::env::var("IOLITE_PEERS") {
            Ok(named) => {
                let paths: Vec<PathBuf> =
                    named.split([':', ' ']).filter(|path| !path.is_empty()).map(PathBuf::from).collect();
                assert!(
                    paths.iter().all(|path| release_of(path).is_some()),
                    "IOLITE_PEERS={named}: not each is a fio"
                );
                paths
            }
            Err(_) => found(),
        };
        let peer = |path: PathBuf| release_of(&path).map(|release| Peer { path, release });
        paths.into_iter().filter_map(peer).collect()
    });
    &PEERS
}

fn found() -> Vec<PathBuf> {
    let directories = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&directories).map(|directory| directory.join("fio"));
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
    let unpacked = std::fs::read_dir(unpacked).into_iter().flatten().flatten();
    let mut unpacked: Vec<PathBuf> = unpacked.map(|entry| entry.path().join("fio")).collect();
    unpacked.sort();
    installed.filter(|path| release_of(path).is_some()).take(1).chain(unpacked).collect()
}

/// The fio release of a program; `None` = it is not fio. Iolite is not fio, even if it is called by that name.
pub fn release_of(path: &Path) -> Option<&'static Release> {
    let told = |argument: &str| {
        let output = Command::new(path).arg(argument).stdin(Stdio::null()).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let version = told("--version")?;
    let minor: String = version.strip_prefix("fio-3.")?.chars().take_while(char::is_ascii_digit).collect();
    let minor = minor.parse().ok()?;
    (!told("--help")?.to_lowercase().contains("iolite")).then(|| Release::of(minor))
}
