//! The certificates that a client trusts on encrypted connections, and its own certificate.

mod subject;

use iolite_types::utc;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which servers to trust, and which certificate to present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Trust any server: certificates are not checked.
    pub anybody: bool,
    /// A file with the certificates of the authorities to trust (PEM); `None` = the authorities that the system
    /// trusts.
    pub authorities: Option<PathBuf>,
    /// The files with the certificate that the client presents and with its key (PEM).
    pub own: Option<(PathBuf, PathBuf)>,
}

/// What is wrong with an encrypted connection, its likely cause and the remedy.
pub(crate) fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => format!("the server's certificate {}", of_certificate(why)),
        Error::InconsistentKeys(_) => {
            "the key (http_key_file) does not belong to the certificate (http_cert_file)".to_owned()
        }
        Error::NoCertificatesPresented => "the server shows no certificate".to_owned(),
        Error::AlertReceived(alert) => {
            let cause = match alert {
                AlertDescription::CertificateRequired => {
                    "; the server wants a certificate of yours (http_cert_file, http_key_file)"
                }
                // (TLS 1.2 sends this alert for a missing certificate, but also for other errors.)
                AlertDescription::HandshakeFailure => {
                    "; the server may want a certificate of yours (http_cert_file, http_key_file)"
                }
                AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA => {
                    "; the server does not take your certificate (http_cert_file): it has to be valid, and signed by an \
                     authority that the server trusts"
                }
                AlertDescription::ProtocolVersion => "; the server speaks neither TLS 1.2 nor TLS 1.3",
                _ => "",
            };
            format!("the server refuses the handshake (TLS alert {alert:?}){cause}")
        }
        Error::InvalidMessage(_) => {
            "the answer is not one of TLS; the port may be one for connections without encryption".to_owned()
        }
        other => other.to_string(),
    }
}

/// What is wrong with a certificate ("has expired"), and the remedy.
fn of_certificate(why: &CertificateError) -> String {
    const CLOCK: &str = "or the clock of this machine is wrong; https=insecure checks nothing";
    match why {
        CertificateError::UnknownIssuer => {
            "is signed by an authority that is not trusted; name a file with that authority, or with the certificate \
             itself (http_ca_file)"
                .to_owned()
        }
        other if is_authoritys(other) => {
            "is that of an authority (openssl req -x509 makes such); name that very certificate in http_ca_file".to_owned()
        }
        CertificateError::BadSignature => {
            "is signed by another authority of the same name as one in http_ca_file, as when certificates were made anew; \
             name the one that signed it"
                .to_owned()
        }
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("was valid until {}; renew it, {CLOCK}", utc(not_after.as_secs()))
        }
        CertificateError::Expired => format!("has expired; renew it, {CLOCK}"),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("is valid from {}; wait until then, {CLOCK}", utc(not_before.as_secs()))
        }
        CertificateError::NotValidYet => format!("is not valid yet; wait until it is, {CLOCK}"),
        CertificateError::NotValidForNameContext { expected, presented } if presented.is_empty() => {
            let host = expected.to_str();
            let kind = if matches!(expected, ServerName::IpAddress(_)) { "IP" } else { "DNS" };
            format!(
                "does not name {host} and has no other names (subjectAltName); make it with these (openssl req -addext \
                 subjectAltName={kind}:{host}), or name that very certificate in http_ca_file if its subject's CN is {host}"
            )
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            // They come as `DnsName("localhost")` and `IpAddress(127.0.0.1)`.
            let bare = |name: &String| {
                let inner = name.split_once('(').and_then(|(_, name)| name.strip_suffix(')')).unwrap_or(name);
                inner.trim_matches('"').to_owned()
            };
            let names: Vec<String> = presented.iter().map(bare).collect();
            format!(
                "is not that of {}, but of {}; give one of its names as http_host",
                expected.to_str(),
                names.join(", ")
            )
        }
        CertificateError::NotValidForName => {
            "has other names than this host; give one of its names as http_host".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "is not one for servers; make it with the use serverAuth (extendedKeyUsage)".to_owned()
        }
        CertificateError::BadEncoding => "is damaged".to_owned(),
        CertificateError::Revoked => "is revoked".to_owned(),
        CertificateError::UnhandledCriticalExtension => {
            "has a critical extension that is unknown here; https=insecure checks nothing".to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "is signed by a method that is not supported (SHA-1 and RSA keys below 2048 bits are not); make it anew, or \
             https=insecure checks nothing"
                .to_owned()
        }
        other => format!("is refused ({other})"),
    }
}

