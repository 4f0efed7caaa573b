//! The subcommands: separate programs that are called through the same command line, `iolite dedupe FILE`.
//!
//! In the language, a first word without dashes is a job file, and subcommands do not change that: a subcommand is
//! called only if the first word is exactly its name and there is no job file of that name ([`Command::called_by`]).
//! A job file called `dedupe` is run, and the subcommand can be called from another directory. Other files of that
//! name (a trace called `trace`, say) do not count. Nothing else about the command line changes.
//!
//! An option is a word, `--policy=fsynced`, and has the same meaning in all subcommands that have it. A few have a
//! letter as well: that of the option of runs with the same name (`-o`, `--output`). A subcommand that replaces a program
//! of fio has the letters of that program with their meanings there, `-b 4096`, `-b4096`, because scripts call it with
//! them; these are the only letters that mean different things. Parsing, help, manual and completion are derived from
//! the table [`ALL`].

mod table;

pub use table::ALL;

use crate::definition::Definition;
use crate::spelling::{closest, did_you_mean};
use crate::{registry, run_options};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

/// A subcommand.
#[derive(Debug)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// The words after its options, as its help shows them: in brackets if they are optional; empty = none.
    pub operand: &'static str,
    /// The words of which the first operand is one, if there is a choice.
    pub choices: &'static [&'static str],
    /// Its operands may be files (behind such a word, if there is a choice).
    pub files: bool,
    /// It takes options of jobs as well, each with one value or several.
    pub takes_job_options: bool,
    /// One line of help.
    pub help: &'static str,
    /// More about it, for the manual.
    pub details: &'static str,
    /// Its options.
    pub options: &'static [CommandOption],
}

/// An option of a subcommand.
#[derive(Debug)]
pub struct CommandOption {
    /// Its name, for `--word`.
    pub word: &'static str,
    /// Its letter in the program of fio that the subcommand replaces.
    fio: Option<char>,
    /// The name of its value; empty if it takes none.
    pub value: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// The values that it accepts; empty if they are more than a few words.
    pub choices: &'static [&'static str],
    /// The subcommand itself refuses other values.
    checks_values: bool,
}

/// Options of jobs, as the help of a subcommand that takes them shows them.
pub(crate) const JOB_OPTIONS: &str = "[--OPTION=VALUES]...";

/// The option that all subcommands have.
pub const HELP: &str = "help";

const fn word(word: &'static str, value: &'static str, help: &'static str) -> CommandOption {
    CommandOption { word, fio: None, value, help, choices: &[], checks_values: false }
}

/// An option that a program of fio has by this letter.
const fn fio(letter: char, word: &'static str, value: &'static str, help: &'static str) -> CommandOption {
    CommandOption { word, fio: Some(letter), value, help, choices: &[], checks_values: false }
}

/// An option of a program of fio that is switched on and off.
const fn switch(letter: char, word: &'static str, help: &'static str) -> CommandOption {
    fio(letter, word, "0|1", help).one_of(&["0", "1"])
}

impl CommandOption {
    const fn one_of(mut self, choices: &'static [&'static str]) -> Self {
        self.choices = choices;
        self
    }

    const fn checked_by_command(mut self) -> Self {
        self.checks_values = true;
        self
    }

    /// Its letter.
    pub fn letter(&self) -> Option<char> {
        let of_runs = || run_options::ALL.iter().find(|option| option.name == self.word);
        self.fio.or_else(|| of_runs().map(|option| option.short))
    }

    /// Takes a value, if it is one that the option accepts. `given`: the option with its value, as the user gave it.
    fn with(&self, given: &str, value: String) -> Result<(&'static str, String), String> {
        if self.checks_values || self.choices.is_empty() || self.choices.contains(&value.as_str()) {
            return Ok((self.word, value));
        }
        let meant = did_you_mean(closest(&value, self.choices.iter().copied()));
        Err(format!("{given}: not one of {}{meant}", self.choices.join(", ")))
    }

    /// Its spellings: `-j` if it has a letter, and `--json`.
    pub fn spellings(&self) -> impl Iterator<Item = String> {
        let letter = self.letter().map(|letter| format!("-{letter}"));
        letter.into_iter().chain(std::iter::once(format!("--{}", self.word)))
    }
}

