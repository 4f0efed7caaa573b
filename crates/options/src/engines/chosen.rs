//! The own options of the engine that a job has chosen.

use super::facets::Facets;
use super::own::{AsFio, Idle, LocalTarget, Obstacle, OwnOptions};
use super::{
    CommandPriorities, CpuioOptions, DirReadOptions, E4defragOptions, ExecOptions, ExternalOptions,
    FileWriteOptions, GfapiOptions, HdfsOptions, HttpOptions, IoUringCmdOptions, IoUringOptions,
    IscsiOptions, LibaioOptions, LibblkioOptions, LibcufileOptions,
};
use super::{
    MmapOptions, MtdOptions, NameOptions, NbdOptions, NetOptions, NewNameOptions, NfsOptions, Pvsync2Options,
    SgOptions, StatOptions, XattrOptions, XnvmeOptions,
};
use super::{RadosOptions, RbdOptions, RdmaOptions};
use crate::definition::{FarEnd, Given, LandInEngine, Places, found};
use crate::{DataPlacementOptions, JobOptions};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::path::Path;

macro_rules! engine_options {
    ($($variant:ident($type:ident),)+) => {
        /// The own options of the engine that a job has chosen: a word and a pointer, however many engines there are.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "the variants are the engines' own names")]
        pub enum EngineOptions {
            /// An engine without options.
            #[default]
            None,
            $($variant(Box<$type>),)+
        }

        impl EngineOptions {
            fn own(&self) -> Option<&dyn OwnOptions> {
                match self {
                    EngineOptions::None => None,
                    $(EngineOptions::$variant(own) => Some(&**own),)+
                }
            }

            fn own_mut(&mut self) -> Option<&mut dyn OwnOptions> {
                match self {
                    EngineOptions::None => None,
                    $(EngineOptions::$variant(own) => Some(&mut **own),)+
                }
            }
        }

        $(impl From<$type> for EngineOptions {
            fn from(own: $type) -> Self {
                EngineOptions::$variant(Box::new(own))
            }
        })+
    };
}

engine_options! {
    Cpuio(CpuioOptions),
    DirRead(DirReadOptions),
    E4defrag(E4defragOptions),
    Exec(ExecOptions),
    External(ExternalOptions),
    FileWrite(FileWriteOptions),
    Gfapi(GfapiOptions),
    Hdfs(HdfsOptions),
    Http(HttpOptions),
    IoUring(IoUringOptions),
    IoUringCmd(IoUringCmdOptions),
    Iscsi(IscsiOptions),
    Libaio(LibaioOptions),
    Libblkio(LibblkioOptions),
    Libcufile(LibcufileOptions),
    Mmap(MmapOptions),
    Mtd(MtdOptions),
    Name(NameOptions),
    Nbd(NbdOptions),
    Net(NetOptions),
    NewName(NewNameOptions),
    Nfs(NfsOptions),
    Pvsync2(Pvsync2Options),
    Rados(RadosOptions),
    Rbd(RbdOptions),
    Rdma(RdmaOptions),
    Sg(SgOptions),
    Stat(StatOptions),
    Xattr(XattrOptions),
    Xnvme(XnvmeOptions),
}

impl EngineOptions {
    /// The struct of an engine, if this engine was chosen.
    pub fn of<T: OwnOptions>(&self) -> Option<&T> {
        (self.own()? as &dyn Any).downcast_ref()
    }

    /// The same, mutable.
    pub fn of_mut<T: OwnOptions>(&mut self) -> Option<&mut T> {
        (self.own_mut()? as &mut dyn Any).downcast_mut()
    }

    /// Tells the engine where the device should put written data, if the engine can pass this on.
    pub fn place(&mut self, placement: &DataPlacementOptions) {
        if let Some(commands) = self.of_mut::<IoUringCmdOptions>() {
            commands.placement = placement.clone();
        } else if let Some(ring) = self.of_mut::<IoUringOptions>() {
            ring.placement = placement.clone();
        }
    }

    /// The priorities of single I/Os, if the engine supports them.
    pub fn priorities(&self) -> Option<&CommandPriorities> {
        self.own()?.priorities()
    }

    /// The same, mutable.
    pub fn priorities_mut(&mut self) -> Option<&mut CommandPriorities> {
        let own: &mut dyn Places = self.own_mut()?;
        own.find()
    }

    /// Whether all files have to be known when the engine is created, because it registers them.
    pub fn registers_files(&self) -> bool {
        self.own().is_some_and(OwnOptions::registers_files)
    }

    /// Whether the engine starts programs of the user, which must not outlive the run.
    pub fn starts_programs(&self) -> bool {
        self.own().is_some_and(OwnOptions::starts_programs)
    }

    /// Whether each block of a file is a separate object, so that the meaning of a name depends on the block size.
    pub fn blocks_are_objects(&self) -> bool {
        self.own().is_some_and(OwnOptions::blocks_are_objects)
    }

