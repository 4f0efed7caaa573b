//! Messages that many I/Os and workers repeat, such as those about a bucket that does not exist: the first of each kind
//! is shown, the others are counted.

/// The kinds that were shown.
#[derive(Debug, Default)]
pub struct Repeated {
    kinds: Vec<Kind>,
}

#[derive(Debug)]
struct Kind {
    /// The message without the words that differ.
    pattern: String,
    first: String,
    /// How many more there were.
    more: u64,
}

impl Repeated {
    /// Whether to show this message, because it is the first of its kind.
    pub fn is_first(&mut self, text: &str) -> bool {
        let pattern = pattern_of(text);
        if let Some(known) = self.kinds.iter_mut().find(|kind| kind.pattern == pattern) {
            known.more += 1;
            return false;
        }
        self.kinds.push(Kind { pattern, first: text.to_owned(), more: 0 });
        true
    }

    /// A line for each kind of which there were more.
    pub fn rest(&mut self) -> Vec<String> {
        let kinds = std::mem::take(&mut self.kinds).into_iter().filter(|kind| kind.more > 0);
        kinds.map(|Kind { first, more, .. }| format!("{more} more like this: {first}")).collect()
    }
}

/// The message without words that have digits: names of objects, offsets, lengths, numbers of requests.
fn pattern_of(text: &str) -> String {
    let has_digit = |word: &str| word.bytes().any(|byte| byte.is_ascii_digit());
    let words = text.split_whitespace().map(|word| if has_digit(word) { "#" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_kind_is_shown_and_the_others_are_counted() {
        let mut repeated = Repeated::default();
        let failed = |place: u32, why: &str| {
            format!("io_u error on file /b/a: {why}: write offset={place}, buflen=4096")
        };
        assert!(repeated.is_first(&failed(0, "no such bucket")));
        assert!(!repeated.is_first(&failed(4096, "no such bucket")));
        assert!(repeated.is_first(&failed(4096, "access denied")));
        assert!(!repeated.is_first(&failed(8192, "no such bucket")));
        assert_eq!(repeated.rest(), [format!("2 more like this: {}", failed(0, "no such bucket"))]);
        assert_eq!(repeated.rest(), [""; 0]);
    }
}
