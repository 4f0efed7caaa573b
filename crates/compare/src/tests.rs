use super::*;
use iolite_testing::{Luck, seed_or};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The results of a run in one direction.
#[derive(Clone, Copy)]
struct Did {
    iops: f64,
    p50: f64,
    p99: f64,
}

const USUAL: Did = Did { iops: 50_000.0, p50: 100_000.0, p99: 900_000.0 };

/// Each report belongs to a different run.
static BEGAN: AtomicU64 = AtomicU64::new(1);

fn direction(did: Did) -> Value {
    json!({
        "total_ios": 500_000, "io_bytes": 2_048_000_000_u64, "runtime": 10_000, "iops": did.iops, "bw_bytes": did.iops * 4096.0,
        "clat_ns": {"mean": did.p50 * 1.1, "N": 500_000, "percentile": {"50.000000": did.p50, "99.000000": did.p99}},
    })
}

fn job(name: &str, options: &Value, directions: &[(&str, Did)]) -> Value {
    let mut job = json!({
        "jobname": name, "error": 0, "job options": options, "job_start": BEGAN.fetch_add(1, Relaxed),
        "job_runtime": 10_000, "usr_cpu": 10.0, "sys_cpu": 30.0,
    });
    for (name, did) in directions {
        job[name] = direction(*did);
    }
    job
}

fn report(jobs: &[Value]) -> Value {
    json!({"fio version": "iolite-0.1.0", "jobs": jobs, "disk_util": [{"name": "vda"}]})
}

fn side(reports: impl IntoIterator<Item = Value>) -> Side {
    let runs = reports.into_iter().map(|report| Run::of("r.json", &report).unwrap());
    Side { name: "side".to_owned(), runs: runs.collect() }
}

fn readers(all: &[Did]) -> Side {
    side(all.iter().map(|did| report(&[job("j", &json!({"bs": "4k"}), &[("read", *did)])])))
}

fn compared(sides: &[Side]) -> Comparison {
    compare(sides, &[], &[]).unwrap()
}

#[test]
fn stages_say_whose_fault_a_change_is() {
    let run = |device: f64, software: f64, number: usize| {
        let mut report = report(&[job("j", &json!({"bs": "4k"}), &[("read", USUAL)])]);
        // No two runs are equal.
        let scale = 1.0 + number as f64 / 1000.0;
        report["iolite"]["stages"] = json!([{"job": 0, "read": {"ios": 1000,
            "submit_ns": {"mean": software / 2.0 * scale}, "queue_ns": {"mean": 500.0}, "reap_ns": {"mean": software / 2.0},
            "device_ns": {"mean": device * scale}}}]);
        report
    };
    let base = side((0..5).map(|number| run(50_000.0, 4_000.0, number)));
    let new = side((0..5).map(|number| run(56_000.0, 4_000.0, number)));
    let comparison = compared(&[base, new]);
    assert_eq!(verdict(&comparison, Figure::Device), Verdict::Worse);
    assert_eq!(verdict(&comparison, Figure::Software), Verdict::CannotTell);
    assert_eq!(verdict(&comparison, Figure::Queue), Verdict::Exploratory);
}

fn verdict(comparison: &Comparison, figure: Figure) -> Verdict {
    let rows = comparison.blocks.iter().flat_map(|block| &block.rows);
    rows.into_iter().find(|row| row.figure == figure).unwrap().verdict
}

fn faster(by: f64, spread: [f64; 5]) -> Vec<Did> {
    let one = |off: f64| {
        let rate = by * (1.0 + off);
        Did { iops: USUAL.iops * rate, p50: USUAL.p50 / rate, p99: USUAL.p99 / rate }
    };
    spread.map(one).to_vec()
}

const SPREAD: [f64; 5] = [-0.01, 0.012, 0.0, 0.008, -0.011];

