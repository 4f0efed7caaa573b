use super::*;
use crate::kernel::What::{Completed, HandedOn, Issued, Queued, RingMade, Submitted};
use proptest::prelude::*;

const DISK: Device = 8 << 20;
const THREAD: i32 = 101;
const STRANGER: i32 = 7;
const RING: u64 = 0xffff_8000_1234_0000;

fn joiner(observed: Observed) -> Joiner {
    let mut joiner = Joiner::new(vec![observed], Places::default(), &BTreeMap::new());
    joiner.begins(0, THREAD);
    joiner
}

fn at(first: u64, count: u64) -> Sectors {
    Sectors { first, end: first + count }
}

fn see(joiner: &mut Joiner, time: u64, thread: i32, what: What) {
    joiner.event(&Event { time, thread, what });
}

/// A whole request of a thread.
fn request(joiner: &mut Joiner, thread: i32, [queued, issued, completed]: [u64; 3], sectors: Sectors) {
    see(joiner, queued, thread, Queued(DISK, sectors));
    see(joiner, issued, thread, Issued(DISK, sectors));
    see(joiner, completed, 0, Completed(DISK, sectors));
}

fn read(began: u64, submitted: u64, completed: u64) -> IoStamps {
    IoStamps { began, submitted, completed, length: 4096, ..IoStamps::default() }
}

fn times(joiner: &mut Joiner) -> StageTimes {
    let [read, ..] = joiner.times_of(0);
    *read.expect("there were reads")
}

fn means(times: &StageTimes) -> Vec<u64> {
    times.stages.iter().map(|stage| stage.latency.moments.sum as u64).collect()
}

#[test]
fn a_call_that_waits_has_what_its_thread_started_meanwhile() {
    let mut joiner = joiner(Observed::default());
    request(&mut joiner, STRANGER, [1_000, 1_100, 90_000], at(800, 8));
    request(&mut joiner, THREAD, [20_000, 21_000, 71_000], at(0, 8));
    joiner.reaped(0, &read(18_000, 0, 73_500));
    let times = times(&mut joiner);
    assert_eq!(means(&times), [2_000, 1_000, 50_000, 2_500]);
    assert_eq!((times.seen(), times.all_unmatched()), (1, 0));
}

#[test]
fn several_requests_have_the_latest_and_merged_ones_share_one() {
    let mut joiner = joiner(Observed::default());
    for (first, queued) in [(0, 10_000), (8, 12_000)] {
        see(&mut joiner, queued, THREAD, Queued(DISK, at(first, 8)));
    }
    see(&mut joiner, 13_000, THREAD, Issued(DISK, at(0, 16)));
    see(&mut joiner, 14_000, THREAD, Queued(DISK, at(100, 8)));
    see(&mut joiner, 15_000, THREAD, Issued(DISK, at(100, 8)));
    see(&mut joiner, 50_000, 0, Completed(DISK, at(100, 8)));
    see(&mut joiner, 60_000, 0, Completed(DISK, at(0, 16)));
    joiner.reaped(0, &read(9_000, 0, 61_000));
    let times = times(&mut joiner);
    assert_eq!(means(&times).iter().sum::<u64>(), 52_000);
    assert_eq!(means(&times)[2..], [47_000, 1_000]);
    assert_eq!((times.split, times.merged), (1, 1));
}

#[test]
fn what_the_cache_answers_has_no_device_and_read_ahead_is_not_waited_for() {
    let mut joiner = joiner(Observed::default());
    joiner.reaped(0, &read(1_000, 0, 2_000));
    request(&mut joiner, THREAD, [10_500, 11_000, 90_000], at(0, 64));
    joiner.reaped(0, &read(10_000, 0, 12_000));
    let times = times(&mut joiner);
    assert_eq!((times.without_device, times.whole.moments.count), (2, 0));
}

