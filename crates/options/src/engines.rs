//! The I/O engines by name, with their facets and their own options.
//!
//! # The seam
//!
//! An engine is listed in these places, and nowhere else in the code:
//!
//! 1. its entry in the catalogue (`catalogue.rs`): names, help, [`Facets`], options. Code that has a question about an
//!    engine (the checks of a plan, layout, verification, limits of the system, the manual) asks its entry for the
//!    facet that answers it;
//! 2. its own options, in a separate file beside the catalogue: their declarations, the struct that stores them (a line
//!    in `chosen.rs` makes it one of those that a job may carry), and what a job cannot do with them ([`OwnOptions`]).
//!    An option that several engines have is declared once, in `shared.rs`, and listed by each of them;
//! 3. its implementation: one file in the engine crate of its kind (`engine-local`, `-devices`, `-calls`, `-servers`,
//!    `-hdfs`);
//! 4. one line in `engines/src/registry.rs`, which ties the name to the type. A test there proves that entries and
//!    implementations agree.
//!
//! It has an example and a section in docs/engines.md as well.
//!
//! This is the catalogue only: it answers questions about an engine, and does not know how the engine works.

mod catalogue;
mod ceph;
mod chosen;
mod external;
mod facets;
mod files;
mod gluster;
mod hdfs;
mod http;
mod io_uring;
mod io_uring_cmd;
mod iscsi;
mod libaio;
mod libblkio;
mod libcufile;
mod local;
mod mmap;
mod nbd;
mod network;
mod nfs;
mod own;
mod priorities;
mod pvsync2;
mod ranged;
mod secret;
mod sg;
mod shared;
mod stand_ins;
mod url;

pub use ceph::{CephPool, Luks, RadosOptions, RbdOptions};
pub use chosen::EngineOptions;
pub use external::ExternalOptions;
pub use files::{
    DirReadOptions, E4defragOptions, FileWriteOptions, NameOptions, NewNameOptions, StatCall, StatOptions,
    XattrOptions,
};
pub use gluster::GfapiOptions;
pub use hdfs::HdfsOptions;
pub use http::{
    Addressing, Authentication, Encryption, HostSelect, HttpOptions, HttpProtocol, ObjectChecksum,
    ObjectMode, ReadRequest, Visible, WriteRequest,
};
pub use io_uring::{IoUringCmdOptions, IoUringOptions};
pub use io_uring_cmd::{ByteCheck, CdbLength, Checks, CommandType, NvmeWriteMode, WriteModes};
pub use iscsi::IscsiOptions;
pub use libaio::LibaioOptions;
pub use libblkio::{BlkioProperties, BlkioWait, LibblkioOptions};
pub use libcufile::{GpuIo, GpuVendor, LibcufileOptions};
pub use local::{CpuMode, CpuioOptions, ExecOptions, MtdOptions};
pub use mmap::MmapOptions;
pub use nbd::NbdOptions;
pub use network::{NetOptions, Protocol, RdmaOptions, Verb, port_of_clone};
pub use nfs::NfsOptions;
pub(crate) use own::AsFio;
pub use own::{LocalTarget, Obstacle, OwnOptions};
pub use priorities::CommandPriorities;
pub use pvsync2::Pvsync2Options;
pub use ranged::{of_worker, ranged};
pub(crate) use secret::PLACEHOLDER;
pub use secret::Secret;
pub use sg::{SgOptions, SgWriteMode};
pub(crate) use stand_ins::settle as settle_stand_in;
pub use stand_ins::{XnvmeAsync, XnvmeOptions, XnvmeSync};
pub use url::Url;
pub use url::masked;

pub use facets::{Capabilities, Capability, Completion, Data, ExtentAct, Facets, Target, UnitKind};
pub use facets::{NameAct, NameKind, NameUse};

use crate::definition::Definition;
use crate::values::{Notes, not_one_of};
use catalogue::Elsewhere;
use std::path::PathBuf;

