//! Tests of a session with a scripted server, which misbehaves in ways that a real server would not.

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const NULL: u32 = 0;
const MOUNT: u32 = 100_005;

/// How the server reacts to a call.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    Answer,
    /// Performs the call, but closes the connection instead of answering.
    DoAndCut,
    Cut,
    Refuse(u32),
    Silence,
    /// Holds the answer back until the next call is answered, and sends it first.
    Hold,
    /// Answers this call alone, without the answers that it has held back.
    Pass,
    /// Answers, and then sends the answers that it has held back.
    Overtake,
}

/// Decides how the server reacts to a procedure (or [`NULL`] when a client connects), given how often it was called
/// before.
type Script = Box<dyn FnMut(u32, usize) -> Act + Send>;

struct Server {
    script: Script,
    /// How often each procedure was called.
    counts: [usize; 22],
    verifier: u64,
    file: Vec<u8>,
    exists: bool,
    held: Vec<Vec<u8>>,
}

type Shared = Arc<Mutex<Server>>;

fn start(script: impl FnMut(u32, usize) -> Act + Send + 'static) -> (Shared, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = Some(listener.local_addr().unwrap().port());
    let server = Server {
        script: Box::new(script),
        counts: [0; 22],
        verifier: 1,
        file: Vec::new(),
        exists: true,
        held: Vec::new(),
    };
    let shared = Arc::new(Mutex::new(server));
    let server = Arc::clone(&shared);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let server = Arc::clone(&server);
            thread::spawn(move || serve(stream, &server));
        }
    });
    let address = Address {
        host: "127.0.0.1".into(),
        export: "/x".into(),
        nfs_port: port,
        mount_port: port,
        ..Address::default()
    };
    (shared, address)
}

/// Answers the requests of one connection.
fn serve(mut stream: TcpStream, shared: &Shared) -> Option<()> {
    if shared.lock().unwrap().asks(NULL) == Act::Cut {
        return None;
    }
    shared.lock().unwrap().held.clear();
    loop {
        let mut mark = [0; 4];
        stream.read_exact(&mut mark).ok()?;
        let mut call = vec![0; (u32::from_be_bytes(mark) & !rpc::LAST) as usize];
        stream.read_exact(&mut call).ok()?;
        let mut server = shared.lock().unwrap();
        for reply in server.reply(&call)? {
            stream.write_all(&reply).ok()?;
        }
    }
}

impl Server {
    fn asks(&mut self, procedure: u32) -> Act {
        let before = self.counts[procedure as usize];
        self.counts[procedure as usize] += 1;
        (self.script)(procedure, before)
    }

    /// The replies to a call, followed by those that were held back; none to close the connection.
    fn reply(&mut self, call: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut reader = Reader::new(call);
        let id = reader.u32().ok()?;
        reader.take(8).ok()?;
        let (program, _, procedure) = (reader.u32().ok()?, reader.u32().ok()?, reader.u32().ok()?);
        for _ in 0..2 {
            reader.u32().ok()?;
            reader.opaque(400).ok()?;
        }
        let act = if program == MOUNT { Act::Answer } else { self.asks(procedure) };
        let mut reply = vec![0; 4];
        let mut writer = Writer(&mut reply);
        writer.u32(id).u32(1).u32(0).u32(0).u32(0).u32(0);
        match act {
            Act::Cut => return None,
            Act::Silence => return Some(Vec::new()),
            Act::Refuse(code) => drop(writer.u32(code).u32(0).u32(0)),
            _ if program == MOUNT => drop(writer.u32(0).opaque(b"root").u32(0)),
            _ => self.grant(procedure, &mut reader, &mut writer)?,
        }
        if act == Act::DoAndCut {
            return None;
        }
        rpc::end(&mut reply, 0, 0);
        self.held.push(reply);
        Some(match act {
            Act::Hold => Vec::new(),
            Act::Pass => self.held.pop().into_iter().collect(),
            Act::Overtake => {
                self.held.rotate_right(1);
                std::mem::take(&mut self.held)
            }
            _ => std::mem::take(&mut self.held),
        })
    }

    fn grant(&mut self, number: u32, reader: &mut Reader<'_>, writer: &mut Writer<'_>) -> Option<()> {
        reader.opaque(64).ok()?;
        let verifier = self.verifier;
        if matches!(number, procedure::LOOKUP | procedure::REMOVE) && !self.exists {
            writer.u32(2).u32(0).u32(0);
            return Some(());
        }
        writer.u32(0);
        match number {
            procedure::FSINFO => drop(writer.u32(0).u32(8192).u32(0).u32(0).u32(8192)),
            procedure::LOOKUP => drop(writer.opaque(b"file").u32(0)),
            procedure::GETATTR => {
                writer.u32(1).u32(0).u32(0).u32(0).u32(0).u64(self.file.len() as u64).u64(0);
                writer.0.extend_from_slice(&[0; 48]);
            }
            procedure::READ => {
                let (offset, length) = (reader.u64().ok()? as usize, reader.u32().ok()? as usize);
                let data = &self.file[offset..][..length];
                writer.u32(0).u32(data.len() as u32).u32(0).opaque(data);
            }
            procedure::WRITE => {
                let offset = reader.u64().ok()? as usize;
                reader.take(8).ok()?;
                let data = reader.opaque(1 << 20).ok()?;
                if self.file.len() < offset + data.len() {
                    self.file.resize(offset + data.len(), 0);
                }
                self.file[offset..offset + data.len()].copy_from_slice(data);
                writer.u32(0).u32(0).u32(data.len() as u32).u32(0).u64(verifier);
            }
            procedure::COMMIT => drop(writer.u32(0).u32(0).u64(verifier)),
            procedure::REMOVE => {
                self.exists = false;
                writer.u32(0).u32(0);
            }
            _ => drop(writer.u32(0).u32(0)),
        }
        Some(())
    }
}

