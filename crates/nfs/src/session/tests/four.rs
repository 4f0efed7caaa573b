//! Tests of what only version 4 has: sessions, the state of open files, and the lease.

use super::server::{Act, NULL, Shared, start};
use super::{LONG, SHORT, finish, limits, session, write};
use crate::protocol::{BUSY, Version};
use crate::session::{Handle, Session};
use crate::v3::procedure;
use crate::{Address, NfsError};
use std::time::Instant;

const CLOSE: usize = 4;
const OPEN: usize = 18;
const REMOVE: usize = 28;
const DESTROY_SESSION: usize = 44;
const CREATE_SESSION: usize = 43;
const SEQUENCE: usize = 53;
const DESTROY_CLIENTID: usize = 57;
const BAD_SESSION: u32 = 10052;

fn started(script: impl FnMut(u32, usize) -> Act + Send + 'static) -> (Shared, Session, Handle) {
    let (server, address) = start(Version::Four, script);
    let (session, file) = session(&address, LONG, Some(1 << 20));
    (server, session, file)
}

#[test]
fn a_call_whose_answer_was_lost_is_performed_once() {
    let (server, mut session, file) = started(|procedure, before| match (procedure, before) {
        (procedure::REMOVE | procedure::CREATE | procedure::SETATTR | procedure::COMMIT, 0) => Act::DoAndCut,
        _ => Act::Answer,
    });
    session.set_size(file, 0).unwrap();
    session.sync(file).unwrap();
    session.remove("f").unwrap();
    let server = server.lock().unwrap();
    // The commit is performed again, because its answer is not kept.
    assert_eq!([server.performed[REMOVE], server.performed[OPEN], server.performed[5]], [1, 1, 2]);
    assert_eq!((session.counts().reconnected, session.counts().sessions, session.counts().busy), (4, 0, 0));
}

/// A reader opens a file only to read it, so that the server need not ask others about it.
#[test]
fn a_file_that_others_deny_to_write_is_read() {
    let (server, mut session, _) = started(|_, _| Act::Answer);
    server.lock().unwrap().denies_writing = true;
    let before = server.lock().unwrap().performed[OPEN];
    session.open("g", false).unwrap();
    assert_eq!(server.lock().unwrap().performed[OPEN], before + 1);
    // A writer is told with its first write.
    session.open("h", true).unwrap();
    assert_eq!(server.lock().unwrap().performed[OPEN], before + 3);
}

/// As if there were none, because another client has removed it in the middle of the call.
#[test]
fn a_file_that_is_removed_meanwhile_is_missing() {
    let (_server, mut session, _) = started(|procedure, _| match procedure {
        procedure::REMOVE => Act::Refuse(70),
        _ => Act::Answer,
    });
    assert!(matches!(session.remove("f"), Err(NfsError::Refused { code: 2, .. })));
}

#[test]
fn reads_and_writes_are_repeated_in_their_slots() {
    let (server, mut session, file) = started(|procedure, before| match (procedure, before) {
        (procedure::WRITE, 2) => Act::Cut,
        (procedure::WRITE, 5) => Act::DoAndCut,
        _ => Act::Answer,
    });
    for unit in 0..8 {
        write(&mut session, unit, file, u64::from(unit) * 4, b"abcd");
    }
    for _ in 0..8 {
        assert_eq!(finish(&mut session).result.unwrap(), 4);
    }
    session.close(file).unwrap();
    let server = server.lock().unwrap();
    assert_eq!((server.file.len(), session.counts().sessions, server.performed[CREATE_SESSION]), (32, 0, 1));
}

#[test]
fn a_session_that_the_server_ends_is_replaced_and_open_files_stay_open() {
    let (server, mut session, file) = started(|procedure, before| match (procedure, before) {
        (procedure::WRITE, 1) => Act::RefuseCall(BAD_SESSION),
        _ => Act::Answer,
    });
    for unit in 0..4 {
        write(&mut session, unit, file, u64::from(unit) * 4, b"abcd");
    }
    for _ in 0..4 {
        assert_eq!(finish(&mut session).result.unwrap(), 4);
    }
    session.close(file).unwrap();
    let server = server.lock().unwrap();
    assert_eq!(
        (server.performed[CREATE_SESSION], server.performed[OPEN], session.counts().sessions),
        (2, 1, 1)
    );
    assert_eq!(server.file.len(), 16);
}

