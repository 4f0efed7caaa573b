use super::*;
use std::fs;
use std::path::Path;

/// A report of two jobs whose workers are numbered from 1.
fn report() -> Value {
    let job = |name: &str| {
        json!({
            "jobname": name, "job_start": 1_700_000_000_000_u64, "job options": {"write_bw_log": "dir/x", "write_lat_log": name},
            "read": {"total_ios": 5, "runtime": 10_000}, "write": {"total_ios": 0},
        })
    };
    json!({"global options": {"rw": "randread"}, "jobs": [job("a"), job("b")]})
}

fn log(directory: &Path, name: &str, text: &str) -> LogFile {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    LogFile { path, kind: reading::LogName::of(name).unwrap().kind, job: Some(0), skip: 0 }
}

fn drawn_of(files: &[LogFile]) -> Vec<Value> {
    let drawings = Drawings::of_all(&report(), files).unwrap();
    assert_eq!(drawings.notes, [""; 0]);
    drawings.drawn
}

#[test]
fn windows_are_drawn_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = drawn_of(&[
        log(dir.path(), "x_bw.1.log", "500, 100, 0, 0, 0\n1000, 300, 0, 0, 0\n"),
        log(dir.path(), "x_clat.1.log", "500, 12345, 20000, 0, 0, 0\n1000, 5, 6, 0, 0, 0\n"),
    ]);
    assert_eq!(drawn[0]["ms"], json!([250, 750]));
    assert_eq!(drawn[0]["value"], json!([102_400, 307_200]), "bytes, of KiB");
    assert_eq!((&drawn[0]["kind"], &drawn[0]["direction"]), (&json!("bw"), &json!("read")));
    assert!(drawn[0].get("low").is_none(), "each is one value");
    assert_eq!((&drawn[1]["value"], &drawn[1]["high"]), (&json!([12_350, 5]), &json!([20_000, 6])));
}

/// What a schedule asks for may be asked of a direction that does nothing.
#[test]
fn what_was_asked_is_drawn_in_the_unit_of_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = drawn_of(&[
        log(dir.path(), "x_asked_bw.1.log", "500, 100, 1, 0, 0\n1000, 0, 1, 0, 0\n"),
        log(dir.path(), "x_asked_iops.1.log", "500, 100, 0, 0, 0\n1000, 300, 0, 0, 0\n"),
    ]);
    let of = |kind: &str| drawn.iter().find(|one| one["kind"] == kind).unwrap();
    assert_eq!((&of("asked_bw")["ms"], &of("asked_bw")["value"]), (&json!([250, 750]), &json!([102_400, 0])));
    assert_eq!(of("asked_iops")["value"], json!([100, 300]));
}

#[test]
fn single_ios_are_all_drawn_or_counted() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = drawn_of(&[log(dir.path(), "a_lat.1.log", "1, 700, 0, 4096, 0\n2, 900, 0, 4096, 0\n")]);
    assert_eq!((&drawn[0]["ms"], &drawn[0]["value"]), (&json!([1, 2]), &json!([700, 900])));
    assert!(drawn[0].get("clat_classes").is_none(), "dots say it all");
    // 10 I/Os per millisecond for ten seconds; one of them is slow.
    let lines = |value: fn(u64) -> u64| -> String {
        (0..100_000_u64).map(|n| format!("{}, {}, 0, 4096, 0\n", n / 10, value(n))).collect()
    };
    let latencies = lines(|n| if n == 77_777 { 9_000_000 } else { 50_000 + n % 100 });
    let drawn = drawn_of(&[
        log(dir.path(), "a_clat.1.log", &latencies),
        log(dir.path(), "x_iops.1.log", &lines(|_| 1)),
        log(dir.path(), "x_bw.1.log", &lines(|_| 77)),
    ]);
    let of = |kind: &str| drawn.iter().find(|one| one["kind"] == kind).unwrap();
    let (bandwidth, iops, clat) = (of("bw"), of("iops"), of("clat"));
    let points = clat["ms"].as_array().unwrap().len();
    assert!((50..=MOST_OF_A_PICTURE).contains(&points) && clat["entries"] == 100_000, "{points}");
    let high = clat["high"].as_array().unwrap().iter().filter_map(Value::as_u64).max();
    assert_eq!(high, Some(9_000_000), "extremes are kept");
    let classes = clat["clat_classes"].as_array().unwrap();
    let all: u64 = classes
        .iter()
        .flat_map(|column| column.as_array().unwrap().iter().skip(1).step_by(2))
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(all, 100_000);
    assert_eq!(clat["edges_ms"].as_array().unwrap().len(), classes.len() + 1);
    assert_eq!((&iops["value"][3], &bandwidth["value"][3]), (&json!(10_000), &json!(40_960_000)));
}

