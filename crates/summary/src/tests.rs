use super::screen::Terminal;
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Two jobs: one mixed and sampled, one that failed.
fn report() -> Value {
    let latency = |p50: u64| {
        json!({"N": 1000, "max": 40 * p50, "mean": p50,
               "percentile": {"50.000000": p50, "99.000000": 4 * p50, "99.900000": 20 * p50},
               "bins": {p50.to_string(): 900, (4 * p50).to_string(): 95, (40 * p50).to_string(): 5}})
    };
    let direction = |ios: u64, p50: u64| {
        json!({"total_ios": ios, "io_bytes": ios * 4096, "bw_bytes": ios * 4096 / 10, "iops": ios as f64 / 10.0,
               "runtime": 10_000, "clat_ns": latency(p50)})
    };
    let over_time = |steady: bool| {
        let ios: Vec<u64> = (0..100).map(|at| if steady || at % 40 < 20 { 8230 } else { 4100 }).collect();
        let rates: Vec<u64> = ios.iter().map(|ios| ios * 10).collect();
        json!({"first_window": 0, "ios": ios, "iops_min": rates})
    };
    let ends: Vec<u64> = (1..=100).map(|window| window * 100_000).collect();
    json!({
        "fio version": "iolite-9", "time": "Sat Nov 28 05:00:00 2026",
        "global options": {"bs": "4k", "ioengine": "io_uring"},
        "jobs": [
            {"jobname": "mixed", "groupid": 0, "job options": {"name": "mixed", "rw": "randrw", "iodepth": "16", "http_s3_key": "hidden"},
             "read": direction(823_000, 82_400), "write": direction(352_000, 20_100), "usr_cpu": 12.4, "sys_cpu": 34.5,
             "job_runtime": 10_000, "sync": {"total_ios": 0}},
            {"jobname": "bad\u{1b}[2J|x", "groupid": 0, "job options": {"name": "bad", "rw": "write"}, "error": 28,
             "write": direction(100, 20_100), "usr_cpu": 0.0, "sys_cpu": 0.0, "job_runtime": 10_000}],
        "disk_util": [{"name": "vda", "util": 98.123}],
        "iolite": {"status": "failed", "warnings": ["a warning"], "host": {"kernel": "Linux 6"},
            "series": {"sample_us": 100_000, "begin_us": 0, "end_us": ends, "jobs": [
                {"job": 0, "depth": 16, "read": over_time(true), "write": over_time(false)}]}}
    })
}

