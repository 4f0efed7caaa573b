use super::figures::Figures;
use super::*;
use serde_json::{Value, json};

fn setup(change: impl FnOnce(&mut Setup)) -> Setup {
    let mut setup = Setup {
        directory: "/d".to_owned(),
        machines: 1,
        tasks: 2,
        files: 100,
        is_shared: false,
        depth: 0,
        breadth: 2,
        size: 4096,
        seconds: None,
        shift: 0,
        data: 64 << 20,
        phases: PLAIN.to_vec(),
        bucket: None,
    };
    change(&mut setup);
    setup
}

fn job(course: &Course, phase: Phase) -> String {
    course.job(phase, Machine::Number(0), &[], course.most(phase)).expect("there is something to do")
}

#[test]
fn phases_are_checked() {
    assert_eq!(setup(|_| ()).check(), Ok(()));
    assert_eq!(setup(|setup| setup.phases = IO500.to_vec()).check(), Ok(()));
    let wrong = |phases: &[Phase]| setup(|setup| setup.phases = phases.to_vec()).check().unwrap_err();
    assert!(wrong(&[Phase::Stat]).contains("stat needs create before it"));
    assert!(wrong(&[Phase::Create, Phase::Unlink, Phase::Stat]).contains("stat comes too late: unlink"));
    assert!(wrong(&[Phase::Mkdir, Phase::Rmdir, Phase::Dirstat]).contains("dirstat comes too late: rmdir"));
    assert!(wrong(&[Phase::Create, Phase::Create]).contains("named twice"));
    assert!(setup(|setup| setup.size = 0).check().unwrap_err().contains("--size="));
    let tree = setup(|setup| (setup.depth, setup.breadth) = (3, 10)).check().unwrap_err();
    assert!(tree.contains("1111 directories"), "{tree}");
    // A tree beyond all numbers.
    assert!(setup(|setup| (setup.depth, setup.breadth) = (32, 65_536)).check().is_err());
}

#[test]
fn objects_are_the_blocks_of_a_name() {
    let bucket = vec![("ioengine".to_owned(), "http".to_owned())];
    let with = |change: fn(&mut Setup)| {
        let mut setup = setup(change);
        setup.directory = "/b/x".to_owned();
        setup.bucket = Some(bucket.clone());
        Course::new(setup)
    };
    let mut course = with(|setup| (setup.phases, setup.files, setup.shift) = (OBJECTS.to_vec(), 1500, 1));
    let create = job(&course, Phase::Create);
    assert!(create.contains("[global]\nioengine=http\nrw=write\nbs=4096\n"), "{create}");
    assert!(create.contains("[w0.1]\nfilename=/b/x/w0.1/f\noffset=0\nsize=6144000\n"), "{create}");
    course.finish(Phase::Create, 1500);
    let stat = job(&course, Phase::Stat);
    assert!(stat.contains("http_read=head\n") && stat.contains("[w0.1]\nfilename=/b/x/w0.0/f\n"), "{stat}");
    let list = job(&course, Phase::Readdir);
    assert!(
        list.contains("http_s3_list=1000\n") && list.contains("[w0.0]\nfilename=/b/x/w0.0/f\nsize=8192\n")
    );
    assert_eq!((course.exactly(Phase::Readdir), course.entries(Phase::Readdir)), (Some(2), Some(3000)));
    assert!(job(&course, Phase::Unlink).contains("rw=trim\n"));
    let mut shared = with(|setup| (setup.phases, setup.is_shared) = (OBJECTS.to_vec(), true));
    shared.finish(Phase::Create, 1500);
    assert!(job(&shared, Phase::Readdir).contains("filename=/b/x/all\nsize=12288\n"));
}

#[test]
fn each_worker_has_names_of_its_own() {
    let mut course = Course::new(setup(|setup| setup.shift = 1));
    let create = job(&course, Phase::Create);
    assert!(create.contains("ioengine=filewrite") && create.contains("bs=4096\n"), "{create}");
    assert!(create.contains("[w0.0]\nfilename_format=w0.0/f$filenum\nnrfiles=100\n"), "{create}");
    assert!(create.contains("[w0.1]\nfilename_format=w0.1/f$filenum\n"), "{create}");
    course.finish(Phase::Create, 100);
    let stat = job(&course, Phase::Stat);
    assert!(stat.contains("[w0.0]\nfilename_format=w0.1/f$filenum\n"), "those of the next worker: {stat}");
    assert!(stat.contains("[w0.1]\nfilename_format=w0.0/f$filenum\n"), "{stat}");
    // Later phases find renamed files.
    course.finish(Phase::Rename, 100);
    assert!(job(&course, Phase::Unlink).contains("filename_format=w0.0/f$filenum.new\n"));
    let shared = Course::new(setup(|setup| setup.is_shared = true));
    assert!(job(&shared, Phase::Mkdir).contains("filename_format=all/0.1.d$filenum\n"));
}

