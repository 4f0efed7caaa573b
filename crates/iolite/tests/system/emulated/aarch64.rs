//! The program for aarch64 on machines with such processors, with pages of 4, 16 and 64 KiB, and files that programs for
//! both architectures exchange.

use crate::common::Program;
use iolite_testing::vm::{Other, Ran, run_on};
use iolite_testing::{or_skip, partly_skipped, skip, this_test};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// All kinds of machines.
const MACHINES: [Other; 3] = [Other::Arm64, Other::Arm64Pages16K, Other::Arm64Pages64K];

/// The program for aarch64, which `scripts/test --everything` builds.
fn program() -> Result<PathBuf, String> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/aarch64-unknown-linux-gnu/debug/iolite");
    path.canonicalize()
        .map_err(|_| "there is no program for aarch64 (scripts/cross aarch64 cargo build)".to_owned())
}

/// Runs a script on a machine, with the function `ours NAME WORD…`, whose output goes to the file NAME, and which ends the
/// script if a job fails.
fn run(machine: Other, name: &str, script: &str) -> Result<Ran, String> {
    let program = program()?;
    let prelude = format!(
        r#"
ours() {{
    local name=$1 status
    shift
    '{}' --name=j --output-format=terse "$@" >"$name" 2>&1 && return
    status=$?
    echo "$name ends with $status:"
    cat "$name"
    exit 1
}}
set -e
"#,
        program.display()
    );
    let ran = run_on(machine, name, &(prelude + script))?;
    assert_eq!(ran.status, 0, "{machine:?}: {}", ran.output);
    Ok(ran)
}

/// Runs it on all machines; leaves the test if one of them is missing.
macro_rules! on_all {
    ($name:literal, $script:expr) => {
        for machine in MACHINES {
            or_skip!(run(machine, $name, $script));
        }
    };
}

#[test]
fn local_engines_write_what_they_then_verify() {
    on_all!(
        "engines",
        r#"
truncate -s 256M image
modprobe -a loop ext4
mkfs.ext4 -q image
mkdir mounted
mount -o loop image mounted
cd mounted
trap "cd /; umount -l '$PWD'" EXIT
for engine in psync sync vsync pvsync pvsync2 libaio io_uring posixaio mmap splice; do
    for direct in 0 1; do
        [[ $engine != mmap || $direct == 0 ]] || continue
        ours "$engine$direct" --ioengine=$engine --direct=$direct --size=2M --bs=4k --iodepth=8 --rw=randwrite --verify=crc32c
    done
done
for kind in crc7 crc16 crc32 crc64 md5 sha1 sha256 sha512 sha3-256 xxhash; do
    ours "$kind" --verify=$kind --size=256k --bs=4k --rw=randwrite
done
"#
    );
}

#[test]
fn buffers_are_of_every_kind_of_memory() {
    on_all!(
        "memory",
        r#"
echo 8 >/proc/sys/vm/nr_hugepages
size=
if [[ -e /sys/kernel/mm/hugepages/hugepages-524288kB ]]; then
    # With pages of 64 KiB, the default is 512 MiB, which this machine does not have in one piece.
    echo 8 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
    size=--hugepage-size=2m
fi
for kind in malloc shm shmhuge mmap mmaphuge mmapshared; do
    ours "$kind" --mem=$kind $size --size=256k --bs=16k --rw=randrw --verify=crc32c
done
"#
    );
}

#[test]
fn nvme_commands_and_rings_reach_a_device() {
    on_all!(
        "nvme",
        r#"
modprobe nvme
for ((try = 0; try < 100; try++)); do [[ ! -e /dev/ng0n1 ]] || break; sleep 0.1; done
ours commands --ioengine=io_uring_cmd --cmd_type=nvme --filename=/dev/ng0n1 --size=1M --bs=4k --rw=randwrite --verify=crc32c
ours ring --ioengine=io_uring --filename=/dev/nvme0n1 --direct=1 --registerfiles=1 --fixedbufs=1 --iodepth=16 --size=1M --bs=4k \
    --rw=randwrite --verify=crc32c
"#
    );
}

#[test]
fn the_clock_is_the_processors_counter() {
    for machine in MACHINES {
        let program = or_skip!(program());
        let script = format!("'{}' --cpuclock-test", program.display());
        let ran = or_skip!(run(machine, "clock", &script));
        let found =
            ran.output.contains("the processor's invariant counter") && ran.output.contains("none went back");
        assert!(found, "{machine:?}: {}", ran.output);
    }
}

