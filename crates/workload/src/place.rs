//! A place for an I/O in a region.

use crate::{rng::Rng, sizes::Sizes};

/// A place for an I/O, in bytes from the start of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

impl Place {
    /// A place in a region of `length` bytes, at any multiple of `align` where the smallest size fits; `None` where it
    /// fits nowhere.
    #[inline(always)]
    pub(crate) fn at_random(
        length: u64,
        align: u64,
        sizes: &Sizes,
        offsets: &mut Rng,
        lengths: &mut Rng,
    ) -> Option<Place> {
        let slots = length.checked_sub(sizes.min())? / align + 1;
        let offset = offsets.below(slots) * align;
        Some(Place { offset, length: sizes.draw(lengths, length - offset) })
    }
}