#[test]
fn more_iops_are_better_and_more_latency_is_worse() {
    let (slow, fast) = (readers(&faster(1.0, SPREAD)), readers(&faster(1.2, SPREAD)));
    let found = compared(&[slow.clone(), fast.clone()]);
    assert_eq!(found.tested, 3);
    for figure in [Figure::Iops, Figure::P50, Figure::P99] {
        assert_eq!(verdict(&found, figure), Verdict::Better);
        assert_eq!(verdict(&compared(&[fast.clone(), slow.clone()]), figure), Verdict::Worse);
    }
    assert_eq!(verdict(&found, Figure::Bandwidth), Verdict::Exploratory);
    let row = &found.blocks[0].rows[0];
    assert!((row.change.unwrap() - 0.2).abs() < 1e-9, "{row:?}");
    let (low, high) = row.interval.unwrap();
    assert!(low > 0.17 && low < 0.2 && high > 0.2 && high < 0.23, "{row:?}");
    // CPU time: 40% of ten seconds for 500000 I/Os.
    let cpu = found.blocks.iter().find(|block| block.direction == WHOLE_JOB).unwrap().rows[0].base.unwrap();
    assert!((cpu.mean - 8000.0).abs() < 1e-6, "{cpu:?}");
}

#[test]
fn without_repeats_there_are_figures_only() {
    let few = faster(2.0, SPREAD);
    for (base, new) in [(1, 1), (4, 5), (5, 4), (1, 5)] {
        let found = compared(&[readers(&faster(1.0, SPREAD)[..base]), readers(&few[..new])]);
        assert_eq!((verdict(&found, Figure::Iops), found.tested), (Verdict::CannotTell, 0));
        let row = &found.blocks[0].rows[0];
        assert!(row.interval.is_none() && row.change.unwrap() > 0.9, "{row:?}");
        assert!(row.why.as_ref().unwrap().contains("a verdict needs 5 a side"), "{row:?}");
    }
}

#[test]
fn clones_of_one_run_are_not_repeats() {
    let clones = |count: usize| {
        let one = job("j", &json!({"numjobs": "5"}), &[("read", USUAL)]);
        side([report(&vec![one; count])])
    };
    let found = compared(&[clones(5), clones(5)]);
    let row = &found.blocks[0].rows[0];
    assert_eq!((row.base.unwrap().runs, row.verdict), (1, Verdict::CannotTell));
    // Rates are totals divided by the longest run time. Without histograms, percentiles are means.
    assert!((row.base.unwrap().mean - 250_000.0).abs() < 1.0, "{row:?}");
    assert!(found.blocks[0].notes[0].contains("means of the jobs' own"), "{:?}", found.blocks[0].notes);
}

#[test]
fn percentiles_of_clones_are_those_of_their_histograms() {
    let with_bins = |bins: Value| {
        let mut job = job("j", &json!({}), &[("read", USUAL)]);
        job["read"]["clat_ns"]["bins"] = bins;
        job
    };
    let jobs = [with_bins(json!({"1000": 90})), with_bins(json!({"1000": 4, "7000": 6}))];
    let run = Run::of("r", &report(&jobs)).unwrap();
    let part = &run.jobs[0].parts[0];
    assert_eq!((part.figure(Figure::P50), part.figure(Figure::P99)), (Some(1000.0), Some(7000.0)));
    assert_eq!((run.jobs[0].count, part.latency.unwrap().is_averaged), (2, false));
}

