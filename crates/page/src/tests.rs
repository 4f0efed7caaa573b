use super::*;
use serde_json::json;

/// A report of one job that reads at this rate, sampled for this long.
fn report(name: &str, ios: &[u64]) -> Value {
    let ends: Vec<u64> = (1..=ios.len() as u64).map(|window| window * 100_000).collect();
    let rates: Vec<u64> = ios.iter().map(|ios| ios * 10).collect();
    json!({
        "fio version": "iolite-0.1.0",
        "iolite version": "iolite-0.1.0",
        "time": "Sun Nov 22 23:00:00 2026",
        "global options": {"ioengine": "psync"},
        "jobs": [{
            "jobname": name,
            "groupid": 0,
            "error": 0,
            "job options": {"rw": "randread", "description": "</script><b>"},
            "read": {
                "io_bytes": 409_600, "bw_bytes": 224_395_264_u64, "iops": 54_740.25, "runtime": 1000, "total_ios": 100,
                "clat_ns": {"N": 100, "percentile": {"50.000000": 82_432, "99.000000": 1_200_000},
                            "bins": {"82432": 99, "4000000": 1}},
            },
        }],
        "iolite": {
            "host": {"kernel": "Linux 6.1", "memory_bytes": "8589934592"},
            "targets": [{"files": "a&b", "device": "vda"}],
            "series": {"sample_us": 100_000, "begin_us": 0, "end_us": ends, "jobs": [
                {"job": 0, "read": {"first_window": 0, "ramp_windows": 0, "ios": ios, "iops_min": rates}},
            ]},
        },
    })
}

fn page(report: &Value) -> String {
    of_value(report).unwrap()
}

#[test]
fn the_answer_is_there_without_scripts() {
    let page = page(&report("randread", &[5000; 30]));
    for part in [
        "<title>randread</title>",
        "data-iops=\"54740.25\">54.7k<",
        "data-bandwidth=\"224395264\">214 MiB/s<",
        "data-p=\"50\" data-ns=\"82432\">82.4 µs<",
        "data-p=\"99\" data-ns=\"1200000\">1.2 ms<",
        // From the bins.
        "data-p=\"99.9\" data-ns=\"4000000\">4 ms<",
        ">steady (CV 0%)<",
        "rates changed little",
        "<dt>memory</dt><dd>8 GiB</dd>",
        "<dt>files</dt><dd>a&amp;b</dd>",
        "[global]\nioengine=psync\n[randread]\nrw=randread\n",
    ] {
        assert!(page.contains(part), "no {part}");
    }
}

#[test]
fn what_a_test_found_is_said_first() {
    let mut report = report("randread", &[5000; 30]);
    report["iolite"]["test"] = json!({"targets": [{
        "name": "/mnt/<a>", "what": "directory on ext4",
        "findings": [{"kind": "cached", "words": "A cache <answered>.", "evidence": "nothing was read"}],
        "meaning": ["Reads are fast."],
    }]});
    let page = page(&report);
    for part in [
        "<title>Test of /mnt/&lt;a&gt;</title>",
        "<strong>A cache &lt;answered&gt;.</strong> Evidence: nothing was read.",
        "<li>Reads are fast.</li>",
    ] {
        assert!(page.contains(part), "no {part}");
    }
    assert!(!page.contains("rates changed little"), "the test has its own words");
    assert!(page.find("What this means") < page.find("The answer"));
}

#[test]
fn the_words_of_a_standard_test_keep_their_tables() {
    let mut report = report("further-0", &[5000; 30]);
    report["iolite"]["ai"] =
        json!({"test": "kv", "answer": "d<1>: blocks\n\ntenant  p50\n0         1\n\nA note."});
    let page = page(&report);
    for part in [
        ": d&lt;1&gt;</title>",
        "<pre class=\"table\" tabindex=\"0\">tenant  p50\n0         1</pre>",
        "<pre>A note.</pre>",
    ] {
        assert!(page.contains(part), "no {part}");
    }
}

