//! Who may look, and who may end the run.
//!
//! The address that is printed has a token of 128 bits. Whoever comes with it gets a cookie, and goes on without the token: so it
//! is in no bookmark, no log of a proxy and no referrer. There are two, because looking and ending are two rights.
//!
//! Cookies belong to a host, not to a port: a page of another program on this machine would be sent them, too. So all pages are
//! below a path of their own that nobody else knows, and the cookie is for that path only.
//!
//! A page of somebody else that the reader's browser has open can send requests here. It has none of the names of this machine
//! (`Host`), or says where it is from (`Origin`, `Sec-Fetch-Site`), and a request that ends the run needs a proof that only the
//! page itself has.

use crate::answer::Answer;
use crate::message::Tokens;
use crate::request::Request;
use iolite_os::process::secret;
use std::fmt::Write;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What a reader may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Look.
    Look,
    /// End the run as well.
    End,
}

/// The secrets of a site.
#[derive(Debug)]
pub struct Access {
    tokens: Tokens,
    /// The first part of all paths but `/`.
    place: String,
    /// What the cookies say, in the order of the tokens.
    cookies: [String; 2],
    /// What a request must have that ends the run.
    proof: String,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is answered with this.
    Answered(Answer),
    /// The reader may do this, and asks for this path below that of the site.
    Admitted(Rights, String),
}

