//! One run as its user sees it: the announcement, notes and status lines during the run, the report.

use crate::act_profile;
use crate::console::{self, Console, LastError};
use crate::live_page::{About, Live};
use crate::messages::diagnostic;
use crate::page_logs::Logs;
use crate::report_formats::Formats;
use crate::run_facts;
use iolite_host::Machine;
use iolite_options::{EtaWhen, IdleProfile, LiveView, Name, OutputFormat, RunOptions};
use iolite_page::logs::Drawings;
use iolite_plan::{JobPlan, Plan};
use iolite_report::Program;
use iolite_report::header::{self, JobHeader};
use iolite_report::live::{LiveLine, Width};
use iolite_run::{Settings, Trigger};
use iolite_stats::{
    CheckedBlocks, Event, EventKind, Facts, JobError, MOST_WITH_LATENCIES, Recorder, Report, Snapshot,
};
use iolite_types::Repeated;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Shows the events of a run, in the requested formats.
pub struct Session<'a> {
    name: Name,
    program: Program,
    run: &'a RunOptions,
    console: &'a mut Console,
    formats: Formats,
    line: LiveLine,
    last_newline: Instant,
    /// The slices of `--profile=act`.
    slices: Option<act_profile::Slices>,
    /// The run over time, for formats that have it.
    recorder: Option<Recorder>,
    facts: Option<Facts>,
    /// The warnings about the input, and those during the run.
    warnings: Vec<String>,
    workers: usize,
    /// Failures of I/Os that ended their jobs.
    repeated: Repeated,
    /// Failures of I/Os after which jobs continued.
    tolerated: Repeated,
    /// The page of `--web`.
    live: Live,
    /// The logs for the pages, replaced by their drawings at the end.
    logs: Logs,
    drawings: Drawings,
}

impl<'a> Session<'a> {
    /// A session that writes to this console.
    pub fn new(name: Name, program: Program, run: &'a RunOptions, console: &'a mut Console) -> Self {
        Session {
            formats: Formats::of(run, console.is_on_terminal()),
            name,
            program,
            run,
            console,
            line: LiveLine::of(run.output_format.contains(&OutputFormat::Summary)),
            live: Live::default(),
            repeated: Repeated::default(),
            tolerated: Repeated::default(),
            logs: Logs::default(),
            drawings: Drawings::default(),
            last_newline: Instant::now(),
            recorder: None,
            facts: None,
            warnings: Vec::new(),
            workers: 0,
            slices: (run.profile.as_deref() == Some("act")).then(act_profile::Slices::default),
        }
    }

    /// The events that the run should report.
    pub fn settings(&self) -> Settings {
        let shown = match self.run.eta {
            EtaWhen::Always => true,
            EtaWhen::Never => false,
            EtaWhen::Auto => {
                self.console.is_watched() && (self.run.is_for_people() || self.console.is_file())
            }
        };
        Settings {
            eta_interval: (shown || self.run.live == LiveView::Full)
                .then(|| Duration::from_millis(self.run.eta_interval)),
            status_interval: (self.run.status_interval > 0)
                .then(|| Duration::from_millis(self.run.status_interval)),
            idleness: self.run.idle_prof.map(|profile| profile == IdleProfile::PerCpu),
            slice_interval: self.slices.is_some().then_some(act_profile::SLICE),
            tells_flights: !self.name.is_strict(),
            status_files: status_files(self.run),
            trigger: Trigger {
                file: self.run.trigger_file.clone(),
                after: self.run.trigger_timeout.map(Duration::from_millis),
                command: self.run.trigger.clone(),
            },
            bandwidth_log: self.run.bandwidth_log,
            sample_interval: self.recorder.is_some().then(|| Recorder::interval(self.workers)),
            sample_latencies: self.workers <= MOST_WITH_LATENCIES,
            sample_disks: self.run.live == LiveView::Full,
            gate: None,
        }
    }

