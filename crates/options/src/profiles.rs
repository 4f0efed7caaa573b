//! Profiles: built-in jobs with a few options of their own.
//!
//! `--profile=NAME` adds a profile's jobs. After it on the command line its options are known, and take precedence
//! over job options of the same name; ordinary job options apply to the profile's jobs as defaults. A profile makes
//! sections of plain settings, which become jobs like those of any job file.

mod act;
mod tiobench;

use crate::definition::{Definition, Given, Kind};
use crate::section::{Section, Setting};
use crate::system_variables::MachineFacts;
use crate::values::{Notes, SECOND, integer, time};
use crate::{Diagnostic, Origin};

/// Makes the sections from the profile's options, or says which option is missing.
type Jobs = fn(&Wishes<'_>) -> Result<Vec<Section>, String>;

/// A profile.
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Its own options.
    pub options: &'static [&'static Definition],
    jobs: Jobs,
}

impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All profiles.
pub static ALL: &[Profile] = &[tiobench::PROFILE, act::PROFILE];

/// The profile of this name.
pub fn find(name: &str) -> Option<&'static Profile> {
    ALL.iter().find(|profile| profile.name == name)
}

/// The profile that has an option of this name, and the option.
pub(crate) fn find_option(name: &str) -> Option<(&'static Profile, &'static Definition)> {
    ALL.iter().find_map(|profile| Some((profile, profile.option(name)?)))
}

/// An option of a profile that is given for a job. fio accepts it without effect; many published job files have
/// `threads=1`.
///
/// # Errors
/// The value does not have the option's type.
pub(crate) fn ignore(given: &mut Given<'_>) -> Result<(), String> {
    match given.definition.kind {
        Kind::Flag if given.text.is_none() => {}
        Kind::Int | Kind::Flag | Kind::Bool => {
            // The limits are the profile's.
            integer(given.required()?, given.kb_base, &mut given.notes)?;
        }
        Kind::Time => {
            // fio also accepts a duration below 0.
            let text = given.required()?;
            time(text.strip_prefix('-').unwrap_or(text), SECOND, &mut given.notes)?;
        }
        _ => {}
    }
    let profile = find_option(given.definition.name).map_or("", |(profile, _)| profile.name);
    given.notes.push(format!("is an option of --profile={profile}, and has no effect in a job"));
    Ok(())
}

impl Profile {
    /// Its option of this name.
    pub fn option(&self, name: &str) -> Option<&'static Definition> {
        self.options.iter().find(|definition| definition.answers_to(name)).copied()
    }
}

/// A chosen profile, and the options that were given for it.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// The profile.
    pub profile: &'static Profile,
    /// Options and values, in the order given.
    pub values: Vec<(&'static str, String)>,
}

impl Chosen {
    /// Adds an option with its value, if the value is valid.
    pub fn take(&mut self, definition: &'static Definition, value: Option<&str>) -> Result<(), String> {
        let text = value.unwrap_or("1");
        let mut notes = Notes::default();
        match definition.kind {
            Kind::Int | Kind::Flag | Kind::Bool => {
                let number = integer(text, 1024, &mut notes)?;
                if number < 0 || (number == 0 && definition.kind == Kind::Int) {
                    return Err("must be at least 1".to_owned());
                }
            }
            Kind::Time => {
                time(text, SECOND, &mut notes)?;
            }
            _ => {}
        }
        if let Some(note) = notes.pop() {
            return Err(note);
        }
        self.values.push((definition.name, text.to_owned()));
        Ok(())
    }

    /// The sections of the profile's jobs.
    pub fn sections(&self, facts: &MachineFacts) -> Result<Vec<Section>, Diagnostic> {
        let origin = Origin::CommandLine(0);
        let wishes = Wishes { chosen: self, facts };
        let sections = (self.profile.jobs)(&wishes).map_err(|problem| Diagnostic {
            origin: Some(origin),
            message: format!("--profile={}: {problem}", self.profile.name),
        })?;
        for section in &sections {
            let settings: Vec<String> = section
                .settings
                .iter()
                .map(|setting| match &setting.value {
                    Some(value) => format!("{}={value}", setting.key),
                    None => setting.key.clone(),
                })
                .collect();
            tracing::debug!(target: "profile", "{}: [{}] {}", self.profile.name, section.name, settings.join(" "));
        }
        Ok(sections)
    }
}

/// The options from which a profile makes its jobs.
pub(crate) struct Wishes<'a> {
    chosen: &'a Chosen,
    facts: &'a MachineFacts,
}

impl Wishes<'_> {
    /// The last value given for an option.
    fn text(&self, option: &Definition) -> Option<&str> {
        let mut given = self.chosen.values.iter().rev();
        given.find(|(name, _)| *name == option.name).map(|(_, value)| value.as_str())
    }

    /// The same as a number. (It was checked when it was given.)
    fn number(&self, option: &Definition) -> Option<u64> {
        integer(self.text(option)?, 1024, &mut Notes::default())
            .ok()
            .and_then(|number| u64::try_from(number).ok())
    }

    /// The same in seconds, rounded up.
    fn seconds(&self, option: &Definition) -> Option<u64> {
        time(self.text(option)?, SECOND, &mut Notes::default()).ok().map(|time| time.div_ceil(SECOND))
    }
}

/// A section; without a name it holds defaults.
fn section(name: &str, settings: &[(&str, &str)]) -> Section {
    let origin = Origin::CommandLine(0);
    let setting = |(key, value): &(&str, &str)| Setting {
        key: (*key).to_owned(),
        value: (!value.is_empty()).then(|| (*value).to_owned()),
        key_origin: origin.clone(),
        value_origin: origin.clone(),
    };
    Section {
        name: name.to_owned(),
        is_global: name.is_empty(),
        is_left_out: false,
        settings: settings.iter().map(setting).collect(),
        origin: origin.clone(),
    }
}
