//! The checks that can be made on a job before anything runs.

use crate::layout::smallest_block;
use crate::safety::is_missing_device;
use crate::{Problem, dedupe, files, in_use, offsets, rates, replay};
use iolite_options::engines::EngineInfo;
use iolite_options::{JobOptions, RunOptions, SizeValue, SteadyStateCriterion};
use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

/// Priorities that are told apart in a direction, that of the job included.
pub const MOST_PRIORITIES: usize = 16;

/// Everything that is wrong with this job.
pub fn job(
    options: &JobOptions,
    engine: &EngineInfo,
    run: &RunOptions,
    replays: &[replay::Replay],
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut blame = |option: &str, message: String| {
        problems.push(Problem {
            job: options.name.clone(),
            origin: options.origins.get(option).cloned(),
            message,
        });
    };
    if !engine.supported {
        blame("ioengine", format!("ioengine={}: this engine is not supported yet", engine.name));
    }
    let changes = options.rw.writes() || options.rw.trims();
    let (blamed, what) = if replays.is_empty() {
        ("rw", format!("rw={}", options.rw.name()))
    } else {
        ("read_iolog", "the trace".to_owned())
    };
    if run.readonly && changes {
        blame(blamed, format!("{what} would change data, and --readonly forbids that"));
    }
    if let Some(message) =
        options.write_iolog.as_ref().and_then(|path| replay::recording_obstacle(path.as_ref()))
    {
        blame("write_iolog", format!("write_iolog: {message}"));
    }
    if !replays.is_empty() && options.verification.is_on() {
        blame("verify", "verify: what a replay writes is not read back; leave verify out".into());
    }
    let obstacles = [dedupe::obstacles(options), offsets::obstacles(options), rates::obstacles(options)];
    obstacles.into_iter().flatten().for_each(|(option, message)| blame(option, message));
    if options.numjobs == 0 {
        blame("numjobs", "numjobs=0: a job needs at least one worker".into());
    }
    if options.iodepth == 0 {
        blame("iodepth", "iodepth=0: the depth is at least 1".into());
    }
    /// The engines that can ask for writes that are whole or not at all.
    const ATOMIC: [&str; 3] = ["pvsync2", "libaio", "io_uring"];
    if options.atomic && options.rw.writes() && !ATOMIC.contains(&engine.name) {
        let message = format!(
            "atomic=1: ioengine={} cannot ask for atomic writes; {} can",
            engine.name,
            ATOMIC.join(", ")
        );
        blame("atomic", message);
    }
    let by_size = options.engine.cmdprio_bssplit.values.iter().any(|shares| !shares.is_empty());
    if by_size && options.engine.cmdprio_percentage.values.iter().any(|&percent| percent > 0) {
        let remedy = "give one of them";
        blame(
            "cmdprio_bssplit",
            format!("cmdprio_percentage and cmdprio_bssplit exclude each other: {remedy}"),
        );
    }
    let latency = [SteadyStateCriterion::Lat, SteadyStateCriterion::LatSlope];
    if options.steadystate_duration > 0
        && latency.contains(&options.steadystate.criterion)
        && (options.disable_clat || !options.stats)
    {
        blame(
            "steadystate",
            "steadystate: completion latencies are not measured; leave out disable_clat, gtod_reduce and stats=0, or \
             look at iops or bw"
                .into(),
        );
    }
    if options.block_error_percentiles && !changes {
        blame("block_error_percentiles", "block_error_percentiles: is for jobs that trim or write".into());
    }
    let different = options.engine.cmdprio_bssplit.values.iter().map(|shares| {
        let own: BTreeSet<_> = shares.iter().map(|share| share.priority).collect();
        own.len()
    });
    let most = different.max().unwrap_or(0);
    // One place is for the priority of the job itself.
    if most >= MOST_PRIORITIES {
        let message = format!(
            "cmdprio_bssplit: {most} different priorities are more than the {} whose latency can be told apart",
            MOST_PRIORITIES - 1
        );
        blame("cmdprio_bssplit", message);
    }
    if options.time_based && options.runtime == 0 {
        blame("time_based", "time_based needs a runtime= to say when the job ends".into());
    }
    for (option, message) in placement(options, &Machine::here()) {
        blame(option, message);
    }
    if let (Some(SizeValue::Bytes(size)), None) = (options.size, options.filesize)
        && size < smallest_block(options)
        && replays.is_empty()
    {
        let block = smallest_block(options);
        blame("size", format!("size={size} is smaller than the smallest block size, {block}"));
    }
    let names: BTreeSet<_> = if engine.diskless || (options.opendir.is_some() && replays.is_empty()) {
        BTreeSet::new()
    } else if !replays.is_empty() {
        replays.iter().flat_map(|(_, files)| files.iter().cloned()).collect()
    } else {
        (0..options.numjobs).flat_map(|clone| files::nominal(options, clone)).collect()
    };
    for name in names.iter().filter(|name| is_missing_device(name)) {
        let message = format!("{} does not exist, and no file is made among devices", name.display());
        blame("filename", message);
    }
    if changes && !options.allow_mounted_write {
        let untouched =
            |name: &PathBuf| !replays.is_empty() && !replays.iter().any(|one| one.0.changes(&one.1, name));
        for name in names.iter().filter(|name| !untouched(name)) {
            let is_block = std::fs::metadata(name).is_ok_and(|found| found.file_type().is_block_device());
            if is_block && let Some(reason) = in_use(name) {
                blame(
                    if replays.is_empty() { "filename" } else { "read_iolog" },
                    format!(
                        "{what} would change data on {}, but {reason}; allow_mounted_write=1 overrides this",
                        name.display()
                    ),
                );
            }
        }
    }
    problems
}

