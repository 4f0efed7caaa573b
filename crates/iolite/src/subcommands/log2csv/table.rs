//! Comma-separated values according to RFC 4180.

/// A field, in quotes if necessary.
pub fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_only_where_they_are_needed() {
        assert_eq!(field("plain name"), "plain name");
        assert_eq!(field("a,b"), "\"a,b\"");
        assert_eq!(field("5\" disk"), "\"5\"\" disk\"");
    }
}
