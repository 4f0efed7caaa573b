//! Tests of the generators through their public interface: the order compared with the reference, counts of visits, and
//! properties.

mod common;
mod offsets;
mod properties;
mod reference;
mod visits;
