//! From words to an invocation: parses the command line, then its job files, then makes typed jobs.

use crate::assemble::{Assembler, in_file_order};
use crate::clients::{self, Launched, SentFile, SentJobs};
use crate::command_line::{self, Given, Scanned};
use crate::jobfile::{self, Surroundings, Texts};
use crate::profiles::Profile;
use crate::repeat::{self, Repeated};
use crate::rules;
use crate::run_options::{Asked, DEBUG_CATEGORIES, Question};
use crate::section::Section;
use crate::system_variables::MachineFacts;
use crate::{
    Diagnostic, Invocation, JobOptions, Name, Origin, OutputFormat, RunOptions, check_web, commands, help,
    showcmd, usage,
};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

/// Parses a command line, without the program's name.
///
/// Reads the job files, `-` from standard input. `environment` gives the values of `${NAME}` in them.
///
/// # Errors
/// All mistakes in the command line and the job files, with their places.
pub fn parse(
    args: &[OsString],
    environment: &dyn Fn(&str) -> Option<String>,
    name: Name,
) -> Result<Invocation, Vec<Diagnostic>> {
    parse_with(args, environment, &mut std::io::stdin(), name)
}

/// [`parse`] with a given standard input.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(
    args: &[OsString],
    environment: &dyn Fn(&str) -> Option<String>,
    standard_input: &mut dyn Read,
    name: Name,
) -> Result<Invocation, Vec<Diagnostic>> {
    let texts = Texts::OnDisk;
    let surroundings =
        Surroundings { environment, facts: MachineFacts::of_this_machine(), standard_input, texts, name };
    parse_in(args, surroundings, name)
}

/// Parses job files that another machine has sent, with the facts and the environment of this one. Reads local job
/// files and their includes if that is permitted. As on a server of fio, the jobs of all files run together, and the
/// defaults of a file also apply to the files after it.
///
/// # Errors
/// All mistakes in the job files, with their places.
pub fn parse_sent(
    sent: &SentJobs,
    environment: &dyn Fn(&str) -> Option<String>,
    may_read: &dyn Fn(&Path) -> Result<(), String>,
    name: Name,
) -> Result<Invocation, Vec<Diagnostic>> {
    let mut surroundings = Surroundings {
        environment,
        facts: MachineFacts::of_this_machine(),
        standard_input: &mut std::io::empty(),
        texts: Texts::OnDisk,
        name,
    };
    let asked = Asked { run: sent.run.clone(), sections: sent.sections.clone(), ..Asked::default() };
    let mut input = Input { asked, together: true, ..Input::default() };
    for file in &sent.files {
        let (path, texts) = match file {
            SentFile::Here(path) => (path, Texts::Sent(&sent.texts)),
            SentFile::There(path) => (path, Texts::Served(may_read)),
        };
        surroundings.texts = texts;
        let sections =
            jobfile::read(path.as_ref(), &mut surroundings, &mut input.errors, &mut input.warnings);
        input.paths.push(path.clone());
        input.files.push(sections);
    }
    input.invocation(name)
}

/// The options of the run on this command line. `--debug` has to be known before parsing starts, because parsing is
/// traced too. Mistakes are left to [`parse`].
pub fn run_options(args: &[OsString]) -> RunOptions {
    let Scanned { asked, .. } = command_line::scan(
        args,
        &MachineFacts::of_this_machine(),
        Name::Fio,
        &mut Vec::new(),
        &mut Vec::new(),
    );
    asked.run
}

/// The role of a process that a launcher has started as one of many (`--mpi`); `None` = no launcher has. This has to be
/// known before parsing starts, because only one of the processes gets the job files. Mistakes are left to [`parse`].
pub fn launched(args: &[OsString]) -> Option<Launched> {
    let Scanned { asked, .. } = command_line::scan(
        args,
        &MachineFacts::of_this_machine(),
        Name::Fio,
        &mut Vec::new(),
        &mut Vec::new(),
    );
    clients::launched(&asked)
}

/// The runs that `--repeat` requests; `None` = no repeats, or there are mistakes, which [`parse`] reports. Job files
/// are not read.
pub fn repeated(args: &[OsString], name: Name) -> Option<Repeated> {
    let mut errors = Vec::new();
    let Scanned { asked, files, options, .. } =
        command_line::scan(args, &MachineFacts::of_this_machine(), name, &mut errors, &mut Vec::new());
    if !errors.is_empty() || name.is_strict() {
        return None;
    }
    let is_of_each = |given: &&Given| !(given.is_of_run && repeat::OF_ALL_RUNS.contains(&given.name));
    let common = options.iter().filter(is_of_each).map(Given::word).collect();
    repeat::repeated(&asked, common, files)
}

