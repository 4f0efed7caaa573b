//! Remedies for a server's refusals.

use iolite_http::Refusal;
use iolite_options::engines::{Authentication, Encryption, HttpOptions, HttpProtocol};

/// The remedy if an object is shorter than the read.
pub(super) const TOO_SHORT: &str =
    "write it first, with a section of rw=write, or with http_create=1, which does so before the job";

/// The remedy for a refusal, to append to its message; empty = no remedy is known.
pub(super) fn of(refusal: &Refusal, options: &HttpOptions, is_read: bool) -> String {
    let text = match (refusal.code.as_deref().unwrap_or_default(), refusal.status) {
        ("SignatureDoesNotMatch", _) => "the secret key (http_s3_key) is not that of this access key".to_owned(),
        ("InvalidAccessKeyId", _) => "the server knows no such access key (http_s3_keyid)".to_owned(),
        ("RequestTimeTooSkewed", _) => "the clock of this machine or of the server is wrong".to_owned(),
        ("AuthorizationHeaderMalformed" | "PermanentRedirect" | "IllegalLocationConstraintException", _) => {
            let region = &options.http_s3_region;
            match &refusal.region {
                Some(wanted) if wanted != region => {
                    format!("http_s3_region={region}: the bucket is in region {wanted}")
                }
                _ => format!("http_s3_region={region} may be another region than the bucket's"),
            }
        }
        // (An answer to HEAD has no error code, but may have the field with the region.)
        ("", 301 | 307 | 400) if refusal.region.as_ref().is_some_and(|wanted| *wanted != options.http_s3_region) => {
            let wanted = refusal.region.as_deref().unwrap_or_default();
            format!("http_s3_region={}: the bucket is in region {wanted}", options.http_s3_region)
        }
        ("InvalidToken" | "InvalidTokenId" | "ExpiredToken", _) => {
            "the session token (http_s3_security_token) has expired, or belongs to other keys".to_owned()
        }
        ("AccessDenied", _) if options.http_s3_anonymous => {
            "anonymous access is not allowed there (http_s3_anonymous=1)".to_owned()
        }
        ("AccessDenied", _) if options.http_s3_sse_customer_key.is_given() => {
            "this account has no permission for that there, or the object was written with another key \
             (http_s3_sse_customer_key)"
                .to_owned()
        }
        ("AccessDenied", _) => "this account has no permission for that there".to_owned(),
        ("EntityTooSmall", _) => {
            "real servers want parts of at least 5 MiB, except for the last (http_s3_multipart_size)".to_owned()
        }
        ("NoSuchBucket", _) => "make the bucket first (aws s3 mb s3://BUCKET --endpoint-url URL; http_create=1 makes objects, but \
                                no buckets), or correct filename=/BUCKET/NAME"
            .to_owned(),
        (_, 401) => match options.http_mode {
            HttpProtocol::Swift => "the token (http_swift_auth_token) is missing, wrong or expired".to_owned(),
            _ => unidentified(refusal, options),
        },
        (_, 301 | 302 | 303 | 307 | 308) => moved(refusal, options),
        (_, 400) if says(refusal, "SSL certificate") => {
            "the server wants a certificate of yours, signed by an authority that it trusts (http_cert_file, http_key_file)".to_owned()
        }
        (_, 400) if options.https == Encryption::Off && says(refusal, "HTTPS") => {
            "the port is one for encrypted connections (https=on)".to_owned()
        }
        (_, 403) if options.http_mode == HttpProtocol::S3 => {
            "keys (http_s3_keyid, http_s3_key), region (http_s3_region) or clock are wrong, or this account may not \
             do that there"
                .to_owned()
        }
        (_, 404) if options.http_mode == HttpProtocol::Swift && !is_read => {
            "make the container first, or correct filename=/v1/ACCOUNT/CONTAINER/NAME".to_owned()
        }
        (_, 404 | 416) if is_read => TOO_SHORT.to_owned(),
        (_, 404 | 409) if options.http_mode == HttpProtocol::WebDav => {
            "the collection that it is to be in may be missing".to_owned()
        }
        (_, 429 | 503) => {
            "the server asks for fewer requests: lower iodepth or numjobs, or have requests repeated with http_retries=".to_owned()
        }
        _ => return String::new(),
    };
    format!("; {text}")
}

/// Whether the server's message contains these words.
fn says(refusal: &Refusal, words: &str) -> bool {
    refusal.message.as_ref().is_some_and(|message| message.contains(words))
}

/// The remedy if a server does not know the user.
fn unidentified(refusal: &Refusal, options: &HttpOptions) -> String {
    let (own, word) = match options.http_auth {
        Authentication::Basic => ("Basic", "basic"),
        Authentication::Digest => ("Digest", "digest"),
    };
    if refusal.offers.is_empty() || refusal.offers(own) {
        return "user or password (http_user, http_pass) is missing or wrong".to_owned();
    }
    let offers = refusal.offers.join(", ");
    let other = if own == "Basic" { ("Digest", "digest") } else { ("Basic", "basic") };
    match options.http_user.as_str() {
        _ if !refusal.offers(other.0) => {
            format!(
                "the server offers {offers} as authentication, and http_auth can be basic, or digest with MD5 or SHA-256 and \
                 qop=auth"
            )
        }
        "" => format!("the server wants http_user, http_pass and http_auth={}: it offers {offers}", other.1),
        _ => format!("http_auth={word}: the server offers {offers}; use http_auth={}", other.1),
    }
}

