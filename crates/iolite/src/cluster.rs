//! `--client`: a run on other machines, with one report.

mod page;
mod shared_files;

use crate::console::{self, Console};
use crate::exit_status::INTERRUPTED;
use crate::live_page::Lost;
use crate::messages::{complain, program, told};
use crate::metrics_push::Collector;
use crate::report_formats::Formats;
use crate::saving::Saving;
use crate::session::has_program_format;
use crate::{connection_keys, exit_status, run_files};
use iolite_options::{EtaWhen, Name, OutputFormat, RunElsewhere, RunOptions, SentJobs, WhenLost};
use iolite_os::process;
use iolite_os::signals::SignalQueue;
use iolite_page::Html;
use iolite_remote::coordinator::{Coordinator, NotReached, Settings, Told, Wish};
use iolite_remote::keys::{Keys, Role};
use iolite_remote::message::{Begun, Request};
use iolite_remote::ranks::Meeting;
use iolite_remote::{Address, address};
use iolite_report::Exporter;
use iolite_report::live::LiveLine;
use iolite_run::{HeldSignals, Request as Asked, Requests, Trigger, Watch};
use iolite_stats::{Cluster, Event, EventKind, HostReport, Report, Snapshot, Stuck};
use iolite_types::{Repeated, RunEnd};
use page::{HostsPage, Stage};
use std::cell::Cell;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::time::{Duration, Instant};

/// The shortest and longest interval of a machine's reports during its run, which keep its measurements if it is lost.
const KEPT_MS: [u64; 2] = [1000, 5000];
/// All machines together send at most one report in this many milliseconds.
const KEPT_MS_OF_EACH: u64 = 5;

/// Runs the jobs, on the ranks of a launcher if there are any; the exit status.
pub fn run(name: Name, asked: RunElsewhere, ranks: Option<Meeting>) -> u8 {
    if !name.is_strict() {
        console::print_error(&told(name, &asked.warnings));
    }
    match perform(name, asked, ranks) {
        Ok(status) => status,
        Err(problems) => {
            problems.iter().for_each(|problem| complain(name, problem));
            1
        }
    }
}

