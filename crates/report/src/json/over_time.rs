//! How a run ended, facts about it, its series and stages: the key `iolite`, which is ours.
//!
//! Lists of numbers have a line each, so that a report with them can still be read.

use super::stages;
use super::writer::{Writer, list};
use iolite_stats::{Cluster, Facts, Part, Report, Series, Window};
use iolite_types::{Direction, RunEnd};
use std::io;

/// Percentiles of the latencies in each window, with their keys.
const PERCENTILES: [(&str, f64); 4] =
    [("p50_ns", 50.0), ("p99_ns", 99.0), ("p99.9_ns", 99.9), ("max_ns", 100.0)];

/// Writes the key, if there is any content.
pub fn write(json: &mut Writer, report: &Report) -> io::Result<()> {
    let has_stages = stages::has_any(report);
    if report.series.is_none() && report.facts.is_none() && report.end.is_none() && !has_stages {
        return Ok(());
    }
    json.open("iolite")?;
    write_end(json, report.end.as_ref())?;
    if let Some(facts) = &report.facts {
        write_facts(json, facts)?;
    }
    if let Some(series) = &report.series {
        write_series(json, report, series)?;
    }
    if has_stages {
        stages::write(json, report)?;
    }
    json.close()
}

/// Writes only what an option has asked for, for a program that is called `fio`.
pub fn write_asked(json: &mut Writer, report: &Report) -> io::Result<()> {
    if !stages::has_any(report) {
        return Ok(());
    }
    json.open("iolite")?;
    stages::write(json, report)?;
    json.close()
}

/// Writes the key for a run on several machines. The series' numbers of jobs are positions in `client_stats`. `is_whole`:
/// with facts and series, besides the end. A run that has not ended has none of them.
pub fn write_of_cluster(json: &mut Writer, cluster: &Cluster, is_whole: bool) -> io::Result<()> {
    let of_end = || Report { end: cluster.end.clone(), ..Report::default() };
    let is_whole = is_whole && cluster.end.is_some();
    write(json, &if is_whole { cluster.together() } else { of_end() })
}

fn write_end(json: &mut Writer, end: Option<&RunEnd>) -> io::Result<()> {
    let Some(RunEnd { status, why }) = end else { return Ok(()) };
    json.text("status", status.name())?;
    if why.is_empty() { Ok(()) } else { json.text("status_reason", why) }
}

fn write_facts(json: &mut Writer, facts: &Facts) -> io::Result<()> {
    json.open("host")?;
    facts.host.iter().try_for_each(|(name, value)| json.text(name, value))?;
    json.close()?;
    json.open_array("targets")?;
    for target in &facts.targets {
        json.open_element()?;
        target.iter().try_for_each(|(name, value)| json.text(name, value))?;
        json.close()?;
    }
    json.close_array()?;
    if facts.warnings.is_empty() { Ok(()) } else { json.texts("warnings", &facts.warnings) }
}

/// A series from a window on, as one line of JSON like the key `series` of a report. So a reader that has the earlier
/// windows appends these: each list begins with the window that its `first_window` names.
pub fn series_since(report: &Report, series: &Series, window: usize) -> String {
    let mut bytes = Vec::new();
    let mut json = Writer::new(&mut bytes);
    // Writing to memory does not fail.
    let written = json
        .open_root()
        .and_then(|()| series_members(&mut json, report, series, window))
        .and_then(|()| json.close_root());
    debug_assert!(written.is_ok());
    String::from_utf8_lossy(&bytes).replace('\n', "")
}

fn write_series(json: &mut Writer, report: &Report, series: &Series) -> io::Result<()> {
    json.open("series")?;
    series_members(json, report, series, 0)?;
    json.close()
}

fn series_members(json: &mut Writer, report: &Report, series: &Series, since: usize) -> io::Result<()> {
    json.integer("sample_us", series.interval_ns / 1000)?;
    json.integer("begin_us", series.begin_ns / 1000)?;
    json.line("end_us", &list(series.windows.iter().skip(since).map(|window| window.end_ns / 1000)))?;
    json.open_array("jobs")?;
    for (position, job) in report.jobs.iter().enumerate() {
        let of_job = |direction| OfJob::new(series, job.identity.block, direction)?.since(since);
        let directions = Direction::ALL.map(of_job);
        if directions.iter().all(Option::is_none) {
            continue;
        }
        json.open_element()?;
        json.integer("job", position as u64)?;
        json.integer("depth", job.most_in_flight)?;
        directions.into_iter().flatten().try_for_each(|direction| direction.write(json))?;
        json.close()?;
    }
    json.close_array()
}

