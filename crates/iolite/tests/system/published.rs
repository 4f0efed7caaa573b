//! Typical jobs: several hundred command lines and job files of the kinds found in guides, manuals, benchmarks of
//! databases and volumes, and forums, rewritten and with small sizes. Each runs under the name `fio` and under every
//! available fio.
//!
//! `published/lines/*.txt` has lists of command lines, `published/jobs/*.fio` job files. A line of a list is
//!
//! ```text
//! exact fio --name=prepare --size=1m --rw=write && fio --name=prepare --size=1m --rw=read
//! ```
//!
//! a word that says which counts the job determines ([`Counts`]: `exact`, `sum` or `open`) and a shell command, whose
//! parts are run and compared one after the other. It runs in a directory with two files, `disk` of 4 MiB and `disk2`
//! of 1 MiB, two directories, `data` and `more`, and the job files that the line names. In a job file, a comment
//! `# compare: exact` gives the word, and a comment `# run: fio job.fio --more` gives the line (default:
//! `fio job.fio`). A job file without the first comment is only used by lines.
//!
//! For an intended difference, a line before the command names it and quotes the explanation in docs/compatibility.md:
//!
//! ```text
//! #! files: its content is kept, and it is extended
//! ```
//!
//! `#! 3.33 files: ...` is about one release only. If there is no such difference, the test fails as well.

use crate::common::comparison::{Aspect, Counts, Difference, Report, compare_lines, compare_reports};
use crate::common::program::{Finished, Running};
use crate::common::{Program, files_in, peers, scratch};
use iolite_testing::Release;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// How many entries run at a time. Most of a run is spent waiting for fio's sleeping threads and for disks.
const AT_ONCE: usize = 4;

#[test]
fn first_steps() {
    compare_list("first-steps");
}

#[test]
fn clouds() {
    compare_list("clouds");
}

#[test]
fn databases() {
    compare_list("databases");
}

#[test]
fn kubernetes() {
    compare_list("kubernetes");
}

#[test]
fn drives() {
    compare_list("drives");
}

#[test]
fn engines() {
    compare_list("engines");
}

#[test]
fn distributed() {
    compare_list("distributed");
}

#[test]
fn integrity() {
    compare_list("integrity");
}

#[test]
fn scripts() {
    compare_list("scripts");
}

#[test]
fn forums() {
    compare_list("forums");
}

#[test]
fn mistakes() {
    compare_list("mistakes");
}

#[test]
fn job_files() {
    compare_all(&job_file_entries());
}

/// Every list is run, and there are at least 300 entries.
#[test]
fn all_lists_are_run() {
    let source = include_str!("published.rs");
    let mut entries = job_file_entries().len();
    for list in listed("lines", "txt") {
        assert!(source.contains(&format!("compare_list(\"{list}\")")), "{list} is not run");
        entries += list_entries(&list).len();
    }
    assert!(entries >= 300, "{entries} entries");
}

/// A command line to compare.
struct Entry {
    /// Its file and line, for messages.
    place: String,
    counts: Counts,
    /// The shell command, in parts.
    line: String,
    intended: Vec<Intended>,
}

/// An intended difference.
#[derive(Clone)]
struct Intended {
    aspect: Aspect,
    /// The minor version of the release that it is about; `None` = all releases.
    release: Option<u32>,
}

impl Intended {
    fn is_about(&self, aspect: Aspect, release: &Release) -> bool {
        self.aspect == aspect && self.release.is_none_or(|minor| minor == release.minor)
    }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/system/published")
}

/// The names of the files with this extension, without the extension.
fn listed(directory: &str, end: &str) -> Vec<String> {
    let files = files_in(&data().join(directory)).into_iter();
    let mut names: Vec<String> =
        files.filter_map(|(name, _)| Some(name.strip_suffix(&format!(".{end}"))?.to_owned())).collect();
    names.sort();
    names
}

fn list_entries(list: &str) -> Vec<Entry> {
    let text =
        fs::read_to_string(data().join("lines").join(format!("{list}.txt"))).expect("the list is there");
    let (mut entries, mut intended) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let place = format!("{list}.txt:{number}");
        if let Some(difference) = line.strip_prefix("#! ") {
            intended.push(parse_intended(difference, &place));
        } else if !line.is_empty() && !line.starts_with('#') {
            let (word, line) = line.split_once(' ').unwrap_or_else(|| panic!("{place}: a word and a line"));
            let (counts, line) = (parse_counts(word, &place), line.trim_start().to_owned());
            entries.push(Entry { place, counts, line, intended: std::mem::take(&mut intended) });
        }
    }
    entries
}

fn job_file_entries() -> Vec<Entry> {
    let entries = listed("jobs", "fio").into_iter().filter_map(|name| {
        let file = format!("{name}.fio");
        let text = fs::read_to_string(data().join("jobs").join(&file)).expect("a job file");
        let said = |what: &str| text.lines().find_map(|line| line.strip_prefix(what)).map(str::trim);
        let counts = parse_counts(said("# compare: ")?, &file);
        let line = said("# run: ").map_or(format!("fio {file}"), str::to_owned);
        let intended = text.lines().filter_map(|line| line.strip_prefix("#! "));
        let intended = intended.map(|difference| parse_intended(difference, &file)).collect();
        Some(Entry { place: file, counts, line, intended })
    });
    entries.collect()
}

