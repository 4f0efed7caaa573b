//! The second phase: sections become typed jobs.
//!
//! A job starts as a copy of the defaults that apply at its place: those of the language, changed by the `[global]`
//! sections before it. The options of a job file are applied in fio's order, regardless of the order in which they are
//! written: units first, because they give numbers their meaning; an engine's own options after the choice of the
//! engine; file names last. On a command line they are applied as written.

use crate::command_line::owner_names;
use crate::dependencies::Loners;
use crate::engines::E4defragOptions;
use crate::section::{Section, Setting, could_be_a_typing_mistake, shortened};
use crate::spelling::did_you_mean;
use crate::{Diagnostic, JobOptions, Name, engines, registry};
use std::path::Path;

/// A file with more mistakes than this is not a job file. Suggesting a correction for each line takes time.
const ERRORS_WITH_SUGGESTION: usize = 100;

/// Makes jobs from the sections of one batch after another.
pub(crate) struct Assembler<'a> {
    /// The defaults of the language.
    pristine: JobOptions,
    /// The defaults that apply at this place.
    defaults: JobOptions,
    /// The options that changed the defaults.
    default_given: Vec<(String, String)>,
    loners: Loners,
    /// Workers of the jobs so far that `--section` leaves out.
    left_out: u64,
    name: Name,
    errors: &'a mut Vec<Diagnostic>,
    warnings: &'a mut Vec<Diagnostic>,
}

impl<'a> Assembler<'a> {
    /// An assembler at the start of a batch, in a program of this name.
    pub fn new(name: Name, errors: &'a mut Vec<Diagnostic>, warnings: &'a mut Vec<Diagnostic>) -> Self {
        let pristine = JobOptions::default();
        let loners = Loners::of(name);
        Assembler {
            defaults: pristine.clone(),
            pristine,
            default_given: Vec::new(),
            loners,
            left_out: 0,
            name,
            errors,
            warnings,
        }
    }

    /// Discards all changes to the defaults: each job file starts with those of the language.
    pub fn forget_defaults(&mut self) {
        self.defaults = self.pristine.clone();
        self.default_given.clear();
    }

    /// Adds defaults for the jobs that follow.
    pub fn defaults(&mut self, settings: &[&Setting]) {
        let mut defaults = self.defaults.clone();
        let given = self.apply(&mut defaults, settings);
        self.defaults = defaults;
        self.default_given.extend(given);
    }

    /// Makes a job from a section.
    pub fn job(&mut self, section: &Section, settings: &[&Setting]) -> JobOptions {
        let mut job = self.defaults.clone();
        job.name.clone_from(&section.name);
        job.files.names_are_own = false;
        job.given_global.clone_from(&self.default_given);
        job.left_out_before = self.left_out;
        job.given = self.apply(&mut job, settings);
        if job.files.names_are_own
            && !self.defaults.files.filename.is_empty()
            && job.files.filename != self.defaults.files.filename
        {
            let message = format!(
                "filename replaces that of the defaults ({}); fio would use both, which one filename= with all names does",
                self.defaults.files.filename.join(":")
            );
            self.warnings.push(Diagnostic { origin: job.origins.get("filename").cloned(), message });
        }
        if let Some(directory) = job.files.directory.first()
            && !job.files.filename.is_empty()
            && job.files.names_in.as_ref() != Some(directory)
        {
            let message = format!(
                "directory={directory}: comes after filename, and so its files are not in it (as with fio); give \
                 directory first"
            );
            self.warnings.push(Diagnostic { origin: job.origins.get("directory").cloned(), message });
        }
        if section.job_name() != section.name {
            // Files are named after the section, even if `name=` renames the job.
            job.files.filename_format = files_named_after(&section.name, &job.files.filename_format);
        }
        if let Some(directory) = job.files.directory.first()
            && let Some(own) = job.engine.of_mut::<E4defragOptions>()
        {
            own.settle_donor(Path::new(directory));
        }
        registry::finish(&mut job, self.warnings);
        self.loners.look_at(&job);
        job
    }

    /// Counts a job that `--section` leaves out. Its mistakes are not reported.
    pub fn leave_out(&mut self, settings: &[&Setting]) {
        let mut job = self.defaults.clone();
        for setting in settings {
            if let Some(definition) = registry::find_job(&setting.key).filter(|found| found.name == "numjobs")
            {
                let (value, origin) = (setting.value.as_deref(), setting.value_origin.clone());
                // The mistakes of a job that is left out are not reported.
                let _ = registry::apply(&mut job, definition, value, origin, &mut Vec::new(), self.name);
            }
        }
        self.left_out = self.left_out.saturating_add(job.schedule.numjobs.into());
    }

