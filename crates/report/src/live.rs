//! The status line, which is redrawn in place during the run.
//!
//! `Jobs: 20 (f=20): [R(10),W(10)][4.0%][r=20.5MiB/s,w=23.5MiB/s][r=82,w=94 IOPS][eta 57m:36s]`: workers and open
//! files, the state of every worker with repeats counted, the share done, the rates of the directions in use, and the
//! time left. I/Os that have been in flight for long come before the rates. Unknown values are dashes: `[-.-%]`, `[eta --]`. While no worker runs and the share done is unknown, the
//! line ends after the open files.

pub mod bar;

use crate::units::{self, Units};
use iolite_stats::{Counters, RateLimits, Snapshot, WorkerSnapshot, per_second};
use iolite_types::{Direction, PerDirection};
use std::fmt::Write;

/// Significant figures of the rates.
const FIGURES: u32 = 4;

/// How wide a terminal is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// Its columns.
    pub columns: usize,
    /// It can erase to the end of the screen.
    pub erases: bool,
}

/// Draws status lines, each over the previous one. Their rates are those since the previous line.
#[derive(Clone, Debug, Default)]
pub struct LiveLine {
    /// It is a sentence with a progress bar, and not fio's line.
    is_bar: bool,
    drawn: usize,
    before: Moved,
}

/// The amount that all workers together have moved, with the time.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    elapsed_ns: u64,
    bytes: PerDirection<u64>,
    ios: PerDirection<u64>,
}

impl Moved {
    fn until(snapshot: &Snapshot) -> Moved {
        let sum = |of: fn(&Counters) -> u64| {
            let workers = snapshot.workers.iter();
            workers.fold(PerDirection::default(), |mut sum: PerDirection<u64>, worker| {
                for (direction, counters) in worker.counters.iter() {
                    sum[direction] = sum[direction].saturating_add(of(counters));
                }
                sum
            })
        };
        Moved {
            elapsed_ns: snapshot.elapsed_ns,
            bytes: sum(|counters| counters.bytes),
            ios: sum(|counters| counters.ios),
        }
    }

    /// Bytes and I/Os per second since `before`.
    fn rates_since(&self, before: &Moved) -> Rates {
        let span = self.elapsed_ns.saturating_sub(before.elapsed_ns);
        let rate = |direction: Direction, before: &PerDirection<u64>, now: &PerDirection<u64>| {
            per_second(now[direction].saturating_sub(before[direction]), span)
        };
        let mut rates = Rates::default();
        for direction in Direction::ALL {
            rates.bandwidth[direction] = rate(direction, &before.bytes, &self.bytes);
            rates.iops[direction] = rate(direction, &before.ios, &self.ios);
        }
        rates
    }
}

/// The rates of the status line, which are not in the snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    /// Bytes per second.
    pub bandwidth: PerDirection<u64>,
    /// I/Os per second.
    pub iops: PerDirection<u64>,
}

/// Erases from the cursor to the end of the screen (ECMA-48: ED).
const ERASE: &str = "\x1b[J";

/// Switches automatic wrapping off and on (DECAWM): the terminal may have become narrower just now.
const WITHOUT_WRAPPING: &str = "\x1b[?7l";
const WRAPPING: &str = "\x1b[?7h";

impl LiveLine {
    /// Status lines; `is_bar`: with a progress bar.
    pub fn of(is_bar: bool) -> LiveLine {
        LiveLine { is_bar, ..LiveLine::default() }
    }

    /// The line, and what removes the rest of the previous one. The cursor stays at its beginning.
    ///
    /// `p99`: the latency so far, in nanoseconds. `width`: that of a terminal. There, a line is at most as
    /// long as the terminal is wide now. If the terminal has become narrower since the previous line was drawn, that one
    /// takes several lines, all of which are erased.
    pub fn redraw(&mut self, snapshot: &Snapshot, p99: Option<u64>, width: Option<Width>) -> String {
        let columns = width.map(|width| width.columns);
        let moved = Moved::until(snapshot);
        let before = std::mem::replace(&mut self.before, moved);
        let rates = moved.rates_since(&before);
        let line = match self.is_bar {
            true => bar::line(snapshot, &rates, p99, columns.unwrap_or(bar::USUAL).saturating_sub(1)),
            false => status(snapshot, &rates),
        };
        let fits: String = match columns {
            Some(columns) => line.chars().take(columns.saturating_sub(1)).collect(),
            None => line,
        };
        let length = fits.chars().count();
        let drawn = std::mem::replace(&mut self.drawn, length);
        match width {
            Some(Width { erases: true, .. }) => format!("{WITHOUT_WRAPPING}{fits}{ERASE}{WRAPPING}\r"),
            _ => format!("{fits}{:blanks$}\r", "", blanks = drawn.saturating_sub(length)),
        }
    }

