//! Introduces the client, makes sessions, and restores them when the server has forgotten them.

use super::compound::{Results, operation as op};
use super::status::{COMPLETE_ALREADY, MINOR_VERSION_MISMATCH, SEQ_MISORDERED, STALE_CLIENT};
use super::{AROUND, SlotTable, once, open};
use crate::NfsError;
use crate::protocol::{Ask, MOST_MOVED};
use crate::session::Session;
use crate::xdr::{Reader, Writer};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;
use tracing::debug;

/// A flag of EXCHANGE_ID: the client knows nothing of data that is elsewhere than on this server.
const USE_NON_PNFS: u32 = 0x0001_0000;
/// A flag in the answer: the server knows the client, and its state.
const CONFIRMED: u32 = 0x8000_0000;

/// The fewest slots to ask for: large reads and writes are several calls, and some slots are for other calls.
const FEWEST_SLOTS: u32 = 16;
/// The most slots to ask for.
const MOST_SLOTS: u32 = 4096;

/// The longest answer that the server may have to keep for each slot. (That of OPEN is the longest, with 400 bytes.)
const KEPT: u32 = 2048;
/// Operations in a compound, at most.
const OPERATIONS: u32 = 8;

/// How often to introduce the client to a server that takes it for another one.
const ATTEMPTS: usize = 3;

/// How long taking leave may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// The longest calls and answers of a session, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) call: u32,
    pub(super) answer: u32,
}

/// What a server knows of this client.
pub(crate) struct Client {
    owner: Vec<u8>,
    /// Changes with each incarnation of the client, whose earlier state the server then forgets.
    verifier: u64,
    id: Option<u64>,
    /// The number of the next CREATE_SESSION.
    sequence: u32,
    /// The server knows none of the open files, and waits for RECLAIM_COMPLETE.
    must_reclaim: bool,
    /// How many calls the owner wants to have in flight.
    wanted: u32,
    /// How many files have been opened.
    pub(super) opens: u64,
    pub(super) limits: Limits,
    /// The longest reads and writes of the export, if the server tells them.
    pub(super) export: (Option<u64>, Option<u64>),
    /// The time after which the server forgets a silent client.
    lease: Option<Duration>,
}

impl Client {
    /// A client that wants so many calls in flight.
    pub(crate) fn new(wanted: u32) -> Client {
        let random = || RandomState::new().build_hasher().finish();
        let owner = format!("iolite {} {:016x}", std::process::id(), random());
        Client {
            owner: owner.into_bytes(),
            verifier: random(),
            id: None,
            sequence: 0,
            must_reclaim: false,
            wanted: wanted.clamp(FEWEST_SLOTS, MOST_SLOTS) + 2,
            opens: 0,
            limits: Limits::default(),
            export: (None, None),
            lease: None,
        }
    }

    pub(super) fn set_lease(&mut self, seconds: Option<u32>) {
        self.lease =
            seconds.filter(|&seconds| seconds > 0).map(|seconds| Duration::from_secs(seconds.into()));
    }

    /// The time after which a silent client should renew its lease.
    pub(crate) fn renewal(&self) -> Option<Duration> {
        self.lease.map(|lease| lease / 3)
    }
}

/// Makes a new connection ready: makes another session if the server has forgotten this one, and restores the state of
/// the open files.
pub(super) fn resume(session: &mut Session) -> Result<(), NfsError> {
    if !session.calls.table.is_usable() {
        session.client.must_reclaim |= session.calls.table.needs_reclaim();
        let old = session.calls.table.session();
        if let Some(old) = old {
            destroy_session(session, old)?;
        }
        make_session(session)?;
        limit(session);
        session.calls.counts.sessions += u64::from(old.is_some());
    }
    if session.client.must_reclaim {
        session.calls.table.is_reclaiming = true;
        open::reclaim(session)?;
        reclaim_complete(session)?;
        session.calls.table.is_reclaiming = false;
        session.client.must_reclaim = false;
    }
    open::reopen(session)
}

