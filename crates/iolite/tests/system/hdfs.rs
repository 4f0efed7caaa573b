//! `libhdfs` on a real HDFS cluster.

use crate::common::program::Running;
use crate::common::{Finished, Json, Program, scratch};
use iolite_testing::{ClosedPort, Hdfs, or_skip};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// A job in a directory of the cluster.
fn on(hdfs: &Hdfs, directory: &str, line: &str) -> String {
    let port = hdfs.port;
    format!(
        "--name=job --ioengine=libhdfs --namenode=127.0.0.1 --port={port} --hdfsdirectory={directory} {line}"
    )
}

fn run(dir: &Path, line: &str) -> Finished {
    Program::own().line(dir, line)
}

/// Runs a line with these environment variables.
fn with(dir: &Path, line: &str, variables: &[(&str, &str)]) -> Finished {
    let mut command = Command::new(&Program::own().path);
    command.args(line.split_whitespace()).current_dir(dir).envs(variables.iter().copied());
    Running::start(&mut command).wait()
}

#[track_caller]
fn report(dir: &Path, line: &str) -> Json {
    let json = Json::parse(&run(dir, &format!("{line} --output-format=json")).ok().stdout);
    json.jobs().iter().for_each(|job| job.check_consistency());
    json
}

#[track_caller]
fn refused(dir: &Path, line: &str, said: &str) {
    let refused = run(dir, line);
    assert_eq!(refused.code(), 1, "{line}: {}", refused.output());
    assert!(refused.output().contains(said), "{line}: {}", refused.output());
}

#[test]
pub fn chunks_are_written_read_verified_made_anew_and_removed() {
    let dir = scratch();
    let mut hdfs = or_skip!(Hdfs::shared());
    let on = |hdfs: &Hdfs, line: &str| on(hdfs, "/chunks", &format!("--filename=f --chunk_size=1m {line}"));
    // Writes in order, with blocks that cross the ends of chunks.
    let line = "--rw=write --bs=96k --size=2496k --verify=crc32c --iodepth=4 --fsync=8";
    let json = report(dir.path(), &on(&hdfs, line));
    assert_eq!(json.job().bytes(), [2496 << 10, 2496 << 10, 0]);
    assert_eq!(hdfs.list("/chunks"), ["f.0=1048576", "f.1=1048576", "f.2=458752"]);
    report(
        dir.path(),
        &on(&hdfs, "--rw=randread --bs=96k --size=2496k --verify=crc32c --iodepth=8 --numjobs=2"),
    );
    report(
        dir.path(),
        &on(&hdfs, "--rw=randread --bs=512-64k --bs_unaligned=1 --thread --single_instance=1 --numjobs=2"),
    );
    // Data of another type does not verify.
    refused(dir.path(), &on(&hdfs, "--rw=read --bs=96k --size=2496k --verify=md5"), "verify");
    // Whole chunks can be replaced, in any order.
    let line = "--rw=randwrite --bs=1m --size=4m --verify=crc32c --iodepth=4 --loops=2";
    assert_eq!(report(dir.path(), &on(&hdfs, line)).job().bytes()[1], 8 << 20);
    assert_eq!(hdfs.list("/chunks").len(), 4);
    report(dir.path(), &on(&hdfs, "--rw=randrw --bs=1m --size=4m --io_size=4m"));
    for (line, said) in [
        ("--rw=randwrite --bs=64k --size=4m", "65536 bytes are not a multiple of chunk_size=1048576"),
        ("--rw=rw --bs=64k --size=4m", "65536 bytes are not a multiple of chunk_size=1048576"),
        ("--rw=write:64k --bs=64k --size=4m", "rw=write:65536: files of HDFS"),
        ("--rw=trim --bs=1m --size=4m", "ioengine=libhdfs cannot trim"),
        ("--rw=read --bs=64k --size=5m", "create_only=1"),
        ("--rw=read --bs=64k --size=4m --chunk_size=512k", "more than chunk_size=524288"),
    ] {
        refused(dir.path(), &on(&hdfs, line), said);
    }
    assert_eq!(hdfs.list("/chunks").len(), 4, "refused jobs create nothing");
    report(dir.path(), &on(&hdfs, "--rw=read --bs=64k --size=4m --unlink=1"));
    assert_eq!(hdfs.list("/chunks"), [""; 0]);
}

