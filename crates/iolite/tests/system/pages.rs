//! Reports as pages (`--output-format=html`, `iolite report`), and the time series for their pictures.

use crate::common::browser::Browser;
use crate::common::{Json, Program, peers, scratch};
use iolite_testing::or_skip;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A job of 1.5 seconds with reads and writes and a queue depth.
const JOB: &str = "--name=mix --filename=f --rw=randrw --bs=4k --size=4m --ioengine=libaio --iodepth=4 --time_based --runtime=1500ms";

fn ours() -> Program {
    Program::own()
}

fn json(path: &Path) -> Value {
    Json::parse(&fs::read_to_string(path).unwrap()).0
}

fn sum(numbers: &Value) -> u64 {
    numbers.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).sum()
}

#[test]
fn a_series_has_every_io_of_the_report() {
    let dir = scratch();
    let line = format!(
        "{JOB} --name=other --filename=g --rw=write --bs=4k --size=1m --rate=4m --output-format=json --output=r.json"
    );
    ours().line(dir.path(), &line).ok();
    let report = json(&dir.path().join("r.json"));
    let series = &report["iolite"]["series"];
    assert_eq!(series["sample_us"], 100_000);
    let ends = series["end_us"].as_array().unwrap();
    assert!(ends.windows(2).all(|pair| pair[0].as_u64() < pair[1].as_u64()), "{ends:?}");
    assert_eq!(series["jobs"].as_array().unwrap().len(), 2, "{series}");
    for (job, entry) in report["jobs"].as_array().unwrap().iter().zip(series["jobs"].as_array().unwrap()) {
        for direction in ["read", "write"].into_iter().filter(|of| job[of]["total_ios"] != 0) {
            let (whole, parts) = (&job[direction], &entry[direction]);
            assert_eq!(
                sum(&parts["ios"]),
                whole["total_ios"].as_u64().unwrap(),
                "{direction} of {}",
                job["jobname"]
            );
            assert_eq!(sum(&parts["bytes"]), whole["io_bytes"].as_u64().unwrap());
            // The latency classes of a window count every I/O.
            let counted: u64 = parts["clat_classes"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|window| window.as_array().unwrap().iter().skip(1).step_by(2))
                .map(|count| count.as_u64().unwrap())
                .sum();
            assert_eq!(counted, whole["clat_ns"]["N"].as_u64().unwrap());
        }
    }
    let host = &report["iolite"]["host"];
    assert!(host["kernel"].as_str().unwrap().starts_with("Linux "), "{host}");
    let target = &report["iolite"]["targets"][0];
    assert!(
        target["files"].as_str().unwrap().starts_with('f') && target["file_system"].is_string(),
        "{target}"
    );
}

/// Under the name `fio`, only the formats of fio exist.
#[test]
fn under_the_name_fio_there_is_no_html() {
    let dir = scratch();
    let fio = Program::called_fio(dir.path());
    let run = fio.line(dir.path(), &format!("{JOB} --output-format=json")).ok();
    assert_eq!(Json::parse(&run.stdout).0.get("iolite"), None);
    fio.line(dir.path(), &format!("{JOB} --output-format=html")).refused().says("unknown format \"html\"");
    for peer in peers!() {
        assert_ne!(
            peer.line(dir.path(), &format!("{JOB} --output-format=html")).code(),
            0,
            "{}",
            peer.version()
        );
    }
}

#[test]
pub fn a_page_goes_beside_other_formats() {
    let dir = scratch();
    let line = format!("{JOB} --output-format=html,json+,normal --output=r.json");
    ours().line(dir.path(), &line).ok();
    let page = fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let report = json(&dir.path().join("r.json"));
    for direction in ["read", "write"] {
        // Numbers are those of the JSON report, with six decimals.
        let iops = report["jobs"][0][direction]["iops"].as_f64().unwrap();
        assert!(page.contains(&format!("data-iops=\"{iops}\"")), "{iops}");
        let p99 = &report["jobs"][0][direction]["clat_ns"]["percentile"]["99.000000"];
        assert!(page.contains(&format!("data-p=\"99\" data-ns=\"{p99}\"")), "{p99}");
    }
    // The page of the stored report is the same.
    ours().line(dir.path(), "report r.json -o again.html").ok();
    assert_eq!(fs::read_to_string(dir.path().join("again.html")).unwrap(), page);
    assert_eq!(ours().line(dir.path(), "report r.json").ok().stdout, page);
    // If html is the only format, the page goes to the report's destination, once, even with interim reports.
    let alone =
        ours().line(dir.path(), &format!("{JOB} --output-format=html --status-interval=300ms")).ok().stdout;
    assert!(alone.starts_with("<!doctype html>") && alone.matches("<!doctype").count() == 1);
}