/// Whether a certificate was refused only because it is that of an authority. (Only its name identifies this error.)
fn is_authoritys(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity"))
}

/// What is wrong with the client's certificates.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file cannot be read, or does not contain certificates.
    #[error("{option}={file}: {why}")]
    File {
        /// The option that names it.
        option: &'static str,
        /// The file.
        file: String,
        /// The reason.
        why: String,
    },
    /// The system trusts no authorities.
    #[error(
        "this system has no certificates of authorities to trust (Debian: apt-get install ca-certificates); name a \
         file of them"
    )]
    NoAuthorities,
    /// The certificate and the key do not match, or their type is not supported.
    #[error("{}", words(.0))]
    Unusable(Error),
}

impl Trust {
    /// The TLS configuration with these certificates.
    ///
    /// # Errors
    /// A file is invalid, or there is no authority to trust.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, TrustError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(TrustError::Unusable)?;
        let builder = if self.anybody {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody::new(&provider)))
        } else {
            builder.dangerous().with_custom_certificate_verifier(self.verifier(&provider)?)
        };
        let mut config = match &self.own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates("http_cert_file", certificate)?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| of_file("http_key_file", key, &error))?;
                builder.with_client_auth_cert(chain, key).map_err(TrustError::Unusable)?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, TrustError> {
        let mut roots = RootCertStore::empty();
        let mut named = Vec::new();
        match &self.authorities {
            Some(file) => {
                for certificate in certificates(CA_FILE, file)? {
                    let damaged = |_| of_file(CA_FILE, file, &"a certificate in it is damaged");
                    roots.add(certificate.clone()).map_err(damaged)?;
                    let subject = roots.roots.last().and_then(|added| subject::common_name(&added.subject));
                    named.push(NamedCertificate { certificate, common_name: subject });
                }
            }
            // Certificates of the system that cannot be parsed are skipped.
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        if roots.is_empty() {
            return Err(TrustError::NoAuthorities);
        }
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        let usual = usual.map_err(|error| TrustError::Unusable(Error::General(error.to_string())))?;
        Ok(if named.is_empty() { usual } else { Arc::new(Named { usual, named }) })
    }
}

const CA_FILE: &str = "http_ca_file";

fn certificates(option: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| of_file(option, file, &error))?;
    if all.is_empty() { Err(of_file(option, file, &"there is no certificate (PEM) in it")) } else { Ok(all) }
}

fn of_file(option: &'static str, file: &Path, why: &dyn std::fmt::Display) -> TrustError {
    TrustError::File { option, file: file.display().to_string(), why: why.to_string() }
}

/// Trusts what the authorities have signed and, as other programs do, the very certificates that the user has named,
/// even if they are those of authorities. Their names and their time are checked in any case. One of those that has no
/// names but its subject's has that one.
#[derive(Debug)]
struct Named {
    usual: Arc<WebPkiServerVerifier>,
    named: Vec<NamedCertificate>,
}

/// A certificate that the user has named.
#[derive(Debug)]
struct NamedCertificate {
    certificate: CertificateDer<'static>,
    /// The name of its subject.
    common_name: Option<String>,
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        revocation: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut result = self.usual.verify_server_cert(certificate, others, name, revocation, now);
        let Some(named) = self.named.iter().find(|named| named.certificate == *certificate) else {
            return result;
        };
        // The time has been checked before these errors.
        if let Err(Error::InvalidCertificate(why)) = &result
            && is_authoritys(why)
        {
            result = verify_server_name(&ParsedCertificate::try_from(certificate)?, name)
                .map(|()| ServerCertVerified::assertion());
        }
        match (&result, &named.common_name) {
            (
                Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                    presented, ..
                })),
                Some(subject),
            ) if presented.is_empty() && subject::names(subject, name) => Ok(ServerCertVerified::assertion()),
            _ => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Trusts any certificate, but checks that the server has its key.
#[derive(Debug)]
struct Anybody(WebPkiSupportedAlgorithms);

impl Anybody {
    fn new(provider: &CryptoProvider) -> Anybody {
        Anybody(provider.signature_verification_algorithms)
    }
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times within the validity of the certificates of tests, and after it, in seconds since 1970.
    const IN_TIME: u64 = 2_000_000_000;
    const LATE: u64 = 10_000_000_000;

