//! Converts any trace to a text log.

use iolite_trace::{FileName, TextVersion, TextWriter, TraceReader};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// Writes the trace as a text log to standard output, an event at a time. Devices are called by their names below
/// /dev/block; times count from the first event.
pub fn to_standard_output(mut reader: TraceReader<File>, version: TextVersion) -> Result<(), String> {
    let output = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let written = |error: io::Error| format!("standard output: {error}");
    let mut log = TextWriter::new(output, version).map_err(written)?;
    let mut names: Vec<PathBuf> = Vec::new();
    let mut first = None;
    while let Some(record) = reader.next_record().map_err(|error| error.to_string())? {
        names.extend(reader.files()[names.len()..].iter().map(path));
        let first = *first.get_or_insert(record.time_ns);
        let time_us = record.time_ns.saturating_sub(first) / 1000;
        match log.write(time_us, &names[record.file as usize], record.event) {
            // The reader has closed the pipe: `head`, for example.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            result => result.map_err(written)?,
        }
    }
    match log.output().flush() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(written),
    }
}

fn path(name: &FileName) -> PathBuf {
    match name {
        FileName::Path(path) => path.clone(),
        FileName::Device { .. } => PathBuf::from(format!("/dev/block/{name}")),
    }
}