    /// What the job that carries these cannot do with them.
    pub fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        self.own().map_or_else(Vec::new, |own| own.obstacles(job))
    }

    /// What prevents the job that carries these from running. (`--parse-only` does not ask.)
    pub fn obstacle_to_run(&self, job: &JobOptions) -> Option<String> {
        self.own()?.obstacle_to_run(job)
    }

    /// The engine's options that have no effect with the others, each with the reason.
    pub(crate) fn without_effect(&self) -> Vec<Idle> {
        self.own().map_or_else(Vec::new, OwnOptions::without_effect)
    }

    /// Whether I/Os are requests to a server, so that the time to the first byte and repetitions are reported.
    pub fn makes_requests(&self) -> bool {
        self.own().is_some_and(OwnOptions::makes_requests)
    }

    /// The longest time in microseconds that a request may take, with its repetitions; 0 = no limit, `None` = the options
    /// do not say.
    pub fn patience_us(&self) -> Option<u64> {
        self.own()?.patience_us()
    }

    /// Behaves like fio where the two differ.
    pub fn be_as_fio(&mut self, asked: AsFio) {
        if let Some(own) = self.own_mut() {
            own.be_as_fio(asked);
        }
    }

    /// The address of the other end of its connection, if the engine makes connections by name and port.
    pub fn far_end(&mut self) -> Option<FarEnd<'_>> {
        self.own_mut()?.far_end()
    }

    /// The name of the job's only file, whatever the job calls it, so that it is known that jobs and clones share it.
    pub fn only_name(&self) -> Option<&str> {
        self.own()?.only_name()
    }

    /// The file or device of this machine that the engine's storage is.
    pub fn local_target(&self) -> Option<LocalTarget<'_>> {
        self.own()?.local_target()
    }

    /// The command that resizes the object of this name, if jobs cannot; `None` = there is no such command.
    pub fn resized_by(&self, name: &Path, size: u64) -> Option<String> {
        self.own()?.resized_by(name, size)
    }

    /// The facets of the engine with these options, where `facets` are those of its entry.
    pub(super) fn facets(&self, facets: Facets) -> Facets {
        self.own().map_or(facets, |own| own.facets(facets))
    }

    /// Stores the value of an option.
    pub(crate) fn land(&mut self, land: LandInEngine, given: &mut Given<'_>) -> Result<(), String> {
        land(found(self.own_mut())?, given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Land;
    use crate::engines::{engine, engines};

    #[test]
    fn jobs_stay_small_however_many_engines_there_are() {
        assert_eq!(size_of::<EngineOptions>(), 16);
    }

    #[test]
    fn declared_defaults_are_applied() {
        let Pvsync2Options { hipri, hipri_percentage, uncached, nowait } = Pvsync2Options::default();
        assert_eq!((hipri, hipri_percentage, uncached, nowait), (false, 100, false, false));
        assert_eq!(IoUringOptions::default().nonvectored, None);
        assert_eq!((engine("pvsync2").unwrap().own)().of(), Some(&Pvsync2Options::default()));
        assert_eq!((engine("psync").unwrap().own)(), EngineOptions::None);
    }

    #[test]
    fn every_option_finds_its_place() {
        for engine in engines() {
            for &definition in engine.options {
                let Some(Land::Engine(land)) = definition.land else { continue };
                let keyword = definition.keywords.first().map(|(keyword, _)| *keyword);
                let text = match definition.name {
                    "pi_chk" => "GUARD",
                    "cmdprio_bssplit" => "4k/50",
                    "rbd_encryption_format" => "luks2",
                    "gpu_dev_ids" => "0:1",
                    "http_read_headers" | "http_write_headers" | "http_trim_headers" => "a: 1",
                    "libblkio_pre_connect_props" | "libblkio_pre_start_props" => "direct=true",
                    _ => definition.default.or(keyword).unwrap_or("1"),
                };
                let mut given = Given {
                    definition,
                    text: Some(text),
                    kb_base: 1024,
                    notes: crate::values::Notes::default(),
                };
                let landed = (engine.own)().land(land, &mut given);
                assert_eq!(landed, Ok(()), "{}: {}", engine.name, definition.name);
            }
        }
    }

    #[test]
    fn other_machines_cannot_choose_an_external_engine() {
        let described = Some(engine("psync").unwrap().facets);
        let own = ExternalOptions { library: "./x.so".into(), described, ..ExternalOptions::default() };
        let text = serde_json::to_string(&EngineOptions::from(own)).unwrap();
        assert!(text.contains("./x.so") && !text.contains("described"), "{text}");
        let forged = text.replace("\"library\"", "\"described\":{\"data\":\"Nowhere\"},\"library\"");
        assert_ne!(forged, text);
        let received: EngineOptions = serde_json::from_str(&forged).unwrap();
        assert_eq!(received.of::<ExternalOptions>().unwrap().described, None);
    }

    #[test]
    fn options_travel() {
        for engine in engines() {
            let own = (engine.own)();
            let text = serde_json::to_string(&own).unwrap();
            assert_eq!(serde_json::from_str::<EngineOptions>(&text).unwrap(), own);
        }
    }
}
