//! `iolite compare` on stored results of both programs.

use crate::common::browser::Browser;
use crate::common::{Json, Program, program::Finished, scratch};
use iolite_testing::or_skip;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn ours() -> Program {
    Program::own()
}

/// The result of a job that reads and writes.
fn result(program: &Program, dir: &Path) -> Value {
    let line = "--name=mix --filename=f --rw=randrw --bs=4k --size=1m --output-format=json --output=made";
    program.line(dir, line).ok();
    Json::parse(&fs::read_to_string(dir.join("made")).unwrap()).0
}

/// Writes repeats of a result that vary by about a percent, with rates multiplied by `rate`.
fn repeats(dir: &Path, side: &str, like: &Value, rate: f64, runs: usize) {
    fs::create_dir_all(dir.join(side)).unwrap();
    for (run, off) in [0.0, 0.01, -0.012, 0.006, -0.004, 0.011].into_iter().take(runs).enumerate() {
        let mut report = like.clone();
        // The runs begin at different times, alternating between sides.
        let begin = 1_700_000_000_000 + run as u64 * 60_000 + side.bytes().map(u64::from).sum::<u64>();
        report["timestamp_ms"] = json!(begin + 10_000);
        let job = &mut report["jobs"][0];
        job["job_start"] = json!(begin);
        for direction in ["read", "write"] {
            let measured = &mut job[direction];
            measured["iops"] = json!(20_000.0 * rate * (1.0 + off));
            measured["runtime"] = json!(10_000);
            for (percentile, usual) in [("50.000000", 50_000.0), ("99.000000", 400_000.0)] {
                measured["clat_ns"]["percentile"][percentile] = json!(usual / rate * (1.0 - off));
            }
        }
        fs::write(dir.join(side).join(format!("{run}.json")), report.to_string()).unwrap();
    }
}

fn answer(finished: &Finished) -> Value {
    Json::parse(&finished.stdout).0
}

fn row<'a>(answer: &'a Value, direction: &str, figure: &str) -> &'a Value {
    let blocks = answer["comparisons"].as_array().unwrap();
    let block = blocks.iter().find(|block| block["direction"] == direction).unwrap();
    block["figures"].as_array().unwrap().iter().find(|row| row["figure"] == figure).unwrap()
}

/// The results are ours, those of each fio, and one of each.
#[test]
fn known_differences_of_real_results_are_found() {
    let dir = scratch();
    let mut programs = vec![ours()];
    programs.extend(Program::peers());
    let own = result(&ours(), dir.path());
    for program in programs {
        let like = result(&program, dir.path());
        for old in ["base", "new", "same"] {
            let _ = fs::remove_dir_all(dir.path().join(old));
        }
        repeats(dir.path(), "base", &own, 1.0, 5);
        repeats(dir.path(), "new", &like, 0.8, 5);
        repeats(dir.path(), "same", &like, 1.0, 6);
        // The storage is the same; fio names the device differently than Iolite.
        let run = ours().line(dir.path(), "compare --output-format=json base new").ok();
        let found = answer(&run);
        assert_eq!(found["verdict_figures"], 6, "{run}");
        for direction in ["read", "write"] {
            for (figure, change) in [("iops", -20.0), ("p50", 25.0), ("p99", 25.0)] {
                let row = row(&found, direction, figure);
                assert_eq!(row["verdict"], "worse", "{run}");
                assert!((row["change_percent"].as_f64().unwrap() - change).abs() < 0.01, "{row}");
                let interval = [0, 1].map(|end| row["interval_percent"][end].as_f64().unwrap());
                assert!(interval[0] < change && change < interval[1], "{row}");
                assert_eq!((&row["base"]["runs"], &row["new"]["runs"]), (&json!(5), &json!(5)));
            }
            assert_eq!(row(&found, direction, "bw")["verdict"], "exploratory");
        }
        assert!(row(&found, "all", "cpu")["base"]["mean"].as_f64().is_none_or(|cpu| cpu > 0.0));
        // The same with swapped sides, as a table; then with equal sides.
        let run =
            ours().line(dir.path(), "compare new base").ok().says("BASE  new: 5 runs").says("  better\n");
        assert!(!run.stdout.contains("  worse\n"), "{run}");
        let run =
            ours().line(dir.path(), "compare base same").ok().says("NEW   same: 6 runs").says("cannot tell");
        assert!(!run.stdout.contains("  worse\n") && !run.stdout.contains("  better\n"), "{run}");
        // A side may be a list or several arguments.
        let list = |side: &str| [0, 1, 2, 3, 4].map(|run| format!("{side}/{run}.json"));
        for line in [
            format!("compare -F csv {} {}", list("base").join(","), list("new").join(",")),
            format!("compare -F csv {} vs {}", list("base").join(" "), list("new").join(" ")),
        ] {
            let table = ours().line(dir.path(), &line).ok().stdout;
            assert!(table.starts_with("base,new,job,direction,figure,unit,base_runs,"), "{table}");
            assert!(table.contains(",mix,read,iops,1/s,5,"), "{table}");
            assert_eq!(table.matches(",worse,").count(), 6, "{table}");
        }
    }
}

