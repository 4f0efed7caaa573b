//! Sweeps: one workload with many values of some options.
//!
//! The points follow from the requested values ([`Axis`], [`points`]). The measurements of a point come from its report
//! ([`Figures`]). The joint result of a curve, where it saturates (the knee), comes from
//! [`saturation`] in `curve.rs`, and the law of scaling that fits it from `law.rs`; stages over depth and the rate that follows from them
//! are in `stages.rs`. This crate runs no jobs
//! and reads no files.

mod axis;
mod curve;
mod figures;
mod law;
mod stages;

pub use axis::{Axis, MOST_POINTS, Point, points};
pub use curve::{Knee, Saturation, Tie, saturation};
pub use figures::{Figures, little};
pub use law::{Law, fit};
pub use stages::{Follows, StageMeans, StageModel};
