//! Verification on made-up machines.

use super::*;
use crate::{Layout, Plan};
use iolite_host::{DeviceClass, MadeUp};
use iolite_options::{
    BlockSizes, DepthOptions, ExtentOptions, FileOptions, JobOptions, PatternOptions, ReadWrite, RunOptions,
    SizeValue, Verify,
};
use iolite_types::PerDirection;
use iolite_verify::{Alike, ReadBackRules, Rules, StateRules};
use iolite_workload::history::Need;

const DISK: &str = "/dev/disk";
const SIZE: u64 = 100 << 40;
const COMMANDS: &str = "/dev/sg0";

/// Jobs that write 64 MiB of one disk of 100 TiB in blocks of 4 KiB, changed by these functions.
fn plan(jobs: &[&dyn Fn(&mut JobOptions)]) -> (Plan, Vec<Layout>, MadeUp) {
    let machine = MadeUp::new().with_block_device(DISK, SIZE);
    let machine = machine.with_device_of(DeviceClass::ScsiGeneric, COMMANDS, 1 << 30);
    let jobs = jobs.iter().zip(["one", "two", "three"]).map(|(change, name)| {
        let mut options = JobOptions {
            name: name.into(),
            ioengine: "psync".into(),
            files: FileOptions { filename: vec![DISK.into()], ..FileOptions::default() },
            pattern: PatternOptions {
                rw: ReadWrite::Write,
                bs: PerDirection::all(4096),
                ..PatternOptions::default()
            },
            extent: ExtentOptions { size: Some(SizeValue::Bytes(64 << 20)), ..ExtentOptions::default() },
            depth: DepthOptions { iodepth: 4, ..DepthOptions::default() },
            ..JobOptions::default()
        };
        options.verification.verify = Verify::Crc32c;
        options.verification.do_verify = true;
        options.verification.verify_state_save = true;
        change(&mut options);
        options
    });
    let plan = Plan::build(jobs.collect(), &RunOptions::default(), &machine).expect("a valid plan");
    let layouts = plan.layouts(&machine, &crate::NoStorages).expect("valid layouts");
    (plan, layouts, machine)
}

/// The verification of one such job.
fn rules_of(change: impl Fn(&mut JobOptions)) -> Rules {
    let (plan, layouts, machine) = plan(&[&change]);
    let rivalries = Rivalries::of(&plan, &layouts, &machine).expect("nobody is in the way");
    let worker = &plan.workers[0];
    plan.resolve(worker, &layouts[0], rivalries.of_worker(0)).verify.expect("it verifies")
}

fn problems(found: Result<Rivalries, Vec<crate::Problem>>) -> Vec<String> {
    found.err().into_iter().flatten().map(|problem| problem.message).collect()
}

#[test]
fn a_job_that_writes_once_repeats_its_generator_and_keeps_a_state() {
    let rules = rules_of(|_| ());
    assert!(rules.writes && rules.reads_back && rules.earlier.is_none());
    assert_eq!(rules.read_back, ReadBackRules::AtEnd(Need::Replay));
    let StateRules::Keep(keep) = rules.state else { panic!("{:?}", rules.state) };
    assert_eq!((keep.block, keep.is_uniform, keep.is_asked_for), (4096, true, false));
    assert_eq!((keep.files[0].name.as_str(), keep.files[0].length), (DISK, 64 << 20));
    assert!(keep.path.ends_with("local-one-0-verify.state"));
    let twice = rules_of(|o| {
        o.pattern.rw = ReadWrite::RandWrite;
        o.pattern.norandommap = true;
    });
    assert_eq!(twice.read_back, ReadBackRules::AtEnd(Need::Map(4096)));
}

#[test]
fn verify_only_knows_which_writes_depend_on_the_seed() {
    let alike = |change: &dyn Fn(&mut JobOptions)| {
        let rules = rules_of(|o| {
            o.verification.verify_only = true;
            change(o);
        });
        assert!(!rules.writes && rules.state == StateRules::None);
        rules.earlier.expect("the writes are those of an earlier run").alike
    };
    assert_eq!(alike(&|_| ()), Alike::Writes);
    assert_eq!(alike(&|o| o.pattern.rw = ReadWrite::RandWrite), Alike::Places);
    assert_eq!(alike(&|o| o.pattern.rw = ReadWrite::Rw), Alike::Beginning);
    assert_eq!(alike(&|o| o.pattern.rw = ReadWrite::RandRw), Alike::Nothing);
}

