//! The text of `--help`.

use crate::run_options::{self, Argument};
use crate::{Name, commands};
use std::fmt::Write;

/// The column at which descriptions start.
const INDENT: usize = 32;

/// The first page: what people want to do, on one screen of 24 lines with 80 columns.
pub(crate) fn first_screen() -> String {
    let own = Name::Iolite.own_version();
    let commands: Vec<&str> = commands::ALL.iter().map(|command| command.name).collect();
    format!(
        "\
{own} performs exactly the I/O that you describe, and measures it.

How good is this storage? One command, about a minute, nothing to describe:
  iolite test /mnt/data

Run a workload, described by options or in job files, as with fio:
  iolite --name=a --filename=/mnt/data/f --size=1g --rw=randread --bs=4k
  iolite workload.fio

Find the load at which it saturates; compare two results:
  iolite sweep --preset=storage --directory=/mnt/data
  iolite compare before.json after.json

See it as a page: while it runs, of a result, of all that you kept:
  iolite --web workload.fio
  iolite report result.json --output=page.html
  iolite web

  iolite --help=all    all options of the command line, and all subcommands
  iolite --cmdhelp     the job options (--cmdhelp=bs describes one)
  iolite --enghelp     the engines and their options (--enghelp=libaio)
  iolite COMMAND -h    {}
",
        in_lines(&commands, 55).join(&format!("\n{:23}", ""))
    )
}

/// Words with commas between them, in lines of at most this many characters.
fn in_lines(words: &[&str], most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for (position, word) in words.iter().enumerate() {
        let word = if position + 1 < words.len() { format!("{word},") } else { (*word).to_owned() };
        match lines.last_mut() {
            Some(line) if line.is_empty() => *line = word,
            Some(line) if line.len() + 1 + word.len() <= most => *line += &format!(" {word}"),
            _ => lines.push(word),
        }
    }
    lines
}

/// The whole help page.
pub(crate) fn usage(program: Name) -> String {
    let speaker = match program {
        Name::Iolite => String::new(),
        // All other output says that this is fio, because scripts parse it. This text is read by people.
        Name::Fio => format!("This is {}, which speaks the language of fio.\n", program.own_version()),
    };
    let first = match program {
        Name::Iolite => {
            "To measure storage without describing a workload, name a directory, a file or a device:\n  \
             iolite test /mnt/data\n\n"
        }
        Name::Fio => "",
    };
    let mut text = format!(
        "{version}\n\
         {speaker}\
         Measures what storage does under a workload that you describe.\n\
         \n\
         {first}\
         Usage: {program} [options] [job options] [job files]\n\
         \n\
         A workload is one or more jobs, described in job files or by job options:\n\
         \x20 {program} --name=test --filename=/tmp/test --size=1G --rw=randread --bs=4k\n\
         \x20 {program} workload.fio\n\
         Each --name begins a job; options before the first --name, or behind --name=global,\n\
         are defaults for the jobs that follow. Several job files run one after the other;\n\
         - is standard input. --cmdhelp lists the job options, --enghelp the I/O engines.\n\
         \n\
         Options:\n",
        version = program.version()
    );
    let (works, not_yet): (Vec<_>, Vec<_>) =
        run_options::ALL.iter().partition(|option| option.land.is_some());
    for option in works {
        describe(&mut text, option);
    }
    text.push_str(
        "\nSubcommands (a job file of that name takes precedence; iolite COMMAND --help explains each):\n",
    );
    for command in commands::ALL {
        // Writing to a String does not fail.
        let left = beside(format!("  {} {}", command.name, command.operand));
        let _ = writeln!(text, "{left:<INDENT$}{}", command.help);
    }
    if !not_yet.is_empty() {
        text.push_str("\nKnown, but not supported yet:\n");
    }
    for option in not_yet {
        describe(&mut text, option);
    }
    text
}

/// The left column of a description; a text that is too long for it gets its own line above.
fn beside(left: String) -> String {
    if left.chars().count() < INDENT { left } else { format!("{left}\n{:INDENT$}", "") }
}

fn describe(text: &mut String, option: &run_options::RunOption) {
    let argument = match option.argument {
        Argument::None => String::new(),
        Argument::Required(value) | Argument::Clearable(value) | Argument::MayBeEmpty(value) => {
            format!("={value}")
        }
        Argument::Optional(value) => format!("[={value}]"),
    };
    let mut left = beside(format!("  -{}, --{}{argument}", option.short, option.name));
    for line in option.help {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{left:<INDENT$}{line}");
        left.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_option_is_described_on_lines_that_fit() {
        let text = usage(Name::Iolite);
        for option in run_options::ALL {
            assert!(text.contains(&format!("--{}", option.name)), "{} is missing", option.name);
        }
        let first = first_screen();
        assert!(
            first.lines().count() <= 24 && first.lines().all(|line| line.chars().count() < 80),
            "{first}"
        );
        let longest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(longest.chars().count() <= 110, "{longest}");
        assert!(text.ends_with('\n'));
        assert!(text.contains("|limits|check]...\n          "), "a long name has a line of its own");
    }

    #[test]
    fn no_two_options_share_a_name_or_letter() {
        let names: HashSet<_> = run_options::ALL.iter().map(|option| option.name).collect();
        let letters: HashSet<_> = run_options::ALL.iter().map(|option| option.short).collect();
        assert_eq!(names.len(), run_options::ALL.len());
        assert_eq!(letters.len(), run_options::ALL.len());
    }
}
