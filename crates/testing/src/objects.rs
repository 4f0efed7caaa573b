//! An object server for tests: it stores objects, records the requests that it received, and misbehaves on request.
//!
//! It accepts PUT, GET (with ranges), HEAD and DELETE for any path, as S3, WebDAV and Swift all do. It does not check
//! signatures; other tests check them against the examples of the specification and against real servers.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// A request as the server received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// GET, PUT, …
    pub method: String,
    /// The path as it was sent, percent-encoded.
    pub path: String,
    /// The fields of the head, with names in lower case.
    pub fields: BTreeMap<String, String>,
    /// The length of the body.
    pub length: usize,
    /// How many requests came before this one.
    pub number: usize,
}

/// The server's reaction to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The request is granted.
    Granted,
    /// This status, with these lines of the head and this body.
    Refused(u16, &'static str, &'static str),
    /// The server sends the answer up to this many bytes of its body and cuts the connection.
    Cut(usize),
    /// The server closes the connection without an answer.
    Ended,
    /// The request is granted, and then the server closes the connection without having announced it.
    GrantedAndEnded,
    /// The server sends nothing until the test is over.
    Silence,
    /// The request is granted. Bytes that look like the answer to another request follow.
    Surplus,
    /// The server sends something that is not HTTP.
    Garbage,
    /// The request is granted, with this many spaces before the body, one each quarter of a second.
    Slow(usize),
    /// The request is granted as soon as this many requests are waiting.
    Gathered(usize),
}

type Behaviour = Box<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// What an object has. Versions and answers share it: large objects are not copied.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    bytes: Vec<u8>,
    tag: String,
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Content {
        let tag = tag_of(&bytes);
        Content { bytes, tag }
    }
}

/// A version of an object.
struct Version {
    path: String,
    id: String,
    /// `None` = a mark that the object was removed.
    content: Option<Arc<Content>>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Arc<Content>>,
    /// All versions, oldest first, if the server keeps them.
    versions: Option<Vec<Version>>,
    versions_made: usize,
    /// Multipart uploads in progress, by their ids.
    uploads: BTreeMap<String, Upload>,
    uploads_begun: usize,
    requests: Vec<Seen>,
    clients: Vec<SocketAddr>,
    /// The number of requests that wait for others, and its maximum so far.
    waiting: usize,
    most_waiting: usize,
}

/// A multipart upload.
struct Upload {
    /// The object's path.
    path: String,
    parts: BTreeMap<u32, Vec<u8>>,
    begun: SystemTime,
}

impl State {
    /// Stores an object, or removes it.
    fn set(&mut self, path: &str, content: Option<Arc<Content>>) -> bool {
        let was_there = match &content {
            Some(content) => self.objects.insert(path.to_owned(), content.clone()).is_some(),
            None => self.objects.remove(path).is_some(),
        };
        self.versions_made += 1;
        if let Some(versions) = &mut self.versions {
            let id = format!("v/{}", self.versions_made);
            versions.push(Version { path: path.to_owned(), id, content });
        }
        was_there
    }

    /// Answers a request for one version of an object, or for the list of versions.
    fn of_versions(
        &mut self,
        method: &str,
        path: &str,
        id: Option<&str>,
        prefix: &str,
    ) -> (&'static str, Vec<u8>) {
        let Some(id) = id else {
            let bucket = format!("{path}/");
            let prefix = format!("{bucket}{prefix}");
            let item = |path: &String, id: &str, is_mark: bool| {
                let kind = if is_mark { "DeleteMarker" } else { "Version" };
                path.starts_with(&prefix).then(|| {
                    let key = &path[bucket.len()..];
                    format!("<{kind}><Key>{key}</Key><VersionId>{id}</VersionId></{kind}>")
                })
            };
            let items: String = match &self.versions {
                Some(versions) => {
                    versions.iter().filter_map(|v| item(&v.path, &v.id, v.content.is_none())).collect()
                }
                // Other buckets have one version of each object, without an id of its own.
                None => self.objects.keys().filter_map(|path| item(path, "null", false)).collect(),
            };
            return ("200 OK", format!("<ListVersionsResult>{items}</ListVersionsResult>").into_bytes());
        };
        if method != "DELETE" {
            let content = match &self.versions {
                Some(versions) => {
                    let found = versions.iter().find(|version| version.path == path && version.id == id);
                    found.and_then(|version| version.content.as_ref())
                }
                None => self.objects.get(path).filter(|_| id == "null"),
            };
            return match content {
                Some(content) => ("200 OK", content.bytes.clone()),
                None => ("404 Not Found", b"<Error><Code>NoSuchVersion</Code></Error>".to_vec()),
            };
        }
        let mut current = None;
        if let Some(versions) = &mut self.versions {
            versions.retain(|version| !(version.path == path && version.id == id));
            current = versions.iter().rfind(|version| version.path == path).and_then(|v| v.content.clone());
        }
        match current {
            Some(content) => drop(self.objects.insert(path.to_owned(), content)),
            None => drop(self.objects.remove(path)),
        }
        ("204 No Content", Vec::new())
    }

