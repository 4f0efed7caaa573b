//! Limits of commands that are passed through, and of extras of reads, writes and trims (ranges, placement, metadata).

use iolite_options::engines::{self, Capability, EngineInfo, Target};
use iolite_options::engines::{CdbLength, CommandType, IoUringCmdOptions, IoUringOptions, NvmeWriteMode};
use iolite_options::{DataPlacement, JobOptions, PlacementChoice, SubmitMode, Verify};

/// Why trims cannot have several ranges.
pub(super) fn of_ranges(options: &JobOptions, engine: &EngineInfo) -> Option<(&'static str, String)> {
    let ranges = options.extent.num_range;
    if ranges <= 1 || !options.pattern.rw.trims() {
        return None;
    }
    let why = if engine.facets.target == Target::Bsg {
        "SCSI commands (cmd_type=bsg) trim one range; leave num_range out".to_owned()
    } else if !engine.facets.can(Capability::Ranges) {
        let can = engines::capable(Capability::Ranges);
        format!("needs an engine that trims several ranges with one command: {can} does")
    } else if options.verification.is_on() || options.verification.experimental_verify {
        "verification keeps account of one range per trim; leave verify or num_range out".to_owned()
    } else if options.replay.write_iolog.is_some() || options.is_replay() {
        "a trace has one range per trim; leave num_range out".to_owned()
    } else if options.depth.io_submit_mode == SubmitMode::Offload {
        "the threads of io_submit_mode=offload trim one range at a time; use io_submit_mode=inline".to_owned()
    } else if options.zones.is_zbd() {
        "with zonemode=zbd a trim is the reset of one zone; leave num_range out".to_owned()
    } else {
        return None;
    };
    Some(("num_range", format!("num_range={ranges}: {why}")))
}

/// Why data placement cannot be used with the device.
pub(super) fn of_placement(options: &JobOptions, engine: &EngineInfo) -> Option<(&'static str, String)> {
    let (asked, option) = (&options.data_placement, options.placement_option()?);
    let name = asked.dataplacement.keyword();
    if engine.facets.target == Target::Bsg {
        let message = format!(
            "{option}: SCSI commands (cmd_type=bsg) do not say where data belongs; leave {option} out"
        );
        return Some((option, message));
    }
    if !engine.facets.can(Capability::Placement) {
        let can = engines::capable(Capability::Placement);
        let engine = engine.name;
        let message =
            format!("dataplacement={name}: ioengine={engine} cannot say where data belongs; {can} can");
        return Some((option, message));
    }
    if engine.facets.target == Target::Any && !options.durability.direct {
        let message = format!("dataplacement={name}: the page cache keeps nothing of it; add direct=1");
        return Some((option, message));
    }
    if asked.plid_select == PlacementChoice::Scheme {
        let message = "plid_select=scheme: dp_scheme= is missing, the file with the ranges".to_owned();
        return asked.dp_scheme.is_empty().then_some(("plid_select", message));
    }
    (asked.dataplacement == DataPlacement::Streams && asked.plids.is_empty()).then(|| {
        ("dataplacement", "dataplacement=streams: plids= is missing, the streams to write to".to_owned())
    })
}

/// Limits of metadata with reads and writes.
pub(super) fn of_metadata(options: &JobOptions) -> Option<(&'static str, String)> {
    let own = options.engine.of::<IoUringOptions>()?;
    (own.has_metadata() && !options.durability.direct).then(|| {
        let message = "md_per_io_size: the page cache takes no metadata; add direct=1, or leave pi_act=0 out";
        ("md_per_io_size", message.to_owned())
    })
}

/// Limits of commands that are passed through.
pub(super) fn of_commands(options: &JobOptions) -> Option<(&'static str, String)> {
    let own = options.engine.of::<IoUringCmdOptions>()?;
    if options.verifies_writes() && !own.write_mode.stores_data() {
        let message = "verify: with this write_mode the device does not keep the data of writes";
        return Some(("verify", message.to_owned()));
    }
    let of_kind = match own.cmd_type {
        CommandType::Nvme => of_zone_commands(options, own),
        CommandType::Bsg => of_scsi_commands(options, own),
    };
    of_kind.or_else(|| of_comparisons(options))
}

