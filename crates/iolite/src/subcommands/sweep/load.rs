//! The job file of a point: the sweep's, with other values of some options in each job.

use super::{NAME, shown};
use crate::run_series;
use iolite_options::{Invocation, JobOptions, Origin, SizeValue, parse_with};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The additional measurement of all points: percentiles of the latency that includes submission.
const MEASURED: (&str, &str) = ("lat_percentiles", "1");
/// The option whose values add up.
const FILENAME: &str = "filename";

/// A job file that is swept.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name, if it is a case of a preset.
    pub name: String,
    /// The file's name in messages.
    pub file: String,
    /// The job file.
    pub text: String,
    /// The user knows its lines: it is neither a preset, nor made of options.
    pub has_lines: bool,
}

/// The load of a point.
#[derive(Clone, Debug)]
pub struct Load {
    /// The job file.
    pub text: String,
    /// The total depth of all jobs.
    pub depth: f64,
    /// Its shortest run time, as far as its options say.
    pub seconds: u64,
    /// The bytes of the files of the largest job; 0 = not known.
    pub bytes: u64,
    /// The paths of the jobs' files.
    pub files: Vec<PathBuf>,
    /// Their engines, directions and block sizes, as texts.
    pub engine: String,
    pub rw: String,
    pub bs: String,
    /// The origins of the lines of the text.
    lines: Lines,
}

impl Case {
    /// Reads a job file (`-` is standard input).
    pub fn of_file(path: &Path) -> Result<Case, String> {
        let told = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut bytes = Vec::new();
        if iolite_types::is_standard_stream(path) {
            std::io::stdin().read_to_end(&mut bytes).map_err(told)?;
        } else {
            bytes = std::fs::read(path).map_err(told)?;
        }
        if let Some(why) = iolite_options::wrong_encoding(&bytes, &path.display().to_string()) {
            return Err(format!("{}: {why}", path.display()));
        }
        let text =
            String::from_utf8(bytes).map_err(|_| format!("{}: this is no text in UTF-8", path.display()))?;
        let beside = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        Ok(Case {
            name: String::new(),
            file: path.display().to_string(),
            text: beside.map_or(text.clone(), |beside| with_includes(&text, beside)),
            has_lines: true,
        })
    }

    /// Checks whether this value can be in the text.
    pub fn check_value(name: &str, value: &str) -> Result<(), String> {
        if value.contains([';', '#', '\n', '\r', '\0']) {
            let value = shown(name, value);
            return Err(format!("--{name}={value}: a value in a job file has no ; or #, and is one line"));
        }
        Ok(())
    }

    /// The load with these values, and its jobs.
    pub fn with(&self, values: &[(String, String)]) -> Result<(Load, Vec<JobOptions>), String> {
        for (name, value) in values {
            Self::check_value(name, value)?;
        }
        let settings =
            std::iter::once((MEASURED.0.to_owned(), MEASURED.1.to_owned())).chain(values.iter().cloned());
        let (text, lines) = overridden(&self.text, &settings.collect::<Vec<_>>());
        let words = values
            .iter()
            .map(|(name, value)| format!("{name}={}", shown(name, value)))
            .collect::<Vec<_>>()
            .join(" ");
        let told = |why: String| if words.is_empty() { why } else { format!("{words}: {why}") };
        let jobs = jobs(&text, &lines, self).map_err(told)?;
        check(&jobs, values)?;
        let depth = |job: &JobOptions| {
            let each =
                job.chosen_engine().map_or(job.depth.iodepth, |engine| job.most_in_flight(engine.facets));
            f64::from(each) * f64::from(job.schedule.numjobs)
        };
        let bytes = |job: &JobOptions| match job.extent.size {
            Some(SizeValue::Bytes(bytes)) => bytes,
            _ => 0,
        };
        let load = Load {
            depth: jobs.iter().map(depth).sum(),
            seconds: run_series::seconds(&jobs),
            bytes: jobs.iter().map(bytes).max().unwrap_or(0),
            files: jobs.iter().flat_map(files).collect(),
            engine: listed(&jobs, |job| job.ioengine.clone()),
            rw: listed(&jobs, |job| given(job, &["rw"]).unwrap_or_else(|| "read".to_owned())),
            bs: listed(&jobs, |job| {
                given(job, &["bssplit", "bsrange", "bs"]).unwrap_or_else(|| "4k".to_owned())
            }),
            text,
            lines,
        };
        Ok((load, jobs))
    }
}

/// What jobs have, each once.
fn listed(jobs: &[JobOptions], of: impl Fn(&JobOptions) -> String) -> String {
    let mut all: Vec<String> = Vec::new();
    for words in jobs.iter().map(of) {
        if !all.contains(&words) {
            all.push(words);
        }
    }
    all.join(", ")
}