    /// Begins an upload and returns its ID.
    fn begin(&mut self, path: &str, when: SystemTime) -> String {
        self.uploads_begun += 1;
        let id = format!("upload-{}", self.uploads_begun);
        self.uploads
            .insert(id.clone(), Upload { path: path.to_owned(), parts: BTreeMap::new(), begun: when });
        id
    }
}

/// A time in the format of S3.
fn in_words(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (day, second) = ((seconds / 86400) as i64, seconds % 86400);
    // Days since March 1 of the year 0, in eras of 400 years.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

struct Shared {
    state: Mutex<State>,
    gathered: Condvar,
    behaviour: Behaviour,
    encryption: Option<Arc<ServerConfig>>,
    connections: AtomicUsize,
    is_over: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// A server. It ends when this value is dropped.
pub struct ObjectServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl ObjectServer {
    /// A server that grants every request.
    pub fn start() -> ObjectServer {
        ObjectServer::behaving(|_| Reply::Granted)
    }

    /// A server whose reaction to each request the function chooses.
    pub fn behaving(behaviour: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> ObjectServer {
        ObjectServer::made(Box::new(behaviour), None)
    }

    /// An encrypted server with this certificate ([`certificate`]): `server`, which is valid for 127.0.0.1 and
    /// localhost, or `elsewhere`, which is not. It may demand certificates from clients.
    pub fn encrypted(name: &str, demands_certificates: bool) -> ObjectServer {
        ObjectServer::made(Box::new(|_| Reply::Granted), Some(encryption(name, demands_certificates)))
    }

    fn made(behaviour: Behaviour, encryption: Option<Arc<ServerConfig>>) -> ObjectServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            gathered: Condvar::new(),
            behaviour,
            encryption,
            connections: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let accepting = shared.clone();
        std::thread::spawn(move || accept(&listener, &accepting));
        ObjectServer { address, shared }
    }

    /// `127.0.0.1:PORT`
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The paths of all objects, sorted.
    pub fn names(&self) -> Vec<String> {
        self.shared.state().objects.keys().cloned().collect()
    }

    /// The bytes of an object.
    pub fn object(&self, path: &str) -> Option<Vec<u8>> {
        self.shared.state().objects.get(path).map(|content| content.bytes.clone())
    }

    /// Stores an object.
    pub fn put(&self, path: &str, bytes: &[u8]) {
        self.shared.state().objects.insert(path.to_owned(), Arc::new(bytes.to_vec().into()));
    }

    /// Keeps all versions of objects from now on.
    pub fn keep_versions(&self) {
        self.shared.state().versions = Some(Vec::new());
    }

    /// The paths and the ids of all versions and marks of removals, oldest first.
    pub fn versions(&self) -> Vec<(String, String)> {
        let state = self.shared.state();
        let versions = state.versions.iter().flatten();
        versions.map(|version| (version.path.clone(), version.id.clone())).collect()
    }

    /// The number of multipart uploads in progress.
    pub fn uploads(&self) -> usize {
        self.shared.state().uploads.len()
    }

    /// Begins a multipart upload as if another client had begun it at this time, and returns its ID.
    pub fn begin_upload(&self, path: &str, when: SystemTime) -> String {
        self.shared.state().begin(path, when)
    }

    /// Whether this upload is in progress.
    pub fn has_upload(&self, id: &str) -> bool {
        self.shared.state().uploads.contains_key(id)
    }

    /// All requests so far, in order.
    pub fn requests(&self) -> Vec<Seen> {
        self.shared.state().requests.clone()
    }

    /// The number of requests with this method so far.
    pub fn count(&self, method: &str) -> usize {
        self.shared.state().requests.iter().filter(|seen| seen.method == method).count()
    }

    /// The addresses of the clients that have connected so far.
    pub fn clients(&self) -> Vec<SocketAddr> {
        self.shared.state().clients.clone()
    }

    /// The number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// The maximum number of requests that were waiting at the same time.
    pub fn most_gathered(&self) -> usize {
        self.shared.state().most_waiting
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.shared.gathered.notify_all();
        for connection in self.shared.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
        // Wakes the accepting thread, so that it notices that it should end.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        if shared.is_over() {
            return;
        }
        let Ok(connection) = connection else { continue };
        shared.connections.fetch_add(1, Ordering::Relaxed);
        shared.state().clients.extend(connection.peer_addr());
        if let Ok(again) = connection.try_clone() {
            shared.open.lock().unwrap_or_else(PoisonError::into_inner).push(again);
        }
        let shared = shared.clone();
        // A broken connection is not an error of the server.
        std::thread::spawn(move || talk(connection, &shared).ok());
    }
}

fn talk(connection: TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let socket = connection.try_clone()?;
    match &shared.encryption {
        None => serve(BufReader::new(connection), &socket, shared),
        Some(config) => {
            let encrypted = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
            serve(BufReader::new(StreamOwned::new(encrypted, connection)), &socket, shared)
        }
    }
}

/// A certificate or key of the tests, as a file: `authority.crt`, `client.key`, …
pub fn certificate(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("certificates").join(file)
}

fn encryption(name: &str, demands_certificates: bool) -> Arc<ServerConfig> {
    let read = |file: &str| CertificateDer::from_pem_file(certificate(file)).expect("it is a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default protocol versions");
    let builder = if demands_certificates {
        let mut roots = RootCertStore::empty();
        roots.add(read("authority.crt")).expect("it is an authority's certificate");
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
        builder.with_client_cert_verifier(verifier.expect("there is an authority"))
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::from_pem_file(certificate(&format!("{name}.key"))).expect("it is a key");
    let config = builder.with_single_cert(vec![read(&format!("{name}.crt"))], key);
    Arc::new(config.expect("certificate and key go together"))
}

fn serve<S: Read + Write>(
    mut stream: BufReader<S>,
    connection: &TcpStream,
    shared: &Shared,
) -> io::Result<()> {
    while let Some((mut seen, body)) = request(&mut stream)? {
        let output = stream.get_mut();
        {
            let mut state = shared.state();
            seen.number = state.requests.len();
            state.requests.push(seen.clone());
        }
        let reply = (shared.behaviour)(&seen);
        let cut = match reply {
            Reply::Refused(status, fields, text) => {
                let length = text.len();
                write!(
                    output,
                    "HTTP/1.1 {status} Refused\r\n{fields}Content-Length: {length}\r\n\r\n{text}"
                )?;
                continue;
            }
            Reply::Ended => return connection.shutdown(Shutdown::Both),
            Reply::Garbage => {
                output.write_all(b"\x16\x03\x01 this is no HTTP\r\n\r\n")?;
                continue;
            }
            Reply::Silence => {
                while !shared.is_over() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                return Ok(());
            }
            Reply::Gathered(wanted) => {
                gather(shared, wanted);
                None
            }
            Reply::Cut(bytes) => Some(bytes),
            Reply::Granted | Reply::GrantedAndEnded | Reply::Surplus | Reply::Slow(_) => None,
        };
        let body = Content::from(body);
        let (status, told, bytes) = granted(&mut shared.state(), &seen, body);
        let current = shared.state().objects.get(&seen.path).cloned();
        let tag = match current.as_ref().map(|content| &content.tag) {
            Some(tag) if seen.method != "DELETE" => format!("ETag: {tag}\r\n"),
            _ if seen.method == "DELETE" && shared.state().versions.is_some() => {
                "x-amz-delete-marker: true\r\n".to_owned()
            }
            _ if seen.method == "PUT" => format!("ETag: \"tag-{}\"\r\n", seen.length),
            _ => String::new(),
        };
        if let Reply::Slow(spaces) = reply {
            write!(output, "HTTP/1.1 {status}\r\n{tag}Content-Length: {}\r\n\r\n", told + spaces)?;
            for _ in 0..spaces {
                output.write_all(b" ")?;
                output.flush()?;
                std::thread::sleep(Duration::from_millis(250));
            }
            output.write_all(&bytes)?;
            continue;
        }
        let mut answer = format!("HTTP/1.1 {status}\r\n{tag}Content-Length: {told}\r\n\r\n").into_bytes();
        answer.extend_from_slice(&bytes[..bytes.len().min(cut.unwrap_or(usize::MAX))]);
        if reply == Reply::Surplus {
            answer.extend_from_slice(
                &[b"HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n", &[7; 4096][..]].concat(),
            );
        }
        output.write_all(&answer)?;
        if cut.is_some() || reply == Reply::GrantedAndEnded {
            return connection.shutdown(Shutdown::Both);
        }
    }
    Ok(())
}

/// The next request with its body; `None` = the connection has ended.
fn request(input: &mut impl BufRead) -> io::Result<Option<(Seen, Vec<u8>)>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut fields = BTreeMap::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        fields.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = fields.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    Ok(Some((Seen { method, path, fields, length, number: 0 }, body)))
}

/// Waits until this many requests wait here.
fn gather(shared: &Shared, wanted: usize) {
    let mut state = shared.state();
    state.waiting += 1;
    state.most_waiting = state.most_waiting.max(state.waiting);
    shared.gathered.notify_all();
    while state.most_waiting < wanted && !shared.is_over() {
        state = shared.gathered.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    state.waiting -= 1;
}

/// A tag that depends on the content.
fn tag_of(bytes: &[u8]) -> String {
    let mut hasher = std::hash::DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:x}\"", hasher.finish())
}