/// One I/O engine as the option language knows it.
#[derive(Clone, Copy, Debug)]
pub struct EngineInfo {
    /// The value of `ioengine`.
    pub name: &'static str,
    /// Other names under which it is known.
    pub aliases: &'static [&'static str],
    /// One line of help.
    pub help: &'static str,
    /// Its facets.
    pub facets: Facets,
    /// It loads a library when it is created, which may start threads: a process that forks later must not create it.
    pub loads_library: bool,
    /// Another engine does its work (`stand_ins.rs`): a job never runs with this one.
    pub is_stood_in_for: bool,
    /// Its requests count towards `fs.aio-max-nr`.
    pub takes_aio_requests: bool,
    /// Its own options, in the order in which the help lists them.
    pub options: &'static [&'static Definition],
    /// Its default options.
    pub own: fn() -> EngineOptions,
}

impl EngineInfo {
    /// Whether this is an engine in a shared object.
    pub fn is_external(&self) -> bool {
        self.name == EXTERNAL
    }

    /// Its option of this name or alias.
    pub fn option(&self, name: &str) -> Option<&'static Definition> {
        self.options.iter().copied().find(|definition| definition.answers_to(name))
    }
}

static ENGINES: [EngineInfo; catalogue::ALL.len()] = catalogue::ALL;

/// The names of all engines with their help, as keywords of `ioengine`.
pub(crate) static KEYWORDS: [(&str, &str); catalogue::ALL.len()] = {
    let mut all = [("", ""); catalogue::ALL.len()];
    let mut index = 0;
    while index < all.len() {
        all[index] = (ENGINES[index].name, ENGINES[index].help);
        index += 1;
    }
    all
};

/// All engines, in the order in which the help lists them.
pub fn engines() -> &'static [EngineInfo] {
    &ENGINES
}

/// The names of the engines that can do this, for a message: `pvsync2, io_uring, libaio`.
pub fn capable(capability: Capability) -> String {
    let names: Vec<&str> =
        ENGINES.iter().filter(|engine| engine.facets.can(capability)).map(|engine| engine.name).collect();
    names.join(", ")
}

/// The engine of this name or alias.
pub fn engine(name: &str) -> Option<&'static EngineInfo> {
    ENGINES.iter().find(|engine| engine.name == name || engine.aliases.contains(&name))
}

/// The engine of this name or alias, with the facets that follow from these options.
pub fn chosen(name: &str, own: &EngineOptions) -> Option<EngineInfo> {
    let entry = *engine(name)?;
    Some(EngineInfo { facets: own.facets(entry.facets), ..entry })
}

/// Describes an engine of fio that is not part of this program, or a name that people use instead of an engine's, and
/// the alternative here; `None` = neither.
pub(crate) fn elsewhere(name: &str) -> Option<String> {
    if let Some((_, meant)) = catalogue::MEANT.iter().find(|(used, _)| *used == name) {
        return Some(format!("no engine is called {name}; use {meant}"));
    }
    let Elsewhere { what, instead, .. } = catalogue::ELSEWHERE.iter().find(|engine| engine.name == name)?;
    Some(format!("{name} ({what}) is not part of this program; {instead}"))
}

/// The engine whose implementation is in a shared object.
const EXTERNAL: &str = "external";

/// The name of the engine in a value of `ioengine`, whether or not it can be used.
pub(crate) fn name_of(value: &str) -> &str {
    if value.contains('/') || value.split(':').next() == Some(EXTERNAL) {
        return EXTERNAL;
    }
    value.split(':').next().unwrap_or(value)
}

