//! `--save`: keeping the run in the store of runs.
//!
//! With `--save`, keeping the run is a requirement: obstacles are reported before anything runs, as with `--output`,
//! and if the run cannot be kept in the end, the exit status is 1. `IOLITE_SAVE=1` is meant for whole sessions:
//! obstacles are reported, but have no other effect (except that a store locked by another program costs a second). The
//! report is the same in all cases.

use crate::console;
use crate::left_out;
use crate::messages::diagnostic;
use crate::messages::program;
use iolite_options::commands::Asked;
use iolite_options::{Name, RunOptions};
use iolite_report::{Exporter, Json, clock};
use iolite_stats::Report;
use iolite_store::{Run, Store, StoreError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The environment variable that stands for `--save`.
pub const VARIABLE: &str = "IOLITE_SAVE";

/// The most dropped runs that are named.
const MOST_NAMED: usize = 10;

/// Where the run is kept.
#[derive(Debug)]
pub struct Saving {
    name: Name,
    store: PathBuf,
    label: String,
    /// Requested by `--save`, not by the environment.
    is_demanded: bool,
}

impl Saving {
    /// Checks whether this run must be kept, and can be; `None` = not kept. `check`: whether a file may be the store.
    ///
    /// # Errors
    /// It must be kept, but cannot be.
    pub fn prepare(
        name: Name,
        run: &RunOptions,
        check: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<Option<Saving>, String> {
        // Under the name `fio`, the program behaves like fio.
        if name.is_strict() {
            return Ok(None);
        }
        let is_demanded = run.save.is_some();
        let by_environment = match std::env::var_os(VARIABLE) {
            Some(value) if value == "1" => true,
            Some(value) if !value.is_empty() && value != "0" => {
                let what =
                    format!("warning: {VARIABLE}={}: not 0 or 1; the run is not kept", value.display());
                console::print_error(&diagnostic(name, &what));
                false
            }
            _ => false,
        };
        if !is_demanded && !by_environment {
            if run.store.is_some() {
                let what = "warning: --store: without --save the run is not kept";
                console::print_error(&diagnostic(name, &what));
            }
            return Ok(None);
        }
        let label = run.save.clone().unwrap_or_default();
        let place = place(run.store.as_deref());
        let checked = left_out::check_saving()
            .and_then(|()| iolite_store::check_label(&label).map_err(|why| format!("--save={label}: {why}")))
            .and(place)
            .and_then(|store| {
                check(&store)?;
                open_within(&store, patience(is_demanded))?;
                Ok(store)
            });
        match checked {
            Ok(store) => Ok(Some(Saving { name, store, label, is_demanded })),
            Err(why) if is_demanded => Err(why),
            Err(why) => {
                let what = format!("warning: {VARIABLE}: {why}; the run is not kept");
                console::print_error(&diagnostic(name, &what));
                Ok(None)
            }
        }
    }

    /// Where a subcommand keeps its result, under this label unless `--label` names another; `None` = without `--save`.
    ///
    /// # Errors
    /// It cannot be kept.
    pub fn of_subcommand(
        asked: &Asked,
        label: &str,
        check: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<Option<Saving>, String> {
        if !asked.has("save") {
            if let Some(option) = ["label", "store"].into_iter().find(|option| asked.has(option)) {
                return Err(format!("--{option} belongs to --save, which was not given"));
            }
            return Ok(None);
        }
        let run = RunOptions {
            save: Some(asked.value("label").unwrap_or(label).to_owned()),
            store: asked.value("store").map(Into::into),
            ..RunOptions::default()
        };
        Saving::prepare(Name::Iolite, &run, check)
    }

    /// The label of the run; empty = no label.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Keeps the run and reports that. Returns false if it was required and failed.
    pub fn keep(&self, report: &Report) -> bool {
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = Json { bins: true }.write(report, &program(self.name), &mut text);
        self.keep_text(&String::from_utf8_lossy(&text))
    }

    /// Keeps a run whose report exists as text, and reports that. Returns false if it was required and failed.
    pub fn keep_text(&self, text: &str) -> bool {
        let told = |why: &dyn std::fmt::Display| format!("{}: {why}", self.store.display());
        let kept = open_within(&self.store, patience(self.is_demanded))
            .and_then(|mut store| store.keep(text, &self.label, now_ms()).map_err(|error| told(&error)));
        let (what, is_kept) = match kept {
            Ok(kept) => {
                dropped(self.name, &kept.dropped);
                (format!("the run is kept as run {} in {}", kept.number, self.store.display()), true)
            }
            Err(why) => (format!("the run cannot be kept: {why}"), false),
        };
        console::print_error(&diagnostic(self.name, &what));
        is_kept || !self.is_demanded
    }
}

/// Reports which runs were dropped.
pub fn dropped(name: impl std::fmt::Display, runs: &[Run]) {
    if runs.is_empty() {
        return;
    }
    let what = format!(
        "dropped run{} {} from the store, because of its limits (iolite runs limits)",
        if runs.len() == 1 { "" } else { "s" },
        named(runs)
    );
    console::print_error(&diagnostic(name, &what));
}

/// Runs by number, up to a readable amount.
pub fn named(runs: &[Run]) -> String {
    let named: Vec<String> = runs.iter().take(MOST_NAMED).map(shown).collect();
    let more = runs.len().saturating_sub(MOST_NAMED);
    named.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

fn shown(run: &Run) -> String {
    let label = if run.label.is_empty() { String::new() } else { format!("label {}, ", run.label) };
    format!("{} ({label}{})", run.number, clock::minute(run.began_ms))
}

/// The store's file.
pub fn place(given: Option<&Path>) -> Result<PathBuf, String> {
    let usual = || iolite_store::usual_place(&|name| std::env::var_os(name));
    given.map(Path::to_owned).or_else(usual).ok_or_else(|| {
        "neither XDG_DATA_HOME nor HOME tells where the store is; name one with --store=FILE".to_owned()
    })
}

/// How long to wait for another program that uses the store. A request by the environment must not delay the run.
fn patience(is_demanded: bool) -> Duration {
    if is_demanded { iolite_store::PATIENCE } else { Duration::from_secs(1) }
}

/// Opens the store; creates it if it does not exist.
pub fn open(path: &Path) -> Result<Store, String> {
    open_within(path, iolite_store::PATIENCE)
}

fn open_within(path: &Path, patience: Duration) -> Result<Store, String> {
    let told = |error| format!("{}: {error}{}", path.display(), whose(path));
    Store::open_within(path, patience).map_err(|error| match error {
        StoreError::System(ref why) if why.kind() == ErrorKind::PermissionDenied => told(error),
        error => format!("{}: {error}", path.display()),
    })
}

/// Why this user may not use a store, and what helps. After a run with `sudo` that kept the user's HOME, it belongs to root.
fn whose(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = path.ancestors().find_map(|path| Some((path, path.metadata().ok()?)));
    let own = Path::new("/proc/self").metadata().ok().map(|own| own.uid());
    // (The home of some accounts of services is the root.)
    let home = std::env::home_dir().filter(|home| home.parent().is_some());
    match found {
        Some((path, found)) if own.is_some_and(|own| own != found.uid()) => {
            // What lies elsewhere is not this user's to be given back.
            let is_at_home = home.is_some_and(|home| path.starts_with(home));
            let remedy = if is_at_home {
                "a run with sudo may have made it: chown gives it back"
            } else {
                "--store=FILE names another place"
            };
            format!(" ({} belongs to the user with the id {}; {remedy})", path.display(), found.uid())
        }
        _ => String::new(),
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
