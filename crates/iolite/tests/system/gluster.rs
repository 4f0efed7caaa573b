//! `gfapi` and `gfapi_async` on a real GlusterFS server.

use crate::common::program::Running;
use crate::common::{Finished, Json, Program, scratch};
use iolite_testing::{Gluster, or_skip, partly_skipped, this_test};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

const ENGINES: [&str; 2] = ["gfapi", "gfapi_async"];

fn on(engine: &str, line: &str) -> String {
    let (volume, server) = (Gluster::VOLUME, Gluster::SERVER);
    format!("--name=job --ioengine={engine} --volume={volume} --brick={server} --bs=4k {line}")
}

fn begin(gluster: &Gluster, dir: &Path, line: &str) -> Running {
    let mut command = gluster.client(&Program::own().path);
    command.args(line.split_whitespace()).current_dir(dir);
    Running::start(&mut command)
}

fn start(gluster: &Gluster, dir: &Path, line: &str) -> Finished {
    begin(gluster, dir, line).wait()
}

#[track_caller]
fn report(gluster: &Gluster, dir: &Path, line: &str) -> Json {
    let json = Json::parse(&start(gluster, dir, &format!("{line} --output-format=json")).ok().stdout);
    json.jobs().iter().for_each(|job| job.check_consistency());
    json
}

#[track_caller]
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < end, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn files_are_laid_out_written_read_trimmed_and_removed() {
    let dir = scratch();
    let gluster = or_skip!(Gluster::start(dir.path()));
    for engine in ENGINES {
        let run = |line: &str| report(&gluster, dir.path(), &on(engine, line));
        let file = gluster.brick().join(engine).join("deep/file");
        let named = format!("--filename={engine}/deep/file");
        let json = run(&format!("{named} --size=2m --rw=randwrite --iodepth=16 --verify=crc32c --fsync=64"));
        assert_eq!(json.job().bytes(), [2 << 20, 2 << 20, 0]);
        let bytes = fs::read(&file).unwrap();
        assert!(
            bytes.len() == 2 << 20 && bytes.chunks(4096).all(|block| block.iter().any(|&byte| byte != 0))
        );
        // A later job verifies these writes, and then writes itself.
        run(&format!("{named} --size=2m --rw=randread --iodepth=8 --verify=crc32c --numjobs=2"));
        run(&format!("{named} --size=2m --rw=randrw --bs=512-64k --bs_unaligned=1 --iodepth=4 --direct=1"));
        run(&format!("{named} --size=1m --rw=write --sync=dsync --fdatasync=8 --end_fsync=1 --thread"));
        let before = fs::metadata(&file).unwrap().blocks();
        assert_eq!(run(&format!("{named} --size=1m --rw=trim --bs=256k")).job().ios()[2], 4);
        assert!(fs::metadata(&file).unwrap().blocks() < before, "trims give space back");
        // Readers and writers find the files that layout has created.
        for how in ["none", "native", "posix", "truncate", "keep"] {
            run(&format!("--filename={engine}/{how} --size=256k --rw=rw --fallocate={how} --iodepth=4"));
        }
        run(&format!("--opendir={engine} --rw=read --file_service_type=sequential"));
        run(&format!("{named} --size=64k --rw=write --unlink=1"));
        assert!(!file.exists());
        for (line, said) in [
            (format!("{named} --rw=read --size=64k"), "does not exist; a job that only reads"),
            (format!("--filename={engine}/none --rw=read --size=1g"), "create_only=1"),
            (format!("--filename={engine}/deep --rw=read --size=64k"), "it is a directory"),
            (format!("{named} --rw=write --size=64k --readonly"), "--readonly"),
        ] {
            let refused = start(&gluster, dir.path(), &on(engine, &line));
            assert_eq!(refused.code(), 1, "{line}: {}", refused.output());
            assert!(refused.output().contains(said), "{line}: {}", refused.output());
        }
        assert!(!file.exists());
    }
}

