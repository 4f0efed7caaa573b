//! `iolite web`: stored results in a browser: a list, their pages, comparisons; with `--allow-run`, jobs that are written and
//! started there.

mod options;

use super::input;
use crate::messages::complain;
use crate::{console, live_page, saving};
use iolite_options::commands::Asked;
use iolite_options::{Name, check_web, metrics_address, web_address, web_tls};
use iolite_os::service;
use iolite_remote::confine;
use iolite_remote::permissions::Permissions;
use iolite_report::clock;
use iolite_store::Store;
use iolite_types::{RunStatus, describe_error};
use iolite_web::{Clerk, Desk, Entry, Library, MetricsPlace, Resident, Rights};
use serde_json::Value;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The maximum number of results in a directory.
const MOST_RESULTS: usize = 10_000;
/// How many jobs of a run the list names.
const MOST_JOBS: usize = 3;

/// Serves until the program is ended.
pub fn run(program: &str, asked: &Asked) -> Result<String, String> {
    let listen = asked.value("listen").unwrap_or_default();
    let address = web_address(listen).map_err(|why| format!("--listen={listen}: {why}"))?;
    let tls = asked.value("tls").map(|value| web_tls(value).map_err(|why| format!("--tls={value}: {why}")));
    let tls = tls.transpose()?;
    check_web(address, tls.as_ref(), "--tls").map_err(|why| format!("--listen={listen}: {why}"))?;
    let place = match (&asked.operands[..], asked.value("store")) {
        ([], Some(store)) => Place::Store(store.into()),
        ([], None) => Place::Store(own_store()?),
        ([directory], None) => Place::Directory(directory.into()),
        ([_], Some(_)) => return Err("--store: give it, or a directory of results, and not both".to_owned()),
        _ => return Err("needs the name of one directory of results at most".to_owned()),
    };
    let desk = desk(program, asked, &place)?;
    let metrics = asked.value("metrics").map(|value| -> Result<_, String> {
        let told = |why| format!("--metrics={value}: {why}");
        if desk.is_none() {
            return Err("--metrics: has no effect without --allow-run".to_owned());
        }
        let address = metrics_address(value).map_err(told)?;
        check_web(address, tls.as_ref(), "--tls").map_err(told)?;
        let certified = live_page::certified(address, tls.as_ref()).map_err(|why| format!("--tls: {why}"))?;
        let place = MetricsPlace::open(address, certified.as_ref());
        Ok((place.map_err(|why| format!("--metrics: {why}"))?, Name::Iolite.own_version()))
    });
    let metrics = metrics.transpose()?;
    let results = Results { program: program.to_owned(), place };
    // Unreadable results are reported now, rather than on a page that is opened later.
    results.list()?;
    let certified = live_page::certified(address, tls.as_ref()).map_err(|why| format!("--tls: {why}"))?;
    let fingerprint = live_page::told(tls.as_ref(), certified.as_ref());
    let resident = Resident::open(address, certified, results, desk)
        .map_err(|error| format!("--listen: {address}: {}", describe_error(&error)))?;
    for (rights, address) in resident.addresses() {
        let what = match rights {
            Rights::Look => "the results are",
            Rights::End => "for those who may end runs as well, the results are",
            Rights::Start => "jobs are written, started and ended",
        };
        console::print_error(&format!("{program}: web: {what} at {address}\n"));
    }
    if let Some(words) = fingerprint {
        console::print_error(&format!("{program}: web: {words}\n"));
    }
    if let Some((place, version)) = metrics {
        console::print_error(&format!("{program}: web: the metrics are at {}\n", place.address()));
        resident
            .serve_metrics(place, version)
            .map_err(|error| format!("--metrics: {}", describe_error(&error)))?;
    }
    if let Err(error) = service::is_ready() {
        complain(Name::Iolite, &format_args!("the service manager cannot be told that it serves: {error}"));
    }
    resident.serve();
    Ok(String::new())
}

/// The user's store. If there is none yet, an empty one is made: pages can be open before the first run is kept. (A store
/// that was named may be misspelt.)
fn own_store() -> Result<PathBuf, String> {
    let path = saving::place(None)?;
    saving::open(&path)?;
    Ok(path)
}

