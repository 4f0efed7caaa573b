//! Agents that run nothing: each is a thread that sends the messages of an agent with one job.

use iolite_os::{process, time};
use iolite_remote::Address;
use iolite_remote::frame;
use iolite_remote::message::{Begun, Done, FromAgent, ToAgent};
use iolite_remote::stand_in::{Conversation, StandIn};
use iolite_stats::{
    Counters, Event, EventKind, Identity, InStep, JobReport, Latency, Report, Snapshot, WorkerSnapshot,
};
use iolite_testing::Luck;
use iolite_types::Direction;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The I/Os of each agent.
pub const IOS: u64 = 100_000;
/// How often an agent says where it stands.
const SNAPSHOT: Duration = Duration::from_secs(1);
/// How often it reports.
const STATUS: Duration = Duration::from_secs(5);
/// How long the client has for reaching everybody and having them begin.
const PATIENCE: Duration = Duration::from_secs(300);
/// Memory for the stack of an agent.
const STACK: usize = 1 << 20;

/// Agents of one run.
pub struct Simulated {
    place: String,
    shared: Arc<Shared>,
}

/// Their messages, and what they have heard.
struct Shared {
    count: usize,
    length: Duration,
    snapshot: Vec<u8>,
    status: Vec<u8>,
    done: Vec<u8>,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    /// The moments that were given, by this machine's clock.
    moments: Vec<u64>,
    /// How long before that each was heard of.
    ahead_ns: Vec<i64>,
    /// When the last one had its end.
    ended: Option<Instant>,
    /// The error.
    failed: Option<String>,
}

/// When they began and ended.
pub struct Moments {
    /// From the first to the last moment that was given.
    pub spread_ns: u64,
    /// How long before its moment the last one heard of it.
    pub ahead_ns: i64,
    /// When the last job had its end.
    pub ended: Instant,
}

impl Shared {
    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An agent has just got this start time.
    fn is_told(&self, moment: u64) {
        let ahead = moment as i64 - time::monotonic_ns() as i64;
        let mut heard = self.heard();
        heard.moments.push(moment);
        heard.ahead_ns.push(ahead);
    }
}

impl Simulated {
    /// So many, with these keys, whose jobs take so long.
    pub fn start(keys: &Path, count: usize, length: Duration) -> Result<Simulated, String> {
        process::allow_many_files();
        let address = Address::parse("ip:127.0.0.1,0")?;
        let stand_in = StandIn::listen(&address, Some(keys))?;
        let place = stand_in.place().to_owned();
        let latency = latency();
        let done = Done { report: report(&latency), ..Done::default() };
        let encoded = |message: FromAgent| frame::encode(&message).map_err(|error| error.to_string());
        let shared = Arc::new(Shared {
            count,
            length,
            snapshot: encoded(event(1, EventKind::Snapshot(Box::new(snapshot(&latency)))))?,
            status: encoded(event(1, EventKind::Status(Box::new(report(&latency)))))?,
            done: encoded(FromAgent::Done(Box::new(done)))?,
            heard: Mutex::default(),
        });
        eprintln!("a snapshot has {} bytes, a report {}", shared.snapshot.len(), shared.done.len());
        let theirs = shared.clone();
        thread::spawn(move || {
            let theirs = &theirs;
            thread::scope(|scope| {
                for number in 0..count {
                    let Ok(caller) = stand_in.accept() else { return };
                    let body = move || {
                        let machine = format!("machine-{number}");
                        if let Err(why) =
                            caller.greet(&machine).and_then(|conversation| serve(conversation, theirs))
                        {
                            theirs.heard().failed.get_or_insert(format!("{machine}: {why}"));
                        }
                    };
                    if let Err(error) = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, body) {
                        theirs.heard().failed.get_or_insert(error.to_string());
                    }
                }
            });
        });
        Ok(Simulated { place, shared })
    }

    /// Where they all are.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Waits until all of them have got a start time.
    pub fn wait_for_begin(&self, client: &mut Child) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let heard = self.shared.heard();
            if heard.moments.len() == self.shared.count {
                return Ok(());
            }
            if let Some(why) = &heard.failed {
                let _ = client.kill();
                return Err(why.clone());
            }
            if Instant::now() >= until {
                let _ = client.kill();
                return Err(format!("{} were told to begin in {PATIENCE:?}", heard.moments.len()));
            }
            drop(heard);
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The start and end times that they have heard.
    pub fn moments(&self) -> Moments {
        let heard = self.shared.heard();
        let (first, last) = (heard.moments.iter().min(), heard.moments.iter().max());
        Moments {
            spread_ns: last.unwrap_or(&0) - first.unwrap_or(&0),
            ahead_ns: heard.ahead_ns.iter().copied().min().unwrap_or_default(),
            ended: heard.ended.unwrap_or_else(Instant::now),
        }
    }
}

