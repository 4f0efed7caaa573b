//! Checks that the other options of a job allow its zones or its preconditioning.

use crate::Layout;
use iolite_options::{JobOptions, RandomDistribution, RandomGenerator, ReadWrite, ZoneMode};
use iolite_types::Direction;

/// The obstacles: each with the option to blame and the reason.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    zones(options).into_iter().chain(preconditioning(options)).collect()
}

fn zones(options: &JobOptions) -> Option<(&'static str, String)> {
    match options.zones.zonemode {
        ZoneMode::None if options.zones.zonesize > 0 => {
            let reason = format!("zonesize={}: needs zonemode=strided or zbd", options.zones.zonesize);
            Some(("zonesize", options.reason("--zonemode=none and --zonesize are not compatible.", reason)))
        }
        ZoneMode::Strided if options.zones.zonesize == 0 => {
            let in_fio = "--zonesize must be specified when using --zonemode=strided.";
            Some(("zonemode", options.reason(in_fio, "zonemode=strided: needs a zonesize=".to_owned())))
        }
        _ => None,
    }
}

/// Preconditioning covers the device with random writes of one size.
fn preconditioning(options: &JobOptions) -> Option<(&'static str, String)> {
    if !options.pattern.sprandom {
        return None;
    }
    let writes = Direction::Write;
    let pattern = &options.pattern;
    let other_generator =
        options.is_set("random_generator") && pattern.random_generator != RandomGenerator::Lfsr;
    let wants_map = options.is_set("norandommap") && !pattern.norandommap;
    let several_sizes = options.block_size(writes).only().is_none();
    let align = options.pattern.ba[writes];
    let why = if options.pattern.rw != ReadWrite::RandWrite || options.pattern.rw_modifier.0 > 1 {
        "needs rw=randwrite"
    } else if several_sizes {
        "needs a single block size"
    } else if other_generator {
        "needs random_generator=lfsr, or none given"
    } else if wants_map {
        "writes some blocks again, and does not go with norandommap=0"
    } else if options.pattern.percentage_random[writes] < 100 {
        "does not go with percentage_random"
    } else if options.pattern.random_distribution != RandomDistribution::Random {
        "does not go with random_distribution"
    } else if options.zones.zonemode != ZoneMode::None {
        "does not go with zonemode"
    } else if align != 0 && align != options.smallest_block() {
        "does not go with a blockalign other than the block size"
    } else {
        return None;
    };
    Some(("sprandom", format!("sprandom=1: {why}")))
}

