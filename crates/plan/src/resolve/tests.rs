use super::*;
use crate::{FileFacts, FileKind, LayoutContext, LeftOut, layout};
use iolite_host::MadeUp;
use iolite_options::{
    BlockSizes, ExtentOptions, PlacementOptions, Range, ReadWrite, RunOptions, ScheduleOptions, SizeValue,
};
use iolite_types::{BlockSize, Direction, PerDirection};

/// Resolves the first worker of this job, on a device of this size.
fn resolved(device: u64, change: impl FnOnce(&mut JobOptions)) -> ResolvedWorker {
    let mut options = JobOptions { name: "j".into(), ioengine: "null".into(), ..JobOptions::default() };
    change(&mut options);
    let plan = Plan::build(vec![options], &RunOptions::default(), &MadeUp::new()).expect("a valid plan");
    let worker = &plan.workers[0];
    let context = LayoutContext { clone: 0, facets: plan.jobs[0].engine.facets, seed: 1 };
    let facts = FileFacts { kind: FileKind::Block, size: Some(device) };
    let layout = layout(&plan.jobs[0].options, context, &[("/dev/made-up".into(), facts)]).unwrap();
    plan.resolve(worker, &layout, &Rivals::default())
}

#[test]
fn offsets_and_sizes_on_a_device_of_100_tib() {
    const TIB: u64 = 1 << 40;
    let worker = resolved(100 * TIB, |o| {
        o.pattern.rw = ReadWrite::RandWrite;
        o.extent.offset = SizeValue::Percent(50);
        o.pattern.block_sizes = PerDirection::all(BlockSizes::Range(Range { low: 4096, high: 65_536 }));
    });
    let region = &worker.workload.files[0];
    assert_eq!((region.offset, region.length), (50 * TIB, 50 * TIB));
    assert_eq!(worker.workload.block_size[Direction::Write], BlockSize::Range(4096, 65_536));
    // Buffers hold the largest block, and nothing grows with the device.
    assert_eq!((worker.buffers.largest, worker.buffers.count), (65_536, 1));
    assert_eq!(worker.creation.time, CreationTime::BeforeAll);
    assert_eq!(worker.layout.files[0].extend_to, None, "a device is as large as it is");
}

#[test]
fn a_job_that_asks_for_nothing_special_has_no_extras() {
    let worker = resolved(1 << 30, |o| o.depth.iodepth = 32);
    assert_eq!((worker.issue.depth, worker.issue.low, worker.issue.serialize_overlap), (32, 32, false));
    assert!(worker.pace.is_none() && worker.target.is_none() && worker.priorities.is_none());
    assert!(worker.flow.is_none() && worker.sized_ramp.is_none() && !worker.logs.any());
    assert!(worker.content.is_none(), "it does not write");
    assert!(!worker.issue.limits_latency() && worker.issue.timed());
}

#[test]
fn a_process_with_threads_of_a_library_counts_as_a_whole() {
    let counts = |engine: &str, thread| {
        resolved(1 << 30, |o| {
            o.choose_engine(iolite_options::engines::engine(engine).unwrap());
            o.schedule.thread = thread;
        })
        .counts_process
    };
    assert!(counts("posixaio", false));
    assert!(!counts("posixaio", true), "the process has other workers");
    assert!(!counts("io_uring", false));
}

#[test]
fn a_saved_state_is_gone_through_once() {
    let passes = |load| {
        let worker = resolved(1 << 30, |o| {
            o.pattern.rw = ReadWrite::RandWrite;
            o.schedule.loops = 4;
            o.schedule.runtime = 1_000_000;
            o.schedule.time_based = true;
            o.verification.verify = iolite_options::Verify::Crc32c;
            o.verification.verify_state_load = load;
        });
        (worker.passes.loops, worker.passes.time_based, worker.creation.time)
    };
    assert_eq!(passes(false), (4, true, CreationTime::BeforeAll));
    assert_eq!(passes(true), (1, false, CreationTime::Never));
}

#[test]
fn clones_share_out_the_cpus_that_do_not_keep_the_time() {
    let jobs = vec![JobOptions {
        name: "j".into(),
        ioengine: "null".into(),
        extent: ExtentOptions { size: Some(SizeValue::Bytes(1 << 20)), ..ExtentOptions::default() },
        schedule: ScheduleOptions { numjobs: 3, ..ScheduleOptions::default() },
        placement: PlacementOptions {
            cpus_allowed: (0..2).collect(),
            cpus_allowed_policy: iolite_options::CpusPolicy::Split,
            ..PlacementOptions::default()
        },
        ..JobOptions::default()
    }];
    let plan = Plan::build(jobs, &RunOptions::default(), &MadeUp::new().with_cpus(2)).expect("a valid plan");
    let none = Layout { files: Vec::new(), pass_bytes: None, left_out: LeftOut::default(), named: None };
    let cpus =
        plan.workers.iter().map(|worker| plan.resolve(worker, &none, &Rivals::default()).placement.affinity);
    assert_eq!(cpus.collect::<Vec<_>>(), [Some(vec![0]), Some(vec![1]), Some(vec![0])]);
}

#[test]
fn a_resolved_worker_travels_as_text() {
    let worker = resolved(1 << 30, |o| {
        o.pattern.rw = ReadWrite::RandRw;
        o.rates.rate_iops = PerDirection::new(100, 50, 0);
        o.rates.latency_target = 1000;
        o.logs.write_lat_log = Some("lat".into());
        o.buffers.buffer_compress_percentage = 50;
    });
    let text = serde_json::to_string(&worker).unwrap();
    let back: ResolvedWorker = serde_json::from_str(&text).unwrap();
    assert_eq!(back, worker);
}
