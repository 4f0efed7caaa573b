//! Names in a bucket (S3, ListObjectsV2): queries and answers.

use crate::answer::Answer;
use crate::encoding::{percent_decoded, query_encoded};
use crate::refusal::element_text;
use std::fmt::Write;

/// Most names in one answer: what servers give at most.
pub const MOST_NAMES: u32 = 1000;

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// How many names are in it.
    pub names: usize,
    /// Where the next part begins; `None` = there is none.
    pub next: Option<String>,
}

/// The query for the names that begin like this, at most so many, from where the part before ended.
pub fn query(prefix: &str, most: u32, from: Option<&str>) -> String {
    let mut query = String::new();
    if let Some(token) = from {
        query.push_str("continuation-token=");
        query_encoded(token.as_bytes(), &mut query);
        query.push('&');
    }
    // (Writing to a String does not fail. Names are sent encoded: XML does not have every character.)
    let _ = write!(query, "encoding-type=url&list-type=2&max-keys={most}&prefix=");
    query_encoded(prefix.as_bytes(), &mut query);
    query
}

/// How much an answer lists, and where the rest is.
pub fn page(answer: &Answer) -> Page {
    let text = String::from_utf8_lossy(&answer.text);
    let is_cut = element_text(&text, "IsTruncated").is_some_and(|word| word == "true");
    Page {
        names: text.matches("<Contents>").count(),
        next: element_text(&text, "NextContinuationToken").filter(|_| is_cut),
    }
}

/// The names that an answer lists.
pub fn names(answer: &Answer) -> Vec<String> {
    let text = String::from_utf8_lossy(&answer.text);
    // (In this encoding a space is a plus sign, as in forms.)
    let plain = |name: String| percent_decoded(&name.replace('+', " ")).unwrap_or(name);
    text.split("<Contents>").skip(1).filter_map(|item| element_text(item, "Key").map(plain)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_in_parts() {
        assert_eq!(query("a/b c", 2, None), "encoding-type=url&list-type=2&max-keys=2&prefix=a%2Fb%20c");
        assert!(query("", 2, Some("x=")).starts_with("continuation-token=x%3D&encoding-type=url&"));
        let text = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>\
                    <Contents><Key>a/b+1%2B</Key><Size>4</Size></Contents><Contents><Key>c</Key></Contents></ListBucketResult>";
        let answer = Answer { status: 200, text: text.into(), ..Answer::default() };
        assert_eq!(page(&answer), Page { names: 2, next: Some("t&1".into()) });
        assert_eq!(names(&answer), ["a/b 1+", "c"]);
        let last = Answer { text: text.replace("true", "false").into(), ..answer };
        assert_eq!(page(&last).next, None);
    }
}
