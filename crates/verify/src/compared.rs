//! Verification by the storage: it gets the expected content of a block, and reports whether it matches.

use crate::block::{Identity, Stamper};

/// The result of a storage's comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compared {
    /// No comparison: the block was read.
    #[default]
    No,
    /// The block has the expected content.
    Same,
    /// The block differs, and has then been read.
    Different,
}

/// The comparisons of a worker.
#[derive(Debug)]
pub(crate) struct Comparisons {
    stamper: Stamper,
    /// The result for the block of each unit that is complete.
    units: Vec<Compared>,
}

impl Comparisons {
    /// Comparisons for this many units, with blocks made by this stamper.
    pub(crate) fn new(stamper: Stamper, units: usize) -> Comparisons {
        Comparisons { stamper, units: vec![Compared::No; units] }
    }

    /// Puts the expected content of a block into the buffer of a unit: the written data, or zeros.
    pub(crate) fn prepare(&mut self, index: u32, buffer: &mut [u8], written: Option<&Identity>) {
        match written {
            Some(identity) => self.stamper.stamp(buffer, identity),
            None => buffer.fill(0),
        }
        self.units[index as usize] = Compared::Same;
    }

    /// This unit is not a comparison.
    pub(crate) fn forget(&mut self, index: u32) {
        self.units[index as usize] = Compared::No;
    }

    /// The result for the block of this unit.
    pub(crate) fn of(&self, index: u32) -> Compared {
        self.units[index as usize]
    }

    /// The block of this unit differs. Returns whether it was compared.
    pub(crate) fn differs(&mut self, index: u32) -> bool {
        let unit = &mut self.units[index as usize];
        let was_compared = *unit == Compared::Same;
        if was_compared {
            *unit = Compared::Different;
        }
        was_compared
    }
}
