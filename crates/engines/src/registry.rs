//! Turns the name of an engine into the engine: the only place that does. The catalogue ([`iolite_options::engines`])
//! describes the engines.

use iolite_engine::{
    BoxedEngine, Engine, EngineConfig, EngineError, Storage, StorageOf, Visitor,
    in_child_process_with_progress,
};
use iolite_engine_calls::{
    Act, CpuioEngine, DirCreate, DirDelete, DirRead, E4defragEngine, ExecEngine, FallocEngine, FileCreate,
    FileDelete, FileRead, FileWrite, FileXattr, FtruncateEngine, NameEngine, NewName, PageFaultEngine,
    RingAct, RingNameEngine, Stat,
};
use iolite_engine_devices::{BsgEngine, DevDaxEngine, IoUringCmdEngine, LibpmemEngine, MtdEngine, SgEngine};
#[cfg(feature = "hdfs")]
use iolite_engine_hdfs::LibhdfsEngine;
use iolite_engine_local::{
    IoUringEngine, LibaioEngine, MmapEngine, NullEngine, PosixAioEngine, PsyncEngine, Pvsync2Engine,
    PvsyncEngine, SpliceEngine, SyncEngine, VsyncEngine,
};
#[cfg(feature = "servers")]
use iolite_engine_servers::{
    GfapiAsyncEngine, GfapiEngine, HttpEngine, LibblkioEngine, LibcufileEngine, LibiscsiEngine, NbdEngine,
    NetEngine, NetspliceEngine, NfsEngine, OpenedExternal, RadosEngine, RbdEngine, RdmaEngine, open_external,
};
#[cfg(feature = "hdfs")]
use iolite_options::engines::HdfsOptions;
use iolite_options::engines::{
    CommandType, CpuioOptions, E4defragOptions, ExecOptions, IoUringCmdOptions, IoUringOptions,
    LibaioOptions, MmapOptions, MtdOptions, OwnOptions, Pvsync2Options, SgOptions, chosen, engine,
};
#[cfg(feature = "servers")]
use iolite_options::engines::{
    GfapiOptions, HttpOptions, IscsiOptions, LibblkioOptions, NbdOptions, NetOptions, NfsOptions,
    RadosOptions, RbdOptions, RdmaOptions,
};

