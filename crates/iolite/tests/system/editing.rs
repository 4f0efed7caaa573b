//! `iolite web --allow-run`: jobs that are written, checked and started in a page.

use crate::common::browser::{ARROW_DOWN, BACKSPACE, Browser, TAB};
use crate::common::program::Running;
use crate::common::{Json, Program, scratch};
use crate::live::{Answer, Reader, ask};
use iolite_testing::{or_skip, skip};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// A job that runs until it is ended.
const ENDLESS: &str = "[long]\nioengine=null\nsize=1g\nrw=randread\ntime_based\nruntime=10m\nrate_iops=500\n";

fn can_confine() -> bool {
    iolite_remote::confine::prepare(&[]).is_ok()
}

/// A server whose jobs may use the directory `served` and a file that stands for a device.
struct Desk {
    running: Running,
    host: String,
    /// The addresses with the right to look, to end a run, and to start one.
    addresses: [String; 3],
}

impl Desk {
    fn start(dir: &Path) -> Desk {
        Desk::start_with(dir, &[])
    }

    fn start_with(dir: &Path, options: &[&str]) -> Desk {
        fs::create_dir(dir.join("served")).unwrap();
        fs::write(dir.join("device"), vec![1; 65_536]).unwrap();
        let mut command = Command::new(&Program::own().path);
        command.args(["web", "--store=s.db", "--allow-run", "--serve-only=served,device"]).args(options);
        let mut running = Running::start(command.env("SECRET", "nobody-knows").current_dir(dir));
        running.wait_until("its addresses", |running| running.output().matches("/?token=").count() == 3);
        let said = running.output();
        let pages = said.lines().filter(|line| line.contains("/?token="));
        let addresses = pages.filter_map(|line| Some(line.split_once(" at ")?.1.to_owned()));
        let addresses: [String; 3] = addresses.collect::<Vec<_>>().try_into().unwrap();
        let host = addresses[0].strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        Desk { running, host, addresses }
    }

    fn reader(&self, right: usize) -> Reader {
        Reader::of(&self.host, self.addresses[right].split_once("token=").unwrap().1)
    }

    fn author(&self) -> Author {
        let reader = self.reader(2);
        let page = reader.get("edit").body;
        let proof = between(&page, "data-start=\"", "\"").to_owned();
        Author { reader, host: self.host.clone(), proof }
    }

    fn end(self) -> String {
        self.running.signal(libc::SIGTERM);
        self.running.wait().stderr
    }
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    text.split(begin).nth(1).unwrap_or_else(|| panic!("{begin} in {text}")).split(end).next().unwrap()
}

/// A reader of the page who writes jobs.
struct Author {
    reader: Reader,
    host: String,
    proof: String,
}

impl Author {
    fn lines(&self) -> String {
        format!(
            "\r\nOrigin: http://{}\r\nContent-Type: application/json\r\nX-Iolite-Start: {}",
            self.host, self.proof
        )
    }

    fn send(&self, what: &str, body: &Value) -> Answer {
        self.reader.send(what, &self.lines(), &body.to_string())
    }

    fn check(&self, text: &str) -> Json {
        let answer = self.send("check", &json!({ "text": text }));
        assert_eq!(answer.status, 200, "{}", answer.body);
        Json(crate::common::json::strict(&answer.body).unwrap())
    }

    fn begin(&self, text: &str, confirmed: &[&str]) -> Json {
        let answer = self.send("start", &json!({ "text": text, "confirmed": confirmed }));
        assert_eq!(answer.status, 200, "{}", answer.body);
        Json(crate::common::json::strict(&answer.body).unwrap())
    }