#[test]
fn other_work_is_not_comparable() {
    let with = |options: Value, disk: &str| {
        side((0..5).map(|_| {
            let mut report = report(&[job("j", &options, &[("read", USUAL)])]);
            report["disk_util"][0]["name"] = json!(disk);
            report
        }))
    };
    let usual = || with(json!({"bs": "4k", "iodepth": "16", "rw": "randread"}), "vda");
    for (options, disk, why) in [
        (json!({"bs": "16k", "iodepth": "16", "rw": "randread"}), "vda", "different bs: 4k and 16k"),
        (json!({"bs": "4k", "rw": "randread"}), "vda", "different iodepth: 16 and 1"),
        (json!({"bs": "4k", "iodepth": "16"}), "vda", "different rw: randread and read"),
        (
            json!({"bs": "4k", "iodepth": "16", "rw": "randread", "ioengine": "libaio"}),
            "vda",
            "different ioengine: psync and",
        ),
        (json!({"bs": "4k", "iodepth": "16", "rw": "randread"}), "sdb", "different device: vda and sdb"),
    ] {
        let sides = [usual(), with(options, disk)];
        let found = compared(&sides);
        assert_eq!(found.tested, 0);
        assert_eq!(verdict(&found, Figure::Iops), Verdict::NotComparable);
        assert!(found.blocks[0].obstacles[0].contains(why), "{:?}", found.blocks[0].obstacles);
        let named = why.split([' ', ':']).nth(1).unwrap().to_owned();
        assert_eq!(verdict(&compare(&sides, &[], &[named]).unwrap(), Figure::Iops), Verdict::CannotTell);
    }
    // These options mean the same, or do not affect whether results are comparable.
    let same = with(json!({"bs": "4096", "iodepth": "16", "rw": "randread", "size": "1g"}), "vda");
    let found = compared(&[usual(), same]);
    assert_eq!(verdict(&found, Figure::Iops), Verdict::CannotTell);
    assert_eq!(found.blocks[0].notes, ["other options that differ: size"]);
    // Runs that do not repeat each other.
    let mut mixed = usual();
    mixed.runs[2].jobs[0].options.insert("bs".to_owned(), "8k".to_owned());
    let found = compare(&[usual(), mixed], &[], &["bs".to_owned()]).unwrap();
    assert!(
        found.blocks[0].obstacles[0].contains("the runs of NEW do not repeat each other: bs is 4k and 8k")
    );
}

#[test]
fn a_run_that_failed_or_did_nothing_is_not_left_out() {
    let usual = || faster(1.0, SPREAD);
    let mut failed = readers(&usual());
    failed.runs[3].jobs[0].error = 5;
    let mut idle = readers(&usual());
    idle.runs[3].jobs[0].parts.clear();
    let mut missing = readers(&usual());
    missing.runs[3].jobs.clear();
    for (side, why) in [
        (failed, "NEW has runs with errors"),
        (idle, "only 4 of 5 runs of NEW did I/O"),
        (missing, "only 4 of 5 runs of NEW have this job"),
    ] {
        let found = compared(&[readers(&usual()), side]);
        assert_eq!(verdict(&found, Figure::Iops), Verdict::NotComparable);
        assert!(found.blocks[0].obstacles[0].contains(why), "{:?}", found.blocks[0].obstacles);
    }
    let other = side((0..5).map(|_| report(&[job("other", &json!({}), &[("read", USUAL)])])));
    let found = compared(&[readers(&usual()), other]);
    let whys: Vec<&str> = found.blocks.iter().map(|block| block.obstacles[0].as_str()).collect();
    assert!(
        whys.contains(&"NEW does not have this job") && whys.contains(&"BASE does not have this job"),
        "{whys:?}"
    );
}

#[test]
fn limits_are_about_the_whole_interval() {
    let sides = [readers(&faster(1.0, SPREAD)), readers(&faster(0.9, SPREAD))];
    let outcome = |text: &str| {
        let found = compare(&sides, &[Limit::parse(text).unwrap()], &[]).unwrap();
        (found.limits[0], found.tested)
    };
    assert_eq!(outcome("iops < -5%"), (Outcome::Broken, 3));
    assert_eq!(outcome("j.read.iops < -20%"), (Outcome::Kept, 3));
    assert_eq!(outcome("iops < -10%"), (Outcome::Open, 3));
    assert_eq!(outcome("p99 > 5%"), (Outcome::Broken, 3));
    // Figures with a limit get verdicts.
    assert_eq!(outcome("bw < -5%"), (Outcome::Broken, 4));
    let unknown = compare(&sides, &[Limit::parse("k.iops < -5%").unwrap()], &[]).unwrap_err();
    assert!(unknown.contains("k.iops < -5%: there is no such figure; there are j.read.iops, "), "{unknown}");
    let one = [readers(&faster(1.0, SPREAD)[..1]), readers(&faster(0.1, SPREAD)[..1])];
    assert_eq!(compare(&one, &[Limit::parse("iops < -5%").unwrap()], &[]).unwrap().limits, [Outcome::Open]);
}

