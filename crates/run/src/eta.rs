//! How far the run is: the share done and the time left.

use crate::shared::{Control, Phase};
use iolite_options::JobOptions;
use iolite_plan::Layout;
use std::sync::atomic::Ordering::Relaxed;

/// Seconds that a worker has still to run, from what it was asked to do and what it has done.
///
/// A worker ends when its time is over or its bytes are moved, whichever comes first; the time for the bytes is
/// estimated from its rate so far. `None` = it cannot be told (yet).
pub fn seconds_left(
    options: &JobOptions,
    layout: &Layout,
    control: &Control,
    bytes_done: u64,
    now_ns: u64,
) -> Option<f64> {
    let phase = control.phase();
    if phase == Phase::Exited {
        return Some(0.0);
    }
    let limit = |elapsed_s: f64| {
        (options.runtime > 0)
            .then(|| ((options.runtime + options.ramp_time) as f64 / 1e6 - elapsed_s).max(0.0))
    };
    if phase < Phase::Ramping {
        return limit(0.0);
    }
    let elapsed_s = now_ns.saturating_sub(control.started_ns.load(Relaxed)) as f64 / 1e9;
    let by_time = limit(elapsed_s);
    let is_live = options.read_iolog_chunked && !options.read_iolog.is_empty();
    if options.time_based || is_live {
        return by_time;
    }
    let counted_s = now_ns.saturating_sub(control.counting_ns.load(Relaxed)) as f64 / 1e9;
    // Preconditioning writes as many blocks as the flash has, which are more than can be addressed.
    let extra = if options.sprandom { 1.0 + options.spr_op.max(0.0) } else { 1.0 };
    let total = layout.bytes_per_pass() as f64 * extra * options.loops.max(1) as f64;
    let by_bytes = (bytes_done > 0 && counted_s > 0.0)
        .then(|| (total - bytes_done as f64).max(0.0) / (bytes_done as f64 / counted_s));
    match (by_time, by_bytes) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The share of the time that is over, in percent.
pub fn percent(elapsed_s: f64, left_s: f64) -> f64 {
    let all = elapsed_s + left_s;
    if all <= 0.0 { 0.0 } else { (100.0 * elapsed_s / all).clamp(0.0, 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Arena;

    fn layout(bytes: u64) -> Layout {
        Layout { files: Vec::new(), pass_bytes: Some(bytes) }
    }

    fn running(control: &Control) {
        control.set_phase(Phase::Running);
        control.started_ns.store(1_000_000_000, Relaxed);
        control.counting_ns.store(1_000_000_000, Relaxed);
    }

    #[test]
    fn by_bytes_by_time_or_by_what_comes_first() {
        let arena = Arena::new(1).unwrap();
        let control = &arena.slot(0).control;
        running(control);
        let now = 3_000_000_000;
        let options = JobOptions::default();
        assert_eq!(seconds_left(&options, &layout(400), control, 100, now), Some(6.0));
        assert_eq!(seconds_left(&options, &layout(400), control, 0, now), None);
        let flash = JobOptions { sprandom: true, spr_op: 0.25, ..JobOptions::default() };
        assert_eq!(seconds_left(&flash, &layout(400), control, 100, now), Some(8.0));
        let limited = JobOptions { runtime: 5_000_000, ..JobOptions::default() };
        assert_eq!(seconds_left(&limited, &layout(400), control, 100, now), Some(3.0));
        assert_eq!(seconds_left(&limited, &layout(200), control, 100, now), Some(2.0));
        let based = JobOptions { time_based: true, ..limited };
        assert_eq!(seconds_left(&based, &layout(200), control, 100, now), Some(3.0));
    }

    #[test]
    fn shares() {
        assert_eq!(percent(1.0, 3.0), 25.0);
        assert_eq!(percent(0.0, 0.0), 0.0);
        assert_eq!(percent(5.0, 0.0), 100.0);
    }
}