#[test]
fn a_screen() {
    let expected = "\
\x20               IOPS   bandwidth       p50       p99     p99.9       max  errors
mixed randrw bs=4k ioengine=io_uring iodepth=16
  read         82.3k   321 MiB/s   82.4 µs    330 µs   1.65 ms    3.3 ms       0
    IOPS    ████████████████████████████  steady (CV 0%)
    latency █         ▁                ▁  82.4 µs to 3.3 ms
  write        35.2k   138 MiB/s   20.1 µs   80.4 µs    402 µs    804 µs
    IOPS    █████▆▄▄▄▄▄▇█████▄▄▄▄▄▆█████  two levels: 41k and 82.3k (CV 31.2%)
    latency █         ▁                ▁  20.1 µs to 804 µs
    CPU     12.4% user, 34.5% system, 3.99 µs per I/O
bad\\x1b[2J|x write bs=4k ioengine=io_uring
";
    let text = screen::of(&report(), Terminal::default()).unwrap();
    assert!(text.starts_with(expected), "{text}");
    let rest = &text[expected.len()..];
    for line in [
        "  write           10",
        "       1\n",
        "error 28 (No space left on device)",
        // The job that failed has no series, so that writes have no sum over time.
        "\nall jobs\n  read         82.3k   321 MiB/s   82.4 µs    330 µs    3.3 ms    3.3 ms\n\
         \x20   IOPS    ████████████████████████████  steady (CV 0%)\n\
         \x20 write        35.2k   138 MiB/s   20.1 µs   80.4 µs    804 µs    804 µs\n",
        "\ndisks busy vda 98%\n",
        "\nwarning: a warning\n",
    ] {
        assert!(rest.contains(line), "{line}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

/// Jobs that take turns are steady together.
#[test]
fn sums_over_time() {
    let mut both = report();
    let jobs = both["iolite"]["series"]["jobs"].as_array_mut().unwrap();
    jobs.push(json!({"job": 1, "write": {"first_window": 0,
        "ios": (0..100).map(|at| if at % 40 < 20 { 0 } else { 4130 }).collect::<Vec<_>>()}}));
    let text = screen::of(&both, Terminal::default()).unwrap();
    let (_, sums) = text.split_once("\nall jobs\n").unwrap();
    assert_eq!(sums.matches("████████████████████████████  steady (CV 0%)").count(), 2, "{text}");
}

#[test]
fn a_screen_in_ascii_and_in_colours() {
    let ascii = screen::of(&report(), Terminal { is_ascii: true, ..Terminal::default() }).unwrap();
    assert!(ascii.is_ascii() && ascii.contains("82.4 us"), "{ascii}");
    let colored = screen::of(&report(), Terminal { has_colors: true, ..Terminal::default() }).unwrap();
    assert!(colored.contains("\x1b[1mmixed\x1b[0m") && colored.contains("\x1b[31m1\x1b[0m"), "{colored}");
    let mut bare = colored;
    for style in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m"] {
        bare = bare.replace(style, "");
    }
    assert_eq!(bare, screen::of(&report(), Terminal::default()).unwrap(), "colours add nothing else");
}

#[test]
fn many_jobs_are_a_line_each_and_more_are_a_sum() {
    let with = |count: usize| {
        let mut many = report();
        let job = |number: usize| {
            let mut job = many["jobs"][0].clone();
            job["jobname"] = format!("mixed{number}").into();
            job
        };
        many["jobs"] = (0..count).map(job).collect();
        screen::of(&many, Terminal::default()).unwrap()
    };
    assert!(with(8).contains("CPU ") && !with(9).contains("CPU "));
    assert_eq!(with(64).matches(" randrw").count(), 64);
    let text = with(65);
    assert!(!text.contains(" randrw") && text.contains("all jobs\n") && text.contains("65 jobs;"), "{text}");
    let none = json!({"jobs": []});
    assert_eq!(screen::of(&none, Terminal::default()).unwrap(), "There was no I/O.\n");
    assert!(screen::of(&json!({"x": 1}), Terminal::default()).is_err());
}

#[test]
fn clones_are_one_block() {
    let mut many = report();
    let mut job = many["jobs"][0].clone();
    job["error"] = 5.into();
    many["jobs"] = vec![many["jobs"][0].clone(), job.clone(), job].into();
    let text = screen::of(&many, Terminal::default()).unwrap();
    for line in [
        "mixed (3 jobs) randrw bs=4k",
        "  read          247k   964 MiB/s",
        "       2\n",
        "37.2% user",
        "2 of 3 jobs: error 5 ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("all jobs"), "the sum of one block is that block: {text}");
}

#[test]
fn units_of_data_are_those_of_the_job() {
    let mut report = report();
    report["global options"]["kb_base"] = "1000".into();
    let text = screen::of(&report, Terminal::default()).unwrap();
    assert!(text.contains("  read         82.3k    337 MB/s ") && !text.contains("iB/s"), "{text}");
    report["global options"]["unit_base"] = "1".into();
    assert!(markdown::of(&report).unwrap().contains("| mixed | read | 82.3k | 2.7 Gb/s |"));
}

#[test]
fn texts_are_no_formulas() {
    for formula in ["=1+1", "+1+1", "-cmd|x", "@SUM(A1)", "=\"a\",1"] {
        let field = csv::field(formula);
        assert!(field.trim_start_matches('"').starts_with('\''), "{field}");
    }
    assert_eq!(["-4096", "+1.5", "a=b", "4k"].map(csv::field), ["-4096", "+1.5", "a=b", "4k"]);
}

#[test]
fn markdown_has_no_markup_of_others() {
    let text = markdown::of(&report()).unwrap();
    assert!(
        text.contains("| mixed | read | 82.3k | 321 MiB/s | 82.4 µs | 330 µs | 1.65 ms | 3.3 ms | 0 | ████"),
        "{text}"
    );
    assert!(text.contains("| bad\\\\x1b\\[2J\\|x | write |"), "{text}");
    assert!(
        text.contains("```ini\n[global]\nbs=4k\nioengine=io_uring\n[mixed]\nrw=randrw\niodepth=16\n"),
        "{text}"
    );
    assert!(
        text.contains("error 28 (No space left on device)") && text.contains("- kernel Linux 6"),
        "{text}"
    );
    assert!(!text.contains("hidden"), "{text}");
}

#[test]
fn a_flat_table() {
    let text = csv::of(&report()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[0].starts_with("job,host,group,direction,iops,bw_bytes,") && lines[0].contains(",p99.9_ns,"),
        "{text}"
    );
    assert!(lines[0].ends_with(",errors,bs,ioengine,rw,iodepth,http_s3_key"), "{text}");
    assert!(
        lines[1].starts_with("mixed,,0,read,82300,337100800,823000,3371008000,10000,82400,82400,"),
        "{text}"
    );
    assert!(lines[3].contains(",1,4k,io_uring,write,,") && !text.contains("hidden"), "{text}");
    assert_eq!(csv::field("a,\"b\"\n\u{1b}"), "\"a,\"\"b\"\"\n\\x1b\"");
}

proptest! {
    #![proptest_config(iolite_testing::properties(64))]

    /// Results come from many programs, and may be damaged.
    #[test]
    fn any_values_have_a_screen(name in ".{0,100}", numbers in prop::collection::vec(any::<f64>(), 8), bins in any::<[(u64, u64); 2]>()) {
        let mut report = report();
        report["jobs"][0]["jobname"] = name.into();
        for (key, number) in ["iops", "bw_bytes", "runtime", "total_ios"].iter().zip(&numbers) {
            report["jobs"][0]["read"][key] = json!(number);
        }
        for (key, number) in ["usr_cpu", "sys_cpu", "job_runtime"].iter().zip(&numbers[4..]) {
            report["jobs"][0][key] = json!(number);
        }
        for (latency, count) in bins {
            report["jobs"][0]["read"]["clat_ns"]["bins"][latency.to_string()] = count.into();
        }
        for is_ascii in [false, true] {
            let text = screen::of(&report, Terminal { is_ascii, ..Terminal::default() }).unwrap();
            prop_assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'));
        }
        markdown::of(&report).unwrap();
        csv::of(&report).unwrap();
    }
}
