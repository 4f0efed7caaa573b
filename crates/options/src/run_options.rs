//! The options of the run as a whole, as data: `--output`, `--section`, `--help` and the rest.
//!
//! Each is one item of [`ALL`]. Parsing, abbreviations, suggestions and the text of `--help` are derived from it.

mod landings;

use crate::machine_options::{Named, Others, WhenLost};
use crate::values::Notes;
use crate::web::metrics_address;
use crate::{OutputFormat, Repeat, RunOptions, SelfTest, profiles, web_address, web_tls};
pub(crate) use landings::UNKNOWN_CATEGORY;
use landings::{
    alloc_size, ask, color, debug, eta, given, help, idle_prof, live, max_jobs, milliseconds, names,
    output_format, profile, terse_version,
};
use std::path::PathBuf;

/// The requests of the command line besides jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// The options that become part of the result.
    pub run: RunOptions,
    /// `--section`: the sections of job files to run; empty = all.
    pub sections: Vec<String>,
    /// `--showcmd`
    pub showcmd: bool,
    /// `--profile`
    pub profile: Option<profiles::Chosen>,
    /// `--append-terse`
    pub append_terse: bool,
    /// A question to answer instead of running jobs.
    pub question: Option<Question>,
    /// Notes about suspicious values that are accepted.
    pub notes: Notes,
    /// The options that concern other machines.
    pub others: Others,
    /// The number of job files so far.
    pub files: usize,
}

impl Asked {
    /// Whether a job of this name is selected by the `--section`s so far.
    pub fn wants(&self, name: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|wanted| wanted == name)
    }
}

/// A question whose answer is a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Version,
    Help { is_whole: bool },
    CommandHelp(Option<String>),
    EngineHelp(Option<String>),
    DebugCategories,
    SelfTest(SelfTest),
    InflateLog(PathBuf),
}

