//! `--metrics` and `--metrics-push`: what programs that watch runs get, checked by Prometheus itself.

use crate::common::program::Running;
use crate::common::{Program, scratch};
use crate::remote::{Agent, ENDLESS as ENDLESS_OF_AGENTS, job, run};
use iolite_testing::{or_skip, skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const ENDLESS: &str = "--ioengine=null --bs=4k --size=1g --name=long --time_based --runtime=10m --rw=randrw --rate_iops=500 \
                       --numjobs=2 --name=other\" --rw=read --rate_iops=100 --time_based --runtime=10m --name=full \
                       --ioengine=psync --filename=/dev/full --rw=write --ignore_error=,ENOSPC --rate_iops=100 --time_based \
                       --runtime=10m --numjobs=1";

/// A run with metrics, and their address.
fn started(dir: &Path, options: &str) -> (Running, String) {
    let line = format!("--metrics=127.0.0.1:0 {options}");
    let mut running = Program::own().start(dir, line.split_whitespace());
    running.wait_until("its address", |running| running.output().contains("/metrics\n"));
    let said = running.output();
    let address = said.split("the metrics are at http://").nth(1).expect("an address");
    (running, address.split("/metrics").next().unwrap_or_default().to_owned())
}

/// The answer to a request: the head and the body.
fn get(address: &str, path: &str, accept: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

/// The samples of a text, by name and labels.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            line.rsplit_once(' ').map(|(name, value)| (name.to_owned(), value.parse().unwrap())).unwrap()
        })
        .collect()
}

