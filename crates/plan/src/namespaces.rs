//! Limits of NVMe namespaces, and of the commands that are passed through to them.

use iolite_host::{Machine, Namespace};
use iolite_options::JobOptions;
use iolite_options::engines::{EngineInfo, IoUringCmdOptions, Target};
use iolite_types::Direction;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The obstacles: each with the option to blame and the reason.
pub(crate) fn obstacles(
    options: &JobOptions,
    engine: &EngineInfo,
    names: &BTreeSet<PathBuf>,
    machine: &dyn Machine,
) -> Vec<(&'static str, String)> {
    if engine.facets.target != Target::Nvme {
        return Vec::new();
    }
    // A namespace that cannot be queried is reported when its size is needed.
    let told = |name: &PathBuf| Some((name.clone(), machine.namespace(name).ok()??));
    let namespaces = names.iter().filter_map(told);
    namespaces.filter_map(|(name, namespace)| of_namespace(options, &name, &namespace)).collect()
}

fn of_namespace(options: &JobOptions, name: &Path, namespace: &Namespace) -> Option<(&'static str, String)> {
    let name = name.display();
    let format = namespace.format;
    let own = options.engine.of::<IoUringCmdOptions>()?;
    let block = u64::from(format.in_buffer(own.pi_act));
    let is_whole = |size: &u64| size.is_multiple_of(block);
    let directions = options.pattern.rw.directions().filter(|_| !options.is_replay());
    let all: Vec<u64> = directions.flat_map(|direction| options.block_size(direction).ends()).collect();
    if let Some(odd) = all.iter().find(|size| !is_whole(size)) {
        let what = match format.data {
            data if block > u64::from(data) => {
                format!("{data} bytes and {} of metadata, {block} in all", format.metadata)
            }
            data => format!("{data} bytes"),
        };
        let message = format!("bs={odd}: {name} has blocks of {what}, and a command must cover whole blocks");
        return Some(("bs", message));
    }
    let apart = u64::from(format.apart(own.pi_act));
    let needed = all.iter().max().map_or(0, |largest| largest / block * apart);
    if needed > u64::from(own.md_per_io_size) {
        let message = format!(
            "md_per_io_size={}: {name} has {apart} bytes of metadata per block in a buffer of its own, {needed} for the \
             largest I/O; set md_per_io_size={needed}",
            own.md_per_io_size
        );
        return Some(("md_per_io_size", message));
    }
    if let Some(found) = of_optional_commands(options, own, &name, namespace) {
        return Some(found);
    }
    let takes_place = format.extended && format.protection.is_some() && !own.pi_act;
    (takes_place && options.verification.is_on()).then(|| {
        let message = format!(
            "verify: with pi_act=0 protection information takes the place of verified data in the blocks of {name}; use \
             pi_act=1"
        );
        ("verify", message)
    })
}

