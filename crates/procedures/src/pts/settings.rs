//! What the test operator chooses, and what follows for each case.

/// Seconds of a cell by the specification.
pub const MINUTE: f64 = 60.0;
/// Seconds of a cell with `--quick`.
pub const QUICK: f64 = 0.5;
/// The largest range with `--quick`.
pub const QUICK_RANGE: u64 = 1 << 30;

/// For whom the device is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Volatile write cache off, the whole range.
    Enterprise,
    /// Write cache on, 75% of the range.
    Client,
}

impl Class {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Class::Enterprise => "enterprise",
            Class::Client => "client",
        }
    }

    /// The share of the capacity that is used, in percent.
    pub fn percent(self) -> u64 {
        match self {
            Class::Enterprise => 100,
            Class::Client => 75,
        }
    }
}

/// The tests of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their titles say it")]
pub enum Test {
    Iops,
    Throughput,
    Latency,
    WriteSaturation,
    HostIdleRecovery,
    CrossStimulusRecovery,
    DemandIntensity,
    Composite,
}

impl Test {
    /// All tests, in the order in which they are run.
    pub const ALL: [Test; 8] = [
        Test::Iops,
        Test::Throughput,
        Test::Latency,
        Test::WriteSaturation,
        Test::HostIdleRecovery,
        Test::CrossStimulusRecovery,
        Test::DemandIntensity,
        Test::Composite,
    ];
    /// Those that are run unless others are chosen.
    pub const USUAL: [Test; 4] = [Test::Iops, Test::Throughput, Test::Latency, Test::WriteSaturation];

    /// The word that chooses it.
    pub fn word(self) -> &'static str {
        match self {
            Test::Iops => "iops",
            Test::Throughput => "tp",
            Test::Latency => "lat",
            Test::WriteSaturation => "wsat",
            Test::HostIdleRecovery => "hir",
            Test::CrossStimulusRecovery => "xsr",
            Test::DemandIntensity => "dirth",
            Test::Composite => "ecw",
        }
    }

    /// The test of a word. Some have two names: those of the specification's versions.
    pub fn of(word: &str) -> Option<Test> {
        match word {
            "dv" => Some(Test::DemandIntensity),
            "cbw" => Some(Test::Composite),
            _ => Test::ALL.into_iter().find(|test| test.word() == word),
        }
    }

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Test::Iops => "IOPS",
            Test::Throughput => "Throughput",
            Test::Latency => "Latency",
            Test::WriteSaturation => "Write Saturation",
            Test::HostIdleRecovery => "Host Idle Recovery",
            Test::CrossStimulusRecovery => "Cross Stimulus Recovery",
            Test::DemandIntensity => "Demand Variation and Response Time Histograms",
            Test::Composite => "Composite Block Size Workload",
        }
    }
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Random data, which the specification demands.
    Random,
    /// Zeroes.
    Zeroes,
    /// Data of which compression saves this share, in percent.
    Compressible(u32),
}

impl Pattern {
    /// As a word.
    pub fn word(self) -> String {
        match self {
            Pattern::Random => "random".to_owned(),
            Pattern::Zeroes => "zeroes".to_owned(),
            Pattern::Compressible(percent) => format!("compress:{percent}"),
        }
    }
}

/// Everything that the cases follow from.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The device, or the file.
    pub file: String,
    /// It is a regular file.
    pub is_file: bool,
    /// It can be opened for direct I/O.
    pub is_direct: bool,
    /// Bytes of the device.
    pub capacity: u64,
    /// Bytes of it that are used, from its beginning: the ActiveRange.
    pub range: u64,
    /// The smallest block that can be addressed, in bytes.
    pub block: u64,
    /// For whom the device is made.
    pub class: Class,
    /// The tests to be run.
    pub tests: Vec<Test>,
    /// Workers, where the test operator chooses them; `None` = the usual number.
    pub threads: Option<u32>,
    /// I/Os in flight of each worker, where the test operator chooses them; `None` = the usual number.
    pub depth: Option<u32>,
    /// What is written.
    pub pattern: Pattern,
    /// Seconds of a cell: the specification's minute.
    pub cell: f64,
    /// A short form, to try the procedure out.
    pub is_quick: bool,
}

impl Settings {
    /// The least bytes of a range: preconditioning and the largest blocks need some room.
    pub const LEAST_RANGE: u64 = 16 << 20;

    /// Seconds for a time that the specification gives in minutes.
    pub fn minutes(&self, minutes: f64) -> f64 {
        minutes * self.cell
    }

    /// A number of cells by the specification, of which the short form runs fewer.
    pub fn repeats(&self, count: usize) -> usize {
        /// The share of cells in the short form.
        const SHARE: usize = 30;
        if self.is_quick { (count / SHARE).max(3) } else { count }
    }

    /// The capacity that multiples of it in the specification refer to.
    pub fn user_capacity(&self) -> u64 {
        if self.is_quick { self.range } else { self.capacity }
    }

    /// Why the result does not conform to the specification, as far as that is known before anything ran.
    pub fn deviations(&self) -> Vec<String> {
        let mut why = Vec::new();
        let mut add = |is_so: bool, words: &str| why.extend(is_so.then(|| words.to_owned()));
        add(self.is_quick, "--quick: short cells, few of them, and a small range");
        add(self.is_file, "the target is a file, and no device");
        add(!self.is_direct, "I/O goes through the page cache, as direct I/O is impossible here");
        add(self.cell != MINUTE && !self.is_quick, "cells do not take a minute");
        add(self.pattern != Pattern::Random, "the data is not random");
        let usual = self.capacity / 100 * self.class.percent();
        add(!self.is_quick && self.range + (1 << 20) < usual, "the range is smaller than that of the class");
        add(
            self.block > 512 && self.tests.iter().any(|test| matches!(test, Test::Iops | Test::Latency)),
            "blocks of 0.5 KiB are left out, because the device has larger ones",
        );
        why
    }
}
