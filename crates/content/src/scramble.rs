//! Makes every sector of every write unique, at the cost of one store per sector.
//!
//! The first eight bytes of each 512 become the next number of a sequence that does not repeat (a counter, mapped by
//! SplitMix64's bijection so that it looks random). The rest stays as it is: compressible data stays compressible, but
//! no two sectors are identical.

use crate::random::mix;

const SECTOR: usize = 512;

/// The sequence of numbers of a worker.
#[derive(Clone, Debug)]
pub(crate) struct Scrambler {
    counter: u64,
}

impl Scrambler {
    pub(crate) fn new(seed: u64) -> Self {
        // Far away from the start of the random data with the same seed.
        Scrambler { counter: mix(!seed) }
    }

    /// Changes the first bytes of each sector.
    #[inline]
    pub(crate) fn scramble(&mut self, buffer: &mut [u8]) {
        for sector in buffer.chunks_mut(SECTOR) {
            let stamp = mix(self.counter).to_le_bytes();
            self.counter = self.counter.wrapping_add(1);
            match sector.first_chunk_mut::<8>() {
                Some(place) => *place = stamp,
                None => sector.copy_from_slice(&stamp[..sector.len()]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sector_is_stamped_once() {
        for size in [0, 5, 8, 512, 515, 4096, 5000] {
            let mut buffer = vec![0; size];
            Scrambler::new(1).scramble(&mut buffer);
            for sector in buffer.chunks(SECTOR) {
                let stamp = sector.len().min(8);
                assert!(sector[..stamp].iter().any(|&byte| byte != 0));
                assert!(sector[stamp..].iter().all(|&byte| byte == 0));
            }
        }
    }
}
