//! Options that several engines have: declared once, they are stored in the struct of each engine that lists them.

use super::ranged::ranged;
use crate::definition::{Definition, Given, Kind, Places, found};

/// An option of engines, as yet without effect.
pub(super) const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

pub(super) static HIPRI: Definition =
    option("hipri", Kind::Flag, "Poll the device for completions (high priority)").lands_in_engine(
        |own, given| {
            *found(own.hipri())? = given.boolean()?;
            Ok(())
        },
    );

pub(super) static UNCACHED: Definition =
    option("uncached", Kind::Int, "Drop pages from the cache after use (RWF_DONTCACHE)").lands_in_engine(
        |own, given| {
            match own.uncached() {
                Some(place) => *place = given.integer()? != 0,
                None => no_use_to_commands(given),
            }
            Ok(())
        },
    );

pub(super) static NOWAIT: Definition = option("nowait", Kind::Bool, "Fail rather than wait (RWF_NOWAIT)")
    .lands_in_engine(|own, given| {
        match own.nowait() {
            Some(place) => *place = given.boolean()?,
            None => no_use_to_commands(given),
        }
        Ok(())
    });

pub(super) static URING: Definition =
    option("uring", Kind::Bool, "Act through io_uring, on as many names at once as iodepth says")
        .default("0")
        .lands_in_engine(|own, given| {
            *found(own.uring())? = given.boolean()?;
            Ok(())
        });

pub(super) static BIND: Definition = option(
    "bind",
    Kind::Str,
    "Own addresses or interfaces to connect from, one for each worker: a list, 10.0.0.[1-8] for a range",
)
.lands_in_engine(|own, given| {
    let list = given.string()?;
    ranged(&list)?;
    *found(own.bind())? = list;
    Ok(())
});

/// Warns that an option of the kernel's reads and writes has no effect on commands that are passed through.
pub(super) fn no_use_to_commands(given: &mut Given<'_>) {
    let message = "has no effect: commands passed through to a device are not I/Os of the kernel, and have no such flag";
    given.notes.push(message.to_owned());
}

/// An option of commands that are passed through to a device. `io_uring` itself lists such options as well, but has no
/// use for them: they are accepted with a warning.
pub(super) fn passed_through(_: &mut dyn Places, given: &mut Given<'_>) -> Result<(), String> {
    match given.definition.kind {
        _ if !given.definition.keywords.is_empty() => drop(given.keyword()?),
        Kind::Int => drop(given.integer()?),
        Kind::Bool => drop(given.boolean()?),
        _ => drop(given.required()?),
    }
    if given.text != given.definition.default {
        let message = "has no effect: it is about commands passed through to a device (io_uring_cmd, sg)";
        given.notes.push(message.to_owned());
    }
    Ok(())
}

pub(super) static READFUA: Definition =
    option("readfua", Kind::Bool, "Set the force-unit-access bit of reads").default("0").lands_in_engine(
        |own, given| match own.readfua() {
            Some(place) => {
                *place = given.boolean()?;
                Ok(())
            }
            None => passed_through(own, given),
        },
    );

pub(super) static WRITEFUA: Definition =
    option("writefua", Kind::Bool, "Set the force-unit-access bit of writes").default("0").lands_in_engine(
        |own, given| match own.writefua() {
            Some(place) => {
                *place = given.boolean()?;
                Ok(())
            }
            None => passed_through(own, given),
        },
    );
