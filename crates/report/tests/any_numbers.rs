//! Numbers of any size never make a report fail.

use iolite_report::{Exporter, Json, Normal, Program, Terse, TerseVersion};
use iolite_stats::*;
use iolite_types::PerDirection;
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>(), 0u64..10_000]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..1e300, 0.0..1e-9, 0.0..100.0]
}

fn latency() -> BoxedStrategy<Latency> {
    (prop::array::uniform3(number()), any::<[u128; 2]>(), prop::collection::vec(number(), 0..9))
        .prop_map(|([count, min, max], [sum, sum_squares], values)| {
            let mut histogram = Histogram::default();
            values.into_iter().for_each(|value| histogram.record(value));
            Latency { moments: Moments { count, min, max, sum, sum_squares }, histogram }
        })
        .boxed()
}

fn samples() -> BoxedStrategy<Samples> {
    (prop::array::uniform3(number()), float(), float())
        .prop_map(|([count, min, max], mean, spread)| Samples::new(count, min, max, mean, spread))
        .boxed()
}

fn direction() -> BoxedStrategy<DirectionReport> {
    (prop::array::uniform6(number()), prop::array::uniform5(latency()), samples(), samples())
        .prop_map(
            |(
                [bytes, ios, issued, short, dropped, runtime_ms],
                [slat, clat, lat, intended, first_byte],
                bw,
                iops,
            )| {
                let priorities = [7, 8192, u16::MAX]
                    .map(|priority| PriorityLatency {
                        priority,
                        latency: lat.clone(),
                        ..PriorityLatency::default()
                    })
                    .to_vec();
                DirectionReport {
                    bytes,
                    ios,
                    issued,
                    short,
                    dropped,
                    runtime_ms,
                    slat,
                    clat,
                    lat,
                    intended,
                    visible: first_byte.clone(),
                    first_byte,
                    bw,
                    iops,
                    priorities,
                    stages: (issued % 2 == 1).then(|| Box::new(stages([bytes, ios, short, dropped]))),
                }
            },
        )
        .boxed()
}

/// Stages of an I/O that took these times, and of one without any.
fn stages(times: [u64; 4]) -> StageTimes {
    let mut stages = StageTimes::new(&Stage::OF_BLOCK_DEVICES, times[0] % 2 == 1);
    let slow = || SlowIo { offset: u64::MAX, file: "\u{7}<file>".to_owned(), ..SlowIo::default() };
    stages.record(&times.map(|time| time % (1 << 60)), times[1], slow);
    stages.not_matched(Unmatched::Overlap, 1);
    stages
}

fn display() -> BoxedStrategy<Display> {
    (any::<[u32; 3]>(), prop::collection::vec(0.0..=100.0, 0..30), any::<[bool; 6]>(), 0..3usize)
        .prop_map(|([kb_base, unit_base, significant_figures], mut percentiles, flags, unified)| {
            percentiles.sort_by(f64::total_cmp);
            Display {
                kb_base,
                unit_base,
                significant_figures,
                percentiles,
                slat_percentiles: flags[0],
                clat_percentiles: flags[1],
                lat_percentiles: flags[2],
                synchronous: flags[3],
                intended: flags[4],
                requests: flags[5],
                unified: [Unified::Apart, Unified::Mixed, Unified::Both][unified],
            }
        })
        .boxed()
}

fn steady_state(n: [u64; 9], limit: f64) -> SteadyReport {
    let measurement = |i: usize| Measurement { iops: n[i], bandwidth: n[i + 1], latency: n[i + 2] };
    SteadyReport {
        quantity: [Quantity::Iops, Quantity::Bandwidth, Quantity::Latency][(n[0] % 3) as usize],
        slope: n[1].is_multiple_of(2),
        limit,
        percent: n[2].is_multiple_of(2),
        duration_s: n[3],
        size: 7,
        attained: n[4].is_multiple_of(2),
        window: (0..(n[5] % 7) as usize).map(measurement).collect(),
    }
}

fn depths() -> BoxedStrategy<Depths> {
    (prop::array::uniform7(number()), prop::array::uniform7(number()), number())
        .prop_map(|(level, submit, one)| Depths { level, submit, complete: [one; BATCH_CLASSES] })
        .boxed()
}

