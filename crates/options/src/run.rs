//! The options of the run as a whole, as opposed to one job.

use crate::{Repeat, WebTls};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// `--eta`: when the live status line is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EtaWhen {
    /// On a terminal, if the output also goes there.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// One format of `--output-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the formats' own")]
pub enum OutputFormat {
    Normal,
    Summary,
    Json,
    JsonPlus,
    Terse,
    Html,
    Markdown,
}

impl OutputFormat {
    /// The formats by the names that `--output-format` takes.
    pub const NAMES: [(&str, OutputFormat); 8] = [
        ("normal", OutputFormat::Normal),
        ("summary", OutputFormat::Summary),
        ("json", OutputFormat::Json),
        ("json+", OutputFormat::JsonPlus),
        ("terse", OutputFormat::Terse),
        ("minimal", OutputFormat::Terse),
        ("html", OutputFormat::Html),
        ("md", OutputFormat::Markdown),
    ];

    /// The formats in a list with commas, each once.
    ///
    /// # Errors
    /// A name is not known.
    pub fn list(text: &str) -> Result<Vec<OutputFormat>, String> {
        let mut formats = Vec::new();
        for name in text.split(',').map(str::trim) {
            let Some((_, format)) = Self::NAMES.iter().find(|(known, _)| *known == name) else {
                let known = Self::NAMES.map(|(name, _)| name).join(", ");
                return Err(format!("unknown format \"{name}\" ({known})"));
            };
            if !formats.contains(format) {
                formats.push(*format);
            }
        }
        Ok(formats)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// Whether fio has it.
    pub fn is_fios(self) -> bool {
        use OutputFormat::{Html, Json, JsonPlus, Markdown, Normal, Summary, Terse};
        match self {
            Normal | Json | JsonPlus | Terse => true,
            Summary | Html | Markdown => false,
        }
    }

    /// Whether people read it while the run goes on: it has notes, and a status line around it.
    pub fn is_for_people(self) -> bool {
        matches!(self, OutputFormat::Normal | OutputFormat::Summary)
    }
}

/// `--color`: when output has colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColorWhen {
    /// On a terminal, unless the environment has `NO_COLOR`.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColorWhen {
    /// Parses `always`, `never` or `auto`.
    ///
    /// # Errors
    /// It is none of them.
    pub fn parse(value: &str) -> Result<ColorWhen, String> {
        match value {
            "" | "always" => Ok(ColorWhen::Always),
            "never" => Ok(ColorWhen::Never),
            "auto" => Ok(ColorWhen::Auto),
            _ => Err("expected always, never or auto".to_owned()),
        }
    }
}

/// `--live`: how a running run is shown on the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LiveView {
    /// By the status line, as `--eta` says.
    #[default]
    Line,
    /// By the whole screen.
    Full,
}

/// `--debug`: which internal events to print.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DebugWish {
    /// The categories, by name.
    pub categories: Vec<String>,
    /// `job:N`: only events of these workers, counted from 1; empty = all events.
    pub workers: Vec<u32>,
}

/// Options of the run as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOptions {
    /// `--output`: the file for the report, instead of standard output.
    pub output: Option<PathBuf>,
    /// `--output-format`, in the order given; never empty.
    pub output_format: Vec<OutputFormat>,
    /// The format was chosen: it is not the one that suits the destination best.
    #[serde(skip)]
    pub has_chosen_format: bool,
    /// `--color`
    #[serde(skip)]
    pub color: ColorWhen,
    /// `--terse-version`
    pub terse_version: u32,
    /// `--eta`
    pub eta: EtaWhen,
    /// `--live`
    #[serde(skip)]
    pub live: LiveView,
    /// `--eta-newline` in milliseconds; 0 = off.
    pub eta_newline: u64,
    /// `--eta-interval` in milliseconds.
    pub eta_interval: u64,
    /// `--status-interval` in milliseconds; 0 = off.
    pub status_interval: u64,
    /// `--readonly`
    pub readonly: bool,
    /// `--parse-only`
    pub parse_only: bool,
    /// `--merge-blktrace-only`
    pub merge_blktrace_only: bool,
    /// `--warnings-fatal`
    pub warnings_fatal: bool,
    /// `--idle-prof`
    pub idle_prof: Option<IdleProfile>,
    /// `--aux-path`: the directory for files that the run itself makes.
    pub aux_path: Option<PathBuf>,
    /// `--profile`: the name of the profile that made the jobs.
    pub profile: Option<String>,
    /// `--debug`
    pub debug: DebugWish,
    /// `--bandwidth-log`
    pub bandwidth_log: bool,
    /// `--trigger-file`: the trigger fires when this file appears.
    pub trigger_file: Option<PathBuf>,
    /// `--trigger-timeout`: the trigger fires after this many milliseconds.
    pub trigger_timeout: Option<u64>,
    /// `--trigger`: the command that the trigger runs.
    pub trigger: Option<String>,
    /// `--trigger-remote`: the command that it runs on other machines.
    pub trigger_remote: Option<String>,
    /// `--web`: the address of the page of the running jobs; port 0 = any free port. Other machines can reach it only
    /// encrypted.
    pub web: Option<SocketAddr>,
    /// `--web-tls`: the certificate and key of that page. Other machines serve no page.
    #[serde(skip)]
    pub web_tls: Option<WebTls>,
    /// `--web-linger`: for how many milliseconds that page stays after the run.
    pub web_linger: Option<u64>,
    /// `--metrics`: the address of its metrics; port 0 = any free port.
    pub metrics: Option<SocketAddr>,
    /// `--metrics-push`: the URL of a collector that gets the figures at the end.
    #[serde(skip)]
    pub metrics_push: Option<String>,
    /// `--save`: the run is kept in the store, with this label (empty = none). Other machines store no runs.
    #[serde(skip)]
    pub save: Option<String>,
    /// `--store`: the store, instead of the one in the user's data directory.
    #[serde(skip)]
    pub store: Option<PathBuf>,
    /// `--no-series`: JSON has no series over time. (Pages and stored runs have it.)
    #[serde(skip)]
    pub no_series: bool,
    /// `--repeat`: each job file is a separate run, repeated this often. The caller performs the runs.
    #[serde(skip)]
    pub repeat: Option<Repeat>,
}

