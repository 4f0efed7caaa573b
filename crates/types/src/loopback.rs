//! Names of this machine.

use std::net::IpAddr;

/// Whether this name or address, without a port, always means this machine: a loopback address, `localhost`, or a name
/// below it (RFC 6761, section 6.3). Other names of this machine are not recognised, because that would need the
/// resolver.
pub fn is_loopback(host: &str) -> bool {
    if let Ok(address) = host.parse::<IpAddr>() {
        return address.to_canonical().is_loopback();
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let top = name.rsplit('.').next().unwrap_or(name);
    top.eq_ignore_ascii_case("localhost") && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_and_names_below_localhost_mean_this_machine() {
        let here = [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "s3.localhost",
            "127.0.0.1",
            "127.9.8.7",
            "::1",
            "::ffff:127.0.0.1",
        ];
        for host in here {
            assert!(is_loopback(host), "{host}");
        }
        let elsewhere = [
            "",
            ".",
            ".localhost",
            "localhost.example.com",
            "notlocalhost",
            "10.0.0.1",
            "::2",
            "0.0.0.0",
            "::ffff:10.0.0.1",
        ];
        for host in elsewhere {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
