//! Ready-made workloads for common questions about storage.
//!
//! Each is safe to run: it writes to its own file in the current directory, and removes it.

use super::load::Case;
use iolite_options::spelling::{closest, did_you_mean};
use iolite_sweep::Point;

/// A preset.
struct Preset {
    name: &'static str,
    /// A line about it.
    help: &'static str,
    /// The options of all its cases.
    common: &'static str,
    /// Names and options.
    cases: &'static [(&'static str, &'static str)],
}

/// Typical loads of databases, virtual machines and programs.
const PRESETS: [Preset; 6] = [
    Preset {
        name: "oltp",
        help: "8k: sequential and random reads and writes, and mixes of both with 70% reads; 32 in flight",
        common: "bs=8k\niodepth=32\nioengine=libaio\ndirect=1",
        cases: &[
            ("read", "rw=read"),
            ("write", "rw=write"),
            ("randread", "rw=randread"),
            ("randwrite", "rw=randwrite"),
            ("mix", "rw=rw\nrwmixread=70"),
            ("randmix", "rw=randrw\nrwmixread=70"),
        ],
    },
    // Like a database's log with O_DSYNC: the latency of a write includes making it durable. With fdatasync the write
    // would only copy to memory, and the sync would be counted separately.
    Preset {
        name: "log",
        help: "sequential writes of 4k, 16k and 64k, each durable when it is complete (sync=dsync)",
        common: "rw=write\nioengine=psync\nsync=dsync",
        cases: &[("4k", "bs=4k"), ("16k", "bs=16k"), ("64k", "bs=64k")],
    },
    Preset {
        name: "vm-boot",
        help: "four readers of mixed sizes at random, then with a fifth of writes",
        common: "ioengine=libaio\ndirect=1\niodepth=4\nnumjobs=4\nbssplit=4k/60:16k/25:64k/15",
        cases: &[("boot", "rw=randread"), ("log-in", "rw=randrw\nrwmixread=80")],
    },
    Preset {
        name: "streaming",
        help: "1m: one sequential reader, four, one writer",
        common: "ioengine=libaio\ndirect=1\niodepth=4\nbs=1m",
        cases: &[
            ("one reader", "rw=read"),
            ("four readers", "rw=read\nnumjobs=4\noffset_increment=25%"),
            ("one writer", "rw=write"),
        ],
    },
    Preset {
        name: "backup",
        help: "1m, 16 in flight: sequential reads, then writes",
        common: "ioengine=libaio\ndirect=1\niodepth=16\nbs=1m",
        cases: &[("backup", "rw=read"), ("restore", "rw=write")],
    },
    Preset {
        name: "storage",
        help: "4k, four jobs with 32 in flight: sequential and random reads and writes, and a mix",
        common: "ioengine=libaio\ndirect=1\niodepth=32\nnumjobs=4\nbs=4k",
        cases: &[
            ("read", "rw=read"),
            ("write", "rw=write"),
            ("randread", "rw=randread"),
            ("randwrite", "rw=randwrite"),
            ("randrw", "rw=randrw"),
        ],
    },
];

/// The options of all presets; each may be overridden.
const USUAL: &str = "size=1g\ntime_based\nruntime=30\nramp_time=2\n";

/// The prefix of presets' files.
const FILE: &str = "iolite-sweep-";

/// The value of `--preset` that lists them.
pub const LIST: &str = "list";

/// A line for each preset.
pub fn list() -> String {
    PRESETS.iter().map(|preset| format!("  {:<10} {}\n", preset.name, preset.help)).collect()
}

/// The cases of a preset. An option that distinguishes them cannot be swept. `set`: the options that the sweep sets.
pub fn cases(name: &str, set: &[&String]) -> Result<Vec<Case>, String> {
    let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        let meant = did_you_mean(closest(name, names.iter().copied()));
        return Err(format!(
            "--preset={name}: there is no such preset{meant}; there are\n{}",
            list().trim_end()
        ));
    };
    let makes_cases = |option: &&&String| {
        let of_case =
            |options: &str| options.lines().any(|line| line.split('=').next() == Some(option.as_str()));
        preset.cases.iter().any(|(_, options)| of_case(options))
    };
    if let Some(option) = set.iter().find(makes_cases) {
        return Err(format!(
            "--{option}: the cases of this preset have their own values; use a job file instead"
        ));
    }
    let case = |(case, options): &(&str, &str)| Case {
        name: (*case).to_owned(),
        file: format!("--preset={name}"),
        text: format!("[{name}]\n{USUAL}filename={FILE}{name}.data\n{}\n{options}\n", preset.common),
        has_lines: false,
    };
    Ok(preset.cases.iter().map(case).collect())
}

impl Case {
    /// Whether the sweep makes and removes its file: the user gave no other file, and no engine without files.
    pub fn owns_file(&self, settings: &Point) -> bool {
        let is_named = settings
            .iter()
            .any(|(name, _)| matches!(name.as_str(), "filename" | "ioengine" | "filename_format"));
        !self.name.is_empty() && !is_named
    }
}
