//! `iolite web`: shows stored results in a browser.

use crate::common::browser::Browser;
use crate::common::program::Running;
use crate::common::{Json, Program, scratch};
use crate::live::{Reader, ask, hold_silent};
use iolite_testing::or_skip;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;

const JOB: &str = "--ioengine=null --bs=4k --size=64k --rw=randread --output-format=json";

/// A server of results.
struct Shelf {
    running: Running,
    address: String,
    host: String,
}

impl Shelf {
    fn start(dir: &Path, words: &[&str]) -> Shelf {
        let mut running = Program::own().start(dir, ["web"].iter().chain(words).copied());
        running.wait_until("its address", |running| running.output().contains("/?token="));
        let said = running.output();
        let address = said.lines().find_map(|line| line.split_once(" are at ")).unwrap().1.to_owned();
        let host = address.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        Shelf { running, address, host }
    }

    fn reader(&self) -> Reader {
        Reader::of(&self.host, self.address.split_once("token=").unwrap().1)
    }

    fn end(self) {
        self.running.signal(libc::SIGTERM);
        self.running.wait();
    }
}

#[test]
fn results_are_listed_shown_and_compared() {
    let dir = scratch();
    let home = dir.path().join("results");
    fs::create_dir(&home).unwrap();
    let hostile = "<b onclick=x>&\"'.json";
    for (name, job) in [("a.json", "one"), ("b.json", "one"), (hostile, "<i>two</i>")] {
        let words = JOB.split(' ').map(str::to_owned);
        let more = [format!("--output={}", home.join(name).display()), format!("--name={job}")];
        Program::own().run(dir.path(), words.chain(more)).ok();
    }
    fs::write(home.join("broken.json"), "{").unwrap();
    fs::write(dir.path().join("secret.json"), fs::read(home.join("a.json")).unwrap()).unwrap();
    symlink("nowhere", home.join("gone.json")).unwrap();
    let shelf = Shelf::start(dir.path(), &["results"]);
    let reader = shelf.reader();
    let list = reader.get("");
    assert!(
        list.header("Content-Security-Policy")
            .starts_with("default-src 'none'; style-src 'self'; img-src data:;")
    );
    for text in ["4 results, 4 found", ">a.json</a>", "&lt;b onclick=x&gt;&amp;&quot;&#39;.json</a>"] {
        assert!(list.body.contains(text), "{text}: {}", list.body);
    }
    assert!(!list.body.contains("<b ") && !list.body.contains("gone.json"), "{}", list.body);
    let found = reader.get("?find=A.JS");
    assert!(found.body.contains("4 results, 1 found"), "{}", found.body);
    // The page of a result is that of `iolite report`.
    let page = reader.get("run?key=a.json");
    assert_eq!(page.body, Program::own().line(&home, "report a.json").ok().stdout);
    assert_eq!(page.header("Content-Security-Policy"), iolite_page::policy() + "; frame-ancestors 'none'");
    assert_eq!(reader.get("run?key=%3Cb+onclick%3Dx%3E%26%22%27.json").status, 200);
    let compared = reader.get("compare?base=a.json&new=b.json");
    let total =
        &Json::parse(&fs::read_to_string(home.join("a.json")).unwrap()).0["jobs"][0]["read"]["total_ios"];
    assert_eq!(total, 16);
    for text in ["<h1>Comparison</h1>", "one: read", ">iops</th>", "<li>base: 1 run: a.json</li>"] {
        assert!(compared.body.contains(text), "{text}: {}", compared.body);
    }
    // Results that do not exist or cannot be read.
    for (path, why) in [
        ("run?key=none.json", "There is no result &quot;none.json&quot;."),
        ("run?key=../secret.json", "There is no result"),
        ("run?key=%2e%2e%2fsecret.json", "There is no result"),
        ("run?key=broken.json", "broken.json:1:"),
        ("run?key=<script>", "There is no result &quot;&lt;script&gt;&quot;."),
        ("compare?base=a.json", "Choose new"),
        ("compare?base=a.json&new=%3Cscript%3E", "There is no result &quot;&lt;script&gt;&quot;."),
        ("compare?base=a.json&base=a.json&new=b.json", "results of the same run"),
    ] {
        let answer = reader.get(path);
        assert!(answer.body.contains(why), "{path}: {}", answer.body);
        assert!(!answer.body.contains("<script>"), "{path}");
    }
    assert_eq!(reader.get("nothing").status, 404);
    assert_eq!(reader.post("run?key=a.json", &format!("\r\nOrigin: http://{}", shelf.host)).status, 405);
    assert_eq!(
        ask(&shelf.host, &format!("GET /?token={} HTTP/1.1\r\nHost: {}", "0".repeat(32), shelf.host)).status,
        403
    );
    assert_eq!(ask(&shelf.host, &reader.head("GET", "", "").replace("Cookie", "Biscuit")).status, 403);
    shelf.end();
}

