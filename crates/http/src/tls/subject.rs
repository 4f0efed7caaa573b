//! The name of a certificate's subject (CN), which certificates without other names have, as `openssl req -x509` makes
//! them.

use rustls::pki_types::ServerName;

/// The last common name in the content of a subject (RFC 5280, section 4.1.2.6), if it is text.
pub(super) fn common_name(mut subject: &[u8]) -> Option<String> {
    const SET: u8 = 0x31;
    const SEQUENCE: u8 = 0x30;
    const IDENTIFIER: u8 = 0x06;
    const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    /// UTF-8, and three kinds that hold ASCII.
    const TEXTS: [u8; 4] = [0x0c, 0x13, 0x14, 0x16];
    let mut last = None;
    while let Some((SET, mut attributes)) = next(&mut subject) {
        while let Some((SEQUENCE, mut attribute)) = next(&mut attributes) {
            if next(&mut attribute) == Some((IDENTIFIER, COMMON_NAME)) {
                let text = next(&mut attribute).filter(|(kind, _)| TEXTS.contains(kind));
                last = text.and_then(|(_, text)| String::from_utf8(text.to_vec()).ok());
            }
        }
    }
    last
}

/// Takes the next element of DER: its tag and its content.
fn next<'a>(der: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[tag, first], mut rest) = der.split_first_chunk()?;
    let mut length = usize::from(first);
    // Longer elements have the number of bytes of their length there.
    if let Some(bytes @ 1..=4) = length.checked_sub(0x80) {
        let (long, behind) = rest.split_at_checked(bytes)?;
        (length, rest) = (long.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)), behind);
    } else if length >= 0x80 {
        return None;
    }
    let (content, behind) = rest.split_at_checked(length)?;
    *der = behind;
    Some((tag, content))
}

/// Whether a common name is that of a server. `*.example.org` stands for one label; it needs two after it, and is no
/// address.
pub(super) fn names(common_name: &str, server: &ServerName<'_>) -> bool {
    let host = server.to_str();
    let bare = |name: &str| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let (common_name, host) = (bare(common_name), bare(&host));
    let by_wildcard = || {
        let domain = common_name.strip_prefix("*.").filter(|domain| domain.contains('.'));
        let is_name = matches!(server, ServerName::DnsName(_));
        is_name && domain.is_some() && host.split_once('.').map(|(_, domain)| domain) == domain
    };
    common_name == host || by_wildcard()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_common_name_counts() {
        let attribute = |id: u8, text: &[u8]| {
            let mut value = vec![0x06, 3, 0x55, 4, id, 0x0c, 0x81, text.len() as u8];
            value.extend_from_slice(text);
            let length = value.len() as u8;
            [vec![0x31, length + 2, 0x30, length], value].concat()
        };
        let subject =
            [attribute(3, b"first"), attribute(10, b"organisation"), attribute(3, b"host")].concat();
        assert_eq!(common_name(&subject).as_deref(), Some("host"));
        assert_eq!(common_name(&attribute(10, b"organisation")), None);
        for end in 0..subject.len() {
            // Nothing that is cut off breaks it.
            common_name(&subject[..end]);
        }
        assert_eq!(common_name(&[0x31, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }

    #[test]
    fn wildcards_stand_for_one_label_of_a_name() {
        for (common_name, host, expected) in [
            ("LocalHost", "localhost", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "a.b.example.org", false),
            ("*.example.org", "example.org", false),
            ("*.org", "example.org", false),
            ("*.0.0.1", "127.0.0.1", false),
            ("", "localhost", false),
        ] {
            assert_eq!(
                names(common_name, &ServerName::try_from(host).unwrap()),
                expected,
                "{common_name} {host}"
            );
        }
    }
}
