//! The status line, redrawn in place while the run goes on.
//!
//! `Jobs: 20 (f=20): [R(10),W(10)][4.0%][r=20.5MiB/s,w=23.5MiB/s][r=82,w=94 IOPS][eta 57m:36s]`: workers and open
//! files, the state of every worker with repeats counted, the share done, rates of the directions in use, and the
//! time left. What cannot be told is dashes: `[-.-%]`, `[eta --]`. While no worker runs and nothing can be told, the line
//! ends after the open files.

use crate::units::{self, Units};
use iolite_stats::{RateLimits, Snapshot};
use iolite_types::{Direction, PerDirection};
use std::fmt::Write;

/// Figures of the rates.
const FIGURES: u32 = 4;

/// Draws status lines, each over the one before.
#[derive(Clone, Debug, Default)]
pub struct LiveLine {
    drawn: usize,
}

impl LiveLine {
    /// The line, blanks to cover what is left of a longer one before it, and the return to the line's start.
    pub fn redraw(&mut self, snapshot: &Snapshot) -> String {
        let line = status(snapshot);
        let length = line.chars().count();
        let blanks = self.drawn.saturating_sub(length);
        self.drawn = length;
        format!("{line}{:blanks$}\r", "")
    }

    /// Leaves the line as it stands and goes on below it.
    pub fn leave(&mut self) -> &'static str {
        self.drawn = 0;
        "\n"
    }

    /// Blanks over the line, for something else to be written in its place. Empty when nothing is drawn.
    pub fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            drawn => format!("\r{:drawn$}\r", ""),
        }
    }
}

/// The status line without any line end.
pub fn status(snapshot: &Snapshot) -> String {
    let units = Units { kb_base: snapshot.kb_base, unit_base: snapshot.unit_base, figures: FIGURES };
    let mut line = format!("Jobs: {} (f={})", snapshot.running, snapshot.open_files);
    line += &limits(&snapshot.limits, units);
    if snapshot.running == 0 && snapshot.percent.is_none() && snapshot.eta_s.is_none() {
        return line;
    }
    let percent = match snapshot.percent {
        Some(percent) => format!("{:.1}%", percent.clamp(0.0, 100.0)),
        None => "-.-%".to_string(),
    };
    line += &format!(": [{}][{percent}]", condensed(&snapshot.states));
    let shown: Vec<Direction> = Direction::ALL.into_iter().filter(|&of| snapshot.shown[of]).collect();
    if !shown.is_empty() {
        let bandwidth = list(&shown, &snapshot.bandwidth, |rate| units.live_rate(rate));
        let iops = list(&shown, &snapshot.iops, |rate| units::count(rate, FIGURES));
        line += &format!("[{bandwidth}][{iops} IOPS]");
    }
    let eta = snapshot.eta_s.map_or_else(|| "--".to_string(), time_left);
    line + &format!("[eta {eta}]")
}

/// `r=1,w=2`, of the directions shown.
fn list(shown: &[Direction], values: &PerDirection<u64>, text: impl Fn(u64) -> String) -> String {
    let entries = shown.iter().map(|&of| format!("{}={}", &of.name()[..1], text(values[of])));
    entries.collect::<Vec<_>>().join(",")
}

/// Where rates are limited: the sums of the lower and upper limits of all workers that run.
fn limits(limits: &RateLimits, units: Units) -> String {
    if limits.max_bandwidth > 0 || limits.min_bandwidth > 0 {
        // Limits are in bytes even where rates are shown in bits.
        let units = Units { unit_base: 8, ..units };
        format!(", {}-{}", units.rate(limits.min_bandwidth), units.rate(limits.max_bandwidth))
    } else if limits.max_iops > 0 || limits.min_iops > 0 {
        format!(", {}-{} IOPS", limits.min_iops, limits.max_iops)
    } else {
        String::new()
    }
}

/// States in order, repeats counted: `R(10),W(10)`.
fn condensed(states: &[u8]) -> String {
    let mut text = String::new();
    for (position, run) in states.chunk_by(|a, b| a == b).enumerate() {
        let comma = if position == 0 { "" } else { "," };
        write!(text, "{comma}{}({})", char::from(run[0]), run.len()).expect("a String takes everything");
    }
    text
}