/// Limits of SCSI commands, in general and through a ring.
fn of_scsi_commands(options: &JobOptions, own: &IoUringCmdOptions) -> Option<(&'static str, String)> {
    let (rw, modes) = (options.pattern.rw, &own.write_mode);
    let writes = |mode| rw.writes() && modes.has(mode);
    let prefetches = rw.reads() && own.prefetches;
    let is_verified = options.verification_option().is_some();
    let (option, message) = if own.ring.hipri {
        (
            "hipri",
            "hipri: the kernel has no polled completions of SCSI commands (cmd_type=bsg); leave hipri out",
        )
    } else if options.zones.is_zbd() {
        (
            "zonemode",
            "zonemode=zbd: no account is kept of zones behind SCSI commands (cmd_type=bsg); use the block device with psync, \
             libaio or io_uring",
        )
    } else if writes(NvmeWriteMode::Append) {
        (
            "write_mode",
            "write_mode=append: SCSI has no command that appends (cmd_type=bsg); use write_mode=write",
        )
    } else if writes(NvmeWriteMode::Zeroes) && own.cdb_len == CdbLength::Ten {
        ("cdb_len", "cdb_len=10: WRITE SAME with 10 bytes needs data (write_mode=zeroes); use cdb_len=16")
    } else if writes(NvmeWriteMode::Uncorrectable) && own.cdb_len == CdbLength::ThirtyTwo {
        ("cdb_len", "cdb_len=32: WRITE LONG has no such form (write_mode=uncor); use cdb_len=16")
    } else if prefetches && own.cdb_len == CdbLength::ThirtyTwo {
        ("cdb_len", "cdb_len=32: PRE-FETCH has no such form (read_mode=prefetch); use cdb_len=16")
    } else if own.prefetches && is_verified && !options.compares_by_device() {
        (
            "read_mode",
            "read_mode=prefetch: no data comes back that could be verified; use read_mode=read, or verify_mode=compare",
        )
    } else {
        return None;
    };
    Some((option, message.to_owned()))
}

/// Requirements and limits of commands for zones.
fn of_zone_commands(options: &JobOptions, own: &IoUringCmdOptions) -> Option<(&'static str, String)> {
    let is_zoned = options.zones.is_zbd();
    let message = if options.appends() && !is_zoned {
        "write_mode=append: a zone is needed to append to; add zonemode=zbd, which keeps account of zones, or use \
         write_mode=write where there are none"
    } else if is_zoned && options.pattern.rw.writes() && own.write_mode.has(NvmeWriteMode::Verify) {
        "write_mode=verify: it moves no write pointers, so it does not go with zonemode=zbd; leave zonemode out"
    } else {
        return None;
    };
    Some(("write_mode", message.to_owned()))
}