#[test]
fn machines_have_their_own_files_and_ranks_one_for_all() {
    let course = Course::new(setup(|setup| (setup.machines, setup.shift, setup.tasks) = (3, 1, 1)));
    let of = |machine, phase| course.job(phase, machine, &[], 5).unwrap();
    assert!(of(Machine::Number(2), Phase::Create).contains("[w2.0]\nfilename_format=w2.0/f$filenum\n"));
    assert!(of(Machine::Number(2), Phase::Stat).contains("[w2.0]\nfilename_format=w0.0/f$filenum\n"));
    assert!(
        of(Machine::Rank, Phase::Create).contains("[w0]\nfilename_format=w${IOLITE_META_RANK}.0/f$filenum\n")
    );
    assert!(
        of(Machine::Rank, Phase::Stat).contains("[w0]\nfilename_format=w${IOLITE_META_OTHER}.0/f$filenum\n")
    );
}

#[test]
fn workers_take_turns_in_the_hard_file() {
    let mut course = Course::new(setup(|setup| setup.phases = IO500.to_vec()));
    let write = course.job(Phase::IorHardWrite, Machine::Number(0), &[], 10).unwrap();
    // Ten transfers of a worker reach over nine of the other.
    assert!(
        write.contains("rw=write:47008\noffset=((0+(0*2+1))*47008)\nsize=893152\nio_size=470080\n"),
        "{write}"
    );
    let later = course.job(Phase::IorHardWrite, Machine::Number(0), &[10, 7], 10).unwrap();
    assert!(!later.contains("[w0.0]"), "it has nothing to catch up: {later}");
    assert!(later.contains("offset=((14+(0*2+1))*47008)\nsize=235040\nio_size=141024\n"), "{later}");
    course.finish(Phase::IorHardWrite, 10);
    let read = job(&course, Phase::IorHardRead);
    assert!(read.contains("rw=read:47008\n") && read.contains("allow_file_create=0\n"), "{read}");
}

#[test]
fn a_limit_holds_for_phases_that_create_and_others_catch_up() {
    let course = Course::new(setup(|setup| setup.seconds = Some(1.5)));
    assert!(job(&course, Phase::Create).contains("runtime=1500ms\n"));
    let rest = course.job(Phase::Create, Machine::Number(0), &[40, 60], 60).unwrap();
    assert!(!rest.contains("runtime="), "{rest}");
    assert!(
        rest.contains("[w0.0]\nfilename_format=w0.0/f$filenum\nnrfiles=20\nfilenum_first=40\n"),
        "{rest}"
    );
    assert!(!rest.contains("[w0.1]"), "{rest}");
    assert_eq!(course.job(Phase::Create, Machine::Number(0), &[60, 60], 60), None);
}

#[test]
fn a_find_looks_at_everything_once() {
    let mut course = Course::new(setup(|setup| (setup.phases, setup.shift) = (IO500.to_vec(), 1)));
    course.finish(Phase::MdtestEasyWrite, 10);
    course.finish(Phase::MdtestHardWrite, 20);
    course.finish(Phase::IorEasyWrite, 2);
    course.finish(Phase::IorHardWrite, 2);
    let find = job(&course, Phase::Find);
    assert!(
        find.contains("[w0.0]\nfilename=/d/w0.1:/d/hard\n") && find.contains("[w0.1]\nfilename=/d/w0.0\n")
    );
    assert_eq!(course.entries(Phase::Find), Some(2 * (10 + 20)));
    let ranks = course.job(Phase::Find, Machine::Rank, &[], 0).unwrap();
    assert!(ranks.contains("[w0]\nfilename=/d/w${IOLITE_META_RANK}.1${IOLITE_META_HARD}\n"), "{ranks}");
}

#[test]
fn the_tree_on_disk_follows_from_the_phases() {
    use super::expected::Kind;
    let mut course = Course::new(setup(|setup| (setup.depth, setup.tasks, setup.size) = (1, 1, 10)));
    let paths = |course: &Course| -> Vec<String> {
        let kind = |kind| match kind {
            Kind::Directory => "/".to_owned(),
            Kind::File { size, links } => format!(" {size} {links}"),
            Kind::AtLeast(size) => format!(" {size}+"),
        };
        course.expected().map(|entry| format!("{}{}", entry.path, kind(entry.kind))).collect()
    };
    course.finish(Phase::Mkdir, 2);
    course.finish(Phase::Create, 4);
    let files = ["w0.0/f0 10 1", "w0.0/t0/f1 10 1", "w0.0/t1/f2 10 1", "w0.0/f3 10 1"];
    assert_eq!(paths(&course), [&files[..], &["w0.0/d0/", "w0.0/t0/d1/"]].concat());
    course.finish(Phase::Rmdir, 2);
    course.finish(Phase::Link, 4);
    course.finish(Phase::Rename, 4);
    assert_eq!(
        paths(&course)[..4],
        ["w0.0/f0.new 10 2", "w0.0/t0/f1.new 10 2", "w0.0/t1/f2.new 10 2", "w0.0/f3.new 10 2"]
    );
    assert_eq!(
        paths(&course)[4..],
        ["w0.0/f0.link 10 2", "w0.0/t0/f1.link 10 2", "w0.0/t1/f2.link 10 2", "w0.0/f3.link 10 2"]
    );
    course.finish(Phase::Unlink, 4);
    assert_eq!(paths(&course)[..2], ["w0.0/f0.link 10 1", "w0.0/t0/f1.link 10 1"]);
    let mut hard = Course::new(setup(|setup| setup.phases = IO500.to_vec()));
    hard.finish(Phase::IorEasyWrite, 2);
    hard.finish(Phase::IorHardWrite, 3);
    hard.finish(Phase::MdtestHardWrite, 1);
    assert_eq!(
        paths(&hard),
        [
            "hard/0.0.f0 3901 1",
            "hard/0.1.f0 3901 1",
            "ior.0.0 4194304 1",
            "ior.0.1 4194304 1",
            "ior.hard 282048+"
        ]
    );
    hard.finish(Phase::MdtestHardDelete, 1);
    assert_eq!(paths(&hard).len(), 3);
}