#[test]
fn two_levels_are_reported() {
    let ios: Vec<u64> = (0..60).map(|n| if n / 10 % 2 == 0 { 5000 } else { 10_000 }).collect();
    let page = page(&report("jumps", &ios));
    assert!(page.contains("One number does not describe this run"));
    assert!(page.contains("two levels: 50k and 100k"));
}

/// A verified job alternates between writing and reading back: while it reads back, it writes nothing, and that is not
/// a stall.
#[test]
fn gaps_are_left_out() {
    let mut report = report("gaps", &[5000; 90]);
    let read = &mut report["iolite"]["series"]["jobs"][0]["read"];
    for window in (20..30).chain(50..60) {
        read["ios"][window] = json!(null);
        read["iops_min"][window] = json!(null);
    }
    let gaps = page(&report);
    assert!(gaps.contains(">steady (CV 0%)<") && gaps.contains("rates changed little"));
    let read = &mut report["iolite"]["series"]["jobs"][0]["read"];
    for window in (20..30).chain(50..60) {
        (read["ios"][window], read["iops_min"][window]) = (json!(0), json!(0));
    }
    assert!(page(&report).contains("2 stalls"), "zeros are stalls");
}

#[test]
fn without_a_deviation_nothing_is_steady() {
    let mut report = report("a", &[5000; 30]);
    report.as_object_mut().unwrap().remove("iolite");
    let read = &mut report["jobs"][0]["read"];
    (read["iops_samples"], read["iops_mean"]) = (json!(20), json!(54_740.0));
    assert!(!page(&report).contains("steady (CV"));
    report["jobs"][0]["read"]["iops_stddev"] = json!(100.0);
    assert!(page(&report).contains("steady (CV"));
}

#[test]
fn a_job_may_be_called_like_a_sum() {
    let mut report = report("All clients", &[5000; 30]);
    let other = json!({"jobname": "b", "read": {"total_ios": 1, "iops": 5.0}});
    report["jobs"].as_array_mut().unwrap().push(other);
    let page = page(&report);
    let row = |job: usize| {
        page.split_once(&format!("<tr data-job=\"{job}\"")).unwrap().1.split("</tr>").next().unwrap()
    };
    assert!(row(0).contains("All clients") && row(0).contains("steady"));
    assert!(row(1).contains(">b<") && !row(1).contains("steady"));
}

#[test]
fn statements_name_the_data_they_are_about() {
    let mut report = report("a", &[5000; 30]);
    let short = json!({"jobname": "b", "read": {"total_ios": 1, "iops": 5.0, "lat_ns": {"percentile": {"50.000000": 1500}}}});
    report["jobs"].as_array_mut().unwrap().push(short);
    report["iolite"]["warnings"] = json!(["<b>=3", 7]);
    let page = page(&report);
    assert!(page.contains("That is said of 1 of 2 rates"));
    assert!(page.contains("data-ns=\"1500\">1.5 µs*<") && page.contains("with *, total ones"));
    assert!(page.contains(">82.4 µs<"), "that is of completion");
    assert!(page.contains("Warnings of the run</strong><ul><li>&lt;b&gt;=3</li></ul>"));
}

#[test]
fn many_facts_of_a_device_are_closed() {
    let mut report = report("a", &[5000; 30]);
    let target = report["iolite"]["targets"][0].as_object_mut().unwrap();
    target.insert("health_written_bytes".into(), json!("1048576"));
    let few = page(&report);
    assert!(few.contains("<dt>health written</dt><dd>1 MiB</dd>") && !few.contains("more facts"), "{few}");
    for number in 0..20 {
        let target = report["iolite"]["targets"][0].as_object_mut().unwrap();
        target.insert(format!("formats_{number}"), json!(format!("data_bytes={number}")));
    }
    let many = page(&report);
    let (before, after) = many.split_once("<summary>21 more facts</summary>").expect("they are counted");
    assert!(before.contains("<dt>device</dt><dd>vda</dd>"), "what explains a result stays open");
    assert!(after.contains("<dt>formats 19</dt><dd>data_bytes=19</dd>"), "{after}");
}

