//! The machines that a test runs on: this one, agents, or the ranks of a launcher.
//!
//! Each rank is this command, called by the launcher. For every phase, all ranks start a run (`iolite --mpi=dir:…`) and
//! meet in a directory of the test, which all of them see anyway. The run of rank 0 has the jobs, and coordinates; the
//! others follow: they wait for the next meeting, until rank 0 removes the directory of the test. So nothing else is needed
//! of the launcher than the variables with the number of a rank.

use super::OWN;
use crate::run_series::{End, Runner, Start, in_memory};
use iolite_options::commands::Asked;
use iolite_procedures::meta::{Course, HARD, Machine, OTHER, Phase, RANK, Setup};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long ranks wait for rank 0 to begin: launchers do not start them all at once.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long they wait between two phases, where it may check the tree.
const LONG_PATIENCE: Duration = Duration::from_secs(3600);
/// The time between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// The machines.
#[derive(Clone, Debug, PartialEq)]
pub enum Machines {
    /// This one.
    Here,
    /// Agents at these addresses.
    Clients(Vec<String>),
    /// The ranks of a launcher.
    #[cfg_attr(not(feature = "agents"), expect(dead_code, reason = "a program without agents has no ranks"))]
    Ranks {
        /// The number of this one.
        rank: u32,
        /// How many there are.
        size: u32,
    },
}

/// The machines that a value of `--client` names: one, or those of a list in a file.
fn listed(value: &str) -> Result<Vec<String>, String> {
    if !Path::new(value).is_file() {
        return Ok(vec![value.to_owned()]);
    }
    #[cfg(feature = "agents")]
    {
        let told = |why: &dyn std::fmt::Display| format!("--client={value}: {why}");
        let text = std::fs::read_to_string(value).map_err(|error| told(&error))?;
        let hosts: Vec<String> =
            iolite_remote::address::list(&text).map(|(_, host)| host.to_owned()).collect();
        if hosts.is_empty() { Err(told(&"the list has no hosts in it")) } else { Ok(hosts) }
    }
    // (Such a program refuses all of them.)
    #[cfg(not(feature = "agents"))]
    Ok(vec![value.to_owned()])
}

/// A run that is ready to start.
pub struct Ready {
    start: Start,
    /// Job files in memory, which the run opens by the descriptors of this process.
    _jobs: Vec<File>,
}

