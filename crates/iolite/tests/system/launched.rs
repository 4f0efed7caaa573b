//! Jobs on all ranks of a launcher (`--mpi`): over a directory, and under Open MPI and Slurm.

use crate::common::program::Running;
use crate::common::{Finished, Json, Program, is_root, scratch};
use iolite_testing::{Slurm, or_skip, partly_skipped, skip, this_test};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Each rank uses its own file: the variable is resolved on the machine that runs the job.
fn job(dir: &Path, variable: &str) {
    let text = format!("[a]\nfilename=f.${{{variable}}}\nrw=write\nsize=64k\nbs=4k\nwrite_bw_log=log\n");
    fs::write(dir.join("job.fio"), text).unwrap();
}

/// The command of one rank.
fn rank(dir: &Path, number: u32, size: u32, words: &[&str]) -> Command {
    let mut command = Command::new(&Program::own().path);
    command.args(words).current_dir(dir).env("TMPDIR", dir.join("tmp"));
    command.env("IOLITE_RANK", number.to_string()).env("IOLITE_RANKS", size.to_string());
    command
}

/// Runs all ranks with this command line to their end. The result begins with rank 0.
fn ranks(dir: &Path, size: u32, words: &[&str]) -> Vec<Finished> {
    // The other ranks start before rank 0.
    let started: Vec<_> =
        (0..size).rev().map(|number| Running::start(&mut rank(dir, number, size, words))).collect();
    let mut finished: Vec<_> = started.into_iter().map(Running::wait).collect();
    finished.reverse();
    finished
}

fn place() -> tempfile::TempDir {
    let dir = scratch();
    fs::create_dir(dir.path().join("tmp")).unwrap();
    dir
}

/// Checks rank 0's report of a run with `size` ranks.
fn check_report(dir: &Path, report: &str, size: usize) {
    let json = Json::parse(report);
    let stats = json.0["client_stats"].as_array().unwrap();
    assert_eq!(stats.len(), size + 1, "{}", json.0);
    assert_eq!(stats[size]["jobname"], "All clients");
    assert_eq!(stats[size]["write"]["total_ios"], 16 * size);
    for (number, job) in stats.iter().enumerate().take(size) {
        assert_eq!(job["hostname"], format!("rank-{number}"), "{}", json.0);
        assert_eq!(fs::metadata(dir.join(format!("f.{number}"))).unwrap().len(), 65_536);
        assert!(dir.join(format!("log_bw.1.log.rank-{number}")).exists(), "its log came back");
    }
    assert_eq!(json.0["hosts"].as_array().unwrap().len(), size);
}

