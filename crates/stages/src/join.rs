//! Which requests belong to which I/O, and how long its stages took.

use crate::area::{IoStamps, OldRequest};
use crate::kernel::{Device, Event, Sectors, What, is_of_commands};
use crate::log::Log;
use crate::places::Places;
use crate::requests::{Id, Part, Request, Requests};
use iolite_stats::{SlowIo, Stage, StageTimes, Unmatched};
use iolite_types::Direction;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;

/// What the collector knows about a worker before it begins.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Its files.
    pub files: Vec<String>,
    /// The stages that its engine tells; empty = the kernel's records tell them.
    pub given: Vec<Stage>,
    /// Its I/Os begin before their submission (see `StageTimes::from_start`).
    pub from_start: bool,
    /// Threads of a library submit its I/Os.
    pub by_other_threads: bool,
    /// Its engine passes commands to devices, past the block layer.
    pub passes_commands: bool,
    /// Where each I/O with its stages goes.
    pub log: Option<PathBuf>,
}

impl Observed {
    /// Its stages before its first I/O.
    pub(crate) fn no_times(&self) -> StageTimes {
        StageTimes::new(self.stages(), self.from_start)
    }

    /// The stages of its I/Os.
    pub(crate) fn stages(&self) -> &[Stage] {
        if self.given.is_empty() { &Stage::OF_BLOCK_DEVICES } else { &self.given }
    }
}

/// The stamps of two clock readings on different CPUs may differ by this much.
const CLOCK_SKEW_NS: u64 = 1_000;

/// Behind the return of a call, its thread may make the next one at once.
const CALL_SKEW_NS: u64 = 100;

/// For how long requests of other threads are kept for an I/O that asks for its place.
const KEPT_NS: u64 = 10_000_000_000;

/// A request that a worker's thread started.
#[derive(Clone, Copy, Debug)]
struct Own {
    request: Id,
    queued: u64,
    /// The unit that the thread was submitting; `None` = unknown.
    unit: Option<u32>,
    /// Sectors that the thread had started before.
    before: u64,
    /// An I/O has taken it.
    is_taken: bool,
}

/// Several I/Os that one call submitted.
#[derive(Clone, Copy, Debug)]
struct Commit {
    /// Sectors that the thread had started before the call.
    base: u64,
    /// The call started exactly the sectors of its I/Os, so that each of them has its place.
    is_exact: bool,
    /// Sectors of its I/Os that have not been reaped.
    left: u64,
}

/// What is known about one worker.
#[derive(Debug, Default)]
struct Worker {
    observed: Observed,
    own: VecDeque<Own>,
    /// All sectors that its thread has started.
    sectors: u64,
    /// Calls with several I/Os, by the time at which they returned.
    commits: BTreeMap<u64, Commit>,
    /// The kernel says which unit it submits.
    has_ring: bool,
    /// Units that went on to a thread of the kernel, and when.
    handed_on: HashMap<u32, u64>,
    times: [Option<Box<StageTimes>>; 3],
    log: Option<Rc<Log>>,
}

/// Joins the records.
#[derive(Debug)]
pub(crate) struct Joiner {
    requests: Requests,
    workers: Vec<Worker>,
    /// The workers' threads.
    threads: HashMap<i32, usize>,
    /// Rings of io_uring, and whose they are.
    rings: HashMap<u64, usize>,
    /// The unit that a thread is submitting.
    submitting: HashMap<i32, (usize, u32)>,
    /// Requests of other threads, by their sectors, and in the order of time.
    others: HashMap<(Device, u64), Vec<(Id, Sectors)>>,
    others_in_order: VecDeque<(u64, Device, u64, Id)>,
    places: Places,
    /// When records were lost: from, until.
    losses: VecDeque<(u64, u64)>,
    pub lost_records: u64,
    /// When the first I/O began.
    base: Option<u64>,
}

impl Joiner {
    pub(crate) fn new(observed: Vec<Observed>, places: Places, logs: &BTreeMap<PathBuf, Rc<Log>>) -> Joiner {
        let worker = |observed: Observed| {
            let log = observed.log.as_ref().and_then(|path| logs.get(path)).cloned();
            Worker { observed, log, ..Worker::default() }
        };
        Joiner {
            requests: Requests::default(),
            workers: observed.into_iter().map(worker).collect(),
            threads: HashMap::new(),
            rings: HashMap::new(),
            submitting: HashMap::new(),
            others: HashMap::new(),
            others_in_order: VecDeque::new(),
            places,
            losses: VecDeque::new(),
            lost_records: 0,
            base: None,
        }
    }

    /// A worker issues its I/Os in this thread.
    pub(crate) fn begins(&mut self, worker: usize, thread: i32) {
        self.threads.insert(thread, worker);
    }

