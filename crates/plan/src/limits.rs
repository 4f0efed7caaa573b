//! Limits of the system that all jobs together exceed, although no single job does.

use crate::{Plan, Problem};
use iolite_host::{AioRequests, Machine};

/// Demands that exceed a limit.
pub(crate) fn problems(plan: &Plan, machine: &dyn Machine) -> Vec<Problem> {
    let requests = machine.limits().aio.and_then(|account| requests(plan, account));
    requests.into_iter().chain(checking_threads(plan)).collect()
}

/// The most verifying threads in one process. Each needs several of the 65530 mappings of a process.
const MOST_CHECKING_THREADS: u64 = 8192;

/// Workers that are threads share one process, and its limits, with all their verifying threads.
fn checking_threads(plan: &Plan) -> Option<Problem> {
    let threads = |wave: u32| {
        let workers = plan.workers.iter().filter(move |worker| worker.wave == wave);
        workers.map(|worker| &plan.job_of(worker).options).filter(|options| options.schedule.thread)
    };
    (0..plan.waves).find_map(|wave| {
        let needed: u64 = threads(wave).map(|options| u64::from(options.verification.verify_async)).sum();
        let first = threads(wave).find(|options| options.verification.verify_async > 0)?;
        (needed > MOST_CHECKING_THREADS).then(|| {
            let message = format!(
                "verify_async: {needed} threads for workers of one process (thread=1), and at most \
                 {MOST_CHECKING_THREADS} are started there; use fewer, or thread=0"
            );
            Problem::of(first, "verify_async", message)
        })
    })
}

fn requests(plan: &Plan, account: AioRequests) -> Option<Problem> {
    let uses = |index: usize| plan.job_of(&plan.workers[index]).engine.takes_aio_requests;
    // Workers that start later may reuse resources that others have released by then.
    let together = |index: usize| plan.workers[index].begins_with_wave();
    (0..plan.waves).find_map(|wave| {
        let workers = || {
            let of_wave = |&index: &usize| plan.workers[index].wave == wave;
            (0..plan.workers.len()).filter(of_wave).filter(|&index| uses(index) && together(index))
        };
        let depth = |index: usize| u64::from(plan.job_of(&plan.workers[index]).options.depth.iodepth);
        let needed: u64 = workers().map(depth).sum();
        if account.taken.saturating_add(needed) <= account.most {
            return None;
        }
        let job = plan.job_of(&plan.workers[workers().next()?]);
        let (first, name) = (&job.options, job.engine.name);
        let place = if first.schedule.numjobs > 1 { "numjobs" } else { "iodepth" };
        let message = format!(
            "{name}: {} workers together need room for {needed} requests, and fs.aio-max-nr = {} allows {} more; \
             sysctl -w fs.aio-max-nr={} makes room",
            workers().count(),
            account.most,
            account.most.saturating_sub(account.taken),
            account.taken + needed
        );
        Some(Problem::of(first, place, message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::{Limits, MadeUp};
    use iolite_options::{
        DepthOptions, ExtentOptions, JobOptions, Range, RunOptions, ScheduleOptions, SizeValue,
    };

    /// Number of clones, depth, and a function that sets other options.
    type Job<'a> = (u32, u32, &'a dyn Fn(&mut JobOptions));

    fn told(jobs: &[Job<'_>]) -> Option<String> {
        let jobs = jobs.iter().map(|&(numjobs, iodepth, change)| {
            let mut options = JobOptions {
                name: "j".into(),
                ioengine: "libaio".into(),
                extent: ExtentOptions { size: Some(SizeValue::Bytes(1 << 20)), ..ExtentOptions::default() },
                schedule: ScheduleOptions { numjobs, ..ScheduleOptions::default() },
                depth: DepthOptions { iodepth, ..DepthOptions::default() },
                ..JobOptions::default()
            };
            change(&mut options);
            options
        });
        let aio = Some(AioRequests { most: 1000, taken: 100 });
        let machine = MadeUp::new().with_limits(Limits { aio, ..Limits::default() });
        let plan = Plan::build(jobs.collect(), &RunOptions::default(), &machine).unwrap();
        problems(&plan, &machine).pop().map(|problem| problem.message)
    }

    #[test]
    fn workers_that_start_together_are_counted_together() {
        let same = |_: &mut JobOptions| {};
        assert_eq!(told(&[(9, 100, &same)]), None);
        let message = told(&[(9, 100, &same), (1, 32, &same)]).unwrap();
        assert_eq!(
            message,
            "libaio: 10 workers together need room for 932 requests, and fs.aio-max-nr = 1000 allows 900 more; \
             sysctl -w fs.aio-max-nr=1032 makes room"
        );
    }

    #[test]
    fn workers_that_start_later_are_not_counted() {
        let same = |_: &mut JobOptions| {};
        assert_eq!(told(&[(9, 100, &same), (9, 100, &|o| o.schedule.stonewall = true)]), None);
        assert_eq!(told(&[(9, 100, &same), (9, 100, &|o| o.schedule.wait_for = Some("j".into()))]), None);
        let delayed = |o: &mut JobOptions| o.schedule.startdelay = Some(Range { low: 1, high: 1 });
        assert_eq!(told(&[(9, 100, &same), (9, 100, &delayed)]), None);
        assert_eq!(told(&[(9, 100, &same), (90, 100, &|o| o.ioengine = "psync".into())]), None);
    }

    #[test]
    fn checking_threads_of_one_process_are_counted_together() {
        let told = |numjobs, thread| {
            let mut options = JobOptions {
                name: "j".into(),
                ioengine: "null".into(),
                extent: ExtentOptions { size: Some(SizeValue::Bytes(1 << 20)), ..ExtentOptions::default() },
                schedule: ScheduleOptions { numjobs, thread, ..ScheduleOptions::default() },
                ..JobOptions::default()
            };
            options.verification.verify_async = 1024;
            let machine = MadeUp::new();
            let plan = Plan::build(vec![options], &RunOptions::default(), &machine).unwrap();
            problems(&plan, &machine).pop().map(|problem| problem.message)
        };
        assert!(told(8, true).is_none() && told(9, false).is_none());
        assert!(told(9, true).unwrap().starts_with("verify_async: 9216 threads "));
    }
}