/// Runs the jobs; the exit status, or why they do not run.
fn perform(name: Name, asked: RunElsewhere, ranks: Option<Meeting>) -> Result<u8, Vec<String>> {
    let RunElsewhere { clients, on_ranks, run, keys, insecure, push, exec, when_lost, timeout_ms, .. } =
        asked;
    let launcher = on_ranks.then(parent_id);
    let mut addresses = Vec::new();
    let mut named_in = Vec::new();
    let mut requests = Vec::new();
    let mut problems = Vec::new();
    for client in clients.iter().filter(|_| !on_ranks) {
        for (place, text) in hosts(&client.address).map_err(|why| vec![why])? {
            match Address::parse(&text).map(Address::to_reach) {
                Ok(address) => {
                    addresses.push(address);
                    named_in.push(place);
                    requests.push(client.jobs.clone());
                }
                Err(why) => problems.push(format!("{}: {why}", place.as_deref().unwrap_or("--client"))),
            }
        }
    }
    let has_ssh = addresses.iter().any(|address| matches!(address, Address::Ssh(_)));
    for (option, is_idle) in [("--push", push && !has_ssh), ("--serve-exec", exec && !has_ssh && !on_ranks)] {
        if is_idle {
            problems.push(format!("{option}: there is no --client=ssh:HOST for it"));
        }
    }
    if on_ranks && keys.is_some() {
        problems.push("--keys: the ranks of a launcher get separate keys for each run".to_owned());
    }
    if !problems.is_empty() {
        problems.dedup();
        return Err(problems);
    }
    let keys = match ranks {
        Some(meeting) => {
            let gathered = meeting.gather(insecure).map_err(|why| vec![format!("--mpi: {why}")])?;
            addresses = gathered.addresses;
            requests = vec![clients[0].jobs.clone(); addresses.len()];
            gathered.keys
        }
        None => {
            let keys = keys_for(&addresses, keys.as_deref(), insecure).map_err(|why| vec![why])?;
            keys.iter().for_each(|keys| connection_keys::warn_of_end(name, keys));
            keys
        }
    };
    // Before threads start, so that none of them is interrupted.
    let signals = SignalQueue::new(&[libc::SIGINT, libc::SIGTERM, libc::SIGUSR1])
        .map_err(|error| vec![format!("signals cannot be received: {error}")])?;
    check_files(&addresses, process::allow_many_files()).map_err(|why| vec![why])?;
    let collector = Collector::of(&run).map_err(|why| vec![why])?;
    let check = |_: &Path| Ok(());
    let saving = Saving::prepare(name, &run, &check).map_err(|why| vec![why])?;
    let mut console = run_files::check_against(&run, &|_| None)
        .and_then(|()| Console::open(&run, false))
        .map_err(|error| vec![error.to_string()])?;
    let asked = |format| run.output_format.contains(&format);
    // Under the name `fio`, JSON has only fio's keys.
    let is_in_json = (asked(OutputFormat::Json) || asked(OutputFormat::JsonPlus)) && !name.is_strict();
    let wants_series = saving.is_some()
        || run.is_watched()
        || is_in_json
        || [OutputFormat::Html, OutputFormat::Summary, OutputFormat::Markdown].into_iter().any(asked);
    let settings = Settings {
        timeout: Duration::from_millis(timeout_ms),
        abort_when_lost: when_lost == WhenLost::Abort,
        push,
        exec,
        program: name.own_version(),
    };
    let (wants_report, has_begun) = (Cell::new(false), Cell::new(false));
    let trigger = Trigger {
        file: run.trigger_file.clone(),
        after: run.trigger_timeout.map(Duration::from_millis),
        command: run.trigger.clone(),
    };
    let mut wishes = Wishes {
        signals,
        requests: Requests::none(),
        asked: false,
        wants_report: &wants_report,
        launcher,
        watch: Watch::new(trigger, Vec::new()),
        has_begun: &has_begun,
        since: Instant::now(),
        watches: false,
        has_fired: false,
        name,
    };
    let coordinator = match Coordinator::reach(&addresses, keys, settings, &mut || wishes.next()) {
        Ok(coordinator) => coordinator,
        Err(NotReached::Failed(failed)) => {
            let said = |(index, why): (usize, String)| match &addresses[index] {
                rank @ Address::Rank { .. } => format!("--mpi: {rank}: {why}"),
                address => match &named_in[index] {
                    None => format!("--client={address}: {why}"),
                    Some(place) => format!("{place}: {address}: {why}"),
                },
            };
            return Err(failed.into_iter().map(said).collect());
        }
        Err(NotReached::Stopped) => {
            complain(name, &"interrupted before all hosts were reached; nothing was begun");
            return Ok(exit_status::of(name, true, false, 0));
        }
    };
    let machines: Vec<String> = coordinator.machines().map(|hello| hello.machine.clone()).collect();
    let labels = labels(name, &machines, &addresses);
    let page = HostsPage::start(name, &run, &labels).map_err(|why| vec![why])?;
    let sample_ms = page.as_ref().map_or(0, |_| page::interval(labels.len()).as_millis() as u64);
    let wishes_of_all = (&wants_report, &has_begun);
    let mut session = Session::new(name, &run, &mut console, labels, &addresses, wishes_of_all);
    session.page = page;
    let places = places(&requests);
    let kept_ms = (requests.len() as u64 * KEPT_MS_OF_EACH).clamp(KEPT_MS[0], KEPT_MS[1]);
    let requests = requests.into_iter().zip(places).map(|(jobs, (host, hosts))| Request {
        host,
        hosts,
        as_fio: name.is_strict(),
        snapshot_ms: if session.is_live { run.eta_interval } else { 0 },
        status_ms: if run.status_interval > 0 { run.status_interval } else { kept_ms },
        sample_ms,
        series: wants_series,
        jobs,
    });
    let mut finished = coordinator.run(
        requests.collect(),
        &tags(&addresses),
        &mut |index, told| session.take(index, told),
        &mut || wishes.next(),
    );
    let together = finished.together();
    (session.cluster.start, session.cluster.steady) = (together.start, together.steady);
    // The queue must live on: without it, the signals would no longer be blocked.
    let Wishes { signals: _held, requests, asked, mut watch, has_fired, .. } = wishes;
    if let Ok(held) = HeldSignals::new() {
        held.give_up_when_asked(requests, console::taken, INTERRUPTED.into(), move || {
            complain(name, &"given up: files that are not written or received yet are lost");
        });
    }
    if has_fired {
        session.tell_line("trigger: the run ends here\n");
    }
    session.cluster.end = Some(session.end_of_run(asked, has_fired));
    let is_written = session.end();
    // A report that could not be written is stored all the same; jobs that did not run have no report.
    let saving = saving.filter(|_| !session.refused);
    let is_kept = saving.is_none_or(|saving| saving.keep(&session.cluster.together()));
    let collector = collector.filter(|_| !session.refused);
    let pushed = collector.map_or(Ok(()), |collector| collector.push(name, &session.cluster.together()));
    if let Err(why) = &pushed {
        complain(name, why);
    }
    session.show();
    // After the report: logs may be long, and the network slow.
    finished.gather(&mut |index, told| session.take(index, told));
    if has_fired {
        if run.trigger_remote.is_some() {
            finished.trigger(&mut |index, told| session.take(index, told));
        }
        // The command may cut the power.
        let ended = watch.start_command().map(|()| watch.finish_command());
        if let Err(problem) | Ok(Some(problem)) = ended {
            complain(name, &problem);
        }
    }
    finished.end();
    if let Err(error) = is_written {
        return Err(vec![error]);
    }
    match exit_status::of(name, asked, session.failed, session.failures) {
        0 if !is_kept || pushed.is_err() => Ok(1),
        status => Ok(status),
    }
}

