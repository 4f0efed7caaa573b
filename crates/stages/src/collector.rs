//! The collector: reads the rings of the kernel and of the workers, puts everything in order, and keeps the results.

use crate::area::{IoStamps, RECORDS, StageArea};
use crate::join::{Joiner, Observed};
use crate::kernel::{Decoder, Event};
use crate::log::Log;
use crate::pages::{self, Record};
use crate::places::Places;
use iolite_host::{Page, Tracing};
use iolite_os::process::process_id;
use iolite_os::tracefs::{TraceFs, TraceInstance};
use iolite_os::{errno_of, time};
use iolite_stats::{STUCK_AFTER, Stage, StageTimes, StagesSoFar};
use iolite_types::Direction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How often the rings are read. A ring of a worker has room for ten times as long at a million I/Os per second.
const INTERVAL: Duration = Duration::from_millis(5);

/// The kernel's buffers of all CPUs together have this size, and each one at least and at most so much.
const KIB_OF_ALL: usize = 64 << 10;
const LEAST_KIB: usize = 256;
const MOST_KIB: usize = 8 << 10;

/// How often what is known so far is published.
const LOOK_NS: u64 = 100_000_000;

/// What the names of the kernel's instances begin with; the number of the process follows that made them.
const INSTANCE: &str = "iolite-";

/// The stages of a worker, per direction.
pub type WorkerStages = [Option<Box<StageTimes>>; 3];

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// By the number of the worker.
    pub workers: BTreeMap<usize, WorkerStages>,
    /// What went wrong with logs, in words.
    pub trouble: Vec<String>,
}

/// The collector of a run, made before anything is forked.
pub struct Collector {
    area: Arc<StageArea>,
    tracing: Tracing,
    observed: Vec<Observed>,
    /// Where the results go: a file in memory that the controller has open, too.
    results: File,
}

/// Something with a time.
#[derive(Clone, Copy, Debug)]
enum Item {
    Event(Event),
    Reaped(usize, IoStamps),
    /// Records were lost between its time and this one.
    Lost {
        records: u64,
        until: u64,
    },
}

impl Collector {
    /// A collector for the workers of an area, one entry of `observed` each.
    ///
    /// # Errors
    /// There is no memory for the results.
    pub fn new(area: Arc<StageArea>, tracing: Tracing, observed: Vec<Observed>) -> io::Result<Collector> {
        Ok(Collector { area, tracing, observed, results: iolite_os::memory::file(c"iolite-stages")? })
    }

    /// Another handle of the file that gets the results.
    ///
    /// # Errors
    /// There is no free descriptor.
    pub fn results(&self) -> io::Result<File> {
        self.results.try_clone()
    }

    /// Records until the run is over, then writes the results. The exit status of its process.
    pub fn run(&self) -> i32 {
        let with_commands = self.observed.iter().any(|observed| observed.passes_commands);
        let decoder = Decoder::new(&self.tracing, with_commands);
        let needs_kernel = self
            .observed
            .iter()
            .enumerate()
            .any(|(worker, observed)| self.area.observes(worker) && observed.given.is_empty());
        let opened = if needs_kernel { Buffers::open(&self.tracing, &decoder).map(Some) } else { Ok(None) };
        let mut buffers = match opened {
            Ok(buffers) => buffers,
            Err(error) => {
                self.area.set_ready(errno_of(&error));
                return 1;
            }
        };
        let logs = match self.open_logs() {
            Ok(logs) => logs,
            Err(error) => {
                self.area.set_ready(errno_of(&error));
                return 1;
            }
        };
        self.area.set_ready(RECORDS);
        let files = self.observed.iter().flat_map(|observed| &observed.files).map(String::as_str);
        let mut reading = Reading {
            joiner: Joiner::new(self.observed.clone(), Places::new(files), &logs),
            decoder,
            begun: vec![false; self.area.workers()],
            last: vec![0; self.tracing.cpus.len()],
            items: Vec::new(),
        };
        let mut before = time::monotonic_ns();
        let mut looked = 0;
        while !self.area.is_over() {
            std::thread::sleep(INTERVAL);
            let now = time::monotonic_ns();
            reading.take(&self.area, buffers.as_mut(), now);
            // What was stamped before the last reading is complete.
            reading.join_until(before);
            before = now;
            if now >= looked + LOOK_NS {
                looked = now;
                self.publish(&reading.joiner, now);
            }
            if let Some(question) = self.area.question() {
                // Who asks goes on without an answer that does not come.
                if self.write(&reading.joiner, Vec::new()).is_ok() {
                    self.area.answer(question);
                }
            }
        }
        reading.take(&self.area, buffers.as_mut(), time::monotonic_ns());
        drop(buffers);
        reading.join_until(u64::MAX);
        let trouble = logs.values().filter_map(|log| log.finish()).collect();
        i32::from(self.write(&reading.joiner, trouble).is_err())
    }