/// The metrics as soon as all jobs have moved something.
fn moving(address: &str, accept: &str) -> (String, String) {
    let began = Instant::now();
    loop {
        let (head, body) = get(address, "/metrics", accept);
        if body.matches("_count{").count() >= 3 && body.contains("iolite_errors_total{") {
            return (head, body);
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{head}\n{body}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// What one scrape of a run gets.
fn scraped(dir: &Path) -> String {
    let (running, address) = started(dir, ENDLESS);
    let (_, body) = moving(&address, "text/plain");
    running.signal(libc::SIGINT);
    running.wait();
    body
}

#[test]
pub fn a_run_can_be_scraped() {
    let dir = scratch();
    let (running, address) = started(dir.path(), ENDLESS);
    let (head, body) = moving(&address, "text/plain");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("text/plain; version=0.0.4"), "{head}");
    let first = samples(&body);
    let of = |name: &str, job: &str, direction: &str| {
        let find = |(key, _): &(&String, &f64)| {
            key.starts_with(&format!("{name}{{"))
                && key.contains(&format!("job_name=\"{job}\""))
                && key.contains(&format!("direction=\"{direction}\""))
                && !key.contains("le=")
        };
        *first.iter().find(find).unwrap_or_else(|| panic!("{name} {job} {direction}: {body}")).1
    };
    for (job, direction) in [("long", "read"), ("long", "write"), ("other\\\"", "read")] {
        let ios = of("iolite_ios_total", job, direction);
        assert!(ios > 0.0 && of("iolite_transferred_bytes_total", job, direction) == 4096.0 * ios, "{body}");
        let count = of("iolite_completion_latency_seconds_count", job, direction);
        assert!(count > 0.0 && of("iolite_completion_latency_seconds_sum", job, direction) < 60.0, "{body}");
    }
    assert_eq!(first.get("iolite_workers{state=\"running\"}"), Some(&4.0), "{body}");
    let failed = |(key, count): (&String, &f64)| {
        key.starts_with("iolite_errors_total{")
            && key.contains("job_name=\"full\",direction=\"write\",kind=\"No space left on device\"")
            && *count > 0.0
    };
    assert!(first.iter().any(failed), "{body}");
    assert!(
        body.contains("iolite_build_info{version=\"") && body.contains("iolite_run_info{host=\""),
        "{body}"
    );
    // Counters only grow.
    let began = Instant::now();
    loop {
        let later = samples(&get(&address, "/metrics", "text/plain").1);
        let counters = first.iter().filter(|(name, _)| name.contains("_total") || name.contains("_bucket"));
        assert!(counters.clone().all(|(name, value)| later[name] >= *value), "{body}");
        if counters.clone().any(|(name, value)| later[name] > *value) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "they grow");
        thread::sleep(Duration::from_millis(50));
    }
    let (head, body) = moving(&address, "application/openmetrics-text; version=1.0.0, text/plain;q=0.5");
    assert!(
        head.contains("application/openmetrics-text; version=1.0.0") && body.ends_with("\n# EOF\n"),
        "{body}"
    );
    assert!(body.contains("# TYPE iolite_ios counter\n") && body.contains("\niolite_ios_total{"), "{body}");
    assert!(get(&address, "/nosuch", "*/*").0.starts_with("HTTP/1.1 404 "));
    running.signal(libc::SIGINT);
    running.wait();
}

/// `promtool check metrics` knows the guidelines of names and units.
#[test]
fn promtool_finds_nothing() {
    let dir = scratch();
    let body = scraped(dir.path());
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else { skip!("promtool (of prometheus) is not installed") };
    promtool.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let told = promtool.wait_with_output().unwrap();
    assert!(told.status.success() && told.stdout.is_empty() && told.stderr.is_empty(), "{told:?}\n{body}");
}

/// A Prometheus that ends with the test.
struct Prometheus {
    process: Child,
    port: SocketAddr,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    /// One that scrapes this address, with these further options.
    fn start(dir: &Path, address: &str, options: &[&str]) -> Result<Prometheus, String> {
        if !Command::new("prometheus").arg("--version").output().is_ok_and(|output| output.status.success()) {
            return Err("prometheus is not installed".to_owned());
        }
        let example = fs::read_to_string(root().join("deploy/prometheus/iolite.yml")).unwrap();
        let config = example
            .replace("127.0.0.1:9464", address)
            .replace("scrape_interval: 2s", "scrape_interval: 200ms");
        assert_ne!(config, example);
        fs::write(dir.join("prometheus.yml"), config).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let server = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"])
            .args(options)
            .arg(format!("--web.listen-address={port}"))
            .current_dir(dir)
            .spawn();
        Ok(Prometheus { process: server.expect("it starts"), port })
    }

    /// The first result of a query, as soon as there is one.
    fn ask(&self, query: &str) -> Value {
        let encoded = query.replace('"', "%22").replace('{', "%7B").replace('}', "%7D").replace('>', "%3E");
        let encoded = encoded.replace(' ', "%20").replace('+', "%2B");
        let once = || -> Value {
            let Ok(mut stream) = TcpStream::connect(self.port) else { return Value::Null };
            let request =
                format!("GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: {}\r\n\r\n", self.port);
            let mut text = String::new();
            let read = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut text));
            let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            read.ok().and_then(|_| serde_json::from_str(body).ok()).unwrap_or_default()
        };
        let began = Instant::now();
        loop {
            let answer = once();
            if let Some(first) = answer["data"]["result"].as_array().and_then(|all| all.first()) {
                return first.clone();
            }
            assert!(began.elapsed() < Duration::from_secs(120), "{query}: {answer}");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The first value of a result.
fn number(result: &Value) -> f64 {
    result["value"][1].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{result}"))
}

#[test]
fn prometheus_scrapes_a_run() {
    let dir = scratch();
    let (running, address) = started(dir.path(), ENDLESS);
    let prometheus = or_skip!(Prometheus::start(dir.path(), &address, &[]));
    // Names of jobs and directions arrive as they are, and a rate can be computed.
    for query in [
        "rate(iolite_ios_total{job_name=\"long\",direction=\"write\"}[10s])>0",
        "iolite_completion_latency_seconds_bucket{le=\"1e-06\"}",
    ] {
        let result = prometheus.ask(query);
        let metric = &result["metric"];
        assert!(
            metric["job_name"].is_string()
                && metric["job"] == "iolite"
                && metric["host"].is_string()
                && metric["instance"] == address.as_str(),
            "{result}"
        );
    }
    running.signal(libc::SIGINT);
    running.wait();
}

/// Prometheus asks for messages if it takes native histograms, and gets finer ones than those in text.
#[test]
fn native_histograms_are_scraped() {
    let dir = scratch();
    let line = "--ioengine=null --size=1g --name=long --time_based --runtime=10m --rw=read --rate_iops=500";
    let (running, address) = started(dir.path(), line);
    let prometheus =
        or_skip!(Prometheus::start(dir.path(), &address, &["--enable-feature=native-histograms"]));
    let name = "iolite_completion_latency_seconds";
    prometheus.ask(&format!("histogram_count({name})>200"));
    let count = number(&prometheus.ask(&format!("histogram_count({name})")));
    assert!(count > 200.0, "{count}");
    let [low, high] = ["0.01", "0.99"].map(|quantile| {
        number(&prometheus.ask(&format!("histogram_quantile({quantile}, {name}{{direction=\"read\"}})")))
    });
    assert!(0.0 < low && low < high && high < 1.0, "{low} {high}");
    // The mean lies between the limits of all values.
    let mean = number(&prometheus.ask(&format!("histogram_sum({name}) / histogram_count({name})")));
    let largest = number(&prometheus.ask(&format!("histogram_quantile(1, {name})")));
    assert!(0.0 < mean && mean <= largest, "{mean} {largest}");
    // The other metrics come the same way.
    assert!(number(&prometheus.ask("iolite_ios_total{job_name=\"long\"}")) > 200.0);
    assert_eq!(number(&prometheus.ask("iolite_workers{state=\"running\"}")), 1.0);
    prometheus.ask("iolite_build_info{version=~\".+\"}");
    running.signal(libc::SIGINT);
    running.wait();
}

/// A metric without labels.
fn plain(address: &str, name: &str) -> f64 {
    let (_, body) = get(address, "/metrics", "text/plain");
    *samples(&body).get(name).unwrap_or_else(|| panic!("{name}: {body}"))
}

/// The address of the metrics in these words.
fn address_in(said: &str) -> String {
    let address = said.split("the metrics are at http://").nth(1).expect("an address");
    address.split("/metrics").next().unwrap_or_default().to_owned()
}

#[test]
fn agents_have_the_metrics_of_their_runs() {
    let dir = scratch();
    let path = dir.path();
    let socket = format!("--server=sock:{}", path.join("s").display());
    let agent = Agent::start(path, &[&socket, "--metrics=127.0.0.1:0"]);
    let address = address_in(&agent.running.output());
    assert_eq!(plain(&address, "iolite_runs_total"), 0.0);
    assert!(!get(&address, "/metrics", "text/plain").1.contains("iolite_ios_total"));
    job(path, "[global]\nioengine=null\nsize=1m\nbs=4k\n[one]\nrw=write\n[two]\nrw=read\n");
    for runs in 1..=2 {
        run(path, &[&agent.client(), "job.fio", "--output-format=json"]).ok();
        assert_eq!(plain(&address, "iolite_runs_total"), f64::from(runs));
        // The last sample has everything.
        let body = get(&address, "/metrics", "text/plain").1;
        for (job, direction) in [("one", "write"), ("two", "read")] {
            let labels = format!("job_name=\"{job}\",direction=\"{direction}\"}} 256\n");
            let counted = body.lines().any(|line| {
                line.starts_with("iolite_ios_total{host=") && format!("{line}\n").ends_with(&labels)
            });
            assert!(counted, "{labels} {body}");
        }
        assert_eq!(plain(&address, "iolite_workers{state=\"ended\"}"), 2.0, "{body}");
    }
    // While a run goes on, it is seen.
    job(path, ENDLESS_OF_AGENTS);
    let client = Program::own().start(path, [agent.client().as_str(), "job.fio"]);
    let began = Instant::now();
    while plain(&address, "iolite_workers{state=\"running\"}") != 2.0 {
        assert!(began.elapsed() < Duration::from_secs(60), "it runs");
        thread::sleep(Duration::from_millis(50));
    }
    client.signal(libc::SIGINT);
    client.wait();
    agent.end();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let refused = run(path, &[&socket, &format!("--metrics={port}")]).refused();
    assert!(
        refused.stderr.contains(&format!("--metrics: 127.0.0.1:{port}: Address already in use")),
        "{refused}"
    );
    let refused = run(path, &[&socket, "--metrics=0.0.0.0:0"]).refused();
    assert!(refused.stderr.contains("--web-tls"), "{refused}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The dashboard asks only for metrics that there are.
#[test]
fn the_dashboard_knows_the_metrics() {
    let dir = scratch();
    let body = scraped(dir.path());
    let text = fs::read_to_string(root().join("deploy/grafana/iolite.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() >= 8 && dashboard["schemaVersion"].is_u64() && dashboard["uid"].is_string());
    for panel in panels {
        for key in ["id", "title", "type", "gridPos", "datasource", "targets", "fieldConfig"] {
            assert!(!panel[key].is_null(), "{key}: {panel}");
        }
        for target in panel["targets"].as_array().unwrap() {
            let asked = target["expr"].as_str().unwrap();
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let names: Vec<&str> =
                asked.split(|letter| !is_name(letter)).filter(|word| word.starts_with("iolite_")).collect();
            assert!(!names.is_empty(), "{asked}");
            for name in names {
                // (Native histograms have no lines of their own in the text.)
                let is_there = |line: &str| {
                    line.split(['{', ' ']).next() == Some(name) || line == format!("# TYPE {name} histogram")
                };
                // The time left of an endless rate is known as well.
                assert!(body.lines().any(is_there), "{name}: {body}");
            }
        }
    }
}

/// A collector that answers one request with this status.
fn collector(status: &'static str) -> (String, thread::JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let taken = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
            head += &line;
        }
        let mut body = vec![0; length];
        lines.read_exact(&mut body).unwrap();
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 8\r\n\r\nno room\n").unwrap();
        (head, serde_json::from_slice(&body).unwrap())
    });
    (address, taken)
}

const SHORT: &str = "--name=a --filename=f --size=64k --bs=4k --rw=write";

#[test]
pub fn figures_are_pushed_when_the_run_is_over() {
    let dir = scratch();
    let (address, taken) = collector("200 OK");
    Program::own().line(dir.path(), &format!("--metrics-push=http://{address} {SHORT}")).ok();
    let (head, body) = taken.join().unwrap();
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n") && head.contains("application/json"), "{head}");
    let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let point = |name: &str, kind: &str| {
        let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap();
        metric[kind]["dataPoints"][0].clone()
    };
    assert_eq!(point("iolite.ios", "sum")["asInt"], "16", "{body}");
    assert_eq!(point("iolite.transferred", "sum")["asInt"], "65536", "{body}");
    let histogram = point("iolite.completion_latency", "histogram");
    let counts = histogram["bucketCounts"].as_array().unwrap().iter();
    let total: u64 = counts.map(|count| count.as_str().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!((total, &histogram["count"]), (16, &Value::from("16")), "{body}");
}

#[test]
fn figures_that_are_not_taken_are_an_error() {
    let dir = scratch();
    let path = dir.path();
    let (address, taken) = collector("507 Insufficient Storage");
    let run = Program::own().line(path, &format!("--metrics-push=http://{address}/x {SHORT}")).refused();
    assert!(taken.join().unwrap().0.starts_with("POST /x "));
    assert!(
        run.stderr.contains("the collector answers 507: no room; the report itself is complete"),
        "{run}"
    );
    assert!(run.stdout.contains("a: (groupid=0"), "{run}");
    // Nothing listens there any more.
    let run = Program::own().line(path, &format!("--metrics-push=http://{address} {SHORT}")).refused();
    assert!(run.stderr.contains(&format!("--metrics-push=http://{address}: ")), "{run}");
    fs::remove_file(path.join("f")).unwrap();
    for (option, why) in [
        ("--metrics-push=h:1", "not the URL of a collector"),
        ("--metrics=0.0.0.0:0", "--web-tls"),
        ("--metrics=x", "not an address and a port"),
        ("--metrics=", "--metrics"),
        ("--web-linger=1s", "has no effect without --web or --metrics"),
    ] {
        let run = Program::own().line(path, &format!("{option} --warnings-fatal {SHORT}")).refused();
        assert!(run.stderr.contains(why) && !path.join("f").exists(), "{option}: {run}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let run = Program::own().line(path, &format!("--metrics={port} {SHORT}")).refused();
    assert!(run.stderr.contains(&format!("--metrics: 127.0.0.1:{port}: Address already in use")), "{run}");
}
