//! Checks that a job measures the quantities that it watches.

use iolite_options::{JobOptions, SteadyStateCriterion};

/// The obstacles: each with the option to blame and the reason.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let latency = [SteadyStateCriterion::Lat, SteadyStateCriterion::LatSlope];
    if options.measurement.steadystate_duration > 0
        && latency.contains(&options.measurement.steadystate.criterion)
        && !options.measurement.measures_completions()
    {
        let message = "steadystate: completion latencies are not measured; leave out disable_clat, gtod_reduce and \
                       stats=0, or look at iops or bw";
        found.push(("steadystate", message.to_owned()));
    }
    found
}
