//! Files of keys: the key and certificate that an end of an encrypted connection shows, and the authority that it
//! trusts.
//!
//! A set of keys has its own authority ([`home`] makes it), which issues a key to coordinators and one to agents. Each
//! of their files holds a certificate with its key and the authority's certificate, in PEM, behind a few lines of text:
//! the kind of the file, until when it is valid (as its certificate says, too), and which keys are revoked. The
//! authority's file also lists the keys that it has issued.
//! A key is identified by its id. A file is used only if no other user can read it.

pub mod home;

use base64::prelude::{BASE64_STANDARD, Engine};
use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ParsedCertificate;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The environment variable that stands for `--keys`.
pub const VARIABLE: &str = "IOLITE_KEYS";

/// The beginning of such a file, before its version and its kind.
const NAME: &str = "iolite keys";
/// The version of the files.
const VERSION: u32 = 1;
/// The longest file that is read: room for thousands of revoked keys.
const LONGEST: u64 = 256 << 10;

/// The owner of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Issues keys to the others; does not connect.
    Authority,
    /// Sends jobs.
    Coordinator,
    /// Runs jobs.
    Agent,
}

impl Role {
    /// Its name in files.
    pub fn word(self) -> &'static str {
        match self {
            Role::Authority => "authority",
            Role::Coordinator => "coordinator",
            Role::Agent => "agent",
        }
    }

    /// The default name of its file.
    pub fn file_name(self) -> &'static str {
        match self {
            Role::Authority => "authority.keys",
            Role::Coordinator => "coordinator.keys",
            Role::Agent => "agents.keys",
        }
    }

    /// A key of this kind, for messages.
    pub fn article(self) -> &'static str {
        match self {
            Role::Authority => "an authority",
            Role::Coordinator => "a coordinator",
            Role::Agent => "an agent",
        }
    }

    /// The owner of these keys, for messages.
    pub fn whose(self) -> &'static str {
        match self {
            Role::Authority => "of an authority",
            Role::Coordinator => "of a coordinator",
            Role::Agent => "of agents",
        }
    }
}

/// A key that an authority has issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// The id of the key.
    pub id: String,
    /// Its owner.
    pub role: Role,
    /// When it expires.
    pub until: SystemTime,
}

/// The content of a file of keys.
#[derive(Debug)]
pub struct Keys {
    /// The file.
    pub file: PathBuf,
    /// The owner of the key.
    pub role: Role,
    /// The certificate to show. (For an authority, its own certificate.)
    pub(crate) certificate: CertificateDer<'static>,
    /// The private key of the certificate.
    pub(crate) key: PrivateKeyDer<'static>,
    /// The trusted authority's certificate.
    pub(crate) authority: CertificateDer<'static>,
    /// The ids of the key and of its authority.
    pub(crate) ids: [String; 2],
    /// When it expires.
    pub until: SystemTime,
    /// Keys that are no longer trusted.
    pub revoked: BTreeSet<String>,
    /// The keys that an authority has issued and that have not expired; other files have none.
    pub issued: Vec<Issued>,
}

