//! Form data: names and values in the query of an address (<https://url.spec.whatwg.org/#urlencoded-parsing>).

/// The names and values of a query. Bytes that are not UTF-8 are replaced.
pub fn fields(query: &str) -> Vec<(String, String)> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    let both = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
    both.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        let escape = || {
            let digits =
                rest.as_slice().get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => match escape() {
                Some(value) => {
                    bytes.push(value);
                    rest.nth(1);
                }
                None => bytes.push(b'%'),
            },
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A value, encoded for an address.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => out.push(byte.into()),
            other => out += &format!("%{other:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_those_of_the_form() {
        let of = |query: &str| fields(query);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(of("base=1&new=a+b%2Fc&&x"), [pair("base", "1"), pair("new", "a b/c"), pair("x", "")]);
        assert_eq!(of("a=%zz%4&b=%ff"), [pair("a", "%zz%4"), pair("b", "\u{fffd}")]);
        assert_eq!(of(""), []);
    }

    proptest! {
        #![proptest_config(iolite_testing::properties(256))]

        #[test]
        fn encoded_text_decodes_to_itself(text in ".*") {
            prop_assert_eq!(decoded(&encoded(&text)), text);
        }
    }
}
