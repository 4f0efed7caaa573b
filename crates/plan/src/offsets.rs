//! Checks that the other options of a job allow its zones or its preconditioning.

use iolite_options::{JobOptions, RandomDistribution, ReadWrite, ZoneMode};
use iolite_types::Direction;

/// What stands in the way: the option to blame, and why.
pub(crate) fn obstacles(options: &JobOptions) -> Vec<(&'static str, String)> {
    zones(options).into_iter().chain(preconditioning(options)).collect()
}

fn zones(options: &JobOptions) -> Option<(&'static str, String)> {
    match options.zones.zonemode {
        ZoneMode::None if options.zones.zonesize > 0 => {
            Some(("zonesize", format!("zonesize={}: needs zonemode=strided", options.zones.zonesize)))
        }
        ZoneMode::Strided if options.zones.zonesize == 0 => {
            Some(("zonemode", "zonemode=strided: needs a zonesize=".to_owned()))
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
    let several_sizes = options.block_size(writes).only().is_none();
    let align = options.pattern.ba[writes];
    let why = if options.pattern.rw != ReadWrite::RandWrite || options.pattern.rw_modifier.0 > 1 {
        "needs rw=randwrite"
    } else if several_sizes {
        "needs a single block size"
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

#[cfg(test)]
mod tests {
    use super::*;
    use iolite_options::{PatternOptions, Range, ReadWriteModifier, Skew, SkewLaw};
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
        assert_eq!(found(|o| o.zones.zonesize = 4096), ["zonesize=4096: needs zonemode=strided"]);
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
        let sizes = PerDirection::all(Range { low: 4096, high: 8192 });
        assert_eq!(spr(&|o| o.pattern.bsrange = Some(sizes)), ["sprandom=1: needs a single block size"]);
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
}
