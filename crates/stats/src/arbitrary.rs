//! Random reports, for property tests.

use crate::*;
use iolite_types::PerDirection;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// The moments of some values, and a histogram of the first few.
pub fn latency() -> BoxedStrategy<Latency> {
    (vec(0..1u64 << 45, 0..6), 0..6usize)
        .prop_map(|(values, bucketed)| {
            let mut latency = Latency::default();
            values.iter().for_each(|&value| latency.moments.record(value));
            values.iter().take(bucketed).for_each(|&value| latency.histogram.record(value));
            latency
        })
        .boxed()
}

fn samples() -> BoxedStrategy<Samples> {
    let of = |values: Vec<u64>| {
        let mut moments = Moments::default();
        values.iter().for_each(|&value| moments.record(value));
        Samples::of(&moments)
    };
    vec(0..1u64 << 30, 0..5).prop_map(of).boxed()
}

/// The stages of a few I/Os of a block device.
fn stages() -> BoxedStrategy<Option<Box<StageTimes>>> {
    let ios = vec((prop::array::uniform4(0..1u64 << 40), 0..1u64 << 40), 0..6);
    let counts = prop::array::uniform4(any::<u32>());
    option::of((ios, counts).prop_map(|(ios, counts)| {
        let mut times = StageTimes::new(&Stage::OF_BLOCK_DEVICES, false);
        for (stages, at) in ios {
            times.record(&stages, at, SlowIo::default);
        }
        times.split = counts[0].into();
        times.merged = counts[1].into();
        times.without_device = counts[2].into();
        times.unmatched.insert(Unmatched::Overlap, counts[3].into());
        Box::new(times)
    }))
    .boxed()
}

fn direction(direction: u32, worker: u32) -> BoxedStrategy<DirectionReport> {
    let priorities = subsequence(vec![0, 1, 2, 3], 0..4).prop_shuffle();
    let latencies = prop::array::uniform6(latency());
    (any::<[u32; 5]>(), 0..9000u64, latencies, samples(), samples(), priorities, stages())
        .prop_map(move |(n, runtime_ms, latencies, bw, iops, priorities, stages)| {
            let [slat, clat, lat, intended, first_byte, of_each] = latencies;
            let visible = first_byte.clone();
            let priority = |(place, priority)| {
                let order = [direction, worker, place];
                PriorityLatency { order, priority, latency: of_each.clone() }
            };
            DirectionReport {
                bytes: n[0].into(),
                ios: n[1].into(),
                issued: n[2].into(),
                short: n[3].into(),
                dropped: n[4].into(),
                runtime_ms,
                slat,
                clat,
                lat,
                intended,
                first_byte,
                visible,
                priorities: (0..).zip(priorities).map(priority).collect(),
                stages,
                bw,
                iops,
            }
        })
        .boxed()
}

fn display() -> BoxedStrategy<Display> {
    let unified = select(vec![Unified::Apart, Unified::Mixed, Unified::Both]);
    (any::<[u32; 3]>(), any::<[bool; 6]>(), vec(0.0..=100.0, 0..4), unified)
        .prop_map(|([kb_base, unit_base, significant_figures], flags, percentiles, unified)| Display {
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
            unified,
        })
        .boxed()
}

fn steady_state() -> BoxedStrategy<SteadyReport> {
    let quantity = select(vec![Quantity::Iops, Quantity::Bandwidth, Quantity::Latency]);
    let measurement = any::<[u32; 3]>().prop_map(|[iops, bandwidth, latency]| Measurement {
        iops: iops.into(),
        bandwidth: bandwidth.into(),
        latency: latency.into(),
    });
    (quantity, any::<[bool; 3]>(), 0.0..1e9, any::<[u16; 2]>(), vec(measurement, 0..3))
        .prop_map(|(quantity, flags, limit, [duration_s, size], window)| SteadyReport {
            quantity,
            slope: flags[0],
            limit,
            percent: flags[1],
            duration_s: duration_s.into(),
            size: size.into(),
            attained: flags[2],
            window: window.into(),
        })
        .boxed()
}

