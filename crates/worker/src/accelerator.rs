//! Samples for an accelerator that takes them in batches: `batch_size`, `batch_sample`, `batch_compute`, `batch_prefetch`.
//!
//! The accelerator is a calculation, not a thread. Batch n is ready when all samples up to it have been read, whoever has read
//! them. Its computation begins then, or when that of batch n-1 ends, whichever is later, and takes its time. So one word, the
//! end of the last computation, is the whole timeline: each batch that becomes ready moves it to `max(end, now) + compute`, and
//! what it has moved beyond the computations is waiting.
//!
//! Readers go ahead by a number of batches: a sample of batch n may be begun when batch n - 1 - prefetch has been computed. That
//! moment is known as soon as that batch has been read, because computations of batches that are ready follow each other
//! without a gap. Before that, a reader waits for others to finish their samples.
//!
//! Samples are counted in parts: a read, a file, or a byte is one. The words are shared by the workers of the job, in the slot of
//! its first one. Whoever begins a sample counts it as its own until it is finished, so that samples of workers that have ended
//! hold up nobody.

use iolite_os::shared::{Accelerator, Control, Phase};
use iolite_plan::resolve::{BatchRules, Sample};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Tries to see a batch counted by another worker with its time. It needs a few instructions, unless the worker was killed
/// between them.
const TRIES: u32 = 10_000;

/// A worker that reads samples.
pub struct Reader<'a> {
    shared: &'a Accelerator,
    own: &'a Control,
    others: Vec<&'a Control>,
    /// Parts in a batch.
    batch: u64,
    compute_ns: u64,
    prefetch: u64,
    sample: Sample,
    /// How far each file has been begun and finished; empty unless files are samples.
    files: Vec<Progress>,
    /// Parts that workers have begun and that nobody will finish.
    lost: u64,
}

/// How far a file has been read.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    length: u64,
    begun: u64,
    read: u64,
}

/// Whether a read may be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Now.
    Now,
    /// At this time, in nanoseconds of the clock.
    At(u64),
    /// When others have finished their samples.
    Later,
}

impl<'a> Reader<'a> {
    /// The reader with the words `own`, and with files of these lengths; `shared` are the words of the first worker of its job.
    pub fn new(
        rules: &BatchRules,
        shared: &'a Accelerator,
        own: &'a Control,
        others: Vec<&'a Control>,
        lengths: impl Iterator<Item = u64>,
    ) -> Self {
        let parts = match rules.sample {
            Sample::Bytes(bytes) => bytes,
            Sample::Io | Sample::File => 1,
        };
        let files = match rules.sample {
            // The rest of a file that is less than a block is not read.
            Sample::File => lengths
                .map(|length| Progress { length: length - length % rules.block, ..Progress::default() })
                .collect(),
            Sample::Io | Sample::Bytes(_) => Vec::new(),
        };
        Reader {
            shared,
            own,
            others,
            batch: rules.size.saturating_mul(parts),
            compute_ns: rules.compute_ns,
            prefetch: rules.prefetch,
            sample: rules.sample,
            files,
            lost: 0,
        }
    }

    /// The parts of samples that a read begins.
    fn begins(&self, file: u32, bytes: u64) -> u64 {
        match self.sample {
            Sample::Io => 1,
            Sample::Bytes(_) => bytes,
            Sample::File => u64::from(self.files.get(file as usize).is_some_and(|file| file.begun == 0)),
        }
    }

    /// Asks for leave to issue a read. It has begun if the answer is [`Leave::Now`]. `is_idle`: none of this worker's reads is in
    /// flight.
    pub fn ask(&mut self, file: u32, bytes: u64, now: u64, is_idle: bool) -> Leave {
        let parts = self.begins(file, bytes);
        if parts > 0 {
            loop {
                let begun = self.shared.begun.load(Acquire);
                let leave = self.leave(begun, now, is_idle);
                if leave != Leave::Now {
                    return leave;
                }
                if self.shared.begun.compare_exchange(begun, begun + parts, AcqRel, Relaxed).is_ok() {
                    break;
                }
            }
            let _ = self.shared.begun_ns.compare_exchange(0, now.max(1), Relaxed, Relaxed);
            self.own.batch_open.store(self.own.batch_open.load(Relaxed) + parts, Relaxed);
        }
        if let Some(file) = self.files.get_mut(file as usize) {
            file.begun = file.advanced(file.begun, bytes);
        }
        Leave::Now
    }

