//! The command line.

use crate::parts::Part;
use std::path::PathBuf;

/// The output of `--help`.
pub const USAGE: &str = "\
scripts/campaign [OPTIONS]

Tries faults at random, over and over, and whether Iolite tells each of them. The exit status is 0 if it found every
fault, raised no false alarm, and left nothing behind; 1 if not; 2 if the campaign could not be run.

  --minutes N        how long to begin new trials (default: 10)
  --seed N           repeat a campaign; it prints its seed (default: a new one)
  --parts LIST       only these, separated by commas (default: all):
                       kills    SIGKILL at random moments of every process of a run
                       damage   bytes and blocks of verified files are changed
                       honest   verified jobs of many shapes that nothing happens to
                       signals  signals in bursts
                       disks    jobs, logs, states and reports on disks that are full (needs root)
                       devices  verified jobs on devices of the virtual machine that scripts/vm makes
                       zones    every rule of zones on the zoned devices of that machine
  --trial PART:N     only the trial with this number (with the campaign's --seed)
  --iolite PATH      the program to try (default: the debug build)
  --directory PATH   where trials have their files (default: the directory for temporary files)
  --parallel N       trials at a time (default: 2)
  --keep             keep the files of trials that found something
  --help             this text
";

/// The parsed command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    /// How long new trials begin.
    pub minutes: u64,
    /// The seed of the campaign.
    pub seed: Option<u64>,
    /// The parts to try.
    pub parts: Vec<Part>,
    /// The only trial to perform.
    pub trial: Option<(Part, u64)>,
    /// The program to try.
    pub iolite: PathBuf,
    /// Where trials have their files.
    pub directory: PathBuf,
    /// Trials at a time.
    pub parallel: usize,
    /// Keep the files of trials that found something.
    pub keep: bool,
}

impl Arguments {
    /// Parses the words of a command line; `None` if they ask for help.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Option<Arguments>, String> {
        let mut arguments = Arguments {
            minutes: 10,
            seed: None,
            parts: Part::ALL.to_vec(),
            trial: None,
            iolite: "target/debug/iolite".into(),
            directory: std::env::temp_dir(),
            parallel: 2,
            keep: false,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let (word, given) = match word.split_once('=') {
                Some((word, value)) => (word.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            let mut value = || given.clone().or_else(|| words.next()).ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--keep" => arguments.keep = true,
                "--minutes" => arguments.minutes = number(&word, &value()?)?,
                "--seed" => arguments.seed = Some(number(&word, &value()?)?),
                "--parallel" => arguments.parallel = number(&word, &value()?)?.clamp(1, 64) as usize,
                "--iolite" => arguments.iolite = value()?.into(),
                "--directory" => arguments.directory = value()?.into(),
                "--parts" => {
                    arguments.parts = value()?.split(',').map(Part::named).collect::<Result<_, _>>()?;
                }
                "--trial" => arguments.trial = Some(trial(&value()?)?),
                _ => return Err(format!("unknown option {word}; try --help")),
            }
        }
        if arguments.trial.is_some() && arguments.seed.is_none() {
            return Err("--trial needs the --seed of its campaign".into());
        }
        Ok(Some(arguments))
    }

    /// The program to try, by its whole path: trials have directories of their own.
    pub fn program(&self) -> Result<PathBuf, String> {
        self.iolite.canonicalize().map_err(|error| format!("{}: {error}", self.iolite.display()))
    }
}

fn number(option: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{option} {text}: a number is needed"))
}

fn trial(text: &str) -> Result<(Part, u64), String> {
    let (part, at) = text.split_once(':').ok_or(format!("--trial {text}: PART:NUMBER is needed"))?;
    Ok((Part::named(part)?, number("--trial", at)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Arguments>, String> {
        Arguments::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn arguments_are_read() {
        let arguments = parse("--minutes=3 --seed 7 --parts kills,disks --parallel 1").unwrap().unwrap();
        assert_eq!((arguments.minutes, arguments.seed, arguments.parallel), (3, Some(7), 1));
        assert_eq!(arguments.parts, [Part::Kills, Part::Disks]);
        let alone = parse("--seed=7 --trial=damage:12").unwrap().unwrap();
        assert_eq!(alone.trial, Some((Part::Damage, 12)));
        assert_eq!(parse("--help"), Ok(None));
    }

    #[test]
    fn mistakes() {
        for (line, says) in [
            ("--trial kills:1", "--seed"),
            ("--seed 1 --trial kills", "PART:NUMBER"),
            ("--parts kill", "kills, damage"),
            ("--minutes", "needs a value"),
            ("--minutes soon", "a number"),
            ("--sed 1", "unknown option --sed"),
        ] {
            assert!(parse(line).unwrap_err().contains(says), "{line}");
        }
    }
}
