//! The options of `libiscsi`, and the names of its disks.

use super::own::{Idle, OwnOptions, own, own_options};
use super::secret::{Secret, elsewhere, secret};
use super::shared::BIND;
use super::url::masked;
use crate::definition::{Definition, Kind, Places};

own_options! {
    /// The options of `libiscsi`.
    pub struct IscsiOptions declared by OPTIONS with places {
        /// The password of the user that a URL names (CHAP).
        pub iscsi_password: Secret,
        /// The password of the target of a URL that names its user (mutual CHAP).
        pub iscsi_target_password: Secret,
        /// Passwords that were in URLs, with the URLs without them.
        pub in_urls: Vec<(String, Secret)>,
        /// The credentials of targets that were in URLs: the URL without them, the user, and the password.
        pub of_targets: Vec<(String, (String, Secret))>,
        /// A URL contains a user without a password.
        pub has_user: bool,
        /// The name of the initiator.
        pub iscsi_initiator: String,
        /// The longest silence of the target, in microseconds; 0 = no limit.
        pub iscsi_timeout: u64,
        /// Addresses or interfaces of this machine to connect from, a list; empty = the system chooses.
        pub bind: String,
    }
}

impl Places for IscsiOptions {
    fn bind(&mut self) -> Option<&mut String> {
        Some(&mut self.bind)
    }
}

impl OwnOptions for IscsiOptions {
    fn patience_us(&self) -> Option<u64> {
        Some(self.iscsi_timeout)
    }

    fn without_effect(&self) -> Vec<Idle> {
        let mut all: Vec<Idle> = Vec::new();
        let mut idle = |names: [&'static str; 3], why| all.extend(names.map(|name| (name, why)));
        if !self.has_user {
            idle(
                ["iscsi_password", "iscsi_password_file", "iscsi_password_env"],
                "no URL in filename names a user without a password (iscsi://USER@…)",
            );
        }
        if !self.of_targets.iter().any(|(_, (_, secret))| !secret.is_given()) {
            idle(
                ["iscsi_target_password", "iscsi_target_password_file", "iscsi_target_password_env"],
                "no URL in filename names the user of a target without a password (?target_user=USER)",
            );
        }
        all
    }
}

impl IscsiOptions {
    /// The password that goes with a URL, if there is one.
    ///
    /// # Errors
    /// The reason why it cannot be read from its place, as text.
    pub fn password_for(&self, url: &str) -> Result<Option<String>, String> {
        match self.in_urls.iter().find(|(known, _)| known == url) {
            Some((_, secret)) => secret.given("filename"),
            None => self.iscsi_password.given("iscsi_password"),
        }
    }

    /// The user and the password with which the target of a URL must authenticate itself, if required.
    ///
    /// # Errors
    /// The user or the password is missing.
    pub fn proof_of(&self, url: &str) -> Result<Option<(String, String)>, String> {
        let Some((_, (user, secret))) = self.of_targets.iter().find(|(known, _)| known == url) else {
            return Ok(None);
        };
        let password = match secret.is_given() {
            true => secret.given("filename")?,
            false => self.iscsi_target_password.given("iscsi_target_password")?,
        };
        match password {
            Some(password) if !user.is_empty() => Ok(Some((user.clone(), password))),
            Some(_) => Err("target_password= needs target_user=".to_owned()),
            None => Err("target_user=: the password is missing (iscsi_target_password_file, …)".to_owned()),
        }
    }