    /// Whether the sample behind these parts may be begun.
    fn leave(&mut self, begun: u64, now: u64, is_idle: bool) -> Leave {
        let wanted = ((begun.saturating_sub(self.lost)) / self.batch).saturating_sub(self.prefetch);
        if wanted == 0 {
            return Leave::Now;
        }
        let (batches, end) = self.timeline();
        if wanted > batches {
            // Only this worker could finish what it has begun; or those who could are no more.
            let waits_for_itself = is_idle && self.own.batch_open.load(Relaxed) > 0;
            return if waits_for_itself || self.find_lost() { Leave::Now } else { Leave::Later };
        }
        let computed = end.saturating_sub((batches - wanted).saturating_mul(self.compute_ns));
        if computed <= now { Leave::Now } else { Leave::At(computed) }
    }

    /// The number of batches that have been read, and when the last one is computed.
    fn timeline(&self) -> (u64, u64) {
        for _ in 0..TRIES {
            let batches = self.shared.timed.load(Acquire);
            let end = self.shared.end_ns.load(Acquire);
            if self.shared.read.load(Acquire) / self.batch == batches {
                return (batches, end);
            }
            std::hint::spin_loop();
        }
        (self.shared.timed.load(Acquire), self.shared.end_ns.load(Acquire))
    }

    /// Looks for samples whose readers have ended. Returns whether there are more than were known.
    fn find_lost(&mut self) -> bool {
        let has_ended =
            |control: &&&Control| control.ended_ns.load(Relaxed) != 0 || control.phase() > Phase::Syncing;
        let open = |control: &&Control| control.batch_open.load(Relaxed);
        let lost = self.others.iter().filter(has_ended).map(open).sum();
        std::mem::replace(&mut self.lost, lost) < lost
    }

    /// Counts a completed read.
    pub fn completed(&mut self, file: u32, bytes: u64, now: u64) {
        let parts = match self.sample {
            Sample::Io => 1,
            Sample::Bytes(_) => bytes,
            Sample::File => {
                let Some(file) = self.files.get_mut(file as usize) else { return };
                file.read = file.advanced(file.read, bytes);
                u64::from(file.read == 0)
            }
        };
        if parts == 0 {
            return;
        }
        self.own.batch_open.store(self.own.batch_open.load(Relaxed).saturating_sub(parts), Relaxed);
        let before = self.shared.read.fetch_add(parts, AcqRel);
        for batch in before / self.batch..(before + parts) / self.batch {
            self.take(batch, now);
        }
    }

    /// The accelerator gets a batch.
    fn take(&self, batch: u64, now: u64) {
        let Accelerator { timed, end_ns, uncounted, counted_ns, .. } = self.shared;
        let mut end = end_ns.load(Acquire);
        let computed = loop {
            let computed = end.max(now).saturating_add(self.compute_ns);
            match end_ns.compare_exchange_weak(end, computed, AcqRel, Acquire) {
                Ok(_) => break computed,
                Err(other) => end = other,
            }
        };
        if batch == 0 {
            uncounted.store(1, Relaxed);
            counted_ns.store(computed, Relaxed);
        }
        timed.fetch_add(1, Release);
    }

    /// Counting begins, at the end of a ramp: what has been read so far does not count.
    pub fn count_from(&self, now: u64) {
        let (batches, end) = self.timeline();
        if batches > 0 {
            self.shared.uncounted.store(batches, Relaxed);
            self.shared.counted_ns.store(end.max(now), Relaxed);
        }
    }
}

