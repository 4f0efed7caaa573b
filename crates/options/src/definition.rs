//! The description of an option, as data.
//!
//! Every option of the language is one [`Definition`]: its names, the type and limits that the help prints, one
//! line of help, and [`Land`], the function that stores a parsed value where it belongs. Parsing, help, suggestions
//! and defaults are all derived from these items; options are listed nowhere else.

mod given;
mod places;

pub use given::{Given, Number};
pub(crate) use places::found;
pub use places::{FarEnd, Places};

use crate::JobOptions;

/// The subject of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// The job itself: name, clones, order, run time.
    Job,
    /// Files, their names, sizes and layout.
    Files,
    /// Directions, offsets and block sizes.
    Pattern,
    /// How many I/Os are in flight.
    Depth,
    /// Direct and synchronous I/O, flushes.
    Durability,
    /// I/O buffers: their memory and their content.
    Buffers,
    /// Checking data that was written.
    Verify,
    /// Recording and replaying I/O.
    Replay,
    /// Zoned devices and data placement.
    Zones,
    /// CPUs, memory nodes, priorities, control groups.
    Placement,
    /// Rates, think time and latency targets.
    Rates,
    /// Log files of single I/Os and averages.
    Logs,
    /// Measurements and how they are reported.
    Measurement,
    /// Handling of errors.
    Errors,
    /// Options that fio does not have.
    Own,
    /// An I/O engine's own option.
    Engine,
}

impl Category {
    /// All categories, in the order of the manual.
    pub const ALL: [Category; 16] = [
        Category::Job,
        Category::Files,
        Category::Pattern,
        Category::Depth,
        Category::Durability,
        Category::Buffers,
        Category::Verify,
        Category::Rates,
        Category::Placement,
        Category::Measurement,
        Category::Logs,
        Category::Errors,
        Category::Replay,
        Category::Zones,
        Category::Own,
        Category::Engine,
    ];

    /// Its heading in the manual.
    pub fn title(self) -> &'static str {
        match self {
            Category::Job => "The job itself",
            Category::Files => "Files",
            Category::Pattern => "Directions, offsets, block sizes",
            Category::Depth => "Engine and depth",
            Category::Durability => "Durability and caching",
            Category::Buffers => "Buffers",
            Category::Verify => "Verification",
            Category::Replay => "Recording and replaying",
            Category::Zones => "Zones and data placement",
            Category::Placement => "CPUs, memory nodes, priorities, control groups",
            Category::Rates => "Rates, think time, latency targets",
            Category::Logs => "Logs",
            Category::Measurement => "Measurement and reports",
            Category::Errors => "Errors",
            Category::Own => "Beyond fio",
            Category::Engine => "Options of engines",
        }
    }
}

/// The type of an option's value. It determines the grammar of the value and the type line of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A string, a keyword, or a grammar that only this option has.
    Str,
    /// A keyword followed by a colon and a number.
    StrNumber,
    /// A duration.
    Time,
    /// An integer, possibly one per direction.
    Int,
    /// A size in bytes or in percent.
    Size,
    /// `0` or `1`; the value is required.
    Bool,
    /// Like [`Kind::Bool`], but the value is optional and defaults to 1.
    Flag,
    /// One to three ranges.
    Range,
    /// Floating point numbers separated by colons.
    FloatList,
}

impl Kind {
    /// The name of this type in the help.
    pub fn type_name(self) -> &'static str {
        match self {
            Kind::Str => "string (opt=bla)",
            Kind::StrNumber => "string with possible k/m/g postfix (opt=4k)",
            Kind::Time => "string with time postfix (opt=10s)",
            Kind::Int => "integer value (opt=100)",
            Kind::Size => "(null)",
            Kind::Bool => "boolean value (opt=1)",
            Kind::Flag => "empty or boolean value ([0|1])",
            Kind::Range => "one to three ranges (opt=1k-4k[,4k-8k[,1k-8k]])",
            Kind::FloatList => "list of floating point values separated by ':' (opt=5.9:7.8)",
        }
    }

    /// The same for people, with examples.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Kind::Str => "text",
            Kind::StrNumber => "word, with a number behind a colon where it takes one",
            Kind::Time => "time, such as 90, 5m or 100ms",
            Kind::Int => "integer, such as 100, 4k or 1g",
            Kind::Size => "size, such as 4k, 1g or 50%",
            Kind::Bool => "0 or 1",
            Kind::Flag => "0 or 1; the name alone means 1",
            Kind::Range => "range, such as 4k-16k",
            Kind::FloatList => "numbers with colons between them, such as 99:99.9",
        }
    }

    /// Whether the value is optional.
    pub fn value_is_optional(self) -> bool {
        self == Kind::Flag
    }
}

/// The jobs that have an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Every job.
    Job,
    /// Only jobs with an engine that lists it (see [`crate::engines`]).
    Engine,
    /// Options of a profile.
    Profile,
}

/// Whether an option has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It has an effect.
    Works,
    /// It is known, but any value other than its default is an error.
    NotYet,
}

/// The range of a number, as the help prints it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limits {
    /// Only the limits of the type.
    None,
    /// At least this; no upper limit.
    AtLeast(i64),
    /// At least this; a limit of a type for which the help prints no upper limit.
    OnlyMin(i64),
    /// Between these, inclusive.
    Between(i64, i64),
    /// Floating point numbers between these, inclusive.
    Floats(f64, f64),
}

