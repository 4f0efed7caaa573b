use super::*;
use crate::arbitrary;
use crate::latency::PriorityLatency;
use crate::report::{Identity, JobError};
use crate::samples::Samples;
use proptest::prelude::*;
use proptest::sample::Index;

/// A report of a single worker.
fn alone(job: JobReport) -> Report {
    Report { groups: vec![arbitrary::group(job.group)], jobs: vec![job], ..Report::default() }
}

fn merged(jobs: impl IntoIterator<Item = JobReport>) -> Report {
    Report::merge(jobs.into_iter().map(alone))
}

proptest! {
    // A report is large.
    #![proptest_config(iolite_testing::properties(64))]

    /// Workers may be merged one by one, in batches, in batches of batches, in any order.
    #[test]
    fn order_and_grouping_make_no_difference(
        (jobs, shuffled) in arbitrary::jobs().prop_flat_map(|jobs| (Just(jobs.clone()), Just(jobs).prop_shuffle())),
        joins in prop::collection::vec(any::<[Index; 2]>(), 8),
    ) {
        let mut parts: Vec<Report> = shuffled.into_iter().map(alone).collect();
        for [one, other] in joins {
            let one = parts.swap_remove(one.index(parts.len()));
            if parts.is_empty() {
                parts.push(one);
                break;
            }
            let other = parts.swap_remove(other.index(parts.len()));
            parts.push(Report::merge([one, other]));
        }
        prop_assert_eq!(Report::merge(parts), merged(jobs));
    }

    #[test]
    fn a_merged_report_stays_as_it_is(report in arbitrary::report()) {
        prop_assert_eq!(Report::merge([report.clone()]), report);
    }

    #[test]
    fn nothing_is_lost(jobs in arbitrary::jobs()) {
        let sum = |jobs: &[JobReport], of: fn(&JobReport) -> u128| jobs.iter().map(of).sum::<u128>();
        let whole = merged(jobs.clone()).jobs;
        for of in [
            |job: &JobReport| job.members.into(),
            |job: &JobReport| job.directions[Direction::Write].bytes.into(),
            |job: &JobReport| job.directions[Direction::Read].lat.moments.sum_squares,
            |job: &JobReport| job.directions[Direction::Trim].clat.histogram.total().into(),
            |job: &JobReport| job.sync.lat.histogram.total().into(),
            |job: &JobReport| job.lateness.moments.sum,
            |job: &JobReport| job.usage.minor_faults.into(),
            |job: &JobReport| job.depths.complete[3].into(),
            |job: &JobReport| job.job_runtime_ms.into(),
            |job: &JobReport| job.log_wait_ms.into(),
            |job: &JobReport| job.blocks.as_ref().map_or(0, |blocks| blocks.states[4].into()),
            |job: &JobReport| job.continued_errors.map_or(0, |errors| errors.count.into()),
        ] {
            prop_assert_eq!(sum(&whole, of), sum(&jobs, of));
        }
    }
}

fn worker(block: u32, worker: u32) -> JobReport {
    let name = format!("worker {worker}");
    JobReport { identity: Identity::of(block, worker), members: 1, name, ..JobReport::default() }
}

#[test]
fn the_first_worker_with_an_error_provides_it() {
    let failed = |number: u32, errno: i32| {
        let mut job = worker(0, number);
        job.error = Some(First { worker: number, value: JobError { errno, what: String::new() } });
        let first = Some(First { worker: number, value: errno });
        job.continued_errors = Some(ContinuedErrors { count: 2, first });
        job
    };
    let early = merged([worker(0, 0), failed(3, 5)]);
    let report = Report::merge([early, merged([failed(1, 28), worker(0, 2)])]);
    let job = &report.jobs[0];
    assert_eq!((job.name.as_str(), job.members, job.identity.worker), ("worker 0", 4, 0));
    assert_eq!(job.error.as_ref().map(|error| (error.worker, error.value.errno)), Some((1, 28)));
    assert_eq!(job.continued_errors.map(|errors| (errors.count, errors.first_errno())), Some((4, 28)));
}

