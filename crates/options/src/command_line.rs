//! The grammar of the command line: `iolite [options] [job options] [job files]`.
//!
//! The grammar is that of `getopt_long_only`, on which wrapper scripts rely. An option has one dash or two. Its value
//! follows `=` or is the next word; the value of a flag follows `=` only, so the word after a flag is a job file (or
//! another option). A name may be abbreviated as long as it is unambiguous. Options and job files may be mixed; after
//! `--` there are only job files. Options of the run also have letters.
//!
//! `--name=X` begins a job, `--name=global` a list of defaults. Job options before any `--name` are defaults too, and
//! so are those that follow a `--name` that an earlier `--section` leaves out. An engine's own options are known
//! after the `--ioengine` that chooses it.

use crate::definition::{Definition, Scope};
use crate::defs::DEFAULT_ENGINE;
use crate::profiles::Profile;
use crate::run_options::{self, Argument, Asked, RunOption};
use crate::section::{
    Section, Setting, could_be_a_typing_mistake, is_global_name, odd_global_name, shortened,
};
use crate::spelling;
use crate::system_variables::MachineFacts;
use crate::values::Notes;
use crate::{Diagnostic, Name, Origin, engines, registry, substitute};
use std::ffi::{OsStr, OsString};

/// The most names that an error about an ambiguous abbreviation lists.
const NAMES_SHOWN: usize = 8;

/// A parsed command line.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// Options of the run.
    pub asked: Asked,
    /// Jobs and defaults, in order.
    pub sections: Vec<Section>,
    /// Job files, in order.
    pub files: Vec<OsString>,
    /// All options in order, each as one word with its full name.
    pub options: Vec<Given>,
}

/// An option that was given.
#[derive(Debug)]
pub(crate) struct Given {
    /// Its name.
    pub name: &'static str,
    /// Whether it is an option of the whole run.
    pub is_of_run: bool,
    value: Option<String>,
}

impl Given {
    /// Its word: `--name=value`.
    pub fn word(&self) -> OsString {
        match &self.value {
            Some(value) => format!("--{}={value}", self.name).into(),
            None => format!("--{}", self.name).into(),
        }
    }
}

/// Parses a command line. Parsing stops at the first question (`--help`, `--version`, …).
pub(crate) fn scan(
    words: &[OsString],
    facts: &MachineFacts,
    name: Name,
    errors: &mut Vec<Diagnostic>,
    warnings: &mut Vec<Diagnostic>,
) -> Scanned {
    let mut scanner = Scanner {
        words,
        position: 0,
        facts,
        errors,
        warnings,
        defaults_engine: DEFAULT_ENGINE.to_owned(),
        engine: DEFAULT_ENGINE.to_owned(),
        result: Scanned {
            asked: Asked { notes: Notes::of(name), ..Asked::default() },
            sections: Vec::new(),
            files: Vec::new(),
            options: Vec::new(),
        },
    };
    scanner.run();
    scanner.result
}

struct Scanner<'a> {
    words: &'a [OsString],
    /// The index of the next word.
    position: usize,
    facts: &'a MachineFacts,
    errors: &'a mut Vec<Diagnostic>,
    warnings: &'a mut Vec<Diagnostic>,
    /// The engine that the defaults chose.
    defaults_engine: String,
    /// The engine of the current section.
    engine: String,
    result: Scanned,
}

/// The meaning of a name on the command line.
#[derive(Clone, Copy)]
enum Target {
    Run(&'static RunOption),
    Job(&'static Definition),
    Profile(&'static Definition),
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Target::Run(option) => option.name,
            Target::Job(definition) | Target::Profile(definition) => definition.name,
        }
    }
    fn argument(self) -> Argument {
        match self {
            Target::Run(option) => option.argument,
            Target::Job(definition) | Target::Profile(definition) if definition.kind.value_is_optional() => {
                Argument::Optional("bool")
            }
            Target::Job(_) | Target::Profile(_) => Argument::Required("value"),
        }
    }
}

/// The result of looking up a name.
enum Lookup {
    Found(Target),
    Ambiguous(Vec<&'static str>),
    Unknown,
}

impl Scanner<'_> {
    fn run(&mut self) {
        while let Some(word) = self.words.get(self.position) {
            self.position += 1;
            if word == "--" {
                self.result.files.extend_from_slice(&self.words[self.position..]);
                return;
            }
            self.word(word);
            if self.result.asked.question.is_some() {
                return;
            }
        }
    }

