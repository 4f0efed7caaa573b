//! A scripted server of both versions, which misbehaves in ways that a real server would not.

use crate::protocol::{BUSY, Version};
use crate::rpc;
use crate::url::Address;
use crate::v3::procedure;
use crate::xdr::{Reader, Writer};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub(super) const NULL: u32 = 0;
const MOUNT: u32 = 100_005;

/// Procedures of version 3 by whose numbers scripts know operations of version 4.
const NAMES: [(u32, u32); 9] = [
    (42, procedure::FSINFO),
    (15, procedure::LOOKUP),
    (9, procedure::GETATTR),
    (18, procedure::CREATE),
    (25, procedure::READ),
    (38, procedure::WRITE),
    (5, procedure::COMMIT),
    (28, procedure::REMOVE),
    (34, procedure::SETATTR),
];

/// How the server reacts to a call.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Act {
    Answer,
    /// Performs the call, but closes the connection instead of answering.
    DoAndCut,
    /// Performs and answers the call, and then restarts with its sessions.
    DoAndRestart,
    Cut,
    Refuse(u32),
    /// Refuses the whole call of version 4, by the status of SEQUENCE.
    RefuseCall(u32),
    Silence,
    /// Refuses the remote procedure call, before anything is read of it.
    Deny,
    /// Holds the answer back until the next call is answered, and sends it first.
    Hold,
    /// Answers this call alone, without the answers that it has held back.
    Pass,
    /// Answers, and then sends the answers that it has held back.
    Overtake,
}

/// Decides how the server reacts to a procedure (or [`NULL`] when a client connects), given how often it was called
/// before.
pub(super) type Script = Box<dyn FnMut(u32, usize) -> Act + Send>;

/// A slot of a session: the number of its last call, and the answer if it was kept.
type Slot = (u32, Option<Vec<u8>>);

pub(super) struct Server {
    pub(super) script: Script,
    /// How often each procedure was called.
    pub(super) counts: [usize; 22],
    /// How often each operation of version 4 was performed.
    pub(super) performed: [usize; 64],
    pub(super) verifier: u64,
    pub(super) file: Vec<u8>,
    pub(super) exists: bool,
    pub(super) held: Vec<Vec<u8>>,
    /// How many slots a session gets.
    pub(super) slots: u32,
    /// The longest calls and answers of a session.
    pub(super) longest: u32,
    /// The number of the client, of its state and of the session; 0 = forgotten.
    pub(super) client: u64,
    pub(super) session: u64,
    /// Files that were open before may be reclaimed.
    pub(super) is_in_grace: bool,
    /// The client has not said yet that it has reclaimed everything.
    must_reclaim: bool,
    /// States of open files.
    pub(super) open: Vec<u64>,
    /// Another client denies writing to everybody else.
    pub(super) denies_writing: bool,
    table: HashMap<u32, Slot>,
    last: u64,
    /// The highest number of calls that were held back at a time.
    pub(super) most_held: usize,
    /// What the server sends before the next answer.
    pub(super) before: Vec<u8>,
    /// Answers of the client to calls of the server.
    pub(super) told: Vec<Vec<u8>>,
}

pub(super) type Shared = Arc<Mutex<Server>>;

pub(super) fn start(
    version: Version,
    script: impl FnMut(u32, usize) -> Act + Send + 'static,
) -> (Shared, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = Some(listener.local_addr().unwrap().port());
    let server = Server {
        script: Box::new(script),
        counts: [0; 22],
        performed: [0; 64],
        verifier: 1,
        file: Vec::new(),
        exists: true,
        held: Vec::new(),
        slots: 64,
        longest: 1 << 20,
        client: 0,
        session: 0,
        is_in_grace: false,
        must_reclaim: false,
        open: Vec::new(),
        denies_writing: false,
        table: HashMap::new(),
        last: 0,
        most_held: 0,
        before: Vec::new(),
        told: Vec::new(),
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
        version,
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
        let before = std::mem::take(&mut server.before);
        stream.write_all(&before).ok()?;
        for reply in server.reply(&call)? {
            stream.write_all(&reply).ok()?;
        }
    }
}

