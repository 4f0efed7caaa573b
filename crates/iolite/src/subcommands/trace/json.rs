//! A summary in JSON.

use super::{HOT_RANGES, PERCENTILES, percent};
use iolite_trace::summary::{DirectionSummary, Step, Steps, Summary, Times};
use serde_json::{Map, Value, json};

/// The summary as an object, with sizes in bytes and times in nanoseconds.
pub fn summary(name: &str, summary: &Summary) -> String {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("trace", json!(name));
    put("format", json!(super::format_name(summary)));
    put("events", json!(summary.events));
    put("duration_ns", json!(summary.duration_ns));
    put("ios", json!(summary.ios()));
    put("bytes", json!(summary.bytes()));
    for (direction, measured) in summary.directions.iter() {
        put(direction.name(), direction_object(measured, summary));
    }
    put("syncs", json!(summary.syncs));
    put("mean_iops", json!(summary.per_second(summary.ios())));
    put("peak_iops", json!(summary.peak_iops));
    put("mean_bandwidth", json!(summary.per_second(summary.bytes())));
    let gaps = summary.gap_histogram.percentiles(&[50.0, 90.0, 99.0]);
    put(
        "inter_arrival_ns",
        json!({
            "min": summary.gaps.minimum(),
            "max": summary.gaps.max,
            "mean": summary.gaps.mean(),
            "stddev": summary.gaps.deviation(),
            "percentile": { "50": gaps[0], "90": gaps[1], "99": gaps[2] },
        }),
    );
    put(
        "depth",
        match &summary.depth {
            None => Value::Null,
            Some(depth) => json!({
                "max": depth.most,
                "mean": depth.mean(),
                "mean_when_busy": depth.mean_when_busy(),
                "busy_percent": depth.busy_percent(),
            }),
        },
    );
    put("steps", summary.steps.as_deref().map_or(Value::Null, steps_object));
    let files = summary.files.iter().map(
        |file| json!({ "name": file.name.to_string(), "ios": file.ios, "bytes": file.bytes, "end": file.end }),
    );
    put("files", files.collect());
    put("range_bytes", json!(summary.ranges.size));
    put("ranges_touched", json!(summary.ranges.touched()));
    put("ranges_complete", json!(summary.ranges.complete));
    let hot = summary.ranges.by_ios().into_iter().take(HOT_RANGES).map(|range| {
        json!({
            "file": summary.files[range.file as usize].name.to_string(),
            "offset": range.offset,
            "length": range.length,
            "ios": range.ios,
            "bytes": range.bytes,
            "percent": percent(range.ios, summary.ios()),
        })
    });
    put("hot_ranges", hot.collect());
    let mut text = serde_json::to_string_pretty(&Value::Object(object)).expect("a value can be written");
    text.push('\n');
    text
}

/// The steps under the names that btt has for them, and what they mean.
fn steps_object(steps: &Steps) -> Value {
    let known = Step::ALL.into_iter().filter(|&step| steps.of(step).moments.count > 0);
    let object = known.map(|step| {
        let Times { moments, histogram } = steps.of(step);
        let values = histogram.percentiles(&PERCENTILES).into_iter().map(|time| json!(time.min(moments.max)));
        let percentile: Map<String, Value> = PERCENTILES.iter().map(f64::to_string).zip(values).collect();
        let times = json!({
            "N": moments.count,
            "min": moments.min,
            "max": moments.max,
            "mean": moments.mean(),
            "stddev": moments.deviation(),
            "percentile": percentile,
        });
        (format!("{}_ns", step.name().to_lowercase()), times)
    });
    Value::Object(object.collect())
}

fn direction_object(measured: &DirectionSummary, summary: &Summary) -> Value {
    let sizes: Vec<Value> = measured
        .sizes
        .by_count()
        .into_iter()
        .map(|(size, ios)| json!({ "bytes": size, "ios": ios }))
        .collect();
    json!({
        "ios": measured.ios,
        "bytes": measured.bytes,
        "percent": percent(measured.ios, summary.ios()),
        "sequential_percent": percent(measured.sequential, measured.ios),
        "smallest": measured.sizes.smallest(),
        "largest": measured.sizes.largest(),
        "sizes_rounded": measured.sizes.rounded,
        "sizes": sizes,
    })
}
