//! The options of `http`.

mod fields;
mod values;

use super::Facets;
use super::own::{AsFio, Idle, Obstacle, OwnOptions, named_by, own, own_options, place};
use super::ranged::ranged;
use super::secret::{Secret, elsewhere, secret};
use super::shared::BIND;
use crate::definition::{Definition, Kind, Places};
use crate::{JobOptions, SubmitMode};
pub use values::{
    Addressing, Authentication, Encryption, HostSelect, HttpProtocol, ObjectChecksum, ObjectMode,
    ReadRequest, Visible, WriteRequest,
};

own_options! {
    /// The options of `http`.
    pub struct HttpOptions declared by OPTIONS with places {
        /// Whether connections are encrypted.
        pub https: Encryption,
        /// The hosts of the server, each with its port if that is not the usual one: a list, see [`HttpOptions::hosts`].
        pub http_host: String,
        /// Which of several hosts gets a request.
        pub http_host_select: HostSelect,
        /// Addresses or interfaces of this machine to connect from, a list; empty = the system chooses.
        pub bind: String,
        /// The user's name for WebDAV; empty = no user.
        pub http_user: String,
        /// The user's password.
        pub http_pass: Secret,
        /// The authentication.
        pub http_auth: Authentication,
        /// The secret key of the S3 account.
        pub http_s3_key: Secret,
        /// The access key of the S3 account; empty = the keys are in the environment or the usual files.
        pub http_s3_keyid: String,
        /// The session token that goes with temporary keys.
        pub http_s3_security_token: Secret,
        /// The token of Swift.
        pub http_swift_auth_token: Secret,
        /// The region of the bucket.
        pub http_s3_region: String,
        /// The job gives the region, so it is not looked up in the user's files.
        pub region_is_given: bool,
        /// The key with which the server encrypts objects.
        pub http_s3_sse_customer_key: Secret,
        /// The cipher for this encryption.
        pub http_s3_sse_customer_algorithm: String,
        /// The storage class of new objects.
        pub http_s3_storage_class: String,
        /// The protocol of the server.
        pub http_mode: HttpProtocol,
        /// Messages about requests: 0 none, 1 requests and statuses, 2 headers as well.
        pub http_verbose: u32,
        /// How a file becomes objects.
        pub http_object_mode: ObjectMode,
        /// The request of a read.
        pub http_read: ReadRequest,
        /// The request of a write.
        pub http_write: WriteRequest,
        /// The file whose objects writes copy, with its bucket; empty = not given.
        pub http_copy_source: String,
        /// The requests that look for each written object until they see it.
        pub http_visible: Visible,
        /// Fields for the heads of requests that read, with names in lower case.
        pub http_read_headers: Vec<(String, String)>,
        /// Fields for the heads of requests that make objects.
        pub http_write_headers: Vec<(String, String)>,
        /// Fields for the heads of requests that remove objects.
        pub http_trim_headers: Vec<(String, String)>,
        /// The longest time without progress of a request, in microseconds; 0 = no limit.
        pub http_timeout: u64,
        /// How often a request is repeated after a temporary error.
        pub http_retries: u32,
        /// Objects that the job reads are written before it begins.
        pub http_create: bool,
        /// The profile of the credentials file; empty = the usual one.
        pub http_s3_profile: String,
        /// Requests are not signed.
        pub http_s3_anonymous: bool,
        /// Bodies are not hashed for the signature.
        pub http_s3_unsigned_payload: bool,
        /// The position of the bucket's name.
        pub http_s3_addressing: Addressing,
        /// The checksum that objects are sent with, for the server to check.
        pub http_s3_checksum: ObjectChecksum,
        /// Bytes of the parts in which larger objects are uploaded; 0 = objects are uploaded in one part.
        pub http_s3_multipart_size: u64,
        /// Removals remove all versions of an object.
        pub http_s3_delete_versions: bool,
        /// The version that reads ask for; empty = the current one.
        pub http_s3_version_id: String,
        /// Reads list this many names that begin like the file's; 0 = they read objects.
        pub http_s3_list: u32,
        /// A file with certificates of trusted authorities; empty = those of the system.
        pub http_ca_file: String,
        /// A file with the client's certificate; empty = none.
        pub http_cert_file: String,
        /// A file with the key of the client's certificate.
        pub http_key_file: String,
        /// Missing objects read as zeros, and may be trimmed, as in fio. The front end sets this.
        pub lenient: bool,
    }
}

