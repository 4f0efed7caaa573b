//! Stages over depth, and the rate that follows from them.
//!
//! The model has three times. *Issue* (`Tissue`): until the hardware has an I/O, one after the other. *Delay* (`Tdelay`):
//! until a single I/O is back. *Move* (`Tmove`): what each I/O that is already in the hardware's queue adds for the next. So
//! `n` I/Os take `n·Tissue + Tdelay + n(n−1)/2·Tmove`. Issue and delay are the stages at depth 1, where nothing moves. The
//! move is the one that fits the rates of all depths best.

use iolite_stored::{DIRECTIONS, number};
use serde_json::Value;

/// The mean time of each stage at a point, of all jobs and directions together, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageMeans {
    /// From issue to the block layer.
    pub submit: f64,
    /// To the driver.
    pub queue: f64,
    /// To completion.
    pub device: f64,
    /// Until the job has noticed.
    pub reap: f64,
}

impl StageMeans {
    /// Reads a report; `None` = stages were not measured on block devices.
    pub fn of(report: &Value) -> Option<StageMeans> {
        let jobs = report["iolite"]["stages"].as_array()?;
        let told = || jobs.iter().flat_map(|job| DIRECTIONS.map(|direction| &job[direction]));
        let told = || told().filter(|told| told["device_ns"].is_object() && number(told, "ios") > 0.0);
        let ios: f64 = told().map(|told| number(told, "ios")).sum();
        let mean = |key: &str| {
            told().map(|told| number(told, "ios") * number(&told[key], "mean")).sum::<f64>() / ios
        };
        (ios > 0.0).then(|| StageMeans {
            submit: mean("submit_ns"),
            queue: mean("queue_ns"),
            device: mean("device_ns"),
            reap: mean("reap_ns"),
        })
    }

    /// Until the hardware has it.
    pub fn issue(&self) -> f64 {
        self.submit + self.queue
    }

    /// Until it is back.
    pub fn delay(&self) -> f64 {
        self.device + self.reap
    }
}

/// What follows at a depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Follows {
    /// The move that the rate at this depth alone tells; `None` at depth 1.
    pub move_ns: Option<f64>,
    /// The rate by the model.
    pub iops: f64,
}

/// The model of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct StageModel {
    /// `Tissue`
    pub issue_ns: f64,
    /// `Tdelay`
    pub delay_ns: f64,
    /// `Tmove`
    pub move_ns: f64,
    /// For each point, in order.
    pub points: Vec<Follows>,
    /// How well the rates fit those that were measured: the coefficient of determination, 1 = exactly.
    pub fit: f64,
}

impl StageModel {
    /// A model that explains less of how rates differ says nothing (as with the law of saturation).
    pub const LEAST_FIT: f64 = 0.9;

    /// The model of points by rising depth, each with its rate and its stages; `None` = the first has another depth
    /// than 1, or there are fewer than two.
    pub fn of(points: &[(f64, f64, StageMeans)]) -> Option<StageModel> {
        let [(first_depth, _, alone), _, ..] = points else { return None };
        if *first_depth != 1.0 {
            return None;
        }
        let (issue_ns, delay_ns) = (alone.issue(), alone.delay());
        // The time for as many I/Os as the depth, and how many moves are in it.
        let whole = |depth: f64, iops: f64| depth * 1e9 / iops;
        let moves = |depth: f64| depth * (depth - 1.0) / 2.0;
        let moved = |depth: f64, iops: f64| whole(depth, iops) - depth * issue_ns - delay_ns;
        let (mut above, mut below) = (0.0, 0.0);
        for &(depth, iops, _) in points.iter().filter(|point| point.1 > 0.0) {
            // Errors count in proportion to the time.
            let weight = 1.0 / whole(depth, iops).powi(2);
            above += weight * moves(depth) * moved(depth, iops);
            below += weight * moves(depth).powi(2);
        }
        let move_ns = if below > 0.0 { (above / below).max(0.0) } else { 0.0 };
        let follows = |&(depth, iops, _): &(f64, f64, StageMeans)| {
            let all_ns = depth * issue_ns + delay_ns + moves(depth) * move_ns;
            Follows {
                move_ns: (depth > 1.0 && iops > 0.0).then(|| moved(depth, iops) / moves(depth)),
                iops: if all_ns > 0.0 { depth * 1e9 / all_ns } else { 0.0 },
            }
        };
        let follow: Vec<Follows> = points.iter().map(follows).collect();
        let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
        let square = |value: f64| value * value;
        let wrong: f64 = points.iter().zip(&follow).map(|(point, found)| square(point.1 - found.iops)).sum();
        let spread: f64 = points.iter().map(|point| square(point.1 - mean)).sum();
        let fit = if spread > 0.0 { 1.0 - wrong / spread } else { 0.0 };
        Some(StageModel { issue_ns, delay_ns, move_ns, points: follow, fit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn means_are_weighted_by_ios() {
        let one = |ios: u64, device: f64| {
            json!({"ios": ios, "submit_ns": {"mean": 1.0}, "queue_ns": {"mean": 2.0}, "device_ns": {"mean": device},
                "reap_ns": {"mean": 3.0}})
        };
        let report = json!({"iolite": {"stages": [{"read": one(300, 10.0), "write": one(100, 50.0)}]}});
        let means = StageMeans::of(&report).unwrap();
        assert_eq!((means.issue(), means.delay()), (3.0, 23.0));
        assert_eq!(StageMeans::of(&json!({"iolite": {"stages": []}})), None);
        assert_eq!(StageMeans::of(&json!({"jobs": []})), None);
    }

    #[test]
    fn a_device_that_obeys_the_model_is_recognised() {
        let (issue, delay, moved) = (5_000.0, 80_000.0, 2_000.0);
        let point = |depth: f64| {
            let all = depth * issue + delay + depth * (depth - 1.0) / 2.0 * moved;
            (depth, depth * 1e9 / all, StageMeans { submit: issue, device: delay, ..StageMeans::default() })
        };
        let points: Vec<_> = [1.0, 2.0, 8.0, 32.0].map(point).to_vec();
        let model = StageModel::of(&points).unwrap();
        assert_eq!((model.issue_ns, model.delay_ns), (issue, delay));
        assert!((model.fit - 1.0).abs() < 1e-9, "{model:?}");
        assert!((model.move_ns - moved).abs() < 1e-6);
        let each = |point: &Follows| point.move_ns.is_some_and(|found| (found - moved).abs() < 1e-6);
        assert!(model.points[1..].iter().all(each));
        assert_eq!(StageModel::of(&points[1..]), None, "without depth 1 nothing is known");
        assert_eq!(StageModel::of(&points[..1]), None);
    }
}
