//! The report within its page: JSON, compressed by zlib, in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{BufWriter, Write};

/// The value, packed.
pub fn packed(value: &Value) -> String {
    let mut encoder = BufWriter::new(ZlibEncoder::new(Vec::new(), Compression::default()));
    // Writing to memory does not fail, and a value is serialisable.
    let written = serde_json::to_writer(&mut encoder, value);
    debug_assert!(written.is_ok());
    let _ = encoder.flush();
    let bytes = encoder.into_inner().ok().and_then(|encoder| encoder.finish().ok()).unwrap_or_default();
    STANDARD.encode(bytes)
}

/// How a page's policy names the text of a script or a style sheet that it allows.
pub fn fingerprint(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}