/// A restarted server gives open files back, or has them opened again. Uncommitted data is sent again.
#[test]
fn after_a_restart_files_are_reclaimed_or_opened_again() {
    for is_in_grace in [true, false] {
        let (server, mut session, file) = started(|_, _| Act::Answer);
        write(&mut session, 0, file, 0, b"abcd");
        finish(&mut session).result.unwrap();
        server.lock().unwrap().restart(b"", is_in_grace);
        write(&mut session, 1, file, 4, b"efgh");
        assert_eq!(finish(&mut session).result.unwrap(), 4);
        session.sync(file).unwrap();
        let opens = if is_in_grace { 2 } else { 3 };
        {
            let server = server.lock().unwrap();
            assert_eq!((server.performed[OPEN], &server.file[..]), (opens, &b"abcdefgh"[..]));
        }
        assert_eq!((session.counts().sessions, session.counts().reopened), (1, 1));
        // The file may be closed, resized and so on as before.
        session.set_size(file, 2).unwrap();
        session.close(file).unwrap();
        assert!(server.lock().unwrap().open.is_empty());
    }
}

#[test]
fn another_restart_while_files_are_reclaimed_is_noticed() {
    let (server, mut session, file) = started(|procedure, before| match (procedure, before) {
        // It has given the first of two files back.
        (procedure::CREATE, 2) => Act::DoAndRestart,
        _ => Act::Answer,
    });
    let (other, _) = session.open("g", true).unwrap();
    server.lock().unwrap().restart_with_sessions();
    for (unit, file) in [(0, file), (1, other)] {
        write(&mut session, unit, file, 0, b"abcd");
        assert_eq!(finish(&mut session).result.unwrap(), 4);
    }
    assert_eq!((server.lock().unwrap().performed[OPEN], session.counts().reopened), (2 + 2 + 2, 4));
    session.close(file).unwrap();
    session.close(other).unwrap();
}

#[test]
fn all_files_of_a_recovery_share_one_patience() {
    let (server, address) = start(Version::Four, |procedure, before| match (procedure, before) {
        (procedure::CREATE, 4..) => Act::Refuse(10013),
        _ => Act::Answer,
    });
    let (mut session, file) = super::session(&address, SHORT, None);
    for name in ["g", "h", "i"] {
        session.open(name, true).unwrap();
    }
    server.lock().unwrap().restart(b"", true);
    session.status(file).unwrap();
    // Each file is claimed by its state and by its handle, and only the first one is waited for.
    let pauses = SHORT.as_millis().div_ceil(100) as usize;
    let claims = server.lock().unwrap().counts[procedure::CREATE as usize] - 4;
    assert_eq!(claims, pauses + 2 * 4);
}

#[test]
fn a_file_that_the_server_no_longer_knows_is_opened_again() {
    let (server, mut session, file) = started(|_, _| Act::Answer);
    server.lock().unwrap().open.clear();
    write(&mut session, 0, file, 0, b"abcd");
    assert_eq!(finish(&mut session).result.unwrap(), 4);
    server.lock().unwrap().open.clear();
    session.write_all(file, b"efgh", 4).unwrap();
    server.lock().unwrap().open.clear();
    session.close(file).unwrap();
    assert_eq!((session.counts().reopened, session.counts().sessions), (2, 0));
    // A server that never knows it is given up.
    let script = |procedure, _| match procedure {
        procedure::WRITE => Act::Refuse(10025),
        _ => Act::Answer,
    };
    let (_server, address) = start(Version::Four, script);
    let (mut session, file) = super::session(&address, SHORT, None);
    write(&mut session, 0, file, 0, b"abcd");
    let error = finish(&mut session).result.unwrap_err();
    assert!(error.to_string().contains("NFS4ERR_BAD_STATEID"), "{error}");
}

#[test]
fn a_late_answer_about_a_replaced_state_opens_nothing() {
    let (server, mut session, file) = started(|procedure, before| match (procedure, before) {
        (procedure::WRITE, 0) | (procedure::CREATE, _) => Act::Pass,
        (procedure::WRITE, 1) => Act::Hold,
        _ => Act::Answer,
    });
    server.lock().unwrap().open.clear();
    for unit in 0..2 {
        write(&mut session, unit, file, u64::from(unit) * 4, b"abcd");
    }
    for _ in 0..2 {
        assert_eq!(finish(&mut session).result.unwrap(), 4);
    }
    assert_eq!((session.counts().reopened, server.lock().unwrap().performed[OPEN]), (1, 2));
}