fn parse_counts(word: &str, place: &str) -> Counts {
    match word {
        "exact" => Counts::Exact,
        "sum" => Counts::Sum,
        "open" => Counts::Open,
        _ => panic!("{place}: {word} is none of exact, sum, open"),
    }
}

/// Parses an intended difference. The page about differences has to contain the reason.
fn parse_intended(text: &str, place: &str) -> Intended {
    let (what, reason) = text.split_once(": ").unwrap_or_else(|| panic!("{place}: an aspect and a reason"));
    let (release, aspect) =
        what.rsplit_once(' ').map_or((None, what), |(release, aspect)| (Some(release), aspect));
    let aspect = match aspect {
        "status" => Aspect::Status,
        "files" => Aspect::Files,
        "stderr" => Aspect::Stderr,
        "normal" => Aspect::Normal,
        "json" => Aspect::Json,
        "counts" => Aspect::Counts,
        "terse" => Aspect::Terse,
        _ => panic!("{place}: nothing differs in {aspect}"),
    };
    let release = release.map(|release| {
        let minor = release.strip_prefix("3.").and_then(|minor| minor.parse().ok());
        minor.unwrap_or_else(|| panic!("{place}: {release} is not a release"))
    });
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(reason), "{place}: docs/compatibility.md does not say {reason:?}");
    Intended { aspect, release }
}

/// The observable results of one part of a line.
struct Ran {
    finished: Finished,
    report: Report,
    /// Names of files with their sizes, or the number of lines for logs.
    files: Vec<String>,
    /// Reports that were written to files.
    written: Vec<(String, Report)>,
}

#[track_caller]
fn compare_list(list: &str) {
    compare_all(&list_entries(list));
}

/// Runs and compares all entries. The failure lists all differences.
#[track_caller]
fn compare_all(entries: &[Entry]) {
    let (ours, peers) = (Program::under_test(), peers!());
    let programs: Vec<Called> = std::iter::once(&ours).chain(&peers).map(Called::new).collect();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let failed = catch_unwind(AssertUnwindSafe(|| compare(entry, &programs)));
                    let failed = failed.unwrap_or_else(|_| vec!["panicked (see above)".to_owned()]);
                    if !failed.is_empty() {
                        let Entry { place, line, .. } = entry;
                        let text = format!("{place}: {line}\n  {}", failed.join("\n  "));
                        failures.lock().expect("nobody panics with it").push((place.clone(), text));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("all have ended");
    failures.sort();
    let texts: Vec<String> = failures.into_iter().map(|(_, text)| text).collect();
    assert!(texts.is_empty(), "{} of {} differ:\n\n{}", texts.len(), entries.len(), texts.join("\n\n"));
}

/// A program that is called `fio`.
struct Called {
    program: Program,
    /// The directory with the link `fio`.
    directory: tempfile::TempDir,
}

impl Called {
    fn new(program: &Program) -> Called {
        let directory = scratch();
        symlink(&program.path, directory.path().join("fio")).expect("a link can be made");
        Called { program: program.clone(), directory }
    }

    /// Runs a line in a shell; `None` = a real fio hung.
    fn run(&self, dir: &Path, line: &str) -> Option<Finished> {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(dir);
        command.env("PATH", format!("{}:{path}", self.directory.path().display()));
        self.program.wait(Running::start(&mut command))
    }
}

/// The unintended differences from each release.
fn compare(entry: &Entry, programs: &[Called]) -> Vec<String> {
    let (ours, peers) = programs.split_first().expect("ours is the first");
    let run = |program: &Called| program.program.patiently(|| run(entry, program));
    let ran = run(ours);
    let mut failed = Vec::new();
    for peer in peers {
        let release = peer.program.release;
        if lacks_an_option(&entry.line, release) {
            continue;
        }
        let theirs = run(peer);
        let mut differing = BTreeSet::new();
        for (part, (ours, theirs)) in (1..).zip(ran.iter().zip(&theirs)) {
            for Difference { aspect, text } in differences(entry, ours, theirs, release) {
                differing.insert(aspect);
                if !entry.intended.iter().any(|intended| intended.is_about(aspect, release)) {
                    failed.push(format!("{} part {part}, {aspect:?}: {text}", release.name()));
                }
            }
        }
        for intended in
            entry.intended.iter().filter(|intended| intended.release.is_none_or(|of| of == release.minor))
        {
            if !differing.contains(&intended.aspect) {
                failed.push(format!("{}: nothing differs in {:?} any more", release.name(), intended.aspect));
            }
        }
    }
    failed
}

/// Whether a line, or a job file that it names, has an option that the release does not know.
fn lacks_an_option(line: &str, release: &Release) -> bool {
    let mut texts = vec![line.to_owned()];
    texts.extend(job_files_of(line).iter().map(|file| fs::read_to_string(file).expect("a job file")));
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    let mut options = words.map(|word| word.trim_start_matches('-').split('=').next().unwrap_or_default());
    options.any(|option| !release.knows(option))
}

/// The job files that a line names, and their includes.
fn job_files_of(line: &str) -> Vec<PathBuf> {
    let directory = data().join("jobs");
    let is_named = |name: &str| {
        let stem = name.split('.').next().unwrap_or_default();
        line.contains(name) || (stem == "include-settings" && line.contains("include-common"))
    };
    let files = files_in(&directory).into_iter().filter(|(name, _)| is_named(name));
    files.map(|(name, _)| directory.join(name)).collect()
}

/// Runs the parts of a line in a new directory until one fails; `None` = a real fio hung.
fn run(entry: &Entry, program: &Called) -> Option<Vec<Ran>> {
    let dir = prepare(&entry.line);
    let mut ran = Vec::new();
    for part in entry.line.split(" && ") {
        // Both formats, unless the line selects one.
        let says_what = ["--output", "--minimal", "--append-terse", "--showcmd", "--version"];
        let line = match says_what.iter().any(|option| part.contains(option)) || !part.contains("fio ") {
            true => part.to_owned(),
            false => part.replacen("fio ", "fio --output-format=normal,json ", 1),
        };
        let finished = program.run(dir.path(), &line)?;
        let mut report = Report::new(&finished.stdout);
        if !program.program.is_peer {
            // fio does not have these warnings (docs/compatibility.md).
            let kept = report.normal.lines().filter(|line| !line.contains(": warning: "));
            report.normal = kept.flat_map(|line| [line, "\n"]).collect();
        }
        let (mut files, mut written) = (Vec::new(), Vec::new());
        for (name, size) in files_in(dir.path()) {
            let text = || fs::read_to_string(dir.path().join(&name)).unwrap_or_default();
            if part.contains(&format!("--output={name}")) || part.contains(&format!("--output {name}")) {
                written.push((name.clone(), Report::new(&text())));
                files.push(name);
            } else if name.ends_with(".log") {
                // Logs with an entry per I/O have the same number of entries; logs by time do not.
                let is_counted = entry.counts == Counts::Exact && name != "trace.log";
                let lines =
                    if is_counted { format!(": {} lines", text().lines().count()) } else { String::new() };
                files.push(format!("{name}{lines}"));
            } else if entry.counts == Counts::Open && part.contains("--filesize=4k-64k") {
                files.push(name);
            } else if !name.ends_with(".state") {
                // (Verify states have a different format and different rules.)
                files.push(format!("{name}: {size}"));
            }
        }
        let failed = !finished.status.success();
        ran.push(Ran { finished, report, files, written });
        if failed {
            break;
        }
    }
    Some(ran)
}

/// 4 MiB of varying data.
fn content() -> &'static [u8] {
    static CONTENT: OnceLock<Vec<u8>> = OnceLock::new();
    CONTENT.get_or_init(|| {
        let word = |number: u64| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        (0..4 << 17).flat_map(word).collect()
    })
}