    /// Waits for the end of the current run, and returns its report.
    fn report(&self) -> String {
        let mut page = self.reader.get("live/").body;
        while !page.contains("<h2>The answer</h2>") {
            std::thread::sleep(std::time::Duration::from_millis(20));
            page = self.reader.get("live/").body;
        }
        // Waits until its process is gone.
        while self.check("[a]\nioengine=null\nsize=4k\n").0["busy"] == true {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        page
    }
}

/// The mistakes that a check has found, in the format of the command line.
fn lines(found: &Json) -> Vec<String> {
    let mistakes = found.0["mistakes"].as_array().unwrap().iter();
    let line = |one: &Value| {
        let message = one["message"].as_str().unwrap();
        let warning = if one["warning"] == true { "warning: " } else { "" };
        format!("iolite: job.fio:{}:{}: {warning}{message}", one["line"], one["column"])
    };
    mistakes.map(line).collect()
}

/// The right to look does not include the right to end a run, which does not include the right to start one. Other
/// readers have no rights.
#[test]
pub fn starting_is_a_right_of_its_own() {
    if !can_confine() {
        skip!("the kernel has no Landlock");
    }
    let dir = scratch();
    let desk = Desk::start(dir.path());
    let author = desk.author();
    let body = json!({ "text": ENDLESS }).to_string();
    let lines = author.lines();
    let origin = format!("\r\nOrigin: http://{}", desk.host);
    let typed = "\r\nContent-Type: application/json";
    for right in [0, 1] {
        let reader = desk.reader(right);
        for path in ["edit", "options.json"] {
            assert_eq!(reader.get(path).status, 403, "{path}");
        }
        assert!(!reader.get("").body.contains("\"edit\""));
        // Not even with the proof token from another reader's page.
        for path in ["start", "check"] {
            assert_eq!(reader.send(path, &lines, &body).status, 403, "{path}");
            assert_eq!(reader.send(path, &format!("{origin}{typed}"), &body).status, 403, "{path}");
        }
        assert_eq!(reader.get("live/").status, 404);
    }
    assert!(author.reader.get("").body.contains("<a href=\"edit\">"));
    let page = author.reader.get("edit");
    let policy = page.header("Content-Security-Policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"), "{policy}");
    let proof = &author.proof;
    for (more, expected) in [
        (format!("{origin}{typed}"), 403),
        (format!("{origin}{typed}\r\nX-Iolite-Start: {}", "0".repeat(32)), 403),
        (format!("{origin}{typed}\r\nX-Iolite-Stop: {proof}"), 403),
        (format!("{typed}\r\nX-Iolite-Start: {proof}"), 403),
        (format!("\r\nOrigin: http://evil.example{typed}\r\nX-Iolite-Start: {proof}"), 403),
        (format!("\r\nOrigin: null{typed}\r\nX-Iolite-Start: {proof}"), 403),
        (format!("{origin}{typed}\r\nX-Iolite-Start: {proof}\r\nSec-Fetch-Site: cross-site"), 403),
        (format!("{origin}\r\nX-Iolite-Start: {proof}"), 415),
        (format!("{origin}\r\nContent-Type: text/plain\r\nX-Iolite-Start: {proof}"), 415),
    ] {
        assert_eq!(author.reader.send("start", &more, &body).status, expected, "{more}");
    }
    let foreign = author
        .reader
        .head("POST", "start", &lines)
        .replace(&format!("Host: {}", desk.host), "Host: evil.example");
    assert_eq!(ask(&desk.host, &foreign).status, 421);
    let stranger = author.reader.head("POST", "start", &lines).replace("Cookie:", "Biscuit:");
    assert_eq!(ask(&desk.host, &stranger).status, 403);
    assert_eq!(author.reader.send("start", &lines, "{").status, 400);
    assert_eq!(author.reader.send("start", &lines, "[]").status, 400);
    assert_eq!(author.reader.send("start", &lines, &"x".repeat((1 << 20) + 1)).status, 413);
    assert_eq!(author.reader.post("start", &format!("{lines}\r\nTransfer-Encoding: chunked")).status, 413);
    assert_eq!(author.reader.get("start").status, 404);

