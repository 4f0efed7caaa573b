//! Substitution in job files: `${NAME}` from the environment, and the reserved words `$pagesize`, `$mb_memory`
//! and `$ncpus` with simple maths.
//!
//! A reserved word is replaced wherever it occurs. If the whole resulting value is arithmetic (`8*$mb_memory`,
//! `($ncpus+1)/2`), it is computed; any other text (`/data/$ncpus-a`) is not computed. Division drops the fraction, as
//! in fio.

use crate::system_variables::MachineFacts;

/// Replaces every `${NAME}` by its value in `environment`; an unknown name becomes empty.
///
/// Also returns the unknown names.
pub(crate) fn environment(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> (String, Vec<String>) {
    let mut result = String::with_capacity(text.len());
    let mut unknown = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start + 2..].find('}') else {
            break;
        };
        let name = &rest[start + 2..start + 2 + length];
        result.push_str(&rest[..start]);
        match environment(name) {
            Some(value) => result.push_str(&value),
            None => unknown.push(name.to_owned()),
        }
        rest = &rest[start + 2 + length + 1..];
    }
    result.push_str(rest);
    (result, unknown)
}

/// Replaces the reserved words in a value, and computes the value if it is arithmetic.
///
/// # Errors
/// The arithmetic has no result: a division by zero, or a number out of range.
pub(crate) fn reserved_words(value: &str, facts: &MachineFacts) -> Result<String, String> {
    if !value.contains('$') {
        return Ok(value.to_owned());
    }
    let words =
        [("$pagesize", facts.page_size), ("$mb_memory", facts.memory_mebibytes), ("$ncpus", facts.cpus)];
    let mut replaced = value.to_owned();
    for (word, number) in words {
        replaced = replaced.replace(word, &number.to_string());
    }
    let is_unchanged = replaced == value;
    if is_unchanged || !replaced.contains(['+', '-', '*', '/', '%', '^']) {
        return Ok(replaced);
    }
    match Arithmetic::compute(&replaced) {
        Ok(number) => Ok(number.to_string()),
        Err(Failure::NotArithmetic) => Ok(replaced),
        Err(Failure::NoResult(reason)) => Err(format!("{replaced}: {reason}")),
    }
}

/// Numbers carry six decimal places, so that `0.5*$mb_memory` means half the memory.
const ONE: i128 = 1_000_000;
const MINUS_ONE: i128 = -ONE;
const DECIMALS: usize = 6;
/// No exponent above this is useful, except for 0, 1 and -1.
const MAX_EXPONENT: i128 = 256;
/// The limit on the nesting of parentheses and signs.
const MAX_DEPTH: u32 = 64;

enum Failure {
    NotArithmetic,
    NoResult(&'static str),
}

const OVERFLOW: Failure = Failure::NoResult("the result is too large");
const ZERO: Failure = Failure::NoResult("division by zero");

/// A recursive-descent calculator for + - * / % ^, parentheses, signs and decimal numbers.
struct Arithmetic<'a> {
    rest: &'a [u8],
    depth: u32,
}

impl<'a> Arithmetic<'a> {
    /// The value of the whole text, without its fraction.
    fn compute(text: &'a str) -> Result<i128, Failure> {
        let mut calculator = Arithmetic { rest: text.as_bytes(), depth: 0 };
        let value = calculator.sum()?;
        match calculator.peek() {
            None => Ok(value / ONE),
            Some(_) => Err(Failure::NotArithmetic),
        }
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        while let Some((b' ' | b'\t', rest)) = self.rest.split_first() {
            self.rest = rest;
        }
        self.rest.first().copied()
    }

    fn next_if(&mut self, wanted: impl Fn(u8) -> bool) -> Option<u8> {
        let byte = self.peek().filter(|&byte| wanted(byte))?;
        self.rest = &self.rest[1..];
        Some(byte)
    }

    fn sum(&mut self) -> Result<i128, Failure> {
        let mut left = self.product()?;
        while let Some(operator) = self.next_if(|byte| matches!(byte, b'+' | b'-')) {
            let right = self.product()?;
            left = if operator == b'+' { left.checked_add(right) } else { left.checked_sub(right) }
                .ok_or(OVERFLOW)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<i128, Failure> {
        let mut left = self.power()?;
        while let Some(operator) = self.next_if(|byte| matches!(byte, b'*' | b'/' | b'%')) {
            let right = self.power()?;
            left = match operator {
                b'*' => multiply(left, right)?,
                b'/' => left.checked_div(right).ok_or(ZERO)?.checked_mul(ONE).ok_or(OVERFLOW)?,
                _ => left.checked_rem(right).ok_or(ZERO)?,
            };
        }
        Ok(left)
    }

    /// Powers bind to the right: `2^3^2` is `2^9`.
    fn power(&mut self) -> Result<i128, Failure> {
        let base = self.operand()?;
        if self.next_if(|byte| byte == b'^').is_none() {
            return Ok(base);
        }
        let exponent = self.deeper(Self::power)? / ONE;
        if exponent < 0 {
            return Err(Failure::NoResult("a power must not be negative"));
        }
        match base {
            0 | ONE if exponent > 0 => Ok(base),
            MINUS_ONE => Ok(if exponent % 2 == 0 { ONE } else { MINUS_ONE }),
            _ if exponent > MAX_EXPONENT => Err(OVERFLOW),
            _ => (0..exponent).try_fold(ONE, |result, _| multiply(result, base)),
        }
    }

    fn operand(&mut self) -> Result<i128, Failure> {
        if self.next_if(|byte| byte == b'-').is_some() {
            return self.deeper(Self::operand)?.checked_neg().ok_or(OVERFLOW);
        }
        if self.next_if(|byte| byte == b'+').is_some() {
            return self.deeper(Self::operand);
        }
        if self.next_if(|byte| byte == b'(').is_some() {
            let value = self.deeper(Self::sum)?;
            self.next_if(|byte| byte == b')').ok_or(Failure::NotArithmetic)?;
            return Ok(value);
        }
        self.number()
    }

    fn deeper(&mut self, parse: impl Fn(&mut Self) -> Result<i128, Failure>) -> Result<i128, Failure> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Failure::NotArithmetic);
        }
        let value = parse(self);
        self.depth -= 1;
        value
    }

    fn number(&mut self) -> Result<i128, Failure> {
        self.peek();
        let whole = self.digits();
        let fraction = match self.rest.first() {
            Some(b'.') => {
                self.rest = &self.rest[1..];
                self.digits()
            }
            _ => &[],
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(Failure::NotArithmetic);
        }
        let places = fraction.iter().copied().chain(std::iter::repeat(b'0')).take(DECIMALS);
        let mut value: i128 = 0;
        for digit in whole.iter().copied().chain(places) {
            value = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(i128::from(digit - b'0')))
                .ok_or(OVERFLOW)?;
        }
        Ok(value)
    }

    fn digits(&mut self) -> &'a [u8] {
        let length = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        digits
    }
}

