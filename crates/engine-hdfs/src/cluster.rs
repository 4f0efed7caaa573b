//! A connection to a cluster: its client, and the thread that it runs on.
//!
//! The client is asynchronous (tokio). Each worker has its own thread for it, and starts it itself, because a process
//! with threads must not fork. The thread runs until the process ends: the client keeps connections to datanodes for
//! the whole process, whichever worker opened them, and they work only as long as the thread that opened them.

use super::failure::Failure;
use hdfs_native::{Client, ClientBuilder, HdfsError};
use iolite_engine::EngineError;
use iolite_engine::completed_later::threads_started_by;
use iolite_options::engines::HdfsOptions;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};

const ENGINE: &str = "libhdfs";

/// The default port of a namenode.
const PORT: u64 = 8020;

/// The time limit for connecting: a live server answers in milliseconds.
const TO_CONNECT: Duration = Duration::from_secs(30);

/// A connection.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) handle: Handle,
    /// The time limit of a request.
    limit: Option<Duration>,
    /// The directory of all chunks, without a trailing slash.
    directory: String,
    pub(crate) chunk_size: u64,
    pub(crate) threads: Vec<i32>,
}

/// The connections that the workers of this process share, by their options.
static SHARED: Mutex<Vec<(HdfsOptions, Arc<Cluster>)>> = Mutex::new(Vec::new());

fn refused(failure: Failure) -> EngineError {
    EngineError::Remote { engine: ENGINE, errno: failure.errno, why: failure.words }
}

impl Cluster {
    /// Connects. With `single_instance`, workers of this process with the same options share a connection.
    ///
    /// # Errors
    /// An option is wrong, or the server cannot be reached.
    pub(crate) fn open(options: &HdfsOptions) -> Result<Arc<Cluster>, EngineError> {
        if !options.single_instance {
            return Ok(Arc::new(Cluster::connect(options)?));
        }
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cluster)) = shared.iter().find(|(with, _)| with == options) {
            return Ok(cluster.clone());
        }
        let cluster = Arc::new(Cluster::connect(options)?);
        shared.push((options.clone(), cluster.clone()));
        Ok(cluster)
    }

    fn connect(options: &HdfsOptions) -> Result<Cluster, EngineError> {
        let directory = options.hdfsdirectory.trim_end_matches('/');
        if options.hdfsdirectory.is_empty() {
            let why = "hdfsdirectory= is missing, the directory of HDFS with the chunks, as in hdfsdirectory=/bench";
            return Err(refused(Failure::new(libc::EINVAL, why)));
        }
        if !options.hdfsdirectory.starts_with('/') {
            let why = format!("hdfsdirectory={}: it has to begin with a slash", options.hdfsdirectory);
            return Err(refused(Failure::new(libc::EINVAL, why)));
        }
        let (runtime, threads) = threads_started_by(start);
        let runtime =
            runtime.map_err(|source| EngineError::System { engine: ENGINE, call: "thread", source })?;
        let handle = runtime.handle().clone();
        // The thread must never end: see the module.
        std::mem::forget(runtime);
        let (client, server) = client(options, &handle)
            .map_err(|failure| refused(failure.about(&format!("namenode={}", options.namenode))))?;
        let cluster = Cluster {
            client,
            handle,
            limit: Some(options.hdfs_timeout).filter(|&limit| limit > 0).map(Duration::from_micros),
            directory: directory.to_owned(),
            chunk_size: options.chunk_size,
            threads,
        };
        cluster.greet().map_err(|failure| refused(failure.about(&server)))?;
        Ok(cluster)
    }

    /// Sends a first request, to see that a namenode answers.
    fn greet(&self) -> Result<(), Failure> {
        let limit = self.limit.map_or(TO_CONNECT, |limit| limit.min(TO_CONNECT));
        let place = if self.directory.is_empty() { "/" } else { &self.directory };
        let found = self.handle.block_on(async {
            let asked = tokio::time::timeout(limit, self.client.get_file_info(place)).await;
            asked.map_err(|_| Failure::timeout(limit))?.map_err(Failure::from)
        });
        match found {
            Ok(status) if status.isdir => Ok(()),
            Ok(_) => Err(Failure::new(libc::ENOTDIR, format!("hdfsdirectory={place} is not a directory"))),
            // The first write creates it.
            Err(failure) if failure.is_missing() => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Awaits a request, up to the time limit.
    pub(crate) async fn within<T, E>(&self, request: impl Future<Output = Result<T, E>>) -> Result<T, Failure>
    where
        Failure: From<E>,
    {
        let answer = match self.limit {
            None => request.await,
            Some(limit) => match tokio::time::timeout(limit, request).await {
                Ok(answer) => answer,
                Err(_) => return Err(Failure::timeout(limit)),
            },
        };
        Ok(answer?)
    }

    /// Waits for a request, up to the time limit, and blocks this thread.
    pub(crate) fn wait<T, E>(&self, request: impl Future<Output = Result<T, E>>) -> Result<T, Failure>
    where
        Failure: From<E>,
    {
        self.handle.block_on(self.within(request))
    }

    /// The path of this name on the cluster.
    pub(crate) fn place(&self, name: &str) -> String {
        format!("{}/{}", self.directory, name.trim_start_matches('/'))
    }
}

/// Starts the client's thread.
fn start() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).thread_name(ENGINE).enable_all().build()
}

/// Builds the client, which does not connect yet; and a name of the server for messages.
fn client(options: &HdfsOptions, handle: &Handle) -> Result<(Client, String), Failure> {
    let name = options.namenode.strip_prefix("hdfs://").unwrap_or(&options.namenode).trim_end_matches('/');
    let builder = || ClientBuilder::new().with_io_runtime(handle.clone());
    if name.is_empty() {
        let client = builder().build().map_err(|_| {
            Failure::new(
                libc::EINVAL,
                "the host of the namenode is missing; it can be left out if HADOOP_CONF_DIR names a \
                 configuration with fs.defaultFS",
            )
        })?;
        return Ok((client, "fs.defaultFS of the configuration in HADOOP_CONF_DIR".to_owned()));
    }
    let single = |address: String| {
        // If the namenode is down, fail soon. One retry is left, because a long idle connection has to be
        // re-established.
        let patience =
            [("dfs.client.failover.max.attempts", "1"), ("dfs.client.failover.sleep.base.millis", "50")];
        let client = builder().with_url(format!("hdfs://{address}")).with_config(patience).build()?;
        Ok((client, format!("namenode {address}")))
    };
    let has_port = name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match options.port {
        0 if has_port => single(name.to_owned()),
        0 => match builder().with_url(format!("hdfs://{name}")).build() {
            Ok(client) => Ok((client, format!("name service {name}"))),
            // The configuration has no name service of this name.
            Err(HdfsError::InvalidArgument(_)) => single(format!("{name}:{PORT}")),
            Err(error) => Err(error.into()),
        },
        port if has_port => Err(Failure::new(
            libc::EINVAL,
            format!("it contains a port already, and port={port} is given as well"),
        )),
        port => single(format!("{name}:{port}")),
    }
}
