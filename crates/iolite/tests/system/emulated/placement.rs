//! Data placement: writes reach the requested placement handles of an emulated NVMe device (QEMU). The device counts
//! the space that is left in the reclaim unit of each handle, and all written bytes.

use super::nvme::{json, left, without_pract};
use super::{NO_PLACEMENT, run_newest, told, told_by_peer};
use iolite_testing::vm::Ran;
use iolite_testing::{or_skip, partly_skipped, skip, this_test};

/// The number of placement handles of the namespace.
const HANDLES: usize = 4;

/// The size of a block in bytes.
const BLOCK: u64 = 4096;

/// The number of blocks in a reclaim unit.
const UNIT: i64 = 2048;

/// A job with its options, and the blocks that each handle gets; `None` = random.
type Case = (&'static str, &'static str, Option<[u64; HANDLES]>);

const CASES: [Case; 8] = [
    ("turns", "--dataplacement=fdp --bs=4k --size=32k", Some([2, 2, 2, 2])),
    ("robin", "--fdp=1 --plid_select=roundrobin --plids=3,1 --bs=4k --size=24k", Some([0, 3, 0, 3])),
    ("some", "--fdp=1 --plids=0,2-3 --bs=8k --size=48k", Some([4, 0, 4, 4])),
    ("alias", "--fdp=1 --fdp_pli=3 --bs=4k --size=16k", Some([0, 0, 0, 4])),
    (
        "scheme",
        "--data_placement=fdp --plid_select=scheme --dp_scheme=scheme --bs=4k --size=24k",
        Some([2, 1, 0, 3]),
    ),
    ("zeroes", "--fdp=1 --plids=1 --write_mode=zeroes --bs=4k --size=16k", Some([0, 4, 0, 0])),
    ("random", "--fdp=1 --plid_select=random --bs=4k --size=256k", None),
    ("chosen", "--fdp=1 --plid_select=random --plids=1-2 --bs=4k --size=128k", None),
];

/// Jobs with different handles and sizes.
const JOBS: &str = "[global]\nioengine=io_uring_cmd\nfilename=$placed\nrw=write\nbs=8k\niodepth=4\nfdp=1\n\
    [first]\nsize=64k\nplids=0\n[second]\noffset=1m\nsize=96k\nplids=2\n[third]\noffset=2m\nsize=32k\nplids=3\n";

