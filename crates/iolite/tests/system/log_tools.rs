//! Existing tools read our reports and logs; `iolite log2csv` is compared with them.

use crate::common::program::{Finished, Running};
use crate::common::{Program, scratch};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn ours() -> Program {
    Program::own()
}

/// Finds a program in the search path or in the Python environment that `scripts/test` creates.
fn find(name: &str) -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python-tools/bin");
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).chain([tools]).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// Runs a tool to its end in `dir`.
fn tool(path: &Path, dir: &Path, line: &str) -> Finished {
    // The tool draws without a display, and its cache is in a directory that is removed.
    let memory = scratch();
    let mut command = Command::new(path);
    command
        .args(line.split_whitespace())
        .current_dir(dir)
        .env("MPLBACKEND", "agg")
        .env("MPLCONFIGDIR", memory.path());
    Running::start(&mut command).wait()
}

/// Runs two workers with averaged logs, histogram logs, and a json+ report.
fn measure(dir: &Path) {
    let line = "--output-format=json+ --output=report.json --name=j --ioengine=null --rw=randrw --size=1g \
                --time_based --runtime=2 --thinktime=50 --numjobs=2 --lat_percentiles=1 --write_bw_log=x \
                --write_iops_log=x --write_lat_log=x --log_avg_msec=100 --write_hist_log=x --log_hist_msec=500";
    ours().line(dir, line).ok();
}

/// The columns of a table without quotes.
fn columns(table: &str) -> Vec<Vec<String>> {
    table.lines().map(|line| line.split(',').map(|column| column.trim().to_owned()).collect()).collect()
}

#[track_caller]
fn is_image(path: &Path) {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"<?xml"), "{}", path.display());
    assert!(bytes.len() > 2000, "{} shows something", path.display());
}

