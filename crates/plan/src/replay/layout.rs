//! Checks that the files of a replay suit its trace, and decides their sizes.

use super::{FileNeeds, ReplayPlan};
use crate::{FileFacts, FileKind, FileLayout, Layout, LeftOut};
use iolite_host::Machine;
use iolite_trace::Place;
use iolite_types::Direction;
use std::path::{Path, PathBuf};

/// Checks that only block devices are trimmed.
pub(super) fn check_kinds(
    replay: &ReplayPlan,
    files: &[PathBuf],
    machine: &dyn Machine,
) -> Result<(), String> {
    for (path, needs) in files.iter().zip(&replay.needs) {
        let Some(place) = needs.first[Direction::Trim] else { continue };
        let is_block = machine.file(path).ok().flatten().is_some_and(|found| found.is_block_device());
        if !is_block {
            return Err(format!(
                "{}: {} trims {}, which is not a block device; replay_skip=trim leaves trims out",
                replay.name.display(),
                words(place),
                path.display()
            ));
        }
    }
    Ok(())
}

fn words(place: Place) -> String {
    match place {
        Place::Line(line) => format!("line {line}"),
        Place::Record(record) => format!("record {record}"),
        Place::Whole => "the trace".into(),
    }
}

/// The layout of a replay's files: regions reach as far as the trace, and regular files are created as large as it
/// reads (if the engine keeps data).
///
/// # Errors
/// A device is too small for the trace.
pub fn replay_layout(
    replay: &ReplayPlan,
    files: &[(PathBuf, FileFacts)],
    keeps_data: bool,
) -> Result<Layout, String> {
    let laid_out = files.iter().zip(&replay.needs).map(|((path, facts), needs)| {
        let end = needs.end.values.into_iter().max().unwrap_or(0);
        let size = facts.size.unwrap_or(0);
        if facts.is_device_of_a_size() && end > size {
            return Err(format!("{}: {}", replay.name.display(), too_small(path, needs, size)));
        }
        let read_end = needs.end[Direction::Read];
        let is_file = facts.kind == FileKind::Regular && keeps_data;
        Ok(FileLayout {
            path: path.clone(),
            kind: facts.kind,
            exists: facts.size.is_some() || facts.kind != FileKind::Regular,
            offset: 0,
            length: end,
            amount: end,
            extend_to: (is_file && size < read_end).then_some(read_end),
            is_whole: true,
            zoned: None,
        })
    });
    let files = laid_out.collect::<Result<_, _>>()?;
    Ok(Layout {
        files,
        pass_bytes: Some(replay.bytes.unwrap_or(0)),
        left_out: LeftOut::default(),
        named: None,
    })
}

fn too_small(path: &Path, needs: &FileNeeds, size: u64) -> String {
    let ends = needs.end.values.into_iter().zip(needs.farthest.values);
    let (end, place) = ends.max_by_key(|&(end, _)| end).unwrap_or((0, None));
    let place = words(place.unwrap_or(Place::Whole));
    let message = format!("{place} reaches byte {end} of {}, which has {size}", path.display());
    match size {
        0 => message,
        _ => format!("{message}; replay_scale={} would make it fit", end.div_ceil(size).max(2)),
    }
}
