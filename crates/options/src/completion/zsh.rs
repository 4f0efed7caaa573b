//! Completion in zsh: one function, for `$fpath` or to be sourced.

use super::{Value, Word, engine_words, words};
use crate::commands;

const FRAME: &str = r#"#compdef iolite
# zsh completion for iolite

_iolite_value() {
    case $1 in
@VALUES@
    esac
}

_iolite() {
    local current=$words[CURRENT] name engine word
    local -a valued alone letters
    case $words[2] in
@COMPANIONS@
    esac
    if [[ $current == -*=* ]]; then
        name=${${${current%%=*}#-}#-}
        compset -P '*='
        _iolite_value $name
        return
    fi
    if [[ $current == -* ]]; then
        valued=(
@VALUED@
        )
        alone=(
@ALONE@
        )
        for word in $words; do
            case $word in (-ioengine=*|--ioengine=*) engine=${word#*=} ;; esac
        done
        case $engine in
@ENGINES@
        esac
        _describe -o 'option' valued -S = -- alone
        return
    fi
    _files
    if (( CURRENT == 2 )); then
        alone=(
@COMMANDS@
        )
        _describe 'companion' alone
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
    let engines = engine_words();
    let every = all.iter().chain(engines.iter().flat_map(|(_, words)| words));
    let mut values: Vec<String> = every.filter_map(value).collect();
    let mut known = std::collections::HashSet::new();
    values.retain(|case| known.insert(case.clone()));
    let described = |alone: bool| {
        let chosen = all.iter().filter(|word| word.alone == alone);
        chosen.map(|word| format!("            {}", entry(word))).collect::<Vec<_>>().join("\n")
    };
    let engines: Vec<String> = engines
        .iter()
        .filter(|(_, words)| !words.is_empty())
        .map(|(name, words)| {
            let of = |alone: bool| {
                words.iter().filter(|word| word.alone == alone).map(entry).collect::<Vec<_>>().join(" ")
            };
            format!("            ({name}) valued+=({}) alone+=({}) ;;", of(false), of(true))
        })
        .collect();
    let commands: Vec<String> = commands::ALL
        .iter()
        .map(|command| {
            format!("            {}", quoted(&format!("{}:{}", command.name, described_as(command.help))))
        })
        .collect();
    FRAME
        .replace("@VALUES@", &values.join("\n"))
        .replace("@COMPANIONS@", &companions())
        .replace("@VALUED@", &described(false))
        .replace("@ALONE@", &described(true))
        .replace("@ENGINES@", &engines.join("\n"))
        .replace("@COMMANDS@", &commands.join("\n"))
}

fn entry(word: &Word) -> String {
    quoted(&format!("--{}:{}", word.names[0], described_as(&word.help)))
}

fn value(word: &Word) -> Option<String> {
    let action = match &word.value {
        Value::None | Value::Anything | Value::Section => return None,
        Value::File => "_files".to_owned(),
        Value::Words(words) => {
            format!("compadd -- {}", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
        }
    };
    Some(format!("        ({}) {action} ;;", word.names.join("|")))
}

fn companions() -> String {
    let case = |command: &commands::Command| {
        let letters: Vec<String> = command
            .options
            .iter()
            .flat_map(|option| option.spellings().map(|name| (name, described_as(option.help))))
            .map(|(name, help)| quoted(&format!("{name}:{help}")))
            .collect();
        let operand = match (command.operand, command.choices) {
            ("", _) => ":".to_owned(),
            (_, []) => "_files".to_owned(),
            (_, choices) => format!("compadd -- {}", choices.join(" ")),
        };
        format!(
            "        ({})\n            if (( CURRENT > 2 )); then\n                letters=({})\n                \
             if [[ $current == -* ]]; then _describe -o 'option' letters; else {operand}; fi\n                \
             return\n            fi\n            ;;",
            command.name,
            letters.join(" ")
        )
    };
    commands::ALL.iter().map(case).collect::<Vec<_>>().join("\n")
}

/// A colon ends the name of what is described.
fn described_as(help: &str) -> String {
    help.replace(':', "\\:")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
