//! Obsolete options of fio. Some are accepted without effect, because old job files have them. Others would change the
//! meaning of a job, so they are refused, and the message names their replacement. No help lists them.

use crate::definition::{Category, Definition, Kind, LandInJob};

const fn past(name: &'static str, kind: Kind, help: &'static str, land: LandInJob) -> Definition {
    Definition::job(name, Category::Job, kind, help).standing_alone().lands(land)
}

/// fio prints this message, whatever the value.
const DEPRECATED: LandInJob = |_, given| {
    given.notes.push(format!("option {} is deprecated, and has no effect", given.definition.name));
    Ok(())
};

/// All obsolete options that fio 3.42 still knows by name.
pub static PAST: &[Definition] = &[
    past("verifysort", Kind::Str, "Read back in the order of offsets", DEPRECATED),
    past("verifysort_nr", Kind::Str, "How many blocks are sorted at a time", DEPRECATED),
    past("flow_watermark", Kind::Str, "How far a job may get ahead in its flow", DEPRECATED),
    past("percentage_sequential", Kind::Str, "Percent of the I/Os that are sequential", |_, _| {
        Err("fio has this option no more; give percentage_random, which is 100 minus this".to_owned())
    }),
    past("rwmixcycle", Kind::Str, "How often a mix changes its direction", |_, _| {
        Err("fio has this option no more; rwmixread and rwmixwrite alone say how a mix goes".to_owned())
    }),
];