/// Refuses commands that the namespace does not support, or not for its blocks.
fn of_optional_commands(
    options: &JobOptions,
    own: &IoUringCmdOptions,
    name: &std::path::Display<'_>,
    namespace: &Namespace,
) -> Option<(&'static str, String)> {
    let has_metadata = namespace.format.metadata > 0;
    if options.compares_by_device() {
        let why = if !namespace.has_compare() {
            format!("the controller of {name} says that it has no Compare (ONCS bit 0)")
        } else if has_metadata {
            format!("the blocks of {name} have metadata, which is not compared yet")
        } else {
            return None;
        };
        return Some(("verify_mode", format!("verify_mode=compare: {why}; use verify_mode=read")));
    }
    let zoned = options.zones.is_zbd();
    if zoned && namespace.format.in_buffer(own.pi_act) != namespace.format.data {
        let message = format!(
            "zonemode=zbd: the blocks of {name} have metadata between them, which zones do not count; use the block device"
        );
        return Some(("zonemode", message));
    }
    if !options.appends() {
        return None;
    }
    let largest = namespace.zones.map_or(0, |zones| zones.largest_append);
    let written = (!options.is_replay()).then(|| options.block_size(Direction::Write).max());
    let why = match written {
        // (Without zonemode=zbd, another message asks for it.)
        _ if namespace.zones.is_none() && !zoned => return None,
        _ if namespace.zones.is_none() => format!("{name} has no zones; use write_mode=write"),
        _ if has_metadata => {
            format!("the blocks of {name} have metadata, which is not appended yet; use write_mode=write")
        }
        Some(size) if largest > 0 && size > largest => {
            format!("{name} takes at most {largest} bytes with a Zone Append, and not bs={size}")
        }
        _ => return None,
    };
    Some(("write_mode", format!("write_mode=append: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_host::{Format, Guard, MadeUp, Protection, ZoneGeometry};
    use iolite_options::engines::{NvmeWriteMode, engine};
    use iolite_options::{ReadWrite, Verify, ZoneMode};

    fn told(format: Format, change: impl FnOnce(&mut JobOptions)) -> Vec<String> {
        let namespace = Namespace { number: 1, blocks: 1 << 20, format, optional: 0, zones: None };
        let machine = MadeUp::new().with_namespace("/dev/ng0n1", namespace);
        let entry = engine("io_uring_cmd").unwrap();
        let mut options = JobOptions::default();
        options.choose_engine(entry);
        change(&mut options);
        let names = BTreeSet::from([PathBuf::from("/dev/ng0n1")]);
        obstacles(&options, entry, &names, &machine).into_iter().map(|(_, message)| message).collect()
    }

    fn told_of(namespace: Namespace, change: impl FnOnce(&mut JobOptions)) -> Vec<String> {
        let machine = MadeUp::new().with_namespace("/dev/ng0n1", namespace);
        let entry = engine("io_uring_cmd").unwrap();
        let mut options = JobOptions::default();
        options.choose_engine(entry);
        options.pattern.rw = ReadWrite::Write;
        change(&mut options);
        let names = BTreeSet::from([PathBuf::from("/dev/ng0n1")]);
        obstacles(&options, entry, &names, &machine).into_iter().map(|(_, message)| message).collect()
    }

    #[test]
    fn optional_commands_need_a_device_that_has_them() {
        let format = Format { data: 4096, metadata: 0, extended: false, protection: None };
        let zones = ZoneGeometry { blocks: 1024, most_open: 4, most_active: 6, largest_append: 65536 };
        let plain = Namespace { number: 1, blocks: 1 << 20, format, optional: 1, zones: None };
        let zoned = Namespace { zones: Some(zones), ..plain };
        let appends = |o: &mut JobOptions| {
            o.zones.zonemode = ZoneMode::Zbd;
            o.engine.of_mut::<IoUringCmdOptions>().unwrap().write_mode = NvmeWriteMode::Append.into();
        };
        assert_eq!(told_of(zoned, appends), [""; 0]);
        let [message] = &told_of(plain, appends)[..] else { panic!("one") };
        assert!(message.ends_with("has no zones; use write_mode=write"), "{message}");
        let alone = |o: &mut JobOptions| {
            appends(o);
            o.zones.zonemode = ZoneMode::None;
        };
        assert_eq!(told_of(plain, alone), [""; 0], "the missing zonemode is told, not two remedies");
        let large = |o: &mut JobOptions| {
            appends(o);
            o.pattern.bs.values = [1 << 20; 3];
        };
        let [message] = &told_of(zoned, large)[..] else { panic!("one") };
        assert!(message.contains("takes at most 65536 bytes with a Zone Append"), "{message}");
        let sizes = |values| {
            move |o: &mut JobOptions| {
                appends(o);
                (o.pattern.rw, o.pattern.bs.values) = (ReadWrite::TrimWrite, values);
            }
        };
        assert_eq!(told_of(zoned, sizes([1 << 20, 65536, 1 << 20])), [""; 0], "only writes are appended");
        let [message] = &told_of(zoned, sizes([4096, 131_072, 4096]))[..] else { panic!("one") };
        assert!(message.ends_with("not bs=131072"), "{message}");
        let with_metadata = Namespace { format: Format { metadata: 8, ..format }, ..zoned };
        let own = |o: &mut JobOptions| {
            appends(o);
            o.engine.of_mut::<IoUringCmdOptions>().unwrap().md_per_io_size = 4096;
        };
        let [message] = &told_of(with_metadata, own)[..] else { panic!("one") };
        assert!(message.contains("have metadata, which is not appended yet"), "{message}");
        let compares = |o: &mut JobOptions| {
            o.verification.verify = Verify::Crc32c;
            let own = o.engine.of_mut::<IoUringCmdOptions>().unwrap();
            (own.compares, own.md_per_io_size) = (true, 4096);
        };
        assert_eq!(told_of(plain, compares), [""; 0]);
        let [message] = &told_of(Namespace { optional: 0, ..plain }, compares)[..] else { panic!("one") };
        assert!(message.contains("no Compare (ONCS bit 0)"), "{message}");
        let [message] = &told_of(with_metadata, compares)[..] else { panic!("one") };
        assert!(message.contains("which is not compared yet"), "{message}");
    }

    #[test]
    fn commands_are_about_whole_blocks() {
        let plain = Format { data: 4096, metadata: 0, extended: false, protection: None };
        assert_eq!(told(plain, |_| ()), [""; 0]);
        assert_eq!(
            told(plain, |o| o.pattern.bs.values = [512; 3]),
            ["bs=512: /dev/ng0n1 has blocks of 4096 bytes, and a command must cover whole blocks"]
        );
    }

    #[test]
    fn metadata_is_a_part_of_blocks_or_has_a_buffer_of_its_own() {
        let protection = Protection { kind: 1, guard: Guard::Crc16, first: false, storage_tag: 0 };
        let separate = Format { data: 512, metadata: 8, extended: false, protection: Some(protection) };
        let own =
            |change: fn(&mut IoUringCmdOptions)| move |o: &mut JobOptions| change(o.engine.of_mut().unwrap());
        assert_eq!(told(separate, |_| ()), [""; 0], "the device makes it");
        let [message] = &told(separate, own(|own| own.pi_act = false))[..] else { panic!("one") };
        assert!(message.ends_with("set md_per_io_size=64"), "{message}");
        let enough = own(|own| (own.pi_act, own.md_per_io_size) = (false, 64));
        assert_eq!(told(separate, enough), [""; 0]);
        let interleaved = Format { extended: true, ..separate };
        let [message] = &told(interleaved, own(|own| own.pi_act = false))[..] else { panic!("one") };
        assert!(message.contains("blocks of 512 bytes and 8 of metadata, 520 in all"), "{message}");
        let [message] = &told(interleaved, |o| {
            o.pattern.bs.values = [520; 3];
            (o.pattern.rw, o.verification.verify) = (ReadWrite::Write, Verify::Crc32c);
            own(|own| own.pi_act = false)(o);
        })[..] else {
            panic!("one")
        };
        assert!(message.starts_with("verify: with pi_act=0"), "{message}");
    }
}