    /// Splits a list of names into names of disks. Colons are parts of such names and also separate them, so users need
    /// not write a backslash in front of each. Takes passwords out of the names and keeps them.
    pub(crate) fn settle_names(&mut self, names: &[String]) -> Vec<String> {
        let whole = names.join(":");
        let mut urls = Vec::new();
        let mut rest = 0;
        let lower = whole.to_ascii_lowercase();
        let starts = lower.match_indices(BEGINNING).map(|(place, _)| place).chain([whole.len()]);
        for (number, start) in starts.enumerate() {
            let piece = &whole[rest..start];
            rest = (start + BEGINNING.len()).min(whole.len());
            match number {
                // This is not a URL, and will be refused. It may contain a password.
                0 => urls.extend(
                    Some(masked(piece.trim_end_matches(':')).into_owned()).filter(|piece| !piece.is_empty()),
                ),
                _ => urls.push(self.without_password(piece.trim_end_matches(':'))),
            }
        }
        urls
    }

    fn without_password(&mut self, rest: &str) -> String {
        let (place, query) = rest.split_at(query_of(rest));
        let (user, place) = match place.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, place),
        };
        let (user, password) = match user.map(|user| user.split_once('%').ok_or(user)) {
            Some(Ok((user, password))) => (format!("{user}@"), Some(password)),
            Some(Err(user)) => {
                self.has_user = true;
                (format!("{user}@"), None)
            }
            None => (String::new(), None),
        };
        let mut url = format!("{BEGINNING}{user}{place}");
        let mut proof = (String::new(), None);
        for word in query.trim_start_matches('?').split('&').filter(|word| !word.is_empty()) {
            match word.split_once('=').unwrap_or((word, "")) {
                ("target_user", value) => value.clone_into(&mut proof.0),
                ("target_password", value) => proof.1 = Some(value),
                // The engine refuses this parameter. (Its value may be a secret.)
                (other, _) => url.extend(["?", other]),
            }
        }
        if let Some(password) = password {
            self.in_urls.push((url.clone(), Secret::new(password.to_owned())));
        }
        if proof != (String::new(), None) {
            let secret = proof.1.map_or_else(Secret::default, |password| Secret::new(password.to_owned()));
            self.of_targets.push((url.clone(), (proof.0, secret)));
        }
        url
    }
}

/// The position where the query of a URL begins. (Passwords before an `@` may contain question marks as well.)
fn query_of(rest: &str) -> usize {
    let of_target = ["?target_user=", "?target_password="].iter().filter_map(|word| rest.find(word)).min();
    let last = || rest.find('?').filter(|place| !rest[*place..].contains('@'));
    let behind_user = || rest.rfind('@').and_then(|at| Some(at + rest[at..].find('?')?));
    of_target.or_else(last).or_else(behind_user).unwrap_or(rest.len())
}

/// The scheme of a URL.
const BEGINNING: &str = "iscsi://";

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static ISCSI_PASSWORD: Definition =
    option("iscsi_password", Kind::Str, "Password of the user that a URL names (CHAP)")
        .secret()
        .lands_in_engine(secret!(IscsiOptions.iscsi_password));
static ISCSI_PASSWORD_ELSEWHERE: [Definition; 2] = elsewhere!(IscsiOptions.iscsi_password);
static ISCSI_TARGET_PASSWORD: Definition = option(
    "iscsi_target_password",
    Kind::Str,
    "Password of a target whose user a URL names with ?target_user= (mutual CHAP)",
)
.secret()
.lands_in_engine(secret!(IscsiOptions.iscsi_target_password));
static ISCSI_TARGET_PASSWORD_ELSEWHERE: [Definition; 2] = elsewhere!(IscsiOptions.iscsi_target_password);
static ISCSI_INITIATOR: Definition =
    option("iscsi_initiator", Kind::Str, "Name of this side, which targets may ask for")
        .default("iqn.2026-01.io.iolite:initiator")
        .lands_in_engine(own!(IscsiOptions.iscsi_initiator, string()));
static ISCSI_TIMEOUT: Definition =
    option("iscsi_timeout", Kind::Time, "The longest time that the target may be silent; 0 = no limit")
        .default("60s")
        .lands_in_engine(own!(IscsiOptions.iscsi_timeout, time(1_000_000)));

