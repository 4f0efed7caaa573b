//! A probe leaves nothing behind. Alone in its process, so that no other test changes the counts.

mod common;

use common::config;
use iolite_engines::probe;
use iolite_options::engines::engines;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.contains("[aio]") || line.contains("io_uring")).count()
}

/// Memory locked on behalf of this process; a surviving ring would hold some.
fn pinned() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().filter(|line| line.starts_with("VmPin") || line.starts_with("VmLck")).collect()
}

#[test]
fn a_probe_leaves_nothing_behind() {
    let before = (descriptors(), mappings(), pinned());
    // (Engines that load libraries are tried in a child process.)
    for engine in engines().iter().filter(|engine| !engine.loads_library && !engine.is_stood_in_for) {
        // More often than a thread may register rings (16).
        for _ in 0..20 {
            probe(engine.name, &config(engine.name, 64)).unwrap();
        }
    }
    assert_eq!((descriptors(), mappings(), pinned()), before);
    a_ring_gives_its_registration_back();
}

/// The registration number of a ring is free again after its engine was dropped.
fn a_ring_gives_its_registration_back() {
    let registered = || {
        // A ring takes the lowest free number, and the kernel returns it: compare with a fresh ring.
        let ring = io_uring::IoUring::new(1).unwrap();
        let mut submitter = ring.submitter();
        let free = submitter.register_ring_fd().is_ok();
        if free {
            submitter.unregister_ring_fd().unwrap();
        }
        free
    };
    assert!(registered());
    for _ in 0..20 {
        probe("io_uring", &config("io_uring", 4)).unwrap();
    }
    assert!(registered(), "all of the thread's registrations are taken");
}
