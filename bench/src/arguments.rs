//! The command line.

use std::path::PathBuf;

/// The output of `--help`.
pub const USAGE: &str = "\
iolite-bench [OPTIONS] [CASE...]

Runs the same jobs under Iolite and an installed fio, alternating, and prints a markdown table.
Without a CASE, all cases run; a CASE may be a part of a name.

  --iolite PATH      the program to measure (default: target/release/iolite)
  --peer PATH        the program to compare with (default: fio, from PATH)
  --rounds N         runs of each case under each program, at least 5 (default: 7)
  --seconds N        length of each run (default: 2; with --rates or --cluster, 10)
  --directory PATH   a file system in memory for the cases that need a file (default: /dev/shm)
  --disk PATH        a file system on a disk for the cases that need one (default: the current directory)
  --rates            measure how exactly rates from 10 to 500000 IOPS are held, instead of the cases
  --with-page        measure Iolite with a page that is open (--web) beside Iolite without one
  --cluster N        measure runs on N simulated agents, and on two real ones, instead of the cases
  --list             list the cases without running them
  --help             this text
";

/// The parsed command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    /// The program to measure.
    pub iolite: PathBuf,
    /// The program to compare with.
    pub peer: PathBuf,
    /// Runs of each case under each program.
    pub rounds: usize,
    /// Seconds of each run.
    pub seconds: u32,
    /// The directory for files in memory.
    pub directory: PathBuf,
    /// The directory for files on a disk.
    pub disk: PathBuf,
    /// Measure how rates are held, instead of the cases.
    pub rates: bool,
    /// Compare Iolite with and without a page that is open.
    pub with_page: bool,
    /// Measure runs on so many simulated agents, instead of the cases.
    pub cluster: Option<usize>,
    /// Only list the cases.
    pub list: bool,
    /// Parts of the names of the cases; empty = all cases.
    pub cases: Vec<String>,
}

/// The fewest rounds. Fewer would say nothing about the spread.
const MIN_ROUNDS: usize = 5;

impl Arguments {
    /// Parses the words of a command line; `None` if they ask for help.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Option<Arguments>, String> {
        let mut arguments = Arguments {
            iolite: "target/release/iolite".into(),
            peer: "fio".into(),
            rounds: 7,
            seconds: 0,
            directory: "/dev/shm".into(),
            disk: ".".into(),
            rates: false,
            with_page: false,
            cluster: None,
            list: false,
            cases: Vec::new(),
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--rates" => arguments.rates = true,
                "--with-page" => arguments.with_page = true,
                "--list" => arguments.list = true,
                "--cluster" => arguments.cluster = Some(number(&word, &value()?, 2)?),
                "--iolite" => arguments.iolite = value()?.into(),
                "--peer" => arguments.peer = value()?.into(),
                "--directory" => arguments.directory = value()?.into(),
                "--disk" => arguments.disk = value()?.into(),
                "--rounds" => arguments.rounds = number(&word, &value()?, MIN_ROUNDS)?,
                "--seconds" => arguments.seconds = number(&word, &value()?, 1)? as u32,
                _ if word.starts_with('-') => return Err(format!("unknown option {word}; try --help")),
                _ => arguments.cases.push(word),
            }
        }
        if arguments.seconds == 0 {
            let is_long = arguments.rates || arguments.cluster.is_some();
            arguments.seconds = if is_long { 10 } else { 2 };
        }
        Ok(Some(arguments))
    }
}

fn number(option: &str, text: &str, least: usize) -> Result<usize, String> {
    match text.parse() {
        // Nobody waits for more than a day. The limit also prevents overflow.
        Ok(number) if (least..=86_400).contains(&number) => Ok(number),
        _ => Err(format!("{option} {text}: a number from {least} to 86400 is needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Arguments>, String> {
        Arguments::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn options_and_cases() {
        let arguments = parse("--rounds 9 null-randread --iolite /x/iolite psync").unwrap().unwrap();
        assert_eq!(arguments.rounds, 9);
        assert_eq!(arguments.iolite, PathBuf::from("/x/iolite"));
        assert_eq!(arguments.cases, ["null-randread", "psync"]);
        assert_eq!((arguments.seconds, arguments.rates), (2, false));
        assert_eq!(parse("--rates").unwrap().unwrap().seconds, 10);
        assert!(parse("--with-page null").unwrap().unwrap().with_page);
        let cluster = parse("--cluster 1000").unwrap().unwrap();
        assert_eq!((cluster.cluster, cluster.seconds), (Some(1000), 10));
        assert_eq!(parse("--seconds 3 --rates").unwrap().unwrap().seconds, 3);
    }

    #[test]
    fn help_and_mistakes() {
        assert_eq!(parse("--help"), Ok(None));
        assert!(parse("--rounds 4").unwrap_err().contains("from 5"));
        assert!(parse("--cluster 1").unwrap_err().contains("from 2"));
        assert!(parse("--rounds").unwrap_err().contains("needs a value"));
        assert!(parse("--round 7").unwrap_err().contains("unknown option --round"));
    }
}