/// [`parse`] with given values for everything that it otherwise gets from the system.
pub(crate) fn parse_in(
    args: &[OsString],
    mut surroundings: Surroundings<'_>,
    name: Name,
) -> Result<Invocation, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let Scanned { mut asked, mut sections, files, .. } =
        command_line::scan(args, &surroundings.facts, name, &mut errors, &mut warnings);
    let profile = asked.profile.take();
    if let Some(question) = asked.question.take() {
        let profile = profile.map(|chosen| chosen.profile);
        errors.extend(help_about_nothing(&question, &files).filter(|_| !name.is_strict()));
        return if errors.is_empty() { Ok(answer(&question, name, profile)) } else { Err(errors) };
    }
    if let Some(profile) = profile.filter(|_| errors.is_empty()) {
        errors.extend(jobs_beside_profile(&sections, &files));
        match profile.sections(&surroundings.facts) {
            Ok(more) => sections.extend(more.into_iter().map(|section| {
                let is_left_out = !section.is_global && !asked.wants(&section.name);
                Section { is_left_out, ..section }
            })),
            Err(problem) => errors.push(problem),
        }
    }

    warnings.extend(asked.others.idle(&asked.run));
    warnings.extend(page_of_no_run(&asked));
    errors.extend(page_for_all(&asked));
    let paths: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    if let Some(elsewhere) =
        on_other_machines(&asked, &sections, &files, &mut surroundings, (&mut errors, &mut warnings))
    {
        let told = if errors.is_empty() && asked.run.warnings_fatal { warnings_of(&elsewhere) } else { &[] };
        errors.extend_from_slice(told);
        errors.extend(format_of_fio(&asked, name));
        errors.extend(page_without_place(&asked));
        errors.extend(ours_alone(&asked, name));
        return if errors.is_empty() { Ok(elsewhere) } else { Err(tidy(errors, paths)) };
    }
    let files =
        files.iter().map(|file| jobfile::read(file, &mut surroundings, &mut errors, &mut warnings)).collect();
    Input { asked, sections, files, paths, together: false, errors, warnings }.invocation(name)
}

/// The mistake of asking for the help of a subcommand that does not exist: `iolite agent --help`.
fn help_about_nothing(question: &Question, files: &[OsString]) -> Option<Diagnostic> {
    let word = files.first().filter(|_| matches!(question, Question::Help { .. }))?;
    if word == "-" || Path::new(word).exists() {
        return None;
    }
    let word = word.to_string_lossy();
    let meant = commands::hint_at(&word);
    let message =
        format!("{word}: neither a subcommand nor a job file{meant} (iolite --help lists the subcommands)");
    Some(Diagnostic { origin: None, message })
}

/// The run on other machines, or the server for them, that the command line requests.
fn on_other_machines(
    asked: &Asked,
    sections: &[Section],
    files: &[OsString],
    surroundings: &mut Surroundings<'_>,
    (errors, warnings): (&mut Vec<Diagnostic>, &mut Vec<Diagnostic>),
) -> Option<Invocation> {
    let has_jobs = !files.is_empty() || sections.iter().any(|section| !section.is_global);
    if let Some(serving) = clients::serving(asked, sections, has_jobs, errors, warnings) {
        return Some(Invocation::Serve(serving));
    }
    (!asked.others.clients.is_empty() || asked.others.mpi.is_some()).then(|| {
        let run = clients::elsewhere(asked, sections, files, surroundings, errors, warnings);
        Invocation::RunElsewhere(Box::new(run))
    })
}

fn warnings_of(invocation: &Invocation) -> &[Diagnostic] {
    match invocation {
        Invocation::Serve(serving) => &serving.warnings,
        Invocation::RunElsewhere(run) => &run.warnings,
        _ => &[],
    }
}

