//! Completion in fish: one `complete` per option.

use super::{Value, Word, engine_words, job_words, profile_words, run_words};
use crate::commands;
use std::fmt::Write;

const FRAME: &str = r#"# fish completion for iolite

# The sections of the job files on the line.
function __iolite_sections
    for word in (commandline -opc)
        test -f "$word"; and sed -n '/\[global\]/d; s/^[[:space:]]*\[\([^]]*\)\].*/\1/p' -- $word
    end
end

"#;

pub(super) fn script() -> String {
    let mut text = FRAME.to_owned();
    let not_after = |takes_no_jobs: bool| {
        let chosen = commands::ALL.iter().filter(|command| !(takes_no_jobs && command.takes_job_options));
        let names: Vec<&str> = chosen.map(|command| command.name).collect();
        format!("not __fish_seen_subcommand_from {}", names.join(" "))
    };
    for command in commands::ALL {
        line(&mut text, &format!("-n __fish_is_first_token -a {} -d {}", command.name, quoted(command.help)));
        let seen = quoted(&format!("__fish_seen_subcommand_from {}", command.name));
        for option in command.options {
            let value = match (option.value, option.choices) {
                ("", _) => String::new(),
                (_, []) => " -x".to_owned(),
                (_, choices) => format!(" -x -a {}", quoted(&choices.join(" "))),
            };
            let letter = option.letter().map_or_else(String::new, |letter| format!("-s {letter} "));
            let names = format!("{letter}-l {}", option.word);
            line(&mut text, &format!("-n {seen} {names}{value} -d {}", quoted(option.help)));
        }
        line(&mut text, &format!("-n {seen} -l help -d Help"));
        if !command.choices.is_empty() {
            // Behind one of the words there may be files.
            let first = quoted(&format!(
                "__fish_seen_subcommand_from {}; and not __fish_seen_subcommand_from {}",
                command.name,
                command.choices.join(" ")
            ));
            line(&mut text, &format!("-n {first} -f -a {}", quoted(&command.choices.join(" "))));
        }
    }
    for (words, condition) in
        [(run_words().collect::<Vec<_>>(), not_after(false)), (job_words().collect(), not_after(true))]
    {
        words.iter().for_each(|word| option(&mut text, word, &condition));
    }
    for (owner, owners) in [("ioengine", engine_words()), ("profile", profile_words())] {
        for (name, words) in owners {
            let chosen = format!("string match -qr -- '-{owner}[= ]{name}( |$)' (commandline -p)");
            words.iter().for_each(|word| option(&mut text, word, &chosen));
        }
    }
    text
}

fn option(text: &mut String, word: &Word, condition: &str) {
    let names: Vec<String> = word.names.iter().map(|name| format!("-l {name}")).collect();
    let value = match &word.value {
        Value::None => String::new(),
        Value::Anything if word.alone => String::new(),
        Value::Anything => " -x".to_owned(),
        Value::Section => " -x -a '(__iolite_sections)'".to_owned(),
        Value::File => " -r -F".to_owned(),
        // An optional value follows `=` only, and fish cannot express that.
        Value::Words(_) if word.alone => String::new(),
        Value::Words(words) => format!(" -x -a {}", quoted(&words.join(" "))),
    };
    line(text, &format!("-n {} {}{value} -d {}", quoted(condition), names.join(" "), quoted(&word.help)));
}

fn line(text: &mut String, arguments: &str) {
    // Writing to a String does not fail.
    let _ = writeln!(text, "complete -c iolite {arguments}");
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}
