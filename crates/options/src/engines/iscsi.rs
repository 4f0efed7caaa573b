//! The options of `libiscsi`, and the names of its disks.

use super::own::{OwnOptions, own, own_options, place};
use super::secret::{Secret, elsewhere, secret};
use crate::definition::{Definition, Kind};

own_options! {
    /// The options of `libiscsi`.
    pub struct IscsiOptions declared by OPTIONS {
        /// The password of the user that a URL names (CHAP).
        pub iscsi_password: Secret,
        /// Passwords that were in URLs, with the URLs without them.
        pub in_urls: Vec<(String, Secret)>,
        /// The name of this side.
        pub iscsi_initiator: String,
        /// For how long the target may be silent, in microseconds; 0 = as long as it likes.
        pub iscsi_timeout: u64,
    }
}

impl OwnOptions for IscsiOptions {}

impl IscsiOptions {
    /// The password that goes with a URL, if there is one.
    ///
    /// # Errors
    /// In words, why it cannot be had from where it is.
    pub fn password_for(&self, url: &str) -> Result<Option<String>, String> {
        match self.in_urls.iter().find(|(known, _)| known == url) {
            Some((_, secret)) => secret.given(),
            None => self.iscsi_password.given(),
        }
    }

    /// The names of disks that a list of names is. Colons are parts of such names and separate them as well, so whoever gives
    /// one need not put a backslash in front of each. Passwords are taken out of them and kept.
    pub(crate) fn settle_names(&mut self, names: &[String]) -> Vec<String> {
        let whole = names.join(":");
        let mut urls = Vec::new();
        for (number, piece) in whole.split(BEGINNING).enumerate() {
            match number {
                0 => urls
                    .extend(Some(piece.trim_end_matches(':').to_owned()).filter(|piece| !piece.is_empty())),
                _ => urls.push(self.without_password(piece.trim_end_matches(':'))),
            }
        }
        urls
    }

    fn without_password(&mut self, rest: &str) -> String {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let slash = if rest.contains('/') { "/" } else { "" };
        let plain = |authority: &str| format!("{BEGINNING}{authority}{slash}{path}");
        let Some((user, password, portal)) = authority
            .rsplit_once('@')
            .and_then(|(user, portal)| user.split_once('%').map(|(user, password)| (user, password, portal)))
        else {
            return plain(authority);
        };
        let url = plain(&format!("{user}@{portal}"));
        self.in_urls.push((url.clone(), Secret::new(password.to_owned())));
        url
    }
}

/// How a URL begins.
const BEGINNING: &str = "iscsi://";

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static ISCSI_PASSWORD: Definition =
    option("iscsi_password", Kind::Str, "Password of the user that a URL names (CHAP)")
        .secret()
        .lands_in_engine(secret!(IscsiOptions.iscsi_password));
static ISCSI_PASSWORD_ELSEWHERE: [Definition; 2] = elsewhere!(IscsiOptions.iscsi_password);
static ISCSI_INITIATOR: Definition =
    option("iscsi_initiator", Kind::Str, "Name of this side, which targets may ask for")
        .default("iqn.2026-01.io.iolite:initiator")
        .lands_in_engine(own!(IscsiOptions.iscsi_initiator, string()));
static ISCSI_TIMEOUT: Definition =
    option("iscsi_timeout", Kind::Time, "For how long the target may be silent; 0 = no limit")
        .default("60s")
        .lands_in_engine(|own, given| {
            place::<IscsiOptions>(own)?.iscsi_timeout = given.time(1_000_000)?;
            Ok(())
        });

/// All of them.
pub static OPTIONS: &[&Definition] = &[
    &ISCSI_PASSWORD,
    &ISCSI_PASSWORD_ELSEWHERE[0],
    &ISCSI_PASSWORD_ELSEWHERE[1],
    &ISCSI_INITIATOR,
    &ISCSI_TIMEOUT,
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
    }
}
