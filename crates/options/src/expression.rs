//! Arithmetic in values: `size=(4*1024)k`, `runtime=(2*30s)`.
//!
//! Wherever a number is allowed, an expression in parentheses is allowed too: `+ - * / % ^`, nested parentheses,
//! signs, decimal fractions, hexadecimal numbers, and the unit suffixes of the option's type. In a duration, a bare
//! number means microseconds. Whole results are exact; a fraction in the final result is cut off.

/// How deep parentheses may be nested.
const MAX_DEPTH: usize = 64;

/// The factor of a unit suffix; the error lists the known suffixes.
pub type UnitOf<'a> = &'a mut dyn FnMut(&str) -> Result<u128, String>;

/// An intermediate result: exact while it is whole.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Whole(i128),
    Fraction(f64),
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Number::Whole(value) => value as f64,
            Number::Fraction(value) => value,
        }
    }

    fn is_zero(self) -> bool {
        self.float() == 0.0
    }
}

/// Evaluates a value that starts with a parenthesis. The text after the matching parenthesis is a unit suffix.
pub fn evaluate(text: &str, unit_of: UnitOf<'_>) -> Result<i128, String> {
    let mut parser = Parser { text, at: 0, depth: 0, unit_of };
    let number = parser.atom()?;
    parser.skip_blanks();
    if parser.at < text.len() {
        return Err(format!("\"{}\" behind the expression has no meaning", &text[parser.at..]));
    }
    match number {
        Number::Whole(value) => Ok(value),
        Number::Fraction(value) if value.abs() < 1e36 => Ok(value.trunc() as i128),
        Number::Fraction(_) => Err(too_large()),
    }
}

fn too_large() -> String {
    "the expression's value is too large".to_owned()
}

struct Parser<'t, 'u> {
    text: &'t str,
    at: usize,
    depth: usize,
    unit_of: UnitOf<'u>,
}

impl Parser<'_, '_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn next_is(&mut self, wanted: &[char]) -> Option<char> {
        self.skip_blanks();
        let found = self.peek().filter(|c| wanted.contains(c))?;
        self.at += found.len_utf8();
        Some(found)
    }

    /// Sums and differences of terms.
    fn sum(&mut self) -> Result<Number, String> {
        let mut left = self.product()?;
        while let Some(operator) = self.next_is(&['+', '-']) {
            let right = self.product()?;
            left = combine(operator, left, right)?;
        }
        Ok(left)
    }

    /// Products, quotients and remainders of powers.
    fn product(&mut self) -> Result<Number, String> {
        let mut left = self.signed()?;
        while let Some(operator) = self.next_is(&['*', '/', '%']) {
            let right = self.signed()?;
            left = combine(operator, left, right)?;
        }
        Ok(left)
    }

    /// A sign binds less than `^`: `-2^2` is −4.
    fn signed(&mut self) -> Result<Number, String> {
        let mut negative = false;
        while let Some(sign) = self.next_is(&['-', '+']) {
            negative ^= sign == '-';
        }
        let value = self.power()?;
        if negative { combine('-', Number::Whole(0), value) } else { Ok(value) }
    }

    /// `a^b^c` is `a^(b^c)`.
    fn power(&mut self) -> Result<Number, String> {
        let base = self.atom()?;
        if self.next_is(&['^']).is_none() {
            return Ok(base);
        }
        self.enter()?;
        let exponent = self.signed()?;
        self.depth -= 1;
        combine('^', base, exponent)
    }

    /// A number or an expression in parentheses, with its suffix.
    fn atom(&mut self) -> Result<Number, String> {
        let value = if self.next_is(&['(']).is_some() {
            self.enter()?;
            let value = self.sum()?;
            self.depth -= 1;
            if self.next_is(&[')']).is_none() {
                return Err(match self.peek() {
                    Some(found) => format!("\"{found}\" is not an operator (+ - * / % ^) or \")\""),
                    None => "a \")\" is missing".to_owned(),
                });
            }
            value
        } else {
            self.literal()?
        };
        let suffix = self.take_while(|c| c.is_ascii_alphabetic());
        if suffix.is_empty() {
            return Ok(value);
        }
        let unit = (self.unit_of)(&suffix)?;
        combine('*', value, Number::Whole(i128::try_from(unit).map_err(|_| too_large())?))
    }

    fn enter(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err("the expression is nested too deeply".to_owned()) } else { Ok(()) }
    }

    fn literal(&mut self) -> Result<Number, String> {
        let rest = &self.text[self.at..];
        if rest.starts_with("0x") || rest.starts_with("0X") {
            self.at += 2;
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            return match i128::from_str_radix(&digits, 16) {
                Ok(value) => Ok(Number::Whole(value)),
                Err(_) => Err(format!("\"0x{digits}\" is not a hexadecimal number")),
            };
        }
        let digits = self.take_while(|c| c.is_ascii_digit() || c == '.');
        if digits.is_empty() {
            return Err(match self.peek() {
                Some(found) => format!("\"{found}\" stands where a number is expected"),
                None => "a number is missing at the end of the expression".to_owned(),
            });
        }
        if digits.contains('.') {
            return digits.parse().map(Number::Fraction).map_err(|_| format!("\"{digits}\" is not a number"));
        }
        digits.parse().map(Number::Whole).map_err(|_| too_large())
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let taken: String = self.text[self.at..].chars().take_while(|c| belongs(*c)).collect();
        self.at += taken.len();
        taken
    }
}

