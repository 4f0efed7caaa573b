//! Every rule of zones on every zoned device, with every engine, in the virtual machine of the tests ([`iolite_testing::zones`]).
//! Nothing here is left to chance: the trials go through the table, a few rules at a time, and end with it.

use crate::stop::Stop;
use crate::trial::Trial;
use iolite_testing::vm;
use iolite_testing::zones::{CASES, Case, DEVICES, Device, ENGINES, OTHER_DEVICES, complaints, script};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many rules a trial tries. Programs start slowly in the machine.
const RULES: usize = 6;

/// A device, an engine, rules to try with them, and whether fio does the same jobs.
type Rules = (&'static Device, &'static str, Vec<&'static Case>, bool);

/// The table, in pieces of the size of a trial. Each device comes with each engine. With one of them, fio runs the same
/// jobs: its zone commands do not depend on the engine, and it takes seconds to start there.
fn table() -> Vec<Rules> {
    let turn = |turn| {
        let engines = ENGINES.into_iter().cycle().skip(turn);
        DEVICES.iter().zip(engines).map(move |(device, engine)| (device, engine, turn == 0))
    };
    let others = OTHER_DEVICES.iter().zip(ENGINES.into_iter().cycle());
    let others = others.map(|(device, engine)| (device, engine, false));
    let all = turn(0).chain(others).chain((1..ENGINES.len()).flat_map(turn));
    let pieces = all.flat_map(|(device, engine, is_compared)| {
        let cases: Vec<&Case> = CASES.iter().filter(|case| case.suits(device)).collect();
        let pieces = cases.chunks(RULES).map(|cases| (device, engine, cases.to_vec(), is_compared));
        pieces.collect::<Vec<Rules>>()
    });
    pieces.collect()
}

/// How many trials the table is.
pub fn count() -> u64 {
    table().len() as u64
}

/// Performs one trial.
pub fn perform(trial: &mut Trial<'_>, number: u64) -> Result<(), Stop> {
    let table = table();
    let (device, engine, cases, is_compared) = &table[(number % table.len() as u64) as usize];
    let jobs: Vec<(&Case, &str)> = cases.iter().map(|&case| (case, *engine)).collect();
    let program = fs::canonicalize(trial.program()).map_err(Stop::of("the program"))?;
    // Before 3.41, fio resets other zones.
    let peers = iolite_testing::peers().iter().filter(|peer| peer.release.minor >= 41);
    let peer = peers
        .filter(|_| *is_compared)
        .max_by_key(|peer| peer.release.minor)
        .map(|peer| peer.path.display().to_string());
    let script = script(device, &jobs, &program.display().to_string(), peer.as_deref());
    let ran = catch_unwind(AssertUnwindSafe(|| vm::run(&format!("zones-{number}"), &script)))
        .map_err(|_| Stop(format!("the virtual machine was lost:\n{script}")))?
        .map_err(Stop)?;
    if ran.status != 0 {
        return Err(Stop(format!("no device: {}\n{script}", ran.output)));
    }
    for (case, engine) in jobs {
        complaints(&ran, device, case, engine).into_iter().for_each(|what| trial.wrong(what));
    }
    Ok(())
}
