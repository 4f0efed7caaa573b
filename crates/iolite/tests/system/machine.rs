//! What a job changes about its worker, and commands around it.

use crate::common::{Program, is_root, scratch, skipped};

#[test]
fn commands_run_before_and_after_a_job() {
    let dir = scratch();
    let args = [
        "--name=j",
        "--filename=f",
        "--size=8k",
        "--rw=write",
        "--unlink=1",
        "--exec_prerun=test ! -e ran && echo before && echo aloud >&2",
        "--exec_postrun=test ! -e f && echo after; touch ran",
    ];
    let run = Program::under_test().run(dir.path(), args).ok();
    let kept = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(kept("j.prerun.txt"), "before\naloud\n");
    assert_eq!(kept("j.postrun.txt"), "after\n");
    assert!(dir.path().join("ran").exists());
    assert!(run.stdout.contains("Saving output of prerun in j.prerun.txt"), "{run}");
}

#[test]
fn a_command_that_fails_keeps_the_job_from_running() {
    let dir = scratch();
    let args = ["--name=j", "--filename=f", "--size=8k", "--rw=write", "--exec_prerun=exit 3"];
    let run = Program::under_test().run(dir.path(), args).refused();
    assert!(run.stdout.contains("exit status: 3"), "{run}");
    assert!(!run.stdout.contains("issued rwts: total=0,2"), "{run}");
}

#[test]
fn workers_have_the_name_that_comm_gives() {
    let dir = scratch();
    for thread in ["", "--thread"] {
        // The worker's children see its name.
        let line = format!("--name=j --ioengine=null --size=4k --comm=iolite-probe {thread}");
        let mut args = crate::common::words(&line);
        args.push("--exec_postrun=cat /proc/$PPID/task/*/comm".to_owned());
        Program::under_test().run(dir.path(), &args).ok();
        let names = std::fs::read_to_string(dir.path().join("j.postrun.txt")).unwrap();
        assert!(names.lines().any(|name| name == "iolite-probe"), "{names}");
    }
}

#[test]
fn a_job_can_run_as_somebody_else() {
    if !is_root() {
        return skipped("a_job_can_run_as_somebody_else", "only root can change the user");
    }
    let dir = scratch();
    for thread in ["", "--thread"] {
        let line = format!("--name=j --ioengine=null --size=4k --uid=12345 --gid=12346 {thread}");
        let mut args = crate::common::words(&line);
        args.push("--exec_prerun=id -u; id -g".to_owned());
        // Somebody else has to be able to write there.
        std::os::unix::fs::chown(dir.path(), Some(12345), Some(12346)).unwrap();
        Program::under_test().run(dir.path(), &args).ok();
        let ids = std::fs::read_to_string(dir.path().join("j.prerun.txt")).unwrap();
        assert_eq!(ids, "12345\n12346\n", "{thread}");
        std::fs::remove_file(dir.path().join("j.prerun.txt")).unwrap();
    }
}
