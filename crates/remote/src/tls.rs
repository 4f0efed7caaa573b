//! TLS over a stream, with keys at both ends: each end shows a key that the same authority has issued for its role.
//!
//! Only TLS 1.3 is used, without resumption, so every connection is checked. Machine names are not checked. Errors of
//! keys are reported at both ends: each learns of them from its own check, or from the other end's alert.

use crate::greeting::{self, Stranger};
use crate::keys::{self, Keys, Role, home};
use crate::stream::Stream;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct,
    DistinguishedName, Error, PeerIncompatible, RootCertStore, ServerConfig, ServerConnection,
    SignatureScheme,
};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes that are received at once.
const PIECE: usize = 32 << 10;

/// A stream with TLS over it. One thread may read while another one writes.
#[derive(Debug)]
pub(crate) struct Encrypted {
    stream: Arc<Stream>,
    /// Locked for no longer than it takes to encrypt or decrypt.
    tls: Mutex<Connection>,
    input: Mutex<Input>,
    /// Locked from encryption until the data is sent, so that records stay in order.
    output: Mutex<()>,
}

/// The received data. (Nothing prints what was decrypted.)
#[derive(Default)]
struct Input {
    /// Decrypted.
    plain: Vec<u8>,
    /// How much of that has been read.
    read: usize,
    /// No more data comes.
    has_ended: bool,
    /// The error, if there was one.
    failed: Option<String>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("bytes", &self.plain.len()).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Encrypted {
    /// The agent's end: accepts only a coordinator with a key of the same authority.
    pub fn accept(stream: Arc<Stream>, keys: &Keys) -> Result<Encrypted, Stranger> {
        let first = greeting::first_bytes(&stream)?;
        if !greeting::is_tls(&first) {
            let stranger = greeting::stranger(&first);
            if matches!(stranger, Stranger::Plain) {
                // This client understands the refusal.
                greeting::refuse(&stream, greeting::Refusal::NeedsKeys);
                return Err(Stranger::PlainClient);
            }
            return Err(stranger);
        }
        let config = server_config(keys).map_err(|error| Stranger::Keys(words(&error, keys.role)))?;
        let tls = ServerConnection::new(config).map_err(|error| Stranger::Keys(words(&error, keys.role)))?;
        Encrypted::new(stream, tls.into()).shake_hands(&first, keys.role)
    }

    /// The coordinator's end: accepts only an agent with a key of the same authority.
    pub fn connect(stream: Arc<Stream>, keys: &Keys) -> Result<Encrypted, Stranger> {
        let config = client_config(keys).map_err(|error| Stranger::Keys(words(&error, keys.role)))?;
        Encrypted::connect_as(stream, config, keys.role)
    }

    fn connect_as(stream: Arc<Stream>, config: Arc<ClientConfig>, own: Role) -> Result<Encrypted, Stranger> {
        let failed = |error: Error| Stranger::Keys(words(&error, own));
        let name = ServerName::try_from(home::AGENT).map_err(|_| Stranger::Other)?;
        let tls = ClientConnection::new(config, name).map_err(failed)?;
        let encrypted = Encrypted::new(stream, tls.into());
        encrypted.send_pending().map_err(Stranger::Silent)?;
        let first = greeting::first_bytes(&encrypted.stream)?;
        if !greeting::is_tls(&first) {
            return Err(match greeting::stranger(&first) {
                Stranger::Plain => Stranger::PlainServer,
                other => other,
            });
        }
        encrypted.shake_hands(&first, own)
    }

    fn new(stream: Arc<Stream>, tls: Connection) -> Encrypted {
        Encrypted { stream, tls: Mutex::new(tls), input: Mutex::default(), output: Mutex::new(()) }
    }

    /// Continues the handshake to its end, starting with these received bytes.
    fn shake_hands(self, first: &[u8], own: Role) -> Result<Encrypted, Stranger> {
        let mut bytes = vec![0; PIECE];
        let mut received = first.to_vec();
        loop {
            let taken = self.decrypt(&mut lock(&self.input), &received);
            let sent = self.send_pending();
            taken.map_err(|error| Stranger::Keys(words(&error, own)))?;
            sent.map_err(Stranger::Silent)?;
            if !lock(&self.tls).is_handshaking() {
                return Ok(self);
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(Stranger::Closed),
                Ok(count) => received = bytes[..count].to_vec(),
                Err(error) => return Err(Stranger::Silent(error)),
            }
        }
    }

    /// The underlying stream.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    fn decrypt(&self, input: &mut Input, mut bytes: &[u8]) -> Result<(), Error> {
        let mut tls = lock(&self.tls);
        while !bytes.is_empty() {
            // Its buffer is never full: all data is taken out at once.
            if tls.read_tls(&mut bytes).map_err(|error| Error::General(error.to_string()))? == 0 {
                break;
            }
            tls.process_new_packets()?;
            loop {
                let mut piece = [0; 4096];
                match tls.reader().read(&mut piece) {
                    // The other end has announced its end.
                    Ok(0) => {
                        input.has_ended = true;
                        break;
                    }
                    Ok(count) => input.plain.extend_from_slice(&piece[..count]),
                    // No more data for now.
                    Err(_) => break,
                }
            }
        }
        Ok(())
    }

