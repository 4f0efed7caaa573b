//! The spawner: a small single-threaded process that forks workers and reports how they end.
//!
//! The controller forks it right after planning, so that the processes it forks are small and have no other threads.
//! Orders and answers are messages of a fixed size on a socket pair. When the controller is gone, for whatever reason,
//! the spawner sees the end of that socket, kills its children, and cleans up.
//!
//! If workers start programs, it has a separate name and process group, so that it survives a command that kills all
//! processes of the run by name or by group, and can clean up. Its children look as if the controller had forked them.

use iolite_os::appearance::Appearance;
use iolite_os::poll;
use iolite_os::process::{self, ChildEnd};
use iolite_os::signals::{self, SignalQueue};
use iolite_os::socket::Socket;
use iolite_os::usage::Usage;
use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

/// Orders of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Lay out the files of all workers.
    LayOut,
    /// Start this worker as a process.
    Process(u32),
    /// Start this worker as a thread of the thread host.
    Thread(u32),
    /// Keep the time in a thread of the thread host.
    KeepTime,
    /// Start a process that measures.
    Help(Helper),
    /// Interrupt workers that were asked to stop.
    Interrupt,
    /// Kill hanging processes.
    Kill(Victim),
}

/// A process that measures beside the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// How idle the CPUs are.
    Idleness,
    /// Where the time of I/Os goes.
    Stages,
}

/// A process to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The process that lays out files.
    Layout,
    /// The process of this worker.
    Process(u32),
    /// The process of all thread workers.
    ThreadHost,
}

/// Answers of the spawner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The process that laid out files has ended.
    LaidOut(ChildEnd),
    /// A worker process has ended.
    Process(u32, ChildEnd),
    /// The process of all thread workers has ended.
    ThreadHost(ChildEnd),
    /// This worker could not be started, because of this errno.
    NotStarted(u32, i32),
    /// A process that measures has ended.
    Helper(Helper, ChildEnd),
}

/// The number in [`Answer::NotStarted`] for children that are not workers: the layout, and the thread that keeps the
/// time.
pub const NO_WORKER: u32 = u32::MAX;

const MESSAGE: usize = 16;

fn encode(words: [i32; 4]) -> [u8; MESSAGE] {
    let mut bytes = [0; MESSAGE];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<[i32; 4]> {
    let mut words = [0; 4];
    if bytes.len() != MESSAGE {
        return None;
    }
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = i32::from_ne_bytes(chunk.try_into().ok()?);
    }
    Some(words)
}

