//! Reports in JSON: numbers by path, and the tree of keys without values.

use crate::common::Program;
use iolite_testing::Release;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A report in JSON.
#[derive(Clone, Debug)]
pub struct Json(pub Value);

impl Json {
    /// Finds the JSON in a program's output, which may have other text around it: it begins and ends with a brace on a
    /// separate line.
    #[track_caller]
    pub fn parse(text: &str) -> Json {
        let lines: Vec<&str> = text.lines().collect();
        let start = lines.iter().position(|line| *line == "{");
        let end = lines.iter().rposition(|line| *line == "}");
        let (Some(start), Some(end)) = (start, end) else { panic!("no JSON in\n{text}") };
        let json = lines[start..=end].join("\n");
        // (fio itself has an option twice that was given twice.)
        let is_ours = json.contains("\"iolite version\"");
        let read = if is_ours { strict(&json) } else { serde_json::from_str(&json) };
        Json(read.unwrap_or_else(|error| panic!("not JSON: {error}\n{json}")))
    }

    /// The last of several reports (`--status-interval`).
    #[track_caller]
    pub fn last_in(text: &str) -> Json {
        Json::parse(&text[text.rfind("\n{\n").unwrap_or_default()..])
    }

    /// The jobs (or groups of jobs) in order.
    #[track_caller]
    pub fn jobs(&self) -> Vec<Job<'_>> {
        self.0["jobs"].as_array().expect("an array of jobs").iter().map(Job).collect()
    }

    /// The only job.
    #[track_caller]
    pub fn job(&self) -> Job<'_> {
        let jobs = self.jobs();
        assert_eq!(jobs.len(), 1, "one job expected");
        jobs[0]
    }

    /// Removes the parts that a release does not print: some keys of 3.42 and, for some releases, options without a
    /// value. Jobs without statistics are removed as well, because releases treat them differently.
    pub fn told_like(mut self, release: &Release) -> Json {
        if let Some(jobs) = self.0["jobs"].as_array_mut() {
            jobs.retain(|job| !is_silent(job));
        }
        let strip = |options: &mut Value| {
            if let Some(options) = options.as_object_mut() {
                options.retain(|_, value| value != "");
            }
        };
        if release.hides_flags() {
            self.0.get_mut("global options").into_iter().for_each(strip);
            let jobs = self.0["jobs"].as_array_mut().into_iter().flatten();
            jobs.filter_map(|job| job.get_mut("job options")).for_each(strip);
        }
        remove(&mut self.0, "", release);
        self
    }

    /// Every key with the type of its value, in order, with the elements of an array merged: `jobs[].read.iops float`.
    pub fn tree(&self) -> Vec<String> {
        let mut tree = Vec::new();
        walk(&self.0, String::new(), &mut tree);
        let mut seen = std::collections::HashSet::new();
        tree.retain(|entry| seen.insert(entry.clone()));
        tree
    }
}

/// Reads JSON like a strict parser: an object has each key once. (NaN and infinity are no JSON anyway.)
pub fn strict(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).map(|Strict(value)| value)
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON with each key once")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(element)) = elements.next_element()? {
            all.push(element);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((key, Strict(value))) = members.next_entry::<String, Strict>()? {
            if all.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format!("{key:?} twice")));
            }
        }
        Ok(all.into())
    }
}

/// Whether an element of `jobs` is a job without statistics (`stats=0`). 3.42 omits such jobs; earlier releases print
/// them without a name.
fn is_silent(job: &Value) -> bool {
    job.get("jobname").is_none_or(|name| name == "")
}

fn remove(value: &mut Value, path: &str, release: &Release) {
    match value {
        Value::Object(map) => {
            let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            map.retain(|key, _| release.prints(&below(key)));
            map.iter_mut().for_each(|(key, value)| remove(value, &below(key), release));
        }
        Value::Array(elements) => {
            elements.iter_mut().for_each(|element| remove(element, &format!("{path}[]"), release));
        }
        _ => {}
    }
}

