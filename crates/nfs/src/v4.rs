//! Version 4, with minor version 1 (RFC 8881).
//!
//! All calls are compounds of operations. A client introduces itself (EXCHANGE_ID) and makes a session
//! (CREATE_SESSION), whose slots limit how many calls are in flight. Each compound begins with SEQUENCE, which names a
//! slot and the number of the call in it. A call that is repeated over another connection with the same slot and number
//! is performed once: the server answers it again from its memory. SEQUENCE also renews the lease, without which the
//! server forgets the open files of the client.
//!
//! If the server has forgotten the session, the client makes another one. If it has forgotten the client as well, because
//! it restarted or the lease ran out, the client reclaims its open files (OPEN with CLAIM_PREVIOUS), or opens them again
//! by their handles (CLAIM_FH). Delegations are not wanted, and there is no channel for the server's own calls.
//!
//! | file | what |
//! |---|---|
//! | `compound.rs` | the heads of calls and the results of operations |
//! | `slots.rs` | the slots of a session |
//! | `client.rs` | clients, sessions, and what to do when the server has forgotten them |
//! | `open.rs` | opens and closes files |
//! | `attributes.rs` | the encoding of attributes |
//! | `status.rs` | the statuses in answers |
//! | `samples.rs` | answers for tests that damage them |

mod attributes;
mod client;
mod compound;
mod open;
mod samples;
mod slots;
mod status;

pub(crate) use self::client::Client;
pub(crate) use self::compound::begin;
pub(crate) use self::open::State;
pub(crate) use self::samples::{samples, take_part};
pub(crate) use self::slots::{Sequenced, SlotTable};
pub(crate) use self::status::{GRACE, REP_TOO_BIG, REQ_TOO_BIG, RETRY_UNCACHED, has_lost_state, status};

use self::attributes::{Given, read_attributes, skip_bitmap, want};
use self::compound::{Results, operation as op, refused};
use crate::NfsError;
use crate::protocol::{Answer, Ask, Attributes, Entry, HANDLE, Page, Protocol, Verifier, Version, verifier};
use crate::rpc::Caller;
use crate::session::{Calls, Opened, Session, Stability, What};
use crate::xdr::{Reader, Writer};

/// The mode of new files: the owner may read and write, others may read.
const MODE: u32 = 0o644;
const MODE_OF_DIRECTORY: u32 = 0o755;

/// How many bytes of a directory to request at once, unless the session's answers are smaller.
const PAGE: usize = 64 << 10;

/// An upper bound of what a call or an answer contains beside the data of a read or a write.
const AROUND: usize = 1024;

/// Operations in one compound, beside SEQUENCE.
const fn compound(operations: u32) -> Ask {
    Ask::Compound { operations, is_kept: false }
}

/// The same for operations that must be performed once.
const fn once(operations: u32) -> Ask {
    Ask::Compound { operations, is_kept: true }
}

/// Version 4.1.
pub(crate) struct Four;

impl Protocol for Four {
    fn version(&self) -> Version {
        Version::Four
    }

    fn write_request(&self, to: &mut Vec<u8>, calls: &Calls, place: usize, caller: &Caller) -> usize {
        let slot = &calls.slots[place];
        let operations = if slot.what == What::Renew { 0 } else { 2 };
        let start = compound::begin(to, slot.id, caller, operations + 1);
        let mut writer = Writer(to);
        calls.table.sequence(slot.session_slot.unwrap_or_default(), false, &mut writer);
        let Some(file) = calls.opened(place) else { return start };
        writer.u32(op::PUTFH).opaque(&file.handle);
        match slot.what {
            What::Read => {
                file.state.write(writer.u32(op::READ));
                writer.u64(slot.offset).u32(slot.length as u32);
            }
            What::Write => {
                file.state.write(writer.u32(op::WRITE));
                writer.u64(slot.offset).u32(slot.stability as u32).u32(slot.length as u32);
            }
            // A commit covers the whole file.
            _ => drop(writer.u32(op::COMMIT).u64(0).u32(0)),
        }
        start
    }

    fn read_answer(&self, what: What, reader: &mut Reader<'_>) -> Result<Answer, NfsError> {
        let own = match what {
            What::Read => op::READ,
            What::Write => op::WRITE,
            What::Commit => op::COMMIT,
            What::Renew | What::Plain | What::Nothing => return Ok(Answer::Renewed),
        };
        for operation in [op::PUTFH, own] {
            if let code @ 1.. = compound::status_of(operation, reader)? {
                return Ok(Answer::Refused(code));
            }
        }
        Ok(match what {
            What::Read => Answer::Read { is_end: reader.boolean()?, length: reader.u32()? as usize },
            What::Write => {
                let (count, stability) = (reader.u32()? as usize, reader.u32()?);
                Answer::Written { count, is_stable: stability != 0, verifier: verifier(reader)? }
            }
            _ => Answer::Committed(verifier(reader)?),
        })
    }