impl Places for HttpOptions {
    fn bind(&mut self) -> Option<&mut String> {
        Some(&mut self.bind)
    }
}

impl OwnOptions for HttpOptions {
    // Each repetition may come after a pause of up to 10 s.
    fn patience_us(&self) -> Option<u64> {
        let attempt = self.http_timeout.saturating_add(10_000_000);
        Some(if self.http_timeout == 0 {
            0
        } else {
            attempt.saturating_mul(u64::from(self.http_retries) + 1)
        })
    }

    fn facets(&self, facets: Facets) -> Facets {
        if self.http_create { facets.laid_out() } else { facets }
    }

    fn obstacles(&self, job: &JobOptions) -> Vec<Obstacle> {
        let mut found = Vec::new();
        if self.http_read == ReadRequest::Head && job.verification_option().is_some() {
            found.push(("http_read", "http_read=head: no data comes back that could be verified".to_owned()));
        }
        if self.http_write == WriteRequest::Copy {
            let why = if self.http_mode == HttpProtocol::Swift {
                "copies are those of S3 and WebDAV, not of http_mode=swift"
            } else if self.http_copy_source.is_empty() {
                "give the file to copy, as filename names it: http_copy_source=/BUCKET/NAME"
            } else if self.http_s3_multipart_size > 0 {
                "an object is copied as a whole; leave http_s3_multipart_size out"
            } else if job.verification_option().is_some() {
                "the data is that of the source, so it cannot be verified"
            } else {
                ""
            };
            if !why.is_empty() {
                found.push(("http_write", format!("http_write=copy: {why}")));
            }
        }
        if self.http_visible != Visible::Off {
            let why = if self.http_visible == Visible::List && self.http_mode != HttpProtocol::S3 {
                "only http_mode=s3 lists names"
            } else if self.http_s3_multipart_size > 0 {
                "an object that is written in parts is there when all of it has been written; leave http_s3_multipart_size out"
            } else {
                ""
            };
            if !why.is_empty() {
                found.push(("http_visible", format!("http_visible: {why}")));
            }
        }
        if !self.http_s3_version_id.is_empty() && (self.blocks_are_objects() || job.pattern.rw.changes()) {
            let why = "http_s3_version_id: reads of one object have its version: use rw=read or randread, and \
                       http_object_mode=range";
            found.push(("http_s3_version_id", why.to_owned()));
        }
        if self.gathers_writes() && job.depth.io_submit_mode == SubmitMode::Offload {
            let why = "io_submit_mode=offload: the parts of an object (http_s3_multipart_size) are sent by one client";
            found.push(("io_submit_mode", why.to_owned()));
        }
        if self.gathers_writes() && job.verification.verify_backlog > 0 && job.pattern.rw.writes() {
            let why = "verify_backlog: an object that is written in parts (http_s3_multipart_size) is there when all of it has \
                       been written, not earlier; leave verify_backlog out";
            found.push(("verify_backlog", why.to_owned()));
        }
        found
    }

    fn obstacle_to_run(&self, job: &JobOptions) -> Option<String> {
        if self.http_s3_list == 0 {
            return None;
        }
        let why = if self.http_read == ReadRequest::Head {
            "what lists names looks nothing up (http_read=head); give one of them"
        } else if job.pattern.rw.changes() || job.verification_option().is_some() {
            "what lists names can be neither written, trimmed nor verified; use rw=read"
        } else if self.http_create {
            "nothing is made for a list; leave http_create out"
        } else {
            return None;
        };
        Some(format!("http_s3_list: {why}"))
    }

    /// (Reports in fio's format do not contain them.)
    fn makes_requests(&self) -> bool {
        !self.lenient || self.http_visible != Visible::Off
    }

    fn blocks_are_objects(&self) -> bool {
        self.http_object_mode == ObjectMode::Block
    }

    /// Missing objects read as zeros and may be trimmed, and requests have no time limit.
    fn be_as_fio(&mut self, asked: AsFio) {
        self.lenient = true;
        if !asked.has_limit {
            self.http_timeout = 0;
        }
    }