fn walk(value: &Value, path: String, tree: &mut Vec<String>) {
    let kind = match value {
        Value::Object(map) => {
            // The keys are measured latencies, not structure.
            if path.ends_with(".bins") {
                tree.push(format!("{path} bins"));
                return;
            }
            for (key, value) in map {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                walk(value, path, tree);
            }
            return;
        }
        Value::Array(elements) => {
            for element in elements {
                walk(element, format!("{path}[]"), tree);
            }
            return;
        }
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    tree.push(format!("{path} {kind}"));
}

/// One element of `jobs`.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a>(pub &'a Value);

impl Job<'_> {
    /// `jobname`
    #[track_caller]
    pub fn name(&self) -> &str {
        self.0["jobname"].as_str().expect("jobname")
    }

    /// A whole number by path, such as `read.total_ios`.
    #[track_caller]
    pub fn int(&self, path: &str) -> u64 {
        let value = self.value(path);
        value.as_u64().unwrap_or_else(|| panic!("{path} is not a whole number: {value}"))
    }

    /// Any number by path.
    #[track_caller]
    pub fn float(&self, path: &str) -> f64 {
        let value = self.value(path);
        value.as_f64().unwrap_or_else(|| panic!("{path} is not a number: {value}"))
    }

    #[track_caller]
    fn value(&self, path: &str) -> &Value {
        path.split('.').fold(self.0, |value, key| {
            value.get(key).unwrap_or_else(|| panic!("no {key:?} of {path:?} in {value}"))
        })
    }

    /// The names of the blocks: read, write, trim; or all directions as one.
    fn blocks(&self) -> &'static [&'static str] {
        if self.0.get("read").is_some() { &["read", "write", "trim"] } else { &["mixed"] }
    }

    /// I/Os per direction: read, write, trim. If directions are reported as one, the total is the first number.
    #[track_caller]
    pub fn ios(&self) -> [u64; 3] {
        self.of_blocks("total_ios")
    }

    /// Bytes per direction, in the same way.
    #[track_caller]
    pub fn bytes(&self) -> [u64; 3] {
        self.of_blocks("io_bytes")
    }

    #[track_caller]
    fn of_blocks(&self, key: &str) -> [u64; 3] {
        let blocks = self.blocks();
        std::array::from_fn(|i| blocks.get(i).map_or(0, |block| self.int(&format!("{block}.{key}"))))
    }

    /// Checks that the numbers of a job without errors are consistent.
    #[track_caller]
    pub fn check_consistency(&self) {
        assert_eq!(self.int("error"), 0, "{}", self.name());
        for direction in self.blocks() {
            let int = |key: &str| self.int(&format!("{direction}.{key}"));
            let float = |key: &str| self.float(&format!("{direction}.{key}"));
            let (ios, bytes) = (int("total_ios"), int("io_bytes"));
            assert_eq!(int("io_kbytes"), bytes >> 10, "{direction} kbytes");
            assert_eq!(ios == 0, bytes == 0, "{direction}: {ios} I/Os of {bytes} bytes");
            let runtime = int("runtime");
            if ios > 0 && runtime > 0 {
                // Rates are counts divided by time; the bandwidth is truncated, not rounded.
                let per_second = 1000.0 / runtime as f64;
                assert!((float("iops") - ios as f64 * per_second).abs() < 1.0, "{direction} iops");
                assert!((float("bw_bytes") - bytes as f64 * per_second).abs() <= 1.0, "{direction} bw_bytes");
                assert_eq!(int("bw"), int("bw_bytes") >> 10, "{direction} bw");
            }
            for kind in ["slat_ns", "clat_ns", "lat_ns"] {
                let count = int(&format!("{kind}.N"));
                // fio counts I/Os in flight at the end of a ramp in only one of both places.
                let tolerance = if Program::under_test().is_peer { 64 } else { 0 };
                assert!(
                    count == 0 || count.abs_diff(ios) <= tolerance,
                    "{direction} {kind}: {count} samples of {ios} I/Os"
                );
                let [min, max, mean] = ["min", "max", "mean"].map(|key| float(&format!("{kind}.{key}")));
                // The mean is printed with six decimals.
                assert!(min <= mean + 1e-6 && mean <= max + 1e-6, "{direction} {kind}: {min} {mean} {max}");
            }
        }
    }

    /// Checks that the completion latency is not larger than the total latency. (With `sqthread_poll`, fio violates
    /// this.)
    #[track_caller]
    pub fn check_latencies(&self) {
        for direction in self.blocks() {
            let float = |key: &str| self.float(&format!("{direction}.{key}"));
            let measured = float("lat_ns.N") > 0.0 && float("clat_ns.N") > 0.0;
            for key in ["min", "max", "mean"] {
                let (clat, lat) = (float(&format!("clat_ns.{key}")), float(&format!("lat_ns.{key}")));
                assert!(!measured || clat <= lat + 1e-6, "{direction} {key}: clat {clat} above lat {lat}");
            }
        }
    }
}
