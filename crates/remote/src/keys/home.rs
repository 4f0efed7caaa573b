//! The directory in which a set of keys was made: it issues, renews and revokes them.
//!
//! The authority's own key stays there, in a file that is never copied. So an attacker with the file of a coordinator
//! or an agent has one key, which can be revoked, and cannot make others.

use super::{Issued, Keys, Role, ids, is_id};
use crate::user;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The name of every agent in its certificate, which does not depend on its machine.
pub(crate) const AGENT: &str = "agent.iolite";
/// For how many days keys are valid by default.
pub const DAYS: u64 = 365;
/// The longest time for which keys are valid, in days.
pub const MOST_DAYS: u64 = 3650;

const DAY: Duration = Duration::from_secs(86_400);
/// How long an authority is valid, in days: longer than any key that it issues.
const AUTHORITY_DAYS: u32 = 36_500;
/// Clocks of other machines may be behind: keys are valid from a day before they were made.
const EARLIER: Duration = DAY;

/// Creates a set of keys: the files of the authority, the coordinator and the agents.
///
/// # Errors
/// One of these files exists already, or they cannot be created.
pub fn make(directory: &Path, days: u64, now: SystemTime) -> Result<[Keys; 3], String> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    // (Reading keys does this too.)
    iolite_os::process::keep_memory_private();
    let _alone = lock(directory)?;
    for role in [Role::Authority, Role::Coordinator, Role::Agent] {
        let file = directory.join(role.file_name());
        if file.symlink_metadata().is_ok() {
            return Err(format!(
                "{}: there is one already; renew it (iolite keys renew), or name another directory",
                file.display()
            ));
        }
    }
    let mut authority = found(directory, now)?;
    let coordinator = issue(&mut authority, directory, Role::Coordinator, days, now)?;
    let agent = issue(&mut authority, directory, Role::Agent, days, now)?;
    let made = [authority, coordinator, agent];
    made.iter().try_for_each(save)?;
    Ok(made)
}

/// Creates new keys for the coordinator and the agents. The earlier ones remain valid until they expire.
///
/// # Errors
/// There is no authority here, or the files cannot be created.
pub fn renew(directory: &Path, days: u64, now: SystemTime) -> Result<[Keys; 2], String> {
    let _alone = lock(directory)?;
    let mut authority = authority(directory, now)?;
    let coordinator = issue(&mut authority, directory, Role::Coordinator, days, now)?;
    let agent = issue(&mut authority, directory, Role::Agent, days, now)?;
    let made = [coordinator, agent];
    // Record the issued keys before anyone can use them.
    save(&authority)?;
    made.iter().try_for_each(save)?;
    Ok(made)
}

/// Revokes the named keys (`coordinator` and `agents` mean all that were issued to them). If the present key of the
/// coordinator or the agents is among them, has expired, or is missing, makes a new one. Returns the revoked ids, and
/// the roles that have a new file.
///
/// # Errors
/// A word names no key that was issued here, there is no authority here, or the files cannot be read or created.
pub fn revoke(
    directory: &Path,
    words: &[String],
    days: u64,
    now: SystemTime,
) -> Result<(Vec<String>, [Keys; 2]), String> {
    let _alone = lock(directory)?;
    let mut authority = authority(directory, now)?;
    let mut ids: Vec<String> = Vec::new();
    for word in words {
        let of = |role: Role| {
            authority.issued.iter().filter(move |one| one.role == role).map(|one| one.id.clone())
        };
        match word.as_str() {
            "coordinator" => ids.extend(of(Role::Coordinator)),
            "agent" | "agents" => ids.extend(of(Role::Agent)),
            id if id == authority.id() => {
                return Err(format!(
                    "{id} is the authority itself: make a new set (iolite keys new) in its place"
                ));
            }
            id if authority.issued.iter().any(|one| one.id == id) => ids.push(id.to_owned()),
            id if is_id(id) => {
                return Err(format!(
                    "{id} is not a key that was issued here, or it has expired (iolite keys show)"
                ));
            }
            other => {
                return Err(format!(
                    "\"{other}\" is not a key: name coordinator, agents, or an id, which has 16 digits (iolite keys show)"
                ));
            }
        }
    }
    ids.retain(|id| !authority.revoked.contains(id));
    authority.revoked.extend(ids.iter().cloned());
    let mut again = |role: Role| -> Result<Keys, String> {
        let file = directory.join(role.file_name());
        if file.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return issue(&mut authority, directory, role, days, now);
        }
        let mut keys = Keys::read_any(&file)?;
        if keys.role != role || keys.authority_id() != authority.id() {
            return Err(format!(
                "{}: these are the keys {} of another set, or not the keys {}; move the file away",
                file.display(),
                keys.role.whose(),
                role.whose()
            ));
        }
        if authority.revoked.contains(&keys.id()) || keys.until <= now {
            return issue(&mut authority, directory, role, days, now);
        }
        keys.revoked.clone_from(&authority.revoked);
        Ok(keys)
    };
    let made = [again(Role::Coordinator)?, again(Role::Agent)?];
    // The record comes first, so that an interrupted issue can be repeated.
    save(&authority)?;
    made.iter().try_for_each(save)?;
    Ok((ids, made))
}