/// The text of the first of these options that a job has.
fn given(job: &JobOptions, names: &[&str]) -> Option<String> {
    let of = |name: &&str| {
        let last = |given: &[(String, String)]| given.iter().rev().find(|(known, _)| known == name).cloned();
        last(&job.given).or_else(|| last(&job.given_global)).map(|(_, text)| text)
    };
    names.iter().find_map(of)
}

impl Load {
    /// A message of the run, with the line of the user's job file. (Lines of presets are removed: the user does not
    /// know them.)
    pub fn placed(&self, warning: &str, case: &Case) -> String {
        let place = |warning: &str| {
            let (line, rest) = warning.strip_prefix("-:")?.split_once(':')?;
            let (column, words) = rest.split_once(": ")?;
            let line: usize = line.parse().ok()?;
            column.parse::<u32>().ok()?;
            let words = words.strip_prefix("warning: ").unwrap_or(words);
            let line = self.lines.original(line).filter(|_| case.has_lines);
            Some(line.map_or(words.to_owned(), |line| format!("{}:{line}:{column}: {words}", case.file)))
        };
        place(warning).unwrap_or_else(|| warning.to_owned())
    }
}

/// For each line of a text with settings, its number in the text without them; `None` = it is a setting.
#[derive(Clone, Debug)]
struct Lines(Vec<Option<usize>>);

impl Lines {
    fn original(&self, line: usize) -> Option<usize> {
        self.0.get(line.checked_sub(1)?).copied().flatten()
    }
}

/// The files that a job names, with their directories.
fn files(job: &JobOptions) -> Vec<PathBuf> {
    job.files.filename.iter().map(PathBuf::from).collect()
}

/// The jobs of a text, as they will be run.
fn jobs(text: &str, lines: &Lines, case: &Case) -> Result<Vec<JobOptions>, String> {
    let words = [OsString::from("-")];
    let read = parse_with(&words, &|name| std::env::var(name).ok(), &mut text.as_bytes(), NAME);
    match read {
        Ok(Invocation::Run { batches, .. }) => Ok(batches.into_iter().flatten().collect()),
        Ok(_) => Err("there is no job in the job file".to_owned()),
        Err(errors) => {
            let told = errors.into_iter().map(|mut error| {
                // The text is not the user's job file.
                if let Some(Origin::File { path, line, column }) = &error.origin
                    && path == "-"
                {
                    let original = lines.original(*line as usize).filter(|_| case.has_lines);
                    let original = original.and_then(|line| u32::try_from(line).ok());
                    let column = *column;
                    error.origin =
                        original.map(|line| Origin::File { path: case.file.clone(), line, column });
                }
                error.to_string()
            });
            Err(told.collect::<Vec<_>>().join("; "))
        }
    }
}

/// Refuses options whose points would be meaningless.
fn check(jobs: &[JobOptions], values: &[(String, String)]) -> Result<(), String> {
    let waits = |job: &JobOptions| job.schedule.wait_for.is_some() || job.schedule.stonewall;
    if let Some(job) = jobs.iter().skip(1).find(|job| waits(job)) {
        return Err(format!(
            "job {} waits for others, so the jobs are not one load; sweep one of them at a time",
            job.name
        ));
    }
    let sets = |name: &str| values.iter().any(|(swept, _)| swept == name);
    if sets("bs") {
        let stronger = |job: &JobOptions| job.instead_of_bs().filter(|stronger| !sets(stronger));
        if let Some((job, stronger)) = jobs.iter().find_map(|job| Some((job, stronger(job)?))) {
            return Err(format!("job {} has {stronger}, beside which bs has no effect", job.name));
        }
    }
    Ok(())
}

/// The text with these settings at the end of each job: the last setting of an option counts. Several `filename` of a
/// job would all be used, so those of the text are left out if the settings have one.
fn overridden(text: &str, values: &[(String, String)]) -> (String, Lines) {
    let settings: String = values.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    let mut out = String::with_capacity(text.len() + settings.len());
    let mut lines = Vec::new();
    let names_files = values.iter().any(|(name, _)| name == FILENAME);
    let mut is_job = false;
    for (position, line) in text.lines().enumerate() {
        let code = line.split([';', '#']).next().unwrap_or_default().trim();
        if names_files && code.split('=').next().is_some_and(|option| option.trim_end() == FILENAME) {
            continue;
        }
        if let Some(header) = code.strip_prefix('[') {
            if is_job {
                out += &settings;
                lines.extend(values.iter().map(|_| None));
            }
            is_job = !header.starts_with("global");
        }
        out += line;
        out.push('\n');
        lines.push(Some(position + 1));
    }
    if is_job {
        out += &settings;
    }
    (out, Lines(lines))
}

