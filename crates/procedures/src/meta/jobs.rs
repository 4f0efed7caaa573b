//! The job files of phases.

use super::{Course, EASY_TRANSFER, HARD_FILE, HARD_TRANSFER, Phase, Setup, Unit, objects};
use std::fmt::Write;

/// The machine that a job file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// One of several, or the only one: its number.
    Number(u32),
    /// All ranks of a launcher, which have one job file: variables of their environment say what differs.
    Rank,
}

/// The variable with the number of a rank.
pub const RANK: &str = "IOLITE_META_RANK";
/// The variable with the number of the rank whose files it looks up and reads.
pub const OTHER: &str = "IOLITE_META_OTHER";
/// The variable with the other directories that a rank lists in `find`, behind a colon: only rank 0 has any.
pub const HARD: &str = "IOLITE_META_HARD";

/// A worker, in the words of a job file.
struct Worker {
    /// The number of its machine.
    machine: String,
    /// Its number on its machine.
    task: u32,
}

impl Worker {
    /// `3.0`: part of the names of its files.
    fn name(&self) -> String {
        format!("{}.{}", self.machine, self.task)
    }

    /// Its number among all workers, from 0: an expression.
    fn number(&self, setup: &Setup) -> String {
        format!("({}*{}+{})", self.machine, setup.tasks, self.task)
    }
}

impl Machine {
    /// The number in the words of a job file. `shift`: of the machine this many places further.
    fn words(self, setup: &Setup, shift: u32) -> String {
        match self {
            Machine::Number(number) => ((number + shift) % setup.machines).to_string(),
            Machine::Rank if shift == 0 => format!("${{{RANK}}}"),
            Machine::Rank => format!("${{{OTHER}}}"),
        }
    }

    /// The worker whose files a worker looks up.
    fn worker(self, setup: &Setup, task: u32, is_shifted: bool) -> Worker {
        let shift = if is_shifted { setup.shift } else { 0 };
        if setup.machines > 1 {
            return Worker { machine: self.words(setup, shift), task };
        }
        Worker { machine: self.words(setup, 0), task: (task + shift) % setup.tasks }
    }
}

/// See [`Course::job`].
pub(super) fn job(course: &Course, phase: Phase, machine: Machine, from: &[u64], to: u64) -> Option<String> {
    let setup = &course.setup;
    let mut sections = String::new();
    for task in 0..setup.tasks {
        let begin = from.get(task as usize).copied().unwrap_or(0);
        if begin >= to && phase.unit() != Unit::Lists {
            continue;
        }
        let own = machine.worker(setup, task, false);
        let of = machine.worker(setup, task, is_shifted(phase));
        let found = match &setup.bucket {
            Some(_) => Some(objects::lines(course, phase, [&own.name(), &of.name()], begin..to)),
            None => lines(course, phase, &own, &of, begin..to),
        };
        let Some(lines) = found else { continue };
        // (Names of sections have no variables. In reports, the ranks are hosts.)
        let name = if machine == Machine::Rank { task.to_string() } else { own.name() };
        writeln!(sections, "\n[w{name}]\n{lines}").expect("strings take everything");
    }
    if sections.is_empty() {
        return None;
    }
    let mut text = format!(
        "# {}: {}\n[global]\n{}",
        phase.name(),
        phase.about(),
        match &setup.bucket {
            Some(bucket) => objects::global(setup, bucket, phase),
            None => global(course, phase),
        }
    );
    if let (Some(seconds), true, true) = (setup.seconds, phase.creates(), from.is_empty()) {
        writeln!(text, "runtime={}ms", (seconds * 1000.0).round()).expect("strings take everything");
    }
    Some(text + &sections)
}

/// Whether a phase uses what another worker has made.
fn is_shifted(phase: Phase) -> bool {
    use Phase::*;
    matches!(
        phase,
        Dirstat
            | Stat
            | Read
            | Getxattr
            | IorEasyRead
            | MdtestEasyStat
            | IorHardRead
            | MdtestHardStat
            | MdtestHardRead
            | Find
    )
}

/// The options that all workers share.
fn global(course: &Course, phase: Phase) -> String {
    use Phase::*;
    let setup = &course.setup;
    let engine = match phase {
        Create if setup.size > 0 => "filewrite",
        MdtestHardWrite => "filewrite",
        Create | MdtestEasyWrite => "filecreate",
        Stat | MdtestEasyStat | MdtestHardStat => "filestat",
        Read | MdtestHardRead => "fileread",
        Setxattr => "filesetxattr",
        Getxattr => "filegetxattr",
        Link => "filelink",
        Rename => "filerename",
        Unlink | MdtestEasyDelete | MdtestHardDelete => "filedelete",
        Mkdir => "dircreate",
        Dirstat => "dirstat",
        Rmdir => "dirdelete",
        Readdir | Find => "dirread",
        IorEasyWrite | IorHardWrite | IorEasyRead | IorHardRead => "psync",
    };
    let rw = if phase.changes() { "write" } else { "read" };
    let mut text = format!("ioengine={engine}\nrw={rw}\nunique_filename=0\n");
    if !matches!(phase, Find | Readdir) && !phase.is_bandwidth() {
        writeln!(text, "directory={}", escaped(&setup.directory)).expect("strings take everything");
    }
    let more: &[&str] = match phase {
        // A phase must not look its names up before it begins, or it would find all of them in the cache.
        _ if phase.is_bandwidth() && phase.creates() => &["fallocate=none", "end_fsync=1"],
        _ if phase.is_bandwidth() => &["allow_file_create=0"],
        Find => &["openfiles=1", "create_on_open=1", "allow_file_create=0"],
        _ if phase.creates() => &["openfiles=1", "file_service_type=sequential"],
        _ => &["openfiles=1", "file_service_type=sequential", "create_on_open=1", "allow_file_create=0"],
    };
    more.iter().for_each(|line| {
        text += line;
        text.push('\n');
    });
    let bs = match phase {
        Create | Read if setup.size > 0 => setup.size,
        MdtestHardWrite | MdtestHardRead => HARD_FILE,
        IorEasyWrite | IorEasyRead => EASY_TRANSFER,
        IorHardWrite | IorHardRead => HARD_TRANSFER,
        _ => 4096,
    };
    writeln!(text, "bs={bs}").expect("strings take everything");
    if let Unit::Files | Unit::Directories = phase.unit()
        && setup.depth > 0
        && !matches!(phase, MdtestEasyWrite | MdtestEasyStat | MdtestEasyDelete)
    {
        writeln!(text, "tree_depth={}\ntree_breadth={}", setup.depth, setup.breadth)
            .expect("strings take everything");
    }
    if phase == Link {
        text += "new_suffix=.link\n";
    }
    if phase == Find {
        let stamp = format!("{}/{STAMP}", setup.directory);
        writeln!(text, "entry_stat=1\nentry_size={HARD_FILE}\nentry_name=01\nentry_newer={stamp}")
            .expect("strings take everything");
    }
    text
}

