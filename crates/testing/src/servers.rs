//! Real servers for tests: MinIO (S3) and nginx (WebDAV), on private ports, with all their files in a directory of the
//! test. They end with the test.
//!
//! MinIO is the program that `IOLITE_MINIO` names, or else the one that `scripts/minio` has built below `target/minio`;
//! nginx is the system's.

use crate::objects::certificate;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time that a server may take to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program that serves on a port.
pub(crate) struct Serving {
    child: Child,
    address: SocketAddr,
}

impl Serving {
    /// Starts a server and waits until it takes connections.
    pub(crate) fn start(command: &mut Command, address: SocketAddr) -> Result<Serving, String> {
        let program = command.get_program().display().to_string();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        let mut serving = Serving { child, address };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = serving.child.try_wait() {
                return Err(format!("{program} has ended: {status}"));
            }
            assert!(Instant::now() < end, "{program} does not serve");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(serving)
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid fits")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // The child has not been waited for, so no other process has its ID.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An unused port.
pub(crate) fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it has an address")
}

/// A TCP port that refuses connections. Nobody else can take it while this lives.
pub struct ClosedPort {
    /// Bound, but not listening.
    _socket: OwnedFd,
    /// The port.
    pub number: u16,
}

impl ClosedPort {
    /// Reserves a port.
    ///
    /// # Panics
    /// There is no free port.
    pub fn new() -> ClosedPort {
        // SAFETY: takes only integers.
        let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
        assert!(socket >= 0, "{}", io::Error::last_os_error());
        // SAFETY: the descriptor is new, and nobody else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        // SAFETY: zero is a valid value of all of it.
        let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let mut length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is valid for reading and writing its length.
        let is_bound = unsafe {
            libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) == 0
                && libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) == 0
        };
        assert!(is_bound, "{}", io::Error::last_os_error());
        ClosedPort { _socket: socket, number: u16::from_be(address.sin_port) }
    }
}

impl Default for ClosedPort {
    fn default() -> ClosedPort {
        ClosedPort::new()
    }
}

/// An S3 server.
pub struct Minio {
    serving: Option<Serving>,
    address: SocketAddr,
    directory: PathBuf,
    program: PathBuf,
    is_encrypted: bool,
}

impl Minio {
    /// The access key.
    pub const ID: &'static str = "an-access-key";
    /// The secret key.
    pub const SECRET: &'static str = "a-very-secret-key";

    /// Starts a server with its data in `directory` and the bucket `bkt`. An encrypted one has the certificate `server`
    /// of the tests.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn start(directory: &Path, is_encrypted: bool) -> Result<Minio, String> {
        let program = match std::env::var_os("IOLITE_MINIO") {
            Some(named) => PathBuf::from(named),
            None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/minio/minio"),
        };
        if !program.exists() {
            return Err(
                "MinIO is not installed (scripts/minio builds it, scripts/test --everything does)".to_owned()
            );
        }
        let made = fs::create_dir_all(directory.join("minio/bkt"));
        made.and_then(|()| fs::create_dir_all(directory.join("certificates")))
            .map_err(|error| error.to_string())?;
        if is_encrypted {
            for (from, to) in [("server.crt", "public.crt"), ("server.key", "private.key")] {
                fs::copy(certificate(from), directory.join("certificates").join(to))
                    .map_err(|error| error.to_string())?;
            }
        }
        let directory = directory.to_owned();
        let mut minio = Minio { serving: None, address: free_port(), directory, program, is_encrypted };
        minio.restart()?;
        Ok(minio)
    }

    /// Restarts it on the same port with the same data.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart(&mut self) -> Result<(), String> {
        self.kill();
        let mut command = Command::new(&self.program);
        command
            .env("MINIO_ROOT_USER", Minio::ID)
            .env("MINIO_ROOT_PASSWORD", Minio::SECRET)
            .env("MINIO_BROWSER", "off")
            // Without a configured region, it would accept any.
            .env("MINIO_SITE_REGION", "eu-test-1")
            .env("HOME", &self.directory)
            .args(["server", "--quiet", "--address", &self.address.to_string()]);
        if self.is_encrypted {
            command.arg("--certs-dir").arg(self.directory.join("certificates"));
        }
        command.arg(self.directory.join("minio"));
        self.serving = Some(Serving::start(&mut command, self.address)?);
        let end = Instant::now() + PATIENCE;
        while !self.is_encrypted && !is_ready(self.address) {
            assert!(Instant::now() < end, "MinIO does not become ready");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        self.serving = None;
    }

    /// `127.0.0.1:PORT`
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Sends a request with curl, signed with the keys of the server for this service (`s3`, `sts`), and returns the
    /// body of the answer.
    ///
    /// # Errors
    /// curl is missing, or the request is refused.
    pub fn ask(&self, service: &str, path: &str, arguments: &[&str]) -> Result<String, String> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail-with-body", "--aws-sigv4"])
            .arg(format!("aws:amz:eu-test-1:{service}"));
        curl.arg("--user").arg(format!("{}:{}", Minio::ID, Minio::SECRET)).args(arguments);
        let done = curl.arg(format!("http://{}{path}", self.address)).output();
        let done = done.map_err(|error| format!("curl cannot be run: {error}"))?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match done.status.success() {
            true => Ok(said(&done.stdout)),
            false => Err(format!("curl: {}{}", said(&done.stderr), said(&done.stdout))),
        }
    }

    /// The access key, the secret key and the session token of another user, who may do only this: `s3:GetObject`.
    ///
    /// # Errors
    /// As [`Minio::ask`].
    pub fn user_who_may(&self, action: &str) -> Result<[String; 3], String> {
        let policy = format!(
            "Policy={{\"Version\":\"2012-10-17\",\"Statement\":[{{\"Effect\":\"Allow\",\"Action\":[\"{action}\"],\
             \"Resource\":[\"arn:aws:s3:::*\"]}}]}}"
        );
        let role = "Action=AssumeRole&Version=2011-06-15&DurationSeconds=3600";
        let text = self.ask("sts", "/", &["--data", role, "--data-urlencode", &policy])?;
        let element = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>"))?;
            Some(rest.split('<').next().unwrap_or_default().to_owned())
        };
        let [Some(id), Some(secret), Some(token)] =
            ["AccessKeyId", "SecretAccessKey", "SessionToken"].map(element)
        else {
            return Err(format!("the server gives no keys: {text}"));
        };
        Ok([id, secret, token])
    }

    /// Lets its bucket keep versions from now on.
    ///
    /// # Errors
    /// As [`Minio::ask`].
    pub fn keep_versions(&self) -> Result<(), String> {
        let enabled = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
        self.ask_s3("/bkt?versioning=", &["--request", "PUT", "--data", enabled]).map(drop)
    }

    /// How many versions of objects a bucket has, marks of removals included.
    pub fn versions(&self, bucket: &str) -> usize {
        let list = self.ask_s3(&format!("/{bucket}?versions="), &[]).unwrap_or_else(|why| panic!("{why}"));
        list.matches("<Version>").count() + list.matches("<DeleteMarker>").count()
    }

    /// Sends a request of S3, as [`Minio::ask`].
    ///
    /// # Errors
    /// As [`Minio::ask`].
    pub fn ask_s3(&self, path: &str, arguments: &[&str]) -> Result<String, String> {
        let unsigned = &["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"];
        self.ask("s3", path, &[unsigned, arguments].concat())
    }

    /// How many multipart uploads are neither ended nor aborted.
    pub fn uploads(&self) -> usize {
        let objects = fs::read_dir(self.directory.join("minio/.minio.sys/multipart"));
        let uploads =
            objects.into_iter().flatten().flatten().filter_map(|object| fs::read_dir(object.path()).ok());
        uploads.map(Iterator::count).sum()
    }

    /// The number of objects in its bucket.
    pub fn count(&self) -> usize {
        fs::read_dir(self.directory.join("minio/bkt")).map_or(0, |entries| entries.count())
    }
}