    /// Records were lost between these times.
    pub(crate) fn lost(&mut self, records: u64, from: u64, until: u64) {
        const MOST: usize = 1024;
        // (Old kernels do not say how many.)
        self.lost_records += records.max(1);
        match self.losses.back_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => self.losses.push_back((from, until)),
        }
        if self.losses.len() > MOST
            && let Some((from, _)) = self.losses.pop_front()
        {
            // Rather too long a loss than a forgotten one.
            self.losses[0].0 = from;
        }
    }

    /// The next record of the kernel.
    pub(crate) fn event(&mut self, event: &Event) {
        let Event { time, thread, ref what } = *event;
        match *what {
            What::RingMade { ring } => {
                if let Some(&worker) = self.threads.get(&thread) {
                    self.rings.insert(ring, worker);
                    self.workers[worker].has_ring = true;
                }
            }
            What::Submitted { ring, unit } => {
                if let Some(&worker) = self.rings.get(&ring) {
                    self.submitting.insert(thread, (worker, unit));
                }
            }
            What::HandedOn { ring, unit } => {
                if let Some(&worker) = self.rings.get(&ring) {
                    self.workers[worker].handed_on.insert(unit, time);
                }
            }
            _ => {
                let Some(request) = self.requests.see(time, what) else { return };
                let (What::Queued(device, sectors) | What::Commanded(device, sectors)) = *what else {
                    return;
                };
                self.owned(request, time, thread, device, sectors);
            }
        }
    }

    /// Notes whose a new request is.
    fn owned(&mut self, request: Id, time: u64, thread: i32, device: Device, sectors: Sectors) {
        let submitting = self.submitting.get(&thread).copied();
        let Some(worker) = submitting.map(|it| it.0).or_else(|| self.threads.get(&thread).copied()) else {
            if self.places.are_asked_for() {
                self.others.entry((device, sectors.first)).or_default().push((request, sectors));
                self.others_in_order.push_back((time, device, sectors.first, request));
                self.forget_others(time.saturating_sub(KEPT_NS));
            } else {
                self.requests.forget(request);
            }
            return;
        };
        /// Requests that no I/O has asked for, such as those of syncs and of metadata.
        const MOST_LEFT_OVER: usize = 1 << 16;
        let worker = &mut self.workers[worker];
        // What goes through the block layer becomes a command as well.
        if worker.observed.passes_commands != is_of_commands(device) {
            self.requests.forget(request);
            return;
        }
        let unit = submitting.map(|it| it.1);
        worker.own.push_back(Own { request, queued: time, unit, before: worker.sectors, is_taken: false });
        worker.sectors += sectors.count();
        if worker.own.len() > MOST_LEFT_OVER
            && let Some(oldest) = worker.own.pop_front()
            && !oldest.is_taken
        {
            self.requests.forget(oldest.request);
        }
    }

    /// Forgets requests of other threads that are older than this.
    fn forget_others(&mut self, than: u64) {
        const MOST: usize = 1 << 18;
        while let Some(&(time, device, first, request)) = self.others_in_order.front()
            && (time < than || self.others_in_order.len() > MOST)
        {
            self.others_in_order.pop_front();
            if let Some(there) = self.others.get_mut(&(device, first)) {
                let known = there.len();
                there.retain(|(id, _)| *id != request);
                let is_there = there.len() < known;
                if there.is_empty() {
                    self.others.remove(&(device, first));
                }
                if is_there {
                    self.requests.forget(request);
                }
            }
        }
    }

    /// The stamps of an I/O that was reaped. All records until then have been seen.
    pub(crate) fn reaped(&mut self, worker: usize, io: &IoStamps) {
        let base = *self.base.get_or_insert(io.began);
        let known = &mut self.workers[worker];
        let direction = Direction::ALL[io.direction as usize];
        let times = known.times[io.direction as usize].take();
        let mut times = times.unwrap_or_else(|| Box::new(known.observed.no_times()));
        let found = match io.stamps_given {
            0 => self.find(worker, io),
            IoStamps::UNTOLD => Err(Unmatched::Untold),
            _ => Ok(Some(Found::given(io))),
        };
        match found {
            Ok(Some(found)) => {
                if let Some(log) = &self.workers[worker].log {
                    log.write(io, &found.stages[..found.count], base);
                }
                times.split += u64::from(found.is_split);
                times.merged += u64::from(found.is_merged);
                let file = &self.workers[worker].observed.files;
                times.record(&found.stages[..found.count], io.completed.saturating_sub(base), || SlowIo {
                    offset: io.offset,
                    length: io.length,
                    file: file.get(io.file as usize).cloned().unwrap_or_default(),
                    direction: Some(direction),
                    ..SlowIo::default()
                });
            }
            Ok(None) => times.without_device += 1,
            Err(why) => times.not_matched(why, 1),
        }
        self.workers[worker].times[io.direction as usize] = Some(times);
    }

    /// Finds the requests of an I/O: `None` = it had none.
    fn find(&mut self, worker: usize, io: &IoStamps) -> Result<Option<Found>, Unmatched> {
        let mine = self.take_own(worker, io)?;
        if mine.is_empty() {
            return self.find_by_place(worker, io);
        }
        let mut latest: Option<(u64, Part)> = None;
        let (mut parts, mut is_merged, mut overlaps, mut is_open) = (0, false, false, false);
        for id in &mine {
            let request = self.requests.get(*id);
            overlaps |= request.overlaps;
            is_open |= !request.is_complete();
            // What was read ahead may come later than what the I/O waited for.
            for part in request.parts.iter().filter(|part| part.completed <= io.completed + CLOCK_SKEW_NS) {
                parts += 1;
                is_merged |= request.merged;
                if latest.is_none_or(|(_, known)| known.completed < part.completed) {
                    latest = Some((request.queued, *part));
                }
            }
        }
        mine.into_iter().for_each(|id| self.requests.forget(id));
        let lost = self.has_lost(io);
        match latest {
            Some(_) if overlaps => Err(Unmatched::Overlap),
            Some((_, part)) if part.issued == 0 => Err(Unmatched::Lost),
            Some(_) if is_open && lost => Err(Unmatched::Lost),
            Some((queued, part)) => {
                Found::of_blocks(io, queued, part, parts > 1, is_merged).map(Some).ok_or(Unmatched::Order)
            }
            None if overlaps => Err(Unmatched::Overlap),
            None if lost => Err(Unmatched::Lost),
            // It did not wait for what it started.
            None => Ok(None),
        }
    }

    fn has_lost(&self, io: &IoStamps) -> bool {
        let late = self.losses.iter().rev().take_while(|(_, until)| *until >= io.began);
        late.into_iter().any(|&(from, _)| from <= io.completed)
    }

    /// Takes the requests that the worker's thread, or a thread of its ring, started for this I/O.
    fn take_own(&mut self, worker: usize, io: &IoStamps) -> Result<Vec<Id>, Unmatched> {
        let lost = self.has_lost(io);
        let worker = &mut self.workers[worker];
        let is_queued = io.submitted > 0;
        let by_unit = is_queued && worker.has_ring;
        let until = match (is_queued, by_unit) {
            // The next call may follow at once.
            (true, false) => io.submitted + CALL_SKEW_NS,
            _ => io.completed + CLOCK_SKEW_NS,
        };
        // They are in the order of time.
        let from = io.began.saturating_sub(CLOCK_SKEW_NS);
        let first = worker.own.partition_point(|own| own.queued < from);
        let end = worker.own.partition_point(|own| own.queued <= until);
        let of_commit = is_queued && !by_unit && io.together > 0;
        let mut is_exact = true;
        let mut range = Sectors { first: 0, end: u64::MAX };
        if of_commit {
            // The first of them that is reaped still sees the requests of all.
            let commit = *worker.commits.entry(io.submitted).or_insert_with(|| {
                let all = worker.own.range(first..end);
                let base = all.clone().map(|own| own.before).min().unwrap_or(worker.sectors);
                let sectors: u64 = all.map(|own| self.requests.get(own.request).sectors).sum();
                let together = u64::from(io.together);
                Commit { base, is_exact: sectors == together, left: together }
            });
            is_exact = commit.is_exact;
            let own = commit.base + u64::from(io.before);
            range = Sectors { first: own, end: own + io.length.div_ceil(512) };
            let left = commit.left.saturating_sub(range.count());
            if left == 0 {
                worker.commits.remove(&io.submitted);
            } else if let Some(commit) = worker.commits.get_mut(&io.submitted) {
                commit.left = left;
            }
        }
        let mut mine = Vec::new();
        for own in worker.own.range_mut(first..end).filter(|own| !own.is_taken) {
            if (!by_unit || own.unit == Some(io.unit)) && (range.first..range.end).contains(&own.before) {
                own.is_taken = true;
                mine.push(own.request);
            }
        }
        // A thread that waits for each I/O has nothing left from before this one, unless it was no I/O of the job.
        while let Some(own) = worker.own.front()
            && (own.is_taken || (!is_queued && own.queued < from))
        {
            if !own.is_taken {
                self.requests.forget(own.request);
            }
            worker.own.pop_front();
        }
        if is_exact {
            return Ok(mine);
        }
        mine.into_iter().for_each(|id| self.requests.forget(id));
        Err(if lost { Unmatched::Lost } else { Unmatched::Batch })
    }

    /// Finds the request of an I/O that another thread has started, by its place on the device.
    fn find_by_place(&mut self, worker: usize, io: &IoStamps) -> Result<Option<Found>, Unmatched> {
        let known = &self.workers[worker];
        let handed_on = known.handed_on.get(&io.unit).is_some_and(|&time| time >= io.began);
        let by_another = known.observed.by_other_threads || handed_on;
        let place = known
            .observed
            .files
            .get(io.file as usize)
            .and_then(|file| self.places.of(file, io.offset, io.length));
        let unknown = || match (self.has_lost(io), by_another) {
            (true, _) => Err(Unmatched::Lost),
            (false, true) => Err(Unmatched::Thread),
            (false, false) => Ok(None),
        };
        let Some((device, sectors)) = place else { return unknown() };
        let Some(there) = self.others.get(&(device, sectors.first)) else { return unknown() };
        let fits = |request: &Request| {
            request.queued + CLOCK_SKEW_NS >= io.began
                && request.is_complete()
                && request.parts.iter().all(|part| part.completed <= io.completed + CLOCK_SKEW_NS)
        };
        let mut fitting = there
            .iter()
            .filter(|(id, touched)| touched.count() <= sectors.count() && fits(self.requests.get(*id)));
        let Some(&(id, _)) = fitting.next() else { return unknown() };
        let request = self.requests.get(id);
        if fitting.next().is_some() || request.overlaps {
            return Err(Unmatched::Overlap);
        }
        let Some(&part) = request.parts.iter().max_by_key(|part| part.completed) else { return unknown() };
        if part.issued == 0 {
            return Err(Unmatched::Lost);
        }
        // A thread of the kernel starts what was held back: that is not the time of the submission.
        let is_held_back = !by_another;
        let queued = if is_held_back { io.began } else { request.queued };
        let (is_split, is_merged) = (request.parts.len() > 1, request.merged);
        Found::of_blocks(io, queued, part, is_split, is_merged).map(Some).ok_or(Unmatched::Order)
    }

    /// The results of a worker.
    pub(crate) fn times_of(&self, worker: usize) -> [Option<Box<StageTimes>>; 3] {
        let lost = self.lost_records;
        let mut times = self.workers[worker].times.clone();
        times.iter_mut().flatten().for_each(|times| times.lost_records = lost);
        times
    }

    /// The sums of a worker's stages, per direction.
    pub(crate) fn sums_of(&self, worker: usize) -> [(u64, [u64; Stage::MOST]); 3] {
        self.workers[worker].times.each_ref().map(|times| {
            let mut sums = [0; Stage::MOST];
            let Some(times) = times else { return (0, sums) };
            for (to, stage) in sums.iter_mut().zip(&times.stages) {
                *to = stage.latency.moments.sum as u64;
            }
            (times.whole.moments.count, sums)
        })
    }

    /// The oldest request of a worker in flight, if the block layer got it before `than`.
    pub(crate) fn old_request(&self, worker: usize, than: u64) -> Option<OldRequest> {
        let before = self.workers[worker].own.iter().take_while(|own| own.queued < than);
        let mut open = before.filter(|own| !own.is_taken && !self.requests.get(own.request).is_complete());
        let oldest = open.next()?;
        Some(OldRequest { queued: oldest.queued, is_issued: self.requests.is_issued(oldest.request) })
    }
}