/// The options and operands that a subcommand was given.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The words of options and their values (empty for options that take none), in order.
    pub options: Vec<(&'static str, String)>,
    /// Job options and their values, of a subcommand that takes them.
    pub job_options: Vec<(String, String)>,
    /// The words after the options.
    pub operands: Vec<OsString>,
}

impl Asked {
    /// The last value given for an option.
    pub fn value(&self, word: &str) -> Option<&str> {
        self.values(word).last()
    }

    /// All values given for an option.
    pub fn values(&self, word: &str) -> impl Iterator<Item = &str> {
        self.options.iter().filter(move |(given, _)| *given == word).map(|(_, value)| value.as_str())
    }

    /// Whether an option was given.
    pub fn has(&self, word: &str) -> bool {
        self.value(word).is_some()
    }

    /// A number that is at least `least`; the suffixes of sizes are allowed.
    ///
    /// # Errors
    /// The value is not a number, or is smaller.
    pub fn number(&self, word: &str, least: u64) -> Result<Option<u64>, String> {
        let Some(text) = self.value(word) else { return Ok(None) };
        let mut notes = crate::values::Notes::default();
        let value = crate::values::integer(text, 1024, &mut notes)
            .map_err(|why| format!("--{word}={text}: {why}"))?;
        match u64::try_from(value) {
            _ if !notes.is_empty() => Err(format!("--{word}={text}: {}", notes.remove(0))),
            Ok(value) if value >= least => Ok(Some(value)),
            _ => Err(format!("--{word}={text}: must be at least {least}")),
        }
    }

    /// A number with a fraction, between the limits.
    ///
    /// # Errors
    /// The value is not a number, or is out of the limits.
    pub fn fraction(&self, word: &str, least: f64, most: f64) -> Result<Option<f64>, String> {
        let Some(text) = self.value(word) else { return Ok(None) };
        between(text, least, most).map(Some).map_err(|why| format!("--{word}={text}: {why}"))
    }

    /// A percentage, `80` or `80%`.
    ///
    /// # Errors
    /// The value is not a number, or not between 0 and 100.
    pub fn percent(&self, word: &str) -> Result<Option<f64>, String> {
        let Some(text) = self.value(word) else { return Ok(None) };
        let number = text.strip_suffix('%').unwrap_or(text);
        between(number, 0.0, 100.0).map(Some).map_err(|why| format!("--{word}={text}: {why}"))
    }

    /// Whole seconds, at least one: `90`, `90s` or `2m`.
    ///
    /// # Errors
    /// The value is not a time, or no whole number of seconds.
    pub fn seconds(&self, word: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.value(word) else { return Ok(None) };
        let mut notes = crate::values::Notes::default();
        let found = crate::values::time(text, 1_000_000, &mut notes).and_then(|microseconds| {
            if !notes.is_empty() {
                return Err(notes.remove(0));
            }
            match microseconds / 1_000_000 {
                0 => Err("must be at least a second".to_owned()),
                _ if microseconds % 1_000_000 > 0 => Err("must be whole seconds".to_owned()),
                seconds if seconds > 1 << 30 => Err(format!("must be at most {} seconds", 1 << 30)),
                seconds => Ok(seconds),
            }
        });
        found.map(Some).map_err(|why| format!("--{word}={text}: {why}"))
    }
}

fn between(text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        Ok(_) => Err(format!("must be between {least} and {most}")),
        Err(_) => Err("not a number".to_owned()),
    }
}