/// Checks whether this limit of open files is enough for these machines.
fn check_files(addresses: &[Address], limit: u64) -> Result<(), String> {
    /// Other open files of this process, and those for returned files.
    const OTHERS: u64 = 48;
    let has_pipe = |address: &&Address| matches!(address, Address::Ssh(_) | Address::Rank { .. });
    // One descriptor per machine; three more if ssh or a launcher carries the connection.
    let carried = addresses.iter().filter(has_pipe).count() as u64;
    let needed = addresses.len() as u64 + 3 * carried + OTHERS;
    if needed <= limit {
        return Ok(());
    }
    let hosts = addresses.len();
    Err(format!(
        "--client: {hosts} hosts need {needed} open files, and this process may have {limit}; raise the limit (ulimit -Hn, LimitNOFILE= \
         in a unit of systemd)"
    ))
}

/// For each machine, its index among those with the same jobs, and their number.
fn places(jobs: &[SentJobs]) -> Vec<(u64, u64)> {
    // There are few different jobs, even for many machines.
    let mut kinds: Vec<(&SentJobs, u64)> = Vec::new();
    let mut numbered = Vec::new();
    for one in jobs {
        let known = kinds.iter().position(|(known, _)| *known == one);
        let kind = known.unwrap_or_else(|| {
            kinds.push((one, 0));
            kinds.len() - 1
        });
        numbered.push((kinds[kind].1, kind));
        kinds[kind].1 += 1;
    }
    numbered.into_iter().map(|(number, kind)| (number, kinds[kind].1)).collect()
}

/// The keys for these machines; `None` = no keys are needed, or `--insecure` was given.
fn keys_for(addresses: &[Address], file: Option<&Path>, insecure: bool) -> Result<Option<Keys>, String> {
    // Unix sockets and ssh need no keys.
    let Some(first) = addresses.iter().find(|address| !address.is_protected()) else { return Ok(None) };
    let file = connection_keys::keys(Role::Coordinator, file, insecure);
    let file = file.map_err(|why| format!("--client={first}: {why}"))?;
    file.map(|file| Keys::read(&file, Role::Coordinator)).transpose()
}

/// The machines that `--client` names: one, or those in a list, each with its place in the list.
fn hosts(text: &str) -> Result<Vec<(Option<String>, String)>, String> {
    if !Path::new(text).is_file() {
        return Ok(vec![(None, text.to_owned())]);
    }
    let list = std::fs::read_to_string(text).map_err(|error| format!("--client={text}: {error}"))?;
    let list = address::list(&list).map(|(line, host)| (Some(format!("{text}:{line}")), host.to_owned()));
    let list: Vec<_> = list.collect();
    if list.is_empty() { Err(format!("--client={text}: the list has no hosts in it")) } else { Ok(list) }
}

/// The names of machines, with the address added if several have the same name.
fn labels(name: Name, machines: &[String], addresses: &[Address]) -> Vec<String> {
    let is_alone = |machine: &String| machines.iter().filter(|other| *other == machine).count() == 1;
    let label = |(machine, address): (&String, &Address)| match is_alone(machine) || name.is_strict() {
        true => machine.clone(),
        false => format!("{machine} {address}"),
    };
    machines.iter().zip(addresses).map(label).collect()
}

