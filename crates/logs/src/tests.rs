//! Tests of recorder and writer together, with real files.

use super::*;
use iolite_types::Direction;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

fn never() -> Job {
    Job::stopping_when(|| false)
}

fn settings(dir: &Path, kinds: &[LogKind]) -> Settings {
    Settings {
        files: kinds.iter().map(|&kind| (kind, path(dir, kind))).collect(),
        shared: false,
        columns: Columns { offset: true, ..Columns::default() },
        average_ns: 0,
        shown: WindowValue::Mean,
        histogram_ns: 0,
        coarseness: 6,
        form: Form::Text,
        room: 64,
        zero: None,
    }
}

fn path(dir: &Path, kind: LogKind) -> PathBuf {
    dir.join(kind.file_name("x", Some(0), false))
}

fn io(number: u64) -> Io {
    let complete = 1_000_000 + number * 1_000;
    Io {
        direction: Direction::ALL[number as usize % 2],
        length: 4096,
        offset: number * 4096,
        start: complete - 500 - number % 7,
        issue: complete - 400,
        complete,
        queued: number.is_multiple_of(2),
        priority: 0,
        first_byte: (number % 2 == 1).then_some(300),
    }
}

fn recorded(settings: &Settings, ios: impl Iterator<Item = Io>) {
    let mut recorder = Recorder::start(settings, &never(), || Ok(())).unwrap();
    recorder.begin(1_000_000);
    let mut last = 0;
    for io in ios {
        assert!(recorder.record(&io));
        last = io.complete;
    }
    recorder.finish(last).unwrap();
}

#[test]
fn nothing_is_lost_however_small_the_queue() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), &LogKind::VALUES);
    const COUNT: u64 = 100_000;
    recorded(&settings, (0..COUNT).map(io));
    let lines = |kind| fs::read_to_string(path(dir.path(), kind)).unwrap();
    let total = lines(LogKind::Total);
    assert_eq!(total.lines().count() as u64, COUNT);
    for (number, line) in total.lines().enumerate() {
        let number = number as u64;
        let expected =
            format!("{}, {}, {}, 4096, {}, 0", number / 1000, 500 + number % 7, number % 2, number * 4096);
        assert_eq!(line, expected);
    }
    assert_eq!(lines(LogKind::Submission).lines().count() as u64, COUNT / 2, "only those that were queued");
    let first_bytes = lines(LogKind::FirstByte);
    assert_eq!(first_bytes.lines().count() as u64, COUNT / 2, "only those that have one");
    assert_eq!(first_bytes.lines().nth(1), Some("0, 300, 1, 4096, 12288, 0"));
    assert!(lines(LogKind::Completion).lines().all(|line| line.split(", ").nth(1) == Some("400")));
    assert!(lines(LogKind::Iops).lines().all(|line| line.split(", ").nth(1) == Some("1")));
    assert!(lines(LogKind::Bandwidth).lines().all(|line| line.split(", ").nth(1) == Some("10240000")));
}

#[test]
fn very_long_ones_keep_all_their_digits() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), &[LogKind::Total, LogKind::Submission]);
    let hour = 3_600_000_000_000;
    let long = Io { length: 5 << 32, start: 0, issue: hour / 2, complete: hour, ..io(0) };
    recorded(&settings, [io(0), long, io(2)].into_iter());
    let total = fs::read_to_string(path(dir.path(), LogKind::Total)).unwrap();
    let lines: Vec<&str> = total.lines().collect();
    assert_eq!(lines[1], format!("3599999, {hour}, 0, {}, 0, 0", 5u64 << 32));
    assert_eq!(lines[2], "0, 502, 0, 4096, 8192, 0");
    let submission = fs::read_to_string(path(dir.path(), LogKind::Submission)).unwrap();
    assert_eq!(
        submission.lines().nth(1),
        Some(format!("3599999, {}, 0, {}, 0, 0", hour / 2, 5u64 << 32).as_str())
    );
}

