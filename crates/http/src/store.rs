//! Builds the heads of requests for objects in each protocol.

use crate::answer::Answer;
use crate::digest::{Asked, Digest as Digester};
use crate::encoding::{hex, percent_encoded};
use crate::signature::{OF_NOTHING, Signed, Signer};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest, Md5};
use sha2::Sha256;
use std::fmt::{self, Write};
use std::ops::Range;
use std::time::SystemTime;

/// Operations on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Read it.
    Get,
    /// Look it up.
    Head,
    /// Write it.
    Put,
    /// Remove it.
    Delete,
    /// Perform another operation, which the query selects.
    Post,
    /// Make it a copy of another one ([`Object::source`]).
    Copy,
}

impl Method {
    /// The method's name in a request.
    pub const fn word(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Post => "POST",
            Method::Copy => "COPY",
        }
    }

    /// Whether its requests have a body, possibly an empty one.
    fn has_body(self) -> bool {
        matches!(self, Method::Put | Method::Post | Method::Copy)
    }
}

/// An object, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object<'a> {
    /// The object's full path on the server: `/BUCKET/NAME`.
    pub name: &'a str,
    /// The byte range; `None` = the whole object.
    pub part: Option<Range<u64>>,
    /// The query string, encoded and sorted by name: `uploads=`; empty = no query.
    pub query: &'a str,
    /// The full path of the object that is copied: `/BUCKET/NAME`, whatever the addressing; empty = none is.
    pub source: &'a str,
}

impl<'a> Object<'a> {
    /// A whole object.
    pub fn whole(name: &'a str) -> Object<'a> {
        Object { name, part: None, query: "", source: "" }
    }
}

/// A key with which the server encrypts objects, but which it does not store (SSE-C).
#[derive(Clone, PartialEq, Eq)]
pub struct CustomerKey {
    /// The cipher: `AES256`.
    pub algorithm: String,
    key: String,
    check: String,
}

impl CustomerKey {
    /// Reads a key from text: 32 characters, or 32 bytes in Base64.
    ///
    /// # Errors
    /// The text is not a valid key.
    pub fn new(algorithm: &str, text: &str) -> Result<CustomerKey, String> {
        let bytes = match BASE64.decode(text) {
            Ok(bytes) if bytes.len() == 32 => bytes,
            _ if text.len() == 32 => text.as_bytes().to_vec(),
            _ => return Err("the key must have 32 bytes: 32 characters, or 44 in Base64".to_owned()),
        };
        Ok(CustomerKey {
            algorithm: algorithm.to_owned(),
            check: BASE64.encode(Md5::digest(&bytes)),
            key: BASE64.encode(bytes),
        })
    }
}

/// Debug output contains no secrets.
impl fmt::Debug for CustomerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CustomerKey({}, …)", self.algorithm)
    }
}

/// A checksum with which a server checks an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// CRC-32C
    Crc32c,
    /// SHA-256
    Sha256,
}

/// The settings for requests to an S3 server.
#[derive(Clone, Debug, Default)]
pub struct S3 {
    /// Signs the requests; `None` = requests are anonymous, which the server must permit.
    pub signer: Option<Signer>,
    /// The storage class of new objects; `None` = the bucket's default.
    pub storage_class: Option<String>,
    /// The key with which objects are encrypted.
    pub customer_key: Option<CustomerKey>,
    /// The checksum that is sent with objects, for the server to check.
    pub checksum: Option<Checksum>,
    /// The signature does not cover bodies, so only encryption protects them in transit.
    pub unsigned_bodies: bool,
}

/// The protocol of a server.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// S3
    S3(Box<S3>),
    /// WebDAV, or any server that takes PUT and DELETE: user name and password, if there are any.
    WebDav(Option<User>),
    /// Swift: the token, if there is one.
    Swift(Option<String>),
}

/// The authentication of a WebDAV user.
#[derive(Clone, Debug)]
pub enum User {
    /// Basic authentication: name and password in each request.
    Basic(Basic),
    /// Digest authentication: the requests answer the server's challenges.
    Digest(Box<Digester>),
}

/// A user name and a password, encoded for basic authentication.
#[derive(Clone, PartialEq, Eq)]
pub struct Basic(String);

