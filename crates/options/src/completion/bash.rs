//! Completion in bash: one function, registered by `complete`.

use super::{Value, Word, alone, engine_words, job_words, profile_words, run_words, subcommands, words};
use crate::commands;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The script around the tables. It reads the word to complete from the line itself, because bash splits words at `=`
/// and `:` where the user did not. Completions start after the last place where bash splits.
const FRAME: &str = r#"# bash completion for iolite

_iolite_value() {
    case $1 in
@VALUES@
    esac
}

# Options that take no word behind them.
_iolite_alone() {
    case $1 in
@ALONE@) return 0 ;;
    esac
    return 1
}

_iolite_engine() {
    case $1 in
@ENGINES@
    esac
}

_iolite_profile() {
    case $1 in
@PROFILES@
    esac
}

# The sections of the job files on the line.
_iolite_sections() {
    local word
    for word in "${words[@]:1}"; do
        [[ -f $word ]] && sed -n '/\[global\]/d; s/^[[:space:]]*\[\([^]]*\)\].*/\1/p' -- "$word"
    done
}

# What an option's value may be, of which something may be there already.
_iolite_offer() {
    local offered before=
    offered=$(_iolite_value "$1")
    case $offered in
    FILE)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$2")
        ;;
    *)
        [[ $offered == SECTION ]] && offered=$(_iolite_sections)
        # The last of several words behind commas.
        [[ $2 == *,* ]] && before=${2%,*},
        mapfile -t COMPREPLY < <(compgen -P "$before" -W "$offered" -- "${2##*,}")
        ;;
    esac
}

_iolite() {
    local line=${COMP_LINE:0:COMP_POINT}
    local current=${line##*[[:space:]]}
    local -a words
    read -r -a words <<<"$line"
    local second=${words[1]-}
    local before=${words[*]: -1}
    [[ -n $current ]] && before=${words[*]: -2:1}
    # Subcommands that take options of jobs have others instead of those of runs.
    local jobs="@JOBS@"
    local options="@RUNS@ $jobs"
    COMPREPLY=()
    case $second in
@SUBCOMMANDS@
    esac
    if [[ $current == -*=* ]]; then
        local name=${current%%=*} value=${current#*=}
        name=${name#-} name=${name#-}
        _iolite_offer "$name" "$value"
        if [[ $COMP_WORDBREAKS != *=* ]]; then
            COMPREPLY=("${COMPREPLY[@]/#/${current%%=*}=}")
        fi
        return
    fi
    if [[ $current == -* ]]; then
        local engine='' profile='' word
        for word in "${words[@]}"; do
            case $word in
            -ioengine=* | --ioengine=*) engine=${word#*=} ;;
            -profile=* | --profile=*) profile=${word#*=} ;;
            esac
        done
        local more
        more="$(_iolite_engine "$engine") $(_iolite_profile "$profile")"
        mapfile -t COMPREPLY < <(compgen -W "$options $more" -- "--${current##*-}")
        [[ $current == --* || $current == - ]] || mapfile -t COMPREPLY < <(compgen -W "${COMPREPLY[*]#-}" -- "$current")
        [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
        return
    fi
    if [[ $before == -?* && $before != *=* ]]; then
        # The value of an option may be the next word.
        local name=${before#-}
        name=${name#-}
        if ! _iolite_alone "$name" && [[ -n $(_iolite_value "$name") ]]; then
            _iolite_offer "$name" "$current"
            return
        fi
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
    let mut bare: BTreeSet<&str> = alone(&all).collect();
    all.iter().for_each(|word| value(&mut values, word));
    let mut cases = |owners: Vec<(&'static str, Vec<Word>)>| {
        let mut text = String::new();
        for (name, words) in owners.into_iter().filter(|(_, words)| !words.is_empty()) {
            words.iter().for_each(|word| value(&mut values, word));
            bare.extend(alone(&words));
            line(&mut text, &format!("{name}) echo '{}' ;;", options(&words)));
        }
        text
    };
    let engines = cases(engine_words());
    let profiles = cases(profile_words());
    let bare: Vec<&str> = bare.into_iter().collect();
    FRAME
        .replace("@VALUES@", values.trim_end())
        .replace("@ENGINES@", engines.trim_end())
        .replace("@PROFILES@", profiles.trim_end())
        .replace("@ALONE@", &bare.join(" | "))
        .replace("@SUBCOMMANDS@", subcommand_cases().trim_end())
        .replace("@RUNS@", &options(&run_words().collect::<Vec<_>>()))
        .replace("@JOBS@", &options(&job_words().collect::<Vec<_>>()))
        .replace("@COMMANDS@", &subcommands().join(" "))
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
        Value::Section => "SECTION".to_owned(),
        Value::Words(words) => words.join(" "),
    };
    let case = format!("{}) echo '{offered}' ;;", word.names.join(" | "));
    // Several engines have the same option.
    if !text.contains(&case) {
        line(text, &case);
    }
}

/// After the name of a subcommand: its options with their values, and its operands.
fn subcommand_cases() -> String {
    const FILES: &str =
        "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$current\")";
    let mut text = String::new();
    for command in commands::ALL {
        let letters: Vec<String> =
            command.options.iter().flat_map(commands::CommandOption::spellings).collect();
        let files = if command.files { FILES } else { ":" };
        let operand = match command.choices {
            [] => files.to_owned(),
            choices => format!(
                "if [[ $before == {} ]]; then mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$current\"); else {files}; fi",
                command.name,
                choices.join(" ")
            ),
        };
        let choices: String = command.options.iter().filter_map(value_choices).collect();
        let letters = letters.join(" ");
        // Options of jobs are completed below.
        let rest = if command.takes_job_options {
            format!("options='{letters} --help '$jobs")
        } else {
            format!(
                "if [[ $current == -* ]]; then\n                \
                 mapfile -t COMPREPLY < <(compgen -W '{letters} --help' -- \"$current\")\n            \
                 else\n                {operand}\n            fi\n            return"
            )
        };
        let case = format!(
            "{})\n        if [[ $current != \"$second\" || $line == *[[:space:]]{0}[[:space:]]* ]]; then\n            \
             {choices}{rest}\n        fi\n        ;;",
            command.name,
        );
        line(&mut text, &case);
    }
    text
}

/// The values of an option, if they are a few words: behind it as the next word, or behind a `=`.
fn value_choices(option: &commands::CommandOption) -> Option<String> {
    let spellings: Vec<String> =
        option.spellings().map(|spelling| format!("$before == {spelling}")).collect();
    let choices = option.choices.join(" ");
    (!option.choices.is_empty()).then(|| {
        format!(
            "if [[ $current == --{word}=* ]]; then\n                \
             mapfile -t COMPREPLY < <(compgen -W '{choices}' -- \"${{current#*=}}\")\n                \
             [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=(\"${{COMPREPLY[@]/#/--{word}=}}\")\n                return\n            fi\n            \
             if [[ {} ]]; then\n                \
             mapfile -t COMPREPLY < <(compgen -W '{choices}' -- \"$current\")\n                return\n            fi\n            ",
            spellings.join(" || "),
            word = option.word,
        )
    })
}

fn line(text: &mut String, line: &str) {
    // Writing to a String does not fail.
    let _ = writeln!(text, "    {line}");
}