#[test]
fn the_last_worker_provides_the_options() {
    let with = |number: u32| {
        let options = vec![("bs".to_owned(), number.to_string())];
        JobReport { options, ..worker(0, number) }
    };
    let inner = merged([with(3), with(1)]);
    let report = Report::merge([inner, alone(with(2)), alone(with(0))]);
    let job = &report.jobs[0];
    assert_eq!((job.name.as_str(), job.options[0].1.as_str()), ("worker 0", "3"));
    assert_eq!(job.identity, Identity { block: 0, worker: 0, last: 3 });
}

#[test]
fn priorities_keep_the_order_of_the_first_worker() {
    let of = |number: u32, read: &[u16], write: &[u16]| {
        let mut job = worker(0, number);
        job.display.unified = Unified::Both;
        for (direction, priorities) in [(0, read), (1, write)] {
            job.directions.values[direction as usize].priorities = (0..)
                .zip(priorities)
                .map(|(place, &priority)| {
                    let order = [direction, number, place];
                    PriorityLatency { order, priority, latency: Latency::default() }
                })
                .collect();
        }
        job
    };
    let report = merged([of(2, &[1, 7], &[]), of(1, &[9, 1], &[4]), of(0, &[8, 9], &[9, 3])]);
    let job = &report.jobs[0];
    let listed =
        |direction: &DirectionReport| direction.priorities.iter().map(|one| one.priority).collect::<Vec<_>>();
    assert_eq!(listed(&job.directions[Direction::Read]), [8, 9, 1, 7]);
    assert_eq!(listed(&job.directions[Direction::Write]), [9, 3, 4]);
    assert_eq!(job.mixed.as_ref().map(listed), Some(vec![8, 9, 1, 7, 3, 4]));
}

/// A worker that read this much.
fn reader(block: u32, number: u32, bytes: u64, runtime_ms: u64) -> JobReport {
    let mut job = worker(block, number);
    let bw = Samples::new(1, bytes, bytes, bytes as f64, 0.0);
    job.directions[Direction::Read] = DirectionReport { bytes, runtime_ms, bw, ..DirectionReport::default() };
    job
}

#[test]
fn groups_sum_the_bytes_of_their_blocks() {
    let group = GroupReport { kb_base: 1000, ..GroupReport::default() };
    let silent = GroupReport { id: 1, ..GroupReport::default() };
    let jobs = vec![reader(0, 0, 1000, 1000), reader(0, 1, 3000, 2000), reader(5, 2, 500, 500)];
    let report = Report::merge([Report { jobs, groups: vec![silent, group], ..Report::default() }]);
    assert_eq!(report.jobs.iter().map(|job| job.members).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(report.jobs[0].directions[Direction::Read].bw.mean(), 4000.0);
    assert_eq!(
        report.groups.iter().map(|group| (group.id, group.kb_base)).collect::<Vec<_>>(),
        [(0, 1000), (1, 0)]
    );
    let read = GroupDirection {
        bytes: 4500,
        bandwidth: 2250,
        min_bandwidth: 1000,
        max_bandwidth: 2000,
        min_runtime_ms: 500,
        max_runtime_ms: 2000,
    };
    assert_eq!(report.groups[0].directions[Direction::Read], read);
    assert_eq!(report.groups[0].mixed, GroupDirection::default(), "no job shows its directions as one");
    assert_eq!(report.groups[1].directions, PerDirection::default());
}

#[test]
fn sums_that_overflow_saturate() {
    let report = merged([reader(0, 0, u64::MAX, 1), reader(0, 1, 2, 1)]);
    assert_eq!(report.jobs[0].directions[Direction::Read].bytes, u64::MAX);
    assert_eq!(report.groups[0].directions[Direction::Read].bandwidth, u64::MAX);
}
