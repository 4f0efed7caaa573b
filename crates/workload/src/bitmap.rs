//! A map of visited blocks, for workloads that a permutation cannot serve: I/Os of several sizes over one range.
//!
//! The lowest level has one bit per block. The level above has one bit per word of 64 blocks that are all visited, and
//! so on up to a level of a single word. So a few word operations find the next free block, even if one in a billion is
//! left. When every block has been visited, the meaning of the bits is reversed instead of clearing them, so starting
//! over costs nothing, however large the map is.

use crate::Error;
use crate::prefetch::prefetch;

/// The visited blocks of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    length: u64,
    free: u64,
    /// From the bits of the blocks up to the level of a single word.
    levels: Vec<Vec<u64>>,
    /// XORed with a stored word, gives 1 for "visited".
    reversed: u64,
}

/// The bits of a word from `bit` upwards.
#[inline(always)]
fn from_bit(bit: u64) -> u64 {
    u64::MAX << bit
}

impl Bitmap {
    /// A map of `length` blocks, none of them visited.
    ///
    /// # Errors
    ///
    /// [`Error::MapMemory`] if there is no memory for the map.
    pub fn new(length: u64) -> Result<Self, Error> {
        let mut levels = Vec::new();
        let mut bits = length.max(1);
        loop {
            let words = bits.div_ceil(64);
            let mut level = Vec::new();
            let size = usize::try_from(words).map_err(|_| Error::MapMemory { blocks: length })?;
            level.try_reserve_exact(size).map_err(|_| Error::MapMemory { blocks: length })?;
            level.resize(size, 0);
            levels.push(level);
            if words == 1 {
                break;
            }
            bits = words;
        }
        let mut map = Bitmap { length, free: length, levels, reversed: 0 };
        map.close_ends();
        Ok(map)
    }

    /// The number of blocks.
    #[inline]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The number of blocks that have not been visited.
    #[inline]
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Forgets all visits. Costs nothing when all blocks have been visited.
    pub fn clear(&mut self) {
        if self.free == 0 {
            self.reversed = !self.reversed;
        } else if self.free < self.length {
            self.reversed = 0;
            for level in &mut self.levels {
                level.fill(0);
            }
        }
        self.free = self.length;
        self.close_ends();
    }

    /// Marks the bits beyond the end of each level as visited, so that no search finds them.
    fn close_ends(&mut self) {
        let mut bits = self.length;
        for level in &mut self.levels {
            let words = level.len() as u64;
            let used = bits - (words - 1) * 64;
            if let (Some(last), Some(beyond)) = (level.last_mut(), u64::MAX.checked_shl(used as u32)) {
                *last = if self.reversed == 0 { *last | beyond } else { *last & !beyond };
            }
            bits = words;
        }
    }

    /// The bits of a word that are visited.
    #[inline(always)]
    fn visited(&self, level: usize, index: usize) -> u64 {
        self.levels[level][index] ^ self.reversed
    }

    /// Prefetches the word of a block that will be needed soon.
    #[inline(always)]
    pub fn prefetch(&self, block: u64) {
        if let Some(word) = self.levels[0].get((block / 64) as usize) {
            prefetch(word);
        }
    }

    /// Whether a block has been visited.
    pub fn is_visited(&self, block: u64) -> bool {
        self.visited(0, (block / 64) as usize) >> (block % 64) & 1 == 1
    }

    /// The first free block at or after `start`, or else the first free block of all; `None` if no block is free.
    #[inline(always)]
    pub fn next_free(&self, start: u64) -> Option<u64> {
        if self.free == 0 {
            return None;
        }
        let index = start / 64;
        if let Some(word) = self.levels[0].get(index as usize) {
            let candidates = !(word ^ self.reversed) & from_bit(start % 64);
            if candidates != 0 {
                return Some(index * 64 + u64::from(candidates.trailing_zeros()));
            }
        }
        self.free_from(start).or_else(|| self.free_from(0))
    }

    /// The first free block at or after `start`.
    fn free_from(&self, start: u64) -> Option<u64> {
        let mut position = start;
        for level in 0..self.levels.len() {
            let index = (position / 64) as usize;
            if index >= self.levels[level].len() {
                return None;
            }
            let candidates = !self.visited(level, index) & from_bit(position % 64);
            if candidates != 0 {
                return Some(self.descend(level, index as u64 * 64 + u64::from(candidates.trailing_zeros())));
            }
            // Nothing in this word: ask the level above for the next word that is not full.
            position = index as u64 + 1;
        }
        None
    }

    /// Follows a bit of `level` that promises a free block down to that block.
    fn descend(&self, mut level: usize, mut position: u64) -> u64 {
        while level > 0 {
            level -= 1;
            let candidates = !self.visited(level, position as usize);
            position = position * 64 + u64::from(candidates.trailing_zeros());
        }
        position
    }

    /// The number of consecutive free blocks from `start` on, at most `limit`.
    #[inline(always)]
    pub fn free_run(&self, start: u64, limit: u64) -> u64 {
        if limit > 64 || start >= self.length {
            return self.long_free_run(start, limit);
        }
        // Combines the 64 bits from `start` on out of two words, without a branch.
        let (index, bit) = ((start / 64) as usize, start % 64);
        let words = &self.levels[0];
        let beyond = words.get(index + 1).map_or(u64::MAX, |word| word ^ self.reversed);
        let visited = (words[index] ^ self.reversed) >> bit | beyond << 1 << (63 - bit);
        u64::from(visited.trailing_zeros()).min(limit)
    }