#[test]
fn io_uring_tells_the_unit_also_on_a_kernel_thread() {
    let mut joiner = joiner(Observed { from_start: true, ..Observed::default() });
    see(&mut joiner, 1, THREAD, RingMade { ring: RING });
    // Both are submitted by one call, the second one first; then one by a kernel thread.
    see(&mut joiner, 10_000, THREAD, Submitted { ring: RING, unit: 4 });
    request_begun(&mut joiner, THREAD, 10_500, at(0, 8));
    see(&mut joiner, 11_000, THREAD, Submitted { ring: RING, unit: 3 });
    request_begun(&mut joiner, THREAD, 11_500, at(64, 8));
    see(&mut joiner, 12_000, STRANGER, Submitted { ring: RING, unit: 5 });
    request_begun(&mut joiner, STRANGER, 12_500, at(128, 8));
    for (first, time) in [(64, 30_000), (0, 40_000), (128, 50_000)] {
        see(&mut joiner, time, 0, Completed(DISK, at(first, 8)));
    }
    for (unit, completed) in [(3, 31_000), (4, 41_000), (5, 51_000)] {
        joiner.reaped(0, &IoStamps { unit, ..read(9_000, 13_000, completed) });
    }
    let times = times(&mut joiner);
    assert_eq!((times.whole.moments.count, times.all_unmatched()), (3, 0));
    // Units 3, 4 and 5: until the block layer 2500, 1500 and 3500; in the device 18400, 29400 and 37400.
    assert_eq!(means(&times), [7_500, 300, 85_200, 3_000]);
}

fn request_begun(joiner: &mut Joiner, thread: i32, time: u64, sectors: Sectors) {
    see(joiner, time, thread, Queued(DISK, sectors));
    see(joiner, time + 100, thread, Issued(DISK, sectors));
}

#[test]
fn ios_of_one_call_are_told_apart_by_their_order_or_not_at_all() {
    for is_exact in [true, false] {
        let mut joiner = joiner(Observed { from_start: true, ..Observed::default() });
        request_begun(&mut joiner, THREAD, 10_000, at(640, 8));
        request_begun(&mut joiner, THREAD, 11_000, at(0, 8));
        if is_exact {
            request_begun(&mut joiner, THREAD, 12_000, at(320, 8));
        }
        for (first, time) in [(0, 20_000), (640, 30_000), (320, 40_000)] {
            see(&mut joiner, time, 0, Completed(DISK, at(first, 8)));
        }
        for (before, completed) in [(8, 21_000), (0, 31_000), (16, 41_000)] {
            joiner.reaped(0, &IoStamps { before, together: 24, ..read(9_000, 13_000, completed) });
        }
        let times = times(&mut joiner);
        if is_exact {
            assert_eq!(times.whole.moments.count, 3);
            assert_eq!(means(&times)[2], (20_000 - 11_100) + (30_000 - 10_100) + (40_000 - 12_100));
        } else {
            assert_eq!(times.unmatched.get(&Unmatched::Batch), Some(&3), "{times:?}");
        }
    }
}

#[test]
fn the_same_sectors_at_the_same_time_are_not_guessed() {
    let mut joiner = joiner(Observed::default());
    see(&mut joiner, 9_500, STRANGER, Queued(DISK, at(0, 8)));
    request(&mut joiner, THREAD, [10_000, 10_100, 20_000], at(0, 8));
    joiner.reaped(0, &read(9_000, 0, 21_000));
    assert_eq!(times(&mut joiner).unmatched.get(&Unmatched::Overlap), Some(&1));
}

#[test]
fn ios_during_a_loss_are_counted_as_lost() {
    let mut joiner = joiner(Observed::default());
    joiner.lost(10, 5_000, 15_000);
    joiner.reaped(0, &read(9_000, 0, 21_000));
    see(&mut joiner, 22_500, THREAD, Queued(DISK, at(0, 8)));
    see(&mut joiner, 25_000, 0, Completed(DISK, at(0, 8)));
    joiner.reaped(0, &read(22_000, 0, 26_000));
    joiner.reaped(0, &read(30_000, 0, 31_000));
    let times = times(&mut joiner);
    assert_eq!((times.unmatched.get(&Unmatched::Lost), times.without_device), (Some(&2), 1));
    assert_eq!(times.lost_records, 10);
}