#[test]
fn workers_of_a_job_are_one_picture() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (1..=10).map(|n| format!("{}, 100, 0, 0, 0\n", n * 500)).collect();
    let drawn = drawn_of(&[log(dir.path(), "x_bw.1.log", &text), log(dir.path(), "x_bw.2.log", &text)]);
    assert_eq!(drawn.len(), 1);
    assert_eq!((&drawn[0]["files"], &drawn[0]["value"][4]), (&json!(2), &json!(204_800)));
    let column = |time: u64| format!("{time}, 0, 4096, 0, 6, 2{}\n", ", 0".repeat(26));
    let histograms: String = (1..=10).map(|n| column(n * 1000 + n)).collect();
    let drawn = drawn_of(&[
        log(dir.path(), "x_clat_hist.1.log", &histograms),
        log(dir.path(), "x_clat_hist.2.log", &histograms),
    ]);
    assert_eq!(drawn[0]["clat_classes"].as_array().unwrap().len(), 10);
    // Counts of 64 buckets are spread over eight classes: here over two groups, from the ninth class on.
    let first = drawn[0]["clat_classes"][0].as_array().unwrap();
    let all: u64 = first.iter().skip(1).step_by(2).filter_map(Value::as_u64).sum();
    assert_eq!((&first[0], &first[1], all), (&json!(8), &json!(2), 16));
    assert!(first.iter().step_by(2).all(|class| (8..24).contains(&class.as_u64().unwrap())), "{first:?}");
    assert_eq!((&drawn[0]["p50_ns"][0], &drawn[0]["max_ns"][9]), (&json!(96), &json!(192)));
}

#[test]
fn times_of_a_clock_begin_with_the_job() {
    let dir = tempfile::tempdir().unwrap();
    let text = "1700000000500, 100, 0, 0, 0\n1700000001000, 100, 0, 0, 0\n";
    let drawn = drawn_of(&[log(dir.path(), "x_bw.1.log", text)]);
    assert_eq!(drawn[0]["ms"], json!([250, 750]));
    // The start of the job is unknown.
    let drawn =
        drawn_of(&[log(dir.path(), "x_bw.1.log", "900000000500, 7, 0, 0, 0\n900000001000, 7, 0, 0, 0\n")]);
    assert_eq!(drawn[0]["ms"], json!([0, 250]));
}

#[test]
fn bad_logs_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let told = |name: &str, text: &str| {
        let file = log(dir.path(), name, text);
        let all = Drawings::of(&report(), std::slice::from_ref(&file));
        let strict = Drawings::of_all(&report(), &[file]);
        let prefix = format!("{}/", dir.path().display());
        let notes: Vec<String> = all.notes.iter().map(|note| note.replace(&prefix, "")).collect();
        (notes.join("\n"), strict.map(|_| ()).map_err(|why| why.replace(&prefix, "")), all.drawn.len())
    };
    let (note, strict, drawn) = told("x_bw.1.log", "500, 1, 0, 0, 0\n5x, 1, 0, 0, 0\n");
    assert!(note.starts_with("x_bw.1.log:2:1: \"5x\" is not a number; if it is a log of this run"), "{note}");
    assert_eq!((strict, drawn), (Err(note), 0));
    let (note, strict, drawn) = told("x_bw.1.log", "500, 1, 0, 0, 0\n1000, 1");
    assert!(note.starts_with("x_bw.1.log: line 2 is cut off"), "{note}");
    assert_eq!((strict, drawn), (Ok(()), 1));
    let (note, strict, _) = told("x_clat_hist.1.log", "500, 1, 0, 0, 0\n");
    assert!(note.contains("1:5: 5 columns are not a histogram") && strict.is_err(), "{note}");
    let (note, _, _) = told("x_bw.1.log", "500, 1, 1, 0, 0\n");
    assert!(
        note.contains("it has writes, and a has none, so it is probably the log of another run"),
        "{note}"
    );
    let (note, _, _) = told("x_bw.1.log", "500000, 1, 0, 0, 0\n");
    assert!(note.contains("it lasts 500 s, and a ran for 10 s"), "{note}");
    let missing =
        LogFile { path: dir.path().join("y_bw.1.log"), kind: LogKind::Bandwidth, job: None, skip: 0 };
    let why = Drawings::of_all(&report(), &[missing]).unwrap_err();
    assert!(why.ends_with("y_bw.1.log: No such file or directory"), "{why}");
    assert_eq!(told("x_bw.1.log", ""), (String::new(), Ok(()), 0), "an empty log is none of a failure");
}

