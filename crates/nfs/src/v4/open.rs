//! Opens and closes files, and opens them again after the server has forgotten them.

use super::attributes::{self, skip_bitmap};
use super::compound::{Results, operation as op};
use super::{MODE, compound, has_lost_state, once, skip_change};
use crate::NfsError;
use crate::protocol::HANDLE;
use crate::session::{Opened, Session};
use crate::xdr::{Reader, Writer};

const READ: u32 = 1;
const WRITE: u32 = 2;
const BOTH: u32 = 3;
/// No delegation, beside what to do with the file.
const WANT_NO_DELEGATION: u32 = 0x0400;

/// What an open claims: a name in the current directory, a file that was open before the server restarted, or the
/// current file.
const CLAIM_NULL: u32 = 0;
const CLAIM_PREVIOUS: u32 = 1;
const CLAIM_FH: u32 = 4;

/// The state of an open file on the server. (By default, that of a file that is not open: the server then decides about
/// each read and write.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    other: [u8; 12],
    /// What the file was opened for.
    access: u32,
}

impl State {
    /// Appends the state.
    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        // Its version: the current one.
        writer.u32(0).0.extend_from_slice(&self.other);
    }

    /// That of a file that is to be opened.
    pub(super) fn closed(writes: bool) -> State {
        State { access: if writes { BOTH } else { READ }, ..State::default() }
    }

    fn is_open(&self) -> bool {
        self.other != [0; 12]
    }
}

/// Appends the operation up to what it claims. `mode` = creates the file, unless it exists.
fn write_open(writer: &mut Writer<'_>, owner: u64, access: u32, mode: Option<u32>) {
    writer.u32(op::OPEN).u32(0).u32(access | WANT_NO_DELEGATION).u32(0);
    // Each open has an owner of its own, whose client is that of the session.
    writer.u64(0).opaque(&owner.to_be_bytes());
    match mode {
        // UNCHECKED: an existing file is not an error.
        Some(mode) => attributes::mode(writer.u32(1).u32(0), mode),
        None => drop(writer.u32(0)),
    }
}

/// Reads the result of the operation: the state, and that of a delegation that nobody wanted.
fn read_open(reader: &mut Reader<'_>, access: u32) -> Result<(State, Option<[u8; 16]>), NfsError> {
    reader.u32()?;
    let other = reader.take(12)?.try_into().expect("there are twelve");
    skip_change(reader)?;
    reader.u32()?;
    skip_bitmap(reader)?;
    let kind = reader.u32()?;
    let delegation = match kind {
        0 => None,
        1 | 2 => {
            let state = reader.take(16)?.try_into().expect("there are sixteen");
            // Whether it is recalled; of a write, also how much may be written.
            reader.take(if kind == 1 { 4 } else { 4 + 12 })?;
            // To whom it applies.
            reader.take(12)?;
            reader.opaque(4096)?;
            Some(state)
        }
        // The reason why there is none, and for two of them, whether there will be one later.
        3 => {
            if let 1 | 2 = reader.u32()? {
                reader.u32()?;
            }
            None
        }
        _ => return Err(NfsError::Malformed),
    };
    Ok((State { other, access }, delegation))
}

/// Reads the result of an open, for tests that damage it.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<State, NfsError> {
    read_open(reader, BOTH).map(|(state, _)| state)
}

/// The owner of the next open.
pub(super) fn next_owner(session: &mut Session) -> u64 {
    session.client.opens += 1;
    session.client.opens
}

/// Opens the file with this handle, on the current connection.
pub(super) fn by_handle(session: &mut Session, file: &Opened, owner: u64) -> Result<Opened, NfsError> {
    let mut first = None;
    let attempts: &[u32] = if file.state.access == READ { &[READ] } else { &[BOTH, READ, WRITE] };
    for &access in attempts {
        match claim(session, file, owner, access, CLAIM_FH) {
            // The user may do only one of the two, the export is only read, or another client denies one of them
            // (NFS4ERR_SHARE_DENIED).
            Err(error @ NfsError::Refused { code: 1 | 13 | 30 | 10015, .. }) => {
                first.get_or_insert(error);
            }
            result => return result.map(|state| Opened { state, ..file.clone() }),
        }
    }
    Err(first.unwrap_or(NfsError::Malformed))
}

fn claim(
    session: &mut Session,
    file: &Opened,
    owner: u64,
    access: u32,
    what: u32,
) -> Result<State, NfsError> {
    let answer = session.patiently(once(2), &|writer| {
        writer.u32(op::PUTFH).opaque(&file.handle);
        write_open(writer, owner, access, None);
        writer.u32(what);
        if what == CLAIM_PREVIOUS {
            // Without a delegation.
            writer.u32(0);
        }
    })?;
    let mut results = Results::of(&answer, || format!("OPEN {}", file.name))?;
    results.next(op::PUTFH)?;
    let (state, delegation) = read_open(results.next(op::OPEN)?, access)?;
    give_back(session, &file.handle, delegation)?;
    Ok(state)
}

/// Opens a file by its name, and creates it if there is none.
pub(super) fn create(
    session: &mut Session,
    directory: &[u8],
    name: &str,
    path: &str,
) -> Result<Opened, NfsError> {
    let owner = next_owner(session);
    let answer = session.call(once(3), &|writer| {
        writer.u32(op::PUTFH).opaque(directory);
        write_open(writer, owner, BOTH, Some(MODE));
        writer.u32(CLAIM_NULL).opaque(name.as_bytes()).u32(op::GETFH);
    })?;
    let mut results = Results::of(&answer, || format!("OPEN {path} to create it"))?;
    results.next(op::PUTFH)?;
    let (state, delegation) = read_open(results.next(op::OPEN)?, BOTH)?;
    let handle = results.next(op::GETFH)?.opaque(HANDLE)?.to_vec();
    give_back(session, &handle, delegation)?;
    Ok(Opened { handle, name: path.to_owned(), state })
}