#[test]
pub fn missing_servers_and_volumes_are_reported() {
    let dir = scratch();
    let gluster = or_skip!(Gluster::start(dir.path()));
    for engine in ENGINES {
        let name = format!("--name=job --ioengine={engine} --rw=write --size=64k");
        for (line, said) in [
            ("--brick=10.77.0.1", "volume= is missing"),
            ("--volume=vol", "brick= is missing"),
            ("--volume=none --brick=10.77.0.1", "volume=none: 10.77.0.1 has no such volume"),
            ("--volume=vol --brick=10.77.0.1 --single-instance=2", "single-instance=2"),
            ("--volume=vol --brick=127.0.0.1 --gluster_timeout=x", "gluster_timeout=x"),
            (
                "--volume=vol --brick=nowhere.invalid",
                "brick=nowhere.invalid: no server of GlusterFS answers there",
            ),
        ] {
            let refused = start(&gluster, dir.path(), &format!("{name} {line}"));
            assert_eq!(refused.code(), 1, "{line}: {}", refused.output());
            assert!(refused.output().contains(said), "{line}: {}", refused.output());
        }
    }
    gluster.tell(&["volume", "stop", Gluster::VOLUME]).unwrap();
    let refused = start(&gluster, dir.path(), &on("gfapi", "--rw=write --size=64k"));
    assert_eq!(refused.code(), 1);
    assert!(refused.output().contains("gluster volume status"), "{}", refused.output());
}

#[test]
pub fn workers_of_a_process_may_share_a_connection() {
    let dir = scratch();
    let gluster = or_skip!(Gluster::start(dir.path()));
    for engine in ENGINES {
        for (shares, connections) in [(0, 3), (1, 1)] {
            let line = format!(
                "--rw=randwrite --size=64k --thread --numjobs=3 --time_based --runtime=60 --rate_iops=100 \
                 --single-instance={shares} --status-interval=100ms"
            );
            let before = gluster.connections();
            let mut running = begin(&gluster, dir.path(), &on(engine, &line));
            running.wait_until("it runs", |running| running.stdout().contains("IOPS="));
            // (The connections of the checks before the run close with a delay.)
            running.wait_until("they are connected", |_| gluster.connections() == before + connections);
            running.signal(libc::SIGINT);
            let ended = running.wait();
            assert!(ended.output().contains("WRITE:"), "{}", ended.output());
            eventually("they are gone", || gluster.connections() <= before);
        }
    }
}

#[test]
pub fn a_brick_that_dies_or_hangs_is_an_error() {
    let dir = scratch();
    let gluster = or_skip!(Gluster::start(dir.path()));
    for engine in ENGINES {
        for signal in [libc::SIGSTOP, libc::SIGKILL] {
            let job = "--rw=randwrite --size=1m --iodepth=4 --sync=1 --time_based --runtime=120 --rate_iops=200 \
                       --gluster_timeout=2s --status-interval=100ms";
            let mut running = begin(&gluster, dir.path(), &on(engine, job));
            running.wait_until("it runs", |running| running.stdout().contains("IOPS="));
            gluster.signal_brick(signal);
            let ended = running.wait();
            if signal == libc::SIGSTOP {
                gluster.signal_brick(libc::SIGCONT);
            } else {
                gluster.start_brick().unwrap();
            }
            assert_eq!(ended.code(), 1, "{}", ended.output());
            assert!(
                ended.output().contains("silent for longer than 2 s (gluster_timeout)"),
                "{}",
                ended.output()
            );
            // The brick is back.
            let again = on(engine, "--rw=write --size=64k");
            eventually("it serves again", || start(&gluster, dir.path(), &again).code() == 0);
        }
    }
}

