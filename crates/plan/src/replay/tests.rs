use super::*;
use crate::Names;
use crate::{FileFacts, FileKind, Plan};
use iolite_host::ThisMachine;
use iolite_options::{ReplayOptions, ReplaySkip, engines};

fn plan(trace: &Path, change: impl FnOnce(&mut JobOptions), run: &RunOptions) -> Result<Plan, Vec<String>> {
    let mut options = JobOptions {
        name: "r".into(),
        replay: ReplayOptions { read_iolog: vec![trace.display().to_string()], ..ReplayOptions::default() },
        ..JobOptions::default()
    };
    change(&mut options);
    Plan::build(vec![options], run, &ThisMachine::new())
        .map_err(|problems| problems.iter().map(Problem::to_string).collect())
}

/// A log in a new directory, and the directory.
fn log(lines: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    std::fs::write(&path, format!("fio version 3 iolog\n{lines}")).unwrap();
    (directory, path)
}

const LINES: &str =
    "0 /a add\n0 b add\n1 /a open\n1 b open\n2 /a read 8192 4096\n3 b write 0 512\n4 b read 0 512\n";

#[test]
fn the_trace_decides_the_files_and_directions_of_a_job() {
    let (_directory, path) = log(LINES);
    let plan = plan(&path, |o| o.files.directory = vec!["/tmp".into()], &RunOptions::default()).unwrap();
    let worker = &plan.workers[0];
    assert_eq!(worker.files, Names::from(vec!["/tmp/a".into(), "/tmp/b".into()]));
    assert_eq!(plan.jobs[0].options.pattern.rw, ReadWrite::Rw);
    let replay = worker.replay.as_ref().unwrap();
    assert_eq!((replay.largest, replay.bytes), (4096, Some(5120)));
    assert!(!replay.needs[0].changes() && replay.needs[1].changes());
    let facts = FileFacts { kind: FileKind::Regular, size: None };
    let files: Vec<_> = worker.files.iter().map(|file| (file.into_owned(), facts)).collect();
    let layout = replay_layout(replay, &files, true).unwrap();
    assert_eq!((layout.files[0].length, layout.files[0].extend_to), (12_288, Some(12_288)));
    assert_eq!((layout.files[1].length, layout.files[1].extend_to), (512, Some(512)));
    let small =
        [(PathBuf::from("/dev/x"), FileFacts { kind: FileKind::Block, size: Some(4096) }), files[1].clone()];
    let error = replay_layout(replay, &small, true).unwrap_err();
    let expected = "line 6 reaches byte 12288 of /dev/x, which has 4096; replay_scale=3 would make it fit";
    assert_eq!(error, format!("{}: {expected}", path.display()));
}

#[test]
fn all_goes_to_one_file_when_it_is_redirected() {
    let (_directory, path) = log(LINES);
    let plan =
        plan(&path, |o| o.replay.replay_redirect = Some("one".into()), &RunOptions::default()).unwrap();
    assert_eq!(plan.workers[0].files, Names::from(vec!["one".into()]));
    let replay = plan.workers[0].replay.as_ref().unwrap();
    assert_eq!(replay.places, [0, 0]);
    assert_eq!(replay.needs[0].end.values, [12_288, 512, 0]);
}

#[test]
fn clones_have_their_traces_in_turn() {
    let (_one, first) = log("0 a add\n0 a open\n0 a write 0 512\n");
    let (_other, second) = log("0 b add\n0 b open\n0 b read 0 512\n");
    let both = |o: &mut JobOptions| {
        o.replay.read_iolog.push(second.display().to_string());
        o.schedule.numjobs = 3;
    };
    let plan = plan(&first, both, &RunOptions::default()).unwrap();
    let files: Vec<_> =
        plan.workers.iter().map(|worker| worker.files.get(0).unwrap().display().to_string()).collect();
    assert_eq!(files, ["a", "b", "a"]);
    assert_eq!(plan.jobs[0].options.pattern.rw, ReadWrite::Rw);
}

