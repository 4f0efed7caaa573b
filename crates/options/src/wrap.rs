//! Wrapping text.

/// Breaks a text into lines of at most `width` characters; a longer word gets its own line.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && used + 1 + length > width {
            lines.push(word.to_owned());
            used = length;
        } else {
            if !line.is_empty() {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two  three four", 9), "one two\nthree\nfour");
        assert_eq!(wrapped("unbreakable x", 3), "unbreakable\nx");
        assert_eq!(wrapped("", 3), "");
    }
}
