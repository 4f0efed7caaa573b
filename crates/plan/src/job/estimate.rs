//! The basis for estimates of a worker's remaining time.

use iolite_options::JobOptions;
use iolite_types::Direction;
use serde::{Deserialize, Serialize};

/// The basis for estimates of a worker's remaining time.
///
/// A worker ends when its time is over, its bytes are moved or its I/Os are done, whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateRules {
    /// Its longest run time in seconds, including its ramp; `None` = no limit.
    pub limit_s: Option<f64>,
    /// Only the time ends it: the amount of its work is unlimited or unknown.
    pub only_time: bool,
    /// The length of the ramp, in seconds. I/Os of the ramp do not count.
    pub ramp_s: f64,
    /// How often it moves the bytes of one pass over its files. Data that is written and read back counts twice.
    pub byte_passes: f64,
    /// The number of I/Os that end it; `None` = no limit. Blocks that are written and read back count twice.
    pub ios: Option<f64>,
}

impl EstimateRules {
    pub(super) fn of(options: &JobOptions) -> EstimateRules {
        let passes = passes(options);
        let limit_s = (options.schedule.runtime as f64 + options.schedule.ramp_time as f64) / 1e6;
        EstimateRules {
            limit_s: (options.schedule.runtime > 0).then_some(limit_s),
            only_time: (options.schedule.time_based && !options.checks_any_pass() && !options.passes_go_on())
                || (options.is_replay() && options.replay.read_iolog_chunked),
            ramp_s: options.schedule.ramp_time as f64 / 1e6,
            byte_passes: options.flash_share() * passes,
            // A replay ends with its trace.
            ios: (options.extent.number_ios > 0 && !options.is_replay())
                .then_some(options.extent.number_ios as f64 * passes),
        }
    }
}

/// How often the bytes of one pass are moved, and its I/Os done.
fn passes(options: &JobOptions) -> f64 {
    let loops = if options.passes_go_on() { 1.0 } else { options.schedule.loops as f64 };
    let in_pairs = options.pattern.rw.writes_what_it_trims();
    let share = if in_pairs { 50 } else { options.mix().map_or(100, |shares| shares[Direction::Write]) };
    let written = f64::from(share) / 100.0;
    // A pass counts a trim and the write to the same place once.
    let pairs = if in_pairs { 2.0 } else { 1.0 };
    if options.relies_on_earlier_run() {
        // No writes are issued. The writes of an earlier run are read.
        let reads = if options.checks_any_pass() { loops } else { 1.0 };
        reads * pairs * written
    } else if options.reads_back() {
        loops * pairs * (1.0 + written)
    } else {
        loops * pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{ReadWrite, Verify};

    fn of(change: impl FnOnce(&mut JobOptions)) -> EstimateRules {
        let mut options = JobOptions::default();
        change(&mut options);
        EstimateRules::of(&options)
    }

    /// (The bytes of such a job's only pass are those of all.)
    #[test]
    fn appended_passes_are_one() {
        let appended =
            of(|o| (o.extent.file_append, o.schedule.loops, o.schedule.time_based) = (true, 3, true));
        assert_eq!((appended.byte_passes, appended.only_time), (1.0, false));
        let none = of(|o| {
            (o.extent.file_append, o.schedule.loops, o.pattern.norandommap) = (true, 3, true);
            o.pattern.rw = ReadWrite::RandWrite;
        });
        assert_eq!(none.byte_passes, 3.0);
    }

    #[test]
    fn limits_of_a_job_are_estimated() {
        assert_eq!((of(|_| ()).limit_s, of(|_| ()).ios, of(|_| ()).only_time), (None, None, false));
        let limited = of(|o| (o.schedule.runtime, o.schedule.ramp_time) = (5_000_000, 500_000));
        assert_eq!((limited.limit_s, limited.ramp_s, limited.only_time), (Some(5.5), 0.5, false));
        assert!(of(|o| o.schedule.time_based = true).only_time);
        assert_eq!(of(|o| (o.extent.number_ios, o.schedule.loops) = (30, 2)).ios, Some(60.0));
        let replay = |o: &mut JobOptions| (o.replay.read_iolog, o.extent.number_ios) = (vec!["t".into()], 30);
        assert_eq!(of(replay).ios, None);
    }

    #[test]
    fn passes_over_the_bytes_are_estimated() {
        let passes = |change: &dyn Fn(&mut JobOptions)| of(change).byte_passes;
        assert_eq!(passes(&|o| o.schedule.loops = 3), 3.0);
        assert_eq!(passes(&|o| (o.pattern.sprandom, o.pattern.spr_op) = (true, 0.25)), 1.25);
        assert_eq!(passes(&|o| o.pattern.rw = ReadWrite::TrimWrite), 2.0);
        let verified = |o: &mut JobOptions| {
            (o.pattern.rw, o.schedule.loops) = (ReadWrite::Write, 2);
            o.verification.verify = Verify::Crc32c;
        };
        assert_eq!(passes(&verified), 4.0);
        let only_read = |o: &mut JobOptions| {
            verified(o);
            o.verification.verify_only = true;
        };
        assert_eq!(passes(&only_read), 2.0, "a check repeats its reads");
    }
}