/// What the slot of a call says about it.
enum Sequenced {
    /// It is a new one.
    New { slot: u32, is_kept: bool },
    /// It was answered before, with this.
    Kept(Vec<u8>),
    /// It was answered before, but the answer was not kept.
    Unkept,
    /// It is refused with this status.
    Refused(u32),
}

impl Server {
    /// Restarts: what was not committed is gone, and so are clients and sessions.
    pub(super) fn restart(&mut self, file: &[u8], is_in_grace: bool) {
        self.verifier += 1;
        self.file = file.to_vec();
        (self.client, self.session, self.is_in_grace) = (0, 0, is_in_grace);
        self.open.clear();
        self.must_reclaim = true;
    }

    /// Restarts without losing clients, sessions and connections.
    pub(super) fn restart_with_sessions(&mut self) {
        self.verifier += 1;
        self.open.clear();
        (self.is_in_grace, self.must_reclaim) = (true, true);
    }

    fn asks(&mut self, procedure: u32) -> Act {
        let before = self.counts[procedure as usize];
        self.counts[procedure as usize] += 1;
        (self.script)(procedure, before)
    }

    /// The replies to a call, followed by those that were held back; none to close the connection.
    fn reply(&mut self, call: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut reader = Reader::new(call);
        let id = reader.u32().ok()?;
        if reader.u32().ok()? == 1 {
            self.told.push(call.to_vec());
            return Some(Vec::new());
        }
        reader.take(4).ok()?;
        let (program, version, procedure) = (reader.u32().ok()?, reader.u32().ok()?, reader.u32().ok()?);
        for _ in 0..2 {
            reader.u32().ok()?;
            reader.opaque(400).ok()?;
        }
        let mut reply = vec![0; 4];
        let mut writer = Writer(&mut reply);
        writer.u32(id).u32(1).u32(0).u32(0).u32(0).u32(0);
        let act = if program == MOUNT {
            writer.u32(0).opaque(b"root").u32(0);
            Act::Answer
        } else if version == 4 {
            let (act, results) = self.compound(&mut reader)?;
            writer.0.extend_from_slice(&results);
            act
        } else {
            let act = self.asks(procedure);
            match act {
                Act::Refuse(code) => drop(writer.u32(code).u32(0).u32(0)),
                Act::Cut | Act::Silence => {}
                _ => self.grant(procedure, &mut reader, &mut writer)?,
            }
            act
        };
        match act {
            Act::DoAndCut | Act::Cut => return None,
            Act::Silence => return Some(Vec::new()),
            // (SYSTEM_ERR)
            Act::Deny => *reply.last_mut()? = 5,
            _ => {}
        }
        rpc::end(&mut reply, 0, 0);
        self.held.push(reply);
        self.most_held = self.most_held.max(self.held.len());
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
                let count = self.write(offset, reader.opaque(1 << 20).ok()?);
                writer.u32(0).u32(0).u32(count).u32(0).u64(verifier);
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

    fn write(&mut self, offset: usize, data: &[u8]) -> u32 {
        if self.file.len() < offset + data.len() {
            self.file.resize(offset + data.len(), 0);
        }
        self.file[offset..offset + data.len()].copy_from_slice(data);
        data.len() as u32
    }

    /// Performs the operations of a call of version 4.
    fn compound(&mut self, reader: &mut Reader<'_>) -> Option<(Act, Vec<u8>)> {
        reader.opaque(64).ok()?;
        let (minor, count) = (reader.u32().ok()?, reader.u32().ok()?);
        assert_eq!(minor, 1);
        let (mut results, mut kept, mut act, mut is_unkept) = (Vec::new(), None, Act::Answer, false);
        let (mut status, mut number) = (0, 0);
        while number < count && status == 0 {
            number += 1;
            let operation = reader.u32().ok()?;
            if operation == 53 {
                match self.sequence(&mut reader.clone())? {
                    Sequenced::New { slot, is_kept } => kept = Some((slot, is_kept)),
                    Sequenced::Kept(answer) => return Some((Act::Answer, answer)),
                    // (The next operation says so.)
                    Sequenced::Unkept => is_unkept = true,
                    Sequenced::Refused(code) => {
                        return Some((Act::Answer, compound(code, 1, &refusal(53, code))));
                    }
                }
            }
            if is_unkept && number == 2 {
                Writer(&mut results).u32(operation).u32(10068);
                return Some((Act::Answer, compound(10068, 2, &results)));
            }
            if let Some((_, name)) = NAMES.iter().find(|(own, _)| *own == operation)
                && (operation != 9 || number == count && count <= 3)
            {
                act = self.asks(*name);
            }
            let refused = match act {
                Act::Refuse(code) => Some(code),
                Act::RefuseCall(code) => {
                    if let (Some((slot, _)), true) = (kept, code != 10068) {
                        self.table.entry(slot).and_modify(|(number, _)| *number -= 1);
                    }
                    return Some((act, compound(code, 1, &refusal(53, code))));
                }
                Act::Cut | Act::Silence | Act::Deny => {
                    // It has not seen the call.
                    if let Some((slot, _)) = kept {
                        self.table.entry(slot).and_modify(|(number, _)| *number -= 1);
                    }
                    return Some((act, Vec::new()));
                }
                _ => None,
            };
            let mut result = Vec::new();
            status = match refused {
                Some(code) => code,
                None => self.perform(operation, reader, &mut Writer(&mut result))?,
            };
            Writer(&mut results).u32(operation).u32(status);
            results.extend_from_slice(&result);
        }
        if act == Act::DoAndRestart {
            self.restart_with_sessions();
        }
        let answer = compound(status, number, &results);
        if let Some((slot, is_kept)) = kept {
            self.table.entry(slot).and_modify(|(_, kept)| *kept = is_kept.then(|| answer.clone()));
        }
        Some((act, answer))
    }

    /// Checks the slot of a call.
    fn sequence(&mut self, reader: &mut Reader<'_>) -> Option<Sequenced> {
        let (session, _) = (reader.u64().ok()?, reader.u64().ok()?);
        let (number, slot) = (reader.u32().ok()?, reader.u32().ok()?);
        let (highest, is_kept) = (reader.u32().ok()?, reader.u32().ok()? == 1);
        if session != self.session {
            return Some(Sequenced::Refused(10052));
        }
        assert!(slot < self.slots);
        if highest >= self.slots {
            return Some(Sequenced::Refused(10077));
        }
        let (last, kept) = self.table.entry(slot).or_insert((0, None));
        Some(match number.wrapping_sub(*last) {
            0 => kept.clone().map_or(Sequenced::Unkept, Sequenced::Kept),
            1 => {
                *last = number;
                Sequenced::New { slot, is_kept }
            }
            _ => Sequenced::Refused(10063),
        })
    }

    /// Performs an operation and appends its result. Returns its status.
    fn perform(&mut self, operation: u32, reader: &mut Reader<'_>, writer: &mut Writer<'_>) -> Option<u32> {
        self.performed[operation as usize] += 1;
        let verifier = self.verifier;
        match operation {
            4 => {
                reader.u32().ok()?;
                let state = state(reader)?;
                if !self.open.contains(&state) {
                    return Some(10025);
                }
                self.open.retain(|open| *open != state);
                writer.u64(0).u64(0);
            }
            5 => {
                reader.take(12).ok()?;
                writer.u64(verifier);
            }
            9 => {
                let words = reader.u32().ok()?;
                assert_eq!(words, 2);
                let (low, high) = (reader.u32().ok()?, reader.u32().ok()?);
                let mut values = Vec::new();
                let mut values_writer = Writer(&mut values);
                // Type and size; or lease, and the largest reads and writes.
                match low & 1 << 1 != 0 {
                    true => drop(values_writer.u32(1).u64(self.file.len() as u64).u64(0)),
                    false => drop(values_writer.u32(90).u64(8192).u64(8192)),
                }
                writer.u32(2).u32(low).u32(high).opaque(&values);
            }
            10 => drop(writer.opaque(b"file")),
            15 => {
                reader.opaque(64).ok()?;
                return Some(if self.exists { 0 } else { 2 });
            }
            18 => return self.open(reader, writer),
            22 => drop(reader.opaque(64).ok()?),
            25 => {
                let state = state(reader)?;
                let (offset, length) = (reader.u64().ok()? as usize, reader.u32().ok()? as usize);
                if !self.open.contains(&state) {
                    return Some(10025);
                }
                writer.u32(0).opaque(&self.file[offset..][..length]);
            }
            28 => {
                reader.opaque(64).ok()?;
                if !self.exists {
                    return Some(2);
                }
                self.exists = false;
                writer.u32(0).u64(0).u64(0);
            }
            34 => {
                state(reader)?;
                reader.take(12).ok()?;
                reader.opaque(64).ok()?;
                writer.u32(0);
            }
            38 => {
                let state = state(reader)?;
                let offset = reader.u64().ok()? as usize;
                reader.u32().ok()?;
                let data = reader.opaque(1 << 20).ok()?;
                if !self.open.contains(&state) {
                    return Some(10025);
                }
                let count = self.write(offset, data);
                writer.u32(count).u32(0).u64(verifier);
            }
            42 => {
                reader.u64().ok()?;
                reader.opaque(64).ok()?;
                reader.take(12).ok()?;
                let is_known = self.client > 0;
                if !is_known {
                    self.last += 1;
                    self.client = self.last;
                }
                writer.u64(self.client).u32(1).u32(if is_known { 1 << 31 } else { 0 }).u32(0);
            }
            43 => {
                let client = reader.u64().ok()?;
                if client != self.client {
                    return Some(10022);
                }
                let number = reader.u32().ok()?;
                self.last += 1;
                self.session = self.last;
                self.table.clear();
                writer.u64(self.session).u64(0).u32(number).u32(0);
                for _ in 0..2 {
                    writer.u32(0).u32(self.longest).u32(self.longest).u32(2048).u32(8).u32(self.slots).u32(0);
                }
            }
            44 => {
                let (session, _) = (reader.u64().ok()?, reader.u64().ok()?);
                if session != self.session {
                    return Some(10052);
                }
                self.session = 0;
            }
            53 => {
                let (session, slots) = (self.session, self.slots);
                // RESTART_RECLAIM_NEEDED
                let flags = if self.must_reclaim { 0x100 } else { 0 };
                reader.take(16).ok()?;
                let (number, slot) = (reader.u32().ok()?, reader.u32().ok()?);
                reader.take(8).ok()?;
                writer.u64(session).u64(0).u32(number).u32(slot).u32(slots - 1).u32(slots - 1).u32(flags);
            }
            55 => {
                assert_eq!(reader.u32().ok()?, 1);
                let is_open = self.open.contains(&state(reader)?);
                writer.u32(1).u32(if is_open { 0 } else { 10025 });
            }
            57 => {
                reader.u64().ok()?;
                self.client = 0;
            }
            58 => {
                reader.u32().ok()?;
                self.must_reclaim = false;
            }
            24 => {}
            other => panic!("operation {other}"),
        }
        Some(0)
    }

    fn open(&mut self, reader: &mut Reader<'_>, writer: &mut Writer<'_>) -> Option<u32> {
        reader.u32().ok()?;
        let writes = reader.u32().ok()? & 2 != 0;
        reader.take(4 + 8).ok()?;
        reader.opaque(64).ok()?;
        if reader.u32().ok()? == 1 {
            // The mode, and how to create it.
            reader.take(4 + 12).ok()?;
            reader.opaque(64).ok()?;
        }
        match reader.u32().ok()? {
            0 => drop(reader.opaque(64).ok()?),
            1 => {
                reader.u32().ok()?;
                if !self.is_in_grace {
                    return Some(10033);
                }
            }
            _ => {}
        }
        if self.denies_writing && writes {
            return Some(10015);
        }
        self.last += 1;
        self.open.push(self.last);
        // The state, the change of the directory, flags, no attributes, and no delegation.
        writer.u32(1).u32(7).u64(self.last).u32(0).u64(0).u64(0).u32(0).u32(0).u32(0);
        Some(0)
    }
}

/// Reads the state of an open file.
fn state(reader: &mut Reader<'_>) -> Option<u64> {
    reader.take(8).ok()?;
    reader.u64().ok()
}

/// The answer to a call of version 4.
fn compound(status: u32, count: u32, results: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    Writer(&mut answer).u32(status).u32(0).u32(count);
    answer.extend_from_slice(results);
    answer
}

fn refusal(operation: u32, code: u32) -> Vec<u8> {
    assert!(code >= 1 || code == BUSY);
    let mut result = Vec::new();
    Writer(&mut result).u32(operation).u32(code);
    result
}
