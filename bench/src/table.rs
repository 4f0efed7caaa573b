//! Medians, spreads and the table.

use crate::arguments::Arguments;
use crate::cases::{Against, Case};
use crate::samples::Samples;

/// The lines above the rows: the quantity, and the names of the columns.
pub fn heading(programs: &[String; 2], arguments: &Arguments) -> String {
    let [ours, theirs] = programs;
    format!(
        "{ours} beside {theirs}, {} rounds, of {} s each where the job has no end of its own: median (lowest – \
         highest)\n\n| case | unit | {ours} | beside it | times better | to reach | |\n|---|---|---:|---:|---:|---:|---|",
        arguments.rounds, arguments.seconds
    )
}

/// The row of a case.
pub fn row(case: &Case, samples: &Samples) -> String {
    let ours = Spread::of(&samples[0]);
    let (beside, advantage) = match case.against {
        Against::Nothing => (String::new(), ours.median),
        Against::Peer
        | Against::Itself(_)
        | Against::BareRing(_)
        | Against::Recorded(_)
        | Against::Curl(_) => {
            let theirs = Spread::of(&samples[1]);
            let note = match case.against {
                Against::Itself(options) => format!("{theirs} with `{options}`"),
                Against::BareRing(_) => format!("{theirs}, a bare ring"),
                Against::Curl(_) => format!("{theirs}, curl"),
                Against::Recorded(_) => format!("{theirs}, fio 3.42 carried over"),
                Against::Peer | Against::Nothing => theirs.to_string(),
            };
            (note, case.measure.advantage(ours.median, theirs.median))
        }
    };
    let (name, unit, reach) = (case.name, case.measure.unit(), case.reach);
    let verdict = if advantage >= reach { "reached" } else { "short" };
    format!("| {name} | {unit} | {ours} | {beside} | {advantage:.2} | {reach} | {verdict} |")
}

/// The median and the range of several measurements of the same number.
#[derive(Debug, PartialEq)]
pub struct Spread {
    /// The one in the middle, or the mean of the two.
    pub median: f64,
    /// The lowest.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
}

impl Spread {
    /// The spread of at least one number.
    pub fn of(numbers: &[f64]) -> Spread {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (lowest, highest) = (sorted[0], sorted[sorted.len() - 1]);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Spread { median, lowest, highest }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // About three significant digits, for millions of I/Os as well as for nanoseconds.
        let digits = match self.median {
            ..1.0 => 3,
            ..100.0 => 2,
            _ => 0,
        };
        let Spread { median, lowest, highest } = self;
        write!(f, "{median:.digits$} ({lowest:.digits$} – {highest:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measure;
    use crate::place::Kind;

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, lowest: 1.0, highest: 3.0 });
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }

    fn case(against: Against) -> Case {
        Case {
            name: "c",
            about: "",
            job: "",
            measure: Measure::Iops,
            against,
            place: Kind::Memory,
            shares_files: false,
            reach: 2.0,
        }
    }

    #[test]
    fn a_row_shows_both_and_the_advantage() {
        let samples = [vec![9.0, 11.0, 10.0], vec![5.0, 4.0, 6.0]];
        assert_eq!(
            row(&case(Against::Peer), &samples),
            "| c | MIOPS | 10.00 (9.00 – 11.00) | 5.00 (4.00 – 6.00) | 2.00 | 2 | reached |"
        );
        assert!(row(&case(Against::Itself("--x")), &samples).contains("6.00) with `--x` | 2.00"));
        let alone = [vec![1.9], vec![]];
        assert!(row(&case(Against::Nothing), &alone).ends_with("|  | 1.90 | 2 | short |"));
    }
}
