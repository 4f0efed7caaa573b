//! The directory in which a set of keys was made: it issues, renews and revokes them.
//!
//! The authority's own key stays there, in a file that nobody copies. So whoever gets hold of the file of a coordinator or an agent has
//! one key, which can be revoked, and cannot make others.

use super::{Keys, Role, ids};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What every agent is called in its certificate: where it runs does not matter.
pub(crate) const AGENT: &str = "agent.iolite";
/// For how many days keys are valid where nothing else is said.
pub const DAYS: u64 = 365;
/// The longest time for which keys are valid, in days.
pub const MOST_DAYS: u64 = 3650;

const DAY: Duration = Duration::from_secs(86_400);
/// How long an authority lives, in days: longer than whatever it issues.
const AUTHORITY_DAYS: u32 = 36_500;
/// Clocks of other machines may be behind: keys are valid from a day before they were made.
const EARLIER: Duration = DAY;

/// Makes a set of keys: the files of the authority, the coordinator and the agents.
///
/// # Errors
/// There is one of these files already, or they cannot be made: in words.
pub fn make(directory: &Path, days: u64, now: SystemTime) -> Result<[Keys; 3], String> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for role in [Role::Authority, Role::Coordinator, Role::Agent] {
        let file = directory.join(role.file_name());
        if file.symlink_metadata().is_ok() {
            return Err(format!(
                "{}: there is one already; renew it (iolite keys renew), or name another directory",
                file.display()
            ));
        }
    }
    let authority = found(directory, now)?;
    let coordinator = issue(&authority, directory, Role::Coordinator, days, now)?;
    let agent = issue(&authority, directory, Role::Agent, days, now)?;
    let made = [authority, coordinator, agent];
    made.iter().try_for_each(save)?;
    Ok(made)
}

/// Makes new keys for the coordinator and the agents. Those before remain valid until their time is over.
///
/// # Errors
/// There is no authority here, or the files cannot be made: in words.
pub fn renew(directory: &Path, days: u64, now: SystemTime) -> Result<[Keys; 2], String> {
    let authority = authority(directory)?;
    let coordinator = issue(&authority, directory, Role::Coordinator, days, now)?;
    let agent = issue(&authority, directory, Role::Agent, days, now)?;
    let made = [coordinator, agent];
    made.iter().try_for_each(save)?;
    Ok(made)
}

/// Revokes keys: those that the words name (`coordinator` and `agents` mean the present ones). Whoever had a present one gets
/// another. Returns the ids that were revoked, and what has a new file now.
///
/// # Errors
/// A word names no key, there is no authority here, or the files cannot be made: in words.
pub fn revoke(
    directory: &Path,
    words: &[String],
    days: u64,
    now: SystemTime,
) -> Result<(Vec<String>, [Keys; 2]), String> {
    let mut authority = authority(directory)?;
    let present = |role: Role| Keys::read_any(&directory.join(role.file_name()));
    let mut ids = Vec::new();
    for word in words {
        ids.push(match word.as_str() {
            "coordinator" => present(Role::Coordinator)?.id(),
            "agent" | "agents" => present(Role::Agent)?.id(),
            id if is_id(id) => id.to_owned(),
            other => {
                return Err(format!(
                    "\"{other}\" is no key: name coordinator, agents, or an id, which has 16 digits (iolite keys show)"
                ));
            }
        });
    }
    authority.revoked.extend(ids.iter().cloned());
    let again = |role: Role| -> Result<Keys, String> {
        match present(role) {
            Ok(mut keys) if !authority.revoked.contains(&keys.id()) => {
                keys.revoked.clone_from(&authority.revoked);
                Ok(keys)
            }
            _ => issue(&authority, directory, role, days, now),
        }
    };
    let made = [again(Role::Coordinator)?, again(Role::Agent)?];
    // First who remembers it, so that an interrupted one can be repeated.
    save(&authority)?;
    made.iter().try_for_each(save)?;
    Ok((ids, made))
}

/// Whether a word names a key rather than a place.
pub fn is_key(word: &str) -> bool {
    matches!(word, "coordinator" | "agent" | "agents") || is_id(word)
}

fn is_id(word: &str) -> bool {
    word.len() == 16 && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The authority that is at home here.
fn authority(directory: &Path) -> Result<Keys, String> {
    let keys = Keys::read_any(&directory.join(Role::Authority.file_name()));
    let keys = keys.map_err(|why| {
        format!("{why}; keys are renewed and revoked where they were made (iolite keys new)")
    })?;
    match keys.role {
        Role::Authority => Ok(keys),
        other => Err(format!("{}: these are the keys {}", keys.file.display(), other.whose())),
    }
}

/// Founds an authority.
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
    })
}

/// Issues a key.
fn issue(authority: &Keys, directory: &Path, role: Role, days: u64, now: SystemTime) -> Result<Keys, String> {
    let words = |error: rcgen::Error| error.to_string();
    let signing = KeyPair::try_from(&authority.key).map_err(words)?;
    let until = now + DAY * u32::try_from(days.min(MOST_DAYS)).unwrap_or_default();
    // Whoever made the authority's certificate had the same words for it.
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
    Ok(Keys {
        file: directory.join(role.file_name()),
        role,
        certificate,
        key: private(&key),
        authority: authority.certificate.clone(),
        ids,
        until,
        revoked: authority.revoked.clone(),
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

/// Writes a file of keys, which is there as a whole or not at all, and never for others to read.
fn save(keys: &Keys) -> Result<(), String> {
    let beside = PathBuf::from(format!("{}.{}", keys.file.display(), std::process::id()));
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| {
            file.write_all(keys.text().as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, &keys.file));
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        format!("{}: {error}", keys.file.display())
    })
}