fn multiply(left: i128, right: i128) -> Result<i128, Failure> {
    left.checked_mul(right).map(|product| product / ONE).ok_or(OVERFLOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FACTS: MachineFacts = MachineFacts { page_size: 4096, memory_mebibytes: 24105, cpus: 2 };

    fn words(value: &str) -> String {
        reserved_words(value, &FACTS).unwrap()
    }

    fn expanded(text: &str) -> String {
        environment(text, &|name| (name == "FOO").then(|| "foo".to_owned())).0
    }

    // The output of fio with --showcmd on a machine with two CPUs and 24105 MiB.
    #[test]
    fn reserved_words_and_maths_are_those_of_fio() {
        assert_eq!(words("8*$mb_memory"), "192840");
        assert_eq!(words("$mb_memory*8"), "192840");
        assert_eq!(words("$pagesize"), "4096");
        assert_eq!(words("2*($ncpus+1)"), "6");
        assert_eq!(words("$ncpus-1"), "1");
        assert_eq!(words("-1+$ncpus"), "1");
        assert_eq!(words("5/$ncpus"), "2");
        assert_eq!(words(" 3 * $ncpus"), "6");
        assert_eq!(words("7$ncpus"), "72");
        assert_eq!(words("$ncpusx"), "2x");
        assert_eq!(words("$$ncpus"), "$2");
        assert_eq!(words("x$ncpus y"), "x2 y");
        assert_eq!(words("$pagesize,$pagesize"), "4096,4096");
        assert_eq!(words("$ncpu"), "$ncpu");
    }

    #[test]
    fn maths_beyond_a_word() {
        assert_eq!(words("0.5*$mb_memory"), "12052");
        assert_eq!(words("2^$ncpus+1"), "5");
        assert_eq!(words("2^3^$ncpus"), "512");
        assert_eq!(words("17%$ncpus"), "1");
        assert_eq!(words("-$ncpus*-3"), "6");
        assert_eq!(words("1^99999999999999999999*$ncpus"), "2");
        assert_eq!(words("(0-1)^3+$ncpus"), "1");
    }

    #[test]
    fn text_that_is_not_arithmetic_is_only_substituted() {
        assert_eq!(words("/data/$ncpus-a"), "/data/2-a");
        assert_eq!(words("($ncpus+1)k"), "(2+1)k");
        assert_eq!(words("8*4"), "8*4", "without a reserved word there is no maths");
        assert_eq!(words("$ncpus*"), "2*");
    }

    #[test]
    fn arithmetic_without_a_result_is_an_error() {
        assert_eq!(reserved_words("$ncpus/0", &FACTS), Err("2/0: division by zero".into()));
        assert_eq!(reserved_words("$ncpus%0", &FACTS), Err("2%0: division by zero".into()));
        assert!(reserved_words("9^9^9*$ncpus", &FACTS).unwrap_err().contains("too large"));
        assert!(reserved_words("2^-1*$ncpus", &FACTS).unwrap_err().contains("negative"));
    }

    #[test]
    fn environment_variables() {
        assert_eq!(expanded("a${FOO}b${FOO}"), "afoobfoo");
        assert_eq!(expanded("a${NONE}b"), "ab");
        assert_eq!(expanded("${}x"), "x");
        assert_eq!(expanded("${FOO"), "${FOO");
        assert_eq!(expanded("$FOO"), "$FOO");
        assert_eq!(environment("${A}${B}", &|_| None).1, ["A", "B"]);
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn any_value_has_an_answer(value in "[-+*/%^() .0-9k$]{0,40}(\\$ncpus)?[-+*/%^() .0-9]{0,40}") {
            let _ = reserved_words(&value, &FACTS);
        }

        #[test]
        fn sums_and_products_are_exact(a in 0u32..100_000, b in 0u32..100_000) {
            let (a, b) = (u64::from(a), u64::from(b));
            prop_assert_eq!(words(&format!("{a}*{b}+$ncpus")), (a * b + 2).to_string());
            prop_assert_eq!(words(&format!("{a} / ({b} + 1) * $ncpus")), (a / (b + 1) * 2).to_string());
        }
    }
}