#[test]
fn what_went_to_another_thread_is_told_as_that() {
    let mut joiner = joiner(Observed { from_start: true, ..Observed::default() });
    see(&mut joiner, 1, THREAD, RingMade { ring: RING });
    see(&mut joiner, 10_000, THREAD, Submitted { ring: RING, unit: 0 });
    see(&mut joiner, 10_100, THREAD, HandedOn { ring: RING, unit: 0 });
    request(&mut joiner, STRANGER, [12_000, 13_000, 20_000], at(0, 8));
    joiner.reaped(0, &read(9_000, 11_000, 21_000));
    assert_eq!(times(&mut joiner).unmatched.get(&Unmatched::Thread), Some(&1));
}

#[test]
fn stages_that_the_engine_tells_need_no_kernel() {
    let given = vec![Stage::Queue, Stage::FirstByte, Stage::LastByte];
    let mut joiner = joiner(Observed { given, ..Observed::default() });
    let stamps = IoStamps { given: [2_000, 9_000, 0, 0], stamps_given: 2, ..read(1_000, 0, 10_000) };
    joiner.reaped(0, &stamps);
    assert_eq!(means(&times(&mut joiner)), [1_000, 7_000, 1_000]);
}

proptest! {
    /// Many I/Os at once on one disk, beside those of strangers: each has exactly the stages that it had.
    #[test]
    fn every_io_gets_its_own_stages(
        ios in prop::collection::vec(prop::array::uniform4(1_u64..50_000), 1..60),
        depth in 1_usize..16,
    ) {
        let mut joiner = joiner(Observed { from_start: true, ..Observed::default() });
        see(&mut joiner, 1, THREAD, RingMade { ring: RING });
        let mut events: Vec<(u64, i32, What)> = Vec::new();
        let mut reaps = Vec::new();
        let mut free_at = vec![1_000_u64; depth];
        for (number, &[submit, queue, device, reap]) in ios.iter().enumerate() {
            let unit = number % depth;
            let sectors = at(number as u64 * 8, 8);
            // One thread submits, one after the other.
            let began = free_at[unit].max(reaps.last().map_or(0, |&(began, _): &(u64, IoStamps)| began) + 50_000);
            let stamps = [began + submit, began + submit + queue, began + submit + queue + device];
            events.push((began, THREAD, Submitted { ring: RING, unit: unit as u32 }));
            events.push((stamps[0], THREAD, Queued(DISK, sectors)));
            events.push((stamps[1], STRANGER, Issued(DISK, sectors)));
            events.push((stamps[2], 0, Completed(DISK, sectors)));
            events.push((began + 1, STRANGER, Queued(DISK, at(1_000_000 + number as u64 * 8, 8))));
            let completed = stamps[2] + reap;
            free_at[unit] = completed + 1;
            reaps.push((began, IoStamps { unit: unit as u32, ..read(began, stamps[0], completed) }));
        }
        events.sort_by_key(|event| event.0);
        let mut reaps: Vec<IoStamps> = reaps.into_iter().map(|reap| reap.1).collect();
        reaps.sort_by_key(|io| io.completed);
        let mut events = events.into_iter().peekable();
        for io in &reaps {
            while let Some((time, thread, what)) = events.next_if(|event| event.0 <= io.completed) {
                see(&mut joiner, time, thread, what);
            }
            joiner.reaped(0, io);
        }
        let times = times(&mut joiner);
        prop_assert_eq!(times.all_unmatched() + times.without_device, 0);
        for (number, stage) in times.stages.iter().enumerate() {
            let sum: u64 = ios.iter().map(|io| io[number]).sum();
            prop_assert_eq!(stage.latency.moments.sum, u128::from(sum));
        }
    }
}
