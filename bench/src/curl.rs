//! curl(1) with the same requests, in the same run: the cost of a usual client.

use crate::measure::Measure;
use crate::place::Place;
use crate::recorded::times_of_children;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Requests that one curl makes, over connections that are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curl {
    /// Its arguments. `{host}` stands for the server, `{directory}` for a directory with the file `body`.
    pub words: &'static str,
    /// How many requests these are.
    pub requests: u32,
    /// Bytes of that file.
    pub body: usize,
}

/// The number of a case, with curl.
pub fn run(curl: Curl, measure: Measure, place: &Place) -> Result<f64, String> {
    let failed = |error: std::io::Error| format!("curl: {error}");
    // Incompressible data that no hash function handles specially.
    let body: Vec<u8> =
        (0..curl.body as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
    fs::write(place.directory().join("body"), body).map_err(failed)?;
    let words = place.fill_in(curl.words);
    let mut command = Command::new("curl");
    command.args(["-s", "-S", "-f", "-o", "/dev/null"]).args(words.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let (before, began) = (times_of_children(), Instant::now());
    let status = command.status().map_err(failed)?;
    let (after, wall) = (times_of_children(), began.elapsed().as_secs_f64());
    if !status.success() {
        return Err(format!("curl: {status}"));
    }
    let requests = f64::from(curl.requests);
    match measure {
        Measure::Requests => Ok(requests / wall),
        Measure::UserCpuPerIo => Ok((after.0 - before.0) * 1e9 / requests),
        Measure::CpuPerIo => Ok((after.0 + after.1 - before.0 - before.1) * 1e9 / requests),
        _ => Err("curl tells no such number".to_owned()),
    }
}