/// The names of machines in the names of returned files. As with fio, a name is the value of `--client` without the
/// port, and `sock` is the only machine on a socket.
fn tags(addresses: &[Address]) -> Vec<String> {
    let is_socket = |address: &&Address| matches!(address, Address::Socket(_));
    let sockets = addresses.iter().filter(is_socket).count();
    let short = |address: &Address| match address {
        Address::Socket(_) if sockets == 1 => "sock".to_owned(),
        address => in_file_name(&address.host()),
    };
    let shorts: Vec<String> = addresses.iter().map(short).collect();
    // This machine's own states have this name.
    let is_own = |tag: &String| tag == "local";
    let is_only = |tag: &String| !is_own(tag) && shorts.iter().filter(|other| *other == tag).count() == 1;
    let with_port = |(short, address): (&String, &Address)| match address.port() {
        0 => format!("{short},ssh"),
        port => format!("{short},{port}"),
    };
    let long: Vec<String> = shorts.iter().zip(addresses).map(with_port).collect();
    let tags = long.iter().enumerate().map(|(index, long_tag)| {
        match long.iter().filter(|other| *other == long_tag).count() {
            _ if is_only(&shorts[index]) => shorts[index].clone(),
            1 => long_tag.clone(),
            _ => format!("{long_tag},{index}"),
        }
    });
    tags.collect()
}

/// The most bytes of a host's name in the names of files.
const MOST_OF_A_NAME: usize = 64;

/// The same without characters that change the directory, or start an option.
fn in_file_name(host: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || ".:_-@%".contains(c) { c } else { '_' };
    let name: String = host.chars().map(kept).collect();
    let name = name.trim_start_matches(['_', '-', '.']);
    let length = name.char_indices().map(|(at, _)| at).find(|at| name.len() - at <= MOST_OF_A_NAME);
    match &name[length.unwrap_or(name.len())..] {
        "" => "host".to_owned(),
        // The states of this machine's own jobs begin like this.
        name if name.starts_with("local-") => format!("host-{name}"),
        name => name.to_owned(),
    }
}

/// Requests of the user by signals and the trigger.
struct Wishes<'a> {
    signals: SignalQueue,
    requests: Requests,
    /// The run was asked to end.
    asked: bool,
    /// Set when a report is requested.
    wants_report: &'a Cell<bool>,
    /// The process of the launcher that has started this one.
    launcher: Option<u32>,
    /// Watches for the trigger, from the common start.
    watch: Watch,
    has_begun: &'a Cell<bool>,
    since: Instant,
    watches: bool,
    has_fired: bool,
    name: Name,
}

impl Wishes<'_> {
    fn next(&mut self) -> Wish {
        // The launcher was killed, so the run ends too.
        if self.launcher.take_if(|launcher| *launcher != parent_id()).is_some() {
            self.asked = true;
            return Wish::Stop;
        }
        if self.fires_now() {
            return Wish::Stop;
        }
        match self.signals.next() {
            None => {
                self.requests.seen_none(Instant::now());
                Wish::None
            }
            Some(libc::SIGUSR1) => {
                self.wants_report.set(true);
                Wish::Status
            }
            Some(_) => {
                self.asked = true;
                match self.requests.take(Instant::now()) {
                    Asked::End => Wish::Stop,
                    Asked::Again => Wish::None,
                    Asked::GiveUp => Wish::GiveUp,
                }
            }
        }
    }
}

impl Wishes<'_> {
    fn fires_now(&mut self) -> bool {
        let now = self.since.elapsed().as_nanos() as u64;
        if self.has_begun.take() {
            self.watch.begin(now);
            self.watches = true;
        }
        let mut problems = Vec::new();
        let fires = self.watches && self.watch.fires(now, &mut problems);
        self.has_fired |= fires;
        problems.iter().for_each(|problem| complain(self.name, problem));
        fires
    }
}

