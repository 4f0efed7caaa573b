//! The texts of `--cmdhelp` and `--enghelp`, generated from the option tables.

use crate::definition::{Definition, Kind, Limits, Scope, Status};
use crate::engines::EngineInfo;
use crate::name::Name;
use crate::profiles::Profile;
use crate::spelling;
use crate::{engines, registry};
use std::fmt::Write;

/// The answer to a request for help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help {
    /// The whole text, with its final newline.
    pub text: String,
    /// The exit status: 0, or 1 if no option or engine has that name.
    pub status: u8,
}

/// The column of the colon in a list.
const LIST_COLUMN: usize = 24;
/// The column of the colon in the lines about one option.
const DETAIL_COLUMN: usize = 20;

/// `--cmdhelp` (no argument), `--cmdhelp=all`, `--cmdhelp=NAME`. For an unknown name it describes the nearest option
/// and exits with 0, as fio does; an unknown name in `--enghelp` is a failure. Only under its own name, the program
/// describes options of engines, too.
pub fn command_help(argument: Option<&str>, called: Name) -> Help {
    match argument {
        None | Some("all") => good(list(registry::job_options())),
        Some(name) => match registry::find_job(name) {
            Some(definition) => good(detail(definition, called)),
            None if called.is_strict() => good(nearest_option(name, called)),
            None => good(option_of_engines(name).unwrap_or_else(|| match engines::engine(name) {
                Some(_) => {
                    format!("{name} is an engine, not an option: --enghelp={name} lists its options\n")
                }
                None => nearest_option(name, called),
            })),
        },
    }
}

/// The option of this name of all engines that have it, each meaning once, with the engines.
fn option_of_engines(name: &str) -> Option<String> {
    let having = engines::engines().iter().filter_map(|engine| Some((engine.name, engine.option(name)?)));
    let mut meanings: Vec<(&str, Vec<&str>, String)> = Vec::new();
    for (engine, definition) in having {
        match meanings.iter_mut().find(|(help, ..)| *help == definition.help) {
            Some((_, engines, _)) => engines.push(engine),
            None => meanings.push((definition.help, vec![engine], detail(definition, Name::Iolite))),
        }
    }
    let texts = meanings
        .iter()
        .map(|(_, engines, text)| format!("Option of ioengine={}:\n{text}", engines.join(", ")));
    Some(texts.collect::<String>()).filter(|text| !text.is_empty())
}

/// `--cmdhelp` after `--profile`: the profile's own options.
pub(crate) fn profile_help(profile: &Profile, argument: Option<&str>, called: Name) -> Help {
    match argument {
        None | Some("all") => good(list(profile.options.iter().copied())),
        Some(name) => match profile.option(name) {
            Some(definition) => good(detail(definition, called)),
            None => command_help(argument, called),
        },
    }
}

/// `--enghelp` (no argument), `--enghelp=ENGINE`, `--enghelp=ENGINE,OPTION`.
pub fn engine_help(argument: Option<&str>, called: Name) -> Help {
    let Some(argument) = argument else {
        return good(engine_list(called));
    };
    let (name, option) = match argument.split_once(',') {
        Some((name, option)) => (name, Some(option)),
        None => (argument, None),
    };
    let Some(engine) = engines::engine(name) else {
        if let Some(refusal) = engines::elsewhere(name) {
            return Help { text: format!("{refusal}\n"), status: 1 };
        }
        let names = engines::engines().iter().map(|engine| engine.name);
        let hint = spelling::did_you_mean(spelling::closest(name, names));
        return Help { text: format!("IO engine {name} not found{hint}\n"), status: 1 };
    };
    match option {
        None | Some("") => good(engine_options(engine)),
        Some(option) => match engine.option(option) {
            Some(definition) => good(detail(definition, called)),
            None => Help { text: no_such_option(option, engine.options.iter().copied()), status: 1 },
        },
    }
}