fn combine(operator: char, left: Number, right: Number) -> Result<Number, String> {
    if matches!(operator, '/' | '%') && right.is_zero() {
        return Err("the expression divides by zero".to_owned());
    }
    if let (Number::Whole(a), Number::Whole(b)) = (left, right)
        && let Some(exact) = combine_whole(operator, a, b)?
    {
        return Ok(Number::Whole(exact));
    }
    let (a, b) = (left.float(), right.float());
    let value = match operator {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        '/' => a / b,
        '%' => a % b,
        _ => a.powf(b),
    };
    if !value.is_finite() {
        return Err(too_large());
    }
    // Exact again once a fraction has cancelled out, as in (3/2)*2.
    if value.fract() == 0.0 && value.abs() < 9e15 {
        Ok(Number::Whole(value as i128))
    } else {
        Ok(Number::Fraction(value))
    }
}

/// The exact result; `None` if it is not whole.
fn combine_whole(operator: char, a: i128, b: i128) -> Result<Option<i128>, String> {
    let exact = match operator {
        '+' => a.checked_add(b),
        '-' => a.checked_sub(b),
        '*' => a.checked_mul(b),
        '/' if a % b == 0 => a.checked_div(b),
        '/' => return Ok(None),
        '%' => a.checked_rem(b),
        _ => match u32::try_from(b) {
            Ok(exponent) => a.checked_pow(exponent),
            Err(_) => return Ok(None),
        },
    };
    exact.map(Some).ok_or_else(too_large)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn eval(text: &str) -> Result<i128, String> {
        evaluate(text, &mut |suffix| match suffix {
            "k" => Ok(1024),
            "s" => Ok(1_000_000),
            other => Err(format!("no unit {other}")),
        })
    }

    #[test]
    fn operators_bind_as_in_school() {
        for (text, value) in [
            ("(4*1024)k", 4 << 20),
            ("(1+2*3)", 7),
            ("((1+2)*3)", 9),
            ("(2^10)", 1024),
            ("(2^3^2)", 512),
            ("(-2^2)", -4),
            ("(7%4)", 3),
            ("(8/2/2)", 2),
            ("(10-3-2)", 5),
            ("(3/2*2)", 3),
            ("(7/2)", 3),
            ("(-7/2)", -3),
            ("(2*4k)", 8192),
            ("(2s+500000)", 2_500_000),
            ("( 1 + 0x10 )", 17),
            ("(1.5*2k)", 3072),
            ("(2)", 2),
            ("(4^-1*8)", 2),
            ("(--3)", 3),
        ] {
            assert_eq!(eval(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("(1+", "missing"),
            ("(1", "\")\" is missing"),
            ("()", "\")\" stands where a number"),
            ("(1/0)", "divides by zero"),
            ("(5%0)", "divides by zero"),
            ("(1 2)", "\"2\" is not an operator"),
            ("(4x)", "no unit x"),
            ("(4)(5)", "behind the expression"),
            ("(9^9^9^9)", "too large"),
            ("(1..2)", "not a number"),
            ("(0x)", "hexadecimal"),
        ] {
            let error = eval(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(eval(&"(".repeat(100_000)).is_err());
        assert!(eval(&format!("({}1)", "2^".repeat(100_000))).is_err());
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn never_panics(text in "[(][-+*/%^().0-9kxs ]{0,40}") {
            let _ = eval(&text);
        }

        #[test]
        fn agrees_with_integer_arithmetic(a in -1_000_000i64..1_000_000, b in 1i64..1000, c in 0i64..1000) {
            let expected = i128::from(a) + i128::from(b) * i128::from(c);
            prop_assert_eq!(eval(&format!("({a}+{b}*{c})")), Ok(expected));
            prop_assert_eq!(eval(&format!("({a}%{b})")), Ok(i128::from(a % b)));
        }
    }
}