#[test]
fn windows_and_histograms_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings =
        settings(dir.path(), &[LogKind::Iops, LogKind::Total, LogKind::FirstByte, LogKind::Histogram]);
    settings.average_ns = 10_000_000;
    settings.histogram_ns = 10_000_000;
    settings.columns.both = true;
    settings.shown = WindowValue::Both;
    recorded(&settings, (0..25_500).map(io));
    let total = fs::read_to_string(path(dir.path(), LogKind::Total)).unwrap();
    assert_eq!(total.lines().next(), Some("10, 502, 506, 0, 0, 0, 0"));
    // 25.5 ms: two whole windows and a half one, in two directions.
    assert_eq!(total.lines().count(), 6);
    let first_byte = fs::read_to_string(path(dir.path(), LogKind::FirstByte)).unwrap();
    assert_eq!(first_byte.lines().next(), Some("10, 300, 300, 1, 0, 0, 0"));
    assert_eq!(first_byte.lines().count(), 3, "reads have none");
    let histograms = fs::read_to_string(path(dir.path(), LogKind::Histogram)).unwrap();
    let lines: Vec<HistogramLine> =
        histograms.lines().map(|line| HistogramLine::read(line).unwrap()).collect();
    let windows: Vec<(u64, Direction)> = lines.iter().map(|line| (line.time_ms, line.direction)).collect();
    let both = |time| [(time, Direction::Read), (time, Direction::Write)];
    assert_eq!(windows, [10, 20, 25].map(both).concat(), "in the order of time");
    assert_eq!(lines.iter().flat_map(|line| &line.counts).sum::<u64>(), 25_500);
    let iops = fs::read_to_string(path(dir.path(), LogKind::Iops)).unwrap();
    // Rates times the lengths of their windows are the I/Os.
    let columns =
        |line: &str| line.split(", ").map(|column| column.parse::<u64>().unwrap()).collect::<Vec<_>>();
    let lines: Vec<Vec<u64>> = iops.lines().map(columns).collect();
    let times: Vec<u64> = lines.iter().map(|line| line[0]).collect();
    assert_eq!(times, [10, 10, 20, 20, 25, 25]);
    let length = |end| if end == 25 { 5 } else { 10 };
    assert_eq!(lines.iter().map(|line| line[1] * length(line[0])).sum::<u64>(), 25_500 * 1000);
}

#[test]
fn each_form_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let text = |form, name: &str| {
        let dir = dir.path().join(name);
        fs::create_dir(&dir).unwrap();
        const KINDS: [LogKind; 3] = [LogKind::Completion, LogKind::Total, LogKind::Histogram];
        let mut settings = settings(&dir, &KINDS);
        settings.form = form;
        settings.histogram_ns = 1_000_000;
        settings.columns = Columns { issue: true, ..settings.columns };
        recorded(&settings, (0..5_000).map(io));
        KINDS.map(|kind| fs::read(path(&dir, kind)).unwrap())
    };
    let plain = text(Form::Text, "text");
    assert_eq!(text(Form::Held { stream: 1024 }, "held"), plain);
    let packed = text(Form::Compressed { stream: 1024 }, "packed").map(|bytes| {
        let mut lines = Vec::new();
        inflate::streams(&mut bytes.as_slice(), &mut lines).unwrap();
        lines
    });
    assert_eq!(packed, plain);
}

/// The time of issue is where latencies of submission end and those of completion begin. Other values do not depend on
/// it.
#[test]
fn only_latencies_that_have_to_do_with_it_have_a_time_of_issue() {
    let columns = |average_ns| {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = settings(dir.path(), &LogKind::VALUES);
        settings.columns.issue = true;
        settings.average_ns = average_ns;
        recorded(&settings, (1..5_000).map(io));
        LogKind::VALUES.map(|kind| {
            let text = fs::read_to_string(path(dir.path(), kind)).unwrap();
            assert!(!text.is_empty(), "{kind:?}");
            text.lines().map(|line| line.split(", ").last().unwrap().parse().unwrap()).collect::<Vec<u64>>()
        })
    };
    let [bandwidth, iops, submission, completion, total, first_byte] = columns(0);
    let issued = |some: fn(&Io) -> bool| {
        let ios = (1..5_000).map(io).filter(some);
        ios.map(|io| io.issue - 1_000_000).collect::<Vec<u64>>()
    };
    assert_eq!((submission, completion), (issued(|io| io.queued), issued(|_| true)));
    assert_eq!(first_byte, issued(|io| io.first_byte.is_some()));
    assert!([bandwidth, iops, total].iter().flatten().all(|&time| time == 0));
    assert!(columns(1_000_000).iter().flatten().all(|&time| time == 0), "averages");
}

#[test]
fn another_clock_shifts_the_times() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(dir.path(), &[LogKind::Total]);
    // The worker's clock showed 1 ms when the other showed 1000 s.
    settings.zero = Some(1_000_000u64.wrapping_sub(1_000_000_000_000));
    recorded(&settings, [io(0), io(2000)].into_iter());
    let total = fs::read_to_string(path(dir.path(), LogKind::Total)).unwrap();
    let times: Vec<&str> = total.lines().map(|line| line.split(", ").next().unwrap()).collect();
    assert_eq!(times, ["1000000", "1000002"]);
}

#[test]
fn shared_files_are_added_to_and_own_ones_begin_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(dir.path(), &[LogKind::Iops]);
    let lines = || fs::read_to_string(path(dir.path(), LogKind::Iops)).unwrap().lines().count();
    recorded(&settings, (0..3).map(io));
    recorded(&settings, (0..2).map(io));
    assert_eq!(lines(), 2);
    settings.shared = true;
    recorded(&settings, (0..3).map(io));
    assert_eq!(lines(), 5);
}

