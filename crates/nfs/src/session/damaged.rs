//! Takes answers of a server that may send anything, for tests that damage them.

use super::{Calls, File, Opened, What};
use crate::connection::Sink;
use crate::protocol::Version;
use crate::v4::{self, SlotTable};
use crate::xdr::Writer;
use std::time::Duration;

/// The length of the read or the write that is answered.
const LENGTH: usize = 64;

/// The bit of the first byte that chooses the parts of answers that only version 4 has.
const PARTS: u8 = 0x80;

/// Takes an answer, and returns what came of it. The first byte of the input chooses what is answered: the lowest bit
/// version 3 or 4, the next two a read, a write, a commit or the renewal of a lease. With the highest bit it chooses a part
/// of an answer instead.
///
/// # Panics
/// When the answer is not checked as it should be.
pub fn take_answers(input: &[u8]) -> String {
    let Some((&choice, body)) = input.split_first() else { return String::new() };
    if choice & PARTS != 0 {
        return v4::take_part(choice & 7, body);
    }
    let version = if choice & 1 == 0 { Version::Three } else { Version::Four };
    let what = match (choice >> 1 & 3, version) {
        (0, _) => What::Read,
        (1, _) => What::Write,
        (3, Version::Four) => What::Renew,
        _ => What::Commit,
    };
    let mut calls = Calls::new(version, true, Duration::from_secs(1));
    let mut file = File::new(Opened::new(vec![1], "f".to_owned()));
    file.commits = usize::from(what == What::Commit);
    calls.files.push(Some(file));
    let mut data = [0; LENGTH];
    calls.begin_unit(0, 0, LENGTH as u64, 1);
    let place = calls.begin(what, Some(0), 0, (0, data.as_mut_ptr(), LENGTH));
    if version == Version::Four {
        calls.table = SlotTable::new([1; 16], 8);
        calls.slots[place].session_slot = calls.table.take();
    }
    let mut record = Vec::new();
    Writer(&mut record).u32(calls.slots[place].id).u32(1).u32(0).u32(0).u32(0).u32(0);
    record.extend_from_slice(body);
    if let Some(landing) = calls.landing(&record, record.len()) {
        assert!(landing.length <= LENGTH && landing.head + landing.length <= record.len());
    }
    let taken = calls.record(&record);
    let done = calls.next_outcome();
    format!("{version:?} {what:?} {taken:?} {done} {} {}", calls.again.len(), calls.later.len())
}

/// Undamaged answers, as [`take_answers`] takes them.
pub fn samples() -> Vec<Vec<u8>> {
    let sample = |choice: u8, write: &dyn Fn(&mut Writer<'_>)| {
        let mut bytes = vec![choice];
        write(&mut Writer(&mut bytes));
        bytes
    };
    let mut samples = vec![
        sample(0, &|writer| {
            writer.u32(0).u32(0).u32(4).u32(1).opaque(b"abcd");
        }),
        sample(2, &|writer| {
            writer.u32(0).u32(0).u32(0).u32(64).u32(0).u64(1);
        }),
        sample(4, &|writer| {
            writer.u32(0).u32(0).u32(0).u64(1);
        }),
        sample(0, &|writer| {
            writer.u32(70).u32(0);
        }),
    ];
    samples.extend(v4::samples().into_iter().map(|(choice, body)| [&[choice][..], &body].concat()));
    samples
}

impl Calls {
    /// The outcome of the next unit, without numbers.
    fn next_outcome(&mut self) -> &'static str {
        match self.done.pop_front().map(|done| done.result) {
            Some(Ok(_)) => "done",
            Some(Err(_)) => "failed",
            None => "open",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undamaged_answers_are_accepted() {
        for sample in samples() {
            let told = take_answers(&sample);
            assert!(told.contains("Ok"), "{sample:?}: {told}");
        }
    }
}