impl Basic {
    /// Encodes the name and the password of a user.
    pub fn new(user: &str, password: &str) -> Basic {
        Basic(BASE64.encode(format!("{user}:{password}")))
    }
}

/// Debug output contains no secrets.
impl fmt::Debug for Basic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Basic(…)")
    }
}

/// Builds requests for the objects of one server.
#[derive(Debug)]
pub struct Store {
    host: String,
    protocol: Protocol,
    path: String,
    range: String,
    source: String,
    fields: String,
    headers: Headers,
}

/// More fields for the heads of requests, with names in lower case, at most [`Headers::MOST`] of each kind.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// Those of GET and HEAD.
    pub reads: Vec<(String, String)>,
    /// Those of requests that make objects: PUT, and the beginning of an upload in parts.
    pub writes: Vec<(String, String)>,
    /// Those of DELETE.
    pub removals: Vec<(String, String)>,
}

impl Headers {
    /// The maximum number of fields of a request.
    pub const MOST: usize = 16;

    fn of(&self, method: Method, query: &str) -> &[(String, String)] {
        match method {
            Method::Get | Method::Head => &self.reads,
            Method::Put | Method::Copy if query.is_empty() => &self.writes,
            Method::Post if query == BEGIN_UPLOAD => &self.writes,
            // (Other requests of an upload name it.)
            Method::Delete if !query.starts_with(UPLOAD) => &self.removals,
            _ => &[],
        }
    }
}

impl Store {
    /// Makes a store for the server with this name (with its port, unless it is the default port).
    pub fn new(host: String, protocol: Protocol) -> Store {
        Store {
            host,
            protocol,
            path: String::new(),
            range: String::new(),
            source: String::new(),
            fields: String::new(),
            headers: Headers::default(),
        }
    }

    /// Adds these fields to all heads from now on.
    pub fn set_headers(&mut self, headers: Headers) {
        self.headers = headers;
    }

    /// Appends the head of a request with this body.
    pub fn head(&mut self, method: Method, object: &Object<'_>, body: &[u8], out: &mut String) {
        self.path.clear();
        percent_encoded(object.name.as_bytes(), &mut self.path);
        let Store { host, protocol, path, range, source, fields, headers } = self;
        source.clear();
        percent_encoded(object.source.as_bytes(), source);
        let headers = headers.of(method, object.query);
        range.clear();
        if let Some(part) = &object.part {
            // (Writing to a String does not fail.)
            let _ = write!(range, "bytes={}-{}", part.start, part.end.saturating_sub(1));
        }
        fields.clear();
        match protocol {
            Protocol::S3(s3) => {
                s3.fields(method, host, (path, object.query), (range, source, headers), body, fields)
            }
            Protocol::WebDav(user) => match user {
                Some(User::Basic(Basic(text))) => {
                    let _ = write!(fields, "Authorization: Basic {text}\r\n");
                }
                Some(User::Digest(digest)) => {
                    let target = if method == Method::Copy { &*source } else { &*path };
                    digest.answer(method.word(), target, fields);
                }
                None => {}
            },
            Protocol::Swift(token) => {
                if let Some(token) = token {
                    let _ = write!(fields, "X-Auth-Token: {token}\r\n");
                }
            }
        }
        // (S3 has signed its own.)
        let is_s3 = matches!(protocol, Protocol::S3(_));
        // S3 copies to the object of the request, WebDAV from it.
        let verb = if is_s3 && method == Method::Copy { Method::Put } else { method };
        if !is_s3 && method == Method::Copy {
            let _ = write!(fields, "Destination: {path}\r\n");
            path.clone_from(source);
        }
        for (name, value) in headers.iter().filter(|(name, _)| !(is_s3 && name.starts_with("x-amz-"))) {
            let _ = write!(fields, "{name}: {value}\r\n");
        }
        let mark = if object.query.is_empty() { "" } else { "?" };
        let _ =
            write!(out, "{} {path}{mark}{} HTTP/1.1\r\nHost: {host}\r\n{fields}", verb.word(), object.query);
        if !range.is_empty() {
            let _ = write!(out, "Range: {range}\r\n");
        }
        if method.has_body() {
            let _ = write!(out, "Content-Length: {}\r\n", body.len());
        }
        out.push_str("\r\n");
    }