    fn without_effect(&self) -> Vec<Idle> {
        let mut all: Vec<Idle> = Vec::new();
        let mut idle = |names: &[&'static str], why| all.extend(names.iter().map(|&name| (name, why)));
        if self.hosts().len() == 1 {
            idle(&["http_host_select"], "http_host has one host");
        }
        if self.http_write != WriteRequest::Copy {
            idle(&["http_copy_source"], "http_write=copy is missing");
        }
        if self.http_mode != HttpProtocol::S3 {
            idle(OF_S3, "it is about http_mode=s3");
        } else {
            if self.http_s3_anonymous {
                idle(&KEYS, "http_s3_anonymous=1 sends no keys");
            }
            if !self.http_s3_sse_customer_key.is_given() {
                idle(&["http_s3_sse_customer_algorithm"], "http_s3_sse_customer_key is missing");
            }
            if !self.http_s3_keyid.is_empty() {
                idle(&["http_s3_profile"], "http_s3_keyid says which key");
            }
        }
        if self.http_mode != HttpProtocol::WebDav {
            idle(&["http_user"], "it is about http_mode=webdav");
            idle(&PASSWORD, "it is about http_mode=webdav");
        } else if self.http_user.is_empty() {
            idle(&PASSWORD, "http_user is missing");
        }
        if self.http_mode != HttpProtocol::Swift {
            let all = ["http_swift_auth_token", "http_swift_auth_token_file", "http_swift_auth_token_env"];
            idle(&all, "it is about http_mode=swift");
        }
        all
    }
}

impl HttpOptions {
    /// The hosts in `http_host`.
    pub fn hosts(&self) -> Vec<String> {
        // (Lists with mistakes do not become options.)
        ranged(&self.http_host).unwrap_or_default()
    }

    /// Whether the writes of a file become one object, so that a single client has to send all of them.
    pub fn gathers_writes(&self) -> bool {
        self.http_mode == HttpProtocol::S3
            && self.http_object_mode == ObjectMode::Range
            && self.http_s3_multipart_size > 0
    }

    /// Whether requests carry credentials (keys, passwords, tokens) to another machine unencrypted.
    pub fn identifies_in_the_open(&self) -> bool {
        let identifies = match self.http_mode {
            HttpProtocol::S3 => !self.http_s3_anonymous || self.http_s3_sse_customer_key.is_given(),
            HttpProtocol::WebDav => !self.http_user.is_empty(),
            HttpProtocol::Swift => self.http_swift_auth_token.is_given(),
        };
        self.https == Encryption::Off && identifies && !self.hosts().iter().all(|host| is_here(host))
    }
}

/// The options of S3 that other protocols do not have.
const OF_S3: &[&str] = &[
    "http_s3_keyid",
    "http_s3_key",
    "http_s3_key_file",
    "http_s3_key_env",
    "http_s3_security_token",
    "http_s3_security_token_file",
    "http_s3_security_token_env",
    "http_s3_profile",
    "http_s3_anonymous",
    "http_s3_unsigned_payload",
    "http_s3_addressing",
    "http_s3_checksum",
    "http_s3_multipart_size",
    "http_s3_list",
    "http_s3_delete_versions",
    "http_s3_version_id",
    "http_s3_region",
    "http_s3_storage_class",
    "http_s3_sse_customer_key",
    "http_s3_sse_customer_key_file",
    "http_s3_sse_customer_key_env",
    "http_s3_sse_customer_algorithm",
];

/// The options for authentication.
const KEYS: [&str; 8] = [
    "http_s3_keyid",
    "http_s3_key",
    "http_s3_key_file",
    "http_s3_key_env",
    "http_s3_security_token",
    "http_s3_security_token_file",
    "http_s3_security_token_env",
    "http_s3_profile",
];

/// The options of the WebDAV password.
const PASSWORD: [&str; 4] = ["http_pass", "http_pass_file", "http_pass_env", "http_auth"];

/// Whether this host, perhaps with a port, is this machine.
fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    iolite_types::is_loopback(name)
}

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static HTTPS: Definition = option("https", Kind::Str, "Encrypted connections")
    .default("off")
    .keywords(&[("off", "No"), ("on", "Yes"), ("insecure", "Yes, without checking the certificate")])
    .lands_in_engine(|own, given| {
        place::<HttpOptions>(own)?.https = match given.keyword()? {
            "on" => Encryption::On,
            "insecure" => Encryption::Insecure,
            _ => Encryption::Off,
        };
        Ok(())
    });
