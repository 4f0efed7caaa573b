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
    let plain = plain_names(&text);
    Ok(text.split("<Contents>").skip(1).filter_map(|item| element_text(item, "Key").map(&plain)).collect())
}

/// A version of an object, or a mark that it was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The name of the object in the bucket.
    pub key: String,
    /// The id of the version.
    pub id: String,
}

/// The query for the versions of all objects whose names begin with `prefix`, after this one.
pub fn versions_query(prefix: &str, after: Option<&Version>) -> String {
    let mut query = "encoding-type=url&".to_owned();
    if let Some(Version { key, .. }) = after {
        query.push_str("key-marker=");
        query_encoded(key.as_bytes(), &mut query);
        query.push('&');
    }
    let _ = write!(query, "max-keys={MOST_NAMES}&prefix=");
    query_encoded(prefix.as_bytes(), &mut query);
    if let Some(Version { id, .. }) = after {
        query.push_str("&version-id-marker=");
        query_encoded(id.as_bytes(), &mut query);
    }
    query.push_str("&versions=");
    query
}

/// The query of a request for one version of an object.
pub fn version_query(id: &str) -> String {
    let mut query = "versionId=".to_owned();
    query_encoded(id.as_bytes(), &mut query);
    query
}

/// The versions that an answer lists, and whether there are more.
///
/// # Errors
/// The answer is not a list of versions, or it is incomplete.
pub fn versions(answer: &Answer) -> Result<(Vec<Version>, bool), String> {
    let text = whole_text(answer, "ListVersionsResult")?;
    let is_cut = element_text(&text, "IsTruncated").is_some_and(|word| word == "true");
    let plain = plain_names(&text);
    let marked = text.replace("<DeleteMarker>", "<Version>");
    let items = marked.split("<Version>").skip(1).filter_map(|item| {
        Some(Version { key: plain(element_text(item, "Key")?), id: element_text(item, "VersionId")? })
    });
    Ok((items.collect(), is_cut))
}

/// Whether an answer lists this name, with this tag if there is one.
///
/// # Errors
/// The answer is not a list, or it is incomplete.
pub fn lists(answer: &Answer, name: &str, tag: Option<&str>) -> Result<bool, String> {
    let text = whole_text(answer, ROOT)?;
    let plain = plain_names(&text);
    Ok(text.split("<Contents>").skip(1).any(|item| {
        let is_it = element_text(item, "Key").is_some_and(|key| plain(key) == name);
        is_it && tag.is_none_or(|tag| element_text(item, "ETag").is_none_or(|found| found == tag))
    }))
}

/// Decodes the names of a list. Some servers ignore the requested encoding. (In this encoding a space is a plus sign, as
/// in forms.)
fn plain_names(text: &str) -> impl Fn(String) -> String + use<> {
    let is_encoded = element_text(text, "EncodingType").is_some_and(|word| word == "url");
    move |name: String| match is_encoded {
        true => percent_decoded(&name.replace('+', " ")).unwrap_or(name),
        false => name,
    }
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
    fn versions_and_marks_of_removals_are_listed() {
        let text = "<ListVersionsResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>\
                    <Version><Key>a%2Bb</Key><VersionId>1</VersionId><ETag>&#34;t&#34;</ETag></Version>\
                    <DeleteMarker><Key>c</Key><VersionId>null</VersionId></DeleteMarker></ListVersionsResult>";
        let answer = Answer { status: 200, text: text.into(), ..Answer::default() };
        let of = |key: &str, id: &str| Version { key: key.to_owned(), id: id.to_owned() };
        let (all, is_cut) = versions(&answer).unwrap();
        assert_eq!((&all[..], is_cut), (&[of("a+b", "1"), of("c", "null")][..], true));
        assert_eq!(versions_query("p/", None), "encoding-type=url&max-keys=1000&prefix=p%2F&versions=");
        let next = "encoding-type=url&key-marker=c&max-keys=1000&prefix=p&version-id-marker=null&versions=";
        assert_eq!(versions_query("p", all.last()), next);
        assert!(versions(&Answer::default()).unwrap_err().contains("<ListVersionsResult>"));
    }

    #[test]
    fn a_name_is_listed_with_its_tag() {
        let text =
            "<ListBucketResult><Contents><Key>a</Key><ETag>&#34;t&#34;</ETag></Contents></ListBucketResult>";
        let answer = Answer { status: 200, text: text.into(), ..Answer::default() };
        for (name, tag, is_there) in
            [("a", None, true), ("a", Some("\"t\""), true), ("a", Some("\"u\""), false), ("b", None, false)]
        {
            assert_eq!(lists(&answer, name, tag), Ok(is_there), "{name} {tag:?}");
        }
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
