//! Whole tests, driven by made-up devices.

use super::*;
use std::collections::BTreeSet;

fn settings(tests: &[Test]) -> Settings {
    Settings {
        file: "/dev/nvme0n1".to_owned(),
        is_file: false,
        is_direct: true,
        capacity: 1 << 40,
        range: 1 << 40,
        block: 512,
        class: Class::Enterprise,
        tests: tests.to_vec(),
        threads: None,
        depth: None,
        pattern: Pattern::Random,
        cell: MINUTE,
        is_quick: false,
    }
}

/// Figures of a cell at this rate.
fn at(iops: f64) -> Figures {
    Figures {
        iops,
        bandwidth: iops * 4096.0,
        mean_ns: 1e9 / iops,
        max_ns: 5e9 / iops,
        seconds: 60.0,
        ..Figures::default()
    }
}

/// Runs a unit on a device; returns the names of its steps in order, and what was done.
fn run(unit: &Unit, settings: &Settings, device: &mut dyn FnMut(&Step) -> Figures) -> (Vec<String>, Done) {
    let (mut done, mut names) = (Done::new(), Vec::new());
    while let Err(next) = unit.walk(settings, 1, &done) {
        let step = next.step;
        let figures = device(&step);
        names.push(step.name().to_owned());
        assert!(done.insert(step.name().to_owned(), figures).is_none(), "{} comes twice", step.name());
    }
    (names, done)
}

/// The round of a name.
fn round_of(step: &Step) -> usize {
    step.name().split('-').find_map(|part| part.parse().ok().filter(|_| part.len() == 2)).unwrap_or(0)
}

fn only(settings: &Settings) -> Unit {
    let mut units = units(settings);
    assert_eq!(units.len(), 1);
    units.remove(0)
}

#[test]
fn rounds_end_in_the_right_one() {
    let settings = settings(&[Test::Iops]);
    let unit = only(&settings);
    // Falling until round 7; rounds 7 to 11 are the first steady ones.
    let rates = [100e3, 80e3, 60e3, 45e3, 34e3, 26e3, 20e3, 20.4e3, 19.8e3, 20.1e3, 20e3];
    let mut device = |step: &Step| match round_of(step) {
        0 => at(1000.0),
        round => at(rates[round - 1]),
    };
    let (names, done) = run(&unit, &settings, &mut device);
    assert_eq!(names[..4], ["iops-purge", "iops-wipc", "iops-01-100r-1024k", "iops-01-100r-128k"]);
    assert_eq!((names.len(), names.last().unwrap().as_str()), (2 + 11 * 56, "iops-11-0r-512"));
    let outcome = unit.walk(&settings, 1, &done).unwrap();
    let rounds = outcome.rounds.as_ref().unwrap();
    let window = rounds.steady.as_ref().unwrap();
    assert_eq!((window.first, window.last(), rounds.tracked), (7, 11, (54, Quantity::Iops)));
    let value = result::of_unit(&settings, &unit, &outcome);
    assert_eq!((value["matrix"].as_array().unwrap().len(), &value["rounds"]), (56, &11.into()));
    let cell = &value["matrix"][54];
    assert_eq!(cell["what"], "0/100 4 KiB");
    assert!((cell["iops"].as_f64().unwrap() - 20_060.0).abs() < 1e-6, "{cell}");
    assert_eq!(value["steady"]["reached"], true);
}

#[test]
fn a_device_that_never_settles_is_told() {
    let settings = settings(&[Test::Latency]);
    let unit = only(&settings);
    let mut device = |step: &Step| at(if round_of(step).is_multiple_of(2) { 1000.0 } else { 2000.0 });
    let (names, done) = run(&unit, &settings, &mut device);
    assert_eq!(names.len(), 2 + MOST_ROUNDS * 9 + 1);
    let outcome = unit.walk(&settings, 1, &done).unwrap();
    let value = result::of_unit(&settings, &unit, &outcome);
    assert_eq!(
        (&value["steady"]["reached"], &value["steady"]["window"]["last"]),
        (&false.into(), &25.into())
    );
    assert_eq!(value["cells"][0]["group"], "histogram");
}

/// Whatever is missing is what comes next, and nothing else is repeated.
#[test]
fn an_interrupted_test_goes_on_where_it_was() {
    let settings = settings(&[Test::Latency]);
    let unit = only(&settings);
    let (names, done) = run(&unit, &settings, &mut |_| at(1000.0));
    for (place, name) in names.iter().enumerate() {
        let mut part = done.clone();
        names[place..].iter().for_each(|name| drop(part.remove(name)));
        let step = unit.walk(&settings, 1, &part).unwrap_err().step;
        assert_eq!(step.name(), name);
    }
    // From its purge on, with other names.
    let step = unit.walk(&settings, 2, &done).unwrap_err().step;
    assert_eq!(step.name(), "lat-again2-purge");
}