/// The part for writing and starting jobs, if requested.
fn desk(program: &str, asked: &Asked, place: &Place) -> Result<Option<Desk>, String> {
    let named = asked.values("serve-only").flat_map(|value| value.split(','));
    let only: Vec<PathBuf> = named.filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    let is_allowed = asked.has("allow-run");
    match (is_allowed, asked.has("serve-only"), only.is_empty()) {
        (false, false, _) => return Ok(None),
        (false, true, _) => return Err("--serve-only: has no effect without --allow-run".to_owned()),
        (true, true, true) => return Err("--serve-only: needs the path of a file or directory".to_owned()),
        (true, _, true) => {
            return Err("--allow-run: whoever has the address could use all files that you can; name those that jobs may \
                        use, and destroy (--serve-only=DIRECTORY,FILE,...)"
                .to_owned());
        }
        (true, _, false) => {}
    }
    let Place::Store(store) = place else {
        return Err("--allow-run: runs are kept in a store, and not in a directory of results; leave the directory out".to_owned());
    };
    let only = confine::prepare(&only).map_err(|why| format!("--serve-only: {why}"))?;
    // Checks now whether runs can be kept.
    saving::open(store)?;
    let shown = store.canonicalize().map_err(|error| format!("{}: {error}", store.display()))?;
    if confine::covers(&only, &shown) {
        return Err(format!(
            "--serve-only: the store of runs is within it ({}), and jobs could destroy it; name another store (--store=FILE)",
            shown.display()
        ));
    }
    let clerk = Keeper { program: program.to_owned(), store: store.clone() };
    let permissions = Permissions { exec: false, changes: true, only };
    Ok(Some(Desk::new(permissions, Box::new(clerk))))
}

/// Keeps the runs of jobs that were started in a page.
struct Keeper {
    program: String,
    store: PathBuf,
}

impl Clerk for Keeper {
    fn options(&self) -> String {
        options::as_json()
    }

    fn keep(&self, report: &str) -> String {
        let told = |why: String| format!("the run cannot be kept: {why}");
        let mut store = match saving::open(&self.store) {
            Ok(store) => store,
            Err(why) => return told(why),
        };
        match store.keep(report, "", saving::now_ms()) {
            Ok(kept) => {
                saving::dropped(&self.program, &kept.dropped);
                format!("the run is kept as run {} in {}", kept.number, self.store.display())
            }
            Err(error) => told(format!("{}: {error}", self.store.display())),
        }
    }

    fn tell(&self, words: &str) {
        console::print_error(&format!("{}: web: {words}\n", self.program));
    }
}

enum Place {
    Directory(PathBuf),
    Store(PathBuf),
}

struct Results {
    program: String,
    place: Place,
}

impl Library for Results {
    fn name(&self) -> String {
        match &self.place {
            Place::Directory(path) | Place::Store(path) => path.display().to_string(),
        }
    }

    fn list(&self) -> Result<Vec<Entry>, String> {
        match &self.place {
            Place::Directory(path) => {
                let mut found: Vec<(u64, Entry)> = files(path)?.into_iter().map(of_file).collect();
                found.sort_by(|(mine, one), (theirs, other)| theirs.cmp(mine).then(one.key.cmp(&other.key)));
                Ok(found.into_iter().map(|(_, entry)| entry).collect())
            }
            Place::Store(path) => {
                let mut runs = store(path)?.runs().map_err(|error| format!("{}: {error}", path.display()))?;
                runs.reverse();
                Ok(runs.into_iter().map(of_run).collect())
            }
        }
    }

    fn report(&self, key: &str) -> Result<Value, String> {
        let text = match &self.place {
            Place::Directory(path) => {
                let file = files(path)?.into_iter().find(|file| key_of(file) == key);
                let file = file.ok_or_else(|| format!("{key}: it no longer exists"))?;
                let told = |error: std::io::Error| format!("{key}: {error}");
                let opened = input::open(&self.program, &file).map_err(told)?;
                input::text(&mut BufReader::with_capacity(64 << 10, opened)).map_err(told)?
            }
            Place::Store(path) => {
                let number = key.parse().map_err(|_| format!("{key}: it is not a number of a run"))?;
                let report =
                    store(path)?.report(number).map_err(|error| format!("{}: {error}", path.display()))?;
                report.ok_or_else(|| format!("run {key}: it no longer exists"))?
            }
        };
        iolite_stored::last_report(&text).map_err(|error| error.of(key))
    }
}

/// Opens the store in its present state.
fn store(path: &Path) -> Result<Store, String> {
    let opened = Store::open_existing(path).map_err(|error| format!("{}: {error}", path.display()))?;
    opened.ok_or_else(|| format!("{}: there is no store yet (--save makes it)", path.display()))
}

fn of_run(run: iolite_store::Run) -> Entry {
    let more = run.jobs.len().saturating_sub(MOST_JOBS);
    let names: Vec<&str> = run.jobs.iter().take(MOST_JOBS).map(String::as_str).collect();
    Entry {
        key: run.number.to_string(),
        label: run.label,
        when: clock::minute(run.began_ms),
        status: run.status.map_or("", RunStatus::name).to_owned(),
        host: run.host,
        jobs: names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() },
        iops: Some(run.iops),
        bandwidth: Some(run.bandwidth),
    }
}

/// The results in a directory. Other kinds of files, such as a pipe, are skipped: reading one could block.
fn files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let files = input::results_in(directory, MOST_RESULTS)?;
    Ok(files.into_iter().filter(|file| file.is_file()).collect())
}

fn key_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A file, and its time of modification.
fn of_file(file: PathBuf) -> (u64, Entry) {
    let written = file.metadata().and_then(|found| found.modified()).ok();
    let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let ms = written.map_or(0, |time| time.as_millis() as u64);
    (ms, Entry { key: key_of(&file), when: clock::minute(ms), ..Entry::default() })
}