    /// Records the run over time, and the facts about its machine, if a format includes them or the run is kept.
    pub fn record(&mut self, plan: &Plan, machine: &dyn Machine, is_kept: bool) {
        let asked = |format| self.run.output_format.contains(&format);
        let is_told = asked(OutputFormat::Json) || asked(OutputFormat::JsonPlus);
        let is_page = asked(OutputFormat::Html) || self.run.web.is_some();
        let is_shown = is_page
            || self.run.is_watched()
            || self.run.metrics_push.is_some()
            || asked(OutputFormat::Summary)
            || asked(OutputFormat::Markdown);
        // Under the name `fio`, JSON has only fio's keys.
        if !is_kept && !is_shown && (!is_told || self.name.is_strict()) {
            return;
        }
        let blocks = plan.blocks_of_workers();
        self.workers = blocks.len();
        if is_kept || is_shown || !self.run.no_series {
            self.recorder = Some(Recorder::new(blocks));
        }
        if is_page {
            self.logs = Logs::of(plan);
        }
        self.facts = Some(run_facts::of(plan, machine));
    }

    /// Remembers warnings about the input, a line each, for reports that have them.
    pub fn remember(&mut self, warnings: &str) {
        warnings.lines().for_each(|line| self.remember_one(line));
    }

    fn remember_one(&mut self, warning: &str) {
        /// The most warnings that are kept.
        const MOST: usize = 100;
        if self.warnings.len() < MOST {
            let prefix = format!("{}: ", self.name);
            let words = warning.strip_prefix(&prefix).unwrap_or(warning);
            // (The word stands behind the place of the mistake.)
            self.warnings.push(words.replacen("warning: ", "", 1));
        }
    }

    /// Serves the page of the run, if requested. `outline`: the report before the first measurement.
    ///
    /// # Errors
    /// Why it cannot be served.
    pub fn serve(&mut self, plan: &Plan, outline: impl FnOnce() -> Report) -> Result<(), String> {
        if self.run.is_watched() {
            let outline = Report { facts: self.facts.clone(), ..outline() };
            let blocks = plan.blocks_of_workers();
            let interval = Recorder::interval(blocks.len());
            self.live =
                Live::start(self.name, self.run, About { outline, blocks, interval, of_hosts: false })?;
        }
        Ok(())
    }

    /// Announces the jobs, after warnings about the input that are lines of the report.
    pub fn begin(&mut self, plan: &Plan, warnings: &str) {
        if !self.run.output_format.contains(&OutputFormat::Normal) {
            if self.run.is_for_people() {
                self.console.write(warnings.as_bytes());
            }
            return;
        }
        let version = header::version(&self.program);
        let text =
            warnings.to_owned() + &jobs_announced(plan, self.name) + &version + &workers_announced(plan);
        self.console.write(text.as_bytes());
    }