#[test]
fn single_results_have_figures_and_no_verdict() {
    let dir = scratch();
    let like = result(&ours(), dir.path());
    repeats(dir.path(), "base", &like, 1.0, 1);
    repeats(dir.path(), "new", &like, 0.5, 1);
    let run = ours().line(dir.path(), "compare -F json base new --fail-if iops<-5%");
    assert_eq!(run.code(), 3, "{run}");
    let found = answer(&run);
    let row = row(&found, "read", "iops");
    assert_eq!((&row["verdict"], &row["interval_percent"]), (&json!("cannot tell"), &Value::Null));
    assert!((row["change_percent"].as_f64().unwrap() + 50.0).abs() < 0.01, "{row}");
    assert!(row["why"].as_str().unwrap().contains("1 and 1 runs; a verdict needs 5 a side"), "{row}");
    ours().line(dir.path(), "compare base new").ok().says("needs at least 5 runs a side");
}

#[test]
fn limits_set_the_exit_status() {
    let dir = scratch();
    let like = result(&ours(), dir.path());
    repeats(dir.path(), "base", &like, 1.0, 5);
    repeats(dir.path(), "new", &like, 0.9, 5);
    for (limits, status) in [
        (&["read.iops < -5%"][..], 1),
        (&["read.iops < -20%"], 0),
        (&["read.iops < -10%"], 3),
        (&["mix.write.iops < -10%", "p99 > +50%"], 3),
        (&["read.iops < -10%", "p99 > +5%"], 1),
    ] {
        let mut line = vec!["compare", "base", "new"];
        line.extend(limits.iter().flat_map(|limit| ["--fail-if", limit]));
        for format in ["table", "json", "csv", "html"] {
            let run = ours().run(dir.path(), line.iter().copied().chain(["-F", format]));
            assert_eq!(run.code(), status, "{limits:?}: {run}");
        }
        let run = ours().run(dir.path(), line.iter().copied().chain(["--fail-inconclusive"]));
        assert_eq!(run.code(), i32::from(status != 0), "{limits:?}: {run}");
    }
    for (line, why) in [
        ("--fail-if=read.iops", "--fail-if=read.iops: at character 10: there is no < or >"),
        ("--fail-if=iosp<-5%", "--fail-if=iosp<-5%: at character 1: \"iosp\" does not end with a figure"),
        ("--fail-if=iops<-5", "at character 6: \"-5\" is not a change in percent"),
        ("--fail-if=trim.iops<-5%", "trim.iops<-5%: there is no such figure; there are mix.read.iops"),
        ("--allow=size", "--allow: \"size\" is not one of rw, bs"),
        ("--output-format=xml", "--output-format=xml: not one of table, json, csv, html"),
    ] {
        ours().line(dir.path(), &format!("compare base new {line}")).refused().says(why);
    }
}

