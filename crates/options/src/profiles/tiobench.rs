//! `--profile=tiobench`: the workload of tiobench. Four passes over four files, one after the other: sequential
//! writes, random writes, sequential reads, random reads.

use super::{Profile, Wishes, section};
use crate::definition::{Definition, Kind};
use crate::section::Section;
use crate::values::{Notes, integer};

static SIZE: Definition = Definition::profile("size", Kind::Str, "Size in MiB, or with a unit");
static BLOCK: Definition =
    Definition::profile("block", Kind::Int, "Block size in bytes").default("4096").min(1);
static NUMRUNS: Definition = Definition::profile("numruns", Kind::Int, "Number of runs").default("1").min(1);
static DIR: Definition = Definition::profile("dir", Kind::Str, "Test directory").default("./");
static THREADS: Definition =
    Definition::profile("threads", Kind::Int, "Number of threads").default("1").min(1);

pub(super) const PROFILE: Profile = Profile {
    name: "tiobench",
    help: "Sequential and random writes and reads over four files, as tiobench does them",
    options: &[&SIZE, &BLOCK, &NUMRUNS, &DIR, &THREADS],
    jobs,
};

fn jobs(wishes: &Wishes<'_>) -> Result<Vec<Section>, String> {
    let text = |option, default| wishes.number(option).unwrap_or(default).to_string();
    let defaults = section(
        "",
        &[
            ("buffered", "0"),
            ("size", &size(wishes)?.to_string()),
            ("bs", &text(&BLOCK, 4096)),
            ("loops", &text(&NUMRUNS, 1)),
            ("directory", wishes.text(&DIR).unwrap_or("./")),
            ("numjobs", &text(&THREADS, 1)),
            ("runtime", "600"),
            ("group_reporting", ""),
            ("thread", ""),
            ("overwrite", "1"),
            ("filename", ".fio.tio.1:.fio.tio.2:.fio.tio.3:.fio.tio.4"),
            ("ioengine", "sync"),
        ],
    );
    Ok(vec![
        defaults,
        section("seqwrite", &[("rw", "write"), ("end_fsync", "1")]),
        section("randwrite", &[("stonewall", ""), ("rw", "randwrite"), ("end_fsync", "1")]),
        section("seqread", &[("stonewall", ""), ("rw", "read")]),
        section("randread", &[("stonewall", ""), ("rw", "randread")]),
    ])
}

/// Bytes of all files together. The default is fio's: four KiB for each MiB of memory.
fn size(wishes: &Wishes<'_>) -> Result<u64, String> {
    let Some(text) = wishes.text(&SIZE) else { return Ok(wishes.facts.memory_mebibytes * (4 << 10)) };
    let problem = |why: String| format!("size={text}: {why}");
    let mut notes = Notes::default();
    let number = integer(text, 1024, &mut notes).map_err(problem)?;
    if let Some(note) = notes.pop() {
        return Err(problem(note));
    }
    let unit = if text.bytes().all(|byte| byte.is_ascii_digit()) { 1 << 20 } else { 1 };
    u64::try_from(number)
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| problem("no size of files".to_owned()))
}