/// Performs a request: the status, the announced length, and the body.
fn granted(state: &mut State, seen: &Seen, body: Content) -> (&'static str, usize, Vec<u8>) {
    if let Some((path, query)) = seen.path.split_once('?') {
        return in_parts(state, &seen.method, path, query, body.bytes);
    }
    const MISSING: &[u8] = b"<Error><Code>NoSuchKey</Code><Message>There is none.</Message></Error>";
    let objects = &state.objects;
    // S3 names the source of a copy in a field, WebDAV its destination.
    let (source, destination) = match (seen.fields.get("x-amz-copy-source"), seen.fields.get("destination")) {
        (Some(source), _) => (Some(source), &seen.path),
        (None, Some(destination)) if seen.method == "COPY" => (Some(&seen.path), destination),
        _ => (None, &seen.path),
    };
    if let Some(source) = source {
        const COPIED: &[u8] = b"<CopyObjectResult/>";
        let Some(content) = objects.get(source).cloned() else {
            return ("404 Not Found", MISSING.len(), MISSING.to_vec());
        };
        state.set(destination, Some(content));
        return ("200 OK", COPIED.len(), COPIED.to_vec());
    }
    match seen.method.as_str() {
        "PUT" => {
            state.set(&seen.path, Some(Arc::new(body)));
            ("200 OK", 0, Vec::new())
        }
        // As some servers do. (Amazon's tells of no object that is missing.)
        "DELETE" => match state.set(&seen.path, None) || state.versions.is_some() {
            true => ("204 No Content", 0, Vec::new()),
            false => ("404 Not Found", MISSING.len(), MISSING.to_vec()),
        },
        method => {
            let is_head = method == "HEAD";
            let Some(Content { bytes, .. }) = objects.get(&seen.path).map(|content| &**content) else {
                let told = if is_head { 0 } else { MISSING.len() };
                return ("404 Not Found", told, if is_head { Vec::new() } else { MISSING.to_vec() });
            };
            let range = seen.fields.get("range").and_then(|text| part(text, bytes.len()));
            match range {
                Some(range) if range.is_empty() => ("416 Range Not Satisfiable", 0, Vec::new()),
                Some(range) => ("206 Partial Content", range.len(), bytes[range].to_vec()),
                None if is_head => ("200 OK", bytes.len(), Vec::new()),
                None => ("200 OK", bytes.len(), bytes.clone()),
            }
        }
    }
}

