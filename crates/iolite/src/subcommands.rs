//! The subcommands: separate programs behind a first word, `iolite dedupe FILE`.
//!
//! Their names, options and help are data in [`iolite_options::commands`]; their implementation is here.

/// `writeln!` into a string, which cannot fail.
macro_rules! line {
    ($text:expr, $($format:tt)*) => { writeln!($text, $($format)*).expect("strings take everything") };
}

mod ai;
pub mod compare;
mod dedupe;
mod device;
mod input;
mod kept_result;
#[cfg(feature = "agents")]
mod keys;
mod log2csv;
mod meta;
mod performer;
mod progress;
mod pts;
mod report;
mod runs;
mod stored_run;
mod sweep;
mod test;
mod trace;
mod verify_state;
mod version;
#[cfg(feature = "web")]
mod web;
mod zipf;

use iolite_options::commands::{Asked, Command, HELP};
use iolite_options::completion;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

/// Runs a subcommand with the words behind its name.
pub fn run(program: &str, command: &Command, words: &[OsString]) -> ExitCode {
    let answer = command.read(words).and_then(|asked| {
        if asked.has(HELP) {
            return Ok((command.usage(), 0));
        }
        crate::left_out::check_command(command.name)?;
        let text = match command.name {
            "ai" => return ai::run(program, &asked),
            "compare" => return compare::run(program, &asked),
            "pts" => return pts::run(program, &asked),
            "sweep" => return sweep::run(program, &asked),
            "meta" => return meta::run(program, &asked),
            "test" => return test::run(program, &asked),
            "completion" => complete(&asked),
            "dedupe" => dedupe::run(&asked),
            "device" => device::run(&asked),
            #[cfg(feature = "agents")]
            "keys" => keys::run(&asked),
            "log2csv" => log2csv::run(program, &asked),
            "report" => report::run(program, &asked),
            "runs" => runs::run(program, &asked),
            "trace" => trace::run(program, &asked),
            "verify-state" => verify_state::run(&asked),
            "version" => version::run(&asked),
            #[cfg(feature = "web")]
            "web" => web::run(program, &asked),
            "zipf" => zipf::run(&asked),
            name => unreachable!("subcommand {name} is in the table and has no code"),
        };
        text.map(|text| (text, 0))
    });
    match answer {
        // Stored results may come from anyone, so control characters are escaped for a terminal.
        Ok((text, status)) if io::stdout().is_terminal() => {
            let shown = crate::console::harmless(text.as_bytes());
            crate::messages::answer(program, &String::from_utf8_lossy(&shown), status)
        }
        Ok((text, status)) => crate::messages::answer(program, &text, status),
        Err(why) => {
            crate::messages::complain(program, &format_args!("{}: {why}", command.name));
            ExitCode::FAILURE
        }
    }
}

/// Prints an answer piece by piece: it may be larger than memory.
fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<String, String> {
    let mut output = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let written = write(&mut output).and_then(|()| output.flush());
    crate::console::unless_closed(written).map_err(|error| format!("standard output: {error}"))?;
    Ok(String::new())
}

fn complete(asked: &Asked) -> Result<String, String> {
    let [shell] = &asked.operands[..] else {
        return Err("needs the name of one shell: bash, zsh or fish".to_owned());
    };
    let shell = shell.to_string_lossy();
    completion::script(&shell).ok_or_else(|| format!("{shell} is not one of bash, zsh, fish"))
}