    /// Called after the last job: warns about options that had an effect on none of them.
    pub fn finish(self) {
        self.warnings.extend(self.loners.warnings());
    }

    fn apply(&mut self, job: &mut JobOptions, settings: &[&Setting]) -> Vec<(String, String)> {
        settings.iter().filter_map(|setting| self.setting(job, setting)).collect()
    }

    /// Applies one setting. Returns its canonical name and text, or `None` if it is wrong.
    fn setting(&mut self, job: &mut JobOptions, setting: &Setting) -> Option<(String, String)> {
        let applied = self.apply_one(job, setting);
        tracing::debug!(
            target: "parse",
            "{}: {}{} {}",
            setting.key_origin,
            registry::shown_line(&setting.key),
            setting.value.as_ref().map(|value| format!("={}", registry::shown(&setting.key, value))).unwrap_or_default(),
            if applied.is_some() { "applied" } else { "refused" }
        );
        applied
    }

    fn apply_one(&mut self, job: &mut JobOptions, setting: &Setting) -> Option<(String, String)> {
        let Some(definition) = registry::find(&setting.key, &job.ioengine) else {
            let error = unknown(setting, &job.ioengine, self.errors.len() < ERRORS_WITH_SUGGESTION);
            self.errors.push(error);
            return None;
        };
        let value = setting.value.as_deref();
        let needs_value = match value {
            None => !definition.kind.value_is_optional(),
            Some(text) => text.is_empty(),
        };
        if needs_value && !definition.stands_alone {
            let message = format!("option \"{}\" requires a value", setting.key);
            self.errors.push(Diagnostic { origin: Some(setting.value_origin.clone()), message });
            return None;
        }
        let origin = setting.value_origin.clone();
        if let Err(error) = registry::apply(job, definition, value, origin, self.warnings, self.name) {
            self.errors.push(error);
            // An engine that cannot be used is one mistake; its options are not reported as well.
            if definition.name == "ioengine"
                && let Some(engine) = value.and_then(engines::engine)
            {
                job.choose_engine(engine);
            }
            // So is a wrong runtime; nothing is said about the lack of one.
            if definition.name == "runtime" {
                job.schedule.runtime = 1;
            }
            return None;
        }
        if definition.name == "steadystate" {
            tracing::debug!(target: "parse", "set steady state {}", job.measurement.steadystate.threshold());
        }
        let value = value.unwrap_or_default().trim();
        Some((definition.name.to_owned(), registry::shown(definition.name, value).into_owned()))
    }
}

/// A `filename_format` that spells out the job's name.
pub(crate) fn files_named_after(section: &str, format: &str) -> String {
    format.replace("$jobname", section)
}

/// A section's settings, in the order in which fio applies (and reports) those of a job file.
pub(crate) fn in_file_order(settings: &[Setting]) -> Vec<&Setting> {
    let mut ordered: Vec<_> = settings.iter().collect();
    ordered.sort_by_key(|setting| rank(&setting.key));
    ordered
}

fn rank(key: &str) -> u8 {
    match registry::find_job(key).map(|definition| definition.name) {
        Some("kb_base" | "unit_base" | "lockfile" | "cpus_allowed_policy") => 0,
        Some("filename" | "filename_format") => 2,
        Some(_) => 1,
        None => 3,
    }
}

fn unknown(setting: &Setting, engine: &str, suggest: bool) -> Diagnostic {
    let key = &setting.key;
    let shown = shortened(key);
    let owners: Vec<_> = registry::find_any_engine(key).iter().map(|(engine, _)| engine.name).collect();
    let first_word = key.split_whitespace().next().unwrap_or_default();
    let message = if !owners.is_empty() {
        format!("option \"{shown}\" belongs to {}; here the engine is {engine}", owner_names(&owners))
    } else if first_word != key && setting.value.is_none() && registry::find(first_word, engine).is_some() {
        format!("{}: an option and its value are separated by \"=\"", shortened(registry::shown_line(key)))
    } else {
        let bare = key.trim_start_matches('-');
        let meant = match registry::find(bare, engine) {
            Some(definition) => Some(definition.name),
            None if suggest && could_be_a_typing_mistake(bare) => registry::suggest(bare, engine),
            None => None,
        };
        format!("unknown option \"{shown}\"{}", did_you_mean(meant))
    };
    Diagnostic { origin: Some(setting.key_origin.clone()), message }
}