    fn open_logs(&self) -> io::Result<BTreeMap<PathBuf, Rc<Log>>> {
        let mut logs = BTreeMap::new();
        for path in self.observed.iter().filter_map(|observed| observed.log.as_ref()) {
            if !logs.contains_key(path) {
                logs.insert(path.clone(), Rc::new(Log::open(path)?));
            }
        }
        Ok(logs)
    }

    /// Publishes what is known so far.
    fn publish(&self, joiner: &Joiner, now: u64) {
        let long_ago = now.saturating_sub(STUCK_AFTER.as_nanos() as u64);
        for worker in (0..self.area.workers()).filter(|&worker| self.area.observes(worker)) {
            self.area.publish(worker, joiner.sums_of(worker), joiner.old_request(worker, long_ago));
        }
    }

    /// Where the time of a worker's I/Os went so far.
    pub fn so_far(&self, worker: usize) -> Vec<StagesSoFar> {
        if !self.area.observes(worker) {
            return Vec::new();
        }
        let stages = self.observed[worker].stages();
        let told = Direction::ALL.into_iter().zip(self.area.sums(worker)).filter(|(_, (ios, _))| *ios > 0);
        let so_far = |(direction, (ios, sums)): (Direction, (u64, [u64; Stage::MOST]))| StagesSoFar {
            direction,
            stages: stages.to_vec(),
            ios,
            sums_ns: sums[..stages.len()].to_vec(),
        };
        told.map(so_far).collect()
    }

    fn write(&self, joiner: &Joiner, trouble: Vec<String>) -> io::Result<()> {
        let mut results = Results { trouble, ..Results::default() };
        for worker in (0..self.area.workers()).filter(|&worker| self.area.observes(worker)) {
            let mut times = joiner.times_of(worker);
            for (times, lost) in times.iter_mut().zip(self.area.lost(worker)) {
                if lost > 0 {
                    let times = times.get_or_insert_with(|| Box::new(self.observed[worker].no_times()));
                    times.not_matched(iolite_stats::Unmatched::Stamps, lost);
                }
            }
            results.workers.insert(worker, times);
        }
        // At fixed places: the controller, which reads it, has the same file open.
        let text = serde_json::to_vec(&results)?;
        self.results.set_len(0)?;
        self.results.write_all_at(&text, 0)
    }