    fn long_free_run(&self, start: u64, limit: u64) -> u64 {
        let end = start.saturating_add(limit).min(self.length);
        let mut position = start;
        while position < end {
            let visited = self.visited(0, (position / 64) as usize) & from_bit(position % 64);
            if visited != 0 {
                position = (position / 64 * 64 + u64::from(visited.trailing_zeros())).min(end);
                break;
            }
            position = (position / 64 + 1) * 64;
        }
        position.min(end).saturating_sub(start)
    }

    /// Marks `count` blocks from `start` on as visited; blocks beyond the end are ignored.
    #[inline]
    pub fn visit(&mut self, start: u64, count: u64) {
        let end = start.saturating_add(count).min(self.length);
        let mut position = start;
        while position < end {
            let index = (position / 64) as usize;
            let next = ((position / 64 + 1) * 64).min(end);
            let upper = if next.is_multiple_of(64) { u64::MAX } else { !from_bit(next % 64) };
            let bits = from_bit(position % 64) & upper;
            let fresh = bits & !self.visited(0, index);
            self.free -= u64::from(fresh.count_ones());
            self.mark(0, index, bits);
            position = next;
        }
    }

    /// Marks `count` blocks from `start` on as visited. All of them must exist and be free.
    #[inline(always)]
    pub fn visit_free(&mut self, start: u64, count: u64) {
        if count == 0 || count > 64 {
            return self.visit(start, count);
        }
        let (index, bit) = ((start / 64) as usize, start % 64);
        let bits = u64::MAX >> (64 - count);
        self.free -= count;
        self.flip(index, bits << bit);
        let beyond = bits >> 1 >> (63 - bit);
        if beyond != 0 {
            self.flip(index + 1, beyond);
        }
    }

    /// Marks free blocks of one word as visited. Flipping their bits does this, whether the meaning is reversed or not.
    #[inline(always)]
    fn flip(&mut self, index: usize, bits: u64) {
        let word = &mut self.levels[0][index];
        *word ^= bits;
        if *word ^ self.reversed == u64::MAX && self.levels.len() > 1 {
            self.mark(1, index / 64, 1 << (index % 64));
        }
    }

    /// Marks bits of a word as visited, and if that fills the word, its bit on the level above.
    fn mark(&mut self, mut level: usize, mut index: usize, mut bits: u64) {
        loop {
            // "Visited" is stored as 1, or as 0 when reversed.
            let word = &mut self.levels[level][index];
            *word = if self.reversed == 0 { *word | bits } else { *word & !bits };
            if level + 1 == self.levels.len() || self.visited(level, index) != u64::MAX {
                return;
            }
            level += 1;
            bits = 1 << (index % 64);
            index /= 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Visit(u64, u64),
        Clear,
    }

    fn steps(length: u64) -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            20 => (0..length, 1..200u64).prop_map(|(start, count)| Step::Visit(start, count)),
            1 => Just(Step::Clear),
            1 => Just(Step::Visit(0, u64::MAX)),
        ];
        proptest::collection::vec(step, 1..60)
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        /// Compares the map with a plain vector of booleans, for lengths of one, two and three levels.
        #[test]
        fn behaves_like_a_vector_of_booleans(
            (length, steps) in prop_oneof![1u64..70, 1u64..5000, 4090u64..4100]
                .prop_flat_map(|length| (Just(length), steps(length))),
            probes in proptest::collection::vec((any::<u64>(), 1u64..300), 10),
        ) {
            let mut map = Bitmap::new(length).unwrap();
            let mut model = vec![false; length as usize];
            for step in steps {
                match step {
                    Step::Clear => {
                        map.clear();
                        model.fill(false);
                    }
                    Step::Visit(start, count) => {
                        map.visit(start, count);
                        let end = start.saturating_add(count).min(length);
                        model[start as usize..end as usize].fill(true);
                    }
                }
                prop_assert_eq!(map.free(), model.iter().filter(|v| !**v).count() as u64);
                for &(probe, limit) in &probes {
                    let start = probe % length;
                    let expected = (start..length).chain(0..start).find(|&b| !model[b as usize]);
                    prop_assert_eq!(map.next_free(start), expected);
                    let run = (start..length).take(limit as usize).take_while(|&b| !model[b as usize]).count();
                    prop_assert_eq!(map.free_run(start, limit), run as u64);
                    let mut marked = map.clone();
                    marked.visit(start, run as u64);
                    let mut flipped = map.clone();
                    flipped.visit_free(start, run as u64);
                    prop_assert_eq!(flipped, marked);
                    prop_assert_eq!(map.is_visited(start), model[start as usize]);
                }
            }
        }
    }

    #[test]
    fn the_last_free_block_of_many_is_found_from_anywhere() {
        let length = 10_000_000;
        let mut map = Bitmap::new(length).unwrap();
        map.visit(0, 7_654_321);
        map.visit(7_654_322, length);
        for start in [0, 7_654_320, 7_654_321, 7_654_322, length - 1] {
            assert_eq!(map.next_free(start), Some(7_654_321));
        }
        map.visit(7_654_321, 1);
        assert_eq!(map.next_free(0), None);
        map.clear();
        assert_eq!(map.free(), length);
        assert_eq!(map.next_free(5), Some(5));
    }

    #[test]
    fn a_map_that_cannot_be_had_is_an_error() {
        assert!(matches!(Bitmap::new(u64::MAX), Err(Error::MapMemory { .. })));
    }

    #[test]
    fn an_empty_map_has_nothing_free() {
        assert_eq!(Bitmap::new(0).unwrap().next_free(0), None);
    }
}
