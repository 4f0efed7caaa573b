//! The rules of a job's report.

use iolite_options::{JobOptions, UnifiedReporting};
use iolite_stats::{Display, Unified};
use serde::{Deserialize, Serialize};

/// The rules of a job's report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportRules {
    /// It has a report (`stats`).
    pub is_reported: bool,
    /// It is reported together with its neighbours that have `group_reporting`, too.
    pub as_group: bool,
    /// How its numbers are shown.
    pub display: Display,
    /// The user's description of the job.
    pub description: Option<String>,
    /// The global options that were set for it: name and text, in order.
    pub given_global: Vec<(String, String)>,
    /// The options that its own section sets: name and text, in order.
    pub given: Vec<(String, String)>,
    /// It goes on after errors of some kind, and reports their number.
    pub continues_on_errors: bool,
    /// The latency target in nanoseconds; 0 = none.
    pub latency_target_ns: u64,
    /// How long each depth is tried while looking for one that meets the target, in nanoseconds.
    pub latency_window_ns: u64,
    /// The percentage of I/Os that must meet the target.
    pub latency_percentile: f64,
    /// The lives of its blocks are reported (`block_error_percentiles`).
    pub block_lives: bool,
    /// The resets of zones are reported (`zonemode=zbd`).
    pub uses_zones: bool,
    /// Samples in a batch of its accelerator, and nanoseconds that this computes with one (`batch_size`).
    pub accelerator: Option<(u64, u64)>,
    /// The number of the clock from which its start time is taken (`job_start_clock_id`); `None` = the wall clock.
    pub start_clock: Option<u32>,
}

impl ReportRules {
    pub(super) fn of(options: &JobOptions) -> ReportRules {
        ReportRules {
            is_reported: options.measurement.stats,
            as_group: options.measurement.group_reporting,
            display: display(options),
            description: options.description.clone(),
            given_global: options.given_global.clone(),
            given: options.given.clone(),
            continues_on_errors: options.errors.any(),
            latency_target_ns: options.rates.latency_target.saturating_mul(1000),
            latency_window_ns: options.rates.latency_window.saturating_mul(1000),
            latency_percentile: options.rates.latency_percentile,
            block_lives: options.measurement.block_error_percentiles,
            uses_zones: options.zones.is_zbd(),
            accelerator: (options.batches.batch_size > 0)
                .then(|| (options.batches.batch_size, options.batches.batch_compute.saturating_mul(1000))),
            start_clock: options.measurement.start_clock(),
        }
    }
}

fn display(options: &JobOptions) -> Display {
    let mut percentiles = options.measurement.percentile_list.clone();
    percentiles.sort_by(f64::total_cmp);
    Display {
        kb_base: options.measurement.kb_base,
        unit_base: options.measurement.unit_base,
        significant_figures: options.measurement.significant_figures,
        percentiles,
        slat_percentiles: options.measurement.slat_percentiles,
        clat_percentiles: options.measurement.clat_percentiles && !options.measurement.disable_clat,
        lat_percentiles: options.measurement.lat_percentiles,
        unified: match options.measurement.unified_rw_reporting {
            UnifiedReporting::None => Unified::Apart,
            UnifiedReporting::Mixed => Unified::Mixed,
            UnifiedReporting::Both => Unified::Both,
        },
        intended: options.measurement.lat_from_intended_start,
        requests: options.engine.makes_requests(),
        ..Display::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::MeasurementOptions;

    #[test]
    fn latencies_that_are_not_measured_have_no_percentiles() {
        let shown = |disable_clat| {
            let options = JobOptions {
                measurement: MeasurementOptions {
                    disable_clat,
                    clat_percentiles: true,
                    ..MeasurementOptions::default()
                },
                ..JobOptions::default()
            };
            ReportRules::of(&options).display.clat_percentiles
        };
        assert!(shown(false) && !shown(true));
    }
}