#[test]
fn files_of_a_server_that_was_given_up_are_closed_without_it() {
    let (server, address) = start(Version::Four, |procedure, _| match procedure {
        procedure::READ => Act::Silence,
        _ => Act::Answer,
    });
    let (mut session, file) = super::session(&address, SHORT, None);
    let (other, _) = session.open("g", true).unwrap();
    let mut data = [0; 4];
    // SAFETY: the data outlives the session's use of it.
    assert!(unsafe { session.read(0, file, 0, data.as_mut_ptr(), 4) });
    let error = finish(&mut session).result.unwrap_err();
    assert!(matches!(*error, NfsError::Silent { .. }), "{error}");
    session.close(file).unwrap();
    session.close(other).unwrap();
    assert_eq!(server.lock().unwrap().counts[NULL as usize], 1, "nobody has connected again");
}

#[test]
fn a_refused_procedure_call_leaves_its_slot_to_the_next() {
    let (server, address) = start(Version::Four, |procedure, before| match (procedure, before) {
        (procedure::WRITE | procedure::SETATTR, 0) => Act::Deny,
        _ => Act::Answer,
    });
    server.lock().unwrap().slots = 1;
    let (mut session, file) = super::session(&address, LONG, None);
    write(&mut session, 0, file, 0, b"abcd");
    let error = finish(&mut session).result.unwrap_err();
    assert!(matches!(*error, NfsError::Call(_)), "{error}");
    assert!(matches!(session.set_size(file, 8), Err(NfsError::Call(_))));
    write(&mut session, 0, file, 0, b"abcd");
    assert_eq!(finish(&mut session).result.unwrap(), 4);
    assert_eq!((session.counts().sessions, session.counts().reconnected), (0, 0));
}

#[test]
fn a_server_that_never_keeps_an_answer_is_given_up() {
    let (_server, address) = start(Version::Four, |procedure, before| match (procedure, before) {
        (procedure::WRITE, _) | (procedure::GETATTR, 2..) => Act::RefuseCall(10068),
        _ => Act::Answer,
    });
    let (mut session, file) = super::session(&address, SHORT, None);
    write(&mut session, 0, file, 0, b"abcd");
    let error = finish(&mut session).result.unwrap_err();
    assert!(error.to_string().contains("NFS4ERR_RETRY_UNCACHED_REP"), "{error}");
    while session.status(file).is_ok() {}
}

#[test]
fn another_session_may_permit_less() {
    static DATA: [u8; 8192] = [7; 8192];
    let (server, mut session, file) = started(|_, _| Act::Answer);
    {
        let mut server = server.lock().unwrap();
        (server.session, server.longest) = (0, 4096);
    }
    write(&mut session, 0, file, 0, &DATA);
    let error = finish(&mut session).result.unwrap_err();
    assert!(error.to_string().contains("NFS4ERR_REQ_TOO_BIG"), "{error}");
    write(&mut session, 0, file, 0, &DATA);
    assert_eq!(finish(&mut session).result.unwrap(), 8192);
    assert!(server.lock().unwrap().file == DATA);
}

#[test]
fn more_calls_than_slots_take_turns() {
    for slots in [1, 2, 3, 6] {
        let (server, address) = start(Version::Four, |procedure, before| match procedure {
            // Answers come three at a time, where there are so many slots for them.
            procedure::WRITE if before % 3 < 2 => Act::Hold,
            _ => Act::Answer,
        });
        server.lock().unwrap().slots = slots;
        if slots < 4 {
            server.lock().unwrap().script = Box::new(|_, _| Act::Answer);
        }
        let (mut session, file) = session(&address, LONG, Some(1 << 20));
        for unit in 0..24 {
            write(&mut session, unit, file, u64::from(unit) * 4, b"abcd");
        }
        for _ in 0..24 {
            assert_eq!(finish(&mut session).result.unwrap(), 4);
        }
        assert_eq!(session.in_flight(), 0);
        server.lock().unwrap().script = Box::new(|_, _| Act::Answer);
        session.close(file).unwrap();
        let server = server.lock().unwrap();
        assert!(server.file.len() == 96 && server.most_held <= slots as usize, "{slots}");
    }
}

