//! A connection to a cluster, and a pool in it.

use super::failure::Limit;
use super::librados::Librados;
use iolite_engine::EngineError;
use iolite_engine::library::Handle;
use iolite_options::engines::CephPool;
use iolite_types::describe_error;
use std::ffi::{CStr, CString, c_char};
use std::io;
use std::ptr;

/// The time limit for connecting, if the cluster's configuration has the default of five minutes. A live monitor
/// answers in milliseconds, and a run that cannot start should fail while its user is still watching.
const TO_CONNECT: u64 = 30;

/// Ceph's option for the longest time that a request may take.
const OF_REQUESTS: &str = "rados_osd_op_timeout";

/// A connection. It is shut down when it is dropped, after its users.
pub(crate) struct Cluster {
    rados: &'static Librados,
    handle: Handle,
}

// SAFETY: the library may be called from any thread.
unsafe impl Send for Cluster {}

/// A pool of a cluster.
pub(crate) struct Pool {
    pub(crate) rados: &'static Librados,
    pub(crate) handle: Handle,
    /// The name of the pool.
    pub(crate) name: String,
    /// The longest time that a request may take.
    pub(crate) limit: Limit,
    /// Dropped last: the pool must be closed first.
    _cluster: Cluster,
}

// SAFETY: as above.
unsafe impl Send for Pool {}

impl Pool {
    /// Connects to the cluster and opens the pool. `conf` is the cluster's configuration file; `None` = the one in the
    /// environment (`CEPH_CONF`), or the default.
    ///
    /// # Errors
    /// The library is missing, or the cluster refuses or does not answer.
    pub(crate) fn open(engine: &'static str, at: &CephPool, conf: Option<&str>) -> Result<Pool, EngineError> {
        let refused = |(errno, why): (i32, String)| EngineError::Remote { engine, errno, why };
        let rados = Librados::load(engine)?;
        let cluster = Cluster::create(rados, at).map_err(refused)?;
        let limit = cluster.connect(at, conf).map_err(refused)?;
        let mut handle = ptr::null_mut();
        let name = text("pool", &at.pool).map_err(refused)?;
        // SAFETY: the cluster is connected, the name ends with a zero, and there is room for the handle.
        let result = unsafe { (rados.pool_open)(cluster.handle, name.as_ptr(), &raw mut handle) };
        if result < 0 {
            let remedy = match -result {
                libc::ENOENT => format!("there is no such pool; ceph osd pool create {} makes one", at.pool),
                errno => describe(errno),
            };
            return Err(refused((-result, format!("pool={}: {remedy}", at.pool))));
        }
        Ok(Pool { rados, handle, name: at.pool.clone(), limit, _cluster: cluster })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: it is open, and nothing in it is used any more.
        unsafe { (self.rados.pool_close)(self.handle) };
    }
}

/// Why there is no connection: the error number and the message.
type Refusal = (i32, String);

impl Cluster {
    /// An unconnected handle.
    fn create(rados: &'static Librados, at: &CephPool) -> Result<Cluster, Refusal> {
        let mut handle = ptr::null_mut();
        let result = if at.clustername.is_empty() {
            let user = text("clientname", &at.clientname)?;
            let user = if at.clientname.is_empty() { ptr::null() } else { user.as_ptr() };
            // SAFETY: there is room for the handle, and the name ends with a zero, or is null for the usual one.
            unsafe { (rados.create)(&raw mut handle, user) }
        } else {
            let (cluster, user) = (text("clustername", &at.clustername)?, text("clientname", &at.user())?);
            // SAFETY: as above.
            unsafe { (rados.create_named)(&raw mut handle, cluster.as_ptr(), user.as_ptr(), 0) }
        };
        match result {
            0.. => Ok(Cluster { rados, handle }),
            errno => Err((-errno, format!("clientname={}: {}", at.clientname, describe(-errno)))),
        }
    }

