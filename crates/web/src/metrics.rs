//! Metrics for programs that scrape them: `/metrics`, of a running run, or of the last run of a process that has one after the
//! other.

use crate::access::{Admission, Rights};
use crate::answer::Answer;
use crate::exposition::{Distribution, Exposition, Family, Format, Kind, Labels, bucket_of};
use crate::message::Hello;
use crate::request::Request;
use crate::run::Run;
use crate::security::Certified;
use crate::server::{self, Open, Site};
use crate::state::State;
use crate::transport::Wire;
use iolite_stats::{Counters, Event, Latency, WorkerSnapshot, midpoint};
use iolite_types::{Direction, describe_error, describe_job_error};
use rustls::ServerConfig;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The limits of classic histograms in seconds: three per power of ten from a microsecond to ten seconds, a range that
/// contains page caches and disks that hang.
pub const LIMITS: &[f64] = &[
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5,
    1.0, 2.0, 5.0, 10.0,
];

/// All metrics of a run. (Names and units follow <https://prometheus.io/docs/practices/naming/>.)
pub mod families {
    use super::{Family, Kind};

    const fn family(
        name: &'static str,
        unit: Option<&'static str>,
        kind: Kind,
        help: &'static str,
    ) -> Family {
        Family { name, unit, kind, help }
    }

    pub const BUILD: Family = family("iolite_build", None, Kind::Info, "The program.");
    pub const RUN: Family = family("iolite_run", None, Kind::Info, "The run and its machine.");
    pub const ELAPSED: Family =
        family("iolite_run_elapsed_seconds", Some("seconds"), Kind::Gauge, "Time since the run began.");
    pub const PROGRESS: Family =
        family("iolite_run_progress_ratio", Some("ratio"), Kind::Gauge, "The share that is done, if known.");
    pub const REMAINING: Family =
        family("iolite_run_remaining_seconds", Some("seconds"), Kind::Gauge, "Time left, if known.");
    pub const WORKERS: Family = family("iolite_workers", None, Kind::Gauge, "Workers by what they do.");
    pub const IOS: Family = family("iolite_ios", None, Kind::Counter, "I/Os completed.");
    pub const BYTES: Family =
        family("iolite_transferred_bytes", Some("bytes"), Kind::Counter, "Bytes transferred.");
    pub const LATENCY: Family = family(
        "iolite_completion_latency_seconds",
        Some("seconds"),
        Kind::Histogram,
        "Latency of completion.",
    );
    pub const ERRORS: Family =
        family("iolite_errors", None, Kind::Counter, "Failed I/Os, also those after which a job continues.");
    pub const RUNS: Family = family("iolite_runs", None, Kind::Counter, "Runs that this process has begun.");
    pub const MESSAGES: Family =
        family("iolite_messages", None, Kind::Counter, "Notes, warnings and errors of the run.");
}

/// Serves the metrics of a run, or of a process that has one run after the other.
pub struct Metrics {
    /// The program and its version.
    pub program: String,
    /// How many runs there were; `None` = there is one.
    pub runs: Option<Arc<AtomicU64>>,
    /// The last run.
    pub run: Box<dyn Fn() -> Option<Arc<Run>> + Send + Sync>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("program", &self.program)
            .field("runs", &self.runs)
            .finish_non_exhaustive()
    }
}

impl Site for Metrics {
    /// Whoever reaches the port may read them.
    fn admit(&self, request: &Request) -> Admission {
        Admission::Admitted(Rights::Look, request.path.clone())
    }

    fn answer(&self, _: Rights, request: &Request, path: &str, _: &mut Wire) -> Option<Answer> {
        Some(match (request.method.as_str(), path) {
            ("GET", "/metrics") => {
                let format = Format::wanted(request.one("accept"));
                let (run, runs) = ((self.run)(), self.runs.as_ref().map(|runs| runs.load(SeqCst)));
                let state = run.as_ref().map(|run| run.state());
                Answer::file(format.content_type(), exposition(state.as_deref(), &self.program, runs, format))
            }
            ("GET", "/") => Answer::text(200, "The metrics are at /metrics."),
            ("GET", _) => Answer::text(404, "There is nothing here but /metrics."),
            _ => Answer::text(405, "This cannot be asked for here."),
        })
    }
}

/// The place where a process serves the metrics of its runs.
#[derive(Debug)]
pub struct MetricsPlace {
    listener: TcpListener,
    security: Option<Arc<ServerConfig>>,
    address: String,
}