#[test]
pub fn files_are_laid_out_listed_and_those_of_several_workers_are_apart() {
    let dir = scratch();
    let mut hdfs = or_skip!(Hdfs::shared());
    let on = |hdfs: &Hdfs, line: &str| on(hdfs, "/laid/out/", &format!("--chunk_size=256k --bs=64k {line}"));
    refused(dir.path(), &on(&hdfs, "--rw=read --filename=d/f --size=640k"), "a job that only reads");
    hdfs.tell("make /laid 755");
    assert_eq!(hdfs.list("/laid"), [""; 0], "a job that only reads has created files");
    run(dir.path(), &on(&hdfs, "--rw=write --filename=d/f --size=640k --create_only=1")).ok();
    assert_eq!(hdfs.list("/laid/out/d"), ["f.0=262144", "f.1=262144", "f.2=131072"]);
    report(dir.path(), &on(&hdfs, "--rw=read --filename=d/f"));
    let workers = "--rw=write --nrfiles=2 --size=512k --numjobs=3 --end_fsync=1";
    for how in ["--thread", "--thread --single_instance=1", ""] {
        let json = report(dir.path(), &on(&hdfs, &format!("{workers} {how}")));
        assert_eq!(json.jobs().iter().map(|job| job.bytes()[1]).collect::<Vec<_>>(), [512 << 10; 3]);
        let named = hdfs.list("/laid/out").into_iter().filter(|name| name.starts_with("job."));
        assert_eq!(named.count(), 6);
    }
    let json = report(dir.path(), &on(&hdfs, "--rw=read --opendir=/d --file_service_type=sequential"));
    assert_eq!(json.job().bytes()[0], 640 << 10);
}

#[test]
pub fn errors_of_the_cluster_are_explained() {
    let dir = scratch();
    let mut hdfs = or_skip!(Hdfs::shared());
    let port = hdfs.port;
    let write = "--rw=write --bs=64k --size=128k --hdfs_timeout=60s";
    let job = format!("--name=job --ioengine=libhdfs {write}");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = ClosedPort::new();
    let silent_port = silent.local_addr().unwrap().port();
    let here = format!("--namenode=127.0.0.1 --port={port}");
    for (line, said) in [
        ("--hdfsdirectory=/x".to_owned(), "namenode=: the host of the namenode is missing"),
        (here.clone(), "hdfsdirectory= is missing"),
        (format!("{here} --hdfsdirectory=x"), "it has to begin with a slash"),
        (format!("{here} --hdfsdirectory=/x --chunk_size=0"), "chunk_size=0"),
        (format!("{here} --hdfsdirectory=/x --single_instance=2"), "single_instance=2"),
        (format!("{here} --hdfsdirectory=/x --hdfs_use_direct=x"), "hdfs_use_direct=x"),
        (format!("{here} --hdfsdirectory=/x --hdfs_timeout=x"), "hdfs_timeout=x"),
        ("--namenode=127.0.0.1 --port=70000 --hdfsdirectory=/x".to_owned(), "port=70000"),
        (format!("--namenode=127.0.0.1:{port} --port={port} --hdfsdirectory=/x"), "and port="),
        (
            format!("--namenode=127.0.0.1 --port={} --hdfsdirectory=/x", closed.number),
            "nothing listens there",
        ),
        ("--namenode=nowhere.invalid --hdfsdirectory=/x".to_owned(), "nowhere.invalid"),
        (
            format!("--namenode=127.0.0.1 --port={silent_port} --hdfsdirectory=/x --hdfs_timeout=500ms"),
            "no answer within 0.5 s (hdfs_timeout)",
        ),
    ] {
        refused(dir.path(), &format!("{job} {line}"), said);
    }
    // (The directory belongs to the cluster's user, and others may not write there.)
    hdfs.tell("make /locked 755");
    let other = with(dir.path(), &on(&hdfs, "/locked", write), &[("HADOOP_USER_NAME", "nobody")]).refused();
    assert!(other.output().contains("Permission denied: user=nobody"), "{}", other.output());
    hdfs.tell("safemode enter");
    refused(dir.path(), &on(&hdfs, "/safe", write), "dfsadmin -safemode");
    hdfs.tell("safemode leave");
    // The whole cluster stops while a job writes. I/Os that wait for each other time out together.
    let line = "--filename=s --rw=write --bs=64k --size=640m --iodepth=16 --rate_iops=200 --hdfs_timeout=5s";
    let line = on(&hdfs, "/silent", &format!("{line} --status-interval=100ms"));
    let mut job = Program::own().start(dir.path(), line.split_whitespace());
    job.wait_until("it runs", |job| job.stdout().contains("IOPS="));
    hdfs.signal(libc::SIGSTOP);
    let ended = job.wait();
    hdfs.signal(libc::SIGCONT);
    assert_eq!(ended.code(), 1, "{}", ended.output());
    assert!(ended.output().contains("no answer within 5 s (hdfs_timeout)"), "{}", ended.output());
    // The datanode dies while one job writes and another one reads. The namenode still knows the names.
    run(dir.path(), &on(&hdfs, "/gone", &format!("{write} --filename=f"))).ok();
    let paced =
        "--bs=64k --rate_iops=50 --time_based --runtime=300 --hdfs_timeout=10s --status-interval=100ms";
    let jobs = ["--filename=w --rw=write --size=640m --verify=crc32c", "--filename=f --rw=read"];
    let mut jobs = jobs.map(|line| {
        let line = on(&hdfs, "/gone", &format!("{line} {paced}"));
        Program::own().start(dir.path(), line.split_whitespace())
    });
    jobs.iter_mut().for_each(|job| job.wait_until("it runs", |job| job.stdout().contains("IOPS=")));
    hdfs.tell("stop-datanode");
    for job in jobs {
        let ended = job.wait();
        assert_eq!(ended.code(), 1, "{}", ended.output());
        assert!(ended.output().contains("io_u error on file "), "{}", ended.output());
        let told = ended.output();
        // On a busy machine the datanode sometimes leaves the connection open, and silent.
        let is_silent = told.contains("no answer within 10 s (hdfs_timeout)");
        assert!(is_silent || told.contains("datanode"), "{told}");
        // Earlier successful writes are lost with their chunk. The message about the failure says so. The first write to
        // a chunk loses nothing: earlier chunks are closed.
        let failed_at = told.split_once("write offset=").and_then(|(_, rest)| rest.split(',').next());
        let begins_chunk = failed_at.is_some_and(|offset| offset.parse::<u64>().unwrap() % (1 << 20) == 0);
        let loses_nothing = begins_chunk || !told.contains("WRITE:");
        assert!(loses_nothing || told.contains("bytes that were written may be lost"), "{told}");
    }
    refused(
        dir.path(),
        &on(&hdfs, "/gone", "--rw=read --bs=64k --filename=f --hdfs_timeout=60s"),
        "datanode",
    );
    refused(dir.path(), &on(&hdfs, "/gone", write), "dfsadmin -report");
    hdfs.tell("start-datanode");
    run(dir.path(), &on(&hdfs, "/gone", "--rw=read --bs=64k --filename=f")).ok();
    run(dir.path(), &on(&hdfs, "/gone", &format!("{write} --filename=w --verify=crc32c"))).ok();
}