    /// Keeps the line on the terminal, so that output continues below it.
    pub fn leave(&mut self) -> &'static str {
        self.drawn = 0;
        "\n"
    }

    /// What removes the line, so that other text can be written in its place. Empty if no line is drawn.
    pub fn erase(&mut self, width: Option<Width>) -> String {
        match (std::mem::take(&mut self.drawn), width) {
            (0, _) => String::new(),
            (_, Some(Width { erases: true, .. })) => ERASE.to_owned(),
            (drawn, _) => format!("\r{:drawn$}\r", ""),
        }
    }
}

/// The status line without a line end.
pub fn status(snapshot: &Snapshot, rates: &Rates) -> String {
    let units = Units { kb_base: snapshot.kb_base, unit_base: snapshot.unit_base, figures: FIGURES };
    let running: Vec<&WorkerSnapshot> = snapshot.workers.iter().filter(|worker| worker.running).collect();
    let open_files: u64 = running.iter().map(|worker| u64::from(worker.open_files)).sum();
    let mut line = format!("Jobs: {} (f={open_files})", running.len());
    line += &limits(&running, units);
    if running.is_empty() && snapshot.percent.is_none() && snapshot.eta_s.is_none() {
        return line;
    }
    let percent = match snapshot.percent {
        Some(percent) => format!("{:.1}%", percent.clamp(0.0, 100.0)),
        None => "-.-%".to_string(),
    };
    line += &format!(": [{}][{percent}]", condensed(snapshot.workers.iter().map(|worker| worker.state)));
    line += &snapshot.stuck.as_ref().map_or_else(String::new, |stuck| format!("[{}]", stuck.in_words()));
    // Directions that are not in use are shown while they have I/O: verification reads, trims, a worker's last I/Os.
    let is_shown = |of: &Direction| rates.iops[*of] > 0 || running.iter().any(|worker| worker.uses[*of]);
    let shown: Vec<Direction> = Direction::ALL.into_iter().filter(is_shown).collect();
    if !shown.is_empty() {
        let bandwidth = list(&shown, &rates.bandwidth, |rate| units.live_rate(rate));
        let iops = list(&shown, &rates.iops, |rate| units::count(rate, FIGURES));
        line += &format!("[{bandwidth}][{iops} IOPS]");
    }
    let eta = snapshot.eta_s.map_or_else(|| "--".to_string(), time_left);
    line + &format!("[eta {eta}]")
}

/// The values of the shown directions: `r=1,w=2`.
fn list(shown: &[Direction], values: &PerDirection<u64>, text: impl Fn(u64) -> String) -> String {
    let entries = shown.iter().map(|&of| format!("{}={}", &of.name()[..1], text(values[of])));
    entries.collect::<Vec<_>>().join(",")
}

/// If rates are limited: the sums of the lower and upper limits of all running workers.
fn limits(running: &[&WorkerSnapshot], units: Units) -> String {
    let mut limits = RateLimits::default();
    for worker in running {
        limits += &worker.limits;
    }
    if limits.max_bandwidth > 0 || limits.min_bandwidth > 0 {
        // Limits are in bytes, even if rates are shown in bits.
        let units = Units { unit_base: 8, ..units };
        format!(", {}-{}", units.rate(limits.min_bandwidth), units.rate(limits.max_bandwidth))
    } else if limits.max_iops > 0 || limits.min_iops > 0 {
        format!(", {}-{} IOPS", limits.min_iops, limits.max_iops)
    } else {
        String::new()
    }
}

/// States in order, repeats counted: `R(10),W(10)`.
fn condensed(states: impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    for (position, run) in states.collect::<Vec<_>>().chunk_by(|a, b| a == b).enumerate() {
        let comma = if position == 0 { "" } else { "," };
        write!(text, "{comma}{}({})", run[0], run.len()).expect("a String takes everything");
    }
    text
}

