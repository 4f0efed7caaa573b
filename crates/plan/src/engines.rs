//! Demands of a job that its engine cannot fulfil.

mod extras;

use iolite_options::engines::{self, Capability, Data, EngineInfo, Obstacle, UnitKind};
use iolite_options::engines::{ExtentAct, ExternalOptions, RdmaOptions};
use iolite_options::{FileType, JobOptions, LockFile, RunOptions, SubmitMode};

/// The obstacles that follow from the options of the job and from its engine, each with the option to blame and the
/// reason. (Other modules ask the machine.)
pub(crate) fn obstacles(options: &JobOptions, engine: &EngineInfo, run: &RunOptions) -> Vec<Obstacle> {
    let name = engine.name;
    let mut found = Vec::new();
    if let Some(own) = options.engine.of::<ExternalOptions>()
        && own.described.is_none()
        && !run.parse_only
    {
        let library = own.library.display();
        let message = format!(
            "ioengine=external:{library}: an engine in a file is taken from the command line and from job files of \
             this machine only"
        );
        return vec![("ioengine", message)];
    }
    if options.durability.atomic
        && options.pattern.rw.writes()
        && !engine.facets.can(Capability::AtomicWrites)
    {
        let can = engines::capable(Capability::AtomicWrites);
        found.push(("atomic", format!("atomic=1: ioengine={name} cannot ask for atomic writes; {can} can")));
    }
    if options.pattern.rw.trims() && !engine.facets.can(Capability::Trim) {
        let (option, text) = options.trim_option();
        found.push((option, format!("{text}: ioengine={name} cannot trim")));
    }
    found.extend(extras::of_ranges(options, engine));
    found.extend(extras::of_placement(options, engine));
    if let Some(option) = options.sync_asked_for()
        && !engine.facets.can(Capability::Sync)
    {
        let message = format!("{option}: ioengine={name} cannot put its writes on stable storage");
        found.push((option, message));
    }
    found.extend(of_removal(options, engine));
    found.extend(options.engine.obstacles(options));
    found.extend(of_unit(options, engine));
    if !run.parse_only {
        found.extend(options.engine.obstacle_to_run(options).map(|message| ("ioengine", message)));
    }
    match engine.facets.data {
        Data::OwnStorage => found.extend(without_files(options, engine, "in its own storage")),
        Data::OtherEnd => {
            found.extend(without_files(options, engine, "at the other end of a connection"));
            found.extend(of_connections(options, engine));
        }
        Data::LocalFiles | Data::Nowhere => {}
    }
    found
}

/// Why the job cannot remove its files. (A program that is called `fio` leaves them, as fio does.)
fn of_removal(options: &JobOptions, engine: &EngineInfo) -> Option<Obstacle> {
    let option = options.files.removal().filter(|_| engine.facets.can(Capability::FixedSize))?;
    let name = engine.name;
    let message = format!(
        "{option}=1: with ioengine={name} an image or disk cannot be removed by a job; leave {option} out"
    );
    Some((option, message))
}

/// Options that make no sense with units of this kind.
fn of_unit(options: &JobOptions, engine: &EngineInfo) -> Option<Obstacle> {
    let name = engine.name;
    let asked = options.verification_option();
    if engine.facets.moves_data() {
        let keeps_nothing =
            engine.facets.data == Data::Nowhere && !engine.facets.can(Capability::FeignVerify);
        let option = asked.filter(|_| keeps_nothing)?;
        let message = format!("{option}: ioengine={name} verifies nothing; leave {option} out, or use mmap");
        return Some((option, message));
    }
    if engine.facets.unit == UnitKind::Works && options.depth.io_submit_mode == SubmitMode::Offload {
        let message =
            format!("io_submit_mode=offload: ioengine={name} issues no I/O that could be handed over");
        return Some(("io_submit_mode", message));
    }
    if engine.facets.unit == UnitKind::Works && options.errors.io_timeout > 0 {
        let message =
            format!("io_timeout: ioengine={name} issues no I/O that could take too long; leave it out");
        return Some(("io_timeout", message));
    }
    if let Some(option) = asked {
        let message = format!("{option}: ioengine={name} moves no data, and there is nothing to verify");
        return Some((option, message));
    }
    let only_writes = matches!(engine.facets.extent_act(), Some(ExtentAct::CutOff | ExtentAct::Swap));
    if only_writes && options.pattern.rw.reads() {
        let message = format!("rw={}: ioengine={name} can only write", options.pattern.rw.name());
        return Some(("rw", message));
    }
    let is_replayed = options.is_replay();
    let follows_traces = engine.facets.extent_act().is_some();
    (is_replayed && !follows_traces).then(|| {
        ("read_iolog", format!("read_iolog: ioengine={name} does nothing that a trace could ask for"))
    })
}

