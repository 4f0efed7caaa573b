//! Completion in bash: one function, registered by `complete`.

use super::{Value, Word, companions, engine_words, words};
use crate::commands;
use std::fmt::Write;

/// What stands around the tables. The word to complete is taken from the line itself, because bash splits words at `=`
/// and `:` where the user did not; what is offered begins behind the last place where bash splits.
const FRAME: &str = r#"# bash completion for iolite

_iolite_value() {
    case $1 in
@VALUES@
    esac
}

_iolite_engine() {
    case $1 in
@ENGINES@
    esac
}

_iolite() {
    local line=${COMP_LINE:0:COMP_POINT}
    local current=${line##*[[:space:]]}
    local -a words
    read -r -a words <<<"$line"
    local second=${words[1]-}
    COMPREPLY=()
    case $second in
@COMPANIONS@
    esac
    if [[ $current == -*=* ]]; then
        local name=${current%%=*} value=${current#*=}
        name=${name#-} name=${name#-}
        local offered
        offered=$(_iolite_value "$name")
        if [[ $offered == FILE ]]; then
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$value")
        else
            # The last of several words behind commas.
            local before=
            [[ $value == *,* ]] && before=${value%,*},
            mapfile -t COMPREPLY < <(compgen -P "$before" -W "$offered" -- "${value##*,}")
        fi
        if [[ $COMP_WORDBREAKS != *=* ]]; then
            COMPREPLY=("${COMPREPLY[@]/#/${current%%=*}=}")
        fi
        return
    fi
    if [[ $current == -* ]]; then
        local engine='' word
        for word in "${words[@]}"; do
            case $word in -ioengine=* | --ioengine=*) engine=${word#*=} ;; esac
        done
        mapfile -t COMPREPLY < <(compgen -W "@OPTIONS@ $(_iolite_engine "$engine")" -- "--${current##*-}")
        [[ $current == --* || $current == - ]] || mapfile -t COMPREPLY < <(compgen -W "${COMPREPLY[*]#-}" -- "$current")
        [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
        return
    fi
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    if [[ ${#words[@]} -le 2 && $current == "$second" ]]; then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "@COMMANDS@" -- "$current")
    fi
}

complete -F _iolite iolite
"#;

pub(super) fn script() -> String {
    let all = words();
    let mut values = String::new();
    let mut engines = String::new();
    all.iter().for_each(|word| value(&mut values, word));
    for (name, words) in engine_words() {
        words.iter().for_each(|word| value(&mut values, word));
        if !words.is_empty() {
            line(&mut engines, &format!("{name}) echo '{}' ;;", options(&words)));
        }
    }
    FRAME
        .replace("@VALUES@", values.trim_end())
        .replace("@ENGINES@", engines.trim_end())
        .replace("@COMPANIONS@", companion_cases().trim_end())
        .replace("@OPTIONS@", &options(&all))
        .replace("@COMMANDS@", &companions().join(" "))
}

/// The options with their dashes; those that need a value end in `=`.
fn options(words: &[Word]) -> String {
    let shown = |word: &Word| format!("--{}{}", word.names[0], if word.alone { "" } else { "=" });
    words.iter().map(shown).collect::<Vec<_>>().join(" ")
}

fn value(text: &mut String, word: &Word) {
    let offered = match &word.value {
        Value::None | Value::Anything => return,
        Value::File => "FILE".to_owned(),
        Value::Words(words) => words.join(" "),
    };
    let case = format!("{}) echo '{offered}' ;;", word.names.join(" | "));
    // Engines share options.
    if !text.contains(&case) {
        line(text, &case);
    }
}

/// Behind the name of a companion: its letters, and what its operand is.
fn companion_cases() -> String {
    let mut text = String::new();
    for command in commands::ALL {
        let letters: Vec<String> =
            command.options.iter().flat_map(commands::CommandOption::spellings).collect();
        let operand = match (command.operand, command.choices) {
            ("", _) => ":".to_owned(),
            (_, []) => {
                "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$current\")"
                    .to_owned()
            }
            (_, choices) => {
                format!("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$current\")", choices.join(" "))
            }
        };
        let case = format!(
            "{})\n        if [[ $current != \"$second\" || $line == *[[:space:]]{0}[[:space:]]* ]]; then\n            \
             if [[ $current == -* ]]; then\n                \
             mapfile -t COMPREPLY < <(compgen -W '{} --help' -- \"$current\")\n            \
             else\n                {operand}\n            fi\n            return\n        fi\n        ;;",
            command.name,
            letters.join(" "),
        );
        line(&mut text, &case);
    }
    text
}

fn line(text: &mut String, line: &str) {
    // Writing to a String does not fail.
    let _ = writeln!(text, "    {line}");
}
