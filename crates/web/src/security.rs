//! Certificates and keys of pages, and the host names they are valid for.

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ServerConfig, version};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

/// The largest file of certificates or of a key.
const LARGEST: u64 = 1 << 20;

/// A key, and its certificate chain in DER, with the site's own certificate first.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certified {
    chain: Vec<Vec<u8>>,
    key: Key,
}

/// The encoding of a key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Key {
    Pkcs1(Vec<u8>),
    Sec1(Vec<u8>),
    Pkcs8(Vec<u8>),
}

impl std::fmt::Debug for Certified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certified").finish_non_exhaustive()
    }
}

impl Certified {
    /// Reads a certificate and a key in PEM.
    ///
    /// # Errors
    /// The files cannot be read, or certificate and key do not match.
    pub fn read(certificate: &Path, key: &Path) -> Result<Certified, String> {
        let of = |path: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let text = |path: &Path| {
            let found = fs::metadata(path).map_err(|error| of(path, &error))?;
            if !found.is_file() || found.len() > LARGEST {
                return Err(of(path, &"not a file in PEM"));
            }
            fs::read(path).map_err(|error| of(path, &error))
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text(certificate)?).collect();
        let chain =
            chain.map_err(|error| of(certificate, &format_args!("not a certificate in PEM: {error}")))?;
        if chain.is_empty() {
            return Err(of(certificate, &"there is no certificate in it (-----BEGIN CERTIFICATE-----)"));
        }
        let found = PrivateKeyDer::from_pem_slice(&text(key)?).map_err(|_| {
            of(key, &"there is no private key in it that is not encrypted (-----BEGIN PRIVATE KEY-----)")
        })?;
        let kept = match found {
            PrivateKeyDer::Pkcs1(key) => Key::Pkcs1(key.secret_pkcs1_der().to_vec()),
            PrivateKeyDer::Sec1(key) => Key::Sec1(key.secret_sec1_der().to_vec()),
            PrivateKeyDer::Pkcs8(key) => Key::Pkcs8(key.secret_pkcs8_der().to_vec()),
            _ => return Err(of(key, &"a private key of a kind that is not known here")),
        };
        let chain = chain.into_iter().map(|one| one.as_ref().to_vec()).collect();
        let certified = Certified { chain, key: kept };
        certified.config().map_err(|why| {
            format!("{} and {} cannot be used together: {why}", certificate.display(), key.display())
        })?;
        Ok(certified)
    }

    /// Creates a key for this address of this machine, with a self-signed certificate.
    ///
    /// # Errors
    /// The address is not a specific one, or the key cannot be created.
    pub fn make(address: IpAddr, name: &str) -> Result<Certified, String> {
        if address.is_unspecified() {
            return Err(format!(
                "{address} is all addresses of this machine, and a certificate says which one it is for: name one, or give a certificate"
            ));
        }
        let words = |error: rcgen::Error| error.to_string();
        let mut names = vec![address.to_string(), "localhost".to_owned()];
        names.extend([Ipv4Addr::LOCALHOST.to_string(), Ipv6Addr::LOCALHOST.to_string()]);
        names.extend((!name.is_empty()).then(|| name.to_owned()));
        names.sort();
        names.dedup();
        // The machine's name may be invalid in a certificate.
        let made = rcgen::CertificateParams::new(names.clone()).or_else(|_| {
            names.retain(|one| one != name);
            rcgen::CertificateParams::new(names)
        });
        let mut parameters = made.map_err(words)?;
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "iolite");
        let key = rcgen::KeyPair::generate().map_err(words)?;
        let certificate = parameters.self_signed(&key).map_err(words)?;
        Ok(Certified { chain: vec![certificate.der().to_vec()], key: Key::Pkcs8(key.serialize_der()) })
    }

    /// The SHA-256 of the site's certificate, in the form of browsers.
    pub fn fingerprint(&self) -> String {
        let digest = ring_digest(self.chain.first().map_or(&[][..], Vec::as_slice));
        let mut text = String::new();
        for byte in digest {
            // Writing to a String does not fail.
            let _ = write!(text, "{}{byte:02X}", if text.is_empty() { "" } else { ":" });
        }
        text
    }

    /// The TLS configuration for connections.
    ///
    /// # Errors
    /// Certificate and key do not match, or cannot be used.
    pub fn config(&self) -> Result<Arc<ServerConfig>, String> {
        let key = match self.key.clone() {
            Key::Pkcs1(bytes) => PrivateKeyDer::Pkcs1(bytes.into()),
            Key::Sec1(bytes) => PrivateKeyDer::Sec1(bytes.into()),
            Key::Pkcs8(bytes) => PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(bytes)),
        };
        let chain = self.chain.iter().cloned().map(CertificateDer::from).collect();
        let words = |error: rustls::Error| error.to_string();
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            .map_err(words)?;
        let mut config = builder.with_no_client_auth().with_single_cert(chain, key).map_err(words)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Whether the certificate is for this name or address.
    fn is_for(&self, name: &str) -> bool {
        let Ok(name) = ServerName::try_from(name) else { return false };
        let der = CertificateDer::from(self.chain.first().map_or(&[][..], Vec::as_slice));
        webpki::EndEntityCert::try_from(&der)
            .is_ok_and(|own| own.verify_is_valid_for_subject_name(&name).is_ok())
    }
}