/// A file of a few megabytes must not make a page of hundreds.
#[test]
fn values_have_a_limit() {
    let mut report = report("a", &[5000; 30]);
    report["jobs"][0]["job options"]["description"] = json!("x".repeat(1 << 20));
    let job = report["jobs"][0].clone();
    report["jobs"] = json!(vec![job; 50]);
    report["iolite"]["host"]["name"] = json!("y".repeat(1 << 20));
    report["iolite"]["targets"] = json!(vec![json!({"files": "z"}); 5000]);
    let size = page(&report).len();
    assert!(size < 1_500_000, "{size}");
}

#[test]
fn secrets_of_stored_results_have_placeholders() {
    let mut report = report("a", &[5000; 30]);
    report["global options"]["http_s3_key"] = json!("s3cret");
    report["jobs"][0]["job options"]["http_pass"] = json!("s3cret");
    let page = page(&report);
    assert!(page.contains("http_s3_key=") && page.contains("http_pass=") && !page.contains("s3cret"));
}

#[test]
fn names_are_never_markup() {
    for name in [
        "<img src=x onerror=alert(1)>",
        "</title><script>alert(1)</script>",
        "\u{202e}\u{1b}[31m\"'",
        "&nbsp;",
    ] {
        let page = page(&report(name, &[5000; 30]));
        assert!(!page.contains(name), "{name}");
        // The data is base64, so the description of the job cannot end a script.
        assert_eq!(page.matches("<script").count(), 2, "{name}");
        assert_eq!(page.matches("</script>").count(), 2, "{name}");
        assert!(!page.contains("<b>") && !page.contains("<img"), "{name}");
    }
    let long = "<a>".repeat(1 << 19);
    assert!(page(&report(&long, &[5000; 30])).len() < 200_000);
}

/// The policy names the scripts by their content, so no other one runs, and nothing is loaded.
#[test]
fn the_policy_allows_nothing_else() {
    let page = page(&report("a", &[5000; 30]));
    let (_, rest) = page.split_once("Content-Security-Policy\" content=\"").unwrap();
    let policy = rest.split('"').next().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    let script = page.rsplit_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
    assert!(policy.contains(&packed::fingerprint(script)));
    let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert!(policy.contains(&packed::fingerprint(style)));
    for address in page.match_indices("http").map(|(at, _)| &page[at..(at + 30).min(page.len())]) {
        let is_name = address.starts_with("http://www.w3.org/2000/svg") || address.starts_with("http-equiv");
        // Base64 may hold anything.
        assert!(is_name || !address.contains("://"), "{address}");
    }
}