/// Why the regions of `sprandom` do not fit into the files, with the option to blame. A write cache that holds a whole
/// region merges the two writes of a block, so that no block is invalidated.
pub(crate) fn regions(options: &JobOptions, layout: &Layout) -> Option<(&'static str, String)> {
    let (cache, regions) = (options.pattern.spr_cs, u64::from(options.pattern.spr_num_regions));
    if !options.pattern.sprandom {
        return None;
    }
    let file = match &layout.files[..] {
        [file] => file,
        _ => return Some(("sprandom", "sprandom=1: goes with a single file only".to_owned())),
    };
    if regions == 0 {
        return Some((
            "spr_num_regions",
            "sprandom=1: spr_num_regions=0: there has to be a region".to_owned(),
        ));
    }
    if cache == 0 {
        return None;
    }
    let path = file.path.display();
    let flash = (file.length as f64 * options.flash_share()) as u64;
    match flash.saturating_sub(1) / cache {
        0 => Some((
            "spr_cs",
            format!(
                "sprandom=1: spr_cs={cache} is a cache as large as the whole flash of {path} ({flash} bytes), and it has to \
                 be smaller than a region"
            ),
        )),
        most if regions > most => Some((
            if options.is_set("spr_num_regions") { "spr_num_regions" } else { "spr_cs" },
            format!(
                "sprandom=1: {regions} regions are too many for spr_cs={cache}: a region has to be larger than the cache, and \
                 the flash of {path} ({flash} bytes) has room for {most} such regions; use spr_num_regions={most} or fewer"
            ),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileLayout;
    use iolite_options::{BlockSizes, PatternOptions, Range, ReadWriteModifier, Skew, SkewLaw};
    use iolite_types::PerDirection;

    fn found(change: impl FnOnce(&mut JobOptions)) -> Vec<String> {
        let mut options = JobOptions {
            pattern: PatternOptions { rw: ReadWrite::RandWrite, ..PatternOptions::default() },
            ..JobOptions::default()
        };
        change(&mut options);
        obstacles(&options).into_iter().map(|(_, message)| message).collect()
    }

    #[test]
    fn zones_need_a_mode_and_a_size() {
        assert_eq!(found(|_| ()), [""; 0]);
        assert_eq!(found(|o| o.zones.zonesize = 4096), ["zonesize=4096: needs zonemode=strided or zbd"]);
        assert_eq!(found(|o| o.zones.zonemode = ZoneMode::Strided), ["zonemode=strided: needs a zonesize="]);
        assert_eq!(found(|o| (o.zones.zonemode, o.zones.zonesize) = (ZoneMode::Strided, 4096)), [""; 0]);
    }

    #[test]
    fn preconditioning_is_for_random_writes() {
        let spr = |change: &dyn Fn(&mut JobOptions)| {
            found(|o| {
                o.pattern.sprandom = true;
                change(o);
            })
        };
        assert_eq!(spr(&|_| ()), [""; 0]);
        assert_eq!(spr(&|o| o.pattern.rw = ReadWrite::RandRead), ["sprandom=1: needs rw=randwrite"]);
        assert_eq!(spr(&|o| o.pattern.rw = ReadWrite::Write), ["sprandom=1: needs rw=randwrite"]);
        assert_eq!(
            spr(&|o| o.pattern.rw_modifier = ReadWriteModifier(8)),
            ["sprandom=1: needs rw=randwrite"]
        );
        let given = |o: &mut JobOptions, option: &str| {
            o.origins.insert(option.to_owned(), iolite_options::Origin::CommandLine(1));
        };
        assert_eq!(
            spr(&|o| given(o, "random_generator")),
            ["sprandom=1: needs random_generator=lfsr, or none given"]
        );
        assert_eq!(
            spr(&|o| given(o, "norandommap")),
            ["sprandom=1: writes some blocks again, and does not go with norandommap=0"]
        );
        assert_eq!(
            spr(&|o| {
                (o.pattern.random_generator, o.pattern.norandommap) = (RandomGenerator::Lfsr, true);
                given(o, "random_generator");
                given(o, "norandommap");
            }),
            [""; 0]
        );
        let sizes = PerDirection::all(BlockSizes::Range(Range { low: 4096, high: 8192 }));
        assert_eq!(
            spr(&|o| o.pattern.block_sizes = sizes.clone()),
            ["sprandom=1: needs a single block size"]
        );
        let half = PerDirection::all(50);
        assert_eq!(
            spr(&|o| o.pattern.percentage_random = half),
            ["sprandom=1: does not go with percentage_random"]
        );
        let zipf = Skew { law: SkewLaw::Zipf, value: 1.2, centre: None };
        assert_eq!(
            spr(&|o| o.pattern.random_distribution = RandomDistribution::Skewed(zipf)),
            ["sprandom=1: does not go with random_distribution"]
        );
        assert_eq!(
            spr(&|o| (o.zones.zonemode, o.zones.zonesize) = (ZoneMode::Strided, 4096)),
            ["sprandom=1: does not go with zonemode"]
        );
        assert_eq!(
            spr(&|o| o.pattern.ba = PerDirection::all(512)),
            ["sprandom=1: does not go with a blockalign other than the block size"]
        );
    }

    /// 8 MiB and a quarter of it: 10 MiB of flash.
    #[test]
    fn regions_are_larger_than_the_cache() {
        let file = |path: &str, length| FileLayout {
            path: path.into(),
            kind: iolite_types::FileKind::Regular,
            exists: true,
            offset: 0,
            length,
            amount: length,
            extend_to: None,
            is_whole: true,
            zoned: None,
        };
        let layout = Layout {
            files: vec![file("small", 8 << 20)],
            pass_bytes: None,
            left_out: crate::LeftOut::default(),
            named: None,
        };
        let several = Layout {
            files: vec![file("a", 8 << 20), file("b", 8 << 20)],
            pass_bytes: None,
            left_out: crate::LeftOut::default(),
            named: None,
        };
        let mut options = JobOptions::default();
        options.pattern.sprandom = true;
        let refused = |options: &JobOptions, layout| regions(options, layout).map(|(_, message)| message);
        assert_eq!(refused(&options, &several).unwrap(), "sprandom=1: goes with a single file only");
        options.pattern.spr_num_regions = 0;
        assert!(refused(&options, &layout).unwrap().contains("spr_num_regions=0"));
        let found = |cache: u64, count| {
            let mut options = JobOptions::default();
            (options.pattern.sprandom, options.pattern.spr_op) = (true, 0.25);
            (options.pattern.spr_cs, options.pattern.spr_num_regions) = (cache, count);
            regions(&options, &layout).map(|(option, message)| {
                assert_eq!(option, "spr_cs", "the other one was not given");
                message
            })
        };
        assert_eq!((found(0, 1_000_000), found(2 << 20, 4), found((2 << 20) - 1, 5)), (None, None, None));
        let many = found(2 << 20, 5).unwrap();
        assert!(
            many.contains("5 regions are too many for spr_cs=2097152") && many.contains("for 4 such"),
            "{many}"
        );
        let large = found(10 << 20, 1).unwrap();
        assert!(large.contains("a cache as large as the whole flash of small (10485760 bytes)"), "{large}");
    }
}
