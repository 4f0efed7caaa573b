//! Runs that would destroy files that they need (data, traces, states, logs, reports) are refused before any change.

use crate::common::{Program, scratch};
use crate::safety::tree;
use iolite_testing::skip;
use std::fs;
use std::path::Path;

/// Command lines that would destroy something, and a part of the message.
const REFUSED: &[(&str, &str)] = &[
    // The donor of e4defrag.
    ("--ioengine=e4defrag --filename=f --rw=write --donorname=f --inplace=1", "DONOR the data of job j"),
    ("--ioengine=e4defrag --filename=f --rw=write --donorname=./link", "DONOR the data of job j"),
    ("--ioengine=e4defrag --filename=new --rw=write --donorname=new", "DONOR the data of job j"),
    (
        "--ioengine=e4defrag --filename=f --rw=write --donorname=g --name=k --filename=g --rw=read",
        "DONOR the data of job k",
    ),
    (
        "--ioengine=e4defrag --filename=f --rw=write --donorname=trace --name=k --read_iolog=trace",
        "DONOR the trace",
    ),
    (
        "--ioengine=e4defrag --filename=f --rw=write --donorname=local-k-1-verify.state --name=k --filename=g --rw=write \
         --verify=crc32c",
        "DONOR the verify state of job k",
    ),
    (
        "--ioengine=e4defrag --filename=f --rw=write --donorname=./j_bw.1.log --write_bw_log=j",
        "DONOR a log of job j",
    ),
    ("--ioengine=e4defrag --filename=f --rw=write --donorname=w --write_iolog=./w", "DONOR a log of job j"),
    (
        "--ioengine=e4defrag --filename=f --rw=write --donorname=j.prerun.txt --exec_prerun=true",
        "DONOR the output of a program of job j (exec_prerun)",
    ),
    (
        "--ioengine=e4defrag --filename=f --rw=write --donorname=g --output=./g",
        "--output=./g: the report would go into the donor of job j (donorname=g)",
    ),
    // Outputs of programs.
    (
        "--filename=j.prerun.txt --rw=read --exec_prerun=true",
        "OUTPUT j.prerun.txt, which is the data of job j",
    ),
    (
        "--filename=j.postrun.txt --rw=write --exec_postrun=true",
        "OUTPUT j.postrun.txt, which is the data of job j",
    ),
    (
        "--filename=f --rw=read --exec_postrun=true --name=k --filename=j.postrun.txt",
        "which is the data of job k",
    ),
    ("--read_iolog=j.prerun.txt --exec_prerun=true", "OUTPUT j.prerun.txt, which is the trace"),
    (
        "--ioengine=exec --program=true --name=k --ioengine=psync --filename=j.stdout",
        "std_redirect: OUTPUT j.stdout, which",
    ),
    (
        "--ioengine=exec --program=true --name=k --ioengine=psync --filename=j.stderr",
        "which is the data of job k",
    ),
    (
        "--aux-path=d --ioengine=exec --program=true --name=k --ioengine=psync --filename=d/j.stdout",
        "of job k",
    ),
    (
        "--filename=f --rw=read --exec_prerun=true --output=j.prerun.txt",
        "--output=j.prerun.txt: the report would go into",
    ),
    // The files of the run as a whole.
    (
        "--bandwidth-log --filename=agg-read_bw.log",
        "--bandwidth-log: the log would go into agg-read_bw.log, which is the data",
    ),
    ("--bandwidth-log --filename=f:agg-trim_bw.log", "agg-trim_bw.log, which is the data of job j"),
    (
        "--trigger-file=f --filename=f",
        "--trigger-file=f: the file would be removed, and it is the data of job j",
    ),
    ("--trigger-file=./trace --read_iolog=trace", "and it is the trace that is replayed"),
    ("--filename=f --write_bw_log=x --output=x_bw.1.log", "the report would go into a log of job j"),
    // Files that are removed.
    (
        "--read_iolog=trace --name=k --ioengine=filedelete --filename=trace",
        "trace would be changed, and it is the trace",
    ),
    (
        "--read_iolog=trace --name=k --filename=trace --rw=read --unlink=1",
        "trace would be changed, and it is the trace",
    ),
    ("--read_iolog=trace --name=k --filename=trace --rw=read --unlink_each_loop=1", "trace would be changed"),
    ("--read_iolog=opens_itself --unlink=1", "opens_itself would be changed, and it is the trace"),
    (
        "--ioengine=filedelete --filename=trace --write_iolog=./trace",
        "write_iolog=./trace: the log would go into the data of job j",
    ),
    (
        "--ioengine=filedelete --filename=j_bw.1.log --write_bw_log=j",
        "the log would go into the data of job j",
    ),
    ("--ioengine=filestat --filename=j_bw.1.log --write_bw_log=j", "the log would go into the data of job j"),
    (
        "--ioengine=filedelete --filename=f --output=f",
        "--output=f: the report would go into the data of job j",
    ),
    (
        "--ioengine=filecreate --filename_format=d/f.$filenum --nrfiles=100000 --filesize=4k --output=./d/../d/f.77",
        "the report would go into the data of job j",
    ),
    (
        "--ioengine=filecreate --filename_format=j_bw.$filenum.log --nrfiles=100000 --filesize=4k --write_bw_log=j",
        "the log would go into the data of job j",
    ),
    (
        "--ioengine=filedelete --filename=f --exec_prerun=true --name=f --filename=j.prerun.txt",
        "which is the data of job f",
    ),
    (
        "--filename=f --bs=4k --rw=write --verify=crc32c --name=k --ioengine=filedelete --filename=local-j-0-verify.state",
        "local-j-0-verify.state: the run writes the verify state of job j",
    ),
    (
        "--filename=f --bs=4k --rw=write --verify=crc32c --name=k --rw=read --unlink=1 --filename=local-j-0-verify.state",
        "local-j-0-verify.state: the run writes the verify state of job j",
    ),
];

