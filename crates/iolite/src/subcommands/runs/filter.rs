//! Selects runs by their properties.

use crate::saving;
use iolite_options::commands::Asked;
use iolite_report::clock;
use iolite_store::Run;
use iolite_types::RunStatus;

/// The conditions that a run has to meet.
#[derive(Default)]
pub struct Filter {
    label: Option<String>,
    host: Option<String>,
    job: Option<String>,
    /// How it ended; an inner `None` = unknown.
    status: Option<Option<RunStatus>>,
    /// It began at this time or later.
    since_ms: Option<u64>,
    /// It began before this time.
    before_ms: Option<u64>,
    /// Only this many, the newest.
    last: Option<u64>,
}

impl Filter {
    /// Reads the options.
    pub fn of(asked: &Asked) -> Result<Filter, String> {
        let text = |name| asked.value(name).map(str::to_owned);
        let time = |name: &str| {
            asked.value(name).map(|given| moment(given).ok_or_else(|| bad_time(name, given))).transpose()
        };
        Ok(Filter {
            label: text("label"),
            host: text("host"),
            job: text("job"),
            status: asked.value("status").map(status).transpose()?,
            since_ms: time("since")?,
            before_ms: time("before")?,
            last: asked.number("last", 1)?,
        })
    }

    /// Whether every run passes.
    pub fn is_empty(&self) -> bool {
        let Filter { label, host, job, status, since_ms, before_ms, last } = self;
        [label, host, job].iter().all(|pattern| pattern.is_none())
            && status.is_none()
            && [since_ms, before_ms, last].iter().all(|number| number.is_none())
    }

    /// The runs that pass.
    pub fn of_runs<'a>(&self, mut runs: Vec<&'a Run>) -> Vec<&'a Run> {
        let fits = |pattern: &Option<String>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| is_like(text, pattern))
        };
        runs.retain(|run| {
            fits(&self.label, &run.label)
                && fits(&self.host, &run.host)
                && (self.job.is_none() || run.jobs.iter().any(|job| fits(&self.job, job)))
                && self.status.is_none_or(|status| run.status == status)
                && self.since_ms.is_none_or(|since| run.began_ms >= since)
                && self.before_ms.is_none_or(|before| run.began_ms < before)
        });
        let most = self.last.and_then(|last| usize::try_from(last).ok()).unwrap_or(usize::MAX);
        runs.split_off(runs.len().saturating_sub(most))
    }
}

/// The word for runs whose end is unknown.
pub const UNKNOWN: &str = "unknown";

fn status(word: &str) -> Result<Option<RunStatus>, String> {
    let known = RunStatus::of_name(word);
    if known.is_none() && word != UNKNOWN {
        let all = RunStatus::ALL.map(RunStatus::name).join(", ");
        return Err(format!("--status={word}: not one of {all}, {UNKNOWN}"));
    }
    Ok(known)
}

/// A date, or how long ago: `7d`, `12h`.
fn moment(text: &str) -> Option<u64> {
    if let Some((number, unit_ms)) = text
        .strip_suffix('d')
        .map(|number| (number, 86_400_000))
        .or_else(|| text.strip_suffix('h').map(|number| (number, 3_600_000)))
    {
        let ago = number.parse::<u32>().ok()?;
        return Some(saving::now_ms().saturating_sub(u64::from(ago) * unit_ms));
    }
    clock::of_local(text)
}

fn bad_time(option: &str, given: &str) -> String {
    format!("--{option}={given}: not a date (2026-11-20, \"2026-11-20 12:30\") or an age (7d, 12h)")
}

/// Whether a text matches a pattern, in which `*` stands for any text and `?` for one character.
fn is_like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut place) = (0, 0);
    // The position of the last `*`, and the text it currently matches.
    let mut star = None;
    while at < text.len() {
        match pattern.get(place) {
            Some('*') => {
                star = Some((place, at));
                place += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == text[at] => {
                (at, place) = (at + 1, place + 1);
            }
            _ => {
                let Some((behind, begin)) = star else { return false };
                star = Some((behind, begin + 1));
                (at, place) = (begin + 1, behind + 1);
            }
        }
    }
    pattern[place..].iter().all(|&rest| rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (text, pattern) in [
            ("", ""),
            ("a", "a"),
            ("abc", "a*c"),
            ("abc", "*"),
            ("", "*"),
            ("aab", "*ab"),
            ("aß", "a?"),
            ("a*", "a*"),
        ] {
            assert!(is_like(text, pattern), "{text} {pattern}");
        }
        for (text, pattern) in [("a", ""), ("", "a"), ("abc", "a*b"), ("abc", "?"), ("", "?"), ("A", "a")] {
            assert!(!is_like(text, pattern), "{text} {pattern}");
        }
        assert!(!is_like(&"a".repeat(3000), &"*a".repeat(50).replace("*a*a", "*a*b")));
    }

    #[test]
    fn moments() {
        assert_eq!(moment("2026-11-20"), clock::of_local("2026-11-20"));
        assert!(moment("7d").unwrap() < moment("12h").unwrap());
        for bad in ["", "d", "-1d", "1w", "yesterday", "99999999999h"] {
            assert_eq!(moment(bad), None, "{bad}");
        }
    }
}