/// Minutes and seconds, preceded by days and hours if there are any.
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
    use iolite_stats::Stuck;
    use proptest::prelude::*;

    /// Ten workers read, ten write.
    fn snapshot() -> Snapshot {
        let worker = |state, reads| WorkerSnapshot {
            state,
            running: true,
            open_files: 1,
            uses: PerDirection::new(reads, !reads, false),
            ..WorkerSnapshot::default()
        };
        Snapshot {
            workers: [vec![worker('R', true); 10], vec![worker('W', false); 10]].concat(),
            percent: Some(4.0),
            eta_s: Some(3456),
            kb_base: 1024,
            ..Snapshot::default()
        }
    }

    fn rates() -> Rates {
        Rates { bandwidth: PerDirection::new(21_495_808, 24_641_536, 0), iops: PerDirection::new(82, 94, 0) }
    }

    const DOCUMENTED: &str =
        "Jobs: 20 (f=20): [R(10),W(10)][4.0%][r=20.5MiB/s,w=23.5MiB/s][r=82,w=94 IOPS][eta 57m:36s]";

    #[test]
    fn the_documented_line() {
        assert_eq!(status(&snapshot(), &rates()), DOCUMENTED);
    }

    #[test]
    fn unknown_progress_is_shown_as_dashes() {
        let mut unknown = snapshot();
        unknown.percent = None;
        unknown.workers.truncate(2);
        unknown.workers[0].state = '/';
        unknown.workers[1].state = 'P';
        unknown.workers.iter_mut().for_each(|worker| worker.uses = PerDirection::all(false));
        unknown.eta_s = Some(5);
        let none = Rates::default();
        assert_eq!(status(&unknown, &none), "Jobs: 2 (f=2): [/(1),P(1)][-.-%][eta 00m:05s]");
        unknown.eta_s = None;
        assert_eq!(status(&unknown, &none), "Jobs: 2 (f=2): [/(1),P(1)][-.-%][eta --]");
        unknown.workers[0].uses[Direction::Read] = true;
        let line = "Jobs: 2 (f=2): [/(1),P(1)][-.-%][r=20.5MiB/s][r=82 IOPS][eta --]";
        let mut reads = rates();
        reads.iops[Direction::Write] = 0;
        assert_eq!(status(&unknown, &reads), line);
        let stuck =
            Stuck { ios: 1, age_ns: 34_000_000_000, file: "/dev/vdb".to_owned(), offset: 81920, at: None };
        let stuck = Snapshot { stuck: Some(stuck), ..unknown.clone() };
        let words = "[-.-%][1 I/O in flight for 34 s: /dev/vdb offset 81920][r=";
        assert_eq!(status(&stuck, &reads), line.replace("[-.-%][r=", words));
        unknown.workers[0].uses[Direction::Read] = false;
        assert_eq!(status(&unknown, &reads), line, "there are reads all the same");
        unknown.workers.iter_mut().for_each(|worker| worker.running = false);
        assert_eq!(status(&unknown, &reads), "Jobs: 0 (f=0)");
    }

    #[test]
    fn rates_are_those_since_the_line_before() {
        let mut line = LiveLine::default();
        let mut at = |elapsed_ns: u64, counted: [u64; 2]| {
            let mut snapshot = snapshot();
            snapshot.elapsed_ns = elapsed_ns;
            for (worker, ios) in snapshot.workers.iter_mut().step_by(10).zip(counted) {
                let direction = if worker.uses[Direction::Read] { Direction::Read } else { Direction::Write };
                worker.counters[direction].ios = ios;
                worker.counters[direction].bytes = ios << 20;
            }
            let text = line.redraw(&snapshot, None, None);
            text.split_once("%]").and_then(|(_, rest)| rest.split_once("[eta")).unwrap().0.to_string()
        };
        assert_eq!(at(2_000_000_000, [20, 0]), "[r=10.0MiB/s,w=0KiB/s][r=10,w=0 IOPS]");
        assert_eq!(at(2_500_000_000, [40, 5]), "[r=40.0MiB/s,w=10.0MiB/s][r=40,w=10 IOPS]");
        assert_eq!(at(2_500_000_000, [40, 5]), "[r=0KiB/s,w=0KiB/s][r=0,w=0 IOPS]");
    }

    #[test]
    fn limited_rates() {
        let mut limited = snapshot();
        limited.workers.truncate(2);
        let head = |snapshot: &Snapshot| {
            let line = status(snapshot, &Rates::default());
            line.split_once(": [").map(|(head, _)| head.to_string()).unwrap()
        };
        limited.workers[0].limits.max_iops = 400;
        limited.workers[1].limits.max_iops = 600;
        assert_eq!(head(&limited), "Jobs: 2 (f=2), 0-1000 IOPS");
        limited.workers[0].limits.max_bandwidth = 3 << 20;
        assert_eq!(head(&limited), "Jobs: 2 (f=2), 0B/s-3072KiB/s");
        limited.workers[1].limits.min_bandwidth = 1 << 20;
        assert_eq!(head(&limited), "Jobs: 2 (f=2), 1024KiB/s-3072KiB/s");
        limited.kb_base = 1000;
        assert_eq!(head(&limited), "Jobs: 2 (f=2), 1049kB/s-3146kB/s");
        limited.workers[1].running = false;
        assert_eq!(head(&limited), "Jobs: 1 (f=1), 0B/s-3146kB/s", "limits of those that run");
    }

    #[test]
    fn times_left() {
        let shown = [5, 3456, 3600, 90_061, 864_000].map(time_left);
        assert_eq!(shown, ["00m:05s", "57m:36s", "01h:00m:00s", "01d:01h:01m:01s", "10d:00h:00m:00s"]);
    }

    #[test]
    fn a_shorter_line_covers_a_longer() {
        let mut line = LiveLine::default();
        let long = line.redraw(&snapshot(), None, None);
        assert_eq!(long, status(&snapshot(), &Rates::default()) + "\r");
        let short = line.redraw(&Snapshot::default(), None, None);
        assert_eq!(short.len(), long.len());
        assert!(short.starts_with("Jobs: 0 (f=0)   ") && short.ends_with(" \r"));
        assert_eq!(line.erase(None), format!("\r{:13}\r", ""));
        assert_eq!(line.erase(None), "");
    }

    #[test]
    fn a_terminal_has_one_line_however_wide_it_is() {
        let mut line = LiveLine::default();
        assert_eq!(
            line.redraw(&snapshot(), None, Some(Width { columns: 20, erases: true })),
            format!("{WITHOUT_WRAPPING}{}{ERASE}{WRAPPING}\r", &DOCUMENTED[..19])
        );
        assert_eq!(
            (line.erase(Some(Width { columns: 20, erases: true })), line.erase(None)),
            (ERASE.to_owned(), String::new())
        );
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn any_snapshot_has_a_line(
            workers in prop::collection::vec(any::<(char, bool, u32, [bool; 3], [u64; 10])>(), 0..5),
            (elapsed_ns, percent, eta_s, bases) in any::<(u64, Option<f64>, Option<u64>, [u32; 2])>()
        ) {
            let worker = |(state, running, open_files, uses, n): (char, bool, u32, [bool; 3], [u64; 10])| {
                let counters = |i: usize| Counters { ios: n[i], bytes: n[i + 1], ..Counters::default() };
                WorkerSnapshot {
                    state,
                    running,
                    open_files,
                    uses: PerDirection { values: uses },
                    limits: RateLimits {
                        min_bandwidth: n[6],
                        max_bandwidth: n[7],
                        min_iops: n[8],
                        max_iops: n[9],
                    },
                    counters: PerDirection::new(counters(0), counters(2), counters(4)),
                    resets: n[0],
                    failures: Vec::new(),
                    stages: Vec::new(),
                }
            };
            let snapshot = Snapshot {
                elapsed_ns,
                workers: workers.into_iter().map(worker).collect(),
                percent,
                eta_s,
                kb_base: bases[0],
                unit_base: bases[1],
                stuck: None,
                is_laying_out: false,
                disks: Vec::new(),
            };
            let line = LiveLine::default().redraw(&snapshot, None, None);
            prop_assert!(line.starts_with("Jobs: "));
            for columns in [1, 20, 80, 200] {
                let line = LiveLine::of(true).redraw(&snapshot, Some(elapsed_ns), Some(Width { columns, erases: true }));
                prop_assert!(line.chars().count() < columns + [ERASE, WITHOUT_WRAPPING, WRAPPING].concat().len() + 1, "{}", line);
            }
        }
    }
}