/// The engine that a value of `ioengine` chooses, and its shared object if it has one: `psync`, `external:FILE`, or a
/// path with a slash.
///
/// # Errors
/// The engine cannot be used; the message suggests alternatives.
pub fn choose(value: &str, notes: &mut Notes) -> Result<(&'static EngineInfo, Option<PathBuf>), String> {
    let word = value.split_once(':').map_or(value, |(word, _)| word);
    let library = if word == EXTERNAL { value.get(EXTERNAL.len() + 1..).unwrap_or_default() } else { value };
    if word == EXTERNAL && library.is_empty() {
        return Err("external needs the file of the engine, as in external:./engine.so".to_owned());
    }
    if name_of(value) == EXTERNAL
        && let Some(external) = engine(EXTERNAL)
    {
        return Ok((external, Some(library.into())));
    }
    if let Some(refusal) = elsewhere(word) {
        return Err(refusal);
    }
    match engine(word) {
        Some(engine) => {
            if word != value {
                notes.ignore(format!("{word} takes nothing behind a colon"), ", ignored")?;
            }
            Ok((engine, None))
        }
        None => Err(not_one_of(ENGINES.iter().map(|engine| engine.name), word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        let meant = catalogue::MEANT.iter().map(|(used, _)| *used);
        let elsewhere = catalogue::ELSEWHERE.iter().map(|engine| engine.name).chain(meant);
        for name in engines()
            .iter()
            .flat_map(|engine| engine.aliases.iter().copied().chain([engine.name]))
            .chain(elsewhere)
        {
            assert!(seen.insert(name), "{name} is listed twice");
        }
    }

    #[test]
    fn engines_are_chosen_by_any_of_their_names() {
        let chosen =
            |value| choose(value, &mut Notes::default()).map(|(engine, library)| (engine.name, library));
        assert_eq!(chosen("linuxaio"), Ok(("libaio", None)));
        assert_eq!(chosen("external:mine.so"), Ok(("external", Some("mine.so".into()))));
        assert_eq!(chosen("./mine.so"), Ok(("external", Some("./mine.so".into()))));
        assert_eq!(chosen("/opt/a:b.so"), Ok(("external", Some("/opt/a:b.so".into()))));
        for (value, remedy) in [
            ("s3", "use http with http_mode=s3"),
            ("ime_aio", "use libaio"),
            ("uring", "did you mean \"io_uring\"?"),
            ("async", "use libaio, or io_uring"),
            ("zfs", "use psync or io_uring on its mount point"),
            ("iscsi", "did you mean \"libiscsi\"?"),
        ] {
            assert!(chosen(value).unwrap_err().contains(remedy), "{value}: {:?}", chosen(value));
        }
        assert!(chosen("external").unwrap_err().contains("external:./engine.so"));
        assert!(chosen("external:").is_err() && chosen("mine.so").is_err());
        assert_eq!(
            choose("psync:x", &mut Notes::default()).unwrap_err(),
            "psync takes nothing behind a colon"
        );
        assert!(choose("libaoi", &mut Notes::default()).unwrap_err().ends_with("did you mean \"libaio\"?"));
    }

    #[test]
    fn refusals_of_missing_engines_name_an_alternative() {
        for Elsewhere { name, what, instead } in catalogue::ELSEWHERE {
            let refusal = choose(name, &mut Notes::default()).unwrap_err();
            assert_eq!(refusal, format!("{name} ({what}) is not part of this program; {instead}"));
            let named = engines().iter().any(|engine| instead.contains(engine.name));
            assert!(named, "{instead}");
        }
    }

    #[test]
    fn capabilities_go_with_the_options_that_ask_for_them() {
        for engine in engines() {
            let has = |option: &str| engine.option(option).is_some();
            // Commands that are passed through have no priorities, although io_uring_cmd lists the options.
            let has_priorities = has("cmdprio") && engine.name != "io_uring_cmd";
            assert_eq!(engine.facets.can(Capability::Priorities), has_priorities, "{}", engine.name);
            assert_eq!(engine.facets.can(Capability::Polling), has("hipri"), "{}", engine.name);
        }
        assert_eq!(capable(Capability::AtomicWrites), "pvsync2, io_uring, libaio");
    }
}
