//! Finds the other workers that write to the places that a worker verifies.
//!
//! Rivals are the workers that write to the same bytes of the same file while a worker runs, or that did so in the run
//! whose data is only checked now. While they run, they take turns, and each place has an owner
//! ([`Owners`](iolite_verify::Owners)), so each worker can identify its own data. The last writer in an earlier run is
//! not known: then all of them must write in the same way ([`Imprint`]). Cases that cannot be decided are refused here,
//! before any file is touched.

use super::imprint::Imprint;
use super::spec::kind;
use super::state::path;
use crate::storages::{Namespace, Namespaces};
use crate::{FileKind, FileLayout, JobPlan, Layout, Plan, Problem, WorkerPlan};
use iolite_host::{FileKey, Identity, Machine};
use iolite_options::JobOptions;
use iolite_types::Direction;
use iolite_verify::block::Kind;
use iolite_verify::{Extent, FileRivals, LARGEST_GRANULE, MOST_GRANULES, Rivals};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The rivals of all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rivalries {
    /// The rivals of each worker, by its index in the plan. Empty = no worker has rivals.
    workers: Vec<Rivals>,
    /// The places that several workers write to at the same time. Rivals name them by their index here.
    pub shared: Vec<Extent>,
}

impl Rivalries {
    /// Finds the rivals of all workers.
    ///
    /// # Errors
    ///
    /// Jobs conflict, so that the correct data cannot be determined.
    pub fn of(plan: &Plan, layouts: &[Layout], machine: &dyn Machine) -> Result<Rivalries, Vec<Problem>> {
        let found = Rivalries::default();
        if !plan.jobs.iter().any(|job| job.options.verification.is_on()) {
            return Ok(found);
        }
        let mut search = Search { plan, layouts, found, problems: Vec::new() };
        search.found.workers = vec![Rivals::default(); plan.workers.len()];
        search.everywhere(machine);
        search.unknown_files();
        if search.problems.is_empty() { Ok(search.found) } else { Err(search.problems) }
    }

    /// The rivals of a worker.
    pub fn of_worker(&self, worker: usize) -> &Rivals {
        static NONE: Rivals = Rivals { files: BTreeMap::new() };
        self.workers.get(worker).unwrap_or(&NONE)
    }
}

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// A file or device of this machine, whatever its names.
    Local(FileKey),
    /// The object with this name in an engine's own storage.
    Own(Namespace, PathBuf),
}

/// A part of a file that a worker uses.
#[derive(Clone, Copy, Debug)]
struct Party {
    worker: usize,
    file: usize,
    start: u64,
    end: u64,
    /// The file or node itself: a device may have several nodes.
    node: Option<Identity>,
}

impl Party {
    fn meets(&self, other: &Party) -> bool {
        self.start < other.end && other.start < self.end
    }
}

struct Search<'a> {
    plan: &'a Plan,
    layouts: &'a [Layout],
    found: Rivalries,
    problems: Vec<Problem>,
}

impl<'a> Search<'a> {
    fn everywhere(&mut self, machine: &dyn Machine) {
        let mut numbers: HashMap<Place, usize> = HashMap::new();
        let mut of_path: HashMap<(Namespace, &Path), usize> = HashMap::new();
        let mut namespaces = Namespaces::default();
        let mut places: Vec<Vec<Party>> = Vec::new();
        for (worker, layout) in self.layouts.iter().enumerate() {
            let job = self.plan.job_of(&self.plan.workers[worker]);
            let Some(namespace) = namespaces.of(job) else { continue };
            let holds_data = |file: &FileLayout| match file.kind {
                FileKind::Regular | FileKind::Block => true,
                FileKind::Char => {
                    matches!(machine.file(&file.path), Ok(Some(facts)) if facts.is_storage_device())
                }
                FileKind::Pipe => false,
            };
            for (file, at) in layout.files.iter().enumerate().filter(|(_, file)| holds_data(file)) {
                let next = numbers.len();
                let key = || match namespace {
                    Namespace::LOCAL => Place::Local(machine.key(&at.path)),
                    own => Place::Own(own, at.path.clone()),
                };
                let identify = || *numbers.entry(key()).or_insert(next);
                let place = *of_path.entry((namespace, &at.path)).or_insert_with(identify);
                places.resize_with(numbers.len(), Vec::new);
                let end = at.offset.saturating_add(at.length);
                let is_device = at.kind != FileKind::Regular && namespace == Namespace::LOCAL;
                let facts = if is_device { machine.file(&at.path).ok().flatten() } else { None };
                let node = facts.map(|facts| facts.identity);
                places[place].push(Party { worker, file, start: at.offset, end, node });
            }
        }
        for parties in places.iter().filter(|parties| parties.len() > 1) {
            self.at(parties);
        }
    }

