//! What the options ask for.

use super::machines::Machines;
use iolite_host::{Machine, ThisMachine};
use iolite_options::commands::{Asked, microseconds};
use iolite_page::text::bytes;
use iolite_procedures::meta::{IO500, PLAIN, Phase, Setup};
use std::path::Path;

/// The most workers: each is a section of a job file.
const MOST_WORKERS: u64 = 100_000;
/// The most workers on each machine unless another number is asked for.
const USUAL_TASKS: usize = 16;
/// Files of each worker unless another number is asked for.
const FILES: u64 = 1000;
/// The same if a limit of time ends the phases that create them.
const FILES_IN_TIME: u64 = 1_000_000;
/// Seconds of the phases that create something, as IO500 demands of submissions.
const IO500_SECONDS: f64 = 300.0;
/// Bytes that a small file takes, at the least; those of IO500 have fewer.
const LEAST_ROOM: u64 = 4096;
/// A phase with a limit of time writes this share of the free space at most, unless another amount is asked for.
const SHARE: u64 = 4;

/// The setup that the options ask for.
pub fn setup(asked: &Asked, target: &Path, machines: &Machines) -> Result<Setup, String> {
    let is_io500 = asked.has("preset");
    let phases = phases(asked, is_io500)?;
    for (option, is_idle, why) in [
        ("size", is_io500, "the sizes of IO500 are fixed"),
        ("shared", is_io500, "IO500 says which directories are shared"),
        ("depth", is_io500, "the directories of IO500 have no tree"),
        ("breadth", !asked.has("depth"), "there is no tree without --depth"),
        ("data", !is_io500, "it belongs to --preset=io500"),
    ] {
        if is_idle && asked.has(option) {
            return Err(format!("--{option}: {why}"));
        }
    }
    let number = |word: &str, least: u64, most: u64, usual: u64| match asked.number(word, least)? {
        Some(value) if value > most => Err(format!("--{word}={value}: must be at most {most}")),
        value => Ok(value.unwrap_or(usual)),
    };
    let seconds = match asked.value("time") {
        Some(text) => {
            if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && text != "0" {
                return Err(format!("--time={text}: the unit is missing, such as {text}s"));
            }
            let time = microseconds(text).map_err(|why| format!("--time={text}: {why}"))?;
            if time < 1000 {
                return Err(format!(
                    "--time={text}: a phase needs at least a millisecond; units are us, ms, s, m, h"
                ));
            }
            Some(time as f64 / 1e6)
        }
        None => is_io500.then_some(IO500_SECONDS),
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from).min(USUAL_TASKS);
    let tasks = number("tasks", 1, MOST_WORKERS, cpus as u64)?;
    let workers = tasks * u64::from(machines.count());
    if workers > MOST_WORKERS {
        return Err(format!(
            "--tasks={tasks}: {workers} workers on all machines are more than {MOST_WORKERS}"
        ));
    }
    let size = number("size", 0, 1 << 40, 4096)?;
    // Four phases of IO500 make things; each may use an equal part of what the file system has.
    let part_of = |free: Option<u64>| free.map_or(u64::MAX >> 20, |free| free / (SHARE * workers)).max(1);
    let usual_data = part_of(free(target));
    let inodes = part_of(iolite_os::files::free_inodes(target));
    let usual_files = match seconds {
        Some(_) => FILES_IN_TIME.min(inodes).min(usual_data / size.max(LEAST_ROOM)).max(1),
        None => FILES,
    };
    let shift = number("shift", 0, MOST_WORKERS, u64::from(is_io500))?;
    let (makers, who) = match machines.count() {
        1 => (tasks, "worker"),
        count => (u64::from(count), "machine"),
    };
    if shift >= makers && asked.has("shift") {
        let is = if makers == 1 { "is" } else { "are" };
        return Err(format!("--shift={shift}: must be below the number of {who}s, and there {is} {makers}"));
    }
    Ok(Setup {
        // (The name of the test's own directory comes when it is made.)
        directory: target.display().to_string(),
        machines: machines.count(),
        tasks: tasks as u32,
        files: number("files", 1, 4_000_000_000, usual_files)? as u32,
        is_shared: asked.has("shared"),
        depth: number("depth", 0, 32, 0)? as u32,
        breadth: number("breadth", 1, 65_536, 2)? as u32,
        size,
        seconds,
        shift: shift as u32,
        data: number("data", 1, u64::MAX >> 1, usual_data)?,
        phases: if asked.value("size") == Some("0") && !asked.has("phases") {
            phases.into_iter().filter(|phase| *phase != Phase::Read).collect()
        } else {
            phases
        },
        bucket: None,
    })
}

fn phases(asked: &Asked, is_io500: bool) -> Result<Vec<Phase>, String> {
    let Some(list) = asked.value("phases") else {
        return Ok(if is_io500 { IO500.to_vec() } else { PLAIN.to_vec() });
    };
    if is_io500 {
        return Err("--phases: those of IO500 are fixed; give either --phases or --preset".to_owned());
    }
    let known = || PLAIN.map(Phase::name).join(", ");
    let phase = |name: &str| {
        Phase::of_name(name.trim())
            .ok_or_else(|| format!("--phases={list}: {name:?} is not one of {}", known()))
    };
    list.split(',').map(phase).collect()
}

/// Free bytes of the target's file system; `None` = unknown.
fn free(target: &Path) -> Option<u64> {
    // Without what file systems reserve for root, because the root of a container may not use that.
    Some(ThisMachine::new().file_system(target).ok()?.available)
}

/// Whether all that is asked for has room. Phases with a limit of time may end before.
pub fn check_room(setup: &Setup, target: &Path) -> Result<(), String> {
    if setup.seconds.is_some() {
        return Ok(());
    }
    let each = u64::from(setup.files) * u64::from(setup.workers());
    let has = |phase| setup.phases.contains(&phase);
    let needed = if has(Phase::Create) { each.saturating_mul(setup.size) } else { 0 };
    if let Some(free) = free(target).filter(|free| needed > *free) {
        return Err(format!(
            "{}: {} files of {} bytes need {}, and {} are free; take fewer or smaller ones (--files, --size)",
            target.display(),
            each,
            setup.size,
            bytes(needed as f64),
            bytes(free as f64)
        ));
    }
    let names = each.saturating_mul(u64::from(has(Phase::Create)) + u64::from(has(Phase::Mkdir)));
    match iolite_os::files::free_inodes(target).filter(|free| names > *free) {
        Some(free) => Err(format!(
            "{}: {names} files and directories are to be made, and the file system has room for {free} (df -i); take fewer \
             (--files)",
            target.display()
        )),
        None => Ok(()),
    }
}
