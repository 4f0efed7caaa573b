//! Verification by the storage: it gets what a block should be, and says whether it is that.

use crate::block::{Identity, Stamper};

/// What a storage has said about a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compared {
    /// Nothing: it was read.
    #[default]
    No,
    /// It is what it should be.
    Same,
    /// It is not, and has been read then.
    Different,
}

/// The comparisons of a worker.
#[derive(Debug)]
pub(crate) struct Comparisons {
    stamper: Stamper,
    /// What is said of the block of each unit, if it is complete.
    units: Vec<Compared>,
}

impl Comparisons {
    /// For so many units, of blocks like those that this makes.
    pub(crate) fn new(stamper: Stamper, units: usize) -> Comparisons {
        Comparisons { stamper, units: vec![Compared::No; units] }
    }

    /// Puts what a block should be into the buffer of a unit: what was written, or zeros.
    pub(crate) fn prepare(&mut self, index: u32, buffer: &mut [u8], written: Option<&Identity>) {
        match written {
            Some(identity) => self.stamper.stamp(buffer, identity),
            None => buffer.fill(0),
        }
        self.units[index as usize] = Compared::Same;
    }

    /// This unit is something else.
    pub(crate) fn forget(&mut self, index: u32) {
        self.units[index as usize] = Compared::No;
    }

    /// What is said of the block of this unit.
    pub(crate) fn of(&self, index: u32) -> Compared {
        self.units[index as usize]
    }

    /// The block of this unit differs. Whether it was compared.
    pub(crate) fn differs(&mut self, index: u32) -> bool {
        let unit = &mut self.units[index as usize];
        let was_compared = *unit == Compared::Same;
        if was_compared {
            *unit = Compared::Different;
        }
        was_compared
    }
}