    // There is one run at a time. A reader who may only look cannot end it; one who may end runs can.
    assert_eq!(author.begin(ENDLESS, &[]).0, json!({ "started": true }));
    let second = author.send("start", &json!({ "text": ENDLESS }));
    assert_eq!(
        (second.status, second.body.as_str()),
        (409, "A run is in progress already: one at a time.\n")
    );
    assert_eq!(author.check(ENDLESS).0["busy"], true);
    let [looker, ender] = [desk.reader(0), desk.reader(1)];
    assert!(looker.get("").body.contains("The current run</a>"));
    assert!(!looker.get("live/").body.contains("data-stop"));
    let stop = between(&ender.get("live/").body, "data-stop=\"", "\"").to_owned();
    let with_stop = format!("{origin}\r\nX-Iolite-Stop: {stop}");
    assert_eq!(looker.post("live/stop", &with_stop).status, 403);
    assert_eq!(ender.post("live/stop", &format!("{origin}\r\nX-Iolite-Start: {proof}")).status, 403);
    assert_eq!(ender.send("start", &format!("{typed}{with_stop}"), &body).status, 403);
    assert_eq!(ender.post("live/stop", &with_stop).status, 202);
    assert!(author.report().contains("<h1>long</h1>"));
    assert!(looker.get("").body.contains("The last run</a>"));
    let said = desk.end();
    assert!(
        said.contains("a job was started from the page") && said.contains("is kept as run 1 in s.db"),
        "{said}"
    );
    assert_eq!(said.matches("was started").count(), 1, "{said}");
    let kept = Program::own().line(dir.path(), "runs export 1 --store=s.db").ok();
    assert_eq!(Json::parse(&kept.stdout).0["jobs"][0]["jobname"], "long");
}