/// The next message to send.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Started,
    Snapshot,
    Status,
    Done,
}

/// Something that has happened in a run.
fn event(at_ns: u64, kind: EventKind) -> FromAgent {
    FromAgent::Event(Box::new(Event::new(at_ns, None, kind)))
}

/// Takes part in a run, to its end.
fn serve(mut conversation: Conversation, shared: &Shared) -> Result<(), String> {
    let words = |error: frame::FrameError| error.to_string();
    // The messages to send, with their times by this machine's clock.
    let mut dues: Vec<(u64, Due)> = Vec::new();
    let mut is_done = false;
    loop {
        let now = time::monotonic_ns();
        let next = dues.iter().min().copied();
        let left = next.map_or(PATIENCE, |(at, _)| Duration::from_nanos(at.saturating_sub(now)));
        if !left.is_zero() && conversation.has_word_within(left) {
            let word = match conversation.hear() {
                // The client has heard the last word, and has gone.
                Err(_) if is_done => return Ok(()),
                word => word.map_err(words)?,
            };
            match word {
                ToAgent::Ping(sequence) => {
                    let now_ns = time::monotonic_ns();
                    conversation.say(&FromAgent::Pong { sequence, now_ns }).map_err(words)?;
                }
                ToAgent::Run(_) => {
                    conversation
                        .say(&FromAgent::Begun(Begun {
                            lines: "job: simulated\n".to_owned(),
                            ..Begun::default()
                        }))
                        .map_err(words)?;
                    let in_step = InStep { barriers: 1, ..InStep::default() };
                    for kind in [EventKind::InStep(in_step), EventKind::Ready(0)] {
                        conversation.say(&event(0, kind)).map_err(words)?;
                    }
                }
                ToAgent::Start { at_ns: moment, .. } => {
                    shared.is_told(moment);
                    let after = |time: Duration| moment + time.as_nanos() as u64;
                    dues = vec![
                        (moment, Due::Started),
                        (after(SNAPSHOT), Due::Snapshot),
                        (after(STATUS), Due::Status),
                        (after(shared.length), Due::Done),
                    ];
                }
                ToAgent::Send => conversation.say(&FromAgent::Sent(0)).map_err(words)?,
                _ => {}
            }
            continue;
        }
        let Some((at, due)) = next.filter(|(at, _)| *at <= time::monotonic_ns()) else { continue };
        dues.retain(|(_, other)| *other != due);
        match due {
            Due::Started => {
                let late_ns = time::monotonic_ns().saturating_sub(at);
                conversation.say(&event(0, EventKind::Started { barrier: 0, late_ns })).map_err(words)?;
            }
            Due::Snapshot => {
                dues.push((at + SNAPSHOT.as_nanos() as u64, due));
                conversation.say_encoded(&shared.snapshot).map_err(words)?;
            }
            Due::Status => {
                dues.push((at + STATUS.as_nanos() as u64, due));
                conversation.say_encoded(&shared.status).map_err(words)?;
            }
            Due::Done => {
                let mut heard = shared.heard();
                heard.ended = heard.ended.max(Some(Instant::now()));
                drop(heard);
                conversation.say_encoded(&shared.done).map_err(words)?;
                (is_done, dues) = (true, Vec::new());
            }
        }
    }
}

/// Latencies as a disk has them, in some hundred buckets.
fn latency() -> Latency {
    let mut latency = Latency::default();
    let mut luck = Luck::of(1);
    for _ in 0..IOS {
        // Some tens of microseconds, a few of them much longer.
        let value = 20_000 + luck.below(100_000) * (1 + 20 * u64::from(luck.below(100) == 0));
        latency.moments.record(value);
        latency.histogram.record(value);
    }
    latency
}

/// The report of an agent with one job.
fn report(latency: &Latency) -> Report {
    let mut job =
        JobReport { identity: Identity::of(0, 0), members: 1, name: "job".into(), ..JobReport::default() };
    let read = &mut job.directions[Direction::Read];
    (read.ios, read.issued, read.bytes, read.runtime_ms) = (IOS, IOS, IOS * 4096, 10_000);
    for of in [&mut read.slat, &mut read.clat, &mut read.lat] {
        of.clone_from(latency);
    }
    Report::merge([Report { jobs: vec![job], ..Report::default() }])
}

fn snapshot(latency: &Latency) -> Snapshot {
    let mut worker = WorkerSnapshot { state: 'R', running: true, ..WorkerSnapshot::default() };
    worker.uses[Direction::Read] = true;
    worker.counters[Direction::Read] =
        Counters { ios: IOS, bytes: IOS * 4096, latency: latency.clone(), asked: Default::default() };
    Snapshot { workers: vec![worker], kb_base: 1024, ..Snapshot::default() }
}
