//! Where the data of a test is, and what is removed there.
//!
//! A dataset is where the user wants it, and stays. Everything else is in a directory of the test's own, as that of `iolite test`,
//! or has names of its own on a server; on other machines, the jobs remove it themselves.

use super::super::pts::target::Target as Device;
use super::super::test::own_directory::{self, OwnDirectory};
use super::super::test::remote::{self, Layout, Remote};
use crate::messages::complain;
use crate::subcommands::device::can_be_named;
use iolite_host::{Machine, ThisMachine};
use iolite_options::Name;
use iolite_options::commands::Asked;
use iolite_page::text::bytes;
use iolite_procedures::ai::dataset::Dataset;
use iolite_procedures::ai::place::{Kind, Place};
use std::fs::File;
use std::path::{Path, PathBuf};

/// How names begin that are removed.
const OWN: &str = "iolite-ai";

/// The directories of these tests.
static OF_AI: own_directory::Kind = own_directory::Kind {
    prefix: "iolite-ai.",
    lock: "iolite-ai.lock",
    words: "This directory belongs to a running `iolite ai`. If none is running, `iolite ai --clean` removes it.\n",
    is_own: |name| ["rank.", "checkpoint", "hits.", "new."].iter().any(|start| name.starts_with(start)),
};

/// Where a test is.
pub struct Site {
    /// As jobs have it.
    pub place: Place,
    /// The target, for people.
    pub name: String,
    /// The directory, if it is one of this machine.
    pub directory: Option<PathBuf>,
    /// The device, if it is one of this machine; and what keeps other procedures away from it.
    device: Option<Device>,
    _held: Option<File>,
    remote: Option<Remote>,
    own: Option<OwnDirectory>,
    /// How the names begin that are removed from a server.
    removed: Option<String>,
    /// The server has answered, so that such names may be there from now on.
    has_begun: bool,
    /// The test, as its command is called.
    test: String,
}

impl Site {
    /// The site of blocks, which may be on a device of this machine.
    pub fn of_blocks(asked: &Asked, target: &str) -> Result<Site, String> {
        use std::os::unix::fs::FileTypeExt;
        let is_device = |found: std::fs::Metadata| found.file_type().is_block_device();
        if !std::fs::metadata(target).is_ok_and(is_device) {
            if asked.has("destroy") {
                return Err(format!("--destroy: that is for block devices, and {target} is none"));
            }
            return Site::of(asked, target);
        }
        if let Some(option) = ["client", "mpi"].into_iter().find(|option| asked.has(option)) {
            return Err(format!(
                "--{option}: {target} is a device of this machine; on several, name a directory"
            ));
        }
        let device = Device::of(&target.into(), false)?;
        let mut held = None;
        if !asked.has("show-job") {
            device.check_destruction(asked.value("destroy"))?;
            held = Some(device.hold()?);
        }
        let path = device.path.display().to_string().replace(':', "\\:");
        let place = Place {
            kind: Kind::Device,
            options: vec![("filename".to_owned(), path)],
            prefix: String::new(),
            is_direct: device.is_direct,
            is_on_machines: false,
        };
        let name = target.to_owned();
        Ok(Site {
            place,
            name,
            directory: None,
            device: Some(device),
            _held: held,
            remote: None,
            own: None,
            removed: None,
            has_begun: false,
            test: test_of(asked),
        })
    }

    /// The site of a target, as it is named.
    pub fn of(asked: &Asked, target: &str) -> Result<Site, String> {
        let is_on_machines = asked.has("client") || asked.has("mpi");
        let is_direct = asked.has("direct");
        let found = if Path::new(target).exists() { None } else { Remote::of(target) };
        let found = found.transpose().map_err(|why: String| format!("{}: {why}", remote::shown(target)))?;
        let Some(remote) = found else {
            let directory = absolute(Path::new(target))?;
            if !can_be_named(&directory) {
                return Err(format!(
                    "{target}: a job file would take this name for something else; use another directory"
                ));
            }
            let options = vec![("directory".to_owned(), directory.display().to_string().replace(':', "\\:"))];
            let place =
                Place { kind: Kind::Files, options, prefix: String::new(), is_direct, is_on_machines };
            let directory = (!is_on_machines).then_some(directory);
            return Ok(Site {
                place,
                name: target.to_owned(),
                directory,
                device: None,
                _held: None,
                remote: None,
                own: None,
                removed: None,
                has_begun: false,
                test: test_of(asked),
            });
        };
        let name = remote::shown(target);
        let kind = match remote.layout {
            Layout::Objects => Kind::Objects,
            Layout::File if remote.engine == "nfs" => Kind::Export,
            Layout::File | Layout::Disk => {
                return Err(format!(
                    "{name}: {} has no files; name a directory, s3:// or nfs://",
                    remote.words
                ));
            }
        };
        if is_direct {
            return Err(format!("--direct: {name} is reached without a page cache; leave it out"));
        }
        let options = std::iter::once(("ioengine".to_owned(), remote.engine.to_owned()));
        let options =
            options.chain(remote.options.iter().map(|(option, value)| ((*option).to_owned(), value.clone())));
        let place = Place {
            kind,
            options: options.collect(),
            prefix: remote.place.clone(),
            is_direct,
            is_on_machines,
        };
        Ok(Site {
            place,
            name,
            directory: None,
            device: None,
            _held: None,
            remote: Some(remote),
            own: None,
            removed: None,
            has_begun: false,
            test: test_of(asked),
        })
    }

