//! Units that transfer no data, in the real loop: engines that act on names, on parts of files, or only work.

use super::delay_tests::{Time, moved, run_plan};
use super::*;
use iolite_engine::{Errno, FileSpec, OpenMode, Outcome, Queued, Unit};
use iolite_options::engines::{Data, ExtentAct, NameAct, NameKind, NameUse, UnitKind};
use iolite_options::{FileOptions, JobOptions, ReadWrite, RunOptions, SizeValue};
use iolite_os::shared::Arena;
use iolite_plan::Plan;
use iolite_types::Operation;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// Units that make files.
const MAKES_FILES: UnitKind = UnitKind::ActsOnNames(NameUse { of: NameKind::File, act: NameAct::Make });

/// An engine that calls a function for each unit.
struct Acting<F> {
    names: Arc<Mutex<Vec<PathBuf>>>,
    act: F,
}

impl<F: FnMut(&Unit, &[PathBuf]) -> Outcome> Engine for Acting<F> {
    const SYNCHRONOUS: bool = true;

    fn open(&mut self, index: u32, spec: &FileSpec, _: OpenMode) -> io::Result<()> {
        let mut names = self.names.lock().unwrap();
        assert_eq!(names.len(), index as usize, "files are told in order");
        names.push(spec.path.clone());
        Ok(())
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        Queued::Completed((self.act)(unit, &self.names.lock().unwrap()))
    }
}

/// Creates the files of a job as a run does, then runs the job with this engine, whose units are of this kind.
fn run(
    options: JobOptions,
    unit: UnitKind,
    time: Time,
    act: impl FnMut(&Unit, &[PathBuf]) -> Outcome + 'static,
) -> (Arc<Arena>, Result<(), String>) {
    let machine = iolite_host::ThisMachine::new();
    let mut plan =
        Plan::build(vec![options], &RunOptions::default(), &machine).expect("the plan is in order");
    plan.jobs[0].engine.facets.unit = unit;
    if unit == UnitKind::Works {
        plan.jobs[0].engine.facets.data = Data::Nowhere;
        plan.workers[0].files = iolite_plan::Names::default();
    }
    let layout = plan.layouts(&machine, &iolite_plan::NoStorages).expect("the layout is in order").remove(0);
    let rules = plan.creation(&plan.workers[0], &layout);
    let mut notes = Vec::new();
    creation::create("j", &rules, &layout, &mut |note| notes.push(note), &|| false).unwrap();
    let is_laid_out = matches!(unit, UnitKind::ActsOnExtents(_));
    notes.retain(|note: &String| !note.contains("making the directory"));
    assert_eq!(notes.len(), usize::from(is_laid_out), "{notes:?}");
    run_plan(&plan, &layout, time.clock(), Acting { names: Arc::default(), act })
}

fn job(directory: &Path) -> JobOptions {
    JobOptions {
        name: "j".into(),
        files: FileOptions { directory: vec![directory.display().to_string()], ..FileOptions::default() },
        ..JobOptions::default()
    }
}

#[test]
fn each_name_is_one_unit_and_nothing_is_laid_out() {
    let directory = tempfile::tempdir().unwrap();
    let options = {
        let mut options = job(directory.path());
        options.files.nrfiles = 5;
        options.files.filename_format = "below/$filenum".into();
        options.extent.filesize = Some(iolite_options::Range { low: 1 << 20, high: 1 << 20 });
        options
    };
    let act = |unit: &Unit, names: &[PathBuf]| {
        std::fs::File::create_new(&names[unit.file as usize])?;
        Ok(unit.length)
    };
    let (arena, done) = run(options, MAKES_FILES, moved(), act);
    assert_eq!(done, Ok(()));
    let stats = &arena.slot(0).stats;
    assert_eq!((stats.directions[0].ios.get(), stats.directions[0].bytes.get()), (5, 5 << 20));
    assert_eq!(stats.latencies(0)[1].moments.count, 5);
    let names = std::fs::read_dir(directory.path().join("below")).unwrap();
    let names: BTreeSet<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names, ["0", "1", "2", "3", "4"].map(String::from).into());
}

