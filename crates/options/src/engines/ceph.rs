//! The options of `rados` and `rbd`.

use super::facets::{Capability, Facets};
use super::own::{AsFio, OwnOptions, named_by, own, own_options, place};
use super::secret::{Secret, elsewhere, secret};
use crate::JobOptions;
use crate::definition::{Definition, Given, Kind, Places, found};
use crate::values::not_one_of;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::path::Path;

/// The place of the data, and the user: options of both engines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CephPool {
    /// The cluster's name; empty = the usual one.
    pub clustername: String,
    /// The pool.
    pub pool: String,
    /// The user; empty = `admin`.
    pub clientname: String,
    /// Completions are polled for without sleeping.
    pub busy_poll: bool,
    /// The longest time for an I/O, or a query to the cluster, in microseconds; 0 = no limit.
    pub timeout: u64,
}

impl CephPool {
    /// The user, prefixed with the type: `client.admin`.
    pub fn user(&self) -> String {
        match self.clientname.as_str() {
            "" => "client.admin".to_owned(),
            name if !self.clustername.is_empty() && name.contains('.') => name.to_owned(),
            name => format!("client.{name}"),
        }
    }

    fn without_pool(&self, engine: &str) -> Option<String> {
        let what = || format!("ioengine={engine}: pool= is missing, the pool with the data");
        self.pool.is_empty().then(what)
    }

    fn be_as_fio(&mut self, asked: AsFio) {
        if !asked.has_limit {
            self.timeout = 0;
        }
    }
}

own_options! {
    /// The options of `rados`.
    pub struct RadosOptions declared by RADOS with places {
        /// The place of the data.
        pub at: CephPool,
        /// The cluster's configuration file.
        pub conf: String,
        /// Objects that the job writes are created before it begins.
        pub touch_objects: bool,
        /// Missing data reads as zeros, as in fio. The front end sets this.
        pub lenient: bool,
    }
}

own_options! {
    /// The options of `rbd`.
    pub struct RbdOptions declared by RBD with places {
        /// The place of the data.
        pub at: CephPool,
        /// The image, perhaps followed by `@` and a snapshot.
        pub rbdname: String,
        /// How the image is encrypted.
        pub rbd_encryption_format: Option<Luks>,
        /// The passphrase of its encryption.
        pub rbd_encryption_passphrase: Secret,
        /// Blocks that cannot be removed are left unchanged, as in fio. The front end sets this.
        pub lenient: bool,
    }
}

/// A format of encryption (`rbd_encryption_format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Luks {
    /// LUKS 1
    One,
    /// LUKS 2
    Two,
}

impl Places for RadosOptions {
    fn part(&mut self) -> Option<&mut dyn Any> {
        Some(&mut self.at)
    }
}

impl OwnOptions for RadosOptions {
    fn obstacle_to_run(&self, _: &JobOptions) -> Option<String> {
        self.at.without_pool("rados")
    }

    fn patience_us(&self) -> Option<u64> {
        Some(self.at.timeout)
    }

    fn be_as_fio(&mut self, asked: AsFio) {
        self.at.be_as_fio(asked);
        self.lenient = true;
        self.touch_objects &= !asked.readonly;
    }

    // fio lays out no files: missing data reads as zeros.
    fn facets(&self, facets: Facets) -> Facets {
        if self.lenient { facets.and(Capability::MadeByWriting) } else { facets }
    }
}

impl Places for RbdOptions {
    fn part(&mut self) -> Option<&mut dyn Any> {
        Some(&mut self.at)
    }
}

impl OwnOptions for RbdOptions {
    fn obstacle_to_run(&self, job: &JobOptions) -> Option<String> {
        let why = if self.image().is_empty() || self.snapshot() == Some("") {
            "rbdname= is missing, the name of the image (IMAGE, or IMAGE@SNAPSHOT to read)".to_owned()
        } else if self.snapshot().is_some() && job.changes_data() {
            format!("rbdname={}: a snapshot can only be read", self.rbdname)
        } else if self.rbd_encryption_format.is_some() != self.rbd_encryption_passphrase.is_given() {
            "rbd_encryption_format and rbd_encryption_passphrase go together".to_owned()
        } else {
            return self.at.without_pool("rbd");
        };
        Some(format!("ioengine=rbd: {why}"))
    }

    fn patience_us(&self) -> Option<u64> {
        Some(self.at.timeout)
    }

    fn be_as_fio(&mut self, asked: AsFio) {
        self.at.be_as_fio(asked);
        self.lenient = true;
    }

    // (fio assumes that each clone has its own files.)
    fn only_name(&self) -> Option<&str> {
        Some(self.rbdname.as_str()).filter(|_| !self.lenient)
    }

    fn resized_by(&self, _: &Path, size: u64) -> Option<String> {
        let (pool, image) = (&self.at.pool, self.image());
        // rbd(8) counts in MiB.
        Some(format!("rbd resize --size {} {pool}/{image}", size.div_ceil(1 << 20)))
    }
}

