//! Sweeps: one workload with many values of some options.
//!
//! Which points there are comes from the values that were asked for ([`Axis`], [`points`]). What a point measured comes from its
//! report ([`Figures`]). What the points of a curve say together, where it saturates, comes from [`saturation`]. Nothing here runs
//! anything or reads a file.

mod axis;
mod curve;
mod figures;
mod law;

pub use axis::{Axis, MOST_POINTS, Point, points};
pub use curve::{Knee, Saturation, saturation};
pub use figures::{Figures, little};
pub use law::{Law, fit};
