//! The machine and the storage of a run, for later readers of its result.

use iolite_host::Machine;
use iolite_host::{Mounts, about};
use iolite_plan::{Names, Plan};
use iolite_stats::{Fact, Facts};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The most places that are described: a report is not an inventory.
const MOST_TARGETS: usize = 16;
/// The most files of a worker, and of all workers, that are examined: each costs system calls before the run.
const MOST_OF_A_WORKER: usize = 16;
const MOST_FILES: usize = 1000;

/// Facts about the machine and the places of the jobs' data.
pub fn of(plan: &Plan, machine: &dyn Machine) -> Facts {
    let mut survey = Survey::new(machine);
    for worker in &plan.workers {
        let engine = plan.job_of(worker).engine;
        if engine.facets.has_local_files() {
            survey.add_files(&worker.files);
        } else {
            survey.add_engine(engine.name);
        }
    }
    let targets = survey.targets.into_iter().map(Target::facts).collect();
    Facts { host: about::this_host(), targets, warnings: Vec::new() }
}

/// Collects the facts about the files and devices of a run. Each is queried only once: a thousand workers may share one
/// directory.
struct Survey<'a> {
    machine: &'a dyn Machine,
    mounts: Mounts,
    targets: Vec<Target>,
    /// Names that have been examined, and their targets; `None` = a target that is not described.
    seen: HashMap<PathBuf, Option<usize>>,
    known: HashMap<Place, Vec<Fact>>,
    /// Facts about disks, by their directories: a disk that is queried again may have counted more.
    disks: HashMap<PathBuf, Vec<Fact>>,
}

/// The subject of facts.
#[derive(PartialEq, Eq, Hash)]
enum Place {
    /// A device, by its number.
    Device(u64),
    /// A directory, and the device of the files in it: a file may be mounted there.
    Directory(PathBuf, u64),
}

/// Files or engines with the same facts.
struct Target {
    /// Their kind: `files`, `engine`.
    what: &'static str,
    /// The name of the first one.
    first: String,
    /// The number of the others.
    more: usize,
    /// The count is incomplete.
    is_cut: bool,
    facts: Vec<Fact>,
}

impl Target {
    fn facts(self) -> Vec<Fact> {
        let more = match self.more {
            _ if self.is_cut => " and more".to_owned(),
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let name = (self.what.to_owned(), self.first + &more);
        std::iter::once(name).chain(self.facts).collect()
    }
}

impl<'a> Survey<'a> {
    fn new(machine: &'a dyn Machine) -> Self {
        let mounts = Mounts::now();
        let (seen, known, disks) = (HashMap::new(), HashMap::new(), HashMap::new());
        Survey { machine, mounts, targets: Vec::new(), seen, known, disks }
    }

    fn add_engine(&mut self, name: &str) {
        let is_told = self.targets.iter().any(|target| target.what == "engine" && target.first == name);
        if !is_told {
            self.add("engine", name.to_owned(), Vec::new());
        }
    }

    fn add_files(&mut self, names: &Names) {
        let mut target = None;
        for path in names.places().take(MOST_OF_A_WORKER) {
            target = match self.seen.get(path.as_ref()) {
                Some(target) => *target,
                None if self.seen.len() >= MOST_FILES => break,
                None => {
                    let facts = self.facts_of(&path);
                    let target = self.add("files", path.display().to_string(), facts);
                    self.seen.insert(path.into_owned(), target);
                    target
                }
            };
        }
        if names.len() > MOST_OF_A_WORKER || self.seen.len() >= MOST_FILES {
            let target = target.or(self.targets.len().checked_sub(1));
            if let Some(target) = target.and_then(|target| self.targets.get_mut(target)) {
                target.is_cut = true;
            }
        }
    }