impl Machines {
    /// Those that the options name.
    pub fn of(asked: &Asked) -> Result<Machines, String> {
        let clients: Vec<Vec<String>> = asked.values("client").map(listed).collect::<Result<_, _>>()?;
        let clients = clients.concat();
        match (clients.is_empty(), asked.has("mpi")) {
            (true, false) => Ok(Machines::Here),
            (false, true) => Err("--client and --mpi: only one of them".to_owned()),
            _ if cfg!(not(feature = "agents")) => {
                Err("this program was built without agents (--client, --mpi)".to_owned())
            }
            (false, false) => match clients.iter().enumerate().find(|(at, one)| clients[..*at].contains(one))
            {
                Some((_, twice)) => {
                    Err(format!("--client={twice}: named twice, and an agent performs one run at a time"))
                }
                None => Ok(Machines::Clients(clients)),
            },
            (true, true) => ranks(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        match self {
            Machines::Here => 1,
            Machines::Clients(clients) => clients.len() as u32,
            Machines::Ranks { size, .. } => *size,
        }
    }

    /// What they are, in words.
    pub fn words(&self) -> String {
        match self {
            Machines::Here => "this machine".to_owned(),
            Machines::Clients(clients) => clients.join(", "),
            Machines::Ranks { size, .. } => format!("{size} ranks"),
        }
    }

    /// The job files of a phase, with the names of their machines. `from`: what the workers of each machine have done
    /// already; empty = nothing.
    pub fn jobs(&self, course: &Course, phase: Phase, from: &[Vec<u64>], to: u64) -> Vec<(String, String)> {
        let done = |machine: u32| from.get(machine as usize).map_or(&[][..], |of| of);
        match self {
            Machines::Ranks { .. } => {
                let job = course.job(phase, Machine::Rank, &[], to);
                job.map(|job| vec![(String::new(), job)]).unwrap_or_default()
            }
            // (This machine also does what ranks lack.)
            _ => (0..course.setup.machines)
                .filter_map(|machine| {
                    let job = course.job(phase, Machine::Number(machine), done(machine), to)?;
                    let name = match self {
                        Machines::Clients(clients) => clients[machine as usize].clone(),
                        _ => String::new(),
                    };
                    Some((name, job))
                })
                .collect(),
        }
    }

    /// A run of these job files. `meeting`: the directory in which ranks meet for it.
    pub fn ready(&self, setup: &Setup, jobs: Vec<(String, String)>, meeting: &Path) -> Result<Ready, String> {
        let mut start = Start {
            options: Vec::new(),
            file: Some("-".into()),
            environment: Vec::new(),
            input: Vec::new(),
            may_be_kept: false,
            shows_progress: true,
        };
        let mut kept = Vec::new();
        match self {
            Machines::Clients(_) => {
                start.file = None;
                for (client, job) in jobs {
                    let (file, path) = in_memory(&job).map_err(told)?;
                    start.options.push(format!("--client={client}").into());
                    start.options.push(path.into());
                    kept.push(file);
                }
            }
            Machines::Here | Machines::Ranks { .. } => {
                start.input = jobs.into_iter().map(|(_, job)| job).collect::<String>().into_bytes();
            }
        }
        if let Machines::Ranks { rank, size } = *self {
            let mut meet = OsString::from("--mpi=dir:");
            meet.push(meeting);
            start.options.push(meet);
            let also = format!(":{}/hard", setup.directory.replace(':', "\\:"));
            start.environment = vec![
                (RANK, rank.to_string()),
                (OTHER, ((rank + setup.shift) % size).to_string()),
                (HARD, if rank == 0 { also } else { String::new() }),
            ];
        }
        Ok(Ready { start, _jobs: kept })
    }
}

impl Ready {
    /// Performs the run. Returns how it ended, and its report.
    pub fn perform(&self, runner: &mut Runner) -> Result<(End, String), String> {
        let (_report, path) = in_memory("").map_err(told)?;
        let end = runner.perform(&self.start, &path)?;
        let text =
            std::fs::read_to_string(&path).map_err(|error| format!("the report cannot be read: {error}"))?;
        Ok((end, text))
    }
}

fn told(error: std::io::Error) -> String {
    format!("there is no memory for a file: {error}")
}

/// The ranks of the launcher that has started this process.
#[cfg(feature = "agents")]
pub fn ranks() -> Result<Machines, String> {
    let (rank, size) = iolite_remote::ranks::place_by_environment().map_err(|why| format!("--mpi: {why}"))?;
    Ok(Machines::Ranks { rank, size })
}

#[cfg(not(feature = "agents"))]
pub fn ranks() -> Result<Machines, String> {
    Err("--mpi: this program was built without agents".to_owned())
}

/// The variables by which a launcher's job differs from others.
const JOBS: [&str; 5] = ["PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMI_JOBID", "IOLITE_JOB"];

/// The test's own directory, whose name all ranks of a launcher's job know.
pub fn common_name(target: &Path) -> PathBuf {
    let words = JOBS.iter().filter_map(|name| std::env::var(name).ok()).collect::<Vec<_>>().join("-");
    let name: String =
        words.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    target.join(format!("{}{}", OWN.prefix, if name.is_empty() { "mpi" } else { &name }))
}

/// The directory in which ranks meet for a run.
pub fn meeting(own: &Path, run: u32) -> PathBuf {
    own.join(format!("meet-{run}"))
}

/// What a rank does that is not the first one: it takes part in the runs, each of which has a meeting in this directory, until the
/// test is over and the directory is gone.
pub fn follow(
    own: &Path,
    runner: &mut Runner,
    attend: &mut dyn FnMut(&Path, &mut Runner) -> Result<End, String>,
) -> Result<u8, String> {
    for run in 0.. {
        let meeting = meeting(own, run);
        let patience = if own.exists() { LONG_PATIENCE } else { PATIENCE };
        let until = Instant::now() + patience;
        loop {
            if runner.is_asked_to_end() {
                return Ok(crate::exit_status::INTERRUPTED);
            }
            if meeting.exists() {
                break;
            }
            if run > 0 && !own.exists() {
                return Ok(0);
            }
            if Instant::now() > until {
                return Err(format!(
                    "{}: rank 0 has begun nothing more in {} s",
                    own.display(),
                    patience.as_secs()
                ));
            }
            std::thread::sleep(LOOK);
        }
        match attend(&meeting, runner)? {
            End::Interrupted => return Ok(crate::exit_status::INTERRUPTED),
            // Rank 0 has the report, and says what failed.
            End::Done | End::Doubtful(_) | End::Failed(_) | End::Killed(_) => {}
        }
    }
    Ok(0)
}