/// The stages of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    stages: [u64; 5],
    count: usize,
    is_split: bool,
    is_merged: bool,
}

impl Found {
    /// The stages that the engine has told.
    fn given(io: &IoStamps) -> Found {
        let count = io.stamps_given as usize;
        let mut stages = [0; 5];
        let mut last = io.began;
        for (stage, &stamp) in stages.iter_mut().zip(&io.given[..count]) {
            let stamp = stamp.clamp(last, io.completed.max(last));
            *stage = stamp - last;
            last = stamp;
        }
        stages[count] = io.completed.saturating_sub(last);
        Found { stages, count: count + 1, is_split: false, is_merged: false }
    }

    /// The stages of a block device; `None` = the stamps contradict each other.
    fn of_blocks(io: &IoStamps, queued: u64, part: Part, is_split: bool, is_merged: bool) -> Option<Found> {
        let stamps = [io.began, queued, part.issued, part.completed, io.completed];
        let mut stages = [0; 5];
        let mut last = stamps[0];
        for (stage, stamp) in stages.iter_mut().zip(&stamps[1..]) {
            if *stamp + CLOCK_SKEW_NS < last {
                return None;
            }
            let stamp = (*stamp).clamp(last, io.completed.max(last));
            *stage = stamp - last;
            last = stamp;
        }
        Some(Found { stages, count: 4, is_split, is_merged })
    }
}

#[cfg(test)]
#[path = "join_tests.rs"]
mod tests;
