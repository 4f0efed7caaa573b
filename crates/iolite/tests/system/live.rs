//! The page of a running run (`--web`): who may see it and who may end the run. Readers do not slow the run down.

use crate::common::browser::Browser;
use crate::common::program::{Running, send};
use crate::common::{Json, Program, scratch};
use iolite_os::process::children_of;
use iolite_testing::objects::certificate;
use iolite_testing::or_skip;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A job that runs until it is ended, and a short job beside it.
const ENDLESS: &str = "--ioengine=null --bs=4k --size=1g --name=long --time_based --runtime=10m --rw=randrw --rate_iops=500 \
                       --numjobs=2 --group_reporting --name=short --rw=read --io_size=64k";
/// A job of 1.5 seconds.
const SHORT: &str = "--ioengine=null --bs=4k --size=1g --name=one --rw=randread --time_based --runtime=1500ms --rate_iops=1000";

/// The longest time that an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run with a page.
struct Run {
    running: Running,
    host: String,
    /// The tokens for the right to end the run, and for the right to look.
    tokens: [String; 2],
}

impl Run {
    fn start(dir: &Path, line: &str) -> Run {
        Run::of(Program::own().start(dir, line.split_whitespace()))
    }

    fn of(mut running: Running) -> Run {
        running.wait_until("its addresses", |running| running.output().contains("only look: http://"));
        let said = running.output();
        let addresses = said.lines().filter_map(|line| line.split_once("http://"));
        let (hosts, tokens): (Vec<_>, Vec<_>) =
            addresses.filter_map(|(_, address)| address.split_once("/?token=")).unzip();
        let tokens = [tokens[0].to_owned(), tokens[1].to_owned()];
        Run { host: hosts[0].to_owned(), running, tokens }
    }

    fn reader(&self, right: usize) -> Reader {
        Reader::of(&self.host, &self.tokens[right])
    }

    /// The ID of the page's process.
    fn server(&self) -> i32 {
        let is_server = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|words| words.contains(iolite_web::WORD))
        };
        children_of(self.running.pid()).into_iter().find(is_server).expect("a page has a process")
    }
}

/// A reader with a cookie.
pub struct Reader {
    host: String,
    place: String,
    cookie: String,
}

impl Reader {
    /// A reader that has exchanged this token for a cookie.
    pub fn of(host: &str, token: &str) -> Reader {
        let answer = ask(host, &format!("GET /?token={token} HTTP/1.1\r\nHost: {host}"));
        assert_eq!(answer.status, 200, "{}", answer.head);
        let cookie = answer.header("Set-Cookie").split(';').next().unwrap().to_owned();
        let place = answer.body.split("url=").nth(1).unwrap().split('"').next().unwrap().to_owned();
        Reader { host: host.to_owned(), place, cookie }
    }

    pub fn head(&self, method: &str, path: &str, more: &str) -> String {
        format!(
            "{method} {}{path} HTTP/1.1\r\nHost: {}\r\nCookie: {}{more}",
            self.place, self.host, self.cookie
        )
    }

    pub fn get(&self, path: &str) -> Answer {
        ask(&self.host, &self.head("GET", path, ""))
    }

    /// Sends a request with this body and these additional lines in the head.
    pub fn send(&self, path: &str, more: &str, body: &str) -> Answer {
        let head = self.head("POST", path, more);
        let length = body.len();
        send_all(&self.host, format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes())
    }

    pub fn post(&self, path: &str, more: &str) -> Answer {
        ask(&self.host, &self.head("POST", path, more))
    }

    /// The origin and the proof token from the page, which a request to end the run needs.
    fn proof(&self) -> String {
        let page = self.get("").body;
        let proof = page.split("data-stop=\"").nth(1).expect("the page has it").split('"').next().unwrap();
        format!("\r\nOrigin: http://{}\r\nX-Iolite-Stop: {proof}", self.host)
    }

    fn events(&self) -> Events {
        let mut stream = connect(&self.host);
        stream.write_all(format!("{}\r\n\r\n", self.head("GET", "events", "")).as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.contains(" 200 "), "{line}");
        while line != "\r\n" {
            line.clear();
            lines.read_line(&mut line).unwrap();
        }
        Events(lines)
    }
}

