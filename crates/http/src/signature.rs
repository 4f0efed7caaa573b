//! AWS Signature Version 4, as described in "Authenticating Requests (AWS Signature Version 4)" in the Amazon S3 API
//! reference.

use crate::credentials::Credentials;
use crate::encoding::{hex, stamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};
use std::time::SystemTime;

/// The hash of an empty body.
pub(crate) const OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The signed parts of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed<'a> {
    pub method: &'a str,
    /// The encoded path, which begins with a slash.
    pub path: &'a str,
    /// The query, encoded and sorted by name; empty = there is none.
    pub query: &'a str,
    /// The hash of the body in hexadecimal digits, or `UNSIGNED-PAYLOAD`.
    pub payload: &'a str,
}

/// Signs requests for one region of one account.
#[derive(Clone)]
pub struct Signer {
    credentials: Credentials,
    region: String,
    /// The day that `key` is for.
    day: [u8; 8],
    /// The signing key, which all requests of a day share.
    key: [u8; 32],
    /// A buffer for the canonical request.
    canonical: String,
    names: String,
}

/// Debug output contains no secrets.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("region", &self.region).finish_non_exhaustive()
    }
}

impl Signer {
    /// Makes a signer with these keys for this region.
    pub fn new(credentials: Credentials, region: &str) -> Signer {
        Signer {
            credentials,
            region: region.to_owned(),
            day: [0; 8],
            key: [0; 32],
            canonical: String::new(),
            names: String::new(),
        }
    }

    /// The session token that belongs to the keys, if there is one.
    pub(crate) fn token(&self) -> Option<&str> {
        self.credentials.token.as_deref()
    }

    /// Appends the header `Authorization`, and the headers `x-amz-date` and `x-amz-content-sha256` that it requires.
    /// `headers` are all other signed headers, including `host`, with names in lower case and sorted by name.
    pub(crate) fn sign(
        &mut self,
        request: Signed<'_>,
        headers: &[(&str, &str)],
        now: SystemTime,
        out: &mut String,
    ) {
        let moment = stamp(now);
        let moment = std::str::from_utf8(&moment).expect("digits are text");
        let date = &moment[..8];
        self.renew(date);
        self.canonical(request, headers, moment);
        let hash = Sha256::digest(self.canonical.as_bytes()).0;
        let (text, region) = (&mut self.canonical, &self.region);
        text.clear();
        // (Writing to a String does not fail.)
        let _ = write!(text, "AWS4-HMAC-SHA256\n{moment}\n{date}/{region}/s3/aws4_request\n");
        hex(hash, text);
        let signature = keyed(&self.key, text.as_bytes());
        let (id, names, payload) = (&self.credentials.id, &self.names, request.payload);
        let _ = write!(
            out,
            "x-amz-content-sha256: {payload}\r\nx-amz-date: {moment}\r\nAuthorization: AWS4-HMAC-SHA256 \
             Credential={id}/{date}/{region}/s3/aws4_request, SignedHeaders={names}, Signature="
        );
        hex(signature, out);
        out.push_str("\r\n");
    }

    /// Builds the canonical request and the list of its header names.
    fn canonical(&mut self, request: Signed<'_>, headers: &[(&str, &str)], moment: &str) {
        let Signed { method, path, query, payload } = request;
        let (text, names) = (&mut self.canonical, &mut self.names);
        text.clear();
        names.clear();
        let _ = write!(text, "{method}\n{path}\n{query}\n");
        let own = [("x-amz-content-sha256", payload), ("x-amz-date", moment)];
        let [first, second] = own.map(|(own, _)| headers.partition_point(|(name, _)| *name < own));
        let between = headers[first..second].iter();
        let all = headers[..first]
            .iter()
            .chain(&own[..1])
            .chain(between)
            .chain(&own[1..])
            .chain(&headers[second..]);
        for (name, value) in all {
            debug_assert!(
                names.rsplit(';').next().is_none_or(|last| last < *name),
                "headers are sorted: {names}, {name}"
            );
            let _ = writeln!(text, "{name}:{}", value.trim());
            if !names.is_empty() {
                names.push(';');
            }
            names.push_str(name);
        }
        let _ = write!(text, "\n{names}\n{payload}");
    }

    /// Derives the key of this day, unless the last request was signed on the same day.
    fn renew(&mut self, date: &str) {
        if self.day == date.as_bytes() {
            return;
        }
        self.day.copy_from_slice(date.as_bytes());
        let mut key = format!("AWS4{}", self.credentials.secret).into_bytes();
        for part in [date, &self.region, "s3", "aws4_request"] {
            key = keyed(&key, part.as_bytes()).to_vec();
        }
        self.key.copy_from_slice(&key);
    }
}

fn keyed(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("keys of any length are allowed");
    mac.update(text);
    mac.finalize().into_bytes().0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    /// The account of the examples in the Amazon S3 API reference, and their moment: 2013-05-24.
    fn example() -> (Signer, SystemTime) {
        let credentials = Credentials {
            id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            token: None,
        };
        (Signer::new(credentials, "us-east-1"), UNIX_EPOCH + Duration::from_secs(1_369_353_600))
    }

    fn signature(request: Signed<'_>, headers: &[(&str, &str)]) -> String {
        let (mut signer, now) = example();
        let mut out = String::new();
        signer.sign(request, headers, now, &mut out);
        out
    }

    #[test]
    fn the_examples_of_the_reference_have_their_signatures() {
        let host = ("host", "examplebucket.s3.amazonaws.com");
        let get = Signed { method: "GET", path: "/test.txt", query: "", payload: OF_NOTHING };
        let text = signature(get, &[host, ("range", "bytes=0-9")]);
        assert!(text.contains("SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"), "{text}");
        assert!(
            text.ends_with("=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41\r\n"),
            "{text}"
        );
        let put = Signed {
            method: "PUT",
            path: "/test%24file.text",
            query: "",
            payload: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
        };
        let headers =
            [("date", "Fri, 24 May 2013 00:00:00 GMT"), host, ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
        let text = signature(put, &headers);
        assert!(
            text.ends_with("=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd\r\n"),
            "{text}"
        );
        let list = Signed { query: "max-keys=2&prefix=J", path: "/", ..get };
        let text = signature(list, &[host]);
        assert!(
            text.ends_with("=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7\r\n"),
            "{text}"
        );
    }

    #[test]
    fn the_key_is_that_of_the_day() {
        let (mut signer, now) = example();
        let request = Signed { method: "GET", path: "/", query: "", payload: OF_NOTHING };
        let mut sign = |moment| {
            let mut out = String::new();
            signer.sign(request, &[("host", "h")], moment, &mut out);
            out
        };
        let first = sign(now);
        assert_ne!(first, sign(now + Duration::from_secs(86_400)));
        assert_eq!(first, sign(now));
    }
}