/// Whether a word names a key rather than a place.
pub fn is_key(word: &str) -> bool {
    matches!(word, "coordinator" | "agent" | "agents") || is_id(word)
}

/// Locks the keys of a directory against other programs, until it is dropped.
fn lock(directory: &Path) -> Result<File, String> {
    let opened = File::open(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    match user::lock(&opened) {
        Ok(()) => Ok(opened),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(format!("{}: another iolite keys works here; try again later", directory.display()))
        }
        Err(error) => Err(format!("{}: {error}", directory.display())),
    }
}

/// The authority in this directory. Expired keys are dropped from its lists, revoked or not, because no one accepts
/// them.
fn authority(directory: &Path, now: SystemTime) -> Result<Keys, String> {
    let keys = Keys::read_any(&directory.join(Role::Authority.file_name()));
    let keys = keys.map_err(|why| {
        format!("{why}; keys are renewed and revoked where they were made (iolite keys new)")
    })?;
    match keys.role {
        Role::Authority => {
            let mut keys = keys;
            // (Clocks of other machines may be behind.)
            keys.issued.retain(|one| one.until + EARLIER > now);
            keys.revoked.retain(|id| keys.issued.iter().any(|one| one.id == *id));
            Ok(keys)
        }
        other => Err(format!("{}: these are the keys {}", keys.file.display(), other.whose())),
    }
}

/// Creates an authority.
fn found(directory: &Path, now: SystemTime) -> Result<Keys, String> {
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    let from = now - EARLIER;
    let until = from + DAY * AUTHORITY_DAYS;
    let certificate =
        authority_params(&key, from, until).self_signed(&key).map_err(|error| error.to_string())?;
    let certificate = certificate.der().clone();
    Ok(Keys {
        ids: ids(&certificate, &certificate).map_err(|error| error.to_string())?,
        file: directory.join(Role::Authority.file_name()),
        role: Role::Authority,
        authority: certificate.clone(),
        certificate,
        key: private(&key),
        until,
        revoked: BTreeSet::new(),
        issued: Vec::new(),
    })
}

/// Issues a key, and records it in the authority.
fn issue(
    authority: &mut Keys,
    directory: &Path,
    role: Role,
    days: u64,
    now: SystemTime,
) -> Result<Keys, String> {
    let words = |error: rcgen::Error| error.to_string();
    let signing = KeyPair::try_from(&authority.key).map_err(words)?;
    let until = now + DAY * u32::try_from(days.min(MOST_DAYS)).unwrap_or_default();
    // The issuer's name must be the subject of the authority's certificate.
    let params = authority_params(&signing, now, until);
    let issuer = Issuer::new(params, &signing);
    let key = KeyPair::generate().map_err(words)?;
    let mut params = CertificateParams::new(vec![AGENT.to_owned()]).map_err(words)?;
    limit(&mut params, now - EARLIER, until);
    params.distinguished_name = named(&format!("Iolite {role}"));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![match role {
        Role::Agent => ExtendedKeyUsagePurpose::ServerAuth,
        _ => ExtendedKeyUsagePurpose::ClientAuth,
    }];
    let certificate: CertificateDer<'static> = params.signed_by(&key, &issuer).map_err(words)?.der().clone();
    let ids = ids(&certificate, &authority.certificate).map_err(|error| error.to_string())?;
    if authority.revoked.contains(&ids[0]) {
        return Err("a new key is among those that are revoked".to_owned());
    }
    authority.issued.push(Issued { id: ids[0].clone(), role, until });
    Ok(Keys {
        file: directory.join(role.file_name()),
        role,
        certificate,
        key: private(&key),
        authority: authority.certificate.clone(),
        ids,
        until,
        revoked: authority.revoked.clone(),
        issued: Vec::new(),
    })
}

fn authority_params(key: &KeyPair, from: SystemTime, until: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    limit(&mut params, from, until);
    let own: String =
        Sha256::digest(key.public_key_raw()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name = named(&format!("Iolite authority {own}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn limit(params: &mut CertificateParams, from: SystemTime, until: SystemTime) {
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    (params.not_before, params.not_after) = (epoch + since(from), epoch + since(until));
}

fn private(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()))
}

/// Writes a file of keys atomically, and never readable by other users. A link is followed, and the file keeps its
/// owner. The directory is locked.
fn save(keys: &Keys) -> Result<(), String> {
    let file = fs::canonicalize(&keys.file).unwrap_or_else(|_| keys.file.clone());
    let mut beside = OsString::from(&file);
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let write = || {
        // An interrupted write may have left its temporary file.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut made = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
        if let Ok(before) = fs::metadata(&file) {
            let now = made.metadata()?;
            if (before.uid(), before.gid()) != (now.uid(), now.gid()) {
                fchown(&made, Some(before.uid()), Some(before.gid()))?;
            }
        }
        made.write_all(keys.text().as_bytes())?;
        made.sync_all()?;
        fs::rename(&beside, &file)?;
        file.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
    };
    write().map_err(|error| format!("{}: {error}", keys.file.display()))
}