impl RunOptions {
    /// Whether a person reads the report. Output for programs contains only what they parse.
    pub fn is_for_people(&self) -> bool {
        self.output_format.iter().any(|format| format.is_for_people())
    }

    /// Whether other programs may watch the run while it goes on.
    pub fn is_served(&self) -> bool {
        self.web.is_some() || self.metrics.is_some()
    }

    /// Whether the run is shown by a separate process while it goes on.
    pub fn is_watched(&self) -> bool {
        self.is_served() || self.live == LiveView::Full
    }

    /// The file for a page beside other formats: the report's name with `.html` instead of an ending that names a
    /// format, or else appended (`disk.4k` and `disk.8k` have two pages). A page without other formats goes where a
    /// report goes.
    pub fn page_file(&self) -> Option<PathBuf> {
        let is_beside = self.output_format.contains(&OutputFormat::Html) && self.output_format.len() > 1;
        let output = self.output.as_ref().filter(|_| is_beside)?;
        let is_known = output.extension().is_some_and(|ending| {
            ["json", "txt", "out", "log", "csv", "terse"]
                .iter()
                .any(|known| ending.eq_ignore_ascii_case(known))
        });
        if is_known {
            return Some(output.with_extension("html"));
        }
        let mut name = output.clone().into_os_string();
        name.push(".html");
        Some(name.into())
    }
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            output: None,
            output_format: vec![OutputFormat::Normal],
            has_chosen_format: false,
            color: ColorWhen::Auto,
            terse_version: 3,
            eta: EtaWhen::Auto,
            live: LiveView::Line,
            eta_newline: 0,
            eta_interval: 1000,
            status_interval: 0,
            readonly: false,
            parse_only: false,
            merge_blktrace_only: false,
            warnings_fatal: false,
            idle_prof: None,
            aux_path: None,
            profile: None,
            debug: DebugWish::default(),
            bandwidth_log: false,
            trigger_file: None,
            trigger_timeout: None,
            trigger: None,
            trigger_remote: None,
            web: None,
            web_tls: None,
            web_linger: None,
            metrics: None,
            metrics_push: None,
            save: None,
            store: None,
            no_series: false,
            repeat: None,
        }
    }
}

/// `--idle-prof`: how the idleness of the CPUs is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdleProfile {
    /// All CPUs together.
    System,
    /// Each CPU as well.
    PerCpu,
}

/// A test or measurement of this machine, without jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelfTest {
    /// `--crctest`: these checksums; all if none is named.
    Checksums(Vec<String>),
    /// `--cpuclock-test`
    Clock,
    /// `--idle-prof=calibrate`
    IdleUnit,
    /// `--memcpytest`: these ways to copy; all if none is named.
    Copies(Vec<String>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_different_names_have_different_pages() {
        let page = |output: &str| {
            let output_format = vec![OutputFormat::Json, OutputFormat::Html];
            let run = RunOptions { output: Some(output.into()), output_format, ..RunOptions::default() };
            run.page_file().unwrap()
        };
        for (output, expected) in [
            ("run.json", "run.html"),
            ("a.d/run.TXT", "a.d/run.html"),
            ("run", "run.html"),
            ("disk.4k", "disk.4k.html"),
            ("disk.8k", "disk.8k.html"),
            ("run.2026-11-21", "run.2026-11-21.html"),
        ] {
            assert_eq!(page(output).to_str(), Some(expected));
        }
    }
}