/// A number that may have a suffix, in the units of people: `20k` and `500MB` count in thousands, `4KiB` and `1GiB` in
/// powers of 1024.
///
/// # Errors
/// It is not a number, or it is negative.
pub fn amount(text: &str) -> Result<u64, String> {
    let mut notes = crate::values::Notes::default();
    let value = crate::values::integer(text, 1000, &mut notes)?;
    match u64::try_from(value) {
        _ if !notes.is_empty() => Err(notes.remove(0)),
        Ok(value) => Ok(value),
        Err(_) => Err("must not be negative".to_owned()),
    }
}

/// A time in microseconds; a number without a unit is in microseconds.
///
/// # Errors
/// It is not a time.
pub fn microseconds(text: &str) -> Result<u64, String> {
    let mut notes = crate::values::Notes::default();
    let value = crate::values::time(text, 1, &mut notes)?;
    if notes.is_empty() { Ok(value) } else { Err(notes.remove(0)) }
}

/// The subcommand that these words (those after the program's name) call, if any.
pub fn called_by(words: &[OsString]) -> Option<&'static Command> {
    let first = words.first()?;
    ALL.iter().find(|command| command.called_by(first))
}

/// The subcommand that `--version -v` stands for, as with other programs: more than the version. (Under the name `fio`,
/// that is the version.)
pub fn called_by_version(words: &[OsString]) -> Option<&'static Command> {
    let is_version = |word: &OsString| ["--version", "-version", "-v"].iter().any(|known| word == *known);
    let is_meant = words.len() == 2 && words.iter().all(is_version) && words.contains(&"-v".into());
    ALL.iter().find(|command| is_meant && command.name == "version")
}

/// The name and the value of `NAME=VALUE`.
fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)))
}

/// A command line that runs this kind of workload.
pub fn with_workload(rw: &str) -> String {
    format!("iolite --name=a --rw={rw} --bs=4k --size=1g --filename=FILE")
}

/// A hint at the meaning of a word that is neither a subcommand nor a job file: `; did you mean "iolite sweep"?`, or an
/// option. Empty if there is none.
pub fn hint_at(word: &str) -> String {
    /// The word of the documentation for a machine with `--server`.
    const AGENT: &str = "agent";
    let option = match word {
        AGENT => Some("server"),
        _ => run_options::ALL.iter().map(|option| option.name).find(|name| *name == word),
    };
    // A subcommand has to be the first word, which this one is not (`iolite help keys`).
    let known = ALL.iter().find(|command| command.name == word);
    let meant = known.map(|command| format!("iolite {} --help", command.name));
    let meant = meant.or_else(|| option.map(|option| format!("iolite --{option}")));
    let command = || closest(word, ALL.iter().map(|command| command.name));
    let meant = meant.or_else(|| command().map(|command| format!("iolite {command}")));
    let workload = || {
        let keywords = registry::find_job("rw")?.keywords.iter().map(|(keyword, _)| *keyword);
        closest(word, keywords).filter(|keyword| *keyword != word && word.len() > 3)
    };
    did_you_mean(meant.or_else(|| workload().map(with_workload)))
}

/// The width of a help page.
const WIDTH: usize = 100;

/// How much of a file is read to find its first section.
const LOOKED_AT: u64 = 64 << 10;

/// Whether a file of this name could be a job file. A job file starts with a section or an `include`, after comments
/// only. A directory is not a job file. A file that cannot be read, or can be read only once, may be one: the parser of
/// job files will decide.
fn may_be_job_file(path: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else { return false };
    if !metadata.is_file() {
        return !metadata.is_dir();
    }
    let mut start = Vec::new();
    if std::fs::File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut start)).is_err() {
        return true;
    }
    let is_comment = |line: &[u8]| line.is_empty() || line.starts_with(b"#") || line.starts_with(b";");
    match start.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !is_comment(line)) {
        Some(line) => line.starts_with(b"include") || (line.starts_with(b"[") && line.contains(&b']')),
        // Only comments so far: at least it is text.
        None => !start.is_empty(),
    }
}

impl Command {
    /// Whether this first word calls it: not if it is the name of a job file.
    pub fn called_by(&self, word: &OsStr) -> bool {
        word == self.name && !may_be_job_file(Path::new(word))
    }