impl MetricsPlace {
    /// Listens at this address with this encryption.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn open(address: SocketAddr, certified: Option<&Certified>) -> Result<MetricsPlace, String> {
        let failed = |error: io::Error| format!("{address}: {}", describe_error(&error));
        let listener = TcpListener::bind(address).map_err(failed)?;
        let scheme = if certified.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://{}/metrics", listener.local_addr().map_err(failed)?);
        let security = certified.map(Certified::config).transpose().map_err(|error| error.to_string())?;
        Ok(MetricsPlace { listener, security, address })
    }

    /// Where they are.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Serves them from now on.
    ///
    /// # Errors
    /// There can be no thread for it.
    pub fn serve(self, metrics: Metrics) -> io::Result<()> {
        let site = Arc::new(metrics);
        let body = move || server::serve(&self.listener, self.security.as_ref(), &site, &Open::default());
        thread::Builder::new().name("iolite-metrics".into()).spawn(body).map(drop)
    }
}

/// The last run of a process that has one after the other.
#[derive(Clone, Debug, Default)]
pub struct LastRun {
    run: Arc<Mutex<Option<Arc<Run>>>>,
    runs: Arc<AtomicU64>,
}

impl LastRun {
    /// Serves its metrics.
    ///
    /// # Errors
    /// There can be no thread for it.
    pub fn serve(&self, place: MetricsPlace, program: &str) -> io::Result<()> {
        let last = self.clone();
        let run = Box::new(move || last.last());
        place.serve(Metrics { program: program.to_owned(), runs: Some(self.runs.clone()), run })
    }

    fn last(&self) -> Option<Arc<Run>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another run begins.
    pub fn begin(&self, hello: Hello) {
        self.runs.fetch_add(1, SeqCst);
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(Run::new(hello, None)));
    }

    /// An event of it.
    pub fn take(&self, event: Event) {
        self.last().iter().for_each(|run| run.take(event.clone()));
    }
}

/// The metrics of a run in this state, if there is any, and of the process that has these runs.
fn exposition(state: Option<&State>, program: &str, runs: Option<u64>, format: Format) -> Vec<u8> {
    let mut text = Exposition::new(format);
    let one = |value: f64| vec![(Labels::new(), value)];
    let version = program.split_once('-').map_or(program, |(_, version)| version);
    text.values(&families::BUILD, &[(vec![("version", version.to_owned())], 1.0)]);
    text.values(&families::RUNS, &runs.map(|runs| one(runs as f64)).unwrap_or_default());
    let Some(state) = state else { return text.end() };
    text.values(&families::RUN, &[(about(state), 1.0)]);
    text.values(&families::ELAPSED, &one(state.elapsed_ns as f64 / 1e9));
    text.values(&families::PROGRESS, &state.percent.map(|percent| one(percent / 100.0)).unwrap_or_default());
    text.values(&families::REMAINING, &state.eta_s.map(|seconds| one(seconds as f64)).unwrap_or_default());
    let mut doing: BTreeMap<&str, f64> =
        ["setting_up", "running", "verifying", "ended", "failed"].map(|word| (word, 0.0)).into();
    let whole = usize::from(state.of_hosts);
    for letter in state.letters.iter().skip(whole) {
        *doing.entry(does(*letter)).or_default() += 1.0;
    }
    let doing: Vec<_> =
        doing.into_iter().map(|(word, count)| (vec![("state", word.to_owned())], count)).collect();
    text.values(&families::WORKERS, &doing);
    let sums = sums(state);
    let of = |value: fn(&Counters) -> u64| -> Vec<(Labels<'static>, f64)> {
        sums.iter().map(|(labels, counters)| (labels.clone(), value(counters) as f64)).collect()
    };
    text.values(&families::IOS, &of(|counters| counters.ios));
    text.values(&families::BYTES, &of(|counters| counters.bytes));
    let latencies = sums.iter().filter(|(_, counters)| counters.latency.moments.count > 0);
    let latencies: Vec<_> =
        latencies.map(|(labels, counters)| (labels.clone(), distribution(&counters.latency))).collect();
    text.distributions(&families::LATENCY, &latencies);
    text.values(&families::ERRORS, &errors(state));
    text.values(&families::MESSAGES, &one(state.told as f64));
    text.end()
}

/// Facts about the machine.
fn about(state: &State) -> Labels<'static> {
    let facts = state.outline.facts.iter().flat_map(|facts| &facts.host);
    let find = |wanted: &str| {
        facts.clone().find(|(name, _)| name == wanted).map_or_else(String::new, |(_, value)| value.clone())
    };
    let all = vec![("host", host(state)), ("kernel", find("kernel")), ("cpu", find("cpu"))];
    // Of several machines there are no facts before their reports.
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// The name of the machine.
fn host(state: &State) -> String {
    let mut facts = state.outline.facts.iter().flat_map(|facts| &facts.host);
    facts.find(|(name, _)| name == "name").map_or_else(String::new, |(_, value)| value.clone())
}

