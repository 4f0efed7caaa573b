//! Lists of the names in a bucket (S3, ListObjectsV2): queries and answers.

use crate::answer::Answer;
use crate::encoding::{percent_decoded, query_encoded};
use crate::refusal::element_text;
use std::borrow::Cow;
use std::fmt::Write;

/// The maximum number of names that servers list in one answer.
pub const MOST_NAMES: u32 = 1000;
/// The root element of a list.
const ROOT: &str = "ListBucketResult";

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The number of names in it.
    pub names: usize,
    /// The token with which to request the next part; `None` = this is the last part.
    pub next: Option<String>,
}

/// The query for at most `most` names that begin with `prefix`. `from` is the token of the next part
/// ([`Page::next`]).
pub fn query(prefix: &str, most: u32, from: Option<&str>) -> String {
    let mut query = String::new();
    if let Some(token) = from {
        query.push_str("continuation-token=");
        query_encoded(token.as_bytes(), &mut query);
        query.push('&');
    }
    // (Writing to a String does not fail. The server is asked to encode names, because XML cannot represent every
    // character.)
    let _ = write!(query, "encoding-type=url&list-type=2&max-keys={most}&prefix=");
    query_encoded(prefix.as_bytes(), &mut query);
    query
}

/// Counts the names in an answer, and finds the token of the next part.
///
/// # Errors
/// The answer is not a list, or it is incomplete, or there are more names but no token.
pub fn page(answer: &Answer) -> Result<Page, String> {
    let text = whole_text(answer, ROOT)?;
    let is_cut = element_text(&text, "IsTruncated").is_some_and(|word| word == "true");
    let next = element_text(&text, "NextContinuationToken").filter(|_| is_cut);
    if is_cut && next.is_none() {
        return Err("the list is incomplete, and the server gives no NextContinuationToken".to_owned());
    }
    Ok(Page { names: text.matches("<Contents>").count(), next })
}

/// The names that an answer lists.
///
/// # Errors
/// The answer is not a list, or it is incomplete.
pub fn names(answer: &Answer) -> Result<Vec<String>, String> {
    let text = whole_text(answer, ROOT)?;
    // Some servers ignore the requested encoding. (In this encoding a space is a plus sign, as in forms.)
    let is_encoded = element_text(&text, "EncodingType").is_some_and(|word| word == "url");
    let plain = |name: String| match is_encoded {
        true => percent_decoded(&name.replace('+', " ")).unwrap_or(name),
        false => name,
    };
    Ok(text.split("<Contents>").skip(1).filter_map(|item| element_text(item, "Key").map(plain)).collect())
}

/// The text of an answer whose root element has this name.
///
/// # Errors
/// The answer has another root element, is longer than the text that is kept, or was cut.
pub(crate) fn whole_text<'a>(answer: &'a Answer, root: &str) -> Result<Cow<'a, str>, String> {
    if answer.length > answer.text.len() as u64 {
        return Err(format!("the answer is too long: {} bytes", answer.length));
    }
    let text = String::from_utf8_lossy(&answer.text);
    let end = text.trim_end();
    let is_whole = end.ends_with(&format!("</{root}>")) || end.ends_with("/>");
    if !is_whole || !text.contains(&format!("<{root}")) {
        return Err(format!("the answer has no complete <{root}>; is this an S3 server?"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_in_parts() {
        assert_eq!(query("a/b c", 2, None), "encoding-type=url&list-type=2&max-keys=2&prefix=a%2Fb%20c");
        assert!(query("", 2, Some("x=")).starts_with("continuation-token=x%3D&encoding-type=url&"));
        let text = "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>\
                    <Contents><Key>a/b+1%2B</Key><Size>4</Size></Contents><Contents><Key>c</Key></Contents></ListBucketResult>";
        let answer = Answer { status: 200, text: text.into(), ..Answer::default() };
        assert_eq!(page(&answer), Ok(Page { names: 2, next: Some("t&1".into()) }));
        assert_eq!(names(&answer).unwrap(), ["a/b 1+", "c"]);
        let with = |text: String| Answer { text: text.into(), ..answer.clone() };
        assert_eq!(page(&with(text.replace("true", "false"))).unwrap().next, None);
        // Without this element, names are not encoded.
        let plain = text.replace("<EncodingType>url</EncodingType>", "");
        assert_eq!(names(&with(plain)).unwrap(), ["a/b+1%2B", "c"]);
    }

    #[test]
    fn incomplete_lists_are_refused() {
        let cut = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>";
        for (text, length, why) in [
            (cut, 0, "gives no NextContinuationToken"),
            ("<html>Welcome</html>", 0, "no complete <ListBucketResult>"),
            ("<ListBucketResult><Contents><Key>a</Key></Contents>", 0, "no complete"),
            ("<ListBucketResult></ListBucketResult>", 5 << 20, "too long"),
        ] {
            let answer = Answer { status: 200, text: text.into(), length, ..Answer::default() };
            assert!(page(&answer).unwrap_err().contains(why), "{text}");
            assert!(text == cut || names(&answer).is_err(), "{text}");
        }
    }
}