#[test]
fn a_page_needs_a_place() {
    let dir = scratch();
    for (line, why) in [
        ("--output-format=html,json", "goes into a separate file, FILE.html, and needs --output=FILE.json"),
        ("--output-format=html --append-terse", "goes into a separate file"),
        (
            "--output-format=json,html --output=r.html",
            "the page goes beside the other formats, into FILE.html",
        ),
        ("--output-format=html,json --output=none/r.json", "none/r.json: No such file"),
    ] {
        ours().line(dir.path(), &format!("{JOB} {line}")).refused().says(why);
    }
    // The page must not overwrite the data of a job.
    let line = "--name=a --filename=r.html --rw=write --size=64k --output-format=html,json --output=r.json";
    ours().line(dir.path(), line).refused().says("the page would go into r.html, which is the data of job a");
    // An old page is replaced, also by the page of a refused run.
    fs::write(dir.path().join("r.html"), "old").unwrap();
    ours()
        .line(dir.path(), "--name=a --filename=unsized --rw=read --output-format=html --output=r.html")
        .refused();
    let refused = fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(refused.contains("1 of 1 jobs had errors"), "the page of a refused run tells why");
    ours().line(dir.path(), &format!("{JOB} --output-format=html --output=r.html")).ok();
    assert!(!fs::read_to_string(dir.path().join("r.html")).unwrap().contains("had errors"));
}

#[test]
fn invalid_stored_results_are_refused() {
    let dir = scratch();
    fs::write(dir.path().join("broken"), "note\n{\n  \"jobs\" : [\n    {,\n").unwrap();
    fs::write(dir.path().join("none"), "{ \"jobs\" : 3 }\n").unwrap();
    fs::write(dir.path().join("bytes"), [0_u8; 64]).unwrap();
    fs::write(dir.path().join("page"), "old").unwrap();
    for (line, why) in [
        ("report", "needs the name of one result"),
        ("report nosuch", "nosuch: No such file or directory"),
        ("report broken -o page", "broken:4:6: key must be a string"),
        ("report none -o page", "none: it has no \"jobs\""),
        ("report bytes -o page", "bytes: it is not a text"),
        ("report none -x", "unknown option -x"),
    ] {
        ours().line(dir.path(), line).refused().says(why);
    }
    assert_eq!(fs::read_to_string(dir.path().join("page")).unwrap(), "old", "nothing has replaced it");
    ours()
        .line(dir.path(), "--name=a --ioengine=null --rw=read --size=64k --output-format=json --output=r")
        .ok();
    let before = fs::read(dir.path().join("r")).unwrap();
    ours().line(dir.path(), "report r --output=./r").refused().says("that is the result itself");
    fs::hard_link(dir.path().join("r"), dir.path().join("link")).unwrap();
    ours().line(dir.path(), "report r --output=link").refused().says("that is the result itself");
    assert_eq!(fs::read(dir.path().join("r")).unwrap(), before);
    ours()
        .line(dir.path(), "report r --output=nowhere/p")
        .refused()
        .says("nowhere/p: No such file or directory");
}

/// The pages of fio's own results.
#[test]
fn results_of_fio_have_pages() {
    let dir = scratch();
    for peer in peers!() {
        let line = format!("{JOB} --output-format=json+ --output=fio.json");
        peer.line(dir.path(), &line).ok();
        let page = ours().line(dir.path(), "report fio.json").ok().stdout;
        let report = json(&dir.path().join("fio.json"));
        let iops = report["jobs"][0]["read"]["iops"].as_f64().unwrap();
        assert!(page.contains(&format!("data-iops=\"{iops}\"")), "{}: {iops}", peer.version());
    }
}

