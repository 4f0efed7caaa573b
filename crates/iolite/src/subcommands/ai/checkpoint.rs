//! `iolite ai checkpoint`: ranks write, sync and read back.

use super::answer::{Answer, NOTE, table};
use super::own_process::{self, Performer, announce};
use super::site::Site;
use super::{Outcome, of_option};
use iolite_options::commands::Asked;
use iolite_page::text::{bandwidth, bytes};
use iolite_procedures::ai::checkpoint::{Checkpoint, Layout, Phase};
use iolite_procedures::ai::models::{SOURCE, Saved};
use iolite_procedures::ai::place::{Kind, Place};
use serde_json::{Value, json};
use std::fmt::Write;

/// The most ranks of a machine.
const MOST_RANKS: u64 = 1 << 12;
/// The most bytes of a rank.
const MOST: u64 = 1 << 50;

/// Writes a checkpoint and reads it back.
pub fn run(program: &str, asked: &Asked, target: &str) -> Result<Outcome, String> {
    let model = asked.value("preset").map(|name| of_option("preset", name, Saved::of(name))).transpose()?;
    let site = Site::of(asked, target)?;
    let checkpoint = of(asked, model, &site)?;
    let all = checkpoint.bytes.saturating_mul(checkpoint.ranks);
    let mut site = site.with_own_room(all, asked.has("show-job"))?;
    let make = |place: &Place| checkpoint.job(place);
    if asked.has("show-job") {
        return Ok(Outcome::Said(site.shown(&make(&site.place))));
    }
    site.check_server()?;
    let what = format!(
        "checkpoint: {}{} write {} each to {}, and read it back",
        ranks(checkpoint.ranks),
        if site.place.is_on_machines { " on each machine" } else { "" },
        bytes(checkpoint.bytes as f64),
        site.name
    );
    announce(program, asked, &what);
    let report =
        match Performer::new(asked)?.perform(&site.place, &make, Some(&|place| checkpoint.made(place))) {
            Ok(Ok(report)) => report,
            Ok(Err(other)) => return Ok(other),
            Err(why) => return Err(format!("{}: {why}", site.name)),
        };
    let [write, read] = [Phase::of(&report, "write")?, Phase::of(&report, "read")?];
    Ok(Outcome::Answered(Box::new(answer(&site, model, checkpoint, [write, read], report))))
}

fn of(asked: &Asked, model: Option<Saved>, site: &Site) -> Result<Checkpoint, String> {
    let machines = own_process::machines(asked);
    let ranks = match (asked.number("ranks", 1)?, model) {
        (Some(ranks), _) if ranks > MOST_RANKS => {
            return Err(format!("--ranks={ranks}: must be at most {MOST_RANKS}"));
        }
        (Some(ranks), Some(model)) if ranks.saturating_mul(machines) > model.ranks => {
            let on_each =
                if machines > 1 { format!(" on each of {machines} machines") } else { String::new() };
            return Err(format!(
                "--ranks={ranks}: a checkpoint of {} has {} ranks; take fewer{on_each}",
                model.title, model.ranks
            ));
        }
        (Some(ranks), _) => ranks,
        (None, Some(_)) if site.place.is_on_machines => {
            return Err("--ranks: how many ranks has each machine?".to_owned());
        }
        (None, Some(model)) => model.ranks,
        (None, None) => {
            return Err(
                "the ranks are missing: --ranks=NUMBER --size=BYTES, or a model (--preset)".to_owned()
            );
        }
    };
    let size = match (asked.number("size", 1)?, model) {
        (Some(_), Some(_)) => {
            return Err("--size: the model has a size; --scale takes a part of it".to_owned());
        }
        (Some(size), None) => size,
        (None, Some(model)) => model.bytes / model.ranks,
        (None, None) => {
            return Err("the bytes of each rank are missing: --size=BYTES, or a model (--preset)".to_owned());
        }
    };
    let scale = asked.fraction("scale", 0.0, 1000.0)?.unwrap_or(1.0);
    let size = (size as f64 * scale).round() as u64;
    if !(1..=MOST).contains(&size) {
        return Err(format!(
            "--size, --scale: a rank would write {size} bytes; between 1 and {MOST} are possible"
        ));
    }
    let files = asked.number("files", 1)?;
    let layout = match (asked.value("layout"), files) {
        (Some("shared"), Some(_)) => {
            return Err("--files: ranks share one file; leave one of the options out".to_owned());
        }
        (Some("shared"), None) => Layout::Shared,
        (_, Some(files)) if files > size || files > 1 << 20 => {
            return Err(format!("--files={files}: too many for {size} bytes"));
        }
        (_, files) => Layout::Own(files.unwrap_or(1)),
    };
    if layout == Layout::Shared && site.place.kind == Kind::Objects {
        return Err("--layout=shared: an object is written by one; leave it out".to_owned());
    }
    Ok(Checkpoint::new(ranks, size, layout, &site.place))
}

fn ranks(count: u64) -> String {
    if count == 1 { "1 rank".to_owned() } else { format!("{count} ranks") }
}

fn answer(
    site: &Site,
    model: Option<Saved>,
    checkpoint: Checkpoint,
    phases: [Phase; 2],
    report: Value,
) -> Answer {
    let mut text = String::new();
    let of_model = model.map_or_else(String::new, |model| format!(", as of {} ({SOURCE})", model.title));
    let layout = match checkpoint.layout {
        Layout::Own(1) => "a file each".to_owned(),
        Layout::Own(files) => format!("{files} files each"),
        Layout::Shared => "one file for all".to_owned(),
    };
    line!(
        text,
        "{}: {}, {} each{of_model}; {layout}\n",
        site.name,
        ranks(phases[0].ranks),
        bytes(checkpoint.bytes as f64)
    );
    let mut rows =
        vec![["", "slowest rank", "fastest", "of the slowest", "all together"].map(str::to_owned).to_vec()];
    for (name, phase) in ["write", "read"].into_iter().zip(phases) {
        rows.push(vec![
            name.to_owned(),
            format!("{:.3} s", phase.seconds[1]),
            format!("{:.3} s", phase.seconds[0]),
            bandwidth(phase.slowest),
            bandwidth(phase.bandwidth()),
        ]);
    }
    text += &table(&rows);
    text.push('\n');
    let mut notes = Vec::new();
    if site.place.kind == Kind::Files {
        notes.push("writes include fsync; before the read, the page cache of this machine was asked to drop the files");
    }
    for note in &notes {
        line!(text, "Note: {note}.");
    }
    line!(text, "{NOTE}");
    let value = json!({
        "test": "checkpoint", "target": site.name, "model": model.map(|model| model.name), "ranks": phases[0].ranks,
        "rank_bytes": checkpoint.bytes, "shared": checkpoint.layout == Layout::Shared,
        "write": phases[0].json(), "read": phases[1].json(), "notes": notes, "about": NOTE,
    });
    Answer { text, value, report, status: 0 }
}