    /// Checks the certificate that a server shows under a name, at a time, with a file of authorities.
    fn check(
        shown: &str,
        authorities: &str,
        name: &'static str,
        now: u64,
    ) -> Result<ServerCertVerified, Error> {
        let file =
            |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/certificates").join(name);
        let shown = CertificateDer::from_pem_file(file(shown)).unwrap();
        let trust = Trust { authorities: Some(file(authorities)), ..Trust::default() };
        let verifier = trust.verifier(&Arc::new(ring::default_provider())).unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now));
        verifier.verify_server_cert(&shown, &[], &ServerName::try_from(name).unwrap(), &[], now)
    }

    #[test]
    fn errors_are_in_words_with_a_remedy() {
        let of = |error| words(&Error::InvalidCertificate(error));
        let seconds = |seconds| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let other_names = |presented: &[&str]| CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("a.example").unwrap(),
            presented: presented.iter().map(ToString::to_string).collect(),
        };
        let expired = CertificateError::ExpiredContext { time: seconds(99), not_after: seconds(0) };
        for (said, expected) in [
            (of(CertificateError::UnknownIssuer), "http_ca_file"),
            (of(CertificateError::BadSignature), "http_ca_file"),
            (of(expired), "was valid until 1970-01-01 00:00:00 UTC; renew it, or the clock of this machine"),
            (
                of(other_names(&["DnsName(\"localhost\")", "IpAddress(127.0.0.1)"])),
                "is not that of a.example, but of localhost, 127.0.0.1; give one of its names as http_host",
            ),
            (of(other_names(&[])), "-addext subjectAltName=DNS:a.example"),
            (of(CertificateError::Revoked), "the server's certificate is revoked"),
            (words(&Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)), "without encryption"),
            (words(&Error::AlertReceived(AlertDescription::CertificateRequired)), "http_cert_file"),
        ] {
            assert!(said.contains(expected) && !said.contains('"'), "{said}");
        }
    }

    /// A certificate without other names has that of its subject, if it is named itself.
    #[test]
    fn the_subject_names_a_named_certificate() {
        let of_subject =
            |authorities: &str, name: &'static str| check("subject.crt", authorities, name, IN_TIME);
        assert!(of_subject("subject.crt", "localhost").is_ok());
        for (authorities, name, why) in [
            ("subject.crt", "127.0.0.1", "does not name 127.0.0.1"),
            ("own.crt", "localhost", "http_ca_file"),
        ] {
            let said = words(&of_subject(authorities, name).map(drop).unwrap_err());
            assert!(said.contains(why), "{said}");
        }
        let late = check("subject.crt", "subject.crt", "localhost", LATE);
        let error = late.map(drop).unwrap_err();
        assert!(words(&error).contains("was valid until"), "{error}");
    }

    /// The certificate of an authority, shown by a server, is trusted if it is named. Its names and its time count.
    #[test]
    fn a_named_certificate_is_trusted_for_its_names_and_its_time() {
        let check =
            |authorities: &str, name: &'static str, now: u64| check("own.crt", authorities, name, now);
        for name in ["localhost", "127.0.0.1"] {
            assert!(check("own.crt", name, IN_TIME).is_ok(), "{name}");
        }
        let refused = |result: Result<ServerCertVerified, Error>| match result.map(drop).unwrap_err() {
            Error::InvalidCertificate(why) => why,
            error => panic!("{error}"),
        };
        use CertificateError::{ExpiredContext, NotValidForNameContext};
        let why = refused(check("own.crt", "elsewhere.example", IN_TIME));
        assert!(matches!(why, NotValidForNameContext { .. }), "{why:?}");
        let why = refused(check("own.crt", "localhost", LATE));
        assert!(matches!(why, ExpiredContext { .. }), "{why:?}");
        refused(check("authority.crt", "localhost", IN_TIME));
    }

    #[test]
    fn files_that_hold_no_certificates_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.crt");
        for (content, why) in [(None, "No such file"), (Some("no certificate"), "there is no certificate")] {
            if let Some(content) = content {
                std::fs::write(&file, content).unwrap();
            }
            let trust = Trust { authorities: Some(file.clone()), ..Trust::default() };
            let error = trust.config().unwrap_err().to_string();
            assert!(error.contains("ca.crt: ") && error.contains(why), "{error}");
        }
        let trust = Trust { anybody: true, own: Some((file.clone(), file)), ..Trust::default() };
        assert!(trust.config().is_err());
        assert!(Trust { anybody: true, ..Trust::default() }.config().is_ok());
    }
}
