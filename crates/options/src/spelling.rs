//! "Did you mean …": finds the word that was probably meant by an unknown one.

/// The clause that suggests a word, to append to a message: `; did you mean "bs"?`. Empty if there is none.
pub fn did_you_mean(meant: Option<impl std::fmt::Display>) -> String {
    meant.map_or_else(String::new, |meant| format!("; did you mean \"{meant}\"?"))
}

/// The candidate nearest to `word`, if it is near enough for a typing mistake, or starts or ends with `word`.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let limit = (length / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let longer = candidate.chars().count().abs_diff(length);
            if length >= 3 && candidate.starts_with(word) || length >= 4 && candidate.ends_with(word) {
                return Some((longer, candidate));
            }
            // The distance is at least the difference in length. Words may be very long.
            let distance = if longer > limit { longer } else { edit_distance(word, candidate) };
            // Words without a common letter are not alike, however short they are, and short words with one letter in
            // common less are not unless they begin alike: zfs is not a slip of nfs.
            let is_alike = limit > 1 || distance == 0 || begins_like(word, candidate);
            (distance <= limit && distance < length && is_alike).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether two words have the same first letter, or have exchanged the first two.
fn begins_like(one: &str, other: &str) -> bool {
    let start = |word: &str| {
        let mut letters = word.chars();
        (letters.next(), letters.next())
    };
    let ((first, second), (other_first, other_second)) = (start(one), start(other));
    first == other_first || (first == other_second && second == other_first)
}

/// The number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn edit_distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=from.len() {
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_words_have_to_begin_alike() {
        let engines = ["sync", "nfs", "null", "libaio", "io_uring", "mmap"];
        for (word, meant) in [
            ("async", None),
            ("zfs", None),
            ("nsf", Some("nfs")),
            ("snyc", Some("sync")),
            ("ysnc", Some("sync")),
            ("nul", Some("null")),
            ("mmpa", Some("mmap")),
            ("uring", Some("io_uring")),
            ("kibaio", Some("libaio")),
        ] {
            assert_eq!(closest(word, engines), meant, "{word}");
        }
    }
}