fn ring_digest(bytes: &[u8]) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).to_vec()
}

/// The host names by which a site may be requested.
#[derive(Clone, Debug)]
pub enum Names {
    /// Loopback names and addresses.
    Here,
    /// Also the names in the certificate. A request by another name is an attack (DNS rebinding).
    Certified(Box<Certified>),
}

impl Names {
    /// The scheme of the site's addresses.
    pub fn scheme(&self) -> &'static str {
        match self {
            Names::Here => "http://",
            Names::Certified(_) => "https://",
        }
    }

    /// Whether a host, with or without a port, is one of them. (The port differs if a tunnel leads here.)
    pub fn have(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else { return false };
        let is_here = iolite_types::is_loopback(name);
        match self {
            Names::Here => is_here,
            Names::Certified(certified) => is_here || certified.is_for(name),
        }
    }

    /// Why other names are refused.
    pub fn words(&self) -> &'static str {
        match self {
            Names::Here => "This server is 127.0.0.1, [::1] or localhost, and has no other name.",
            Names::Certified(_) => {
                "This server has the names and addresses of its certificate, and no other one."
            }
        }
    }
}

/// The name or address in a host with or without a port.
fn name_of(host: &str) -> Option<&str> {
    let is_port = |text: &str| text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    if let Some(rest) = host.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        address.parse::<Ipv6Addr>().ok()?;
        return (port.is_empty() || is_port(port)).then_some(address);
    }
    let (name, port) = host.find(':').map_or((host, ""), |colon| host.split_at(colon));
    (!name.is_empty() && (port.is_empty() || is_port(port))).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_machine() {
        let here = [
            "127.0.0.1",
            "127.0.0.1:80",
            "127.1.2.3:9",
            "localhost:1",
            "LOCALHOST",
            "localhost.",
            "[::1]:443",
            "[::1]",
        ];
        for host in here {
            assert!(Names::Here.have(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]:1",
            "[::1",
            "localhost:x",
            "127.0.0.1:",
            "::1",
            "[localhost]",
        ] {
            assert!(!Names::Here.have(host), "{host}");
        }
    }

    #[test]
    fn a_certificate_says_what_a_site_is_called() {
        let certified = Certified::make("10.1.2.3".parse().unwrap(), "storage-7").unwrap();
        certified.config().unwrap();
        assert_eq!(certified.fingerprint().len(), 32 * 3 - 1);
        let names = Names::Certified(Box::new(certified));
        for host in ["10.1.2.3", "10.1.2.3:8080", "storage-7:1", "localhost", "[::1]:5", "127.0.0.1"] {
            assert!(names.have(host), "{host}");
        }
        for host in ["10.1.2.4", "evil.example", "storage-7.evil.example", "", "[::2]", "storage-7:x"] {
            assert!(!names.have(host), "{host}");
        }
        assert!(Certified::make("0.0.0.0".parse().unwrap(), "").unwrap_err().contains("all addresses"));
        Certified::make("10.1.2.3".parse().unwrap(), "not a name").unwrap();
    }
}