/// A stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    /// The next event; `None` = the stream has ended.
    fn next(&mut self) -> Option<(String, Value)> {
        let [mut name, mut data, mut end] = [String::new(), String::new(), String::new()];
        for line in [&mut name, &mut data, &mut end] {
            if self.0.read_line(line).unwrap() == 0 {
                return None;
            }
        }
        assert_eq!(end, "\n");
        let name = name.strip_prefix("event: ").unwrap().trim().to_owned();
        Some((name, crate::common::json::strict(data.strip_prefix("data: ").unwrap()).unwrap()))
    }

    fn until(&mut self, wanted: &str, holds: impl Fn(&Value) -> bool) -> Value {
        while let Some((name, value)) = self.next() {
            if name == wanted && holds(&value) {
                return value;
            }
        }
        panic!("the stream ended before such a {wanted}");
    }
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    fn read(stream: &mut impl Read) -> Answer {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub fn header(&self, name: &str) -> &str {
        let found =
            self.head.lines().filter_map(|line| line.split_once(": ")).find(|(found, _)| *found == name);
        found.unwrap_or_else(|| panic!("{name} in {}", self.head)).1
    }
}

fn connect(host: &str) -> TcpStream {
    let stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The answer to a request with this head.
pub fn ask(host: &str, head: &str) -> Answer {
    send_all(host, format!("{head}\r\n\r\n").as_bytes())
}

/// The answer to a request of these bytes.
pub fn send_all(host: &str, bytes: &[u8]) -> Answer {
    let mut stream = connect(host);
    stream.write_all(bytes).unwrap();
    Answer::read(&mut stream)
}

/// The number of I/Os in a series.
fn ios(told: &Value, job: usize, direction: &str) -> u64 {
    let jobs = told["series"]["jobs"].as_array().unwrap();
    let entry = jobs.iter().find(|entry| entry["job"] == job).map(|entry| &entry[direction]["ios"]);
    let lists = entry.and_then(Value::as_array).into_iter().flatten();
    lists.map(|number| number.as_u64().unwrap()).sum()
}

/// All kinds of requests have the right answers. A reader without the right cannot end the run, and one with the right
/// can.
#[test]
pub fn a_page_is_only_for_holders_of_its_address() {
    let dir = scratch();
    let run = Run::start(dir.path(), &format!("--web --output-format=json --output=r.json {ENDLESS}"));
    let host = run.host.clone();
    assert!(host.starts_with("127.0.0.1:"), "{host}");
    assert_eq!(run.tokens.each_ref().map(String::len), [32, 32], "128 bits");
    let [token, _] = &run.tokens;
    let (owner, guest) = (run.reader(0), run.reader(1));
    assert!(!owner.cookie.contains(token.as_str()) && !owner.place.contains(token.as_str()));

    // Without a token or cookie, or with a wrong host name or origin, requests are refused.
    let at = |line: &str, more: &str| ask(&host, &format!("{line} HTTP/1.1\r\nHost: {host}{more}")).status;
    let place = &owner.place;
    let cookie = format!("\r\nCookie: {}", owner.cookie);
    for (line, more, expected) in [
        ("GET /", "", 403),
        ("GET /?token=", "", 403),
        ("GET /?token=00000000000000000000000000000000", "", 403),
        (&format!("GET {place}"), "", 403),
        (&format!("GET {place}events"), "\r\nCookie: iolite=1", 403),
        ("GET /favicon.ico", "", 404),
        ("GET /../../etc/passwd", &cookie, 404),
        (&format!("GET {place}nothing"), &cookie, 404),
        (&format!("GET {place}../x"), &cookie, 404),
        (&format!("GET {place}"), &format!("{cookie}\r\nSec-Fetch-Site: same-site"), 403),
        (&format!("GET {place}"), &format!("{cookie}\r\nOrigin: http://evil.example"), 403),
        (&format!("GET {place}"), &format!("{cookie}\r\nHost: {host}"), 421),
        (&format!("DELETE {place}"), &format!("{cookie}\r\nOrigin: http://{host}"), 405),
        (&format!("GET {place}"), &cookie, 200),
    ] {
        assert_eq!(at(line, more), expected, "{line}{more}");
    }
    for name in ["evil.example", "evil.example:80", "10.0.0.1", "0.0.0.0", "[::2]:80"] {
        let answer = ask(&host, &format!("GET /?token={token} HTTP/1.1\r\nHost: {name}"));
        assert_eq!(answer.status, 421, "{name}");
    }
    assert_eq!(ask(&host, &format!("GET /?token={token} HTTP/1.1")).status, 421, "no name");
    // Through a tunnel, the page has another port.
    assert_eq!(ask(&host, &format!("GET /?token={token} HTTP/1.1\r\nHost: localhost:9")).status, 200);

    // Invalid and oversized requests.
    for (bytes, expected) in [
        (&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..], 400),
        (b"\0\0\0\0\r\n\r\n", 400),
        (b"GET http://elsewhere/ HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 413),
        (format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(40_000)).as_bytes(), 431),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(200)).as_bytes(), 431),
    ] {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
        assert_eq!(send_all(&host, bytes).status, expected, "{text}");
    }

    // The page has a content security policy.
    let page = owner.get("");
    assert_eq!(page.header("Content-Security-Policy"), iolite_page::live::POLICY);
    for (name, value) in [
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
    ] {
        assert_eq!(page.header(name), value);
    }
    let exchange = ask(&host, &format!("GET /?token={token} HTTP/1.1\r\nHost: {host}"));
    let cookie = exchange.header("Set-Cookie");
    assert!(cookie.ends_with(&format!("; Path={place}; HttpOnly; SameSite=Strict")), "{cookie}");
    assert_eq!(owner.get("style.css").header("Content-Type"), "text/css; charset=utf-8");
    assert_eq!(owner.get("script.js").header("Content-Type"), "text/javascript; charset=utf-8");

    // A request to end the run needs the right, the origin and the proof token.
    let proof = owner.proof();
    assert!(!guest.get("").body.contains("data-stop") && page.body.contains("data-stop"));
    let origin = format!("\r\nOrigin: http://{host}");
    for (reader, more) in [
        (&owner, ""),
        (&owner, origin.as_str()),
        (&owner, &proof.replace("Origin: http://127", "Origin: http://128")),
        (&owner, &proof.replace("Stop: ", "Stop: 0")),
        (&guest, &proof),
        (&guest, &origin),
    ] {
        assert_eq!(reader.post("stop", more).status, 403, "{more}");
    }
    assert_eq!(owner.get("stop").status, 404);
    let mut events = guest.events();
    let state = events.until("state", |state| state["jobs"][0]["phases"] == serde_json::json!([["runs", 2]]));
    assert_eq!((&state["jobs"][1]["name"], &state["stopping"]), (&"short".into(), &false.into()));
    assert_eq!(owner.post("stop", &proof).status, 202);
    assert_eq!(events.until("state", |state| state["stopping"] == true)["stopping"], true);
    let again = owner.post("stop", &proof).status;
    assert!([409, 0].contains(&again), "{again}");
    drop(events);
    // The run ends as after an interrupt.
    let ended = run.running.wait();
    assert_eq!(ended.code(), 128, "{ended}");
    let report = Json::parse(&fs::read_to_string(dir.path().join("r.json")).unwrap()).0;
    assert!(report["jobs"][0]["read"]["total_ios"].as_u64() > Some(0), "{ended}");
    assert!(!ended.stdout.contains(token.as_str()), "the token is told once, on standard error");
}