    /// Makes room for what the test writes and removes: this many bytes on this machine. `is_shown`: nothing is made.
    pub fn with_own_room(mut self, needed: u64, is_shown: bool) -> Result<Site, String> {
        if let Some(remote) = &self.remote {
            let separator = if self.place.kind == Kind::Objects { '/' } else { '.' };
            let prefix = format!("{}{OWN}{separator}{}{separator}", remote.place, remote.number);
            self.place.prefix.clone_from(&prefix);
            self.removed = Some(prefix);
            return Ok(self);
        }
        if let Some(device) = &self.device {
            return match device.capacity >= needed {
                true => Ok(self),
                false => Err(format!(
                    "{}: {} are needed, and it has {}; take less (--size, --rates)",
                    self.name,
                    bytes(needed as f64),
                    bytes(device.capacity as f64)
                )),
            };
        }
        let Some(directory) = self.directory.clone() else {
            self.place.prefix = format!("{OWN}.{}.", std::process::id());
            return Ok(self);
        };
        self.check_directory(&directory)?;
        self.check_room(&directory, needed)?;
        let own = if is_shown {
            directory.join(OWN)
        } else {
            let own = OwnDirectory::make(&directory, &OF_AI)?;
            let path = own.path.clone();
            self.own = Some(own);
            path
        };
        self.place.options = vec![("directory".to_owned(), own.display().to_string().replace(':', "\\:"))];
        Ok(self)
    }

    fn check_directory(&self, directory: &Path) -> Result<(), String> {
        match std::fs::metadata(directory) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(format!("{}: this is no directory", self.name)),
            Err(error) => Err(format!(
                "{}: {}; mkdir -p {} makes it",
                self.name,
                iolite_types::describe_error(&error),
                self.name
            )),
        }
    }

    /// Checks that there is room for this many bytes.
    pub fn check_room(&self, directory: &Path, needed: u64) -> Result<(), String> {
        let system = ThisMachine::new().file_system(directory);
        match system {
            Ok(system) if system.available < needed => Err(format!(
                "{}: {} are needed, and {} are free; take less, or another place",
                self.name,
                bytes(needed as f64),
                bytes(system.available as f64)
            )),
            _ => Ok(()),
        }
    }

    /// Its name, which does not depend on the working directory.
    pub fn whole_name(&self) -> String {
        let path = self.directory.as_ref().and_then(|directory| directory.canonicalize().ok());
        path.map_or_else(|| self.name.clone(), |path| path.display().to_string())
    }

    /// Checks that a server answers. From now on, names of this test may be there.
    pub fn check_server(&mut self) -> Result<(), String> {
        if let Some(remote) = &self.remote {
            remote.check().map_err(|why| format!("{}: {why}", self.name))?;
            self.has_begun = true;
        }
        Ok(())
    }

    /// A job of this site as it is shown: where a directory of the test's own is not made, it says so.
    pub fn shown(&self, job: &str) -> String {
        match &self.directory {
            Some(directory) => {
                let own = directory.join(OWN);
                let own = own.display();
                format!(
                    "# {own} stands for a directory that the test makes and removes; by itself, this runs after mkdir {own}\n{job}"
                )
            }
            None => job.to_owned(),
        }
    }

    /// Checks that the server has no file of a dataset: it would be overwritten, and removed after `^C`.
    pub fn check_names(&mut self, dataset: &Dataset) -> Result<(), String> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        let told = |why: String| format!("{}: {why}", self.name);
        if remote.without_lists().is_some() {
            return Err(told(
                "this server has no lists of names, so that nobody knows what a dataset would overwrite; name a \
                 directory, s3:// or nfs://"
                    .to_owned(),
            ));
        }
        let is_one = |name: &str| dataset.number_of(&self.place, without_machine(name)).is_some();
        match remote.first_name(is_one).map_err(told)? {
            Some(name) => {
                Err(told(format!("{name} is there already; name another prefix or export, or remove it")))
            }
            None => Ok(()),
        }
    }

    /// Removes the files of a dataset from the server, and nothing else.
    pub fn remove(&self, dataset: &Dataset) -> Result<u64, String> {
        let Some(remote) = &self.remote else { return Ok(0) };
        let is_one = |name: &str| dataset.number_of(&self.place, without_machine(name)).is_some();
        let removed = remote.remove_names(is_one);
        removed.map_err(|why| format!("{}: {why}", self.name))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // (The directory removes itself.)
        if let (Some(remote), Some(removed)) = (&self.remote, &self.removed)
            && self.has_begun
            && let Err(why) = remote.remove_all(removed)
        {
            complain(
                Name::Iolite,
                &format_args!(
                    "ai: {}: what the test has made is left there ({why}); iolite ai {} --clean {} removes it",
                    self.name, self.test, self.name
                ),
            );
        }
    }
}

