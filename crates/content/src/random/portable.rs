//! The round of AES by tables, for processors without an instruction for it, and for single blocks.

use super::{BLOCK, KEY, STEP, State};

/// For each byte, what it adds to a column as its first, second, third and fourth byte: the S-box, and the products with
/// the numbers of MixColumns.
static TABLES: [[u32; 256]; 4] = tables();

/// Twice this element of the field of AES.
const fn double(byte: u8) -> u8 {
    (byte << 1) ^ ((byte >> 7) * 0x1b)
}

const fn tables() -> [[u32; 256]; 4] {
    // The powers of the generator 3, so that the inverse of the n-th one is the (255 - n)-th.
    let mut powers = [1u8; 256];
    let mut n = 1;
    while n < 256 {
        powers[n] = powers[n - 1] ^ double(powers[n - 1]);
        n += 1;
    }
    let mut tables = [[0; 256]; 4];
    let mut n = 0;
    while n < 256 {
        // (0 has no inverse, and stays 0.)
        let (byte, inverse) = if n < 255 { (powers[n], powers[255 - n]) } else { (0, 0) };
        let turned =
            inverse.rotate_left(1) ^ inverse.rotate_left(2) ^ inverse.rotate_left(3) ^ inverse.rotate_left(4);
        let sub = inverse ^ turned ^ 0x63;
        let column = u32::from_le_bytes([double(sub), sub, sub, double(sub) ^ sub]);
        let mut row = 0;
        while row < 4 {
            tables[row as usize][byte as usize] = column.rotate_left(8 * row);
            row += 1;
        }
        n += 1;
    }
    tables
}

/// One round of a block: SubBytes, ShiftRows, MixColumns, AddRoundKey.
#[inline]
pub(super) fn round(block: [u64; 2]) -> [u64; 2] {
    let block = u128::from(block[0]) | u128::from(block[1]) << 64;
    let byte = |row: usize, column: usize| (block >> (32 * (column % 4) + 8 * row)) as u8;
    let column = |column: usize| {
        let added = |row: usize| TABLES[row][usize::from(byte(row, column + row))];
        u64::from(added(0) ^ added(1) ^ added(2) ^ added(3))
    };
    [(column(0) | column(1) << 32) ^ KEY[0], (column(2) | column(3) << 32) ^ KEY[1]]
}

/// One round of all blocks.
fn step(state: &mut State) {
    for block in state.as_chunks_mut::<BLOCK>().0 {
        let (words, _) = block.as_chunks_mut::<8>();
        let next = round([u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]);
        words.iter_mut().zip(next).for_each(|(place, word)| *place = word.to_le_bytes());
    }
}

/// See [`Random::fill_beginnings`](super::Random::fill_beginnings).
pub(super) fn fill_beginnings(
    state: &mut State,
    buffer: &mut [u8],
    chunk: usize,
    random: impl Fn(usize) -> usize,
) {
    for chunk in buffer.chunks_mut(chunk) {
        let length = random(chunk.len());
        for place in chunk[..length].chunks_mut(STEP) {
            step(state);
            place.copy_from_slice(&state[..place.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first round of the example in FIPS 197, appendix B.
    #[test]
    fn a_round_is_that_of_the_standard() {
        let words = |bytes: u128| {
            let bytes = bytes.to_be_bytes();
            let (words, _) = bytes.as_chunks::<8>();
            [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
        };
        let key = words(0xa0fa_fe17_8854_2cb1_23a3_3939_2a6c_7605);
        let after = round(words(0x193d_e3be_a0f4_e22b_9ac6_8d2a_e9f8_4808));
        let without_key = [after[0] ^ KEY[0], after[1] ^ KEY[1]];
        let expected = words(0xa49c_7ff2_689f_352b_6b5b_ea43_026a_5049);
        assert_eq!([without_key[0] ^ key[0], without_key[1] ^ key[1]], expected);
    }
}