/// Late readers see everything, readers that do not read block neither others nor the run, and every page shows the
/// final report.
#[test]
pub fn a_page_stays_until_its_readers_have_the_report() {
    let dir = scratch();
    let line = SHORT.replace("1500ms", "4s");
    let run = Run::start(dir.path(), &format!("--web --output-format=json+,html --output=r.json {line}"));
    // Readers that never read.
    let reader = run.reader(1);
    let silent: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(&run.host);
            stream.write_all(format!("{}\r\n\r\n", reader.head("GET", "events", "")).as_bytes()).unwrap();
            stream
        })
        .collect();
    let mut early = reader.events();
    early.until("series", |told| ios(told, 0, "read") > 0);
    let growing = early.until("series", |told| told["since"].as_u64() > Some(0));
    let mut late = reader.events();
    let whole = late.until("series", |_| true);
    assert_eq!((&whole["since"], &whole["series"]["begin_us"]), (&0.into(), &growing["series"]["begin_us"]));
    assert!(ios(&whole, 0, "read") > ios(&growing, 0, "read"), "{whole}");
    assert!(whole["series"]["jobs"][0]["read"]["clat_classes"][0].is_array());
    for events in [&mut early, &mut late] {
        events.until("end", |_| true);
        assert_eq!(events.next().map(|(name, _)| name), None);
    }
    // The run does not wait for readers.
    let finished = run.running.wait().ok();
    assert!(!finished.stderr.contains("gone"), "{finished}");
    let stays = reader.get("");
    assert_eq!(stays.status, 200);
    assert_eq!(stays.header("Content-Security-Policy"), iolite_page::policy() + "; frame-ancestors 'none'");
    assert_eq!(
        stays.body,
        fs::read_to_string(dir.path().join("r.html")).unwrap(),
        "it is the page of the report"
    );
    drop(silent);
}

