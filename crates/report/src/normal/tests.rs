//! Compares the layout of the report for people with texts written by hand.

use super::*;
use crate::example::{self, latency, moments, samples};
use iolite_stats::{DirectionReport, First, JobError, Measurement};
use iolite_types::{Direction, PerDirection};

/// The report with the local time masked.
fn normal(report: &Report) -> String {
    let text = example::text(&Normal, report);
    text.replace(&clock::local(report.timestamp_ms), "(local time)")
}

/// The same bandwidth in both bases: 80,000 KiB/s are 81.92 million bytes per second.
#[test]
fn a_steady_state_has_one_bandwidth() {
    let measured = Measurement { iops: 20_000, bandwidth: 80_000 << 10, latency: 0 };
    let state = SteadyReport { window: [measured].into(), ..SteadyReport::default() };
    let mut line = Vec::new();
    write_steady_state(&state, Units { kb_base: 1024, unit_base: 0, figures: 4 }, &mut line).unwrap();
    let line = String::from_utf8(line).unwrap();
    assert!(
        line.starts_with("  steadystate  : attained=no, bw=78.1MiB/s (81.9MB/s), iops=20.0k, "),
        "{line}"
    );
}

/// The figures of the sample of a mixed asynchronous run, without its percentiles.
#[test]
fn a_mixed_asynchronous_job() {
    let expected = "
mix: (groupid=0, jobs=1): err= 0: pid=17911: (local time)
  read: IOPS=54.7k, BW=214MiB/s (224MB/s)(641MiB/3001msec)
    slat (usec): min=3, max=490, avg= 4.28, stdev= 4.46
    clat (usec): min=20, max=200, avg=23.60, stdev=25.33
     lat (usec): min=41, max=8066, avg=181.65, stdev=180.18
    clat percentiles (usec):
     |   1th=[   21],  50th=[   21],  99th=[  200]
   bw (  KiB/s): min=177720, max=247216, per=100.00%, avg=218960.00, stdev=32240.83, samples=6
   iops        : min=44430, max=61804, avg=54740.00, stdev=8060.21, samples=6
  write: IOPS=23.4k, BW=91.6MiB/s (96.0MB/s)(275MiB/3001msec)
    slat (usec): min=3, max=1877, avg= 4.49, stdev= 8.30
    clat (usec): min=61, max=8130, avg=253.16, stdev=391.69
     lat (usec): min=65, max=8148, avg=257.65, stdev=392.02
   bw (  KiB/s): min=74880, max=105736, per=100.00%, avg=93794.67, stdev=14394.57, samples=6
   iops        : min=18720, max=26434, avg=23448.67, stdev=3598.64, samples=6
  lat (nsec)   : 750=0.01%
  lat (usec)   : 50=0.10%, 100=0.52%, 250=96.56%, 500=1.70%, 750=0.08%
  lat (usec)   : 1000=0.04%
  lat (msec)   : 2=1.00%
  cpu          : usr=4.07%, sys=37.97%, ctx=17406, majf=0, minf=11
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=100.0%, 32=0.0%, >=64=0.0%
     submit    : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     complete  : 0=0.0%, 4=100.0%, 8=0.0%, 16=0.1%, 32=0.0%, 64=0.0%, >=64=0.0%
     issued rwts: total=164220,70346,0,0 short=0,0,0,0 dropped=0,0,0,0
     latency   : target=0.00ns, window=0.00ns, percentile=100.00%, depth=16

Run status group 0 (all jobs):
   READ: bw=214MiB/s (224MB/s), 214MiB/s-214MiB/s (224MB/s-224MB/s), io=641MiB (673MB), run=3001-3001msec
  WRITE: bw=91.6MiB/s (96.0MB/s), 91.6MiB/s-91.6MiB/s (96.0MB/s-96.0MB/s), io=275MiB (288MB), run=3001-3001msec

Disk stats (read/write):
  vda: ios=151146/64613, sectors=1209168/516904, merge=0/0, ticks=20189/8339, in_queue=28528, util=80.28%
";
    assert_eq!(normal(&example::mixed()), expected);
}

#[test]
fn syncs_have_a_block_of_their_own() {
    let mut report = example::mixed();
    let job = &mut report.jobs[0];
    job.sync.ios = 255;
    job.sync.lat = latency(&[(270_000, 250), (2_068_000, 5)]);
    job.depths.level[0] += 255;
    let text = normal(&report);
    let expected = "
  fsync/fdatasync/sync_file_range/syncfs:
    sync (usec): min=270, max=2068, avg=305.25, stdev=249.78
    sync percentiles (usec):
     |   1th=[  269],  50th=[  269],  99th=[ 2073]
  cpu          : ";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("total=164220,70346,0,255 short=0,0,0,0"), "{text}");
}

