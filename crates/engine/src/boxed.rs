//! An engine behind a pointer: engines whose own cost far exceeds that of an indirect call share one compiled loop.
//!
//! The loop of a worker is compiled for each type of engine and each common kind of workload, which takes time to build
//! and room in the program. A call through a pointer costs about two nanoseconds per I/O. That matters if an I/O takes
//! tens of nanoseconds, or if one system call carries many I/Os. It does not matter if each I/O is a separate system
//! call, a copy, or a message to another machine.

use crate::{
    BufferLayout, Completion, Engine, EngineError, Errno, FileSpec, OpenMode, Queued, Requests, StageEnds,
    Storage, Unit, Visitor,
};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// The methods of [`Engine`], without its constants: for code that is compiled once for all engines.
#[expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "Engine has a method of each name, documented there"
)]
pub trait DynEngine {
    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()>;
    fn close(&mut self, index: u32) -> io::Result<()>;
    fn descriptor(&self, index: u32) -> Option<RawFd>;
    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError>;
    fn meet(&mut self, goes_on: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;
    /// # Safety
    /// As [`Engine::queue`].
    unsafe fn queue(&mut self, unit: &Unit) -> Queued;
    fn commit(&mut self) -> Result<usize, Errno>;
    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno>;
    fn threads(&self) -> Vec<i32>;
    fn announcements(&self) -> Vec<String>;
    fn explain(&self, unit: u32) -> Option<String>;
    fn trims(&mut self, unit: u32, ranges: &[(u64, u64)]);
    fn compares(&mut self, unit: u32);
    fn placed(&self, unit: u32) -> Option<u64>;
    fn remarks(&mut self) -> Vec<String>;
    fn warnings(&mut self) -> Vec<String>;
    fn first_byte(&self, unit: u32) -> Option<u64>;
    fn visible(&self, unit: u32) -> Option<u64>;
    fn stage_ends(&self, unit: u32) -> Option<StageEnds>;
    fn requests(&self) -> Requests;
    fn keep_alive(&mut self) -> bool;
    fn stop_repeating(&mut self);
    fn leave(&mut self);
    fn sync_file(&mut self, index: u32) -> Option<io::Result<()>>;
    fn storage(&mut self) -> Option<&mut dyn Storage>;
}

impl<E: Engine> DynEngine for E {
    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        Engine::open(self, index, spec, mode)
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        Engine::close(self, index)
    }

    fn descriptor(&self, index: u32) -> Option<RawFd> {
        Engine::descriptor(self, index)
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        Engine::prepare(self, layout)
    }

    fn meet(&mut self, goes_on: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        Engine::meet(self, goes_on)
    }

    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        // SAFETY: the caller upholds the engine's contract.
        unsafe { Engine::queue(self, unit) }
    }

    fn commit(&mut self) -> Result<usize, Errno> {
        Engine::commit(self)
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        Engine::reap(self, min, max, timeout, done)
    }

    fn threads(&self) -> Vec<i32> {
        Engine::threads(self)
    }

    fn announcements(&self) -> Vec<String> {
        Engine::announcements(self)
    }

    fn explain(&self, unit: u32) -> Option<String> {
        Engine::explain(self, unit)
    }

    fn trims(&mut self, unit: u32, ranges: &[(u64, u64)]) {
        Engine::trims(self, unit, ranges);
    }

    fn compares(&mut self, unit: u32) {
        Engine::compares(self, unit);
    }

    fn placed(&self, unit: u32) -> Option<u64> {
        Engine::placed(self, unit)
    }

    fn remarks(&mut self) -> Vec<String> {
        Engine::remarks(self)
    }

    fn warnings(&mut self) -> Vec<String> {
        Engine::warnings(self)
    }

    fn first_byte(&self, unit: u32) -> Option<u64> {
        Engine::first_byte(self, unit)
    }

    fn visible(&self, unit: u32) -> Option<u64> {
        Engine::visible(self, unit)
    }

    fn stage_ends(&self, unit: u32) -> Option<StageEnds> {
        Engine::stage_ends(self, unit)
    }

    fn requests(&self) -> Requests {
        Engine::requests(self)
    }

    fn keep_alive(&mut self) -> bool {
        Engine::keep_alive(self)
    }

    fn stop_repeating(&mut self) {
        Engine::stop_repeating(self);
    }

    fn leave(&mut self) {
        Engine::leave(self);
    }

    fn sync_file(&mut self, index: u32) -> Option<io::Result<()>> {
        Engine::sync_file(self, index)
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        Engine::storage(self)
    }
}

