//! Why a server refused a request.

use crate::answer::Answer;
use crate::digest;
use std::fmt;

/// The maximum number of characters of a server's message that are reported.
const MOST_WORDS: usize = 400;

/// How a server explains a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// The error's name (S3): `NoSuchKey`.
    pub code: Option<String>,
    /// The server's message.
    pub message: Option<String>,
    /// The request's id in the server's own logs.
    pub request_id: Option<String>,
    /// The region that the server wants (S3).
    pub region: Option<String>,
    /// The URL of a redirection, without its user and its query, which may be secrets.
    pub location: Option<String>,
    /// The kinds of authentication that the server offers: `Basic`, `Digest`, …
    pub offers: Vec<String>,
}

impl Refusal {
    /// Extracts the refusal from an answer.
    pub fn of(answer: &Answer) -> Refusal {
        let text = String::from_utf8_lossy(&answer.text);
        let field = |name| answer.field(name).map(harmless);
        let is_document = text.trim_start().starts_with('<');
        let plain = || {
            let line = text.trim().lines().next().unwrap_or_default().trim();
            (!is_document && !line.is_empty()).then(|| harmless(line))
        };
        // Some servers put the reason into the title of a page: "400 No required SSL certificate was sent".
        let titled = || {
            let title = element(&text, "title")?;
            let reason = title.strip_prefix(&answer.status.to_string()).unwrap_or(&title).trim();
            (phrase(answer.status) != Some(reason) && !reason.is_empty()).then(|| reason.to_owned())
        };
        let ids = ["x-amz-request-id", "x-trans-id", "x-openstack-request-id", "x-request-id"];
        Refusal {
            status: answer.status,
            code: element(&text, "Code"),
            message: element(&text, "Message").or_else(plain).or_else(titled),
            request_id: ids.into_iter().find_map(field).or_else(|| element(&text, "RequestId")),
            region: field("x-amz-bucket-region").or_else(|| element(&text, "Region")),
            location: field("location").map(|url| bare(&url)),
            offers: offers(answer),
        }
    }

    /// Whether the server offers this kind of authentication.
    pub fn offers(&self, scheme: &str) -> bool {
        self.offers.iter().any(|offered| offered.eq_ignore_ascii_case(scheme))
    }
}

/// `403 Forbidden, AccessDenied: Access Denied. (request 17A0)`
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if let Some(phrase) = phrase(self.status) {
            write!(f, " {phrase}")?;
        }
        if let Some(code) = &self.code {
            write!(f, ", {code}")?;
        }
        if let Some(message) = &self.message {
            write!(f, ": {message}")?;
        }
        match &self.request_id {
            Some(id) => write!(f, " (request {id})"),
            None => Ok(()),
        }
    }
}

/// A URL without its user and its query.
pub(crate) fn bare(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("//") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}//{host}{path}")
}

/// The kinds of authentication in the fields `WWW-Authenticate`: the first word of each challenge, without
/// repetitions. If a challenge has an unsupported parameter, it is added: `Digest with algorithm=SHA-512-256`.
fn offers(answer: &Answer) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (_, value) in answer.fields.iter().filter(|(name, _)| name == "www-authenticate") {
        let mut word = harmless(value.trim_start().split([' ', ',']).next().unwrap_or_default());
        if let Some(parameter) = digest::unsupported(value) {
            word = format!("{word} with {}", harmless(&parameter));
        }
        if !word.is_empty() && !all.iter().any(|known| known.eq_ignore_ascii_case(&word)) {
            all.push(word);
        }
    }
    all
}

/// Makes a server's message safe to show on a terminal: shortens it and removes control characters.
fn harmless(words: &str) -> String {
    words.chars().take(MOST_WORDS).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// The reason phrase of a status (RFC 9110 and 6585).
fn phrase(status: u16) -> Option<&'static str> {
    Some(match status {
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        507 => "Insufficient Storage",
        _ => return None,
    })
}

/// The text of the first element of this name, unescaped and safe to show.
fn element(text: &str, name: &str) -> Option<String> {
    element_text(text, name).map(|text| harmless(&text))
}

/// The text of the first element of this name, with XML's five predefined entities unescaped.
pub(crate) fn element_text(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    let plain =
        inner.trim().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    Some(plain.replace("&#34;", "\"").replace("&#39;", "'").replace("&amp;", "&"))
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, fields: &[(&str, &str)], text: &str) -> Answer {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Answer { status, fields, text: text.into(), ..Answer::default() }
    }

    #[test]
    fn the_servers_words_are_reported() {
        let xml = "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code><Message>a &lt;b&gt; &amp;amp; c</Message>\
                   <RequestId>body</RequestId></Error>";
        let refusal = Refusal::of(&answer(403, &[("x-amz-request-id", "17A0")], xml));
        assert_eq!(refusal.to_string(), "403 Forbidden, AccessDenied: a <b> &amp; c (request 17A0)");
        let refusal = Refusal::of(&answer(403, &[], xml));
        assert_eq!(refusal.request_id.as_deref(), Some("body"));
        let html = Refusal::of(&answer(404, &[], "<html><h1>Not Found</h1></html>"));
        assert_eq!(html.to_string(), "404 Not Found");
        let page = "<html>\r\n<head><title>400 No required SSL certificate was sent</title></head></html>";
        let titled = Refusal::of(&answer(400, &[], page));
        assert_eq!(titled.to_string(), "400 Bad Request: No required SSL certificate was sent");
        let plain_title = Refusal::of(&answer(404, &[], "<html><title>404 Not Found</title></html>"));
        assert_eq!(plain_title.to_string(), "404 Not Found");
        let rude = Refusal::of(&answer(403, &[("x-amz-request-id", "\u{1b}[2J")], "\u{7}no\u{1b}[31m"));
        assert_eq!(rude.to_string(), "403 Forbidden:  no [31m (request  [2J)");
        let plain = Refusal::of(&answer(599, &[("x-trans-id", "t")], "out of order\nmore"));
        assert_eq!(plain.to_string(), "599: out of order (request t)");
    }

    #[test]
    fn locations_and_authentication_kinds_omit_parameters() {
        let moved = Refusal::of(&answer(307, &[("location", "https://h/b/a?X-Amz-Signature=sesame")], ""));
        assert_eq!(moved.location.as_deref(), Some("https://h/b/a"));
        let field = "www-authenticate";
        let asked =
            [(field, "Basic realm=\"r\""), (field, "Digest nonce=\"n\""), (field, "Digest nonce=\"m\"")];
        let refused = Refusal::of(&answer(401, &asked, ""));
        assert_eq!(refused.offers, ["Basic", "Digest"]);
        assert!(refused.offers("basic") && !refused.offers("Negotiate"));
    }

    #[test]
    fn challenges_that_cannot_be_answered_are_named() {
        let field = "www-authenticate";
        let of = |challenge| Refusal::of(&answer(401, &[(field, challenge)], "")).offers;
        let other = of("Digest realm=\"r\", nonce=\"n\", algorithm=SHA-512-256, qop=\"auth\"");
        assert_eq!(other, ["Digest with algorithm=SHA-512-256"]);
        assert_eq!(of("Digest nonce=\"n\", qop=\"auth-int\""), ["Digest with qop=auth-int"]);
        assert_eq!(of("Digest nonce=\"n\", algorithm=sha-256, qop=\"auth-int,auth\""), ["Digest"]);
    }
}
