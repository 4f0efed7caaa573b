//! Prints requests and answers to standard error, without secrets (`http_verbose`).

use crate::answer::Answer;
use std::io::{self, Write};

/// Fields with secret values.
const SECRET: [&str; 6] = [
    "authorization",
    "x-auth-token",
    "x-amz-security-token",
    "x-amz-server-side-encryption-customer-key",
    "x-amz-server-side-encryption-customer-key-md5",
    "www-authenticate",
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
            tell(&format!("< {}", without_secret(&format!("{name}: {value}"))));
        }
    }
}

/// A line of a head, with a placeholder for a secret value.
fn without_secret(line: &str) -> String {
    match line.split_once(':') {
        Some((name, _)) if SECRET.contains(&name.to_ascii_lowercase().as_str()) => format!("{name}: ***"),
        _ => line.to_owned(),
    }
}