/// The test that was asked for.
fn test_of(asked: &Asked) -> String {
    asked.operands.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// A name without the mark of the machine that makes it (`m1.`, `rank-1.`).
fn without_machine(name: &str) -> &str {
    let is_mark = |mark: &str| {
        let number = mark.strip_prefix("rank-").or(mark.strip_prefix('m'));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    name.split_once('.').filter(|(mark, _)| is_mark(mark)).map_or(name, |(_, rest)| rest)
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Removes what killed tests have left.
pub fn clean(target: &str) -> Result<String, String> {
    let path = Path::new(target);
    if !path.exists()
        && let Some(remote) = Remote::of(target)
    {
        let name = remote::shown(target);
        let remote = remote.map_err(|why| format!("--clean: {name}: {why}"))?;
        if let Some(why) = remote.without_lists() {
            return Err(format!("--clean: {name}: {why}"));
        }
        let separator = if remote.layout == Layout::Objects { '/' } else { '.' };
        let start = format!("{}{OWN}{separator}", remote.place);
        let removed = remote.remove_all(&start).map_err(|why| format!("--clean: {name}: {why}"))?;
        return Ok(format!("{name}: {removed} objects or files removed whose names begin with {start}\n"));
    }
    let found = OwnDirectory::left(path, &OF_AI).map_err(|why| format!("--clean: {why}"))?;
    let mut text = String::new();
    for left in found {
        left.remove()?;
        text += &format!("{}: removed; a test that was killed had left it\n", left.path.display());
    }
    // This machine may have worked for another one, or be one of several.
    let mut files = 0;
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !is_of_machine(&entry.file_name().to_string_lossy()) {
            continue;
        }
        match std::fs::remove_file(entry.path()) {
            Ok(()) => files += 1,
            // (The machines may share the directory.)
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let why = iolite_types::describe_error(&error);
                return Err(format!("--clean: {}: {why}", entry.path().display()));
            }
        }
    }
    if files > 0 {
        text += &format!("{target}: {files} files removed that killed tests of several machines had left\n");
    }
    if text.is_empty() {
        text = format!("{target}: no test has left anything here\n");
    }
    Ok(text)
}

/// Whether a file is one that a test makes on several machines: `iolite-ai.NUMBER.m1.rank.0.0`.
fn is_of_machine(name: &str) -> bool {
    let Some((number, name)) = name.strip_prefix(OF_AI.prefix).and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let own = without_machine(name);
    number.bytes().all(|byte| byte.is_ascii_digit()) && own.len() < name.len() && (OF_AI.is_own)(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_on_several_machines() {
        for own in ["iolite-ai.7.m0.rank.0.0", "iolite-ai.12.rank-3.checkpoint", "iolite-ai.1.m10.new.2.5"] {
            assert!(is_of_machine(own), "{own}");
        }
        for other in [
            "iolite-ai.7",
            "iolite-ai.7.rank.0",
            "iolite-ai.x.m0.rank.0",
            "iolite-ai.7.m0.thesis",
            "m0.rank.0.0",
        ] {
            assert!(!is_of_machine(other), "{other}");
        }
    }
}
