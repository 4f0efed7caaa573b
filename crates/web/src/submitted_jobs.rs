//! Jobs that are written and started in the browser, one at a time.
//!
//! Each job is checked and run in its own process, which the kernel confines to the files being served before it reads
//! the job (`--serve-only`, see `iolite_remote::confine`). This process never parses the job. The process of a run
//! sends its events to this one over its standard input, as any run does to the process of its page.

use crate::JOB_WORD;
use crate::access::{Access, Rights};
use crate::answer::Answer;
use crate::message::{HAS_ALL, Hello, Judgement, Setup, Step, ToPage, Written};
use crate::request::Request;
use crate::run::Run;
use crate::run_side::Handing;
use crate::transport::Wire;
use iolite_os::process::{Process, replace};
use iolite_page::editor;
use iolite_remote::child;
use iolite_remote::permissions::Permissions;
use iolite_remote::{frame, spool};
use iolite_stats::Event;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum size of a job file with the confirmations of its targets.
pub const MOST_BODY: usize = 1 << 20;
/// How long the check of a job may take before it is killed. (A sleeping device takes some seconds to report its size.)
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a process may take to end after its last message, and how often to check that.
const GRACE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(5);

/// The program's part.
pub trait Clerk: Send + Sync + 'static {
    /// All options of jobs, for completion, in JSON (`assets/edit.js` of `iolite-page` describes the format).
    fn options(&self) -> String;

    /// Stores the report of a run, in JSON. Returns a message about it.
    fn keep(&self, report: &str) -> String;

    /// Prints a message for the user who started this program.
    fn tell(&self, words: &str);
}

/// Checks and starts jobs, and holds the run of the last one that was started.
pub struct Desk {
    permissions: Permissions,
    clerk: Box<dyn Clerk>,
    last: Mutex<Last>,
    runs: Arc<AtomicU64>,
    /// Only one job at a time is checked.
    looking: Mutex<()>,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("permissions", &self.permissions).finish_non_exhaustive()
    }
}

/// The run of the last job.
#[derive(Default)]
struct Last {
    /// A run is being started, or is running.
    is_busy: bool,
    run: Option<Arc<Run>>,
}

/// The request of a page to check or start a job.
#[derive(Deserialize)]
struct Wanted {
    text: String,
    #[serde(default)]
    confirmed: Vec<String>,
}

/// The first answer of the process.
enum First {
    Judged(Judgement),
    Begun,
    Failed(String),
}