/// What jobs can be placed on.
struct Machine {
    cpus: u32,
    /// Its memory nodes, where the kernel tells.
    nodes: Option<BTreeSet<u32>>,
}

impl Machine {
    fn here() -> Machine {
        // SAFETY: always succeeds.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let number =
            |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok();
        let nodes = std::fs::read_dir("/sys/devices/system/node").ok();
        Machine {
            cpus: u32::try_from(cpus).unwrap_or(1).max(1),
            nodes: nodes.map(|entries| entries.flatten().filter_map(number).collect()),
        }
    }
}

/// CPUs and memory nodes that are not there.
fn placement(options: &JobOptions, machine: &Machine) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if let Some(cpu) = options.cpus_allowed.iter().find(|&&cpu| cpu >= machine.cpus) {
        let option = if options.is_set("cpus_allowed") { "cpus_allowed" } else { "cpumask" };
        found.push((option, format!("{option}: there is no CPU {cpu}, the last is {}", machine.cpus - 1)));
    }
    if let Some(cpu) = options.gtod_cpu.filter(|&cpu| cpu >= machine.cpus) {
        found
            .push(("gtod_cpu", format!("gtod_cpu: there is no CPU {cpu}, the last is {}", machine.cpus - 1)));
    }
    let policy = options.numa_mem_policy.as_ref().map_or(&[][..], |policy| &policy.nodes[..]);
    for (option, nodes) in [("numa_cpu_nodes", &options.numa_cpu_nodes[..]), ("numa_mem_policy", policy)] {
        if let Some(known) = &machine.nodes
            && let Some(node) = nodes.iter().find(|node| !known.contains(node))
        {
            let known: Vec<String> = known.iter().map(u32::to_string).collect();
            found.push((
                option,
                format!("{option}: there is no memory node {node}, only {}", known.join(", ")),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::ReadWrite;
    use iolite_options::engines::engine;

    fn messages(change: impl FnOnce(&mut JobOptions), run: RunOptions) -> Vec<String> {
        let mut options = JobOptions { name: "j".into(), ..JobOptions::default() };
        change(&mut options);
        let engine = engine(&options.ioengine).unwrap();
        job(&options, engine, &run, &[]).into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn readonly_forbids_changes_only() {
        let readonly = || RunOptions { readonly: true, ..RunOptions::default() };
        assert_eq!(messages(|o| o.rw = ReadWrite::RandRead, readonly()), [""; 0]);
        assert_eq!(messages(|o| o.rw = ReadWrite::RandWrite, readonly()).len(), 1);
        assert_eq!(messages(|o| o.rw = ReadWrite::Trim, readonly()).len(), 1);
    }

    #[test]
    fn cpus_and_nodes_have_to_be_there() {
        let machine = Machine { cpus: 2, nodes: Some(BTreeSet::from([0])) };
        let found = |change: &dyn Fn(&mut JobOptions)| {
            let mut options = JobOptions::default();
            change(&mut options);
            placement(&options, &machine).into_iter().map(|(option, _)| option).collect::<Vec<_>>()
        };
        assert_eq!(found(&|o| o.cpus_allowed = vec![0, 1]), [""; 0]);
        assert_eq!(found(&|o| o.cpus_allowed = vec![0, 2]), ["cpumask"]);
        assert_eq!(found(&|o| o.numa_cpu_nodes = vec![0]), [""; 0]);
        assert_eq!(found(&|o| o.numa_cpu_nodes = vec![0, 1]), ["numa_cpu_nodes"]);
        let unknown = Machine { cpus: 2, nodes: None };
        let options = JobOptions { numa_cpu_nodes: vec![7], ..JobOptions::default() };
        assert_eq!(placement(&options, &unknown), []);
    }

    #[test]
    fn several_mistakes_are_told_together() {
        let found = messages(
            |o| {
                o.iodepth = 0;
                o.time_based = true;
                o.size = Some(SizeValue::Bytes(100));
            },
            RunOptions::default(),
        );
        assert_eq!(found.len(), 3, "{found:?}");
    }
}