/// A worker's report in this block. The block determines the group.
pub fn job(block: u32, worker: u32) -> BoxedStrategy<JobReport> {
    let words = (any::<String>(), option::of(any::<String>()), vec(any::<(String, String)>(), 0..3));
    let errors = (option::of(1..200i32), option::of((any::<u32>(), option::of(1..200i32))));
    let directions = [direction(0, worker), direction(1, worker), direction(2, worker)];
    let latencies = [latency(), latency(), latency()];
    let classes = (any::<[u32; 7]>(), option::of(any::<[u32; 5]>()));
    let rest = (display(), option::of(steady_state()), 0.0..=100.0);
    (words, errors, directions, latencies, classes, any::<[u32; 20]>(), rest)
        .prop_map(
            move |(
                (name, description, options),
                (error, continued),
                values,
                [sync, lateness, lifetimes],
                (counts, states),
                n,
                (display, steady_state, latency_percentile),
            )| JobReport {
                identity: Identity::of(block, worker),
                group: block / 2,
                members: 1,
                error: error.map(|errno| {
                    let value = JobError { errno, what: name.clone() };
                    First { worker, value }
                }),
                continued_errors: continued.map(|(count, first)| ContinuedErrors {
                    count: count.into(),
                    first: first.map(|value| First { worker, value }),
                }),
                name,
                description,
                options,
                directions: PerDirection { values },
                sync: SyncReport { ios: n[0].into(), lat: sync },
                lateness,
                blocks: states.map(|states| BlockReport {
                    states: states.map(u64::from),
                    lifetimes: lifetimes.histogram,
                }),
                depths: Depths {
                    level: counts.map(u64::from),
                    submit: counts.map(u64::from),
                    complete: counts.map(u64::from),
                },
                usage: Usage {
                    user_ms: n[1].into(),
                    system_ms: n[2].into(),
                    context_switches: n[3].into(),
                    major_faults: n[4].into(),
                    minor_faults: n[5].into(),
                },
                pid: n[6] as i32,
                start_ms: n[7].into(),
                elapsed_s: n[8].into(),
                eta_s: (n[9] % 2 == 0).then_some(n[9].into()),
                job_runtime_ms: n[10].into(),
                job_runtime_ns: n[11].into(),
                log_wait_ms: n[11].into(),
                depth: n[12],
                most_in_flight: n[12].into(),
                latency_target_ns: n[13].into(),
                latency_window_ns: n[14].into(),
                latency_percentile,
                connected: n[14..].iter().map(|number| number % 8).collect(),
                requests: RequestReport { repeated: n[15].into(), throttled: n[16].into() },
                display,
                accelerator: (n[17] % 2 == 0).then_some(AcceleratorReport {
                    count: 1,
                    batches: n[17].into(),
                    samples: n[18].into(),
                    elapsed_ns: n[19].into(),
                    compute_ns: n[0].into(),
                    wait_ns: n[1].into(),
                }),
                steady_state,
                ..JobReport::default()
            },
        )
        .boxed()
}

fn disk() -> BoxedStrategy<DiskReport> {
    let leaf = (any::<String>(), any::<[u32; 9]>(), 0.0..=100.0).prop_map(|(name, n, utilisation)| {
        let [read_ios, write_ios, read_sectors, write_sectors, read_merges, write_merges, ..] =
            n.map(u64::from);
        let [.., read_ticks, write_ticks, in_queue] = n.map(u64::from);
        let counters = DiskCounters {
            read_ios,
            write_ios,
            read_sectors,
            write_sectors,
            read_merges,
            write_merges,
            read_ticks,
            write_ticks,
            in_queue,
        };
        DiskReport { name, counters, utilisation, slaves: Vec::new() }
    });
    (leaf.clone(), vec(leaf, 0..2)).prop_map(|(disk, slaves)| DiskReport { slaves, ..disk }).boxed()
}

