//! The series of a report, as windows.

use crate::steadiness::Point;
use iolite_stored::number;
use serde_json::Value;
use std::collections::BTreeMap;

/// The entry of a job in the series.
pub fn of_job(series: &Value, position: usize) -> &Value {
    let mut entries = series["jobs"].as_array().into_iter().flatten();
    entries.find(|entry| entry["job"].as_u64() == Some(position as u64)).unwrap_or(&Value::Null)
}

/// Seconds from one sample to the next.
pub fn sample_seconds(series: &Value) -> f64 {
    number(series, "sample_us") / 1e6
}

/// The windows of a direction, in pieces: between the pieces, no I/O was expected. `None` = no series.
pub fn pieces(over_time: &Value, series: &Value) -> Option<Vec<Vec<Point>>> {
    let first = window(over_time, "first_window")?;
    let ramp = window(over_time, "ramp_windows").unwrap_or(0);
    let (ios, lowest) = (over_time["ios"].as_array()?, over_time["iops_min"].as_array()?);
    let mut pieces = vec![Vec::new()];
    for (position, (ios, lowest)) in ios.iter().zip(lowest).enumerate().skip(ramp) {
        let seconds = seconds(series, first.checked_add(position)?)?;
        if ios.is_null() {
            pieces.push(Vec::new());
        } else if let Some(piece) = pieces.last_mut() {
            piece.push(Point { seconds, ios: ios.as_f64()?, lowest: lowest.as_f64()? });
        }
    }
    pieces.iter_mut().for_each(without_empty_end);
    Some(pieces)
}

/// A job that ends with a window is still expected in the next one, which is empty.
fn without_empty_end(piece: &mut Vec<Point>) {
    if let [.., before, last] = &piece[..]
        && last.ios == 0.0
        && before.ios > 0.0
    {
        piece.pop();
    }
}

/// The windows of the sums of these directions of several jobs, from where one of them is behind its ramp. `None` = one of
/// them has no series. How low the samples of a sum were within a window is not known, so each window has one rate.
pub fn pieces_of_sum(members: &[&Value], series: &Value) -> Option<Vec<Vec<Point>>> {
    let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
    let mut begin = usize::MAX;
    for member in members {
        let first = window(member, "first_window")?;
        begin = begin.min(first.checked_add(window(member, "ramp_windows").unwrap_or(0))?);
        for (position, ios) in member["ios"].as_array()?.iter().enumerate().filter(|(_, ios)| !ios.is_null())
        {
            *sums.entry(first.checked_add(position)?).or_default() += ios.as_f64()?;
        }
    }
    let mut pieces = vec![Vec::new()];
    let mut next = begin;
    for (&window, &ios) in sums.range(begin..) {
        let seconds = seconds(series, window)?;
        if window != next {
            pieces.push(Vec::new());
        }
        next = window + 1;
        pieces.last_mut()?.push(Point { seconds, ios, lowest: ios / seconds });
    }
    pieces.iter_mut().for_each(without_empty_end);
    Some(pieces)
}

/// A window's number, or a number of windows.
fn window(over_time: &Value, key: &str) -> Option<usize> {
    usize::try_from(over_time[key].as_u64()?).ok()
}

/// The length of a window.
fn seconds(series: &Value, window: usize) -> Option<f64> {
    let end = |window: usize| series["end_us"].get(window)?.as_f64();
    let begin = match window.checked_sub(1) {
        Some(before) => end(before)?,
        None => series["begin_us"].as_f64()?,
    };
    Some(((end(window)? - begin) / 1e6).max(1e-6))
}

/// IOPS over time, without the first and the last window if there are others: the job did not run in all of them.
pub fn rates(pieces: &[Vec<Point>]) -> Vec<f64> {
    let rates: Vec<f64> = pieces.iter().flatten().map(|point| point.ios / point.seconds).collect();
    match &rates[..] {
        [_, inner @ .., _] if inner.len() > 1 => inner.to_owned(),
        _ => rates,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Sums begin behind the first ramp, are gaps where nobody was expected to have I/O, and need the series of all.
    #[test]
    fn sums_of_windows() {
        let series = json!({"begin_us": 0, "end_us": [1e6, 2e6, 4e6, 5e6, 6e6, 7e6], "sample_us": 1_000_000});
        let one = json!({"first_window": 0, "ramp_windows": 1, "ios": [9, 10, 20, null, null, 7]});
        let other = json!({"first_window": 1, "ramp_windows": 2, "ios": [1, 2, null, 3, 4]});
        let summed = pieces_of_sum(&[&one, &other], &series).unwrap();
        let told: Vec<Vec<(f64, f64, f64)>> = summed
            .iter()
            .map(|piece| piece.iter().map(|point| (point.seconds, point.ios, point.lowest)).collect())
            .collect();
        assert_eq!(
            told,
            [vec![(1.0, 11.0, 11.0), (2.0, 22.0, 11.0)], vec![(1.0, 3.0, 3.0), (1.0, 11.0, 11.0)]]
        );
        assert!(pieces_of_sum(&[&one, &Value::Null], &series).is_none());
        let beyond = json!({"first_window": u64::MAX, "ios": [1, 2]});
        assert!(pieces_of_sum(&[&beyond], &series).is_none());
        let late = json!({"first_window": 6, "ios": [1]});
        assert!(pieces_of_sum(&[&late], &series).is_none(), "there is no such window");
    }
}