fn job() -> BoxedStrategy<JobReport> {
    let identity = (any::<String>(), any::<Option<String>>(), any::<[i32; 3]>(), any::<[u32; 3]>());
    let moved = (prop::array::uniform3(direction()), latency(), display(), depths());
    let numbers = (prop::array::uniform9(number()), prop::array::uniform10(number()), float());
    (identity, moved, numbers)
        .prop_map(
            |(
                (name, description, [pid, errno, first], [group, members, depth]),
                (values, lat, display, depths),
                (n, ns, latency_percentile),
            )| JobReport {
                host: group.is_multiple_of(2).then(|| name.clone()),
                requests: RequestReport { repeated: n[1], throttled: n[2] },
                zone_resets: group.is_multiple_of(2).then_some(n[3]),
                accelerator: group.is_multiple_of(2).then_some(AcceleratorReport {
                    count: n[0],
                    batches: n[1],
                    samples: n[2],
                    elapsed_ns: n[3],
                    compute_ns: n[4],
                    wait_ns: n[5],
                }),
                options: vec![(name.clone(), name.clone())],
                name,
                description,
                pid,
                error: (errno != 0)
                    .then(|| First { worker: 0, value: JobError { errno, what: "write".into() } }),
                group: group % 3,
                members,
                depth,
                most_in_flight: depth.into(),
                continued_errors: (first != 0).then_some(ContinuedErrors {
                    count: n[0],
                    first: Some(First { worker: 0, value: first }),
                }),
                blocks_checked: CheckedBlocks { checked: n[2], wrong: n[3] },
                engine: format!("engine{}", group % 3),
                identity: Identity::of(depth, group),
                connected: [depth, members].into(),
                blocks: display.intended.then(|| BlockReport {
                    states: [n[0], n[1], n[2], n[3], n[4]],
                    lifetimes: values[0].lat.histogram.clone(),
                }),
                mixed: (display.unified != Unified::Apart).then(|| values[0].clone()),
                directions: PerDirection { values },
                sync: SyncReport { ios: n[0], lat },
                steady_state: display.intended.then(|| steady_state(n, latency_percentile)),
                lateness: Latency::default(),
                display,
                depths,
                start_ms: n[1],
                elapsed_s: n[2],
                eta_s: Some(n[3]),
                job_runtime_ms: n[4],
                job_runtime_ns: n[4],
                log_wait_ms: n[5],
                usage: Usage {
                    user_ms: n[5],
                    system_ms: n[6],
                    context_switches: n[7],
                    major_faults: n[8],
                    minor_faults: n[0],
                },
                latency_classes: LatencyClasses { ns, us: ns, ms: [n[1]; 12] },
                latency_target_ns: n[7],
                latency_window_ns: n[8],
                latency_percentile,
            },
        )
        .boxed()
}

fn group_direction(n: [u64; 6]) -> GroupDirection {
    GroupDirection {
        bytes: n[0],
        bandwidth: n[1],
        min_bandwidth: n[2],
        max_bandwidth: n[3],
        min_runtime_ms: n[4],
        max_runtime_ms: n[5],
    }
}

fn group() -> BoxedStrategy<GroupReport> {
    (any::<[u32; 4]>(), prop::array::uniform6(number()))
        .prop_map(|([id, kb_base, unit_base, significant_figures], n)| GroupReport {
            id: id % 3,
            directions: PerDirection::all(group_direction(n)),
            mixed: group_direction(n),
            kb_base,
            unit_base,
            significant_figures,
        })
        .boxed()
}

fn disk() -> BoxedStrategy<DiskReport> {
    (any::<String>(), prop::array::uniform9(number()), float(), 0usize..3)
        .prop_map(|(name, n, utilisation, slaves)| {
            let counters = DiskCounters {
                read_ios: n[0],
                write_ios: n[1],
                read_sectors: n[2],
                write_sectors: n[3],
                read_merges: n[4],
                write_merges: n[5],
                read_ticks: n[6],
                write_ticks: n[7],
                in_queue: n[8],
            };
            let alone = DiskReport { name, counters, utilisation, slaves: Vec::new() };
            DiskReport { slaves: vec![alone.clone(); slaves], ..alone }
        })
        .boxed()
}

proptest! {
    #![proptest_config(iolite_testing::properties(100))]

    #[test]
    fn any_report_can_be_printed(
        timestamp_ms in number(),
        jobs in prop::collection::vec(job(), 0..3),
        groups in prop::collection::vec(group(), 0..3),
        disks in prop::collection::vec(disk(), 0..3),
        cpus in prop::collection::vec((any::<u32>(), float(), float()), 0..4),
    ) {
        let per_cpu = cpus.len() > 2;
        let cpus = cpus.into_iter().map(|(cpu, percent, unit_us)| IdleCpu { cpu, percent, unit_us }).collect();
        let idleness = Some(IdleReport { cpus, per_cpu });
        let report = Report { timestamp_ms, jobs, groups, disks, idleness, ..Report::default() };
        let program = Program { version: "fio-3.42".into(), own_version: "iolite-0.1.0".into() };
        let text = |exporter: &dyn Exporter| {
            let mut out = Vec::new();
            exporter.write(&report, &program, &mut out).expect("memory takes everything");
            String::from_utf8(out).expect("text")
        };
        prop_assert!(text(&Normal).starts_with('\n'));
        for version in [TerseVersion::V2, TerseVersion::V3, TerseVersion::V4, TerseVersion::V5] {
            text(&Terse { version });
        }
        let json: serde_json::Value = serde_json::from_str(&text(&Json { bins: true })).expect("JSON is JSON");
        prop_assert_eq!(json["jobs"].as_array().map(Vec::len), Some(report.jobs.len()));
    }
}