#[test]
fn reports_are_found_among_other_things() {
    let text = |name: &str| serde_json::to_string_pretty(&report(name, &[5000; 30])).unwrap();
    let two = format!("note: cold\n{}\n{}\na: (groupid=0)\n", text("first"), text("second"));
    assert!(of_text(&two).unwrap().contains("<title>second</title>"));
    let broken = of_text("note\n{\"jobs\": [}\n").unwrap_err();
    assert_eq!(broken.to_string(), "2:11: expected value");
    for (text, why) in [("", "no report in JSON"), ("hello\n", "no report in JSON"), ("{}\n", "no \"jobs\"")]
    {
        let error = of_text(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

/// A report with odd values still gives a page or an error message.
#[test]
fn odd_reports_have_a_page_as_well() {
    let odd = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!("x"),
        json!([]),
        json!({}),
        json!([[], {}, 7, u64::MAX]),
    ];
    for value in &odd {
        for path in [
            "/jobs",
            "/jobs/0",
            "/jobs/0/read",
            "/jobs/0/read/clat_ns",
            "/jobs/0/read/clat_ns/bins",
            "/jobs/0/error",
            "/jobs/0/job options",
            "/iolite",
            "/iolite/targets",
            "/iolite/series",
            "/iolite/series/end_us",
            "/iolite/series/jobs",
            "/iolite/series/jobs/0/read",
            "/iolite/series/jobs/0/read/ios",
            "/iolite/series/jobs/0/read/first_window",
            "/iolite/series/sample_us",
            "/time",
        ] {
            let mut report = report("odd", &[5000; 30]);
            *report.pointer_mut(path).unwrap() = value.clone();
            drop(of_value(&report));
        }
        drop(of_value(value));
    }
    let mut overflowing = report("odd", &[5000; 30]);
    overflowing["jobs"][0]["read"]["clat_ns"]["bins"] = json!({"1": u64::MAX, "2": u64::MAX});
    drop(of_value(&overflowing));
    let fleet = json!({"client_stats": [{"jobname": "a", "read": {"total_ios": 1, "iops": 5.0}}, {"jobname": "All clients"}]});
    let page = of_value(&fleet).unwrap();
    assert!(page.contains("<title>a</title>") && page.matches("<tr data-job").count() == 1);
}

/// The sum of all machines comes first, then that of each machine with several jobs, then the jobs, with their machine.
#[test]
fn a_report_of_several_machines_has_their_sums() {
    let job = |name: &str, host: &str, latency: &str| {
        json!({"jobname": name, "hostname": host, "port": 1, "read": {"total_ios": 100, "io_bytes": 1000, "iops": 100.0, "runtime": 1000,
               "clat_ns": {"percentile": {"50.000000": 7}, "bins": {latency: 100}}}})
    };
    let stats = json!([job("x", "10.0.0.1", "1000"), job("y", "10.0.0.1", "9000"), job("x", "10.0.0.2", "1000"), {
        "jobname": "All clients", "hostname": "All clients", "port": 0,
        "read": {"total_ios": 300, "iops": 300.0, "clat_ns": {"percentile": {"50.000000": 5000}}}
    }]);
    let hosts = json!([{"hostname": "10.0.0.1", "port": 1, "name": "one"}, {"hostname": "10.0.0.2", "port": 1, "name": "two"}]);
    let rows = |report: Value| -> Vec<(String, Option<String>)> {
        let page = page(&report);
        let between =
            |text: &str, from: &str, to: &str| Some(text.split_once(from)?.1.split_once(to)?.0.to_owned());
        let body = between(&page, "<tbody>", "</tbody>").unwrap();
        let row = |row: &str| {
            (between(row, "scope=\"row\">", "<").unwrap(), between(row, "data-p=\"50\" data-ns=\"", "\""))
        };
        body.lines().filter(|line| line.starts_with("<tr")).map(row).collect()
    };
    let row = |name: &str, median: &str| (name.to_owned(), Some(median.to_owned()));
    let jobs = [row("x on one", "7"), row("y on one", "7"), row("x on two", "7")];
    let expected = |all: &str, each: &str| {
        [vec![row("All clients", all), row("all jobs on one", each)], jobs.to_vec()].concat()
    };
    assert_eq!(rows(json!({"client_stats": stats, "hosts": hosts})), expected("5000", "1000"));
    // As stored: side by side, with their machine, and without the sum.
    let mut together = stats.as_array().unwrap()[..3].to_vec();
    for (job, (name, host)) in
        together.iter_mut().zip([("x on one", "one"), ("y on one", "one"), ("x on two", "two")])
    {
        (job["jobname"], job["hostname"]) = (json!(name), json!(host));
    }
    assert_eq!(rows(json!({"jobs": together})), expected("1000", "1000"));
}

/// A hundred jobs that read and write for a day have 20,000 windows (of one job in one direction), each with some sixty
/// classes of latency, and hundreds of bins for each: 5 MB. This is a tenth of that.
#[test]
fn a_day_of_a_hundred_jobs_is_small() {
    const WINDOWS: usize = 100;
    let mut luck = iolite_testing::Luck::new();
    let mut numbers = |count: usize, most: u64| (0..count).map(|_| luck.below(most)).collect::<Vec<u64>>();
    let mut direction = || {
        let classes: Vec<Value> = (0..WINDOWS)
            .map(|_| {
                let noise = numbers(70, 1000);
                let count = |class: usize| {
                    let usual = 50_000.0 * (-(class as f64 - 25.0).powi(2) / 128.0).exp();
                    (usual * (0.95 + noise[class] as f64 / 10_000.0)) as u64 + u64::from(noise[class] < 300)
                };
                (0..70)
                    .filter(|&class| count(class) > 0)
                    .flat_map(|class| [100 + class as u64, count(class)])
                    .collect()
            })
            .collect();
        let mut lists = json!({"first_window": 0, "ramp_windows": 0, "clat_classes": classes});
        for key in [
            "ios",
            "bytes",
            "iops_min",
            "iops_max",
            "bw_min",
            "bw_max",
            "clat_sum_ns",
            "p50_ns",
            "p99_ns",
            "p99.9_ns",
            "max_ns",
        ] {
            lists[key] = json!(numbers(WINDOWS, 1 << 20));
        }
        let bins: serde_json::Map<String, Value> =
            (0..400).map(|bin| ((80_000 + 512 * bin).to_string(), json!(numbers(1, 1 << 20)[0]))).collect();
        (lists, bins)
    };
    let mut report = report("a", &[1; WINDOWS]);
    let job = report["jobs"][0].clone();
    let (mut jobs, mut series) = (Vec::new(), Vec::new());
    for number in 0..10 {
        let (mut job, mut lists) = (job.clone(), json!({"job": number}));
        for name in ["read", "write"] {
            let (over_time, bins) = direction();
            lists[name] = over_time;
            job[name] = job["read"].clone();
            job[name]["clat_ns"]["bins"] = bins.into();
        }
        jobs.push(job);
        series.push(lists);
    }
    let fixed = page(&report).len();
    report["jobs"] = json!(jobs);
    report["iolite"]["series"]["jobs"] = json!(series);
    let size = page(&report).len() - fixed;
    assert!(size < 450_000, "{size}");
}

/// Each of several machines has a row; an unknown value is a dash.
#[test]
fn machines_are_a_table() {
    let mut report = report("a on one", &[5; 40]);
    report["iolite"]["host"] = json!({"name": "one, two", "one: kernel": "Linux 6", "one: memory_bytes": "1073741824",
        "two: kernel": "Linux 5"});
    let page = page(&report);
    assert!(page.contains("<th class=\"name\" scope=\"col\">memory</th>"), "{page}");
    let row = "<th class=\"name\" scope=\"row\">two</th><td class=\"name\">Linux 5</td><td class=\"name\">–</td></tr>";
    assert!(page.contains(row) && page.contains(">1 GiB</td>"), "{page}");
    assert!(!page.contains("<h3>Machine</h3>"));
}

/// A run that did not reach its planned end has a notice with the reason.
#[test]
fn an_unplanned_end_is_noticed() {
    let mut report = report("a", &[5; 40]);
    let told = |report: &Value| page(report).contains("id=\"end\"");
    assert!(!told(&report));
    report["iolite"]["status"] = "ended".into();
    assert!(!told(&report));
    report["iolite"]["status"] = "failed".into();
    assert!(told(&report));
    report["jobs"][0]["error"] = 5.into();
    assert!(!told(&report), "the notice about errors is enough");
    report["iolite"]["status"] = "interrupted".into();
    report["iolite"]["status_reason"] = "ended by <SIGINT>".into();
    let page = page(&report);
    assert!(page.contains("The run was interrupted: ended by &lt;SIGINT&gt;"), "{page}");
    assert!(page.contains("1 of 1 jobs had errors"));
}
