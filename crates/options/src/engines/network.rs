//! Options of engines that talk to another machine.

use crate::definition::{Definition, Kind};

const fn option(name: &'static str, kind: Kind, help: &'static str) -> Definition {
    Definition::engine(name, kind, help)
}

static HOSTNAME: Definition = option("hostname", Kind::Str, "The other side's name or address");
static PORT: Definition = option("port", Kind::Int, "Port to listen on or to connect to").range(1, 65535);
static PROTOCOL: Definition =
    option("protocol", Kind::Str, "Protocol of the sockets").aliases(&["proto"]).default("tcp").keywords(&[
        ("tcp", "TCP over IPv4"),
        ("tcpv6", "TCP over IPv6"),
        ("udp", "UDP over IPv4"),
        ("udpv6", "UDP over IPv6"),
        ("unix", "Local sockets"),
        ("vsock", "Sockets between a virtual machine and its host"),
    ]);
static NODELAY: Definition = option("nodelay", Kind::Bool, "Send small packets at once (TCP_NODELAY)");
static LISTEN: Definition = option("listen", Kind::Flag, "Wait for connections rather than make one");
static PINGPONG: Definition = option("pingpong", Kind::Flag, "Answer each message before the next");
static INTERFACE: Definition = option("interface", Kind::Str, "Network interface for multicast");
static TTL: Definition = option("ttl", Kind::Int, "How many hops multicast packets live").default("1");
static WINDOW_SIZE: Definition = option("window_size", Kind::Int, "Size of the sockets' buffers");
static MSS: Definition = option("mss", Kind::Int, "Largest TCP segment");

/// `net` and `netsplice`
pub static NET: &[&Definition] =
    &[&HOSTNAME, &PORT, &PROTOCOL, &NODELAY, &LISTEN, &PINGPONG, &INTERFACE, &TTL, &WINDOW_SIZE, &MSS];

static BINDNAME: Definition = option("bindname", Kind::Str, "Address of the local interface to use");
static VERB: Definition =
    option("verb", Kind::Str, "RDMA operation").aliases(&["proto"]).default("write").keywords(&[
        ("write", "Write to the other side's memory"),
        ("read", "Read from the other side's memory"),
        ("send", "Send messages"),
        ("recv", "Receive messages"),
    ]);

/// `rdma`
pub static RDMA: &[&Definition] = &[&HOSTNAME, &BINDNAME, &PORT, &VERB];

static NFS_URL: Definition =
    option("nfs_url", Kind::Str, "Server and export, as in nfs://server/export?version=4");

/// `nfs`
pub static NFS: &[&Definition] = &[&NFS_URL];

static HTTPS: Definition = option("https", Kind::Str, "Encrypted connections").default("off").keywords(&[
    ("off", "No"),
    ("on", "Yes"),
    ("insecure", "Yes, with whoever answers"),
]);
static HTTP_HOST: Definition =
    option("http_host", Kind::Str, "Server, with :PORT where needed").default("localhost");
static HTTP_USER: Definition = option("http_user", Kind::Str, "User name");
static HTTP_PASS: Definition = option("http_pass", Kind::Str, "Password");
static HTTP_S3_KEY: Definition = option("http_s3_key", Kind::Str, "Secret key of the S3 account");
static HTTP_S3_KEYID: Definition = option("http_s3_keyid", Kind::Str, "Access key of the S3 account");
static HTTP_S3_SECURITY_TOKEN: Definition =
    option("http_s3_security_token", Kind::Str, "Session token of temporary S3 credentials");
static HTTP_SWIFT_AUTH_TOKEN: Definition =
    option("http_swift_auth_token", Kind::Str, "Authentication token of Swift");
static HTTP_S3_REGION: Definition =
    option("http_s3_region", Kind::Str, "Region of the bucket").default("us-east-1");
static HTTP_S3_SSE_CUSTOMER_KEY: Definition =
    option("http_s3_sse_customer_key", Kind::Str, "Key with which the server encrypts objects");
static HTTP_S3_SSE_CUSTOMER_ALGORITHM: Definition =
    option("http_s3_sse_customer_algorithm", Kind::Str, "Cipher that goes with this key").default("AES256");
static HTTP_S3_STORAGE_CLASS: Definition =
    option("http_s3_storage_class", Kind::Str, "Storage class of new objects").default("STANDARD");
static HTTP_MODE: Definition = option("http_mode", Kind::Str, "Which interface the server speaks")
    .default("webdav")
    .keywords(&[("webdav", "WebDAV"), ("s3", "S3"), ("swift", "Swift")]);
static HTTP_VERBOSE: Definition =
    option("http_verbose", Kind::Int, "How much to tell about requests").default("0");
static HTTP_OBJECT_MODE: Definition =
    option("http_object_mode", Kind::Str, "How a file becomes objects").default("block").keywords(&[
        ("block", "Each block is an object"),
        ("range", "The file is one object, blocks are byte ranges"),
    ]);

/// `http`
pub static HTTP: &[&Definition] = &[
    &HTTPS,
    &HTTP_HOST,
    &HTTP_USER,
    &HTTP_PASS,
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
];
