//! Access control: who may look at pages, end a run, and start one.
//!
//! The printed addresses contain 128-bit tokens. A browser that sends one gets a cookie and is redirected to an address
//! without the token, so that no bookmark, proxy log or referrer contains the token. There is one token per right:
//! looking, ending, starting.
//!
//! Cookies belong to a host, not to a port: browsers would also send them to another program on this machine. So all
//! pages are below a secret path, and the cookie is limited to that path.
//!
//! A page from another site that is open in the same browser can send requests here. They are recognised by `Host`,
//! which is not a name of this machine, or by `Origin` or `Sec-Fetch-Site`. A request that changes something also needs a
//! proof that only our own page has.

use crate::answer::Answer;
use crate::request::Request;
use crate::security::Names;
use iolite_os::process::secret;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::io;

/// The rights of a reader. Each includes the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Rights {
    /// Look.
    Look,
    /// End a run.
    End,
    /// Write and start one.
    Start,
}

/// A secret in a printed address, and its right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The right that it grants.
    pub rights: Rights,
    /// The secret.
    pub secret: String,
}

impl Token {
    /// Creates tokens for these rights.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub fn of(rights: &[Rights]) -> io::Result<Vec<Token>> {
        rights.iter().map(|rights| Ok(Token { rights: *rights, secret: token()? })).collect()
    }
}

/// The secrets of a site.
#[derive(Debug)]
pub struct Access {
    /// The tokens, each with the value of its cookie.
    tokens: Vec<(Token, String)>,
    /// The first part of all paths except `/`.
    place: String,
    /// The proofs that requests to end and to start a run must contain.
    proofs: [String; 2],
    /// The host names of the site.
    names: Names,
}

/// The decision about a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// Send this answer.
    Answered(Answer),
    /// The reader has these rights, and asks for this path below that of the site.
    Admitted(Rights, String),
}