/// The same jobs for both programs. Each leaves the data of a seed, the I/Os of a distribution, verified data with its
/// state, and logs.
const JOBS: [(&str, &str); 2] = [
    (
        "plain",
        "--filename=plain --size=768k --bs=4k --rw=randwrite --random_distribution=zipf:1.1 --write_iolog=ios --write_lat_log=j",
    ),
    (
        "checked",
        "--filename=checked --size=256k --bs=4k --rw=randwrite --verify=crc32c --do_verify=0 --verify_state_save=1",
    ),
];

/// The job that reads verified data with the state of the program which wrote it.
const CHECK: &str =
    "--filename=checked --size=256k --bs=4k --rw=randread --verify=crc32c --verify_state_load=1";

/// The files that the jobs leave.
const LEFT: [&str; 5] = ["plain", "ios", "checked", "local-j-0-verify.state", "j_lat.1.log"];

#[test]
fn programs_for_both_architectures_read_each_others_files() {
    // Below the project, which has the same path there.
    let directory =
        tempfile::Builder::new().prefix("exchange-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let own = Program::own();
    if own.path.components().any(|part| part.as_os_str() == "aarch64-unknown-linux-gnu") {
        skip!("the tests themselves are for aarch64");
    }
    for (_, line) in JOBS {
        own.line(directory.path(), &format!("--name=j {line}")).ok();
    }
    let lines = JOBS.map(|(name, line)| format!("ours {name}.out {line}\n")).concat();
    let script = format!(
        "mkdir theirs; cd theirs; cp '{}'/* .; ours check {CHECK}; ours replay --filename=plain --read_iolog=ios; cd ..\n{lines}",
        directory.path().display()
    );
    let ran = or_skip!(run(Other::Arm64, "exchange", &script));
    for (name, same) in [("plain", true), ("ios", false)] {
        let [here, there] =
            [directory.path(), &ran.directory].map(|at| fs::read(at.join(name)).unwrap_or_default());
        if there.is_empty() {
            // Large files stay in the machine.
            partly_skipped(&this_test!(), &format!("{name} was not copied out of the machine"));
        } else if same {
            assert!(here == there, "{name} differs between the architectures");
        } else {
            let ios = |log: &[u8]| {
                let text = String::from_utf8_lossy(log).into_owned();
                text.lines()
                    .map(|line| line.split_once(' ').map_or(line, |(_, io)| io).to_owned())
                    .collect::<Vec<_>>()
            };
            assert_eq!(ios(&here), ios(&there), "{name}");
        }
    }
    let back = tempfile::Builder::new().prefix("exchange-").tempdir().unwrap();
    for name in LEFT {
        let from = ran.directory.join(name);
        if from.exists() {
            fs::copy(from, back.path().join(name)).unwrap();
        }
    }
    own.line(back.path(), &format!("--name=j {CHECK}")).ok();
    own.line(back.path(), "--name=j --filename=plain --read_iolog=ios").ok();
}

#[test]
fn agents_and_clients_of_both_architectures_work_together() {
    let cross = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/cross");
    let (ours, theirs) = (Program::own().path, or_skip!(program()));
    // The program for aarch64, emulated.
    let there = || {
        let mut command = Command::new(&cross);
        command.arg("aarch64").arg(&theirs);
        command
    };
    let here = || Command::new(&ours);
    let known = there().arg("--version").output().expect("a script can be started");
    if !known.status.success() {
        skip!("programs for aarch64 do not run here: {}", String::from_utf8_lossy(&known.stderr).trim());
    }
    let reports = [(there(), here()), (here(), there()), (here(), here())].map(|(mut agent, mut client)| {
        let directory = crate::common::scratch();
        let socket = directory.path().join("socket");
        let place = format!("sock:{}", socket.display());
        let job = directory.path().join("job.fio");
        let text = format!(
            "[j]\nfilename={}\nsize=1M\nbs=4k\nrw=randwrite\nverify=crc32c\n",
            directory.path().join("data").display()
        );
        fs::write(&job, text).unwrap();
        let mut agent = Ended(
            agent
                .arg(format!("--server={place}"))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        while !socket.exists() {
            assert!(agent.0.try_wait().unwrap().is_none(), "the agent has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        let ran =
            client.arg(format!("--client={place}")).arg("--output-format=json").arg(&job).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        let report: serde_json::Value =
            serde_json::from_str(&text[text.find('{').expect("a report")..]).unwrap();
        let job = &report["client_stats"][0];
        [&job["read"], &job["write"]]
            .map(|part| [&part["total_ios"], &part["io_bytes"]].map(|value| value.as_u64()))
    });
    assert_eq!(reports, [[[Some(256), Some(1 << 20)]; 2]; 3]);
}

/// A process that is killed when the test ends.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
