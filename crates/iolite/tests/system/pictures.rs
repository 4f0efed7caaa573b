//! The pictures that a page's scripts draw of stored reports in a browser. The reports are artificial, so that the
//! expected pictures are known.

use crate::common::browser::Browser;
use crate::common::{Program, scratch};
use iolite_testing::or_skip;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const WINDOWS: usize = 200;

/// A list with a number for each window: `usual`, except for the windows in `others`.
fn list(usual: u64, others: &[(usize, Value)]) -> Value {
    let mut list = vec![json!(usual); WINDOWS];
    others.iter().for_each(|(window, value)| list[*window] = value.clone());
    json!(list)
}

/// A job that reads for 200 s in windows of one second: a ramp of 20 s with a stall in it, a stall after it, a gap, and
/// windows at both ends in which it ran only partly.
fn reads() -> Value {
    let mut gap: Vec<(usize, Value)> = (100..110).map(|window| (window, json!(null))).collect();
    gap.extend([(10, json!(0)), (50, json!(0)), (0, json!(100)), (199, json!(100))]);
    let rate = list(5000, &gap);
    let latency: Vec<(usize, Value)> = gap.iter().take(10).cloned().collect();
    let mut classes = vec![json!([100, 4900, 120, 100]); WINDOWS];
    (100..110).for_each(|window| classes[window] = json!([]));
    json!({
        "first_window": 0, "ramp_windows": 20, "ios": rate, "bytes": list(5000 * 4096, &latency), "iops_min": rate, "iops_max": rate,
        "bw_min": list(5000 * 4096, &latency), "bw_max": list(5000 * 4096, &latency), "clat_sum_ns": list(1_000_000_000, &latency),
        "p50_ns": list(98_304, &latency), "p99_ns": list(98_304, &latency), "p99.9_ns": list(600_000, &latency),
        "max_ns": list(600_000, &[&latency[..], &[(150, json!(17_000_000_000_u64))]].concat()), "clat_classes": classes,
    })
}

fn job(name: &str) -> Value {
    json!({
        "jobname": name, "groupid": 0, "error": 0, "job options": {"rw": "randread"}, "usr_cpu": 3.5, "sys_cpu": 7.5, "ctx": 3,
        "iodepth_level": {"1": 20.0, "2": 80.0}, "latency_us": {"100": 98.0},
        "read": {
            "io_bytes": 4_096_000_000_u64, "bw_bytes": 20_480_000, "iops": 5000.0, "runtime": 200_000, "total_ios": 1_000_000, "bw_agg": 77.5,
            "clat_ns": {"N": 1_000_000, "min": 90_000, "max": 17_000_000_000_u64, "mean": 100_000.0, "stddev": 5.0,
                        "percentile": {"50.000000": 98_304, "99.000000": 98_304, "99.900000": 600_000},
                        "bins": {"98304": 980_000, "600000": 20_000}},
        },
        "sync": {"total_ios": 5, "lat_ns": {"N": 5, "min": 1, "max": 9, "mean": 5.0, "stddev": 1.0, "percentile": {"50.000000": 5500}}},
        "steadystate": {"ss": "iops:5.000000%", "duration": 30, "attained": 1, "criterion": "0.5%"},
    })
}

fn report() -> Value {
    let ends: Vec<u64> = (1..=WINDOWS as u64).map(|window| window * 1_000_000).collect();
    // More than its depth of 8 seems to be in flight: what completed in this window was in flight in the one before.
    let mut first = reads();
    first["clat_sum_ns"][160] = json!(10_000_000_000_u64);
    json!({
        "fio version": "iolite-0.1.0", "jobs": [job("first"), job("second")],
        "cpu_idleness": {"system": 12.25},
        "disk_util": [{"name": "vda", "read_ios": 5, "aggr_util": 33.5}],
        "iolite": {"series": {"sample_us": 1_000_000, "begin_us": 0, "end_us": ends,
                              "jobs": [{"job": 0, "depth": 8, "read": first}, {"job": 1, "read": reads()}]}},
    })
}

/// Creates the page of a report, opens it, and opens all its parts.
fn show(browser: &Browser, directory: &Path, report: &Value) {
    fs::write(directory.join("r.json"), report.to_string()).unwrap();
    Program::own().line(directory, "report r.json -o r.html").ok();
    browser.open(&directory.join("r.html"));
    browser.wait_until("return document.documentElement.dataset.ready !== undefined");
}