impl Desk {
    /// A desk whose jobs have these permissions.
    pub fn new(permissions: Permissions, clerk: Box<dyn Clerk>) -> Desk {
        Desk { permissions, clerk, last: Mutex::default(), runs: Arc::default(), looking: Mutex::new(()) }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many runs there were.
    pub(crate) fn runs(&self) -> Arc<AtomicU64> {
        self.runs.clone()
    }

    /// The run of the last job that was started.
    pub(crate) fn run(&self) -> Option<Arc<Run>> {
        self.last().run.clone()
    }

    /// Whether there is a run to look at, and whether it is still running.
    pub fn standing(&self) -> Option<bool> {
        self.last().run.as_ref().map(|run| !run.is_over())
    }

    /// Answers a request. Returns the answer (`None` = already sent), and whether the path belongs to the desk.
    pub fn answer(
        self: &Arc<Self>,
        access: &Access,
        rights: Rights,
        request: &Request,
        path: &str,
        to: &mut Wire,
    ) -> (Option<Answer>, bool) {
        if let Some(below) = path.strip_prefix("live/") {
            let Some(run) = self.last().run.clone() else {
                return (Some(Answer::text(404, "No job has been started yet.")), true);
            };
            return (run.answer(access, rights, request, below, to), true);
        }
        let answer = match (request.method.as_str(), path) {
            ("GET", "edit" | "edit.css" | "edit.js" | "options.json") if rights < Rights::Start => {
                Answer::text(403, "You may look, but not write jobs.")
            }
            ("GET", "edit") => {
                let proof = access.proof(rights, Rights::Start).unwrap_or_default();
                Answer::page(editor::page(&self.permissions.only, proof), editor::POLICY)
            }
            ("GET", "edit.css") => Answer::file("text/css; charset=utf-8", editor::STYLE),
            ("GET", "edit.js") => Answer::file("text/javascript; charset=utf-8", editor::SCRIPT),
            ("GET", "options.json") => Answer::file("application/json", self.clerk.options()),
            ("POST", "check" | "start") if !access.may(rights, Rights::Start, request) => {
                Answer::text(403, "You may look, but not write and start jobs.")
            }
            ("POST", "check") => self.with_body(request, to, |wanted| self.check(wanted)),
            ("POST", "start") => self.with_body(request, to, |wanted| self.start(wanted)),
            _ => return (None, false),
        };
        (Some(answer), true)
    }

    fn with_body(&self, request: &Request, to: &mut Wire, then: impl FnOnce(Wanted) -> Answer) -> Answer {
        // Forms of other pages cannot send this content type.
        if request.one("content-type") != Some("application/json") {
            return Answer::text(415, "A job is sent as application/json.");
        }
        let Ok(body) = request.body(to) else {
            return Answer::text(408, "The request is not complete.");
        };
        match serde_json::from_slice(&body) {
            Ok(wanted) => then(wanted),
            Err(error) => Answer::text(400, &format!("This is not a job: {error}")),
        }
    }

    fn check(&self, wanted: Wanted) -> Answer {
        let _alone = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let permissions = self.permissions.clone();
        let (first, firsts) = mpsc::channel();
        let written = Written { text: wanted.text, step: Step::Check };
        let spawned = thread::Builder::new().spawn(move || attend(&permissions, &written, &first, |_| None));
        let judged = firsts.recv();
        // The next job is checked when nothing of this one is left.
        let _ = spawned.map(thread::JoinHandle::join);
        match judged {
            Ok(First::Judged(judgement)) => Answer::json(200, &told(&judgement, self.last().is_busy)),
            Ok(First::Failed(why)) => Answer::text(500, &why),
            Ok(First::Begun) | Err(_) => Answer::text(500, "The job cannot be looked at."),
        }
    }

    fn start(self: &Arc<Self>, wanted: Wanted) -> Answer {
        {
            let mut last = self.last();
            if last.is_busy {
                return Answer::text(409, "A run is in progress already: one at a time.");
            }
            last.is_busy = true;
        }
        let busy = Busy(self.clone());
        let (first, firsts) = mpsc::channel();
        let written = Written { text: wanted.text, step: Step::Start { confirmed: wanted.confirmed } };
        let desk = self.clone();
        let spawned = thread::Builder::new().spawn(move || {
            let _busy = busy;
            attend(&desk.permissions, &written, &first, |begun| desk.take(begun));
        });
        let Ok(thread) = spawned else {
            return Answer::text(500, "The job cannot be started: there can be no more threads.");
        };
        let first = firsts.recv();
        if !matches!(first, Ok(First::Begun)) {
            // No job runs; after that, another one can be started.
            let _ = thread.join();
        }
        match first {
            Ok(First::Begun) => Answer::json(200, &json!({ "started": true })),
            Ok(First::Judged(judgement)) => Answer::json(200, &told(&judgement, false)),
            Ok(First::Failed(why)) => Answer::text(500, &why),
            Err(_) => Answer::text(500, "The job cannot be started."),
        }
    }

    /// Handles a message of a run's process.
    fn take(&self, said: Said) -> Option<Arc<Run>> {
        match said {
            Said::Begun(hello, process) => {
                let run = Arc::new(Run::new(*hello, process));
                self.last().run = Some(run.clone());
                self.runs.fetch_add(1, SeqCst);
                self.clerk.tell("a job was started from the page");
                return Some(run);
            }
            Said::Report(report) => self.clerk.tell(&self.clerk.keep(&report)),
            Said::Died(why) => self.clerk.tell(&why),
        }
        None
    }
}

/// The result of a check or a start, in JSON: `assets/edit.js` of `iolite-page` reads it.
fn told(judgement: &Judgement, is_busy: bool) -> Value {
    let mistakes = judgement.mistakes.iter().map(|one| {
        let (line, column) = one.place.unzip();
        json!({ "line": line, "column": column, "message": one.message, "warning": one.is_warning })
    });
    let held = judgement.held.iter().map(|one| json!({ "name": one.name, "what": one.what }));
    json!({ "mistakes": mistakes.collect::<Vec<_>>(), "holds": held.collect::<Vec<_>>(), "busy": is_busy })
}

/// As long as this lives, no other job can be started.
struct Busy(Arc<Desk>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.last().is_busy = false;
    }
}

/// The later messages of a run's process.
enum Said {
    Begun(Box<Hello>, Option<Process>),
    Report(String),
    Died(String),
}