/// Whether this MinIO reports that it is ready to serve objects.
fn is_ready(address: SocketAddr) -> bool {
    let asked = || {
        let mut connection = TcpStream::connect(address)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        write!(
            connection,
            "GET /minio/health/ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        io::Result::Ok(answer)
    };
    asked().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "))
}

/// A WebDAV server.
pub struct Nginx {
    serving: Serving,
    directory: PathBuf,
    /// Its address for clients that present a certificate.
    encrypted: SocketAddr,
}

impl Nginx {
    /// Starts a server with its files in `directory`, for the user `user` with the password `password`.
    ///
    /// # Errors
    /// It cannot be started; the error says why.
    pub fn start(directory: &Path) -> Result<Nginx, String> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&paths).chain(["/usr/sbin".into(), "/sbin".into()]);
        let program = places.map(|place| place.join("nginx")).find(|program| program.exists());
        let program = program
            .ok_or("nginx is not installed (nginx-light, which scripts/test --everything installs)")?;
        let (address, encrypted) = (free_port(), free_port());
        let made = fs::create_dir_all(directory.join("files")).and_then(|()| {
            fs::write(directory.join("users"), "user:{PLAIN}password\n")?;
            fs::write(directory.join("nginx.conf"), configuration(directory, address, encrypted))
        });
        made.map_err(|error| error.to_string())?;
        let (configuration, log) = (directory.join("nginx.conf"), directory.join("error.log"));
        let arguments: [&OsStr; 4] = ["-c".as_ref(), configuration.as_ref(), "-e".as_ref(), log.as_ref()];
        let serving = Serving::start(Command::new(program).args(arguments), address)?;
        Ok(Nginx { serving, directory: directory.to_owned(), encrypted })
    }

    /// `127.0.0.1:PORT` for encrypted connections of clients that present a certificate.
    pub fn encrypted_host(&self) -> String {
        self.encrypted.to_string()
    }

    /// `127.0.0.1:PORT`
    pub fn host(&self) -> String {
        self.serving.address.to_string()
    }

    /// The names of its files, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.join("files")).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn configuration(directory: &Path, address: SocketAddr, encrypted: SocketAddr) -> String {
    let place = directory.display();
    let [own, key, authority] =
        ["server.crt", "server.key", "authority.crt"].map(|name| certificate(name).display().to_string());
    let location = format!(
        "root {place}/files; location / {{ dav_methods PUT DELETE MKCOL COPY; create_full_put_path on;\n\
         auth_basic tests; auth_basic_user_file {place}/users; }}"
    );
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {place}/{name};\n"))
        .concat();
    // It does not fork, so that it can be killed by its process ID. Its files belong to the user who runs the tests.
    format!(
        "daemon off; master_process off; pid {place}/pid; error_log {place}/error.log;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; client_max_body_size 0; {temporary}\n\
         server {{ listen {address}; {location} }}\n\
         server {{ listen {encrypted} ssl; ssl_certificate {own}; ssl_certificate_key {key};\n\
         ssl_client_certificate {authority}; ssl_verify_client on; {location} }} }}\n"
    )
}
