//! The figures of a phase, from the report of its run.
//!
//! The stonewalled rate is what mdtest and IOR call so: the work that all workers had done when the first of them had
//! ended, per time until then. It shows the system with all workers at work, and leaves out the tail. It is taken from the
//! report's samples (ten per second, or fewer in long runs), linear between two of them.

use serde_json::Value;
use std::collections::BTreeMap;

/// The figures of a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Worker {
    /// Its name, with its host if there are several.
    pub name: String,
    /// Operations.
    pub ops: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// How long it worked.
    pub seconds: f64,
}

impl Worker {
    /// Operations per second.
    pub fn rate(&self) -> f64 {
        rate(self.ops as f64, self.seconds)
    }
}

/// Latencies, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The largest.
    pub max: f64,
}

/// What was done when the first worker had ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stonewall {
    /// When that was.
    pub seconds: f64,
    /// Operations of all workers until then.
    pub ops: f64,
    /// Bytes of data until then.
    pub bytes: f64,
}

impl Stonewall {
    /// Operations per second.
    pub fn rate(&self) -> f64 {
        rate(self.ops, self.seconds)
    }
}

/// The figures of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Of each worker.
    pub workers: Vec<Worker>,
    /// From the start to the end of the last worker.
    pub seconds: f64,
    /// The work until the first worker had ended.
    pub stonewall: Stonewall,
    /// The latency of single operations.
    pub latency: Latency,
    /// How often each latency came, in nanoseconds.
    bins: BTreeMap<u64, u64>,
    /// The sum of all latencies, in nanoseconds.
    sum: f64,
}

/// The directions of a worker that does only one kind of I/O.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

impl Figures {
    /// The figures of a report.
    ///
    /// # Errors
    /// It is no report, or a worker had an error.
    pub fn of(report: &Value) -> Result<Figures, String> {
        let jobs = iolite_stored::jobs(report).map_err(|why| why.to_string())?;
        let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut workers, mut latency, mut sum) = (Vec::new(), Latency::default(), 0.0);
        for job in &jobs {
            let error = iolite_stored::number(job, "error");
            let name = name(job);
            if error != 0.0 {
                let what = std::io::Error::from_raw_os_error(error as i32);
                return Err(format!("{name}: {what}"));
            }
            let worked =
                DIRECTIONS.iter().map(|direction| &job[*direction]).find(|it| iolite_stored::has_moved(it));
            let Some(measured) = worked else {
                workers.push(Worker { name, ops: 0, bytes: 0, seconds: 0.0 });
                continue;
            };
            let ops = iolite_stored::number(measured, "total_ios");
            // What comes behind the last I/O counts: fsync(2).
            let seconds = iolite_stored::runtime(job);
            let bytes = iolite_stored::number(measured, "io_bytes");
            let of_job = iolite_stored::latency_with_percentiles(measured).map(|(_, latency)| latency);
            let busy = of_job.map_or(0.0, |latency| iolite_stored::number(latency, "mean") * ops);
            workers.push(Worker { name, ops: ops as u64, bytes: bytes as u64, seconds });
            let Some(of_job) = of_job else { continue };
            latency.max = latency.max.max(iolite_stored::number(of_job, "max"));
            sum += busy;
            for (nanoseconds, count) in iolite_stored::bins(of_job).unwrap_or_default() {
                *bins.entry(nanoseconds).or_default() += count;
            }
        }
        if workers.is_empty() {
            return Err("the report has no workers".to_owned());
        }
        let seconds = workers.iter().map(|worker| worker.seconds).fold(0.0, f64::max);
        let stonewall = stonewall(&workers, report);
        let mut figures = Figures { workers, seconds, stonewall, latency, bins, sum };
        figures.settle_latency();
        Ok(figures)
    }

    /// Operations of all workers.
    pub fn ops(&self) -> u64 {
        self.workers.iter().map(|worker| worker.ops).sum()
    }

    /// Bytes of all workers.
    pub fn bytes(&self) -> u64 {
        self.workers.iter().map(|worker| worker.bytes).sum()
    }

    /// Operations per second, until the last worker had ended.
    pub fn rate(&self) -> f64 {
        rate(self.ops() as f64, self.seconds)
    }

    /// Bytes per second, until the last worker had ended.
    pub fn bandwidth(&self) -> f64 {
        rate(self.bytes() as f64, self.seconds)
    }

    /// The worker with the lowest rate.
    pub fn slowest(&self) -> Option<&Worker> {
        self.workers.iter().min_by(|one, other| one.rate().total_cmp(&other.rate()))
    }

    /// Adds the run in which the workers caught up with the first of them: its work and its time. The stonewalled rate is
    /// that of the first run.
    pub fn add(&mut self, later: Figures) {
        self.seconds += later.seconds;
        for worker in later.workers {
            match self.workers.iter_mut().find(|known| known.name == worker.name) {
                Some(known) => {
                    known.ops += worker.ops;
                    known.bytes += worker.bytes;
                    known.seconds += worker.seconds;
                }
                None => self.workers.push(worker),
            }
        }
        self.latency.max = self.latency.max.max(later.latency.max);
        self.sum += later.sum;
        for (nanoseconds, count) in later.bins {
            *self.bins.entry(nanoseconds).or_default() += count;
        }
        self.settle_latency();
    }

    fn settle_latency(&mut self) {
        let of = |percentile| {
            let found = iolite_stored::percentile_of_bins(&self.bins, percentile);
            found.unwrap_or(0.0).min(self.latency.max)
        };
        let (p50, p99, p999) = (of(50.0), of(99.0), of(99.9));
        let mean = rate(self.sum, self.ops() as f64);
        self.latency = Latency { mean, p50, p99, p999, max: self.latency.max };
    }
}