#[test]
fn a_name_that_fails_ends_the_job_with_its_error() {
    let directory = tempfile::tempdir().unwrap();
    let (arena, done) = run(
        {
            let mut options = job(directory.path());
            options.files.nrfiles = 3;
            options.extent.size = Some(SizeValue::Bytes(3 << 20));
            options
        },
        MAKES_FILES,
        moved(),
        |unit, _| if unit.file == 1 { Err(Errno(libc::EEXIST)) } else { Ok(unit.length) },
    );
    assert!(done.unwrap_err().ends_with("j.0.1, func=read"));
    assert_eq!(arena.slot(0).stats.directions[0].bytes.get(), 1 << 20);
}

#[test]
fn extents_are_acted_on_in_files_of_the_size_that_the_job_needs() {
    let directory = tempfile::tempdir().unwrap();
    let options = {
        let mut options = job(directory.path());
        options.pattern.rw = ReadWrite::RandWrite;
        options.pattern.bs = iolite_types::PerDirection::all(65_536);
        options.extent.size = Some(SizeValue::Bytes(1 << 20));
        options.files.fallocate = iolite_options::Fallocate::Truncate;
        options
    };
    let seen: &Mutex<BTreeSet<u64>> = Box::leak(Box::default());
    let (arena, done) = run(options, UnitKind::ActsOnExtents(ExtentAct::Reserve), moved(), |unit, names| {
        assert_eq!(std::fs::metadata(&names[0])?.len(), 1 << 20);
        assert_eq!((unit.operation, unit.length), (Operation::Write, 65_536));
        assert!(seen.lock().unwrap().insert(unit.offset));
        Ok(unit.length)
    });
    assert_eq!(done, Ok(()));
    let stats = &arena.slot(0).stats;
    assert_eq!((stats.directions[1].ios.get(), stats.directions[1].bytes.get()), (16, 1 << 20));
    assert_eq!(seen.lock().unwrap().len(), 16);
}

#[test]
fn work_counts_as_reads_of_nothing_and_ends_when_there_is_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let pieces: &AtomicU64 = Box::leak(Box::default());
    let (arena, done) = run(
        {
            let mut options = job(directory.path());
            options.schedule.loops = 3;
            options.extent.size = Some(SizeValue::Bytes(4096));
            options
        },
        UnitKind::Works,
        moved(),
        |unit, names| {
            assert_eq!((unit.operation, unit.length), (Operation::Work, 0));
            assert!(names.is_empty());
            let piece = pieces.fetch_add(1, Relaxed) + 1;
            Ok(u64::from(!piece.is_multiple_of(4)))
        },
    );
    assert_eq!(done, Ok(()));
    assert_eq!(pieces.load(Relaxed), 3 * 4, "three passes, each until there was no more");
    let stats = &arena.slot(0).stats;
    let read = &stats.directions[0];
    assert_eq!((read.ios.get(), read.issued.get(), read.bytes.get()), (12, 12, 0));
    assert_eq!(stats.latencies(0)[1].moments.count, 12);
    assert_eq!((stats.depths().level[0], stats.syncs.get()), (12, 0));
}

#[test]
fn work_goes_on_until_the_time_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let Time::Moved(clock) = moved() else { unreachable!() };
    let pieces: &AtomicU64 = Box::leak(Box::default());
    let options = {
        let mut options = job(directory.path());
        options.schedule.runtime = 1_000_000;
        options.schedule.time_based = true;
        options.extent.size = Some(SizeValue::Bytes(4096));
        options
    };
    let (_, done) = run(options, UnitKind::Works, Time::Moved(clock), |_, _| {
        clock.fetch_add(10_000_000, Relaxed);
        let piece = pieces.fetch_add(1, Relaxed) + 1;
        // An interruption by a signal is not a failure.
        if piece.is_multiple_of(7) { Err(Errno(libc::EINTR)) } else { Ok(1) }
    });
    assert_eq!(done, Ok(()));
    assert_eq!(pieces.load(Relaxed), 100, "pieces of 10 ms in a second");
}

#[test]
fn work_that_fails_ends_the_job() {
    let directory = tempfile::tempdir().unwrap();
    let options = {
        let mut options = job(directory.path());
        options.extent.size = Some(SizeValue::Bytes(4096));
        options
    };
    let (_, done) = run(options, UnitKind::Works, moved(), |_, _| Err(Errno(libc::ENOENT)));
    assert_eq!(done, Err("func=work".into()));
}
