//! Pictures that are drawn from the logs of a run (`write_bw_log` and the others) instead of from its samples.
//!
//! A log may have a line for each I/O of a day, so it is condensed while it is read, and keeps its extremes
//! (`logs/curve.rs`, `logs/grid.rs`). The page states how much of a log its picture shows. The name of a log shows to
//! which job of a stored result it belongs (`logs/places.rs`).

mod curve;
mod grid;
mod places;

pub use places::{places, prefixes};

use curve::{Curve, Point, sum, thinned};
use grid::{Columns, Rates};
use iolite_logs::reading::{self, Broken, Entries, Entry};
use iolite_logs::{HistogramLine, LogKind, percentile};
use iolite_stats::bucket_of;
use iolite_stored::{DIRECTIONS, number};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::PathBuf;

/// Points of all pictures together: a page stays below 5 MB.
const MOST_POINTS: usize = 100_000;
/// Columns of all heat maps together: each takes as much room as ten points.
const MOST_COLUMNS: usize = 12_000;
/// Points of a picture: more would not be visible.
const MOST_OF_A_PICTURE: usize = 3_000;
const MOST_COLUMNS_OF_A_PICTURE: usize = 500;
/// Pictures with fewer points are useless.
const LEAST_OF_A_PICTURE: usize = 50;
/// The longest possible run (36 thousand years).
const LATEST_MS: u64 = 1 << 50;
/// A later time, in milliseconds (three years), can only be that of a clock.
const FAR_MS: u64 = 100_000_000_000;
/// Classes of latency, as series have them: eight for each power of two.
pub(crate) const BUCKETS_PER_CLASS: usize = 8;

/// A log of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Its path.
    pub path: PathBuf,
    /// The kind of its values.
    pub kind: LogKind,
    /// The position in the report of the job that wrote it; `None` = several jobs did, or it is unknown.
    pub job: Option<usize>,
    /// The length of the file before the run.
    pub skip: u64,
}

impl LogFile {
    /// Its name, without a directory.
    fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The drawings made from logs, and remarks about the logs.
#[derive(Clone, Debug, Default)]
pub struct Drawings {
    drawn: Vec<Value>,
    /// Remarks about logs, such as errors, each with the name of the log.
    pub notes: Vec<String>,
}

impl Drawings {
    /// Draws logs. A log that cannot be read becomes a note; the others are drawn all the same.
    pub fn of(report: &Value, files: &[LogFile]) -> Drawings {
        let (found, notes) = Drawings::read(report, files);
        Drawings { drawn: found.drawn, notes: found.notes.into_iter().chain(notes).collect() }
    }

    /// Draws the logs that the user asked for.
    ///
    /// # Errors
    /// A log cannot be read; the message says which and why.
    pub fn of_all(report: &Value, files: &[LogFile]) -> Result<Drawings, String> {
        let (found, mut unreadable) = Drawings::read(report, files);
        if unreadable.is_empty() { Ok(found) } else { Err(unreadable.swap_remove(0)) }
    }

    /// Reads and draws logs; also returns the errors of those that cannot be read.
    fn read(report: &Value, files: &[LogFile]) -> (Drawings, Vec<String>) {
        let mut by_job: BTreeMap<Option<usize>, Vec<&LogFile>> = BTreeMap::new();
        files.iter().for_each(|file| by_job.entry(file.job).or_default().push(file));
        let (mut drawings, mut unreadable) = (Drawings::default(), Vec::new());
        // As a rule, a log has at most two directions.
        let room = Room::for_pictures(2 * files.len());
        let mut tracks = Vec::new();
        for (job, files) in by_job {
            let mut clock = Clock::of(report, job);
            let mut of_job: Tracks = BTreeMap::new();
            for file in files {
                let mut log = Log::new(file, room, report, &mut clock);
                match log.read() {
                    Ok(None) => {}
                    Ok(Some(note)) => drawings.notes.push(format!("{}: {note}", file.path.display())),
                    Err(why) => {
                        unreadable.push(format!("{}{why}", file.path.display()));
                        continue;
                    }
                }
                drawings.notes.extend(log.doubt(report));
                for (direction, track) in log.tracks() {
                    of_job.entry((file.kind, direction)).or_default().push(track);
                }
            }
            tracks.extend(of_job.into_iter().map(|((kind, direction), found)| (job, kind, direction, found)));
        }
        let most = MOST_POINTS / LEAST_OF_A_PICTURE;
        if tracks.len() > most {
            let more = tracks.len() - most;
            drawings
                .notes
                .push(format!("{more} more curves of logs are not drawn: a page has room for {most}"));
            tracks.truncate(most);
        }
        let room = Room::for_pictures(tracks.len());
        let drawn =
            tracks.into_iter().map(|(job, kind, direction, found)| drawn(job, kind, direction, found, room));
        drawings.drawn = drawn.collect();
        (drawings, unreadable)
    }

