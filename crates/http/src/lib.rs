//! Requests to object stores over HTTP: many at a time, from one thread.
//!
//! [`Client`] keeps connections alive and drives them all through one epoll instance. A new request is sent at once,
//! as far as the socket accepts it, and continues whenever the owner waits ([`Client::drive`]). There is no thread,
//! task or queue between the caller and the sockets. Bodies are sent from the caller's memory and received into it:
//! plain connections copy nothing, and encrypted ones copy once, to encrypt or decrypt. A general HTTP client would
//! take a body as an owned buffer and return another one, which costs two more copies.
//!
//! `store.rs` builds the requests for objects in each protocol (S3, WebDAV, Swift). [`Refusal`] describes why a server
//! refused a request.
//!
//! | file | what |
//! |---|---|
//! | `endpoint.rs` | the server: name, port, addresses |
//! | `connection.rs` | moves bytes to and from one socket, encrypted or not |
//! | `tls.rs` | the certificates that a client trusts, and its own |
//! | `answer.rs` | parses an answer as it arrives, piece by piece |
//! | `client.rs` | connections, requests in flight, deadlines, retries |
//! | `signature.rs` | AWS Signature Version 4 |
//! | `credentials.rs` | keys from the environment or the usual files |
//! | `digest.rs` | digest authentication |
//! | `encoding.rs` | percent-encoding, hexadecimal digits, dates |
//! | `store.rs` | requests for objects in each protocol |
//! | `listing.rs` | lists of the names in a bucket |
//! | `multipart.rs` | objects that are uploaded in parts |
//! | `refusal.rs` | why a server refused a request |

mod answer;
mod client;
mod connection;
mod credentials;
mod digest;
mod encoding;
mod endpoint;
pub mod listing;
pub mod multipart;
mod refusal;
mod signature;
mod store;
mod tls;

pub use self::answer::Answer;
pub use self::client::{Client, ClientError, Counts, Done, Failure, Head, Limits, Marks, Request, Sink};
pub use self::credentials::{Credentials, CredentialsError, Source};
pub use self::digest::Digest;
pub use self::encoding::{percent_decoded, percent_encoded};
pub use self::endpoint::{Endpoint, EndpointError};
pub use self::refusal::Refusal;
pub use self::signature::Signer;
pub use self::store::{Basic, Checksum, CustomerKey, Headers, Method, Object, Protocol, S3, User};
pub use self::tls::{Trust, TrustError};
