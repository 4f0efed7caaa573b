//! A loop around an engine that does nothing else: no statistics, no clock, no workload.
//!
//! Its rate is an upper bound for any loop around that engine on this machine; the difference to the real loop is the
//! cost of the real loop.
//!
//!     cargo run --release -p iolite-engines --example bare_loop -- ENGINE TARGET [DEPTH [BATCH [SECONDS]]] [OPTION…]
//!
//! 4 KiB random reads; an OPTION is `direct`, `fixedbufs`, `registerfiles`, `sqthread_poll`, `hipri`, `vectored`
//! or `defer` (submission and wait in one call).

use iolite_engine::{
    AccessPattern, BufferLayout, Completion, Engine, EngineConfig, FileKind, FileSpec, OpenMode, Queued, Unit,
};
use iolite_engines::{Visitor, build};
use iolite_host::{Machine, ThisMachine};
use iolite_options::engines::{IoUringOptions, LibaioOptions, Pvsync2Options};
use iolite_types::Operation;
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BLOCK: u64 = 4096;
/// Units between two looks at the clock.
const ROUND: u64 = 10_000;

struct BareLoop {
    target: PathBuf,
    size: u64,
    direct: bool,
    depth: usize,
    batch: usize,
    limit: Duration,
}

impl Visitor for BareLoop {
    type Out = Result<f64, Box<dyn std::error::Error>>;

    fn visit<E: Engine>(self, mut engine: E) -> Self::Out {
        let (kind, _) = ThisMachine::new().usable_file(&self.target)?;
        let spec = FileSpec { path: self.target, kind, size: self.size };
        engine.open(0, &spec, OpenMode { read: true, direct: self.direct, ..OpenMode::default() })?;
        let layout = buffers(self.depth);
        engine.prepare(&layout)?;
        let mut units = units(&layout);

        let start = Instant::now();
        let mut completed = 0;
        while start.elapsed() < self.limit {
            completed += round(&mut engine, &mut units, self.size / BLOCK, self.batch)?;
        }
        let rate = completed as f64 / start.elapsed().as_secs_f64();
        engine.close(0)?;
        Ok(rate)
    }
}

/// Performs at least `ROUND` units and drains the queue; how many there were.
fn round<E: Engine>(engine: &mut E, units: &mut [Unit], blocks: u64, batch: usize) -> std::io::Result<u64> {
    let mut free: Vec<u32> = (0..units.len() as u32).collect();
    let mut done: Vec<Completion> = Vec::with_capacity(units.len());
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut completed = 0;
    loop {
        let mut queued = 0;
        while completed < ROUND
            && queued < batch
            && let Some(&index) = free.last()
        {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let unit = &mut units[index as usize];
            // The high half of the product is a number below `blocks`.
            unit.offset = ((u128::from(random) * u128::from(blocks)) >> 64) as u64 * BLOCK;
            // SAFETY: the buffers are never freed, and the unit is not in flight.
            match unsafe { engine.queue(unit) } {
                Queued::Completed(outcome) => {
                    outcome?;
                    completed += 1;
                }
                Queued::Queued => {
                    free.pop();
                    queued += 1;
                }
                Queued::Busy | Queued::Over => break,
            }
        }
        let in_flight = units.len() - free.len();
        if in_flight == 0 && completed >= ROUND {
            return Ok(completed);
        }
        if in_flight > 0 {
            engine.commit()?;
            let min = if free.is_empty() || completed >= ROUND { batch.min(in_flight) } else { 0 };
            engine.reap(min, units.len(), None, &mut done)?;
            for completion in done.drain(..) {
                completion.outcome?;
                free.push(completion.unit);
                completed += 1;
            }
        }
    }
}

/// One page-aligned region for the life of the process.
fn buffers(depth: usize) -> BufferLayout {
    let stride = BLOCK as usize;
    let memory = Layout::from_size_align(stride * depth, 4096).expect("a sane depth");
    // SAFETY: the size is not zero, as depth is at least 1.
    let start = unsafe { alloc_zeroed(memory) };
    if start.is_null() {
        handle_alloc_error(memory);
    }
    BufferLayout { start, stride, count: depth, depth, files: 1 }
}

fn units(layout: &BufferLayout) -> Vec<Unit> {
    (0..layout.count)
        .map(|index| Unit {
            buffer: layout.start.wrapping_add(index * layout.stride),
            length: BLOCK,
            offset: 0,
            index: index as u32,
            file: 0,
            operation: Operation::Read,
            priority: 0,
        })
        .collect()
}

fn target_size(engine: &str, path: &Path) -> std::io::Result<u64> {
    match ThisMachine::new().usable_file(path)? {
        (FileKind::Regular, _) if engine == "null" => Ok(1 << 30),
        (_, size) => Ok(size.unwrap_or(1 << 30)),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (numbers, flags): (Vec<&str>, Vec<&str>) =
        words.iter().skip(2).map(String::as_str).partition(|word| word.parse::<u64>().is_ok());
    let [engine, target, ..] = words.as_slice() else {
        return Err("bare_loop ENGINE TARGET [DEPTH [BATCH [SECONDS]]] [OPTION…]".into());
    };
    let number = |place: usize, default: u64| numbers.get(place).map_or(Ok(default), |word| word.parse());
    let depth = number(0, 1)?.max(1) as usize;
    let batch = number(1, 1)?.clamp(1, depth as u64) as usize;
    let limit = Duration::from_secs(number(2, 3)?);
    let known = ["direct", "fixedbufs", "registerfiles", "sqthread_poll", "hipri", "vectored", "defer"];
    if let Some(flag) = flags.iter().find(|flag| !known.contains(flag)) {
        return Err(format!("unknown option {flag}; known are {}", known.join(", ")).into());
    }
    let has = |flag: &str| flags.contains(&flag);

    let info =
        iolite_options::engines::engine(engine).ok_or_else(|| format!("there is no engine {engine}"))?;
    let mut options = (info.own)();
    if let Some(own) = options.of_mut::<IoUringOptions>() {
        own.hipri = has("hipri");
        own.fixedbufs = has("fixedbufs");
        own.registerfiles = has("registerfiles");
        own.sqthread_poll = has("sqthread_poll");
        own.nonvectored = has("vectored").then_some(false);
    }
    if let Some(own) = options.of_mut::<Pvsync2Options>() {
        own.hipri = has("hipri");
    }
    if let Some(own) = options.of_mut::<LibaioOptions>() {
        own.libaio_vectored = has("vectored");
    }
    let config = EngineConfig {
        direct: has("direct"),
        access: AccessPattern::Random,
        defer_submission: has("defer"),
        ..EngineConfig::new(options, depth)
    };
    let target = PathBuf::from(target);
    let size = target_size(engine, &target)?;
    let bare = BareLoop { target, size, direct: has("direct"), depth, batch, limit };
    let rate = build(engine, &config, bare)??;
    println!("{engine} depth={depth} batch={batch} {}: {rate:.0} IOPS", flags.join(" "));
    Ok(())
}
