//! Every rule of zones on every zoned device, with every engine, in the virtual machine of the tests ([`iolite_testing::zones`]).
//! Nothing here is left to chance: the trials go through the table, a few rules at a time, and begin anew behind its end.

use crate::trial::{Stop, Trial};
use iolite_testing::vm;
use iolite_testing::zones::{CASES, Case, DEVICES, ENGINES, complaints, script};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many rules a trial tries. Programs start slowly in the machine.
const RULES: usize = 6;

/// Performs one trial.
pub fn perform(trial: &mut Trial<'_>, number: u64) -> Result<(), Stop> {
    let groups: Vec<&[Case]> = CASES.chunks(RULES).collect();
    let turn = (number % (groups.len() * DEVICES.len() * ENGINES.len()) as u64) as usize;
    let device = &DEVICES[turn % DEVICES.len()];
    let engine = ENGINES[turn / DEVICES.len() % ENGINES.len()];
    let jobs: Vec<(&Case, &str)> =
        groups[turn / DEVICES.len() / ENGINES.len()].iter().map(|case| (case, engine)).collect();
    let program = fs::canonicalize(trial.program()).map_err(Stop::of("the program"))?;
    // Before 3.41, fio resets other zones.
    let peers = iolite_testing::peers().into_iter().filter(|peer| peer.release.minor >= 41);
    let peer = peers.max_by_key(|peer| peer.release.minor).map(|peer| peer.path.display().to_string());
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