/// Answers S3's requests about multipart uploads.
fn in_parts(
    state: &mut State,
    method: &str,
    path: &str,
    query: &str,
    body: Vec<u8>,
) -> (&'static str, usize, Vec<u8>) {
    let argument = |name: &str| {
        let mut all = query.split('&').filter_map(|item| item.split_once('='));
        all.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
    };
    let text = |text: String| ("200 OK", text.len(), text.into_bytes());
    let missing = || {
        let text = b"<Error><Code>NoSuchUpload</Code></Error>".to_vec();
        ("404 Not Found", text.len(), text)
    };
    let id = argument("uploadId").unwrap_or_default();
    let version = argument("versionId").map(|id| id.replace("%2F", "/"));
    if version.is_some() || query.ends_with("versions=") {
        let prefix = argument("prefix").unwrap_or_default().replace("%2F", "/");
        let (status, body) = state.of_versions(method, path, version.as_deref(), &prefix);
        return (status, body.len(), body);
    }
    match method {
        "POST" if query == "uploads=" => {
            let id = state.begin(path, SystemTime::now());
            text(format!("<Result><UploadId>{id}</UploadId></Result>"))
        }
        "GET" if query.contains("list-type=2") => {
            let plain = |text: String| text.replace("%2F", "/");
            let bucket = if path == "/" { "/".to_owned() } else { format!("{path}/") };
            let prefix = format!("{bucket}{}", plain(argument("prefix").unwrap_or_default()));
            let from = argument("continuation-token").map(plain).unwrap_or_default();
            let most: usize = argument("max-keys").and_then(|text| text.parse().ok()).unwrap_or(1000);
            let all: Vec<&String> =
                state.objects.keys().filter(|name| name.starts_with(&prefix) && **name > from).collect();
            let items = all.iter().take(most).map(|name| {
                let (key, tag) = (&name[bucket.len()..], &state.objects[*name].tag);
                format!("<Contents><Key>{key}</Key><ETag>{tag}</ETag></Contents>")
            });
            let items: String = items.collect();
            let next = if all.len() > most {
                format!("<NextContinuationToken>{}</NextContinuationToken>", all[most - 1])
            } else {
                String::new()
            };
            let is_cut = all.len() > most;
            text(format!(
                "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{is_cut}</IsTruncated>{next}{items}\
                 </ListBucketResult>"
            ))
        }
        "GET" => {
            let bucket = format!("{path}/");
            let prefix = argument("prefix").unwrap_or_default().replace("%2F", "/");
            let items = state.uploads.iter().filter_map(|(id, upload)| {
                let key = upload.path.strip_prefix(&bucket).filter(|key| key.starts_with(&prefix))?;
                let begun = in_words(upload.begun);
                Some(format!(
                    "<Upload><Key>{key}</Key><UploadId>{id}</UploadId><Initiated>{begun}</Initiated></Upload>"
                ))
            });
            let items: String = items.collect();
            text(format!("<ListMultipartUploadsResult>{items}</ListMultipartUploadsResult>"))
        }
        "PUT" => {
            match (state.uploads.get_mut(&id), argument("partNumber").and_then(|text| text.parse().ok())) {
                (Some(upload), Some(number)) => {
                    upload.parts.insert(number, body);
                    ("200 OK", 0, Vec::new())
                }
                _ => missing(),
            }
        }
        "POST" => match state.uploads.remove(&id) {
            Some(Upload { path, parts, .. }) => {
                let listed = String::from_utf8_lossy(&body).matches("<PartNumber>").count();
                assert_eq!(listed, parts.len(), "all parts are listed");
                let bytes = parts.into_values().collect::<Vec<_>>().concat();
                state.set(&path, Some(Arc::new(bytes.into())));
                text("<CompleteMultipartUploadResult/>".to_owned())
            }
            None => missing(),
        },
        _ => match state.uploads.remove(&id) {
            Some(_) => ("204 No Content", 0, Vec::new()),
            None => missing(),
        },
    }
}

/// Parses `bytes=FIRST-LAST`, for an object of this length.
fn part(text: &str, length: usize) -> Option<std::ops::Range<usize>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    Some(first.min(length)..(last + 1).min(length))
}