macro_rules! engines {
    (
        $(hot $hot_name:literal => $hot:ident $(told $hot_options:ident)?,)+
        $($(#[$feature:meta])? shared $name:literal => $type:ident $(told $options:ident)?,)+
        $(acts $act_name:literal => $act:expr,)+
        $(calls $call_name:literal => $call:expr,)+
    ) => {
        /// Creates the engine with that name and passes it to the visitor.
        ///
        /// # Errors
        /// The system refuses it. The error names the remedy.
        pub fn build<V: Visitor>(name: &str, config: &EngineConfig, visitor: V) -> Result<V::Out, EngineError> {
            match name {
                $($hot_name => {
                    let new = |config: &EngineConfig| $hot::new(config $(, own::<$hot_options>(config))?);
                    hot(new, config, visitor)
                })+
                "io_uring_cmd" if own::<IoUringCmdOptions>(config).cmd_type == CommandType::Bsg => {
                    shared(|config| BsgEngine::new(config, own(config)), config, visitor)
                }
                $($(#[$feature])? $name => {
                    let new = |config: &EngineConfig| $type::new(config $(, own::<$options>(config))?);
                    shared(new, config, visitor)
                })+
                $($act_name => acts($act, name, config, visitor),)+
                $($call_name => calls($call, config, visitor),)+
                #[cfg(feature = "servers")]
                "external" => match open_external(config, own(config))? {
                    OpenedExternal::Synchronous(engine) => erased(BoxedEngine::<true>::new(engine), visitor),
                    OpenedExternal::Queueing(engine) => erased(BoxedEngine::<false>::new(engine), visitor),
                },
                #[cfg(feature = "servers")]
                "libcufile" | "libhipfile" => gpus(name, config, visitor),
                _ => Err(absent(name)),
            }
        }

        /// Whether the engine with this name is in this program.
        #[cfg(test)]
        fn is_built_in(name: &str) -> bool {
            match name {
                $($hot_name => true,)+
                $($(#[$feature])? $name => true,)+
                $($act_name => true,)+
                $($call_name => true,)+
                "external" | "libcufile" | "libhipfile" => cfg!(feature = "servers"),
                _ => false,
            }
        }
    };
}

/// Why there is no engine of this name.
fn absent(name: &str) -> EngineError {
    match engine(name) {
        // (The features are explained in the manifest of the program.)
        Some(_) if name == "libhdfs" => EngineError::LeftOut { engine: name.to_owned(), feature: "hdfs" },
        Some(_) => EngineError::LeftOut { engine: name.to_owned(), feature: "servers" },
        None => EngineError::Unknown(name.to_owned()),
    }
}

/// The facets of an engine in a shared object.
///
/// # Errors
/// The engines of libraries were left out of this program.
#[cfg(not(feature = "servers"))]
pub fn describe_external(_library: &std::path::Path) -> Result<iolite_options::engines::Facets, EngineError> {
    Err(absent("external"))
}

/// Makes an engine and passes it to the visitor with its own type, so that the visitor's code is compiled for it.
///
/// It is not inlined: otherwise `build` would reserve the stack frames of all engines at once, in each of a thousand
/// threads.
#[inline(never)]
fn hot<E: Engine + 'static, V: Visitor>(
    new: impl FnOnce(&EngineConfig) -> Result<E, EngineError>,
    config: &EngineConfig,
    visitor: V,
) -> Result<V::Out, EngineError> {
    Ok(visitor.visit(new(config)?))
}

/// Creates an engine and passes it to the visitor behind a pointer, so that the visitor is compiled once for all of
/// these engines.
fn shared<E: Engine + 'static, V: Visitor>(
    new: impl FnOnce(&EngineConfig) -> Result<E, EngineError>,
    config: &EngineConfig,
    visitor: V,
) -> Result<V::Out, EngineError> {
    Ok(new(config)?.visit_shared(visitor))
}

/// Passes the visitor an engine that performs this action on names: in the call, or through a ring, as its options say.
fn acts<A: RingAct + 'static, V: Visitor>(
    act: impl FnOnce(&EngineConfig) -> A,
    name: &str,
    config: &EngineConfig,
    visitor: V,
) -> Result<V::Out, EngineError> {
    if chosen(name, &config.options).is_some_and(|engine| !engine.facets.is_synchronous()) {
        let engine = RingNameEngine::with(act(config), config)?;
        return erased(BoxedEngine::<false>::new(engine), visitor);
    }
    erased(BoxedEngine::<true>::new(NameEngine::with(act(config), config)), visitor)
}

/// The same for an action that rings do not have.
fn calls<A: Act + 'static, V: Visitor>(
    act: impl FnOnce(&EngineConfig) -> Result<A, EngineError>,
    config: &EngineConfig,
    visitor: V,
) -> Result<V::Out, EngineError> {
    erased(BoxedEngine::<true>::new(NameEngine::with(act(config)?, config)), visitor)
}

/// Passes the visitor an engine for memory of GPUs: one whose requests go in batches, or a synchronous one, as its options
/// say.
#[cfg(feature = "servers")]
fn gpus<V: Visitor>(name: &str, config: &EngineConfig, visitor: V) -> Result<V::Out, EngineError> {
    if chosen(name, &config.options).is_some_and(|engine| engine.facets.is_synchronous()) {
        return shared(|config| LibcufileEngine::<true>::new(config, own(config)), config, visitor);
    }
    shared(|config| LibcufileEngine::<false>::new(config, own(config)), config, visitor)
}