static HTTP_HOST: Definition = option(
    "http_host",
    Kind::Str,
    "Server, with :PORT where needed; several hosts as a list, NAME[1-4] for a range",
)
.default("localhost")
.lands_in_engine(|own, given| {
    let host = given.string()?;
    if host.contains('@') {
        return Err("a user and a password have options of their own (http_user, http_pass)".to_owned());
    }
    ranged(&host)?;
    place::<HttpOptions>(own)?.http_host = host;
    Ok(())
});
static HTTP_HOST_SELECT: Definition =
    option("http_host_select", Kind::Str, "Which of several hosts gets a request")
        .default("roundrobin")
        .keywords(&[
            ("roundrobin", "Each request of a worker goes to the next one"),
            ("worker", "Each worker has one: the first, the second, …"),
        ])
        .lands_in_engine(|own, given| {
            place::<HttpOptions>(own)?.http_host_select = match given.keyword()? {
                "worker" => HostSelect::Worker,
                _ => HostSelect::RoundRobin,
            };
            Ok(())
        });
static HTTP_USER: Definition =
    option("http_user", Kind::Str, "User name").lands_in_engine(own!(HttpOptions.http_user, string()));
static HTTP_PASS: Definition =
    option("http_pass", Kind::Str, "Password").secret().lands_in_engine(secret!(HttpOptions.http_pass));
static HTTP_AUTH: Definition = option("http_auth", Kind::Str, "The authentication of the WebDAV user")
    .default("basic")
    .keywords(&[
        ("basic", "Name and password in each request"),
        ("digest", "Answers to challenges, without the password"),
    ])
    .lands_in_engine(|own, given| {
        place::<HttpOptions>(own)?.http_auth = match given.keyword()? {
            "digest" => Authentication::Digest,
            _ => Authentication::Basic,
        };
        Ok(())
    });
static HTTP_S3_KEY: Definition = option("http_s3_key", Kind::Str, "Secret key of the S3 account")
    .secret()
    .lands_in_engine(secret!(HttpOptions.http_s3_key));
static HTTP_S3_KEYID: Definition = option(
    "http_s3_keyid",
    Kind::Str,
    "Access key of the S3 account; by default those of the environment, ~/.aws/credentials or ~/.aws/config",
)
.lands_in_engine(own!(HttpOptions.http_s3_keyid, string()));
static HTTP_S3_SECURITY_TOKEN: Definition =
    option("http_s3_security_token", Kind::Str, "Session token of temporary S3 credentials")
        .secret()
        .lands_in_engine(secret!(HttpOptions.http_s3_security_token));
static HTTP_SWIFT_AUTH_TOKEN: Definition =
    option("http_swift_auth_token", Kind::Str, "Authentication token of Swift")
        .secret()
        .lands_in_engine(secret!(HttpOptions.http_swift_auth_token));
static HTTP_S3_REGION: Definition = option("http_s3_region", Kind::Str, "Region of the bucket")
    .default("us-east-1")
    .lands_in_engine(own!(HttpOptions.http_s3_region, string()));
static HTTP_S3_SSE_CUSTOMER_KEY: Definition = option(
    "http_s3_sse_customer_key",
    Kind::Str,
    "Key with which the server encrypts objects: 32 characters, or 44 in Base64",
)
.secret()
.lands_in_engine(secret!(HttpOptions.http_s3_sse_customer_key));
static HTTP_S3_SSE_CUSTOMER_ALGORITHM: Definition =
    option("http_s3_sse_customer_algorithm", Kind::Str, "Cipher that goes with this key")
        .default("AES256")
        .lands_in_engine(own!(HttpOptions.http_s3_sse_customer_algorithm, string()));
static HTTP_S3_STORAGE_CLASS: Definition =
    option("http_s3_storage_class", Kind::Str, "Storage class of new objects")
        .default("STANDARD")
        .lands_in_engine(own!(HttpOptions.http_s3_storage_class, string()));
static HTTP_MODE: Definition = option("http_mode", Kind::Str, "Which interface the server speaks")
    .default("webdav")
    .keywords(&[("webdav", "WebDAV"), ("s3", "S3"), ("swift", "Swift")])
    .lands_in_engine(|own, given| {
        place::<HttpOptions>(own)?.http_mode = match given.keyword()? {
            "s3" => HttpProtocol::S3,
            "swift" => HttpProtocol::Swift,
            _ => HttpProtocol::WebDav,
        };
        Ok(())
    });