/// The name of a worker: that of its section, with its host if there are several.
fn name(job: &Value) -> String {
    let name = job["jobname"].as_str().unwrap_or_default();
    match job["hostname"].as_str() {
        Some(host) => format!("{host} {name}"),
        None => name.to_owned(),
    }
}

fn rate(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

/// The work until the first worker had ended.
fn stonewall(workers: &[Worker], report: &Value) -> Stonewall {
    let seconds =
        workers.iter().map(|worker| worker.seconds).filter(|seconds| *seconds > 0.0).fold(f64::MAX, f64::min);
    if seconds == f64::MAX {
        return Stonewall { seconds: 0.0, ops: 0.0, bytes: 0.0 };
    }
    let (mut ops, mut bytes) = (0.0, 0.0);
    for (position, worker) in workers.iter().enumerate() {
        // Without samples, as if its rate had not changed.
        let at = (seconds / worker.seconds).min(1.0);
        let even = (worker.ops as f64 * at, worker.bytes as f64 * at);
        let is_first = worker.seconds <= seconds;
        let sampled = if is_first { None } else { until(report, position, seconds) };
        let (done, moved) = sampled.unwrap_or(even);
        ops += done.min(worker.ops as f64);
        bytes += moved.min(worker.bytes as f64);
    }
    Stonewall { seconds, ops, bytes }
}

/// Operations and bytes of a job until a moment, from the samples of the report; `None` = it has none that reach so far.
fn until(report: &Value, position: usize, seconds: f64) -> Option<(f64, f64)> {
    let series = &report["iolite"]["series"];
    let of_job =
        series["jobs"].as_array()?.iter().find(|job| job["job"].as_u64() == Some(position as u64))?;
    let measured = DIRECTIONS.iter().map(|direction| &of_job[*direction]).find(|it| it["ios"].is_array())?;
    let numbers = |value: &Value| -> Option<Vec<f64>> {
        Some(value.as_array()?.iter().map(|number| number.as_f64().unwrap_or(0.0)).collect())
    };
    let (ends, ios, bytes) =
        (numbers(&series["end_us"])?, numbers(&measured["ios"])?, numbers(&measured["bytes"])?);
    let first = measured["first_window"].as_u64().unwrap_or(0) as usize;
    let moment = seconds * 1e6;
    let (mut done, mut begin) = ((0.0, 0.0), series["begin_us"].as_f64().unwrap_or(0.0));
    for (window, end) in ends.iter().enumerate() {
        let of =
            |values: &[f64]| window.checked_sub(first).and_then(|at| values.get(at)).copied().unwrap_or(0.0);
        let (ios, bytes) = (of(&ios), of(&bytes));
        if *end >= moment {
            let share = ((moment - begin) / (end - begin)).clamp(0.0, 1.0);
            return Some((done.0 + ios * share, done.1 + bytes * share));
        }
        done = (done.0 + ios, done.1 + bytes);
        begin = *end;
    }
    None
}
