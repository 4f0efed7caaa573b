//! Tests of a session with a scripted server, which misbehaves in ways that a real server would not.

use self::server::{Act, NULL, start};
use super::*;
use crate::protocol::BUSY;
use crate::v3::procedure;
use std::net::TcpListener;

mod four;
mod server;

/// Runs tests with both versions.
macro_rules! with_both_versions {
    ($($name:ident)*) => {
        mod version_3 {
            $(#[test] fn $name() { super::$name(super::Version::Three); })*
        }
        mod version_4 {
            $(#[test] fn $name() { super::$name(super::Version::Four); })*
        }
    };
}

with_both_versions! {
    writes_during_a_commit_are_not_taken_as_committed
    calls_are_sent_together_while_finished_units_are_replaced
    a_commit_answered_after_the_close_is_ignored
    a_server_that_takes_connections_and_answers_nothing_is_given_up
    a_job_that_was_asked_to_end_waits_for_a_silent_server_only_so_long
    a_server_that_is_busy_for_ever_is_given_up_and_one_that_is_for_a_moment_is_not
    a_connection_that_is_cut_during_the_last_commit_costs_nothing
    autoreconnect_0_makes_no_second_connection
    the_limit_of_kept_data_holds_for_several_files
    without_a_connection_there_is_no_spinning
    the_first_call_of_a_job_that_was_asked_to_end_belongs_to_connecting
}

fn limits(patience: Duration, keep: Option<u64>) -> Limits {
    Limits { patience, keep, depth: 4 }
}

fn session(address: &Address, patience: Duration, keep: Option<u64>) -> (Session, Handle) {
    let mut session = Session::connect(address.clone(), limits(patience, keep), None).unwrap();
    let (file, _) = session.open("f", true).unwrap();
    (session, file)
}

const LONG: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_millis(700);

/// The outcome of the next unit.
fn finish(session: &mut Session) -> Done {
    session.flush();
    loop {
        if let Some(done) = session.next_done() {
            return done;
        }
        session.drive(None).unwrap();
    }
}

fn write(session: &mut Session, unit: u32, file: Handle, offset: u64, data: &'static [u8]) {
    // SAFETY: the data lives as long as the program, and no unit has the number of another one.
    let is_begun =
        unsafe { session.write(unit, file, offset, data.as_ptr(), data.len(), Stability::Unstable) };
    assert!(is_begun);
}

fn writes_during_a_commit_are_not_taken_as_committed(version: Version) {
    // The server answers the commits after the last write.
    let (server, address) = start(version, |procedure, before| match (procedure, before) {
        (procedure::COMMIT, _) => Act::Hold,
        (procedure::WRITE, 2) => Act::Overtake,
        _ => Act::Pass,
    });
    let (mut session, file) = session(&address, LONG, Some(1 << 20));
    for (unit, offset, data) in [(0, 0, b"aaaa"), (2, 4, b"bbbb")] {
        write(&mut session, unit, file, offset, data);
        finish(&mut session).result.unwrap();
        assert!(session.commit(unit + 1, file));
    }
    write(&mut session, 4, file, 8, b"cccc");
    for unit in [4, 1, 3] {
        let done = finish(&mut session);
        assert_eq!((done.unit, done.result.is_ok()), (unit, true));
    }
    // Now the server restarts and loses the uncommitted data.
    {
        let mut server = server.lock().unwrap();
        (server.verifier, server.file) = (2, b"aaaabbbb".to_vec());
        server.script = Box::new(|_, _| Act::Answer);
    }
    session.sync(file).unwrap();
    assert_eq!(server.lock().unwrap().file, b"aaaabbbbcccc");
    assert_eq!(session.counts().rewritten_bytes, 4);
}

fn calls_are_sent_together_while_finished_units_are_replaced(version: Version) {
    static LARGE: [u8; 64 << 10] = [7; 64 << 10];
    let (_server, address) = start(version, |procedure, before| match (procedure, before) {
        (procedure::WRITE, 0) => Act::Hold,
        _ => Act::Answer,
    });
    let (mut session, file) = session(&address, LONG, None);
    for unit in 0..2 {
        write(&mut session, unit, file, 0, b"abcd");
        session.submit();
        assert_eq!(session.connection.as_ref().unwrap().unsent(), 0);
    }
    while session.count_done() < 2 {
        session.drive(None).unwrap();
    }
    for (unit, is_last) in [(0, false), (1, true)] {
        session.next_done().unwrap();
        write(&mut session, unit, file, 0, b"abcd");
        session.submit();
        assert_eq!(session.connection.as_ref().unwrap().unsent() == 0, is_last);
    }
    while session.count_done() < 2 {
        session.drive(None).unwrap();
    }
    write(&mut session, 2, file, 0, &LARGE);
    session.submit();
    assert!(session.connection.as_ref().unwrap().unsent() < LARGE.len(), "much is not held back");
    for _ in 0..3 {
        assert!(finish(&mut session).result.is_ok());
    }
}

fn a_commit_answered_after_the_close_is_ignored(version: Version) {
    // The server answers a commit together with the next write.
    let (_, address) = start(version, |procedure, before| match (procedure, before) {
        (procedure::COMMIT, 0) => Act::Hold,
        _ => Act::Answer,
    });
    let (mut session, file) = session(&address, LONG, None);
    session.begin_commit(None, file.0);
    session.flush();
    session.close(file).unwrap();
    let next = session.keep_file(Opened::new(b"file".to_vec(), "g".to_owned()));
    assert_eq!(next, file, "the place is taken again");
    write(&mut session, 1, next, 0, b"bb");
    finish(&mut session).result.unwrap();
    let open = session.calls.files[next.0 as usize].as_ref().unwrap();
    assert_eq!((open.unstable(), open.commits, session.calls.open()), (2, 0, 0));
}

fn a_server_that_takes_connections_and_answers_nothing_is_given_up(version: Version) {
    for act in [Act::Cut, Act::Silence] {
        let (server, address) = start(version, move |procedure, _| match procedure {
            procedure::READ => act,
            _ => Act::Answer,
        });
        let (mut session, file) = session(&address, SHORT, None);
        let mut data = [0; 4];
        // SAFETY: the data outlives the session's use of it.
        assert!(unsafe { session.read(0, file, 0, data.as_mut_ptr(), 4) });
        let error = finish(&mut session).result.unwrap_err();
        match act {
            Act::Cut => assert!(matches!(*error, NfsError::Lost { .. }), "{error}"),
            _ => assert!(matches!(*error, NfsError::Silent { .. }), "{error}"),
        }
        // There is a pause between connections.
        assert!(server.lock().unwrap().counts[NULL as usize] < 20);
        server.lock().unwrap().script = Box::new(move |procedure, _| match procedure {
            procedure::GETATTR | procedure::WRITE => act,
            _ => Act::Answer,
        });
        let error = session.status(file).unwrap_err();
        assert!(matches!(error, NfsError::Lost { .. } | NfsError::Silent { .. }), "{error}");
        let error = session.write_all(file, b"abc", 0).unwrap_err();
        assert!(matches!(error, NfsError::Lost { .. } | NfsError::Silent { .. }), "{error}");
    }
}

fn a_job_that_was_asked_to_end_waits_for_a_silent_server_only_so_long(version: Version) {
    let (_, address) = start(version, |procedure, _| match procedure {
        procedure::READ => Act::Silence,
        _ => Act::Answer,
    });
    let mut data = [0; 4];
    let mut outcome = |patience, silent_for: Duration, longest| {
        let (mut session, file) = session(&address, patience, None);
        // SAFETY: the data outlives the session's use of it.
        assert!(unsafe { session.read(0, file, 0, data.as_mut_ptr(), 4) });
        session.flush();
        session.heard = Instant::now().checked_sub(silent_for).unwrap();
        session.hurry(longest);
        session.hurry(longest);
        finish(&mut session).result.unwrap_err().to_string()
    };
    let hurried = outcome(LONG, Duration::ZERO, SHORT);
    assert!(
        hurried.ends_with(&format!("no answer in {} s after the job was asked to end", SHORT.as_secs_f64())),
        "{hurried}"
    );
    // The session's own limit is sooner.
    let own = outcome(LONG, LONG, LONG / 2);
    assert!(own.ends_with("no answer within 120 s (nfs_timeout)"), "{own}");
    let own = outcome(SHORT, Duration::ZERO, LONG);
    assert!(own.ends_with("no answer within 0.7 s (nfs_timeout)"), "{own}");
}

fn a_server_that_is_busy_for_ever_is_given_up_and_one_that_is_for_a_moment_is_not(version: Version) {
    let (server, address) = start(version, |procedure, before| match (procedure, before) {
        (procedure::READ, _) => Act::Refuse(BUSY),
        (_, 0) => Act::Refuse(BUSY),
        _ => Act::Answer,
    });
    server.lock().unwrap().counts[NULL as usize] = 1;
    let (mut session, file) = session(&address, SHORT, Some(1 << 20));
    session.set_size(file, 0).unwrap();
    session.status(file).unwrap();
    write(&mut session, 0, file, 0, b"abcd");
    assert_eq!(finish(&mut session).result.unwrap(), 4);
    session.sync(file).unwrap();
    session.remove("f").unwrap();
    assert!(session.counts().busy >= 6);
    let mut data = [0; 4];
    // SAFETY: the data outlives the session's use of it.
    assert!(unsafe { session.read(0, file, 0, data.as_mut_ptr(), 4) });
    let error = finish(&mut session).result.unwrap_err();
    assert!(matches!(*error, NfsError::Refused { code: BUSY, .. }), "{error}");
}

fn a_connection_that_is_cut_during_the_last_commit_costs_nothing(version: Version) {
    let cut = |procedure, before| match (procedure, before) {
        (procedure::COMMIT | procedure::WRITE | procedure::REMOVE, 0) => Act::DoAndCut,
        (procedure::COMMIT, 2) => Act::Cut,
        _ => Act::Answer,
    };
    let (server, address) = start(version, cut);
    let (mut session, file) = session(&address, LONG, Some(1 << 20));
    session.write_all(file, b"abcd", 0).unwrap();
    session.sync(file).unwrap();
    write(&mut session, 0, file, 0, b"efgh");
    finish(&mut session).result.unwrap();
    session.close(file).unwrap();
    // The first call removed the file, and its answer was lost.
    session.remove("f").unwrap();
    assert!(session.remove("f").is_err());
    let server = server.lock().unwrap();
    assert_eq!(server.file, b"efgh");
    assert!(server.counts[procedure::COMMIT as usize] >= 4 && session.counts().reconnected >= 3);
}

fn autoreconnect_0_makes_no_second_connection(version: Version) {
    let (server, mut address) = start(version, |procedure, _| match procedure {
        procedure::READ | procedure::WRITE => Act::Cut,
        _ => Act::Answer,
    });
    address.stays_broken = true;
    let (mut session, file) = session(&address, LONG, None);
    let connections = server.lock().unwrap().counts[NULL as usize];
    for unit in 0..2 {
        write(&mut session, unit, file, 0, b"abcd");
        let error = finish(&mut session).result.unwrap_err();
        assert!(error.to_string().contains("autoreconnect=0"), "{error}");
    }
    assert!(session.status(file).is_err());
    assert_eq!(server.lock().unwrap().counts[NULL as usize], connections);
}

fn the_limit_of_kept_data_holds_for_several_files(version: Version) {
    let (server, address) = start(version, |_, _| Act::Answer);
    let (mut session, first) = session(&address, LONG, Some(16));
    let (second, _) = session.open("g", true).unwrap();
    for (unit, file) in [(0, first), (1, second)] {
        write(&mut session, unit, file, 0, b"12345678");
    }
    for _ in 0..2 {
        finish(&mut session).result.unwrap();
    }
    while session.is_full() {
        session.drive(None).unwrap();
    }
    assert!(server.lock().unwrap().counts[procedure::COMMIT as usize] >= 1);
    for (unit, file) in [(2, first), (3, second)] {
        write(&mut session, unit, file, 0, b"12345678");
    }
    for _ in 0..2 {
        finish(&mut session).result.unwrap();
    }
    for file in [first, second] {
        session.close(file).unwrap();
    }
}

fn without_a_connection_there_is_no_spinning(version: Version) {
    let (server, address) = start(version, |_, _| Act::Answer);
    let (mut session, file) = session(&address, LONG, Some(4));
    server.lock().unwrap().script = Box::new(|_, _| Act::Cut);
    write(&mut session, 0, file, 0, b"abcd");
    session.flush();
    session.lose_connection("it was cut", None);
    session.calls.fail_all(&NfsError::Interrupted);
    assert_eq!(session.in_flight(), 0);
    let before = server.lock().unwrap().counts[NULL as usize];
    let mut rounds = 0;
    while server.lock().unwrap().counts[NULL as usize] < before + 5 {
        session.drive(None).unwrap();
        rounds += 1;
    }
    assert!(rounds < 100, "{rounds} rounds for five tries");
}

#[test]
fn connecting_to_a_silent_server_ends_with_the_job() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    for version in ["version=3&mountport", "version=4&nfsport"] {
        let url = format!("nfs://127.0.0.1/export?{version}={port}");
        let limits = limits(LONG, None);
        let refused = Session::connect(Address::parse(&url).unwrap(), limits, Some((|| true, SHORT)));
        let said = refused.err().unwrap().to_string();
        assert!(said.ends_with("no answer in 0.7 s after the job was asked to end"), "{said}");
    }
}

fn the_first_call_of_a_job_that_was_asked_to_end_belongs_to_connecting(version: Version) {
    let limits = limits(LONG, None);
    let (_server, address) = start(version, |procedure, _| match procedure {
        procedure::FSINFO => Act::Silence,
        _ => Act::Answer,
    });
    let refused = Session::connect(address, limits, Some((|| true, SHORT)));
    let said = refused.err().unwrap().to_string();
    assert!(said.ends_with("no answer in 0.7 s after the job was asked to end"), "{said}");
    let (_server, address) = start(version, |_, _| Act::Answer);
    let session = Session::connect(address, limits, Some((|| true, SHORT))).unwrap();
    let patience = (session.limits.patience, session.calls.patience);
    assert_eq!(patience, (SHORT, SHORT), "each later wait has the whole time");
}

#[test]
fn a_name_without_an_address_is_not_blamed_on_the_port_mapper() {
    for version in ["", "?version=4"] {
        let address = Address::parse(&format!("nfs://no.such.host.invalid/export{version}")).unwrap();
        let refused = Session::connect(address, limits(LONG, None), None);
        let said = refused.err().unwrap().to_string();
        assert!(said.contains("the name in nfs_url= cannot be resolved ("), "{said}");
        assert!(!said.contains("port mapper"), "{said}");
    }
}