/// In pages of our results, of each fio's results, and of a result whose names contain markup, control characters and a
/// megabyte of text, all names are shown as text.
#[test]
fn pages_of_hostile_and_of_foreign_results_in_a_browser() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    let mut names = Vec::new();
    for (place, peer) in Program::peers().into_iter().chain([ours()]).enumerate() {
        let name = format!("r{place}.json");
        peer.line(dir.path(), &format!("{JOB} --output-format=json+ --output={name}")).ok();
        names.push(name);
    }
    let mut hostile = json(&dir.path().join(names.last().unwrap()));
    let evil =
        format!("</script><script>document.title='taken'</script>\u{1b}[31m\u{202e}{}", "x".repeat(1 << 20));
    hostile["jobs"][0]["jobname"] = evil.clone().into();
    hostile["jobs"][0]["job options"]["description"] = evil.clone().into();
    hostile["iolite"]["host"]["kernel"] = evil.clone().into();
    hostile["iolite"]["warnings"] = serde_json::json!([evil]);
    fs::write(dir.path().join("hostile.json"), format!("{hostile:#}\n")).unwrap();
    names.push("hostile.json".to_owned());
    for (name, (width, height, is_dark)) in
        names.iter().flat_map(|name| [(1280, 900, false), (390, 844, true)].map(|screen| (name, screen)))
    {
        ours().line(dir.path(), &format!("report {name} -o p.html")).ok();
        browser.show_as(width, height, is_dark);
        browser.open(&dir.path().join("p.html"));
        browser.wait_until("return document.documentElement.dataset.ready === 'yes'");
        browser.wait_until("return document.querySelectorAll('svg.chart').length >= 3");
        let report = json(&dir.path().join(name));
        for direction in ["read", "write"] {
            let shown = format!(
                "return +document.querySelector('tr[data-direction={direction}] [data-iops]').dataset.iops"
            );
            assert_eq!(browser.run(&shown).as_f64(), report["jobs"][0][direction]["iops"].as_f64(), "{name}");
        }
        let text = browser.run("return document.body.innerText");
        let acts = |character: char| character == '\u{1b}' || character == '\u{202e}';
        assert!(!text.as_str().unwrap().contains(acts), "{name}");
        assert_eq!(browser.run("return document.scripts.length"), 2, "{name}");
        assert!(!browser.run("return document.title").as_str().unwrap().starts_with("taken"));
        browser.check(&format!("of-{name}-{width}"));
        if is_dark {
            browser.check_tables(name);
        }
    }
}