/// Writes go to the requested handles: for each handle, the device counts down the remaining space by the written
/// blocks, and its statistics rise by the reported bytes.
#[test]
pub fn data_is_placed_as_asked_for() {
    let mut script = format!(
        "least=41\nnvme_namespaces || exit\n\
        # 12 KiB at the start go to the last handle, 4 to the second, and what no range has to the default of the device.\n\
        printf '0, 12288, 3\\n8192, 16384, 1\\n' >scheme; echo '0, 4096, 9' >beyond\n\
        nvme_placement || {{ touch no-placement; exit 0; }}\n\
        command -v nvme >/dev/null || {{ touch no-nvme; exit 0; }}\n\
        state() {{ nvme fdp status $placeddisk >$1.handles && nvme fdp stats $placing -e 1 >$1.stats; }}\n\
        cmd() {{ local who=$1 name=$2; shift 2; nvme_commands $name.$who.commands $who $name --output-format=json,normal \"$@\"; state $name.$who; }}\n\
        cat >jobs.fio <<END\n{JOBS}END\n\
        state start || exit\n"
    );
    for (name, words, _) in &CASES {
        script += &format!(
            "for who in theirs ours; do cmd $who {name} --ioengine=io_uring_cmd --filename=$placed --rw=write {words}; done\n"
        );
    }
    script += "for who in theirs ours; do cmd $who jobs --ioengine=null --size=4k jobs.fio; done\n\
        cmd ours block --ioengine=io_uring --filename=$placeddisk --direct=1 --rw=write --bs=4k --size=16k\n\
        cmd ours read --ioengine=io_uring_cmd --filename=$placed --rw=read --bs=4k --size=16k --fdp=1\n\
        ours streams --ioengine=io_uring --filename=$placeddisk --direct=1 --rw=write --bs=4k --size=16k --dataplacement=fdp\n\
        ours handle --ioengine=io_uring_cmd --filename=$placed --rw=write --bs=4k --size=16k --fdp=1 --plids=4\n\
        ours beyond --ioengine=io_uring_cmd --filename=$placed --rw=write --bs=4k --size=16k --fdp=1 --plid_select=scheme --dp_scheme=beyond\n\
        state end\n";
    let ran = or_skip!(run_newest("nvme-placement", &script));
    if ran.directory.join("no-placement").exists() {
        skip!("{NO_PLACEMENT}");
    }
    if ran.directory.join("no-nvme").exists() {
        skip!("nvme-cli is not installed");
    }
    let mut before = State::of(&ran, "start");
    for (name, _, expected) in &CASES {
        let theirs = told_by_peer(&ran, name, 0).0;
        if theirs.is_empty() {
            partly_skipped(&this_test!(), "there is no fio of release 3.41 or later");
        } else {
            let after = State::of(&ran, &format!("{name}.theirs"));
            if let Some(expected) = expected {
                assert_eq!(after.blocks_since(&before), *expected, "{name}: fio");
            }
            before = after;
        }
        let after = State::of(&ran, &format!("{name}.ours"));
        let blocks = after.blocks_since(&before);
        assert_eq!(blocks, sent(&ran, name), "{name}: the directives of the commands");
        let bytes = json(&ran, name).job().bytes()[1];
        assert_eq!(after.bytes_since(&before), [bytes, bytes], "{name}");
        assert_eq!(blocks.iter().sum::<u64>() * BLOCK, bytes, "{name}");
        match expected {
            Some(expected) => assert_eq!(blocks, *expected, "{name}"),
            // With this many random writes, each handle gets some.
            None => {
                let hit = blocks.map(|blocks| blocks > 0);
                assert_eq!(
                    hit,
                    if *name == "random" { [true; HANDLES] } else { [false, true, true, false] },
                    "{name}"
                );
            }
        }
        if !theirs.is_empty() && expected.is_some() {
            assert_eq!(writes(&ran, name, "ours"), writes(&ran, name, "theirs"), "{name}");
        }
        before = after;
    }

    // The reported bytes of each job are those of its handle.
    if ran.directory.join("jobs.theirs").exists() {
        before = State::of(&ran, "jobs.theirs");
    }
    let after = State::of(&ran, "jobs.ours");
    let report = json(&ran, "jobs");
    let told_of = |name: &str| -> u64 {
        let jobs = report.jobs();
        jobs.iter().find(|job| job.name() == name).expect("the job is reported").bytes()[1] / BLOCK
    };
    let expected = [told_of("first"), 0, told_of("second"), told_of("third")];
    assert_eq!(after.blocks_since(&before), expected);
    assert_eq!(expected, [16, 0, 24, 8]);
    assert_eq!(sent(&ran, "jobs"), expected);

    // Writes through the block layer go to the first handle by default; reads do not change anything.
    let (block, read) = (State::of(&ran, "block.ours"), State::of(&ran, "read.ours"));
    assert_eq!(block.blocks_since(&after), [4, 0, 0, 0]);
    assert_eq!(read, block);

    for (name, words) in [
        ("handle", "plids=4: the namespace has 4 placement handles"),
        ("beyond", "4 placement handles"),
        // This fails on Debian's kernels up to 6.12.
        ("streams", "the kernel has no write streams, which Linux has since 6.16"),
    ] {
        let (text, status) = told(&ran, name, "ours");
        assert!(status == 1 && text.contains(words), "{name}: {status}: {text}");
    }
    assert_eq!(State::of(&ran, "end"), read, "a refused job has written");
}

/// The device's counts: blocks left in the reclaim unit of each handle (RUAMW), and bytes written by the host (HBMW)
/// and to the medium (MBMW).
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    room: [i64; HANDLES],
    bytes: [u64; 2],
}

