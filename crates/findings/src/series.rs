//! The series of a report, as windows.

use crate::steadiness::Point;
use iolite_stored::number;
use serde_json::Value;

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
    let first = usize::try_from(over_time["first_window"].as_u64()?).ok()?;
    let ramp = over_time["ramp_windows"].as_u64().and_then(|ramp| usize::try_from(ramp).ok()).unwrap_or(0);
    let ends = series["end_us"].as_array()?;
    let (ios, lowest) = (over_time["ios"].as_array()?, over_time["iops_min"].as_array()?);
    let end = |window: usize| ends.get(window)?.as_f64();
    let mut pieces = vec![Vec::new()];
    for (position, (ios, lowest)) in ios.iter().zip(lowest).enumerate().skip(ramp) {
        let window = first.checked_add(position)?;
        let begin = match window.checked_sub(1) {
            Some(before) => end(before)?,
            None => series["begin_us"].as_f64()?,
        };
        let seconds = ((end(window)? - begin) / 1e6).max(1e-6);
        if ios.is_null() {
            pieces.push(Vec::new());
        } else if let Some(piece) = pieces.last_mut() {
            piece.push(Point { seconds, ios: ios.as_f64()?, lowest: lowest.as_f64()? });
        }
    }
    Some(pieces)
}

/// IOPS over time, without the first and the last window if there are others: the job did not run in all of them.
pub fn rates(pieces: &[Vec<Point>]) -> Vec<f64> {
    let rates: Vec<f64> = pieces.iter().flatten().map(|point| point.ios / point.seconds).collect();
    match &rates[..] {
        [_, inner @ .., _] if inner.len() > 1 => inner.to_owned(),
        _ => rates,
    }
}
