//! The lines of `--debug` about a plan before it is performed: jobs, files, seeds, and the options of each subject.

use iolite_plan::resolve::Data;
use iolite_plan::{JobPlan, Layout, Plan};
use tracing::debug;

/// Prints everything that is known before the first worker starts.
pub(crate) fn plan(plan: &Plan, layouts: &[Layout]) {
    for (worker, layout) in plan.workers.iter().zip(layouts) {
        let number = worker.index + 1;
        let job = plan.job_of(worker);
        let name = &job.name;
        debug!(
            target: "job", job = number,
            "{number} is {name}, clone {}, wave {}, group {}, rw={}, engine {}",
            worker.clone + 1, worker.wave + 1, job.group, job.rw.name(), job.engine.name
        );
        debug!(target: "random", job = number, "{name}: seed {:#x}, {}", worker.seed, given(job, &["random_", "norandommap"]));
        // Programs that parse fio's lines expect nothing behind a seed.
        for (place, (choice, seed)) in worker.seeds().into_iter().enumerate() {
            debug!(target: "random", job = number, "{name}: seed {place} is for {choice}");
            debug!(target: "random", job = number, "rand_seeds[{place}]={seed}");
        }
        for file in &layout.files {
            debug!(
                target: "file", job = number,
                "{name}: {} ({}), bytes {} to {}{}",
                file.path.display(), file.kind.name(), file.offset, file.offset.saturating_add(file.length),
                file.extend_to.map(|size| format!(", to be made {size} large")).unwrap_or_default()
            );
        }
        /// Prints the options of a subject. (A macro, because the target of an event has to be a constant.)
        macro_rules! subject {
            ($($target:literal: $($prefix:literal),+;)+) => {$(
                debug!(target: $target, job = number, "{name}: {}", given(job, &[$($prefix),+]));
            )+};
        }
        // The options of an engine whose data is on another machine.
        let own: Vec<&str> = match job.engine.facets.data {
            Data::OtherEnd | Data::OwnStorage => {
                job.engine.options.iter().map(|option| option.name).collect()
            }
            Data::LocalFiles | Data::Nowhere => Vec::new(),
        };
        debug!(target: "net", job = number, "{name}: {}", given(job, &own));
        subject! {
            "blktrace": "read_iolog", "write_iolog", "replay_", "merge_blktrace";
            "verify": "verify", "do_verify", "experimental_verify";
            "rate": "rate", "thinktime", "latency_target", "io_submit_mode";
            "compress": "buffer_compress", "dedupe", "log_compression", "log_store_compressed";
            "steadystate": "steadystate", "ss";
            "zbd": "zonemode", "zone", "max_open_zones", "read_beyond_wp", "job_max_open_zones";
        }
    }
}

/// The options that were set for a job and whose names begin with one of these prefixes.
fn given(job: &JobPlan, prefixes: &[&str]) -> String {
    let given: Vec<String> = job.given(prefixes).map(|(name, value)| format!("{name}={value}")).collect();
    if given.is_empty() { "none set".to_owned() } else { given.join(" ") }
}
