//! The resources that a worker has used since its I/O started.

use iolite_os::shared::Control;
use iolite_os::usage::Usage;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

thread_local! {
    /// Usage before the start. A worker is one thread.
    static BEFORE: Cell<Usage> = const { Cell::new(Usage {
        user_us: 0,
        system_us: 0,
        context_switches: 0,
        major_faults: 0,
        minor_faults: 0,
    }) };
}

thread_local! {
    /// Usage of the helper threads of this worker.
    static OTHERS: RefCell<Arc<[SharedUsage]>> = RefCell::new(Arc::new([]));
}

thread_local! {
    /// The threads or the process that the engine's library has started for this worker.
    static OF_ENGINE: RefCell<OfEngine> = const { RefCell::new(OfEngine::Nobody) };
}

/// Threads or processes that an engine's library has started for a worker.
#[derive(Debug)]
pub enum OfEngine {
    /// No threads or processes.
    Nobody,
    /// Threads of this process. Only this worker uses the process, so the whole process counts.
    Process,
    /// Threads of a shared process, by their ids in the system, each with the last known usage, because a thread may
    /// end.
    Threads(Vec<(i32, Usage)>),
}

impl OfEngine {
    /// These threads of a shared process.
    pub fn threads(ids: Vec<i32>) -> OfEngine {
        if ids.is_empty() {
            return OfEngine::Nobody;
        }
        OfEngine::Threads(ids.into_iter().map(|id| (id, Usage::default())).collect())
    }
}

/// The resources that a thread has used on behalf of a worker. Only that thread writes it.
#[derive(Debug, Default)]
pub struct SharedUsage {
    user_us: AtomicU64,
    system_us: AtomicU64,
    context_switches: AtomicU64,
    major_faults: AtomicU64,
    minor_faults: AtomicU64,
}

impl SharedUsage {
    /// Publishes the resource usage of the calling thread.
    pub fn publish(&self) {
        let used = Usage::of_this_thread();
        self.user_us.store(used.user_us, Relaxed);
        self.system_us.store(used.system_us, Relaxed);
        self.context_switches.store(used.context_switches, Relaxed);
        self.major_faults.store(used.major_faults, Relaxed);
        self.minor_faults.store(used.minor_faults, Relaxed);
    }

    fn so_far(&self) -> Usage {
        Usage {
            user_us: self.user_us.load(Relaxed),
            system_us: self.system_us.load(Relaxed),
            context_switches: self.context_switches.load(Relaxed),
            major_faults: self.major_faults.load(Relaxed),
            minor_faults: self.minor_faults.load(Relaxed),
        }
    }
}

/// Also counts these threads for the worker that is the calling thread.
pub fn count_also(others: Arc<[SharedUsage]>) {
    OTHERS.set(others);
}

/// Also counts the threads that the engine's library has started for the worker on the calling thread.
pub fn count_of_engine(whom: OfEngine) {
    OF_ENGINE.set(whom);
}

/// Usage of the worker and of everything that works for it.
fn used() -> Usage {
    OF_ENGINE.with_borrow_mut(|of_engine| match of_engine {
        OfEngine::Process => Usage::of_this_process(),
        OfEngine::Nobody => used_by_own(),
        OfEngine::Threads(threads) => threads.iter_mut().fold(used_by_own(), |sum, (id, used)| {
            *used = Usage::of_thread(*id).unwrap_or(*used);
            sum.plus(*used)
        }),
    })
}

/// Usage of the worker's thread and its helper threads.
fn used_by_own() -> Usage {
    OTHERS.with_borrow(|others| {
        others.iter().fold(Usage::of_this_thread(), |sum, other| sum.plus(other.so_far()))
    })
}

/// Starts counting.
pub fn begin() {
    BEFORE.set(used());
}

/// Restarts counting after the ramp.
pub fn reset(control: &Control) {
    begin();
    publish(control);
}

/// Publishes the usage since counting started.
pub fn publish(control: &Control) {
    let used = used().since(BEFORE.get());
    control.user_us.store(used.user_us, Relaxed);
    control.system_us.store(used.system_us, Relaxed);
    control.context_switches.store(used.context_switches, Relaxed);
    control.major_faults.store(used.major_faults, Relaxed);
    control.minor_faults.store(used.minor_faults, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_os::shared::Arena;

    #[test]
    fn usage_is_counted_from_the_beginning() {
        let arena = Arena::new(1).unwrap();
        let control = &arena.slot(0).control;
        begin();
        let pages: Vec<Vec<u8>> = (0..256).map(|_| vec![1; 65_536]).collect();
        publish(control);
        assert!(control.minor_faults.load(Relaxed) > 0, "{}", pages.len());
        reset(control);
        assert!(control.minor_faults.load(Relaxed) < 256);
    }

    #[test]
    fn threads_of_the_engine_count_for_as_long_as_they_live() {
        let (tell, told) = std::sync::mpsc::channel();
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let library = std::thread::spawn(move || {
            tell.send(iolite_os::process::thread_id()).unwrap();
            gone.recv().unwrap();
            while Usage::of_this_thread().user_us < 30_000 {}
            tell.send(0).unwrap();
            gone.recv().ok();
        });
        let arena = Arena::new(1).unwrap();
        let control = &arena.slot(0).control;
        count_of_engine(OfEngine::threads(vec![told.recv().unwrap()]));
        begin();
        go.send(()).unwrap();
        told.recv().unwrap();
        publish(control);
        let used = control.user_us.load(Relaxed) + control.system_us.load(Relaxed);
        assert!(used >= 20_000, "{used} µs");
        drop(go);
        library.join().unwrap();
        publish(control);
        let after = control.user_us.load(Relaxed) + control.system_us.load(Relaxed);
        assert!(after >= 20_000, "{after} µs: what it had used stays counted");
    }

    #[test]
    fn a_process_counts_as_a_whole() {
        let arena = Arena::new(1).unwrap();
        let control = &arena.slot(0).control;
        count_of_engine(OfEngine::Process);
        begin();
        let library = std::thread::spawn(|| while Usage::of_this_thread().user_us < 30_000 {});
        library.join().unwrap();
        publish(control);
        let used = control.user_us.load(Relaxed) + control.system_us.load(Relaxed);
        assert!(used >= 20_000, "{used} µs");
    }
}