/// Limits reads and writes to what both the export and the session permit.
pub(super) fn limit(session: &mut Session) {
    let most = |told: Option<u64>, of_session: u32| {
        let of_session = (of_session as usize).saturating_sub(AROUND);
        let told = told.map_or(of_session, |told| usize::try_from(told).unwrap_or(usize::MAX));
        told.min(of_session).clamp(512, MOST_MOVED)
    };
    let (limits, (read, written)) = (session.client.limits, session.client.export);
    session.most_read = most(read, limits.answer);
    session.most_written = most(written, limits.call);
}

fn make_session(session: &mut Session) -> Result<(), NfsError> {
    let mut outcome = Ok(());
    for _ in 0..ATTEMPTS {
        let (id, sequence, is_known) = exchange_id(session)?;
        outcome = create_session(session, id, sequence);
        match outcome {
            Ok(()) => {
                debug!(target: "net", "nfs: a session of {} calls, {is_known}", session.calls.table.count());
                session.client.id = Some(id);
                session.client.must_reclaim |= !is_known;
                return Ok(());
            }
            // The answer to an earlier CREATE_SESSION was lost. As another incarnation the client begins anew.
            Err(NfsError::Refused { code: SEQ_MISORDERED, .. }) => {
                session.client.verifier = session.client.verifier.wrapping_add(1);
                session.client.id = None;
            }
            // The server has restarted just now.
            Err(NfsError::Refused { code: STALE_CLIENT, .. }) => {}
            Err(_) => break,
        }
    }
    outcome
}

/// Introduces the client. Returns its number, the number of its next CREATE_SESSION, and whether the server knows the
/// state of its open files.
fn exchange_id(session: &mut Session) -> Result<(u64, u32, bool), NfsError> {
    let (owner, verifier) = (session.client.owner.clone(), session.client.verifier);
    let answer = session.patiently(Ask::WithoutSession, &|writer| {
        // No protection of its state by a key, and no name of this program.
        writer.u32(op::EXCHANGE_ID).u64(verifier).opaque(&owner).u32(USE_NON_PNFS).u32(0).u32(0);
    });
    let answer = answer.map_err(|error| match error {
        NfsError::Call(why) => {
            NfsError::Call(format!("{why} (nfs_url has version=4, which is NFS 4.1; version=3 may work)"))
        }
        error => error,
    })?;
    let mut results = Results::without_session(&answer, || "NFS 4.1".to_owned())?;
    let reader = results.next(op::EXCHANGE_ID).map_err(|error| match error {
        NfsError::Refused { code: MINOR_VERSION_MISMATCH, .. } => error,
        NfsError::Refused { code, version, .. } => {
            NfsError::Refused { what: "EXCHANGE_ID".to_owned(), code, version }
        }
        error => error,
    })?;
    let (id, sequence, flags) = (reader.u64()?, reader.u32()?, reader.u32()?);
    let is_known = flags & CONFIRMED != 0 && session.client.id == Some(id);
    Ok((id, if is_known { session.client.sequence } else { sequence }, is_known))
}

fn create_session(session: &mut Session, id: u64, sequence: u32) -> Result<(), NfsError> {
    let wanted = session.client.wanted;
    let answer = session.patiently(Ask::WithoutSession, &|writer| {
        writer.u32(op::CREATE_SESSION).u64(id).u32(sequence).u32(0);
        let longest = (MOST_MOVED + AROUND) as u32;
        channel(writer, longest, KEPT, OPERATIONS, wanted);
        // The server's own calls, of which there are none.
        channel(writer, 4096, 0, 2, 1);
        // The program of these calls, with credentials of no kind.
        writer.u32(0x4000_0000).u32(1).u32(0);
    })?;
    let mut results = Results::without_session(&answer, || "CREATE_SESSION".to_owned())?;
    let reader = results.next(op::CREATE_SESSION)?;
    let name = reader.take(16)?.try_into().expect("there are sixteen");
    // The number of the call, and flags.
    reader.take(8)?;
    let (limits, slots) = granted(reader)?;
    session.client.sequence = sequence.wrapping_add(1);
    session.client.limits = limits;
    session.calls.table = SlotTable::new(name, slots.min(wanted));
    session.calls.forget_session_slots();
    Ok(())
}