#[inline(never)]
fn erased<const SYNCHRONOUS: bool, V: Visitor>(
    engine: BoxedEngine<SYNCHRONOUS>,
    visitor: V,
) -> Result<V::Out, EngineError> {
    Ok(visitor.visit(engine))
}

// Hot engines put many I/Os in one system call, or make no call; psync is hot as the default. docs/performance.md
// measures these.
engines! {
    hot "null" => NullEngine,
    hot "psync" => PsyncEngine,
    hot "libaio" => LibaioEngine told LibaioOptions,
    hot "io_uring" => IoUringEngine told IoUringOptions,
    shared "io_uring_cmd" => IoUringCmdEngine told IoUringCmdOptions,
    shared "sync" => SyncEngine,
    shared "vsync" => VsyncEngine,
    shared "pvsync" => PvsyncEngine,
    shared "pvsync2" => Pvsync2Engine told Pvsync2Options,
    shared "mmap" => MmapEngine told MmapOptions,
    shared "posixaio" => PosixAioEngine,
    shared "libpmem" => LibpmemEngine,
    shared "dev-dax" => DevDaxEngine,
    shared "mtd" => MtdEngine told MtdOptions,
    shared "sg" => SgEngine told SgOptions,
    shared "splice" => SpliceEngine,
    shared "falloc" => FallocEngine,
    shared "ftruncate" => FtruncateEngine,
    shared "e4defrag" => E4defragEngine told E4defragOptions,
    #[cfg(feature = "servers")]
    shared "net" => NetEngine told NetOptions,
    #[cfg(feature = "servers")]
    shared "netsplice" => NetspliceEngine told NetOptions,
    shared "page_fault" => PageFaultEngine,
    #[cfg(feature = "servers")]
    shared "nfs" => NfsEngine told NfsOptions,
    #[cfg(feature = "servers")]
    shared "nbd" => NbdEngine told NbdOptions,
    #[cfg(feature = "servers")]
    shared "gfapi" => GfapiEngine told GfapiOptions,
    #[cfg(feature = "servers")]
    shared "gfapi_async" => GfapiAsyncEngine told GfapiOptions,
    #[cfg(feature = "servers")]
    shared "libblkio" => LibblkioEngine told LibblkioOptions,
    #[cfg(feature = "hdfs")]
    shared "libhdfs" => LibhdfsEngine told HdfsOptions,
    #[cfg(feature = "servers")]
    shared "libiscsi" => LibiscsiEngine told IscsiOptions,
    #[cfg(feature = "servers")]
    shared "http" => HttpEngine told HttpOptions,
    #[cfg(feature = "servers")]
    shared "rados" => RadosEngine told RadosOptions,
    #[cfg(feature = "servers")]
    shared "rbd" => RbdEngine told RbdOptions,
    #[cfg(feature = "servers")]
    shared "rdma" => RdmaEngine told RdmaOptions,
    shared "cpuio" => CpuioEngine told CpuioOptions,
    shared "exec" => ExecEngine told ExecOptions,
    acts "filecreate" => |_| FileCreate,
    acts "filestat" => |config| Stat::new(own(config)),
    acts "filedelete" => |_| FileDelete,
    acts "dircreate" => |_| DirCreate,
    acts "dirstat" => |config| Stat::new(own(config)),
    acts "dirdelete" => |_| DirDelete,
    calls "filewrite" => |config| Ok(FileWrite::new(own(config), config)),
    calls "fileread" => |_| Ok(FileRead::new()),
    calls "filerename" => |config| Ok(NewName::rename(own(config))),
    calls "filelink" => |config| Ok(NewName::link(own(config))),
    calls "filesetxattr" => |config| Ok(FileXattr::new(own(config), true)),
    calls "filegetxattr" => |config| Ok(FileXattr::new(own(config), false)),
    calls "dirread" => |config| DirRead::new(own(config)),
}