fn prepare(line: &str) -> tempfile::TempDir {
    let dir = scratch();
    fs::write(dir.path().join("disk"), content()).expect("a file can be written");
    fs::write(dir.path().join("disk2"), &content()[..1 << 20]).expect("a file can be written");
    for name in ["data", "more"] {
        fs::create_dir(dir.path().join(name)).expect("a directory can be made");
    }
    for file in job_files_of(line) {
        let name = file.file_name().expect("a file has a name");
        fs::copy(&file, dir.path().join(name)).expect("a file can be copied");
    }
    dir
}

/// The message of fio if a disk, such as that of another test, disappears while it reads /sys/block.
const DISK_IS_GONE: &str = "stat: No such file or directory";

fn differences(entry: &Entry, ours: &Ran, theirs: &Ran, release: &Release) -> Vec<Difference> {
    let mut differences = Vec::new();
    let (our_code, their_code) = (ours.finished.code(), theirs.finished.code());
    if our_code != their_code {
        let text = format!("{our_code} and not {their_code}\n{}\n{}", ours.finished, theirs.finished);
        differences.push(Difference::new(Aspect::Status, text));
    }
    let is_silent = theirs.finished.stderr.lines().all(|line| line == DISK_IS_GONE);
    if ours.finished.stderr.is_empty() != is_silent {
        let text = format!("{:?} and not {:?}", ours.finished.stderr, theirs.finished.stderr);
        differences.push(Difference::new(Aspect::Stderr, text));
    }
    differences.extend(compare_lines(Aspect::Files, &ours.files, &theirs.files));
    if our_code != 0 || their_code != 0 {
        // The texts of failures differ.
        return differences;
    }
    differences.extend(compare_reports(&ours.report, &theirs.report, release, entry.counts));
    for ((_, ours), (name, theirs)) in ours.written.iter().zip(&theirs.written) {
        let of_file = |difference: Difference| {
            Difference::new(difference.aspect, format!("{name}: {}", difference.text))
        };
        differences.extend(compare_reports(ours, theirs, release, entry.counts).into_iter().map(of_file));
    }
    differences
}