/// Appends the wanted limits of a channel: no padding, the longest call, answer and kept answer, the number of
/// operations and of slots, and nothing about RDMA.
pub(super) fn channel(writer: &mut Writer<'_>, longest: u32, kept: u32, operations: u32, slots: u32) {
    writer.u32(0).u32(longest).u32(longest).u32(kept).u32(operations).u32(slots).u32(0);
}

/// Reads the limits of a channel that the server grants.
pub(super) fn granted(reader: &mut Reader<'_>) -> Result<(Limits, u32), NfsError> {
    reader.u32()?;
    let limits = Limits { call: reader.u32()?, answer: reader.u32()? };
    let (_, _, slots) = (reader.u32()?, reader.u32()?, reader.u32()?);
    if slots == 0 || (limits.call as usize) < 2 * AROUND || (limits.answer as usize) < 2 * AROUND {
        return Err(NfsError::Call("it grants a session in which no file can be read or written".to_owned()));
    }
    Ok((limits, slots))
}

fn reclaim_complete(session: &mut Session) -> Result<(), NfsError> {
    let answer = session.patiently(once(1), &|writer| {
        // For all file systems.
        writer.u32(op::RECLAIM_COMPLETE).u32(0);
    })?;
    let done = Results::of(&answer, || "RECLAIM_COMPLETE".to_owned())?.next(op::RECLAIM_COMPLETE).map(drop);
    match done {
        Err(NfsError::Refused { code: COMPLETE_ALREADY, .. }) => Ok(()),
        done => done,
    }
}

/// Destroys a session, which the server may have forgotten.
fn destroy_session(session: &mut Session, name: [u8; 16]) -> Result<(), NfsError> {
    session.patiently(Ask::WithoutSession, &|writer| {
        writer.u32(op::DESTROY_SESSION).0.extend_from_slice(&name);
    })?;
    Ok(())
}

/// Closes what is open, and lets the server forget the session and the client at once, instead of after the lease.
pub(super) fn leave(session: &mut Session) {
    let Some(name) = session.calls.table.session() else { return };
    if session.connection.is_none() || session.in_flight() > 0 || session.calls.table.is_lost() {
        return;
    }
    session.wait_for(session.limits.patience.min(FAREWELL));
    let files: Vec<_> = session.calls.files.iter().flatten().map(|file| file.opened.clone()).collect();
    let is_closed = files.iter().all(|file| open::close(session, file).is_ok());
    if is_closed
        && destroy_session(session, name).is_ok()
        && let Some(id) = session.client.id
    {
        let _ = session.call_once(Ask::WithoutSession, &|writer| {
            writer.u32(op::DESTROY_CLIENTID).u64(id);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_no_use_is_an_error() {
        let limits = |longest: u32, slots| {
            let mut bytes = Vec::new();
            channel(&mut Writer(&mut bytes), longest, 0, 8, slots);
            granted(&mut Reader::new(&bytes))
        };
        assert_eq!(limits(70_000, 5), Ok((Limits { call: 70_000, answer: 70_000 }, 5)));
        assert!(limits(70_000, 0).is_err() && limits(1000, 5).is_err());
    }

    #[test]
    fn clients_differ_and_the_depth_has_limits() {
        let (one, other) = (Client::new(1), Client::new(1 << 20));
        assert_ne!((&one.owner, one.verifier), (&other.owner, other.verifier));
        assert_eq!((one.wanted, other.wanted), (18, 4098));
        assert_eq!(one.renewal(), None);
    }
}
