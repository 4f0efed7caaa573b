//! The certificates that a client trusts on encrypted connections, and its own certificate.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
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
            "; name a file with the authority that signed it (http_ca_file)"
        }
        // (Only its name identifies this error.)
        Error::InvalidCertificate(CertificateError::Other(other))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            "; the server shows the certificate of an authority as its own (openssl req -x509 makes such): make it one for a \
             server (-addext basicConstraints=critical,CA:FALSE), and name it in http_ca_file"
        }
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

/// What is wrong with the client's certificates.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file cannot be read, or does not contain certificates.
    #[error("{file}: {why}")]
    File {
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
            builder.with_root_certificates(self.roots()?)
        };
        let mut config = match &self.own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let key = PrivateKeyDer::from_pem_file(key).map_err(|error| of_file(key, &error))?;
                builder.with_client_auth_cert(chain, key).map_err(TrustError::Unusable)?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn roots(&self) -> Result<RootCertStore, TrustError> {
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some(file) => {
                for certificate in certificates(file)? {
                    let why = |error: Error| of_file(file, &error);
                    roots.add(certificate).map_err(why)?;
                }
            }
            // Certificates of the system that cannot be parsed are skipped.
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        if roots.is_empty() { Err(TrustError::NoAuthorities) } else { Ok(roots) }
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| of_file(file, &error))?;
    if all.is_empty() { Err(of_file(file, &"there is no certificate (PEM) in it")) } else { Ok(all) }
}

fn of_file(file: &Path, why: &dyn std::fmt::Display) -> TrustError {
    TrustError::File { file: file.display().to_string(), why: why.to_string() }
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
        assert_eq!(hint(&Error::InvalidCertificate(CertificateError::Expired)), "");
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