/// Any synchronous engine, or any other engine.
///
/// The type does not show whether an engine takes the time itself, or completes units without a system call: such
/// engines are not put behind a pointer.
pub struct BoxedEngine<const SYNCHRONOUS: bool>(Box<dyn DynEngine>);

impl<const SYNCHRONOUS: bool> BoxedEngine<SYNCHRONOUS> {
    /// Puts an engine behind a pointer.
    pub fn new<E: Engine + 'static>(engine: E) -> Self {
        const { assert!(!E::STAMPS && E::CALLS, "what these say would be forgotten") };
        assert_eq!(E::SYNCHRONOUS, SYNCHRONOUS, "the engine is of the other kind");
        BoxedEngine(Box::new(engine))
    }
}

impl<const SYNCHRONOUS: bool> Engine for BoxedEngine<SYNCHRONOUS> {
    const SYNCHRONOUS: bool = SYNCHRONOUS;
    const REQUESTS: bool = true;
    const PLACES: bool = !SYNCHRONOUS;

    fn visit_shared<V: Visitor>(self, visitor: V) -> V::Out {
        visitor.visit(self)
    }

    fn open(&mut self, index: u32, spec: &FileSpec, mode: OpenMode) -> io::Result<()> {
        self.0.open(index, spec, mode)
    }

    fn close(&mut self, index: u32) -> io::Result<()> {
        self.0.close(index)
    }

    fn descriptor(&self, index: u32) -> Option<RawFd> {
        self.0.descriptor(index)
    }

    fn prepare(&mut self, layout: &BufferLayout) -> Result<(), EngineError> {
        self.0.prepare(layout)
    }

    fn meet(&mut self, goes_on: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        self.0.meet(goes_on)
    }

    #[inline(always)]
    unsafe fn queue(&mut self, unit: &Unit) -> Queued {
        // SAFETY: the caller upholds the engine's contract.
        unsafe { self.0.queue(unit) }
    }

    #[inline(always)]
    fn commit(&mut self) -> Result<usize, Errno> {
        self.0.commit()
    }

    #[inline(always)]
    fn reap(
        &mut self,
        min: usize,
        max: usize,
        timeout: Option<Duration>,
        done: &mut Vec<Completion>,
    ) -> Result<(), Errno> {
        self.0.reap(min, max, timeout, done)
    }

    fn threads(&self) -> Vec<i32> {
        self.0.threads()
    }

    fn announcements(&self) -> Vec<String> {
        self.0.announcements()
    }

    fn explain(&self, unit: u32) -> Option<String> {
        self.0.explain(unit)
    }

    fn trims(&mut self, unit: u32, ranges: &[(u64, u64)]) {
        self.0.trims(unit, ranges);
    }

    fn compares(&mut self, unit: u32) {
        self.0.compares(unit);
    }

    fn placed(&self, unit: u32) -> Option<u64> {
        self.0.placed(unit)
    }

    fn remarks(&mut self) -> Vec<String> {
        self.0.remarks()
    }

    fn warnings(&mut self) -> Vec<String> {
        self.0.warnings()
    }

    fn first_byte(&self, unit: u32) -> Option<u64> {
        self.0.first_byte(unit)
    }

    fn visible(&self, unit: u32) -> Option<u64> {
        self.0.visible(unit)
    }

    fn stage_ends(&self, unit: u32) -> Option<StageEnds> {
        self.0.stage_ends(unit)
    }

    fn requests(&self) -> Requests {
        self.0.requests()
    }

    fn keep_alive(&mut self) -> bool {
        self.0.keep_alive()
    }

    fn stop_repeating(&mut self) {
        self.0.stop_repeating();
    }

    fn leave(&mut self) {
        self.0.leave();
    }

    fn sync_file(&mut self, index: u32) -> Option<io::Result<()>> {
        self.0.sync_file(index)
    }

    fn storage(&mut self) -> Option<&mut dyn Storage> {
        self.0.storage()
    }
}
