//! `iolite test`: measures a directory, file or device with a fixed plan of cases, and says what the figures mean.
//!
//! # Where things are
//!
//! | what | file |
//! |---|---|
//! | what a target is, what may be done to it, facts about it | `test/target.rs` |
//! | targets that a URL names: storage of servers | `test/remote.rs` |
//! | the test's own directory in a target, and what killed tests have left | `test/own_directory.rs` |
//! | the cases, and how long they take | `test/cases.rs` |
//! | the course: filling, probes, cases, rounds | `test/course.rs`; one run: `performer.rs` |
//! | progress | `progress.rs` |
//! | figures of a case for people; the screen | `test/rows.rs`; `test/screen.rs` |
//! | `--expect` | `test/expect.rs` |
//! | `--output`, `--save` | `test/output.rs` |
//!
//! The sentences are made by the crate `findings`.

mod cases;
mod course;
mod expect;
mod output;
pub mod own_directory;
pub mod remote;
mod rows;
mod screen;
mod target;

use crate::exit_status::INTERRUPTED;
use crate::saving::Saving;
use cases::Pace;
use course::Course;
use expect::Limit;
use iolite_options::commands::Asked;
use own_directory::OwnDirectory;
use remote::{Layout, Remote};
use std::path::Path;
use target::{Kind, Target};

/// The label of stored results.
const LABEL: &str = "test";

/// The answer as text, and the exit status.
pub fn run(program: &str, asked: &Asked) -> Result<(String, u8), String> {
    let pace = match (asked.has("quick"), asked.has("thorough")) {
        (true, true) => return Err("--quick and --thorough: only one of them".to_owned()),
        (true, false) => &cases::QUICK,
        (false, true) => &cases::THOROUGH,
        (false, false) => &cases::USUAL,
    };
    let limits = expect::all(asked.values("expect"))?;
    let output = asked.value("output").map(output::Format::of).transpose()?;
    if asked.operands.is_empty() {
        return Err(
            "needs a target: a directory, a file, a block device or the URL of a server, such as iolite test /mnt/data, or \
                    iolite test . for the current directory"
                .to_owned(),
        );
    }
    if asked.has("clean") {
        return clean(asked).map(|text| (text, 0));
    }
    let targets = target::all(asked)?;
    expect::check(&limits, &targets, pace)?;
    if asked.has("show-job") {
        return show_jobs(&targets, pace).map(|text| (text, 0));
    }
    let check = |store: &Path| match targets.iter().find(|target| target.is(store)) {
        Some(_) => Err(format!("{}: that is a target; name another store with --store", store.display())),
        None => Ok(()),
    };
    let saving = Saving::of_subcommand(asked, LABEL, &check)?;
    let output = output.map(|format| format.open(&targets)).transpose()?;
    let course = Course::new(program, targets, pace)?;
    let Some(mut outcome) = course.perform()? else { return Ok((String::new(), INTERRUPTED)) };
    outcome.judge(&limits);
    let text = screen::text(&outcome, crate::terminal::is_ascii());
    let mut is_kept = true;
    if let Some(output) = output {
        is_kept &= output.write(program, &outcome);
    }
    if let Some(saving) = saving {
        is_kept &= saving.keep_text(&output::json(&outcome));
    }
    let is_good = is_kept && outcome.failures.is_empty() && outcome.broken.is_empty();
    Ok((text, u8::from(!is_good)))
}

/// Removes what killed tests have left in directories.
fn clean(asked: &Asked) -> Result<String, String> {
    let mut text = String::new();
    for word in &asked.operands {
        let path = Path::new(word);
        if let Some(remote) = Remote::of(&word.to_string_lossy()).filter(|_| !path.exists()) {
            text += &clean_server(&word.to_string_lossy(), &remote?)?;
            continue;
        }
        if !path.is_dir() {
            return Err(format!(
                "--clean: {}: this is no directory, and tests leave files only in directories",
                path.display()
            ));
        }
        let found = OwnDirectory::left(path, &own_directory::OF_TESTS)?;
        if found.is_empty() {
            text += &format!("{}: no test has left anything here\n", path.display());
        }
        for left in found {
            left.remove()?;
            text += &format!("{}: removed; a test that was killed had left it\n", left.path.display());
        }
    }
    Ok(text)
}

/// Removes what killed tests have left on a server. A server does not say whether a test is at work.
fn clean_server(url: &str, remote: &Remote) -> Result<String, String> {
    let name = remote::shown(url);
    if remote.layout == Layout::Disk {
        return Err(format!("--clean: {name}: this is a disk, and tests leave nothing on one"));
    }
    let told = |why: String| format!("--clean: {name}: {why}");
    if let Some(why) = remote.without_lists() {
        return Err(told(why));
    }
    let found = remote.left().map_err(told)?;
    remote.remove_left(&found).map_err(told)?;
    Ok(match found.len() {
        0 => format!("{name}: no test has left anything here\n"),
        1 => format!("{name}: removed what a test has left\n"),
        many => format!("{name}: removed what {many} tests have left\n"),
    })
}

/// The cases of all targets as a job file.
fn show_jobs(targets: &[Target], pace: &Pace) -> Result<String, String> {
    let mut text = String::new();
    for target in targets {
        let place = target.place_before(pace)?;
        line!(text, "# The cases of `iolite test` for {}. Run them with: iolite FILE", target.name);
        if target.kind == Kind::Directory {
            line!(
                text,
                "# The first one writes the file that the others use, and nothing removes it: rm -r {}",
                place.directory().display()
            );
        }
        if let Some(remote) = target.remote.as_ref().filter(|remote| remote.layout != Layout::Disk) {
            line!(
                text,
                "# They write names on the server that begin with {}, and nothing removes them.",
                remote.own_name()
            );
        }
        line!(
            text,
            "# The test finds bs and iodepth of read and write by probes of {} s each; these are the values it begins with.\n",
            pace.probe
        );
        for (position, case) in cases::all(&place, pace).iter().enumerate() {
            text += &case.section(position > 0);
            text.push('\n');
        }
    }
    Ok(text)
}

use std::fmt::Write;

/// What was measured, and what it means.
pub struct Outcome {
    /// The results of each target.
    pub results: Vec<course::Measured>,
    /// The comparison of several targets with the first one.
    pub comparison: Option<iolite_compare::Comparison>,
    /// Cases that failed, and why.
    pub failures: Vec<String>,
    /// The limits that hold.
    pub kept: Vec<String>,
    /// The limits that do not hold, with the figures.
    pub broken: Vec<String>,
    /// Seconds that it took.
    pub seconds: f64,
}

impl Outcome {
    /// Judges the limits.
    fn judge(&mut self, limits: &[Limit]) {
        for limit in limits {
            for words in limit.judge(&self.results) {
                match words {
                    Ok(words) => self.kept.push(words),
                    Err(words) => self.broken.push(words),
                }
            }
        }
    }
}