static HTTP_VERBOSE: Definition = option(
    "http_verbose",
    Kind::Int,
    "Print on standard error: 1 requests and statuses, 2 their heads as well",
)
.default("0")
.lands_in_engine(own!(HttpOptions.http_verbose, number()));
static HTTP_OBJECT_MODE: Definition = option("http_object_mode", Kind::Str, "How a file becomes objects")
    .default("block")
    .keywords(&[
        ("block", "Each block is an object"),
        ("range", "The file is one object, blocks are byte ranges"),
    ])
    .lands_in_engine(|own, given| {
        place::<HttpOptions>(own)?.http_object_mode = match given.keyword()? {
            "range" => ObjectMode::Range,
            _ => ObjectMode::Block,
        };
        Ok(())
    });
static HTTP_READ: Definition = option("http_read", Kind::Str, "What a read asks for")
    .default("get")
    .keywords(&[("get", "The object (GET)"), ("head", "Whether it is there, and its size (HEAD)")])
    .lands_in_engine(|own, given| {
        place::<HttpOptions>(own)?.http_read = match given.keyword()? {
            "head" => ReadRequest::Head,
            _ => ReadRequest::Get,
        };
        Ok(())
    });
static HTTP_WRITE: Definition = option("http_write", Kind::Str, "What a write asks for")
    .default("put")
    .keywords(&[
        ("put", "To store the data (PUT)"),
        ("copy", "To copy an object of http_copy_source, on the server (COPY)"),
    ])
    .lands_in_engine(|own, given| {
        place::<HttpOptions>(own)?.http_write = match given.keyword()? {
            "copy" => WriteRequest::Copy,
            _ => WriteRequest::Put,
        };
        Ok(())
    });
static HTTP_COPY_SOURCE: Definition =
    option("http_copy_source", Kind::Str, "The file whose objects are copied: /BUCKET/NAME")
        .lands_in_engine(own!(HttpOptions.http_copy_source, string()));
static HTTP_VISIBLE: Definition = option(
    "http_visible",
    Kind::Str,
    "After each write, ask until the object is seen, and report how long it took",
)
.default("off")
.keywords(&[
    ("off", "Do not ask"),
    ("get", "Read it (GET)"),
    ("head", "Look it up (HEAD)"),
    ("list", "List its name (S3)"),
])
.lands_in_engine(|own, given| {
    place::<HttpOptions>(own)?.http_visible = match given.keyword()? {
        "get" => Visible::Get,
        "head" => Visible::Head,
        "list" => Visible::List,
        _ => Visible::Off,
    };
    Ok(())
});

/// Fields for the heads of one kind of requests.
macro_rules! headers {
    ($field:ident, $help:literal) => {
        option(stringify!($field), Kind::Str, $help).lands_in_engine(|own, given| {
            place::<HttpOptions>(own)?.$field = fields::fields(&given.string()?)?;
            Ok(())
        })
    };
}

static HTTP_READ_HEADERS: Definition =
    headers!(http_read_headers, "Fields for requests that read: NAME: VALUE, NAME: VALUE");
static HTTP_WRITE_HEADERS: Definition = headers!(
    http_write_headers,
    "Fields for requests that make objects, such as x-amz-tagging: NAME: VALUE, NAME: VALUE"
);
static HTTP_TRIM_HEADERS: Definition =
    headers!(http_trim_headers, "Fields for requests that remove objects: NAME: VALUE, NAME: VALUE");
static HTTP_TIMEOUT: Definition =
    option("http_timeout", Kind::Time, "The longest time without progress of a request; 0 = no limit")
        .default("120s")
        .lands_in_engine(own!(HttpOptions.http_timeout, time(1_000_000)));
static HTTP_RETRIES: Definition = option(
    "http_retries",
    Kind::Int,
    "How often a request is repeated after 429, 500, 502 to 504 or a lost connection, with growing pauses",
)
.default("0")
.range(0, 1000)
.lands_in_engine(own!(HttpOptions.http_retries, number()));
static HTTP_CREATE: Definition =
    option("http_create", Kind::Bool, "Write missing data that the job reads before it begins")
        .default("0")
        .lands_in_engine(own!(HttpOptions.http_create, boolean()));