#[test]
fn log_lines_from_before_the_run_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let before = "500, 7, 0, 0, 0\n";
    let file = log(dir.path(), "x_bw.log", &format!("{before}500, 9, 0, 0, 0\n"));
    let drawn = drawn_of(&[LogFile { skip: before.len() as u64, ..file }]);
    assert_eq!(drawn[0]["value"], json!([9216]));
}

fn placed(report: &Value, name: &str) -> Result<Option<usize>, String> {
    let named = reading::LogName::of(name).unwrap();
    places(report, vec![(name.into(), named)]).map(|found| found[0].job)
}

#[test]
fn logs_belong_to_jobs() {
    let report = report();
    assert_eq!(placed(&report, "x_bw.1.log"), Ok(Some(0)));
    assert_eq!(placed(&report, "x_bw.2.log"), Ok(Some(1)));
    assert_eq!(placed(&report, "x_bw.log"), Ok(None), "both have written it");
    assert_eq!(placed(&report, "b_clat.7.log"), Ok(Some(1)), "nobody else has that prefix");
    let stranger = placed(&report, "y_bw.1.log").unwrap_err();
    assert!(
        stranger.contains("this is not a log of that result: its jobs have write_bw_log=x; give"),
        "{stranger}"
    );
    assert!(placed(&report, "x_iops.1.log").unwrap_err().contains("none of its jobs has write_iops_log"));
    assert_eq!(prefixes(&report), ["a", "b", "x"]);
    let mut grouped = report.clone();
    grouped["global options"] = json!({"group_reporting": "1", "numjobs": "4"});
    assert_eq!(placed(&grouped, "x_bw.4.log"), Ok(Some(0)));
    assert_eq!(placed(&grouped, "x_bw.5.log"), Ok(Some(1)));
    assert_eq!(placed(&grouped, "y_bw.5.log"), Ok(None), "it may be a job whose options are not told");
    let hosts = json!({"client_stats": [
        {"jobname": "a", "hostname": "one", "job options": {"write_bw_log": "x"}},
        {"jobname": "a", "hostname": "two", "job options": {"write_bw_log": "x"}},
    ]});
    assert_eq!(placed(&hosts, "x_bw.1.log.two"), Ok(Some(1)));
    assert_eq!(placed(&hosts, "x_bw.1.log"), Ok(Some(0)));
    let silent = json!({"jobs": [{"jobname": "a"}]});
    assert_eq!(placed(&silent, "x_bw.1.log"), Ok(Some(0)), "it does not say what it wrote");
}

/// A thousand workers with all logs, each of them long.
#[test]
fn a_page_of_many_logs_is_small() {
    let dir = tempfile::tempdir().unwrap();
    let mut seed = 1_u64;
    let mut random = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % most
    };
    let text: String =
        (1..=1200).map(|n| format!("{}, {}, {}, 0, 0\n", n * 500, random(10_000_000), n % 2)).collect();
    let base = log(dir.path(), "x_clat.1.log", &text);
    let files: Vec<LogFile> = (0..100).map(|job| LogFile { job: Some(job), ..base.clone() }).collect();
    let job = json!({"jobname": "a"});
    let mut report = json!({"jobs": vec![job; 100]});
    let drawings = Drawings::of_all(&report, &files).unwrap();
    assert_eq!(drawings.drawn.len(), 200);
    drawings.add_to(&mut report);
    let page = crate::of_value(&report).unwrap();
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
    assert!(Room::for_pictures(100_000).points == LEAST_OF_A_PICTURE);
}

#[test]
fn numbers_have_four_digits() {
    let told = [0.0, 1.0, 12.345_6, 12_345.6, 999_999.0, 0.012_345].map(rounded);
    assert_eq!(json!(told), json!([0, 1, 12.35, 12_350, 1_000_000, 0.01235]));
    assert_eq!(rounded(f64::NAN), Value::Null);
}
