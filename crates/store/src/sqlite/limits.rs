//! The limits of a store: bytes, runs, and age.

use super::{runs_where, whole};
use crate::error::{Result, StoreError};
use crate::{Limits, Run};
use rusqlite::{Connection, params};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

pub fn read(connection: &Connection) -> Result<Limits> {
    let mut limits = Limits::default();
    let mut statement = connection.prepare("SELECT name, value FROM limits")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let value = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        match row.get::<_, String>(0)?.as_str() {
            "bytes" => limits.bytes = value,
            "runs" => limits.runs = value,
            "days" => limits.days = value,
            _ => {}
        }
    }
    Ok(limits)
}

pub fn write(connection: &Connection, limits: Limits) -> Result<()> {
    for (name, value) in [("bytes", limits.bytes), ("runs", limits.runs), ("days", limits.days)] {
        connection.execute(
            "INSERT OR REPLACE INTO limits (name, value) VALUES (?1, ?2)",
            params![name, whole(value)],
        )?;
    }
    Ok(())
}

/// The runs that may be dropped when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Going {
    /// Runs without a label first, then those with a label.
    All,
    /// Only runs without a label.
    WithoutLabel,
}

/// Drops runs beyond the limits: runs without a label first, the oldest first. The run `newest` stays.
pub fn apply(
    connection: &Connection,
    limits: Limits,
    now_ms: u64,
    newest: i64,
    going: Going,
) -> Result<Vec<Run>> {
    let candidates = runs_where(connection, "number <> ?1 ORDER BY label <> '', number", &[&newest])?;
    let (mut bytes, mut count): (i64, i64) =
        connection.query_row("SELECT coalesce(sum(length(report)), 0), count(*) FROM runs", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let mut dropped = Vec::new();
    for run in candidates {
        let age = now_ms.saturating_sub(run.kept_ms);
        let is_old = limits.days > 0 && age > limits.days.saturating_mul(DAY_MS);
        let stays = going == Going::WithoutLabel && !run.label.is_empty();
        if stays || !is_old && bytes <= whole(limits.bytes) && count <= whole(limits.runs) {
            continue;
        }
        connection.execute("DELETE FROM runs WHERE number = ?1", [run.number])?;
        bytes -= whole(run.size);
        count -= 1;
        dropped.push(run);
    }
    if going == Going::WithoutLabel && (bytes > whole(limits.bytes) || count > whole(limits.runs)) {
        return Err(StoreError::Full);
    }
    Ok(dropped)
}
