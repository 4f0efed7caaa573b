//! Parses `iscsi://[USER@]HOST[:PORT]/TARGET/LUN`, the syntax of libiscsi. (All passwords, including the target's,
//! have already been removed.)

/// The address of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) user: Option<String>,
    pub(super) portal: String,
    pub(super) target: String,
    pub(super) lun: i32,
}

impl Address {
    /// Parses a URL.
    pub(super) fn parse(url: &str) -> Result<Address, String> {
        let usual = "a disk is named as in filename=iscsi://SERVER:3260/iqn.2026-01.example:disk/1";
        let rest = url.strip_prefix("iscsi://").ok_or(usual)?;
        if let Some((_, query)) = rest.split_once('?') {
            let key = query.split(['=', '&', '?']).next().unwrap_or_default();
            return Err(format!("?{key} is unknown; there are target_user and target_password"));
        }
        let (authority, path) = rest.split_once('/').ok_or(usual)?;
        let (target, lun) = path.rsplit_once('/').ok_or(usual)?;
        let (user, portal) = match authority.rsplit_once('@') {
            Some((user, portal)) => (Some(user.to_owned()), portal),
            None => (None, authority),
        };
        if portal.is_empty() || target.is_empty() {
            return Err(usual.to_owned());
        }
        let lun = lun.parse().ok().filter(|lun| (0..=0x3fff).contains(lun));
        let lun = lun.ok_or_else(|| {
            format!("behind the target stands the number of the disk (0 to 16383); {usual}")
        })?;
        Ok(Address {
            user,
            portal: portal.to_owned(),
            target: target.replace("%3A", ":").replace("%3a", ":"),
            lun,
        })
    }

    /// The address, for messages.
    pub(super) fn shown(&self) -> String {
        format!("{}/{}/{}", self.portal, self.target, self.lun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let read = |url| {
            Address::parse(url).map(|address| (address.user, address.portal, address.target, address.lun))
        };
        let target = "iqn.2026-01.x:t".to_owned();
        assert_eq!(read("iscsi://h:1/iqn.2026-01.x:t/1"), Ok((None, "h:1".into(), target.clone(), 1)));
        assert_eq!(read("iscsi://me@h/iqn.2026-01.x%3At/0"), Ok((Some("me".into()), "h".into(), target, 0)));
        for wrong in [
            "h",
            "iscsi://h",
            "iscsi://h/t",
            "iscsi:///t/1",
            "iscsi://h/t/x",
            "iscsi://h//1",
            "iscsi://h/t/1?x=y",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