/// The messages of a check are those of the command line. Options that are forbidden in pages are refused before
/// anything happens.
#[test]
pub fn mistakes_are_reported_as_on_the_command_line() {
    if !can_confine() {
        skip!("the kernel has no Landlock");
    }
    let dir = scratch();
    let desk = Desk::start(dir.path());
    let author = desk.author();
    let served = dir.path().join("served");
    for text in [
        "[a]\nfilename=x\nsize=64k\nrw=raed\niodpeth=3\n",
        "[a]\nfilename=x\nsize=4kk\nbs=8k\n[b]\n=\n",
        "filename=x\n",
        "[a]\nfilename=x\nsize=64k\nbs=128k\n",
        "[a]\nfilename=x\nsize=64k\niodepth=4\ndescription=<${NOT_SET}>\n",
    ] {
        fs::write(served.join("job.fio"), text).unwrap();
        let told = Program::own().run(&served, ["job.fio", "--parse-only"]);
        let expected: Vec<&str> = told.stderr.lines().filter(|line| line.contains("job.fio:")).collect();
        assert!(!expected.is_empty(), "{text}: {told}");
        let found = author.check(text);
        let mut sorted = expected.clone();
        sorted.sort();
        let mut mine = lines(&found);
        mine.sort();
        assert_eq!(mine, sorted, "{text}");
    }
    fs::remove_file(served.join("job.fio")).unwrap();
    fs::write(dir.path().join("outside"), vec![7; 65_536]).unwrap();
    symlink("../outside", served.join("link")).unwrap();
    fs::write(served.join("lib.so"), "no library").unwrap();
    let outside = dir.path().join("outside").display().to_string();
    let library = served.join("lib.so").display().to_string();
    for (option, place, why) in [
        ("exec_prerun=touch ran", 4, "run no programs"),
        ("exec_postrun=touch ran", 4, "run no programs"),
        ("ioengine=exec\nprogram=touch", 4, "run no programs"),
        (&format!("ioengine=external:{library}"), 4, "run no programs"),
        ("ioscheduler=none", 4, "change no settings"),
        ("cgroup=x", 4, "change no settings"),
        (
            "ioengine=http\nhttp_host=127.0.0.1:1\nhttp_mode=s3\nhttp_s3_key=nobody-knows",
            4,
            "of this machine only",
        ),
        ("ioengine=net\nhostname=127.0.0.1\nport=1", 4, "of this machine only"),
        ("ioengine=nbd\nuri=nbd://127.0.0.1:1/", 4, "of this machine only"),
        ("filename=../outside", 4, "the server serves nothing but"),
        (&format!("filename={outside}"), 4, "the server serves nothing but"),
        ("filename=link", 4, "the server serves nothing but"),
        ("directory=/etc", 4, "the server serves nothing but"),
        ("write_bw_log=../log", 4, "the server serves nothing but"),
        ("read_iolog=../outside", 4, "the server serves nothing but"),
        ("read_iolog=x\nmerge_blktrace_file=y", 5, "merge no traces"),
        ("buffer_pattern='../outside'", 4, "Permission denied"),
        ("include ../outside", 4, ""),
    ] {
        let text = format!("[a]\nsize=64k\nrw=write\n{option}\n");
        let found = author.check(&text);
        let told = lines(&found).join("\n");
        assert!(told.contains(&format!("job.fio:{place}:")) && told.contains(why), "{option}: {told}");
        assert!(!told.contains("nobody-knows"), "{told}");
        let refused = author.begin(&text, &["../outside"]);
        assert_eq!((&refused.0["started"], lines(&refused)), (&Value::Null, lines(&found)), "{option}");
    }
    assert_eq!(fs::read(dir.path().join("outside")).unwrap(), vec![7; 65_536]);
    let mut left: Vec<_> = fs::read_dir(&served).unwrap().flatten().map(|entry| entry.file_name()).collect();
    left.sort();
    assert_eq!(left, ["lib.so", "link"], "to look at a job makes nothing");
    // The environment of the server is not revealed either.
    let found = author.check("[a]\nioengine=null\nsize=4k\ndescription=<${SECRET}>\n");
    assert!(lines(&found)[0].contains("\"SECRET\" is not set"), "{}", found.0);
    assert_eq!(author.check("").0["mistakes"][0]["warning"], false);
    desk.end();
}

/// A target with data is only written to after the reader has typed its name as confirmation.
#[test]
pub fn targets_that_hold_data_are_confirmed_by_name() {
    if !can_confine() {
        skip!("the kernel has no Landlock");
    }
    let dir = scratch();
    let desk = Desk::start(dir.path());
    let author = desk.author();
    let device = dir.path().join("device").canonicalize().unwrap().display().to_string();
    let served = dir.path().join("served");
    let write = "[a]\nfilename=new\nsize=64k\nrw=write\n";
    assert_eq!(author.check(write).0["holds"], json!([]));
    assert_eq!(author.begin(write, &[]).0["started"], true);
    let page = author.report();
    assert!(page.contains("<h1>a</h1>"));
    assert_eq!(fs::metadata(served.join("new")).unwrap().len(), 65_536);
    let written = fs::read(served.join("new")).unwrap();
    // Reading needs no confirmation; writing and removing do.
    assert_eq!(author.check("[a]\nfilename=new\nsize=64k\nrw=read\n").0["holds"], json!([]));
    let held = json!([{ "name": "new", "what": "holds 64 KiB of data" }]);
    for text in
        [write, "[a]\nfilename=new\nsize=64k\nrw=read\nunlink=1\n", "[a]\nfilename=new\nsize=128k\nrw=read\n"]
    {
        assert_eq!(author.check(text).0["holds"], held, "{text}");
        for names in [&[][..], &["ne"], &["NEW"], &["new "], &["", "old"]] {
            let answer = author.begin(text, names);
            assert_eq!((&answer.0["started"], &answer.0["holds"]), (&Value::Null, &held), "{names:?}");
        }
    }
    let both =
        format!("[a]\nfilename={device}\nsize=64k\nrw=randwrite\n[b]\nfilename=new\nsize=64k\nrw=trim\n");
    assert_eq!(author.begin(&both, &["new"]).0["started"], Value::Null);
    assert_eq!(fs::read(served.join("new")).unwrap(), written);
    assert_eq!(fs::read(dir.path().join("device")).unwrap(), vec![1; 65_536]);
    // If there are many targets in one directory, the directory is confirmed.
    for place in 0..6 {
        fs::write(served.join(format!("many.0.{place}")), "x").unwrap();
    }
    let many = author.check("[many]\nnrfiles=6\nsize=384k\nrw=write\n");
    assert_eq!(many.0["holds"], json!([{ "name": ".", "what": "6 files in it, holds 6 B of data" }]));
    let write_device = format!("[a]\nfilename={device}\nsize=64k\nrw=randwrite\n");
    assert_eq!(author.begin(&write_device, &[&device]).0["started"], true);
    author.report();
    assert_ne!(fs::read(dir.path().join("device")).unwrap(), vec![1; 65_536]);
    desk.end();
    for (words, why) in [
        ("--serve-only=nowhere", "--serve-only: nowhere: No such file"),
        ("--serve-only=.", "the store of runs is within it"),
        ("--serve-only=served --store=device", "device: "),
    ] {
        let line = format!("web --allow-run --store=s.db {words}");
        Program::own().line(dir.path(), &line).refused().says(why);
    }
}

