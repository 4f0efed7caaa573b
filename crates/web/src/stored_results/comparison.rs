//! The comparison of results that were chosen in the list.

use super::Library;
use iolite_compare::{Run, Side};
use iolite_page::{Curves, of_comparison};

/// The page of a comparison of results.
pub fn page(library: &impl Library, base: &[String], new: &[String]) -> Result<String, String> {
    let mut curves = Curves::default();
    let sides = [(0, "base", base), (1, "new", new)]
        .map(|(position, name, keys)| side(position, name, library, keys, &mut curves));
    let [base, new] = sides;
    let sides = [base?, new?];
    let comparison = iolite_compare::compare(&sides, &[], &[])?;
    Ok(of_comparison("<p><a href=\"./\">All results</a></p>\n", &sides, &comparison, &[], &curves))
}

fn side(
    position: usize,
    name: &str,
    library: &impl Library,
    keys: &[String],
    curves: &mut Curves,
) -> Result<Side, String> {
    let mut runs: Vec<Run> = Vec::new();
    for key in keys {
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
    Ok(Side { name: name.to_owned(), runs })
}