/// The run survives the death of its page's process, and the page's process ends with the run.
#[test]
fn a_run_survives_its_page_but_a_page_ends_with_its_run() {
    let dir = scratch();
    let run = Run::start(dir.path(), &format!("--web {SHORT}"));
    send(run.server(), libc::SIGKILL);
    let finished = run.running.wait().ok();
    assert!(finished.stdout.contains("Run status group 0"), "{finished}");
    finished.says("the page of this run (--web) is gone").says("the run continues without it");

    let mut run = Run::start(dir.path(), &format!("--web {ENDLESS}"));
    let reader = run.reader(0);
    let server = run.server();
    run.running.signal(libc::SIGKILL);
    // (A process that ends loses its command line before its sockets.)
    let is_there = |run: &mut Run| !run.running.has_ended() || TcpStream::connect(&reader.host).is_ok();
    let began = Instant::now();
    while is_there(&mut run) {
        assert!(began.elapsed() < PATIENCE, "process {server} of the page is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
    run.running.wait();

    // An interrupt of the terminal's process group ends the run, and the page shows the reason.
    let run = Run::start(dir.path(), &format!("--web {ENDLESS}"));
    let mut events = run.reader(1).events();
    events.until("state", |state| state["jobs"][0]["phases"] == serde_json::json!([["runs", 2]]));
    send(-run.running.pid(), libc::SIGINT);
    let told = events.until("messages", |told| told["messages"] != serde_json::json!([]));
    assert_eq!(told["messages"][0]["text"], "the run is being ended by signal 2");
    events.until("end", |_| true);
    assert_eq!(run.running.wait().code(), 128);
}

/// Where the time goes, as sums of which the page takes differences. (The engine tells it, so no rights are needed.)
#[test]
fn the_page_is_told_where_the_time_goes() {
    let dir = scratch();
    let both = "--ioengine=net --protocol=unix --filename=sock --bs=4k --size=4k --time_based --runtime=1h --pingpong";
    let line = format!("--web --name=r {both} --rw=read --name=s {both} --rw=write --stages");
    let run = Run::start(dir.path(), &line);
    let mut events = run.reader(1).events();
    let stages = |state: &Value| state["jobs"][1]["stages"][0].clone();
    let first = stages(&events.until("state", |state| stages(state).is_object()));
    assert_eq!(
        (&first["direction"], &first["names"]),
        (&"write".into(), &serde_json::json!(["submit", "server", "reap"]))
    );
    let ios = |told: &Value| told["ios"].as_u64().unwrap();
    let sum = |told: &Value| {
        told["sums_ns"].as_array().unwrap().iter().map(|sum| sum.as_u64().unwrap()).sum::<u64>()
    };
    let more = stages(&events.until("state", |state| ios(&stages(state)) > ios(&first)));
    assert!(sum(&more) > sum(&first) && sum(&first) > 0, "{first} {more}");
    run.running.signal(libc::SIGINT);
    run.running.wait();
}

/// The answer of a server with the tests' certificate to a request with this head.
fn ask_encrypted(port: u16, head: &str) -> Answer {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate("authority.crt")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let tls = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(tls, connect(&format!("127.0.0.1:{port}")));
    stream.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
    Answer::read(&mut stream)
}

/// With encryption, pages are served at any address, under the names of the certificate.
#[test]
pub fn pages_are_encrypted_for_other_machines() {
    let dir = scratch();
    let files = format!("{},{}", certificate("server.crt").display(), certificate("server.key").display());
    let line = format!("--web=0.0.0.0:0 --web-tls={files} {ENDLESS}");
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    running.wait_until("its addresses", |running| running.output().contains("only look: https://0.0.0.0:"));
    let said = running.output();
    let address = said.split_once("https://0.0.0.0:").unwrap().1;
    let (port, rest) = address.split_once("/?token=").unwrap();
    let (port, token) = (port.parse().unwrap(), rest.lines().next().unwrap());
    let exchange = |host: &str| ask_encrypted(port, &format!("GET /?token={token} HTTP/1.1\r\nHost: {host}"));
    for host in ["evil.example", "10.0.0.1", "0.0.0.0", &format!("evil.example:{port}")] {
        assert_eq!(exchange(host).status, 421, "{host}");
    }
    let answer = exchange(&format!("localhost:{port}"));
    assert_eq!(answer.status, 200, "{}", answer.head);
    let cookie = answer.header("Set-Cookie");
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let place = answer.body.split("url=").nth(1).unwrap().split('"').next().unwrap();
    let head = |method: &str, path: &str, more: &str| {
        ask_encrypted(
            port,
            &format!("{method} {place}{path} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}{more}"),
        )
    };
    let page = head("GET", "", "");
    let proof =
        page.body.split("data-stop=\"").nth(1).expect("it may end the run").split('"').next().unwrap();
    let stop = |scheme: &str| {
        head("POST", "stop", &format!("\r\nOrigin: {scheme}://localhost\r\nX-Iolite-Stop: {proof}")).status
    };
    // Unencrypted requests are not answered.
    let mut plain = connect(&format!("127.0.0.1:{port}"));
    plain.write_all(format!("GET /?token={token} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
    let mut told = Vec::new();
    let _ = plain.read_to_end(&mut told);
    assert!(!told.starts_with(b"HTTP"), "{told:?}");
    assert_eq!(stop("http"), 403);
    assert_eq!(stop("https"), 202);
    assert_eq!(running.wait().code(), 128);
}

/// Connections that are held without asking for anything; each of them has sent a part of this text.
pub fn hold_silent(host: &str, part_of: &[u8]) -> Vec<TcpStream> {
    let held = (0..1000).map(|number| {
        let mut stream = TcpStream::connect(host).unwrap();
        // (Those that made room for others do not take it.)
        let _ = stream.write_all(&part_of[..number % (part_of.len() + 1)]);
        stream
    });
    held.collect()
}

/// Nobody can shut the holders of the address out, with or without encryption.
#[test]
pub fn silent_connections_shut_no_reader_out() {
    let dir = scratch();
    let run = Run::start(dir.path(), &format!("--web {ENDLESS}"));
    let early = run.reader(1);
    let mut events = early.events();
    let held = hold_silent(&run.host, b"GET / HTTP/1.1\r\n");
    assert_eq!((run.reader(0).get("").status, early.get("").status), (200, 200));
    // A reader that came before keeps its connection.
    let elapsed = |state: &Value| state["elapsed_s"].as_f64().unwrap();
    let now = elapsed(&events.until("state", |_| true));
    events.until("state", |state| elapsed(state) > now);
    drop(held);
    run.running.signal(libc::SIGINT);
    run.running.wait();

    let files = format!("{},{}", certificate("server.crt").display(), certificate("server.key").display());
    let line = format!("--web=127.0.0.1:0 --web-tls={files} {ENDLESS}");
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    running.wait_until("its addresses", |running| running.output().contains("only look: https://"));
    let said = running.output();
    let (port, rest) = said.split_once("https://127.0.0.1:").unwrap().1.split_once("/?token=").unwrap();
    // The beginning of a handshake.
    let held = hold_silent(&format!("127.0.0.1:{port}"), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    let token = rest.lines().next().unwrap();
    let head = format!("GET /?token={token} HTTP/1.1\r\nHost: localhost");
    assert_eq!(ask_encrypted(port.parse().unwrap(), &head).status, 200);
    drop(held);
    running.signal(libc::SIGINT);
    running.wait();
}

/// A certificate that is created for the run works in a browser that accepts it.
#[test]
fn a_browser_reads_an_encrypted_page() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    let line = format!("--web --web-tls=new {ENDLESS}");
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    running.wait_until("its fingerprint", |running| running.output().contains("fingerprint has to be "));
    let said = running.output();
    let fingerprint = said.split_once("fingerprint has to be ").unwrap().1.lines().next().unwrap();
    assert!(fingerprint.split(':').count() == 32, "{fingerprint}");
    browser.go_to(said.lines().find_map(|line| line.split_once(" is at ")).unwrap().1);
    browser.wait_until("return document.querySelectorAll('svg.chart').length >= 3");
    assert_eq!(browser.run("return location.protocol"), "https:");
    browser.run("document.getElementById('stop').click()");
    browser.run("document.getElementById('sure').click()");
    browser.wait_until("return document.querySelector('h2')?.textContent === 'The answer' && document.documentElement.dataset.ready === 'yes'");
    assert_eq!(browser.console(), Vec::<String>::new());
    assert_eq!(running.wait().code(), 128);
}

/// Wrong options for a page are refused before anything runs.
#[test]
fn a_page_needs_a_place_of_this_machine() {
    let dir = scratch();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let job = "--name=a --ioengine=null --size=64k";
    fs::write(dir.path().join("job.fio"), "[a]\nsize=64k\n").unwrap();
    for (line, why) in [
        (format!("{job} --web=127.0.0.1:{port}"), format!("--web: 127.0.0.1:{port}: Address already in use")),
        (
            format!("{job} --web=0.0.0.0:8080"),
            "give --web-tls=CERTIFICATE,KEY (files in PEM), or --web-tls=new".into(),
        ),
        (format!("{job} --web=0.0.0.0:8080 --web-tls=new"), "name one, or give a certificate".into()),
        (format!("{job} --web --web-tls=none.crt,none.key"), "--web-tls: none.crt: No such file".into()),
        (format!("{job} --web --web-tls=job.fio"), "job.fio: there is no certificate in it".into()),
        (format!("{job} --web --web-tls=."), ".: not a file in PEM".into()),
        (
            format!("{job} --web --web-tls={}", certificate("server.crt").display()),
            "no private key in it".into(),
        ),
        (
            format!(
                "{job} --web --web-tls={},{}",
                certificate("server.crt").display(),
                certificate("client.key").display()
            ),
            "cannot be used together".into(),
        ),
        (format!("{job} --web --web-tls="), "--web-tls".into()),
        (
            format!("{job} --web --web-tls=a,b,c"),
            "neither new nor the names of a certificate and a key".into(),
        ),
        (format!("{job} --web=[::]:9000"), "ssh -L 9000:127.0.0.1:9000 HOST".into()),
        (format!("{job} --web=10.1.2.3:80"), "only addresses of this machine alone".into()),
        (format!("{job} --web=example.com:80"), "not an address and a port".into()),
        (format!("{job} --web=8080"), "not an address and a port, such as 127.0.0.1:8080".into()),
        (format!("{job} --web=127.0.0.1:65536"), "not an address and a port".into()),
        (format!("{job} --web --web-linger=soon"), "--web-linger=soon".into()),
        (
            "--insecure --client=127.0.0.1 --web=10.1.2.3:80 job.fio".into(),
            "only addresses of this machine alone".into(),
        ),
        (iolite_web::WORD.into(), "only a run may start this, as the process of its page".into()),
    ] {
        let refused = Program::own().line(dir.path(), &line).refused();
        assert!(refused.output().contains(&why), "{why}: {refused}");
    }
    // In this case, no empty report is left either.
    let line = format!("{job} --web=127.0.0.1:{port} --output=report.json");
    Program::own().line(dir.path(), &line).refused().says("Address already in use");
    assert!(!dir.path().join("report.json").exists());
    Program::own()
        .line(dir.path(), &format!("{job} --web-linger=1s"))
        .ok()
        .says("has no effect without --web");
    // The option also works under the name `fio`, and does not change the report.
    let fio = Program::called_fio(dir.path());
    let run = fio.line(dir.path(), &format!("{job} --web=localhost:0 --output-format=json")).ok();
    assert!(run.stderr.starts_with("fio: --web: the run is at http://127.0.0.1:"), "{run}");
    assert_eq!(Json::parse(&run.stdout).0.get("iolite"), None);
}

/// A page can stay after the run, even for readers who have not opened it before.
#[test]
pub fn a_page_that_lingers() {
    let dir = scratch();
    let run = Run::start(dir.path(), &format!("--web --web-linger=10m {SHORT}"));
    let (reader, server) = (run.reader(1), run.server());
    run.running.wait().ok();
    for _ in 0..2 {
        let page = reader.get("").body;
        assert!(page.starts_with("<!doctype html>") && page.contains("<h2>The answer</h2>"), "{page}");
    }
    send(server, libc::SIGTERM);
}

/// The process of a page may outlive the run, so it must not hold the files that the caller has open (for example a
/// lock of `flock`) or the current directory.
#[test]
fn a_page_holds_nothing_of_the_caller() {
    let dir = scratch();
    let mut command = Command::new("sh");
    command.current_dir(dir.path()).args(["-c", "exec 7>held; exec \"$0\" \"$@\""]);
    command.arg(&Program::own().path).args(format!("--web {ENDLESS}").split_whitespace());
    let run = Run::of(Running::start(&mut command));
    let of = |pid: i32, what: &str| fs::read_link(format!("/proc/{pid}/{what}")).ok();
    let held = fs::canonicalize(dir.path().join("held")).unwrap();
    assert_eq!(of(run.running.pid(), "fd/7"), Some(held.clone()), "the run has it");
    let server = run.server();
    assert_eq!(of(server, "cwd").as_deref(), Some(Path::new("/")));
    let files = fs::read_dir(format!("/proc/{server}/fd")).unwrap().map(|one| one.unwrap().file_name());
    let files: Vec<_> =
        files.filter_map(|one| of(server, &format!("fd/{}", one.to_str().unwrap()))).collect();
    assert!(!files.contains(&held) && !files.is_empty(), "{files:?}");
    assert_eq!(run.reader(1).get("").status, 200);
    run.running.signal(libc::SIGINT);
    assert_eq!(run.running.wait().code(), 128);
}

/// A stopped page process delays the end of the run only briefly, and only the page is lost.
#[test]
fn a_page_that_is_stopped() {
    let dir = scratch();
    let run = Run::start(dir.path(), &format!("--web --web-linger=10m --save --store=s.db {SHORT}"));
    let (server, host) = (run.server(), run.host.clone());
    send(server, libc::SIGSTOP);
    let finished = run.running.wait().ok();
    assert!(finished.stdout.contains("Run status group 0"), "{finished}");
    let finished =
        finished.says("the page of this run (--web) is gone: its process did not take or confirm everything");
    assert!(TcpStream::connect(host).is_err(), "a process that hangs is not left behind: {finished}");
    let kept = Program::own().line(dir.path(), "runs --store=s.db").ok();
    assert!(kept.stdout.contains("one"), "{kept}");
}

/// While a job runs, the pictures in a browser grow, job names are shown as text, the console has no errors, and the
/// button ends the run. Then the page becomes the report. `IOLITE_SCREENSHOTS=DIRECTORY` keeps screenshots.
#[test]
fn a_browser_sees_the_run_grow() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    let hostile = "<img src=x onerror=document.title='taken'>";
    let mut command = Command::new(&Program::own().path);
    command.current_dir(dir.path()).args([
        "--web",
        "--output=r.html",
        "--output-format=html",
        "--name=global",
        "--filename=f",
        "--size=1m",
        "--bs=4k",
        "--time_based",
        "--runtime=10m",
        "--rate_iops=400",
        "--exec_prerun=echo '<b>told</b>' >&2",
        &format!("--name={hostile}"),
        "--rw=randrw",
        "--ioengine=psync",
        "--name=second",
        "--rw=randread",
        "--startdelay=1",
    ]);
    let mut running = Running::start(&mut command);
    running.wait_until("its addresses", |running| running.output().contains("only look: http://"));
    let said = running.output();
    let address = said.lines().find_map(|line| line.split_once(" is at ")).unwrap().1.to_owned();
    browser.show_as(1280, 900, false);
    browser.go_to(&address);
    browser.wait_until("return document.documentElement.dataset.ready === 'yes'");
    let shown = browser.run("return location.href");
    assert!(!shown.as_str().unwrap().contains("token"), "{shown}");
    assert_eq!(browser.run("return document.cookie"), "", "no script sees it");
    assert_eq!(browser.run("return document.title"), format!("{hostile} and 1 more job").as_str());
    let count = "+(document.querySelector(\"[data-job='0'][data-direction='read']\")?.dataset.ios ?? 0)";
    browser.wait_until(&format!("return {count} > 0 && document.querySelectorAll('svg.chart').length >= 3"));
    let before = browser.run(&format!("return {count}")).as_u64().unwrap();
    browser.wait_until(&format!("return {count} > {before}"));
    browser.wait_until("return document.querySelector(\"[data-job='1'] td\").textContent === 'runs'");
    // The latencies of all jobs are merged; if one does not measure them, they are not known.
    browser.wait_until(
        "const row = document.querySelector('tr.sum[data-direction=read]'); \
         return row !== null && [...row.children].slice(-3, -1).every((cell) => /^[\\d.]+ [nµm]?s$/.test(cell.textContent))",
    );
    let merged = browser.run(
        "const one = { clat_classes: [[5, 9], [5, 1, 7, 2]], ramp_windows: 1, ios: [9, 3] }, other = { clat_classes: [[7, 3]], ramp_windows: 0, ios: [3] }; \
         return [[one, other], [one, { ...other, clat_classes: [[]] }], [one, { ramp_windows: 0, ios: [4] }], [one, { ramp_windows: 1, ios: [4] }]] \
           .map((entries) => classesOf(...entries))",
    );
    assert_eq!(merged, serde_json::json!([[[5, 1], [7, 5]], [], [], [[5, 1], [7, 2]]]));
    // Pictures are redrawn without animation, and the open parts stay open.
    browser.run("document.querySelectorAll('details.job').forEach((job) => (job.open = true))");
    browser.wait_until(
        "return document.querySelectorAll('.stage > .pictures:not(.coming) svg.chart').length > 10",
    );
    browser.run("document.querySelector('figure svg.chart').focus(); window.kept = document.activeElement");
    let windows = browser.run("return run.series.end_us.length").as_u64().unwrap();
    browser.wait_until(&format!("return run.series.end_us.length > {windows} + 15"));
    assert_eq!(browser.run("return document.activeElement === window.kept && window.kept.isConnected"), true);
    let titles = "[...document.querySelector('.pictures').children].map((one) => one.querySelector('figcaption').firstChild.textContent)";
    assert_eq!(
        browser.run(&format!("return {titles}.length - new Set({titles}).size")),
        0,
        "each picture once"
    );
    assert_eq!(browser.run("return document.images.length"), 0);
    for (width, height, is_dark) in
        [(1280, 900, true), (390, 844, false), (390, 844, true), (1280, 900, false)]
    {
        browser.show_as(width, height, is_dark);
        browser.wait_until("return document.documentElement.scrollWidth <= innerWidth");
        browser.check(&format!("live-{width}-{}", if is_dark { "dark" } else { "light" }));
    }
    browser.check_tables("live");
    browser.show_as(1280, 900, false);
    // The button asks for confirmation.
    browser.run("document.getElementById('stop').click()");
    browser.run("document.getElementById('sure').click()");
    browser.wait_until("return document.querySelector('h2')?.textContent === 'The answer' && document.documentElement.dataset.ready === 'yes'");
    let finished = running.wait();
    assert_eq!(finished.code(), 128, "{finished}");
    let told = browser.run("return unpacked().then((report) => report.jobs[0].read.total_ios)");
    assert!(told.as_u64() >= Some(before), "{told}");
    assert_eq!(browser.console(), Vec::<String>::new());
}
