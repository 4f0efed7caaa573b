//! A figure of both sides, and the conclusion about it.

use crate::{FEWEST, Figure, Outcome, Part, welch};

/// The conclusion about a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// NEW is better.
    Better,
    /// NEW is worse.
    Worse,
    /// The data does not show which side is better.
    CannotTell,
    /// The sides did different work.
    NotComparable,
    /// The figure is shown without a verdict.
    Exploratory,
}

impl Verdict {
    /// One or two words for the verdict.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::CannotTell => "cannot tell",
            Verdict::NotComparable => "not comparable",
            Verdict::Exploratory => "exploratory",
        }
    }
}

/// A figure of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The number of runs with a value.
    pub runs: usize,
    /// The geometric mean.
    pub mean: f64,
    /// The coefficient of variation, as a fraction; `None` = there is only one run.
    pub variation: Option<f64>,
}

/// A figure of both sides.
#[derive(Clone, Debug)]
pub struct Row {
    /// The figure.
    pub figure: Figure,
    /// The figure gets a verdict, by default or because it has a limit.
    pub is_primary: bool,
    /// The figure of BASE; `None` = not known.
    pub base: Option<Summary>,
    /// The figure of NEW; `None` = not known.
    pub new: Option<Summary>,
    /// The change from BASE to NEW, as a fraction of BASE.
    pub change: Option<f64>,
    /// The confidence interval of the change; `None` = too few runs, or not comparable.
    pub interval: Option<(f64, f64)>,
    /// The conclusion.
    pub verdict: Verdict,
    /// Why there is no interval, and so no verdict.
    pub why: Option<String>,
    /// The indexes of the limits on this figure, and their outcomes.
    pub limits: Vec<(usize, Outcome)>,
    logarithms: [Vec<f64>; 2],
    step: f64,
}

impl Row {
    pub(crate) fn of(figure: Figure, parts: &[Vec<&Part>; 2]) -> Row {
        let values = [&parts[0], &parts[1]]
            .map(|parts| parts.iter().filter_map(|part| part.figure(figure)).collect::<Vec<f64>>());
        let logarithms =
            values.each_ref().map(|values| values.iter().map(|value| value.ln()).collect::<Vec<f64>>());
        let [base, new] = [0, 1].map(|side: usize| Summary::of(&values[side], &logarithms[side]));
        let change = base.zip(new).map(|(base, new)| new.mean / base.mean - 1.0);
        let step = parts.iter().flatten().map(|part| part.step(figure)).fold(0.0, f64::max);
        let verdict = Verdict::CannotTell;
        let (is_primary, interval, why, limits) = (false, None, None, Vec::new());
        Row { figure, is_primary, base, new, change, interval, verdict, why, limits, logarithms, step }
    }

    /// Why there is no interval; `None` = there is one. `runs` are the numbers of runs of the sides.
    pub(crate) fn too_little(&self, runs: [usize; 2]) -> Option<String> {
        let known = self.logarithms.each_ref().map(Vec::len);
        if runs.iter().any(|&runs| runs < FEWEST) {
            return Some(format!("{} and {} runs; a verdict needs {FEWEST} a side", runs[0], runs[1]));
        }
        (known != runs).then(|| format!("known in {} and {} runs only", known[0], known[1]))
    }

    pub(crate) fn has_interval(&self) -> bool {
        self.why.is_none() && self.verdict != Verdict::NotComparable
    }

    pub(crate) fn judge(&mut self, error: f64) {
        if self.has_interval() {
            let [base, new] = &self.logarithms;
            let found = welch::difference(base, new, error, self.step);
            let (low, high) = (found.centre - found.half, found.centre + found.half);
            self.interval = Some((low.exp_m1(), high.exp_m1()));
            self.verdict = match (low > 0.0, high < 0.0) {
                (false, false) => Verdict::CannotTell,
                (is_more, _) if is_more == self.figure.is_better_if_more() => Verdict::Better,
                _ => Verdict::Worse,
            };
        }
        if !self.is_primary && self.verdict != Verdict::NotComparable {
            self.verdict = Verdict::Exploratory;
        }
    }
}

impl Summary {
    pub(crate) fn of(values: &[f64], logarithms: &[f64]) -> Option<Summary> {
        let several = values.len() > 1;
        (!values.is_empty()).then(|| {
            let mean = welch::mean(values);
            let variation = several.then(|| welch::variance(values, mean).sqrt() / mean);
            Summary { runs: values.len(), mean: welch::mean(logarithms).exp(), variation }
        })
    }
}