/// The page in a browser, at phone and desktop width, light and dark: its numbers are those of the JSON report, nothing
/// is loaded, the console has no errors, nothing is clipped, and a job's name is shown as text.
/// `IOLITE_SCREENSHOTS=DIRECTORY` keeps screenshots.
#[test]
fn a_browser_shows_the_page() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    let hostile = "<img src=x onerror=document.title='taken'>";
    let arguments = [
        "--output-format=html,json+",
        "--output=r.json",
        "--name=global",
        "--size=4m",
        "--bs=4k",
        "--time_based",
        "--runtime=1500ms",
        "--ramp_time=300ms",
        &format!("--name={hostile}"),
        "--filename=f",
        "--rw=randrw",
        "--ioengine=libaio",
        "--iodepth=4",
        "--name=second",
        "--filename=g",
        "--rw=write",
    ];
    ours().run(dir.path(), arguments).ok();
    let report = json(&dir.path().join("r.json"));
    for (width, height, is_dark) in
        [(1280, 900, false), (1280, 900, true), (390, 844, false), (390, 844, true)]
    {
        browser.show_as(width, height, is_dark);
        browser.open(&dir.path().join("r.html"));
        browser.wait_until("return document.documentElement.dataset.ready === 'yes'");
        browser.run("document.querySelectorAll('details.job').forEach((job) => (job.open = true))");
        browser.wait_until("return [...document.querySelectorAll('details.job figure')].every((figure) => figure.querySelector('svg.chart')) \
                            && document.querySelectorAll('details.job').length === 3 && document.querySelectorAll('svg.chart').length > 15");
        let title = browser.run("return document.title");
        assert_eq!(title, format!("{hostile} and 1 more job").as_str());
        assert_eq!(browser.run("return document.images.length"), 0);
        for (job, direction) in [(0, "read"), (0, "write"), (1, "write")] {
            let row = format!("tr[data-job='{job}'][data-direction='{direction}']");
            let shown =
                browser.run(&format!("return +document.querySelector(\"{row} [data-iops]\").dataset.iops"));
            assert_eq!(shown.as_f64(), report["jobs"][job][direction]["iops"].as_f64());
        }
        // The scripts have unpacked the report correctly.
        let unpacked =
            browser.run("return unpacked().then((report) => report.jobs.map((job) => job.write.total_ios))");
        assert_eq!(
            unpacked,
            serde_json::json!([
                report["jobs"][0]["write"]["total_ios"],
                report["jobs"][1]["write"]["total_ios"]
            ])
        );
        // Every latency is drawn in the right class.
        let misplaced = browser.run(
            "return [0, 7, 8, 127, 128, 143, 144, 1000, 82432, 1e6, 123456789, 5e9].filter((ns) => \
               classBegin(classOf(ns)) > ns || classBegin(classOf(ns) + 1) <= ns)",
        );
        assert_eq!(misplaced, serde_json::json!([]));
        // The keyboard reaches the values of a picture and its table.
        let told = browser.run(
            "const chart = document.querySelector('svg.chart'); chart.focus(); \
             chart.dispatchEvent(new KeyboardEvent('keydown', { key: 'End', bubbles: true })); \
             return chart.closest('figure').querySelector('output').textContent",
        );
        assert!(told.as_str().unwrap().contains("write "), "{told}");
        browser.run("document.querySelector('figure details').open = true");
        browser.wait_until("return document.querySelectorAll('figure details tbody tr').length > 3");
        // Only tables may be wider than the screen; they have scroll bars.
        browser.check(&format!("page-{width}-{}", if is_dark { "dark" } else { "light" }));
    }
    browser.check_tables("page");
}

/// With the option, JSON has no time series, but pages and the store still have it.
#[test]
pub fn json_without_the_run_over_time() {
    let dir = scratch();
    let line =
        "--name=a --ioengine=null --size=64k --rate_iops=100 --time_based --runtime=500ms --output=r.json";
    for (words, has_page) in
        [("--output-format=json", false), ("--output-format=json+,html --save --store=s.db", true)]
    {
        ours().line(dir.path(), &format!("{line} {words}")).ok();
        assert!(json(&dir.path().join("r.json"))["iolite"]["series"].is_object());
        ours().line(dir.path(), &format!("{line} {words} --no-series")).ok();
        let report = json(&dir.path().join("r.json"));
        assert!(report["iolite"].get("series").is_none() && report["iolite"]["host"].is_object());
        if has_page {
            let kept = ours().line(dir.path(), "runs export 2 --store=s.db").ok();
            assert!(Json::parse(&kept.stdout).0["iolite"]["series"].is_object());
            let page = fs::read_to_string(dir.path().join("r.html")).unwrap();
            assert!(!page.contains("has no series"), "the page has the run over time");
        }
    }
    let fio = Program::called_fio(dir.path());
    if !fio.is_peer {
        fio.line(dir.path(), &format!("{line} --no-series")).refused().says("unknown option \"no-series\"");
    }
}

/// Options for logs of each I/O.
const LOGS: &str = "--write_lat_log=a --write_bw_log=a --write_iops_log=a";

