//! What a run is on, for whoever reads its result later.

use iolite_host::{Machine, about};
use iolite_plan::Plan;
use iolite_stats::{Fact, Facts};

/// More places than these are not looked at: a report is no inventory.
const MOST_TARGETS: usize = 16;

/// The machine, and where the jobs' data is.
pub fn of(plan: &Plan, machine: &dyn Machine) -> Facts {
    let mut targets: Vec<Target> = Vec::new();
    for worker in &plan.workers {
        if targets.len() > MOST_TARGETS {
            break;
        }
        let engine = plan.job_of(worker).engine;
        if !engine.facets.has_local_files() {
            add(&mut targets, "engine", engine.name.to_owned(), Vec::new());
            continue;
        }
        for path in worker.files.places().take(MOST_TARGETS) {
            let mut facts = Vec::new();
            facts.extend(about::file_system(&path).map(|kind| ("file_system".to_owned(), kind)));
            facts.extend(machine.disk(&path).iter().flat_map(about::disk));
            add(&mut targets, "files", path.display().to_string(), facts);
        }
    }
    targets.truncate(MOST_TARGETS);
    Facts { host: about::this_host(), targets: targets.into_iter().map(Target::facts).collect() }
}

/// Things that lie in the same place.
struct Target {
    /// What they are: `files`, `engine`.
    what: &'static str,
    /// The name of the first.
    first: String,
    /// How many more there are.
    more: usize,
    facts: Vec<Fact>,
}

impl Target {
    fn facts(self) -> Vec<Fact> {
        let more = if self.more > 0 { format!(" and {} more", self.more) } else { String::new() };
        let name = (self.what.to_owned(), self.first + &more);
        std::iter::once(name).chain(self.facts).collect()
    }
}

/// Adds a thing to those that have the same facts, if there are some.
fn add(targets: &mut Vec<Target>, what: &'static str, name: String, facts: Vec<Fact>) {
    let is_engine = what == "engine";
    let same = targets
        .iter_mut()
        .find(|target| target.what == what && target.facts == facts && (!is_engine || target.first == name));
    match same {
        // Of several workers on one file, or of one engine, there is no more to say.
        Some(target) if target.first == name => {}
        Some(target) => target.more += 1,
        None => targets.push(Target { what, first: name, more: 0, facts }),
    }
}
