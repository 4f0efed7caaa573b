//! Pages of large reports in a browser: a day of a hundred jobs, and of a thousand. The time to open them is printed
//! but not checked (docs/performance.md).

use crate::common::browser::Browser;
use crate::common::{Json, Program, scratch};
use iolite_testing::{Luck, or_skip};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The maximum number of windows in a report, over all jobs and directions.
const PARTS: usize = 20_000;
const DAY_US: u64 = 24 * 60 * 60 * 1_000_000;

/// The largest possible report of this many jobs that read and write for a day: the maximum number of windows, about 70
/// latency classes in each, and histograms of 400 bins.
fn large_report(dir: &Path, jobs: usize) -> Value {
    let line = "--name=job --filename=f --rw=randrw --bs=4k --size=1m --time_based --runtime=600ms --output-format=json+";
    let mut report = Json::parse(&Program::own().line(dir, line).ok().stdout).0;
    let job = report["jobs"][0].clone();
    let windows = PARTS / (2 * jobs);
    let mut luck = Luck::new();
    let (mut all, mut series) = (Vec::new(), Vec::new());
    for position in 0..jobs {
        let (mut one, mut lists) = (job.clone(), json!({"job": position}));
        one["jobname"] = format!("database {}", position + 1).into();
        for direction in ["read", "write"] {
            lists[direction] = over_time(windows, &mut luck);
            let bins: serde_json::Map<String, Value> =
                (0..400).map(|bin| ((80_000 + 512 * bin).to_string(), luck.below(1 << 20).into())).collect();
            one[direction]["clat_ns"]["bins"] = bins.into();
        }
        all.push(one);
        series.push(lists);
    }
    let ends: Vec<u64> = (1..=windows as u64).map(|window| window * DAY_US / windows as u64).collect();
    report["jobs"] = all.into();
    report["iolite"]["series"] = json!({"sample_us": 200_000, "begin_us": 0, "end_us": ends, "jobs": series});
    report
}

fn over_time(windows: usize, luck: &mut Luck) -> Value {
    let classes = |luck: &mut Luck| {
        let usual = |class: u64| 50_000.0 * (-(class as f64 - 25.0).powi(2) / 128.0).exp();
        let count = |class: u64, luck: &mut Luck| {
            (usual(class) * (0.95 + luck.below(100) as f64 / 1000.0)) as u64 + luck.below(3)
        };
        (0..70).flat_map(|class| [100 + class, count(class, luck)]).collect::<Vec<u64>>()
    };
    let mut lists = json!({"first_window": 0, "ramp_windows": 0});
    lists["clat_classes"] = (0..windows).map(|_| classes(luck)).collect();
    // The minimum, and the width of the range above it.
    for (key, least, more) in [
        ("ios", 40_000_000, 8_000_000),
        ("bytes", 160_000_000_000, 32_000_000_000),
        ("iops_min", 80_000, 5000),
        ("iops_max", 95_000, 5000),
        ("bw_min", 320_000_000, 20_000_000),
        ("bw_max", 380_000_000, 20_000_000),
        ("clat_sum_ns", 4_000_000_000_000, 1_000_000_000_000),
        ("p50_ns", 90_000, 20_000),
        ("p99_ns", 500_000, 200_000),
        ("p99.9_ns", 900_000, 400_000),
        ("max_ns", 9_000_000, 9_000_000),
    ] {
        lists[key] = (0..windows).map(|_| least + luck.below(more)).collect();
    }
    lists
}

/// Opens the page of a report, as often as `IOLITE_TEST_ROUNDS` says, and prints the times. The page stays open.
fn opened(browser: &Browser, dir: &Path, name: &str, report: &Value) -> u64 {
    fs::write(dir.join("large.json"), report.to_string()).unwrap();
    Program::own().line(dir, "report large.json -o large.html").ok();
    let page = dir.join("large.html");
    let size = page.metadata().unwrap().len();
    let median = |mut times: Vec<u64>| {
        times.sort_unstable();
        (times[0], times[times.len() / 2], times[times.len() - 1])
    };
    browser.note_when_ready();
    let rounds = std::env::var("IOLITE_TEST_ROUNDS").map_or(1, |text| text.parse().unwrap());
    let times: Vec<[u64; 2]> = (0..rounds)
        .map(|_| {
            browser.open(&page);
            browser.wait_until("return 'readyAfter' in window");
            let times = browser.run(
                "return [performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? readyAfter, readyAfter].map(Math.round)",
            );
            [0, 1].map(|which: usize| times[which].as_u64().unwrap())
        })
        .collect();
    for (which, what) in ["the answer", "the pictures as well"].iter().enumerate() {
        let (least, middle, most) = median(times.iter().map(|both| both[which]).collect());
        println!("{name}, {} KB: {what} after {middle} ms ({least} – {most})", size / 1000);
    }
    size
}

#[test]
fn pages_of_a_day_and_of_a_thousand_jobs_open() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    for jobs in [100, 1000] {
        let report = large_report(dir.path(), jobs);
        let size = opened(&browser, dir.path(), &format!("{jobs} jobs, a day"), &report);
        assert!(size < 5_000_000 || jobs > 100, "{size}");
        // The sum comes first, then each job has a row per direction. Only the sum has pictures.
        let rows = browser.run(
            "return [...document.querySelectorAll('table.summary tbody tr')].map((row) => row.firstElementChild.textContent)",
        );
        let rows = rows.as_array().unwrap();
        assert_eq!(
            (&rows[0], &rows[2], rows.len()),
            (&json!("all jobs"), &json!("database 1"), 2 + 2 * jobs)
        );
        let open = "return [...document.querySelectorAll('details.job')].filter((job) => job.open).length";
        assert_eq!(browser.run(open), 1);
        let sections = browser.run("return document.querySelectorAll('details.job').length");
        assert_eq!(sections, json!(jobs + 1));
        browser.check(&format!("large-{jobs}"));
        browser.run("document.querySelectorAll('details.job')[2].open = true");
        browser.wait_until(
            "return document.querySelectorAll('details.job')[2].querySelectorAll('.chart').length > 5",
        );
    }
}
