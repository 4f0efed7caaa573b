//! `--metrics-push`: the figures of a run that is over, sent once to a collector (OTLP 1.x over HTTP, in JSON:
//! <https://opentelemetry.io/docs/specs/otlp/>). A short run is over before anything scrapes it.
//!
//! With the option, the delivery is a requirement, as with `--save`: if it fails, the exit status is 1.

use iolite_http::{Client, Endpoint, Limits, Protocol, Trust, percent_decoded};
use iolite_options::engines::masked;
use iolite_options::{Name, RunOptions};
use iolite_report::Program;
use iolite_stats::Report;
use iolite_stored::{bins, has_moved, number};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long the collector may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The path of metrics at a collector, if the URL has none.
const PATH: &str = "/v1/metrics";
/// The environment variable with fields for the collector, such as `authorization=Bearer%20TOKEN`.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// The limits of histograms, in seconds: those of `--metrics`.
const LIMITS: &[f64] = iolite_web::LIMITS;
/// The aggregation temporality of values since the start: `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u32 = 2;

/// A collector.
#[derive(Debug)]
pub struct Collector {
    url: String,
    endpoint: Endpoint,
    path: String,
}

impl Collector {
    /// The collector of a run; `None` = none was requested.
    ///
    /// # Errors
    /// The URL is none.
    pub fn of(run: &RunOptions) -> Result<Option<Collector>, String> {
        let Some(url) = &run.metrics_push else { return Ok(None) };
        let wrong = |why: &str| format!("--metrics-push={}: {why}", masked(url));
        let (is_encrypted, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(wrong("not the URL of a collector, such as http://127.0.0.1:4318/v1/metrics")),
        };
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let path = if path.trim_end_matches('/').is_empty() { PATH } else { path };
        if path.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
            return Err(wrong("there are blanks in its path"));
        }
        if host.contains('@') {
            return Err(wrong(&format!(
                "a password in a URL is seen by others; give what the collector asks for in {HEADERS}"
            )));
        }
        let endpoint = Endpoint::parse(host, is_encrypted).map_err(|error| wrong(&error.to_string()))?;
        Ok(Some(Collector { url: url.clone(), endpoint, path: path.to_owned() }))
    }

    /// Sends the figures of a run.
    ///
    /// # Errors
    /// The collector has not taken them.
    pub fn push(self, name: Name, report: &Report) -> Result<(), String> {
        let wrong =
            |why: String| format!("--metrics-push={}: {why}; the report itself is complete", self.url);
        let program =
            Program { version: name.own_version().to_owned(), own_version: name.own_version().to_owned() };
        let value = iolite_page::value_of(report, &program).map_err(|error| wrong(error.to_string()))?;
        let version = name.own_version();
        let version = version.split_once('-').map_or(version, |(_, number)| number);
        let body = request(&value, version).to_string();
        let headers = headers(&std::env::var(HEADERS).unwrap_or_default()).map_err(wrong)?;
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nUser-Agent: {}\r\nContent-Length: {}\r\n{headers}\r\n",
            self.path,
            self.endpoint,
            name.own_version(),
            body.len()
        );
        let limits = Limits { timeout: Some(PATIENCE), retries: 0, verbose: 0 };
        let client =
            Client::new(vec![self.endpoint.clone()], &Protocol::WebDav(None), &Trust::default(), limits);
        let mut client = client.map_err(|error| wrong(error.to_string()))?;
        let answer = client.call_until(Some(Instant::now() + PATIENCE), head.into(), body.as_bytes(), false);
        // (The client names the option that gives a job its server.)
        let words = |words: String| match words.split_once(": ") {
            Some((option, rest)) if option.starts_with("http_host=") => rest.to_owned(),
            _ => words,
        };
        let answer = answer.map_err(|failure| wrong(words(failure.words)))?;
        if answer.is_success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&answer.text);
        let said = said.lines().next().unwrap_or_default();
        let said = if said.is_empty() {
            String::new()
        } else {
            format!(": {}", iolite_summary::one_line(said, 200))
        };
        Err(wrong(format!("the collector answers {}{said}", answer.status)))
    }
}

