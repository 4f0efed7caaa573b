//! Mutations of inputs: changes that often expose defects in parsers.

/// Numbers near limits.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "255",
    "256",
    "4096",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999999999999999999999",
];

/// A sequence of pseudo-random numbers (SplitMix64, by Steele, Lea and Flood).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }
}

/// Mutates an input once. `other` is an input to take parts of; `words` are words that such inputs contain.
pub fn once(input: &mut Vec<u8>, other: &[u8], words: &[&str], random: &mut Random) {
    match random.below(10) {
        0 => flip(input, random),
        1 => overwrite(input, random),
        2 => remove(input, random),
        3 => repeat(input, random),
        4 => splice(input, other, random),
        5 => extreme_number(input, random),
        6 => {
            let end = random.below(input.len() + 1);
            input.truncate(end);
        }
        7 => {
            let byte = [random.number() as u8];
            insert(input, &byte, random);
        }
        _ if words.is_empty() => flip(input, random),
        _ => insert(input, words[random.below(words.len())].as_bytes(), random),
    }
}

fn flip(input: &mut [u8], random: &mut Random) {
    if !input.is_empty() {
        let place = random.below(input.len());
        input[place] ^= 1 << random.below(8);
    }
}

/// Overwrites bytes with a binary number in either byte order.
fn overwrite(input: &mut [u8], random: &mut Random) {
    let width = [1, 2, 4, 8][random.below(4)];
    if input.len() < width {
        return;
    }
    let value = [0, 1, u64::MAX, i64::MAX as u64, 1 << 31, random.number()][random.below(6)];
    let place = random.below(input.len() - width + 1);
    let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
    let bytes = if random.below(2) == 0 { &little[..width] } else { &big[8 - width..] };
    input[place..place + width].copy_from_slice(bytes);
}

/// A random range below `length`.
fn range(length: usize, random: &mut Random) -> std::ops::Range<usize> {
    let (one, other) = (random.below(length + 1), random.below(length + 1));
    one.min(other)..one.max(other)
}

fn remove(input: &mut Vec<u8>, random: &mut Random) {
    let part = range(input.len(), random);
    // Mostly a short range, sometimes a long one.
    let end = if random.below(4) == 0 { part.end } else { part.end.min(part.start + 1 + random.below(8)) };
    input.drain(part.start..end.max(part.start));
}

fn repeat(input: &mut Vec<u8>, random: &mut Random) {
    let part = range(input.len(), random);
    let part = input[part.start..part.end.min(part.start + 64)].to_vec();
    for _ in 0..=random.below(4) {
        insert(input, &part, random);
    }
}

fn splice(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let part = &other[range(other.len(), random)];
    insert(input, part, random);
}

fn insert(input: &mut Vec<u8>, bytes: &[u8], random: &mut Random) {
    let place = random.below(input.len() + 1);
    input.splice(place..place, bytes.iter().copied());
}

/// Replaces a number in digits by another one.
fn extreme_number(input: &mut Vec<u8>, random: &mut Random) {
    let starts: Vec<usize> = (0..input.len())
        .filter(|&at| input[at].is_ascii_digit() && (at == 0 || !input[at - 1].is_ascii_digit()))
        .collect();
    if starts.is_empty() {
        return;
    }
    let start = starts[random.below(starts.len())];
    let length = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    input.splice(start..start + length, NUMBERS[random.below(NUMBERS.len())].bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_input_can_be_changed_and_the_same_seed_changes_it_alike() {
        let change = |seed| {
            let mut random = Random::new(seed);
            let mut input = Vec::new();
            for _ in 0..2000 {
                once(&mut input, b"size=4k 17", &["word"], &mut random);
                input.truncate(1000);
            }
            input
        };
        assert_eq!(change(3), change(3));
        assert_ne!(change(3), change(4));
    }
}