#[test]
fn invalid_replays_are_refused_before_the_run() {
    let (directory, path) = log("0 a add\n0 a open\n0 a trim 0 512\n");
    let refused = |path: &Path, change: &dyn Fn(&mut JobOptions), readonly| {
        let run = RunOptions { readonly, ..RunOptions::default() };
        plan(path, change, &run).unwrap_err().join("; ")
    };
    let text = refused(&path, &|_| (), false);
    assert!(text.contains("line 4 trims a, which is not a block device; replay_skip=trim"), "{text}");
    let skip = |o: &mut JobOptions| o.replay.replay_skip = ReplaySkip { trim: true, ..ReplaySkip::default() };
    assert!(refused(&path, &skip, false).contains("there is no I/O in it"));
    let (_writes, writes) = log(LINES);
    assert!(
        refused(&writes, &|_| (), true).contains("the trace would change data, and --readonly forbids that")
    );
    std::fs::write(&path, "fio version 3 iolog\n0 a add\nnonsense\n").unwrap();
    assert!(refused(&path, &|_| (), false).contains("log:3: \"nonsense\" is not a time"));
    std::fs::write(&path, "something").unwrap();
    assert!(refused(&path, &|_| (), false).contains("this is not a trace"));
    assert!(refused(&directory.path().join("none"), &|_| (), false).contains("No such file"));
    let notes = |o: &mut JobOptions| o.replay.write_iolog = Some(path.display().to_string());
    assert!(refused(&writes, &notes, false).contains("holds something other than a trace"));
}

#[test]
fn a_device_that_is_not_here_is_named() {
    use iolite_trace::blk::{self, BlkRecord, ByteOrder, action, category};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let action = action::QUEUE | category::READ;
    let device = BlkRecord::device_number(4000, 7);
    let mut bytes = Vec::new();
    blk::write(&mut bytes, ByteOrder::Big, &BlkRecord { action, device, bytes: 512, ..BlkRecord::default() })
        .unwrap();
    std::fs::write(&path, bytes).unwrap();
    let text = plan(&path, |_| (), &RunOptions::default()).unwrap_err().join("; ");
    assert!(text.contains("the device 4000:7") && text.contains("replay_redirect"), "{text}");
    assert!(plan(&path, |o| o.ioengine = "null".into(), &RunOptions::default()).is_ok());
}

#[test]
fn an_io_of_an_unlikely_size_is_refused_before_a_file_grows() {
    let (_directory, path) = log("0 a add\n0 a open\n0 a read 0 512\n0 a read 512 1073741825\n");
    let text = plan(&path, |_| (), &RunOptions::default()).unwrap_err().join("; ");
    assert!(
        text.contains("log:5: a read of 1073741825 bytes") && text.contains("bs=1073741825 allows"),
        "{text}"
    );
    let allowed = |o: &mut JobOptions| o.pattern.bs = iolite_types::PerDirection::all(1_073_741_825);
    let plan = plan(&path, allowed, &RunOptions::default()).unwrap();
    assert_eq!(plan.workers[0].replay.as_ref().unwrap().largest, 1_073_741_825);
}

#[test]
fn live_replays_know_nothing_and_cannot_start_over() {
    let (directory, path) = log(LINES);
    let chunked = |o: &mut JobOptions| o.replay.read_iolog_chunked = true;
    let plan_of = plan(&path, chunked, &RunOptions::default()).unwrap();
    let replay = plan_of.workers[0].replay.as_ref().unwrap();
    assert!(replay.is_live && plan_of.workers[0].files.is_empty());
    assert_eq!(replay.largest, LIVE_LARGEST);
    let socket = directory.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let twice = |o: &mut JobOptions| {
        o.replay.read_iolog_chunked = true;
        o.schedule.loops = 2;
    };
    assert!(plan(&socket, twice, &RunOptions::default()).unwrap_err()[0].contains("only once"));
    let clones = |o: &mut JobOptions| {
        o.replay.read_iolog_chunked = true;
        o.schedule.numjobs = 2;
    };
    assert!(plan(&socket, clones, &RunOptions::default()).unwrap_err()[0].contains("only one clone"));
    assert!(engines::engine("mmap").is_some());
}

#[test]
fn traces_that_can_be_read_only_once_are_kept() {
    use std::io::Write;
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let server = std::thread::spawn(move || {
        let text = format!("fio version 3 iolog\n{LINES}");
        listener.accept().unwrap().0.write_all(text.as_bytes()).unwrap();
    });
    let plan = plan(&socket, |o| o.schedule.numjobs = 2, &RunOptions::default()).unwrap();
    server.join().unwrap();
    for worker in &plan.workers {
        let mut reader = worker.replay.as_ref().unwrap().open().unwrap();
        let mut count = 0;
        while reader.next_record().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 7);
    }
}
