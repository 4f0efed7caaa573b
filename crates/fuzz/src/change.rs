//! Changes inputs.

/// Numbers that look random, the same for the same seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// From a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Values at which parsers and their arithmetic turn.
const LIMITS: [u64; 12] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX - 4095,
    u64::MAX,
];

/// The same in text.
const NUMBERS: [&str; 8] =
    ["0", "-1", "4294967296", "9223372036854775807", "18446744073709551616", "1e308", "0x", "007"];

/// Makes new inputs of old ones.
#[derive(Debug)]
pub struct Changer<'a> {
    rng: Rng,
    words: &'a [&'a str],
    largest: usize,
}

impl<'a> Changer<'a> {
    /// With words of the format. Inputs have at most `largest` bytes.
    pub fn new(seed: u64, words: &'a [&'a str], largest: usize) -> Changer<'a> {
        Changer { rng: Rng::new(seed), words, largest }
    }

    /// A changed input of the corpus, which is not empty.
    pub fn next(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = corpus[self.rng.below(corpus.len())].clone();
        for _ in 0..=self.rng.below(6) {
            self.change(&mut input, corpus);
        }
        input.truncate(self.largest);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.rng.below(input.len() + 1);
        match self.rng.below(9) {
            0 => self.over(input, at, |byte, rng| byte ^ 1 << rng.below(8)),
            1 => self.over(input, at, |_, rng| rng.below(256) as u8),
            2 => self.limit(input, at),
            3 => input.truncate(at),
            4 => {
                let end = at + self.rng.below((input.len() - at).min(64) + 1);
                input.drain(at..end);
            }
            5 => {
                let other = &corpus[self.rng.below(corpus.len())];
                let from = self.rng.below(other.len() + 1);
                let part = &other[from..from + self.rng.below((other.len() - from).min(256) + 1)];
                input.splice(at..at, part.iter().copied());
            }
            6 => {
                let end = at + self.rng.below((input.len() - at).min(32) + 1);
                // Often a few times, seldom many.
                let most = if self.rng.below(16) == 0 { 200 } else { 4 };
                let times = 1 + self.rng.below(most);
                let part = input[at..end].repeat(times);
                input.splice(at..at, part);
            }
            7 if !self.words.is_empty() => {
                let word = self.words[self.rng.below(self.words.len())];
                input.splice(at..at, word.bytes());
            }
            _ => {
                let number = NUMBERS[self.rng.below(NUMBERS.len())];
                input.splice(at..at, number.bytes());
            }
        }
    }

    fn over(&mut self, input: &mut [u8], at: usize, change: impl Fn(u8, &mut Rng) -> u8) {
        if let Some(byte) = input.get_mut(at) {
            *byte = change(*byte, &mut self.rng);
        }
    }

    /// A number of some width, at an even place, in either byte order.
    fn limit(&mut self, input: &mut [u8], at: usize) {
        let width = [1, 2, 4, 8][self.rng.below(4)];
        let at = at / width * width;
        let value = LIMITS[self.rng.below(LIMITS.len())];
        let Some(place) = input.get_mut(at..at + width) else { return };
        if self.rng.below(2) == 0 {
            place.copy_from_slice(&value.to_le_bytes()[..width]);
        } else {
            place.copy_from_slice(&value.to_be_bytes()[8 - width..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_many() {
        let corpus = [b"[job]\nbs=4k\n".to_vec(), Vec::new()];
        let inputs = |seed| {
            let mut changer = Changer::new(seed, &["rw=read"], 100);
            (0..500).map(|_| changer.next(&corpus)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        assert!(inputs(1).iter().collect::<HashSet<_>>().len() > 300);
        assert!(inputs(1).iter().all(|input| input.len() <= 100));
    }
}
