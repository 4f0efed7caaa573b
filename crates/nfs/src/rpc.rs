//! Calls and replies of remote procedures (ONC RPC, RFC 5531), and the caller's credentials (AUTH_SYS).

use crate::NfsError;
use crate::url::Address;
use crate::xdr::{Reader, Writer};

/// A program on the server, with its version.
#[derive(Clone, Copy)]
pub(crate) struct Program {
    pub(crate) number: u32,
    pub(crate) version: u32,
}

/// The bit that marks the last fragment of a record: the high bit of the length before a fragment.
pub(crate) const LAST: u32 = 1 << 31;

/// The maximum number of groups in a call.
const MOST_GROUPS: usize = 16;

/// The caller's credentials, encoded.
pub(crate) struct Caller(Vec<u8>);

impl Caller {
    /// The user named in an address, or the user of this process.
    pub(crate) fn new(address: &Address) -> Caller {
        // SAFETY: both calls take no arguments and cannot fail.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        let is_self = address.uid.is_none() && address.gid.is_none();
        let mut groups = if is_self { groups() } else { Vec::new() };
        groups.truncate(MOST_GROUPS);
        let mut body = Vec::new();
        let mut writer = Writer(&mut body);
        writer.u32(std::process::id()).opaque(machine().as_bytes());
        writer.u32(address.uid.unwrap_or(uid)).u32(address.gid.unwrap_or(gid)).u32(groups.len() as u32);
        for group in groups {
            writer.u32(group);
        }
        let mut said = Vec::new();
        // The credentials are AUTH_SYS, and the verifier is empty.
        Writer(&mut said).u32(1).opaque(&body).u32(0).u32(0);
        Caller(said)
    }
}

/// The supplementary groups of this process.
fn groups() -> Vec<libc::gid_t> {
    // SAFETY: with a length of 0 nothing is written.
    let count = unsafe { libc::getgroups(0, std::ptr::null_mut()) };
    let mut groups = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: there is room for the number of groups that is passed.
    let count = unsafe { libc::getgroups(groups.len() as libc::c_int, groups.as_mut_ptr()) };
    groups.truncate(usize::try_from(count).unwrap_or(0));
    groups
}

/// The name of this machine, which is part of the credentials.
fn machine() -> String {
    let mut name = [0_u8; 65];
    // SAFETY: there is room for the number of bytes that is passed, and one more, which stays zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// Appends the head of a call, preceded by four bytes for the length of the record. Returns where the record begins.
pub(crate) fn begin(
    bytes: &mut Vec<u8>,
    id: u32,
    program: Program,
    procedure: u32,
    caller: &Caller,
) -> usize {
    let start = bytes.len();
    Writer(bytes).u32(0).u32(id).u32(0).u32(2).u32(program.number).u32(program.version).u32(procedure);
    bytes.extend_from_slice(&caller.0);
    start
}

/// Fills in the length of the record that begins at `start`. `beside` bytes of the record are not in this buffer.
pub(crate) fn end(bytes: &mut [u8], start: usize, beside: usize) {
    let length = (bytes.len() - start - 4 + beside) as u32;
    bytes[start..start + 4].copy_from_slice(&(LAST | length).to_be_bytes());
}

/// Whether a record, after its number, is a call of the server rather than a reply.
pub(crate) fn is_call(reader: &Reader<'_>) -> bool {
    reader.clone().u32() == Ok(0)
}

/// Appends the answer to a call of the server with this number: there is no such program here.
pub(crate) fn decline(bytes: &mut Vec<u8>, id: u32) {
    let start = bytes.len();
    Writer(bytes).u32(0).u32(id).u32(1).u32(0).u32(0).u32(0).u32(1);
    end(bytes, start, 0);
}

/// Reads the head of a reply, after its number. The results of the call follow.
pub(crate) fn accepted(reader: &mut Reader<'_>) -> Result<(), NfsError> {
    let said = |text: &str| Err(NfsError::Call(text.to_owned()));
    match (reader.u32()?, reader.u32()?) {
        (1, 0) => {}
        (1, 1) => {
            return match reader.u32()? {
                0 => said("it speaks another version of the RPC protocol"),
                _ => said(
                    "it does not accept the credentials (AUTH_SYS); if it requires Kerberos, which this engine does not \
                     support, export it with sec=sys as well",
                ),
            };
        }
        _ => return Err(NfsError::Malformed),
    }
    reader.u32()?;
    reader.opaque(400)?;
    match reader.u32()? {
        0 => Ok(()),
        1 => said("it does not have the program"),
        2 => said("it does not have this version of the program"),
        3 => said("it does not have the procedure"),
        4 => said("it cannot decode the call"),
        _ => said("it has an internal error"),
    }
}
