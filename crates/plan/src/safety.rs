//! Refuses to change devices that are in use, and to create files where a device is missing.

use crate::block_devices;
use crate::files;
use crate::namespaces;
use crate::replay::Replay;
use iolite_host::{DeviceClass, EntryKind, Machine};
use iolite_options::JobOptions;
use iolite_options::engines::{Capability, EngineInfo, ExtentAct, LocalTarget, NameKind, NameUse, Target};
use iolite_types::is_standard_stream;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Whether this name does not exist and would be a file among the device nodes: the user means a device that does not
/// exist.
pub fn is_missing_device(machine: &dyn Machine, path: &Path) -> bool {
    !is_standard_stream(path) && !matches!(machine.file(path), Ok(Some(_))) && machine.among_devices(path)
}

/// Obstacles to the use of these files: each with the option to blame and the reason.
pub(crate) fn obstacles(
    options: &JobOptions,
    engine: &EngineInfo,
    replays: &[Replay],
    machine: &dyn Machine,
) -> Vec<(&'static str, String)> {
    if let Some(target) = options.engine.local_target() {
        return of_target(options, replays, target, machine).into_iter().collect();
    }
    let names = names(options, engine, replays);
    let (missing, there): (Vec<&PathBuf>, Vec<&PathBuf>) =
        names.iter().partition(|name| is_missing_device(machine, name));
    let mut found: Vec<(&'static str, String)> = missing
        .iter()
        .map(|name| {
            ("filename", format!("{} does not exist, and no file is made among devices", name.display()))
        })
        .collect();
    if engine.facets.removes() {
        found.extend(not_to_be_removed(engine, &there, machine));
        return found;
    }
    found.extend(wrong_kinds(engine, &names, machine));
    found.extend(without_extents(options, engine, &there, machine));
    if found.is_empty() {
        found.extend(namespaces::obstacles(options, engine, &names, machine));
    }
    let is_replay = !replays.is_empty();
    if engine.facets.target == Target::Any && engine.facets.has_local_files() && !is_replay {
        let places = engine.facets.can(Capability::Placement);
        let streams = if places { block_devices::streams(options) } else { None };
        let needs = [streams, block_devices::metadata(options)];
        let obstacle = |need: &_| block_devices::obstacle(need, options, there.iter().copied(), machine);
        found.extend(needs.iter().flatten().filter_map(obstacle));
    }
    if !options.pattern.rw.changes() {
        return found;
    }
    // (Operations on names count as trims, but trim nothing. Engines without trims are refused anyway.)
    let trims_otherwise = engine.facets.extent_act() == Some(ExtentAct::Reserve)
        || engine.facets.name_use().is_some()
        || engine.facets.target != Target::Any;
    let trims_files = engine.facets.can(Capability::Trim) && !trims_otherwise;
    if !is_replay
        && engine.facets.has_local_files()
        && trims_files
        && let Some(need) = block_devices::trims(options)
    {
        found.extend(block_devices::obstacle(&need, options, there.iter().copied(), machine));
    }
    if !options.files.allow_mounted_write {
        let changed = there.iter().filter(|name| is_changed(name, replays));
        found.extend(changed.filter_map(|name| used(options, replays, name, machine)));
    }
    found
}

/// Why a file or device of this machine that an engine uses as its own storage must not be used.
fn of_target(
    options: &JobOptions,
    replays: &[Replay],
    target: LocalTarget<'_>,
    machine: &dyn Machine,
) -> Option<(&'static str, String)> {
    let path = Path::new(target.path);
    if is_missing_device(machine, path) {
        return Some((target.option, format!("{}={}: it does not exist", target.option, target.path)));
    }
    let is_asked = options.changes_data() && !options.files.allow_mounted_write;
    let (_, message) = is_asked.then(|| used(options, replays, path, machine)).flatten()?;
    Some((target.option, message))
}

/// Why the engine cannot work on these names: it needs devices of a certain kind.
fn wrong_kinds(
    engine: &EngineInfo,
    names: &BTreeSet<PathBuf>,
    machine: &dyn Machine,
) -> Vec<(&'static str, String)> {
    let target = engine.facets.target;
    let Some(needed) = target.needed() else { return Vec::new() };
    let class = match target {
        Target::Any | Target::DaxFile => None,
        Target::Scsi => Some(DeviceClass::ScsiGeneric),
        Target::Bsg => Some(DeviceClass::ScsiBsg),
        Target::Nvme => Some(DeviceClass::NvmeGeneric),
        Target::Flash => Some(DeviceClass::Flash),
        Target::DaxDevice => Some(DeviceClass::DirectAccess),
    };
    let is_other = |name: &&PathBuf| match machine.file(name).ok().flatten() {
        _ if is_missing_device(machine, name) => false,
        None => class.is_some(),
        Some(found) if class.is_none() => found.kind != EntryKind::Regular,
        Some(found) if found.is_block_device() => class != Some(DeviceClass::ScsiGeneric),
        Some(found) => found.class != class,
    };
    let told = |name: &PathBuf| {
        ("filename", format!("ioengine={}: {} is not {needed}", engine.name, name.display()))
    };
    names.iter().filter(is_other).map(told).collect()
}

/// Why the engine, which acts on extents of files, cannot work on these names.
fn without_extents(
    options: &JobOptions,
    engine: &EngineInfo,
    names: &[&PathBuf],
    machine: &dyn Machine,
) -> Vec<(&'static str, String)> {
    let Some(act) = engine.facets.extent_act() else { return Vec::new() };
    let only_trims = !options.pattern.rw.reads() && !options.pattern.rw.writes();
    let why = |name: &&&PathBuf| match machine.file(name).ok().flatten()?.kind {
        EntryKind::Regular => None,
        EntryKind::Block if act == ExtentAct::Reserve && only_trims => None,
        EntryKind::Block if act == ExtentAct::Reserve => {
            Some("is a block device, of which no space can be reserved; rw=trim releases it")
        }
        _ => Some("is not a regular file"),
    };
    let told = |name: &&PathBuf| {
        let why = why(&name)?;
        Some(("filename", format!("ioengine={}: {} {why}", engine.name, name.display())))
    };
    names.iter().filter_map(told).collect()
}

/// Why these names must not be removed: they are of a kind that no job creates.
fn not_to_be_removed(
    engine: &EngineInfo,
    names: &[&PathBuf],
    machine: &dyn Machine,
) -> Vec<(&'static str, String)> {
    let Some(NameUse { of, .. }) = engine.facets.name_use() else { return Vec::new() };
    let (wanted, words) = match of {
        NameKind::File => (EntryKind::Regular, "a regular file"),
        NameKind::Directory => (EntryKind::Directory, "a directory"),
    };
    let is_other =
        |name: &&&PathBuf| machine.file(name).ok().flatten().is_some_and(|found| found.kind != wanted);
    let found = names.iter().filter(is_other).map(|name| {
        let (engine, name) = (engine.name, name.display());
        let message = format!("ioengine={engine}: {name} is not {words}, and is not removed");
        ("filename", message)
    });
    found.collect()
}

/// Whether the job changes this file.
fn is_changed(name: &Path, replays: &[Replay]) -> bool {
    replays.is_empty() || replays.iter().any(|(replay, files)| replay.changes(files, name))
}

/// Why the file must not be changed: it is a device in use.
fn used(
    options: &JobOptions,
    replays: &[Replay],
    name: &Path,
    machine: &dyn Machine,
) -> Option<(&'static str, String)> {
    let is_device = machine.file(name).ok().flatten().is_some_and(|found| found.is_storage_device());
    let reason = is_device.then(|| machine.in_use(name)).flatten()?;
    let blamed = if replays.is_empty() { "filename" } else { "read_iolog" };
    let (what, name) = (what_changes(options, replays), name.display());
    let message =
        format!("{what} would change data on {name}, but {reason}; allow_mounted_write=1 overrides this");
    Some((blamed, message))
}

/// The cause of changes to data, for a message.
pub(crate) fn what_changes(options: &JobOptions, replays: &[Replay]) -> String {
    if replays.is_empty() { format!("rw={}", options.pattern.rw.name()) } else { "the trace".to_owned() }
}

/// The files whose names are known now. (Those of `opendir` are listed later.)
fn names(options: &JobOptions, engine: &EngineInfo, replays: &[Replay]) -> BTreeSet<PathBuf> {
    if !engine.facets.has_local_files() {
        return BTreeSet::new();
    }
    if !replays.is_empty() {
        return replays.iter().flat_map(|(_, files)| files.iter().cloned()).collect();
    }
    if options.files.opendir.is_some() {
        return BTreeSet::new();
    }
    let of_clones = (0..options.schedule.numjobs).map(|clone| files::nominal(options, clone));
    let mut all = BTreeSet::new();
    for names in of_clones {
        if engine.facets.name_use().is_some() {
            // There may be millions. The places of single names are checked when they are created.
            all.extend(names.places().map(Cow::into_owned));
        } else {
            all.extend(names.iter().map(Cow::into_owned));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::{InUse, MadeUp};
    use iolite_options::engines::engine;
    use iolite_options::engines::{CommandType, IoUringCmdOptions, LibblkioOptions};
    use iolite_options::{FileOptions, PatternOptions, ReadWrite};

    fn told(file: &str, change: impl FnOnce(&mut JobOptions)) -> Vec<(&'static str, String)> {
        let machine = MadeUp::new()
            .with_block_device("/dev/free", 1 << 30)
            .with_block_device("/dev/root", 1 << 30)
            .used("/dev/root", InUse::Mounted("/".into()))
            .with_character_device("/dev/null");
        let mut options = JobOptions {
            files: FileOptions { filename: vec![file.into()], ..FileOptions::default() },
            pattern: PatternOptions { rw: ReadWrite::RandWrite, ..PatternOptions::default() },
            ..JobOptions::default()
        };
        change(&mut options);
        obstacles(&options, &options.chosen_engine().unwrap(), &[], &machine)
    }

    #[test]
    fn a_device_in_use_is_not_changed() {
        let message = "rw=randwrite would change data on /dev/root, but it is mounted on /; \
                       allow_mounted_write=1 overrides this";
        assert_eq!(told("/dev/root", |_| ()), [("filename", message.to_owned())]);
        assert_eq!(told("/dev/root", |o| o.pattern.rw = ReadWrite::Read), []);
        assert_eq!(told("/dev/root", |o| o.files.allow_mounted_write = true), []);
        assert_eq!(told("/dev/root", |o| o.ioengine = "null".into()), []);
        assert_eq!(told("/dev/free", |_| ()), []);
    }

    #[test]
    fn generic_devices_are_protected_as_their_disks() {
        let machine = MadeUp::new()
            .with_device_of(DeviceClass::ScsiGeneric, "/dev/sg0", 1 << 30)
            .used("/dev/sg0", InUse::Mounted("/".into()))
            .with_device_of(DeviceClass::ScsiBsg, "/dev/bsg/0:0:0:0", 1 << 30)
            .used("/dev/bsg/0:0:0:0", InUse::Swap);
        let told = |name: &str, file: &str, rw| {
            let mut options = JobOptions::default();
            options.choose_engine(engine(name).unwrap());
            if let Some(own) = options.engine.of_mut::<IoUringCmdOptions>() {
                own.cmd_type = CommandType::Bsg;
            }
            options.pattern.rw = rw;
            options.files.filename = vec![file.into()];
            let found = obstacles(&options, &options.chosen_engine().unwrap(), &[], &machine);
            found.into_iter().map(|(_, message)| message).collect::<Vec<_>>()
        };
        for (name, file) in [("sg", "/dev/sg0"), ("io_uring_cmd", "/dev/bsg/0:0:0:0")] {
            assert_eq!(told(name, file, ReadWrite::Read), [""; 0], "{name}");
            for rw in [ReadWrite::Write, ReadWrite::Trim] {
                let [message] = &told(name, file, rw)[..] else { panic!("{name}: one") };
                assert!(message.contains("allow_mounted_write=1"), "{message}");
            }
        }
        let [message] = &told("io_uring_cmd", "/dev/sg0", ReadWrite::Read)[..] else { panic!("one") };
        let expected =
            "ioengine=io_uring_cmd: /dev/sg0 is not the bsg node of a SCSI disk (/dev/bsg/0\\:0\\:0\\:0)";
        assert_eq!(message, expected);
    }

    #[test]
    fn engines_of_devices_take_nothing_else() {
        let refusal = |file: &str, name: &str| {
            let chosen = engine(name).unwrap();
            let found = told(file, |o| {
                o.choose_engine(chosen);
                o.pattern.rw = ReadWrite::Read;
            });
            found.into_iter().next().map(|(_, message)| message)
        };
        assert_eq!(refusal("/dev/free", "sg"), None);
        assert_eq!(
            refusal("/dev/null", "sg").as_deref(),
            Some("ioengine=sg: /dev/null is not a disk that takes SCSI commands (/dev/sda or /dev/sg0)")
        );
        assert!(refusal("new", "sg").is_some(), "a file that would be made is not a disk");
    }

    #[test]
    fn extents_are_parts_of_regular_files() {
        let refusal = |name: &str, file: &str, rw| {
            let found = told(file, |o| {
                o.choose_engine(engine(name).unwrap());
                o.pattern.rw = rw;
            });
            found.into_iter().map(|(_, message)| message).collect::<Vec<_>>().join("; ")
        };
        for name in ["falloc", "ftruncate", "e4defrag"] {
            let message = format!("ioengine={name}: /dev/null is not a regular file");
            assert_eq!(refusal(name, "/dev/null", ReadWrite::Write), message);
            assert_eq!(refusal(name, "new", ReadWrite::Write), "");
        }
        assert_eq!(refusal("falloc", "/dev/free", ReadWrite::Trim), "");
        assert!(refusal("falloc", "/dev/free", ReadWrite::Read).contains("rw=trim releases it"));
        assert!(refusal("ftruncate", "/dev/free", ReadWrite::Write).contains("is not a regular file"));
        assert_eq!(refusal("ftruncate", "new", ReadWrite::Trim), "", "that it cannot trim is told elsewhere");
    }

    #[test]
    fn device_nodes_are_not_joined_by_regular_files() {
        let message = "/dev/none does not exist, and no file is made among devices";
        for rw in [ReadWrite::Read, ReadWrite::Write, ReadWrite::Trim] {
            assert_eq!(
                told("/dev/none", |o| o.pattern.rw = rw),
                [("filename", message.to_owned())],
                "{rw:?}"
            );
        }
        for name in ["/dev/null", "new", "-", "/none/new"] {
            assert_eq!(told(name, |_| ()), [], "{name}");
        }
    }

    #[test]
    fn devices_that_an_engine_opens_by_itself_are_spared_as_well() {
        let told = |driver: &str, path: &str, rw| {
            let machine = MadeUp::new()
                .with_block_device("/dev/root", 1 << 30)
                .used("/dev/root", InUse::Mounted("/".into()));
            let mut options = JobOptions {
                pattern: PatternOptions { rw, ..PatternOptions::default() },
                ..JobOptions::default()
            };
            let entry = engine("libblkio").unwrap();
            options.choose_engine(entry);
            let own = options.engine.of_mut::<LibblkioOptions>().unwrap();
            (own.libblkio_driver, own.libblkio_path) = (driver.into(), path.into());
            obstacles(&options, entry, &[], &machine)
                .into_iter()
                .map(|(blamed, _)| blamed)
                .collect::<Vec<_>>()
        };
        assert_eq!(told("io_uring", "/dev/root", ReadWrite::Write), ["libblkio_path"]);
        assert_eq!(told("io_uring", "/dev/root", ReadWrite::Read), [""; 0]);
        assert_eq!(told("io_uring", "/dev/none", ReadWrite::Read), ["libblkio_path"]);
        assert_eq!(told("virtio-blk-vhost-user", "/dev/root", ReadWrite::Write), [""; 0], "a socket");
    }
}
