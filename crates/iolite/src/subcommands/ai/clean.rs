//! `--clean`: removes what killed tests have left in a target, here or on other machines.

use super::performer::Performer;
use super::site::{self, Site};
use crate::exit_status::INTERRUPTED;
use iolite_options::commands::Asked;
use iolite_procedures::ai::{left_names, removed};
use std::fmt::Write;

/// The answer as text, and the exit status.
pub fn run(asked: &Asked, target: &str) -> Result<(String, u8), String> {
    if asked.has("mpi") {
        return Err("--mpi: without it, the launcher lets each rank clean its own machine: mpirun iolite ai kv --clean TARGET"
            .to_owned());
    }
    let clients: Vec<String> = asked.values("client").map(str::to_owned).collect();
    if clients.is_empty() {
        return site::clean(target).map(|text| (text, 0));
    }
    let site = Site::of(asked, target)?;
    if site.place.kind != iolite_procedures::ai::place::Kind::Files {
        return Err(format!("--client: {} is cleaned from here; leave the option out", site.name));
    }
    let mut performer = Performer::new(asked)?;
    let mut text = String::new();
    // One after the other, because they may share storage.
    for client in clients {
        performer.runs_on(&client);
        let mut count = 0;
        // (What a directory has is known before a run, which needs at least one file.)
        for job in left_names() {
            match performer.perform(&site.place, &|place| job(place), None) {
                Ok(Ok(report)) => count = removed(&report),
                Ok(Err(_)) => return Ok((text, INTERRUPTED)),
                Err(why) => return Err(format!("--clean: {client}: {}: {why}", site.name)),
            }
        }
        line!(text, "{client}: {}: {count} files removed that killed tests had left", site.name);
    }
    Ok((text, 0))
}