    /// Parses the words after its name. If one of them asks for help, prints that even if there are mistakes.
    ///
    /// # Errors
    /// An option is unknown, lacks its value, or has a value that it does not take; or the first operand is none of the
    /// choices.
    pub fn read(&self, words: &[OsString]) -> Result<Asked, String> {
        let mut asked = Asked::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                asked.operands.extend(words.cloned());
                break;
            }
            let text = word.to_string_lossy();
            if let Some(long) = text.strip_prefix("--") {
                match self.job_option(long, &mut words)? {
                    Some(option) => asked.job_options.push(option),
                    None => asked.options.push(self.long(long, &mut words)?),
                }
                continue;
            }
            let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
                asked.operands.push(word.clone());
                continue;
            };
            let mut letters = letters.chars();
            while let Some(letter) = letters.next() {
                let known = self.all_options().find(|option| option.letter() == Some(letter));
                let Some(option) = known else {
                    return Err(format!("unknown option -{letter}; iolite {} --help lists them", self.name));
                };
                let mut value = String::new();
                if !option.value.is_empty() {
                    value = letters.by_ref().collect();
                    if value.is_empty() {
                        value = self.next_value(&format!("-{letter}"), option.value, &mut words)?;
                    }
                }
                asked.options.push(option.with(&format!("-{letter} {value}"), value)?);
            }
        }
        if asked.has(HELP) {
            return Ok(asked);
        }
        match asked.operands.first() {
            Some(first) if first == HELP && !Path::new(first).exists() => {
                return Err(format!("iolite {} --help explains it", self.name));
            }
            Some(first) if !self.choices.is_empty() => self.check_choice(first, &asked)?,
            _ => {}
        }
        Ok(asked)
    }

    /// Refuses a first operand that is none of the choices.
    fn check_choice(&self, first: &OsStr, asked: &Asked) -> Result<(), String> {
        let first = first.to_string_lossy();
        if self.choices.contains(&&*first) {
            return Ok(());
        }
        let meant = match ALL.iter().find(|command| command.name == first) {
            // Runs of the store have other names there.
            Some(other) => {
                let operands = asked.operands[1..].iter().map(|word| {
                    let word = word.to_string_lossy();
                    if self.name == "runs" && word.starts_with(|c: char| c.is_ascii_digit()) {
                        format!(" run:{word}")
                    } else {
                        format!(" {word}")
                    }
                });
                did_you_mean(Some(format!("iolite {}{}", other.name, operands.collect::<String>())))
            }
            None => did_you_mean(closest(&first, self.choices.iter().copied())),
        };
        Err(format!("{first} is not one of {}{meant}", self.choices.join(", ")))
    }

    /// `--NAME=VALUES` of a job option, if this subcommand takes those, and has no option of that name. As on any
    /// command line, the value may be the next word, and some options need none.
    fn job_option<'a>(
        &self,
        text: &str,
        words: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<Option<(String, String)>, String> {
        let (name, value) = split(text);
        if !self.takes_job_options || name.is_empty() || self.option(name).is_some() {
            return Ok(None);
        }
        let found = registry::find_job(name)
            .or_else(|| registry::find_any_engine(name).first().map(|(_, definition)| *definition));
        let value = match (value, found) {
            (Some(value), _) => value.to_owned(),
            (None, Some(Definition { kind, .. })) if kind.value_is_optional() => "1".to_owned(),
            (None, Some(_)) => self.next_value(&format!("--{name}"), "its values", words)?,
            // An unknown option is an error, whatever its value.
            (None, None) => String::new(),
        };
        // A misspelt option of the subcommand itself is not taken for one of jobs.
        if found.is_none() && registry::suggest(name, "").is_none() {
            self.known(name)?;
        }
        Ok(Some((name.to_owned(), value)))
    }

    /// Its options, and the one for help.
    fn all_options(&self) -> impl Iterator<Item = &'static CommandOption> {
        static HELPING: CommandOption = word(HELP, "", "Print this page");
        self.options.iter().chain(std::iter::once(&HELPING))
    }

    /// The option of this name.
    fn option(&self, name: &str) -> Option<&'static CommandOption> {
        self.all_options().find(|option| option.word == name)
    }

    /// The option of this name, or the reason why there is none.
    fn known(&self, name: &str) -> Result<&'static CommandOption, String> {
        self.option(name).ok_or_else(|| {
            let names = self.all_options().map(|option| option.word);
            let meant = closest(name, names).filter(|_| !name.is_empty());
            let meant = did_you_mean(meant.map(|meant| format!("--{meant}")));
            format!("unknown option --{name}{meant}; iolite {} --help lists them", self.name)
        })
    }

    /// The option `--NAME`, `--NAME=VALUE` or `--NAME VALUE`.
    fn long<'a>(
        &self,
        text: &str,
        words: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(&'static str, String), String> {
        let (name, value) = split(text);
        let option = self.known(name)?;
        let value = match (value, option.value) {
            (Some(_), "") => return Err(format!("--{name} takes no value")),
            (None, "") => String::new(),
            (Some(value), _) => value.to_owned(),
            (None, what) => self.next_value(&format!("--{name}"), what, words)?,
        };
        option.with(&format!("--{name}={value}"), value)
    }

    /// The next word, as the value of an option. Another option is not a value: that one was forgotten.
    fn next_value<'a>(
        &self,
        option: &str,
        what: &str,
        words: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<String, String> {
        let is_option =
            |word: &str| word.strip_prefix("--").is_some_and(|long| self.option(split(long).0).is_some());
        match words.next().map(|word| word.to_string_lossy()) {
            Some(word) if !is_option(&word) => Ok(word.into_owned()),
            _ => Err(format!("{option} needs a value: {what}")),
        }
    }

    /// Its help page.
    pub fn usage(&self) -> String {
        let mut text = format!("{}.\n\nUsage: iolite {}", self.help, self.name);
        if !self.options.is_empty() {
            text.push_str(" [options]");
        }
        if self.takes_job_options {
            let _ = write!(text, " {JOB_OPTIONS}");
        }
        let _ = match self.operand {
            "" => Ok(()),
            optional if optional.starts_with('[') => write!(text, " {optional}"),
            needed => write!(text, " <{needed}>"),
        };
        text.push('\n');
        if !self.options.is_empty() {
            text.push_str("\nOptions:\n");
        }
        /// The widest left column. A longer text has a line of its own.
        const WIDEST: usize = 28;
        let left = |option: &CommandOption| {
            let spellings: Vec<String> = option.spellings().collect();
            format!("  {} {}", spellings.join(", "), option.value).trim_end().to_owned()
        };
        let widths = self.options.iter().map(|option| left(option).len() + 2);
        let column = widths.filter(|width| *width <= WIDEST).max().unwrap_or(WIDEST);
        for option in self.options {
            let mut left = left(option);
            if left.len() + 2 > column {
                let _ = writeln!(text, "{left}");
                left.clear();
            }
            for line in crate::wrap::wrapped(option.help, WIDTH - column).lines() {
                // Writing to a String does not fail.
                let _ = writeln!(text, "{left:<column$}{line}");
                left.clear();
            }
        }
        let _ = writeln!(text, "\n{}", crate::wrap::wrapped(self.details, WIDTH));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn command(name: &str) -> &'static Command {
        ALL.iter().find(|command| command.name == name).unwrap()
    }

    #[test]
    fn only_the_exact_first_word_calls() {
        assert_eq!(called_by(&words("dedupe f")).map(|command| command.name), Some("dedupe"));
        for line in ["", "job.fio dedupe", "--dedupe", "dedup f", "Dedupe f", "--name=dedupe"] {
            assert!(called_by(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn only_job_files_take_precedence() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        assert!(!may_be_job_file(&path), "there is nothing");
        for (content, expected) in [
            ("[global]\nbs=4k\n", true),
            ("; a comment\n\n  # another\n  [job]\n", true),
            ("include other.fio\n", true),
            ("# nothing else", true),
            ("fio version 3 iolog\n0 [x] add\n", false),
            ("\u{7}tae", false),
            ("[1, 2,\n 3]\n", false),
            ("", false),
        ] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(may_be_job_file(&path), expected, "{content:?}");
        }
        assert!(!may_be_job_file(directory.path()));
        assert!(may_be_job_file(Path::new("/dev/null")), "it can be read only once, for all that is known");
    }

    #[test]
    fn words_are_letters_by_another_name() {
        let state = command("verify-state");
        let asked = state.read(&words("--json --policy=fsynced f --policy completed")).unwrap();
        assert_eq!((asked.value("json"), asked.value("policy")), (Some(""), Some("completed")));
        assert_eq!(asked.operands, words("f"));
        for (line, why) in [
            ("--jsn", "unknown option --jsn; did you mean \"--json\"?"),
            ("--policy --json", "--policy needs a value"),
            ("--policy=fsyncd", "--policy=fsyncd: not one of completed, fsynced; did you mean \"fsynced\"?"),
            ("--json=1", "takes no value"),
            ("--policy", "needs a value: completed|fsynced"),
            ("--=x", "unknown option --"),
        ] {
            let error = state.read(&words(line)).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn letters_and_values() {
        let asked = command("dedupe").read(&words("-b8k -C 1 file -d 0 -- -odd")).unwrap();
        assert_eq!(asked.number("block-size", 1), Ok(Some(8192)));
        assert_eq!(
            (asked.value("compress"), asked.value("duplicates"), asked.value("direct")),
            (Some("1"), Some("0"), None)
        );
        assert_eq!(asked.operands, ["file", "-odd"]);
        let asked = command("zipf").read(&words("-cp 50 -i1.1")).unwrap();
        assert_eq!(
            asked.options,
            [("csv", String::new()), ("hits", "50".into()), ("parameter", "1.1".into())]
        );
        assert_eq!(asked.fraction("parameter", 0.0, 10.0), Ok(Some(1.1)));
        for help in ["--help", "-h"] {
            assert!(command("zipf").read(&words(help)).unwrap().has(HELP));
        }
    }

    #[test]
    fn mistakes_name_the_option() {
        let dedupe = command("dedupe");
        assert!(dedupe.read(&words("-q")).unwrap_err().contains("-q"));
        assert!(dedupe.read(&words("-b")).unwrap_err().contains("-b needs a value"));
        let number = |line: &str| dedupe.read(&words(line)).unwrap().number("block-size", 512).unwrap_err();
        assert!(number("-b 4kk").contains("4kk"));
        assert!(number("-b 100x").contains("100x"));
        assert!(number("-b 5").contains("at least 512"));
        assert!(dedupe.read(&words("-d 2")).unwrap_err().contains("-d 2: not one of 0, 1"));
        assert!(command("zipf").read(&words("-i x")).unwrap().fraction("parameter", 0.0, 1.0).is_err());
    }

    #[test]
    fn amounts_are_in_the_units_of_people() {
        assert_eq!(
            [amount("20k"), amount("500MB"), amount("4KiB"), amount("7")],
            [Ok(20_000), Ok(500_000_000), Ok(4096), Ok(7)]
        );
        assert_eq!([microseconds("2ms"), microseconds("80us"), microseconds("3")], [Ok(2000), Ok(80), Ok(3)]);
        for bad in ["", "x", "5kk", "-3"] {
            assert!(amount(bad).is_err(), "{bad}");
        }
        assert!(microseconds("2 parsecs").is_err());
    }

    /// A letter has one meaning. Only the programs of fio have others.
    #[test]
    fn letters_mean_one_thing() {
        let all = ALL.iter().flat_map(|command| command.options.iter().map(move |option| (command, option)));
        for (command, option) in all {
            let is_of_fio = matches!(command.name, "dedupe" | "zipf");
            assert_eq!(option.fio.is_some(), is_of_fio, "{} --{}", command.name, option.word);
            let same = |other: &&CommandOption| {
                other.word == option.word
                    || other.letter().is_some_and(|letter| Some(letter) == option.letter())
            };
            assert_eq!(command.options.iter().filter(same).count(), 1, "{} --{}", command.name, option.word);
        }
    }

    #[test]
    fn misspelt_words_have_a_hint() {
        let error = |name: &str, line: &str| command(name).read(&words(line)).unwrap_err();
        for (name, line, why) in [
            (
                "runs",
                "compare 1 2",
                "compare is not one of list, show, label, remove, export, import, limits, check; did you mean \"iolite compare run:1 run:2\"?",
            ),
            ("runs", "report 12", "did you mean \"iolite report run:12\"?"),
            ("runs", "shwo 1", "did you mean \"show\"?"),
            ("keys", "revok agents", "did you mean \"revoke\"?"),
            ("completion", "bsh", "did you mean \"bash\"?"),
            ("sweep", "j --presett=oltp", "unknown option --presett; did you mean \"--preset\"?"),
        ] {
            let error = error(name, line);
            assert!(error.contains(why), "{name} {line}: {error}");
        }
        for (word, meant) in [
            ("swep", "; did you mean \"iolite sweep\"?"),
            ("log2cvs", "; did you mean \"iolite log2csv\"?"),
            ("agent", "; did you mean \"iolite --server\"?"),
            ("server", "; did you mean \"iolite --server\"?"),
            ("help", "; did you mean \"iolite --help\"?"),
            ("job.fio", ""),
            ("randread", ""),
        ] {
            assert_eq!(hint_at(word), meant, "{word}");
        }
    }

    #[test]
    fn job_options_of_a_sweep() {
        let asked =
            command("sweep").read(&words("--time_based --runtime 5 --bs=4k,8k --one-at-a-time j")).unwrap();
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(asked.job_options, [of("time_based", "1"), of("runtime", "5"), of("bs", "4k,8k")]);
        assert!(asked.has("one-at-a-time"));
        assert!(
            command("sweep").read(&words("j --iodepth")).unwrap_err().contains("--iodepth needs a value")
        );
    }

    #[test]
    fn optional_words_are_in_brackets() {
        let usage = |name: &str| command(name).usage().lines().nth(2).map(str::to_owned);
        for expected in [
            "sweep [options] [--OPTION=VALUES]... [job.fio]",
            "web [options] [directory]",
            "trace [options] <file>",
            "completion <bash|zsh|fish>",
        ] {
            let name = expected.split(' ').next().unwrap_or_default();
            assert_eq!(usage(name), Some(format!("Usage: iolite {expected}")));
        }
    }

    #[test]
    fn pages_name_every_option() {
        for command in ALL {
            let page = command.usage();
            assert!(page.contains(&format!("Usage: iolite {}", command.name)));
            assert_eq!(page.contains("--OPTION=VALUES"), command.takes_job_options, "{page}");
            for option in command.options {
                let spellings: Vec<String> = option.spellings().collect();
                let line = format!("\n  {} {}", spellings.join(", "), option.value);
                assert!(page.contains(line.trim_end()), "{page}");
            }
            assert!(page.lines().all(|line| line.chars().count() <= WIDTH), "{page}");
            // All descriptions begin in one column.
            let lines = page.split_once("\nOptions:\n").map_or("", |(_, rest)| rest).lines();
            let begin = |line: &str| line.rfind("  ").map(|at| at + 2).filter(|at| *at > 2);
            let begins: Vec<_> = lines.take_while(|line| !line.is_empty()).filter_map(begin).collect();
            assert!(begins.windows(2).all(|pair| pair[0] == pair[1]), "{page}");
        }
    }

    #[test]
    fn help_is_asked_for_with_dashes() {
        for command in ALL {
            let error = command.read(&words("help")).unwrap_err();
            assert_eq!(error, format!("iolite {} --help explains it", command.name));
        }
    }
}
