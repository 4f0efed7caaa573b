//! The numbers of a case.

/// The numbers of each side, in the order of the rounds. The second list is empty if there is nothing to compare with.
pub type Samples = [Vec<f64>; 2];