/// The id of a key: the first 8 bytes of the SHA-256 of the public key in its certificate. Not of the complete
/// certificate: anyone can re-encode its signature so that it stays valid, and a revoked key would have another id.
pub(crate) fn id(certificate: &CertificateDer<'_>) -> Result<String, rustls::Error> {
    let public = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
    Ok(Sha256::digest(public).iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

/// The ids of a key and of its authority's.
fn ids(
    certificate: &CertificateDer<'_>,
    authority: &CertificateDer<'_>,
) -> Result<[String; 2], rustls::Error> {
    Ok([id(certificate)?, id(authority)?])
}

impl Keys {
    /// Reads a file of keys, which must be for this role.
    ///
    /// # Errors
    /// It cannot be read, other users can read it, it is not a file of keys, or it has expired.
    pub fn read(file: &Path, role: Role) -> Result<Keys, String> {
        let keys = Keys::read_any(file).map_err(|why| match (role, file.symlink_metadata()) {
            // This is where someone begins, and often reads it in the journal of a service.
            (Role::Agent, Err(error)) if error.kind() == ErrorKind::NotFound => format!(
                "{why}; where the clients are, make keys for all machines once (iolite keys new), and copy those of agents \
                 here (scp -p ~/.config/iolite/{} {}:{})",
                role.file_name(),
                crate::message::machine_name(),
                file.display()
            ),
            _ => why,
        })?;
        if keys.role != role {
            return Err(format!(
                "{}: these are the keys {}, and here the keys {} are needed ({})",
                file.display(),
                keys.role.whose(),
                role.whose(),
                role.file_name()
            ));
        }
        if keys.until <= SystemTime::now() {
            return Err(format!(
                "{}: the keys have expired on {}; renew them where they were made (iolite keys renew), and copy the file again",
                file.display(),
                date(keys.until)
            ));
        }
        Ok(keys)
    }

    /// Reads a file of keys for any role, expired or not. Disables core dumps and tracing of this process, because the
    /// keys are in its memory.
    ///
    /// # Errors
    /// It cannot be read, other users can read it, or it is not a file of keys.
    pub fn read_any(file: &Path) -> Result<Keys, String> {
        iolite_os::process::keep_memory_private();
        let text = read_private(file).map_err(|why| format!("{}: {why}", file.display()))?;
        Keys::parse(file, &text).map_err(|why| format!("{}: {why}", file.display()))
    }

    fn parse(file: &Path, text: &str) -> Result<Keys, String> {
        let none = || "this is not a file of keys (iolite keys new makes them)".to_owned();
        let (head, pem) = text.split_at(text.find("-----BEGIN").ok_or_else(none)?);
        let mut lines = head.lines();
        let first = lines.next().and_then(|line| line.strip_prefix(NAME)).ok_or_else(none)?;
        let (version, role) = first.trim().split_once(' ').ok_or_else(none)?;
        if version.parse() != Ok(VERSION) {
            return Err(format!("version {version} of files of keys; version {VERSION} is known here"));
        }
        let roles = [Role::Authority, Role::Coordinator, Role::Agent];
        let role = roles.into_iter().find(|known| known.word() == role).ok_or_else(none)?;
        let damaged = |what: &str| format!("the file is damaged: {what}");
        let (mut until, mut revoked, mut issued) = (None, None, Vec::new());
        // Unknown lines are refused, not skipped: they may restrict access.
        for line in lines {
            match line.split_once(':') {
                Some(("key" | "authority", _)) => {}
                Some(("until", word)) => until = word.split_whitespace().next().and_then(moment),
                Some(("revoked", ids)) => {
                    let ids: BTreeSet<String> = ids.split_whitespace().map(str::to_owned).collect();
                    if let Some(strange) = ids.iter().find(|word| !is_id(word)) {
                        return Err(damaged(&format!(
                            "\"{strange}\" is among the revoked keys, and is not a key"
                        )));
                    }
                    revoked = Some(ids);
                }
                Some(("issued", words)) => {
                    let one = Issued::parse(words);
                    issued.push(one.ok_or_else(|| damaged(&format!("\"{line}\" is not understood")))?);
                }
                _ => return Err(damaged(&format!("\"{line}\" is not understood"))),
            }
        }
        let until = until.ok_or_else(|| damaged("it does not say until when it is valid"))?;
        let revoked = revoked.ok_or_else(|| damaged("it does not say which keys are revoked"))?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        let mut certificates =
            certificates.map_err(|error| damaged(&format!("its certificates: {error}")))?.into_iter();
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| damaged(&format!("its key: {error}")))?;
        let (Some(certificate), Some(authority), None) =
            (certificates.next(), certificates.next(), certificates.next())
        else {
            return Err(damaged("there have to be two certificates in it"));
        };
        let ids =
            ids(&certificate, &authority).map_err(|error| damaged(&format!("its certificates: {error}")))?;
        // A key that does not match its certificate would otherwise be noticed only at the first connection.
        let pair = KeyPair::try_from(&key).map_err(|error| damaged(&format!("its key: {error}")))?;
        let shown = ParsedCertificate::try_from(&certificate)
            .map_err(|error| damaged(&format!("its certificates: {error}")))?
            .subject_public_key_info();
        if pair.subject_public_key_info() != shown.as_ref() {
            return Err(damaged("its key is not the one of its certificate"));
        }
        let file = file.to_owned();
        Ok(Keys { file, role, certificate, key, authority, ids, until, revoked, issued })
    }

    /// The id of this key.
    pub fn id(&self) -> String {
        self.ids[0].clone()
    }

    /// The id of its authority.
    pub fn authority_id(&self) -> String {
        self.ids[1].clone()
    }

    /// The text of its file.
    fn text(&self) -> String {
        let revoked: Vec<&str> = self.revoked.iter().map(String::as_str).collect();
        let issued: String = self.issued.iter().map(|one| one.line()).collect();
        format!(
            "{NAME} {VERSION} {}\nkey: {}\nauthority: {}\nuntil: {} ({})\nrevoked: {}\n{issued}{}{}{}",
            self.role.word(),
            self.id(),
            self.authority_id(),
            seconds(self.until),
            date(self.until),
            revoked.join(" "),
            pem("CERTIFICATE", &self.certificate),
            pem("PRIVATE KEY", self.key.secret_der()),
            pem("CERTIFICATE", &self.authority),
        )
    }
}

impl Issued {
    /// Parses the text after `issued:`.
    fn parse(words: &str) -> Option<Issued> {
        let mut words = words.split_whitespace();
        let id = words.next().filter(|word| is_id(word))?.to_owned();
        let role = match words.next()? {
            "coordinator" => Role::Coordinator,
            "agent" => Role::Agent,
            _ => return None,
        };
        Some(Issued { id, role, until: moment(words.next()?)? })
    }

    fn line(&self) -> String {
        format!("issued: {} {} {} ({})\n", self.id, self.role, seconds(self.until), date(self.until))
    }
}

/// Whether a word has the form of an id.
fn is_id(word: &str) -> bool {
    word.len() == 16 && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A moment in the form of files, in seconds since 1970.
fn seconds(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn moment(word: &str) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(word.parse().ok()?))
}

/// The day of a moment, in UTC: `2027-11-23`.
pub fn date(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    let date = rcgen::date_time_ymd(1970, 1, 1).checked_add(seconds.try_into().unwrap_or_default());
    let date = date.unwrap_or_else(|| rcgen::date_time_ymd(9999, 12, 31));
    format!("{}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day())
}

fn pem(kind: &str, bytes: &[u8]) -> String {
    let encoded = BASE64_STANDARD.encode(bytes);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap_or_default()).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}

/// Reads a file that only its user can read. The check applies to the open file, so renaming does not matter.
fn read_private(file: &Path) -> Result<String, String> {
    // Opening a FIFO without a writer must not block.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(file);
    let opened = opened.map_err(|error| error.to_string())?;
    let found = opened.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("this is not a file".to_owned());
    }
    let own = crate::user::own();
    if found.uid() != own && found.uid() != 0 {
        return Err(format!(
            "the file belongs to user {}, who could have made the keys; it has to be this user's",
            found.uid()
        ));
    }
    if found.mode() & 0o077 != 0 {
        return Err(format!(
            "others may be able to read these keys (mode {:04o}); chmod 600 it, and if others have been there, revoke the keys",
            found.mode() & 0o7777
        ));
    }
    let mut text = String::new();
    opened.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > LONGEST {
        return Err("this is not a file of keys: it is too long".to_owned());
    }
    Ok(text)
}

