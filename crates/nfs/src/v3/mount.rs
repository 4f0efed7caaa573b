//! Finds the ports of a server and the handle of its export, with the port mapper and the mount protocol.

use crate::protocol::HANDLE;
use crate::rpc::{self, Caller, Program};
use crate::socket::{Deadline, connect};
use crate::url::Address;
use crate::xdr::{Reader, Writer};
use crate::{NfsError, v3};
use std::io::Write;

const PORT_MAPPER: Program = Program { number: 100_000, version: 2 };
const MOUNT: Program = Program { number: 100_005, version: 3 };

/// The port of the port mapper.
const PORT_OF_MAPPER: u16 = 111;
/// The default port of NFS.
pub(crate) const USUAL_PORT: u16 = 2049;

/// The port of NFS on a server. Many servers with a firewall, and those of version 4 only, have no reachable port
/// mapper. The usual port of NFS is then assumed; if that is wrong, connecting fails with a message that names the
/// port.
pub(crate) fn port_of_nfs(
    address: &Address,
    caller: &Caller,
    deadline: &mut Deadline,
) -> Result<u16, NfsError> {
    if let Some(port) = address.nfs_port {
        return Ok(port);
    }
    match mapped(address, v3::NFS, caller, deadline) {
        Ok(port) => Ok(port),
        Err(error) if deadline.is_given_up() => Err(error),
        Err(_) => Ok(USUAL_PORT),
    }
}

/// Mounts an export and returns its handle.
pub(crate) fn mount(
    address: &Address,
    caller: &Caller,
    deadline: &mut Deadline,
) -> Result<Vec<u8>, NfsError> {
    let port = match address.mount_port {
        Some(port) => port,
        None => mapped(address, MOUNT, caller, deadline)?,
    };
    let answer = ask(address, port, MOUNT, 1, caller, deadline, |writer| {
        writer.opaque(address.export.as_bytes());
    })?;
    let mut reader = Reader::new(&answer);
    let refused = |why: &str, errno| {
        Err(NfsError::Mount { export: address.export.clone(), why: why.to_owned(), errno })
    };
    match reader.u32()? {
        0 => {}
        1 => return refused("not permitted", libc::EPERM),
        2 => return refused("there is no such export", libc::ENOENT),
        5 => return refused("input or output error", libc::EIO),
        13 => return refused("it is not exported, or not to this machine or this port", libc::EACCES),
        20 => return refused("it is not a directory", libc::ENOTDIR),
        63 => return refused("the name is too long", libc::ENAMETOOLONG),
        code => return refused(&format!("error {code} of the mount protocol"), libc::EIO),
    }
    let handle = reader.opaque(HANDLE)?.to_vec();
    let count = reader.u32()?;
    let mut flavours = Vec::new();
    for _ in 0..count.min(64) {
        flavours.push(reader.u32()?);
    }
    // A server that lists no flavour of authentication allows all.
    if !flavours.is_empty() && !flavours.iter().any(|flavour| matches!(flavour, 0 | 1)) {
        return refused("the server requires Kerberos, which this engine does not support", libc::EACCES);
    }
    Ok(handle)
}

/// Asks the server's port mapper for the port of a program.
fn mapped(
    address: &Address,
    program: Program,
    caller: &Caller,
    deadline: &mut Deadline,
) -> Result<u16, NfsError> {
    let answer = ask(address, PORT_OF_MAPPER, PORT_MAPPER, 3, caller, deadline, |writer| {
        // Over TCP.
        writer.u32(program.number).u32(program.version).u32(6).u32(0);
    })
    .map_err(|error| match error {
        // Otherwise it is not the port mapper that is missing, but the machine.
        NfsError::Unreachable { server, why, errno: errno @ (libc::ECONNREFUSED | libc::ETIMEDOUT) } => {
            NfsError::Unreachable {
                server,
                why: format!(
                    "{why}: the server's port mapper, which knows its ports, does not answer; give \
                 nfs_url=…?nfsport=PORT&mountport=PORT"
                ),
                errno,
            }
        }
        error => error,
    })?;
    let port = Reader::new(&answer).u32()?;
    u16::try_from(port).ok().filter(|&port| port > 0).ok_or_else(|| NfsError::Mount {
        export: address.export.clone(),
        why: "the server has no mount service of version 3 over TCP (if it serves only NFS 4, add version=4 to nfs_url)".to_owned(),
        errno: libc::EPROTONOSUPPORT,
    })
}

/// Makes one call on a separate connection.
fn ask(
    address: &Address,
    port: u16,
    program: Program,
    procedure: u32,
    caller: &Caller,
    deadline: &mut Deadline,
    arguments: impl FnOnce(&mut Writer<'_>),
) -> Result<Vec<u8>, NfsError> {
    let host = &address.host;
    let server = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let connected = connect(address, port, deadline);
    let mut stream = connected.map_err(|error| deadline.error(&server, &error))?;
    let mut call = Vec::new();
    let id = std::process::id();
    let start = rpc::begin(&mut call, id, program, procedure, caller);
    arguments(&mut Writer(&mut call));
    rpc::end(&mut call, start, 0);
    stream.write_all(&call).map_err(|error| deadline.error(&server, &error))?;
    deadline.begin_step();
    let mut read = |to: &mut [u8]| {
        let read = deadline.read_exact(&mut stream, to);
        read.map_err(|error| deadline.error(&server, &error))
    };
    let mut record = Vec::new();
    loop {
        let mut mark = [0; 4];
        read(&mut mark)?;
        let mark = u32::from_be_bytes(mark);
        let length = (mark & !rpc::LAST) as usize;
        if record.len() + length > 1 << 20 {
            return Err(NfsError::Malformed);
        }
        let start = record.len();
        record.resize(start + length, 0);
        read(&mut record[start..])?;
        if mark & rpc::LAST != 0 {
            break;
        }
    }
    let mut reader = Reader::new(&record);
    if reader.u32()? != id {
        return Err(NfsError::Malformed);
    }
    rpc::accepted(&mut reader)?;
    let at = reader.at();
    Ok(record.split_off(at))
}
