//! The report within its page: JSON, compressed by zlib, in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use iolite_options::registry;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{BufWriter, Write};

/// The report, packed. fio writes options as they were given: secrets have placeholders here.
pub fn packed(report: &Value) -> String {
    let value = &masked("", report);
    let mut encoder = BufWriter::new(ZlibEncoder::new(Vec::new(), Compression::default()));
    // Writing to memory does not fail, and a value is serialisable.
    let written = serde_json::to_writer(&mut encoder, value);
    debug_assert!(written.is_ok());
    let _ = encoder.flush();
    let bytes = encoder.into_inner().ok().and_then(|encoder| encoder.finish().ok()).unwrap_or_default();
    STANDARD.encode(bytes)
}

/// The value, with placeholders for what nobody but its owner may see. `name`: the key that it is behind.
fn masked(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(registry::shown(name, text).into_owned()),
        Value::Array(items) => items.iter().map(|item| masked(name, item)).collect(),
        Value::Object(entries) => {
            Value::Object(entries.iter().map(|(name, value)| (name.clone(), masked(name, value))).collect())
        }
        other => other.clone(),
    }
}

/// How a page's policy names the text of a script or a style sheet that it allows.
pub fn fingerprint(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_masked_wherever_they_are() {
        let options = json!({"http_s3_key": "s3cret", "filename": "http://me:s3cret@host/x", "rw": "read"});
        let found =
            masked("", &json!({"global options": options, "jobs": [{"job options": options}], "n": [1]}));
        assert!(!found.to_string().contains("s3cret"), "{found}");
        assert_eq!(found["jobs"][0]["job options"]["rw"], "read");
        assert_eq!(found["n"], json!([1]));
        let plain = json!({"b": {"z": 1, "a": "text"}, "a": [null, true]});
        assert_eq!(masked("", &plain).to_string(), plain.to_string(), "keys stay in order");
    }
}
