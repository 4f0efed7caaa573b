//! How the values of the options of the run are read.

use super::{Asked, DEBUG_CATEGORIES, Question};
use crate::values::{SECOND, time};
use crate::{ColorWhen, EtaWhen, IdleProfile, LiveView, OutputFormat, SelfTest, profiles};

pub(super) fn ask(asked: &mut Asked, question: Question) -> Result<(), String> {
    asked.question = Some(question);
    Ok(())
}

pub(super) fn given(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

pub(super) fn profile(asked: &mut Asked, value: &str) -> Result<(), String> {
    if let Some(chosen) = &asked.profile {
        return Err(format!("the profile is {} already; one run has one profile", chosen.profile.name));
    }
    let Some(profile) = profiles::find(value) else {
        let names: Vec<_> = profiles::ALL.iter().map(|profile| profile.name).collect();
        return Err(format!("there is no such profile ({})", names.join(", ")));
    };
    asked.run.profile = Some(profile.name.to_owned());
    asked.profile = Some(profiles::Chosen { profile, values: Vec::new() });
    Ok(())
}

/// Names separated by commas.
pub(super) fn names(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

pub(super) fn output_format(asked: &mut Asked, value: &str) -> Result<(), String> {
    asked.run.output_format = OutputFormat::list(value)?;
    asked.run.has_chosen_format = true;
    Ok(())
}

pub(super) fn terse_version(asked: &mut Asked, value: &str) -> Result<(), String> {
    asked.run.terse_version = match value {
        "2" => 2,
        "3" => 3,
        "4" => 4,
        "5" => 5,
        _ => return Err("the terse format has versions 2, 3, 4 and 5".to_owned()),
    };
    Ok(())
}

pub(super) fn color(asked: &mut Asked, value: &str) -> Result<(), String> {
    asked.run.color = ColorWhen::parse(value)?;
    Ok(())
}

pub(super) fn help(asked: &mut Asked, value: &str) -> Result<(), String> {
    match value {
        "" | "all" => ask(asked, Question::Help { is_whole: value == "all" }),
        _ => Err(format!(
            "--help has no chapters; --cmdhelp={value} describes a job option, --help=all every option of the run"
        )),
    }
}

pub(super) fn eta(asked: &mut Asked, value: &str) -> Result<(), String> {
    asked.run.eta = match value {
        "always" => EtaWhen::Always,
        "never" => EtaWhen::Never,
        "auto" => EtaWhen::Auto,
        _ => {
            asked.notes.ignore("expected always, never or auto".to_owned(), "; taken as auto")?;
            EtaWhen::Auto
        }
    };
    Ok(())
}

pub(super) fn live(asked: &mut Asked, value: &str) -> Result<(), String> {
    asked.run.live = match value {
        "line" => LiveView::Line,
        "full" => LiveView::Full,
        _ => return Err("expected line or full".to_owned()),
    };
    Ok(())
}

pub(super) fn max_jobs(asked: &mut Asked, value: &str) -> Result<(), String> {
    if value.parse::<u64>().is_err() {
        asked.notes.ignore("not a number of jobs".to_owned(), "; ignored")?;
    }
    Ok(())
}

pub(super) fn alloc_size(asked: &mut Asked, value: &str) -> Result<(), String> {
    if value.parse::<u64>().is_err() {
        asked.notes.ignore("not a number of KiB".to_owned(), "; ignored")?;
    }
    Ok(())
}

pub(super) fn idle_prof(asked: &mut Asked, value: &str) -> Result<(), String> {
    match value {
        "calibrate" => return ask(asked, Question::SelfTest(SelfTest::IdleUnit)),
        "system" => asked.run.idle_prof = Some(IdleProfile::System),
        "percpu" => asked.run.idle_prof = Some(IdleProfile::PerCpu),
        _ => return Err("not one of system, percpu, calibrate".to_owned()),
    }
    Ok(())
}

/// The end of the note about a category that there is not.
pub(crate) const UNKNOWN_CATEGORY: &str = "(--debug=help lists them)";

pub(super) fn debug(asked: &mut Asked, value: &str) -> Result<(), String> {
    if value == "help" || value == "?" {
        return ask(asked, Question::DebugCategories);
    }
    for category in value.split(',').map(str::trim).filter(|category| !category.is_empty()) {
        let wish = &mut asked.run.debug;
        if let Some(number) = category.strip_prefix("job:") {
            match number.parse() {
                Ok(number) if number > 0 => wish.workers.push(number),
                _ => asked.notes.ignore(format!("\"{category}\": jobs are counted from 1"), "; ignored")?,
            }
        } else if category == "all" {
            wish.categories = DEBUG_CATEGORIES.map(str::to_owned).to_vec();
        } else if !DEBUG_CATEGORIES.contains(&category) {
            let what = format!("unknown category \"{category}\" {UNKNOWN_CATEGORY}");
            asked.notes.ignore(what, "; ignored")?;
        } else if !wish.categories.iter().any(|known| known == category) {
            wish.categories.push(category.to_owned());
        }
    }
    Ok(())
}

/// A time in seconds, or with a unit, of at least `least` milliseconds.
pub(super) fn milliseconds(asked: &mut Asked, value: &str, least: u64) -> Result<u64, String> {
    let milliseconds = time(value, SECOND, &mut asked.notes)? / 1000;
    if milliseconds < least {
        return Err(format!("too short, {least}ms is the least"));
    }
    Ok(milliseconds)
}