/// `--metrics` has the runs that are started in the page.
#[test]
fn jobs_of_the_page_have_metrics() {
    if !can_confine() {
        skip!("the kernel has no Landlock");
    }
    let dir = scratch();
    let desk = Desk::start_with(dir.path(), &["--metrics=127.0.0.1:0"]);
    let said = desk.running.output();
    let metrics = between(&said, "the metrics are at http://", "/metrics");
    let scraped = || ask(metrics, &format!("GET /metrics HTTP/1.1\r\nHost: {metrics}\r\n\r\n")).body;
    assert!(scraped().contains("\niolite_runs_total 0\n"), "{}", scraped());
    let author = desk.author();
    assert_eq!(author.begin("[a]\nioengine=null\nsize=1m\nbs=4k\nrw=write\n", &[]).0["started"], true);
    author.report();
    let body = scraped();
    assert!(
        body.contains("\niolite_runs_total 1\n")
            && body.contains("job_name=\"a\",direction=\"write\"} 256\n"),
        "{body}"
    );
    desk.end();
    let refused = Program::own().line(dir.path(), "web --store=s.db --metrics=0").refused();
    assert!(refused.stderr.contains("--metrics: has no effect without --allow-run"), "{refused}");
}

/// Types a job with a mistake, sees the mistake marked, completes options, and starts, watches and ends the job.
#[test]
fn a_browser_writes_and_runs_a_job() {
    if !can_confine() {
        skip!("the kernel has no Landlock");
    }
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    let desk = Desk::start(dir.path());
    for (width, height, is_dark) in [(1280, 900, false), (390, 844, true)] {
        write_and_run(&browser, &desk, width, (height, is_dark));
    }
    desk.end();
}

