//! Version 3 (RFC 1813): its procedures and their answers.

mod mount;
mod status;

pub(crate) use self::mount::{USUAL_PORT, mount, port_of_nfs};
pub(crate) use self::status::status;

use crate::NfsError;
use crate::protocol::{
    Answer, Ask, Attributes, Entry, HANDLE, Kind, MOST_MOVED, Page, Protocol, Verifier, Version, verifier,
};
use crate::rpc::{self, Caller, Program};
use crate::session::{Calls, Opened, Session, Stability, What};
use crate::xdr::{Reader, Writer};

pub(crate) const NFS: Program = Program { number: 100_003, version: 3 };

/// The procedures that this client uses.
pub(crate) mod procedure {
    pub(crate) const GETATTR: u32 = 1;
    pub(crate) const SETATTR: u32 = 2;
    pub(crate) const LOOKUP: u32 = 3;
    pub(crate) const READ: u32 = 6;
    pub(crate) const WRITE: u32 = 7;
    pub(crate) const CREATE: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const REMOVE: u32 = 12;
    pub(crate) const READDIRPLUS: u32 = 17;
    pub(crate) const FSSTAT: u32 = 18;
    pub(crate) const FSINFO: u32 = 19;
    pub(crate) const COMMIT: u32 = 21;
}

/// The mode of new files: the owner may read and write, others may read.
const MODE: u32 = 0o644;
const MODE_OF_DIRECTORY: u32 = 0o755;

/// How many bytes of a directory to request at once.
const PAGE: u32 = 64 << 10;

fn read_attributes(reader: &mut Reader<'_>) -> Result<Attributes, NfsError> {
    let kind = Kind::of(reader.u32()?);
    // Mode, links, user, group.
    reader.take(16)?;
    let (size, used) = (reader.u64()?, reader.u64()?);
    // Device, file system, number, three times.
    reader.take(8 + 8 + 8 + 24)?;
    Ok(Attributes { kind, size, used })
}

/// Reads optional attributes; `None` = the server has left them out.
fn attributes_after(reader: &mut Reader<'_>) -> Result<Option<Attributes>, NfsError> {
    Ok(if reader.boolean()? { Some(read_attributes(reader)?) } else { None })
}

/// Skips the attributes of a file before and after a change.
fn skip_change(reader: &mut Reader<'_>) -> Result<(), NfsError> {
    if reader.boolean()? {
        reader.take(24)?;
    }
    attributes_after(reader)?;
    Ok(())
}

/// Creates a file or a directory, unless it has come to exist in the meantime. Returns its handle.
fn make(
    session: &mut Session,
    number: u32,
    directory: &[u8],
    name: &str,
    path: &str,
) -> Result<Vec<u8>, NfsError> {
    let is_file = number == procedure::CREATE;
    let mode = if is_file { MODE } else { MODE_OF_DIRECTORY };
    let answer = session.call(Ask::Procedure(number), &|writer| {
        writer.opaque(directory).opaque(name.as_bytes());
        if is_file {
            // UNCHECKED: an existing file is not an error.
            writer.u32(0);
        }
        // Sets the mode, but not the user, group, size or times.
        writer.u32(1).u32(mode).u32(0).u32(0).u32(0).u32(0).u32(0);
    })?;
    let mut reader = Reader::new(&answer);
    let verb = if is_file { "CREATE" } else { "MKDIR" };
    match granted(&mut reader, || format!("{verb} {path}")) {
        Err(NfsError::Refused { code: 17, .. }) => {}
        result => {
            result?;
            if reader.boolean()? {
                return Ok(reader.opaque(HANDLE)?.to_vec());
            }
        }
    }
    let found = Three.look_up(session, directory, name, path)?;
    found.map(|(handle, _)| handle).ok_or_else(|| refused(format!("{verb} {path}"), 2))
}

fn refused(what: String, code: u32) -> NfsError {
    NfsError::Refused { what, code, version: Version::Three }
}

/// Reads the status of an answer. An error status becomes an error.
fn granted(reader: &mut Reader<'_>, what: impl FnOnce() -> String) -> Result<(), NfsError> {
    match reader.u32()? {
        0 => Ok(()),
        code => Err(refused(what(), code)),
    }
}

/// Version 3.
pub(crate) struct Three;

