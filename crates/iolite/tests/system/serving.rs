//! What a server permits its clients: files (`--serve-only`) and programs.

use crate::common::program::Running;
use crate::common::{Finished, Json, Program, scratch};
use crate::remote::{Agent, job, run};
use iolite_testing::skip;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// An agent with these additional arguments. It serves its directory `a` and a file that stands for a device.
fn serve(dir: &Path, words: &[&str]) -> Agent {
    let home = dir.join("a");
    fs::create_dir_all(&home).unwrap();
    fs::write(dir.join("device"), vec![0; 65_536]).unwrap();
    let mut command = Command::new(&Program::own().path);
    command.arg("--server=ip:127.0.0.1,0").arg("--insecure").arg("--serve-only=.,../device").args(words);
    Agent::of(Running::start(command.env("SECRET", "nobody-knows").current_dir(home)))
}

fn ask(dir: &Path, agent: &Agent, words: &[&str]) -> Finished {
    run(dir, &[&["--insecure"], words, &[&agent.client(), "job.fio"]].concat())
}

fn can_confine() -> bool {
    iolite_remote::confine::prepare(&[]).is_ok()
}

#[test]
pub fn only_served_files_can_be_used() {
    if !can_confine() {
        skip!("the kernel has no Landlock");
    }
    let dir = scratch();
    let agent = serve(dir.path(), &[]);
    let said = agent.running.stdout();
    assert!(
        said.contains("/a, ") && said.contains("/device and nothing else, running no programs"),
        "{said}"
    );
    let at = |name: &str| dir.path().join(name);
    // All kinds of files that a run uses.
    job(
        dir.path(),
        "[global]\nsize=64k\nbs=4k\n[one]\nrw=write\nwrite_lat_log=one\nverify=crc32c\n[two]\nfilename=../device\nrw=randrw\n\
         [three]\nioengine=io_uring\ndirectory=deep\nrw=randwrite\nfsync=4\nunlink=1\n[four]\nrw=write\nwrite_iolog=trace\n",
    );
    fs::create_dir(at("a/deep")).unwrap();
    let words = ["--output-format=json"];
    let finished = ask(dir.path(), &agent, &words).ok();
    let json = Json::parse(&finished.stdout);
    assert_eq!(json.0["client_stats"].as_array().unwrap().len(), 5, "{finished}");
    assert!(at("a/one.0.0").exists() && at("a/trace").exists());
    let logs = fs::read_dir(dir.path()).unwrap().flatten();
    assert!(logs.filter(|entry| entry.file_name().to_string_lossy().contains("_lat.1.log")).count() > 0);

    fs::create_dir(at("other")).unwrap();
    fs::write(at("other/f"), vec![7; 65_536]).unwrap();
    fs::write(at("other/far.fio"), "[a]\nioengine=null\nsize=4k\n").unwrap();
    symlink("../other/f", at("a/link")).unwrap();
    symlink("../other/new", at("a/dangling")).unwrap();
    symlink("../other", at("a/way")).unwrap();
    let before = || {
        let mut names: Vec<_> =
            fs::read_dir(at("other")).unwrap().flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        (names, fs::read(at("other/f")).unwrap())
    };
    let there = before();
    let other = at("other").display().to_string();
    let served = at("a").canonicalize().unwrap().display().to_string();
    for (line, expected) in [
        ("rw=read\nfilename=../other/f", "filename=../other/f: the server serves nothing but"),
        ("rw=write\nfilename=link", "filename=link: "),
        ("rw=write\nfilename=dangling", "filename=dangling: "),
        ("rw=write\nfilename=way/new", "filename=way/new: "),
        (&format!("rw=write\nfilename=fine:{other}/f"), "/other/f: the server"),
        ("rw=write\ndirectory=../other", "directory=../other: "),
        ("rw=write\nbuffer_pattern='../other/f'", "cannot read ../other/f: Permission denied"),
        ("rw=write\nbuffer_pattern=\"x\"'/etc/passwd'", "buffer_pattern=/etc/passwd: "),
        ("rw=write\nverify_pattern='/etc/passwd'\nverify=pattern", "verify_pattern=/etc/passwd: "),
        ("rw=read\nopendir=way", "opendir=way: "),
        ("ioengine=filecreate\nfilename=../other/new", "filename=../other/new: "),
        ("ioengine=filestat\nfilename=/etc/shadow", "filename=/etc/shadow: "),
        ("read_iolog=../other/f", "read_iolog=../other/f: "),
        ("rw=write\nwrite_iolog=../other/new", "write_iolog=../other/new: "),
        ("read_iolog=one:two\nmerge_blktrace_file=../other/new", "merge_blktrace_file=../other/new: "),
        ("rw=read\nmem=mmap:../other/new", "mem=../other/new: "),
        ("ioengine=net\nprotocol=unix\nrw=read\nfilename=../other/new", "filename=../other/new: "),
        ("ioengine=nbd\nrw=read\nuri=nbd+unix:///?socket=/run/x", "uri=/run/x: "),
        ("ioengine=nbd\nrw=read\nuri=nbd+unix:///?socket=%2Frun%2Fx", "no percent signs"),
        ("ioengine=nbd\nrw=read\nuri=nbd+unix:///?s%6fcket=/run/x", "no percent signs"),
        ("ioengine=nbd\nrw=read\nuri=\"nbd+unix:///?x=1;socket=/run/x\"", "no percent signs"),
        ("ioengine=nbd\nrw=read\nuri=nbd+unix:///?socket=fine&socket=/run/x", "no percent signs"),
        ("ioengine=net\nprotocol=unix\nrw=write\nfilename=x\nhostname=/run/x", "hostname=/run/x: "),
        ("rw=write\nbuffer_pattern='../other/f'", "the server serves nothing but"),
    ] {
        job(dir.path(), &format!("[a]\nsize=64k\n{line}\n"));
        let refused = ask(dir.path(), &agent, &[]).refused();
        assert!(refused.stderr.contains(expected) && refused.stderr.contains(&served), "{line}: {refused}");
    }
    job(dir.path(), "[a]\nioengine=null\nsize=4k\n");
    ask(dir.path(), &agent, &["--aux-path=../other"])
        .refused()
        .says("--aux-path=../other: the server serves");
    // Clients cannot even use files that every local run can read.
    fs::write(at("a/includes.fio"), "[a]\nioengine=null\ninclude /etc/passwd\n").unwrap();
    let including = ["--insecure", &agent.client(), "--remote-config=includes.fio"];
    let refused = run(dir.path(), &including).refused();
    assert!(
        refused.stderr.contains("the server serves nothing but") && !refused.stderr.contains("root:"),
        "{refused}"
    );
    let far = ["--insecure", &agent.client(), "--remote-config=../other/far.fio"];
    run(dir.path(), &far).refused().says("--remote-config=../other/far.fio: the server serves");
    // The kernel denies access to files that the server cannot check in advance.
    fs::write(
        at("a/far"),
        format!(
            "fio version 2 iolog\n{other}/f add\n{other}/f open\n{other}/f write 0 4096\n{other}/f close\n"
        ),
    )
    .unwrap();
    job(dir.path(), "[a]\nread_iolog=far\nrw=write\n");
    ask(dir.path(), &agent, &[]).refused().says("Permission denied");
    assert_eq!(before(), there, "nothing outside was touched");
    // Clients cannot read the environment of the server either.
    job(dir.path(), "[a]\nioengine=null\nsize=4k\ndescription=<${SECRET}>\n");
    let told = ask(dir.path(), &agent, &["--output-format=json"]).ok();
    assert!(!told.output().contains("nobody-knows"), "{told}");
    agent.end();
}