/// Stores a given value in the job, or returns why it cannot; the message names neither option nor value.
pub type LandInJob = fn(&mut JobOptions, &mut Given<'_>) -> Result<(), String>;

/// The same for an engine's own options.
pub type LandInEngine = fn(&mut dyn Places, &mut Given<'_>) -> Result<(), String>;

/// Where the value of an option is stored.
#[derive(Clone, Copy)]
pub enum Land {
    /// In the job.
    Job(LandInJob),
    /// In the own options of the engine that the job has chosen.
    Engine(LandInEngine),
}

impl Land {
    /// Stores a given value in its place.
    ///
    /// # Errors
    /// Why it cannot; the message names neither option nor value.
    pub fn put(self, job: &mut JobOptions, given: &mut Given<'_>) -> Result<(), String> {
        match self {
            Land::Job(land) => land(job, given),
            Land::Engine(land) => job.engine.land(land, given),
        }
    }
}

/// The files of this machine that the value of an option names, in a job whose options are settled.
pub type FilesOf = fn(&JobOptions) -> Vec<String>;

/// One option of the language.
pub struct Definition {
    /// The canonical name.
    pub name: &'static str,
    /// Its other names.
    pub aliases: &'static [&'static str],
    /// Its subject.
    pub category: Category,
    /// The type of its value.
    pub kind: Kind,
    /// Its default, as text; `None` if it has none.
    pub default: Option<&'static str>,
    /// The range of its numbers.
    pub limits: Limits,
    /// The keywords that it accepts, with their meanings; empty if it accepts any text.
    pub keywords: &'static [(&'static str, &'static str)],
    /// One line of help.
    pub help: &'static str,
    /// The jobs that have it.
    pub scope: Scope,
    /// The option that this one refines: the help lists this one indented below it.
    pub parent: Option<&'static str>,
    /// Values other than the default that switch the option off. They are accepted even while the option has no
    /// effect yet.
    pub off: &'static [&'static str],
    /// In a job file its value is optional, although it is a text.
    pub stands_alone: bool,
    /// Its value is a key, a password or a token, which no output and no stored result shows.
    pub is_secret: bool,
    /// The local files that its value names, for checking them against the files that a client may use.
    pub files: Option<FilesOf>,
    /// Stores its value; `None` while the option has no effect yet.
    pub land: Option<Land>,
}

impl Definition {
    /// A job option without default, limits, keywords or effect.
    pub const fn job(name: &'static str, category: Category, kind: Kind, help: &'static str) -> Self {
        Definition {
            name,
            aliases: &[],
            category,
            kind,
            default: None,
            limits: match kind {
                Kind::Bool => Limits::Between(0, 1),
                _ => Limits::None,
            },
            keywords: &[],
            help,
            scope: Scope::Job,
            parent: None,
            off: &[],
            stands_alone: false,
            is_secret: false,
            files: None,
            land: None,
        }
    }

    /// An engine's own option without default, keywords or effect.
    pub const fn engine(name: &'static str, kind: Kind, help: &'static str) -> Self {
        let mut definition = Definition::job(name, Category::Engine, kind, help);
        definition.scope = Scope::Engine;
        definition.limits = Limits::None;
        definition
    }

    /// An option of a profile.
    pub const fn profile(name: &'static str, kind: Kind, help: &'static str) -> Self {
        let mut definition = Definition::engine(name, kind, help);
        definition.scope = Scope::Profile;
        definition
    }

    /// Sets the other names.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Sets the default.
    pub const fn default(mut self, text: &'static str) -> Self {
        self.default = Some(text);
        self
    }

    /// Sets the range of its numbers.
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets a lower limit.
    pub const fn min(self, min: i64) -> Self {
        self.limits(Limits::AtLeast(min))
    }

    /// Sets both limits.
    pub const fn range(self, min: i64, max: i64) -> Self {
        self.limits(Limits::Between(min, max))
    }

    /// Sets the keywords.
    pub const fn keywords(mut self, keywords: &'static [(&'static str, &'static str)]) -> Self {
        self.keywords = keywords;
        self
    }

    /// Makes it a refinement of another option.
    pub const fn under(mut self, parent: &'static str) -> Self {
        self.parent = Some(parent);
        self
    }

    /// Sets further values that switch it off.
    pub const fn off(mut self, values: &'static [&'static str]) -> Self {
        self.off = values;
        self
    }

    /// Makes its value optional in job files.
    pub const fn standing_alone(mut self) -> Self {
        self.stands_alone = true;
        self
    }

    /// Hides the value in all output.
    pub const fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    /// Declares that its value names files of this machine, and how to get their names.
    pub const fn names_files(mut self, files: FilesOf) -> Self {
        self.files = Some(files);
        self
    }

    /// Gives it an effect.
    pub const fn lands(mut self, land: LandInJob) -> Self {
        self.land = Some(Land::Job(land));
        self
    }

    /// Gives it an effect on the chosen engine.
    pub const fn lands_in_engine(mut self, land: LandInEngine) -> Self {
        self.land = Some(Land::Engine(land));
        self
    }

    /// Whether it has an effect.
    pub fn status(&self) -> Status {
        match self.land {
            Some(_) => Status::Works,
            None => Status::NotYet,
        }
    }

    /// Whether this is one of its names.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Its canonical name and its other names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Definition")
            .field("name", &self.name)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
