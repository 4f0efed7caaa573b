//! Runs on several machines, in pages and in the store of runs.

use crate::common::browser::Browser;
use crate::common::program::send;
use crate::common::{Json, Program, scratch};
use crate::remote::{Agent, job, run};
use iolite_testing::or_skip;
use serde_json::Value;
use std::fs;
use std::path::Path;

const JOB: &str =
    "[a]\nioengine=null\nsize=1m\nbs=4k\nrw=randread\nrate_iops=1000\ntime_based\nruntime=1500ms\n";

fn sum(numbers: &Value) -> u64 {
    numbers.as_array().unwrap().iter().filter_map(Value::as_u64).sum()
}

/// Runs a job on two machines, with these options.
fn of_two(dir: &Path, words: &[&str]) -> crate::common::Finished {
    let agents = ["one", "two"].map(|name| Agent::on_socket(dir, name));
    job(dir, JOB);
    let [one, two] = agents.each_ref().map(Agent::client);
    let ran = run(dir, &[words, &[&one, &two, "job.fio"]].concat());
    agents.into_iter().for_each(|agent| drop(agent.end()));
    ran
}

#[test]
fn a_run_of_several_machines_is_kept() {
    let dir = scratch();
    let words = ["--output-format=json", "--save=fleet", "--store=s.db"];
    let ran = of_two(dir.path(), &words).ok();
    assert!(ran.stderr.contains("the run is kept as run 1 in s.db"), "{ran}");
    let told = Json::parse(&ran.stdout).0;
    let kept = Program::own().line(dir.path(), "runs export 1 --store=s.db").ok();
    let kept = Json::parse(&kept.stdout).0;
    let (jobs, series) = (kept["jobs"].as_array().unwrap(), &kept["iolite"]["series"]);
    assert_eq!((jobs.len(), series["jobs"].as_array().unwrap().len()), (2, 2));
    for (position, job) in jobs.iter().enumerate() {
        let name = job["jobname"].as_str().unwrap();
        assert!(name.starts_with("a on "), "{name}");
        assert_eq!(job["read"]["total_ios"], told["client_stats"][position]["read"]["total_ios"]);
        let windows = &series["jobs"][position];
        assert_eq!(windows["job"], position);
        assert_eq!(sum(&windows["read"]["ios"]), job["read"]["total_ios"].as_u64().unwrap());
        assert_eq!(job["job options"]["rate_iops"], "1000");
    }
    assert_ne!(jobs[0]["jobname"], jobs[1]["jobname"]);
    // The report itself has the same, and so has the page that is made from it.
    assert_eq!(&told["iolite"]["series"], series);
    assert_eq!(
        (&told["iolite"]["host"], &told["iolite"]["targets"]),
        (&kept["iolite"]["host"], &kept["iolite"]["targets"])
    );
    let length = series["sample_us"].as_u64().unwrap();
    let ends: Vec<u64> = series["end_us"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!(ends[..ends.len() - 2].iter().all(|end| end % length == 0), "on a grid: {ends:?}");
    let targets = kept["iolite"]["targets"].as_array().unwrap();
    assert!(targets.iter().all(|target| target["host"].is_string()), "{targets:?}");
    let shown = Program::own().line(dir.path(), "runs show 1 --store=s.db").ok();
    assert!(shown.stdout.contains("run 1: fleet") && shown.stdout.matches("a on ").count() >= 2, "{shown}");
    Program::own().line(dir.path(), "compare run:1 run:1 --store=s.db").ok().says("a on ");
}

#[test]
fn runs_of_several_machines_that_cannot_be_saved_are_refused() {
    let dir = scratch();
    fs::write(dir.path().join("text"), "somebody's text".repeat(20)).unwrap();
    Program::own().line(dir.path(), "--name=a --ioengine=null --size=4k --save --store=s.db").ok();
    for (words, why) in [
        (&["--save", "--store=text"][..], "it is not an SQLite file"),
        (&["--save=a\u{1}", "--store=s.db"], "no control characters"),
        (&["--output=s.db"], "a store of runs"),
        (&["--save", "--store=new.db", "--output=new.db"], "a store of runs"),
        (&["--output-format=html,json"], "needs --output=FILE.json"),
        (&["--web=10.1.2.3:80"], "only addresses of this machine alone"),
    ] {
        let client = ["--client=sock:nowhere", "job.fio"];
        job(dir.path(), JOB);
        let ran = run(dir.path(), &[words, &client].concat()).refused();
        assert!(ran.stderr.contains(why), "{why}: {ran}");
    }
    assert!(fs::read_to_string(dir.path().join("text")).unwrap().starts_with("somebody's"));
}

#[test]
fn the_page_of_several_machines_in_a_browser() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    of_two(dir.path(), &["--output-format=json,html", "--output=r.json"]).ok();
    let told = Json::parse(&fs::read_to_string(dir.path().join("r.json")).unwrap()).0;
    for (width, height, is_dark) in [(1280, 900, false), (390, 844, true)] {
        browser.show_as(width, height, is_dark);
        browser.open(&dir.path().join("r.html"));
        browser.wait_until("return document.documentElement.dataset.ready === 'yes'");
        let rows = browser.run(
            "return [...document.querySelectorAll('table.summary tr[data-job] td[data-iops]')].map((cell) => +cell.dataset.iops)",
        );
        let shown: Vec<f64> = rows.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
        let expected: Vec<f64> =
            (0..2).map(|host| told["client_stats"][host]["read"]["iops"].as_f64().unwrap()).collect();
        assert_eq!(shown, expected);
        assert_eq!(browser.run("return document.querySelectorAll('table.summary tr.sum').length"), 1);
        // There are curves of all machines together, and of each.
        let titles = browser.run(
            "return [...document.querySelectorAll('details.job > summary')].map((one) => one.textContent)",
        );
        let titles: Vec<&str> =
            titles.as_array().unwrap().iter().map(|title| title.as_str().unwrap()).collect();
        assert!(titles.iter().any(|title| title.contains("All jobs together")), "{titles:?}");
        assert!(titles.iter().filter(|title| title.contains("a on ")).count() >= 2, "{titles:?}");
        browser.run("document.querySelectorAll('details.job').forEach((job) => (job.open = true))");
        // Each has IOPS, bandwidth, depth and latencies; all together have no latencies.
        browser.wait_until("return [...document.querySelectorAll('details.job')].every((job) => job.querySelectorAll('svg.chart').length >= 2)");
        let wide = browser.run("return document.documentElement.scrollWidth <= window.innerWidth");
        assert_eq!(wide, true, "the page is as wide as the window");
        assert_eq!(browser.console(), Vec::<String>::new());
    }
    browser.check_tables("fleet");
}