#[test]
fn a_call_in_progress_is_repeated_with_the_same_number() {
    let (server, mut session, file) = started(|procedure, before| match (procedure, before) {
        (procedure::WRITE | procedure::SETATTR, 0) => Act::RefuseCall(BUSY),
        _ => Act::Answer,
    });
    write(&mut session, 0, file, 0, b"abcd");
    assert_eq!(finish(&mut session).result.unwrap(), 4);
    session.set_size(file, 8).unwrap();
    assert_eq!((session.counts().busy, session.counts().sessions), (2, 0));
    assert_eq!(server.lock().unwrap().file, b"abcd");
}

#[test]
fn a_silent_client_renews_its_lease() {
    let (server, mut session, file) = started(|_, _| Act::Answer);
    let performed = || server.lock().unwrap().performed[SEQUENCE];
    let before = performed();
    session.keep_alive();
    assert_eq!(performed(), before, "it is too early");
    let renewal = session.client.renewal().unwrap();
    session.heard = Instant::now().checked_sub(renewal).unwrap();
    while session.calls.open() > 0 || performed() == before {
        session.keep_alive();
    }
    assert_eq!((performed(), session.in_flight(), session.count_done()), (before + 1, 0, 0));
    // A server that has restarted meanwhile is found out.
    server.lock().unwrap().restart(b"", true);
    session.heard = Instant::now().checked_sub(renewal).unwrap();
    while session.connection.is_some() {
        session.keep_alive();
    }
    write(&mut session, 0, file, 0, b"abcd");
    assert_eq!(finish(&mut session).result.unwrap(), 4);
}

#[test]
fn calls_of_the_server_are_declined() {
    let (server, mut session, file) = started(|_, _| Act::Answer);
    let mut call = Vec::new();
    crate::xdr::Writer(&mut call)
        .u32(crate::rpc::LAST | 40)
        .u32(77)
        .u32(0)
        .u32(2)
        .u32(0x4000_0000)
        .u32(1)
        .u32(1);
    call.extend_from_slice(&[0; 16]);
    server.lock().unwrap().before = call;
    session.status(file).unwrap();
    session.status(file).unwrap();
    let told = server.lock().unwrap().told.clone();
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0][..8], told[0].last()), (&[0, 0, 0, 77, 0, 0, 0, 1][..], Some(&1)));
}

#[test]
fn the_server_may_forget_a_client_that_leaves() {
    let (server, mut session, file) = started(|_, _| Act::Answer);
    write(&mut session, 0, file, 0, b"abcd");
    finish(&mut session).result.unwrap();
    drop(session);
    let server = server.lock().unwrap();
    let left = [CLOSE, DESTROY_SESSION, DESTROY_CLIENTID].map(|operation| server.performed[operation]);
    assert_eq!((left, server.client, server.session), ([1, 1, 1], 0, 0));
}

#[test]
fn servers_of_other_kinds_are_told_apart() {
    let refused = |address: Address| Session::connect(address, limits(LONG, None), None).err().unwrap();
    let (_server, address) = start(Version::Four, |_, _| Act::Refuse(10021));
    let error = refused(address);
    assert_eq!(error.errno(), libc::EPROTONOSUPPORT);
    assert!(error.to_string().contains("speaks only another minor version, such as 4.0"), "{error}");
    for (code, words) in
        [(10016, "requires Kerberos"), (10019, "name that one in nfs_url"), (13, "NFS4ERR_ACCESS")]
    {
        let (_server, address) = start(Version::Four, move |procedure, _| match procedure {
            procedure::LOOKUP => Act::Refuse(code),
            _ => Act::Answer,
        });
        let error = refused(address);
        assert!(matches!(error, NfsError::Mount { .. }) && error.to_string().contains(words), "{error}");
    }
    let (server, address) = start(Version::Four, |_, _| Act::Answer);
    server.lock().unwrap().exists = false;
    let error = refused(address).to_string();
    assert!(error.contains("cannot mount /x: there is no such export"), "{error}");
}