impl Order {
    fn encode(self) -> [u8; MESSAGE] {
        match self {
            Order::LayOut => encode([0; 4]),
            Order::Process(worker) => encode([1, worker as i32, 0, 0]),
            Order::Thread(worker) => encode([2, worker as i32, 0, 0]),
            Order::Interrupt => encode([3, 0, 0, 0]),
            Order::KeepTime => encode([4, 0, 0, 0]),
            Order::Help(Helper::Idleness) => encode([5, 0, 0, 0]),
            Order::Help(Helper::Stages) => encode([9, 0, 0, 0]),
            Order::Kill(Victim::Layout) => encode([6, 0, 0, 0]),
            Order::Kill(Victim::Process(worker)) => encode([7, worker as i32, 0, 0]),
            Order::Kill(Victim::ThreadHost) => encode([8, 0, 0, 0]),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Order> {
        match decode(bytes)? {
            [0, ..] => Some(Order::LayOut),
            [1, worker, ..] => Some(Order::Process(worker as u32)),
            [2, worker, ..] => Some(Order::Thread(worker as u32)),
            [3, ..] => Some(Order::Interrupt),
            [4, ..] => Some(Order::KeepTime),
            [5, ..] => Some(Order::Help(Helper::Idleness)),
            [9, ..] => Some(Order::Help(Helper::Stages)),
            [6, ..] => Some(Order::Kill(Victim::Layout)),
            [7, worker, ..] => Some(Order::Kill(Victim::Process(worker as u32))),
            [8, ..] => Some(Order::Kill(Victim::ThreadHost)),
            _ => None,
        }
    }
}

impl Answer {
    fn encode(self) -> [u8; MESSAGE] {
        let (tag, worker, end) = match self {
            Answer::LaidOut(end) => (0, 0, end),
            Answer::Process(worker, end) => (1, worker, end),
            Answer::ThreadHost(end) => (2, 0, end),
            Answer::NotStarted(worker, errno) => (3, worker, ChildEnd::Exited(errno)),
            Answer::Helper(Helper::Idleness, end) => (4, 0, end),
            Answer::Helper(Helper::Stages, end) => (5, 0, end),
        };
        match end {
            ChildEnd::Exited(status) => encode([tag, worker as i32, 0, status]),
            ChildEnd::Killed(signal) => encode([tag, worker as i32, 1, signal]),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Answer> {
        let [tag, worker, killed, value] = decode(bytes)?;
        let end = if killed == 1 { ChildEnd::Killed(value) } else { ChildEnd::Exited(value) };
        match tag {
            0 => Some(Answer::LaidOut(end)),
            1 => Some(Answer::Process(worker as u32, end)),
            2 => Some(Answer::ThreadHost(end)),
            3 => Some(Answer::NotStarted(worker as u32, value)),
            4 => Some(Answer::Helper(Helper::Idleness, end)),
            5 => Some(Answer::Helper(Helper::Stages, end)),
            _ => None,
        }
    }
}

/// The work of the spawner's children. Implemented by the run.
pub trait Work: Send + Sync {
    /// Lays out the files of all workers; the exit status.
    fn lay_out(&self) -> i32;
    /// Runs this worker; the exit status.
    fn worker(&self, worker: u32) -> i32;
    /// Bytes of stack that this worker needs as a thread.
    fn stack(&self, worker: u32) -> usize;
    /// Called when the process of a worker was killed, with its resource usage, which it could not report itself.
    fn killed(&self, worker: u32, used: Usage);
    /// Called when a thread worker has ended.
    fn thread_over(&self, worker: u32);
    /// Whether this worker was asked to stop, and may be blocked so that it does not notice.
    fn may_be_deaf(&self, worker: u32) -> bool;
    /// Keeps the time for all workers, forever.
    fn keep_time(&self);
    /// Measures until the jobs are over; the exit status.
    fn help(&self, helper: Helper) -> i32;
    /// Whether workers start programs. The spawner inherits the children of those programs, which must not outlive the
    /// run.
    fn starts_programs(&self) -> bool;
    /// Called when all workers are gone: removes their shared resources.
    fn clean_up(&self);
    /// Interrupts workers among the threads of this process for which [`Work::may_be_deaf`] holds.
    fn interrupt_threads(&self);
}

/// How long killed processes are waited for.
const DYING_PATIENCE: Duration = Duration::from_secs(1);

/// How long the spawner waits for its children after the controller has died.
const LAST_PATIENCE: Duration = Duration::from_secs(60);

/// The name of the spawner's process, so that it is not mistaken for a worker. (It must not contain a name of the
/// program: `pkill` matches parts.)
const NAME: &CStr = c"run-spawner";

/// How often the controller checks whether the spawner is gone.
const DYING_LOOK: Duration = Duration::from_micros(500);

/// The controller's end.
pub struct Spawner {
    socket: Socket,
    /// `None` = it has been waited for.
    pid: Option<libc::pid_t>,
}

impl Spawner {
    /// Forks the spawner. This process must be single-threaded.
    pub fn start<W: Work + 'static>(work: W) -> io::Result<Spawner> {
        let (mine, its) = Socket::pair()?;
        let controller = mine.as_raw_fd();
        let parent = process::process_id();
        let pid = process::fork(move || {
            if signals::become_interruptible().is_err() {
                return 1;
            }
            // If the limit stays lower, opening too many files fails with a message.
            let _ = process::allow_many_files();
            let ends_orphans = work.starts_programs();
            let appearance = ends_orphans.then(|| {
                process::adopt_orphans();
                Appearance::replace(NAME, &format!("{} of {parent}", NAME.to_string_lossy()))
            });
            // With a copy of the controller's end open, this process would never see that the controller closes it.
            // SAFETY: this process does not use that descriptor through anything else: `mine` is never dropped here.
            unsafe { libc::close(controller) };
            let work = std::sync::Arc::new(work);
            let status = serve(&its, &work, appearance.as_ref());
            if ends_orphans {
                let is_alone = parent_id().cast_signed() != parent;
                process::end_children(&[], if is_alone { LAST_PATIENCE } else { DYING_PATIENCE });
            }
            work.clean_up();
            status
        })?;
        Ok(Spawner { socket: mine, pid: Some(pid) })
    }

    /// Sends an order.
    ///
    /// # Errors
    /// `BrokenPipe` = the spawner has died; other errors come from the operating system.
    pub fn order(&self, order: Order) -> io::Result<()> {
        match order {
            // This order is repeated, and a spawner that hangs must not make the controller hang.
            Order::Interrupt => self.socket.send_if_there_is_room(&order.encode()).map(drop),
            _ => self.socket.send(&order.encode()),
        }
    }

    /// The next answer, if there is one now.
    ///
    /// # Errors
    /// `UnexpectedEof` = the spawner has died; other errors come from the operating system.
    pub fn answer(&self) -> io::Result<Option<Answer>> {
        let mut bytes = [0; MESSAGE];
        let length = self.socket.try_receive_or_end(&mut bytes)?;
        Ok(length.and_then(|length| Answer::decode(&bytes[..length])))
    }

    /// The descriptor that becomes readable when there is an answer.
    pub fn descriptor(&self) -> i32 {
        self.socket.as_raw_fd()
    }

    /// Makes the spawner kill all its children, and end. Returns how it has ended, the first time. Then no process of
    /// the run is left, so files are closed and CPUs are idle for the next run; except for processes that the kernel
    /// cannot kill yet.
    pub fn end(&mut self) -> Option<ChildEnd> {
        let pid = self.pid.take()?;
        self.socket.finish_sending();
        let patience = Instant::now() + DYING_PATIENCE * 2;
        while let Some(left) = patience.checked_duration_since(Instant::now()) {
            // The remaining answers do not matter, but the spawner must be able to send them.
            if poll::wait_readable(&[self.descriptor()], Some(left)).is_err() {
                break;
            }
            while let Ok(Some(_)) = self.answer() {}
            if self.answer().is_err() {
                break;
            }
        }
        // It has ended or is about to. If the order did not reach it, it still must not outlive the run.
        while Instant::now() < patience {
            if let Some(end) = process::reap(pid) {
                return Some(end);
            }
            std::thread::sleep(DYING_LOOK);
        }
        signals::kill(pid, libc::SIGKILL);
        process::wait_for_child(pid)
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.end();
    }
}

/// The work of a child of the spawner.
enum Child {
    Layout,
    Worker(u32),
    ThreadHost,
    Helper(Helper),
}

/// Carries out orders until there are no more. Then ends all processes that it started.
fn serve<W: Work + 'static>(
    socket: &Socket,
    work: &std::sync::Arc<W>,
    appearance: Option<&Appearance>,
) -> i32 {
    // A terminal sends SIGHUP and SIGQUIT to all processes. The controller decides how to handle them.
    let Ok(signals) = SignalQueue::new(&[libc::SIGCHLD, libc::SIGHUP, libc::SIGQUIT]) else { return 1 };
    let mut children: HashMap<libc::pid_t, Child> = HashMap::new();
    let mut threads: Option<Socket> = None;
    let status = loop {
        if poll::wait_readable(&[socket.as_raw_fd(), signals.as_raw_fd()], None).is_err() {
            break 1;
        }
        while signals.next().is_some() {}
        if tell_ends(socket, &**work, &mut children, &mut threads).is_err() {
            break 1;
        }
        match obey(socket, work, appearance, &mut children, &mut threads) {
            Ok(()) => {}
            // The run has ended, or the controller is gone.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break 0,
            Err(_) => break 1,
        }
    };
    end_all(&signals, children);
    status
}

/// Reports children that have ended.
fn tell_ends<W: Work>(
    socket: &Socket,
    work: &W,
    children: &mut HashMap<libc::pid_t, Child>,
    threads: &mut Option<Socket>,
) -> io::Result<()> {
    while let Some((pid, end, used)) = process::reap_child() {
        let answer = match children.remove(&pid) {
            Some(Child::Layout) => Answer::LaidOut(end),
            Some(Child::Worker(worker)) => {
                if let ChildEnd::Killed(_) = end {
                    work.killed(worker, used);
                }
                Answer::Process(worker, end)
            }
            Some(Child::ThreadHost) => {
                *threads = None;
                Answer::ThreadHost(end)
            }
            Some(Child::Helper(helper)) => Answer::Helper(helper, end),
            None => continue,
        };
        socket.send(&answer.encode())?;
    }
    Ok(())
}

/// Carries out the orders that have arrived.
fn obey<W: Work + 'static>(
    socket: &Socket,
    work: &std::sync::Arc<W>,
    appearance: Option<&Appearance>,
    children: &mut HashMap<libc::pid_t, Child>,
    threads: &mut Option<Socket>,
) -> io::Result<()> {
    let mut bytes = [0; MESSAGE];
    while let Some(length) = socket.try_receive_or_end(&mut bytes)? {
        let order = Order::decode(&bytes[..length]).ok_or(io::ErrorKind::InvalidData)?;
        if let Err((worker, error)) = carry_out(order, work, appearance, children, threads) {
            let answer = Answer::NotStarted(worker, error.raw_os_error().unwrap_or(libc::EAGAIN));
            socket.send(&answer.encode())?;
        }
    }
    Ok(())
}

/// Kills all children and waits until they have ended, so that nothing outlives the run. It does not wait long for a
/// child that the kernel cannot kill yet, because it waits for a device: the child dies as soon as the device answers.
fn end_all(signals: &SignalQueue, mut children: HashMap<libc::pid_t, Child>) {
    children.keys().for_each(|&pid| signals::kill(pid, libc::SIGKILL));
    let patience = Instant::now() + DYING_PATIENCE;
    while !children.is_empty() {
        while let Some((pid, ..)) = process::reap_child() {
            children.remove(&pid);
        }
        let Some(left) = patience.checked_duration_since(Instant::now()) else { return };
        if !children.is_empty() && poll::wait_readable(&[signals.as_raw_fd()], Some(left)).is_err() {
            return;
        }
        while signals.next().is_some() {}
    }
}

/// Forks a child, which dies with this process. It gets the name that this process had at first.
fn fork(appearance: Option<&Appearance>, body: impl FnOnce() -> i32) -> io::Result<libc::pid_t> {
    let parent = process::process_id();
    process::fork(|| {
        process::die_with_parent(parent);
        if let Some(appearance) = appearance {
            appearance.restore();
        }
        body()
    })
}

fn carry_out<W: Work + 'static>(
    order: Order,
    work: &std::sync::Arc<W>,
    appearance: Option<&Appearance>,
    children: &mut HashMap<libc::pid_t, Child>,
    threads: &mut Option<Socket>,
) -> Result<(), (u32, io::Error)> {
    match order {
        Order::LayOut => {
            let pid = fork(appearance, || work.lay_out()).map_err(|error| (NO_WORKER, error))?;
            children.insert(pid, Child::Layout);
        }
        Order::Process(worker) => {
            let pid = fork(appearance, || work.worker(worker)).map_err(|error| (worker, error))?;
            children.insert(pid, Child::Worker(worker));
        }
        Order::Thread(_) | Order::KeepTime => {
            let worker = if let Order::Thread(worker) = order { worker } else { NO_WORKER };
            if threads.is_none() {
                let (mine, its) = Socket::pair().map_err(|error| (worker, error))?;
                let pid = fork(appearance, || host_threads(&its, work)).map_err(|error| (worker, error))?;
                children.insert(pid, Child::ThreadHost);
                *threads = Some(mine);
            }
            if let Some(host) = threads {
                host.send(&order.encode()).map_err(|error| (worker, error))?;
            }
        }
        Order::Help(helper) => {
            let pid = fork(appearance, || work.help(helper)).map_err(|error| (NO_WORKER, error))?;
            children.insert(pid, Child::Helper(helper));
        }
        Order::Interrupt => {
            for (&pid, child) in children.iter() {
                // The child has not been reaped, so its number cannot belong to another process.
                let is_concerned = match child {
                    Child::Layout => true,
                    Child::Worker(worker) => work.may_be_deaf(*worker),
                    Child::ThreadHost | Child::Helper(_) => false,
                };
                if is_concerned {
                    signals::kill(pid, signals::INTERRUPT);
                }
            }
            if let Some(host) = threads {
                // If the host has died, so have its threads. Its end is about to be reported.
                let _ = host.send_if_there_is_room(&order.encode());
            }
        }
        Order::Kill(victim) => {
            // No child here has been reaped, so the numbers cannot belong to other processes.
            let doomed = children.iter().filter(|(_, child)| match (victim, child) {
                (Victim::Layout, Child::Layout) | (Victim::ThreadHost, Child::ThreadHost) => true,
                (Victim::Process(worker), Child::Worker(other)) => worker == *other,
                _ => false,
            });
            doomed.for_each(|(&pid, _)| signals::kill(pid, libc::SIGKILL));
        }
    }
    Ok(())
}

