//! Objects that are uploaded in parts (S3): queries, bodies and answers.
//!
//! The first request begins an upload and gets an id for it. The parts are sent in any order, and each gets a tag.
//! The last request sends the list of tags, which ends the upload and creates the object. An upload that is neither
//! ended nor aborted stays on the server and costs money.

use crate::answer::Answer;
use crate::encoding::{query_encoded, seconds_of};
use crate::listing::whole_text;
use crate::refusal::element_text as element;
use crate::store::{BEGIN_UPLOAD, UPLOAD};
use std::fmt::Write;

/// The maximum number of parts of an object.
pub const MOST_PARTS: u64 = 10_000;

/// A part that the server has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The entity tag that the server gave the part.
    pub tag: String,
    /// The name of the XML element for its checksum and the checksum, if the part was sent with one.
    pub checksum: Option<(&'static str, String)>,
}

impl Part {
    /// The part that this answer acknowledges; `None` = the answer has no tag.
    pub fn of(answer: &Answer) -> Option<Part> {
        let checksum =
            [("x-amz-checksum-crc32c", "ChecksumCRC32C"), ("x-amz-checksum-sha256", "ChecksumSHA256")]
                .into_iter()
                .find_map(|(field, element)| Some((element, answer.field(field)?.to_owned())));
        Some(Part { tag: answer.field("etag")?.to_owned(), checksum })
    }
}

/// An upload that has been neither ended nor aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The name of its object in the bucket.
    pub key: String,
    /// Its id.
    pub id: String,
    /// When it was begun, in seconds since 1970; `None` = the server does not say.
    pub begun: Option<u64>,
}

/// The query that begins an upload.
pub fn beginning() -> &'static str {
    BEGIN_UPLOAD
}

/// The query that uploads a part. Parts are numbered from 1.
pub fn part_query(number: usize, id: &str) -> String {
    let mut query = format!("partNumber={number}&uploadId=");
    query_encoded(id.as_bytes(), &mut query);
    query
}

/// The query that ends (POST) or aborts (DELETE) an upload.
pub fn upload_query(id: &str) -> String {
    let mut query = UPLOAD.to_owned();
    query_encoded(id.as_bytes(), &mut query);
    query
}

/// The query that lists the pending uploads of all objects whose names begin with `prefix`.
pub fn pending_query(prefix: &str) -> String {
    let mut query = "prefix=".to_owned();
    query_encoded(prefix.as_bytes(), &mut query);
    query.push_str("&uploads=");
    query
}

/// The id of a new upload; `None` = the answer has none.
pub fn begun_id(answer: &Answer) -> Option<String> {
    element(&String::from_utf8_lossy(&answer.text), "UploadId")
}

/// The body of the request that ends an upload with these parts, in the order of their numbers.
pub fn ending<'a>(parts: impl IntoIterator<Item = &'a Part>) -> String {
    let mut body = "<CompleteMultipartUpload>".to_owned();
    for (number, part) in (1..).zip(parts) {
        // (Writing to a String does not fail.)
        let _ = write!(body, "<Part><PartNumber>{number}</PartNumber><ETag>{}</ETag>", escaped(&part.tag));
        if let Some((element, value)) = &part.checksum {
            let _ = write!(body, "<{element}>{}</{element}>", escaped(value));
        }
        body.push_str("</Part>");
    }
    body.push_str("</CompleteMultipartUpload>");
    body
}

/// Whether the body reports an error although the status reports success: a server that needs long to assemble the
/// parts sends the status before it knows the outcome.
pub fn is_refused_in_body(answer: &Answer) -> bool {
    String::from_utf8_lossy(&answer.text).contains("<Error>")
}

/// The pending uploads in a server's list.
///
/// # Errors
/// The answer is not such a list, or the list is truncated.
pub fn pending(answer: &Answer) -> Result<Vec<Pending>, String> {
    let text = whole_text(answer, "ListMultipartUploadsResult")?;
    if element(&text, "IsTruncated").is_some_and(|word| word == "true") {
        return Err("there are more uploads with this prefix than one answer lists".to_owned());
    }
    let all = text.split("<Upload>").skip(1).filter_map(|item| {
        let item = item.split("</Upload>").next()?;
        let begun = element(item, "Initiated").and_then(|text| seconds_of(&text));
        Some(Pending { key: element(item, "Key")?, id: element(item, "UploadId")?, begun })
    });
    Ok(all.collect())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Answer {
        Answer { status: 200, text: text.into(), ..Answer::default() }
    }

    #[test]
    fn queries_are_sorted_and_encoded() {
        assert_eq!(part_query(3, "a/b+c="), "partNumber=3&uploadId=a%2Fb%2Bc%3D");
        assert_eq!(upload_query("x"), "uploadId=x");
        assert_eq!(pending_query("a/b c"), "prefix=a%2Fb%20c&uploads=");
    }

    #[test]
    fn parts_are_listed_in_order_with_what_the_server_called_them() {
        let fields = |fields: &[(&str, &str)]| {
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let first = Answer { fields: fields(&[("etag", "\"1\"")]), ..answer("") };
        let second =
            Answer { fields: fields(&[("etag", "\"2\""), ("x-amz-checksum-crc32c", "AA==")]), ..answer("") };
        let parts = [Part::of(&first).unwrap(), Part::of(&second).unwrap()];
        assert_eq!(
            ending(&parts),
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"1\"</ETag></Part><Part>\
             <PartNumber>2</PartNumber><ETag>\"2\"</ETag><ChecksumCRC32C>AA==</ChecksumCRC32C></Part>\
             </CompleteMultipartUpload>"
        );
        assert_eq!(Part::of(&answer("")), None);
    }

    #[test]
    fn answers_have_ids_lists_and_late_errors() {
        let begun = answer(
            "<InitiateMultipartUploadResult><UploadId>a&amp;b</UploadId></InitiateMultipartUploadResult>",
        );
        assert_eq!(begun_id(&begun).as_deref(), Some("a&b"));
        assert!(is_refused_in_body(&answer(" \n<Error><Code>InternalError</Code></Error>")));
        assert!(!is_refused_in_body(&answer("<CompleteMultipartUploadResult/>")));
        let list = answer(
            "<ListMultipartUploadsResult><Upload><Key>o</Key><UploadId>1</UploadId><Initiated>1970-01-01T00:00:09.000Z\
             </Initiated></Upload><Upload><Key>o2</Key><UploadId>2</UploadId></Upload></ListMultipartUploadsResult>",
        );
        let all = pending(&list).unwrap();
        assert_eq!(all[0], Pending { key: "o".into(), id: "1".into(), begun: Some(9) });
        assert_eq!((all[1].key.as_str(), all[1].begun), ("o2", None));
        for (text, why) in [
            ("<html>Welcome</html>", "no complete <ListMultipartUploadsResult>"),
            ("<ListMultipartUploadsResult><Upload>", "no complete <ListMultipartUploadsResult>"),
            (
                "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated></ListMultipartUploadsResult>",
                "more uploads",
            ),
        ] {
            assert!(pending(&answer(text)).unwrap_err().contains(why), "{text}");
        }
    }
}
