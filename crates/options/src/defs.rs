//! The job options, one file per category, and the list that determines their order.

/// A landing that stores the result of a method of [`Given`](crate::definition::Given): `put!(nice, number())`.
macro_rules! put {
    ($($field:ident).+, $method:ident($($argument:expr),*)) => {
        |job, given| {
            job.$($field).+ = given.$method($($argument),*)?;
            Ok(())
        }
    };
}

/// A landing that stores a keyword as its enum: `put_keyword!(filetype, FileType)`.
macro_rules! put_keyword {
    ($($field:ident).+, $type:ident) => {
        |job, given| {
            let keyword = given.keyword()?;
            job.$($field).+ = $crate::$type::from_keyword(keyword)
                .ok_or_else(|| format!("\"{keyword}\" is not supported yet"))?;
            Ok(())
        }
    };
}

mod buffers;
mod depth;
mod durability;
mod errors;
mod files;
mod job;
mod logs;
mod measurement;
mod own;
mod past;
mod pattern;
mod placement;
mod rates;
mod replay;
mod verify;
mod zones;

pub(crate) use depth::DEFAULT_ENGINE;

use crate::definition::Definition;

#[cfg(test)]
pub(crate) use own::OWN;
pub(crate) use past::PAST;

/// Every job option, in the order in which the help lists them: those of fio, then our own.
pub static ALL: &[&[Definition]] = &[
    job::IDENTITY,
    files::NAMES,
    pattern::BLOCKS,
    errors::IGNORED,
    pattern::SEQUENCE,
    depth::ENGINE,
    files::SIZES,
    pattern::RANDOM,
    files::SHARING,
    durability::FLUSHES,
    files::OVERWRITE,
    job::RUN,
    measurement::CLOCK,
    buffers::MEMORY,
    verify::VERIFY,
    replay::REPLAY,
    job::SURROUNDINGS,
    zones::ZONES,
    buffers::LOCKED,
    pattern::MIX,
    placement::PRIORITIES,
    rates::RATES,
    durability::CACHE,
    files::CREATION,
    placement::PROCESSORS,
    durability::CLOSING,
    files::REMOVAL,
    job::ORDER,
    logs::LOGS,
    measurement::GROUPS,
    buffers::CONTENT,
    measurement::LATENCIES,
    errors::POLICY,
    placement::IDENTITY,
    measurement::UNITS,
    buffers::HUGE_PAGES,
    rates::FLOW,
    measurement::STEADY_STATE,
    own::OWN,
];