#[test]
fn a_log_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(dir.path(), &[]);
    settings.files = vec![(LogKind::Total, dir.path().join("no/such/x_lat.1.log"))];
    let error = Recorder::start(&settings, &never(), || Ok(())).unwrap_err();
    assert!(error.to_string().contains("no/such/x_lat.1.log: No such file"), "{error}");
    settings.files = vec![(LogKind::Total, "/dev/full".into())];
    let mut recorder = Recorder::start(&settings, &never(), || Ok(())).unwrap();
    recorder.begin(1_000_000);
    // The worker learns of the failure at some point, and never waits forever.
    let told = (0..10_000_000).map(io).any(|io| !recorder.record(&io));
    assert!(told);
    let error = recorder.finish(0).unwrap_err();
    assert!(error.to_string().contains("/dev/full: No space left"), "{error}");
}

#[test]
fn a_recorder_that_stops_early_keeps_its_entries() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path(), &[LogKind::Total]);
    let mut recorder = Recorder::start(&settings, &never(), || Ok(())).unwrap();
    recorder.begin(1_000_000);
    (0..10).map(io).for_each(|io| assert!(recorder.record(&io)));
    drop(recorder);
    let total = fs::read_to_string(path(dir.path(), LogKind::Total)).unwrap();
    assert_eq!(total.lines().count(), 10);
    let error = Recorder::start(&settings, &never(), || {
        Err(LogError::new("its place", io::Error::other("no such CPU")))
    })
    .unwrap_err();
    assert!(error.to_string().contains("no such CPU"));
}

/// A pipe, and a function that opens both of its ends.
fn pipe(dir: &Path) -> (PathBuf, impl Fn() -> fs::File) {
    use std::os::unix::ffi::OsStrExt;
    let path = dir.join("pipe");
    let text = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the string is terminated.
    assert_eq!(unsafe { libc::mkfifo(text.as_ptr(), 0o600) }, 0);
    let held = path.clone();
    (path, move || fs::File::options().read(true).write(true).open(&held).unwrap())
}

#[test]
fn a_pipe_without_a_reader_can_be_called_off() {
    let dir = tempfile::tempdir().unwrap();
    let (path, hold) = pipe(dir.path());
    let settings = Settings { files: vec![(LogKind::Total, path)], ..settings(dir.path(), &[]) };
    let looks = Arc::new(AtomicU32::new(0));
    let theirs = Arc::clone(&looks);
    let job = Job::stopping_when(move || theirs.fetch_add(1, Ordering::Relaxed) > 3);
    let error = Recorder::start(&settings, &job, || Ok(())).unwrap_err();
    assert_eq!((error.error.raw_os_error(), looks.load(Ordering::Relaxed)), (Some(libc::EINTR), 5));
    let _held = hold();
    Recorder::start(&settings, &Job::stopping_when(|| true), || Ok(())).unwrap().finish(0).unwrap();
}

#[test]
fn an_unread_pipe_is_abandoned_only_when_the_job_stops() {
    let dir = tempfile::tempdir().unwrap();
    let (path, hold) = pipe(dir.path());
    let _held = hold();
    let settings = Settings { files: vec![(LogKind::Total, path)], ..settings(dir.path(), &[]) };
    let off = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&off);
    let job = Job::stopping_when(move || theirs.load(Ordering::Relaxed));
    let mut recorder = Recorder::start(&settings, &job, || Ok(())).unwrap();
    recorder.begin(1_000_000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(1500));
            off.store(true, Ordering::Relaxed);
        });
        // 64 KiB of lines fill the pipe; then nothing moves until the job is cancelled.
        let told = (0..100_000).map(io).any(|io| !recorder.record(&io));
        assert!(told && off.load(Ordering::Relaxed));
    });
    let error = recorder.finish(0).unwrap_err();
    assert!(error.to_string().contains("nobody reads from it, and the job was asked to stop"), "{error}");
}

#[test]
fn a_slow_reader_gets_everything_of_a_job_that_is_called_off() {
    use std::io::Read;
    let dir = tempfile::tempdir().unwrap();
    let (path, hold) = pipe(dir.path());
    let held = hold();
    let mut reader = fs::File::open(&path).unwrap();
    let settings = Settings { files: vec![(LogKind::Total, path)], ..settings(dir.path(), &[]) };
    let taken = std::thread::spawn(move || {
        let (mut taken, mut buffer) = (Vec::new(), [0; 8192]);
        while let Ok(count @ 1..) = reader.read(&mut buffer) {
            taken.extend_from_slice(&buffer[..count]);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        taken
    });
    let mut recorder = Recorder::start(&settings, &Job::stopping_when(|| true), || Ok(())).unwrap();
    drop(held);
    recorder.begin(1_000_000);
    assert!((0..50_000).map(io).all(|io| recorder.record(&io)));
    recorder.finish(0).unwrap();
    let taken = taken.join().unwrap();
    assert_eq!(taken.iter().filter(|&&byte| byte == b'\n').count(), 50_000);
}
