//! Random places of several sizes over one range. Each byte is visited once as long as that is possible (see
//! [`coverage`](crate::coverage)).
//!
//! A size is drawn as if nothing had been visited, and then cut to the gap. If it were drawn among the sizes that fit,
//! the small sizes would take over as the range fills. So a job with `bssplit` keeps its shares to the end, but a few
//! I/Os have other multiples of its smallest size. fio 3.33 does the same.
//!
//! Places are chosen a few I/Os ahead. The part of the map that an I/O needs is then prefetched while the I/Os before
//! it are issued: the map of a large device does not fit into the processor's caches.

use crate::{
    Error,
    bitmap::Bitmap,
    place::Place,
    rng::{Rng, scale},
    sizes::Sizes,
};

/// The blocks of a range that have not been visited yet.
#[derive(Clone, Debug)]
pub(crate) struct Unvisited {
    map: Bitmap,
    block: Block,
    length: u64,
    /// The places of the next I/Os as fractions of the range, in units of 2^-64; the next one is at `turn`.
    ahead: [u64; AHEAD],
    turn: usize,
    /// How many entries of `ahead` have been drawn.
    drawn: usize,
}

/// An access to memory takes about 100 ns, and an I/O without a device a third of that.
const AHEAD: usize = 4;

/// The size of the map's blocks. It is nearly always a power of two, which saves the divisions.
#[derive(Clone, Copy, Debug)]
struct Block {
    size: u64,
    shift: Option<u32>,
}

impl Block {
    fn new(size: u64) -> Block {
        Block { size, shift: size.is_power_of_two().then(|| size.trailing_zeros()) }
    }

    /// The number of whole blocks in `bytes` bytes.
    #[inline(always)]
    fn whole(self, bytes: u64) -> u64 {
        match self.shift {
            Some(shift) => bytes >> shift,
            None => bytes / self.size,
        }
    }

    /// The number of blocks that the first `bytes` bytes (at least 1) touch.
    #[inline(always)]
    fn touched(self, bytes: u64) -> u64 {
        self.whole(bytes - 1) + 1
    }
}

impl Unvisited {
    /// A map of the first `blocks` blocks of `block` bytes in a range of `length` bytes; none has been visited. Fails when
    /// there is no memory for the map.
    pub(crate) fn new(length: u64, blocks: u64, block: u64) -> Result<Unvisited, Error> {
        Ok(Unvisited {
            map: Bitmap::new(blocks)?,
            block: Block::new(block),
            length,
            ahead: [0; AHEAD],
            turn: 0,
            drawn: 0,
        })
    }

    /// Forgets all visits.
    pub(crate) fn clear(&mut self) {
        self.map.clear();
    }

    /// Forgets the places chosen ahead, so that the sequence can be repeated from its beginning.
    pub(crate) fn rewind(&mut self) {
        self.drawn = 0;
    }

    /// The place of the next I/O as a fraction of the range. Draws another place ahead and prefetches its part of the
    /// map.
    #[inline(always)]
    fn draw(&mut self, offsets: &mut Rng) -> u64 {
        while self.drawn < AHEAD {
            self.ahead[self.drawn] = offsets.next_u64();
            self.drawn += 1;
            self.turn = 0;
        }
        let next = offsets.next_u64();
        self.map.prefetch(scale(next, self.map.length()));
        let fraction = std::mem::replace(&mut self.ahead[self.turn], next);
        self.turn = (self.turn + 1) % AHEAD;
        fraction
    }

    /// Finds the first unvisited place at or after a random one and marks it as visited. If these sizes find no such
    /// place, any place will do. `None` if every block has been visited.
    #[inline(always)]
    pub(crate) fn next(&mut self, sizes: &Sizes, offsets: &mut Rng, lengths: &mut Rng) -> Option<Place> {
        if self.map.free() == 0 {
            return None;
        }
        let fraction = self.draw(offsets);
        if sizes.min() == self.block.size {
            return self.at_a_block(fraction, sizes, lengths);
        }
        let place = self.at_a_multiple(fraction, sizes, lengths);
        place.or_else(|| Place::at_random(self.length, sizes.min(), sizes, offsets, lengths))
    }

    /// For I/Os that begin at any block of the map. The map ends where the last I/O fits.
    #[inline(always)]
    fn at_a_block(&mut self, fraction: u64, sizes: &Sizes, lengths: &mut Rng) -> Option<Place> {
        let block = self.block;
        let free = self.map.next_free(scale(fraction, self.map.length()))?;
        let offset = free * block.size;
        let drawn = sizes.draw(lengths, self.length - offset);
        let run = self.map.free_run(free, block.touched(drawn));
        let length = drawn.min(run * block.size);
        self.map.visit_free(free, run);
        Some(Place { offset, length })
    }

    /// For I/Os that begin at multiples of their own smallest size. They may overlap others if the gap is smaller than
    /// that size.
    fn at_a_multiple(&mut self, fraction: u64, sizes: &Sizes, lengths: &mut Rng) -> Option<Place> {
        let Unvisited { map, block, length, .. } = self;
        let (block, smallest) = (*block, sizes.min());
        let slots = *length / smallest;
        let start = block.whole(scale(fraction, slots) * smallest);
        let fits = |free: &u64| *free * block.size / smallest < slots;
        let free = map.next_free(start).filter(fits).or_else(|| map.next_free(0).filter(fits))?;
        let offset = free * block.size / smallest * smallest;
        let drawn = sizes.draw(lengths, *length - offset);
        let run = map.free_run(free, block.touched(drawn));
        let gap = (free + run) * block.size - offset;
        let length = if gap < drawn { (gap / smallest * smallest).max(smallest) } else { drawn };
        map.visit(block.whole(offset), block.touched(length));
        Some(Place { offset, length })
    }
}