impl Protocol for Three {
    fn version(&self) -> Version {
        Version::Three
    }

    fn write_request(&self, to: &mut Vec<u8>, calls: &Calls, place: usize, caller: &Caller) -> usize {
        let slot = &calls.slots[place];
        let number = match slot.what {
            What::Read => procedure::READ,
            What::Write => procedure::WRITE,
            _ => procedure::COMMIT,
        };
        let start = rpc::begin(to, slot.id, NFS, number, caller);
        let mut writer = Writer(to);
        writer.opaque(calls.opened(place).map_or(&[], |file| &file.handle));
        match slot.what {
            What::Write => {
                let length = slot.length as u32;
                writer.u64(slot.offset).u32(length).u32(slot.stability as u32).u32(length);
            }
            // A commit covers the whole file.
            What::Commit => drop(writer.u64(0).u32(0)),
            _ => drop(writer.u64(slot.offset).u32(slot.length as u32)),
        }
        start
    }

    fn read_answer(&self, what: What, reader: &mut Reader<'_>) -> Result<Answer, NfsError> {
        match reader.u32()? {
            0 => {}
            code => return Ok(Answer::Refused(code)),
        }
        Ok(match what {
            What::Read => {
                attributes_after(reader)?;
                let (count, is_end, length) = (reader.u32()?, reader.boolean()?, reader.u32()?);
                if length != count {
                    return Err(NfsError::Malformed);
                }
                Answer::Read { is_end, length: length as usize }
            }
            What::Write => {
                skip_change(reader)?;
                let (count, stability) = (reader.u32()? as usize, reader.u32()?);
                Answer::Written { count, is_stable: stability != 0, verifier: verifier(reader)? }
            }
            _ => {
                skip_change(reader)?;
                Answer::Committed(verifier(reader)?)
            }
        })
    }

    /// The mount protocol has told the root already.
    fn begin(&self, session: &mut Session) -> Result<(), NfsError> {
        let root = session.root.clone();
        let answer = session.call(Ask::Procedure(procedure::FSINFO), &|writer| {
            writer.opaque(&root);
        })?;
        let mut reader = Reader::new(&answer);
        granted(&mut reader, || "FSINFO".to_owned())?;
        attributes_after(&mut reader)?;
        let (most_read, _, _, most_written) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        // (No real server answers zero. The minimum makes sure that requests can be sent at all.)
        session.most_read = (most_read as usize).clamp(512, MOST_MOVED);
        session.most_written = (most_written as usize).clamp(512, MOST_MOVED);
        Ok(())
    }

    fn resume(&self, _: &mut Session) -> Result<(), NfsError> {
        Ok(())
    }

    fn reopen(&self, _: &mut Session) -> Result<(), NfsError> {
        Ok(())
    }

    fn leave(&self, _: &mut Session) {}