    /// Adds the drawings to a report in JSON, for its page.
    pub fn add_to(&self, report: &mut Value) {
        if self.drawn.is_empty() && self.notes.is_empty() {
            return;
        }
        let Value::Object(report) = report else { return };
        let own = report.entry("iolite").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(own) = own {
            own.insert("logs".to_owned(), json!({ "notes": self.notes, "drawn": self.drawn }));
        }
    }
}

/// How much of a log is kept.
#[derive(Clone, Copy)]
struct Room {
    points: usize,
    columns: usize,
}

impl Room {
    fn for_pictures(count: usize) -> Room {
        let share = |all: usize, most: usize| (all / count.max(1)).clamp(LEAST_OF_A_PICTURE, most);
        Room {
            points: share(MOST_POINTS, MOST_OF_A_PICTURE),
            columns: share(MOST_COLUMNS, MOST_COLUMNS_OF_A_PICTURE),
        }
    }
}

/// The zero of the times in a job's logs.
struct Clock {
    /// The start of the job, if it is known; for logs with the time of a clock.
    began: Option<u64>,
    is_of_a_clock: bool,
    zero: Option<u64>,
}

impl Clock {
    fn of(report: &Value, job: Option<usize>) -> Clock {
        let asked = |name| job.is_some_and(|job| places::is_set(report, job, name));
        let value = job.and_then(|job| iolite_stored::jobs(report).ok()?.get(job).copied());
        Clock {
            began: value.and_then(|job| job["job_start"].as_u64()),
            is_of_a_clock: asked("log_unix_epoch") || asked("log_alternate_epoch"),
            zero: None,
        }
    }

    /// Converts a time to milliseconds since the zero. The first entry determines the zero.
    fn since_zero(&mut self, time: u64) -> u64 {
        let zero = *self.zero.get_or_insert_with(|| match self.began {
            _ if !self.is_of_a_clock && time < FAR_MS => 0,
            Some(began) if began <= time && time - began < FAR_MS => began,
            _ => time,
        });
        time.saturating_sub(zero).min(LATEST_MS)
    }
}

/// The condensed form of one direction of a log.
struct Track {
    name: String,
    entries: u64,
    /// The entries are single I/Os.
    is_single: bool,
    curve: Curve,
    rates: Rates,
    columns: Option<Columns>,
    /// The last time.
    end: u64,
    /// The length of the first window.
    window: u64,
}

type Tracks = BTreeMap<(LogKind, usize), Vec<Track>>;

/// A log that is being read.
struct Log<'a> {
    file: &'a LogFile,
    room: Room,
    clock: &'a mut Clock,
    /// The length of a histogram's window, if it is known.
    hist_ms: Option<u64>,
    tracks: BTreeMap<usize, Track>,
}

