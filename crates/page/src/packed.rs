//! The report within its page: JSON, compressed by zlib, in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use iolite_options::registry;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{BufWriter, Write};

/// The report, packed. Secrets are replaced by placeholders, because fio writes options as given. Counts of latency
/// classes over time, which are most of a report with a series, have two digits: a heat map does not show more, and
/// they would double the size.
pub fn packed(report: &Value) -> String {
    let value = &masked_below("", report, true);
    let mut encoder = BufWriter::new(ZlibEncoder::new(Vec::new(), Compression::default()));
    // Writing to memory does not fail, and a value is serialisable.
    let written = serde_json::to_writer(&mut encoder, value);
    debug_assert!(written.is_ok());
    let _ = encoder.flush();
    let bytes = encoder.into_inner().ok().and_then(|encoder| encoder.finish().ok()).unwrap_or_default();
    STANDARD.encode(bytes)
}

/// A report with placeholders instead of secrets.
pub fn masked(report: &Value) -> Value {
    masked_below("", report, false)
}

/// `name`: the key of the value. `is_coarse`: counts have two digits.
fn masked_below(name: &str, value: &Value, is_coarse: bool) -> Value {
    match value {
        Value::String(text) => Value::String(registry::shown(name, text).into_owned()),
        Value::Array(items) if is_coarse && name == "clat_classes" => {
            items.iter().map(with_two_digits).collect()
        }
        Value::Array(items) => items.iter().map(|item| masked_below(name, item, is_coarse)).collect(),
        Value::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(name, value)| (name.clone(), masked_below(name, value, is_coarse)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Pairs of a class and a count, with counts of two digits.
fn with_two_digits(pairs: &Value) -> Value {
    let Value::Array(pairs) = pairs else { return pairs.clone() };
    let rounded = |count: u64| {
        let digits = count.checked_ilog10().unwrap_or(0);
        let step = 10_u64.pow(digits.saturating_sub(1));
        count.saturating_add(step / 2) / step * step
    };
    let one = |(place, value): (usize, &Value)| match value.as_u64() {
        Some(count) if place % 2 == 1 => rounded(count).into(),
        _ => value.clone(),
    };
    pairs.iter().enumerate().map(one).collect()
}

/// The hash by which a page's policy allows a script or a style sheet.
pub fn fingerprint(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_over_time_have_two_digits() {
        let classes = json!([[123, 0, 124, 99, 125, 104, 126, 12_567], [], "x", [1, u64::MAX]]);
        let wanted =
            json!([[123, 0, 124, 99, 125, 100, 126, 13_000], [], "x", [1, 18_000_000_000_000_000_000_u64]]);
        assert_eq!(
            masked_below("", &json!({"clat_classes": classes, "ios": [12_567]}), true),
            json!({"clat_classes": wanted, "ios": [12_567]})
        );
    }

    #[test]
    fn secrets_are_masked_wherever_they_are() {
        let options = json!({"http_s3_key": "s3cret", "filename": "http://me:s3cret@host/x", "rw": "read"});
        let found = masked(&json!({"global options": options, "jobs": [{"job options": options}], "n": [1]}));
        assert!(!found.to_string().contains("s3cret"), "{found}");
        assert_eq!(found["jobs"][0]["job options"]["rw"], "read");
        assert_eq!(found["n"], json!([1]));
        let plain = json!({"b": {"z": 1, "a": "text"}, "a": [null, true]});
        assert_eq!(masked(&plain).to_string(), plain.to_string(), "keys stay in order");
    }
}