    fn look_up(
        &self,
        session: &mut Session,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<Option<(Vec<u8>, Attributes)>, NfsError> {
        let answer = session.call(Ask::Procedure(procedure::LOOKUP), &|writer| {
            writer.opaque(directory).opaque(name.as_bytes());
        })?;
        let mut reader = Reader::new(&answer);
        match granted(&mut reader, || format!("LOOKUP {path}")) {
            Err(NfsError::Refused { code: 2, .. }) => return Ok(None),
            result => result?,
        }
        let handle = reader.opaque(HANDLE)?.to_vec();
        let attributes = match attributes_after(&mut reader)? {
            Some(attributes) => attributes,
            None => self.attributes(session, &handle, path)?,
        };
        Ok(Some((handle, attributes)))
    }

    fn attributes(&self, session: &mut Session, handle: &[u8], path: &str) -> Result<Attributes, NfsError> {
        let answer = session.call(Ask::Procedure(procedure::GETATTR), &|writer| {
            writer.opaque(handle);
        })?;
        let mut reader = Reader::new(&answer);
        granted(&mut reader, || format!("GETATTR {path}"))?;
        read_attributes(&mut reader)
    }

    fn make_directory(
        &self,
        session: &mut Session,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<Vec<u8>, NfsError> {
        make(session, procedure::MKDIR, directory, name, path)
    }

    fn open(&self, _: &mut Session, handle: Vec<u8>, path: &str, _: bool) -> Result<Opened, NfsError> {
        Ok(Opened::new(handle, path.to_owned()))
    }

    fn create(
        &self,
        session: &mut Session,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<Opened, NfsError> {
        let handle = make(session, procedure::CREATE, directory, name, path)?;
        Ok(Opened::new(handle, path.to_owned()))
    }

    fn close(&self, _: &mut Session, _: &Opened) -> Result<(), NfsError> {
        Ok(())
    }

    fn set_size(&self, session: &mut Session, file: &Opened, size: u64) -> Result<(), NfsError> {
        let answer = session.call(Ask::Procedure(procedure::SETATTR), &|writer| {
            // Sets the size, but not the mode, user, group or times, and without a guard against changes in the
            // meantime.
            writer.opaque(&file.handle).u32(0).u32(0).u32(0).u32(1).u64(size).u32(0).u32(0).u32(0);
        })?;
        granted(&mut Reader::new(&answer), || format!("SETATTR {} size {size}", file.name))
    }

    fn free(&self, session: &mut Session) -> Result<u64, NfsError> {
        let root = session.root.clone();
        let answer = session.call(Ask::Procedure(procedure::FSSTAT), &|writer| {
            writer.opaque(&root);
        })?;
        let mut reader = Reader::new(&answer);
        granted(&mut reader, || "FSSTAT".to_owned())?;
        attributes_after(&mut reader)?;
        let (_, _) = (reader.u64()?, reader.u64()?);
        reader.u64()
    }

    fn write_now(
        &self,
        session: &mut Session,
        file: &Opened,
        offset: u64,
        data: &[u8],
    ) -> Result<(usize, Verifier), NfsError> {
        let answer = session.patiently(Ask::Procedure(procedure::WRITE), &|writer| {
            let (length, stability) = (data.len() as u32, Stability::Unstable as u32);
            writer.opaque(&file.handle).u64(offset).u32(length).u32(stability).opaque(data);
        })?;
        let mut reader = Reader::new(&answer);
        granted(&mut reader, || format!("WRITE {} at {offset}, {} bytes", file.name, data.len()))?;
        skip_change(&mut reader)?;
        let (count, _) = (reader.u32()? as usize, reader.u32()?);
        Ok((count, verifier(&mut reader)?))
    }

    fn commit_now(&self, session: &mut Session, file: &Opened) -> Result<Verifier, NfsError> {
        let answer = session.patiently(Ask::Procedure(procedure::COMMIT), &|writer| {
            writer.opaque(&file.handle).u64(0).u32(0);
        })?;
        let mut reader = Reader::new(&answer);
        granted(&mut reader, || format!("COMMIT {}", file.name))?;
        skip_change(&mut reader)?;
        verifier(&mut reader)
    }

    fn remove(
        &self,
        session: &mut Session,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<(), NfsError> {
        let answer = session.patiently(Ask::Procedure(procedure::REMOVE), &|writer| {
            writer.opaque(directory).opaque(name.as_bytes());
        })?;
        granted(&mut Reader::new(&answer), || format!("REMOVE {path}"))
    }

    fn list(
        &self,
        session: &mut Session,
        directory: &[u8],
        (mut cookie, proof): (u64, [u8; 8]),
        path: &str,
    ) -> Result<Page, NfsError> {
        let answer = session.call(Ask::Procedure(procedure::READDIRPLUS), &|writer| {
            writer.opaque(directory).u64(cookie);
            writer.0.extend_from_slice(&proof);
            writer.u32(PAGE / 4).u32(PAGE);
        })?;
        let mut reader = Reader::new(&answer);
        granted(&mut reader, || format!("READDIR {path}"))?;
        attributes_after(&mut reader)?;
        let proof = verifier(&mut reader)?;
        let mut entries = Vec::new();
        while reader.boolean()? {
            reader.u64()?;
            let name = String::from_utf8_lossy(reader.opaque(4096)?).into_owned();
            cookie = reader.u64()?;
            let kind = attributes_after(&mut reader)?.map(|attributes| attributes.kind);
            if reader.boolean()? {
                reader.opaque(HANDLE)?;
            }
            entries.push(Entry { name, kind });
        }
        Ok(Page { entries, cookie, proof, is_end: reader.boolean()? })
    }
}