static HTTP_S3_PROFILE: Definition =
    option("http_s3_profile", Kind::Str, "Profile of ~/.aws/credentials or ~/.aws/config that has the keys")
        .lands_in_engine(own!(HttpOptions.http_s3_profile, string()));
static HTTP_S3_ANONYMOUS: Definition =
    option("http_s3_anonymous", Kind::Bool, "Requests without a signature")
        .default("0")
        .lands_in_engine(own!(HttpOptions.http_s3_anonymous, boolean()));
static HTTP_S3_UNSIGNED_PAYLOAD: Definition =
    option("http_s3_unsigned_payload", Kind::Bool, "Leave bodies out of signatures; needs https")
        .default("0")
        .lands_in_engine(own!(HttpOptions.http_s3_unsigned_payload, boolean()));
static HTTP_S3_ADDRESSING: Definition = option("http_s3_addressing", Kind::Str, "Where the bucket is named")
    .default("path")
    .keywords(&[
        ("path", "First in the name of an object: filename=/BUCKET/NAME"),
        ("virtual", "First in the name of the server: http_host=BUCKET.HOST, filename=/NAME"),
    ])
    .lands_in_engine(|own, given| {
        place::<HttpOptions>(own)?.http_s3_addressing = match given.keyword()? {
            "virtual" => Addressing::Virtual,
            _ => Addressing::Path,
        };
        Ok(())
    });
static HTTP_S3_CHECKSUM: Definition =
    option("http_s3_checksum", Kind::Str, "The checksum sent with objects, for the server to check")
        .default("none")
        .keywords(&[("none", "Nothing"), ("crc32c", "CRC-32C"), ("sha256", "SHA-256")])
        .lands_in_engine(|own, given| {
            place::<HttpOptions>(own)?.http_s3_checksum = match given.keyword()? {
                "crc32c" => ObjectChecksum::Crc32c,
                "sha256" => ObjectChecksum::Sha256,
                _ => ObjectChecksum::None,
            };
            Ok(())
        });
static HTTP_S3_MULTIPART_SIZE: Definition = option(
    "http_s3_multipart_size",
    Kind::Int,
    "Upload larger objects in parts of this many bytes, iodepth= of them at a time; 0 = whole",
)
.default("0")
.lands_in_engine(own!(HttpOptions.http_s3_multipart_size, number()));
static HTTP_S3_DELETE_VERSIONS: Definition = option(
    "http_s3_delete_versions",
    Kind::Bool,
    "Trims and unlink remove all versions of an object, and marks of its removal",
)
.default("0")
.lands_in_engine(own!(HttpOptions.http_s3_delete_versions, boolean()));
static HTTP_S3_VERSION_ID: Definition =
    option("http_s3_version_id", Kind::Str, "The version of the object that reads ask for")
        .lands_in_engine(own!(HttpOptions.http_s3_version_id, string()));
static HTTP_S3_LIST: Definition = option(
    "http_s3_list",
    Kind::Int,
    "Reads list names that begin with filename, this many at a time; 0 = they read objects",
)
.default("0")
.range(0, 1000)
.lands_in_engine(own!(HttpOptions.http_s3_list, number()));
static HTTP_CA_FILE: Definition = option(
    "http_ca_file",
    Kind::Str,
    "Certificates of the authorities to trust (PEM); by default the system's",
)
.names_files(|job| named_by(job, |own: &HttpOptions| &own.http_ca_file))
.lands_in_engine(own!(HttpOptions.http_ca_file, string()));
static HTTP_CERT_FILE: Definition =
    option("http_cert_file", Kind::Str, "Certificate to show to the server (PEM)")
        .names_files(|job| named_by(job, |own: &HttpOptions| &own.http_cert_file))
        .lands_in_engine(own!(HttpOptions.http_cert_file, string()));
static HTTP_KEY_FILE: Definition = option("http_key_file", Kind::Str, "Key of that certificate (PEM)")
    .names_files(|job| named_by(job, |own: &HttpOptions| &own.http_key_file))
    .lands_in_engine(own!(HttpOptions.http_key_file, string()));