    /// Reads the results that the process has written.
    ///
    /// # Errors
    /// It did not write them to the end.
    pub fn read(results: &File) -> io::Result<Results> {
        let mut text = vec![0; results.metadata()?.len() as usize];
        results.read_exact_at(&mut text, 0)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// The kernel's buffers, which record the tracepoints as long as this exists.
struct Buffers {
    instance: TraceInstance,
    page: Page,
    files: Vec<File>,
    bytes: Vec<u8>,
}

impl Buffers {
    fn open(tracing: &Tracing, decoder: &Decoder) -> io::Result<Buffers> {
        remove_leftovers();
        let tracefs = TraceFs::open()?;
        let instance = tracefs.make_instance(&format!("{INSTANCE}{}", process_id()))?;
        let mut buffers =
            Buffers { instance, page: tracing.page, files: Vec::new(), bytes: vec![0; tracing.page.size] };
        let instance = &buffers.instance;
        let kib = (KIB_OF_ALL / tracing.cpus.len().max(1)).clamp(LEAST_KIB, MOST_KIB);
        instance.write("buffer_size_kb", &kib.to_string())?;
        instance.write("trace_clock", "mono")?;
        // Without this, each context switch records the names of its threads, which nobody needs. (Instances have no file
        // for this option in `options/`. An old kernel may not know it.)
        let _ = instance.write("trace_options", "norecord-cmd");
        for name in decoder.names() {
            instance.write(&format!("events/{name}/enable"), "1")?;
        }
        instance.write("tracing_on", "1")?;
        for &cpu in &tracing.cpus {
            let file = buffers.instance.raw(cpu)?;
            buffers.files.push(file);
        }
        Ok(buffers)
    }

    /// Takes all records that are there, CPU by CPU: those of one CPU are in order.
    fn drain(&mut self, mut each: impl FnMut(usize, Record<'_>)) {
        /// So many pages at once: if records come faster than they are read, the other CPUs still get their turn.
        const MOST_PAGES: usize = MOST_KIB / 4;
        for (cpu, file) in self.files.iter_mut().enumerate() {
            for _ in 0..MOST_PAGES {
                let Ok(count @ 1..) = file.read(&mut self.bytes) else { break };
                pages::visit(&self.bytes[..count], self.page, |record| each(cpu, record));
            }
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        self.files.clear();
        // If it cannot be removed now, the end of the run or the next run removes it.
        let _ = self.instance.remove();
    }
}

/// Removes the kernel's instances of processes that have been killed.
pub fn remove_leftovers() {
    let Ok(tracefs) = TraceFs::open() else { return };
    for name in tracefs.instances().unwrap_or_default() {
        let process = name.strip_prefix(INSTANCE).and_then(|number| number.parse::<i32>().ok());
        // An instance with our own number is of a process that had the number before us.
        if process.is_some_and(|process| process == process_id() || has_ended(process)) {
            // Another run may remove it at the same time.
            let _ = tracefs.remove_instance(&name);
        }
    }
}

/// Whether a process is gone, or has ended and its parent has not asked how.
fn has_ended(process: i32) -> bool {
    match std::fs::read_to_string(format!("/proc/{process}/stat")) {
        // The state follows the name, which is in brackets and may contain anything.
        Ok(stat) => stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The state of reading.
struct Reading {
    joiner: Joiner,
    decoder: Decoder,
    /// The workers whose thread is known.
    begun: Vec<bool>,
    /// The time of the last record of each CPU.
    last: Vec<u64>,
    /// What has been read and not yet joined.
    items: Vec<(u64, Item)>,
}

impl Reading {
    /// Takes what is in the rings now.
    fn take(&mut self, area: &StageArea, buffers: Option<&mut Buffers>, now: u64) {
        for worker in 0..area.workers() {
            if !self.begun[worker]
                && let Some(thread) = area.thread(worker)
            {
                self.begun[worker] = true;
                self.joiner.begins(worker, thread);
            }
        }
        let (items, decoder, last) = (&mut self.items, &self.decoder, &mut self.last);
        let buffers = buffers.into_iter();
        buffers.for_each(|buffers| {
            buffers.drain(|cpu, record| match record {
                Record::Event(time, data) => {
                    last[cpu] = time;
                    if let Some(event) = decoder.decode(time, data) {
                        items.push((time, Item::Event(event)));
                    }
                }
                Record::Lost(records) => items.push((last[cpu], Item::Lost { records, until: now })),
            });
        });
        for worker in 0..area.workers() {
            while let Some(stamps) = area.pop(worker) {
                items.push((stamps.completed, Item::Reaped(worker, stamps)));
            }
        }
    }

    /// Joins everything that was stamped until then.
    fn join_until(&mut self, until: u64) {
        // An I/O comes behind the records of the moment at which it was reaped.
        let order = |item: &(u64, Item)| (item.0, matches!(item.1, Item::Reaped(..)));
        self.items.sort_by_key(order);
        let ready = self.items.partition_point(|item| item.0 <= until);
        for (time, item) in self.items.drain(..ready) {
            match item {
                Item::Event(event) => self.joiner.event(&event),
                Item::Reaped(worker, stamps) => self.joiner.reaped(worker, &stamps),
                Item::Lost { records, until } => self.joiner.lost(records, time, until),
            }
        }
    }
}