    fn begin(&self, session: &mut Session) -> Result<(), NfsError> {
        session.over_any_connection(client::resume)?;
        self.find_root(session)?;
        let root = session.root.clone();
        let limits = self.given(session, &root, &attributes::LIMITS, "the export")?;
        session.client.export = (limits.most_read, limits.most_written);
        client::limit(session);
        session.client.set_lease(limits.lease);
        Ok(())
    }

    fn resume(&self, session: &mut Session) -> Result<(), NfsError> {
        client::resume(session)
    }

    fn reopen(&self, session: &mut Session) -> Result<(), NfsError> {
        open::reopen(session)
    }

    fn leave(&self, session: &mut Session) {
        client::leave(session);
    }

    fn look_up(
        &self,
        session: &mut Session,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<Option<(Vec<u8>, Attributes)>, NfsError> {
        let answer = session.call(compound(4), &|writer| {
            writer.u32(op::PUTFH).opaque(directory).u32(op::LOOKUP).opaque(name.as_bytes()).u32(op::GETFH);
            want(writer, &attributes::OF_FILE);
        })?;
        let mut results = Results::of(&answer, || format!("LOOKUP {path}"))?;
        results.next(op::PUTFH)?;
        match results.next(op::LOOKUP) {
            Err(NfsError::Refused { code: 2, .. }) => return Ok(None),
            result => result.map(drop)?,
        }
        let handle = results.next(op::GETFH)?.opaque(HANDLE)?.to_vec();
        let attributes = read_attributes(results.next(op::GETATTR)?)?.of_file()?;
        Ok(Some((handle, attributes)))
    }

    fn attributes(&self, session: &mut Session, handle: &[u8], path: &str) -> Result<Attributes, NfsError> {
        self.given(session, handle, &attributes::OF_FILE, path)?.of_file()
    }

    fn make_directory(
        &self,
        session: &mut Session,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<Vec<u8>, NfsError> {
        let answer = session.call(once(3), &|writer| {
            writer.u32(op::PUTFH).opaque(directory).u32(op::CREATE).u32(DIRECTORY).opaque(name.as_bytes());
            attributes::mode(writer, MODE_OF_DIRECTORY);
            writer.u32(op::GETFH);
        })?;
        let mut results = Results::of(&answer, || format!("MKDIR {path}"))?;
        results.next(op::PUTFH)?;
        match results.next(op::CREATE) {
            // It has come to exist in the meantime.
            Err(NfsError::Refused { code: 17, .. }) => {
                let found = self.look_up(session, directory, name, path)?;
                return found.map(|(handle, _)| handle).ok_or_else(|| refused(format!("MKDIR {path}"), 2));
            }
            result => {
                let reader = result?;
                skip_change(reader)?;
                skip_bitmap(reader)?;
            }
        }
        Ok(results.next(op::GETFH)?.opaque(HANDLE)?.to_vec())
    }

    fn open(
        &self,
        session: &mut Session,
        handle: Vec<u8>,
        path: &str,
        writes: bool,
    ) -> Result<Opened, NfsError> {
        let mut opened = Opened::new(handle, path.to_owned());
        opened.state = open::State::closed(writes);
        let owner = open::next_owner(session);
        session.over_any_connection(|session| open::by_handle(session, &opened, owner))
    }

    fn create(
        &self,
        session: &mut Session,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<Opened, NfsError> {
        open::create(session, directory, name, path)
    }

    fn close(&self, session: &mut Session, file: &Opened) -> Result<(), NfsError> {
        match open::close(session, file) {
            // (A server that cannot be told closes it with the end of the lease. Waiting for such a server, file after
            // file, would gain nothing.)
            Err(NfsError::Unreachable { .. }) if session.connection.is_none() => Ok(()),
            result => result,
        }
    }

    fn set_size(&self, session: &mut Session, file: &Opened, size: u64) -> Result<(), NfsError> {
        let answer = session.call(once(2), &|writer| {
            writer.u32(op::PUTFH).opaque(&file.handle);
            file.state.write(writer.u32(op::SETATTR));
            attributes::size(writer, size);
        })?;
        let mut results = Results::of(&answer, || format!("SETATTR {} size {size}", file.name))?;
        results.next(op::PUTFH)?;
        results.next(op::SETATTR).map(drop)
    }

    fn free(&self, session: &mut Session) -> Result<u64, NfsError> {
        let root = session.root.clone();
        let given = self.given(session, &root, &[attributes::SPACE_AVAIL], "the export")?;
        let unknown = || refused("GETATTR space_avail".to_owned(), status::ATTRIBUTE_NOT_SUPPORTED);
        given.free.ok_or_else(unknown)
    }

    fn write_now(
        &self,
        session: &mut Session,
        file: &Opened,
        offset: u64,
        data: &[u8],
    ) -> Result<(usize, Verifier), NfsError> {
        let answer = session.patiently(compound(2), &|writer| {
            writer.u32(op::PUTFH).opaque(&file.handle);
            file.state.write(writer.u32(op::WRITE));
            writer.u64(offset).u32(Stability::Unstable as u32).opaque(data);
        })?;
        let what = || format!("WRITE {} at {offset}, {} bytes", file.name, data.len());
        let mut results = Results::of(&answer, what)?;
        results.next(op::PUTFH)?;
        let reader = results.next(op::WRITE)?;
        let (count, _) = (reader.u32()? as usize, reader.u32()?);
        Ok((count, verifier(reader)?))
    }

    fn commit_now(&self, session: &mut Session, file: &Opened) -> Result<Verifier, NfsError> {
        let answer = session.patiently(compound(2), &|writer| {
            writer.u32(op::PUTFH).opaque(&file.handle).u32(op::COMMIT).u64(0).u32(0);
        })?;
        let mut results = Results::of(&answer, || format!("COMMIT {}", file.name))?;
        results.next(op::PUTFH)?;
        verifier(results.next(op::COMMIT)?)
    }

    fn remove(
        &self,
        session: &mut Session,
        directory: &[u8],
        name: &str,
        path: &str,
    ) -> Result<(), NfsError> {
        let answer = session.patiently(once(2), &|writer| {
            writer.u32(op::PUTFH).opaque(directory).u32(op::REMOVE).opaque(name.as_bytes());
        })?;
        let mut results = Results::of(&answer, || format!("REMOVE {path}"))?;
        results.next(op::PUTFH)?;
        results.next(op::REMOVE).map(drop)
    }

    fn list(
        &self,
        session: &mut Session,
        directory: &[u8],
        (mut cookie, proof): (u64, [u8; 8]),
        path: &str,
    ) -> Result<Page, NfsError> {
        let page = PAGE.min((session.client.limits.answer as usize).saturating_sub(AROUND)) as u32;
        let answer = session.call(compound(2), &|writer| {
            writer.u32(op::PUTFH).opaque(directory).u32(op::READDIR).u64(cookie);
            writer.0.extend_from_slice(&proof);
            attributes::bitmap(writer.u32(page / 4).u32(page), &[attributes::TYPE, attributes::RDATTR_ERROR]);
        })?;
        let mut results = Results::of(&answer, || format!("READDIR {path}"))?;
        results.next(op::PUTFH)?;
        let reader = results.next(op::READDIR)?;
        let proof = verifier(reader)?;
        let mut entries = Vec::new();
        while reader.boolean()? {
            cookie = reader.u64()?;
            let name = String::from_utf8_lossy(reader.opaque(4096)?).into_owned();
            entries.push(Entry { name, kind: read_attributes(reader)?.kind });
        }
        Ok(Page { entries, cookie, proof, is_end: reader.boolean()? })
    }
}

/// The number of a directory among the kinds of files.
const DIRECTORY: u32 = 2;

impl Four {
    fn given(
        &self,
        session: &mut Session,
        handle: &[u8],
        wanted: &[u32],
        path: &str,
    ) -> Result<Given, NfsError> {
        let answer = session.call(compound(2), &|writer| {
            want(writer.u32(op::PUTFH).opaque(handle), wanted);
        })?;
        let mut results = Results::of(&answer, || format!("GETATTR {path}"))?;
        results.next(op::PUTFH)?;
        read_attributes(results.next(op::GETATTR)?)
    }

    /// Looks up the export. Version 4 has no mounts: the server's exports are directories below one root.
    fn find_root(&self, session: &mut Session) -> Result<(), NfsError> {
        let export = session.address.export.clone();
        let answer = session.call(compound(2), &|writer| {
            writer.u32(op::PUTROOTFH).u32(op::GETFH);
        })?;
        let mut results = Results::of(&answer, || "PUTROOTFH".to_owned())?;
        results.next(op::PUTROOTFH)?;
        let mut root = results.next(op::GETFH)?.opaque(HANDLE)?.to_vec();
        let refused = |why: String, errno| NfsError::Mount { export: export.clone(), why, errno };
        for name in export.split('/').filter(|name| !name.is_empty() && *name != ".") {
            root = match self.look_up(session, &root, name, &export) {
                Ok(Some((handle, _))) => handle,
                Ok(None) => {
                    let why = format!(
                        "there is no such export ({name} is not in the server's tree; exports of version 4 may have \
                         other names than those of version 3)"
                    );
                    return Err(refused(why, libc::ENOENT));
                }
                Err(NfsError::Refused { code, .. }) => {
                    return Err(refused(Version::Four.words(code), status(code).0));
                }
                Err(error) => return Err(error),
            };
        }
        session.root = root;
        Ok(())
    }
}

/// Skips what a directory was before and after a change.
fn skip_change(reader: &mut Reader<'_>) -> Result<(), NfsError> {
    reader.take(4 + 8 + 8)?;
    Ok(())
}
