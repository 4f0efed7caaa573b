//! The kernel's refusals come with the reason and the remedy.

use crate::common::*;
use iolite_engine::{Engine, EngineConfig, EngineError, Errno, OpenMode};
use iolite_engines::{Visitor, probe};
use iolite_testing::{partly_skipped, skip, this_test};

#[test]
fn too_many_aio_requests_name_the_sysctl() {
    // More than fs.aio-max-nr, but less than the kernel's arithmetic limit (4 Mi).
    let limit = std::fs::read_to_string("/proc/sys/fs/aio-max-nr").unwrap().trim().parse::<usize>().unwrap();
    if limit > 1 << 20 {
        skip!("fs.aio-max-nr is {limit}");
    }
    let error = probe("libaio", &config("libaio", limit * 2)).unwrap_err();
    assert!(matches!(error, EngineError::AioLimit { .. }), "{error:?}");
    assert!(error.to_string().contains("sysctl fs.aio-max-nr"), "{error}");
    assert_eq!(error.errno(), libc::EAGAIN);

    let error = probe("libaio", &config("libaio", 0x7000_0000)).unwrap_err();
    assert!(matches!(error, EngineError::Depth { .. }), "{error:?}");
}

#[test]
fn polled_completions_need_direct() {
    let mut config = EngineConfig::new(options("io_uring", "hipri"), 1);
    let error = probe("io_uring", &config).unwrap_err();
    assert!(matches!(error, EngineError::PolledNeedsDirect), "{error:?}");
    config.direct = true;
    probe("io_uring", &config).unwrap();
}

#[test]
fn a_device_without_poll_queues_is_an_error_of_the_unit() {
    struct Polled<'a>(&'a std::path::Path);
    impl Visitor for Polled<'_> {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            let buffers = Buffers::new(BLOCK, 2);
            let mode = OpenMode { direct: true, ..BOTH };
            if engine.open(0, &spec(self.0, 4096), mode).is_err() {
                partly_skipped(&this_test!(), "no O_DIRECT here");
                return;
            }
            engine.prepare(&buffers.layout).unwrap();
            let outcome = perform(&mut engine, &buffers.unit(1, iolite_types::Operation::Write, 0, 4096));
            assert!(matches!(outcome, Ok(4096) | Err(Errno(libc::EOPNOTSUPP))), "{outcome:?}");
            // Syncs do not go through a polled ring.
            assert_eq!(perform(&mut engine, &buffers.unit(0, iolite_types::Operation::Sync, 0, 0)), Ok(0));
        }
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("f");
    for name in ["pvsync2", "io_uring"] {
        let config = EngineConfig { direct: true, ..EngineConfig::new(options(name, "hipri"), 1) };
        with_engine(name, &config, Polled(&path));
    }
}

#[test]
fn a_polling_thread_needs_a_cpu_that_exists() {
    let options = options("io_uring", "sqthread_poll sqthread_poll_cpu=100000");
    let error = probe("io_uring", &EngineConfig::new(options, 1)).unwrap_err();
    assert!(matches!(error, EngineError::PollCpu { cpu: 100_000, .. }), "{error:?}");
}

#[test]
fn depths_beyond_the_submission_queue_are_busy_and_not_lost() {
    struct Deep;
    impl Visitor for Deep {
        type Out = ();
        fn visit<E: Engine>(self, mut engine: E) {
            // The kernel's limit is 32768 entries; the engine uses that.
            let buffers = Buffers::new(512, 40_000);
            engine.open(0, &spec(std::path::Path::new("/dev/zero"), 1 << 20), READ).unwrap();
            engine.prepare(&buffers.layout).unwrap();
            let mut taken = 0;
            for index in 0..40_000 {
                // SAFETY: the buffers live until the engine is dropped.
                match unsafe { engine.queue(&buffers.unit(index, iolite_types::Operation::Read, 0, 512)) } {
                    iolite_engine::Queued::Queued => taken += 1,
                    iolite_engine::Queued::Busy | iolite_engine::Queued::Over => break,
                    iolite_engine::Queued::Completed(outcome) => panic!("{outcome:?}"),
                }
            }
            assert_eq!(taken, 32768);
            assert_eq!(engine.commit(), Ok(32768));
            let mut done = Vec::new();
            engine.reap(32768, 32768, None, &mut done).unwrap();
            assert_eq!(done.len(), 32768);
        }
    }
    with_engine("io_uring", &config("io_uring", 40_000), Deep);
}