    fn connect(&self, at: &CephPool, conf: Option<&str>) -> Result<Limit, Refusal> {
        let file = conf.map(|path| text("conf", path)).transpose()?;
        let path = file.as_ref().map_or(ptr::null(), |file| file.as_ptr());
        // SAFETY: the path ends with a zero, or is null for the usual ones.
        let result = unsafe { (self.rados.conf_read_file)(self.handle, path) };
        let shown = conf.map_or_else(usual_conf, |path| format!("conf={path}"));
        if result < 0 {
            return Err((
                -result,
                format!("{shown}: the configuration of the cluster cannot be read: {}", describe(-result)),
            ));
        }
        let limit = self.limit(at);
        // SAFETY: it has been configured, and is not connected.
        match unsafe { (self.rados.connect)(self.handle) } {
            0.. => Ok(limit),
            result => Err((-result, self.why_not_connected(-result, at, &shown))),
        }
    }

    /// Sets limits that the configuration lacks. Returns the limit for requests.
    fn limit(&self, at: &CephPool) -> Limit {
        let seconds = |name| self.get(name).and_then(|value| value.trim().parse::<f64>().ok());
        let connect = match at.timeout {
            0 => TO_CONNECT,
            limit => limit.div_ceil(1_000_000).min(TO_CONNECT),
        };
        if seconds("client_mount_timeout") == Some(300.0) {
            self.set("client_mount_timeout", &connect.to_string());
        }
        let limit = match seconds(OF_REQUESTS) {
            Some(seconds) if seconds > 0.0 => Limit { seconds, option: OF_REQUESTS },
            _ => Limit { seconds: at.timeout as f64 / 1e6, option: "ceph_timeout" },
        };
        for name in [OF_REQUESTS, "rados_mon_op_timeout"] {
            if at.timeout > 0 && seconds(name) == Some(0.0) {
                self.set(name, &(at.timeout as f64 / 1e6).to_string());
            }
        }
        limit
    }

    fn why_not_connected(&self, errno: i32, at: &CephPool, conf: &str) -> String {
        let (user, monitors) = (at.user(), self.get("mon_host").unwrap_or_default());
        let keyring = self.get("keyring").unwrap_or_default();
        match errno {
            libc::ETIMEDOUT => {
                let limit = self.get("client_mount_timeout").unwrap_or_default();
                format!("no monitor of the cluster has answered in {limit} s: mon_host={monitors} in {conf}")
            }
            libc::ENOENT if monitors.is_empty() => format!("{conf} names no monitor (mon_host)"),
            libc::ENOENT => {
                format!("there is no key of {user} for mon_host={monitors}: keyring={keyring} in {conf}")
            }
            libc::EACCES | libc::EPERM | libc::EINVAL => format!(
                "the cluster at mon_host={monitors} refuses {user} ({}): the key is wrong, or there is no such user; \
                 keyring={keyring} in {conf}",
                describe(errno)
            ),
            errno => format!("{user} cannot connect to mon_host={monitors} of {conf}: {}", describe(errno)),
        }
    }

    /// The value of a Ceph option.
    fn get(&self, name: &str) -> Option<String> {
        let name = CString::new(name).ok()?;
        let mut value = [0 as c_char; 4096];
        // SAFETY: the name ends with a zero, and there is as much room as is said.
        let result =
            unsafe { (self.rados.conf_get)(self.handle, name.as_ptr(), value.as_mut_ptr(), value.len()) };
        // SAFETY: the value has been filled, with a zero at its end.
        (result == 0).then(|| unsafe { CStr::from_ptr(value.as_ptr()) }.to_string_lossy().into_owned())
    }

    fn set(&self, name: &str, value: &str) {
        let (Ok(name), Ok(value)) = (CString::new(name), CString::new(value)) else { return };
        // Options that old libraries do not know are ignored. SAFETY: both end with a zero.
        unsafe { (self.rados.conf_set)(self.handle, name.as_ptr(), value.as_ptr()) };
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // SAFETY: nothing in it is used any more.
        unsafe { (self.rados.shutdown)(self.handle) };
    }
}

/// The file that the library reads by default.
fn usual_conf() -> String {
    match std::env::var("CEPH_CONF") {
        Ok(path) => format!("CEPH_CONF={path}"),
        Err(_) => "/etc/ceph/ceph.conf (CEPH_CONF names another)".to_owned(),
    }
}

/// A value as the library takes it.
pub(crate) fn text(name: &str, value: &str) -> Result<CString, Refusal> {
    CString::new(value).map_err(|_| (libc::EINVAL, format!("{name}: a zero byte is in it")))
}

fn describe(errno: i32) -> String {
    describe_error(&io::Error::from_raw_os_error(errno))
}
