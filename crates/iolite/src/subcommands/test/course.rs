//! The course of a test: each target is filled and probed, then the cases are run, of several targets in turns.

use super::cases::{self, Case, DEPTHS, FIRST, Pace, Place, SIZES, Shape};
use super::own_directory::OwnDirectory;
use super::remote::{Layout, OwnNames, POOL_OBJECT, Remote};
use super::rows::{self, Row};
use super::target::{Kind, Target};
use super::{Outcome, output};
use crate::run_series::foresight::Foresight;
use crate::subcommands::performer::{self, End, NAME};
use crate::subcommands::progress::Progress;
use iolite_compare::{Comparison, FEWEST, Run, Side};
use iolite_findings::{Finding, Role, Subject, findings, meaning};
use iolite_host::Mounts;
use iolite_options::RunOptions;
use iolite_os::signals::SignalQueue;
use iolite_page::text::{bandwidth, bytes, count, latency, seconds};
use iolite_summary::Stages;
use serde_json::Value;
use std::time::Instant;

/// A shape is as good as the best one from this share of its bandwidth: probes are short.
const AS_GOOD: f64 = 0.95;
/// The least that must have been written in the time for filling.
const LEAST_FILLED: u64 = 1 << 20;

/// What was measured on a target.
pub struct Measured {
    pub target: Target,
    pub place: Place,
    /// What is known of it, with its cases.
    pub subject: Subject,
    /// The cases, each with the report of the round in the middle.
    pub reports: Vec<(Case, Value)>,
    /// All rounds, as one report each.
    rounds: Vec<Value>,
    pub findings: Vec<Finding>,
    pub meaning: Vec<String>,
}

impl Measured {
    /// The rows of all cases.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.reports
            .iter()
            .zip(&self.subject.cases)
            .flat_map(|((case, _), found)| rows::of(case, &found.measured))
    }
}

/// A target during the test.
struct Site {
    target: Target,
    own: Option<OwnDirectory>,
    /// Names of the test on a server.
    names: Option<OwnNames>,
    place: Place,
    subject: Subject,
    done: Vec<Done>,
}

/// A case that has been run.
struct Done {
    case: Case,
    report: Value,
    flushes: Option<u64>,
    measured: iolite_findings::Measured,
}

/// Why a course ends early.
enum Stop {
    Interrupted,
    Failed(String),
}

impl From<String> for Stop {
    fn from(why: String) -> Stop {
        Stop::Failed(why)
    }
}

/// A test.
pub struct Course<'a> {
    targets: Vec<Target>,
    pace: &'a Pace,
    /// How often each case is run.
    rounds: usize,
    progress: Progress,
    /// From now on, signals end the test in order.
    signals: SignalQueue,
    failures: Vec<String>,
    begun: Instant,
}

impl<'a> Course<'a> {
    pub fn new(program: &str, targets: Vec<Target>, pace: &'a Pace) -> Result<Course<'a>, String> {
        let signals = SignalQueue::of_those_not_ignored(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])
            .map_err(|error| format!("signals cannot be received: {error}"))?;
        let rounds = if targets.len() > 1 { FEWEST } else { 1 };
        Ok(Course {
            targets,
            pace,
            rounds,
            progress: Progress::new(program, "test"),
            signals,
            failures: Vec::new(),
            begun: Instant::now(),
        })
    }

    /// Performs it. `None` = it was interrupted. The files of the test are removed in either case.
    pub fn perform(mut self) -> Result<Option<Outcome>, String> {
        let mut sites = Vec::new();
        let course = self.run(&mut sites);
        self.progress.clear();
        for site in &mut sites {
            if let Some(Err(why)) = site.names.take().map(OwnNames::remove) {
                self.progress
                    .tell(&format!("{}: not all of the test could be removed: {why}", site.target.name));
            }
            let own = site.own.take().map(|own| own.path.clone());
            if let Some(path) = own.filter(|path| path.exists()) {
                self.progress
                    .tell(&format!("{}: this directory of the test could not be removed", path.display()));
            }
        }
        match course {
            Ok(()) => {}
            Err(Stop::Interrupted) => {
                self.progress.tell("interrupted; the files of the test are removed");
                return Ok(None);
            }
            Err(Stop::Failed(why)) => return Err(why),
        }
        let results: Vec<Measured> = sites.into_iter().map(Site::measured).collect();
        let comparison = compared(&results)?;
        Ok(Some(Outcome {
            results,
            comparison,
            failures: self.failures,
            kept: Vec::new(),
            broken: Vec::new(),
            seconds: self.begun.elapsed().as_secs_f64(),
        }))
    }