impl<'a> Log<'a> {
    fn new(file: &'a LogFile, room: Room, report: &Value, clock: &'a mut Clock) -> Log<'a> {
        let asked = file.job.and_then(|job| places::option(report, job, "log_hist_msec"));
        let hist_ms = asked.and_then(|value| value.parse().ok()).filter(|length| *length > 0);
        Log { file, room, clock, hist_ms, tracks: BTreeMap::new() }
    }

    /// Reads the log. Returns a remark about it, if there is one.
    ///
    /// # Errors
    /// It is not a log of this kind: `:line:column: why`, or `: why`.
    fn read(&mut self) -> Result<Option<String>, String> {
        let told = |error: io::Error| format!(": {}", iolite_types::describe_error(&error));
        let mut opened = File::open(&self.file.path).map_err(told)?;
        let found = opened.metadata().map_err(told)?;
        if !found.is_file() {
            return Err(
                ": it is not a file, and a log that was read by others cannot be read again".to_owned()
            );
        }
        let skip = if self.file.skip <= found.len() { self.file.skip } else { 0 };
        opened.seek(SeekFrom::Start(skip)).map_err(told)?;
        let mut from = BufReader::with_capacity(256 << 10, opened);
        let mut line = 0_u64;
        let read = match self.file.kind {
            LogKind::Histogram => reading::lines(&mut from, &mut |text| {
                line += 1;
                let told = |(column, why): (usize, String)| format!(":{line}:{column}: {why}");
                self.histogram(&HistogramLine::read(text).map_err(told)?).map_err(|why| told((1, why)))
            }),
            _ => {
                let mut entries = Entries::default();
                let read = reading::lines(&mut from, &mut |text| {
                    line += 1;
                    let read = entries.line(text, &mut |entry| self.entry(&entry));
                    read.map_err(|(column, why)| format!(":{line}:{column}: {why}"))
                });
                entries.end(&mut |entry| self.entry(&entry));
                read
            }
        };
        let advice = "; if it is a log of this run, it was damaged later: leave it out";
        match read {
            Ok(()) => Ok(None),
            Err(Broken::Line(why)) => Err(format!("{why}{advice}")),
            Err(Broken::NoEnd(_)) => Ok(Some(format!(
                "line {} is cut off (the run was killed, or the disk was full), and left out",
                line + 1
            ))),
            Err(Broken::CutOff(_)) => Ok(Some(
                "it is cut off (the run was killed, or the disk was full); the part before that is drawn"
                    .to_owned(),
            )),
            Err(Broken::Unreadable(error)) => Err(format!("{}{advice}", told(error))),
        }
    }

    fn track(&mut self, direction: usize) -> &mut Track {
        let room = self.room;
        let name = self.file.name();
        self.tracks.entry(direction).or_insert_with(|| Track {
            name,
            entries: 0,
            is_single: false,
            curve: Curve::new(room.points),
            rates: Rates::new(room.points),
            columns: None,
            end: 0,
            window: 0,
        })
    }

    fn entry(&mut self, entry: &Entry) {
        let at = self.clock.since_zero(entry.time_ms);
        let (kind, columns) = (self.file.kind, self.room.columns);
        let track = self.track(entry.direction);
        track.entries += 1;
        track.is_single |= entry.length > 0;
        let before = track.end;
        track.end = before.max(at);
        let value = entry.value as f64;
        match (kind, entry.length) {
            (LogKind::Bandwidth, length @ 1..) => track.rates.add(at, length),
            (LogKind::Iops, 1..) => track.rates.add(at, 1),
            (_, 1..) => {
                track.curve.push(Point::of(at, at, value, None));
                let classes = track.columns.get_or_insert_with(|| Columns::new(1, 1, columns));
                classes.add(at, bucket_of(entry.value), 1);
            }
            (_, 0) => {
                let is_bandwidth = matches!(kind, LogKind::Bandwidth | LogKind::AskedBandwidth);
                let unit = if is_bandwidth { 1024.0 } else { 1.0 };
                if track.window == 0 {
                    track.window = at - before.min(at);
                }
                // Windows without I/O have no line in the log.
                let is_next = at.saturating_sub(before) <= 2 * track.window;
                let from = if is_next { before.min(at) } else { at - track.window.min(at) };
                let most = entry.most.map(|most| most as f64 * unit);
                track.curve.push(Point::of(from, at, value * unit, most));
            }
        }
    }

    /// # Errors
    /// Its bucket groups differ from those of earlier lines.
    fn histogram(&mut self, line: &HistogramLine) -> Result<(), String> {
        let at = self.clock.since_zero(line.time_ms);
        let (hist_ms, columns) = (self.hist_ms, self.room.columns);
        let track = self.track(line.direction.index());
        let before = track.end;
        track.end = before.max(at);
        track.entries += 1;
        let width = hist_ms.unwrap_or(at.saturating_sub(before)).max(1);
        let buckets = line.buckets_per_count();
        if track.columns.as_ref().is_some_and(|known| known.buckets != buckets) {
            return Err("its log_hist_coarseness is another than before".to_owned());
        }
        let known = track.columns.get_or_insert_with(|| Columns::new(width, buckets, columns));
        // Counts a window at its middle, because it may have ended a little late.
        let middle = u64::midpoint(before.min(at).max(at.saturating_sub(2 * width)), at);
        for (position, &count) in line.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            known.add(middle, position * buckets, count);
        }
        Ok(())
    }

    /// Signs that this is not a log of that job.
    fn doubt(&self, report: &Value) -> Vec<String> {
        let Some(job) = self.file.job else { return Vec::new() };
        let jobs = iolite_stored::jobs(report).unwrap_or_default();
        let Some(value) = jobs.get(job) else { return Vec::new() };
        let name = value["jobname"].as_str().unwrap_or("(without a name)");
        let probably =
            "so it is probably the log of another run, or was there before; give the logs of this one";
        let mut doubts = Vec::new();
        let longest = DIRECTIONS.iter().map(|one| number(&value[one], "runtime")).fold(0.0, f64::max);
        let end = self.tracks.values().map(|track| track.end).max().unwrap_or(0);
        if longest > 0.0 && end as f64 > 1.5 * longest + 5000.0 {
            doubts.push(format!(
                "{}: it lasts {} s, and {name} ran for {} s, {probably}",
                self.file.path.display(),
                end / 1000,
                longest as u64 / 1000
            ));
        }
        for (direction, words) in [(0, "reads"), (1, "writes"), (2, "trims")] {
            let has_moved = iolite_stored::has_moved(&value[DIRECTIONS[direction]])
                || iolite_stored::has_moved(&value["mixed"]);
            let is_of_ios = !self.file.kind.is_asked();
            if is_of_ios && self.tracks.contains_key(&direction) && !has_moved && longest > 0.0 {
                doubts.push(format!(
                    "{}: it has {words}, and {name} has none, {probably}",
                    self.file.path.display()
                ));
            }
        }
        doubts
    }

    fn tracks(self) -> BTreeMap<usize, Track> {
        self.tracks
    }
}

