//! The quantities of a job that are watched while it runs.

use iolite_options::{JobOptions, SteadyStateCriterion};
use iolite_stats::Quantity;
use serde::{Deserialize, Serialize};

/// How often bandwidth and IOPS are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplingRules {
    /// The length of a sample of bandwidth, in nanoseconds.
    pub bandwidth_ns: u64,
    /// The length of a sample of IOPS, in nanoseconds.
    pub iops_ns: u64,
}

impl SamplingRules {
    pub(super) fn of(options: &JobOptions) -> SamplingRules {
        let logs = &options.logs;
        // A sample is never longer than a window of the log of the same quantity.
        let period = |milliseconds: u32, logged: bool| {
            let window = logs.log_avg_msec;
            let milliseconds = if logged && window > 0 { milliseconds.min(window) } else { milliseconds };
            u64::from(milliseconds.max(1)) * 1_000_000
        };
        SamplingRules {
            bandwidth_ns: period(options.measurement.bwavgtime, logs.write_bw_log.is_some()),
            iops_ns: period(options.measurement.iopsavgtime, logs.write_iops_log.is_some()),
        }
    }
}

/// The condition for a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyRules {
    /// The quantity that must be steady.
    pub quantity: Quantity,
    /// The limit is for its slope, rather than for its deviation from the mean.
    pub slope: bool,
    /// The limit.
    pub limit: f64,
    /// The limit is in percent of the mean.
    pub percent: bool,
    /// How long to wait before the first measurement, in nanoseconds.
    pub ramp_ns: u64,
    /// The time between two measurements, in nanoseconds.
    pub interval_ns: u64,
    /// The length of the window in microseconds.
    pub duration_us: u64,
    /// How many measurements a full window has.
    pub size: usize,
}

impl SteadyRules {
    pub(super) fn of(options: &JobOptions) -> Option<SteadyRules> {
        use SteadyStateCriterion::{Bw, BwSlope, Iops, IopsSlope, Lat, LatSlope};
        let wanted = options.measurement.steadystate;
        // Without a duration, there is no steady state, whatever the other options are.
        (options.measurement.steadystate_duration > 0).then(|| SteadyRules {
            quantity: match wanted.criterion {
                Iops | IopsSlope => Quantity::Iops,
                Bw | BwSlope => Quantity::Bandwidth,
                Lat | LatSlope => Quantity::Latency,
            },
            slope: matches!(wanted.criterion, IopsSlope | BwSlope | LatSlope),
            limit: wanted.limit,
            percent: wanted.percent,
            ramp_ns: options.measurement.steadystate_ramp_time.saturating_mul(1000),
            interval_ns: options.measurement.steadystate_check_interval.saturating_mul(1000),
            duration_us: options.measurement.steadystate_duration,
            size: (options.measurement.steadystate_duration / options.measurement.steadystate_check_interval)
                as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{MeasurementOptions, SteadyState};

    #[test]
    fn samples_are_no_longer_than_windows_of_their_log() {
        let sampled = |change: &dyn Fn(&mut JobOptions)| {
            let mut options = JobOptions {
                measurement: MeasurementOptions {
                    bwavgtime: 500,
                    iopsavgtime: 500,
                    ..MeasurementOptions::default()
                },
                ..JobOptions::default()
            };
            change(&mut options);
            let SamplingRules { bandwidth_ns, iops_ns } = SamplingRules::of(&options);
            (bandwidth_ns / 1_000_000, iops_ns / 1_000_000)
        };
        assert_eq!(sampled(&|_| ()), (500, 500));
        let logged = |o: &mut JobOptions| {
            o.logs.write_bw_log = Some("x".into());
            o.logs.log_avg_msec = 100;
        };
        assert_eq!(sampled(&logged), (100, 500));
        assert_eq!(sampled(&|o| o.measurement.bwavgtime = 0), (1, 500));
    }

    #[test]
    fn a_steady_state_needs_a_duration() {
        let steadystate =
            SteadyState { criterion: SteadyStateCriterion::LatSlope, limit: 5.0, percent: true };
        let of = |steadystate_duration| {
            let steadystate_check_interval = 2_000_000;
            SteadyRules::of(&JobOptions {
                measurement: MeasurementOptions {
                    steadystate,
                    steadystate_duration,
                    steadystate_check_interval,
                    ..MeasurementOptions::default()
                },
                ..JobOptions::default()
            })
        };
        assert_eq!(of(0), None);
        let rules = of(10_000_000).unwrap();
        assert_eq!((rules.quantity, rules.slope, rules.percent), (Quantity::Latency, true, true));
        assert_eq!((rules.duration_us, rules.size, rules.interval_ns), (10_000_000, 5, 2_000_000_000));
    }
}