impl State {
    /// Parses saved output of `nvme fdp status` and `nvme fdp stats`.
    #[track_caller]
    fn of(ran: &Ran, name: &str) -> State {
        let (handles, stats) = (left(ran, &format!("{name}.handles")), left(ran, &format!("{name}.stats")));
        let rooms = handles.lines().filter_map(|line| line.split_once("(RUAMW):")?.1.trim().parse().ok());
        let of = |key: &str| -> Option<u64> {
            stats
                .lines()
                .find_map(|line| line.split_once(key)?.1.trim().trim_start_matches(':').trim().parse().ok())
        };
        let bytes = of("(HBMW)").zip(of("(MBMW)"));
        match (rooms.collect::<Vec<i64>>().try_into(), bytes) {
            (Ok(room), Some((host, medium))) => State { room, bytes: [host, medium] },
            _ => panic!("{name}: {handles}\n{stats}\n{}", ran.output),
        }
    }

    fn blocks_since(&self, before: &State) -> [u64; HANDLES] {
        // A full reclaim unit is replaced by an empty one.
        std::array::from_fn(|at| (before.room[at] - self.room[at]).rem_euclid(UNIT) as u64)
    }

    fn bytes_since(&self, before: &State) -> [u64; 2] {
        std::array::from_fn(|at| self.bytes[at] - before.bytes[at])
    }
}

/// The write commands of a job, without the flag that fio sets needlessly.
#[track_caller]
fn writes(ran: &Ran, name: &str, who: &str) -> Vec<String> {
    let commands = left(ran, &format!("{name}.{who}.commands"));
    commands.lines().filter(|line| line.contains("nvme_cmd_write")).map(without_pract).collect()
}

/// The blocks that our job's commands send to each handle. The placement identifier (the upper half of DSMGMT) is an
/// index into the list of handles here.
#[track_caller]
fn sent(ran: &Ran, name: &str) -> [u64; HANDLES] {
    let mut blocks = [0; HANDLES];
    for line in writes(ran, name, "ours") {
        let number = |key: &str| -> Option<u64> {
            let digits = line.split_once(key)?.1.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        };
        let (length, placed) =
            number("len=").zip(number("dsmgmt=")).unwrap_or_else(|| panic!("{name}: {line}"));
        blocks[usize::try_from(placed >> 16).expect("it has 16 bits")] += length + 1;
    }
    blocks
}

/// Tests devices without data placement, and invalid requests.
#[test]
fn placement_that_does_not_exist_is_refused_before_anything_is_written() {
    let ran = or_skip!(run_newest(
        "nvme-no-placement",
        "nvme_namespaces || exit\necho '0, 4096' >short\n\
        cmd() { local name=$1; shift; ours $name --ioengine=io_uring_cmd --rw=write --bs=4k --size=16k \"$@\"; }\n\
        cmd without --filename=$ng --dataplacement=fdp; cmd streams --filename=$ng --dataplacement=streams --plids=1\n\
        cmd reads --filename=$ng --rw=read --fdp=1\n\
        cmd none --filename=$ng --dataplacement=streams; cmd lacking --filename=$ng --fdp=1 --plid_select=scheme\n\
        cmd psync --filename=$disk --ioengine=psync --fdp=1; cmd wide --filename=$ng --fdp=1 --plids=65536\n\
        cmd words --filename=$ng --fdp=1 --plids=a; cmd alone --filename=$ng --plids=1\n\
        cmd missing --filename=$ng --fdp=1 --plid_select=scheme --dp_scheme=nosuch\n\
        cmd short --filename=$ng --fdp=1 --plid_select=scheme --dp_scheme=short\n"
    ));
    for (name, words) in [
        ("without", "the controller says that it has no Flexible Data Placement"),
        ("streams", "the controller says that it has no streams"),
        ("none", "plids= is missing"),
        ("lacking", "dp_scheme= is missing"),
        ("psync", "cannot say where data belongs; io_uring"),
        ("wide", "is not between 0 and 65535"),
        ("words", "plids=a"),
        ("missing", "dp_scheme=nosuch: No such file or directory"),
        ("short", "line 1 is not \"start, end, handle\": 0, 4096"),
    ] {
        let (text, status) = told(&ran, name, "ours");
        assert!(status == 1 && text.contains(words), "{name}: {status}: {text}");
    }
    assert_eq!(told(&ran, "reads", "ours").1, 0, "reads are placed nowhere");
    let (alone, status) = told(&ran, "alone", "ours");
    assert!(status == 0 && alone.contains("plids: has no effect without dataplacement"), "{alone}");
}
