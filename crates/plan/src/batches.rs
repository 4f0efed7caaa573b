//! Checks that an accelerator gets samples.

use iolite_options::{JobOptions, Sample};

/// The obstacles: each with the option to blame and the reason.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    let batches = &options.batches;
    if batches.batch_size == 0 {
        return Vec::new();
    }
    let size = batches.batch_size;
    let mut found = Vec::new();
    if batches.batch_compute == 0 {
        let why = format!(
            "batch_size={size}: the time for which the accelerator computes with a batch is missing: batch_compute=323ms"
        );
        found.push(("batch_size", why));
    }
    if !options.pattern.rw.reads() && !options.is_replay() {
        found.push(("batch_size", format!("batch_size={size}: samples are read, and this job only writes")));
    }
    if batches.batch_sample == Sample::File && options.is_replay() {
        let why =
            "batch_sample=file: a trace does not read whole files; leave it out, and each read is a sample";
        found.push(("batch_sample", why.to_owned()));
    }
    if let Sample::Bytes(bytes) = batches.batch_sample
        && u128::from(size) * u128::from(bytes) > 1 << 62
    {
        found.push((
            "batch_size",
            format!("batch_size={size}: a batch of samples of {bytes} bytes is too large"),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{BatchOptions, PatternOptions, ReadWrite};

    #[test]
    fn an_accelerator_computes_with_what_is_read() {
        let blamed = |rw, batches: BatchOptions| {
            let pattern = PatternOptions { rw, ..PatternOptions::default() };
            obstacles(&JobOptions { pattern, batches, ..JobOptions::default() }).len()
        };
        let batches =
            |batch_size, batch_compute| BatchOptions { batch_size, batch_compute, ..BatchOptions::default() };
        assert_eq!(blamed(ReadWrite::Read, batches(4, 1)), 0);
        assert_eq!(blamed(ReadWrite::Write, batches(0, 0)), 0);
        assert_eq!(blamed(ReadWrite::Read, batches(4, 0)), 1);
        assert_eq!(blamed(ReadWrite::Write, batches(4, 1)), 1);
        let huge = BatchOptions { batch_sample: Sample::Bytes(1 << 40), ..batches(1 << 40, 1) };
        assert_eq!(blamed(ReadWrite::RandRead, huge), 1);
    }
}
