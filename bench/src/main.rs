//! Compares the speed of Iolite with that of an installed fio, on the same machine at the same time.
//!
//!     cargo run --release -p iolite-bench -- [OPTIONS] [CASE...]
//!
//! Each case is one job that two sides run in turns: A B, B A, A B, … So if the machine gets slower or faster in the
//! meantime, both are affected. One side is Iolite. The other is fio in most cases; in some it is Iolite with another
//! job, or a bare loop. The table shows the median of each side with its spread, the ratio of the medians, and the
//! ratio to reach. The case decides which number is compared, and whether more or less is better.

mod arguments;
mod bare;
mod cases;
mod cluster;
mod curl;
mod measure;
mod memory;
mod page;
mod place;
mod rates;
mod reader;
mod recorded;
mod rounds;
mod samples;
mod table;
mod threads;

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
            println!("{:<24} {}, {}", case.name, case.about, case.measure.unit());
        }
        return Ok(());
    }
    if arguments.cluster.is_some() {
        return cluster::run(arguments, &rounds::find(&arguments.iolite)?);
    }
    if arguments.with_page {
        return page::run(arguments, &rounds::find(&arguments.iolite)?, &cases);
    }
    let programs = [rounds::find(&arguments.iolite)?, rounds::find(&arguments.peer)?];
    if arguments.rates {
        return rates::run(arguments, &programs);
    }
    let versions = [rounds::identify(&programs[0])?, rounds::identify(&programs[1])?];
    println!("{}", table::heading(&versions, arguments));
    let mut failures = Vec::new();
    for case in cases {
        eprintln!("{}: {}", case.name, case.about);
        match rounds::alternate(case, &programs, arguments) {
            Ok(samples) => println!("{}", table::row(case, &samples)),
            // The other rows are still useful.
            Err(error) => failures.push(error),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}
