//! Options of `gfapi` and `gfapi_async`.

use crate::definition::{Definition, Kind};

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static VOLUME: Definition = option("volume", Kind::Str, "GlusterFS volume");
static BRICK: Definition = option("brick", Kind::Str, "Server of the volume");
static SINGLE_INSTANCE: Definition = option("single-instance", Kind::Bool, "One connection for all workers");

/// `gfapi` and `gfapi_async`
pub static GFAPI: &[&Definition] = &[&VOLUME, &BRICK, &SINGLE_INSTANCE];