#[test]
fn a_job_that_failed_before_it_moved_anything() {
    let mut report = example::mixed();
    let job = &mut report.jobs[0];
    job.description = Some("fills a full disk".into());
    let error = JobError { errno: 28, what: "write on file /dev/full at offset 0, length 4096".into() };
    job.error = Some(First { worker: 0, value: error });
    job.continued_errors = Some(example::errors(1, 28));
    job.directions = PerDirection::default();
    job.directions.values[1].issued = 1;
    job.depths = Default::default();
    job.latency_classes = Default::default();
    report.groups = vec![example::group(0, &[])];
    report.disks.clear();
    let expected = "
mix: (groupid=0, jobs=1): err=28 (write on file /dev/full at offset 0, length 4096, error=No space left on device): pid=17911: (local time)
  Description  : [fills a full disk]
  cpu          : usr=4.07%, sys=37.97%, ctx=17406, majf=0, minf=11
  IO depths    : 1=0.0%, 2=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, >=64=0.0%
     submit    : 0=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     complete  : 0=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%
     issued rwts: total=0,1,0,0 short=0,0,0,0 dropped=0,0,0,0
     errors    : total=1, first_error=28/<No space left on device>
     latency   : target=0.00ns, window=0.00ns, percentile=100.00%, depth=16

Run status group 0 (all jobs):
";
    assert_eq!(normal(&report), expected);
}

#[test]
fn all_three_kinds_of_percentiles_follow_all_three_lines() {
    let mut report = example::mixed();
    let job = &mut report.jobs[0];
    (job.display.slat_percentiles, job.display.lat_percentiles) = (true, true);
    let read = &mut job.directions.values[0];
    read.slat = latency(&[(5_000, 50)]);
    read.clat = latency(&[(70_000, 50)]);
    read.lat = latency(&[(75_000, 50)]);
    let kinds: Vec<String> = normal(&report)
        .lines()
        .skip(3)
        .take(9)
        .map(|line| line.trim().split(" (").next().unwrap_or("").to_string())
        .collect();
    let tables = ["slat percentiles", "clat percentiles", "lat percentiles"];
    assert_eq!(kinds[..3], ["slat", "clat", "lat"]);
    assert_eq!([&kinds[3], &kinds[5], &kinds[7]], tables);
}

#[test]
fn values_that_were_not_measured_are_not_shown() {
    let mut report = example::mixed();
    report.jobs[0].display.synchronous = true;
    for direction in &mut report.jobs[0].directions.values {
        direction.clat = Latency::default();
        (direction.bw, direction.iops) = (Samples::default(), Samples::default());
    }
    let text = normal(&report);
    assert!(!text.contains("slat") && !text.contains("clat") && !text.contains("bw ("), "{text}");
    assert!(text.contains("\n     lat (usec)"), "{text}");
}

#[test]
fn large_bandwidths_are_in_a_larger_unit() {
    let line = |mean: f64, kb_base| {
        let mut out = Vec::new();
        let samples = samples(3, 31_470_592, 35_027_968, mean, 1024.0);
        write_bandwidth_samples(&samples, kb_base, 97.41, &mut out).expect("memory takes everything");
        String::from_utf8(out).expect("text")
    };
    let expected =
        "   bw (  MiB/s): min=30733, max=34207, per=97.41%, avg=32860.76, stdev= 1.00, samples=3\n";
    assert_eq!(line(32_860.76 * 1024.0, 1024), expected);
    assert!(line(1_044_800.0, 1024).starts_with("   bw (  KiB/s): min=31470592, "));
    assert!(line(900_000.0, 1000).starts_with("   bw (   kB/s): min=31470592, "));
    assert!(line(1_100_000.0, 1000).starts_with("   bw (  MiB/s): min=31470, "));
}

#[test]
fn a_disk_made_of_others_shows_their_averages() {
    let slave = |name: &str, reads, utilisation| DiskReport {
        name: name.into(),
        counters: DiskCounters { read_ios: reads, read_sectors: reads * 8, ..DiskCounters::default() },
        utilisation,
        slaves: Vec::new(),
    };
    let disk = DiskReport {
        slaves: vec![slave("sdh", 39_323, 99.81), slave("sdao", 3, 0.32)],
        ..slave("dm-7", 39_320, 99.82)
    };
    let mut out = Vec::new();
    write_disks(&[disk], &mut out).expect("memory takes everything");
    let expected = "
Disk stats (read/write):
    dm-7: ios=39320/0, sectors=314560/0, merge=0/0, ticks=0/0, in_queue=0, util=99.82%, aggrios=19663/0, \
                        aggsectors=157304/0, aggrmerge=0/0, aggrticks=0/0, aggrin_queue=0, aggrutil=99.81%
  sdh: ios=39323/0, sectors=314584/0, merge=0/0, ticks=0/0, in_queue=0, util=99.81%
  sdao: ios=3/0, sectors=24/0, merge=0/0, ticks=0/0, in_queue=0, util=0.32%
";
    assert_eq!(String::from_utf8(out).expect("text"), expected);
}

