//! Writes text logs.

use crate::{Event, TextVersion};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Writes a text log. It does not buffer, so `output` should be a buffered writer.
#[derive(Debug)]
pub struct TextWriter<W> {
    output: W,
    version: TextVersion,
    /// The time up to which a log of version 2 has waited, in milliseconds.
    waited_ms: u64,
}

impl<W: Write> TextWriter<W> {
    /// Begins a log with its first line.
    ///
    /// # Errors
    ///
    /// The error of writing to `output`.
    pub fn new(mut output: W, version: TextVersion) -> io::Result<Self> {
        writeln!(output, "{}", version.header())?;
        Ok(TextWriter { output, version, waited_ms: 0 })
    }

    /// Writes one event, at `time_us` microseconds after the start. Version 2 waits in milliseconds, so fractions are
    /// lost. Events that only block traces have are left out.
    ///
    /// # Errors
    ///
    /// The error of writing to the output.
    pub fn write(&mut self, time_us: u64, name: &Path, event: Event) -> io::Result<()> {
        let (action, numbers) = match event {
            Event::Add => ("add", None),
            Event::Open => ("open", None),
            Event::Close => ("close", None),
            Event::Wait | Event::Issued | Event::Returned => return Ok(()),
            Event::Io { operation, offset, length } => (operation.name(), Some((offset, length))),
        };
        match self.version {
            TextVersion::V3 => write!(self.output, "{time_us} ")?,
            TextVersion::V2 => self.wait_until(time_us / 1000, name, event)?,
        }
        self.output.write_all(name.as_os_str().as_bytes())?;
        match numbers {
            Some((offset, length)) => writeln!(self.output, " {action} {offset} {length}"),
            None => writeln!(self.output, " {action}"),
        }
    }

    /// Writes a wait. It needs an open file, so no wait is written before `add` and `open`.
    fn wait_until(&mut self, milliseconds: u64, name: &Path, event: Event) -> io::Result<()> {
        if milliseconds <= self.waited_ms || matches!(event, Event::Add | Event::Open) {
            return Ok(());
        }
        self.waited_ms = milliseconds;
        self.output.write_all(name.as_os_str().as_bytes())?;
        writeln!(self.output, " wait {milliseconds} 0")
    }

    /// The output.
    pub fn output(&mut self) -> &mut W {
        &mut self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileName, Record, TextReader};
    use iolite_types::Operation;
    use proptest::prelude::*;

    fn events() -> impl Strategy<Value = Vec<(u64, u32, Event)>> {
        let operation = prop::sample::select(vec![
            Operation::Read,
            Operation::Write,
            Operation::Trim,
            Operation::Sync,
            Operation::DataSync,
            Operation::SyncFileRange,
        ]);
        let event = (operation, 0..1u64 << 60, 0..1u64 << 40)
            .prop_map(|(operation, offset, length)| Event::Io { operation, offset, length });
        prop::collection::vec((0..1u64 << 40, 0..3u32, event), 0..40)
    }

    fn names() -> [FileName; 3] {
        ["/dev/sda", "with space", "x"].map(|name| FileName::Path(name.into()))
    }

    /// The records read from a log of these events.
    fn round_trip(version: TextVersion, events: &[(u64, u32, Event)]) -> Vec<Record> {
        let mut writer = TextWriter::new(Vec::new(), version).unwrap();
        let path = |file: u32| match &names()[file as usize] {
            FileName::Path(path) => path.clone(),
            FileName::Device { .. } => unreachable!(),
        };
        for file in 0..3 {
            writer.write(0, &path(file), Event::Add).unwrap();
            writer.write(0, &path(file), Event::Open).unwrap();
        }
        for &(time, file, event) in events {
            writer.write(time, &path(file), event).unwrap();
        }
        let bytes = std::mem::take(writer.output());
        let mut reader = TextReader::new(&bytes[..], "t").unwrap();
        let records = std::iter::from_fn(|| reader.next_record().unwrap()).skip(6).collect();
        assert_eq!(reader.files(), names());
        records
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn version_3_keeps_everything(events in events()) {
            let read: Vec<_> = round_trip(TextVersion::V3, &events)
                .into_iter()
                .map(|record| (record.time_ns / 1000, record.file, record.event))
                .collect();
            prop_assert_eq!(read, events);
        }

        #[test]
        fn version_2_keeps_milliseconds(mut events in events()) {
            events.sort_by_key(|(time, ..)| *time);
            let read: Vec<_> = round_trip(TextVersion::V2, &events)
                .into_iter()
                .filter(|record| record.event != Event::Wait)
                .map(|record| (record.time_ns / 1_000_000, record.file, record.event))
                .collect();
            let expected: Vec<_> = events.iter().map(|&(time, file, event)| (time / 1000, file, event)).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