/// One direction of a job, from its first window to its last.
struct OfJob<'a> {
    direction: Direction,
    first: usize,
    /// The number of windows of its ramp, at the beginning.
    ramp: usize,
    /// Its windows; `None` = it did not run in this window.
    parts: Vec<Option<&'a Part>>,
}

impl<'a> OfJob<'a> {
    /// `None` = it had no I/O.
    fn new(series: &'a Series, block: u32, direction: Direction) -> Option<OfJob<'a>> {
        let of_window = |window: &'a Window| {
            // The parts are sorted.
            let place = |part: &Part| (part.block, part.direction);
            let found = window.parts.binary_search_by_key(&(block, direction), place).ok()?;
            window.parts.get(found)
        };
        let all: Vec<Option<&Part>> = series.windows.iter().map(of_window).collect();
        let first = all.iter().position(|part| part.is_some_and(|part| part.ios > 0))?;
        let last = all.iter().rposition(Option::is_some)?;
        let parts = all[first..=last].to_vec();
        let ramp = parts.iter().take_while(|part| part.is_some_and(|part| part.ramping)).count();
        Some(OfJob { direction, first, ramp, parts })
    }

    /// The part from this window on; `None` = no such windows.
    fn since(mut self, window: usize) -> Option<OfJob<'a>> {
        let before = window.saturating_sub(self.first);
        if before >= self.parts.len() {
            return None;
        }
        self.parts.drain(..before);
        self.first += before;
        Some(self)
    }

    fn write(&self, json: &mut Writer) -> io::Result<()> {
        json.open(self.direction.name())?;
        json.integer("first_window", self.first as u64)?;
        json.integer("ramp_windows", self.ramp as u64)?;
        self.line(json, "ios", |part| part.ios)?;
        self.line(json, "bytes", |part| part.bytes)?;
        self.line(json, "iops_min", |part| part.iops.0)?;
        self.line(json, "iops_max", |part| part.iops.1)?;
        self.line(json, "bw_min", |part| part.bandwidth.0)?;
        self.line(json, "bw_max", |part| part.bandwidth.1)?;
        let asks = |of: fn(&Part) -> u64| self.parts.iter().flatten().any(|part| of(part) > 0);
        if asks(|part| part.asked.ios) {
            self.line(json, "ios_asked", |part| part.asked.ios)?;
        }
        if asks(|part| part.asked.bytes) {
            self.line(json, "bytes_asked", |part| part.asked.bytes)?;
        }
        if self.parts.iter().flatten().any(|part| part.measured() > 0) {
            self.latencies(json)?;
        }
        json.close()
    }

    fn latencies(&self, json: &mut Writer) -> io::Result<()> {
        self.line(json, "clat_sum_ns", |part| part.latency_sum)?;
        let percentiles = PERCENTILES.map(|(_, percentile)| percentile);
        let found: Vec<Option<[u64; PERCENTILES.len()]>> =
            self.parts.iter().map(|part| part.map(|part| part.percentiles(percentiles))).collect();
        for (position, (key, _)) in PERCENTILES.into_iter().enumerate() {
            let of_window = |found: &Option<[u64; PERCENTILES.len()]>| found.map(|found| found[position]);
            json.line(key, &with_gaps(found.iter().map(of_window)))?;
        }
        let pairs = |part: &Option<&Part>| {
            let classes = part.map_or_else(Vec::new, Part::coarse);
            list(classes.into_iter().flat_map(|(class, count)| [u64::from(class), count]))
        };
        json.line(
            "clat_classes",
            &format!("[{}]", self.parts.iter().map(pairs).collect::<Vec<_>>().join(",")),
        )
    }

    fn line(&self, json: &mut Writer, key: &str, of: impl Fn(&Part) -> u64) -> io::Result<()> {
        json.line(key, &with_gaps(self.parts.iter().map(|part| part.map(&of))))
    }
}

/// If no I/O was expected, there is no number: a zero would be a stall.
fn with_gaps(numbers: impl Iterator<Item = Option<u64>>) -> String {
    list(numbers.map(|number| number.map_or_else(|| "null".to_owned(), |number| number.to_string())))
}

#[cfg(test)]
mod tests {
    use crate::example::{self, text};
    use crate::{Exporter, Json, Program};
    use iolite_stats::{Asked, Facts, Part, Series, Window};
    use iolite_types::Direction;

