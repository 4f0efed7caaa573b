//! The generators as their users see them: against the reference's order, by counting visits, by properties.

mod common;
mod offsets;
mod properties;
mod reference;
mod visits;