/// The run as its user sees it.
struct Session<'a> {
    name: Name,
    run: &'a RunOptions,
    console: &'a mut Console,
    cluster: Cluster,
    page: Option<HostsPage>,
    addresses: &'a [Address],
    /// The progress of each machine.
    snapshots: Vec<Snapshot>,
    /// The machines that have reported since the last interim report was printed.
    fresh: Vec<bool>,
    over: Vec<bool>,
    /// A report was requested, so earlier reports do not count.
    wants_report: &'a Cell<bool>,
    /// Set when all machines begin.
    has_begun: &'a Cell<bool>,
    /// A report is printed as soon as all machines have sent theirs.
    awaits_report: bool,
    is_live: bool,
    live: LiveLine,
    began: Instant,
    drawn: Instant,
    failed: bool,
    failures: usize,
    /// A machine has refused its jobs, so no machine runs.
    refused: bool,
    /// What the machines will do, until all begin.
    in_use: Vec<(usize, Begun)>,
    /// The failures that were printed.
    repeated: Repeated,
    /// The warnings about jobs, and the failures of I/Os after which these continued.
    warned: Repeated,
}

impl<'a> Session<'a> {
    fn new(
        name: Name,
        run: &'a RunOptions,
        console: &'a mut Console,
        labels: Vec<String>,
        addresses: &'a [Address],
        (wants_report, has_begun): (&'a Cell<bool>, &'a Cell<bool>),
    ) -> Self {
        let host = |(label, address): (String, &Address)| HostReport {
            label,
            address: address.host(),
            port: address.port(),
            ..HostReport::default()
        };
        let hosts: Vec<HostReport> = labels.into_iter().zip(addresses).map(host).collect();
        let is_live = match run.eta {
            EtaWhen::Always => true,
            EtaWhen::Never => false,
            EtaWhen::Auto => console.is_watched() && run.is_for_people(),
        };
        Session {
            snapshots: vec![Snapshot::default(); hosts.len()],
            fresh: vec![false; hosts.len()],
            over: vec![false; hosts.len()],
            wants_report,
            has_begun,
            awaits_report: false,
            cluster: Cluster { hosts, ..Cluster::default() },
            page: None,
            name,
            run,
            console,
            is_live,
            live: LiveLine::of(run.output_format.contains(&OutputFormat::Summary)),
            began: Instant::now(),
            drawn: Instant::now(),
            failed: false,
            failures: 0,
            refused: false,
            addresses,
            in_use: Vec::new(),
            repeated: Repeated::default(),
            warned: Repeated::default(),
        }
    }

    /// Updates the page; if the page is gone, the run continues without it.
    fn on_page(&mut self, show: impl FnOnce(&mut HostsPage) -> Result<(), Lost>) {
        if let Some(page) = &mut self.page
            && let Err(lost) = show(page)
        {
            self.clear_line();
            let text = format!("{}: {lost}\n", self.name);
            match self.name.is_strict() {
                true => self.console.write(text.as_bytes()),
                false => console::print_error(&text),
            }
        }
    }

    /// Shows the state of a machine on the page.
    fn stands(&mut self, index: usize, stage: Stage) {
        self.on_page(|page| page.stands(index, stage));
    }

    fn take(&mut self, index: usize, told: Told) {
        match &told {
            Told::Begun(_) => self.stands(index, Stage::SetsUp),
            Told::Waits(true) => self.stands(index, Stage::Waits),
            Told::Waits(false) => self.stands(index, Stage::Goes),
            Told::Done(done) => self.stands(index, Stage::Ended { failed: done.failed }),
            Told::Refused(refusal) => {
                self.page.iter_mut().for_each(|page| page.refused(index, &refusal.problems));
                self.stands(index, Stage::Ended { failed: true });
            }
            Told::CutShort(..) | Told::Lost(_) => self.stands(index, Stage::Lost),
            Told::AllEnd => self.on_page(|page| page.told(None, EventKind::Terminating(0))),
            _ => {}
        }
        match told {
            Told::Waits(_) | Told::AllEnd => {}
            // (fio prints all.)
            Told::Warning(text) if self.name.is_strict() => self.warning(index, &text),
            Told::Warning(text) => self.warn_once(index, text, 1),
            Told::Begun(begun) => {
                if self.run.output_format.contains(&OutputFormat::Normal) {
                    self.note(index, &begun.lines);
                }
                self.in_use.push((index, begun));
            }
            Told::Event(event) => self.event(index, *event),
            Told::Refused(refusal) => {
                refusal.problems.iter().for_each(|problem| self.complain(index, problem));
                self.cluster.hosts[index].report = refusal.report.unwrap_or_default();
                self.end_of(index, true);
                self.failures += 1;
                self.refused = true;
            }
            Told::AllBegin => {
                self.has_begun.set(true);
                self.warn_of_shared_files();
            }
            // As with a local trigger, that is not a failure of the run.
            Told::Trigger(why) => self.complain(index, &why),
            Told::NotKept(why) => {
                self.complain(index, &why);
                self.failed = true;
                self.failures += 1;
            }
            Told::Missing(count) => {
                self.failed = true;
                self.failures += count as usize;
            }
            Told::Done(done) => {
                self.cluster.hosts[index].report = done.report;
                self.failures += done.failures as usize;
                self.end_of(index, done.failed);
            }
            Told::CutShort(signal, done) => {
                let why = format!("its run was ended there by signal {signal}");
                self.complain(index, &why);
                let host = &mut self.cluster.hosts[index];
                (host.report, host.lost) = (done.report, Some(why));
                self.failures += (done.failures as usize).max(1);
                self.end_of(index, true);
            }
            Told::Lost(why) => {
                self.complain(index, &format!("the host is lost: {why}"));
                self.cluster.hosts[index].lost = Some(why);
                self.failures += 1;
                self.end_of(index, true);
            }
        }
    }