    /// Takes the data that has arrived. Returns whether there is data to read, or the stream has ended.
    fn receive_now(&self, input: &mut Input) -> io::Result<bool> {
        if input.read < input.plain.len() || input.has_ended {
            return match &input.failed {
                Some(words) if input.read == input.plain.len() => {
                    Err(io::Error::new(io::ErrorKind::InvalidData, words.clone()))
                }
                _ => Ok(true),
            };
        }
        input.plain.clear();
        input.read = 0;
        let mut bytes = [0; PIECE];
        match self.stream.read_now(&mut bytes)? {
            None => return Ok(false),
            Some(0) => input.has_ended = true,
            Some(count) => {
                if let Err(error) = self.decrypt(input, &bytes[..count]) {
                    input.has_ended = true;
                    // Send the alert with the reason, if there is room for it now.
                    if self.stream.is_writable() {
                        let _ = self.send_pending();
                    }
                    input.failed = Some(words(&error, self.role()));
                    return self.receive_now(input);
                }
            }
        }
        Ok(input.read < input.plain.len() || input.has_ended)
    }

    fn role(&self) -> Role {
        match &*lock(&self.tls) {
            Connection::Client(_) => Role::Coordinator,
            Connection::Server(_) => Role::Agent,
        }
    }

    /// Sends the encrypted data.
    fn send_pending(&self) -> io::Result<()> {
        let _turn = lock(&self.output);
        self.send_encrypted()
    }

    fn send_encrypted(&self) -> io::Result<()> {
        let mut bytes = Vec::new();
        {
            let mut tls = lock(&self.tls);
            while tls.wants_write() {
                tls.write_tls(&mut bytes)?;
            }
        }
        self.stream.write_all(&bytes)
    }

    /// As [`Stream::read`].
    pub fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut input = lock(&self.input);
        let until = self.stream.begin();
        while !self.receive_now(&mut input)? {
            self.stream.wait_for_input(until)?;
        }
        let count = bytes.len().min(input.plain.len() - input.read);
        bytes[..count].copy_from_slice(&input.plain[input.read..input.read + count]);
        input.read += count;
        Ok(count)
    }

    /// As [`Stream::write`].
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let _turn = lock(&self.output);
        let taken = lock(&self.tls).writer().write(bytes)?;
        self.send_encrypted()?;
        Ok(taken)
    }

    /// As [`Stream::is_readable_within`].
    pub fn is_readable_within(&self, patience: Duration) -> bool {
        let mut input = lock(&self.input);
        let until = Instant::now() + patience;
        loop {
            // The error is reported to the caller that reads.
            if self.receive_now(&mut input).unwrap_or(true) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.stream.is_readable_within(left) {
                return false;
            }
        }
    }
}