#[test]
fn each_size_of_throughput_is_a_test_of_its_own() {
    let enterprise = settings(&[Test::Throughput]);
    let names: Vec<String> = units(&enterprise).into_iter().map(|unit| unit.name).collect();
    assert_eq!(names, ["tp-1024k", "tp-128k"]);
    let client = Settings { class: Class::Client, ..enterprise.clone() };
    assert_eq!(units(&client).len(), 1);
    // Sequential I/O goes on where it ended.
    let unit = &units(&enterprise)[0];
    let mut offsets = Vec::new();
    let mut device = |step: &Step| {
        if let Step::Run { case, .. } = step
            && case.name.contains("-0r-")
        {
            let offset = case.job.lines().find_map(|line| line.strip_prefix("offset=")).unwrap();
            offsets.push(offset.parse::<u64>().unwrap());
        }
        Figures { moved: (3 << 30) + 5, written: 3 << 30, ..at(1000.0) }
    };
    run(unit, &enterprise, &mut device);
    assert_eq!(offsets, [0, 3 << 30, 6 << 30, 9 << 30, 12 << 30]);
    // Where the rest is too small for another cell, it begins again: no cell repeats a small rest.
    offsets.clear();
    let small = Settings { range: 8 << 30, ..enterprise.clone() };
    let mut device = |step: &Step| {
        if let Step::Run { case, .. } = step
            && case.name.contains("-0r-")
        {
            let of = |option: &str| {
                let found = case.job.lines().find_map(|line| line.strip_prefix(option));
                found.unwrap().parse::<u64>().unwrap()
            };
            assert_eq!(of("offset=") + of("size="), 8 << 30);
            offsets.push(of("offset="));
        }
        Figures { moved: 3 << 30, written: 3 << 30, ..at(1000.0) }
    };
    run(&units(&small)[0], &small, &mut device);
    assert_eq!(offsets, [0, 3 << 30, 0, 3 << 30, 0]);
}

#[test]
fn write_saturation_ends_when_four_times_the_capacity_is_written() {
    let settings = settings(&[Test::WriteSaturation]);
    let unit = only(&settings);
    let mut device = |_: &Step| Figures { written: 1 << 39, ..at(1000.0) };
    let (names, done) = run(&unit, &settings, &mut device);
    assert_eq!((names.len(), names[1].as_str()), (1 + 8, "wsat-0001"), "it begins with the purged device");
    let value = result::of_unit(&settings, &unit, &unit.walk(&settings, 1, &done).unwrap());
    assert_eq!(value["cells"][7]["written_bytes"], 4_u64 << 40);
    assert_eq!(value["steady"]["window"]["first"], 1);
    let slow = run(&unit, &settings, &mut |_| Figures { written: 1, ..at(1.0) }).0;
    assert_eq!(slow.len(), 1 + 24 * 60);
}

#[test]
fn all_tests_come_to_an_end() {
    for test in Test::ALL {
        for is_quick in [false, true] {
            let settings =
                Settings { is_quick, cell: if is_quick { QUICK } else { MINUTE }, ..settings(&[test]) };
            for unit in units(&settings) {
                let (names, done) =
                    run(&unit, &settings, &mut |_| Figures { written: 1 << 38, moved: 1 << 38, ..at(500.0) });
                let outcome = unit.walk(&settings, 1, &done).unwrap();
                let value = result::of_unit(&settings, &unit, &outcome);
                assert!(value["matrix"].is_array() || value["cells"].is_array(), "{value}");
                let (least, most) = unit.seconds(&settings);
                let passed: f64 = {
                    let mut part = done.clone();
                    part.remove(names.last().unwrap());
                    unit.walk(&settings, 1, &part).unwrap_err().passed
                };
                assert!(
                    passed < least.max(1.0) + most && least <= most,
                    "{}: {passed} {least} {most}",
                    unit.name
                );
            }
        }
    }
    let names = |test: Test| {
        let settings = settings(&[test]);
        run(&only(&settings), &settings, &mut |_| at(500.0)).0.len()
    };
    assert_eq!(names(Test::HostIdleRecovery), 2 + 5 + 5 * (360 + 30));
    assert_eq!(names(Test::CrossStimulusRecovery), 1 + 22 * 60);
    assert_eq!(names(Test::DemandIntensity), 2 + 5 * 56 + 3);
}