    /// How the run has ended. `asked`: by a signal, or the end of the launcher.
    fn end_of_run(&self, asked: bool, has_fired: bool) -> RunEnd {
        let lost = self.cluster.hosts.iter().find_map(|host| Some((host, host.lost.as_ref()?)));
        match (self.refused, lost) {
            (true, _) => RunEnd::failed("it could not begin"),
            _ if asked => RunEnd::interrupted("ended at the client"),
            _ if has_fired => RunEnd::by_trigger(),
            (_, Some((host, why))) => RunEnd::interrupted(format!("{} was lost: {why}", host.label)),
            _ if self.failed => RunEnd::with_failures(self.failures),
            _ => RunEnd::planned(),
        }
    }

    fn end_of(&mut self, index: usize, has_failed: bool) {
        self.failed |= has_failed;
        self.over[index] = true;
        for worker in &mut self.snapshots[index].workers {
            worker.running = false;
        }
    }

    fn event(&mut self, index: usize, event: Event) {
        match event.kind {
            EventKind::Note(text) => self.note(index, &format!("{text}\n")),
            EventKind::Warning(text) => self.warning(index, &text),
            EventKind::Trouble(text) | EventKind::WrongData(text) => self.complain(index, &text),
            EventKind::Fatal(text) => self.complain_once(index, &text),
            EventKind::Tolerated(text, count) => self.warn_once(index, text, count),
            EventKind::Failed { pid, error, blocks } => {
                let words = error.words(blocks, self.name.is_strict());
                self.complain_once(
                    index,
                    &format!("pid={pid}, err={}/{}, error={words}", error.errno, error.what),
                );
            }
            // Others may have begun already; then theirs are shown.
            EventKind::Snapshot(snapshot) if snapshot.is_laying_out => {}
            EventKind::Snapshot(snapshot) => {
                self.snapshots[index] = *snapshot;
                self.draw();
            }
            EventKind::Status(report) => self.status(index, *report),
            EventKind::InFlight { ios, left_out } => {
                self.clear_line();
                console::print_error(&self.with_host(index, &iolite_report::in_flight(&ios, left_out)));
            }
            EventKind::Terminating(signal) => {
                self.note(index, &format!("terminating on signal {signal}\n"));
            }
            EventKind::Sample(snapshot) => self.on_page(|page| page.sampled(index, &snapshot)),
            EventKind::Slice(_) => {}
            // The coordinator has handled these.
            EventKind::InStep(_)
            | EventKind::Ready(_)
            | EventKind::Passed(_)
            | EventKind::Started { .. }
            | EventKind::Measured(_) => {}
        }
    }

    /// Keeps an interim report; prints the requested reports when all machines have sent theirs.
    fn status(&mut self, index: usize, report: Report) {
        if self.wants_report.take() {
            self.fresh.fill(false);
            self.awaits_report = true;
        }
        self.cluster.hosts[index].report = report;
        self.fresh[index] = true;
        if (self.run.status_interval == 0 && !self.awaits_report)
            || !self.fresh.iter().zip(&self.over).all(|(fresh, over)| *fresh || *over)
        {
            return;
        }
        self.awaits_report = false;
        self.fresh.fill(false);
        self.clear_line();
        let text = self.text();
        self.console.write_made(&text);
    }

