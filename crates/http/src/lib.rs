//! Requests to object stores over HTTP: many at a time, from one thread.
//!
//! [`Client`] keeps connections alive and drives them all through one epoll instance: a request is sent as far as the
//! socket takes it when it is begun, and goes on whenever the owner waits ([`Client::drive`]). There is no thread, no task
//! and no queue between the caller and the sockets. Bodies are sent from the caller's memory and received into it, without
//! a copy on plain connections and with the one that encryption makes on others. A general client would take a body as an
//! owned buffer and give one back, which is two copies more.
//!
//! Above it, [`Store`] knows the names of objects and builds the requests of each protocol (S3, WebDAV, Swift), and
//! [`Refusal`] describes why a server refused a request.
//!
//! | file | what |
//! |---|---|
//! | `endpoint.rs` | the server: name, port, addresses |
//! | `connection.rs` | bytes to and from one socket, encrypted or not |
//! | `tls.rs` | which certificates an encrypted connection trusts |
//! | `answer.rs` | an answer as it comes in, piece by piece |
//! | `client.rs` | connections, requests in flight, deadlines, retries |
//! | `signature.rs` | AWS Signature Version 4 |
//! | `credentials.rs` | keys from the environment and from the usual files |
//! | `digest.rs` | digest authentication |
//! | `encoding.rs` | percent-encoding, hexadecimal digits, dates |
//! | `store.rs` | requests for objects in each protocol |
//! | `listing.rs` | names in a bucket |
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
pub use self::client::{Client, ClientError, Counts, Done, Failure, Limits, Request, Sink};
pub use self::credentials::{Credentials, CredentialsError, Source};
pub use self::digest::Digest;
pub use self::encoding::{percent_decoded, percent_encoded};
pub use self::endpoint::{Endpoint, EndpointError};
pub use self::refusal::Refusal;
pub use self::signature::Signer;
pub use self::store::{Basic, Checksum, CustomerKey, Method, Object, Protocol, S3, Store, User};
pub use self::tls::{Trust, TrustError};
