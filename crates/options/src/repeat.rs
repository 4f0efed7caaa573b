//! `--repeat`: runs that are made several times.
//!
//! Each job file is a separate run, repeated many times, in its own process. Its command line is this one, without the
//! other job files, and without the options for all runs together: the destination and formats of reports, and the
//! status output.

use crate::run_options::Asked;
use crate::{Diagnostic, LiveView, OutputFormat, RunOptions};
use std::ffi::OsString;

/// The most repeats.
const MOST: u32 = 1000;

/// `--repeat`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// How often each job file is run.
    pub times: u32,
    /// The seed of the order of the runs; `None` = any.
    pub seed: Option<u64>,
}

impl Repeat {
    /// Reads `N` or `N:SEED`.
    pub(crate) fn parse(value: &str) -> Result<Repeat, String> {
        let (times, seed) = match value.split_once(':') {
            Some((times, seed)) => (times, Some(seed)),
            None => (value, None),
        };
        // `parse` would also accept a sign.
        let number =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok());
        let seed = seed.map(|seed| number(seed).flatten().ok_or("the seed is a number below 2^64: N:SEED"));
        let times = number(times).flatten().and_then(|times| u32::try_from(times).ok());
        let times = times.filter(|times| (1..=MOST).contains(times));
        let times =
            times.ok_or_else(|| format!("a number of runs from 1 to {MOST} is needed, as in 5 or 5:SEED"))?;
        Ok(Repeat { times, seed: seed.transpose()? })
    }
}

/// A command line with `--repeat`.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeated {
    /// The number of repeats, and the seed of their order.
    pub repeat: Repeat,
    /// Options of all runs together.
    pub run: RunOptions,
    /// The words that all runs have in common: options, and jobs of the command line.
    pub common: Vec<OsString>,
    /// The job files, each of which is run on its own.
    pub files: Vec<OsString>,
    /// Options that cannot be combined with repeats, and options that have no effect with repeats.
    pub obstacles: Vec<Diagnostic>,
}

/// Options that apply to all runs together, and not to each run.
pub(crate) const OF_ALL_RUNS: [&str; 11] = [
    "repeat",
    "output",
    "output-format",
    "minimal",
    "append-terse",
    "terse-version",
    "save",
    "store",
    "eta",
    "eta-interval",
    "eta-newline",
];

/// The runs that the command line requests; `None` = no repeats, or a request other than a run.
pub(crate) fn repeated(asked: &Asked, common: Vec<OsString>, files: Vec<OsString>) -> Option<Repeated> {
    let repeat = asked.run.repeat?;
    if asked.question.is_some() || asked.showcmd {
        return None;
    }
    Some(Repeated { repeat, run: asked.run.clone(), common, files, obstacles: obstacles(asked) })
}

fn obstacles(asked: &Asked) -> Vec<Diagnostic> {
    let (run, usual) = (&asked.run, RunOptions::default());
    let refused = [
        ("--server", asked.others.server.is_some()),
        ("--client", !asked.others.clients.is_empty()),
        ("--mpi", asked.others.mpi.is_some()),
        ("--web", run.web.is_some()),
        ("--live=full", run.live == LiveView::Full),
        ("--metrics", run.metrics.is_some()),
        ("--metrics-push", run.metrics_push.is_some()),
        ("--merge-blktrace-only", run.merge_blktrace_only),
        ("--debug", run.debug != usual.debug),
        ("--profile", run.profile.is_some()),
        ("--status-interval", run.status_interval > 0),
        ("--eta-interval", run.eta_interval != usual.eta_interval),
        ("--eta-newline", run.eta_newline != usual.eta_newline),
        ("--output-format=md", run.output_format.contains(&OutputFormat::Markdown)),
        ("--output-format=terse", run.output_format.contains(&OutputFormat::Terse) || asked.append_terse),
    ];
    let refused = refused.into_iter().filter(|(_, is_given)| *is_given);
    refused
        .map(|(option, _)| Diagnostic {
            origin: None,
            message: format!("{option}: not supported together with --repeat"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Name, repeated};

    #[test]
    fn numbers_and_seeds() {
        assert_eq!(Repeat::parse("5"), Ok(Repeat { times: 5, seed: None }));
        assert_eq!(Repeat::parse("1000:0"), Ok(Repeat { times: 1000, seed: Some(0) }));
        for bad in [
            "0",
            "1001",
            "",
            "x",
            "-1",
            "+1",
            "5:",
            "5:x",
            "5:-1",
            "5:1:2",
            "99999999999",
            "5:99999999999999999999",
        ] {
            assert!(Repeat::parse(bad).is_err(), "{bad}");
        }
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    /// Letters, abbreviations and values in separate words are distinguished from job files.
    #[test]
    fn common_options_apply_to_every_run() {
        let line = "-rt 5:7 a.fio --output=o --runt 3 --ioengine=libaio -libaio_vectored=1 --eta never b.fio --name x -bs 4k";
        let found = repeated(&words(line), Name::Iolite).unwrap();
        assert_eq!(found.repeat, Repeat { times: 5, seed: Some(7) });
        assert_eq!(
            found.common,
            words("--readonly --runtime=3 --ioengine=libaio --libaio_vectored=1 --name=x --bs=4k")
        );
        assert_eq!(found.files, words("a.fio b.fio"));
        assert!(found.obstacles.is_empty(), "{:?}", found.obstacles);
        assert_eq!(found.run.output.as_deref(), Some("o".as_ref()));
        // These do not ask for runs, or for repeats; mistakes are reported elsewhere.
        for line in [
            "a.fio",
            "--repeat=5 --help",
            "--repeat=5 --showcmd a.fio",
            "--repeat=x a.fio",
            "--repeat=5 --nosuch",
        ] {
            assert_eq!(repeated(&words(line), Name::Iolite), None, "{line}");
        }
        assert_eq!(repeated(&words("--repeat=5 a.fio"), Name::Fio), None);
    }

    #[test]
    fn options_that_exclude_repeat_are_reported() {
        for option in [
            "--client=a",
            "--mpi",
            "--web",
            "--live=full",
            "--minimal",
            "--append-terse",
            "--debug=all",
            "--eta-newline=1s",
            "--server",
        ] {
            let found = repeated(&words(&format!("--repeat=5 {option} a.fio")), Name::Iolite).unwrap();
            assert_eq!(found.obstacles.len(), 1, "{option}: {:?}", found.obstacles);
        }
    }
}