fn server_config(keys: &Keys) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let inner = WebPkiClientVerifier::builder_with_provider(roots(keys)?, provider.clone())
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    let verifier = Unrevoked { inner, revoked: keys.revoked.clone() };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_single_cert(vec![keys.certificate.clone()], keys.key.clone_key())?;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    Ok(Arc::new(config))
}

fn client_config(keys: &Keys) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let inner = WebPkiServerVerifier::builder_with_provider(roots(keys)?, provider.clone())
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    let verifier = Unrevoked { inner, revoked: keys.revoked.clone() };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(vec![keys.certificate.clone()], keys.key.clone_key())?;
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_sni = false;
    Ok(Arc::new(config))
}

fn roots(keys: &Keys) -> Result<Arc<RootCertStore>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(keys.authority.clone())?;
    Ok(Arc::new(roots))
}

/// Trusts like the inner verifier, except for revoked keys.
#[derive(Debug)]
struct Unrevoked<V: ?Sized> {
    revoked: BTreeSet<String>,
    inner: Arc<V>,
}

impl<V: ?Sized> Unrevoked<V> {
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        match self.revoked.contains(&keys::id(certificate)?) {
            true => Err(CertificateError::Revoked.into()),
            false => Ok(()),
        }
    }
}

/// Methods that the verifiers of both roles delegate to the inner verifier. (rustls has a trait for each role, with the
/// same methods.)
macro_rules! signatures_are_left_to_inner {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.inner.verify_tls12_signature(message, certificate, signed)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.inner.verify_tls13_signature(message, certificate, signed)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.inner.supported_verify_schemes()
        }
    };
}

impl ClientCertVerifier for Unrevoked<dyn ClientCertVerifier> {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(certificate, between, now)?;
        self.check(certificate)?;
        Ok(verified)
    }

    signatures_are_left_to_inner!();
}

impl ServerCertVerifier for Unrevoked<WebPkiServerVerifier> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(certificate, between, name, ocsp, now)?;
        self.check(certificate)?;
        Ok(verified)
    }

    signatures_are_left_to_inner!();
}