#[test]
fn trees_are_listed_by_their_directories() {
    let mut course = Course::new(setup(|setup| (setup.depth, setup.tasks) = (2, 1)));
    course.finish(Phase::Create, 100);
    let list = job(&course, Phase::Readdir);
    let tree = "/d/w0.0:/d/w0.0/t0:/d/w0.0/t1:/d/w0.0/t0/t0:/d/w0.0/t0/t1:/d/w0.0/t1/t0:/d/w0.0/t1/t1";
    assert!(list.contains(&format!("filename={tree}\n")), "{list}");
    assert!(job(&course, Phase::Stat).contains("tree_depth=2\ntree_breadth=2\n"));
}

fn worker(name: &str, ops: u64, ms: u64, latency: u64) -> Value {
    json!({
        "jobname": name, "error": 0, "job_runtime": ms,
        "read": {"total_ios": 0, "io_bytes": 0},
        "write": {"total_ios": ops, "io_bytes": ops * 10, "runtime": ms,
            "clat_ns": {"min": latency, "max": latency, "mean": latency, "N": ops,
                "percentile": {"50.000000": latency}, "bins": {latency.to_string(): ops}}},
    })
}

#[test]
fn the_first_worker_that_ends_is_the_stonewall() {
    let report = json!({"jobs": [worker("a", 100, 1000, 1000), worker("b", 50, 4000, 3000)]});
    let figures = Figures::of(&report).unwrap();
    assert_eq!((figures.ops(), figures.bytes(), figures.seconds), (150, 1500, 4.0));
    assert_eq!(figures.rate(), 37.5);
    // Without samples, as if rates had not changed.
    assert_eq!(
        (figures.stonewall.seconds, figures.stonewall.ops, figures.stonewall.rate()),
        (1.0, 112.5, 112.5)
    );
    assert_eq!(figures.slowest().unwrap().name, "b");
    assert_eq!((figures.latency.p50, figures.latency.p99, figures.latency.max), (1000.0, 3000.0, 3000.0));
    // With samples: the second one has done 30 in its first second.
    let mut sampled = report.clone();
    let ios = |numbers: &[u64]| json!({"first_window": 0, "ios": numbers, "bytes": numbers});
    sampled["iolite"]["series"] = json!({"begin_us": 0, "end_us": [800_000, 1_200_000, 4_000_000], "jobs": [
        {"job": 0, "write": ios(&[90, 10])}, {"job": 1, "write": ios(&[20, 20, 10])}
    ]});
    assert_eq!(Figures::of(&sampled).unwrap().stonewall.ops, 130.0);
    let mut caught_up = figures;
    caught_up.add(Figures::of(&json!({"jobs": [worker("b", 50, 1000, 1000)]})).unwrap());
    assert_eq!((caught_up.ops(), caught_up.seconds, caught_up.rate()), (200, 5.0, 40.0));
    assert_eq!(caught_up.workers[1].ops, 100);
}

#[test]
fn a_failed_worker_fails_the_phase() {
    let mut report = json!({"jobs": [worker("a", 100, 1000, 1000)]});
    report["jobs"][0]["error"] = json!(28);
    assert!(Figures::of(&report).unwrap_err().contains("No space left"));
    assert!(Figures::of(&json!({"jobs": []})).is_err());
}

#[test]
fn the_score_is_the_root_of_two_geometric_means() {
    let gib = (1u64 << 30) as f64;
    let mut rates: Vec<(Phase, f64)> =
        IO500.iter().map(|phase| (*phase, if phase.is_bandwidth() { 4.0 * gib } else { 9000.0 })).collect();
    let found = score(&rates).unwrap();
    assert!((found.bandwidth - 4.0).abs() < 1e-9 && (found.metadata - 9.0).abs() < 1e-9, "{found:?}");
    assert!((found.total - 6.0).abs() < 1e-9, "{found:?}");
    // √[4](1·1·1·16) = 2
    for (phase, rate) in rates.iter_mut().filter(|(phase, _)| phase.is_bandwidth()) {
        *rate = if *phase == Phase::IorHardRead { 16.0 * gib } else { gib };
    }
    assert!((score(&rates).unwrap().bandwidth - 2.0).abs() < 1e-9);
    rates.pop();
    assert_eq!(score(&rates), None, "a phase is missing");
}
