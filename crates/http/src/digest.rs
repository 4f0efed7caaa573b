//! Digest authentication (RFC 7616): instead of the password, the client sends a hash of the password and the
//! server's challenge.
//!
//! The server refuses the first request with a challenge, and the client sends it again with the answer. Each later
//! request carries an answer to that challenge from the start, with a count of its own, until the server sends a new
//! challenge.

use crate::answer::Answer;
use crate::encoding::hex;
use md5::{Digest as _, Md5};
use sha2::Sha256;
use std::fmt::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Algorithm {
    Md5,
    Sha256,
}

impl Algorithm {
    const fn word(self) -> &'static str {
        match self {
            Algorithm::Md5 => "MD5",
            Algorithm::Sha256 => "SHA-256",
        }
    }

    fn of(self, text: &str) -> String {
        let mut digits = String::new();
        match self {
            Algorithm::Md5 => hex(Md5::digest(text).0, &mut digits),
            Algorithm::Sha256 => hex(Sha256::digest(text).0, &mut digits),
        }
        digits
    }
}

/// A server's challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Challenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    algorithm: Algorithm,
    /// The challenge names the algorithm, so the answer has to name it as well.
    is_named: bool,
    /// `qop=auth`: answers are counted.
    counts: bool,
    /// The previous answer was correct, but its challenge had expired.
    is_stale: bool,
}

/// Why a refused request can be sent again with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The server sent a new challenge.
    Anew,
    /// The request did not answer the current challenge: it had no answer, or one to an older challenge.
    Meanwhile,
}

/// The credentials that answer challenges.
#[derive(Clone)]
pub struct Digest {
    user: String,
    password: String,
    challenge: Option<Challenge>,
    count: u32,
    /// The client's own contribution to the hash (`cnonce`).
    own: String,
}

/// Debug output contains no secrets.
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({}, …)", self.user)
    }
}

impl Digest {
    /// Answers for this user.
    pub fn new(user: &str, password: &str) -> Digest {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        // This must be a value that the server cannot have chosen; it need not be secret.
        let own = Algorithm::Sha256.of(&format!("{now} {}", std::process::id()));
        let own = own[..32].to_owned();
        Digest { user: user.to_owned(), password: password.to_owned(), challenge: None, count: 0, own }
    }

    /// Takes the challenge from a refusal (401); `None` = there is no challenge to answer. `answered` is the nonce of
    /// the challenge that the request has already answered, so that a wrong password is not tried repeatedly.
    pub(crate) fn challenged(&mut self, answer: &Answer, answered: Option<&str>) -> Option<Asked> {
        let fields = answer.fields.iter().filter(|(name, _)| name == "www-authenticate");
        // If there are several, the one with the safest algorithm is answered.
        let best = fields.filter_map(|(_, value)| parse(value)).max_by_key(|challenge| challenge.algorithm);
        let challenge = best?;
        if let Some(current) = &self.challenge {
            if answered != Some(&*current.nonce) {
                return Some(Asked::Meanwhile);
            }
            if !challenge.is_stale {
                return None;
            }
        }
        let is_known = |own: &Challenge| own.nonce == challenge.nonce && own.algorithm == challenge.algorithm;
        if !self.challenge.as_ref().is_some_and(is_known) {
            (self.challenge, self.count) = (Some(challenge), 0);
        }
        Some(Asked::Anew)
    }

    /// Appends the field that answers the challenge, if the server has sent one.
    pub(crate) fn answer(&mut self, method: &str, target: &str, out: &mut String) {
        let Some(challenge) = &self.challenge else { return };
        self.count += 1;
        let Challenge { realm, nonce, opaque, algorithm, is_named, counts, .. } = challenge;
        let hash = |text: &str| algorithm.of(text);
        let who = hash(&format!("{}:{}:{}", self.user, unquoted(realm), self.password));
        let what = hash(&format!("{method}:{target}"));
        let response = match counts {
            true => hash(&format!("{who}:{}:{:08x}:{}:auth:{what}", unquoted(nonce), self.count, self.own)),
            false => hash(&format!("{who}:{}:{what}", unquoted(nonce))),
        };
        let user = self.user.replace('\\', "\\\\").replace('"', "\\\"");
        // (Writing to a String does not fail.)
        let _ = write!(
            out,
            "Authorization: Digest username=\"{user}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{target}\", \
             response=\"{response}\""
        );
        if *is_named {
            let _ = write!(out, ", algorithm={}", algorithm.word());
        }
        if *counts {
            let _ = write!(out, ", qop=auth, nc={:08x}, cnonce=\"{}\"", self.count, self.own);
        }
        if let Some(opaque) = opaque {
            let _ = write!(out, ", opaque=\"{opaque}\"");
        }
        out.push_str("\r\n");
    }
}

/// Parses a challenge from a header field; `None` = another scheme, or an unsupported variant.
fn parse(field: &str) -> Option<Challenge> {
    let rest = field.trim_start();
    let (scheme, rest) = rest.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("digest") {
        return None;
    }
    let all = parameters(rest);
    let get = |name: &str| all.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let named = get("algorithm");
    let algorithm = algorithm(named.as_deref())?;
    let counts = counts(get("qop").as_deref())?;
    Some(Challenge {
        realm: get("realm")?,
        nonce: get("nonce")?,
        opaque: get("opaque"),
        algorithm,
        is_named: named.is_some(),
        counts,
        is_stale: get("stale").is_some_and(|word| word.eq_ignore_ascii_case("true")),
    })
}