fn leaves_nothing(dir: &Path) {
    assert!(!dir.join("meet").exists());
    let left: Vec<_> = fs::read_dir(dir.join("tmp")).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
pub fn ranks_meet_in_a_directory() {
    let dir = place();
    job(dir.path(), "IOLITE_RANK");
    let meet = format!("--mpi=dir:{}", dir.path().join("meet").display());
    let finished = ranks(dir.path(), 3, &[&meet, "--output-format=json", "job.fio"]);
    check_report(dir.path(), &finished[0].stdout, 3);
    for rank in &finished {
        assert_eq!((rank.code(), rank.stderr.as_str()), (0, ""), "{rank}");
    }
    assert!(finished[1..].iter().all(|rank| rank.stdout.is_empty()));
    leaves_nothing(dir.path());
    // Only rank 0 reads the job file and reports mistakes. The other ranks end at once.
    for (words, why) in [
        ([&meet, "missing.fio"], "missing.fio"),
        ([&meet, "--push"], "--mpi: there is no job file for it"),
        ([&meet, "--server"], "--server: a server runs the jobs of its clients"),
    ] {
        let finished = ranks(dir.path(), 2, &words.map(|word: &str| word));
        assert_eq!(finished[0].code(), 1);
        assert!(finished[0].stderr.contains(why), "{why}: {}", finished[0]);
        assert_eq!((finished[1].code(), finished[1].stderr.as_str()), (1, ""), "{}", finished[1]);
        leaves_nothing(dir.path());
    }
    // A refused job runs on no rank.
    fs::write(dir.path().join("job.fio"), "[a]\nrw=read\nsize=64k\nexec_prerun=true\n").unwrap();
    let finished = ranks(dir.path(), 2, &[&meet, "job.fio"]);
    assert!(finished[0].code() == 1 && finished[0].stderr.contains("(--serve-exec)"), "{}", finished[0]);
    leaves_nothing(dir.path());
}

/// Ranks on several machines create keys for the run.
#[test]
pub fn ranks_of_several_machines() {
    if !is_root() {
        skip!("another name for a machine needs root");
    }
    let dir = place();
    job(dir.path(), "IOLITE_RANK");
    let meet = format!("--mpi=dir:{}", dir.path().join("meet").display());
    let program = Program::own().path.display().to_string();
    for insecure in [false, true] {
        let more = if insecure { "--insecure" } else { "--eta=never" };
        let words = [meet.as_str(), more, "--output-format=json", "job.fio"];
        let other = rank(dir.path(), 1, 2, &[]);
        // The other machine differs only in its host name.
        let script =
            format!("echo elsewhere > /proc/sys/kernel/hostname && exec {program} {}", words.join(" "));
        let mut named = Command::new("unshare");
        named.args(["-u", "sh", "-c", &script]).current_dir(dir.path());
        named.envs(other.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let other = Running::start(&mut named);
        let first = Running::start(&mut rank(dir.path(), 0, 2, &words)).wait();
        let other = other.wait();
        assert_eq!((other.code(), other.stderr.as_str()), (0, ""), "{other}{first}");
        check_report(dir.path(), &first.ok().stdout, 2);
        leaves_nothing(dir.path());
    }
}

#[test]
pub fn without_a_launcher() {
    let dir = place();
    job(dir.path(), "IOLITE_RANK");
    let run = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(&Program::own().path);
        for name in ["PMIX_RANK", "PMI_RANK", "PMI_FD", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"] {
            command.env_remove(name);
        }
        command.args(words).envs(variables.iter().copied()).current_dir(dir.path());
        let refused = Running::start(&mut command).wait().refused();
        assert!(refused.stderr.starts_with("iolite: --mpi: "), "{refused}");
        refused.stderr
    };
    assert!(run(&["--mpi", "job.fio"], &[]).contains("no launcher has started this"));
    assert!(run(&["--mpi", "job.fio"], &[("SLURM_PROCID", "0")]).contains("srun --mpi=pmi2"));
    assert!(run(&["--mpi=bogus", "job.fio"], &[]).contains("\"bogus\" is no way"));
    assert!(run(&["--mpi=dir:", "job.fio"], &[]).contains("is no way"));
    let meet = format!("--mpi=dir:{}", dir.path().join("meet").display());
    assert!(run(&[&meet, "job.fio"], &[]).contains("which rank this is"));
    assert!(run(&[&meet, "job.fio"], &[("IOLITE_RANK", "3")]).contains("without a number of ranks"));
    let of = |rank: &'static str| [("IOLITE_RANK", rank), ("IOLITE_RANKS", "2")];
    fs::create_dir(dir.path().join("meet")).unwrap();
    assert!(run(&[&meet, "job.fio"], &of("0")).contains("exists already"));
    assert!(dir.path().join("meet").exists(), "it is not ours");
    assert!(run(&[&meet, "job.fio"], &of("1")).contains("is not a directory of this user alone"));
    let absent = format!("--mpi=dir:{}", dir.path().join("no/such").display());
    assert!(run(&[&absent, "job.fio"], &of("0")).contains("No such file"));
    // Options such as --version need no launcher.
    Program::own().run(dir.path(), ["--mpi", "--version"]).ok();
}

#[test]
pub fn under_open_mpi() {
    let dir = place();
    if Command::new("mpirun").arg("--version").output().is_err() {
        skip!("mpirun is missing (scripts/test --everything installs Open MPI)");
    }
    job(dir.path(), "PMIX_RANK");
    let run = |words: &[&str]| {
        let mut command = Command::new("mpirun");
        command
            .args(["--oversubscribe", "--bind-to", "none", "-np", "3"])
            .arg(&Program::own().path)
            .args(words);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        Running::start(command.current_dir(dir.path())).wait()
    };
    let finished = run(&["--mpi", "--output-format=json", "job.fio"]).ok();
    check_report(dir.path(), &finished.stdout, 3);
    let refused = run(&["--mpi", "missing.fio"]);
    assert_ne!(refused.code(), 0);
    assert_eq!(refused.stderr.matches("missing.fio: ").count(), 1, "{refused}");
}

#[test]
pub fn under_slurm() {
    let dir = place();
    let slurm = or_skip!(Slurm::start(&dir.path().join("slurm")));
    job(dir.path(), "SLURM_PROCID");
    let run = |more: &[&str], words: &[&str]| {
        let mut command = Command::new("srun");
        command.args(["-N2", "-n4"]).args(more).arg(&Program::own().path).args(words);
        command.env("SLURM_CONF", &slurm.settings).env("TMPDIR", dir.path().join("tmp"));
        Running::start(command.current_dir(dir.path())).wait()
    };
    let meet = format!("--mpi=dir:{}", dir.path().join("meet").display());
    let finished = run(&[], &[&meet, "--output-format=json", "job.fio"]).ok();
    check_report(dir.path(), &finished.stdout, 4);
    leaves_nothing(dir.path());
    let refused = run(&["--mpi=none"], &["--mpi", "job.fio"]);
    assert!(refused.code() != 0 && refused.stderr.contains("srun --mpi=pmi2"), "{refused}");
    let finished = run(&["--mpi=pmi2"], &["--mpi", "--output-format=json", "job.fio"]);
    if finished.stderr.contains("libpmi2-0") {
        partly_skipped(&this_test!(), "libpmi2 is missing (package libpmi2-0)");
        return;
    }
    check_report(dir.path(), &finished.ok().stdout, 4);
    let refused = run(&["--mpi=pmi2"], &["--mpi", "missing.fio"]);
    assert_ne!(refused.code(), 0);
    assert_eq!(refused.stderr.matches("missing.fio: ").count(), 1, "{refused}");
}