/// The parsed input, before jobs are made from it.
#[derive(Default)]
struct Input {
    asked: Asked,
    sections: Vec<Section>,
    files: Vec<Vec<Section>>,
    paths: Vec<String>,
    /// The jobs of all files run together, as if they were in one file.
    together: bool,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl Input {
    /// Makes typed jobs.
    fn invocation(self, name: Name) -> Result<Invocation, Vec<Diagnostic>> {
        let Input { mut asked, sections, files, paths, together, mut errors, mut warnings } = self;
        let mut assembler = Assembler::new(name, &mut errors, &mut warnings);
        let mut batches = batches(&asked, &sections, &files, together, &mut assembler);
        assembler.finish();
        if name.is_strict() {
            warnings.extend(batches.iter_mut().flatten().filter_map(rules::keep_percentiles_of_fio));
        }
        if asked.append_terse || asked.run.output_format.contains(&OutputFormat::Terse) {
            warnings.extend(batches.iter().flatten().filter_map(rules::percentiles_beyond_terse));
        }
        warnings.extend(sections_not_found(&asked, &sections, &files));
        warnings.extend(match together {
            true => defaults_shared(&files),
            false => defaults_not_shared(&sections, &files),
        });
        if errors.is_empty() {
            warnings.extend(files_without_jobs(&paths, &files, together));
        }
        errors.extend(format_of_fio(&asked, name));
        errors.extend(page_without_place(&asked));
        errors.extend(ours_alone(&asked, name));

        let errors = tidy(errors, paths.clone());
        let warnings = tidy(warnings, paths.clone());
        if !errors.is_empty() {
            // Warnings are reported as well: they may explain a mistake.
            let told = warnings.iter().map(Diagnostic::as_warning);
            // Warnings come before the mistakes at the same place, for the same reason.
            return Err(tidy(told.chain(errors).collect(), paths));
        }
        if asked.run.warnings_fatal && !warnings.is_empty() {
            return Err(warnings);
        }
        if asked.showcmd {
            // The defaults of the command line apply to the first file.
            let mut defaults: Vec<&Section> = sections.iter().filter(|section| section.is_global).collect();
            let lines = files.iter().map(|file| {
                showcmd::render(name.word(), &std::mem::take(&mut defaults), &selected(file, &asked))
            });
            return Ok(Invocation::Print { text: lines.collect(), status: 0 });
        }
        if batches.is_empty() && !asked.run.parse_only {
            return no_jobs(warnings, name);
        }
        if asked.append_terse && !asked.run.output_format.contains(&OutputFormat::Terse) {
            asked.run.output_format.push(OutputFormat::Terse);
        }
        Ok(Invocation::Run { batches, run: Box::new(asked.run), warnings })
    }
}

/// The jobs of each file, or of all files together. The jobs of the command line join those of the first file.
fn batches(
    asked: &Asked,
    sections: &[Section],
    files: &[Vec<Section>],
    together: bool,
    assembler: &mut Assembler<'_>,
) -> Vec<Vec<JobOptions>> {
    let mut batches = Vec::new();
    let mut batch = command_line_jobs(sections, assembler);
    for (index, file) in files.iter().enumerate() {
        if index > 0 && !together {
            assembler.forget_defaults();
            batches.push(std::mem::take(&mut batch));
        }
        for section in file {
            let settings = in_file_order(&section.settings);
            if section.is_global {
                assembler.defaults(&settings);
            } else if !asked.wants(&section.name) {
                assembler.leave_out(&settings);
            } else {
                batch.push(assembler.job(section, &settings));
            }
        }
    }
    batches.push(batch);
    batches.retain(|batch| !batch.is_empty());
    batches
}

fn command_line_jobs(sections: &[Section], assembler: &mut Assembler<'_>) -> Vec<JobOptions> {
    let mut jobs = Vec::new();
    for section in sections {
        let settings: Vec<_> = section.settings.iter().collect();
        if section.is_global {
            assembler.defaults(&settings);
            if section.is_left_out {
                assembler.leave_out(&[]);
            }
        } else if section.is_left_out {
            assembler.leave_out(&settings);
        } else {
            let mut job = assembler.job(section, &settings);
            // Values are trimmed; names are not, just as names between brackets.
            job.name.clone_from(&section.name);
            jobs.push(job);
        }
    }
    jobs
}

/// The sections of a file that `--section` selects: all defaults, and the requested jobs.
fn selected<'a>(file: &'a [Section], asked: &Asked) -> Vec<&'a Section> {
    file.iter().filter(|section| section.is_global || asked.wants(&section.name)).collect()
}