/// A new secret: 128 bits, in hexadecimal digits.
///
/// # Errors
/// The kernel has no random numbers.
pub fn token() -> io::Result<String> {
    let bytes: [u8; 16] = secret()?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Whether a secret is the right one, in a time that does not tell where it differs.
fn is_same(given: &str, right: &str) -> bool {
    given.len() == right.len() && given.bytes().zip(right.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

impl Access {
    /// That of a site with these tokens.
    pub fn new(tokens: Tokens) -> io::Result<Access> {
        let place = token()?;
        Ok(Access { tokens, place, cookies: [token()?, token()?], proof: token()? })
    }

    /// What a request must have that ends the run.
    pub fn proof(&self) -> &str {
        &self.proof
    }

    /// Whether a request has that.
    pub fn is_proven(&self, request: &Request) -> bool {
        request.one("x-iolite-stop").is_some_and(|given| is_same(given, &self.proof))
    }

    /// Looks at where a request is from, and what the reader may do.
    pub fn admit(&self, request: &Request) -> Admission {
        let refused = |status, words: &str| Admission::Answered(Answer::text(status, words));
        let Some(host) = request.one("host").filter(|host| is_here(host)) else {
            return refused(421, "This server is 127.0.0.1, [::1] or localhost, and has no other name.");
        };
        let is_own =
            |origin: &str| origin.strip_prefix("http://").is_some_and(|from| from.eq_ignore_ascii_case(host));
        let changes = request.method != "GET";
        let is_foreign = match request.all("origin").next() {
            Some(_) => !request.one("origin").is_some_and(is_own),
            None => changes,
        };
        if is_foreign {
            return refused(403, "The request comes from a page of somebody else.");
        }
        if request.path == "/" && !changes {
            return Admission::Answered(self.exchange(&request.query));
        }
        if request.all("sec-fetch-site").any(|from| !["same-origin", "none"].contains(&from)) {
            return refused(403, "The request comes from a page of somebody else.");
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

    /// Exchanges a token for a cookie. The next step is one of this page, and not of that which had the address: a browser
    /// would keep the cookie back there.
    fn exchange(&self, query: &str) -> Answer {
        let given = query.split('&').find_map(|part| part.strip_prefix("token=")).unwrap_or_default();
        let cookie = match () {
            () if is_same(given, &self.tokens.owner) => &self.cookies[0],
            () if is_same(given, &self.tokens.guest) => &self.cookies[1],
            () => {
                return Answer::text(
                    403,
                    "Open the address that the run has printed: this one has not its token.",
                );
            }
        };
        let place = &self.place;
        let page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"refresh\" content=\"0; url=/{place}/\">\n\
             <title>The run</title>\n</head>\n<body><p><a href=\"/{place}/\">To the run</a></p></body>\n</html>\n"
        );
        let policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
        let cookie = format!("{}={cookie}; Path=/{place}/; HttpOnly; SameSite=Strict", self.cookie_name());
        Answer::page(page, policy).with_cookie(cookie)
    }

    /// One for each site: of several runs on one machine, each has its own.
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
        given.find_map(|value| match () {
            () if is_same(value, &self.cookies[0]) => Some(Rights::End),
            () if is_same(value, &self.cookies[1]) => Some(Rights::Look),
            () => None,
        })
    }
}

/// Whether a name of a host, with or without a port, means this machine whoever is asked. (The port is another one where a
/// tunnel leads here.)
fn is_here(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return address.parse() == Ok(Ipv6Addr::LOCALHOST) && is_port(port);
    }
    let (name, port) = host.find(':').map_or((host, ""), |colon| host.split_at(colon));
    let is_name = name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    is_name && is_port(port)
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access::new(Tokens { owner: token().unwrap(), guest: token().unwrap() }).unwrap()
    }

    fn request(line: &str, headers: &[(&str, &str)]) -> Request {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        Request::parse(format!("{line} HTTP/1.1\r\n{lines}\r\n").as_bytes()).unwrap().unwrap()
    }

    fn status(access: &Access, line: &str, headers: &[(&str, &str)]) -> u16 {
        match access.admit(&request(line, headers)) {
            Admission::Answered(answer) => answer.status,
            Admission::Admitted(..) => 0,
        }
    }

    const HOST: (&str, &str) = ("Host", "127.0.0.1:8080");

    #[test]
    fn hosts_of_this_machine() {
        for host in
            ["127.0.0.1", "127.0.0.1:80", "127.1.2.3:9", "localhost:1", "LOCALHOST", "[::1]:443", "[::1]"]
        {
            assert!(is_here(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]:1",
            "[::1",
            "localhost:x",
            "127.0.0.1:",
            "::1",
            "localhost.",
        ] {
            assert!(!is_here(host), "{host}");
        }
    }

    #[test]
    fn a_token_gives_a_cookie_and_a_cookie_its_right() {
        let access = access();
        assert_ne!(access.tokens.owner, access.tokens.guest);
        for (token, expected) in
            [(access.tokens.owner.clone(), Rights::End), (access.tokens.guest.clone(), Rights::Look)]
        {
            assert_eq!(token.len(), 32);
            let exchange =
                request(&format!("GET /?token={token}"), &[HOST, ("Sec-Fetch-Site", "cross-site")]);
            let Admission::Answered(answer) = access.admit(&exchange) else { panic!() };
            let sent = format!("{answer:?}");
            assert_eq!(answer.status, 200);
            assert!(sent.contains("HttpOnly; SameSite=Strict") && !sent.contains(&token), "{sent}");
            let cookies = match expected {
                Rights::End => &access.cookies[0],
                Rights::Look => &access.cookies[1],
            };
            let cookie = format!("other=1; {}={cookies}", access.cookie_name());
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
        let token = &access.tokens.owner;
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
    fn the_proof_is_needed_once_and_whole() {
        let access = access();
        let line = format!("POST /{}/stop", access.place);
        let proven = |headers: &[(&str, &str)]| access.is_proven(&request(&line, headers));
        assert!(proven(&[("X-Iolite-Stop", &access.proof)]));
        assert!(
            !proven(&[])
                && !proven(&[("X-Iolite-Stop", "")])
                && !proven(&[("X-Iolite-Stop", &access.cookies[0])])
        );
        assert!(!proven(&[("X-Iolite-Stop", &access.proof), ("X-Iolite-Stop", &access.proof)]));
    }
}
