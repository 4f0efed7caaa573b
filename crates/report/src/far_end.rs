//! The results of the other end of a connection, if that is a job of the same run.

use iolite_stats::{DirectionReport, JobReport, Report};
use iolite_types::Direction;

/// A job at the other end.
pub struct FarEnd<'a> {
    /// The job.
    pub job: &'a JobReport,
    /// Bytes that one end sent and the other did not receive; `None` if one of them has other connections as well.
    pub lost: Option<u64>,
}

impl<'a> FarEnd<'a> {
    /// Its reads (received) and writes (sent).
    pub fn moved(&self) -> impl Iterator<Item = (Direction, &'a DirectionReport)> {
        self.job.directions.iter().filter(|(_, measured)| measured.issued > 0)
    }
}

/// The jobs at the other ends of a job's connections, in the order of the report.
pub fn of<'a>(report: &'a Report, job: &JobReport) -> Vec<FarEnd<'a>> {
    let is_other = |other: &&JobReport| job.connected.contains(&other.identity.block);
    let others = report.jobs.iter().filter(is_other);
    others.map(|far| FarEnd { job: far, lost: lost(job, far) }).collect()
}

fn lost(near: &JobReport, far: &JobReport) -> Option<u64> {
    let bytes = |job: &JobReport, direction| job.directions[direction].bytes;
    let way = |from, to| bytes(from, Direction::Write).saturating_sub(bytes(to, Direction::Read));
    let is_alone = near.connected.len() == 1 && far.connected.len() == 1;
    is_alone.then(|| way(near, far).saturating_add(way(far, near)))
}
