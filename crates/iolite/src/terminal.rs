//! What the terminal of the user can show, and which report suits it.

#[cfg(feature = "web")]
use iolite_full_screen::Look;
use iolite_options::{ColorWhen, LiveView, Name, OutputFormat, RunOptions};
use iolite_report::live::Width;
use iolite_summary::screen::Terminal;
use std::io::{self, IsTerminal};

/// The environment variable that names the formats for a terminal, as `--output-format` does.
const FORMATS: &str = "IOLITE_FORMAT";

/// Takes the format that people like to read, if the report goes to a terminal and no format was chosen. Under the name
/// `fio`, the report is always fio's.
///
/// # Errors
/// The environment names a format that does not exist.
pub fn choose_format(name: Name, run: &mut RunOptions) -> Result<(), String> {
    if name.is_strict() || run.has_chosen_format || run.output.is_some() || !io::stdout().is_terminal() {
        return Ok(());
    }
    run.output_format = match std::env::var(FORMATS) {
        Ok(value) if !value.is_empty() => {
            OutputFormat::list(&value).map_err(|why| format!("{FORMATS}={value}: {why}"))?
        }
        _ => vec![OutputFormat::Summary],
    };
    Ok(())
}

/// The terminal of standard output. What goes elsewhere than to a terminal has colours only if they are asked for.
pub fn of_output(color: ColorWhen, is_terminal: bool) -> Terminal {
    Terminal {
        columns: width().map_or(Terminal::default().columns, |width| width.columns),
        is_ascii: is_ascii(),
        has_colors: match color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => is_terminal && is_set("NO_COLOR").is_none() && !is_dumb(),
        },
    }
}

/// What the full screen of a run may use of it.
#[cfg(feature = "web")]
pub fn look(color: ColorWhen) -> Look {
    let Terminal { is_ascii, has_colors, .. } = of_output(color, true);
    Look { is_ascii, has_colors }
}

/// Checks whether a run can be shown on the whole terminal, if that was asked for.
///
/// # Errors
/// There is no terminal that can do it.
pub fn check_live(run: &RunOptions) -> Result<(), String> {
    if run.live != LiveView::Full {
        return Ok(());
    }
    let what = match io::stdout().is_terminal() {
        false => "standard output is no terminal".to_owned(),
        true if is_dumb() => format!("TERM={} places no text", is_set("TERM").unwrap_or_default()),
        true => return Ok(()),
    };
    Err(format!(
        "--live=full: {what}; leave it out for the status line, or watch the run in a browser (--web)"
    ))
}

/// How wide the terminal of standard output is now; `None` = it is none.
pub fn width() -> Option<Width> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    let columns = Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)?;
    Some(Width { columns, erases: !is_dumb() })
}

/// Whether the locale has ASCII only.
pub fn is_ascii() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(is_set);
    !set.is_some_and(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// A terminal without escape sequences.
fn is_dumb() -> bool {
    is_set("TERM").is_none_or(|kind| kind == "dumb")
}

/// The value of an environment variable that is not empty.
fn is_set(variable: &str) -> Option<String> {
    std::env::var_os(variable)
        .map(|value| value.to_string_lossy().into_owned())
        .filter(|value| !value.is_empty())
}
