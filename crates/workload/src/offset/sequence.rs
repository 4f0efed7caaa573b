//! A list of blocks that repeats (`random_distribution=sequence:4,0,2`).
//!
//! The numbers are blocks from the start of the region, in units of the alignment of random offsets (the block size).
//! With `random_sequence_stride`, each repetition starts where the last one ended: the list moves by its span, which is
//! the highest number plus one, and returns to the start of the region when it no longer fits. So the list gives the
//! order of the blocks within a chunk, and the chunks follow each other: `sequence:1,0` with strides gives 1, 0, 3, 2,
//! 5, 4, … Numbers beyond the region wrap around to its start. Each direction has its own position in the list.

use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    blocks: Arc<[u64]>,
    next: usize,
    /// The start of the current repetition.
    start: u64,
    /// The last start at which the list fits.
    last_start: u64,
    span: u64,
}

impl Sequence {
    /// The list for a region of `slots` slots; `None` if the list is empty.
    pub(crate) fn new(blocks: &[u64], stride: bool, slots: u64) -> Option<Sequence> {
        let highest = blocks.iter().max()?;
        let span = if stride { highest.saturating_add(1) } else { 0 };
        let blocks = blocks.iter().map(|block| block % slots).collect();
        Some(Sequence { blocks, next: 0, start: 0, last_start: slots.saturating_sub(span), span })
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        let slot = self.start + self.blocks[self.next];
        self.next += 1;
        if self.next == self.blocks.len() {
            self.next = 0;
            self.start += self.span;
            if self.start > self.last_start {
                self.start = 0;
            }
        }
        slot
    }

    pub(crate) fn restart(&mut self) {
        self.next = 0;
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(blocks: &[u64], stride: bool, slots: u64, count: usize) -> Vec<u64> {
        let mut sequence = Sequence::new(blocks, stride, slots).unwrap();
        (0..count).map(|_| sequence.next()).collect()
    }

    #[test]
    fn the_list_repeats() {
        assert_eq!(order(&[4, 0, 2], false, 8, 7), [4, 0, 2, 4, 0, 2, 4]);
        assert_eq!(order(&[9, 0], false, 8, 4), [1, 0, 1, 0]);
    }

    #[test]
    fn with_strides_it_moves_on_as_long_as_it_fits() {
        assert_eq!(order(&[1, 0], true, 6, 8), [1, 0, 3, 2, 5, 4, 1, 0]);
        assert_eq!(order(&[1, 0], true, 5, 6), [1, 0, 3, 2, 1, 0]);
        assert_eq!(order(&[2, 0], true, 7, 6), [2, 0, 5, 3, 2, 0]);
        assert_eq!(order(&[9, 0], true, 8, 4), [1, 0, 1, 0], "larger than the region");
    }
}