    /// Adds a file or engine to a target with the same facts, or to a new target; `None` = too many targets.
    fn add(&mut self, what: &'static str, name: String, facts: Vec<Fact>) -> Option<usize> {
        let is_same = |target: &Target| what == "files" && target.what == what && target.facts == facts;
        if let Some(found) = self.targets.iter().position(is_same) {
            self.targets[found].more += 1;
            return Some(found);
        }
        (self.targets.len() < MOST_TARGETS).then(|| {
            self.targets.push(Target { what, first: name, more: 0, is_cut: false, facts });
            self.targets.len() - 1
        })
    }

    /// The facts about a device, or about the place of a file, which may not exist yet.
    fn facts_of(&mut self, path: &Path) -> Vec<Fact> {
        let file = fs::metadata(path).ok();
        let device = file.as_ref().filter(|file| {
            let kind = file.file_type();
            kind.is_block_device() || kind.is_char_device()
        });
        let directory = device.is_none().then(|| directory_of(path, file.is_some())).flatten();
        let place = match (device, &directory) {
            (Some(device), _) => Place::Device(device.rdev()),
            (None, Some(directory)) => {
                let on = file.or_else(|| fs::metadata(directory).ok()).map_or(0, |there| there.dev());
                Place::Directory(directory.clone(), on)
            }
            (None, None) => return Vec::new(),
        };
        let (machine, mounts, disks) = (self.machine, &self.mounts, &mut self.disks);
        let found = self.known.entry(place).or_insert_with(|| {
            // A device has no file system, although its name has one.
            let file_system = directory.as_ref().and_then(|directory| {
                let place = fs::canonicalize(path).unwrap_or_else(|_| directory.clone());
                mounts.file_system(&place).map(str::to_owned)
            });
            let mut facts: Vec<Fact> =
                file_system.into_iter().map(|kind| ("file_system".to_owned(), kind)).collect();
            facts.extend(match machine.disk(path) {
                Some(disk) => {
                    let told = || about::device(path, Some(&disk));
                    disks.entry(disk.directory.clone()).or_insert_with(told).clone()
                }
                None => about::device(path, None),
            });
            facts
        });
        found.clone()
    }
}

/// The directory, without symbolic links, of an existing or future file.
fn directory_of(path: &Path, is_there: bool) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let mut ancestors = path.ancestors();
    if is_there {
        let place = fs::canonicalize(&path).ok()?;
        return Some(place.parent().unwrap_or(&place).to_owned());
    }
    ancestors.next();
    ancestors.find_map(|path| fs::canonicalize(path).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::MadeUp;

    /// The descriptions for the files of several workers, and the number of places that were looked up.
    fn told(workers: &[Vec<PathBuf>]) -> (Vec<String>, usize) {
        let machine = MadeUp::new();
        let mut survey = Survey::new(&machine);
        workers.iter().for_each(|names| survey.add_files(&Names::from(names.clone())));
        let known = survey.known.len();
        (survey.targets.into_iter().map(|target| target.facts()[0].1.clone()).collect(), known)
    }

    fn files(directory: &Path, count: usize) -> Vec<PathBuf> {
        (0..count).map(|number| directory.join(format!("f{number}"))).collect()
    }

    #[test]
    fn each_file_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let name = |words: &str| vec![format!("{}/{words}", dir.path().display())];
        let two = files(dir.path(), 2);
        assert_eq!(told(&[two.clone(), two.clone(), vec![two[1].clone()]]), (name("f0 and 1 more"), 1));
        assert_eq!(told(&[files(dir.path(), 1), files(dir.path(), 1)]), (name("f0"), 1));
        assert_eq!(told(&[files(dir.path(), 300), files(dir.path(), 300)]), (name("f0 and more"), 1));
        let many: Vec<_> = files(dir.path(), 3000).chunks(3).map(<[PathBuf]>::to_vec).collect();
        assert_eq!(told(&many), (name("f0 and more"), 1), "and nobody is asked a thousand times");
    }

    #[test]
    fn a_device_has_no_file_system() {
        let machine = MadeUp::new();
        let mut survey = Survey::new(&machine);
        assert_eq!(survey.facts_of(Path::new("/dev/null")), []);
        let names: Vec<String> =
            survey.facts_of(Path::new("/proc/none")).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["file_system"]);
    }
}