    /// Renews the signature of a head before it is sent again, because servers refuse old signatures.
    pub(crate) fn sign_again(&mut self, head: &mut String, now: SystemTime) {
        let Protocol::S3(s3) = &mut self.protocol else { return };
        let Some(signer) = &mut s3.signer else { return };
        let old = std::mem::take(head);
        let mut lines = old.split("\r\n");
        let line = lines.next().unwrap_or_default();
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut payload = OF_NOTHING;
        let mut signed: Vec<(String, &str)> = Vec::new();
        head.push_str(line);
        head.push_str("\r\n");
        for line in lines.filter(|line| !line.is_empty()) {
            let Some((name, value)) = line.split_once(": ") else { continue };
            match name.to_ascii_lowercase().as_str() {
                "x-amz-content-sha256" => payload = value,
                "authorization" | "x-amz-date" => {}
                name => {
                    if matches!(name, "host" | "range") || name.starts_with("x-amz-") {
                        signed.push((name.to_owned(), value));
                    }
                    head.push_str(line);
                    head.push_str("\r\n");
                }
            }
        }
        signed.sort();
        let fields: Vec<(&str, &str)> = signed.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        signer.sign(Signed { method, path, query, payload }, &fields, now, head);
        head.push_str("\r\n");
    }

    /// Adds the answer to a server's challenge (401) to the head of a request that will be sent again; `None` = the
    /// challenge cannot be answered.
    pub(crate) fn identify(&mut self, answer: &Answer, head: &mut String) -> Option<Asked> {
        let Protocol::WebDav(Some(User::Digest(digest))) = &mut self.protocol else { return None };
        let answered = head.lines().find(|line| line.starts_with("Authorization: Digest "));
        let answered =
            answered.and_then(|line| Some(line.split_once(" nonce=\"")?.1.split_once("\", uri=")?.0));
        let asked = digest.challenged(answer, answered)?;
        let old = std::mem::take(head);
        let line = old.lines().next().unwrap_or_default();
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        for line in old.split("\r\n").filter(|line| !line.is_empty() && !line.starts_with("Authorization:")) {
            head.push_str(line);
            head.push_str("\r\n");
        }
        digest.answer(method, target, head);
        head.push_str("\r\n");
        Some(asked)
    }
}

/// The query that begins a multipart upload.
pub(crate) const BEGIN_UPLOAD: &str = "uploads=";
/// The beginning of the query that ends or aborts it.
pub(crate) const UPLOAD: &str = "uploadId=";