/// The file that says when the test began, in its directory.
pub const STAMP: &str = "stamp";

/// The options of a worker; `None` = it has nothing to do.
fn lines(
    course: &Course,
    phase: Phase,
    own: &Worker,
    of: &Worker,
    range: std::ops::Range<u64>,
) -> Option<String> {
    let setup = &course.setup;
    let count = range.end.saturating_sub(range.start);
    let numbered = |format: &str| {
        let first = if range.start > 0 { format!("filenum_first={}\n", range.start) } else { String::new() };
        format!("filename_format={format}\nnrfiles={count}\n{first}")
    };
    let renamed = if course.has_done(Phase::Rename) { ".new" } else { "" };
    Some(match phase.unit() {
        Unit::Files => numbered(&format!("{}{renamed}", names(setup, of, "f"))),
        Unit::Directories => numbered(&names(setup, of, "d")),
        Unit::HardFiles => numbered(&format!("hard/{}.f$filenum", of.name())),
        Unit::Easy => {
            let (offset, size) = (range.start * EASY_TRANSFER, count * EASY_TRANSFER);
            format!("filename={}\noffset={offset}\nsize={size}\n", easy_file(setup, &of.name()))
        }
        Unit::Hard => {
            let all = u64::from(setup.workers());
            let first = format!("(({}+{})*{HARD_TRANSFER})", range.start * all, of.number(setup));
            // From the worker's first transfer to the end of its last one, over those of all others.
            let size = ((count - 1) * all + 1) * HARD_TRANSFER;
            let skip = (all - 1) * HARD_TRANSFER;
            let rw = if phase.creates() { "write" } else { "read" };
            let rw = if skip > 0 { format!("{rw}:{skip}") } else { rw.to_owned() };
            format!(
                "filename={}\nrw={rw}\noffset={first}\nsize={size}\nio_size={}\n",
                hard_file(setup),
                count * HARD_TRANSFER
            )
        }
        Unit::Lists => {
            let listed = lists(course, phase, own, of)?;
            format!("filename={listed}\n")
        }
    })
}

/// The directory of a worker's files, in that of the test.
fn directory(setup: &Setup, worker: &Worker) -> String {
    if setup.is_shared { "all".to_owned() } else { format!("w{}", worker.name()) }
}

/// The format of a worker's names.
fn names(setup: &Setup, worker: &Worker, kind: &str) -> String {
    if setup.is_shared {
        return format!("all/{}.{kind}$filenum", worker.name());
    }
    format!("w{}/{kind}$filenum", worker.name())
}

/// The file of a worker in `ior-easy`.
fn easy_file(setup: &Setup, worker: &str) -> String {
    format!("{}/ior.{worker}", escaped(&setup.directory))
}

/// The file of `ior-hard`.
fn hard_file(setup: &Setup) -> String {
    format!("{}/ior.hard", escaped(&setup.directory))
}

/// A path in `filename`, where a plain colon would begin another name.
fn escaped(path: &str) -> String {
    path.replace(':', "\\:")
}

/// The directories of a tree, with the one that it is in.
fn tree_names(setup: &Setup, root: &str) -> String {
    let mut paths: Vec<String> = vec![escaped(root)];
    for number in 1..setup.directories() {
        let breadth = u64::from(setup.breadth);
        let (parent, own) = ((number - 1) / breadth, (number - 1) % breadth);
        paths.push(format!("{}/t{own}", paths[parent as usize]));
    }
    paths.join(":")
}

/// The directories that a worker lists.
fn lists(course: &Course, phase: Phase, own: &Worker, of: &Worker) -> Option<String> {
    let setup = &course.setup;
    if phase == Phase::Readdir {
        // Each worker lists all of the shared tree, or its own.
        let root = format!("{}/{}", setup.directory, directory(setup, own));
        return Some(tree_names(setup, &root));
    }
    // The files of mdtest-easy are those of another worker, and the first worker also has the directories that all share.
    let mut listed = Vec::new();
    if course.made.files > 0 {
        listed.push(format!("{}/{}", escaped(&setup.directory), directory(setup, of)));
    }
    if own.task == 0 && own.machine == "0" && course.made.hard_files > 0 {
        listed.push(format!("{}/hard", escaped(&setup.directory)));
    }
    let of_rank = own.task == 0 && own.machine.starts_with('$') && !listed.is_empty();
    let more = if of_rank { format!("${{{HARD}}}") } else { String::new() };
    (!listed.is_empty()).then(|| listed.join(":") + &more)
}