fn sections_not_found(asked: &Asked, sections: &[Section], files: &[Vec<Section>]) -> Vec<Diagnostic> {
    let is_job = |name: &String| {
        files.iter().flatten().chain(sections).any(|section| !section.is_global && section.name == *name)
    };
    let is_harmless = |name: &String| name == "global" && asked.sections.len() > 1;
    let missing = asked.sections.iter().filter(|name| !is_job(name) && !is_harmless(name));
    let why = |name: &str| match name {
        "global" => "it holds defaults, and is not a job; name those that are wanted",
        _ => "there is no section of this name",
    };
    missing
        .map(|name| Diagnostic {
            origin: Some(Origin::CommandLine(0)),
            message: format!("--section={name}: {}", why(name)),
        })
        .collect()
}

/// Defaults given on the command line apply to its own jobs and the first job file, as in fio.
fn defaults_not_shared(sections: &[Section], files: &[Vec<Section>]) -> Option<Diagnostic> {
    let defaults = sections.iter().find(|section| section.is_global && !section.settings.is_empty())?;
    (files.len() > 1).then(|| Diagnostic {
        origin: Some(defaults.origin.clone()),
        message: "options before --name, or behind --name=global, hold for the first job file only"
            .to_owned(),
    })
}

/// Defaults of a job file on another machine also apply to the files after it, as in fio.
fn defaults_shared(files: &[Vec<Section>]) -> Option<Diagnostic> {
    let is_default = |section: &&Section| section.is_global && !section.settings.is_empty();
    let before_last = files.len().saturating_sub(1);
    let defaults = files[..before_last].iter().flatten().find(is_default)?;
    Some(Diagnostic {
        origin: Some(defaults.origin.clone()),
        message: "on another machine, these options hold for the job files behind this one as well"
            .to_owned(),
    })
}

/// A job file without a job is probably a mistake, unless the others have its defaults.
fn files_without_jobs(paths: &[String], files: &[Vec<Section>], together: bool) -> Vec<Diagnostic> {
    let is_used = |sections: &[Section]| match together {
        true => !sections.is_empty(),
        false => sections.iter().any(|section| !section.is_global),
    };
    let empty = paths.iter().zip(files).filter(|(_, sections)| !is_used(sections));
    let told = empty.map(|(path, sections)| {
        let what = if sections.is_empty() { "no section at all" } else { "only [global]" };
        Diagnostic { origin: None, message: format!("{path}: defines no job; it has {what}") }
    });
    told.collect()
}

/// A profile brings its own jobs, so no other jobs may be given.
fn jobs_beside_profile(sections: &[Section], files: &[OsString]) -> Option<Diagnostic> {
    let own =
        sections.iter().find(|section| !section.is_global).map(|section| format!("--name={}", section.name));
    let own = own.or_else(|| files.first().map(|file| file.display().to_string()))?;
    let message = format!("{own}: --profile brings its own jobs; run other jobs without it");
    Some(Diagnostic { origin: Some(Origin::CommandLine(0)), message })
}

/// Refuses a page that an eavesdropper could read on the network.
fn page_for_all(asked: &Asked) -> Option<Diagnostic> {
    [("web", asked.run.web), ("metrics", asked.run.metrics)].into_iter().find_map(|(option, address)| {
        let address = address?;
        let why = check_web(address, asked.run.web_tls.as_ref(), "--web-tls").err()?;
        let message = format!("--{option}={address}: {why}");
        Some(Diagnostic { origin: Some(Origin::CommandLine(0)), message })
    })
}

/// Options for the page of a run have no effect without such a page.
fn page_of_no_run(asked: &Asked) -> Option<Diagnostic> {
    let run = &asked.run;
    let message = match run.is_served() {
        false if run.web_linger.is_some() => "--web-linger: has no effect without --web or --metrics",
        false if run.web_tls.is_some() => "--web-tls: has no effect without --web or --metrics",
        true if asked.others.server.is_some() && run.web.is_some() => "--web: has no effect with --server",
        _ => return None,
    };
    Some(Diagnostic { origin: Some(Origin::CommandLine(0)), message: message.to_owned() })
}

/// fio does not have all formats, and refuses jobs with others.
fn format_of_fio(asked: &Asked, name: Name) -> Option<Diagnostic> {
    let other = asked.run.output_format.iter().find(|format| name.is_strict() && !format.is_fios())?.name();
    let message =
        format!("--output-format={other}: unknown format \"{other}\" (normal, json, json+ or terse)");
    Some(Diagnostic { origin: Some(Origin::CommandLine(0)), message })
}