#[test]
fn a_store_is_looked_at_as_it_is() {
    let dir = scratch();
    let job = "--name=kept --ioengine=null --size=64k --store=s.db --save=";
    Program::own().run(dir.path(), format!("{job}<b>bold").split(' ')).ok();
    let shelf = Shelf::start(dir.path(), &["--store=s.db"]);
    let reader = shelf.reader();
    let list = reader.get("").body;
    assert!(
        list.contains("1 results, 1 found") && list.contains("&lt;b&gt;bold") && list.contains(">kept<"),
        "{list}"
    );
    Program::own().run(dir.path(), format!("{job}new").split(' ')).ok();
    assert!(reader.get("").body.contains("2 results, 2 found"));
    assert!(reader.get("run?key=2").body.contains("<h1>kept</h1>"));
    assert!(reader.get("compare?base=1&new=2").body.contains("<h1>Comparison</h1>"));
    Program::own().line(dir.path(), "runs remove 1 --store=s.db").ok();
    assert!(reader.get("run?key=1").body.contains("There is no result"));
    shelf.end();
}

/// The results of two labels are compared, under their labels, as `iolite compare` does.
#[test]
fn labels_are_compared() {
    let dir = scratch();
    let keep = |label: &str| {
        let job = format!("--name=kept --ioengine=null --size=64k --store=s.db --save={label}");
        Program::own().run(dir.path(), job.split(' ')).ok();
    };
    keep("<b>before");
    let shelf = Shelf::start(dir.path(), &["--store=s.db"]);
    let reader = shelf.reader();
    assert!(!reader.get("").body.contains("<select"), "one label has nothing to be compared with");
    ["<b>before", "after&1", "after&1"].into_iter().for_each(keep);
    let list = reader.get("").body;
    for text in [
        "<select name=\"base-label\"><option value=\"after&amp;1\">after&amp;1 (2)</option>\
         <option value=\"&lt;b&gt;before\" selected>&lt;b&gt;before (2)</option></select>",
        "<select name=\"new-label\"><option value=\"after&amp;1\" selected>",
    ] {
        assert!(list.contains(text), "{text}: {list}");
    }
    let compared = reader.get("compare?base-label=%3Cb%3Ebefore&new-label=after%261").body;
    for text in ["base: label:&lt;b&gt;before, 2 runs: 1, 2<", "new: label:after&amp;1, 2 runs: 3, 4<"] {
        assert!(compared.contains(text), "{text}: {compared}");
    }
    for (path, why) in [
        (
            "compare?base-label=none&new-label=after%261",
            "There is no result with the label &quot;none&quot;.",
        ),
        ("compare?base-label=&new=1", "There is no result with the label &quot;&quot;."),
        ("compare?base-label=after%261", "Choose new"),
    ] {
        let body = reader.get(path).body;
        assert!(body.contains(why), "{path}: {body}");
    }
    if let Ok(browser) = Browser::start() {
        browser.go_to(&shelf.address);
        browser.wait_until("return document.querySelectorAll('select').length === 2");
        browser.check_tables("web-labels");
        browser.check("web-labels");
        browser.run("document.querySelector('select').form.requestSubmit()");
        browser.wait_until("return document.querySelector('h1').textContent === 'Comparison' && document.documentElement.dataset.ready === 'yes'");
        assert!(
            browser
                .run("return document.querySelector('ul').textContent")
                .to_string()
                .contains("label:after&1")
        );
    }
    shelf.end();
}

