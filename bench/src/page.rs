//! Measures whether an open page costs the jobs anything: `iolite-bench --with-page`.
//!
//! Both sides are Iolite with the same job, in turns: one with `--web` and a reader that follows the events of its page, as a
//! browser does, and one without. Compared are the number of the case, the I/Os per second, and the CPU time of the jobs per
//! I/O. The process that serves the page is not counted as a job; the other numbers show its share of the machine.

use crate::arguments::Arguments;
use crate::cases::Case;
use crate::measure::Measure;
use crate::place::Place;
use crate::rounds::{self, Side};
use crate::samples::Samples;
use crate::table::Spread;
use std::path::Path;

/// Measures these cases and prints the table.
pub fn run(arguments: &Arguments, program: &Path, cases: &[&Case]) -> Result<(), String> {
    let version = rounds::identify(program)?;
    println!(
        "{version} with a page that is open and without one, {} rounds, of {} s each where the job has no end of its own: \
         median (lowest – highest)\n\n| case | unit | with a page | without | times better | |\n|---|---|---:|---:|---:|---|",
        arguments.rounds, arguments.seconds
    );
    let (mut compared, mut worse, mut failures) = (0, Vec::new(), Vec::new());
    for case in cases {
        eprintln!("{}: {}", case.name, case.about);
        match alternate(case, program, arguments) {
            Ok(measured) => {
                for (measure, samples) in measured {
                    let Some((row, verdict)) = row(case, measure, &samples) else { continue };
                    println!("{row}");
                    compared += 1;
                    if verdict == Verdict::Worse {
                        worse.push(format!("{} ({})", case.name, measure.unit()));
                    }
                }
            }
            // The other rows are still useful.
            Err(error) => failures.push(format!("{}: {error}", case.name)),
        }
    }
    let worse = if worse.is_empty() { "none".to_owned() } else { worse.join(", ") };
    println!("\nOf {compared} numbers, worse by more than their spread without a page: {worse}");
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// The numbers of a case that are compared, each once.
fn measures(case: &Case) -> Vec<Measure> {
    let mut measures = vec![case.measure];
    measures.extend([Measure::Iops, Measure::CpuPerIo].into_iter().filter(|more| *more != case.measure));
    measures
}

/// Runs a case in turns, with a page and without. The side that begins changes with each round.
fn alternate(case: &Case, program: &Path, arguments: &Arguments) -> Result<Vec<(Measure, Samples)>, String> {
    let place = Place::new(case.place, arguments)?;
    let mut measured: Vec<(Measure, Samples)> =
        measures(case).into_iter().map(|measure| (measure, Samples::default())).collect();
    for round in 0..arguments.rounds {
        for turn in 0..2 {
            let side = (round + turn) % 2;
            let with_page = side == 0;
            let outcome =
                rounds::perform(case, &Side { program, options: "", with_page }, &place, arguments)?;
            for (measure, samples) in &mut measured {
                samples[side].push(outcome.read(*measure)?);
            }
            if !case.shares_files {
                place.tidy()?;
            }
        }
    }
    Ok(measured)
}

/// The effect of the page on a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Within,
    Better,
    Worse,
}

impl Verdict {
    /// A number has changed if the medians differ by more than the spread of the runs without a page.
    fn of(measure: Measure, with: &Spread, without: &Spread) -> Verdict {
        if (with.median - without.median).abs() <= without.highest - without.lowest {
            Verdict::Within
        } else if measure.advantage(with.median, without.median) > 1.0 {
            Verdict::Better
        } else {
            Verdict::Worse
        }
    }

    fn words(self) -> &'static str {
        match self {
            Verdict::Within => "within its spread",
            Verdict::Better => "better",
            Verdict::Worse => "**worse**",
        }
    }
}

/// The row of a number; `None` = the case has no such number: the CPU time of a job of milliseconds is 0.
fn row(case: &Case, measure: Measure, samples: &Samples) -> Option<(String, Verdict)> {
    let [with, without] = [Spread::of(&samples[0]), Spread::of(&samples[1])];
    if with.median <= 0.0 || without.median <= 0.0 {
        return None;
    }
    let verdict = Verdict::of(measure, &with, &without);
    let (name, unit, words) = (case.name, measure.unit(), verdict.words());
    let advantage = measure.advantage(with.median, without.median);
    Some((format!("| {name} | {unit} | {with} | {without} | {advantage:.2} | {words} |"), verdict))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::chosen;

    #[test]
    fn a_number_moves_when_it_differs_by_more_than_its_spread() {
        let case = chosen(&["verify-md5".into()]).unwrap()[0];
        assert_eq!(measures(case), [Measure::WallSeconds, Measure::Iops, Measure::CpuPerIo]);
        let samples = |with: [f64; 3]| [with.to_vec(), vec![9.0, 10.0, 11.0]];
        let judged = |measure, with| row(case, measure, &samples(with)).unwrap();
        let (row, verdict) = judged(Measure::WallSeconds, [8.0, 12.0, 12.5]);
        assert_eq!(verdict, Verdict::Within);
        assert!(
            row.ends_with("| 12.00 (8.00 – 12.50) | 10.00 (9.00 – 11.00) | 0.83 | within its spread |"),
            "{row}"
        );
        assert_eq!(judged(Measure::WallSeconds, [13.0; 3]).1, Verdict::Worse);
        assert_eq!(judged(Measure::Iops, [13.0; 3]).1, Verdict::Better);
        assert!(super::row(case, Measure::CpuPerIo, &samples([0.0; 3])).is_none());
    }

    #[test]
    fn measures_are_not_told_twice() {
        let case = chosen(&["null-randread-qd32".into()]).unwrap()[0];
        assert_eq!(measures(case), [Measure::Iops, Measure::CpuPerIo]);
    }
}