/// Starts the process of a job, and handles all of its messages.
fn attend(
    permissions: &Permissions,
    written: &Written,
    first: &Sender<First>,
    mut take: impl FnMut(Said) -> Option<Arc<Run>>,
) {
    let own = spool::new();
    let tell = |said: First| drop(first.send(said));
    let failed = |why: &dyn fmt::Display| First::Failed(format!("The process of the job: {why}"));
    match start(permissions, &own, written) {
        Err(error) => tell(failed(&error)),
        Ok((mut process, mut channel)) => {
            match frame::read(&mut channel) {
                Ok(ToPage::Judged(judgement)) => tell(First::Judged(judgement)),
                Ok(ToPage::Hello(hello, _)) => {
                    if let Some(run) = take(Said::Begun(hello, Process::of(process.id() as i32))) {
                        // From here on it may be silent for long.
                        let _ = channel.set_read_timeout(None);
                        tell(First::Begun);
                        hear(&mut channel, &run, &mut take);
                    }
                }
                Ok(_) => tell(failed(&"it says something else than was expected")),
                Err(error) => tell(failed(&error)),
            }
            drop(channel);
            end(&mut process);
        }
    }
    // The directory may not exist.
    let _ = std::fs::remove_dir_all(&own);
}

/// Waits for the end of a process after its last message.
fn end(process: &mut Child) {
    let until = Instant::now() + GRACE;
    while Instant::now() < until {
        if !matches!(process.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(LOOK);
    }
    // Both fail only if the process has ended meanwhile.
    let _ = process.kill();
    let _ = process.wait();
}

fn start(permissions: &Permissions, own: &Path, written: &Written) -> io::Result<(Child, UnixStream)> {
    let (mut channel, its_channel) = UnixStream::pair()?;
    let mut command = child::command(JOB_WORD, false, permissions, own);
    command.stdin(OwnedFd::from(its_channel)).stdout(Stdio::null());
    let process = command.spawn()?;
    drop(command);
    channel.set_write_timeout(Some(PATIENCE))?;
    channel.set_read_timeout(Some(PATIENCE))?;
    let bytes = frame::encode(written).map_err(io::Error::other)?;
    // If the process does not accept this, it reports why, or is gone.
    let _ = channel.write_all(&bytes);
    Ok((process, channel))
}

/// Handles the messages of a run until its end.
fn hear(channel: &mut UnixStream, run: &Run, take: &mut impl FnMut(Said) -> Option<Arc<Run>>) {
    loop {
        match frame::read(channel) {
            Ok(ToPage::Event(event)) => run.take(*event),
            Ok(ToPage::Report(report)) => drop(take(Said::Report(report))),
            Ok(ToPage::End(page)) => {
                run.end(page);
                let _ = channel.write_all(&[HAS_ALL]);
                return;
            }
            Ok(_) | Err(_) => {
                let why = "the process of the run has ended without a report";
                run.end(editor::failed(why));
                take(Said::Died(why.to_owned()));
                return;
            }
        }
    }
}

/// The channel of a process that was started for a job of a page.
#[derive(Debug)]
pub struct JobChannel {
    stream: UnixStream,
    handing: Option<Handing>,
}

impl JobChannel {
    /// Takes over the socket at standard input, and replaces standard input, so that jobs find nothing there.
    ///
    /// # Errors
    /// This process was not started by a page's server.
    pub fn take_over() -> io::Result<JobChannel> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        stream.peer_addr()?;
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        replace(&io::stdin(), &nothing)?;
        Ok(JobChannel { stream, handing: None })
    }

    /// The job.
    ///
    /// # Errors
    /// The server of the page is gone.
    pub fn written(&mut self) -> Result<Written, frame::FrameError> {
        frame::read(&mut self.stream)
    }

    /// Sends the mistakes in the job. This is the last message.
    pub fn judge(mut self, judgement: Judgement) {
        // If the server is gone, the verdict does not matter.
        let _ = frame::write(&mut self.stream, &ToPage::Judged(judgement));
    }

    /// Reports that the job runs.
    ///
    /// # Errors
    /// The server is gone.
    pub fn begin(&mut self, hello: Hello) -> io::Result<()> {
        self.handing = Some(Handing::over(self.stream.try_clone()?, hello, Setup::default())?);
        Ok(())
    }

    /// Passes on an event. Does not wait. (If the server is gone, the kernel ends this process, too.)
    pub fn take(&mut self, event: &Event) {
        let _ = self.handing.as_mut().map(|handing| handing.take(event));
    }

    /// The run is over: passes on its report in JSON, if any, and the report's page.
    pub fn end(mut self, report: Option<String>, page: String) {
        let last = report.map(ToPage::Report).into_iter().chain([ToPage::End(page)]);
        let _ = self.handing.as_mut().map(|handing| handing.end(last));
    }
}