/// Makes the names of included files independent of the job file's directory: the text will come from standard input.
fn with_includes(text: &str, beside: &Path) -> String {
    let line = |line: &str| {
        let code = line.trim_start();
        let name = code.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t', '=']));
        let name = name.map(|rest| {
            rest.trim_start_matches([' ', '\t', '=']).split([';', '#']).next().unwrap_or_default().trim()
        });
        match name {
            Some(name) if !Path::new(name).exists() && beside.join(name).exists() => {
                format!("include {}\n", beside.join(name).display())
            }
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn case(text: &str) -> Case {
        Case { name: String::new(), file: "job.fio".to_owned(), text: text.to_owned(), has_lines: true }
    }

    #[test]
    fn values_are_those_of_each_job() {
        let text = "[global]\nbs=4k\n# [no]\n[a] ; x\niodepth=2\nioengine=libaio\n[global2]\nrw=randread\n[b]\nnumjobs=3";
        let case = case(text);
        let (load, read) = case.with(&values(&[("iodepth", "8"), ("bs", "64k")])).unwrap();
        assert_eq!(load.text.matches("lat_percentiles=1\niodepth=8\nbs=64k\n").count(), 2);
        // The second job is synchronous, with three clones.
        assert_eq!(load.depth, 11.0);
        assert_eq!((read[0].depth.iodepth, read[1].depth.iodepth, read[1].schedule.numjobs), (8, 8, 3));
    }

    #[test]
    fn files_that_are_set_replace_those_of_the_job() {
        let text = "[global]\nfilename=e\n[a]\nfilename = f ; mine\nfilename=g\n";
        let case = case(text);
        let named = |pairs: &[(&str, &str)]| case.with(&values(pairs)).unwrap().1[0].files.filename.clone();
        assert_eq!(named(&[("filename", "h")]), ["h"]);
        assert_eq!(named(&[("bs", "8k")]), ["f", "g"]);
    }

    /// Mistakes and warnings name the lines of the job file, not those of the text with settings.
    #[test]
    fn places_are_those_of_the_job_file() {
        let text = "[a]\nfilename=e\nbs=4k\n[b]\nrw=nosuch\n";
        let error = case(text).with(&values(&[("filename", "f"), ("bs", "8k")])).unwrap_err();
        assert!(error.contains("job.fio:5:4: rw=nosuch"), "{error}");
        let error = case("[a]\n[b]\n").with(&values(&[("bs", "4kk")])).unwrap_err();
        assert!(error.starts_with("bs=4kk: bs=4kk: ") && !error.contains("job.fio"), "{error}");
        let (load, _) = case("[a]\nfilename=e\n[b]\nbs=4k\n").with(&values(&[("filename", "f")])).unwrap();
        let line = 1 + load.text.lines().position(|line| line == "bs=4k").unwrap();
        for (warning, expected) in [
            (format!("-:{line}:4: warning: odd"), "job.fio:4:4: odd"),
            ("-:2:4: warning: odd".to_owned(), "odd"),
            ("-:99999999999999999999:4: odd".to_owned(), "-:99999999999999999999:4: odd"),
            ("job a: odd: 3".to_owned(), "job a: odd: 3"),
        ] {
            assert_eq!(load.placed(&warning, &case("")), expected);
        }
    }

    #[test]
    fn only_engines_that_queue_reach_the_depth() {
        for (text, depth) in [
            ("ioengine=psync", 1.0),
            ("ioengine=psync\nio_submit_mode=offload", 8.0),
            ("ioengine=libaio", 8.0),
            ("ioengine=filestat", 1.0),
            ("ioengine=filestat\nuring=1", 8.0),
        ] {
            let text = format!("[a]\niodepth=8\n{text}\n");
            assert_eq!(case(&text).with(&[]).unwrap().0.depth, depth, "{text}");
        }
    }

    #[test]
    fn unsuitable_job_files_and_values_are_refused() {
        for (text, pairs, why) in [
            ("[a]\n[b]\nstonewall\n", &[("bs", "4k")][..], "job b waits for others"),
            ("[a]\n[b]\nwait_for=a\n", &[], "job b waits for others"),
            ("[a]\nbssplit=4k/50:8k/50\n", &[("bs", "4k")], "has bssplit"),
            ("[a]\nrw=randrw\nbssplit=4k/50:8k/50,\nbsrange=,4k-8k\n", &[("bs", "4k")], "has bssplit"),
            ("[a]\n", &[("bs", "4kk")], "bs=4kk: "),
            ("[a]\n", &[("filename", "a;b")], "no ; or #"),
            ("[global]\nbs=4k\n", &[], "no job"),
            ("", &[], "no job"),
            ("[a]\nbs=x\n", &[], "job.fio:2:4: bs=x"),
        ] {
            let error = case(text).with(&values(pairs)).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