    /// Writes the final report.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(&mut self, report: &mut Report) -> Result<(), LastError> {
        self.live.leave_screen();
        for text in self.repeated.rest() {
            self.trouble(&text);
        }
        for text in self.tolerated.rest() {
            self.warning(&text);
        }
        let erased = self.line.erase(self.width());
        if !erased.is_empty() {
            self.console.show(&erased);
        }
        if let Some(mut slices) = self.slices.take() {
            slices.take(report);
            if self.run.is_for_people() {
                self.console.write(slices.text().as_bytes());
            } else {
                console::print_error(&slices.text());
            }
        }
        report.series = self.recorder.take().and_then(|recorder| recorder.series());
        let warnings = std::mem::take(&mut self.warnings);
        report.facts = self.facts.take().map(|facts| Facts { warnings, ..facts });
        self.drawings = std::mem::take(&mut self.logs).drawn(report, &self.program);
        self.write_last(report)
    }

    /// Shows the report to the readers of the run's page, and waits a short time for the page's process.
    pub fn show(&mut self, report: &Report) {
        if let Err(lost) = self.live.end(self.name, report, &self.drawings) {
            self.warning(&lost.to_string());
        }
    }

    /// Shows the readers of the run's page why it has not begun.
    pub fn show_refusal(&mut self, why: Vec<String>, report: Report) {
        let facts = Facts { warnings: why, ..self.facts.take().unwrap_or_default() };
        self.show(&Report { facts: Some(facts), ..report });
    }

    /// Writes a report in all requested formats, each to its destination.
    fn write_last(&mut self, report: &Report) -> Result<(), LastError> {
        let without = self.run.no_series.then(|| Report { series: None, ..report.clone() });
        let text = self.text_of(without.as_ref().unwrap_or(report));
        if !self.run.output_format.contains(&OutputFormat::Html) {
            return self.console.write_last(&text);
        }
        let made = iolite_page::of_report(report, &self.program, &self.drawings);
        let made = made.map_err(|error| LastError { error, what_then: "; there is no page of it" });
        if self.run.output_format == [OutputFormat::Html] {
            // An old page is kept if there is no new one.
            return self.console.write_last(made?.as_bytes());
        }
        self.console.write_last(&text)?;
        self.console.write_page(made?.as_bytes())
    }

    /// Writes the report of a run that did not begin, in the formats that programs parse. The user has read the reason.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn refuse(&mut self, report: &Report) -> Result<(), LastError> {
        self.formats = Formats::of(
            &RunOptions {
                output_format: program_formats(self.run).collect(),
                terse_version: self.run.terse_version,
                ..RunOptions::default()
            },
            false,
        );
        if !has_program_format(self.run) {
            return Ok(());
        }
        self.write_last(report)
    }

    /// A report in all requested formats except html. (There is one page, at the end.)
    fn text_of(&self, report: &Report) -> Vec<u8> {
        self.formats.text(report, &self.program)
    }

    /// Erases the status line, to make room for other output.
    fn clear_line(&mut self) {
        let erased = self.line.erase(self.width());
        if !erased.is_empty() {
            self.console.show(&erased);
        }
    }
}

/// Output during the run.
impl Session<'_> {
    /// Shows an event as the output format requires.
    pub fn take(&mut self, event: Event) {
        if let Err(lost) = self.live.take(&event) {
            self.warning(&lost.to_string());
        }
        match event.kind {
            // Announcements of engines begin with fio's name; print this program's.
            EventKind::Note(text) => match text.strip_prefix("fio: ") {
                Some(words) => self.note(&format!("{}: {words}", self.name)),
                None => self.note(&text),
            },
            EventKind::Warning(text) => self.warning(&text),
            EventKind::Trouble(text) => self.trouble(&text),
            EventKind::Fatal(text) => {
                // fio prints all of them.
                if self.name.is_strict() || self.repeated.is_first(&text) {
                    self.trouble(&text);
                }
            }
            EventKind::Tolerated(text, count) => {
                if self.tolerated.is_first_of(None, &text, count) {
                    self.warning(&text);
                }
            }
            EventKind::WrongData(text) => {
                self.clear_line();
                // Without the program's name: tools search for these lines in fio's form.
                console::print_error(&format!("{text}\n"));
            }
            EventKind::Failed { pid, error, blocks } => self.failed(pid, &error, blocks),
            EventKind::Snapshot(snapshot) => self.snapshot(&snapshot),
            EventKind::Sample(snapshot) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.take(*snapshot);
                }
            }
            EventKind::Status(report) => {
                self.clear_line();
                let text = self.text_of(&report);
                self.console.write_made(&text);
            }
            EventKind::InFlight { ios, left_out } => {
                self.clear_line();
                console::print_error(&iolite_report::in_flight(&ios, left_out));
            }
            EventKind::Slice(report) => {
                if let Some(slices) = &mut self.slices {
                    slices.take(&report);
                }
            }
            // Only a part of a run on several machines keeps step.
            EventKind::InStep(_)
            | EventKind::Ready(_)
            | EventKind::Passed(_)
            | EventKind::Started { .. }
            | EventKind::Measured(_) => {}
            EventKind::Terminating(signal) => {
                self.clear_line();
                if self.run.is_for_people() {
                    let text = format!("\n{}: terminating on signal {signal}\n", self.name);
                    self.console.write(text.as_bytes());
                }
            }
        }
    }

    fn trouble(&mut self, text: &str) {
        self.clear_line();
        console::print_error(&diagnostic(self.name, &text));
    }

    fn note(&mut self, text: &str) {
        if self.run.is_for_people() {
            self.clear_line();
            self.console.write(format!("{text}\n").as_bytes());
        }
    }

    /// This is no failure, so under the name `fio` standard error stays empty.
    fn warning(&mut self, text: &str) {
        self.clear_line();
        self.remember_one(text);
        let line = diagnostic(self.name, &text);
        if !self.name.is_strict() {
            console::print_error(&line);
        } else if self.run.is_for_people() {
            self.console.write(line.as_bytes());
        }
    }

    fn failed(&mut self, pid: i32, error: &JobError, blocks: CheckedBlocks) {
        let JobError { errno, what } = error;
        let words = error.words(blocks, self.name.is_strict());
        let text = format!("{}: pid={pid}, err={errno}/{what}, error={words}\n", self.name);
        self.clear_line();
        if self.run.is_for_people() {
            self.console.write(text.as_bytes());
        } else {
            console::print_error(&text);
        }
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        let is_bar = self.run.output_format.contains(&OutputFormat::Summary);
        // fio has no line while it lays out files. The full screen has its own.
        if (snapshot.is_laying_out && !is_bar) || self.run.live == LiveView::Full {
            return;
        }
        // Only the line with a bar has it.
        let recorder = self.recorder.as_ref().filter(|_| is_bar);
        let p99 = recorder.and_then(Recorder::latest).and_then(|sample| sample.summed().p99());
        let mut text = self.line.redraw(snapshot, p99, self.width());
        let period = Duration::from_millis(self.run.eta_newline);
        if !period.is_zero() && self.last_newline.elapsed() >= period {
            self.last_newline = Instant::now();
            text += self.line.leave();
        }
        self.console.show(&text);
    }

    /// The columns for the status line. Under the name `fio`, it is fio's.
    fn width(&self) -> Option<Width> {
        if self.name.is_strict() { None } else { self.console.width() }
    }
}