#[test]
fn measurement_steps_are_not_differences() {
    // Latencies in neighbouring histogram bins without any spread, and rates of runs of 10 s.
    let of = |p50: f64, iops: f64| readers(&[Did { p50, iops, ..USUAL }; 5]);
    let found = compared(&[of(100_864.0, 50_000.0), of(101_888.0, 50_004.0)]);
    assert_eq!(verdict(&found, Figure::P50), Verdict::CannotTell);
    assert_eq!(verdict(&found, Figure::Iops), Verdict::CannotTell);
    let found = compared(&[of(100_864.0, 50_000.0), of(103_936.0, 50_100.0)]);
    assert_eq!(verdict(&found, Figure::P50), Verdict::Worse);
    assert_eq!(verdict(&found, Figure::Iops), Verdict::Better);
}

#[test]
fn results_of_one_run_are_recognised() {
    let one = report(&[job("j", &json!({}), &[("read", USUAL)])]);
    let run = |report: &Value| Run::of("r", report).unwrap();
    let mut later = one.clone();
    later["jobs"][0]["read"]["total_ios"] = json!(600_000);
    assert!(run(&one).is_same_run(&run(&later)), "a result on the way");
    assert!(!run(&one).is_same_run(&run(&report(&[job("j", &json!({}), &[("read", USUAL)])]))));
    // Results without the start times of jobs.
    let old = |time: u64, ios: u64| {
        let mut report = one.clone();
        report["jobs"][0].as_object_mut().unwrap().remove("job_start");
        report["timestamp_ms"] = json!(time);
        report["jobs"][0]["read"]["total_ios"] = json!(ios);
        run(&report)
    };
    assert!(old(7, 1).is_same_run(&old(7, 1)));
    // Two runs whose jobs never started.
    let mut failed = [one.clone(), one.clone()];
    for (report, time) in failed.iter_mut().zip([7, 8]) {
        report["jobs"][0]["job_start"] = json!(0);
        report["timestamp_ms"] = json!(time);
    }
    assert!(!run(&failed[0]).is_same_run(&run(&failed[1])));
    assert!(!old(7, 1).is_same_run(&old(8, 1)) && !old(7, 1).is_same_run(&old(7, 2)));
}

#[test]
fn damaged_reports_cause_no_panic() {
    let idle = || side(vec![json!({"jobs": [{}]}); 5]);
    assert!(compare(&[idle(), idle()], &[], &[]).unwrap_err().contains("nothing to compare"));
    for report in [
        json!({"jobs": [{"jobname": 3, "read": {"total_ios": -4, "io_bytes": 1e308, "iops": "x", "runtime": -1}}]}),
        json!({"jobs": [{"read": {"total_ios": 1e308, "runtime": 1e308, "clat_ns": {"percentile": [], "mean": -1.0}}}, 4, null]}),
        json!({"jobs": [{"read": {"total_ios": 5, "iops": -1.0, "clat_ns": {"percentile": {"50.000000": 0}, "N": 0, "mean": 1}}}]}),
    ] {
        let sides = [side(vec![report.clone(); 5]), side(vec![report; 5])];
        for row in compared(&sides).blocks.iter().flat_map(|block| &block.rows) {
            assert!(row.change.is_none_or(f64::is_finite), "{row:?}");
            assert!(matches!(row.verdict, Verdict::CannotTell | Verdict::Exploratory), "{row:?}");
        }
    }
}

