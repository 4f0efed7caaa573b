//! Prints requests and answers to standard error, without secrets (`http_verbose`).

use crate::answer::Answer;
use crate::refusal::bare;
use std::io::{self, Write};

/// Fields of requests with secret values.
const SECRET: [&str; 7] = [
    "authorization",
    "x-auth-token",
    "x-amz-security-token",
    "x-amz-server-side-encryption-customer-key",
    "x-amz-server-side-encryption-customer-key-md5",
    "x-amz-copy-source-server-side-encryption-customer-key",
    "x-amz-copy-source-server-side-encryption-customer-key-md5",
];

/// Fields of answers whose values are shown. Any other may be a secret: a cookie, a token, a signed URL.
const HARMLESS: [&str; 33] = [
    "accept-ranges",
    "age",
    "allow",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "dav",
    "etag",
    "expires",
    "keep-alive",
    "last-modified",
    "retry-after",
    "server",
    "strict-transport-security",
    "transfer-encoding",
    "vary",
    "via",
    "x-amz-bucket-region",
    "x-amz-delete-marker",
    "x-amz-id-2",
    "x-amz-request-id",
    "x-amz-server-side-encryption",
    "x-amz-server-side-encryption-customer-algorithm",
    "x-amz-storage-class",
    "x-amz-version-id",
    "x-openstack-request-id",
    "x-request-id",
    "x-timestamp",
    "x-trans-id",
];

/// Prints a line to standard error. An error is ignored, so that the job goes on.
pub(super) fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

pub(super) fn tell_request(head: &str, level: u32) {
    for line in head.lines().take(if level > 1 { usize::MAX } else { 1 }).filter(|line| !line.is_empty()) {
        tell(&format!("> {}", without_secret(line)));
    }
}

pub(super) fn tell_answer(answer: &Answer, level: u32) {
    tell(&format!("< {} ({} bytes)", answer.status, answer.length));
    if level > 1 {
        for (name, value) in &answer.fields {
            tell(&format!("< {name}: {}", shown(name, value)));
        }
    }
}

/// The value of a field of an answer, or a placeholder.
fn shown(name: &str, value: &str) -> String {
    match name {
        "location" | "content-location" => bare(value),
        _ if HARMLESS.contains(&name) || name.starts_with("x-amz-checksum-") => value.to_owned(),
        _ => "***".to_owned(),
    }
}

/// A line of a head, with a placeholder for a secret value.
fn without_secret(line: &str) -> String {
    match line.split_once(':') {
        Some((name, _)) if SECRET.contains(&name.to_ascii_lowercase().as_str()) => format!("{name}: ***"),
        _ => line.to_owned(),
    }
}
