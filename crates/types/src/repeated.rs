//! Messages that many I/Os, workers and machines repeat, such as those about a bucket that does not exist: the first of
//! each kind is shown, the others are counted.

/// The most machines that a message names.
const MOST_NAMED: usize = 5;

/// The most kinds that are told apart. All others count as one, which has no text.
const MOST_KINDS: usize = 100;

/// The kinds that were shown.
#[derive(Clone, Debug, Default)]
pub struct Repeated {
    kinds: Vec<Kind>,
}

#[derive(Clone, Debug)]
struct Kind {
    /// The message without the words that differ.
    pattern: String,
    first: String,
    /// How many more there were.
    more: u64,
    /// The machines that these came from, if they came from other machines.
    machines: Vec<String>,
}

impl Kind {
    fn rest(&self) -> String {
        let named = self.machines.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let machines = match self.machines.len() {
            0 => String::new(),
            count if count > MOST_NAMED => format!(", on {named} and {} others", count - MOST_NAMED),
            _ => format!(", on {named}"),
        };
        match self.first.as_str() {
            "" => format!("{} more of other kinds{machines}", self.more),
            first => format!("{} more like this{machines}: {first}", self.more),
        }
    }
}

impl Repeated {
    /// Whether to show this message, because it is the first of its kind.
    pub fn is_first(&mut self, text: &str) -> bool {
        self.is_first_of(None, text, 1)
    }

    /// Whether to show this message, which a machine repeats so many times, because it is the first of its kind from any
    /// of them.
    pub fn is_first_of(&mut self, machine: Option<&str>, text: &str, count: u64) -> bool {
        let pattern = pattern_of(text);
        let is_full = self.kinds.len() >= MOST_KINDS;
        let known = self.kinds.iter().position(|kind| kind.pattern == pattern);
        if let Some(known) = known.or_else(|| is_full.then_some(MOST_KINDS - 1)) {
            let known = &mut self.kinds[known];
            known.more += count;
            let new = machine.filter(|machine| known.machines.iter().all(|known| known != machine));
            known.machines.extend(new.map(ToOwned::to_owned));
            return false;
        }
        let is_told_apart = !text.is_empty() && self.kinds.len() + 1 < MOST_KINDS;
        self.kinds.push(match is_told_apart {
            true => Kind { pattern, first: text.to_owned(), more: count - 1, machines: Vec::new() },
            false => Kind {
                pattern: String::new(),
                first: String::new(),
                more: count,
                machines: machine.map(ToOwned::to_owned).into_iter().collect(),
            },
        });
        is_told_apart
    }

    /// The first message of each kind of which there were more, and how many.
    pub fn counts(&mut self) -> impl Iterator<Item = (String, u64)> {
        let kinds = std::mem::take(&mut self.kinds).into_iter().filter(|kind| kind.more > 0);
        kinds.map(|kind| (kind.first, kind.more))
    }

    /// A line for each kind of which there were more.
    pub fn rest(&mut self) -> Vec<String> {
        let kinds = std::mem::take(&mut self.kinds).into_iter().filter(|kind| kind.more > 0);
        kinds.map(|kind| kind.rest()).collect()
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

    #[test]
    fn the_machines_of_the_others_are_named() {
        let mut repeated = Repeated::default();
        let shown = |repeated: &mut Repeated, machine: u32| {
            repeated.is_first_of(Some(&format!("host-{machine}")), &format!("pid={machine}, it failed"), 1)
        };
        assert!(shown(&mut repeated, 0));
        assert!([1, 2, 2, 0].into_iter().all(|machine| !shown(&mut repeated, machine)));
        assert_eq!(repeated.rest(), ["4 more like this, on host-1, host-2, host-0: pid=0, it failed"]);
        assert_eq!((0..10).filter(|&machine| shown(&mut repeated, machine)).count(), 1);
        let rest = repeated.rest();
        assert!(
            rest[0].starts_with("9 more like this, on host-1, host-2, host-3, host-4, host-5 and 4 others: "),
            "{rest:?}"
        );
    }

    #[test]
    fn messages_arrive_with_their_counts() {
        let mut repeated = Repeated::default();
        assert!(repeated.is_first_of(None, "denied", 3));
        assert!(!repeated.is_first_of(None, "denied", 2));
        assert_eq!(repeated.counts().collect::<Vec<_>>(), [("denied".to_owned(), 4)]);
    }

    #[test]
    fn kinds_beyond_the_limit_are_counted_together() {
        let mut repeated = Repeated::default();
        // (Digits do not tell kinds apart.)
        let shown = (1..=MOST_KINDS + 5).filter(|&kind| repeated.is_first(&"x".repeat(kind))).count();
        assert_eq!(shown, MOST_KINDS - 1);
        assert!(!repeated.is_first_of(None, "", 4));
        assert_eq!(repeated.rest(), ["10 more of other kinds"]);
    }
}