#[test]
pub fn programs_get_at_no_more_than_jobs() {
    if !can_confine() {
        skip!("the kernel has no Landlock");
    }
    let dir = scratch();
    let agent = serve(dir.path(), &["--serve-exec"]);
    job(dir.path(), "[a]\nioengine=null\nsize=4k\nexec_prerun=touch in\n");
    ask(dir.path(), &agent, &[]).ok();
    assert!(dir.path().join("a/in").exists());
    job(dir.path(), "[a]\nioengine=null\nsize=4k\nexec_prerun=touch ../out\n");
    ask(dir.path(), &agent, &[]).refused();
    assert!(!dir.path().join("out").exists());
    agent.end();
    // With --readonly, the kernel prevents writes as well.
    let agent = serve(dir.path(), &["--readonly"]);
    job(dir.path(), "[a]\nfilename=../device\nsize=64k\nrw=read\n");
    ask(dir.path(), &agent, &[]).ok();
    job(dir.path(), "[a]\nfilename=../device\nsize=64k\nrw=write\n");
    ask(dir.path(), &agent, &[]).refused().says("--readonly forbids that");
    agent.end();
}

#[test]
pub fn bad_server_options_are_refused_and_useless_ones_warned_of() {
    let dir = scratch();
    for (line, why) in [
        ("--server=sock:s --serve-only=nowhere", "--serve-only: "),
        ("--server=sock:s --serve-only=", "requires a value"),
        ("--server=sock:s --serve-only=,", "needs the path of a file or directory"),
        ("--server=sock:s --daemonize=nowhere/pid", "nowhere/pid: No such file"),
    ] {
        let refused = Program::own().line(dir.path(), line).refused();
        assert!(refused.stderr.contains(why), "{line}: {refused}");
    }
    let idle = Program::own().line(dir.path(), "--serve-only=/tmp --name=j --ioengine=null --size=4k").ok();
    assert!(idle.stderr.contains("--serve-only: has no effect without --server"), "{idle}");
    let agent = Agent::start(
        dir.path(),
        &[
            "--server=sock:s",
            "--aux-path=x",
            "--output-format=json",
            "--trigger=true",
            "--direct=1",
            "--status-interval=1",
        ],
    );
    let said = agent.end();
    for option in ["--aux-path", "--output-format", "--trigger", "--status-interval"] {
        assert!(said.stderr.contains(&format!("{option}: has no effect with --server")), "{said}");
    }
    assert!(said.stderr.contains("job options beside it limit nothing"), "{said}");
}