/// The thread host: starts a thread for each order, until it is killed with the spawner at the end of the run.
fn host_threads<W: Work + 'static>(socket: &Socket, work: &std::sync::Arc<W>) -> i32 {
    /// The clock needs little stack.
    const STACK: usize = 512 << 10;
    let mut bytes = [0; MESSAGE];
    while let Ok(length @ 1..) = socket.receive(&mut bytes) {
        let worker = match Order::decode(&bytes[..length]) {
            Some(Order::Thread(worker)) => worker,
            Some(Order::Interrupt) => {
                work.interrupt_threads();
                continue;
            }
            Some(Order::KeepTime) => {
                let theirs = work.clone();
                let keeper = std::thread::Builder::new().name("iolite-time".into()).stack_size(STACK);
                if keeper.spawn(move || theirs.keep_time()).is_err() {
                    return 1;
                }
                continue;
            }
            _ => return 1,
        };
        let theirs = work.clone();
        let body = move || {
            theirs.worker(worker);
            theirs.thread_over(worker);
        };
        let name = format!("iolite-{worker}");
        if std::thread::Builder::new().name(name).stack_size(work.stack(worker)).spawn(body).is_err() {
            // The controller sees a worker that ended without having begun.
            work.thread_over(worker);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_answers_survive_the_socket() {
        for order in [
            Order::LayOut,
            Order::Process(7),
            Order::Thread(u32::MAX),
            Order::Interrupt,
            Order::KeepTime,
            Order::Help(Helper::Idleness),
            Order::Help(Helper::Stages),
            Order::Kill(Victim::Layout),
            Order::Kill(Victim::Process(7)),
            Order::Kill(Victim::ThreadHost),
        ] {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
        for answer in [
            Answer::LaidOut(ChildEnd::Exited(3)),
            Answer::Process(9, ChildEnd::Killed(11)),
            Answer::ThreadHost(ChildEnd::Exited(0)),
            Answer::NotStarted(4, 12),
            Answer::Helper(Helper::Idleness, ChildEnd::Killed(9)),
            Answer::Helper(Helper::Stages, ChildEnd::Exited(1)),
        ] {
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
        assert_eq!(Order::decode(b"short"), None);
    }
}