#[test]
fn silent_connections_shut_nobody_out_of_the_results() {
    let dir = scratch();
    Program::own().line(dir.path(), &format!("{JOB} --name=a --output=a.json")).ok();
    let shelf = Shelf::start(dir.path(), &["."]);
    let held = hold_silent(&shelf.host, b"GET / HTTP/1.1\r\n");
    assert!(shelf.reader().get("").body.contains("1 results, 1 found"));
    drop(held);
    shelf.end();
}

#[test]
fn invalid_web_arguments_are_refused() {
    let dir = scratch();
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::write(dir.path().join("no.db"), "text").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    fs::create_dir(dir.path().join("r")).unwrap();
    fs::write(dir.path().join("r/a.json"), "{}").unwrap();
    for (line, why) in [
        ("web nowhere".to_owned(), "nowhere: No such file or directory"),
        ("web empty".to_owned(), "there are no results (*.json) in this directory"),
        ("web --store=none.db".to_owned(), "none.db: there is no store yet (--save makes it)"),
        ("web --store=no.db".to_owned(), "no.db: "),
        ("web r --store=s.db".to_owned(), "and not both"),
        ("web r r".to_owned(), "one directory of results at most"),
        ("web r --listen=0.0.0.0:1".to_owned(), "--listen=0.0.0.0:1: only addresses of this machine alone"),
        ("web r --listen=0.0.0.0:1 --tls=new".to_owned(), "--tls: 0.0.0.0 is all addresses"),
        ("web r --tls=none.crt,none.key".to_owned(), "--tls: none.crt: No such file"),
        ("web r --tls=a,".to_owned(), "--tls=a,: neither new nor"),
        (format!("web r --listen={}", taken.local_addr().unwrap()), "Address already in use"),
        ("web --allow-run".to_owned(), "name those that jobs may use, and destroy (--serve-only="),
        ("web --allow-run --serve-only=".to_owned(), "needs the path of a file or directory"),
        ("web r --allow-run --serve-only=empty".to_owned(), "runs are kept in a store"),
        ("web --serve-only=empty".to_owned(), "--serve-only: has no effect without --allow-run"),
    ] {
        Program::own().line(dir.path(), &line).refused().says(why);
    }
}

/// Follows the page's links and buttons from the list to a comparison and to a report.
#[test]
fn a_browser_goes_through_the_results() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    for name in ["a", "b"] {
        Program::own().line(dir.path(), &format!("{JOB} --name={name} --output={name}.json")).ok();
    }
    let shelf = Shelf::start(dir.path(), &["."]);
    for (width, height, is_dark) in [(1280, 900, false), (390, 844, true)] {
        browser.show_as(width, height, is_dark);
        browser.go_to(&shelf.address);
        browser.wait_until("return document.querySelectorAll('tbody tr').length === 2");
        browser.run("document.querySelector('[aria-label=\"base: a.json\"]').click(); document.querySelector('[aria-label=\"new: b.json\"]').click()");
        browser.check(&format!("web-{width}"));
        browser.check_tables("web");
        browser.show_as(width, height, is_dark);
        browser.run("[...document.querySelectorAll('button')].at(-1).click()");
        browser.wait_until("return document.querySelector('h1').textContent === 'Comparison' && document.documentElement.dataset.ready === 'yes'");
        browser.wait_until("return document.querySelectorAll('svg.chart').length >= 1");
        browser.check(&format!("web-compare-{width}"));
        browser.run("document.querySelector('a').click()");
        browser.wait_until("return document.querySelector('h1').textContent === 'Stored results'");
        browser.run(
            "[...document.querySelectorAll('th a')].find((link) => link.textContent === 'a.json').click()",
        );
        browser.wait_until("return document.documentElement.dataset.ready === 'yes' && document.querySelector('h1').textContent === 'a'");
        browser.check(&format!("web-run-{width}"));
    }
    shelf.end();
}