#[test]
fn groups_follow_all_jobs_and_a_target_is_reported() {
    let mut report = example::mixed();
    let mut second = report.jobs[0].clone();
    (second.name, second.group, second.members) = ("next".into(), 1, 4);
    second.directions = PerDirection::default();
    second.directions.values[2] = DirectionReport {
        bytes: 32 << 20,
        ios: 512,
        issued: 512,
        runtime_ms: 32,
        lat: moments(512, 13_000, 3_998_000, 60_290.0, 419_200.0),
        ..DirectionReport::default()
    };
    (second.latency_target_ns, second.latency_window_ns) = (500_000, 500_000_000);
    second.latency_percentile = 99.0;
    report.jobs.push(second);
    report.groups.push(example::group(1, &[(Direction::Trim, 32 << 20, 32)]));
    let text = normal(&report);
    let job = "     latency   : target=0.00ns, window=0.00ns, percentile=100.00%, depth=16
next: (groupid=1, jobs=4): err= 0: pid=17911: (local time)
  trim: IOPS=16.0k, BW=1000MiB/s (1049MB/s)(32.0MiB/32msec)
     lat (usec): min=13, max=3998, avg=60.29, stdev=419.20
";
    assert!(text.contains(job), "{text}");
    let target =
        "     latency   : target=500.00us, window=500.00ms, percentile=99.00%, depth=16\n\nRun status";
    assert!(text.contains(target), "{text}");
    let group = "
Run status group 1 (all jobs):
   TRIM: bw=1000MiB/s (1049MB/s), 1000MiB/s-1000MiB/s (1049MB/s-1049MB/s), io=32.0MiB (33.6MB), run=32-32msec
";
    assert!(text.contains(group), "{text}");
}

/// Two jobs, a sender and its receiver.
fn connected() -> Report {
    let mut report = example::mixed();
    let moved = |bytes| DirectionReport {
        bytes,
        ios: bytes / 4096,
        issued: bytes / 4096,
        runtime_ms: 32,
        ..DirectionReport::default()
    };
    let mut sender = report.jobs.remove(0);
    sender.directions = PerDirection::default();
    let mut receiver = sender.clone();
    sender.directions[Direction::Write] = moved(32 << 20);
    receiver.directions[Direction::Read] = moved(31 << 20);
    (sender.name, receiver.name) = ("sender".into(), "receiver".into());
    (sender.identity.block, receiver.identity.block) = (0, 1);
    (sender.connected, receiver.connected) = ([1].into(), [0].into());
    report.jobs = vec![sender, receiver];
    report
}

#[test]
fn both_ends_of_a_connection_stand_beside_each_other() {
    let as_itself = |report: &Report| {
        let program = Program { version: "iolite-0.1.0".into(), own_version: "iolite-0.1.0".into() };
        let mut out = Vec::new();
        Normal.write(report, &program, &mut out).expect("memory takes everything");
        String::from_utf8(out).expect("text")
    };
    let mut report = connected();
    let text = as_itself(&report);
    let receivers = "
     far end   : receiver: read: IOPS=248k, BW=969MiB/s (1016MB/s)(31.0MiB/32msec), 1024KiB not received
";
    let senders = "
     far end   : sender: write: IOPS=256k, BW=1000MiB/s (1049MB/s)(32.0MiB/32msec), 1024KiB not received
";
    assert!(text.contains(receivers) && text.contains(senders), "{text}");
    assert!(!normal(&report).contains("far end"), "under another name, there is no such line");
    // With several connections, the receiver of a single one is not known.
    report.jobs[0].connected.insert(2);
    assert!(!as_itself(&report).contains("not received"));
}

#[test]
fn the_lateness_of_a_replay_is_within_what_was_measured() {
    let mut late = Latency::default();
    for ns in [435_541, 435_541, 435_541] {
        late.moments.record(ns);
        late.histogram.record(ns);
    }
    assert!(late.histogram.percentiles(&[50.0])[0] > late.moments.max, "the middle of the bucket is above");
    assert_eq!(within_measured(&late, &[50.0, 99.0]), [435_541, 435_541]);
}