fn write_and_run(browser: &Browser, desk: &Desk, width: u32, (height, is_dark): (u32, bool)) {
    let picture = |what: &str| browser.check(&format!("edit-{what}-{width}"));
    browser.show_as(width, height, is_dark);
    browser.go_to(&desk.addresses[2]);
    browser.wait_until("return document.querySelector('a[href=edit]') !== null");
    browser.run("document.querySelector('a[href=edit]').click()");
    browser.wait_until("return document.documentElement.dataset.ready === 'yes' && document.getElementById('verdict').textContent === 'No mistakes'");
    browser.run("document.getElementById('job').focus(); document.getElementById('job').select()");
    browser.type_keys("[<b>bold]\nfilename=f\nsize=64k\nrw=raed");
    browser.wait_until("return document.querySelector('#marks mark.mistake')?.textContent === 'raed'");
    let told = browser.run("return document.querySelector('#mistakes li').textContent");
    let told = told.as_str().unwrap();
    assert!(
        told.starts_with("4:4rw=raed: not one of read, write,") && told.contains("did you mean \"read\"?"),
        "{told}"
    );
    // Below the fourth line, behind `rw=`.
    let place = "const mark = document.querySelector('#marks mark').getBoundingClientRect(), box = document.getElementById('job').getBoundingClientRect(), \
                 style = getComputedStyle(document.getElementById('job')), line = parseFloat(style.lineHeight), \
                 letter = mark.width / 4; return [(mark.top - box.top - parseFloat(style.paddingTop)) / line, (mark.left - box.left - parseFloat(style.paddingLeft)) / letter]";
    let place = browser.run(place);
    let (line, column) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    assert!((2.9..3.6).contains(&line) && (2.8..3.2).contains(&column), "{place}");
    assert_eq!(browser.run("return document.getElementById('start').disabled"), true);
    assert_eq!(browser.run("return document.querySelectorAll('#marks b, main b:not(#offers b)').length"), 0);
    picture("mistake");
    // Values and names are completed, with their help.
    let back = BACKSPACE.to_string().repeat(4);
    browser.type_keys(&format!("{back}rand"));
    browser.wait_until("return document.querySelectorAll('#offers li').length >= 3");
    assert_eq!(browser.run("return document.querySelector('#offers b').textContent"), "randread");
    picture("offers");
    let down = ARROW_DOWN.to_string();
    browser.type_keys(&format!("{down}{down}\n"));
    browser.wait_until("return document.getElementById('job').value.endsWith('rw=randwrite')");
    browser.type_keys("\nrunt");
    browser.wait_until("return document.querySelector('#offers b')?.textContent === 'runtime'");
    assert!(
        !browser
            .run("return document.querySelector('#offers span').textContent")
            .as_str()
            .unwrap()
            .is_empty()
    );
    browser.type_keys(&format!("{TAB}600\ntime_ba{TAB}\nrate_iops=200\n"));
    browser.wait_until(
        "return document.getElementById('job').value.endsWith('runtime=600\\ntime_based\\nrate_iops=200\\n')",
    );
    browser.wait_until("return document.getElementById('verdict').textContent === 'No mistakes' && document.querySelectorAll('#marks mark').length === 0");
    browser.run("document.getElementById('start').click()");
    // The second time, the target has data.
    if width < 600 {
        browser.wait_until("return document.querySelector('#confirm input') === document.activeElement && document.activeElement !== null");
        assert_eq!(browser.run("return document.querySelector('#confirm code').textContent"), "f");
        browser.type_keys("g");
        assert_eq!(browser.run("return document.querySelector('#confirm button').disabled"), true);
        picture("confirm");
        browser.type_keys(&format!("{BACKSPACE}f"));
        browser.run("document.querySelector('#confirm button').click()");
    }
    browser.wait_until(
        "return location.pathname.endsWith('/live/') && document.getElementById('stop') !== null",
    );
    browser.wait_until("return document.querySelectorAll('svg.chart').length >= 3");
    assert_eq!(browser.run("return document.title"), "<b>bold");
    let elsewhere = "return performance.getEntriesByType('resource').filter((one) => !one.name.startsWith(location.origin)).length";
    assert_eq!(browser.run(elsewhere), 0, "nothing is loaded from elsewhere");
    browser.run("document.getElementById('stop').click()");
    browser.run("document.getElementById('sure').click()");
    browser.wait_until("return document.querySelector('h2')?.textContent === 'The answer' && document.documentElement.dataset.ready === 'yes'");
    assert_eq!(browser.console(), Vec::<String>::new());
    desk.author().report();
}
