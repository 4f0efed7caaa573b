//! What the versions of the protocol have in common, and what each has to provide.

use crate::rpc::Caller;
use crate::session::{Calls, Opened, Session, What};
use crate::xdr::{Reader, Writer};
use crate::{NfsError, v3, v4};

/// The maximum length of a handle in bytes.
pub(crate) const HANDLE: usize = 128;

/// The status of a server that is busy with the request: try again later. (`NFS3ERR_JUKEBOX`, `NFS4ERR_DELAY`.)
pub(crate) const BUSY: u32 = 10008;

/// The maximum number of bytes of a read or a write, whatever more the server accepts.
pub(crate) const MOST_MOVED: usize = 32 << 20;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Version 3 (RFC 1813).
    #[default]
    Three,
    /// Version 4, with minor version 1 (RFC 8881).
    Four,
}

impl Version {
    pub(crate) fn protocol(self) -> &'static dyn Protocol {
        match self {
            Version::Three => &v3::Three,
            Version::Four => &v4::Four,
        }
    }

    /// The meaning of a status: the system's error number, the protocol's name, and a description.
    pub(crate) fn status(self, code: u32) -> (i32, &'static str, &'static str) {
        match self {
            Version::Three => v3::status(code),
            Version::Four => v4::status(code),
        }
    }

    /// The protocol's name of a status and its description; of an unknown one, its number.
    pub(crate) fn words(self, code: u32) -> String {
        match self.status(code) {
            (_, "", words) => format!("error {code} ({words})"),
            (_, name, words) => format!("{name} ({words})"),
        }
    }
}

/// Kinds of directory entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a socket or a pipe.
    Other,
}

impl Kind {
    /// Both versions number the kinds alike.
    pub(crate) fn of(number: u32) -> Kind {
        match number {
            1 => Kind::File,
            2 => Kind::Directory,
            5 => Kind::Link,
            _ => Kind::Other,
        }
    }
}

/// The attributes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The kind of the file.
    pub kind: Kind,
    /// The size of the file in bytes.
    pub size: u64,
    /// The storage that the file occupies in bytes.
    pub used: u64,
}

/// A server's verifier, which changes when the server restarts.
pub(crate) type Verifier = [u8; 8];

pub(crate) fn verifier(reader: &mut Reader<'_>) -> Result<Verifier, NfsError> {
    let bytes = reader.take(8)?;
    Ok(bytes.try_into().expect("there are eight"))
}

/// The kind of a call whose answer a function of the session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A procedure of version 3.
    Procedure(u32),
    /// Operations of version 4. The server keeps the answer if repeating them would do something else.
    Compound {
        /// How many.
        operations: u32,
        /// The server keeps the answer.
        is_kept: bool,
    },
    /// One operation of version 4 that needs no session.
    WithoutSession,
}

/// What the answer to a read, a write or a commit says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The server refuses, with this status.
    Refused(u32),
    /// So many bytes follow, and the file may end after them.
    Read {
        /// The file ends after the data.
        is_end: bool,
        /// The number of bytes.
        length: usize,
    },
    /// So many bytes were written.
    Written {
        /// The number of bytes.
        count: usize,
        /// They are on stable storage.
        is_stable: bool,
        /// The server's verifier.
        verifier: Verifier,
    },
    /// Earlier writes are on stable storage, if the verifier has not changed.
    Committed(Verifier),
    /// The lease is renewed.
    Renewed,
}

/// An entry of a directory.
pub(crate) struct Entry {
    pub(crate) name: String,
    /// `None` = the server has not told it.
    pub(crate) kind: Option<Kind>,
}

/// A part of a directory.
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    /// Where the next part begins.
    pub(crate) cookie: u64,
    /// The server's proof that the cookie is still valid.
    pub(crate) proof: [u8; 8],
    /// There is no next part.
    pub(crate) is_end: bool,
}

/// A version of the protocol: how requests and answers look, and what they act on.
///
/// Paths are for messages. Functions that get the session make calls and wait for their answers.
pub(crate) trait Protocol: Sync {
    fn version(&self) -> Version;

    /// Appends the call in this slot, without the data of a write. Returns where it begins.
    fn write_request(&self, to: &mut Vec<u8>, calls: &Calls, place: usize, caller: &Caller) -> usize;

    /// Reads the answer to a read, a write or a commit, up to the data of a read.
    fn read_answer(&self, what: What, reader: &mut Reader<'_>) -> Result<Answer, NfsError>;

    /// Learns the root and the limits of the server, on the first connection.
    fn begin(&self, session: &mut Session) -> Result<(), NfsError>;

    /// Makes a new connection ready for calls.
    fn resume(&self, session: &mut Session) -> Result<(), NfsError>;

    /// Opens files again whose state the server no longer knows.
    fn reopen(&self, session: &mut Session) -> Result<(), NfsError>;

    /// Takes leave of the server.
    fn leave(&self, session: &mut Session);

    /// The entry of a directory: its handle and attributes; `None` = there is none.
    fn look_up(
        &self,
        session: &mut Session,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<Option<(Vec<u8>, Attributes)>, NfsError>;

    fn attributes(&self, session: &mut Session, handle: &[u8], path: &str) -> Result<Attributes, NfsError>;

    /// Makes a directory, unless there is one, and returns its handle.
    fn make_directory(
        &self,
        session: &mut Session,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<Vec<u8>, NfsError>;

    /// Opens a regular file; `writes` = not only to read it.
    fn open(
        &self,
        session: &mut Session,
        handle: Vec<u8>,
        path: &str,
        writes: bool,
    ) -> Result<Opened, NfsError>;

    /// Opens a regular file, and creates it if there is none.
    fn create(
        &self,
        session: &mut Session,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<Opened, NfsError>;

    fn close(&self, session: &mut Session, file: &Opened) -> Result<(), NfsError>;

    fn set_size(&self, session: &mut Session, file: &Opened, size: u64) -> Result<(), NfsError>;

    /// How many bytes are free for this user.
    fn free(&self, session: &mut Session) -> Result<u64, NfsError>;

    /// Writes on the current connection. Returns how many bytes were written, and the server's verifier.
    fn write_now(
        &self,
        session: &mut Session,
        file: &Opened,
        offset: u64,
        data: &[u8],
    ) -> Result<(usize, Verifier), NfsError>;

    /// Commits all writes to a file, on the current connection.
    fn commit_now(&self, session: &mut Session, file: &Opened) -> Result<Verifier, NfsError>;

    /// Removes an entry of a directory, on the current connection.
    fn remove(&self, session: &mut Session, directory: &[u8], name: &str, path: &str)
    -> Result<(), NfsError>;

    /// The part of a directory that begins at this cookie.
    fn list(
        &self,
        session: &mut Session,
        directory: &[u8],
        from: (u64, [u8; 8]),
        path: &str,
    ) -> Result<Page, NfsError>;
}

/// Appends the arguments of a call.
pub(crate) type Arguments<'a> = &'a dyn Fn(&mut Writer<'_>);