/// A uniform random number above 0, up to 1.
fn uniform(luck: &mut Luck) -> f64 {
    1.0 - (luck.draw() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A random number from the standard normal distribution (Box and Muller).
fn normal(luck: &mut Luck) -> f64 {
    let (a, b) = (uniform(luck), uniform(luck));
    (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

/// The random factors by which runs differ.
#[derive(Clone, Copy)]
struct Law {
    /// The factor of a whole run.
    of_run: fn(&mut Luck) -> f64,
    /// The factor of each of its figures.
    of_figure: fn(&mut Luck) -> f64,
}

fn none(_: &mut Luck) -> f64 {
    1.0
}

/// Draws runs that are like `like`, except for their random factors.
fn drawn(luck: &mut Luck, like: &Run, runs: usize, law: Law, shift: f64) -> Side {
    let mut runs = vec![like.clone(); runs];
    for run in &mut runs {
        let level = (law.of_run)(luck);
        for part in run.jobs[0].parts.iter_mut().filter(|part| part.direction != WHOLE_JOB) {
            for (figure, usual) in
                [(Figure::Iops, USUAL.iops), (Figure::P50, USUAL.p50), (Figure::P99, USUAL.p99)]
            {
                part.set(figure, Some(usual * level * (law.of_figure)(luck) * shift));
            }
        }
    }
    Side { name: "side".to_owned(), runs }
}

/// Makes `draws` comparisons of sides that differ by the factor `shift`. Returns the share of comparisons with any
/// verdict, and the share with a correct verdict on the IOPS of reads.
fn shares(luck: &mut Luck, draws: u32, runs: [usize; 2], laws: [Law; 2], shift: f64) -> (f64, f64) {
    let like = Run::of("r", &report(&[job("j", &json!({}), &[("read", USUAL), ("write", USUAL)])])).unwrap();
    let (mut any, mut right) = (0_u32, 0_u32);
    for _ in 0..draws {
        let base = drawn(luck, &like, runs[0], laws[0], 1.0);
        let found = compared(&[base, drawn(luck, &like, runs[1], laws[1], shift)]);
        assert_eq!(found.tested, 6);
        let decided = |row: &Row| matches!(row.verdict, Verdict::Better | Verdict::Worse);
        any += u32::from(found.blocks.iter().flat_map(|block| &block.rows).any(decided));
        right += u32::from(verdict(&found, Figure::Iops) == Verdict::Better);
    }
    (f64::from(any) / f64::from(draws), f64::from(right) / f64::from(draws))
}

/// If the sides are equal, at most 5% of the comparisons have a wrong verdict, whatever the distribution of runs is.
#[test]
fn false_verdicts_are_as_rare_as_documented() {
    const DRAWS: u32 = 3000;
    let of_figures = |of_figure| Law { of_run: none, of_figure };
    let of_runs = |of_run| Law { of_run, of_figure: |luck| 1.0 + 0.005 * normal(luck) };
    let same = |name, law| (name, [law, law]);
    let narrow = of_figures(|luck| (0.01 * normal(luck)).exp());
    let wide = of_figures(|luck| (0.08 * normal(luck)).exp());
    let laws = [
        same("normal, 2%", of_figures(|luck| 1.0 + 0.02 * normal(luck))),
        same("lognormal, 50%", of_figures(|luck| (0.5 * normal(luck)).exp())),
        same("exponential tails", of_figures(|luck| 0.8 - 0.2 * uniform(luck).ln())),
        ("1% and 8%", [narrow, wide]),
        ("8% and 1%", [wide, narrow]),
        same("classes, 0.3%", of_figures(|luck| (128.0 + 0.4 * normal(luck)).round() / 128.0)),
        same("two levels", of_runs(|luck| if luck.below(2) == 0 { 1.0 } else { 2.0 })),
        same("one in ten at half", of_runs(|luck| if luck.below(10) == 0 { 0.5 } else { 1.0 })),
    ];
    let mut luck = Luck::of(seed_or(16));
    for (name, laws) in laws {
        for runs in [[5, 5], [10, 10], [5, 10], [5, 20]] {
            let (any, _) = shares(&mut luck, DRAWS, runs, laws, 1.0);
            println!("{name:<20} {runs:?}: {:.1}%", any * 100.0);
            // Four standard deviations of 3000 draws are added. Welch's intervals of five runs are a little too
            // narrow if one side varies eight times as much as the other.
            let most = if name.contains(" and ") { 0.065 } else { 0.05 };
            assert!(any < most + 4.0 * 0.004, "{name} {runs:?}: {any}");
        }
    }
}

/// The share of comparisons that find a change if runs vary by 2%, with 5 and with 10 runs per side, as stated in
/// docs/comparing.md.
const POWER: [(f64, f64, f64); 5] =
    [(0.02, 0.06, 0.25), (0.04, 0.37, 0.90), (0.06, 0.78, 1.0), (0.08, 0.96, 1.0), (0.1, 1.0, 1.0)];

#[test]
fn differences_are_found_as_often_as_documented() {
    const DRAWS: u32 = 2000;
    let law = Law { of_run: none, of_figure: |luck| (0.02 * normal(luck)).exp() };
    let mut luck = Luck::of(seed_or(17));
    for (change, at_five, at_ten) in POWER {
        for (runs, expected) in [(5, at_five), (10, at_ten)] {
            let (_, right) = shares(&mut luck, DRAWS, [runs, runs], [law, law], 1.0 + change);
            println!("{change} with {runs} runs a side: {:.0}%", right * 100.0);
            assert!((right - expected).abs() < 0.06, "{change} with {runs} runs: {right}, not {expected}");
        }
    }
}

/// If a run did not end as planned, none of its jobs is comparable. If only one job had an error, the other jobs are
/// comparable, but may have been disturbed.
#[test]
fn unplanned_ends() {
    let options = json!({"rw": "read"});
    let side = |name: &str, end: Value, error: i64| {
        let mut bad = job("bad", &options, &[("read", USUAL)]);
        bad["error"] = error.into();
        let mut report = report(&[job("job", &options, &[("read", USUAL)]), bad]);
        report["iolite"] = end;
        Side { name: name.to_owned(), runs: vec![Run::of(&format!("{name} 1"), &report).unwrap()] }
    };
    let base = side("base", json!({"status": "ended"}), 0);
    let told = |end: Value, error: i64| {
        let comparison = compare(&[base.clone(), side("new", end, error)], &[], &[]).unwrap();
        let block = &comparison.blocks[0];
        assert_eq!((block.job.as_str(), block.direction), ("job", "read"));
        (block.obstacles.join("; "), block.notes.join("; "))
    };
    let nothing = (String::new(), String::new());
    assert_eq!(told(json!({"status": "ended"}), 0), nothing);
    assert_eq!(told(json!({}), 0), nothing);
    let interrupted = told(json!({"status": "interrupted", "status_reason": "ended by SIGINT"}), 5);
    assert_eq!(interrupted.0, "NEW has runs that were interrupted, such as new 1 (ended by SIGINT)");
    let failed = told(json!({"status": "failed"}), 0);
    assert_eq!(failed.0, "NEW has runs that failed, such as new 1");
    let beside = told(json!({"status": "failed", "status_reason": "1 worker had an error"}), 5);
    assert_eq!(beside.0, "");
    assert!(beside.1.contains("other jobs had errors in runs of NEW, such as new 1"), "{beside:?}");
}

#[test]
fn the_help_of_compare_names_all_figures() {
    let usage = iolite_options::commands::called_by(&["compare".into()]).expect("there is compare").usage();
    let usage = usage.split_whitespace().collect::<Vec<_>>().join(" ");
    let figures: Vec<&str> = Figure::ALL.iter().map(|figure| figure.name()).collect();
    let (last, others) = figures.split_last().expect("there are figures");
    assert!(usage.contains(&format!("{} and {last}.", others.join(", "))), "{usage}");
}
