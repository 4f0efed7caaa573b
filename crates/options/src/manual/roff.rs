//! The man page, in the macros of man(7).

use super::{VALUES, engine_options, limits, meaning, of_category, value_name};
use crate::commands;
use crate::definition::{Category, Definition};
use crate::engines;
use crate::profiles;
use crate::run_options::{self, Argument};
use crate::wrap::wrapped;

/// The date on the page: that of the version, not of the build, so that builds are reproducible.
const DATE: &str = "2026-11-21";

/// A page that is being written.
struct Page(String);

impl Page {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn section(&mut self, title: &str) {
        self.line(&format!(".SH \"{}\"", escaped(&title.to_uppercase())));
    }

    fn subsection(&mut self, title: &str) {
        self.line(&format!(".SS \"{}\"", escaped(title)));
    }

    /// A paragraph, wrapped so that the source is readable.
    fn text(&mut self, text: &str) {
        let text = wrapped(text, 70);
        text.lines().for_each(|line| self.line(&escaped(line)));
    }

    fn paragraph(&mut self, text: &str) {
        self.line(".PP");
        self.text(text);
    }

    /// A term (already roff) and its meaning.
    fn item(&mut self, term: &str, meaning: &str) {
        self.line(".TP");
        self.line(term);
        self.text(meaning);
    }

    fn example(&mut self, lines: &[&str]) {
        self.line(".PP\n.RS 4\n.nf");
        lines.iter().for_each(|line| self.line(&escaped(line)));
        self.line(".fi\n.RE");
    }
}

/// The whole page.
pub fn roff() -> String {
    let mut page = Page(String::from(
        ".\\\" Made from the table of options by: cargo run -p iolite-options --example manual\n",
    ));
    page.line(&format!(".TH IOLITE 1 \"{DATE}\" \"iolite {}\" \"User Commands\"", env!("CARGO_PKG_VERSION")));
    page.section("name");
    page.line("iolite \\- measure what storage does under a workload that you describe");
    page.section("synopsis");
    page.line(".B iolite\n[\\fIoptions\\fR] [\\fIjob options\\fR] [\\fIjob files\\fR]\n.br");
    for command in commands::ALL {
        let options = if command.options.is_empty() { "" } else { " [\\fIoptions\\fR]" };
        let of_jobs = if command.takes_job_options {
            format!(" \\fI{}\\fR", escaped(commands::JOB_OPTIONS))
        } else {
            String::new()
        };
        let operand = match command.operand {
            "" => String::new(),
            words => format!(" \\fI{}\\fR", escaped(words)),
        };
        page.line(&format!(
            ".B iolite {}\n{}\n.br",
            command.name,
            format!("{options}{of_jobs}{operand}").trim_start()
        ));
    }
    // The last line of the synopsis has no line break after it.
    page.0.truncate(page.0.len() - ".br\n".len());
    description(&mut page);
    options(&mut page);
    subcommands(&mut page);
    of_profiles(&mut page);
    job_files(&mut page);
    job_options(&mut page);
    ending(&mut page);
    page.0
}

fn description(page: &mut Page) {
    page.section("description");
    page.text(
        "Iolite performs exactly the I/O that jobs describe, against files and block devices, and tells what the \
         storage did: IOPS, bandwidth, latency with its distribution, CPU cost, queue depths, disk utilisation. It \
         speaks the language of fio: the same job files, options, command line and output.",
    );
    page.paragraph(
        "Jobs are described in job files, or on the command line by the same options with dashes before them: each \
         --name begins a job, and options before the first --name are defaults for all. Options have one dash or \
         two; their values stand behind = or are the next word; names may be abbreviated. Several job files run one \
         after the other; - is standard input.",
    );
    page.paragraph(
        "A job that writes or trims overwrites what it is pointed at. Devices that are in use are refused unless \
         allow_mounted_write=1; with --readonly every job is that would change, make, extend or remove anything.",
    );
}

fn options(page: &mut Page) {
    page.section("options");
    for option in run_options::ALL {
        let value = match option.argument {
            Argument::None => String::new(),
            Argument::Required(value) | Argument::Clearable(value) | Argument::MayBeEmpty(value) => {
                format!("=\\fI{}\\fR", escaped(value))
            }
            Argument::Optional(value) => format!("[=\\fI{}\\fR]", escaped(value)),
        };
        let name = escaped(option.name);
        let mut meaning = format!("{}.", option.help.join(" ").trim_end_matches('.'));
        if option.land.is_none() {
            meaning = format!("{meaning} {}", super::NOT_YET);
        }
        page.item(&format!("\\fB\\-{}\\fR, \\fB\\-\\-{name}\\fR{value}", option.short), &meaning);
    }
}