/// A new secret: 128 bits, in hexadecimal digits.
///
/// # Errors
/// The kernel has no random numbers.
fn token() -> io::Result<String> {
    let bytes: [u8; 16] = secret()?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Whether a secret is the right one. The time of the comparison does not depend on the difference.
fn is_same(given: &str, right: &str) -> bool {
    given.len() == right.len() && given.bytes().zip(right.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

impl Access {
    /// Access control for a site with these tokens and names.
    pub fn new(tokens: Vec<Token>, names: Names) -> io::Result<Access> {
        let tokens = tokens.into_iter().map(|one| Ok((one, token()?))).collect::<io::Result<_>>()?;
        Ok(Access { tokens, place: token()?, proofs: [token()?, token()?], names })
    }

    /// The proof that a request for this right must contain, and the header field for it.
    fn right(&self, rights: Rights) -> Option<(&'static str, &str)> {
        match rights {
            Rights::Look => None,
            Rights::End => Some(("x-iolite-stop", &self.proofs[0])),
            Rights::Start => Some(("x-iolite-start", &self.proofs[1])),
        }
    }

    /// The proof for the page of a reader with the right `given`, to end or start a run.
    pub fn proof(&self, given: Rights, wanted: Rights) -> Option<&str> {
        self.right(wanted).filter(|_| given >= wanted).map(|(_, proof)| proof)
    }

    /// Whether a request of a reader with these rights may use another right, and comes from its page.
    pub fn may(&self, given: Rights, wanted: Rights, request: &Request) -> bool {
        let is_proven = |(line, proof)| request.one(line).is_some_and(|found| is_same(found, proof));
        given >= wanted && self.right(wanted).is_none_or(is_proven)
    }

    /// Checks the origin of a request and the rights of the reader.
    pub fn admit(&self, request: &Request) -> Admission {
        let refused = |status, words: &str| Admission::Answered(Answer::text(status, words));
        let Some(host) = request.one("host").filter(|host| self.names.have(host)) else {
            return refused(421, self.names.words());
        };
        let scheme = self.names.scheme();
        let is_own =
            |origin: &str| origin.strip_prefix(scheme).is_some_and(|from| from.eq_ignore_ascii_case(host));
        let changes = request.method != "GET";
        let is_foreign = match request.all("origin").next() {
            Some(_) => !request.one("origin").is_some_and(is_own),
            None => changes,
        };
        if is_foreign {
            return refused(403, "The request comes from a page of another site.");
        }
        if request.path == "/" && !changes {
            return Admission::Answered(self.exchange(&request.query));
        }
        if request.all("sec-fetch-site").any(|from| !["same-origin", "none"].contains(&from)) {
            return refused(403, "The request comes from a page of another site.");
        }
        let path = request.path.strip_prefix('/').and_then(|path| path.split_once('/'));
        match path.filter(|(place, _)| is_same(place, &self.place)) {
            Some((_, rest)) => match self.rights(request) {
                Some(rights) => Admission::Admitted(rights, rest.to_owned()),
                None => refused(403, "Open the address that the run has printed."),
            },
            None => refused(404, "There is nothing here."),
        }
    }

    /// Exchanges a token for a cookie, then redirects by a page of this site: browsers withhold a SameSite cookie from
    /// a redirect that another site started.
    fn exchange(&self, query: &str) -> Answer {
        let given = query.split('&').find_map(|part| part.strip_prefix("token=")).unwrap_or_default();
        let Some((_, cookie)) = self.tokens.iter().find(|(token, _)| is_same(given, &token.secret)) else {
            return Answer::text(
                403,
                "Open the address that the run has printed: this one has not its token.",
            );
        };
        let place = &self.place;
        let page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"refresh\" content=\"0; url=/{place}/\">\n\
             <title>The run</title>\n</head>\n<body><p><a href=\"/{place}/\">To the run</a></p></body>\n</html>\n"
        );
        let policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
        let secure = if self.names.scheme() == "https://" { "; Secure" } else { "" };
        let cookie =
            format!("{}={cookie}; Path=/{place}/; HttpOnly; SameSite=Strict{secure}", self.cookie_name());
        Answer::page(page, policy).with_cookie(cookie)
    }

    /// The name of the cookie, different for each of several sites on one machine.
    fn cookie_name(&self) -> String {
        format!("iolite-{}", &self.place[..8])
    }

    fn rights(&self, request: &Request) -> Option<Rights> {
        let name = self.cookie_name();
        let cookies = request
            .all("cookie")
            .flat_map(|line| line.split(';'))
            .filter_map(|one| one.trim().split_once('='));
        let mut given = cookies.filter(|(found, _)| *found == name).map(|(_, value)| value);
        given.find_map(|value| {
            let found = self.tokens.iter().find(|(_, cookie)| is_same(value, cookie));
            found.map(|(token, _)| token.rights)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Rights; 3] = [Rights::Start, Rights::End, Rights::Look];

    fn access() -> Access {
        Access::new(Token::of(&ALL).unwrap(), Names::Here).unwrap()
    }

    fn request(line: &str, headers: &[(&str, &str)]) -> Request {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        Request::parse(format!("{line} HTTP/1.1\r\n{lines}\r\n").as_bytes(), 0).unwrap().unwrap()
    }

    fn status(access: &Access, line: &str, headers: &[(&str, &str)]) -> u16 {
        match access.admit(&request(line, headers)) {
            Admission::Answered(answer) => answer.status,
            Admission::Admitted(..) => 0,
        }
    }

    const HOST: (&str, &str) = ("Host", "127.0.0.1:8080");

    #[test]
    fn a_token_gives_a_cookie_and_a_cookie_its_right() {
        let access = access();
        for (place, expected) in ALL.into_iter().enumerate() {
            let (Token { secret, .. }, value) = &access.tokens[place];
            assert_eq!(secret.len(), 32);
            let exchange =
                request(&format!("GET /?token={secret}"), &[HOST, ("Sec-Fetch-Site", "cross-site")]);
            let Admission::Answered(answer) = access.admit(&exchange) else { panic!() };
            let sent = format!("{answer:?}");
            assert_eq!(answer.status, 200);
            assert!(sent.contains("HttpOnly; SameSite=Strict") && !sent.contains(secret.as_str()), "{sent}");
            let cookie = format!("other=1; {}={value}", access.cookie_name());
            let path = format!("GET /{}/a", access.place);
            let admitted = access.admit(&request(&path, &[HOST, ("Cookie", &cookie)]));
            assert_eq!(admitted, Admission::Admitted(expected, "a".to_owned()));
            assert_eq!(
                status(&access, &path, &[HOST, ("Cookie", &cookie), ("Sec-Fetch-Site", "same-site")]),
                403
            );
        }
    }

    #[test]
    fn others_are_refused() {
        let access = access();
        let token = &access.tokens[0].0.secret;
        let wrong = "0".repeat(32);
        for (line, headers, expected) in [
            ("GET /".to_owned(), &[HOST][..], 403),
            (format!("GET /?token={wrong}"), &[HOST], 403),
            (format!("GET /?token={token}0"), &[HOST], 403),
            (format!("GET /?token={}", &token[..31]), &[HOST], 403),
            (format!("GET /?token={token}"), &[], 421),
            (format!("GET /?token={token}"), &[("Host", "evil.example:8080")], 421),
            (format!("GET /?token={token}"), &[HOST, HOST], 421),
            (format!("GET /?token={token}"), &[HOST, ("Origin", "http://evil.example")], 403),
            (format!("POST /?token={token}"), &[HOST], 403),
            (format!("GET /{}/", access.place), &[HOST], 403),
            (format!("GET /{}/", access.place), &[HOST, ("Cookie", "iolite-00000000=0")], 403),
            ("GET /favicon.ico".to_owned(), &[HOST], 404),
            (format!("POST /{}/stop", access.place), &[HOST], 403),
            (format!("POST /{}/stop", access.place), &[HOST, ("Origin", "null")], 403),
            (format!("POST /{}/stop", access.place), &[HOST, ("Origin", "http://127.0.0.1:8081")], 403),
        ] {
            assert_eq!(status(&access, &line, headers), expected, "{line} {headers:?}");
        }
    }

    #[test]
    fn each_right_needs_its_own_proof_once_and_whole() {
        let access = access();
        let line = format!("POST /{}/stop", access.place);
        let [stop, start] = &access.proofs;
        let may =
            |given, wanted, headers: &[(&str, &str)]| access.may(given, wanted, &request(&line, headers));
        use Rights::{End, Look, Start};
        assert!(may(End, End, &[("X-Iolite-Stop", stop)]) && may(Start, End, &[("X-Iolite-Stop", stop)]));
        assert!(may(Start, Start, &[("X-Iolite-Start", start)]) && may(Look, Look, &[]));
        for headers in [
            &[][..],
            &[("X-Iolite-Stop", "")],
            &[("X-Iolite-Stop", access.tokens[0].1.as_str())],
            &[("X-Iolite-Stop", start)],
            &[("X-Iolite-Start", stop)],
            &[("X-Iolite-Start", start), ("X-Iolite-Start", start)],
        ] {
            assert!(!may(Start, Start, headers) && !may(Start, End, headers), "{headers:?}");
        }
        assert!(
            !may(End, Start, &[("X-Iolite-Start", start)]) && !may(Look, End, &[("X-Iolite-Stop", stop)])
        );
        assert_eq!((access.proof(End, Start), access.proof(Look, End)), (None, None));
        assert_eq!((access.proof(Start, Start), access.proof(End, End)), (Some(&**start), Some(&**stop)));
    }
}