fn idleness() -> BoxedStrategy<IdleReport> {
    let cpu = (any::<u32>(), 0.0..=100.0, 0.0..1e6).prop_map(|(cpu, percent, unit_us)| IdleCpu {
        cpu,
        percent,
        unit_us,
    });
    (vec(cpu, 0..3), any::<bool>()).prop_map(|(cpus, per_cpu)| IdleReport { cpus, per_cpu }).boxed()
}

/// The group of a block.
pub fn group(id: u32) -> GroupReport {
    GroupReport { id, kb_base: 1000 + id, unit_base: id, significant_figures: 4, ..GroupReport::default() }
}

/// The unmerged reports of some workers, in up to three blocks.
pub fn jobs() -> BoxedStrategy<Vec<JobReport>> {
    (1..6u32)
        .prop_flat_map(|count| (0..count).map(|worker| job(worker * 3 / 5, worker)).collect::<Vec<_>>())
        .boxed()
}

/// A merged report.
pub fn report() -> BoxedStrategy<Report> {
    let options = vec(any::<(String, String)>(), 0..3);
    (any::<u32>(), options, jobs(), vec(disk(), 0..2), option::of(idleness()))
        .prop_map(|(timestamp_ms, global_options, jobs, disks, idleness)| {
            let groups = vec![group(0), group(1)];
            let timestamp_ms = timestamp_ms.into();
            let series = Some(Series { begin_ns: u64::from(jobs[0].identity.block), ..Series::default() });
            Report::merge([Report {
                timestamp_ms,
                global_options,
                jobs,
                groups,
                disks,
                idleness,
                series,
                facts: Some(Facts::default()),
                end: Some(iolite_types::RunEnd::planned()),
            }])
        })
        .boxed()
}

fn worker() -> BoxedStrategy<WorkerSnapshot> {
    let counters = (any::<[u32; 2]>(), latency()).prop_map(|([ios, bytes], latency)| Counters {
        ios: ios.into(),
        bytes: bytes.into(),
        latency,
        asked: crate::Asked { ios: bytes.into(), bytes: 0 },
    });
    let counters = prop::array::uniform3(counters);
    (any::<char>(), any::<bool>(), any::<[bool; 3]>(), any::<[u32; 6]>(), counters)
        .prop_map(|(state, running, uses, n, counters)| WorkerSnapshot {
            state,
            running,
            open_files: n[0],
            uses: PerDirection { values: uses },
            limits: RateLimits {
                min_bandwidth: n[1].into(),
                max_bandwidth: n[2].into(),
                min_iops: n[3].into(),
                max_iops: n[4].into(),
            },
            counters: PerDirection { values: counters },
            resets: n[5].into(),
            failures: Vec::new(),
            stages: Vec::new(),
        })
        .boxed()
}

pub fn snapshot() -> BoxedStrategy<Snapshot> {
    let stuck = (any::<[u32; 3]>(), ".*").prop_map(|([ios, age_ns, offset], file)| Stuck {
        ios: ios.into(),
        age_ns: age_ns.into(),
        file,
        offset: offset.into(),
        at: (ios % 2 == 0).then_some(crate::StuckAt::Device),
    });
    let times = (option::of(0.0..=100.0), option::of(any::<u32>()));
    (any::<u32>(), vec(worker(), 0..4), times, any::<[u32; 2]>(), option::of(stuck))
        .prop_map(|(elapsed_ns, workers, (percent, eta_s), [kb_base, unit_base], stuck)| Snapshot {
            elapsed_ns: elapsed_ns.into(),
            workers,
            percent,
            eta_s: eta_s.map(u64::from),
            kb_base,
            unit_base,
            stuck,
            is_laying_out: false,
            disks: Vec::new(),
        })
        .boxed()
}
