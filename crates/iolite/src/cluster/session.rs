//! A run of many machines as its user sees it: its messages, its progress line, its page.

use super::page::{HostsPage, Stage};
use super::shared_files;
use crate::console::{self, Console};
use crate::live_page::Lost;
use crate::messages::program;
use crate::report_formats::Formats;
use crate::session::has_program_format;
use iolite_options::{EtaWhen, Name, OutputFormat, RunOptions};
use iolite_page::Html;
use iolite_remote::Address;
use iolite_remote::coordinator::Told;
use iolite_remote::message::Begun;
use iolite_report::Exporter;
use iolite_report::live::LiveLine;
use iolite_stats::{Cluster, Event, EventKind, HostReport, Report, Snapshot, Stuck};
use iolite_types::{Repeated, RunEnd};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The run as its user sees it.
pub(super) struct Session<'a> {
    name: Name,
    run: &'a RunOptions,
    console: &'a mut Console,
    pub(super) cluster: Cluster,
    pub(super) page: Option<HostsPage>,
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
    pub(super) is_live: bool,
    live: LiveLine,
    began: Instant,
    drawn: Instant,
    pub(super) failed: bool,
    pub(super) failures: usize,
    /// A machine has refused its jobs, so no machine runs.
    pub(super) refused: bool,
    /// What the machines will do, until all begin.
    in_use: Vec<(usize, Begun)>,
    /// The failures that were printed.
    repeated: Repeated,
    /// The warnings about jobs, and the failures of I/Os after which these continued.
    warned: Repeated,
}

impl<'a> Session<'a> {
    pub(super) fn new(
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

    pub(super) fn take(&mut self, index: usize, told: Told) {
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
    pub(super) fn end_of_run(&self, asked: bool, has_fired: bool) -> RunEnd {
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
    pub(super) fn end(&mut self) -> Result<(), String> {
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
    pub(super) fn show(&mut self) {
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
    pub(super) fn tell_line(&mut self, text: &str) {
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
