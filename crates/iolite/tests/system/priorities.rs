//! I/O priorities of workers and of single I/Os.

use crate::common::{Program, is_root, scratch, trace, words};
use iolite_testing::skip;

/// The priorities of all libaio requests, as shown by strace; empty = the request has none.
fn priorities(line: &str) -> Option<Vec<String>> {
    let dir = scratch();
    let (run, log) = trace::system_calls(&Program::under_test(), dir.path(), "io_submit", &words(line))?;
    run.ok();
    let requests = log.split("aio_data=").skip(1);
    let priority = |request: &str| match request.split_once("IOPRIO_PRIO_VALUE(") {
        Some((_, rest)) => rest.split(')').next().unwrap_or_default().replace("IOPRIO_CLASS_", ""),
        None => String::new(),
    };
    Some(requests.map(priority).collect())
}

fn share(of: &[String], priority: &str) -> f64 {
    of.iter().filter(|&other| other == priority).count() as f64 / of.len() as f64
}

#[test]
fn a_share_of_the_ios_has_a_priority_of_its_own() {
    let job = "--name=j --filename=f --size=4m --ioengine=libaio --iodepth=8 --rw=randread";
    let options = "--cmdprio_percentage=30 --cmdprio_class=2 --cmdprio=3";
    let Some(found) = priorities(&format!("{job} {options}")) else { skip!("needs strace") };
    assert_eq!(found.len(), 1024);
    // For 1024 random choices, five standard deviations are 7%.
    assert!((share(&found, "BE, 3") - 0.3).abs() < 0.08, "{}", share(&found, "BE, 3"));
    assert!((share(&found, "") - 0.7).abs() < 0.08);
}

#[test]
pub fn block_sizes_have_priorities_of_their_own() {
    let job = "--name=j --filename=f --size=4m --ioengine=libaio --rw=write --bssplit=4k/50:8k/50 --prio=6";
    let options = "--cmdprio_bssplit=4k/100/2/1:8k/50/3/0";
    let Some(found) = priorities(&format!("{job} {options}")) else { skip!("needs strace") };
    let (small, large) = (share(&found, "BE, 1"), share(&found, "IDLE, 0"));
    assert!((small - 0.5).abs() < 0.12 && (large - 0.25).abs() < 0.12, "{small} {large}");
    // The other I/Os have the worker's priority.
    assert!((share(&found, "BE, 6") - 0.25).abs() < 0.12);
}

/// Only root may use the real-time class, so the kernel refuses a request that has it.
#[test]
pub fn io_uring_hands_priorities_over() {
    if !is_root() {
        skip!("only root can become another user");
    }
    let dir = scratch();
    std::os::unix::fs::chown(dir.path(), Some(12345), Some(12345)).unwrap();
    let job = "--name=j --filename=f --size=64k --ioengine=io_uring --rw=write --uid=12345 --gid=12345";
    let line = format!("{job} --create_serialize=0 --cmdprio_percentage=100");
    Program::under_test().line(dir.path(), &format!("{line} --cmdprio_class=2")).ok();
    Program::under_test().line(dir.path(), &line).refused().says("Operation not permitted");
}

#[test]
fn cmdprio_percentage_and_bssplit_exclude_each_other() {
    let dir = scratch();
    let line =
        "--name=j --filename=f --size=4k --ioengine=libaio --cmdprio_percentage=5 --cmdprio_bssplit=4k/5";
    Program::under_test().line(dir.path(), line).refused().says("exclude each other");
}

#[test]
fn workers_have_the_priority_that_was_asked_for() {
    let dir = scratch();
    let line = "--name=j --ioengine=null --size=4k --prioclass=2 --prio=5 --priohint=3";
    let Some((run, log)) =
        trace::system_calls(&Program::under_test(), dir.path(), "ioprio_set", &words(line))
    else {
        skip!("needs strace")
    };
    run.ok();
    // Older versions of strace do not know hints and print a number.
    let raw = (3u32 << 3 | 5).to_string();
    assert!(log.contains("IOPRIO_CLASS_BE") && log.contains(&raw) || log.contains("IOPRIO_HINT"), "{log}");
}