    fn word(&mut self, word: &OsStr) {
        if word == "-" || !word.as_encoded_bytes().starts_with(b"-") {
            self.result.files.push(word.to_owned());
            self.result.asked.files = self.result.files.len();
            return;
        }
        let Some(text) = word.to_str() else {
            self.error(format!("\"{}\" is not valid UTF-8", word.display()));
            return;
        };
        match text.strip_prefix("--") {
            Some(body) => self.long(text, body),
            None => self.short_or_long(text, &text[1..]),
        }
    }

    /// `--body`
    fn long(&mut self, text: &str, body: &str) {
        let (name, value) = split(body);
        match self.look_up(name) {
            Lookup::Found(target) => self.option(target, text, value),
            Lookup::Ambiguous(names) => self.ambiguous(text, &names),
            Lookup::Unknown => self.unknown(text, name),
        }
    }

    /// `-body`: a letter, a long option with a single dash, or several letters.
    fn short_or_long(&mut self, text: &str, body: &str) {
        let mut letters = body.chars();
        if let (Some(letter), None) = (letters.next(), letters.next())
            && let Some(option) = by_letter(letter)
        {
            self.option(Target::Run(option), text, None);
            return;
        }
        let (name, value) = split(body);
        match self.look_up(name) {
            Lookup::Found(target) => self.option(target, text, value),
            Lookup::Ambiguous(names) => self.ambiguous(text, &names),
            Lookup::Unknown if value.is_some() || self.is_nearly_a_name(name) => self.unknown(text, name),
            Lookup::Unknown => self.letters(text, body),
        }
    }

    /// `-oFILE`, `-rP`: letters without a value, the last one with its value.
    fn letters(&mut self, text: &str, body: &str) {
        let mut options = Vec::new();
        let mut rest = body;
        while let Some(letter) = rest.chars().next() {
            let Some(option) = by_letter(letter) else {
                self.unknown(text, body);
                return;
            };
            rest = &rest[letter.len_utf8()..];
            if option.argument == Argument::None {
                options.push((option, None));
            } else {
                options.push((option, (!rest.is_empty()).then_some(rest)));
                break;
            }
        }
        for (option, value) in options {
            self.option(Target::Run(option), text, value);
        }
    }

    /// Whether this is a misspelt or misplaced long option rather than several letters.
    fn is_nearly_a_name(&self, name: &str) -> bool {
        name.len() > 3 && (self.nearest(name).is_some() || !registry::find_any_engine(name).is_empty())
    }

    /// The option that was probably meant.
    fn nearest(&self, name: &str) -> Option<&'static str> {
        could_be_a_typing_mistake(name)
            .then(|| spelling::closest(name, self.names().map(|(name, _)| name)))
            .flatten()
    }

    /// The option that a name refers to: its full name, or a prefix of it.
    fn look_up(&self, name: &str) -> Lookup {
        if name.is_empty() {
            return Lookup::Unknown;
        }
        if let Some(definition) = self.profile().and_then(|profile| profile.option(name)) {
            return Lookup::Found(Target::Profile(definition));
        }
        if let Some(option) = run_options::ALL.iter().find(|option| option.name == name) {
            return Lookup::Found(Target::Run(option));
        }
        if let Some(definition) = registry::find(name, &self.engine) {
            return Lookup::Found(Target::Job(definition));
        }
        let candidates: Vec<_> = self.names().filter(|(candidate, _)| candidate.starts_with(name)).collect();
        match candidates.as_slice() {
            [] => Lookup::Unknown,
            [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other.name() == first.name()) => {
                Lookup::Found(*first)
            }
            _ => Lookup::Ambiguous(candidates.iter().map(|(name, _)| *name).collect()),
        }
    }

    /// Every name that is known at this place, with its meaning.
    fn names(&self) -> impl Iterator<Item = (&'static str, Target)> {
        let of_run = run_options::ALL.iter().map(|option| (option.name, Target::Run(option)));
        let of_engine = engines::engine(&self.engine).map_or(&[][..], |engine| engine.options);
        let of_job = registry::job_options()
            .chain(of_engine.iter().copied())
            .flat_map(|definition| definition.names().map(move |name| (name, Target::Job(definition))));
        let of_profile = self.profile().map_or(&[][..], |profile| profile.options);
        let of_profile = of_profile.iter().map(|definition| (definition.name, Target::Profile(definition)));
        of_run.chain(of_profile).chain(of_job)
    }