/// Describes an error at an end that shows a key of this role.
fn words(error: &Error, own: Role) -> String {
    let (its, needed) = match own {
        Role::Agent => ("the client", "a coordinator"),
        _ => ("the server", "an agent"),
    };
    match error {
        Error::InvalidCertificate(why) => {
            let why = match why {
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    "it has expired; renew the keys (iolite keys renew), and look whether both clocks are right"
                }
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    "it is not valid yet; look whether both clocks are right"
                }
                CertificateError::Revoked => "it is revoked",
                CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                    "it is from another set of keys"
                }
                CertificateError::InvalidPurpose
                | CertificateError::InvalidPurposeContext { .. }
                | CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => {
                    return format!("the key of {its} is refused: it is not the key of {needed}");
                }
                _ => "it is none that iolite keys makes",
            };
            format!("the key of {its} is refused: {why}")
        }
        Error::NoCertificatesPresented => format!("{its} speaks TLS, but shows no key of Iolite"),
        Error::AlertReceived(alert) => {
            let why = match alert {
                AlertDescription::CertificateExpired => "it has expired, or one of the clocks is wrong",
                AlertDescription::CertificateRevoked => "it is revoked",
                AlertDescription::UnknownCA | AlertDescription::DecryptError => {
                    "it is from another set of keys"
                }
                AlertDescription::UnsupportedCertificate | AlertDescription::BadCertificate => {
                    return format!("{its} refuses this end's key: it is not the key of {}", own.article());
                }
                other => return format!("{its} refuses the connection (TLS alert {other:?})"),
            };
            format!("{its} refuses this end's key: {why}")
        }
        Error::PeerIncompatible(
            PeerIncompatible::SignatureAlgorithmsExtensionRequired
            | PeerIncompatible::SupportedVersionsExtensionRequired,
        )
        | Error::PeerIncompatible(PeerIncompatible::Tls12NotOfferedOrEnabled) => {
            format!("{its} speaks an older TLS, and is not an Iolite")
        }
        other => format!("TLS: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::thread;
    use std::time::SystemTime;

    fn streams() -> (Arc<Stream>, Arc<Stream>) {
        let (one, other) = UnixStream::pair().unwrap();
        let over = |socket: UnixStream| {
            let stream = Stream::over_socket(socket).unwrap();
            stream.set_deadline(Some(Instant::now() + Duration::from_secs(600)));
            Arc::new(stream)
        };
        (over(one), over(other))
    }

    fn made(directory: &Path, age_days: u32) -> [Keys; 2] {
        let now = SystemTime::now() - Duration::from_secs(86_400) * age_days;
        let [_, coordinator, agent] = home::make(directory, 30, now).unwrap();
        [coordinator, agent]
    }

    /// The results at the coordinator's end and at the agent's: each sends a word and reads one, like greetings.
    fn meet(coordinator: &Keys, agent: &Keys) -> [String; 2] {
        let (one, other) = streams();
        let talk = |encrypted: Encrypted| {
            encrypted.write(b"hello").map_err(Stranger::Silent)?;
            let mut word = [0; 5];
            match encrypted.read(&mut word) {
                Ok(5) => Ok(()),
                Ok(_) => Err(Stranger::Closed),
                Err(error) => Err(Stranger::Keys(error.to_string())),
            }
        };
        thread::scope(|scope| {
            let agents_end = scope.spawn(|| {
                let met = Encrypted::accept(one.clone(), agent).and_then(talk);
                one.part();
                met
            });
            let met = Encrypted::connect(other.clone(), coordinator).and_then(talk);
            other.part();
            [agents_end.join().unwrap(), met]
                .map(|met| met.map_or_else(|why| why.to_string(), |()| "met".to_owned()))
        })
    }

    /// Splits off the first DER element of these bytes: the whole element, and its content.
    fn first_of(der: &[u8]) -> (&[u8], &[u8]) {
        let (head, length) = match der[1] {
            0x81 => (3, usize::from(der[2])),
            0x82 => (4, usize::from(der[2]) << 8 | usize::from(der[3])),
            short => (2, usize::from(short)),
        };
        (&der[..head + length], &der[head..head + length])
    }

    fn der(kind: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let head = match length {
            0..0x80 => vec![kind, length as u8],
            0x80..0x100 => vec![kind, 0x81, length as u8],
            _ => vec![kind, 0x82, (length >> 8) as u8, length as u8],
        };
        [&head, content].concat()
    }

    /// For an ECDSA signature (r, s), (r, order - s) is valid, too, and anyone can compute it.
    fn signed_otherwise(certificate: &CertificateDer<'_>) -> CertificateDer<'static> {
        const ORDER: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
        let order: Vec<u8> =
            (0..32).map(|at| u8::from_str_radix(&ORDER[2 * at..2 * at + 2], 16).unwrap()).collect();
        let (_, parts) = first_of(certificate);
        let (signed, _) = first_of(parts);
        let (algorithm, _) = first_of(&parts[signed.len()..]);
        let (_, signature) = first_of(&parts[signed.len() + algorithm.len()..]);
        // After the number of unused bits.
        let (_, numbers) = first_of(&signature[1..]);
        let (r, _) = first_of(numbers);
        let (_, s) = first_of(&numbers[r.len()..]);
        let mut s = s.to_vec();
        while s.len() < 32 {
            s.insert(0, 0);
        }
        let s = &s[s.len() - 32..];
        let (mut other, mut borrow) = (vec![0; 32], 0);
        for at in (0..32).rev() {
            let digit = i32::from(order[at]) - i32::from(s[at]) - borrow;
            borrow = i32::from(digit < 0);
            other[at] = (digit & 0xff) as u8;
        }
        // Without leading zeros, except for one that makes the number positive.
        let zeros = other.iter().take_while(|byte| **byte == 0).count();
        other.drain(..zeros);
        if other[0] >= 0x80 {
            other.insert(0, 0);
        }
        let numbers = der(0x30, &[r, &der(2, &other)].concat());
        let signature = der(3, &[&[0], &numbers[..]].concat());
        der(0x30, &[signed, algorithm, &signature].concat()).into()
    }

    #[test]
    fn only_keys_of_one_set_meet() {
        let directories: [_; 3] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
        let [coordinator, agent] = made(directories[0].path(), 0);
        assert_eq!(meet(&coordinator, &agent), ["met", "met"]);
        let check = |coordinator: &Keys, agent: &Keys, at_agent: &str, at_coordinator: &str| {
            let [agents, coordinators] = meet(coordinator, agent);
            assert!(agents.contains(at_agent), "{agents}");
            assert!(coordinators.contains(at_coordinator), "{coordinators}");
        };
        // Keys of another set.
        let [foreign_coordinator, foreign_agent] = made(directories[1].path(), 0);
        check(
            &coordinator,
            &foreign_agent,
            "the client refuses this end's key: it is from another set",
            "the key of the server is refused: it is from another set",
        );
        // A coordinator that trusts this agent, as a thief's would.
        let thief = Keys { authority: agent.authority.clone(), ..foreign_coordinator };
        check(
            &thief,
            &agent,
            "the key of the client is refused: it is from another set",
            "the server refuses this end's key: it is from another set",
        );
        // A key of the other role.
        let pretender = |keys: &Keys, role: Role| Keys {
            role,
            file: keys.file.clone(),
            certificate: keys.certificate.clone(),
            key: keys.key.clone_key(),
            authority: keys.authority.clone(),
            ids: keys.ids.clone(),
            until: keys.until,
            revoked: keys.revoked.clone(),
            issued: Vec::new(),
        };
        check(
            &pretender(&agent, Role::Coordinator),
            &agent,
            "it is not the key of a coordinator",
            "the server refuses this end's key: it is not the key of a coordinator",
        );
        check(
            &coordinator,
            &pretender(&coordinator, Role::Agent),
            "the client refuses this end's key: it is not the key of an agent",
            "it is not the key of an agent",
        );
        // Expired keys.
        let [old_coordinator, old_agent] = made(directories[2].path(), 40);
        home::renew(directories[2].path(), 30, SystemTime::now()).unwrap();
        let new = |old: &Keys| Keys::read(&old.file, old.role).unwrap();
        check(
            &old_coordinator,
            &new(&old_agent),
            "the key of the client is refused: it has expired",
            "the server refuses this end's key: it has expired",
        );
        check(
            &new(&old_coordinator),
            &old_agent,
            "the client refuses this end's key: it has expired",
            "the key of the server is refused: it has expired",
        );
        // Revoked keys, at the end that knows about it.
        let careful = |keys: &Keys, other: &Keys| Keys {
            revoked: BTreeSet::from([other.id()]),
            ..pretender(keys, keys.role)
        };
        check(
            &coordinator,
            &careful(&agent, &coordinator),
            "the key of the client is refused: it is revoked",
            "the server refuses this end's key: it is revoked",
        );
        check(
            &careful(&coordinator, &agent),
            &agent,
            "the client refuses this end's key: it is revoked",
            "the key of the server is refused: it is revoked",
        );
        // The same with the other form of the certificate's signature: it remains the same key.
        for keys in [&coordinator, &agent] {
            let other =
                Keys { certificate: signed_otherwise(&keys.certificate), ..pretender(keys, keys.role) };
            assert_ne!(other.certificate, keys.certificate);
            let knowing = [&coordinator, &agent].map(|end| careful(end, keys));
            let (met, said) = match keys.role {
                Role::Coordinator => (meet(&other, &agent), meet(&other, &knowing[1])[0].clone()),
                _ => (meet(&coordinator, &other), meet(&knowing[0], &other)[1].clone()),
            };
            assert_eq!(met, ["met", "met"]);
            assert!(said.ends_with("is refused: it is revoked"), "{said}");
        }
    }

    /// Clients of another program: without a key, or with an older TLS.
    #[test]
    fn a_client_without_a_key_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let [coordinator, agent] = made(directory.path(), 0);
        let provider = Arc::new(ring::default_provider());
        let inner =
            WebPkiServerVerifier::builder_with_provider(roots(&coordinator).unwrap(), provider.clone());
        let verifier = Unrevoked { inner: inner.build().unwrap(), revoked: BTreeSet::new() };
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let (one, other) = streams();
        let refused = |accepted: Result<Encrypted, Stranger>| accepted.unwrap_err().to_string();
        thread::scope(|scope| {
            let agents_end = scope.spawn(|| refused(Encrypted::accept(one, &agent)));
            // The client finishes its handshake before the server has refused it.
            let client = Encrypted::connect_as(other, Arc::new(config), Role::Coordinator).unwrap();
            let why = client.read(&mut [0; 10]).unwrap_err().to_string();
            assert!(
                why.contains("the server refuses the connection (TLS alert CertificateRequired)"),
                "{why}"
            );
            assert_eq!(agents_end.join().unwrap(), "the client speaks TLS, but shows no key of Iolite");
        });
        // The first message of TLS 1.1, and of 1.2, which lists signature algorithms.
        let hello = |extensions: &[u8]| {
            let random = [&b"\x03\x03"[..], &[7; 32], b"\0\0\x02\xc0\x2b\x01\0", extensions].concat();
            let message = [&[1, 0, 0, random.len() as u8], &random[..]].concat();
            [&[0x16, 3, 1, 0, message.len() as u8], &message[..]].concat()
        };
        for record in [hello(b""), hello(b"\0\x08\0\x0d\0\x04\0\x02\x04\x03")] {
            let (one, other) = streams();
            other.write_all(&record).unwrap();
            let why = refused(Encrypted::accept(one, &agent));
            assert_eq!(why, "the client speaks an older TLS, and is not an Iolite");
        }
        // A client that stops in the middle of its first message is refused as well.
        let (one, other) = streams();
        one.set_deadline(Some(Instant::now() + Duration::from_millis(50)));
        other.write_all(&hello(b"")[..20]).unwrap();
        let why = refused(Encrypted::accept(one, &agent));
        assert!(why.contains("has taken too long"), "{why}");
    }

    #[test]
    fn both_directions_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let [coordinator, agent] = made(directory.path(), 0);
        let (one, other) = streams();
        let (one, other) = thread::scope(|scope| {
            let one = scope.spawn(|| Encrypted::accept(one, &agent).unwrap());
            let other = Encrypted::connect(other, &coordinator).unwrap();
            (one.join().unwrap(), other)
        });
        assert!(!one.is_readable_within(Duration::ZERO));
        let long: Vec<u8> = (0..3 << 20).map(|index| (index % 251) as u8).collect();
        let send = |end: &Encrypted| {
            let mut rest = &long[..];
            while !rest.is_empty() {
                rest = &rest[end.write(rest).unwrap()..];
            }
        };
        let receive = |end: &Encrypted| {
            let mut bytes = Vec::new();
            let mut piece = [0; 5000];
            while bytes.len() < long.len() {
                assert!(end.is_readable_within(Duration::from_secs(600)));
                let count = end.read(&mut piece).unwrap();
                bytes.extend_from_slice(&piece[..count]);
            }
            assert!(bytes == long);
        };
        thread::scope(|scope| {
            for end in [&one, &other] {
                scope.spawn(move || send(end));
                scope.spawn(move || receive(end));
            }
        });
        // Tampering is noticed.
        one.stream().write_all(b"\x17\x03\x03\x00\x20aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").unwrap();
        assert!(other.is_readable_within(Duration::from_secs(600)));
        let why = other.read(&mut [0; 10]).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::InvalidData);
    }
}