/// The drawing of all logs of one kind, job and direction.
fn drawn(job: Option<usize>, kind: LogKind, direction: usize, tracks: Vec<Track>, room: Room) -> Value {
    let is_rate = kind.is_asked() || matches!(kind, LogKind::Bandwidth | LogKind::Iops);
    let is_single = tracks.iter().any(|track| track.is_single);
    let mut told = json!({
        "job": job,
        "kind": kind.suffix(),
        "direction": DIRECTIONS[direction],
        "file": tracks.first().map(|track| track.name.as_str()),
        "files": tracks.len(),
        "entries": tracks.iter().map(|track| track.entries).sum::<u64>(),
        "single": is_single,
    });
    let end = tracks.iter().map(|track| track.end).max().unwrap_or(0);
    told["end_ms"] = json!(end);
    if is_rate && is_single {
        let rates = tracks.into_iter().map(|track| track.rates).filter(|rates| rates.ios() > 0).collect();
        put_rates(&mut told, &Rates::together(rates, room.points.min(1000)));
        return told;
    }
    let points: Vec<Vec<Point>> = tracks.iter().map(|track| track.curve.points().to_vec()).collect();
    if kind != LogKind::Histogram {
        let points = if is_rate && points.len() > 1 {
            told["summed"] = json!(true);
            sum(&points, room.points)
        } else {
            thinned(points.into_iter().flatten().collect(), room.points)
        };
        put_points(&mut told, &points);
    }
    let is_all = told["entries"].as_u64() == told["ms"].as_array().map(|list| list.len() as u64);
    if kind == LogKind::Histogram || (is_single && !is_all) {
        let columns = tracks.into_iter().filter_map(|track| track.columns).reduce(added);
        if let Some(columns) = columns {
            put_columns(&mut told, &columns.coarsened(room.columns, is_single), kind == LogKind::Histogram);
        }
    }
    told
}