/// The directory of this user's keys: `$XDG_CONFIG_HOME/iolite`, or `~/.config/iolite`.
pub fn directory(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(config.join("iolite"))
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_come_back_as_they_were() {
        let directory = tempfile::tempdir().unwrap();
        let made = home::make(directory.path(), 30, SystemTime::now()).unwrap();
        let [authority, coordinator, agent] = made;
        for keys in [&authority, &coordinator, &agent] {
            let read = Keys::read(&keys.file, keys.role).unwrap();
            assert_eq!((read.id(), read.authority_id()), (keys.id(), authority.id()));
            assert_eq!(fs::metadata(&keys.file).unwrap().mode() & 0o7777, 0o600);
        }
        // From now on, this process can neither be dumped nor traced.
        // SAFETY: a plain system call, which only answers.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) }, 0);
        let wrong = Keys::read(&agent.file, Role::Coordinator).unwrap_err();
        assert!(wrong.contains("the keys of agents, and here the keys of a coordinator"), "{wrong}");
        // Existing files are not overwritten.
        let again = home::make(directory.path(), 30, SystemTime::now()).unwrap_err();
        assert!(again.contains("there is one already"), "{again}");
    }

    #[test]
    fn invalid_or_readable_key_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let [_, _, agent] = home::make(directory.path(), 30, SystemTime::now()).unwrap();
        let refused = |file: &Path| Keys::read(file, Role::Agent).unwrap_err();
        fs::set_permissions(&agent.file, PermissionsExt::from_mode(0o640)).unwrap();
        let open = refused(&agent.file);
        assert!(open.contains("agents.keys: others may be able to read") && open.contains("0640"), "{open}");
        fs::set_permissions(&agent.file, PermissionsExt::from_mode(0o600)).unwrap();
        let good = fs::read_to_string(&agent.file).unwrap();
        for (text, why) in [
            ("", "not a file of keys"),
            (&good[100..], "not a file of keys"),
            (&good.replace("keys 1 ", "keys 7 "), "version 7"),
            (&good.replace("until: ", "until: x"), "until when"),
            (&good.replace("revoked:", "unrevoked:"), "\"unrevoked: \" is not understood"),
            (&good.replace("revoked: \n", ""), "which keys are revoked"),
            (&good.replace("revoked: ", "revoked: 0123456789ABCDEF"), "is not a key"),
            (&good[..good.len() - 100], "damaged"),
            (&good[..good.rfind("-----BEGIN").unwrap()], "two certificates"),
        ] {
            fs::write(&agent.file, text).unwrap();
            let refused = refused(&agent.file);
            assert!(refused.contains(why), "{why}: {refused}");
        }
        assert!(refused(directory.path()).contains("not a file"));
        assert!(refused(&directory.path().join("none")).contains("No such file"));
    }

    #[test]
    fn the_time_of_keys_runs_out() {
        let directory = tempfile::tempdir().unwrap();
        let past = SystemTime::now() - Duration::from_secs(90 * 86_400);
        let [_, coordinator, _] = home::make(directory.path(), 30, past).unwrap();
        let expired = Keys::read(&coordinator.file, Role::Coordinator).unwrap_err();
        assert!(expired.contains("have expired on ") && expired.contains("keys renew"), "{expired}");
        home::renew(directory.path(), 30, SystemTime::now()).unwrap();
        let renewed = Keys::read(&coordinator.file, Role::Coordinator).unwrap();
        assert_ne!(renewed.id(), coordinator.id());
        assert_eq!(renewed.authority_id(), coordinator.authority_id());
    }

    #[test]
    fn the_key_of_another_certificate_is_damage() {
        let directory = tempfile::tempdir().unwrap();
        let [_, coordinator, agent] = home::make(directory.path(), 30, SystemTime::now()).unwrap();
        let mixed = Keys { key: coordinator.key.clone_key(), ..agent };
        fs::write(&mixed.file, mixed.text()).unwrap();
        let refused = Keys::read(&mixed.file, Role::Agent).unwrap_err();
        assert!(refused.contains("its key is not the one of its certificate"), "{refused}");
    }

    #[test]
    fn nobody_waits_for_a_fifo() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(Keys::read_any(&fifo).unwrap_err().contains("this is not a file"));
    }

    #[test]
    fn revoked_keys_are_listed_and_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let [_, coordinator, agent] = home::make(directory.path(), 30, now).unwrap();
        home::revoke(directory.path(), &["agents".into()], 30, now).unwrap();
        let new = Keys::read(&agent.file, Role::Agent).unwrap();
        assert_ne!(new.id(), agent.id());
        let coordinator_now = Keys::read(&coordinator.file, Role::Coordinator).unwrap();
        assert_eq!(coordinator_now.id(), coordinator.id());
        for keys in [new, coordinator_now] {
            assert_eq!(keys.revoked, BTreeSet::from([agent.id()]));
        }
        let revoked = |word: &str| home::revoke(directory.path(), &[word.to_owned()], 30, now);
        let strange = revoked("bogus").unwrap_err();
        assert!(strange.contains("\"bogus\" is not a key"), "{strange}");
        let foreign = revoked("0123456789abcdef").unwrap_err();
        assert!(foreign.contains("0123456789abcdef is not a key that was issued here"), "{foreign}");
        let own = revoked(&agent.authority_id()).unwrap_err();
        assert!(own.contains("is the authority itself"), "{own}");
    }

    #[test]
    fn a_renewed_key_is_revoked_with_all_that_were_before() {
        let directory = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let [_, first, _] = home::make(directory.path(), 30, now).unwrap();
        let [second, _] = home::renew(directory.path(), 300, now).unwrap();
        let (revoked, [third, agent]) =
            home::revoke(directory.path(), &["coordinator".into()], 30, now).unwrap();
        assert_eq!(revoked, [first.id(), second.id()]);
        assert_eq!(agent.revoked, BTreeSet::from([first.id(), second.id()]));
        // Lists do not grow without end: expired keys are dropped, because they cannot be used any more.
        let later = now + Duration::from_secs(40 * 86_400);
        let gone = home::revoke(directory.path(), &[third.id()], 30, later).unwrap_err();
        assert!(gone.contains("has expired"), "{gone}");
        let [renewed, _] = home::renew(directory.path(), 30, later).unwrap();
        assert_eq!(renewed.revoked, BTreeSet::from([second.id()]));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let [_, coordinator, _] = home::make(directory.path(), 30, now).unwrap();
        fs::set_permissions(&coordinator.file, PermissionsExt::from_mode(0o644)).unwrap();
        let before = fs::read(&coordinator.file).unwrap();
        let refused = home::revoke(directory.path(), &["agents".into()], 30, now).unwrap_err();
        assert!(refused.contains("coordinator.keys: others may be able to read"), "{refused}");
        assert_eq!(fs::read(&coordinator.file).unwrap(), before);
        // A missing file is created again.
        fs::remove_file(&coordinator.file).unwrap();
        home::revoke(directory.path(), &["agents".into()], 30, now).unwrap();
        assert_ne!(Keys::read(&coordinator.file, Role::Coordinator).unwrap().id(), coordinator.id());
    }

    #[test]
    fn keys_are_looked_for_in_the_config_directory() {
        let of = |variables: &[(&str, &str)]| {
            let found = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            };
            directory(&found)
        };
        assert_eq!(of(&[("HOME", "/h")]), Some("/h/.config/iolite".into()));
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")]), Some("/c/iolite".into()));
        assert_eq!(of(&[("XDG_CONFIG_HOME", "relative")]), None);
    }
}