#[test]
fn the_state_of_an_interrupted_job_checks_its_writes() {
    let dir = scratch();
    let hdfs = or_skip!(Hdfs::shared());
    let job = "--filename=s --chunk_size=1m --bs=64k --rw=write --size=64m --iodepth=4 --verify=crc32c --verify_state_save=1";
    let line =
        format!("{job} --rate_iops=100 --do_verify=0 --output-format=normal,json --status-interval=100ms");
    let line = on(&hdfs, "/state", &line);
    let mut running = Program::own().start(dir.path(), line.split_whitespace());
    running.wait_until("it has written", |running| running.stdout().matches("WRITE:").count() > 3);
    running.signal(libc::SIGINT);
    let written = Json::last_in(&running.wait().stdout).job().ios()[1];
    assert!((1..1024).contains(&written), "{written} writes");
    let check = on(&hdfs, "/state", &format!("{job} --verify_only=1 --verify_state_load=1"));
    assert_eq!(report(dir.path(), &check).job().ios()[0], written, "each write is checked");
}

#[test]
pub fn options_without_effect_are_reported() {
    let dir = scratch();
    let hdfs = or_skip!(Hdfs::shared());
    let done = run(dir.path(), &on(&hdfs, "/direct", "--rw=write --size=64k --bs=64k --hdfs_use_direct=1"));
    assert!(done.ok().stderr.contains("hdfs_use_direct"));
}

#[test]
fn the_example_works() {
    let dir = scratch();
    let mut hdfs = or_skip!(Hdfs::shared());
    hdfs.tell("make /bench 777");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/servers/hdfs.fio");
    let port = hdfs.port.to_string();
    let variables = [("HDFS_NAMENODE", "127.0.0.1"), ("HDFS_PORT", &port), ("HDFS_DIRECTORY", "/bench")];
    with(dir.path(), &example.display().to_string(), &variables).ok();
    assert_eq!(hdfs.list("/bench"), [""; 0], "it leaves nothing behind");
}