impl RbdOptions {
    /// The name of the image.
    pub fn image(&self) -> &str {
        self.rbdname.split_once('@').map_or(&self.rbdname, |(image, _)| image)
    }

    /// The snapshot in its name, if there is one.
    pub fn snapshot(&self) -> Option<&str> {
        self.rbdname.split_once('@').map(|(_, snapshot)| snapshot)
    }
}

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static CLUSTERNAME: Definition = option("clustername", Kind::Str, "Name of the Ceph cluster")
    .lands_in_engine(|own, given| {
        found(own.find::<CephPool>())?.clustername = given.string()?;
        Ok(())
    });
static POOL: Definition = option("pool", Kind::Str, "Pool to work in").lands_in_engine(|own, given| {
    found(own.find::<CephPool>())?.pool = given.string()?;
    Ok(())
});
static CLIENTNAME: Definition =
    option("clientname", Kind::Str, "User, without \"client.\" when no cluster is named; by default admin")
        .lands_in_engine(|own, given| {
            found(own.find::<CephPool>())?.clientname = given.string()?;
            Ok(())
        });
static CONF: Definition = option("conf", Kind::Str, "Configuration file of the cluster")
    .default("/etc/ceph/ceph.conf")
    .names_files(|job| named_by(job, |own: &RadosOptions| &own.conf))
    .lands_in_engine(own!(RadosOptions.conf, string()));
static BUSY_POLL: Definition = option("busy_poll", Kind::Bool, "Look for completions without sleeping")
    .default("0")
    .lands_in_engine(|own, given| {
        found(own.find::<CephPool>())?.busy_poll = given.boolean()?;
        Ok(())
    });
static TOUCH_OBJECTS: Definition =
    option("touch_objects", Kind::Bool, "Make the objects that are written before the job begins")
        .default("1")
        .lands_in_engine(own!(RadosOptions.touch_objects, boolean()));
static CEPH_TIMEOUT: Definition = option(
    "ceph_timeout",
    Kind::Time,
    "The longest time that an I/O or a request to the cluster may take; 0 = no limit",
)
.default("120s")
.lands_in_engine(|own, given| {
    found(own.find::<CephPool>())?.timeout = given.time(1_000_000)?;
    Ok(())
});

/// `rados`
pub static RADOS: &[&Definition] =
    &[&CLUSTERNAME, &POOL, &CLIENTNAME, &CONF, &BUSY_POLL, &TOUCH_OBJECTS, &CEPH_TIMEOUT];

static RBDNAME: Definition =
    option("rbdname", Kind::Str, "Name of the image; IMAGE@SNAPSHOT is a snapshot, for reading")
        .lands_in_engine(own!(RbdOptions.rbdname, string()));
static RBD_ENCRYPTION_FORMAT: Definition =
    option("rbd_encryption_format", Kind::Str, "Format of the image's encryption: luks1 or luks2")
        .lands_in_engine(luks);
static RBD_ENCRYPTION_PASSPHRASE: Definition =
    option("rbd_encryption_passphrase", Kind::Str, "Passphrase of the image's encryption")
        .secret()
        .lands_in_engine(secret!(RbdOptions.rbd_encryption_passphrase));
static PASSPHRASE_ELSEWHERE: [Definition; 2] = elsewhere!(RbdOptions.rbd_encryption_passphrase);

fn luks(own: &mut dyn Places, given: &mut Given<'_>) -> Result<(), String> {
    place::<RbdOptions>(own)?.rbd_encryption_format = Some(match given.string()?.as_str() {
        "luks1" => Luks::One,
        "luks2" => Luks::Two,
        other => return Err(not_one_of(["luks1", "luks2"].into_iter(), other)),
    });
    Ok(())
}

/// `rbd`
pub static RBD: &[&Definition] = &[
    &CLUSTERNAME,
    &RBDNAME,
    &POOL,
    &CLIENTNAME,
    &BUSY_POLL,
    &RBD_ENCRYPTION_FORMAT,
    &RBD_ENCRYPTION_PASSPHRASE,
    &PASSPHRASE_ELSEWHERE[0],
    &PASSPHRASE_ELSEWHERE[1],
    &CEPH_TIMEOUT,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_stands_behind_the_image() {
        let named = |name: &str| RbdOptions { rbdname: name.into(), ..RbdOptions::default() };
        let (plain, snapshot) = (named("img"), named("img@monday"));
        assert_eq!((plain.image(), plain.snapshot()), ("img", None));
        assert_eq!((snapshot.image(), snapshot.snapshot()), ("img", Some("monday")));
    }

    #[test]
    fn users_have_a_type() {
        let user = |cluster: &str, client: &str| {
            CephPool { clustername: cluster.into(), clientname: client.into(), ..CephPool::default() }.user()
        };
        assert_eq!(user("", ""), "client.admin");
        assert_eq!(user("", "me"), "client.me");
        assert_eq!(user("ceph", "me"), "client.me");
        assert_eq!(user("ceph", "mgr.me"), "mgr.me");
        // Without a cluster, the whole name is the user's.
        assert_eq!(user("", "client.me"), "client.client.me");
    }
}