    fn profile(&self) -> Option<&'static Profile> {
        self.result.asked.profile.as_ref().map(|chosen| chosen.profile)
    }

    fn profile_option(&mut self, definition: &'static Definition, text: &str, value: Option<&str>) {
        if let Some(chosen) = &mut self.result.asked.profile
            && let Err(reason) = chosen.take(definition, value)
        {
            self.error(format!("{text}: {reason}"));
        }
    }

    /// Handles a recognised option: fetches its value and stores it.
    fn option(&mut self, target: Target, text: &str, attached: Option<&str>) {
        let origin = Origin::CommandLine(self.position);
        let value = match (target.argument(), attached) {
            (Argument::None, Some(_)) => {
                self.error(format!("{text}: option \"{}\" takes no value", target.name()));
                return;
            }
            (Argument::None | Argument::Optional(_), None) => None,
            (Argument::Required(_) | Argument::Clearable(_) | Argument::MayBeEmpty(_), None) => {
                match self.next_word(text) {
                    Some(value) => {
                        self.looks_like_an_option(text, &value);
                        Some(value)
                    }
                    None => return,
                }
            }
            (_, Some(value)) => Some(value.to_owned()),
        };
        let value = match (target.argument(), value) {
            (Argument::Optional(_), Some(value)) if value.is_empty() && matches!(target, Target::Run(_)) => {
                None
            }
            (Argument::Clearable(_), Some(value)) if value.is_empty() => return,
            (_, value) => value,
        };
        if value.as_deref() == Some("") && !matches!(target.argument(), Argument::MayBeEmpty(_)) {
            self.error(format!("{text}: option \"{}\" requires a value", target.name()));
            return;
        }
        let is_of_run = matches!(target, Target::Run(_));
        self.result.options.push(Given { name: target.name(), is_of_run, value: value.clone() });
        match target {
            Target::Run(option) => self.run_option(option, text, value.as_deref()),
            Target::Profile(definition) => self.profile_option(definition, text, value.as_deref()),
            Target::Job(definition) if definition.name == "name" && definition.scope == Scope::Job => {
                self.begin_section(value.unwrap_or_default(), origin);
            }
            Target::Job(definition) => self.job_option(definition, value, origin),
        }
    }

    fn next_word(&mut self, text: &str) -> Option<String> {
        let Some(word) = self.words.get(self.position) else {
            self.error(format!("option \"{text}\" requires a value"));
            return None;
        };
        self.position += 1;
        match word.to_str() {
            Some(value) => Some(value.to_owned()),
            None => {
                self.error(format!("{text} {}: the value is not valid UTF-8", word.display()));
                None
            }
        }
    }

    /// An option whose value is missing takes the next option as its value, as getopt does.
    fn looks_like_an_option(&mut self, text: &str, value: &str) {
        let Some(body) = value.strip_prefix("--") else { return };
        let (name, own) = split(body);
        if let Lookup::Found(meant) = self.look_up(name) {
            // The value is an option that has a value itself, which may be a secret.
            let own = own.map(|own| format!("={}", registry::shown(meant.name(), own))).unwrap_or_default();
            let value = format!("--{name}{own}");
            self.warn(format!(
                "{text} {value}: \"{value}\" is the value of \"{text}\" here, not an option; give the value behind =, \
                 as in {text}=VALUE"
            ));
        }
    }

    fn run_option(&mut self, option: &'static RunOption, text: &str, value: Option<&str>) {
        let shown = match value {
            Some(value) => format!("--{}={value}", option.name),
            None => format!("--{}", option.name),
        };
        match option.land {
            Some(land) => {
                if let Err(reason) = land(&mut self.result.asked, value.unwrap_or_default()) {
                    self.error(format!("{shown}: {reason}"));
                }
                let notes = self.result.asked.notes.take();
                for note in notes {
                    self.warn(format!("{shown}: {note}"));
                }
            }
            None => {
                let long = format!("--{}", option.name);
                let meant =
                    if text.starts_with(&long) { String::new() } else { format!(" (from \"{text}\")") };
                self.error(format!("{long}: not supported yet{meant}"));
            }
        }
    }

    fn begin_section(&mut self, name: String, origin: Origin) {
        let is_global = is_global_name(&name);
        self.warnings.extend(odd_global_name(&name, &origin));
        self.engine.clone_from(&self.defaults_engine);
        if !is_global && !self.result.asked.wants(&name) {
            self.warn(format!("--name={name}: not chosen by --section; the options behind it are defaults"));
            self.begin_defaults(origin, true);
            return;
        }
        let named = Setting {
            key: "name".to_owned(),
            value: Some(name.clone()),
            key_origin: origin.clone(),
            value_origin: origin.clone(),
        };
        let settings = vec![named];
        self.result.sections.push(Section { name, is_global, is_left_out: false, origin, settings });
    }

    /// Defaults without a name. `is_left_out`: they follow the name of a job that `--section` leaves out.
    fn begin_defaults(&mut self, origin: Origin, is_left_out: bool) {
        let (name, settings) = (String::new(), Vec::new());
        let section = Section { name, is_global: true, is_left_out, origin, settings };
        self.result.sections.push(section);
    }

    fn job_option(&mut self, definition: &'static Definition, value: Option<String>, origin: Origin) {
        let value = match value.map(|value| substitute::reserved_words(&value, self.facts)).transpose() {
            Ok(value) => value,
            Err(reason) => {
                self.error(format!("{}={reason}", definition.name));
                return;
            }
        };
        if self.result.sections.is_empty() {
            self.begin_defaults(origin.clone(), false);
        }
        let Some(section) = self.result.sections.last_mut() else {
            return;
        };
        if definition.name == "ioengine"
            && let Some(engine) = &value
        {
            let engine = engines::name_of(engine);
            engine.clone_into(&mut self.engine);
            if section.is_global {
                engine.clone_into(&mut self.defaults_engine);
            }
        }
        section.settings.push(Setting {
            key: definition.name.to_owned(),
            value,
            key_origin: origin.clone(),
            value_origin: origin,
        });
    }

    fn ambiguous(&mut self, text: &str, names: &[&str]) {
        let shown: Vec<_> = names.iter().take(NAMES_SHOWN).map(|name| format!("--{name}")).collect();
        let more = if names.len() > NAMES_SHOWN { ", …" } else { "" };
        let is_secret = names.iter().any(|name| registry::shown(name, "x") != "x");
        let option = if is_secret { split(text).0 } else { text };
        self.error(format!("option \"{option}\" is ambiguous: {}{more}", shown.join(", ")));
        self.skip_value(text);
    }

    /// The text of an unknown option, without what follows a blank or a colon, which may have been meant as a secret
    /// value.
    fn without_secret<'a>(&self, text: &'a str) -> &'a str {
        let Some(place) = text.find([' ', '\t', ':']) else { return text };
        let name = text[..place].trim_start_matches('-');
        let mut all = engines::engines().iter().flat_map(|engine| engine.options);
        let is_close = |known: &str| known.starts_with(name) || Some(known) == self.nearest(name);
        let is_secret = all.any(|option| option.is_secret && option.names().any(is_close));
        if is_secret { &text[..place] } else { text }
    }

    fn unknown(&mut self, text: &str, name: &str) {
        let owners = registry::find_any_engine(name);
        let option = shortened(self.without_secret(split(text).0));
        let message = if owners.is_empty() {
            let meant = self.nearest(name).map(|meant| format!("--{meant}"));
            format!("unknown option \"{option}\"{}", spelling::did_you_mean(meant))
        } else {
            format!(
                "option \"{option}\" belongs to {}, which has to be chosen before it; here the engine is {}",
                owner_names(&owners.iter().map(|(engine, _)| engine.name).collect::<Vec<_>>()),
                self.engine
            )
        };
        self.error(message);
        self.skip_value(text);
    }

    /// The word after an unknown option is its value rather than a job file.
    fn skip_value(&mut self, text: &str) {
        let is_value = |word: &OsString| !word.as_encoded_bytes().starts_with(b"-");
        if !text.contains('=') && self.words.get(self.position).is_some_and(is_value) {
            self.position += 1;
        }
    }

    fn error(&mut self, message: String) {
        self.errors.push(Diagnostic { origin: Some(Origin::CommandLine(self.position)), message });
    }

    fn warn(&mut self, message: String) {
        self.warnings.push(Diagnostic { origin: Some(Origin::CommandLine(self.position)), message });
    }
}

/// `ioengine=libaio`, or a choice of several, for a message.
pub(crate) fn owner_names(engines: &[&str]) -> String {
    match engines {
        [one] => format!("ioengine={one}"),
        several => format!("ioengine={}", several.join(" or ")),
    }
}

fn by_letter(letter: char) -> Option<&'static RunOption> {
    run_options::ALL.iter().find(|option| option.short == letter)
}

fn split(body: &str) -> (&str, Option<&str>) {
    match body.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (body, None),
    }
}