fn subcommands(page: &mut Page) {
    page.section("subcommands");
    page.text(
        "Programs of their own, called by a first word that is exactly their name. If there is a job file of that \
         name, it is run instead.",
    );
    for command in commands::ALL {
        page.subsection(format!("iolite {} {}", command.name, command.operand).trim_end());
        page.text(&format!("{}. {}", command.help, command.details));
        for option in command.options {
            let value = if option.value.is_empty() {
                String::new()
            } else {
                format!(" \\fI{}\\fR", escaped(option.value))
            };
            let spelled = |name: String| format!("\\fB{}\\fR", name.replace('-', "\\-"));
            let names: Vec<String> = option.spellings().map(spelled).collect();
            page.item(&format!("{}{value}", names.join(", ")), &format!("{}.", option.help));
        }
    }
}

fn of_profiles(page: &mut Page) {
    page.section("profiles");
    page.text(
        "Jobs that need no job file. The options of a profile are known behind \"--profile\" on the command line; a job \
         option that is given there is a default of its jobs.",
    );
    for profile in profiles::ALL {
        page.subsection(profile.name);
        page.text(&format!("{}.", profile.help));
        for definition in profile.options {
            let term =
                format!("\\fB\\-\\-{}\\fR=\\fI{}\\fR", escaped(definition.name), value_name(definition));
            let default = definition.default.map(|text| format!(" Default {text}.")).unwrap_or_default();
            page.item(&term, &format!("{}.{default}", definition.help));
        }
    }
}

fn job_files(page: &mut Page) {
    page.section("job files");
    page.text(
        "A job file has sections, each with a line [name] and lines option=value behind it. Each section is a job; \
         [global] sections hold defaults for the jobs behind them. Lines that begin with ; or # are comments. include \
         FILE takes the lines of another file in. ${NAME} stands for a variable of the environment; $pagesize, \
         $mb_memory and $ncpus for facts about the machine.",
    );
    page.example(&[
        "[global]",
        "filename=/tmp/test",
        "size=1g",
        "",
        "[reader]",
        "rw=randread",
        "bs=4k",
        "iodepth=16",
        "ioengine=libaio",
    ]);
    page.subsection("Values");
    for (name, meaning) in VALUES {
        page.item(&format!("\\fI{}\\fR", escaped(name)), meaning);
    }
}

fn job_options(page: &mut Page) {
    page.section("job options");
    for category in Category::ALL {
        if of_category(category).next().is_some() {
            page.subsection(category.title());
            of_category(category).for_each(|definition| option(page, definition, &meaning(definition)));
        }
    }
    page.section("i/o engines");
    for engine in engines::engines() {
        let mut term = format!("\\fB{}\\fR", escaped(engine.name));
        engine.aliases.iter().for_each(|alias| term.push_str(&format!(", \\fB{}\\fR", escaped(alias))));
        page.item(&term, &format!("{}.", engine.help));
    }
    page.subsection(Category::Engine.title());
    for (definition, engines) in engine_options() {
        let names: Vec<&str> = engines.iter().map(|engine| engine.name).collect();
        option(page, definition, &format!("({}) {}", names.join(", "), meaning(definition)));
    }
}

fn option(page: &mut Page, definition: &Definition, meaning: &str) {
    let names: Vec<String> = definition.names().map(|name| format!("\\fB{}\\fR", escaped(name))).collect();
    let mut term = format!("{}=\\fI{}\\fR", names.join(", "), value_name(definition));
    if let Some(limits) = limits(definition) {
        term.push_str(&format!(" ({})", escaped(&limits)));
    }
    let mut text = meaning.to_owned();
    if let Some(default) = definition.default {
        text.push_str(&format!(" Default: {default}."));
    }
    page.item(&term, &text);
    if definition.keywords.is_empty() {
        return;
    }
    page.line(".RS");
    for (keyword, what) in definition.keywords {
        match what.is_empty() {
            true => page.line(&format!(".TP\n\\fB{}\\fR", escaped(keyword))),
            false => page.item(&format!("\\fB{}\\fR", escaped(keyword)), &format!("{what}.")),
        }
    }
    page.line(".RE");
}

fn ending(page: &mut Page) {
    page.section("exit status");
    page.item("0", "All jobs succeeded.");
    page.item("1", "Something was wrong with the input or went wrong in a job.");
    page.item("128", "A signal ended the run; the report of the measurements until then was written.");
    page.section("signals");
    page.item(
        "SIGUSR1",
        "Prints an interim report, and on standard error a table of the I/Os in flight, the oldest first (the 100 oldest, and how \
         many more there are). Under the name fio, there is only the report.",
    );
    page.item(
        "SIGINT, SIGTERM",
        "End the run: jobs stop, and the report is written. Signals that follow within a second mean the same. A later one gives \
         up what hangs, and the run says what that was.",
    );
    page.section("files");
    page.item(
        "FILE.unfinished",
        "The report of a run whose --output=FILE replaces an old one, until it is complete.",
    );
    page.section("examples");
    page.text("Random reads of 4 KiB, 16 at a time, for ten seconds:");
    page.example(&[
        "iolite --name=randread --rw=randread --bs=4k --size=256M \\",
        "    --ioengine=libaio --iodepth=16 --direct=1 --runtime=10 --time_based",
    ]);
    page.section("see also");
    page.line(".BR fio (1)");
}

/// Escapes text in which roff would find a request or an escape.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('…', "...");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