/// Lines of a head for what the environment gives: `name=value,name=value`, as in OpenTelemetry's own programs.
fn headers(text: &str) -> Result<String, String> {
    let mut lines = String::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) =
            pair.split_once('=').ok_or_else(|| format!("{HEADERS}: not NAME=VALUE,NAME=VALUE"))?;
        let value = percent_decoded(value.trim())
            .ok_or_else(|| format!("{HEADERS}: the value of {} is not text", name.trim()))?;
        if name.contains(|letter: char| !letter.is_ascii_graphic()) || value.contains(char::is_control) {
            return Err(format!("{HEADERS}: {} is no field of a request", name.trim()));
        }
        lines += &format!("{}: {value}\r\n", name.trim());
    }
    Ok(lines)
}

/// The request: `ExportMetricsServiceRequest`.
fn request(report: &Value, version: &str) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let host = text(&report["iolite"]["host"]["name"]);
    let mut points: [Vec<Value>; 4] = Default::default();
    // Clones have the same attributes, and a stream of OTLP has one point.
    let mut streams: Vec<((&str, &str), Vec<&Value>)> = Vec::new();
    for job in iolite_stored::jobs(report).unwrap_or_default() {
        let name = job["jobname"].as_str().unwrap_or_default();
        let apart = ["read", "write", "trim"].into_iter().filter(|direction| has_moved(&job[direction]));
        let apart: Vec<&str> = apart.collect();
        // `mixed` repeats the others, if they are there.
        let mixed = (apart.is_empty() && has_moved(&job["mixed"])).then_some("mixed");
        for direction in apart.into_iter().chain(mixed) {
            match streams.iter_mut().find(|(key, _)| *key == (name, direction)) {
                Some((_, jobs)) => jobs.push(job),
                None => streams.push(((name, direction), vec![job])),
            }
        }
    }
    for ((name, direction), jobs) in &streams {
        let attributes = attributes(&[("job.name", name), ("direction", direction), ("host", &host)]);
        let begin_ns = jobs.iter().map(|job| number(job, "job_start")).fold(f64::INFINITY, f64::min) * 1e6;
        let end_ns = number(report, "timestamp_ms") * 1e6;
        let point = |mut point: Value| {
            point["attributes"] = attributes.clone();
            point["startTimeUnixNano"] = format!("{begin_ns:.0}").into();
            point["timeUnixNano"] = format!("{end_ns:.0}").into();
            point
        };
        let sum = |key: &str| jobs.iter().map(|job| number(&job[direction], key)).sum::<f64>();
        points[0].push(point(json!({"asInt": sum("total_ios").to_string()})));
        points[1].push(point(json!({"asInt": sum("io_bytes").to_string()})));
        points[2].push(point(json!({"asDouble": sum("iops")})));
        let latencies: Vec<&Value> = jobs.iter().map(|job| &job[direction]["clat_ns"]).collect();
        points[3].extend(histogram(&latencies).map(point));
    }
    let [ios, bytes, iops, latencies] = points;
    let sum = |points: Vec<Value>| json!({"aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points});
    json!({"resourceMetrics": [{
        "resource": {"attributes": attributes(&[("service.name", "iolite"), ("service.version", version), ("host.name", &host)])},
        "scopeMetrics": [{
            "scope": {"name": "iolite", "version": version},
            "metrics": [
                {"name": "iolite.ios", "unit": "{io}", "description": "I/Os completed.", "sum": sum(ios)},
                {"name": "iolite.transferred", "unit": "By", "description": "Bytes transferred.", "sum": sum(bytes)},
                {"name": "iolite.rate", "unit": "{io}/s", "description": "I/Os per second.", "gauge": {"dataPoints": iops}},
                {"name": "iolite.completion_latency", "unit": "s", "description": "Latency of completion.",
                 "histogram": {"aggregationTemporality": CUMULATIVE, "dataPoints": latencies}},
            ]
        }]
    }]})
}

fn attributes(pairs: &[(&str, &str)]) -> Value {
    let one = |(key, value): &(&str, &str)| json!({"key": key, "value": {"stringValue": value}});
    pairs.iter().map(one).collect()
}

/// Latencies together as a point of a histogram; `None` = there is none.
fn histogram(latencies: &[&Value]) -> Option<Value> {
    let bins: Vec<_> = latencies.iter().filter_map(|latency| bins(latency)).collect();
    if bins.is_empty() {
        return None;
    }
    let mut counts = vec![0_u64; LIMITS.len() + 1];
    for (ns, count) in bins.iter().flatten() {
        counts[LIMITS.partition_point(|limit| *limit < *ns as f64 / 1e9)] += count;
    }
    let total: u64 = counts.iter().sum();
    let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
    let each = |key: &'static str| latencies.iter().map(move |latency| number(latency, key));
    let sum: f64 = latencies.iter().map(|latency| number(latency, "mean") * number(latency, "N")).sum();
    Some(json!({
        "count": total.to_string(),
        "sum": sum / 1e9,
        "min": each("min").fold(f64::INFINITY, f64::min) / 1e9,
        "max": each("max").fold(0.0, f64::max) / 1e9,
        "bucketCounts": counts,
        "explicitBounds": LIMITS,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(url: &str) -> Result<(String, String), String> {
        let run = RunOptions { metrics_push: Some(url.to_owned()), ..RunOptions::default() };
        Collector::of(&run)
            .map(|found| found.map(|one| (one.endpoint.to_string(), one.path)).unwrap_or_default())
    }

    #[test]
    fn urls_of_collectors() {
        assert_eq!(collector("http://h:4318"), Ok(("h:4318".to_owned(), PATH.to_owned())));
        assert_eq!(collector("https://h/"), Ok(("h".to_owned(), PATH.to_owned())));
        assert_eq!(collector("http://h:1/api/v1/otlp/v1/metrics").unwrap().1, "/api/v1/otlp/v1/metrics");
        for (url, why) in [
            ("h:4318", "such as http://127.0.0.1:4318/v1/metrics"),
            ("http://", "the name is empty"),
            ("http://h/a b", "blanks"),
            ("http://h:0", "port"),
            ("http://u@h", "OTEL_EXPORTER_OTLP_HEADERS"),
        ] {
            let told = collector(url).unwrap_err();
            assert!(told.contains(&format!("--metrics-push={url}: ")) && told.contains(why), "{told}");
        }
    }

    #[test]
    fn headers_of_the_environment() {
        assert_eq!(headers("authorization=Bearer%20x, a=b").unwrap(), "authorization: Bearer x\r\na: b\r\n");
        assert_eq!(headers("").unwrap(), "");
        assert!(headers("nonsense").is_err() && headers("a=%0d%0ab").is_err());
    }

    #[test]
    fn a_request() {
        let report = json!({"timestamp_ms": 2000, "iolite": {"host": {"name": "h"}}, "jobs": [{
            "jobname": "a", "job_start": 1000,
            "read": {"total_ios": 3, "io_bytes": 12288, "iops": 1.5, "runtime": 2000,
                     "clat_ns": {"N": 3, "mean": 2000.0, "min": 900, "max": 3000, "bins": {"900": 1, "2500": 2}}}}]});
        let made = request(&report, "iolite-9");
        let metrics = &made["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        assert_eq!(metrics[0]["sum"]["dataPoints"][0]["asInt"], "3");
        assert_eq!(metrics[0]["sum"]["dataPoints"][0]["timeUnixNano"], "2000000000");
        let point = &metrics[3]["histogram"]["dataPoints"][0];
        assert_eq!(
            (&point["count"], &point["bucketCounts"][0], &point["bucketCounts"][2]),
            (&json!("3"), &json!("1"), &json!("2"))
        );
        assert_eq!(
            point["bucketCounts"].as_array().unwrap().len(),
            point["explicitBounds"].as_array().unwrap().len() + 1
        );
    }
}
