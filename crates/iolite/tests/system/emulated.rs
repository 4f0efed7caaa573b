//! Devices that most machines lack, in a virtual machine ([`iolite_testing::vm`]). The program under test and the
//! newest fio run the same jobs.

mod aarch64;
pub mod appended;
mod block_traces;
mod device;
pub mod flash;
mod memory;
pub mod network;
pub mod nvme;
pub mod placement;
mod qualified;
pub mod scsi;
mod stages;
mod suspended;
pub mod zoned;

use crate::common::Program;
use crate::common::comparison::{Counts, Report, compare_reports};
use iolite_testing::vm::{self, Ran};
use iolite_testing::{or_skip, partly_skipped, this_test};
use std::fs;
use std::path::Path;

/// Why a test of data placement is skipped.
const NO_PLACEMENT: &str = "there is no QEMU that has Flexible Data Placement (8.1; scripts/vm fetches one)";

/// The newest available fio. Only this one is used, because each start takes seconds here.
fn newest() -> Option<Program> {
    Program::peers().into_iter().max_by_key(|peer| peer.release.minor)
}

/// Commands for scripts: `ours NAME WORD…` runs the program under test; `both NAME WORD…` runs the newest fio first.
/// Their output goes to `NAME.ours` and `NAME.theirs`, the exit status to the same names with `.status`. If a script
/// sets `least` to 41, it runs no fio older than 3.41.
fn prelude() -> String {
    let ours = Program::under_test().path;
    let newest = newest();
    let release = newest.as_ref().map_or(0, |peer| peer.release.minor);
    let theirs = newest.map(|peer| peer.path).unwrap_or_default();
    format!(
        r#"
ours() {{ local name=$1; shift; '{}' --name=j "$@" >"$name.ours" 2>&1; echo $? >"$name.ours.status"; }}
theirs() {{
    [[ -n '{theirs}' && {release} -ge ${{least:-0}} ]] || return 0
    local name=$1; shift
    '{theirs}' --name=j "$@" >"$name.theirs" 2>&1; echo $? >"$name.theirs.status"
}}
both() {{ theirs "$@" --output-format=json,normal; ours "$@" --output-format=json,normal; }}
"#,
        ours.display(),
        theirs = theirs.display(),
    )
}

/// The part of a script that runs an example with a smaller size. The output is that of `example`.
fn example(variables: &str, name: &str) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let file = examples.join(name).canonicalize().expect("the example is there");
    let program = Program::under_test().path;
    format!(
        "sed 's/^size=.*/size=1M/' '{}' >example.fio; {variables} '{}' --output-format=json example.fio >example.ours 2>&1; \
         echo $? >example.ours.status",
        file.display(),
        program.display()
    )
}

/// Runs a script in the virtual machine. Its exit status must be 0.
#[track_caller]
fn run(name: &str, script: &str) -> Result<Ran, String> {
    vm::run(name, &format!("{}{script}", prelude())).map(ended)
}

/// The same in the machine with the newest kernel, for NVMe commands.
#[track_caller]
fn run_newest(name: &str, script: &str) -> Result<Ran, String> {
    vm::run_newest(name, &format!("{}{script}", prelude())).map(ended)
}

#[track_caller]
fn ended(ran: Ran) -> Ran {
    assert_eq!(ran.status, 0, "{}", ran.output);
    ran
}

/// The output and the exit status. `who` is `ours` or `theirs`.
#[track_caller]
fn told(ran: &Ran, name: &str, who: &str) -> (String, i32) {
    let read = |name: String| fs::read_to_string(ran.directory.join(&name)).map_err(|_| name);
    let missing = |name| panic!("{name} is missing\n{}", ran.output);
    let text = read(format!("{name}.{who}")).unwrap_or_else(missing);
    let status = read(format!("{name}.{who}.status")).unwrap_or_else(missing);
    (text, status.trim().parse().expect("a status is a number"))
}

/// The output and the exit status of the newest fio, or `otherwise` if there is no fio.
#[track_caller]
fn told_by_peer(ran: &Ran, name: &str, otherwise: i32) -> (String, i32) {
    match ran.directory.join(format!("{name}.theirs")).exists() {
        false => (String::new(), otherwise),
        true => told(ran, name, "theirs"),
    }
}

/// The report of a successful run of our program.
#[track_caller]
fn report(ran: &Ran, name: &str) -> Report {
    let (text, status) = told(ran, name, "ours");
    assert_eq!(status, 0, "{name}: {text}");
    let report = Report::new(&text);
    if let Some(json) = &report.json {
        json.jobs().iter().for_each(|job| job.check_consistency());
    }
    report
}

/// Compares the reports and exit statuses of both programs, if there is a fio.
#[track_caller]
fn compare(ran: &Ran, names: &[&str], test: &str) {
    let Some(peer) = newest() else {
        return partly_skipped(test, "fio is not installed");
    };
    for name in names {
        if !ran.directory.join(format!("{name}.theirs")).exists() {
            return partly_skipped(test, &format!("{} is too old for these jobs", peer.version()));
        }
        let (ours, theirs) = (told(ran, name, "ours"), told(ran, name, "theirs"));
        assert_eq!(ours.1, theirs.1, "{name}: exit status\n{}\n{}", ours.0, theirs.0);
        let (ours, theirs) = (Report::new(&ours.0), Report::new(&theirs.0));
        let differences = compare_reports(&ours, &theirs, peer.release, Counts::Exact);
        assert!(differences.is_empty(), "{name}: {differences:#?}\n{}\n{}", ours.normal, theirs.normal);
    }
}

#[test]
fn scripts_give_their_output_and_status_and_find_the_programs() {
    let ran = or_skip!(vm::run("status", "echo told; echo complained >&2; exit 3"));
    assert_eq!((ran.status, ran.output.as_str()), (3, "told\ncomplained\n"));
    let script =
        "echo left >file; touch /etc/lost; ours version --version; both null --ioengine=null --size=64k";
    let ran = or_skip!(run("programs", script));
    assert_eq!(fs::read_to_string(ran.directory.join("file")).unwrap(), "left\n");
    assert!(!std::path::Path::new("/etc/lost").exists(), "the root of this machine is not changed");
    assert_eq!(told(&ran, "version", "ours").0.trim(), Program::under_test().version());
    assert_eq!(report(&ran, "null").json.unwrap().job().ios(), [16, 0, 0]);
    compare(&ran, &["null"], &this_test!());
}
