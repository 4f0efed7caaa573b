//! `steadystate`: `iops:5%`, `bw_slope:10m`, `lat:500us`.
//!
//! A negative limit of bandwidth or IOPS is accepted, as in fio, but never reached: the run lasts for its full time and
//! reports how steady it was. A latency is never negative.

use super::{Notes, integer, keyword, time};
use crate::{SteadyState, SteadyStateCriterion};

/// Parses a criterion and its limit.
///
/// # Errors
/// The criterion is unknown, or the limit is missing or malformed, or a negative latency.
pub fn steady_state(
    text: &str,
    keywords: &'static [(&'static str, &'static str)],
    kb_base: u32,
    notes: &mut Notes,
) -> Result<SteadyState, String> {
    let (word, limit) = text.split_once(':').unwrap_or((text, ""));
    let word = keyword(word.trim(), keywords, notes)?;
    let criterion = SteadyStateCriterion::from_keyword(word)
        .ok_or_else(|| super::not_one_of(keywords.iter().map(|(word, _)| *word), word))?;
    let limit = limit.trim();
    if limit.is_empty() {
        return Err(format!("needs a limit behind the criterion: {word}:5% or {word}:5"));
    }
    if let Some((percent, rest)) = limit.split_once('%') {
        if !rest.is_empty() {
            notes.ignore(format!("\"{rest}\" behind the percent sign means nothing"), ", ignored")?;
        }
        let limit = number(percent)?;
        note_what_never_comes(limit, notes);
        return Ok(SteadyState { criterion, limit, percent: true });
    }
    let limit = match (criterion, number(limit)) {
        (SteadyStateCriterion::Lat | SteadyStateCriterion::LatSlope, Ok(limit)) if limit < 0.0 => {
            return Err("must not be negative".to_owned());
        }
        (_, Ok(limit)) => limit,
        (SteadyStateCriterion::Lat | SteadyStateCriterion::LatSlope, Err(_)) => {
            time(limit, 1, notes)? as f64 * 1000.0
        }
        (_, Err(_)) => integer(limit, kb_base, notes)? as f64,
    };
    note_what_never_comes(limit, notes);
    Ok(SteadyState { criterion, limit, percent: false })
}

fn note_what_never_comes(limit: f64, notes: &mut Notes) {
    if limit < 0.0 {
        notes.push("a negative limit is never reached".to_owned());
    }
}

fn number(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(limit) if limit.is_finite() => Ok(limit),
        Ok(_) | Err(_) => Err(format!("\"{text}\" is not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use crate::registry::find_job;
    use SteadyStateCriterion::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<(SteadyStateCriterion, f64, bool), String> {
        let keywords = find_job("steadystate").unwrap().keywords;
        let state = steady_state(text, keywords, 1024, &mut Notes::of(Name::Fio))?;
        Ok((state.criterion, state.limit, state.percent))
    }

    #[test]
    fn criteria_and_limits() {
        assert_eq!(read("iops:5%"), Ok((Iops, 5.0, true)));
        assert_eq!(read("iops_slope:0.01%"), Ok((IopsSlope, 0.01, true)));
        assert_eq!(read("bw:5k"), Ok((Bw, 5120.0, false)));
        assert_eq!(read("bw_slope:1.5"), Ok((BwSlope, 1.5, false)));
        assert_eq!(read("lat:2ms"), Ok((Lat, 2e6, false)));
        assert_eq!(read("lat_slope:100"), Ok((LatSlope, 100.0, false)));
    }

    #[test]
    fn invalid_criteria_are_refused() {
        assert!(read("iops").unwrap_err().contains("needs a limit"));
        assert!(read("iops:").unwrap_err().contains("needs a limit"));
        assert!(read("foo:5").unwrap_err().contains("iops_slope"));
        assert!(read("lat:-1ms").unwrap_err().contains("negative"));
        assert!(read("lat:-5").unwrap_err().contains("negative"));
        assert!(read("iops:inf").is_err());
        assert!(read("iops:many").is_err());
        assert!(read("iops:%").is_err());
    }

    #[test]
    fn negative_limits_are_taken_and_noted() {
        let keywords = find_job("steadystate").unwrap().keywords;
        for (text, limit) in
            [("iops:-5%", -5.0), ("iops_slope:-0.3%", -0.3), ("iops:-5", -5.0), ("bw:-1k", -1024.0)]
        {
            let mut notes = Notes::of(Name::Fio);
            let state = steady_state(text, keywords, 1024, &mut notes).unwrap();
            assert_eq!((state.limit, notes.len()), (limit, 1), "{text}");
        }
    }

    #[test]
    fn text_behind_the_percent_sign_is_ignored() {
        let keywords = find_job("steadystate").unwrap().keywords;
        for (text, limit, noted) in
            [("iops:1%", 1.0, 0), ("iops:10%%", 10.0, 1), ("iops:0.3%x", 0.3, 1), ("iops:5% ", 5.0, 0)]
        {
            let mut notes = Notes::of(Name::Fio);
            let state = steady_state(text, keywords, 1024, &mut notes).unwrap();
            assert_eq!((state.limit, state.percent, notes.len()), (limit, true, noted), "{text}");
        }
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in "(iops|bw_slope|lat):[-0-9.a-z%]{0,12}") {
            let _ = read(&text);
        }
    }
}