/// The remedy if a server sends requests elsewhere.
fn moved(refusal: &Refusal, options: &HttpOptions) -> String {
    let Some(location) = &refusal.location else {
        return "the server does not say where else (http_host, filename)".to_owned();
    };
    let host = location.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    let remedy = match host {
        Some(host) if host != options.http_host && options.http_mode == HttpProtocol::S3 => {
            format!("the bucket may be in another region (http_s3_region), or at http_host={host}")
        }
        Some(host) if host != options.http_host => format!("http_host={host} may be the one to use"),
        _ if location.starts_with("https:") && options.https == Encryption::Off => {
            "the server wants encrypted connections (https=on)".to_owned()
        }
        _ => "the name may be another one there (filename)".to_owned(),
    };
    format!("redirections are not followed; the server names {location}: {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_own_remedy() {
        let options = HttpOptions { http_mode: HttpProtocol::S3, ..HttpOptions::default() };
        let of = |code: &str, status, region: Option<&str>| {
            let code = Some(code.to_owned()).filter(|code| !code.is_empty());
            let region = region.map(str::to_owned);
            of(&Refusal { status, code, region, ..Refusal::default() }, &options, true)
        };
        assert!(of("SignatureDoesNotMatch", 403, None).contains("http_s3_key)"));
        assert!(of("InvalidTokenId", 403, None).contains("http_s3_security_token"));
        assert!(of("AccessDenied", 403, None).contains("no permission"));
        assert!(of("InvalidAccessKeyId", 403, None).contains("http_s3_keyid"));
        assert!(of("RequestTimeTooSkewed", 403, None).contains("clock"));
        let region = of("AuthorizationHeaderMalformed", 400, Some("eu-west-1"));
        assert!(region.contains("us-east-1: the bucket is in region eu-west-1"), "{region}");
        let region = of("", 301, Some("eu-west-1"));
        assert!(region.contains("us-east-1: the bucket is in region eu-west-1"), "{region}");
        assert!(of("NoSuchKey", 404, None).contains("http_create=1"));
        assert!(of("NoSuchBucket", 404, None).contains("make the bucket"));
        assert!(of("SlowDown", 503, None).contains("http_retries="));
        assert_eq!(of("", 418, None), "");
    }

    #[test]
    fn kinds_of_authentication_that_do_not_fit_are_named() {
        let of = |auth, user: &str, offers: &[&str]| {
            let options =
                HttpOptions { http_auth: auth, http_user: user.to_owned(), ..HttpOptions::default() };
            let offers = offers.iter().map(|&name| name.to_owned()).collect();
            of(&Refusal { status: 401, offers, ..Refusal::default() }, &options, true)
        };
        let (basic, digest) = (Authentication::Basic, Authentication::Digest);
        for (auth, offers) in [(basic, &["Basic"][..]), (digest, &["Basic", "Digest"]), (digest, &[])] {
            assert!(of(auth, "u", offers).contains("missing or wrong"), "{offers:?}");
        }
        assert!(
            of(digest, "u", &["Basic"])
                .contains("http_auth=digest: the server offers Basic; use http_auth=basic")
        );
        assert!(
            of(basic, "u", &["digest"])
                .contains("http_auth=basic: the server offers digest; use http_auth=digest")
        );
        assert!(of(basic, "", &["Digest"]).contains("wants http_user, http_pass and http_auth=digest"));
        assert!(of(basic, "u", &["Negotiate", "NTLM"]).contains("offers Negotiate, NTLM as authentication"));
        let stronger = of(digest, "u", &["Digest with algorithm=SHA-512-256"]);
        assert!(
            stronger.contains("algorithm=SHA-512-256 as authentication, and http_auth can be"),
            "{stronger}"
        );
    }

    #[test]
    fn redirections_name_the_place_and_a_remedy() {
        let of = |location: Option<&str>, options: &HttpOptions| {
            let location = location.map(str::to_owned);
            of(&Refusal { status: 307, location, ..Refusal::default() }, options, true)
        };
        let mut options = HttpOptions { http_host: "h:1".to_owned(), ..HttpOptions::default() };
        assert!(of(None, &options).contains("does not say where"));
        assert!(of(Some("http://other:2/b/a"), &options).contains("http://other:2/b/a: http_host=other:2"));
        assert!(of(Some("https://h:1/b/a"), &options).contains("https=on"));
        assert!(of(Some("/elsewhere"), &options).contains("names /elsewhere"));
        options.http_mode = HttpProtocol::S3;
        assert!(of(Some("http://other/b/a"), &options).contains("http_s3_region"));
    }

    #[test]
    fn certificates_that_a_server_asks_for_are_named() {
        let of = |message: &str| {
            let message = Some(message.to_owned());
            of(&Refusal { status: 400, message, ..Refusal::default() }, &HttpOptions::default(), true)
        };
        assert!(of("No required SSL certificate was sent").contains("http_cert_file"));
        assert!(of("The plain HTTP request was sent to HTTPS port").contains("https=on"));
        assert!(of("Client sent an HTTP request to an HTTPS server.").contains("https=on"));
        assert_eq!(of("no"), "");
    }
}
