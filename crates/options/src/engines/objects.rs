//! Options of engines for distributed storage.

use crate::definition::{Definition, Kind};

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static CLUSTERNAME: Definition = option("clustername", Kind::Str, "Name of the Ceph cluster");
static POOL: Definition = option("pool", Kind::Str, "Pool to work in");
static CLIENTNAME: Definition =
    option("clientname", Kind::Str, "User, without \"client.\" when no cluster is named");
static CONF: Definition =
    option("conf", Kind::Str, "Configuration file of the cluster").default("/etc/ceph/ceph.conf");
static BUSY_POLL: Definition =
    option("busy_poll", Kind::Bool, "Look for completions without sleeping").default("0");
static TOUCH_OBJECTS: Definition =
    option("touch_objects", Kind::Bool, "Create the objects before the job").default("1");

/// `rados`
pub static RADOS: &[&Definition] = &[&CLUSTERNAME, &POOL, &CLIENTNAME, &CONF, &BUSY_POLL, &TOUCH_OBJECTS];

static RBDNAME: Definition = option("rbdname", Kind::Str, "Name of the image");
static RBD_ENCRYPTION_FORMAT: Definition =
    option("rbd_encryption_format", Kind::Str, "Format of the image's encryption: luks1 or luks2");
static RBD_ENCRYPTION_PASSPHRASE: Definition =
    option("rbd_encryption_passphrase", Kind::Str, "Passphrase of the image's encryption");

/// `rbd`
pub static RBD: &[&Definition] = &[
    &CLUSTERNAME,
    &RBDNAME,
    &POOL,
    &CLIENTNAME,
    &BUSY_POLL,
    &RBD_ENCRYPTION_FORMAT,
    &RBD_ENCRYPTION_PASSPHRASE,
];

static VOLUME: Definition = option("volume", Kind::Str, "GlusterFS volume");
static BRICK: Definition = option("brick", Kind::Str, "Server of the volume");
static SINGLE_INSTANCE: Definition = option("single-instance", Kind::Bool, "One connection for all workers");

/// `gfapi` and `gfapi_async`
pub static GFAPI: &[&Definition] = &[&VOLUME, &BRICK, &SINGLE_INSTANCE];