/// What a worker does, by the letter of its state.
fn does(letter: char) -> &'static str {
    match letter {
        'R' | 'r' | 'W' | 'w' | 'D' | 'd' | 'M' | 'm' | '/' | 'F' => "running",
        'V' => "verifying",
        '_' | 'E' | 'f' => "ended",
        'X' | 'K' | crate::LOST => "failed",
        _ => "setting_up",
    }
}

/// The workers in the last sample, each with the names of its job and its machine.
fn workers<'a>(
    state: &'a State,
    here: &'a str,
) -> impl Iterator<Item = (&'a WorkerSnapshot, &'a str, &'a str)> {
    let workers = state.recorder.latest().map_or(&[][..], |sample| &sample.workers);
    workers.iter().zip(&state.blocks).filter_map(move |(worker, block)| {
        let job = block.and_then(|block| state.outline.jobs.get(block as usize))?;
        // The first job of several machines is the sum of the others.
        match (state.of_hosts, *block) {
            (true, Some(0)) => None,
            (true, _) => Some((worker, "", job.name.as_str())),
            (false, _) => Some((worker, job.name.as_str(), job.host.as_deref().unwrap_or(here))),
        }
    })
}

fn labels(job: &str, host: &str, direction: &str) -> Labels<'static> {
    vec![("host", host.to_owned()), ("job_name", job.to_owned()), ("direction", direction.to_owned())]
}

/// The failed I/Os of each job, direction and kind.
fn errors(state: &State) -> Vec<(Labels<'static>, f64)> {
    let here = host(state);
    let mut sums: BTreeMap<(&str, &str, &str, i32), u64> = BTreeMap::new();
    for (worker, job, host) in workers(state, &here) {
        for failures in &worker.failures {
            let direction = failures.direction.map_or("none", Direction::name);
            *sums.entry((job, host, direction, failures.errno)).or_default() += failures.count;
        }
    }
    let line = |((job, host, direction, errno), count): ((&str, &str, &str, i32), u64)| {
        let kind = if errno == 0 { "other".to_owned() } else { describe_job_error(errno) };
        let mut labels = labels(job, host, direction);
        labels.push(("kind", kind));
        (labels, count as f64)
    };
    sums.into_iter().map(line).collect()
}

/// The counters of each job and direction. Workers of the same job are one: as clones they have the same labels.
fn sums(state: &State) -> Vec<(Labels<'static>, Counters)> {
    let here = host(state);
    let mut sums: BTreeMap<(&str, &str, Direction), Counters> = BTreeMap::new();
    for (worker, name, host) in workers(state, &here) {
        for direction in Direction::ALL {
            let counters = &worker.counters[direction];
            if counters.ios == 0 && !worker.uses[direction] {
                continue;
            }
            let sum = sums.entry((name, host, direction)).or_default();
            sum.ios = sum.ios.saturating_add(counters.ios);
            sum.bytes = sum.bytes.saturating_add(counters.bytes);
            sum.latency += &counters.latency;
        }
    }
    sums.into_iter().map(|((job, host, direction), sum)| (labels(job, host, direction.name()), sum)).collect()
}

/// The distribution of a latency. Bins of the histogram are 1.6% wide, and count for the limits above their middle.
fn distribution(latency: &Latency) -> Distribution {
    let mut up_to: Vec<(f64, u64)> = LIMITS.iter().map(|limit| (*limit, 0)).collect();
    let (mut zeros, mut native) = (0, BTreeMap::new());
    for (bucket, count) in latency.histogram.occupied() {
        let seconds = midpoint(bucket) as f64 / 1e9;
        match midpoint(bucket) {
            0 => zeros += count,
            _ => *native.entry(bucket_of(seconds)).or_default() += count,
        }
        let first = up_to.partition_point(|(limit, _)| *limit < seconds);
        up_to[first..].iter_mut().for_each(|(_, sum)| *sum += count);
    }
    Distribution {
        up_to,
        count: latency.histogram.total(),
        sum: latency.moments.mean() * latency.moments.count as f64 / 1e9,
        zeros,
        native,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_count_for_each_limit_above_them() {
        let mut latency = Latency::default();
        for value in [900, 1_500, 1_500, 4_000_000, 20_000_000_000] {
            latency.moments.record(value);
            latency.histogram.record(value);
        }
        let Distribution { up_to, count, sum, zeros, native } = distribution(&latency);
        let at = |limit: f64| up_to.iter().find(|(other, _)| *other == limit).unwrap().1;
        assert_eq!([1e-6, 2e-6, 2e-3, 5e-3, 10.0].map(at), [1, 3, 3, 4, 4]);
        assert_eq!((count, zeros, native.values().sum::<u64>()), (5, 0, 5));
        // 1.5 µs lie below 2^(-19.34…), the limit of this bucket.
        assert_eq!(native.get(&-309), Some(&2), "{native:?}");
        assert!((sum - 20.0040039).abs() < 1e-6, "{sum}");
    }
}