/// With `--output`, the comparison goes to a file, and never to one of the results. The exit status is the same.
#[test]
fn the_answer_goes_to_a_file() {
    let dir = scratch();
    let like = result(&ours(), dir.path());
    repeats(dir.path(), "base", &like, 1.0, 5);
    repeats(dir.path(), "new", &like, 0.5, 5);
    for format in ["table", "json", "csv", "html"] {
        let line = format!("compare base new -F {format} --fail-if=iops<-5%");
        let printed = ours().line(dir.path(), &line);
        let written = ours().line(dir.path(), &format!("{line} --output=answer"));
        assert_eq!((printed.code(), written.code(), written.stdout.as_str()), (1, 1, ""), "{written}");
        assert_eq!(fs::read_to_string(dir.path().join("answer")).unwrap(), printed.stdout);
    }
    let before = fs::read_to_string(dir.path().join("new/3.json")).unwrap();
    ours()
        .line(dir.path(), "compare base new --output=base/../new/3.json")
        .refused()
        .says("that is one of the results; give another name");
    assert_eq!(fs::read_to_string(dir.path().join("new/3.json")).unwrap(), before);
    ours()
        .line(dir.path(), "compare base new -o none/answer")
        .refused()
        .says("--output=none/answer: No such file");
}

#[test]
fn different_work_is_reported_and_can_be_allowed() {
    let dir = scratch();
    let mut like = result(&ours(), dir.path());
    repeats(dir.path(), "base", &like, 1.0, 5);
    like["jobs"][0]["job options"]["bs"] = json!("16k");
    repeats(dir.path(), "new", &like, 0.5, 5);
    let run =
        ours().line(dir.path(), "compare base new").ok().says("not comparable: different bs: 4k and 16k");
    assert!(!run.stdout.contains("  worse\n"), "{run}");
    ours().line(dir.path(), "compare base new --allow=iodepth,bs").ok().says("  worse\n");
    assert_eq!(ours().line(dir.path(), "compare base new --fail-if=iops<-1%").code(), 3);
}

#[test]
fn repeated_or_invalid_results_are_refused() {
    let dir = scratch();
    let like = result(&ours(), dir.path());
    repeats(dir.path(), "base", &like, 1.0, 2);
    repeats(dir.path(), "twice", &like, 1.0, 2);
    fs::copy(dir.path().join("twice/0.json"), dir.path().join("twice/9.json")).unwrap();
    for empty in ["empty", "bad", "broken"] {
        fs::create_dir(dir.path().join(empty)).unwrap();
    }
    fs::write(dir.path().join("bad/x.json"), "{ \"jobs\" : 3 }\n").unwrap();
    fs::write(dir.path().join("broken/x.json"), "{\n \"jobs\" : [ 1e999 ] }\n").unwrap();
    fs::write(dir.path().join("bytes"), [0_u8; 64]).unwrap();
    fs::write(dir.path().join("deep"), "{\"a\":".repeat(100_000)).unwrap();
    for (line, why) in [
        ("compare", "needs two or more sides"),
        ("compare base", "needs two or more sides"),
        ("compare base vs", "nothing before or behind a \"vs\""),
        ("compare base nightly", "nightly: No such file or directory (compare takes results in JSON"),
        ("compare base nightly", "and runs of the store: run:12 or label:NAME"),
        ("compare base base/0.json,nosuch", "nosuch: No such file or directory"),
        ("compare base base/0.json,", "an empty name in this list"),
        ("compare base empty", "empty: there are no results (*.json) in this directory"),
        ("compare base bad", "bad/x.json: it has no \"jobs\""),
        ("compare base broken", "broken/x.json:2:"),
        ("compare base bytes", "bytes: it is not a text"),
        ("compare base deep", "deep:1:"),
        ("compare base twice", "twice/0.json and twice/9.json are results of the same run"),
        ("compare base twice -x", "unknown option -x"),
    ] {
        ours().line(dir.path(), line).refused().says(why);
    }
}