/// The options of an engine, as its own struct.
///
/// # Panics
/// If they are those of another engine, which is a bug.
fn own<T: OwnOptions>(config: &EngineConfig) -> &T {
    config.options.of().expect("an engine is made with its own options")
}

/// Bytes of stack for a thread that uses this engine. Data is on the heap, and the stack holds only the frames of the
/// loop; but libraries expect the default stack size.
pub fn stack_of(name: &str) -> usize {
    if engine(name).is_some_and(|entry| entry.loads_library) { 8 << 20 } else { 512 << 10 }
}

/// Whether the engine is usable with this configuration, for the controlling process: the trial is undone. Engines that
/// load libraries are tried in a child process.
///
/// # Errors
/// The system refuses it. The error names the remedy.
pub fn probe(name: &str, config: &EngineConfig) -> Result<(), EngineError> {
    /// Drops the engine, which releases its resources.
    struct Discard;
    impl Visitor for Discard {
        type Out = ();
        fn visit<E: Engine + 'static>(self, _engine: E) {}
    }
    if engine(name).is_some_and(|entry| entry.loads_library) {
        return in_child_process_with_progress(name, config.options.patience_us(), |_| {
            build(name, config, Discard)
        });
    }
    build(name, config, Discard)
}

/// The storage of the engine with this name: files of this machine, or its own. Creates the engine, and so may load a
/// library and start threads.
///
/// # Errors
/// The engine cannot be created.
pub fn storage_of(name: &str, config: &EngineConfig) -> Result<Box<dyn Storage>, EngineError> {
    struct Boxed;
    impl Visitor for Boxed {
        type Out = Box<dyn Storage>;
        fn visit<E: Engine + 'static>(self, engine: E) -> Box<dyn Storage> {
            Box::new(StorageOf::new(engine))
        }
    }
    build(name, config, Boxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::EngineOptions;
    use iolite_options::engines::{Facets, engines};

    /// Compares an engine with its entry.
    struct Agrees(Facets);

    impl Visitor for Agrees {
        type Out = bool;

        fn visit<E: Engine + 'static>(self, _engine: E) -> bool {
            E::SYNCHRONOUS == self.0.is_synchronous()
        }
    }

    #[test]
    fn entries_and_implementations_agree() {
        // The facets of an external engine come from its library.
        for entry in engines().iter().filter(|entry| entry.name != "external" && is_built_in(entry.name)) {
            let config = EngineConfig::new((entry.own)(), 1);
            let built = build(entry.name, &config, Agrees(entry.facets));
            match built {
                Ok(agrees) => assert!(agrees, "{}: who completes its units?", entry.name),
                // Its library is not installed.
                Err(EngineError::Library { .. }) => {}
                // An engine that needs a server cannot be created without one.
                Err(EngineError::Remote { .. }) => {}
                // If the system forbids an engine, only its existence can be tested.
                Err(error) if error.errno() == libc::EPERM || error.errno() == libc::ENOSYS => {}
                Err(error) => panic!("{}: {error}", entry.name),
            }
        }
    }

    #[test]
    fn engines_that_are_left_out_are_known() {
        for entry in engines().iter().filter(|entry| !entry.is_stood_in_for && !is_built_in(entry.name)) {
            let config = EngineConfig::new((entry.own)(), 1);
            let error = probe(entry.name, &config).expect_err(entry.name);
            assert!(error.to_string().contains("built without"), "{error}");
        }
        let left_out =
            engines().iter().filter(|entry| !entry.is_stood_in_for && !is_built_in(entry.name)).count();
        assert_eq!(left_out == 0, cfg!(feature = "hdfs"), "{left_out}");
    }

    #[test]
    fn unknown_engines_are_refused() {
        let config = EngineConfig::new(EngineOptions::None, 1);
        assert!(matches!(probe("libaoi", &config), Err(EngineError::Unknown(_))));
    }
}