impl Progress {
    /// The place behind this many bytes; 0 = the whole file.
    fn advanced(self, place: u64, bytes: u64) -> u64 {
        let place = place + bytes;
        if place >= self.length { 0 } else { place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_os::shared::Arena;

    const MS: u64 = 1_000_000;

    fn rules(size: u64, sample: Sample, compute_ms: u64, prefetch: u64) -> BatchRules {
        BatchRules {
            first: 0,
            others: Vec::new(),
            size,
            sample,
            block: 5,
            compute_ns: compute_ms * MS,
            prefetch,
        }
    }

    fn readers<'a>(arena: &'a Arena, rules: &BatchRules, lengths: &[u64]) -> Vec<Reader<'a>> {
        let control = |index: usize| &arena.slot(index).control;
        (0..arena.count())
            .map(|index| {
                control(index).set_phase(Phase::Running);
                let others = (0..arena.count()).filter(|&other| other != index).map(control).collect();
                Reader::new(rules, &control(0).accelerator, control(index), others, lengths.iter().copied())
            })
            .collect()
    }

    /// Reads of this many milliseconds each, one after the other, by one reader. Returns the moments at which they began.
    fn read(reader: &mut Reader<'_>, reads: usize, takes_ms: u64) -> Vec<u64> {
        let mut now = 0;
        let mut began = Vec::new();
        for _ in 0..reads {
            match reader.ask(0, 4096, now, true) {
                Leave::Now => {}
                Leave::At(moment) => {
                    now = moment;
                    assert_eq!(reader.ask(0, 4096, now, true), Leave::Now);
                }
                Leave::Later => panic!("it waits for itself"),
            }
            began.push(now / MS);
            now += takes_ms * MS;
            reader.completed(0, 4096, now);
        }
        began
    }

    /// The share of computing, as the report has it.
    fn utilisation(words: &Accelerator, compute_ms: u64) -> f64 {
        let counted = words.timed.load(Relaxed) - words.uncounted.load(Relaxed);
        let all = words.end_ns.load(Relaxed) - words.counted_ns.load(Relaxed);
        (counted * compute_ms * MS) as f64 / all as f64
    }

    #[test]
    fn slow_reads_leave_the_accelerator_waiting() {
        let arena = Arena::new(1).unwrap();
        let mut readers = readers(&arena, &rules(2, Sample::Io, 10, 2), &[]);
        // A batch takes 40 ms to read and 10 ms to compute.
        let began = read(&mut readers[0], 20, 20);
        assert_eq!(began, (0..20).map(|number| number * 20).collect::<Vec<_>>());
        let words = &arena.slot(0).control.accelerator;
        assert_eq!((words.timed.load(Relaxed), words.read.load(Relaxed)), (10, 20));
        assert_eq!(words.end_ns.load(Relaxed), 410 * MS);
        assert_eq!(utilisation(words, 10), 0.25);
    }

    #[test]
    fn fast_reads_go_ahead_by_the_prefetch() {
        let arena = Arena::new(1).unwrap();
        let mut readers = readers(&arena, &rules(2, Sample::Io, 100, 2), &[]);
        let began = read(&mut readers[0], 12, 1);
        // The first batch is ready after 2 ms. Two more are read at once; the next ones each when another was computed.
        assert_eq!(began, [0, 1, 2, 3, 4, 5, 102, 103, 202, 203, 302, 303]);
        assert_eq!(utilisation(&arena.slot(0).control.accelerator, 100), 1.0);
    }

    #[test]
    fn without_prefetch_reading_and_computing_take_turns() {
        let arena = Arena::new(1).unwrap();
        let mut readers = readers(&arena, &rules(2, Sample::Io, 30, 0), &[]);
        assert_eq!(read(&mut readers[0], 6, 5), [0, 5, 40, 45, 80, 85]);
        // 10 ms of reading, 30 ms of computing.
        assert_eq!(utilisation(&arena.slot(0).control.accelerator, 30), 0.75);
    }