/// A script in which `figures` has the figures of a job (0 = all jobs together) by name.
fn with_figures(job: usize, script: &str) -> String {
    format!(
        "const part = document.querySelectorAll('details.job')[{job}]; \
         const figures = Object.fromEntries([...part.querySelectorAll('figure')].map((one) => [one.querySelector('figcaption').firstChild.textContent, one])); \
         const press = (one, key) => {{ one.querySelector('svg.chart').dispatchEvent(new KeyboardEvent('keydown', {{ key, bubbles: true }})); \
           return one.querySelector('output').textContent; }}; \
         const count = (one, shapes) => one.querySelectorAll(shapes).length; {script}"
    )
}

#[test]
fn pictures_show_the_same_as_the_text() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    browser.show_as(1280, 900, false);
    show(&browser, dir.path(), &report());
    browser.run("document.querySelectorAll('details.job').forEach((job) => (job.open = true))");
    browser.wait_until("return [...document.querySelectorAll('details.job figure')].every((figure) => figure.querySelector('svg.chart'))");
    let asked = |job: usize, script: &str| browser.run(&with_figures(job, script));
    // The stall within the ramp counts neither in the text nor in the pictures.
    assert!(fs::read_to_string(dir.path().join("r.html")).unwrap().contains("1 stall (CV"));
    for job in [0, 1, 2] {
        assert_eq!(
            asked(
                job,
                "return ['ramp', 'stall'].map((one) => count(figures['IOPS over time'], 'rect.' + one))"
            ),
            json!([1, 1]),
            "{job}"
        );
    }
    assert_eq!(
        asked(
            1,
            "return count(figures['Latency heat map: read'], 'rect.ramp') + count(figures['Depth over time'], 'rect.stall')"
        ),
        2
    );
    assert_eq!(asked(1, "return count(figures['IOPS over time'], 'rect.steadystate')"), 1);
    for (window, depth) in [(158, "1"), (159, "3"), (160, "8"), (161, "1")] {
        let told = asked(
            1,
            &format!(
                "const one = figures['Depth over time']; press(one, 'Home'); let told; \
                 for (let n = 0; n < {window}; n += 1) told = press(one, 'ArrowRight'); return told"
            ),
        );
        assert!(told.as_str().unwrap().ends_with(&format!(": read {depth}")), "{window}: {told}");
    }
    // A window in which the job ran only partly has no rate, and a gap divides the line.
    assert_eq!(asked(1, "return press(figures['IOPS over time'], 'Home')"), "0:01: read –");
    assert_eq!(
        asked(
            1,
            "press(figures['IOPS over time'], 'Home'); return press(figures['IOPS over time'], 'ArrowRight')"
        ),
        "0:02: read 5k"
    );
    assert_eq!(
        asked(
            1,
            "return figures['IOPS over time'].querySelector('path.line').getAttribute('d').match(/M/g).length"
        ),
        2
    );
    // The axis has marks at whole minutes or fractions of them, in the unit of the label.
    let labels = asked(
        1,
        "return [...figures['IOPS over time'].querySelectorAll('text')].map((one) => one.textContent)",
    );
    let labels: Vec<&str> = labels.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(
        labels.contains(&"time (min:s)") && labels.contains(&"1:00") && labels.contains(&"2:00"),
        "{labels:?}"
    );
    // The highest latency class contains all larger latencies.
    let told = asked(
        1,
        "const one = figures['Latency over time: read']; press(one, 'Home'); for (let n = 0; n < 149; n += 1) press(one, 'ArrowRight'); \
                         return press(one, 'ArrowRight')",
    );
    assert!(told.as_str().unwrap().contains("max 17 s or more"), "{told}");
    // In every picture, the keyboard selects values, also for screen readers.
    let silent = asked(
        1,
        "return Object.entries(figures).filter(([, one]) => { const words = press(one, 'Home'); const chart = one.querySelector('svg.chart'); \
           return !words || chart.getAttribute('role') !== 'slider' || chart.getAttribute('aria-valuetext') !== words; }).map(([name]) => name)",
    );
    assert_eq!(silent, json!([]));
    assert_eq!(asked(1, "return Object.keys(figures).length"), 10);
    let heat = asked(
        1,
        "press(figures['Latency heat map: read'], 'Home'); return press(figures['Latency heat map: read'], 'ArrowRight')",
    );
    assert!(heat.as_str().unwrap().contains("most (98%) from "), "{heat}");
    // Figures without a table are listed as well.
    let text = browser.run("return document.body.textContent");
    for figure in
        ["steadystate.ssiops:5.000000%", "read.bw_agg77.5", "cpu_idleness.system12.25", "busiest part"]
    {
        assert!(text.as_str().unwrap().contains(figure), "no {figure}");
    }
    let percentiles = browser.run(
        "return [...document.querySelectorAll('details.job')[1].querySelectorAll('table')] \
           .find((one) => one.caption?.textContent === 'Percentiles').textContent",
    );
    assert!(percentiles.as_str().unwrap().contains("5.5 µs"), "{percentiles}");
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// Closed parts of a page are drawn for printing.
#[test]
fn closed_parts_are_printed() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    show(&browser, dir.path(), &report());
    let undrawn = "return [...document.querySelectorAll('details.job figure')].filter((one) => !one.querySelector('svg.chart')).length";
    let printed = browser.run(&format!("dispatchEvent(new Event('beforeprint')); {undrawn}"));
    assert_eq!(printed, 0);
    assert!(browser.run("return document.querySelectorAll('svg.chart').length").as_u64().unwrap() > 20);
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// An invalid job does not affect the others, and invalid values in a report cause no script errors.
#[test]
fn odd_reports_have_pictures_as_far_as_they_go() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    let odd = [json!(null), json!(1e300), json!("x"), json!([]), json!({}), json!([[], {}, 7, "y", 1e9])];
    // Each odd value is put in each place of a separate job, behind a valid one.
    let places = [
        "",
        "/read",
        "/read/clat_ns",
        "/read/clat_ns/bins",
        "/read/clat_ns/percentile",
        "/read/total_ios",
        "/iodepth_level",
        "/usr_cpu",
        "/latency_us",
        "/job options",
        "/sync",
        "/steadystate",
        "/jobname",
    ];
    let mut all = report();
    let jobs = all["jobs"].as_array_mut().unwrap();
    for value in &odd {
        for place in places {
            let mut one = job("odd");
            *one.pointer_mut(place).unwrap() = value.clone();
            jobs.push(one);
        }
    }
    let good = jobs.len();
    jobs.push(job("good"));
    show(&browser, dir.path(), &all);
    browser.run("document.querySelectorAll('details.job').forEach((job) => (job.open = true))");
    let drawn = format!(
        "return document.querySelectorAll('details.job')[{}].querySelectorAll('svg.chart').length",
        good + 1
    );
    browser.wait_until(&format!("{drawn} === 4"));
    assert_eq!(browser.console(), Vec::<String>::new());
    // Odd values are also put in the places of the series, and in those that exist once per report.
    for place in [
        "/iolite",
        "/iolite/series",
        "/iolite/series/jobs",
        "/iolite/series/jobs/0",
        "/iolite/series/jobs/0/read",
        "/iolite/series/end_us",
        "/iolite/series/jobs/0/read/ios",
        "/iolite/series/jobs/0/read/iops_min",
        "/iolite/series/jobs/0/read/clat_classes",
        "/iolite/series/jobs/0/read/clat_classes/5",
        "/iolite/series/jobs/0/read/first_window",
        "/disk_util",
    ] {
        // (Only some of the values, because creating and opening a page takes long.)
        let chosen = if place.ends_with("first_window") { [1, 5] } else { [5, 2] };
        let is_list = place.ends_with("/jobs") || place.ends_with("us") || place.ends_with("window");
        for value in chosen.into_iter().take(1 + usize::from(is_list)).map(|at: usize| &odd[at]) {
            let mut one = report();
            *one.pointer_mut(place).unwrap() = value.clone();
            show(&browser, dir.path(), &one);
            browser.run("document.querySelectorAll('details.job').forEach((job) => (job.open = true))");
            // The jobs still have their figures and distributions.
            browser.wait_until("return [...document.querySelectorAll('details.job')].slice(-2).every((job) => \
                                job.querySelectorAll('svg.chart').length >= 4 && job.querySelectorAll('table').length > 3)");
            assert_eq!(browser.console(), Vec::<String>::new(), "{value} in {place}");
        }
    }
}
