//! Zones, of the workload and of the device, and placement of data by the device.

use crate::definition::{Category, Definition, Given, Kind, Limits};
use crate::typed::DataPlacement;
use crate::values::{LIST_TOO_LONG, number_set, zone_skip};

const fn zones(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Zones, kind, help)
}

/// A single share from 0 to 1. Anything behind it is refused under the name `fio` as well: a list here is a mistake.
fn share(given: &mut Given<'_>) -> Result<f64, String> {
    match given.floats(2)?[..] {
        [share] if !given.text.is_some_and(|text| text.contains(':')) => Ok(share),
        _ => Err(given
            .notes
            .refusal(format_args!("{LIST_TOO_LONG} 1"), "takes one number, no list".to_owned())),
    }
}

/// All options of zones and placement.
pub static ZONES: &[Definition] = &[
    zones("zonemode", Kind::Str, "How zones are handled")
        .default(crate::ZoneMode::DEFAULT)
        .keywords(&[
            ("none", "Nothing"),
            ("strided", "Parts of the file with gaps between"),
            ("zbd", "The zones of a zoned block device, or of zonesize bytes of anything else"),
        ])
        .lands(put_keyword!(zones.zonemode, ZoneMode)),
    zones("zonesize", Kind::Str, "Bytes of I/O in a zone before the next").default("0").lands(
        |job, given| {
            job.zones.zonesize = bytes(given)?;
            Ok(())
        },
    ),
    zones("zonecapacity", Kind::Str, "Bytes of a zone that can be used").default("0").lands(|job, given| {
        job.zones.zonecapacity = bytes(given)?;
        Ok(())
    }),
    zones("zonerange", Kind::Str, "Bytes of the file that a zone covers").default("0").lands(|job, given| {
        job.zones.zonerange = bytes(given)?;
        Ok(())
    }),
    zones("zoneskip", Kind::Size, "Bytes between the end of a zone and the next").default("0").lands(
        |job, given| {
            job.zones.zoneskip = zone_skip(given.required()?, given.kb_base, &mut given.notes)?;
            Ok(())
        },
    ),
    zones("read_beyond_wp", Kind::Bool, "Also read unwritten parts of zones")
        .default("0")
        .lands(put!(zones.read_beyond_wp, boolean())),
    zones("max_open_zones", Kind::Int, "Most zones that all jobs together keep open")
        .default("0")
        .range(0, 4096)
        .lands(put!(zones.max_open_zones, number())),
    zones("job_max_open_zones", Kind::Int, "Most zones that one worker keeps open")
        .default("0")
        .range(0, 4096)
        .lands(put!(zones.job_max_open_zones, number())),
    zones("ignore_zone_limits", Kind::Bool, "Ignore the device's own limits")
        .default("0")
        .lands(put!(zones.ignore_zone_limits, boolean())),
    zones(
        "zone_reset_threshold",
        Kind::FloatList,
        "Part of all blocks that may be written before zones are reset",
    )
    .limits(Limits::Floats(0.0, 1.0))
    .off(&["0"])
    .lands(|job, given| {
        job.zones.zone_reset_threshold = share(given)?;
        Ok(())
    }),
    zones("zone_reset_frequency", Kind::FloatList, "How often a write resets its zone once that is reached")
        .limits(Limits::Floats(0.0, 1.0))
        .off(&["0"])
        .lands(|job, given| {
            job.zones.zone_reset_frequency = share(given)?;
            Ok(())
        }),
    zones(
        "recover_zbd_write_error",
        Kind::Bool,
        "After a failed write, continue at the zone's write pointer",
    )
    .range(0, 1)
    .lands(put!(zones.recover_zbd_write_error, boolean())),
    zones("write_zone_remainder", Kind::Bool, "Write the rest of a zone with a smaller block")
        .range(0, 1)
        .lands(put!(zones.write_zone_remainder, boolean())),
    zones("fdp", Kind::Bool, "Let the device place data by handles (flexible data placement)")
        .default("0")
        .range(0, 1)
        .lands(|job, given| {
            // fdp=0, which is also its default, does not undo other options.
            if given.boolean()? {
                job.data_placement.dataplacement = DataPlacement::Fdp;
            }
            Ok(())
        }),
    zones("dataplacement", Kind::Str, "How writes name the placement of their data")
        .aliases(&["data_placement"])
        .default("none")
        .keywords(&[("none", "Not at all"), ("fdp", "By placement handles"), ("streams", "By write streams")])
        .lands(put_keyword!(data_placement.dataplacement, DataPlacement)),
    zones("plid_select", Kind::Str, "How the placement handle of the next write is chosen")
        .aliases(&["fdp_pli_select"])
        .default("roundrobin")
        .keywords(&[
            ("random", "Any"),
            ("roundrobin", "One after the other"),
            ("scheme", "By the offset, as dp_scheme says"),
        ])
        .lands(put_keyword!(data_placement.plid_select, PlacementChoice)),
    zones("plids", Kind::Str, "The placement handles to use").aliases(&["fdp_pli"]).lands(|job, given| {
        let numbers = number_set(given.required()?, &[','], &mut given.notes)?;
        let narrow = |number: u32| u16::try_from(number).map_err(|_| format!("{number} is more than 65535"));
        job.data_placement.plids = numbers.into_iter().map(narrow).collect::<Result<_, _>>()?;
        Ok(())
    }),
    zones("dp_scheme", Kind::Str, "File with the handles for ranges of offsets")
        .names_files(|job| vec![job.data_placement.dp_scheme.clone()])
        .lands(|job, given| {
            job.data_placement.dp_scheme = given.required()?.to_owned();
            Ok(())
        }),
];

/// A number of bytes; for zones, percentages have no meaning.
fn bytes(given: &mut Given<'_>) -> Result<u64, String> {
    if given.required()?.ends_with('%') {
        return Err("is in bytes, not in percent".to_owned());
    }
    given.number()
}