/// Minutes and seconds, with hours and days in front where there are any.
fn time_left(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60 % 60, seconds / 3600 % 24, seconds / 86_400);
    let mut text = String::new();
    if days > 0 {
        text += &format!("{days:02}d:");
    }
    if days > 0 || hours > 0 {
        text += &format!("{hours:02}h:");
    }
    text + &format!("{minutes:02}m:{:02}s", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            running: 20,
            open_files: 20,
            states: [[b'R'; 10], [b'W'; 10]].concat(),
            percent: Some(4.0),
            bandwidth: PerDirection::new(21_495_808, 24_641_536, 0),
            iops: PerDirection::new(82, 94, 0),
            shown: PerDirection::new(true, true, false),
            eta_s: Some(3456),
            kb_base: 1024,
            ..Snapshot::default()
        }
    }

    #[test]
    fn the_documented_line() {
        let expected =
            "Jobs: 20 (f=20): [R(10),W(10)][4.0%][r=20.5MiB/s,w=23.5MiB/s][r=82,w=94 IOPS][eta 57m:36s]";
        assert_eq!(status(&snapshot()), expected);
    }

    #[test]
    fn what_is_unknown() {
        let mut unknown = snapshot();
        (unknown.percent, unknown.states) = (None, b"/P".to_vec());
        unknown.shown = PerDirection::all(false);
        unknown.eta_s = Some(5);
        assert_eq!(status(&unknown), "Jobs: 20 (f=20): [/(1),P(1)][-.-%][eta 00m:05s]");
        unknown.eta_s = None;
        assert_eq!(status(&unknown), "Jobs: 20 (f=20): [/(1),P(1)][-.-%][eta --]");
        unknown.shown[Direction::Read] = true;
        assert_eq!(status(&unknown), "Jobs: 20 (f=20): [/(1),P(1)][-.-%][r=20.5MiB/s][r=82 IOPS][eta --]");
        (unknown.running, unknown.open_files) = (0, 0);
        assert_eq!(status(&unknown), "Jobs: 0 (f=0)");
    }

    #[test]
    fn limited_rates() {
        let mut limited = Snapshot { running: 1, open_files: 1, kb_base: 1024, ..Snapshot::default() };
        limited.limits.max_iops = 1000;
        let head = |snapshot: &Snapshot| {
            status(snapshot).split_once(": [").map(|(head, _)| head.to_string()).unwrap()
        };
        assert_eq!(head(&limited), "Jobs: 1 (f=1), 0-1000 IOPS");
        (limited.limits.min_bandwidth, limited.limits.max_bandwidth) = (0, 3 << 20);
        assert_eq!(head(&limited), "Jobs: 1 (f=1), 0B/s-3072KiB/s");
        limited.limits.min_bandwidth = 1 << 20;
        assert_eq!(head(&limited), "Jobs: 1 (f=1), 1024KiB/s-3072KiB/s");
        limited.kb_base = 1000;
        assert_eq!(head(&limited), "Jobs: 1 (f=1), 1049kB/s-3146kB/s");
    }

    #[test]
    fn times_left() {
        let shown = [5, 3456, 3600, 90_061, 864_000].map(time_left);
        assert_eq!(shown, ["00m:05s", "57m:36s", "01h:00m:00s", "01d:01h:01m:01s", "10d:00h:00m:00s"]);
    }

    #[test]
    fn a_shorter_line_covers_a_longer() {
        let mut line = LiveLine::default();
        let long = line.redraw(&snapshot());
        assert_eq!(long, status(&snapshot()) + "\r");
        let short = line.redraw(&Snapshot::default());
        assert_eq!(short.len(), long.len());
        assert!(short.starts_with("Jobs: 0 (f=0)   ") && short.ends_with(" \r"));
        assert_eq!(line.erase(), format!("\r{:13}\r", ""));
        assert_eq!(line.erase(), "");
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn any_snapshot_has_a_line(
            (running, open_files, states, percent) in any::<(u32, u32, Vec<u8>, Option<f64>)>(),
            (bandwidth, iops, shown, eta_s, bases) in any::<([u64; 3], [u64; 3], [bool; 3], Option<u64>, [u32; 2])>()
        ) {
            let line = status(&Snapshot {
                running, open_files, states, percent, eta_s,
                bandwidth: PerDirection { values: bandwidth },
                iops: PerDirection { values: iops },
                shown: PerDirection { values: shown },
                kb_base: bases[0],
                unit_base: bases[1],
                limits: RateLimits { min_bandwidth: bandwidth[0], max_bandwidth: iops[0], ..RateLimits::default() },
            });
            prop_assert!(line.starts_with("Jobs: "));
        }
    }
}