/// The lines that announce the jobs, under a name.
pub fn jobs_announced(plan: &Plan, name: Name) -> String {
    let mut text = String::new();
    for job in &plan.jobs {
        if job.found_files {
            text += &header::files_found(name.word(), plan.workers[job.first_worker].files.len());
        }
        // Without I/O, the engine announces itself.
        if job.does_io() {
            text += &header::job_header(&job_header(job));
        } else if name.is_strict() && job.clones > 1 {
            text += header::CLONES;
        }
    }
    text
}

/// The line that announces the workers.
pub fn workers_announced(plan: &Plan) -> String {
    let threads = plan.workers.iter().filter(|worker| plan.job_of(worker).thread).count() as u32;
    header::starting(threads, plan.workers.len() as u32 - threads)
}

/// Whether a run that did not begin has a report: one that programs parse.
pub fn has_program_format(run: &RunOptions) -> bool {
    program_formats(run).next().is_some()
}

fn program_formats(run: &RunOptions) -> impl Iterator<Item = OutputFormat> {
    let formats = run.output_format.iter().copied();
    formats.filter(|format| !format.is_for_people())
}

/// The files whose appearance asks for a report: at fio's place, and next to the run's other files.
fn status_files(run: &RunOptions) -> Vec<PathBuf> {
    const NAME: &str = "fio-dump-status";
    let mut files = vec![std::env::temp_dir().join(NAME)];
    files.extend(run.aux_path.as_ref().map(|directory| directory.join(NAME)));
    files
}

fn job_header(job: &JobPlan) -> JobHeader {
    let display = &job.report.display;
    JobHeader {
        name: job.name.clone(),
        group: job.group,
        pattern: job.rw.name().to_owned(),
        block_sizes: job.block_sizes.clone().map(|sizes| (sizes.min(), sizes.max())),
        sizes_by_randomness: job.sizes_by_randomness,
        engine: job.engine.name.to_owned(),
        depth: job.depth,
        kb_base: display.kb_base,
        significant_figures: display.significant_figures,
        clones: job.clones > 1,
    }
}
