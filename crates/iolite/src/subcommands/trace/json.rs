//! A summary in JSON.

use super::{HOT_RANGES, percent};
use iolite_trace::summary::{DirectionSummary, Summary};
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