/// A page beside other formats goes into a separate file, whose name follows from the report's.
fn page_without_place(asked: &Asked) -> Option<Diagnostic> {
    let run = &asked.run;
    if !run.output_format.contains(&OutputFormat::Html) {
        return None;
    }
    let has_others = run.output_format.len() > 1 || asked.append_terse;
    let why = match &run.output {
        None if has_others => {
            "beside other formats, the page goes into a separate file, FILE.html, and needs --output=FILE.json or the like"
        }
        Some(output)
            if has_others && output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html")) =>
        {
            "the page goes beside the other formats, into FILE.html; give the file of --output another ending, such as .json"
        }
        _ => return None,
    };
    let message = format!("--output-format=html: {why}");
    Some(Diagnostic { origin: Some(Origin::CommandLine(0)), message })
}

/// fio does not store runs, repeat them, or report them over time.
fn ours_alone(asked: &Asked, name: Name) -> Option<Diagnostic> {
    let run = &asked.run;
    let ours = [
        ("save", run.save.is_some()),
        ("store", run.store.is_some()),
        ("repeat", run.repeat.is_some()),
        ("no-series", run.no_series),
        ("color", run.color != crate::ColorWhen::Auto),
        ("live", run.live != crate::LiveView::Line),
    ];
    let (option, _) = ours.into_iter().find(|(_, is_given)| *is_given)?;
    name.is_strict().then(|| Diagnostic {
        origin: Some(Origin::CommandLine(0)),
        message: format!("unknown option \"{option}\" (of iolite, it is known under that name only)"),
    })
}

/// Sorts by place and removes duplicates: a wrong default would otherwise be reported for every job.
///
/// `paths` are the job files in order. Files that they include come after them.
fn tidy(mut diagnostics: Vec<Diagnostic>, mut paths: Vec<String>) -> Vec<Diagnostic> {
    for diagnostic in &diagnostics {
        if let Some(Origin::File { path, .. }) = &diagnostic.origin
            && !paths.contains(path)
        {
            paths.push(path.clone());
        }
    }
    diagnostics.sort_by_key(|diagnostic| match &diagnostic.origin {
        Some(Origin::CommandLine(word)) => (0, *word, 0),
        Some(Origin::File { path, line, column }) => {
            let file = paths.iter().position(|known| known == path).unwrap_or(paths.len());
            (1 + file, *line as usize, *column)
        }
        None => (usize::MAX, 0, 0),
    });
    let mut seen = HashSet::new();
    diagnostics.retain(|diagnostic| seen.insert(diagnostic.to_string()));
    diagnostics
}

/// The text that fio prints when there are no jobs.
pub const NO_JOBS: &str = "No job(s) defined";

fn no_jobs(mut warnings: Vec<Diagnostic>, name: Name) -> Result<Invocation, Vec<Diagnostic>> {
    if warnings.is_empty() {
        let usage = if name.is_strict() { usage::usage(name) } else { usage::first_screen() };
        return Ok(Invocation::NoJobs { usage });
    }
    warnings.push(Diagnostic { origin: None, message: NO_JOBS.to_owned() });
    Err(warnings)
}

fn answer(question: &Question, name: Name, profile: Option<&Profile>) -> Invocation {
    let (text, status) = match question {
        Question::Version => (format!("{}\n", name.version()), 0),
        Question::Help { is_whole: false } if !name.is_strict() => (usage::first_screen(), 0),
        Question::Help { .. } => (usage::usage(name), 0),
        Question::CommandHelp(option) => {
            let help = match profile {
                Some(profile) => help::profile_help(profile, option.as_deref(), name),
                None => help::command_help(option.as_deref(), name),
            };
            (help.text, help.status)
        }
        Question::EngineHelp(engine) => {
            let help = help::engine_help(engine.as_deref(), name);
            (help.text, help.status)
        }
        Question::SelfTest(test) => return Invocation::Test(test.clone()),
        Question::InflateLog(file) => return Invocation::InflateLog(file.clone()),
        Question::DebugCategories => (format!("debug categories: {}, all\n", DEBUG_CATEGORIES.join(", ")), 0),
    };
    Invocation::Print { text, status }
}
