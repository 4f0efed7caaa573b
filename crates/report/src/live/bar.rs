//! The status line as people read it: `running  45% ███████░░░░░░░░ read 82.3k IOPS 322MiB/s, p99 210us, 5s left`.

use super::{FIGURES, Rates};
use crate::units::{self, Units};
use iolite_stats::{Snapshot, Stuck};
use iolite_types::Direction;

/// The columns of a terminal whose width is unknown.
pub const USUAL: usize = 80;
/// The columns of the bar at least, and at most.
const BAR: (usize, usize) = (5, 30);

/// The line, in at most this many columns. If there is little room, figures are shorter.
pub fn line(snapshot: &Snapshot, rates: &Rates, p99: Option<u64>, columns: usize) -> String {
    if snapshot.is_laying_out {
        let line = format!("laying out files, {} so far", time_left(snapshot.elapsed_ns / 1_000_000_000));
        return line.chars().take(columns).collect();
    }
    let percent = snapshot.percent.map(|percent| percent.clamp(0.0, 100.0));
    let begin = match percent {
        Some(percent) => format!("{} {percent:3.0}%", phase(snapshot)),
        None => phase(snapshot).to_owned(),
    };
    let room = |end: &str| columns.checked_sub(begin.chars().count() + end.chars().count() + 2);
    let long = figures(snapshot, rates, p99, false).join(", ");
    let mut short = figures(snapshot, rates, p99, true);
    // Half a number would be another one: what does not fit is left out, the last first but for the time left.
    while short.len() > 1 && room(&short.join(", ")).is_none() {
        short.remove(short.len() - 2);
    }
    let short = short.join(", ");
    let end = if room(&long).is_some() { long } else { short };
    let end = if room(&end).is_some() { end } else { String::new() };
    let room = room(&end).unwrap_or(0).min(BAR.1);
    let line = match percent.filter(|_| room >= BAR.0) {
        Some(percent) => {
            let done = ((percent / 100.0 * room as f64).round() as usize).min(room);
            format!("{begin} {}{} {end}", "#".repeat(done), ".".repeat(room - done))
        }
        None => format!("{begin} {end}"),
    };
    line.trim_end().chars().take(columns).collect()
}

/// What most of the workers do that have not ended.
pub fn phase(snapshot: &Snapshot) -> &'static str {
    match snapshot.summed().state {
        '/' => "ramp",
        'V' => "verifying",
        'F' => "syncing",
        'p' => "pre-reading",
        'C' | 'I' | 'P' => "setting up",
        'R' | 'r' | 'W' | 'w' | 'D' | 'd' | 'M' | 'm' => "running",
        _ if snapshot.workers.is_empty() => "setting up",
        _ => "ending",
    }
}

fn figures(snapshot: &Snapshot, rates: &Rates, p99: Option<u64>, is_short: bool) -> Vec<String> {
    let units = Units { kb_base: snapshot.kb_base, unit_base: snapshot.unit_base, figures: FIGURES };
    let is_expected = |of: Direction| snapshot.workers.iter().any(|worker| worker.running && worker.uses[of]);
    let shown = Direction::ALL.into_iter().filter(|&of| rates.iops[of] > 0 || is_expected(of));
    let stuck = snapshot.stuck.iter().map(Stuck::in_words);
    let rates = shown.map(|of| {
        let iops = units::count(rates.iops[of], FIGURES);
        let bandwidth = units.live_rate(rates.bandwidth[of]);
        match is_short {
            true => format!("{} {iops} {bandwidth}", &of.name()[..1]),
            false => format!("{} {iops} IOPS {bandwidth}", of.name()),
        }
    });
    let mut figures: Vec<String> = stuck.chain(rates).collect();
    figures.extend(p99.map(|ns| format!("p99 {}", latency(ns))));
    figures.extend(snapshot.eta_s.map(|seconds| format!("{} left", time_left(seconds))));
    figures
}

/// A latency in three figures: `82.4us`.
pub fn latency(ns: u64) -> String {
    let (divisor, unit) = match ns {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "us"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let value = ns as f64 / divisor;
    let decimals = if value >= 99.95 || unit == "ns" { 0 } else { 1 + usize::from(value < 9.995) };
    format!("{value:.decimals$}{unit}")
}

/// A time in its two largest units: `2m00s`.
pub fn time_left(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        7200..172_800 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_stats::WorkerSnapshot;
    use iolite_types::PerDirection;

    #[test]
    fn lines_fit() {
        let worker = WorkerSnapshot {
            state: 'm',
            running: true,
            uses: PerDirection::new(true, true, false),
            ..WorkerSnapshot::default()
        };
        let mut snapshot = Snapshot {
            workers: vec![worker],
            percent: Some(45.0),
            eta_s: Some(5),
            kb_base: 1024,
            ..Snapshot::default()
        };
        let rates =
            Rates { bandwidth: PerDirection::new(337_100_800, 0, 0), iops: PerDirection::new(82_300, 0, 0) };
        let of = |snapshot: &Snapshot, columns| line(snapshot, &rates, Some(210_400), columns);
        let figures = "read 82.3k IOPS 321MiB/s, write 0 IOPS 0KiB/s, p99 210us, 5s left";
        assert_eq!(of(&snapshot, 100), format!("running  45% #########............ {figures}"));
        assert_eq!(of(&snapshot, 200), format!("running  45% ##############................ {figures}"));
        let short = "r 82.3k 321MiB/s, w 0 0KiB/s, p99 210us, 5s left";
        assert_eq!(of(&snapshot, 75), format!("running  45% ######....... {short}"));
        assert_eq!(of(&snapshot, 40), "running  45% r 82.3k 321MiB/s, 5s left");
        assert_eq!(of(&snapshot, 25), "running  45% 5s left");
        assert_eq!(of(&snapshot, 12), "running  45%");
        let file = "/dev/vdb".to_owned();
        snapshot.stuck = Some(Stuck { ios: 1, age_ns: 34_000_000_000, file, offset: 81920, at: None });
        let told = "running  45% 1 I/O in flight for 34 s: /dev/vdb offset 81920, 5s left";
        assert_eq!(of(&snapshot, 74), told, "it matters more than rates");
        snapshot.stuck = None;
        snapshot.percent = None;
        snapshot.workers[0].state = 'V';
        assert_eq!(of(&snapshot, 100), format!("verifying {figures}"));
        let layout = Snapshot { is_laying_out: true, elapsed_ns: 3_000_000_000, ..snapshot.clone() };
        assert_eq!(of(&layout, 100), "laying out files, 3s so far");
        assert_eq!(of(&Snapshot::default(), 5), "setti");
        let latencies = [0, 999, 1000, 82_430, 210_400, 3_561_000, 12_000_000_000].map(latency);
        assert_eq!(latencies, ["0ns", "999ns", "1.00us", "82.4us", "210us", "3.56ms", "12.0s"]);
        let left = [5, 119, 120, 7199, 7200, 172_800].map(time_left);
        assert_eq!(left, ["5s", "119s", "2m00s", "119m59s", "2h00m", "2d00h"]);
    }
}
