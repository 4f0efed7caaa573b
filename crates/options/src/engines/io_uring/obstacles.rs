//! What jobs cannot do with commands that are passed through (`io_uring_cmd`).

use super::IoUringCmdOptions;
use crate::engines::{CdbLength, CommandType, NvmeWriteMode, Obstacle};
use crate::{JobOptions, SubmitMode, Verify};

/// What a job cannot do with these commands.
pub(super) fn of_commands(options: &JobOptions, own: &IoUringCmdOptions) -> Option<Obstacle> {
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
fn of_scsi_commands(options: &JobOptions, own: &IoUringCmdOptions) -> Option<Obstacle> {
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
fn of_zone_commands(options: &JobOptions, own: &IoUringCmdOptions) -> Option<Obstacle> {
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
fn of_comparisons(options: &JobOptions) -> Option<Obstacle> {
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
    use crate::engines::engine;
    use crate::{ReadWrite, ZoneMode};

    type Change = fn(&mut JobOptions, &mut IoUringCmdOptions);

    /// The messages about a job that reads and writes with `io_uring_cmd`.
    fn told(change: impl FnOnce(&mut JobOptions, &mut IoUringCmdOptions)) -> Vec<String> {
        let mut options = JobOptions::default();
        options.choose_engine(engine("io_uring_cmd").unwrap());
        options.pattern.rw = ReadWrite::RandRw;
        let mut own = options.engine.of::<IoUringCmdOptions>().unwrap().clone();
        change(&mut options, &mut own);
        *options.engine.of_mut().unwrap() = own;
        options.engine.obstacles(&options).into_iter().map(|(_, message)| message).collect()
    }

    #[test]
    fn options_unsupported_by_nvme_commands_are_refused() {
        let told = |change: Change| {
            told(|o, own| {
                (o.pattern.rw, o.verification.verify) = (ReadWrite::Write, Verify::Crc32c);
                change(o, own);
            })
        };
        assert_eq!(told(|_, _| ()), [""; 0]);
        let [message] = &told(|_, own| own.write_mode = NvmeWriteMode::Zeroes.into())[..] else {
            panic!("one")
        };
        assert!(message.starts_with("verify: with this write_mode"), "{message}");
        let [message] = &told(|_, own| own.write_mode = NvmeWriteMode::Append.into())[..] else {
            panic!("one")
        };
        assert!(message.contains("add zonemode=zbd"), "{message}");
        assert_eq!(told(|_, own| own.compares = true), [""; 0]);
    }

    #[test]
    fn options_unsupported_by_scsi_commands_are_refused() {
        let told = |change: Change| {
            told(|o, own| {
                own.cmd_type = CommandType::Bsg;
                change(o, own);
            })
        };
        assert_eq!(told(|_, _| ()), [""; 0]);
        let all_forms = |_: &mut JobOptions, own: &mut IoUringCmdOptions| {
            (own.cdb_len, own.deac) = (CdbLength::ThirtyTwo, true);
            own.write_mode = NvmeWriteMode::Zeroes.into();
        };
        assert_eq!(told(all_forms), [""; 0]);
        let refusals: [(Change, &str); 8] = [
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
        ];
        for (change, expected) in refusals {
            let [message] = &told(change)[..] else { panic!("{expected}: one") };
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