impl S3 {
    /// Appends the header fields of S3, with a signature if there is a signer.
    fn fields(
        &mut self,
        method: Method,
        host: &str,
        (path, query): (&str, &str),
        (range, source, headers): (&str, &str, &[(String, String)]),
        body: &[u8],
        out: &mut String,
    ) {
        let token = self.signer.as_ref().and_then(Signer::token).map(str::to_owned);
        let is_hashed = self.signer.is_some() && !self.unsigned_bodies;
        let needs_hash = is_hashed || self.checksum == Some(Checksum::Sha256);
        let hash = (!body.is_empty() && needs_hash).then(|| Sha256::digest(body).0);
        let checksum = self.checksum.filter(|_| method == Method::Put).map(|checksum| match checksum {
            Checksum::Crc32c => {
                let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, body) as u32;
                ("x-amz-checksum-crc32c", BASE64.encode(crc.to_be_bytes()))
            }
            Checksum::Sha256 => {
                ("x-amz-checksum-sha256", BASE64.encode(hash.unwrap_or_else(|| Sha256::digest(body).0)))
            }
        });
        let begins_upload = method == Method::Post && query == BEGIN_UPLOAD;
        // Sorted by name, as the signature requires.
        let mut fields: [(&str, &str); 12 + Headers::MOST] = [("", ""); 12 + Headers::MOST];
        let mut count = 0;
        let mut add = |name, value| {
            fields[count] = (name, value);
            count += 1;
        };
        add("host", host);
        if !range.is_empty() {
            add("range", range);
        }
        if let Some((name, value)) = &checksum {
            add(name, value);
        } else if begins_upload && let Some(checksum) = self.checksum {
            // This announces the checksum of the parts.
            let name = if checksum == Checksum::Crc32c { "CRC32C" } else { "SHA256" };
            add("x-amz-checksum-algorithm", name);
        }
        if let Some(token) = &token {
            add("x-amz-security-token", token);
        }
        if let Some(key) = &self.customer_key
            // (The request that ends an upload needs the key if the parts have checksums.)
            && (begins_upload
                || matches!(method, Method::Get | Method::Head | Method::Put | Method::Copy)
                || (method == Method::Post && self.checksum.is_some()))
        {
            add("x-amz-server-side-encryption-customer-algorithm", &key.algorithm);
            add("x-amz-server-side-encryption-customer-key", &key.key);
            add("x-amz-server-side-encryption-customer-key-md5", &key.check);
        }
        if !source.is_empty() {
            add("x-amz-copy-source", source);
            if let Some(key) = &self.customer_key {
                add("x-amz-copy-source-server-side-encryption-customer-algorithm", &key.algorithm);
                add("x-amz-copy-source-server-side-encryption-customer-key", &key.key);
                add("x-amz-copy-source-server-side-encryption-customer-key-md5", &key.check);
            }
        }
        if let Some(class) = &self.storage_class
            && (begins_upload || (matches!(method, Method::Put | Method::Copy) && query.is_empty()))
        {
            add("x-amz-storage-class", class);
        }
        for (name, value) in headers.iter().filter(|(name, _)| name.starts_with("x-amz-")) {
            add(name, value);
        }
        let fields = &mut fields[..count];
        fields.sort_unstable();
        for (name, value) in fields.iter().filter(|(name, _)| name.starts_with("x-")) {
            let _ = write!(out, "{name}: {value}\r\n");
        }
        if let Some(signer) = &mut self.signer {
            let mut digits = String::new();
            let payload = match hash {
                _ if body.is_empty() => OF_NOTHING,
                Some(hash) if is_hashed => {
                    hex(hash, &mut digits);
                    &digits
                }
                _ => "UNSIGNED-PAYLOAD",
            };
            let word = if method == Method::Copy { "PUT" } else { method.word() };
            let signed = Signed { method: word, path, query, payload };
            signer.sign(signed, fields, SystemTime::now(), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Credentials;

    fn head(protocol: Protocol, method: Method, object: &Object<'_>, body: &[u8]) -> String {
        let mut out = String::new();
        Store::new("h:9000".into(), protocol).head(method, object, body, &mut out);
        out
    }

    const WHOLE: Object<'static> = Object { name: "/b/o 1_0_4", part: None, query: "", source: "" };

    #[test]
    fn heads_name_the_method_and_the_object() {
        let anonymous = || Protocol::S3(Box::default());
        assert_eq!(
            head(anonymous(), Method::Get, &WHOLE, b""),
            "GET /b/o%201_0_4 HTTP/1.1\r\nHost: h:9000\r\n\r\n"
        );
        let part = Object { part: Some(4096..8192), ..WHOLE };
        let text = head(anonymous(), Method::Get, &part, b"");
        assert!(text.ends_with("Host: h:9000\r\nRange: bytes=4096-8191\r\n\r\n"), "{text}");
        assert!(head(anonymous(), Method::Put, &WHOLE, b"body").ends_with("Content-Length: 4\r\n\r\n"));
        let user = Protocol::WebDav(Some(User::Basic(Basic::new("Aladdin", "open sesame"))));
        // The example of RFC 7617.
        let text = head(user, Method::Delete, &WHOLE, b"");
        assert!(text.contains("\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"), "{text}");
        let text = head(Protocol::Swift(Some("t0k".into())), Method::Head, &WHOLE, b"");
        assert!(text.contains("\r\nX-Auth-Token: t0k\r\n"), "{text}");
    }

    #[test]
    fn all_s3_headers_are_signed() {
        let credentials = Credentials { id: "A".into(), secret: "s".into(), token: Some("the-token".into()) };
        let s3 = S3 {
            signer: Some(Signer::new(credentials, "eu-west-1")),
            storage_class: Some("GLACIER".into()),
            customer_key: Some(CustomerKey::new("AES256", "0123456789abcdef0123456789abcdef").unwrap()),
            checksum: None,
            unsigned_bodies: false,
        };
        let mut store = Store::new("h".into(), Protocol::S3(Box::new(s3)));
        let mut put = String::new();
        store.head(Method::Put, &WHOLE, b"body", &mut put);
        let names = "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token;\
                     x-amz-server-side-encryption-customer-algorithm;x-amz-server-side-encryption-customer-key;\
                     x-amz-server-side-encryption-customer-key-md5;x-amz-storage-class,";
        assert!(put.contains(names), "{put}");
        assert!(put.contains("\r\nx-amz-storage-class: GLACIER\r\n"), "{put}");
        let mut hash = String::new();
        hex(Sha256::digest(b"body").0, &mut hash);
        assert!(put.contains(&hash) && put.contains("/eu-west-1/s3/aws4_request,"), "{put}");
        let mut get = String::new();
        store.head(Method::Get, &Object { part: Some(0..1), ..WHOLE }, b"", &mut get);
        assert!(get.contains("SignedHeaders=host;range;x-amz") && !get.contains("storage-class"), "{get}");
        assert!(get.contains(OF_NOTHING), "{get}");
    }

    #[test]
    fn a_head_that_is_signed_again_is_as_good_as_a_new_one() {
        let credentials = Credentials { id: "A".into(), secret: "s".into(), token: Some("the-token".into()) };
        let s3 = S3 { signer: Some(Signer::new(credentials, "eu-west-1")), ..S3::default() };
        let mut store = Store::new("h".into(), Protocol::S3(Box::new(s3)));
        let part = Object { part: Some(0..10), query: "partNumber=1&uploadId=x%2F", ..WHOLE };
        for (method, object, body) in [(Method::Put, &WHOLE, &b"body"[..]), (Method::Get, &part, b"")] {
            let mut first = String::new();
            store.head(method, object, body, &mut first);
            let sorted = |head: &str| {
                let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            let moment = first.split("x-amz-date: ").nth(1).unwrap()[..16].to_owned();
            let then = iso_seconds(&moment);
            let mut again = first.clone();
            store.sign_again(&mut again, then);
            assert_eq!(sorted(&again), sorted(&first), "the signature of the same time is the same");
            assert!(again.ends_with("\r\n\r\n") && !again.trim_end().contains("\r\n\r\n"), "{again}");
            store.sign_again(&mut again, then + std::time::Duration::from_secs(3600));
            assert_ne!(sorted(&again), sorted(&first));
        }
    }

    /// `20130524T000000Z`
    fn iso_seconds(text: &str) -> SystemTime {
        let spread = format!(
            "{}-{}-{}T{}:{}:{}Z",
            &text[..4],
            &text[4..6],
            &text[6..8],
            &text[9..11],
            &text[11..13],
            &text[13..15]
        );
        let seconds = crate::encoding::seconds_of(&spread).unwrap();
        std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)
    }

    #[test]
    fn checksums_are_sent_with_objects() {
        // The CRC-32C of these digits is e3069283, the usual check of its polynomial; the SHA-256 is that of
        // sha256sum(1).
        for (checksum, field) in [
            (Checksum::Crc32c, "x-amz-checksum-crc32c: 4waSgw==\r\n"),
            (Checksum::Sha256, "x-amz-checksum-sha256: FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=\r\n"),
        ] {
            let s3 = || Protocol::S3(Box::new(S3 { checksum: Some(checksum), ..S3::default() }));
            let text = head(s3(), Method::Put, &WHOLE, b"123456789");
            assert!(text.contains(field), "{text}");
            assert!(!head(s3(), Method::Get, &WHOLE, b"").contains("checksum"));
        }
    }

    #[test]
    fn customer_keys_have_32_bytes() {
        let plain = CustomerKey::new("AES256", "0123456789abcdef0123456789abcdef").unwrap();
        let encoded = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
        assert_eq!(CustomerKey::new("AES256", encoded).unwrap(), plain);
        assert_eq!((plain.key.as_str(), plain.check.len()), (encoded, 24));
        assert!(CustomerKey::new("AES256", "short").unwrap_err().contains("32 bytes"));
        assert!(!format!("{plain:?}").contains("MDEy"));
    }
}
