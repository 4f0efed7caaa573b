//! `--stages` where a server answers: what its engine tells adds up to the latency of each I/O.

use crate::common::{Json, Program, report, scratch};
use iolite_testing::{Ceph, Ganesha, NbdServer, Tgt, or_skip};
use std::fs;
use std::path::Path;

/// Runs a job of reads, and checks that the stages of all are known and add up. The mean of each, in nanoseconds.
#[track_caller]
fn stages(dir: &Path, line: &str) -> [f64; 3] {
    let json = report(dir, &format!("--name=j --bs=4k --stages --write_stages_log=log {line}"));
    checked(dir, &json)
}

#[track_caller]
fn checked(dir: &Path, json: &Json) -> [f64; 3] {
    let all = &json.0["iolite"]["stages"][0];
    let name = if all["read"].is_object() { "read" } else { "write" };
    let told = &all[name];
    assert_eq!(told["ios"].as_u64(), Some(json.job().int(&format!("{name}.total_ios"))), "{told}");
    assert!(told["unmatched"].as_object().expect("reasons").is_empty(), "{}", told["unmatched"]);
    assert_eq!(told["stages"], serde_json::json!(["submit", "server", "reap"]));
    // Each I/O for itself: the log has them, and the latency log has its latency.
    let rows = |file: &str| -> Vec<Vec<u64>> {
        let text = fs::read_to_string(dir.join(file)).expect("there is a log");
        text.lines()
            .map(|line| line.split(", ").map(|word| word.parse().expect("a number")).collect())
            .collect()
    };
    let rows = rows("log_stages.1.log");
    assert_eq!(rows.len() as u64, told["ios"].as_u64().unwrap());
    let whole = told["whole"].as_str().expect("a word");
    let sum: u64 = rows.iter().map(|row| row[1..4].iter().sum::<u64>()).sum();
    let mean = json.job().float(&format!("{name}.{whole}_ns.mean"));
    let difference = sum as f64 / rows.len() as f64 - mean;
    assert!(difference.abs() < 1000.0, "{difference} ns: {told}");
    ["submit_ns", "server_ns", "reap_ns"].map(|key| told[key]["mean"].as_f64().expect("a mean"))
}

/// A server with a delay of its own: it is the server's time, and not ours.
#[test]
fn the_delay_of_an_nbd_server_is_the_servers() {
    let dir = scratch();
    let server = or_skip!(NbdServer::nbdkit(dir.path(), "--filter=delay memory 8M rdelay=20ms"));
    for how in ["--iodepth=1 --number_ios=10", "--iodepth=4 --number_ios=40 --thread"] {
        let line = format!("--ioengine=nbd --uri={} --rw=randread {how}", server.uri());
        let [_, server, _] = stages(dir.path(), &line);
        assert!(server >= 20e6, "{how}: {server} ns");
    }
}

#[test]
fn an_nfs_server_has_its_share_with_version_3() {
    an_nfs_server_has_its_share(3);
}

#[test]
fn an_nfs_server_has_its_share_with_version_4() {
    an_nfs_server_has_its_share(4);
}

fn an_nfs_server_has_its_share(version: u32) {
    let dir = scratch();
    let server = or_skip!(Ganesha::of_version(version, dir.path()));
    let job = format!("--ioengine=nfs --nfs_url={} --filename=a --size=1m", server.url());
    for how in ["--rw=write --iodepth=1", "--rw=randread --iodepth=16"] {
        let [_, server, _] = stages(dir.path(), &format!("{job} {how}"));
        assert!(server > 0.0, "{how}");
    }
}

#[test]
fn an_iscsi_target_has_its_share() {
    let dir = scratch();
    let target = or_skip!(Tgt::start(dir.path(), 8 << 20, 512, false));
    for how in ["--rw=randwrite --iodepth=1", "--rw=read --iodepth=16"] {
        let line = format!("--ioengine=libiscsi --filename={} --size=1m {how}", target.name(""));
        let [_, server, _] = stages(dir.path(), &line);
        assert!(server > 0.0, "{how}");
    }
}

/// Its library completes I/Os on its own threads, so there is a wake-up.
#[test]
fn ceph_has_its_share() {
    let cluster = or_skip!(Ceph::shared());
    let dir = scratch();
    cluster.tool("rbd", &format!("create --size 8 {}/staged", Ceph::POOL));
    let conf = cluster.conf().display().to_string();
    let rados = format!("--ioengine=rados --conf={conf} --filename=staged");
    let rbd = "--ioengine=rbd --rbdname=staged".to_owned();
    for job in [rados, rbd] {
        let line = format!(
            "--output-format=json --name=j {job} --pool={} --clientname=admin --bs=4k --size=1m --rw=write --iodepth=8 \
             --stages --write_stages_log=log",
            Ceph::POOL
        );
        let mut command = std::process::Command::new(&Program::own().path);
        command.args(line.split_whitespace()).current_dir(dir.path()).env("CEPH_CONF", &conf);
        let ran = crate::common::program::Running::start(&mut command).wait();
        let [_, server, reap] = checked(dir.path(), &Json::parse(&ran.ok().stdout));
        assert!(server > 0.0 && reap > 0.0, "{job}: {server} {reap}");
    }
}

/// A block that is sent back has an answer.
#[test]
fn the_other_end_of_a_connection_has_its_share() {
    let dir = scratch();
    let both = "--ioengine=net --protocol=unix --filename=sock --bs=4k --size=256k";
    let job = |own: &str| format!("--name=r {both} --pingpong --rw=read --name=s {both} {own}");
    let json = report(dir.path(), &job("--pingpong --rw=write --stages"));
    let told = &json.0["iolite"]["stages"][0];
    assert_eq!((told["job"].as_u64(), &told["write"]["ios"]), (Some(1), &serde_json::json!(64)), "{told}");
    let mean = |key: &str| told["write"][key]["mean"].as_f64().expect("a mean");
    let clat = json.jobs()[1].float("write.clat_ns.mean");
    let sum = mean("submit_ns") + mean("server_ns") + mean("reap_ns");
    assert!((sum - clat).abs() < 1000.0 && mean("server_ns") > 0.0, "{sum} {clat}");
    let refused = Program::under_test().line(dir.path(), &job("--rw=write --stages"));
    assert_eq!(refused.code(), 1);
    assert!(
        refused.output().contains("stages: only a block that is sent back has an answer"),
        "{}",
        refused.output()
    );
}