/// The argument of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    /// Nothing.
    None,
    /// A value, after `=` or as the next word; this is its name in the help.
    Required(&'static str),
    /// The same, but an empty value counts as not given: scripts pass on variables that may be unset (`--eta="$ETA"`).
    Clearable(&'static str),
    /// The same, but an empty value has a meaning of its own.
    MayBeEmpty(&'static str),
    /// An optional value, after `=` only. An empty value counts as none.
    Optional(&'static str),
}

type Land = fn(&mut Asked, &str) -> Result<(), String>;

/// One option of the run as a whole.
pub(crate) struct RunOption {
    /// The name, without dashes.
    pub name: &'static str,
    /// Its letter.
    pub short: char,
    /// Its argument.
    pub argument: Argument,
    /// Its help, line by line.
    pub help: &'static [&'static str],
    /// Applies its value (empty if it has none); `None` while it has no effect yet.
    pub land: Option<Land>,
}

const fn option(
    name: &'static str,
    short: char,
    argument: Argument,
    help: &'static [&'static str],
    land: Option<Land>,
) -> RunOption {
    RunOption { name, short, argument, help, land }
}

use Argument::{Clearable, MayBeEmpty, None as NoArgument, Optional, Required};

/// The categories of `--debug`.
pub(crate) const DEBUG_CATEGORIES: [&str; 19] = [
    "process",
    "file",
    "io",
    "mem",
    "blktrace",
    "verify",
    "random",
    "parse",
    "diskutil",
    "job",
    "mutex",
    "profile",
    "time",
    "net",
    "rate",
    "compress",
    "steadystate",
    "helperthread",
    "zbd",
];

/// All options of the run, in the order of the help.
pub(crate) static ALL: &[RunOption] = &[
    option("help", 'h', Optional("all"), &["Print the first page, or all of this, and exit"], Some(help)),
    option(
        "version",
        'v',
        NoArgument,
        &["Print the version and exit"],
        Some(|asked, _| ask(asked, Question::Version)),
    ),
    option(
        "cmdhelp",
        'c',
        Optional("name"),
        &["Describe the job option of this name; \"all\" or nothing lists", "every job option"],
        Some(|asked, value| ask(asked, Question::CommandHelp(given(value)))),
    ),
    option(
        "enghelp",
        'i',
        Optional("engine[,name]"),
        &["List the options of this engine, or describe one of them; without", "a value, list the engines"],
        Some(|asked, value| ask(asked, Question::EngineHelp(given(value)))),
    ),
    option(
        "showcmd",
        's',
        NoArgument,
        &["Print each job file as a command line and exit"],
        Some(|asked, _| {
            asked.showcmd = true;
            Ok(())
        }),
    ),
    option(
        "parse-only",
        'P',
        NoArgument,
        &["Check the options and job files, but do no I/O"],
        Some(|asked, _| {
            asked.run.parse_only = true;
            Ok(())
        }),
    ),
    option(
        "warnings-fatal",
        'w',
        NoArgument,
        &["Treat every warning about the input as an error"],
        Some(|asked, _| {
            asked.run.warnings_fatal = true;
            Ok(())
        }),
    ),
    option(
        "section",
        'x',
        Required("name"),
        &["Run only the sections of this name; may be given several times"],
        Some(|asked, value| {
            asked.sections.push(value.to_owned());
            Ok(())
        }),
    ),
    option(
        "readonly",
        'r',
        NoArgument,
        &["Change no data: refuse jobs that would write, trim, create, extend", "or remove files"],
        Some(|asked, _| {
            asked.run.readonly = true;
            Ok(())
        }),
    ),
    option(
        "output",
        'o',
        Required("file"),
        &["Write the report to this file"],
        Some(|asked, value| {
            asked.run.output = Some(PathBuf::from(value));
            Ok(())
        }),
    ),
    option(
        "output-format",
        'F',
        Required("formats"),
        &[
            "Report in these formats, separated by commas: normal, summary, json,",
            "json+, terse, html, md (default: normal, but summary on a terminal, or",
            "what IOLITE_FORMAT names)",
        ],
        Some(output_format),
    ),
    option(
        "color",
        '8',
        Optional("when"),
        &[
            "Colour the summary: always, never, or auto (default), which is on a terminal,",
            "unless the environment has NO_COLOR",
        ],
        Some(color),
    ),
    option(
        "no-series",
        '0',
        NoArgument,
        &["Leave the time series out of JSON: it is most of a report of one job"],
        Some(|asked, _| {
            asked.run.no_series = true;
            Ok(())
        }),
    ),
    option(
        "minimal",
        'm',
        NoArgument,
        &["The same as --output-format=terse"],
        Some(|asked, _| {
            asked.run.has_chosen_format = true;
            asked.run.output_format = vec![OutputFormat::Terse];
            Ok(())
        }),
    ),
    option(
        "append-terse",
        'f',
        // fio accepts any value and ignores it.
        Optional("anything"),
        &["Report in the terse format as well"],
        Some(|asked, _| {
            asked.run.has_chosen_format = true;
            asked.append_terse = true;
            Ok(())
        }),
    ),
    option(
        "save",
        'n',
        Optional("label"),
        &[
            "Keep the run in the store, with this label; iolite runs lists them",
            "(the same as IOLITE_SAVE=1)",
        ],
        Some(|asked, value| {
            asked.run.save = Some(value.to_owned());
            Ok(())
        }),
    ),
    option(
        "store",
        'z',
        Required("file"),
        &["Keep runs in this file (default: iolite/runs.db in the user's data", "directory)"],
        Some(|asked, value| {
            asked.run.store = Some(PathBuf::from(value));
            Ok(())
        }),
    ),
    option(
        "repeat",
        't',
        Required("number[:seed]"),
        &[
            "Run each job file this often (five times or more for verdicts), all in random",
            "order, and compare them; --output=DIR keeps the reports, or --save",
        ],
        Some(|asked, value| {
            asked.run.repeat = Some(Repeat::parse(value)?);
            Ok(())
        }),
    ),
    option(
        "terse-version",
        'V',
        Required("number"),
        &["The version of the terse format: 2, 3, 4 or 5 (default 3)"],
        Some(terse_version),
    ),
    option(
        "eta",
        'e',
        Clearable("when"),
        &["Show the live status line: always, never, or auto (default), which", "is on a terminal"],
        Some(eta),
    ),
    option(
        "live",
        '5',
        Required("view"),
        &[
            "Show the running run by its status line (line, the default) or on the whole",
            "terminal (full): jobs or machines, their rates over time, disks, messages",
        ],
        Some(live),
    ),
    option(
        "eta-interval",
        'O',
        Required("time"),
        &["Renew the status line this often (default 1s, at least 250ms)"],
        Some(|asked, value| {
            asked.run.eta_interval = milliseconds(asked, value, 250)?;
            Ok(())
        }),
    ),
    option(
        "eta-newline",
        'E',
        Required("time"),
        &["Begin a new status line after each such period"],
        Some(|asked, value| {
            asked.run.eta_newline = milliseconds(asked, value, 1)?;
            Ok(())
        }),
    ),
    option(
        "status-interval",
        'L',
        Required("time"),
        &["Print a full interim report after each such period"],
        Some(|asked, value| {
            asked.run.status_interval = milliseconds(asked, value, 1)?;
            Ok(())
        }),
    ),
    option(
        "max-jobs",
        'j',
        Clearable("number"),
        &["Accepted and not needed: as many workers run as there are jobs"],
        Some(max_jobs),
    ),
    option(
        "alloc-size",
        'a',
        Clearable("KiB"),
        &["Accepted and not needed: memory for shared state is sized from the", "jobs themselves"],
        Some(alloc_size),
    ),
    option(
        "aux-path",
        'K',
        Clearable("directory"),
        &["Put files that the run itself creates here"],
        Some(|asked, value| {
            asked.run.aux_path = Some(PathBuf::from(value));
            Ok(())
        }),
    ),
    option(
        "debug",
        'd',
        Clearable("categories"),
        &[
            "Say more about these, separated by commas: process, file, io, mem,",
            "blktrace, verify, random, parse, diskutil, job, mutex, profile,",
            "time, net, rate, compress, steadystate, helperthread, zbd, all;",
            "job:N limits the output to the Nth job; help lists them",
        ],
        Some(debug),
    ),
    option(
        "bandwidth-log",
        'b',
        NoArgument,
        &[
            "Write the bandwidth of all jobs together to agg-read_bw.log,",
            "agg-write_bw.log and agg-trim_bw.log",
        ],
        Some(|asked, _| {
            asked.run.bandwidth_log = true;
            Ok(())
        }),
    ),
    option(
        "merge-blktrace-only",
        'A',
        NoArgument,
        &["Merge block traces, but do no I/O"],
        Some(|asked, _| {
            asked.run.merge_blktrace_only = true;
            Ok(())
        }),
    ),
    option(
        "idle-prof",
        'I',
        Required("option"),
        &[
            "Measure how idle the CPUs are while the jobs run: system (together)",
            "or percpu (each as well); calibrate measures the unit of work only",
        ],
        Some(idle_prof),
    ),
    option(
        "inflate-log",
        'X',
        Required("file"),
        &["Print a log that log_store_compressed wrote, and exit"],
        Some(|asked, value| ask(asked, Question::InflateLog(PathBuf::from(value)))),
    ),
    option(
        "crctest",
        'G',
        Optional("names"),
        &["Measure the speed of the checksums that verify can use, and exit"],
        Some(|asked, value| ask(asked, Question::SelfTest(SelfTest::Checksums(names(value))))),
    ),
    option(
        "cpuclock-test",
        'T',
        NoArgument,
        &["Check that the processors' clocks agree and never go back, and exit"],
        Some(|asked, _| ask(asked, Question::SelfTest(SelfTest::Clock))),
    ),
    option(
        "server",
        'S',
        Optional("address"),
        &[
            "Run the jobs of clients that connect here: sock:PATH, or [ip:|ip6:]HOST,PORT",
            "(port 8765) with the keys of agents (--keys); or those of the parent process:",
            "stdio",
        ],
        Some(|asked, value| {
            asked.others.server = Some(value.to_owned());
            Ok(())
        }),
    ),
    option(
        "daemonize",
        'D',
        Required("pidfile"),
        &["Serve in the background; the process id goes to this file"],
        Some(|asked, value| {
            asked.others.pid_file = Some(PathBuf::from(value));
            Ok(())
        }),
    ),
    option(
        "client",
        'C',
        MayBeEmpty("host"),
        &[
            "Run the job files behind it on this server: sock:PATH, or",
            "[ip:|ip6:][HOST][,PORT] with the keys of a coordinator (--keys; no HOST: this",
            "machine); on a machine where ssh starts it: ssh:[USER@]HOST[,PORT]; or on the",
            "hosts listed in this file; may be given several times",
        ],
        Some(|asked, value| {
            let (address, files_before) = (value.to_owned(), asked.files);
            asked.others.clients.push(Named { address, files_before, remote_files: Vec::new() });
            Ok(())
        }),
    ),
    option(
        "mpi",
        'Z',
        Optional("way"),
        &[
            "Run the job files on all ranks of the launcher that has started this: mpirun,",
            "srun --mpi=pmix or pmi2. They find each other by pmix, pmi2 or dir:PATH, a",
            "directory that all of them can access (default: as the launcher permits)",
        ],
        Some(|asked, value| {
            asked.others.mpi = Some(value.to_owned());
            Ok(())
        }),
    ),
    option(
        "push",
        'U',
        Optional("path"),
        &[
            "Copy this program to the machines of --client=ssh:HOST for this run, into a",
            "temporary directory that is removed at its end; with a path, that program, or",
            "iolite-push for the machine's processor from that directory",
        ],
        Some(|asked, value| {
            asked.others.push = Some(value.to_owned());
            Ok(())
        }),
    ),
    option(
        "remote-config",
        'R',
        Required("file"),
        &["Run a job file of the server's machine"],
        Some(|asked, value| {
            asked.others.add_remote_file(value);
            Ok(())
        }),
    ),
    option(
        "client-lost",
        'q',
        Required("policy"),
        &["When a host is lost: continue with the others (default), or abort"],
        Some(|asked, value| {
            asked.others.when_lost = Some(match value {
                "continue" => WhenLost::Continue,
                "abort" => WhenLost::Abort,
                _ => return Err("not one of continue, abort".to_owned()),
            });
            Ok(())
        }),
    ),
    option(
        "client-timeout",
        'Q',
        Required("time"),
        &[
            "Give up the other end when it is silent for this long (default 10s, at",
            "least 1s); a server ends the jobs then",
        ],
        Some(|asked, value| {
            asked.others.timeout_ms = Some(milliseconds(asked, value, 1000)?);
            Ok(())
        }),
    ),
    option(
        "serve-exec",
        'Y',
        NoArgument,
        &[
            "Let jobs of clients run programs, and change settings of this machine:",
            "exec_prerun, exec_postrun, ioengine=exec, engines in files, ioscheduler,",
            "cgroup; with --client, also on the machines where ssh starts the server",
        ],
        Some(|asked, _| {
            asked.others.exec = true;
            Ok(())
        }),
    ),
    option(
        "serve-only",
        'y',
        Required("paths"),
        &[
            "Let jobs of clients use nothing but these files and directories, with commas",
            "between them; may be given several times",
        ],
        Some(|asked, value| {
            let paths: Vec<&str> = value.split(',').filter(|path| !path.is_empty()).collect();
            if paths.is_empty() {
                return Err("needs the path of a file or directory".to_owned());
            }
            asked.others.only.extend(paths.into_iter().map(PathBuf::from));
            Ok(())
        }),
    ),
    option(
        "keys",
        'k',
        Required("file"),
        &[
            "The keys of this end of connections over TCP (iolite keys new makes them;",
            "the same as IOLITE_KEYS=FILE); default: coordinator.keys or agents.keys in",
            "$XDG_CONFIG_HOME/iolite",
        ],
        Some(|asked, value| {
            asked.others.keys = Some(PathBuf::from(value));
            Ok(())
        }),
    ),
    option(
        "insecure",
        'N',
        NoArgument,
        &[
            "Serve, and run jobs elsewhere, over TCP without any protection: anyone who",
            "reaches the port can run jobs (the same as IOLITE_INSECURE=1)",
        ],
        Some(|asked, _| {
            asked.others.insecure = true;
            Ok(())
        }),
    ),
    option(
        "trigger-file",
        'W',
        Clearable("file"),
        &["Fire the trigger when this file appears (it is removed): the", "command is run, and the run ends"],
        Some(|asked, value| {
            asked.run.trigger_file = Some(PathBuf::from(value));
            Ok(())
        }),
    ),
    option(
        "trigger-timeout",
        'B',
        Required("time"),
        &["Fire the trigger when the jobs have run this long"],
        Some(|asked, value| {
            if value.trim_start().starts_with('-') {
                // As in fio, whose clock never reaches it.
                asked.notes.push("a negative time never comes".to_owned());
                return Ok(());
            }
            asked.run.trigger_timeout = Some(milliseconds(asked, value, 0)?);
            Ok(())
        }),
    ),
    option(
        "trigger",
        'H',
        Clearable("command"),
        &["The shell command of the trigger; without it, the trigger only ends the run"],
        Some(|asked, value| {
            asked.run.trigger = Some(value.to_owned());
            Ok(())
        }),
    ),
    option(
        "web",
        'u',
        Optional("address:port"),
        &[
            "Show the run in a browser while it goes on, with a button to end it; the",
            "address is printed on standard error (default 127.0.0.1 and any port)",
        ],
        Some(|asked, value| {
            asked.run.web = Some(web_address(value)?);
            Ok(())
        }),
    ),
    option(
        "metrics",
        '9',
        Required("address:port"),
        &[
            "Serve metrics of the run for Prometheus at http://ADDRESS:PORT/metrics; a port",
            "alone is one of this machine (127.0.0.1)",
        ],
        Some(|asked, value| {
            asked.run.metrics = Some(metrics_address(value)?);
            Ok(())
        }),
    ),
    option(
        "metrics-push",
        '6',
        Required("URL"),
        &["Send the figures to this collector when the run is over (OTLP over HTTP, in", "JSON)"],
        Some(|asked, value| {
            asked.run.metrics_push = Some(value.to_owned());
            Ok(())
        }),
    ),
    option(
        "web-tls",
        '7',
        Required("files"),
        &[
            "Encrypt the page of --web, as required for other machines: certificate,key (in",
            "PEM), or new, for a key made for this run, whose fingerprint is printed",
        ],
        Some(|asked, value| {
            asked.run.web_tls = Some(web_tls(value)?);
            Ok(())
        }),
    ),
    option(
        "web-linger",
        'g',
        Required("time"),
        &[
            "Keep the page of --web for this long after the end, with the final report",
            "(default: until all open pages have it, at most 10s)",
        ],
        Some(|asked, value| {
            asked.run.web_linger = Some(milliseconds(asked, value, 0)?);
            Ok(())
        }),
    ),
    option(
        "trigger-remote",
        'J',
        Required("command"),
        &[
            "The shell command of the trigger on the servers, run when their states are",
            "here; only with --client, and on servers with --serve-exec",
        ],
        Some(|asked, value| {
            asked.run.trigger_remote = Some(value.to_owned());
            Ok(())
        }),
    ),
    option(
        "profile",
        'p',
        Required("name"),
        &["Run the jobs of this profile: tiobench, act; --cmdhelp behind it", "lists its options"],
        Some(profile),
    ),
    option(
        "memcpytest",
        'M',
        Optional("names"),
        &["Measure the speed of memory copies by size: memcpy, memmove,", "simple, hybrid"],
        Some(|asked, value| ask(asked, Question::SelfTest(SelfTest::Copies(names(value))))),
    ),
    option(
        "latency-log",
        'l',
        Required("file"),
        &["Refused as in fio: superseded by the job option write_lat_log"],
        Some(|_, _| Err("superseded by the job option write_lat_log".to_owned())),
    ),
];