/// The programs of a job die with the agent.
#[test]
pub fn programs_of_jobs_die_with_the_agent() {
    let dir = scratch();
    fs::create_dir(dir.path().join("a")).unwrap();
    let server = format!("--server=sock:{}", dir.path().join("a/s").display());
    let agent = Agent::start(&dir.path().join("a"), &[&server, "--serve-exec"]);
    job(dir.path(), "[a]\nioengine=null\nsize=4k\nexec_prerun=exec sleep 600\n");
    let mut client = Program::own().start(dir.path(), [&agent.client(), "job.fio"]);
    let sleeper = || {
        let name = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        agent.family().into_iter().find(|pid| name(pid).trim() == "sleep")
    };
    client.wait_until("its program", |_| sleeper().is_some());
    let sleeper = sleeper().unwrap();
    agent.running.signal(libc::SIGKILL);
    client.wait();
    let until = Instant::now() + Duration::from_secs(60);
    let is_there =
        || fs::read_to_string(format!("/proc/{sleeper}/comm")).is_ok_and(|name| name.trim() == "sleep");
    while is_there() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!is_there(), "the program goes on");
    agent.running.wait();
}

/// Variables in the names of includes are resolved by the client.
#[test]
pub fn includes_are_found_by_the_variables_of_the_client() {
    let dir = scratch();
    let agent = Agent::on_socket(dir.path(), "a");
    fs::create_dir(dir.path().join("parts")).unwrap();
    fs::write(dir.path().join("parts/inc.fio"), "include more.fio\n").unwrap();
    fs::write(dir.path().join("parts/more.fio"), "bs=8k\n").unwrap();
    job(dir.path(), "[a]\nioengine=null\nsize=64k\nrw=read\ninclude ${PARTS}/inc.fio\n");
    let mut command = Command::new(&Program::own().path);
    command.args(["--output-format=json", &agent.client(), "job.fio"]).env("PARTS", dir.path().join("parts"));
    let finished = Running::start(command.current_dir(dir.path())).wait().ok();
    let json = Json::parse(&finished.stdout);
    assert_eq!(json.0["client_stats"][0]["read"]["total_ios"], 8, "{finished}");
    agent.end();
}