    fn part(direction: Direction, ios: u64, latencies: Vec<(u16, u32)>) -> Part {
        Part {
            block: 0,
            direction,
            ramping: ios == 1,
            ios,
            bytes: ios * 4096,
            iops: (ios, ios + 1),
            bandwidth: (0, ios * 4096),
            latency_sum: 500,
            latencies,
            asked: Asked { ios: if direction == Direction::Read { 2 * ios } else { 0 }, bytes: 0 },
        }
    }

    #[test]
    fn a_series_can_be_continued() {
        let report = example::mixed();
        let window = |end_ns, parts| Window { end_ns, samples: 1, parts };
        let read = |ios| part(Direction::Read, ios, vec![(100, 1)]);
        let series = Series {
            interval_ns: 1000,
            begin_ns: 0,
            windows: vec![
                window(1000, vec![read(1)]),
                window(2000, vec![read(2), part(Direction::Write, 5, vec![])]),
                window(3000, vec![read(0)]),
            ],
        };
        let told = |since| -> serde_json::Value {
            let text = super::series_since(&report, &series, since);
            assert!(!text.contains('\n'), "{text}");
            serde_json::from_str(&text).unwrap()
        };
        let whole = told(0);
        assert_eq!(whole["end_us"], serde_json::json!([1, 2, 3]));
        assert_eq!(whole["jobs"][0]["read"]["ios"], serde_json::json!([1, 2, 0]));
        let rest = told(2);
        assert_eq!((&rest["end_us"], &rest["begin_us"]), (&serde_json::json!([3]), &0.into()));
        let read = &rest["jobs"][0]["read"];
        assert_eq!(read["ios"], serde_json::json!([0]), "a stall goes on");
        assert_eq!((&read["first_window"], &read["ramp_windows"]), (&2.into(), &1.into()));
        assert!(rest["jobs"][0].get("write").is_none(), "it has ended");
        assert_eq!(told(3)["jobs"], serde_json::json!([]));
    }

    #[test]
    fn a_series_is_there_under_the_own_name_only() {
        let mut report = example::mixed();
        let window = |end_ns, parts| Window { end_ns, samples: 1, parts };
        report.series = Some(Series {
            interval_ns: 100_000_000,
            begin_ns: 50_000,
            windows: vec![
                window(100_050_000, vec![part(Direction::Read, 1, vec![(100, 1)])]),
                window(200_050_000, vec![]),
                window(
                    300_050_000,
                    vec![
                        part(Direction::Read, 2, vec![(100, 1), (200, 1)]),
                        part(Direction::Write, 3, vec![]),
                    ],
                ),
                window(400_050_000, vec![part(Direction::Read, 0, vec![])]),
            ],
        });
        report.facts = Some(Facts {
            host: vec![("kernel".into(), "Linux 6".into())],
            targets: vec![vec![("device".into(), "\"x\"".into())]],
            warnings: vec!["a \"b\"".into()],
        });
        assert!(!text(&Json::default(), &report).contains("\"iolite\" :"));
        let own = Program { version: "iolite-1".into(), own_version: "iolite-1".into() };
        let mut bytes = Vec::new();
        Json::default().write(&report, &own, &mut bytes).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let told = &json["iolite"];
        assert_eq!(
            (&told["host"]["kernel"], &told["targets"][0]["device"]),
            (&"Linux 6".into(), &"\"x\"".into())
        );
        assert_eq!(told["warnings"], serde_json::json!(["a \"b\""]));
        assert_eq!(told["series"]["end_us"], serde_json::json!([100_050, 200_050, 300_050, 400_050]));
        let job = &told["series"]["jobs"][0];
        assert_eq!(
            job["read"],
            serde_json::json!({
                "first_window": 0, "ramp_windows": 1, "ios": [1, null, 2, 0], "bytes": [4096, null, 8192, 0],
                "iops_min": [1, null, 2, 0], "iops_max": [2, null, 3, 1], "bw_min": [0, null, 0, 0],
                "bw_max": [4096, null, 8192, 0], "ios_asked": [2, null, 4, 0], "clat_sum_ns": [500, null, 500, 500],
                "p50_ns": [100, null, 100, 0], "p99_ns": [100, null, 290, 0], "p99.9_ns": [100, null, 290, 0],
                "max_ns": [100, null, 290, 0],
                "clat_classes": [[12, 1], [], [12, 1, 25, 1], []],
            })
        );
        assert_eq!(
            (&job["write"]["first_window"], &job["write"]["ios"]),
            (&2.into(), &serde_json::json!([3]))
        );
        assert!(job["write"].get("clat_sum_ns").is_none(), "they were not measured");
        assert!(job["write"].get("ios_asked").is_none(), "it has no schedule");
    }
}