/// The same job transfers the same data in both programs, and each program reads the other's writes.
#[test]
fn it_does_what_fio_does() {
    let dir = scratch();
    let gluster = or_skip!(Gluster::start(dir.path()));
    let mut has_compared = false;
    for peer in Program::peers() {
        let run = |program: &Program, engine: &str, words: &str| {
            let header = match program.is_peer {
                true => String::new(),
                false => format!("--verify_header_format={}", peer.release.header),
            };
            let job = "--size=1m --iodepth=8 --verify=crc32c --randseed=7 --output-format=json";
            let mut command = gluster.client(&program.path);
            let line = on(engine, &format!("{job} {header} {words}"));
            command.args(line.split_whitespace()).current_dir(dir.path());
            Running::start(&mut command).wait()
        };
        let counts = |told: Finished| {
            let told = told.ok().stdout;
            let json = Json::parse(&told[told.find('{').unwrap_or_default()..]);
            (json.job().bytes(), json.job().ios())
        };
        // (fio's gfapi_async is too slow for a comparison, and fio waits ten seconds at the end of each run.)
        let theirs = run(&peer, "gfapi", "--filename=theirs --rw=randwrite --do_verify=0");
        if theirs.code() != 0 && theirs.stderr.contains("gfapi") {
            // This fio was built without the engine, or with an incompatible library.
            continue;
        }
        has_compared = true;
        let (writes, reads) = (([0, 1 << 20, 0], [0, 256, 0]), ([1 << 20, 0, 0], [256, 0, 0]));
        assert_eq!(counts(theirs), writes);
        let own = Program::called_fio(dir.path());
        for engine in ENGINES {
            let written = run(&own, engine, "--filename=ours --rw=randwrite --do_verify=0");
            assert_eq!(counts(written), writes, "{engine}");
            assert_eq!(fs::metadata(gluster.brick().join("ours")).unwrap().len(), 1 << 20, "{engine}");
            assert_eq!(counts(run(&own, engine, "--filename=theirs --rw=randread")), reads, "{engine}");
        }
        assert_eq!(counts(run(&peer, "gfapi", "--filename=ours --rw=randread")), reads);
    }
    if !has_compared {
        partly_skipped(&this_test!(), "no fio with a working gfapi is installed");
    }
}

/// Clients delay writes. The loss of a delayed write is reported when the file is synced or closed.
#[test]
fn lost_delayed_writes_are_reported() {
    let dir = scratch();
    let gluster = or_skip!(Gluster::start(dir.path()));
    for engine in ENGINES {
        let job =
            "--rw=write --size=128k --bs=4k --rate_iops=16 --gluster_timeout=2s --status-interval=100ms";
        let mut running = begin(&gluster, dir.path(), &on(engine, job));
        running.wait_until("it runs", |running| running.stdout().contains("IOPS="));
        gluster.signal_brick(libc::SIGKILL);
        let ended = running.wait();
        gluster.start_brick().unwrap();
        assert_eq!(ended.code(), 1, "{}", ended.output());
        // The loss is reported even if the job ended for another reason.
        let told = ended.output();
        let is_loss = |line: &str| {
            line.contains("what was written since the last sync may be lost")
                && line.contains("the brick is gone")
        };
        assert!(told.lines().any(is_loss), "{told}");
    }
}

#[test]
fn acknowledged_writes_survive_a_killed_brick() {
    let dir = scratch();
    let gluster = or_skip!(Gluster::start(dir.path()));
    for engine in ENGINES {
        let job = format!(
            "--filename={engine} --rw=write --size=8m --iodepth=4 --sync=1 --verify=crc32c --verify_state_save=1"
        );
        let line = format!(
            "{job} --rate_iops=200 --do_verify=0 --gluster_timeout=2s --output-format=normal,json --status-interval=100ms"
        );
        let mut running = begin(&gluster, dir.path(), &on(engine, &line));
        running.wait_until("it has written", |running| running.stdout().matches("WRITE:").count() > 3);
        gluster.signal_brick(libc::SIGKILL);
        let interrupted = running.wait();
        gluster.start_brick().unwrap();
        assert_eq!(interrupted.code(), 1, "{}", interrupted.output());
        // (Computed from bytes, because failed writes count as I/Os, too.)
        let acknowledged = Json::last_in(&interrupted.stdout).job().bytes()[1] / 4096;
        assert!((1..2048).contains(&acknowledged), "{acknowledged} writes were acknowledged");
        let check = on(engine, &format!("{job} --verify_only=1 --verify_state_load=1"));
        eventually("it serves again", || {
            start(&gluster, dir.path(), &on(engine, "--filename=again --rw=write --size=64k")).code() == 0
        });
        let checked = report(&gluster, dir.path(), &check).job().ios()[0];
        assert_eq!(checked, acknowledged, "each acknowledged write is checked");
    }
}

#[test]
fn the_example_works() {
    let dir = scratch();
    let gluster = or_skip!(Gluster::start(dir.path()));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/servers/gluster.fio");
    let mut command = gluster.client(&Program::own().path);
    command.arg(example).current_dir(dir.path());
    command.env("GLUSTER_VOLUME", Gluster::VOLUME).env("GLUSTER_SERVER", Gluster::SERVER);
    Running::start(&mut command).wait().ok();
    assert!(!gluster.brick().join("iolite-test").exists(), "it leaves nothing behind");
}