fn good(text: String) -> Help {
    Help { text, status: 0 }
}

/// The option that was probably meant, after a line that says so.
fn nearest_option(name: &str, called: Name) -> String {
    match spelling::closest(name, registry::job_options().flat_map(Definition::names))
        .and_then(registry::find_job)
    {
        Some(definition) => {
            format!("No such command: {name} - showing closest match\n{}", detail(definition, called))
        }
        None => format!("No such command: {name}\n"),
    }
}

fn no_such_option(name: &str, known: impl Iterator<Item = &'static Definition>) -> String {
    let meant = spelling::closest(name, known.flat_map(Definition::names));
    format!("No such command: {name}{}\n", spelling::did_you_mean(meant))
}

/// `writeln!` to a string, which cannot fail.
macro_rules! line {
    ($text:expr, $($format:tt)*) => { writeln!($text, $($format)*).expect("strings take everything") };
}

fn engine_list(called: Name) -> String {
    let mut text = "Available IO engines:\n".to_owned();
    for engine in engines::engines() {
        match called {
            Name::Fio => line!(text, "\t{}", engine.name),
            Name::Iolite => line!(text, "\t{:<LIST_COLUMN$}: {}", engine.name, engine.help),
        }
    }
    text
}

fn engine_options(engine: &EngineInfo) -> String {
    if engine.options.is_empty() {
        return format!("IO engine {} has no options\n", engine.name);
    }
    list(engine.options.iter().copied())
}

/// One line per option; options that refine another are indented below it.
fn list(definitions: impl Iterator<Item = &'static Definition>) -> String {
    let mut text = String::new();
    for definition in definitions {
        let indented = format!("{:indent$}{}", "", definition.name, indent = 2 * depth(definition));
        line!(text, "{indented:<LIST_COLUMN$}: {}", definition.help);
    }
    text
}

/// How many levels of options this one refines.
fn depth(definition: &Definition) -> usize {
    match definition.parent.and_then(registry::find_job) {
        Some(parent) => 1 + depth(parent),
        None => 0,
    }
}

