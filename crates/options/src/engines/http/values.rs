//! What the options of `http` choose from.

use serde::{Deserialize, Serialize};

/// Whether connections are encrypted (`https`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encryption {
    /// They are not encrypted.
    #[default]
    Off,
    /// They are encrypted, and the server needs a valid certificate.
    On,
    /// They are encrypted, but the server's certificate is not checked.
    Insecure,
}

/// The protocol of the server (`http_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpProtocol {
    /// WebDAV
    #[default]
    WebDav,
    /// S3
    S3,
    /// Swift
    Swift,
}

/// How a file becomes objects (`http_object_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectMode {
    /// Each block is an object, whose name is that of the file followed by offset and length.
    #[default]
    Block,
    /// The file is one object. Reads request a range of it, and writes replace it.
    Range,
}

/// The authentication of a WebDAV user (`http_auth`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Authentication {
    /// By name and password in each request.
    #[default]
    Basic,
    /// Digest authentication (RFC 7616): the password itself is not sent.
    Digest,
}

/// The position of the bucket's name (`http_s3_addressing`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Addressing {
    /// Before the object's name: `http://HOST/BUCKET/NAME`.
    #[default]
    Path,
    /// Before the server's name, which `http_host` gives: `http://BUCKET.HOST/NAME`.
    Virtual,
}

/// The checksum that objects are sent with, for the server to check (`http_s3_checksum`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectChecksum {
    /// None.
    #[default]
    None,
    /// CRC-32C.
    Crc32c,
    /// SHA-256.
    Sha256,
}

/// The request of a write (`http_write`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteRequest {
    /// PUT: the data.
    #[default]
    Put,
    /// The server copies another object.
    Copy,
}

/// The requests that look for what was written (`http_visible`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visible {
    /// None.
    #[default]
    Off,
    /// GET: the object.
    Get,
    /// HEAD: whether it is there.
    Head,
    /// A list of the names in its bucket.
    List,
}

/// Which of several hosts gets a request (`http_host_select`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostSelect {
    /// Each request of a worker goes to the next one.
    #[default]
    RoundRobin,
    /// Each worker has one.
    Worker,
}

/// The request of a read (`http_read`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadRequest {
    /// GET: the object.
    #[default]
    Get,
    /// HEAD: only whether it is there, and its attributes.
    Head,
}