/// Two machines run endless jobs, shown on a live page. One of the machines is killed.
#[test]
fn several_machines_while_they_run_in_a_browser() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    let agents = ["one", "two"].map(|name| Agent::on_socket(dir.path(), name));
    job(dir.path(), &JOB.replace("1500ms", "10m"));
    let [one, two] = agents.each_ref().map(Agent::client);
    let words = ["--web", "--output-format=json,html", "--output=r.json", &one, &two, "job.fio"];
    let mut running = Program::own().start(dir.path(), words);
    running.wait_until("its addresses", |running| running.output().contains("only look: http://"));
    let said = running.output();
    browser.show_as(1280, 900, false);
    browser.go_to(said.lines().find_map(|line| line.split_once(" is at ")).unwrap().1);
    browser.wait_until("return document.documentElement.dataset.ready === 'yes'");
    assert_eq!(browser.run("return document.title"), "2 hosts");
    let count = |row: u32| {
        format!("+(document.querySelector(\"[data-job='{row}'][data-direction='read']\")?.dataset.ios ?? 0)")
    };
    let all = (0..3).map(count).collect::<Vec<_>>().join(", ");
    browser.wait_until(&format!("return [{all}].every((ios) => ios > 0)"));
    let counts = browser.run(&format!("return [{all}]"));
    let counts: Vec<u64> = counts.as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert_eq!(counts[0], counts[1] + counts[2], "all machines are the sum of each");
    let names = browser.run(
        "return [...document.querySelectorAll('#answer tr[data-job] th')].map((one) => one.textContent)",
    );
    let names: Vec<&str> = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(
        names[0] == "All clients" && names[1].ends_with("one/s") && names[2].ends_with("two/s"),
        "{names:?}"
    );
    browser.run("document.querySelectorAll('details.job').forEach((job) => (job.open = true))");
    browser.wait_until(
        "return [...document.querySelectorAll('details.job')].length === 3 && \
         [...document.querySelectorAll('details.job')].every((job) => job.querySelectorAll('svg.chart').length >= 3)",
    );
    send(agents[1].running.pid(), libc::SIGKILL);
    browser.wait_until("return document.querySelector(\"[data-job='2'] td\").textContent === 'lost'");
    browser
        .wait_until("return document.querySelector(\"[data-job='0'] td\").textContent === '1 runs, 1 lost'");
    let before = browser.run(&format!("return {}", count(1))).as_u64().unwrap();
    browser.wait_until(&format!("return {} > {before}", count(1)));
    browser.run("document.getElementById('stop').click()");
    browser.run("document.getElementById('sure').click()");
    browser.wait_until("return document.querySelector('h2')?.textContent === 'The answer' && document.documentElement.dataset.ready === 'yes'");
    assert_eq!(browser.console(), Vec::<String>::new());
    let ended = running.wait();
    assert_eq!(ended.code(), 128, "{ended}");
    let told = Json::parse(&fs::read_to_string(dir.path().join("r.json")).unwrap()).0;
    assert!(told["client_stats"][0]["read"]["total_ios"].as_u64() > Some(before), "{told}");
    let [one, _] = agents;
    drop(one.end());
}