/// Everything about one option, followed by an empty line.
fn detail(definition: &Definition, called: Name) -> String {
    let mut text = String::new();
    let mut field = |name: &str, value: &str| line!(text, "{name:>DETAIL_COLUMN$}: {value}");
    field(definition.name, definition.help);
    if !definition.aliases.is_empty() {
        field("alias", &definition.aliases.join(", "));
    }
    field(
        "type",
        match called {
            Name::Fio => definition.kind.type_name(),
            Name::Iolite if definition.kind == Kind::Str && !definition.keywords.is_empty() => "word",
            Name::Iolite => definition.kind.in_words(),
        },
    );
    field("default", definition.default.unwrap_or("no default"));
    match definition.limits {
        Limits::None => {}
        // fio prints the largest number so.
        Limits::AtLeast(min) if called.is_strict() => field("range", &format!("min={min}, max=-1")),
        Limits::AtLeast(min) => field("range", &format!("min={min}")),
        Limits::OnlyMin(min) => field("range", &format!("min={min}")),
        Limits::Between(min, max) => field("range", &format!("min={min}, max={max}")),
        Limits::Floats(min, max) => field("range", &format!("min={min:.6}, max={max:.6}")),
    }
    for (index, (keyword, meaning)) in definition.keywords.iter().enumerate() {
        field(if index == 0 { "valid values" } else { "" }, format!("{keyword:<10} {meaning}").trim_end());
    }
    if definition.status() == Status::NotYet && definition.scope != Scope::Profile {
        line!(text, "{:>DETAIL_COLUMN$}: not supported yet", "status");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_option() {
        assert_eq!(
            command_help(Some("blocksize"), Name::Fio).text,
            "                  bs: Block size in bytes, for all directions or as reads,writes,trims
               alias: blocksize
                type: integer value (opt=100)
             default: 4096
               range: min=1, max=-1

"
        );
        let sync = command_help(Some("sync_file_range"), Name::Fio).text;
        assert!(sync.contains("             default: no default\n        valid values: wait_before SYNC_FILE_RANGE_WAIT_BEFORE\n                    : write      SYNC_FILE_RANGE_WRITE\n"));
        assert!(
            command_help(Some("percentile_list"), Name::Fio)
                .text
                .contains("range: min=0.000000, max=100.000000\n")
        );
        assert!(command_help(Some("filesize"), Name::Fio).text.contains("range: min=1\n"));
        assert!(
            engine_help(Some("io_uring,hipri"), Name::Fio)
                .text
                .contains("type: empty or boolean value ([0|1])\n")
        );
    }

    /// fio knows less: its help is compared with ours by tests that run it.
    #[test]
    fn under_its_own_name_it_tells_more() {
        assert!(command_help(Some("bs"), Name::Iolite).text.contains("range: min=1\n"));
        let part = command_help(Some("http_s3_multipart_size"), Name::Iolite).text;
        assert!(part.starts_with("Option of ioengine=http:\nhttp_s3_multipart_size: Upload"), "{part}");
        let everywhere = command_help(Some("hipri"), Name::Iolite).text;
        assert!(everywhere.contains("io_uring"), "{everywhere}");
        assert!(command_help(Some("http_s3_multipart_size"), Name::Fio).text.starts_with("No such command"));
        let engine = command_help(Some("http"), Name::Iolite).text;
        assert_eq!(engine, "http is an engine, not an option: --enghelp=http lists its options\n");
        for (option, told) in [
            ("description", "text"),
            ("rw", "word"),
            ("size", "size, such as 4k, 1g or 50%"),
            ("runtime", "time, such as 90, 5m or 100ms"),
        ] {
            let help = command_help(Some(option), Name::Iolite).text;
            assert!(help.contains(&format!("                type: {told}\n")), "{help}");
        }
        let list = engine_help(None, Name::Iolite).text;
        assert!(list.contains("\n\tlibaio                  : The kernel's asynchronous I/O"), "{list}");
    }

    #[test]
    fn lists() {
        let all = command_help(Some("all"), Name::Fio).text;
        assert_eq!(all.lines().count(), 245 + crate::defs::OWN.len(), "those of fio, then our own");
        assert!(all.starts_with("description             : "));
        assert!(all.contains("\n  bs                    : "));
        assert!(all.contains("\n    trim_backlog        : "));
        assert!(all.contains("\n  iodepth_batch_complete_min: "), "a long name pushes the colon on");
        assert_eq!(command_help(None, Name::Fio).text, all);
        let engines = engine_help(None, Name::Fio).text;
        assert!(engines.starts_with("Available IO engines:\n\t") && engines.contains("\n\tpsync\n"));
        assert_eq!(engines.lines().count() - 1, engines::engines().len());
        assert!(engine_help(Some("libaio"), Name::Fio).text.starts_with("userspace_reap          : "));
        assert_eq!(engine_help(Some("null"), Name::Fio).text, "IO engine null has no options\n");
    }

    #[test]
    fn unknown_commands_and_engines_get_suggestions() {
        let nearest = command_help(Some("iodep"), Name::Fio);
        let own = command_help(Some("iodepth"), Name::Fio).text;
        assert_eq!(nearest.text, format!("No such command: iodep - showing closest match\n{own}"));
        assert_eq!(nearest.status, 0, "as the reference program does it");
        assert_eq!(command_help(Some("qqqqqq"), Name::Fio).text, "No such command: qqqqqq\n");
        let engine = engine_help(Some("libaoi"), Name::Fio);
        assert_eq!(engine.text, "IO engine libaoi not found; did you mean \"libaio\"?\n");
        assert_eq!(engine.status, 1);
        assert_eq!(engine_help(Some("null,x"), Name::Fio).status, 1);
    }
}
