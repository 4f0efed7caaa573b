//! Where pages are served.

use std::net::{Ipv4Addr, SocketAddr};

/// Where a page is: an address of this machine alone, and a port; nothing is any port. What goes elsewhere would have to be
/// encrypted.
///
/// # Errors
/// In words, why the value is no such address.
pub fn web_address(value: &str) -> Result<SocketAddr, String> {
    let here = Ipv4Addr::LOCALHOST;
    if value.is_empty() {
        return Ok((here, 0).into());
    }
    let named = value.strip_prefix("localhost:").and_then(|port| Some((here, port.parse().ok()?).into()));
    let Some(address) = named.or_else(|| value.parse::<SocketAddr>().ok()) else {
        return Err("not an address and a port, such as 127.0.0.1:8080 or [::1]:8080".to_owned());
    };
    if !address.ip().is_loopback() {
        return Err(format!(
            "only addresses of this machine alone (127.0.0.1, [::1]) are served, because pages are not encrypted yet; \
             from elsewhere, a tunnel leads here: ssh -L {0}:127.0.0.1:{0} HOST",
            if address.port() == 0 { 8080 } else { address.port() }
        ));
    }
    Ok(address)
}