    fn text(&self) -> Vec<u8> {
        // The user has read why nothing ran.
        let formats = self.run.output_format.iter().copied();
        let formats = formats.filter(|format| !(self.refused && format.is_for_people()));
        let run = RunOptions { output_format: formats.collect(), ..self.run.clone() };
        let without = self.run.no_series.then(|| {
            let mut cluster = self.cluster.clone();
            cluster.hosts.iter_mut().for_each(|host| host.report.series = None);
            cluster
        });
        let cluster = without.as_ref().unwrap_or(&self.cluster);
        Formats::of(&run, self.console.is_on_terminal()).text_of_cluster(cluster, &program(self.name))
    }

    /// Writes the final report.
    fn end(&mut self) -> Result<(), String> {
        self.page.iter_mut().for_each(HostsPage::leave_screen);
        self.clear_line();
        // (Text from another machine must not control the terminal.)
        let line = |text: &str| iolite_types::without_error_numbers(text).replace(char::is_control, " ");
        for text in self.repeated.rest() {
            console::print_error(&format!("{}: {}\n", self.name, line(&text)));
        }
        for text in self.warned.rest() {
            let text = format!("{}: {}\n", self.name, line(&text));
            if self.name.is_strict() { self.tell_line(&text) } else { console::print_error(&text) }
        }
        if self.refused && !has_program_format(self.run) {
            // The reason why nothing ran has been printed.
            return Ok(());
        }
        let text = self.text();
        if !self.run.output_format.contains(&OutputFormat::Html) {
            return self.console.write_last(&text).map_err(|error| error.to_string());
        }
        let mut page = Vec::new();
        let made = Html.write_cluster(&self.cluster, &program(self.name), &mut page);
        let made = made.map_err(|error| format!("there is no page of the report: {error}"));
        if self.run.output_format == [OutputFormat::Html] {
            made?;
            return self.console.write_last(&page).map_err(|error| error.to_string());
        }
        self.console.write_last(&text).map_err(|error| error.to_string())?;
        made?;
        self.console.write_page(&page).map_err(|error| error.to_string())
    }

    /// Shows the result to the readers of the run's page.
    fn show(&mut self) {
        let (name, page) = (self.name, self.page.take());
        let shown = page.map_or(Ok(()), |page| page.end(name, &self.cluster));
        if let Err(lost) = shown {
            console::print_error(&format!("{name}: {lost}\n"));
        }
    }

    /// Prints lines for the reader of the report, prefixed with the machine. Output for programs does not get them.
    fn note(&mut self, index: usize, text: &str) {
        let told = || EventKind::Note(text.trim_end().to_owned());
        self.on_page(|page| page.told(Some(index), told()));
        if self.run.is_for_people() {
            self.clear_line();
            let text = self.with_host(index, text);
            self.console.write(text.as_bytes());
        }
    }

    /// A line for the reader of the report, about all machines.
    fn tell_line(&mut self, text: &str) {
        if self.run.is_for_people() {
            self.clear_line();
            self.console.write(text.as_bytes());
        }
    }

    /// This is no failure, so under the name `fio` standard error stays empty.
    fn warning(&mut self, index: usize, text: &str) {
        if self.name.is_strict() { self.note(index, text) } else { self.complain(index, text) }
    }

    /// Prints a warning that many machines may have: the first of its kind, with the machine.
    fn warn_once(&mut self, index: usize, text: String, count: u64) {
        let label = self.cluster.hosts[index].label.clone();
        if self.warned.is_first_of(Some(&label), &text, count) {
            self.warning(index, &text);
        } else {
            self.on_page(|page| page.told(Some(index), EventKind::Tolerated(text, count)));
        }
    }

    /// Prints a failure that many machines may have: the first of its kind, with the machine. (fio prints all.)
    fn complain_once(&mut self, index: usize, text: &str) {
        let label = self.cluster.hosts[index].label.clone();
        if self.name.is_strict() || self.repeated.is_first_of(Some(&label), text, 1) {
            self.complain(index, text);
        } else {
            self.on_page(|page| page.told(Some(index), EventKind::Trouble(text.to_owned())));
        }
    }

