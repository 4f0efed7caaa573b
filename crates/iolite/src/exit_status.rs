//! The exit status of a run.

use iolite_options::Name;

/// The exit status when a signal ended the run, as users of fio know it.
pub(crate) const INTERRUPTED: u8 = 128;
/// The highest exit status that counts failed jobs: higher ones have special meanings in a shell. (fio's count wraps,
/// so that 256 failed jobs count as success.)
const MOST_FAILURES: usize = 125;

/// The exit status of a run that a signal has ended, or that has failed, with this many failed workers.
pub(crate) fn of(name: Name, is_interrupted: bool, has_failed: bool, failures: usize) -> u8 {
    match has_failed {
        _ if is_interrupted => INTERRUPTED,
        true if name.is_strict() => failures.clamp(1, MOST_FAILURES).try_into().unwrap_or(u8::MAX),
        true => 1,
        false => 0,
    }
}