    fn run(&mut self, sites: &mut Vec<Site>) -> Result<(), Stop> {
        for target in self.targets.clone() {
            self.remove_left(&target)?;
            sites.push(self.site(target)?);
        }
        let pace = self.pace.in_rounds(self.rounds as u32);
        self.announce(sites, &pace);
        for site in sites.iter_mut() {
            self.fill(site)?;
            if site.place.has_objects() {
                continue;
            }
            site.place.read = self.probe(site, Role::Read)?;
            if site.place.may_write {
                site.place.write = self.probe(site, Role::Write)?;
            }
        }
        let plans: Vec<Vec<Case>> = sites.iter().map(|site| cases::main(&site.place, &pace)).collect();
        let longest = plans.iter().max_by_key(|plan| plan.len()).cloned().unwrap_or_default();
        // Files are made, looked up and removed in one go: the next round makes them again.
        let (names, others): (Vec<Case>, Vec<Case>) =
            longest.into_iter().partition(|case| case.role == Role::Names);
        let groups = others.into_iter().map(|case| vec![case.name]);
        let names: Vec<String> = names.into_iter().map(|case| case.name).collect();
        for group in groups.chain([names]) {
            for _ in 0..self.rounds {
                for (site, plan) in sites.iter_mut().zip(&plans) {
                    for case in plan.iter().filter(|case| group.contains(&case.name)) {
                        self.case(site, case.clone())?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Announces how much there is to do.
    fn announce(&mut self, sites: &[Site], pace: &Pace) {
        let (mut count, mut time) = (0, 0.0);
        for Site { place, .. } in sites {
            let probes = if place.has_objects() { 0 } else { 1 };
            let probes = probes * (1 + usize::from(place.may_write)) * (1 + DEPTHS.len() + SIZES.len());
            let cases = cases::main(place, pace);
            count += probes + cases.len() * self.rounds + usize::from(place.is_new && !place.has_objects());
            time += probes as f64 * pace.probe + if place.is_new { pace.fill } else { 0.0 };
            time += self.rounds as f64 * cases.iter().map(|case| case.seconds).sum::<f64>();
        }
        self.progress.expect(count);
        // In a steady state, cases end earlier.
        let about = if self.pace.is_steady { "at most" } else { "about" };
        let time = if time < 120.0 { time.ceil() } else { (time / 60.0).ceil() * 60.0 };
        self.progress.tell(&format!("this takes {about} {}", seconds(time)));
    }

    fn remove_left(&mut self, target: &Target) -> Result<(), Stop> {
        if let Some(remote) = target.remote.as_ref().filter(|remote| remote.layout != Layout::Disk) {
            let left = remote.left().map_err(|why| format!("{}: {why}", target.name))?;
            if !left.is_empty() {
                self.progress.tell(&format!(
                    "{}: another test is at work here, or was killed; if none is, iolite test --clean removes what it left",
                    target.name
                ));
            }
        }
        if target.kind != Kind::Directory {
            return Ok(());
        }
        for told in OwnDirectory::remove_left(&target.path, &super::own_directory::OF_TESTS)? {
            self.progress.tell(&told);
        }
        Ok(())
    }

    /// Makes what a target needs, and checks all of its cases, before anything is measured.
    fn site(&mut self, target: Target) -> Result<Site, Stop> {
        let own = target.own_directory()?;
        let names = target.own_names();
        let file = own.as_ref().map_or_else(|| target.own_file(), OwnDirectory::data);
        let mut place = target.place(file, self.pace)?;
        let refused = |place: &Place| {
            let mut foresight = Foresight::new(NAME);
            cases::all(place, self.pace).iter().find_map(|case| {
                let checked = performer::jobs(&case.section(false))
                    .map_err(|why| vec![why])
                    .and_then(|jobs| foresight.check(vec![jobs], &RunOptions::default()));
                checked.err()
            })
        };
        if refused(&place).is_some() && place.engine == "io_uring" {
            // A kernel, or a container, may have none.
            place.engine = "psync";
        }
        if let Some(why) = refused(&place) {
            return Err(Stop::Failed(format!("{}: {}", target.name, why.join("; "))));
        }
        let room = bytes(place.bytes as f64);
        let what = match target.kind {
            Kind::Directory => format!(
                "{}{}: the test writes at most {room}, a tenth of what is free or less, into {} and removes that at the end",
                target.name,
                Mounts::place_of(&target.path),
                place.directory().display()
            ),
            _ if target.is_destroyed => {
                format!("{}: the first {room} are overwritten; what is there is lost", target.name)
            }
            Kind::File => format!("{}: this file is only read", target.name),
            Kind::Device => format!("{}: this device is only read", target.name),
            Kind::Remote if names.is_some() => format!(
                "{}: the test writes names that begin with {}, at most {room}, and removes them at the end",
                target.name,
                place.file.display()
            ),
            Kind::Remote => format!("{}: this disk is only read", target.name),
        };
        self.progress.tell(&what);
        let subject = target.subject();
        Ok(Site { target, own, names, place, subject, done: Vec::new() })
    }

    /// Runs a case; `None` = it failed, which is remembered.
    fn perform_case(&mut self, site: &Site, case: &Case) -> Result<Option<Done>, Stop> {
        if self.signals.next().is_some() {
            return Err(Stop::Interrupted);
        }
        let name = match self.targets.len() {
            1 => case.name.clone(),
            _ => format!("{} on {}", case.name, site.target.name),
        };
        self.progress.begin(&format!("{name} ({})", case.what), case.seconds);
        let flushes = || site.target.disk().and_then(iolite_host::Disk::flushes);
        let before = flushes();
        let progress = &mut self.progress;
        let end = performer::perform(&case.section(false), site.done.is_empty(), &mut |snapshot| {
            progress.tick(snapshot);
        });
        let report = match end {
            End::Done(report) => *report,
            End::Interrupted => return Err(Stop::Interrupted),
            End::Failed(why) => {
                self.progress.tell(&format!("{name}: failed: {why}"));
                self.failures.push(format!("{name}: {why}"));
                return Ok(None);
            }
        };
        let flushes = before.zip(flushes()).map(|(before, after)| after.saturating_sub(before));
        let measured = iolite_findings::Measured::of(&report).map_err(|error| error.of(&name))?;
        if !case.is_probe() {
            let words = rows::of(case, &measured).iter().map(short).collect::<Vec<_>>().join("; ");
            self.progress.end(&words);
        }
        Ok(Some(Done { case: case.clone(), report, flushes, measured }))
    }

    /// Runs a case of the plan.
    fn case(&mut self, site: &mut Site, mut case: Case) -> Result<(), Stop> {
        if case.role == Role::Names && case.name != "create" {
            // As many as were made in the time.
            let made = site.done.iter().rfind(|done| done.case.name == "create");
            case.limit_files(made.and_then(|done| done.measured.main()).map_or(0, |flow| flow.ios as u64));
        }
        site.done.extend(self.perform_case(site, &case)?);
        Ok(())
    }

    /// Writes the file of the test for the first time. What was not written in the time is not used.
    fn fill(&mut self, site: &mut Site) -> Result<(), Stop> {
        if !site.place.is_new || site.place.has_objects() {
            return Ok(());
        }
        let case = cases::fill(&site.place, self.pace);
        let Some(done) = self.perform_case(site, &case)? else {
            return Err(Stop::Failed(format!("{}: it cannot be written to", site.target.name)));
        };
        let written = done.measured.main().map_or(0, |flow| flow.bytes as u64);
        let part =
            if site.place.remote.as_ref().is_some_and(Remote::is_pool) { POOL_OBJECT } else { 1 << 20 };
        site.place.bytes = site.place.bytes.min(written / part * part);
        if site.place.bytes < LEAST_FILLED {
            return Err(Stop::Failed(format!(
                "{}: only {} could be written in {} s, which is too little to measure",
                site.target.name,
                bytes(written as f64),
                self.pace.fill
            )));
        }
        site.done.push(done);
        Ok(())
    }

    /// Finds the smallest shape of sequential I/O that is as good as the best one.
    fn probe(&mut self, site: &Site, role: Role) -> Result<Shape, Stop> {
        let depths = DEPTHS.into_iter().map(|depth| Shape { depth, ..FIRST });
        let sizes = SIZES.into_iter().map(|bytes| Shape { bytes, ..FIRST });
        let mut tried: Vec<(Shape, f64)> = Vec::new();
        for shape in std::iter::once(FIRST).chain(depths).chain(sizes) {
            if shape.bytes > site.place.bytes {
                continue;
            }
            let case = cases::probe(role, &site.place, shape, self.pace);
            if let Some(done) = self.perform_case(site, &case)? {
                tried.push((shape, done.measured.figures.bandwidth));
            }
        }
        let best = tried.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let good = tried.iter().filter(|(_, rate)| *rate >= AS_GOOD * best);
        let smallest = good.min_by_key(|(shape, _)| (shape.bytes * u64::from(shape.depth), shape.depth));
        Ok(smallest.map_or(FIRST, |(shape, _)| *shape))
    }
}

/// The figures of a row, in a few words.
fn short(row: &Row) -> String {
    let moved = row.bandwidth.map(|moved| format!(", {}", bandwidth(moved))).unwrap_or_default();
    format!("{} IOPS{moved}, p99 {}", count(row.iops), latency(row.latency.p99))
}

/// Where the time of a random read goes.
fn whose_time(stages: &Stages) -> Option<String> {
    let [submit, queue, device, reap] = &stages.each[..] else { return None };
    let (name, share) = stages.tail()?;
    Some(format!(
        "A random read, one at a time, takes {} on average: {} in the device, {} on the way to it, {} on the way back; of the \
         slowest 0.1%, {:.0}% is {name}.",
        latency(stages.all.mean),
        latency(device.mean),
        latency(submit.mean + queue.mean),
        latency(reap.mean),
        100.0 * share
    ))
}

impl Site {
    fn measured(self) -> Measured {
        let Site { target, place, mut subject, done, .. } = self;
        let mut by_case: Vec<Vec<Done>> = Vec::new();
        for one in done {
            match by_case.iter_mut().find(|rounds| rounds[0].case.name == one.case.name) {
                Some(rounds) => rounds.push(one),
                None => by_case.push(vec![one]),
            }
        }
        let most = by_case.iter().map(Vec::len).max().unwrap_or(0);
        let rounds = (0..most).map(|round| {
            let reports = by_case.iter().filter_map(|rounds| rounds.get(round));
            output::combined("", &reports.map(|done| (&done.case, &done.report)).collect::<Vec<_>>())
        });
        let rounds = rounds.collect();
        let mut reports = Vec::new();
        for mut rounds in by_case {
            rounds.sort_by(|one, other| one.measured.figures.iops.total_cmp(&other.measured.figures.iops));
            let Done { case, report, flushes, measured } = rounds.swap_remove(rounds.len() / 2);
            subject.cases.push(iolite_findings::Case {
                name: case.name.clone(),
                role: case.role,
                depth: case.depth,
                workers: case.workers,
                is_direct: case.is_direct,
                flushes,
                measured,
            });
            reports.push((case, report));
        }
        let (findings, mut meaning) = (findings(&subject), meaning(&subject));
        let observed = reports.iter().filter(|(case, _)| case.role == Role::Stages);
        let stages = observed.filter_map(|(_, report)| Stages::of(report, 0, "read"));
        meaning.extend(stages.filter_map(|stages| whose_time(&stages)));
        Measured { target, place, subject, reports, rounds, findings, meaning }
    }
}

/// Compares several targets with the first one.
fn compared(results: &[Measured]) -> Result<Option<Comparison>, String> {
    if results.len() < 2 {
        return Ok(None);
    }
    let mut sides = Vec::new();
    for result in results {
        let runs: Result<Vec<Run>, _> = result
            .rounds
            .iter()
            .enumerate()
            .map(|(round, report)| Run::of(&format!("round {}", round + 1), report))
            .collect();
        sides.push(Side {
            name: result.target.name.clone(),
            runs: runs.map_err(|error| error.of(&result.target.name))?,
        });
    }
    // Each target has the shapes that are best for it.
    let allowed: Vec<String> = iolite_compare::may_differ().map(str::to_owned).collect();
    iolite_compare::compare(&sides, &[], &allowed).map(Some)
}
