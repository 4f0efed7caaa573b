//! Fast formatting of decimal numbers: at full speed, a log has tens of millions of them per second.

/// The digits of 00 to 99.
static PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        pairs[number * 2] = b'0' + (number / 10) as u8;
        pairs[number * 2 + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
};

/// The most digits that a number can have.
pub const MOST_DIGITS: usize = 20;

/// Writes a number to the beginning of `out`, which must have room for [`MOST_DIGITS`]. Returns the number of digits.
#[inline(always)]
pub fn put(out: &mut [u8], value: u64) -> usize {
    let count = value.checked_ilog10().unwrap_or(0) as usize + 1;
    let out = &mut out[..count];
    let mut at = count;
    // Nearly all values fit in 32 bits, and dividing those is faster.
    let Ok(mut rest) = u32::try_from(value) else {
        put_large(out, value);
        return count;
    };
    while rest >= 100 {
        at -= 2;
        out[at..at + 2].copy_from_slice(pair(rest % 100));
        rest /= 100;
    }
    if rest >= 10 {
        out[..2].copy_from_slice(pair(rest));
    } else {
        out[0] = b'0' + rest as u8;
    }
    count
}

/// Writes a number that does not fit in 32 bits into exactly as many bytes as it has digits.
fn put_large(out: &mut [u8], mut value: u64) {
    let mut at = out.len();
    while at >= 2 {
        at -= 2;
        out[at..at + 2].copy_from_slice(pair((value % 100) as u32));
        value /= 100;
    }
    if at == 1 {
        out[0] = b'0' + value as u8;
    }
}

#[inline(always)]
fn pair(number: u32) -> &'static [u8] {
    &PAIRS[number as usize * 2..number as usize * 2 + 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: u64) -> String {
        let mut out = [b'x'; MOST_DIGITS];
        let count = put(&mut out, value);
        String::from_utf8(out[..count].to_vec()).unwrap()
    }

    #[test]
    fn every_number_of_digits() {
        for power in 0..20 {
            let value = 10u64.pow(power);
            for value in [value - 1, value, value + 1] {
                assert_eq!(written(value), value.to_string());
            }
        }
        assert_eq!(written(u64::MAX), u64::MAX.to_string());
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn numbers_are_written_as_by_the_standard_library(value in any::<u64>(), shift in 0u32..64) {
            prop_assert_eq!(written(value >> shift), (value >> shift).to_string());
        }
    }
}
