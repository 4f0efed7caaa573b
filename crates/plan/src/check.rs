//! Checks a job, and a whole plan, before anything runs.
//!
//! Each subject checks its own options in its own module. This module calls them all, and adds the checks that depend
//! on the engine and on the command line.

use crate::replay::Replay;
use crate::safety;
use crate::{
    Plan, Problem, affinity, amounts, batches, buffer_file, dedupe, limits, logs, measuring, placement,
    priorities, rates, readonly, replay, system_support, zone_conflicts,
};
use iolite_host::Machine;
use iolite_options::engines::{EngineInfo, Obstacle};
use iolite_options::{JobOptions, RunOptions};

/// Everything that is wrong with this job.
pub fn job(
    options: &JobOptions,
    engine: &EngineInfo,
    run: &RunOptions,
    replays: &[Replay],
    machine: &dyn Machine,
) -> Vec<Problem> {
    let of_options = [
        dedupe::obstacles,
        zone_conflicts::obstacles,
        rates::obstacles,
        amounts::obstacles,
        batches::obstacles,
        priorities::obstacles,
        measuring::obstacles,
    ];
    let mut obstacles = crate::engines::obstacles(options, engine, run);
    obstacles.extend(crate::zones::obstacles(options, engine));
    obstacles.extend(measuring::obstacle_to_stages(options, engine));
    if run.readonly {
        obstacles.extend(readonly::obstacles(options, engine, replays, machine));
    }
    obstacles.extend(of_options.iter().flat_map(|obstacles| obstacles(options)));
    // The language can be checked anywhere; whether this machine can run the job is another question.
    if !run.parse_only {
        obstacles.extend(of_replay(options, replays, machine));
        obstacles.extend(placement::obstacles(options, machine));
        obstacles.extend(buffer_file::obstacles(options, machine));
        obstacles.extend(safety::obstacles(options, engine, replays, machine));
    }
    obstacles.into_iter().map(|(option, message)| Problem::of(options, option, message)).collect()
}

/// The demands of a whole plan that this machine cannot meet. Reporting them before the first file is touched is better
/// than letting workers fail.
pub fn impossible(plan: &Plan, machine: &dyn Machine) -> Vec<Problem> {
    let of_plan = [limits::problems, system_support::problems, affinity::problems, logs::problems];
    of_plan.iter().flat_map(|problems| problems(plan, machine)).collect()
}

/// Problems with the traces that the job records and replays.
fn of_replay(options: &JobOptions, replays: &[Replay], machine: &dyn Machine) -> Vec<Obstacle> {
    let mut found = Vec::new();
    let recorded = options.replay.write_iolog.as_ref();
    if let Some(message) = recorded.and_then(|path| replay::recording_obstacle(path.as_ref(), machine)) {
        found.push(("write_iolog", format!("write_iolog: {message}")));
    }
    if !replays.is_empty() && options.verification.is_on() && options.verification.trim_percentage > 0 {
        let message = "trim_percentage: what a replay trims is in its trace; leave trim_percentage out";
        found.push(("trim_percentage", message.into()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::MadeUp;
    use iolite_options::{ReadWrite, SizeValue};

    fn messages(change: impl FnOnce(&mut JobOptions), run: RunOptions) -> Vec<String> {
        let mut options = JobOptions { name: "j".into(), ..JobOptions::default() };
        change(&mut options);
        let engine = options.chosen_engine().unwrap();
        job(&options, &engine, &run, &[], &MadeUp::new()).into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn several_mistakes_are_reported_together() {
        let found = messages(
            |o| {
                o.ioengine = "mmap".into();
                o.pattern.rw = ReadWrite::Trim;
                o.extent.size = Some(SizeValue::Bytes(100));
            },
            RunOptions::default(),
        );
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