    #[test]
    fn a_reader_waits_for_the_samples_of_others() {
        let arena = Arena::new(2).unwrap();
        let mut readers = readers(&arena, &rules(2, Sample::Io, 10, 0), &[]);
        let (fast, slow) = readers.split_at_mut(1);
        let (fast, slow) = (&mut fast[0], &mut slow[0]);
        assert_eq!(slow.ask(0, 1, 0, true), Leave::Now);
        assert_eq!(fast.ask(0, 1, 0, true), Leave::Now);
        fast.completed(0, 1, MS);
        // The batch lacks what the other one reads.
        assert_eq!(fast.ask(0, 1, 2 * MS, true), Leave::Later);
        slow.completed(0, 1, 5 * MS);
        assert_eq!(fast.ask(0, 1, 5 * MS, true), Leave::At(15 * MS));
        assert_eq!(fast.ask(0, 1, 15 * MS, true), Leave::Now);
    }

    #[test]
    fn samples_of_those_who_have_ended_are_not_waited_for() {
        let arena = Arena::new(2).unwrap();
        let mut readers = readers(&arena, &rules(1, Sample::Io, 10, 0), &[]);
        assert_eq!(readers[1].ask(0, 1, 0, true), Leave::Now);
        assert_eq!(readers[0].ask(0, 1, MS, true), Leave::Later);
        arena.slot(1).control.set_phase(Phase::Exited);
        assert_eq!(readers[0].ask(0, 1, MS, true), Leave::Now);
        readers[0].completed(0, 1, 2 * MS);
        // What is lost does not put off the rest.
        assert_eq!(readers[0].ask(0, 1, 2 * MS, true), Leave::At(12 * MS));
    }

    #[test]
    fn a_reader_does_not_wait_for_itself() {
        let arena = Arena::new(1).unwrap();
        let mut readers = readers(&arena, &rules(1, Sample::Io, 10, 0), &[]);
        assert_eq!(readers[0].ask(0, 1, 0, true), Leave::Now);
        // It is in flight, or it is not.
        assert_eq!(readers[0].ask(0, 1, 0, false), Leave::Later);
        assert_eq!(readers[0].ask(0, 1, 0, true), Leave::Now);
    }

    #[test]
    fn whole_files_and_bytes_are_samples() {
        let arena = Arena::new(1).unwrap();
        let mut readers = readers(&arena, &rules(1, Sample::File, 10, 9), &[10, 27]);
        let words = &arena.slot(0).control.accelerator;
        let counts = || (words.begun.load(Relaxed), words.read.load(Relaxed));
        for (file, bytes, begun_and_read) in
            [(1, 10, (1, 0)), (0, 10, (2, 1)), (1, 10, (2, 1)), (1, 5, (2, 2)), (0, 10, (3, 3))]
        {
            assert_eq!(readers[0].ask(file, bytes, 0, true), Leave::Now);
            readers[0].completed(file, bytes, 0);
            assert_eq!(counts(), begun_and_read);
        }
        assert_eq!(arena.slot(0).control.batch_open.load(Relaxed), 0);

        let arena = Arena::new(1).unwrap();
        let mut readers = self::readers(&arena, &rules(2, Sample::Bytes(100), 10, 9), &[]);
        for _ in 0..5 {
            assert_eq!(readers[0].ask(0, 130, 0, true), Leave::Now);
            readers[0].completed(0, 130, 0);
        }
        assert_eq!(arena.slot(0).control.accelerator.timed.load(Relaxed), 3);
    }

    #[test]
    fn a_ramp_does_not_count() {
        let arena = Arena::new(1).unwrap();
        let mut readers = readers(&arena, &rules(1, Sample::Io, 10, 0), &[]);
        read(&mut readers[0], 3, 40);
        let words = &arena.slot(0).control.accelerator;
        // Computed at 50, 100, 150 ms.
        readers[0].count_from(145 * MS);
        assert_eq!((words.uncounted.load(Relaxed), words.counted_ns.load(Relaxed)), (3, 150 * MS));
        readers[0].count_from(160 * MS);
        assert_eq!(words.counted_ns.load(Relaxed), 160 * MS);
    }
}