/// All of them.
pub static OPTIONS: &[&Definition] = &[
    &ISCSI_PASSWORD,
    &ISCSI_PASSWORD_ELSEWHERE[0],
    &ISCSI_PASSWORD_ELSEWHERE[1],
    &ISCSI_TARGET_PASSWORD,
    &ISCSI_TARGET_PASSWORD_ELSEWHERE[0],
    &ISCSI_TARGET_PASSWORD_ELSEWHERE[1],
    &ISCSI_INITIATOR,
    &ISCSI_TIMEOUT,
    &BIND,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colons_are_parts_of_names_and_passwords_are_not() {
        let mut own = IscsiOptions::default();
        let names = |own: &mut IscsiOptions, list: &[&str]| {
            own.settle_names(&list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
        };
        // As it is read from `iscsi://h:1/iqn.x:t/1`, with and without backslashes.
        assert_eq!(names(&mut own, &["iscsi", "//h", "1/iqn.x", "t/1"]), ["iscsi://h:1/iqn.x:t/1"]);
        assert_eq!(names(&mut own, &["iscsi://h:1/iqn.x:t/1"]), ["iscsi://h:1/iqn.x:t/1"]);
        let two = ["iscsi://me%sesame@h:1/t/1", "iscsi", "//h/t/2"];
        assert_eq!(names(&mut own, &two), ["iscsi://me@h:1/t/1", "iscsi://h/t/2"]);
        assert_eq!(own.password_for("iscsi://me@h:1/t/1"), Ok(Some("sesame".to_owned())));
        assert_eq!(own.password_for("iscsi://h/t/2"), Ok(None));
        assert!(!format!("{own:?}").contains("sesame"));
        assert_eq!(names(&mut own, &["other"]), ["other"]);
        assert_eq!(names(&mut own, &["iscsi:/me%sesame@h/t/2"]), ["iscsi:/***@h/t/2"]);
        assert_eq!(names(&mut own, &["ISCSI://me%other@h/t/4"]), ["iscsi://me@h/t/4"]);
        assert_eq!(own.password_for("iscsi://me@h/t/4"), Ok(Some("other".to_owned())));
        // Passwords may contain any character.
        assert_eq!(names(&mut own, &["iscsi://me%se/s?a@me@h/t/3"]), ["iscsi://me@h/t/3"]);
        assert_eq!(own.password_for("iscsi://me@h/t/3"), Ok(Some("se/s?a@me".to_owned())));
        assert_eq!(names(&mut own, &["iscsi://me%se?same@h/t/3?auth=x"]), ["iscsi://me@h/t/3?auth"]);
    }

    #[test]
    fn target_credentials_are_not_part_of_the_name() {
        let mut own = IscsiOptions::default();
        let mut names = |name: &str| own.settle_names(&[name.to_owned()]);
        assert_eq!(names("iscsi://me%a@h/t/1?target_user=u&target_password=ses@me"), ["iscsi://me@h/t/1"]);
        assert_eq!(names("iscsi://h/t/2?target_user=u"), ["iscsi://h/t/2"]);
        assert_eq!(names("iscsi://h/t/3?password=sesame"), ["iscsi://h/t/3?password"]);
        assert_eq!(own.proof_of("iscsi://me@h/t/1"), Ok(Some(("u".to_owned(), "ses@me".to_owned()))));
        assert_eq!(own.proof_of("iscsi://h/t/3"), Ok(None));
        assert!(own.proof_of("iscsi://h/t/2").unwrap_err().contains("iscsi_target_password_file"));
        own.iscsi_target_password = Secret::new("sesame".to_owned());
        assert_eq!(own.proof_of("iscsi://h/t/2"), Ok(Some(("u".to_owned(), "sesame".to_owned()))));
        assert_eq!(own.proof_of("iscsi://me@h/t/1"), Ok(Some(("u".to_owned(), "ses@me".to_owned()))));
        assert!(!format!("{own:?}").contains("ses@me"));
    }
}
