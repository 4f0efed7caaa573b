//! Options that fio does not have.

use crate::definition::{Category, Definition, Kind};

const fn own(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::job(name, Category::Own, kind, help)
}

/// What only Iolite measures.
pub static OWN: &[Definition] = &[own(
    "lat_from_intended_start",
    Kind::Bool,
    "Measure latency also from when the rate wanted an I/O to begin, however late it did (ilat)",
)
.default("0")
.lands(put!(lat_from_intended_start, boolean()))];