/// The sum of the columns of two logs. If their bucket groups differ in size, the larger size is used.
fn added(mut one: Columns, other: Columns) -> Columns {
    let width = other.width;
    for (place, counts) in other.counts.iter().enumerate() {
        let middle = (place as u64).saturating_mul(width).saturating_add(width / 2);
        counts.iter().for_each(|(bucket, count)| one.add(middle, *bucket, *count));
    }
    one.buckets = one.buckets.max(other.buckets);
    one
}

fn put_rates(told: &mut Value, rates: &[grid::Rate]) {
    told["ms"] = rates.iter().map(|(from, to, ..)| u64::midpoint(*from, *to)).collect();
    told["value"] = rates.iter().map(|(.., rate, _)| rounded(*rate)).collect();
    told["window_ms"] = json!(rates.first().map_or(0, |(from, to, ..)| to - from));
    if rates.iter().any(|(.., extremes)| extremes.is_some()) {
        told["low"] = rates.iter().map(|(.., extremes)| extremes.map(|(low, _)| rounded(low))).collect();
        told["high"] = rates.iter().map(|(.., extremes)| extremes.map(|(_, high)| rounded(high))).collect();
    }
}

fn put_points(told: &mut Value, points: &[Point]) {
    told["ms"] = points.iter().map(Point::middle).collect();
    told["value"] = points.iter().map(|point| rounded(point.mean())).collect();
    if points.iter().any(|point| point.low != point.high) {
        told["low"] = points.iter().map(|point| rounded(point.low)).collect();
        told["high"] = points.iter().map(|point| rounded(point.high)).collect();
    }
}

/// Uses the keys of a series, except for the edges, which are in milliseconds.
fn put_columns(told: &mut Value, columns: &Columns, has_percentiles: bool) {
    let count = columns.counts.len() as u64;
    told["edges_ms"] = (0..=count).map(|place| place.saturating_mul(columns.width)).collect();
    let classes = |counts: &BTreeMap<usize, u64>| {
        let mut classes: BTreeMap<usize, u64> = BTreeMap::new();
        for (&bucket, &count) in counts {
            // Counts of a group are spread evenly over its classes.
            let parts = (columns.buckets / BUCKETS_PER_CLASS).max(1) as u64;
            let first = bucket / BUCKETS_PER_CLASS;
            for part in 0..parts {
                let share = count / parts + u64::from(part < count % parts);
                let class = classes.entry(first + part as usize).or_default();
                *class = class.saturating_add(share);
            }
        }
        classes.retain(|_, count| *count > 0);
        classes.into_iter().flat_map(|(class, count)| [class as u64, count]).collect::<Value>()
    };
    told["clat_classes"] = columns.counts.iter().map(classes).collect();
    if has_percentiles {
        for (key, asked) in [("p50_ns", 50.0), ("p99_ns", 99.0), ("p99.9_ns", 99.9), ("max_ns", 100.0)] {
            let of = |counts: &BTreeMap<usize, u64>| match counts.is_empty() {
                true => Value::Null,
                false => json!(percentile(counts, asked, columns.buckets)),
            };
            told[key] = columns.counts.iter().map(of).collect();
        }
    }
}

/// Rounds to four digits: more would not be visible, and would make up most of the page.
fn rounded(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let unit = 10_f64.powi(3 - digits);
    let rounded = (value * unit).round() / unit;
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 { json!(rounded as i64) } else { json!(rounded) }
}

#[cfg(test)]
mod tests;
