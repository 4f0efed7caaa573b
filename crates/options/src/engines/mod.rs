//! The I/O engines by name, with what they can do and their own options.
//!
//! This is the catalogue only: it knows what can be asked of an engine, not how the engine works.

use crate::definition::Definition;

/// One I/O engine as the option language knows it.
#[derive(Debug)]
pub struct EngineInfo {
    /// The value of `ioengine`.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// It can be used; otherwise only its name and options are known.
    pub supported: bool,
    /// Each I/O is complete when the call that issues it returns.
    pub synchronous: bool,
    /// It needs no file to exist: nothing is laid out, opened or sized on disk.
    pub diskless: bool,
    /// Its own options, in the order in which the help lists them.
    pub options: &'static [&'static Definition],
}

static ENGINES: &[EngineInfo] = &[EngineInfo {
    name: "psync",
    help: "pread(2) and pwrite(2)",
    supported: true,
    synchronous: true,
    diskless: false,
    options: &[],
}];

/// All engines, in the order in which the help lists them.
pub fn engines() -> &'static [EngineInfo] {
    ENGINES
}

/// The engine of this name.
pub fn engine(name: &str) -> Option<&'static EngineInfo> {
    ENGINES.iter().find(|engine| engine.name == name)
}