/// Returns a delegation that nobody wanted.
fn give_back(session: &mut Session, handle: &[u8], delegation: Option<[u8; 16]>) -> Result<(), NfsError> {
    let Some(state) = delegation else { return Ok(()) };
    session.patiently(once(2), &|writer| {
        writer.u32(op::PUTFH).opaque(handle).u32(op::DELEGRETURN).0.extend_from_slice(&state);
    })?;
    Ok(())
}

/// Closes a file, on the current connection. A file that the server does not know is closed.
pub(super) fn close(session: &mut Session, file: &Opened) -> Result<(), NfsError> {
    if !file.state.is_open() {
        return Ok(());
    }
    let answer = session.patiently(once(2), &|writer| {
        file.state.write(writer.u32(op::PUTFH).opaque(&file.handle).u32(op::CLOSE).u32(0));
    })?;
    let mut results = Results::of(&answer, || format!("CLOSE {}", file.name))?;
    let closed = results.next(op::PUTFH).map(drop).and_then(|()| results.next(op::CLOSE).map(drop));
    match closed {
        // (NFS4ERR_STALE: the file was removed.)
        Err(NfsError::Refused { code, .. }) if code == 70 || has_lost_state(code) => Ok(()),
        closed => closed,
    }
}

/// Reclaims all open files from a server that has forgotten them. Those that it does not give back are doubtful.
///
/// # Errors
/// The connection is lost; or the server has restarted again meanwhile.
pub(super) fn reclaim(session: &mut Session) -> Result<(), NfsError> {
    let mut first = None;
    for place in 0..session.calls.files.len() {
        let Some(file) = &session.calls.files[place] else { continue };
        let opened = file.opened.clone();
        let access = if opened.state.access == 0 { BOTH } else { opened.state.access };
        let owner = next_owner(session);
        let claimed = claim(session, &opened, owner, access, CLAIM_PREVIOUS);
        match claimed {
            Ok(_) | Err(NfsError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        let Some(file) = &mut session.calls.files[place] else { continue };
        match claimed {
            Ok(state) => {
                (file.opened.state, file.is_doubtful) = (state, false);
                session.calls.counts.reopened += 1;
                first.get_or_insert(state);
            }
            Err(_) => {
                file.is_doubtful = true;
                session.calls.has_doubtful = true;
            }
        }
    }
    // All answers have the flag that says that the server has restarted. If it has once more, without an end of session
    // or connection, it has forgotten what was reclaimed first.
    match first {
        Some(state) => check(session, &state),
        None => Ok(()),
    }
}

/// Fails if the server does not know the state of an open file any more.
fn check(session: &mut Session, state: &State) -> Result<(), NfsError> {
    let answer =
        session.patiently(compound(1), &|writer| state.write(writer.u32(op::TEST_STATEID).u32(1)))?;
    match Results::of(&answer, || "TEST_STATEID".to_owned())?.next(op::TEST_STATEID) {
        Ok(reader) => match (reader.u32()?, reader.u32()?) {
            (1, code) if has_lost_state(code) => Err(NfsError::SessionLost(code)),
            _ => Ok(()),
        },
        // A server that cannot tell it says with the next read or write what it has forgotten.
        Err(_) => Ok(()),
    }
}

/// Opens doubtful files again, on the current connection.
pub(super) fn reopen(session: &mut Session) -> Result<(), NfsError> {
    for place in 0..session.calls.files.len() {
        let Some(file) = session.calls.files[place].as_ref().filter(|file| file.is_doubtful) else {
            continue;
        };
        let opened = file.opened.clone();
        let owner = next_owner(session);
        let state = match by_handle(session, &opened, owner) {
            Ok(opened) => {
                session.calls.counts.reopened += 1;
                opened.state
            }
            // The server says why with the next read or write.
            Err(NfsError::Refused { .. }) => State::default(),
            Err(error) => return Err(error),
        };
        if let Some(file) = &mut session.calls.files[place] {
            (file.opened.state, file.is_doubtful) = (state, false);
        }
    }
    session.calls.has_doubtful = false;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(delegation: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer(&mut bytes);
        writer.u32(1).u32(7).u32(8).u32(9).u32(1).u64(0).u64(0).u32(4);
        attributes::bitmap(&mut writer, &[33]);
        for word in delegation {
            writer.u32(*word);
        }
        writer.u32(99);
        bytes
    }

    #[test]
    fn what_follows_an_open_is_found_after_any_delegation() {
        let state = |first: u32| [first, 2, 3, 4];
        let who = [0, 0, 0, 5, 0x4142_4344, 0x4500_0000];
        for (delegation, is_given) in [
            (vec![0], false),
            ([&[1][..], &state(1), &[0], &who].concat(), true),
            ([&[2][..], &state(1), &[0, 1, 0, 9], &who].concat(), true),
            (vec![3, 0], false),
            (vec![3, 1, 1], false),
            (vec![3, 2, 0], false),
        ] {
            let bytes = answer(&delegation);
            let mut reader = Reader::new(&bytes);
            let (state, given) = read_open(&mut reader, BOTH).unwrap();
            assert!(state.is_open() && state.access == BOTH);
            assert_eq!((given.is_some(), reader.u32()), (is_given, Ok(99)), "{delegation:?}");
        }
        assert!(read_open(&mut Reader::new(&answer(&[4])), BOTH).is_err());
    }
}