fn prepare(dir: &Path) {
    fs::create_dir(dir.join("d")).unwrap();
    for name in ["f", "g", "j_bw.1.log", "j.prerun.txt.kept", "d/j.stdout"] {
        fs::write(dir.join(name), vec![7; 256 << 10]).unwrap();
    }
    let trace = |name: &str| {
        format!("fio version 3 iolog\n0 {name} add\n0 {name} open\n0 {name} read 0 16\n0 {name} close\n")
    };
    for (name, file) in [("trace", "g"), ("j.prerun.txt.trace", "g"), ("opens_itself", "opens_itself")] {
        fs::write(dir.join(name), trace(file)).unwrap();
    }
    for name in
        ["agg-read_bw.log", "agg-trim_bw.log", "j.prerun.txt", "j.postrun.txt", "j.stdout", "j.stderr"]
    {
        fs::write(dir.join(name), trace("g")).unwrap();
    }
    std::os::unix::fs::symlink("f", dir.join("link")).unwrap();
}

#[test]
fn runs_that_destroy_needed_files_are_refused() {
    if Program::under_test().is_peer {
        skip!("fio destroys it");
    }
    let dir = scratch();
    prepare(dir.path());
    let before = tree(dir.path());
    for (line, words) in REFUSED {
        let words = words.replace("DONOR", "what the donor holds is lost, and it is");
        let words = words.replace("OUTPUT", "what the program prints would go into");
        let line = format!("--size=16k --bs=16 --name=j {line}");
        let run = Program::under_test().line(dir.path(), &line).refused().says(&words);
        assert_eq!(tree(dir.path()), before, "something has changed: {run}");
    }
}

#[test]
fn runs_that_destroy_no_needed_files_are_allowed() {
    let dir = scratch();
    prepare(dir.path());
    for line in [
        "--filename=f --rw=read --exec_prerun=true --exec_postrun=true",
        "--filename=f --rw=read --exec_prerun=true --numjobs=2",
        "--filename=f --rw=read --name=k --ioengine=exec --program=true --numjobs=2",
        "--ioengine=exec --program=true --std_redirect=0 --name=k --ioengine=psync --filename=j.stdout",
        "--filename=f --rw=read --bandwidth-log --name=k --ioengine=null --filename=agg-read_bw.log",
        "--filename=f --rw=read --trigger-file=not_there",
        "--ioengine=filedelete --filename=g --write_bw_log=x --write_iolog=y",
    ] {
        let line = format!("--size=16 --bs=4 --name=j {line}");
        Program::under_test().line(dir.path(), &line).ok();
    }
}
