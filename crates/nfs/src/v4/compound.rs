//! The heads of calls, and the results of operations.

use crate::NfsError;
use crate::protocol::Version;
use crate::rpc::{self, Caller, Program};
use crate::xdr::{Reader, Writer};

const NFS: Program = Program { number: 100_003, version: 4 };

/// The only procedure beside one that does nothing.
const COMPOUND: u32 = 1;
const MINOR_VERSION: u32 = 1;

/// The maximum length of the tag of an answer.
const TAG: usize = 1024;

/// The operations that this client uses.
pub(crate) mod operation {
    pub(crate) const CLOSE: u32 = 4;
    pub(crate) const COMMIT: u32 = 5;
    pub(crate) const CREATE: u32 = 6;
    pub(crate) const DELEGRETURN: u32 = 8;
    pub(crate) const GETATTR: u32 = 9;
    pub(crate) const GETFH: u32 = 10;
    pub(crate) const LOOKUP: u32 = 15;
    pub(crate) const OPEN: u32 = 18;
    pub(crate) const PUTFH: u32 = 22;
    pub(crate) const PUTROOTFH: u32 = 24;
    pub(crate) const READ: u32 = 25;
    pub(crate) const READDIR: u32 = 26;
    pub(crate) const REMOVE: u32 = 28;
    pub(crate) const SETATTR: u32 = 34;
    pub(crate) const WRITE: u32 = 38;
    pub(crate) const EXCHANGE_ID: u32 = 42;
    pub(crate) const CREATE_SESSION: u32 = 43;
    pub(crate) const DESTROY_SESSION: u32 = 44;
    pub(crate) const SEQUENCE: u32 = 53;
    pub(crate) const TEST_STATEID: u32 = 55;
    pub(crate) const DESTROY_CLIENTID: u32 = 57;
    pub(crate) const RECLAIM_COMPLETE: u32 = 58;
}

/// Appends the head of a compound of so many operations, which follow. Returns where it begins.
pub(crate) fn begin(bytes: &mut Vec<u8>, id: u32, caller: &Caller, operations: u32) -> usize {
    let start = rpc::begin(bytes, id, NFS, COMPOUND, caller);
    // No tag.
    Writer(bytes).u32(0).u32(MINOR_VERSION).u32(operations);
    start
}

/// Reads the head of an answer: its status, which is that of the last operation that was performed, and the number
/// of results.
pub(super) fn head(reader: &mut Reader<'_>) -> Result<(u32, u32), NfsError> {
    let status = reader.u32()?;
    reader.opaque(TAG)?;
    Ok((status, reader.u32()?))
}

/// Reads the status of the next operation, which must be this one.
pub(super) fn status_of(operation: u32, reader: &mut Reader<'_>) -> Result<u32, NfsError> {
    if reader.u32()? != operation {
        return Err(NfsError::Malformed);
    }
    reader.u32()
}

pub(super) fn refused(what: String, code: u32) -> NfsError {
    NfsError::Refused { what, code, version: Version::Four }
}

/// The results of the operations of a call, in order.
pub(super) struct Results<'a, W> {
    reader: Reader<'a>,
    what: W,
}

impl<'a, W: Fn() -> String> Results<'a, W> {
    /// The results after SEQUENCE. The answer begins with its status.
    pub(super) fn of(answer: &'a [u8], what: W) -> Result<Self, NfsError> {
        let mut reader = Reader::new(answer);
        reader.u32()?;
        Ok(Results { reader, what })
    }

    /// The results of a call without a session.
    pub(super) fn without_session(answer: &'a [u8], what: W) -> Result<Self, NfsError> {
        let mut reader = Reader::new(answer);
        match head(&mut reader)? {
            // Not even the first operation was looked at.
            (code @ 1.., 0) => Err(refused(what(), code)),
            _ => Ok(Results { reader, what }),
        }
    }

    /// The result of the next operation, which must be this one. An error status becomes an error.
    pub(super) fn next(&mut self, operation: u32) -> Result<&mut Reader<'a>, NfsError> {
        match status_of(operation, &mut self.reader)? {
            0 => Ok(&mut self.reader),
            code => Err(refused((self.what)(), code)),
        }
    }
}
