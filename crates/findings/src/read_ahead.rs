//! Reads that the kernel made larger than they were.

use crate::numbers::bytes;
use crate::{Case, Finding, Kind, Role, Subject};

/// How many times as large as the job's I/Os the requests at the device are. Neighbouring requests are merged by chance as
/// well, but not most of them.
const LARGER: f64 = 1.5;

pub(crate) fn findings(subject: &Subject) -> Vec<Finding> {
    let buffered = |case: &&Case| !case.is_direct && matches!(case.role, Role::Read | Role::RandomRead);
    let found = subject.cases.iter().filter(buffered).find_map(|case| {
        let flow = case.only_reads()?;
        let (counted, requests) = case.measured.counted.as_ref()?.read;
        let asked = (flow.ios > 0.0).then(|| flow.bytes / flow.ios)?;
        let each = (requests > 0.0).then(|| counted / requests)?;
        // What a cache answered is another finding.
        (each >= LARGER * asked && counted >= flow.bytes / 2.0).then_some((case, asked, each))
    });
    found
        .map(|(case, asked, each)| Finding {
            kind: Kind::ReadAhead,
            words: "The kernel reads ahead: sequential reads through the page cache have more in flight than the case \
                    asks for, and their latency is that of a copy."
                .to_owned(),
            evidence: format!(
                "{} asked for {} at a time, and {} was asked for {}",
                case.name,
                bytes(asked),
                subject.device(),
                bytes(each)
            ),
        })
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{case, flash};

    #[test]
    fn requests_that_are_larger_than_asked() {
        let of = |is_direct, requests: f64| {
            let mut read = case("read", Role::Read, 1000.0, 65_536.0, 90.0);
            read.is_direct = is_direct;
            read.measured.counted.as_mut().unwrap().read.1 = requests;
            findings(&flash(vec![read]))
        };
        assert_eq!(
            of(false, 5000.0)[0].evidence,
            "read asked for 64 KiB at a time, and sda was asked for 128 KiB"
        );
        assert_eq!(of(false, 8000.0), []);
        assert_eq!(of(true, 5000.0), [], "the block layer merges");
    }
}