/// Why verification by comparison is impossible: it needs the expected content of each block.
fn of_comparisons(options: &JobOptions) -> Option<(&'static str, String)> {
    if !options.compares_by_device() {
        return None;
    }
    let has_header = options.verification.verify != Verify::Pattern;
    let why = if options.loads_state() || options.relies_on_earlier_run() && has_header {
        "the data of another run cannot be regenerated, because its headers contain the time of the write (verify=pattern has \
         no headers)"
    } else if options.is_replay() {
        "a replay verifies its reads as it goes"
    } else if options.depth.io_submit_mode == SubmitMode::Offload {
        "io_submit_mode=offload cannot request comparisons"
    } else {
        return None;
    };
    Some(("verify_mode", format!("verify_mode=compare: {why}; use verify_mode=read")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::obstacles;
    use crate::engines::tests::told;
    use iolite_options::engines::engine;
    use iolite_options::{ReadWrite, RunOptions, ZoneMode};

    #[test]
    fn what_commands_cannot_do_is_refused() {
        let entry = engine("io_uring_cmd").unwrap();
        let told = |change: fn(&mut IoUringCmdOptions)| {
            told(entry, |o| {
                o.choose_engine(entry);
                (o.pattern.rw, o.verification.verify) = (ReadWrite::Write, Verify::Crc32c);
                change(o.engine.of_mut().unwrap());
            })
        };
        assert_eq!(told(|_| ()), [""; 0]);
        let [message] = &told(|own| own.write_mode = NvmeWriteMode::Zeroes.into())[..] else { panic!("one") };
        assert!(message.starts_with("verify: with this write_mode"), "{message}");
        let [message] = &told(|own| own.write_mode = NvmeWriteMode::Append.into())[..] else { panic!("one") };
        assert!(message.contains("add zonemode=zbd"), "{message}");
        assert_eq!(told(|own| own.compares = true), [""; 0]);
    }

    #[test]
    fn what_scsi_commands_cannot_do_is_refused() {
        type Change = fn(&mut JobOptions, &mut IoUringCmdOptions);
        let told = |change: Change| {
            let mut options = JobOptions::default();
            options.choose_engine(engine("io_uring_cmd").unwrap());
            options.pattern.rw = ReadWrite::RandRw;
            let mut own = options.engine.of::<IoUringCmdOptions>().unwrap().clone();
            own.cmd_type = CommandType::Bsg;
            change(&mut options, &mut own);
            *options.engine.of_mut().unwrap() = own;
            let chosen = options.chosen_engine().unwrap();
            let found = obstacles(&options, &chosen, &RunOptions::default());
            found.into_iter().map(|(_, message)| message).collect::<Vec<_>>()
        };
        assert_eq!(told(|_, _| ()), [""; 0]);
        let all_forms = |_: &mut JobOptions, own: &mut IoUringCmdOptions| {
            (own.cdb_len, own.deac) = (CdbLength::ThirtyTwo, true);
            own.write_mode = NvmeWriteMode::Zeroes.into();
        };
        assert_eq!(told(all_forms), [""; 0]);
        let refusals: [(Change, &str); 10] = [
            (|_, own| own.ring.hipri = true, "hipri: the kernel has no polled"),
            (|o, _| o.zones.zonemode = ZoneMode::Zbd, "zonemode=zbd: no account is kept"),
            (|_, own| own.write_mode = NvmeWriteMode::Append.into(), "write_mode=append: SCSI has no"),
            (
                |_, own| (own.write_mode, own.cdb_len) = (NvmeWriteMode::Zeroes.into(), CdbLength::Ten),
                "cdb_len=10: WRITE SAME",
            ),
            (
                |_, own| {
                    (own.write_mode, own.cdb_len) =
                        (NvmeWriteMode::Uncorrectable.into(), CdbLength::ThirtyTwo);
                },
                "cdb_len=32: WRITE LONG",
            ),
            (|_, own| (own.prefetches, own.cdb_len) = (true, CdbLength::ThirtyTwo), "cdb_len=32: PRE-FETCH"),
            (
                |o, own| (own.prefetches, o.verification.verify) = (true, Verify::Crc32c),
                "read_mode=prefetch: no data comes back",
            ),
            (
                |o, own| {
                    (own.write_mode, o.verification.verify) = (NvmeWriteMode::Verify.into(), Verify::Md5)
                },
                "verify: with this write_mode",
            ),
            (
                |o, _| (o.pattern.rw, o.extent.num_range) = (ReadWrite::RandTrim, 4),
                "num_range=4: SCSI commands",
            ),
            (
                |o, _| o.data_placement.dataplacement = DataPlacement::Fdp,
                "fdp: SCSI commands (cmd_type=bsg) do not say",
            ),
        ];
        for (change, expected) in refusals {
            let [message] = &told(change)[..] else { panic!("{expected}: one") };
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
