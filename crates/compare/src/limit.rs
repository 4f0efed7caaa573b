//! Limits on changes: `read.iops < -5%`, `p99 > +10%`.

use crate::figure::Figure;
use iolite_stored::DIRECTIONS;

/// The name in place of a direction for figures of a whole job, such as CPU time.
pub const WHOLE_JOB: &str = "all";

/// A limit on the change of a figure. It is broken if the change is beyond it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The text of the limit.
    pub text: String,
    /// The job; `None` = all jobs.
    job: Option<String>,
    /// The direction; `None` = all directions.
    direction: Option<&'static str>,
    /// The limited figure.
    figure: Figure,
    /// Whether it is an upper limit rather than a lower one.
    is_above: bool,
    /// The change at the limit, as a fraction.
    change: f64,
}

/// The outcome of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The whole interval is within the limit.
    Kept,
    /// The limit lies within the interval, or there is no interval.
    Open,
    /// The whole interval is beyond the limit.
    Broken,
}

impl Outcome {
    /// One word for the outcome.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Kept => "kept",
            Outcome::Open => "inconclusive",
            Outcome::Broken => "broken",
        }
    }
}

/// A mistake in a limit, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLimit {
    /// The position of the character, from 1.
    pub column: usize,
    /// The mistake and the remedy.
    pub why: String,
}

impl Limit {
    /// Parses `[JOB.][DIRECTION.]FIGURE < CHANGE%`, or the same with `>`.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Limit, BadLimit> {
        let bad = |offset: usize, why: String| {
            let column = text[..offset].chars().count() + 1;
            Err(BadLimit { column, why })
        };
        // The last < or > is the sign: a job's name may contain these characters, but a number cannot.
        let Some(sign) = text.rfind(['<', '>']) else {
            return bad(text.len(), "there is no < or > (such as read.iops < -5%)".to_owned());
        };
        let (left, right) = (text[..sign].trim(), text[sign + 1..].trim());
        let at_left = text.len() - text.trim_start().len();
        let at_right = text.len() - text[sign + 1..].trim_start().len();
        let Some((before, figure)) = figure_at_end(left) else {
            let names = Figure::ALL.map(Figure::name).join(", ");
            return bad(at_left, format!("{left:?} does not end with a figure: one of {names}"));
        };
        let (job, direction) = names(before);
        let Some(number) = right.strip_suffix('%') else {
            return bad(at_right, format!("{right:?} is not a change in percent (such as -5% or +10%)"));
        };
        let is_plain = |number: &str| number.chars().all(|c| c.is_ascii_digit() || "+-.".contains(c));
        let Some(percent) = number.trim().parse::<f64>().ok().filter(|_| is_plain(number.trim())) else {
            return bad(at_right, format!("{number:?} is not a number (such as -5% or +10%)"));
        };
        let is_above = text[sign..].starts_with('>');
        if percent < -100.0 || (percent <= -100.0 && !is_above) {
            return bad(at_right, "a figure cannot fall by more than 100%".to_owned());
        }
        Ok(Limit { text: text.trim().to_owned(), job, direction, figure, is_above, change: percent / 100.0 })
    }

    /// Whether the limit applies to this figure.
    pub fn is_about(&self, job: &str, direction: &str, figure: Figure) -> bool {
        self.figure == figure
            && self.job.as_deref().is_none_or(|name| name == job)
            && self.direction.is_none_or(|name| name == direction)
    }

    /// The outcome for this interval of the change (fractions); `None` = there is no interval.
    pub fn outcome(&self, interval: Option<(f64, f64)>) -> Outcome {
        let Some((low, high)) = interval else { return Outcome::Open };
        let (is_beyond, is_within) = if self.is_above {
            (low > self.change, high <= self.change)
        } else {
            (high < self.change, low >= self.change)
        };
        match (is_beyond, is_within) {
            (true, _) => Outcome::Broken,
            (_, true) => Outcome::Kept,
            _ => Outcome::Open,
        }
    }
}

/// Splits off a figure at the end. Returns the text before it, without the dot, and the figure.
fn figure_at_end(left: &str) -> Option<(&str, Figure)> {
    Figure::ALL.into_iter().find_map(|figure| {
        let before = left.strip_suffix(figure.name())?;
        let before = if before.is_empty() { before } else { before.strip_suffix('.')? };
        Some((before, figure))
    })
}

/// Splits `JOB.DIRECTION`; either may be missing.
fn names(before: &str) -> (Option<String>, Option<&'static str>) {
    let mut directions = DIRECTIONS.into_iter().chain([WHOLE_JOB]);
    let found = directions.find_map(|direction| {
        let job = before.strip_suffix(direction)?;
        let job = if job.is_empty() { job } else { job.strip_suffix('.')? };
        Some((job, direction))
    });
    let (job, direction) = found.map_or((before, None), |(job, direction)| (job, Some(direction)));
    ((!job.is_empty()).then(|| job.to_owned()), direction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let limit = Limit::parse(" read.iops<-5% ").unwrap();
        assert!(limit.is_about("any", "read", Figure::Iops));
        assert!(!limit.is_about("any", "write", Figure::Iops) && !limit.is_about("any", "read", Figure::P99));
        let limit = Limit::parse("p99.9 > +10.5 %").unwrap();
        assert!(limit.is_about("a", "write", Figure::P999) && (limit.change - 0.105).abs() < 1e-12);
        let limit = Limit::parse("my.job < 3.write.p99 > 10%").unwrap();
        assert!(
            limit.is_about("my.job < 3", "write", Figure::P99) && !limit.is_about("x", "write", Figure::P99)
        );
        let limit = Limit::parse("my.job.bw < 0%").unwrap();
        assert!(limit.is_about("my.job", "trim", Figure::Bandwidth));
        assert!(Limit::parse("all.cpu > 20%").unwrap().is_about("j", WHOLE_JOB, Figure::Cpu));
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, column, why) in [
            ("", 1, "no < or >"),
            ("read.iops -5%", 14, "no < or >"),
            ("read.iosp < -5%", 1, "one of iops, p50"),
            ("  readiops < -5%", 3, "does not end with a figure"),
            ("< 5%", 1, "does not end with a figure"),
            ("read.iops < -5", 13, "not a change in percent"),
            ("größe.iops < x%", 14, "not a number"),
            ("p99 > nan%", 7, "not a number"),
            ("p99 > inf%", 7, "not a number"),
            ("p99 > 1e3%", 7, "not a number"),
            ("p99 >= 3%", 6, "not a number"),
            ("iops < -100%", 8, "more than 100%"),
            ("iops > %", 8, "not a number"),
        ] {
            let error = Limit::parse(text).unwrap_err();
            assert!(error.column == column && error.why.contains(why), "{text:?}: {error:?}");
        }
    }

    #[test]
    fn an_interval_is_beyond_within_or_astride() {
        let limit = Limit::parse("iops < -5%").unwrap();
        for (interval, expected) in [
            (Some((-0.10, -0.06)), Outcome::Broken),
            (Some((-0.10, -0.05)), Outcome::Open),
            (Some((-0.05, 0.20)), Outcome::Kept),
            (None, Outcome::Open),
        ] {
            assert_eq!(limit.outcome(interval), expected, "{interval:?}");
        }
        let limit = Limit::parse("p99 > +10%").unwrap();
        for (interval, expected) in
            [((0.11, 0.30), Outcome::Broken), ((0.10, 0.30), Outcome::Open), ((-0.5, 0.10), Outcome::Kept)]
        {
            assert_eq!(limit.outcome(Some(interval)), expected, "{interval:?}");
        }
    }
}