#[test]
fn names_are_shown_as_text() {
    let dir = scratch();
    let mut like = result(&ours(), dir.path());
    like["jobs"][0]["jobname"] = json!("a\u{1b}[31m,\"b\"\nc");
    repeats(dir.path(), "base", &like, 1.0, 5);
    repeats(dir.path(), "new", &like, 0.5, 5);
    let table = ours().line(dir.path(), "compare base new").ok().stdout;
    assert!(table.contains("a\\x1b[31m,\"b\" c: read") && !table.contains('\u{1b}'), "{table}");
    let csv = ours().line(dir.path(), "compare -F csv base new").ok().stdout;
    assert!(csv.contains("\"a\\x1b[31m,\"\"b\"\"\nc\",read,iops") && !csv.contains('\u{1b}'), "{csv}");
    let page = ours().line(dir.path(), "compare -F html base new").ok().stdout;
    assert!(page.contains("a\\x1b[31m,&quot;b&quot; c: read") && !page.contains('\u{1b}'), "{page}");
    let found = answer(&ours().line(dir.path(), "compare -F json base new").ok());
    assert_eq!(found["comparisons"][0]["job"], "a\u{1b}[31m,\"b\"\nc");
}

/// The curves of both sides share a picture, and the figures are those of the JSON output.
#[test]
fn a_page_of_a_comparison_in_a_browser() {
    let browser = or_skip!(Browser::start());
    let dir = scratch();
    let hostile = "<img src=x onerror=document.title='taken'>";
    let words = ["--filename=f", "--rw=randrw", "--bs=4k", "--size=1m", "--ioengine=libaio", "--iodepth=4"];
    let more = ["--time_based", "--runtime=1200ms", "--output-format=json+", "--output=made"];
    ours().run(dir.path(), [&format!("--name={hostile}")[..]].into_iter().chain(words).chain(more)).ok();
    let like = Json::parse(&fs::read_to_string(dir.path().join("made")).unwrap()).0;
    repeats(dir.path(), "base", &like, 1.0, 5);
    repeats(dir.path(), "new", &like, 0.5, 5);
    let line = "compare base new --fail-if=read.iops<-5%";
    let page = ours().line(dir.path(), &format!("{line} -F html"));
    assert_eq!(page.code(), 1, "the limit holds for pages as well");
    fs::write(dir.path().join("p.html"), &page.stdout).unwrap();
    let found = answer(&ours().line(dir.path(), &format!("{line} -F json")));
    for (width, height, is_dark) in
        [(1280, 900, false), (1280, 900, true), (390, 844, false), (390, 844, true)]
    {
        browser.show_as(width, height, is_dark);
        browser.open(&dir.path().join("p.html"));
        browser.wait_until("return document.documentElement.dataset.ready === 'yes'");
        browser.run("document.querySelectorAll('details.job').forEach((job) => (job.open = true))");
        browser.wait_until("return document.querySelectorAll('svg.chart').length === 8");
        assert_eq!(browser.run("return document.title"), "Comparison");
        // Each picture has a line and a band for each side, with its name.
        let drawn = browser.run(
            "return [...document.querySelectorAll('figure')].map((one) => [one.querySelectorAll('path.line[d^=M]').length - one.querySelectorAll('.legend path').length, \
               one.querySelectorAll('path.band[d^=M]').length, one.querySelector('.legend').textContent])",
        );
        assert_eq!(drawn, json!(vec![json!([2, 2, "basenew"]); 8]));
        let text = browser.run("return document.body.innerText");
        let text = text.as_str().unwrap();
        let change = row(&found, "read", "iops")["change_percent"].as_f64().unwrap();
        for words in
            [&format!("{change:+.1}%"), "worse", "read.iops<-5%: broken", &format!("{hostile}: read")]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        let told = browser.run(
            "const chart = document.querySelector('svg.chart'); \
             chart.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true })); \
             return chart.closest('figure').querySelector('output').textContent",
        );
        assert!(
            told.as_str().unwrap().contains("base ") && told.as_str().unwrap().contains("new "),
            "{told}"
        );
        browser.check(&format!("compare-{width}-{}", if is_dark { "dark" } else { "light" }));
    }
    browser.check_tables("compare");
}
