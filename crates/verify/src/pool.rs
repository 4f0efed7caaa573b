//! `verify_async`: threads that check blocks while the worker continues.
//!
//! A unit belongs to a thread from [`Pool::ask`] until it comes out of [`Pool::answer`]. The queues have room for all units,
//! so putting something into one never blocks.

use crate::block::Mismatch;
use crate::checker::Checker;
use crate::passes::Found;
use crate::question::Question;
use iolite_os::processors::run_on;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// A block that was checked.
pub struct Checked {
    /// The unit that it was read with.
    pub index: u32,
    /// The mismatches found.
    pub mismatches: Vec<Mismatch>,
    /// The write that the block holds, if it is right and belongs to an earlier run.
    pub found: Option<Found>,
}

/// The threads.
pub struct Pool {
    threads: Vec<(SyncSender<Asked>, JoinHandle<()>)>,
    answers: Receiver<Checked>,
    next: usize,
    /// The number of blocks that threads have.
    out: u32,
}

struct Asked {
    index: u32,
    block: Block,
    question: Question,
}

/// The bytes of a unit's buffer.
struct Block(*const u8, usize);

// SAFETY: the caller of `Pool::ask` does not touch the buffer until the answer.
unsafe impl Send for Block {}

impl Pool {
    /// Starts `count` threads on these CPUs (empty = the worker's CPUs), for at most `units` blocks at a time.
    ///
    /// # Errors
    ///
    /// The system refuses a thread.
    pub(crate) fn start(count: u32, cpus: &[u32], units: usize, checker: &Checker) -> io::Result<Pool> {
        let (answer, answers) = channel();
        let threads = (0..count).map(|number| {
            let (ask, questions) = sync_channel(units);
            let (answer, checker, cpus) = (answer.clone(), checker.clone(), cpus.to_vec());
            let thread = std::thread::Builder::new()
                .name(format!("verify{number}"))
                .spawn(move || work(&questions, &answer, checker, &cpus))?;
            Ok((ask, thread))
        });
        Ok(Pool { threads: threads.collect::<io::Result<_>>()?, answers, next: 0, out: 0 })
    }

    /// Gives a block to a thread to check.
    ///
    /// # Safety
    ///
    /// The bytes stay where they are, unchanged, until the unit comes out of [`Pool::answer`] or the pool is dropped.
    pub unsafe fn ask(&mut self, index: u32, block: &[u8], question: Question) {
        let asked = Asked { index, block: Block(block.as_ptr(), block.len()), question };
        self.next = (self.next + 1) % self.threads.len();
        // A thread ends with its queue, or by a panic, which ends the worker as well.
        self.threads[self.next].0.send(asked).expect("a checking thread lives as long as its queue");
        self.out += 1;
    }

    /// A block that was checked; waits for one if `wait`. `None`: the threads have no blocks (or, without `wait`, no
    /// block is ready).
    pub fn answer(&mut self, wait: bool) -> Option<Checked> {
        if self.out == 0 {
            return None;
        }
        let answer = if wait {
            Some(self.answers.recv().expect("a checking thread answers everything it was asked"))
        } else {
            self.answers.try_recv().ok()
        }?;
        self.out -= 1;
        Some(answer)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (questions, thread) in self.threads.drain(..) {
            drop(questions);
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}

fn work(questions: &Receiver<Asked>, answers: &Sender<Checked>, mut checker: Checker, cpus: &[u32]) {
    if !cpus.is_empty() {
        // The CPUs were checked before the run. If one has become unusable since, that is no reason to stop.
        let _ = run_on(cpus);
    }
    while let Ok(Asked { index, block: Block(start, length), question }) = questions.recv() {
        // SAFETY: the buffer is this thread's until it answers.
        let block = unsafe { std::slice::from_raw_parts(start, length) };
        let mismatches = checker.check(block, question);
        if answers.send(Checked { index, mismatches, found: checker.found() }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Identity, Kind, Spec, Stamper};
    use crate::question::Expect;
    use iolite_os::processors::processors;
    use std::sync::Arc;

    #[test]
    fn every_block_comes_back_and_wrong_ones_are_reported() {
        let spec = Spec::new(Kind::Crc32c);
        let checker = Checker::new(&spec, 5, 1, Arc::default());
        let cpus = [*processors().unwrap().last().unwrap()];
        let mut pool = Pool::start(3, &cpus, 16, &checker).unwrap();
        let mut stamper = Stamper::new(&spec);
        let blocks: Vec<Vec<u8>> = (0..16u64)
            .map(|number| {
                let mut block = vec![0; 512];
                let seed = checker.seed(number);
                let offset = number * 512;
                stamper.stamp(
                    &mut block,
                    &Identity { offset, sequence: number, seed, job: 1, ..Default::default() },
                );
                block[300] ^= u8::from(number % 5 == 0);
                block
            })
            .collect();
        for (index, block) in (0..).zip(&blocks) {
            let number = u64::from(index);
            let question =
                Question { file: 0, offset: number * 512, expect: Expect::Write(number), is_own: true };
            // SAFETY: the blocks outlive the pool's answers.
            unsafe { pool.ask(index, block, question) };
        }
        let mut wrong = Vec::new();
        let mut count = 0;
        while let Some(checked) = pool.answer(true) {
            count += 1;
            wrong.extend(checked.mismatches.iter().map(|_| checked.index));
        }
        wrong.sort_unstable();
        assert_eq!((count, wrong), (16, vec![0, 5, 10, 15]));
        assert!(pool.answer(true).is_none(), "nothing is waited for that does not come");
    }

    #[test]
    fn threads_run_on_their_cpus() {
        let cpu = *processors().unwrap().first().unwrap();
        let spec = Spec::new(Kind::Md5);
        let _pool = Pool::start(1, &[cpu], 1, &Checker::new(&spec, 5, 1, Arc::default())).unwrap();
        let wanted = format!("Cpus_allowed_list:\t{cpu}\n");
        let is_tied = || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
            tasks
                .map(|task| std::fs::read_to_string(task.path().join("status")).unwrap_or_default())
                .any(|status| status.starts_with("Name:\tverify0\n") && status.contains(&wanted))
        };
        for _ in 0..1000 {
            if is_tied() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("no thread verify0 on CPU {cpu}");
    }
}
