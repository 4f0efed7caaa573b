//! How fast Iolite is, next to an installed fio on the same machine at the same time.
//!
//!     cargo run --release -p iolite-bench -- [OPTIONS] [CASE...]
//!
//! Each case is one job that both programs run, in turns: A B, B A, A B, … so that a machine that gets
//! slower or faster in the meantime does so for both. The table shows the median of each with its spread,
//! and the ratio of the medians. Which number is compared, and which way is better, is the case's.

mod arguments;
mod cases;
mod measure;
mod table;

use arguments::Arguments;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Arguments::parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => run(&arguments),
        Ok(None) => {
            print!("{}", arguments::USAGE);
            Ok(())
        }
        Err(message) => Err(message),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("iolite-bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let cases = cases::chosen(&arguments.cases)?;
    if arguments.list {
        for case in &cases {
            println!("{:<24} {}", case.name, case.about);
        }
        return Ok(());
    }
    let programs = [measure::find(&arguments.iolite)?, measure::find(&arguments.peer)?];
    let versions = [measure::identify(&programs[0])?, measure::identify(&programs[1])?];
    println!("{}", table::heading(&versions, arguments));
    for case in cases {
        eprintln!("{}: {}", case.name, case.about);
        let samples = measure::alternate(case, &programs, arguments)?;
        println!("{}", table::row(case, &samples));
    }
    Ok(())
}