    fn worker(&self, party: &Party) -> &'a WorkerPlan {
        &self.plan.workers[party.worker]
    }

    fn job(&self, party: &Party) -> &'a JobPlan {
        self.plan.job_of(self.worker(party))
    }

    /// Refuses replays whose files are not known: they could conflict with any worker.
    fn unknown_files(&mut self) {
        for one in &self.plan.workers {
            let job = self.plan.job_of(one);
            let is_live = one.replay.as_ref().is_some_and(|replay| replay.is_live);
            if !is_live || !checks_own(job) || !job.engine.facets.keeps_data() {
                continue;
            }
            let is_rival = |other: &&WorkerPlan| {
                let rival = self.plan.job_of(other);
                other.index != one.index
                    && self.plan.run_together(one.index, other.index)
                    && rival.options.changes_data()
                    && rival.engine.facets.data == job.engine.facets.data
            };
            if let Some(rival) = self.plan.workers.iter().find(is_rival) {
                let message = format!(
                    "read_iolog_chunked=1: which files the trace has is not known beforehand, so what verify reads back \
                     cannot be kept from what job {} writes at the same time; leave read_iolog_chunked out, or let it \
                     wait (stonewall, wait_for)",
                    self.plan.job_of(rival).options.name
                );
                self.refuse(one.index, "read_iolog_chunked", message);
            }
        }
    }

    /// Finds the rivals in one file.
    fn at(&mut self, parties: &[Party]) {
        let imprints: Vec<_> = parties
            .iter()
            .map(|party| {
                Imprint::of(self.job(party), self.worker(party), &self.layouts[party.worker], party.file)
            })
            .collect();
        let mut shared = vec![false; parties.len()];
        for (one, party) in parties.iter().enumerate() {
            if !verifies(self.job(party)) {
                continue;
            }
            for (other, rival) in parties.iter().enumerate().filter(|(_, rival)| party.meets(rival)) {
                if rival.worker == party.worker {
                    self.compare_own(party, rival);
                    continue;
                }
                let alike = imprints[one].is_some() && imprints[one] == imprints[other];
                shared[one] |= self.compare(party, rival, alike);
            }
        }
        let sharing: Vec<Party> =
            parties.iter().zip(shared).filter(|(_, shared)| *shared).map(|(party, _)| *party).collect();
        self.give_owners(&sharing);
    }

    /// Refuses a worker that has a file under two names: its writes under one name are unknown under the other.
    fn compare_own(&mut self, party: &Party, other: &Party) {
        let options = &self.job(party).options;
        if party.file < other.file && options.pattern.rw.writes() && checks_own(self.job(party)) {
            let names = (self.path(party), self.path(other));
            let what = if names.0 == names.1 {
                format!("{} is named twice", names.0)
            } else {
                format!("{} and {} are the same file", names.0, names.1)
            };
            let option = if self.worker(party).replay.is_some() { "read_iolog" } else { "filename" };
            let message = format!("{option}: {what}, and verify takes it for two; name it once");
            self.refuse(party.worker, option, message);
        }
    }

    /// Decides how a rival affects a worker. Returns whether they take turns.
    fn compare(&mut self, party: &Party, rival: &Party, alike: bool) -> bool {
        let (job, other) = (&self.job(party).options, &self.job(rival).options);
        let now = self.plan.run_together(party.worker, rival.worker);
        let (changes, is_changed) = (job.changes_data(), now && other.changes_data());
        let before =
            is_of_before(job) && is_of_before(other) && !self.plan.waits_for(party.worker, rival.worker);
        let before = before && self.wave(party) <= self.wave(rival);
        if is_changed && checks_own(self.job(party)) && !verifies(self.job(rival)) {
            self.refuse_stranger(party, rival);
        }
        if now && self.empties(party) && self.empties(rival) {
            self.refuse_shared_zones(party, rival);
            return false;
        }
        let (trims, is_trimmed) = (self.trims(party), self.trims(rival));
        let differ = !alike || trims || is_trimmed;
        if before && checks_own(self.job(party)) && differ {
            self.refuse_unlike(party, rival);
        }
        if is_changed || before {
            let worker = &self.plan.workers[rival.worker];
            let state = path(self.job(rival), worker);
            let name = self.path(rival);
            let rivals = self.rivals(party);
            rivals.numbers.insert(worker.number());
            rivals.states.extend(before.then_some((state, name)));
            rivals.differ |= differ;
            rivals.trim |= is_trimmed;
        }
        now && verifies(self.job(rival)) && (changes || is_changed)
    }

    fn rivals(&mut self, party: &Party) -> &mut FileRivals {
        self.found.workers[party.worker].files.entry(party.file).or_default()
    }

    fn wave(&self, party: &Party) -> u32 {
        self.plan.workers[party.worker].wave
    }

    /// Adds a file that these workers share to the places with owners.
    fn give_owners(&mut self, sharing: &[Party]) {
        let is_local = |party: &Party| self.job(party).engine.facets.has_local_files();
        if !sharing.iter().all(is_local) {
            sharing.iter().for_each(|party| self.refuse_turns(party));
            return;
        }
        let by_other_node = |party: &Party| {
            let other = sharing.iter().find(|other| party.meets(other) && party.node != other.node)?;
            Some((*party, *other))
        };
        let pairs: Vec<_> = sharing.iter().filter_map(by_other_node).collect();
        if !pairs.is_empty() {
            pairs.iter().for_each(|(party, other)| self.refuse_nodes(party, other));
            return;
        }
        let smallest = sharing.iter().map(|party| self.smallest_change(party)).min();
        let Some(smallest) = smallest else { return };
        // The largest power of two up to that size.
        let granule = (1 << smallest.ilog2()).min(LARGEST_GRANULE);
        let start = sharing.iter().map(|party| party.start).min().unwrap_or(0);
        let end = sharing.iter().map(|party| party.end).max().unwrap_or(0);
        let extent = Extent { start, end, granule };
        let is_mapped = extent.granules() <= MOST_GRANULES;
        let place = is_mapped.then_some(self.found.shared.len());
        for party in sharing {
            let rivals = self.rivals(party);
            rivals.shared = Some(place);
            if !is_mapped && rivals.differ && checks_own(self.job(party)) {
                self.refuse_endless(party);
            }
        }
        if is_mapped {
            self.found.shared.push(extent);
        }
    }

    /// Refuses a worker that would have to take turns in its engine's own storage: turns are locks on local files.
    fn refuse_turns(&mut self, party: &Party) {
        let (name, engine) = (self.path(party), self.job(party).engine.name);
        let message = format!(
            "verify: several workers write to {name} at the same time, and cannot take turns where ioengine={engine} has \
             its data; give each a part (offset, size) or a name of its own, or let them wait (stonewall, wait_for)"
        );
        self.refuse(party.worker, "verify", message);
    }

    /// Refuses a worker that would have to take turns with one that uses another node of the device: turns are locks on
    /// a node.
    fn refuse_nodes(&mut self, party: &Party, other: &Party) {
        let message = format!(
            "verify: job {} uses the same device by {} at the same time, and the two nodes cannot take turns; name one node in \
             both, give each a part (offset, size), or let one wait (stonewall, wait_for)",
            self.job(other).options.name,
            self.path(other)
        );
        self.refuse(party.worker, "verify", message);
    }

    /// Bytes of the smallest write or trim of a worker.
    fn smallest_change(&self, party: &Party) -> u64 {
        let Some(replay) = &self.worker(party).replay else {
            return self.job(party).options.smallest_block();
        };
        let smallest = [Direction::Write, Direction::Trim].map(|direction| replay.blocks[direction].smallest);
        smallest.into_iter().filter(|&bytes| bytes > 0).min().unwrap_or(LARGEST_GRANULE)
    }

    /// Whether a worker trims.
    fn trims(&self, party: &Party) -> bool {
        let of_trace = self.worker(party).replay.as_ref().is_some_and(|it| it.ios[Direction::Trim] > 0);
        let options = &self.job(party).options;
        of_trace || options.pattern.rw.trims() || options.verification.trim_percentage > 0
    }

    /// Whether a worker begins by resetting its zones.
    fn empties(&self, party: &Party) -> bool {
        let is_zoned = self.layouts[party.worker].files[party.file].zoned.is_some();
        let options = &self.job(party).options;
        is_zoned && verifies(self.job(party)) && options.pattern.rw.writes() && options.changes_data()
    }

    fn refuse_shared_zones(&mut self, party: &Party, rival: &Party) {
        let (job, other) = (&self.job(party).options, &self.job(rival).options);
        let who =
            if job.name == other.name { "another clone".to_owned() } else { format!("job {}", other.name) };
        let message = format!(
            "verify: with zonemode=zbd, what is verified is written to empty zones, and {who} empties those of {} as well; \
             give each its own zones (offset_increment=, offset=, size=), or let it wait (stonewall, wait_for)",
            self.path(party)
        );
        self.refuse(party.worker, "verify", message);
    }

    fn refuse_stranger(&mut self, party: &Party, rival: &Party) {
        let (other, file) = (&self.job(rival).options, self.path(party));
        let does = if other.pattern.rw.writes() { "writes to" } else { "trims" };
        let message = format!(
            "verify: job {} {does} {file} without verify, while this one checks what it wrote there; give it a verify as \
             well, another part (offset, size) or another file, or let it wait (stonewall, wait_for)",
            other.name
        );
        self.refuse(party.worker, "verify", message);
    }

    fn refuse_unlike(&mut self, party: &Party, rival: &Party) {
        let (job, other, file) = (&self.job(party).options, &self.job(rival).options, self.path(party));
        let who =
            if job.name == other.name { "another clone".to_owned() } else { format!("job {}", other.name) };
        let option = if job.loads_state() { "verify_state_load" } else { "verify_only" };
        let message = format!(
            "{option}: {who} wrote to {file} as well, and nobody can say afterwards whose blocks are whole: that takes \
             the same verify, blocks and offsets that are multiples of one verify_interval, no %o in a verify_pattern \
             (or a verify_pattern_interval), and no trims; check in the run that writes, or give each a part \
             (offset_increment) or a file of its own",
        );
        self.refuse(party.worker, option, message);
    }

    fn refuse_endless(&mut self, party: &Party) {
        let message = format!(
            "verify: others write to {} as well, in other blocks, and it has no end; give a size",
            self.path(party)
        );
        self.refuse(party.worker, "verify", message);
    }

    fn path(&self, party: &Party) -> String {
        self.layouts[party.worker].files[party.file].path.display().to_string()
    }

    fn refuse(&mut self, worker: usize, option: &str, message: String) {
        let options = &self.plan.job_of(&self.plan.workers[worker]).options;
        let problem = Problem::of(options, option, message);
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

fn verifies(job: &JobPlan) -> bool {
    job.options.verification.is_on()
}

/// Whether the job checks its own writes, or those of an earlier run. With `verify=null` it only reads them, but
/// trimmed blocks must be zeros.
fn checks_own(job: &JobPlan) -> bool {
    let wanted = &job.options.verification;
    let checks_blocks = kind(&job.options) != Some(Kind::Null);
    let checks_trims = wanted.trim_percentage > 0 && wanted.trim_verify_zero;
    job.options.reads_back() && (checks_blocks || checks_trims)
}

/// Whether the job describes an earlier run, whose writes it checks.
fn is_of_before(options: &JobOptions) -> bool {
    options.loads_state() || options.verification.is_on() && options.skips_writes()
}