#[test]
fn a_state_that_cannot_be_kept_is_a_warning_or_an_error() {
    let any_size = |o: &mut JobOptions| {
        o.pattern.bs_unaligned = true;
        o.pattern.block_sizes =
            PerDirection::all(BlockSizes::Range(iolite_options::Range { low: 4096, high: 8191 }));
    };
    let StateRules::Impossible { message, is_required: false } = rules_of(any_size).state else {
        panic!("there is no table of such blocks")
    };
    assert!(message.starts_with("one: there is no verify state: "), "{message}");
}

#[test]
fn a_state_that_is_loaded_is_looked_at_before_the_run() {
    let loads = |o: &mut JobOptions| {
        o.pattern.rw = ReadWrite::Read;
        o.verification.verify_state_load = true;
    };
    let found = |change: &dyn Fn(&mut JobOptions)| {
        let (plan, layouts, machine) = plan(&[change]);
        let error = |load: &iolite_verify::Load| Some(format!("{}: damaged", load.path.display()));
        unverifiable(&plan, &layouts, &machine, &error).pop().map(|problem| problem.message)
    };
    let message = found(&loads).unwrap();
    assert!(message.starts_with("verify_state_load: ") && message.ends_with("state: damaged"), "{message}");
    let brought = |o: &mut JobOptions| {
        loads(o);
        o.schedule.exec_prerun = Some("true".into());
    };
    assert_eq!(found(&brought), None, "a command may bring it");
    assert_eq!(found(&|_| ()), None, "none is loaded");
}

#[test]
fn jobs_in_one_place_take_turns_and_one_that_does_not_verify_is_refused() {
    let (all, layouts, machine) = plan(&[&|_| (), &|_| ()]);
    let rivalries = Rivalries::of(&all, &layouts, &machine).unwrap();
    let rivals = &rivalries.of_worker(0).files[&0];
    assert_eq!(rivals.numbers.iter().collect::<Vec<_>>(), [&2]);
    assert_eq!((rivals.shared, rivals.differ, rivals.trim), (Some(Some(0)), false, false));
    assert_eq!((rivalries.shared[0].end, rivalries.shared[0].granule), (64 << 20, 4096));

    let (all, layouts, machine) = plan(&[&|_| (), &|o| o.pattern.bs = PerDirection::all(8192)]);
    let rivalries = Rivalries::of(&all, &layouts, &machine).unwrap();
    assert!(rivalries.of_worker(0).files[&0].differ, "they cut their blocks in other ways");

    let (all, layouts, machine) = plan(&[&|_| (), &|o| o.verification.verify = Verify::None]);
    let refused = problems(Rivalries::of(&all, &layouts, &machine));
    assert!(refused[0].contains("job two writes to /dev/disk without verify"), "{refused:?}");

    let by_commands = |o: &mut JobOptions| {
        o.ioengine = "sg".into();
        o.files.filename = vec![COMMANDS.into()];
    };
    let (all, layouts, machine) = plan(&[&by_commands, &by_commands]);
    let rivalries = Rivalries::of(&all, &layouts, &machine).unwrap();
    assert_eq!(rivalries.of_worker(0).files[&0].shared, Some(Some(0)), "character devices hold data, too");

    for apart in [
        &(|o: &mut JobOptions| o.extent.offset = SizeValue::Bytes(64 << 20)) as &dyn Fn(&mut JobOptions),
        &|o: &mut JobOptions| o.schedule.stonewall = true,
    ] {
        let (all, layouts, machine) = plan(&[&|_| (), apart]);
        let rivalries = Rivalries::of(&all, &layouts, &machine).unwrap();
        assert!(rivalries.of_worker(0).files.is_empty() && rivalries.shared.is_empty());
    }
}

#[test]
fn only_jobs_that_write_alike_can_check_an_earlier_run() {
    let verify_only = |o: &mut JobOptions| o.verification.verify_only = true;
    let (all, layouts, machine) = plan(&[&verify_only, &verify_only]);
    let rivalries = Rivalries::of(&all, &layouts, &machine).unwrap();
    let rivals = &rivalries.of_worker(1).files[&0];
    assert_eq!((rivals.numbers.len(), rivals.states.len(), rivals.shared), (1, 1, None));
    let other = |o: &mut JobOptions| {
        verify_only(o);
        o.verification.verify = Verify::Md5;
    };
    let (all, layouts, machine) = plan(&[&verify_only, &other]);
    let refused = problems(Rivalries::of(&all, &layouts, &machine));
    assert!(refused[0].starts_with("verify_only: job two wrote to /dev/disk as well"), "{refused:?}");
}