/// Options that need files of this machine.
fn without_files(options: &JobOptions, engine: &EngineInfo, place: &str) -> Vec<Obstacle> {
    let name = engine.name;
    let cannot_extend = !engine.facets.can(Capability::Extend);
    let asked = [
        ("pre_read", options.files.pre_read, "nothing is cached"),
        ("lockfile", options.files.lockfile != LockFile::None, "there is no file that could be locked"),
        (
            "filetype",
            !matches!(options.files.filetype, FileType::None | FileType::File),
            "nothing is a device",
        ),
        (
            "fill_device",
            options.extent.fill_device && (options.pattern.rw.reads() || cannot_extend),
            "its content is unknown when it is full",
        ),
        ("ioscheduler", options.placement.ioscheduler.is_some(), "there is no disk of this machine"),
        (
            "read_iolog_chunked",
            options.is_replay() && options.replay.read_iolog_chunked,
            "names are not known beforehand",
        ),
    ];
    let asked = asked.into_iter().filter(|(_, asked, _)| *asked);
    asked
        .map(|(option, _, why)| {
            (option, format!("{option}: the data of ioengine={name} is {place}, where {why}"))
        })
        .collect()
}

/// Limits and requirements of connections.
fn of_connections(options: &JobOptions, engine: &EngineInfo) -> Vec<Obstacle> {
    let name = engine.name;
    let rw = options.pattern.rw;
    let asked = [
        ("rw", rw.is_random(), format!("rw={}: a connection has no places", rw.name())),
        ("rw", rw.reads() && rw.writes(), format!("rw={}: a job either sends or receives", rw.name())),
        ("nrfiles", options.files.nrfiles > 1, "nrfiles: a job has one connection; use numjobs".to_owned()),
        (
            "filename",
            options.files.filename.len() > 1,
            "filename: a job has one connection; use several jobs".to_owned(),
        ),
        (
            "io_submit_mode",
            options.depth.io_submit_mode == SubmitMode::Offload,
            "io_submit_mode=offload: a connection belongs to its job, which has to send itself".to_owned(),
        ),
        ("read_iolog", options.is_replay(), "read_iolog: a connection has no places".to_owned()),
    ];
    asked
        .into_iter()
        .filter(|(_, asked, _)| *asked)
        .map(|(option, _, why)| {
            let ends = match options.engine.of::<RdmaOptions>() {
                Some(_) => "rw=read is the server and rw=write the client",
                None => "rw=read receives and rw=write sends",
            };
            (option, format!("{why} (ioengine={name}: {ends})"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::engines::{Capabilities, engine};
    use iolite_options::{ReadWrite, Verify};

    fn told(engine: &EngineInfo, change: impl FnOnce(&mut JobOptions)) -> Vec<String> {
        let mut options = JobOptions::default();
        change(&mut options);
        obstacles(&options, engine, &RunOptions::default()).into_iter().map(|(_, message)| message).collect()
    }

    #[test]
    fn atomic_writes_need_an_engine_that_can_ask_for_them() {
        let psync = engine("psync").unwrap();
        let asks = |o: &mut JobOptions| {
            o.durability.atomic = true;
            o.pattern.rw = ReadWrite::Write;
        };
        let [message] = &told(psync, asks)[..] else { panic!("one") };
        assert!(message.ends_with("pvsync2, io_uring, libaio can"), "{message}");
        assert_eq!(told(engine("libaio").unwrap(), asks), [""; 0]);
    }

    #[test]
    fn options_unsupported_by_an_engine_are_refused() {
        let mut weak = *engine("psync").unwrap();
        weak.facets.capabilities = Capabilities::default();
        let trims = |o: &mut JobOptions| o.pattern.rw = ReadWrite::RandTrim;
        assert_eq!(told(&weak, trims), ["rw=randtrim: ioengine=psync cannot trim"]);
        let ranges = |rw| move |o: &mut JobOptions| (o.pattern.rw, o.extent.num_range) = (rw, 4);
        let [message] = &told(engine("psync").unwrap(), ranges(ReadWrite::RandTrim))[..] else {
            panic!("one")
        };
        assert!(message.starts_with("num_range=4: needs an engine that trims several ranges"), "{message}");
        assert!(message.ends_with("io_uring_cmd does"), "{message}");
        assert_eq!(told(engine("psync").unwrap(), ranges(ReadWrite::Read)), [""; 0]);
        let entry = engine("io_uring_cmd").unwrap();
        let several = |change: fn(&mut JobOptions)| {
            told(entry, |o| {
                o.choose_engine(entry);
                ranges(ReadWrite::RandTrim)(o);
                change(o);
            })
        };
        assert_eq!(several(|_| ()), [""; 0]);
        let [message] = &several(|o| o.depth.io_submit_mode = SubmitMode::Offload)[..] else { panic!("one") };
        assert!(message.contains("use io_submit_mode=inline"), "{message}");
        let syncs = |rw| {
            move |o: &mut JobOptions| {
                o.pattern.rw = rw;
                o.durability.end_fsync = true;
            }
        };
        let [message] = &told(&weak, syncs(ReadWrite::Write))[..] else { panic!("one") };
        assert!(message.starts_with("end_fsync: "), "{message}");
        assert_eq!(told(&weak, syncs(ReadWrite::Read)), [""; 0], "there is nothing to sync");
        assert_eq!(told(engine("psync").unwrap(), syncs(ReadWrite::Write)), [""; 0]);
    }

    #[test]
    fn an_undescribed_engine_library_is_refused() {
        let facets = engine("psync").unwrap().facets;
        let told = |described, run: &RunOptions| {
            let mut options = JobOptions::default();
            let external = engine("external").unwrap();
            options.choose_engine(external);
            let own = options.engine.of_mut::<ExternalOptions>().unwrap();
            (own.library, own.described) = ("./x.so".into(), described);
            obstacles(&options, external, run).into_iter().map(|(_, message)| message).collect::<Vec<_>>()
        };
        let [message] = &told(None, &RunOptions::default())[..] else { panic!("one") };
        assert!(
            message.starts_with("ioengine=external:./x.so: an engine in a file is taken from"),
            "{message}"
        );
        assert_eq!(told(Some(facets), &RunOptions::default()), [""; 0]);
        let parse_only = RunOptions { parse_only: true, ..RunOptions::default() };
        assert_eq!(told(None, &parse_only), [""; 0], "nothing is loaded");
    }

    #[test]
    fn options_for_local_files_are_refused_for_own_storage() {
        let mut own = *engine("psync").unwrap();
        own.facets.data = Data::OwnStorage;
        assert_eq!(told(&own, |o| o.pattern.rw = ReadWrite::RandRw), [""; 0]);
        let [message] = &told(&own, |o| o.files.pre_read = true)[..] else { panic!("one") };
        assert!(
            message.starts_with("pre_read: the data of ioengine=psync is in its own storage"),
            "{message}"
        );
        assert_eq!(told(&own, |o| o.files.lockfile = LockFile::Exclusive).len(), 1);
        assert_eq!(told(&own, |o| o.extent.fill_device = true).len(), 1);
        let fills = |o: &mut JobOptions| (o.extent.fill_device, o.pattern.rw) = (true, ReadWrite::Write);
        assert_eq!(told(&own, fills), [""; 0], "a write says when there is no more room");
        own.facets.capabilities = Capabilities::of(&[Capability::Sync, Capability::Trim]);
        assert_eq!(told(&own, fills).len(), 1, "what cannot grow cannot be filled");
    }

    #[test]
    fn missing_engine_options_are_reported() {
        for (name, missing) in [("cpuio", "cpuload= is missing"), ("exec", "program= is missing")] {
            let entry = engine(name).unwrap();
            let [message] = &told(entry, |o| o.choose_engine(entry))[..] else { panic!("one") };
            assert!(message.contains(missing), "{message}");
        }
    }

    #[test]
    fn connections_have_no_places() {
        for (name, ends) in [("net", "rw=read receives"), ("rdma", "rw=read is the server")] {
            let entry = engine(name).unwrap();
            let found = told(entry, |o| {
                o.choose_engine(entry);
                o.pattern.rw = ReadWrite::RandWrite;
            });
            let expected = format!("rw=randwrite: a connection has no places (ioengine={name}: {ends}");
            assert!(found.iter().any(|message| message.starts_with(&expected)), "{found:?}");
        }
    }

    #[test]
    fn engines_without_io_cannot_offload_submission() {
        let mut works = *engine("null").unwrap();
        works.facets.unit = UnitKind::Works;
        let offloads = |o: &mut JobOptions| o.depth.io_submit_mode = SubmitMode::Offload;
        let [message] = &told(&works, offloads)[..] else { panic!("one") };
        assert!(message.starts_with("io_submit_mode=offload: ioengine=null issues no I/O"), "{message}");
        assert_eq!(told(engine("null").unwrap(), offloads), [""; 0]);
    }

    #[test]
    fn engines_that_move_no_data_cannot_verify() {
        let mut names = *engine("psync").unwrap();
        names.facets.unit = engine("filestat").unwrap().facets.unit;
        let verifies = |o: &mut JobOptions| o.verification.verify = Verify::Crc32c;
        assert_eq!(
            told(&names, verifies),
            ["verify: ioengine=psync moves no data, and there is nothing to verify"]
        );
        let replays = |o: &mut JobOptions| o.replay.read_iolog = vec!["log".into()];
        assert_eq!(told(&names, replays).len(), 1);
        names.facets.unit = UnitKind::ActsOnExtents(ExtentAct::Reserve);
        assert_eq!(told(&names, replays), [""; 0], "a trace may trim");
    }
}