    fn complain(&mut self, index: usize, text: &str) {
        self.on_page(|page| page.told(Some(index), EventKind::Trouble(text.to_owned())));
        self.clear_line();
        let text = self.with_host(index, &iolite_types::without_error_numbers(text));
        text.lines().for_each(|line| console::print_error(&format!("{}: {line}\n", self.name)));
    }

    fn warn_of_shared_files(&mut self) {
        let used = std::mem::take(&mut self.in_use);
        let Some(words) = shared_files::warning(&used, self.addresses, self.name) else { return };
        self.on_page(|page| page.told(None, EventKind::Warning(words.clone())));
        let line = format!("{}: warning: {words}\n", self.name);
        if self.name.is_strict() {
            self.tell_line(&line);
        } else {
            self.clear_line();
            console::print_error(&line);
        }
    }

    fn with_host(&self, index: usize, text: &str) -> String {
        let label = &self.cluster.hosts[index].label;
        // Text from another machine must not control the terminal.
        let is_shown = |c: &char| *c == '\t' || !c.is_control();
        let lines = text.lines().map(|line| line.chars().filter(is_shown).collect::<String>());
        lines.map(|line| format!("<{label}> {line}\n")).collect()
    }

    /// Draws the status line of all machines together.
    fn draw(&mut self) {
        if self.drawn.elapsed() < Duration::from_millis(self.run.eta_interval) / 2 {
            return;
        }
        self.drawn = Instant::now();
        let known = || self.snapshots.iter().filter(|snapshot| !snapshot.workers.is_empty());
        let mut whole = Snapshot {
            elapsed_ns: self.began.elapsed().as_nanos() as u64,
            percent: known()
                .map(|snapshot| snapshot.percent)
                .reduce(|one, other| Some(one?.min(other?)))
                .flatten(),
            eta_s: known()
                .map(|snapshot| snapshot.eta_s)
                .reduce(|one, other| Some(one?.max(other?)))
                .flatten(),
            kb_base: known().next().map_or(1024, |snapshot| snapshot.kb_base),
            unit_base: known().next().map_or(0, |snapshot| snapshot.unit_base),
            stuck: known().filter_map(|snapshot| snapshot.stuck.clone()).reduce(Stuck::and),
            ..Snapshot::default()
        };
        whole.workers = known().flat_map(|snapshot| snapshot.workers.iter().cloned()).collect();
        let width = if self.name.is_strict() { None } else { self.console.width() };
        let text = self.live.redraw(&whole, None, width);
        self.console.show(&text);
    }

    fn clear_line(&mut self) {
        let width = if self.name.is_strict() { None } else { self.console.width() };
        let erased = self.live.erase(width);
        if !erased.is_empty() {
            self.console.show(&erased);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_with_the_same_jobs_are_numbered() {
        let jobs = |name: &str| SentJobs { sections: vec![name.to_owned()], ..SentJobs::default() };
        let all = ["a", "b", "a", "a"].map(jobs);
        assert_eq!(places(&all), [(0, 3), (0, 1), (1, 3), (2, 3)]);
    }

    #[test]
    fn machines_in_file_names() {
        let tags = |texts: &[&str]| {
            let addresses: Vec<_> = texts.iter().map(|text| Address::parse(text).unwrap()).collect();
            tags(&addresses)
        };
        assert_eq!(tags(&["one", "two,1", "ssh:me@three", "sock:/tmp/s"]), ["one", "two", "three", "sock"]);
        assert_eq!(tags(&["sock:/tmp/a", "sock:../b c"]), ["tmp_a", "b_c"]);
        assert_eq!(tags(&["one,1", "one,2", "ip6:::1"]), ["one,1", "one,2", "::1"]);
        assert_eq!(tags(&["ssh:one", "ssh:you@one"]), ["one,ssh,0", "one,ssh,1"]);
        let long = tags(&[&format!("sock:/{}", "é".repeat(200)), "sock:/"]);
        assert_eq!(long, ["é".repeat(32), "host".to_owned()]);
        // This machine's own verify states are `local-JOB-0-verify.state`.
        assert_eq!(tags(&["local", "ssh:local,5"]), ["local,8765", "local,5"]);
        assert_eq!(tags(&["ssh:local", "local-1"]), ["local,ssh", "host-local-1"]);
    }
}