fn session(address: &Address, patience: Duration, keep: Option<u64>) -> (Session, Handle) {
    let mut session = Session::connect(address.clone(), Limits { patience, keep }, None).unwrap();
    let (file, _) = session.open("f").unwrap();
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

#[test]
fn writes_during_a_commit_are_not_taken_as_committed() {
    // The server answers the commits after the last write.
    let (server, address) = start(|procedure, before| match (procedure, before) {
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

#[test]
fn a_commit_answered_after_the_close_is_ignored() {
    // The server answers a commit together with the next write.
    let (_, address) = start(|procedure, before| match (procedure, before) {
        (procedure::COMMIT, 0) => Act::Hold,
        _ => Act::Answer,
    });
    let (mut session, file) = session(&address, LONG, None);
    session.begin_commit(None, file.0);
    session.flush();
    session.close(file).unwrap();
    let next = session.keep_file(b"file".to_vec(), "g".to_owned());
    assert_eq!(next, file, "the place is taken again");
    write(&mut session, 1, next, 0, b"bb");
    finish(&mut session).result.unwrap();
    let open = session.calls.files[next.0 as usize].as_ref().unwrap();
    assert_eq!((open.unstable(), open.commits, session.calls.open()), (2, 0, 0));
}

#[test]
fn a_server_that_takes_connections_and_answers_nothing_is_given_up() {
    for act in [Act::Cut, Act::Silence] {
        let (server, address) = start(move |procedure, _| match procedure {
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

#[test]
fn a_job_that_was_asked_to_end_waits_for_a_silent_server_only_so_long() {
    let (_, address) = start(|procedure, _| match procedure {
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

#[test]
fn a_server_that_is_busy_for_ever_is_given_up_and_one_that_is_for_a_moment_is_not() {
    let (server, address) = start(|procedure, before| match (procedure, before) {
        (procedure::READ, _) => Act::Refuse(crate::status::JUKEBOX),
        (_, 0) => Act::Refuse(crate::status::JUKEBOX),
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
    assert!(matches!(*error, NfsError::Refused { code: crate::status::JUKEBOX, .. }), "{error}");
}

#[test]
fn a_connection_that_is_cut_during_the_last_commit_costs_nothing() {
    let cut = |procedure, before| match (procedure, before) {
        (procedure::COMMIT | procedure::WRITE | procedure::REMOVE, 0) => Act::DoAndCut,
        (procedure::COMMIT, 2) => Act::Cut,
        _ => Act::Answer,
    };
    let (server, address) = start(cut);
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

#[test]
fn autoreconnect_0_makes_no_second_connection() {
    let (server, mut address) = start(|procedure, _| match procedure {
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

#[test]
fn the_limit_of_kept_data_holds_for_several_files() {
    let (server, address) = start(|_, _| Act::Answer);
    let (mut session, first) = session(&address, LONG, Some(16));
    let (second, _) = session.open("g").unwrap();
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

#[test]
fn without_a_connection_there_is_no_spinning() {
    let (server, address) = start(|_, _| Act::Answer);
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
    let url = format!("nfs://127.0.0.1/export?mountport={port}&nfsport={port}");
    let limits = Limits { patience: LONG, keep: None };
    let refused = Session::connect(Address::parse(&url).unwrap(), limits, Some((|| true, SHORT)));
    let said = refused.err().unwrap().to_string();
    assert!(said.ends_with("no answer in 0.7 s after the job was asked to end"), "{said}");
}

#[test]
fn the_first_call_of_a_job_that_was_asked_to_end_belongs_to_connecting() {
    let limits = Limits { patience: LONG, keep: None };
    let (_server, address) = start(|procedure, _| match procedure {
        procedure::FSINFO => Act::Silence,
        _ => Act::Answer,
    });
    let refused = Session::connect(address, limits, Some((|| true, SHORT)));
    let said = refused.err().unwrap().to_string();
    assert!(said.ends_with("no answer in 0.7 s after the job was asked to end"), "{said}");
    let (_server, address) = start(|_, _| Act::Answer);
    let session = Session::connect(address, limits, Some((|| true, SHORT))).unwrap();
    let patience = (session.limits.patience, session.calls.patience);
    assert_eq!(patience, (SHORT, SHORT), "each later wait has the whole time");
}

#[test]
fn a_name_without_an_address_is_not_blamed_on_the_port_mapper() {
    let address = Address::parse("nfs://no.such.host.invalid/export").unwrap();
    let refused = Session::connect(address, Limits { patience: LONG, keep: None }, None);
    let said = refused.err().unwrap().to_string();
    assert!(said.contains("the name in nfs_url= cannot be resolved ("), "{said}");
    assert!(!said.contains("port mapper"), "{said}");
}
