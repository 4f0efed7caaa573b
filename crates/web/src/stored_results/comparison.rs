//! The comparison of results that were chosen in the list.

use super::{Chosen, Library};
use iolite_compare::{Run, Side};
use iolite_page::{Curves, of_comparison};

/// The page of a comparison of results.
pub fn page(library: &impl Library, sides: &[Chosen; 2]) -> Result<String, String> {
    let mut curves = Curves::default();
    let [base, new] = [0, 1].map(|position| side(position, &sides[position], library, &mut curves));
    let sides = [base?, new?];
    let comparison = iolite_compare::compare(&sides, &[], &[])?;
    Ok(of_comparison("<p><a href=\"./\">All results</a></p>\n", &sides, &comparison, &[], &curves))
}

fn side(
    position: usize,
    chosen: &Chosen,
    library: &impl Library,
    curves: &mut Curves,
) -> Result<Side, String> {
    let mut runs: Vec<Run> = Vec::new();
    for key in &chosen.keys {
        let report = library.report(key)?;
        let run = Run::of(key, &report).map_err(|error| error.of(key))?;
        if let Some(other) = runs.iter().find(|other| other.is_same_run(&run)) {
            return Err(format!(
                "{} and {key} are results of the same run, and no repeats; leave one out.",
                other.name
            ));
        }
        curves.add(position, &report);
        runs.push(run);
    }
    Ok(Side { name: chosen.name(), runs })
}
