//! Completion in zsh: one function, for `$fpath` or for sourcing.

use super::{Value, Word, alone, engine_words, job_words, profile_words, run_words, words};
use crate::commands;
use std::collections::{BTreeSet, HashSet};

const FRAME: &str = r#"#compdef iolite
# zsh completion for iolite

_iolite_value() {
    case $1 in
@VALUES@
        (*) return 1 ;;
    esac
}

# Options that take no word behind them.
_iolite_alone() {
    case $1 in
        (@BARE@) return 0 ;;
    esac
    return 1
}

# The sections of the job files on the line.
_iolite_sections() {
    local word
    for word in ${(Q)words[2,-1]}; do
        [[ -f $word ]] && sed -n '/\[global\]/d; s/^[[:space:]]*\[\([^]]*\)\].*/\1/p' -- $word
    done
}

_iolite() {
    local current=$words[CURRENT] before=$words[CURRENT-1] name engine profile word
    local -a valued alone letters
    case $words[2] in
@SUBCOMMANDS@
    esac
    if [[ $current == -*=* ]]; then
        name=${${${current%%=*}#-}#-}
        compset -P '*='
        # A subcommand that takes options of jobs takes several values of them.
        (( $#letters )) && compset -P '*,'
        _iolite_value $name
        return
    fi
    if [[ $current == -* ]]; then
        valued=(
@JOBS_VALUED@
        )
        alone=(
@JOBS_ALONE@
        )
        if (( $#letters )); then
            alone+=($letters)
        else
            valued+=(
@RUNS_VALUED@
            )
            alone+=(
@RUNS_ALONE@
            )
        fi
        for word in $words; do
            case $word in
                (-ioengine=*|--ioengine=*) engine=${word#*=} ;;
                (-profile=*|--profile=*) profile=${word#*=} ;;
            esac
        done
        case $engine in
@ENGINES@
        esac
        case $profile in
@PROFILES@
        esac
        _describe -o 'option' valued -S = -- alone
        return
    fi
    if [[ $before == -?* && $before != *=* ]]; then
        # The value of an option may be the next word.
        name=${${before#-}#-}
        ! _iolite_alone $name && _iolite_value $name && return
    fi
    _files
    if (( CURRENT == 2 )); then
        alone=(
@COMMANDS@
        )
        _describe 'subcommand' alone
    fi
}

if [[ ${funcstack[1]} == _iolite ]]; then
    _iolite "$@"
else
    compdef _iolite iolite
fi
"#;

pub(super) fn script() -> String {
    let all = words();
    let (engines, profiles) = (engine_words(), profile_words());
    let owned = || engines.iter().chain(&profiles).flat_map(|(_, words)| words);
    let mut values: Vec<String> = all.iter().chain(owned()).filter_map(value).collect();
    let mut known = HashSet::new();
    values.retain(|case| known.insert(case.clone()));
    let bare: BTreeSet<&str> = alone(all.iter().chain(owned())).collect();
    let described = |words: Vec<Word>, alone: bool| {
        let chosen = words.iter().filter(|word| word.alone == alone);
        chosen.map(|word| format!("            {}", entry(word))).collect::<Vec<_>>().join("\n")
    };
    let commands: Vec<String> = commands::ALL
        .iter()
        .map(|command| {
            format!("            {}", quoted(&format!("{}:{}", command.name, described_as(command.help))))
        })
        .collect();
    FRAME
        .replace("@VALUES@", &values.join("\n"))
        .replace("@BARE@", &bare.into_iter().collect::<Vec<_>>().join("|"))
        .replace("@SUBCOMMANDS@", &subcommands())
        .replace("@JOBS_VALUED@", &described(job_words().collect(), false))
        .replace("@JOBS_ALONE@", &described(job_words().collect(), true))
        .replace("@RUNS_VALUED@", &described(run_words().collect(), false))
        .replace("@RUNS_ALONE@", &described(run_words().collect(), true))
        .replace("@ENGINES@", &cases(&engines))
        .replace("@PROFILES@", &cases(&profiles))
        .replace("@COMMANDS@", &commands.join("\n"))
}

/// Additional completions once one of these engines or profiles is chosen.
fn cases(owners: &[(&'static str, Vec<Word>)]) -> String {
    let case = |(name, words): &(&str, Vec<Word>)| {
        let of = |alone: bool| {
            words.iter().filter(|word| word.alone == alone).map(entry).collect::<Vec<_>>().join(" ")
        };
        format!("            ({name}) valued+=({}) alone+=({}) ;;", of(false), of(true))
    };
    owners.iter().filter(|(_, words)| !words.is_empty()).map(case).collect::<Vec<_>>().join("\n")
}

fn entry(word: &Word) -> String {
    quoted(&format!("--{}:{}", word.names[0], described_as(&word.help)))
}

fn value(word: &Word) -> Option<String> {
    let action = match &word.value {
        Value::None | Value::Anything => return None,
        Value::File => "_files".to_owned(),
        Value::Section => "compadd -- ${(f)\"$(_iolite_sections)\"}".to_owned(),
        Value::Words(words) => {
            format!("compadd -- {}", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
        }
    };
    Some(format!("        ({}) {action} ;;", word.names.join("|")))
}

fn subcommands() -> String {
    let case = |command: &commands::Command| {
        let letters: Vec<String> = command
            .options
            .iter()
            .flat_map(|option| option.spellings().map(|name| (name, described_as(option.help))))
            .map(|(name, help)| quoted(&format!("{name}:{help}")))
            .collect();
        let files = if command.files { "_files" } else { ":" };
        let operand = match command.choices {
            [] => files.to_owned(),
            choices => {
                format!("if (( CURRENT == 3 )); then compadd -- {}; else {files}; fi", choices.join(" "))
            }
        };
        let choices: String = command.options.iter().filter_map(value_choices).collect();
        let rest = if command.takes_job_options {
            // Options of jobs are completed below.
            String::new()
        } else {
            format!(
                "\n                if [[ $current == -* ]]; then _describe -o 'option' letters; else {operand}; fi\n                \
                 return"
            )
        };
        format!(
            "        ({})\n            if (( CURRENT > 2 )); then\n                {choices}letters=({} '--help:Help'){rest}\n            \
             fi\n            ;;",
            command.name,
            letters.join(" ")
        )
    };
    commands::ALL.iter().map(case).collect::<Vec<_>>().join("\n")
}

/// The values of an option, if they are a few words: behind it as the next word, or behind a `=`.
fn value_choices(option: &commands::CommandOption) -> Option<String> {
    let spellings: Vec<String> = option.spellings().collect();
    let choices = option.choices.join(" ");
    (!option.choices.is_empty()).then(|| {
        format!(
            "case $before in ({}) compadd -- {choices}; return ;; esac\n                \
             if [[ $current == --{}=* ]]; then compset -P '*='; compadd -- {choices}; return; fi\n                ",
            spellings.join("|"),
            option.word
        )
    })
}

/// In a description of zsh, a colon ends the name.
fn described_as(help: &str) -> String {
    help.replace(':', "\\:")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
