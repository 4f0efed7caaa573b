//! The address of pages, and their encryption.

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The certificate for the encryption of pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WebTls {
    /// A newly generated key.
    New,
    /// Files in PEM.
    Files {
        /// The certificates.
        certificate: PathBuf,
        /// The private key: the same file, if it has both.
        key: PathBuf,
    },
}

/// The address and port of a page; an empty value means any port of the loopback address.
///
/// # Errors
/// The reason why the value is not such an address, as text.
pub fn web_address(value: &str) -> Result<SocketAddr, String> {
    let here = Ipv4Addr::LOCALHOST;
    if value.is_empty() {
        return Ok((here, 0).into());
    }
    let named = value.strip_prefix("localhost:").and_then(|port| Some((here, port.parse().ok()?).into()));
    named
        .or_else(|| value.parse::<SocketAddr>().ok())
        .ok_or_else(|| "not an address and a port, such as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

/// The address and port of metrics, or only a port, which is one of the loopback address.
///
/// # Errors
/// The reason why the value is no such address, as text.
pub fn metrics_address(value: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = value.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    match value {
        "" => Err("not a port, or an address and a port, such as 9464 or 127.0.0.1:9464".to_owned()),
        value => web_address(value),
    }
}

/// Parses `new`, or the names of one or two files.
///
/// # Errors
/// The value has neither form.
pub fn web_tls(value: &str) -> Result<WebTls, String> {
    let mut files = value.split(',');
    match (value, files.next(), files.next(), files.next()) {
        ("new", ..) => Ok(WebTls::New),
        (_, Some(one), None, _) if !one.is_empty() => {
            Ok(WebTls::Files { certificate: one.into(), key: one.into() })
        }
        (_, Some(certificate), Some(key), None) if !certificate.is_empty() && !key.is_empty() => {
            Ok(WebTls::Files { certificate: certificate.into(), key: key.into() })
        }
        _ => Err("neither new nor the names of a certificate and a key with a comma between them".to_owned()),
    }
}

/// Whether pages may be served at this address: for other machines they must be encrypted. `option`: the option that
/// requests it.
///
/// # Errors
/// An eavesdropper could read the pages.
pub fn check_web(address: SocketAddr, tls: Option<&WebTls>, option: &str) -> Result<(), String> {
    if address.ip().is_loopback() || tls.is_some() {
        return Ok(());
    }
    let port = if address.port() == 0 { 8080 } else { address.port() };
    Err(format!(
        "only addresses of this machine alone (127.0.0.1, [::1]) are served without encryption; give {option}=CERTIFICATE,KEY \
         (files in PEM), or {option}=new for a key that is made for this time; or lead a tunnel from elsewhere to an address of \
         this machine: ssh -L {port}:127.0.0.1:{port} HOST"
    ))
}