#[test]
fn a_page_is_drawn_from_logs() {
    let dir = scratch();
    ours().line(dir.path(), &format!("{JOB} {LOGS} --output-format=html,json+ --output=r.json")).ok();
    let page = fs::read_to_string(dir.path().join("r.html")).unwrap();
    // Logs are given by prefix, by name, or by directory.
    for logs in ["a", "a_bw.1.log,a_iops.1.log,a_clat.1.log,a_lat.1.log,a_slat.1.log", ".", "./a"] {
        let again = ours().line(dir.path(), &format!("report r.json --logs={logs}")).ok();
        assert!(again.stderr.is_empty(), "{again}");
        assert_eq!(again.stdout.len(), page.len(), "--logs={logs}");
    }
    assert_ne!(ours().line(dir.path(), "report r.json").ok().stdout, page, "without logs it is another page");
    // Logs of fio work as well.
    for peer in Program::peers() {
        peer.line(dir.path(), &format!("{JOB} --write_lat_log=f --output-format=json --output=f.json")).ok();
        let drawn = ours().line(dir.path(), "report f.json --logs=f -o f.html").ok();
        assert!(drawn.stderr.is_empty(), "{}: {drawn}", peer.version());
    }

    // A truncated log is drawn up to its end; all other defects are errors.
    let log = fs::read_to_string(dir.path().join("a_bw.1.log")).unwrap();
    let with = |text: &str| fs::write(dir.path().join("a_bw.1.log"), text).unwrap();
    with(&log[..log.len() - 5]);
    ours().line(dir.path(), "report r.json --logs=a -o cut.html").ok().says("is cut off");
    with(&log.replacen(", ", "; ", 3));
    ours()
        .line(dir.path(), "report r.json --logs=a -o bad.html")
        .refused()
        .says("--logs: ")
        .says("a_bw.1.log:1:");
    with(&log);
    fs::copy(dir.path().join("a_bw.1.log"), dir.path().join("z_bw.1.log")).unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    for (logs, why) in [
        ("none", "there are no logs with this prefix (none_bw.1.log and the like)"),
        ("none_bw.1.log", "none_bw.1.log: No such file or directory"),
        ("r.json", "this is not what logs are called"),
        ("empty", "there are no logs of the result in it (a_bw.1.log and the like)"),
        ("z", "this is not a log of that result"),
        ("a,", "needs a prefix of logs"),
    ] {
        ours().line(dir.path(), &format!("report r.json --logs={logs} -o no.html")).refused().says(why);
    }
    ours().line(dir.path(), "report r.json --logs=a -o a_bw.1.log").refused().says("that is one of the logs");
    assert!(!dir.path().join("no.html").exists() && !dir.path().join("bad.html").exists());
    assert_eq!(fs::read_to_string(dir.path().join("a_bw.1.log")).unwrap(), log);
}

#[test]
fn pictures_of_logs_in_a_browser() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    let line = format!(
        "{JOB} {LOGS} --write_hist_log=h --log_hist_msec=100 --output-format=html,json --output=r.json"
    );
    ours().line(dir.path(), &line).ok();
    let report = json(&dir.path().join("r.json"));
    for (width, height, is_dark) in [(1280, 900, false), (390, 844, true)] {
        browser.show_as(width, height, is_dark);
        browser.open(&dir.path().join("r.html"));
        browser.wait_until("return document.documentElement.dataset.ready === 'yes'");
        browser.run("document.querySelectorAll('details.job').forEach((job) => (job.open = true))");
        browser.wait_until("return document.querySelectorAll('svg.chart').length > 8");
        let text = browser.run("return document.body.innerText");
        let text = text.as_str().unwrap();
        for direction in ["read", "write"] {
            let ios = report["jobs"][0][direction]["total_ios"].as_u64().unwrap();
            let ios: String = ios
                .to_string()
                .as_bytes()
                .rchunks(3)
                .rev()
                .map(|part| std::str::from_utf8(part).unwrap())
                .collect::<Vec<_>>()
                .join(",");
            for kind in ["a_bw", "a_iops", "a_clat", "a_lat"] {
                assert!(
                    text.contains(&format!("From {kind}.1.log: {ios} I/Os")),
                    "{kind} {direction}: {text}"
                );
            }
            assert!(text.contains(&format!("Latency heat map: {direction}")), "{text}");
        }
        assert!(text.contains("From h_clat_hist.1.log: "), "{text}");
        browser.check(&format!("logs-{width}"));
    }
}