/// The points of demand on a device whose rate saturates at 8 I/Os in flight, and whose response time then grows.
#[test]
fn demands_are_chosen_by_rate_and_response_time() {
    let settings = settings(&[Test::DemandIntensity]);
    let unit = only(&settings);
    let mut device = |step: &Step| {
        let Step::Run { case, .. } = step else { return at(1.0) };
        let number = |option: &str| {
            let found = case.job.lines().find_map(|line| line.strip_prefix(option));
            found.map_or(1.0, |value| value.parse::<f64>().unwrap())
        };
        let flying = number("numjobs=") * number("iodepth=");
        // Each I/O takes 2 ms, eight at once.
        let iops = flying.min(8.0) * 500.0;
        Figures { mean_ns: flying / iops * 1e9, ..at(iops) }
    };
    let (names, done) = run(&unit, &settings, &mut device);
    assert_eq!(names[names.len() - 3..], ["dirth-h-max", "dirth-h-mid", "dirth-h-min"]);
    let outcome = unit.walk(&settings, 1, &done).unwrap();
    let flying: Vec<u32> =
        outcome.singles.iter().map(|single| single.cell.threads * single.cell.depth).collect();
    // 4000 I/Os per second with at most 5 ms: 8, 12, 16 in flight are as fast. In the middle: 2250 is nearest to 2000 (4).
    assert!((8..=20).contains(&flying[0]) && flying[1..] == [4, 1], "{flying:?}");
}

#[test]
fn jobs_say_what_the_specification_says() {
    let settings = settings(&[Test::Iops]);
    let unit = only(&settings);
    let mut jobs = BTreeSet::new();
    let mut texts = Done::new();
    let mut all = Vec::new();
    while let Err(next) = unit.walk(&settings, 1, &texts) {
        let step = next.step;
        if let Step::Run { case, .. } = &step {
            assert!(jobs.insert(case.job.clone()), "no two cells have the same places and data");
            all.push(case.clone());
        }
        texts.insert(step.name().to_owned(), at(100.0));
    }
    assert!(
        all[0].job.contains("rw=write\nbs=128k\nsize=1099511627776\nio_size=2199023255552\n"),
        "{}",
        all[0].job
    );
    let mix = all.iter().find(|case| case.name == "iops-01-65r-64k").unwrap();
    for line in [
        "rw=randrw",
        "rwmixread=65",
        "bs=65536",
        "iodepth=16",
        "numjobs=2",
        "runtime=60000ms",
        "direct=1",
        "refill_buffers=1",
    ] {
        assert!(mix.job.lines().any(|known| known == line), "{line}: {}", mix.job);
    }
    let large = Settings { block: 4096, ..settings.clone() };
    let (names, _) = run(&only(&large), &large, &mut |_| at(100.0));
    assert_eq!(names.len(), 2 + 5 * 49, "blocks below that of the device are left out");
    assert_eq!(large.deviations().len(), 1);
}

#[test]
fn discards_reach_the_end() {
    let job = |capacity: u64| discard(&Settings { capacity, ..settings(&[]) }, "p".to_owned()).job;
    let odd = job((128 << 20) + 512);
    assert!(
        odd.contains("size=134217728\nbs=67108864\n") && odd.contains("offset=134217728\nsize=512\nbs=512\n"),
        "{odd}"
    );
    assert_eq!(job(64 << 20).matches("[p]").count(), 1);
    assert_eq!(job(512).matches("[p]").count(), 1);
}

#[test]
fn two_results_are_compared_cell_by_cell() {
    let settings = settings(&[Test::Iops]);
    let unit = only(&settings);
    let value = |factor: f64| {
        let mut round = 0.0;
        let (_, done) = run(&unit, &settings, &mut |_| {
            round += 1.0;
            at(factor * (1000.0 + round % 3.0))
        });
        let test = result::of_unit(&settings, &unit, &unit.walk(&settings, 1, &done).unwrap());
        serde_json::json!({result::MARK: 1, "conforming": true, "tests": [test],
            "header": {"device": {"model": "a"}, "parameters": {"threads": factor}}})
    };
    let same = compare::compare(&value(1.0), &value(1.0)).unwrap();
    assert_eq!((same.rows.len(), same.notes.len()), (56, 0));
    assert!(same.rows.iter().all(|row| row.change() == Some(0.0) && row.is_apart == Some(false)));
    let faster = compare::compare(&value(1.0), &value(1.5)).unwrap();
    assert!(
        faster
            .rows
            .iter()
            .all(|row| row.is_apart == Some(true) && (row.change().unwrap() - 0.5).abs() < 1e-9)
    );
    assert_eq!(faster.notes, ["parameter threads: 1.0 and 1.5"]);
    assert!(
        compare::compare(&value(1.0), &serde_json::json!({}))
            .unwrap_err()
            .contains("no result of iolite pts")
    );
}
