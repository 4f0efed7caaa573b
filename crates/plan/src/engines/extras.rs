//! Limits of extras of writes and trims (placement, ranges).

use iolite_options::engines::{self, Capability, EngineInfo, Obstacle, Target};
use iolite_options::{DataPlacement, JobOptions, PlacementChoice, SubmitMode};

/// Why trims cannot have several ranges.
pub(super) fn of_ranges(options: &JobOptions, engine: &EngineInfo) -> Option<Obstacle> {
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
pub(super) fn of_placement(options: &JobOptions, engine: &EngineInfo) -> Option<Obstacle> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::ReadWrite;
    use iolite_options::engines::{CommandType, IoUringCmdOptions, engine};

    #[test]
    fn scsi_commands_have_no_extras() {
        let mut options = JobOptions::default();
        options.choose_engine(engine("io_uring_cmd").unwrap());
        options.engine.of_mut::<IoUringCmdOptions>().unwrap().cmd_type = CommandType::Bsg;
        let chosen = options.chosen_engine().unwrap();
        assert_eq!((of_ranges(&options, &chosen), of_placement(&options, &chosen)), (None, None));
        (options.pattern.rw, options.extent.num_range) = (ReadWrite::RandTrim, 4);
        let (_, ranges) = of_ranges(&options, &chosen).unwrap();
        assert!(ranges.starts_with("num_range=4: SCSI commands"), "{ranges}");
        (options.pattern.rw, options.data_placement.dataplacement) =
            (ReadWrite::RandWrite, DataPlacement::Fdp);
        let (_, placement) = of_placement(&options, &chosen).unwrap();
        assert!(placement.starts_with("fdp: SCSI commands (cmd_type=bsg) do not say"), "{placement}");
    }
}