/// The algorithm of a challenge; `None` = it is not supported.
fn algorithm(named: Option<&str>) -> Option<Algorithm> {
    match named.map(str::to_ascii_uppercase).as_deref() {
        None | Some("MD5") => Some(Algorithm::Md5),
        Some("SHA-256") => Some(Algorithm::Sha256),
        Some(_) => None,
    }
}

/// Whether the answers to a challenge with this `qop` are counted; `None` = it is not supported.
fn counts(qop: Option<&str>) -> Option<bool> {
    match qop {
        None => Some(false),
        Some(words) => words.split(',').any(|word| word.trim().eq_ignore_ascii_case("auth")).then_some(true),
    }
}

/// The parameter that makes a challenge impossible to answer: `algorithm=SHA-512-256`.
pub(crate) fn unsupported(field: &str) -> Option<String> {
    let (scheme, rest) = field.trim_start().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("digest") {
        return None;
    }
    let unknown = |(name, value): &(String, String)| match &**name {
        "algorithm" => algorithm(Some(value)).is_none(),
        "qop" => counts(Some(value)).is_none(),
        _ => false,
    };
    let (name, value) = parameters(rest).into_iter().find(unknown)?;
    Some(format!("{name}={value}"))
}

/// Parses `name=value, name="value"`. Names are converted to lower case; escapes in quoted values stay as they are.
fn parameters(mut text: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    while let Some((name, rest)) = text.split_once('=') {
        let name = name.trim_matches([' ', ',', '\t']).to_ascii_lowercase();
        let (value, behind) = match rest.trim_start().strip_prefix('"') {
            Some(quoted) => {
                let mut is_escaped = false;
                let end = quoted.find(|letter| {
                    let ends = letter == '"' && !is_escaped;
                    is_escaped = letter == '\\' && !is_escaped;
                    ends
                });
                let end = end.unwrap_or(quoted.len());
                (&quoted[..end], quoted.get(end + 1..).unwrap_or_default())
            }
            None => rest.split_once(',').map_or((rest.trim(), ""), |(value, rest)| (value.trim(), rest)),
        };
        all.push((name, value.to_owned()));
        text = behind;
    }
    all
}

/// The content of a quoted string, with its backslash escapes resolved.
fn unquoted(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or(letter) } else { letter });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(challenges: &[&str]) -> Answer {
        let fields =
            challenges.iter().map(|text| ("www-authenticate".to_owned(), (*text).to_owned())).collect();
        Answer { status: 401, fields, ..Answer::default() }
    }

    /// The examples of RFC 7616, section 3.9.1.
    #[test]
    fn the_examples_of_the_specification_have_their_responses() {
        const MD5: &str = "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=MD5, \
            nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
        let sha = MD5.replace("algorithm=MD5", "algorithm=SHA-256");
        for (challenges, response) in [
            (vec![MD5], "8ca523f5e9506fed4657c9700eebdbec"),
            (
                vec!["Basic realm=\"x\"", MD5, &sha],
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
        ] {
            let mut digest = Digest::new("Mufasa", "Circle of Life");
            digest.own = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ".to_owned();
            assert_eq!(digest.challenged(&refusal(&challenges), None), Some(Asked::Anew));
            let mut field = String::new();
            digest.answer("GET", "/dir/index.html", &mut field);
            assert!(field.contains(&format!("response=\"{response}\"")), "{field}");
            assert!(field.contains("nc=00000001, ") && field.contains("opaque=\"FQhe/"), "{field}");
            let mut next = String::new();
            digest.answer("GET", "/dir/index.html", &mut next);
            assert!(next.contains("nc=00000002, "), "{next}");
        }
    }

    #[test]
    fn a_wrong_password_is_tried_once() {
        let mut digest = Digest::new("u", "p");
        let ask =
            |nonce: &str, more: &str| refusal(&[&format!("Digest realm=\"x\", nonce=\"{nonce}\"{more}")]);
        assert_eq!(digest.challenged(&ask("a", ""), None), Some(Asked::Anew));
        assert_eq!(digest.challenged(&ask("b", ""), Some("a")), None, "the answer was wrong");
        assert_eq!(digest.challenged(&ask("b", ", stale=TRUE"), Some("a")), Some(Asked::Anew));
        // This request answered the previous challenge.
        assert_eq!(digest.challenged(&ask("c", ", stale=true"), Some("a")), Some(Asked::Meanwhile));
        let mut field = String::new();
        digest.answer("GET", "/", &mut field);
        assert!(field.contains("nonce=\"b\""), "{field}");
    }

    #[test]
    fn unsupported_challenges_are_not_answered() {
        let mut digest = Digest::new("u", "p");
        let mut field = String::new();
        digest.answer("GET", "/", &mut field);
        assert_eq!(field, "", "there has been no challenge");
        for challenge in [
            "Basic realm=\"x\"",
            "Digest realm=\"x\"",
            "Digest realm=\"x\", nonce=\"n\", algorithm=MD5-sess",
            "Digest realm=\"x\", nonce=\"n\", qop=\"auth-int\"",
        ] {
            assert_eq!(digest.challenged(&refusal(&[challenge]), None), None, "{challenge}");
        }
        assert!(digest.challenged(&refusal(&["digest nonce=\"a\\\"b\" , realm=\"x, y\""]), None).is_some());
        digest.answer("GET", "/", &mut field);
        assert!(field.contains("nonce=\"a\\\"b\"") && field.contains("realm=\"x, y\""), "{field}");
        assert!(!field.contains("qop") && !field.contains("algorithm"), "{field}");
        assert_eq!(format!("{digest:?}"), "Digest(u, …)");
    }
}
