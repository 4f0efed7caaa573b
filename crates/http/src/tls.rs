//! The certificates that a client trusts on encrypted connections, and its own certificate.

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

/// The likely cause of a failed handshake, to append to the error message; empty = the message needs no addition.
pub(crate) fn hint(error: &Error) -> &'static str {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "; name a file with the authority that signed it, or with the certificate itself (http_ca_file)"
        }
        error if is_authoritys(error) => {
            "; the server shows the certificate of an authority as its own (openssl req -x509 makes such): name that very \
             certificate in http_ca_file"
        }
        Error::InvalidCertificate(CertificateError::BadSignature) => {
            "; http_ca_file has another authority of the same name, as when certificates were made anew: name the one that \
             signed the server's certificate"
        }
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "; the server's certificate has to be renewed, or the clock of this machine is wrong; https=insecure checks nothing"
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "; give one of the certificate's names as http_host",
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "; the server wants a certificate of yours (http_cert_file, http_key_file)"
        }
        // (TLS 1.2 sends this alert for a missing certificate, but also for other errors.)
        Error::AlertReceived(AlertDescription::HandshakeFailure) => {
            "; the server may want a certificate of yours (http_cert_file, http_key_file)"
        }
        Error::InvalidMessage(_) => "; the port may be one for connections without encryption",
        _ => "",
    }
}

/// Whether a certificate was refused only because it is that of an authority. (Only its name identifies this error.)
fn is_authoritys(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::Other(other))
        if other.to_string().contains("CaUsedAsEndEntity"))
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
    #[error("{0}")]
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
                named = certificates(CA_FILE, file)?;
                for certificate in &named {
                    roots.add(certificate.clone()).map_err(|error| of_file(CA_FILE, file, &error))?;
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
/// even if they are those of authorities. Their names and their time are checked in any case.
#[derive(Debug)]
struct Named {
    usual: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
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
        match self.usual.verify_server_cert(certificate, others, name, revocation, now) {
            // The time has been checked before that.
            Err(error) if is_authoritys(&error) && self.named.iter().any(|named| named == certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            result => result,
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

    #[test]
    fn the_cause_of_a_failed_handshake_is_named() {
        let unknown = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        assert!(hint(&unknown).contains("http_ca_file"));
        let rubbish = Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        assert!(hint(&rubbish).contains("without encryption"));
        assert!(
            hint(&Error::AlertReceived(AlertDescription::CertificateRequired)).contains("http_cert_file")
        );
        let hint_of = |error| hint(&Error::InvalidCertificate(error));
        assert!(hint_of(CertificateError::Expired).contains("clock of this machine"));
        assert!(hint_of(CertificateError::BadSignature).contains("http_ca_file"));
        assert!(hint_of(CertificateError::NotValidForName).contains("http_host"));
        assert_eq!(hint_of(CertificateError::Revoked), "");
    }

    /// The certificate of an authority, shown by a server, is trusted if it is named. Its names and its time count.
    #[test]
    fn a_named_certificate_is_trusted_for_its_names_and_its_time() {
        let file =
            |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/certificates").join(name);
        let own = CertificateDer::from_pem_file(file("own.crt")).unwrap();
        let provider = Arc::new(ring::default_provider());
        let check = |authorities: &str, name: &'static str, now: u64| {
            let trust = Trust { authorities: Some(file(authorities)), ..Trust::default() };
            let verifier = trust.verifier(&provider).unwrap();
            let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now));
            verifier.verify_server_cert(&own, &[], &ServerName::try_from(name).unwrap(), &[], now)
        };
        const IN_TIME: u64 = 2_000_000_000;
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
        let why = refused(check("own.crt", "localhost", 10_000_000_000));
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
