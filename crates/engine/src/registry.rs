//! The engines by name, and the one place that turns a name into an engine.

use crate::{
    Engine, EngineConfig, EngineError, IoUringEngine, LibaioEngine, MmapEngine, NullEngine, PosixAioEngine,
    PsyncEngine, Pvsync2Engine, PvsyncEngine, SyncEngine, VsyncEngine,
};
use std::fmt;

/// Something to be done with an engine whose type is not known before the job is read.
pub trait Visitor {
    /// What comes of it.
    type Out;
    /// Does it.
    fn visit<E: Engine + 'static>(self, engine: E) -> Self::Out;
}

macro_rules! engines {
    ($($variant:ident = $name:literal, $type:ident, $help:literal;)+) => {
        /// The engines that are built in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the variants are the engines' own names")]
        pub enum EngineName { $($variant),+ }

        impl EngineName {
            /// All of them, in the order in which they are listed to users.
            pub const ALL: &[EngineName] = &[$(EngineName::$variant),+];

            /// The name as it is written in a job file.
            pub const fn name(self) -> &'static str {
                match self { $(EngineName::$variant => $name),+ }
            }

            /// What it does, in one line.
            pub const fn help(self) -> &'static str {
                match self { $(EngineName::$variant => $help),+ }
            }

            /// Whether its units are done when they are queued ([`Engine::SYNCHRONOUS`]).
            pub const fn is_synchronous(self) -> bool {
                match self { $(EngineName::$variant => <$type as Engine>::SYNCHRONOUS),+ }
            }
        }

        /// Makes the engine of that name and hands it to the visitor.
        ///
        /// # Errors
        /// What the system refuses, with the remedy.
        pub fn build<V: Visitor>(name: &str, config: &EngineConfig, visitor: V) -> Result<V::Out, EngineError> {
            match EngineName::find(name)? {
                $(EngineName::$variant => hand_over($type::new, config, visitor),)+
            }
        }
    };
}

/// Makes an engine and hands it to the visitor. A call of its own for each engine, as all of them in one would take the
/// stack of all of them together, in each of a thousand threads.
#[inline(never)]
fn hand_over<E: Engine + 'static, V: Visitor>(
    new: impl FnOnce(&EngineConfig) -> Result<E, EngineError>,
    config: &EngineConfig,
    visitor: V,
) -> Result<V::Out, EngineError> {
    Ok(visitor.visit(new(config)?))
}

engines! {
    Null = "null", NullEngine, "transfers no data, does nothing";
    Sync = "sync", SyncEngine, "read(2) and write(2), positioned with lseek(2)";
    Psync = "psync", PsyncEngine, "pread(2) and pwrite(2)";
    Vsync = "vsync", VsyncEngine, "readv(2) and writev(2), adjacent I/Os in one call";
    Pvsync = "pvsync", PvsyncEngine, "preadv(2) and pwritev(2)";
    Pvsync2 = "pvsync2", Pvsync2Engine, "preadv2(2) and pwritev2(2)";
    Mmap = "mmap", MmapEngine, "the file is mapped, data is copied";
    Libaio = "libaio", LibaioEngine, "Linux native asynchronous I/O";
    IoUring = "io_uring", IoUringEngine, "Linux io_uring";
    PosixAio = "posixaio", PosixAioEngine, "POSIX asynchronous I/O (aio_read(3), aio_write(3))";
}

/// Engines of the language that are not built in.
const NOT_IMPLEMENTED: &[&str] = &[
    "cpuio",
    "net",
    "netsplice",
    "ftruncate",
    "filecreate",
    "filestat",
    "filedelete",
    "dircreate",
    "dirstat",
    "dirdelete",
    "exec",
    "page_fault",
    "nfs",
    "falloc",
    "e4defrag",
    "splice",
    "gfapi",
    "gfapi_async",
    "mtd",
    "sg",
    "io_uring_cmd",
    "rdma",
    "rados",
    "rbd",
    "http",
    "dev-dax",
    "libpmem",
];

impl EngineName {
    /// The engine of that name.
    pub fn parse(name: &str) -> Option<EngineName> {
        EngineName::ALL.iter().copied().find(|engine| engine.name() == name)
    }

    fn find(name: &str) -> Result<EngineName, EngineError> {
        EngineName::parse(name).ok_or_else(|| {
            if is_known(name) {
                EngineError::NotImplemented(name.to_string())
            } else {
                EngineError::Unknown(name.to_string())
            }
        })
    }

    /// Whether it needs no files: nothing is opened, laid out or measured.
    pub const fn is_diskless(self) -> bool {
        matches!(self, EngineName::Null)
    }

    /// Whether it can only touch what the file holds already, so that files are extended before a job starts.
    pub const fn cannot_extend(self) -> bool {
        matches!(self, EngineName::Mmap)
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether the language has an engine of that name, built in or not.
pub fn is_known(name: &str) -> bool {
    is_implemented(name) || NOT_IMPLEMENTED.contains(&name)
}

/// Whether the engine of that name is built in.
pub fn is_implemented(name: &str) -> bool {
    EngineName::parse(name).is_some()
}

/// Whether the engine is usable with this configuration, for the controlling process: what it tries is undone.
///
/// # Errors
/// What the system refuses, with the remedy.
pub fn probe(name: &str, config: &EngineConfig) -> Result<(), EngineError> {
    /// Drops the engine, which gives everything back.
    struct Discard;
    impl Visitor for Discard {
        type Out = ();
        fn visit<E: Engine + 'static>(self, _engine: E) {}
    }
    build(name, config, Discard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::options;

    #[test]
    fn names_round_trip() {
        for &engine in EngineName::ALL {
            assert_eq!(EngineName::parse(engine.name()), Some(engine));
            assert!(is_known(engine.name()) && is_implemented(engine.name()));
        }
        assert!(is_known("rados") && !is_implemented("rados"));
        assert!(!is_known("libaoi"));
    }

    #[test]
    fn the_synchronous_ones_are_known() {
        let synchronous: Vec<_> = EngineName::ALL
            .iter()
            .filter(|engine| engine.is_synchronous())
            .map(|engine| engine.name())
            .collect();
        assert_eq!(synchronous, ["sync", "psync", "pvsync", "pvsync2", "mmap"]);
    }

    #[test]
    fn unknown_and_missing_engines_are_told_apart() {
        let config = EngineConfig::new(options(), 1);
        assert!(matches!(probe("libaoi", &config), Err(EngineError::Unknown(_))));
        assert!(matches!(probe("rados", &config), Err(EngineError::NotImplemented(_))));
    }
}