#[test]
fn fio_jsonplus_clat2csv_and_log2csv_make_the_same_tables() {
    let dir = scratch();
    measure(dir.path());
    let told = ours().line(dir.path(), "log2csv -o ours.csv report.json").ok().stdout;
    assert_eq!(told, "ours_job0.csv generated\nours_job1.csv generated\n");
    let Some(converter) = find("fio_jsonplus_clat2csv") else {
        iolite_testing::skip!("fio_jsonplus_clat2csv is not installed")
    };
    tool(&converter, dir.path(), "report.json theirs.csv").ok();
    for job in ["job0", "job1"] {
        let read =
            |name: &str| columns(&fs::read_to_string(dir.path().join(format!("{name}_{job}.csv"))).unwrap());
        let (ours, theirs) = (read("ours"), read("theirs"));
        assert!(ours.len() > 10);
        assert_eq!(ours.len(), theirs.len());
        // Numbers may be written differently: 1 and 1.0, 0.00005 and 5e-05.
        let value = |text: &String| text.parse::<f64>().map_err(|_| text.clone());
        for (mine, other) in ours.iter().zip(&theirs) {
            assert_eq!(
                mine.iter().map(value).collect::<Vec<_>>(),
                other.iter().map(value).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn log2csv_prints_the_bins_of_all_jobs() {
    let dir = scratch();
    measure(dir.path());
    let table = columns(&ours().line(dir.path(), "log2csv report.json").ok().stdout);
    assert_eq!(table[0], ["job", "direction", "latency", "nsec", "count", "cumulative", "percentile"]);
    for direction in ["read", "write"] {
        for latency in ["clat", "lat"] {
            let rows: Vec<_> = table.iter().filter(|row| row[1] == direction && row[2] == latency).collect();
            assert!(rows.len() > 2, "{direction} {latency}");
            assert_eq!(rows.last().unwrap()[6], "100");
        }
    }
    // A plain report has no bins, and the message says how to get them.
    ours().line(dir.path(), "--output-format=json --output=plain --name=j --ioengine=null --size=1m").ok();
    ours().line(dir.path(), "log2csv plain").refused().says("plain: it has no bins; --output-format=json+");
}

#[test]
fn log2csv_prints_percentiles_over_time() {
    let dir = scratch();
    measure(dir.path());
    let table = |line: &str| columns(&ours().line(dir.path(), line).ok().stdout);
    let one = table("log2csv x_clat_hist.1.log");
    assert_eq!(
        one[0],
        ["time_ms", "direction", "count", "min", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"]
    );
    let lines = fs::read_to_string(dir.path().join("x_clat_hist.1.log")).unwrap();
    assert_eq!(one.len() - 1, lines.lines().count(), "a row for each line");
    for (row, line) in one[1..].iter().zip(lines.lines()) {
        let numbers: Vec<u64> = line.split(", ").map(|text| text.parse().unwrap()).collect();
        let values: Vec<f64> = row[3..].iter().map(|text| text.parse().unwrap()).collect();
        assert!(values.is_sorted(), "{row:?}");
        assert_eq!(row[0], numbers[0].to_string());
    }
    let count =
        |table: &[Vec<String>]| table[1..].iter().map(|row| row[2].parse::<u64>().unwrap()).sum::<u64>();
    let both = table("log2csv --all --percentiles=50,100 --unit=us x_clat_hist.1.log x_clat_hist.2.log");
    assert_eq!(both[0], ["time_ms", "direction", "count", "min", "p50", "p100", "max"]);
    assert_eq!(count(&both), count(&one) + count(&table("log2csv x_clat_hist.2.log")));
    assert!(both[1..].iter().all(|row| row[1] == "all" && row[5] == row[6] && row[0].ends_with("000")));
}

#[test]
fn log2csv_reads_compressed_logs_and_any_coarseness() {
    let dir = scratch();
    for coarseness in [0, 4, 6] {
        let line = format!(
            "--output-format=json --name=j --ioengine=null --rw=read --size=4m --write_hist_log=c --log_hist_msec=100 \
             --log_hist_coarseness={coarseness} --log_store_compressed=1"
        );
        ours().line(dir.path(), &line).ok();
        let table = columns(&ours().line(dir.path(), "log2csv --all c_clat_hist.1.log.fz").ok().stdout);
        let count: u64 = table[1..].iter().map(|row| row[2].parse::<u64>().unwrap()).sum();
        assert_eq!(count, 1024);
    }
}

#[test]
fn log2csv_reports_errors_with_their_place() {
    let dir = scratch();
    fs::write(dir.path().join("lat.log"), "0, 17, 0, 4096, 0\n").unwrap();
    fs::write(dir.path().join("broken.json"), "{\n  \"jobs\" : [\n    oops\n  ]\n}\n").unwrap();
    fs::write(dir.path().join("empty.json"), "{}\n").unwrap();
    fs::write(dir.path().join("empty.log"), "").unwrap();
    for (line, reason) in [
        ("log2csv", "needs a json+ report or histogram logs"),
        ("log2csv nosuch", "nosuch: No such file or directory"),
        ("log2csv lat.log", "lat.log:1:5: 5 columns are not a histogram"),
        ("log2csv broken.json", "broken.json:3:5: expected value"),
        ("log2csv empty.json", "empty.json: it has no \"jobs\""),
        ("log2csv empty.log broken.json", "broken.json: a report is converted alone"),
        ("log2csv broken.json empty.log", "broken.json: a report is converted alone"),
        ("log2csv --percentiles=50,x lat.log", "--percentiles=50,x: \"x\" is not a number"),
        ("log2csv --unit=s lat.log", "--unit=s: not one of ns, us, ms"),
        ("log2csv -o out.csv lat.log", "--output is for reports"),
        ("log2csv --together=5 broken.json", "--together is for histogram logs"),
    ] {
        ours().line(dir.path(), line).refused().says(reason);
    }
}

#[test]
fn fio_histo_log_pctiles_reads_our_histograms() {
    // In Debian, the script is part of the documentation, which small systems leave out.
    const SCRIPT: &str = "/usr/share/doc/fio/fio-histo-log-pctiles.py.gz";
    let (Some(python), Some(gzip)) = (find("python3"), find("gzip")) else {
        iolite_testing::skip!("python3 or gzip is missing")
    };
    if !Path::new(SCRIPT).exists() {
        iolite_testing::skip!("{SCRIPT} is not installed");
    }
    let dir = scratch();
    let script = tool(&gzip, dir.path(), &format!("-dc {SCRIPT}")).ok().stdout;
    fs::write(dir.path().join("pctiles.py"), script).unwrap();
    for coarseness in [0, 3] {
        let line = format!(
            "--output-format=json --name=j --ioengine=null --rw=randrw --size=1g --time_based --runtime=3 \
             --thinktime=100 --numjobs=2 --write_hist_log=h --log_hist_msec=500 --log_hist_coarseness={coarseness}"
        );
        let json = crate::common::Json::parse(&ours().line(dir.path(), &line).ok().stdout);
        let done: u64 = json.jobs().iter().flat_map(|job| job.ios()).sum();
        let line = format!(
            "pctiles.py --bucket-bits {} --percentiles 50 99 -- h_clat_hist.1.log h_clat_hist.2.log",
            6 - coarseness
        );
        let told = tool(&python, dir.path(), &line).ok().stdout;
        // msec-since-start, samples, median, 99.0
        let rows: Vec<_> = columns(&told)
            .into_iter()
            .filter(|row| row.len() >= 4 && row[0].parse::<u64>().is_ok())
            .collect();
        assert!(rows.len() >= 2, "{told}");
        let samples: f64 = rows.iter().map(|row| row[1].parse::<f64>().unwrap()).sum();
        // The tool divides windows between its rows, and rounding loses up to one I/O in each.
        assert!((samples / done as f64 - 1.0).abs() < 0.02, "{samples} of {done}: {told}");
    }
}

#[test]
fn fio2gnuplot_and_fio_generate_plots_draw_our_logs() {
    let (Some(fio2gnuplot), Some(generate)) = (find("fio2gnuplot"), find("fio_generate_plots")) else {
        iolite_testing::skip!("fio's scripts are not installed")
    };
    if find("gnuplot").is_none() {
        iolite_testing::skip!("gnuplot is not installed");
    }
    let dir = scratch();
    measure(dir.path());
    tool(&fio2gnuplot, dir.path(), "-b -g").ok();
    for name in ["x_bw.1-2Draw.png", "x_bw.2-2Dtrend.png", "compare-result-2Draw.png", "result.average.png"] {
        is_image(&dir.path().join(name));
    }
    tool(&generate, dir.path(), "title").ok();
    for name in ["title-bw.svg", "title-iops.svg", "title-lat.svg", "title-clat.svg"] {
        is_image(&dir.path().join(name));
    }
}

#[test]
fn fio_plot_draws_our_reports_and_logs() {
    let Some(plot) = find("fio-plot") else {
        iolite_testing::skip!("fio-plot is not installed (pip install fio-plot, or run scripts/test)")
    };
    let dir = scratch();
    for depth in [1, 2] {
        let prefix = format!("randread-iodepth-{depth}-numjobs-1");
        let line = format!(
            "--output-format=json --output=randread-{depth}-1.json --name=j --numjobs=1 --bs=4k --ioengine=libaio --filename=f \
             --iodepth={depth} --rw=randread --size=4m --time_based --runtime=1 --write_bw_log={prefix} \
             --write_lat_log={prefix} --write_iops_log={prefix} --log_avg_msec=100"
        );
        ours().line(dir.path(), &line).ok();
    }
    for (name, graph) in [
        ("log", "-g -t bw iops lat -d 1 -n 1"),
        ("bars", "-l"),
        ("relief", "-L -t iops"),
        ("histogram", "-H -d 1 -n 1"),
    ] {
        tool(&plot, dir.path(), &format!("-i . -T title {graph} -r randread -o {name}.png")).ok();
        is_image(&dir.path().join(format!("{name}.png")));
    }
}