static HTTP_PASS_ELSEWHERE: [Definition; 2] = elsewhere!(HttpOptions.http_pass);
static HTTP_S3_KEY_ELSEWHERE: [Definition; 2] = elsewhere!(HttpOptions.http_s3_key);
static HTTP_S3_SECURITY_TOKEN_ELSEWHERE: [Definition; 2] = elsewhere!(HttpOptions.http_s3_security_token);
static HTTP_SWIFT_AUTH_TOKEN_ELSEWHERE: [Definition; 2] = elsewhere!(HttpOptions.http_swift_auth_token);
static HTTP_S3_SSE_CUSTOMER_KEY_ELSEWHERE: [Definition; 2] = elsewhere!(HttpOptions.http_s3_sse_customer_key);

/// All of them.
pub static OPTIONS: &[&Definition] = &[
    &HTTPS,
    &HTTP_HOST,
    &HTTP_HOST_SELECT,
    &BIND,
    &HTTP_USER,
    &HTTP_PASS,
    &HTTP_AUTH,
    &HTTP_S3_KEY,
    &HTTP_S3_KEYID,
    &HTTP_S3_SECURITY_TOKEN,
    &HTTP_SWIFT_AUTH_TOKEN,
    &HTTP_S3_REGION,
    &HTTP_S3_SSE_CUSTOMER_KEY,
    &HTTP_S3_SSE_CUSTOMER_ALGORITHM,
    &HTTP_S3_STORAGE_CLASS,
    &HTTP_MODE,
    &HTTP_VERBOSE,
    &HTTP_OBJECT_MODE,
    &HTTP_READ,
    &HTTP_WRITE,
    &HTTP_COPY_SOURCE,
    &HTTP_VISIBLE,
    &HTTP_READ_HEADERS,
    &HTTP_WRITE_HEADERS,
    &HTTP_TRIM_HEADERS,
    &HTTP_TIMEOUT,
    &HTTP_RETRIES,
    &HTTP_CREATE,
    &HTTP_S3_PROFILE,
    &HTTP_S3_ANONYMOUS,
    &HTTP_S3_UNSIGNED_PAYLOAD,
    &HTTP_S3_ADDRESSING,
    &HTTP_S3_CHECKSUM,
    &HTTP_S3_MULTIPART_SIZE,
    &HTTP_S3_DELETE_VERSIONS,
    &HTTP_S3_VERSION_ID,
    &HTTP_S3_LIST,
    &HTTP_CA_FILE,
    &HTTP_CERT_FILE,
    &HTTP_KEY_FILE,
    &HTTP_PASS_ELSEWHERE[0],
    &HTTP_PASS_ELSEWHERE[1],
    &HTTP_S3_KEY_ELSEWHERE[0],
    &HTTP_S3_KEY_ELSEWHERE[1],
    &HTTP_S3_SECURITY_TOKEN_ELSEWHERE[0],
    &HTTP_S3_SECURITY_TOKEN_ELSEWHERE[1],
    &HTTP_SWIFT_AUTH_TOKEN_ELSEWHERE[0],
    &HTTP_SWIFT_AUTH_TOKEN_ELSEWHERE[1],
    &HTTP_S3_SSE_CUSTOMER_KEY_ELSEWHERE[0],
    &HTTP_S3_SSE_CUSTOMER_KEY_ELSEWHERE[1],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fio_waits_for_answers_as_long_as_it_takes() {
        for (has_limit, timeout) in [(false, 0), (true, 120_000_000)] {
            let mut own = HttpOptions::default();
            own.be_as_fio(AsFio { has_limit, readonly: false });
            assert_eq!((own.lenient, own.http_timeout), (true, timeout));
        }
    }

    #[test]
    fn only_other_machines_are_far() {
        for (host, here) in [
            ("127.0.0.2:9000", true),
            ("[::1]:80", true),
            ("localhost", true),
            ("10.0.0.1", false),
            ("127.0.0.[1-3]:9000,[::1]:80", true),
            ("127.0.0.1:9000,10.0.0.1:9000", false),
            ("s3.example.com:9000", false),
        ] {
            let hosts = ranged(host).unwrap();
            assert_eq!(hosts.iter().all(|host| is_here(host)), here, "{host}");
            let own =
                HttpOptions { http_host: host.into(), http_mode: HttpProtocol::S3, ..HttpOptions::default() };
            assert_eq!(own.identifies_in_the_open(), !here, "{host}");
            assert!(!HttpOptions { http_s3_anonymous: true, ..own.clone() }.identifies_in_the_open());
            assert!(!HttpOptions { https: Encryption::Insecure, ..own }.identifies_in_the_open());
        }
    }
}
