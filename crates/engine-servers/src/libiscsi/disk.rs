//! A session with a disk, and the commands in flight on it.

use super::address::Address;
use super::library::{Callback, Context, FROM_DISK, Library, NO_DATA, NORMAL, Sent, TO_DISK, Task};
use crate::server_timeout::ServerTimeout;
use iolite_engine::Errno;
use iolite_engine::is_asked_to_stop;
use iolite_os::explained;
use iolite_os::time::monotonic_ns;
use libc::{c_int, c_void};
use std::cell::{Cell, UnsafeCell};
use std::ffi::CString;
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// The longest sleep between two checks for signals and timeouts.
pub(super) const NAP: Duration = Duration::from_millis(100);

/// The SCSI statuses of a command.
const GOOD: c_int = 0;
const RESERVED: c_int = 0x18;
/// The library's status for a command whose connection was lost.
const CANCELLED: c_int = 0x0f00_0000;

/// The data that a command transfers.
#[derive(Clone, Copy)]
pub(super) enum Data {
    None,
    In(*mut u8, usize),
    Out(*const u8, usize),
}

/// A finished command: its number, when its answer arrived (0 = it has none), and the message if it failed.
pub(super) struct Over {
    pub(super) number: u32,
    pub(super) answered: u64,
    pub(super) failure: Option<(Errno, String)>,
}

/// The slot of a command, which does not move.
struct Slot {
    number: u32,
    /// The command is in flight.
    is_open: Cell<bool>,
    status: Cell<c_int>,
    /// When the answer to its last command arrived (`CLOCK_MONOTONIC`); 0 = it has none.
    answered: Cell<u64>,
    task: Cell<*mut Task>,
    done: *const UnsafeCell<Vec<u32>>,
    /// The description of the data that the command sends, and the parameters of a trim, which are not in the unit's
    /// buffer.
    sent: UnsafeCell<Sent>,
    parameters: UnsafeCell<[u8; 24]>,
}

/// The names of both sides, and their passwords.
pub(super) struct Login<'a> {
    pub(super) initiator: &'a str,
    pub(super) user: Option<(&'a str, &'a str)>,
    pub(super) target: Option<(&'a str, &'a str)>,
    /// The interface of this machine that the connection comes from.
    pub(super) from: Option<&'a str>,
}

/// The library's reports about the connection: one when it is established, and perhaps one when it is torn down.
#[derive(Default)]
struct Link {
    /// The status of the login, after it has ended.
    status: Cell<Option<c_int>>,
    is_torn_down: Cell<bool>,
}

/// A session.
pub(super) struct Disk {
    library: Rc<Library>,
    context: *mut Context,
    lun: c_int,
    #[expect(clippy::vec_box, reason = "the library has pointers to them, so they must not move")]
    slots: Vec<Box<Slot>>,
    done: Box<UnsafeCell<Vec<u32>>>,
    link: Box<Link>,
    pub(super) in_flight: usize,
    silence: ServerTimeout,
    /// The error and the message for commands that failed with the session.
    failure: Option<(Errno, String)>,
    /// The disk's name, for messages.
    name: String,
    /// The size of a block in bytes.
    pub(super) block: u64,
    pub(super) size: u64,
    pub(super) can_trim: bool,
    pub(super) is_read_only: bool,
}

/// # Safety
/// `data` is a slot.
unsafe extern "C" fn over(_: *mut Context, status: c_int, _: *mut c_void, data: *mut c_void) {
    // SAFETY: slots and the data they point to live as long as the session. The library calls back only from within
    // functions that the session calls, and the session holds no references to them then.
    unsafe {
        let slot = &*data.cast::<Slot>();
        // (If the command was abandoned, it has been reported already.)
        if slot.is_open.replace(false) {
            slot.status.set(status);
            slot.answered.set(monotonic_ns());
            (*(*slot.done).get()).push(slot.number);
        }
    }
}

const CALLBACK: Callback = over;

/// # Safety
/// `data` is a link.
unsafe extern "C" fn linked(_: *mut Context, status: c_int, _: *mut c_void, data: *mut c_void) {
    // SAFETY: the link exists as long as the session.
    let link = unsafe { &*data.cast::<Link>() };
    match link.status.get() {
        None => link.status.set(Some(status)),
        Some(_) => link.is_torn_down.set(true),
    }
}

impl Disk {
    /// Logs in and queries the disk. `silence` limits the silence of the target.
    pub(super) fn new(
        library: &Rc<Library>,
        address: &Address,
        login: &Login,
        silence: ServerTimeout,
    ) -> io::Result<Disk> {
        let text = |text: &str| CString::new(text).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
        let (portal, target, initiator) =
            (text(&address.portal)?, text(&address.target)?, text(login.initiator)?);
        // SAFETY: the name ends with a zero byte.
        let context = unsafe { (library.create)(initiator.as_ptr()) };
        if context.is_null() {
            return Err(io::Error::other("no session can be made; is the initiator's name one (iqn.…)?"));
        }
        let mut disk = Disk {
            library: library.clone(),
            context,
            lun: address.lun,
            slots: Vec::new(),
            done: Box::default(),
            link: Box::default(),
            in_flight: 0,
            silence,
            failure: None,
            name: address.shown(),
            block: 512,
            size: 0,
            can_trim: false,
            is_read_only: false,
        };
        let lib = disk.library.clone();
        // SAFETY: the session exists, and texts end with a zero byte.
        unsafe {
            (lib.set_kind)(context, NORMAL);
            (lib.stay_broken)(context, 1);
            (lib.set_target)(context, target.as_ptr());
            if let Some(interface) = login.from {
                // (The library copies the name, although it is not declared as constant.)
                (lib.connect_from)(context, text(interface)?.as_ptr().cast_mut());
            }
            if let Some((user, password)) = login.user {
                let (user, password) = (text(user)?, text(password)?);
                (lib.set_user)(context, user.as_ptr(), password.as_ptr());
            }
            if let Some((user, password)) = login.target {
                let (user, password) = (text(user)?, text(password)?);
                (lib.set_proof)(context, user.as_ptr(), password.as_ptr());
            }
        }
        disk.log_in(&portal)?;
        disk.ask()?;
        Ok(disk)
    }

    fn log_in(&mut self, portal: &CString) -> io::Result<()> {
        let link = (&raw const *self.link).cast_mut().cast();
        // SAFETY: the session exists, and the text ends with a zero byte. The link outlives the session.
        let begun = unsafe { (self.library.connect)(self.context, portal.as_ptr(), self.lun, linked, link) };
        if begun != 0 {
            self.lose();
        }
        while self.link.status.get().is_none() && self.failure.is_none() {
            self.go_on_waiting();
        }
        if self.link.status.get() != Some(GOOD) && self.failure.is_none() {
            self.lose();
        }
        match self.failure.clone() {
            Some((errno, words)) => {
                // (The caller adds the job's name of the disk.)
                let words = words.strip_prefix(&format!("{}: ", self.name)).unwrap_or(&words);
                Err(explained(&io::Error::from(errno), words.to_owned()))
            }
            None => Ok(()),
        }
    }

    /// The address of the slot of a command that is about to begin, to pass to the library.
    fn slot(&mut self, number: u32) -> *mut c_void {
        while self.slots.len() <= number as usize {
            let number = self.slots.len() as u32;
            self.slots.push(Box::new(Slot {
                number,
                is_open: Cell::new(false),
                status: Cell::new(0),
                answered: Cell::new(0),
                task: Cell::new(std::ptr::null_mut()),
                done: &raw const *self.done,
                sent: UnsafeCell::new(Sent { size: 0, data: std::ptr::null() }),
                parameters: UnsafeCell::new([0; 24]),
            }));
        }
        if self.in_flight == 0 {
            self.silence.hears();
        }
        let slot = &self.slots[number as usize];
        slot.is_open.set(true);
        slot.answered.set(0);
        (&raw const **slot).cast_mut().cast()
    }

    /// Queries the disk's size, block size and capabilities.
    fn ask(&mut self) -> io::Result<()> {
        let mut answer = [0; 32];
        let mut command = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, answer.len() as u8, 0, 0];
        self.call(&mut command, Data::In(answer.as_mut_ptr(), answer.len()))?;
        let last = u64::from_be_bytes(answer[..8].try_into().expect("there are eight"));
        self.block = u32::from_be_bytes(answer[8..12].try_into().expect("there are four")).into();
        // (Fields are zero if the disk leaves them out.)
        if self.block == 0 {
            return Err(io::Error::other(format!(
                "{}: the disk does not say how large its blocks are",
                self.name
            )));
        }
        self.size = last.saturating_add(1).saturating_mul(self.block);
        self.can_trim = answer[14] & 0x80 != 0;
        // If the disk does not answer this, it is assumed to be writable.
        let mut modes = [0; 192];
        let mut command = [0x1a, 0, 0x3f, 0, modes.len() as u8, 0];
        if self.call(&mut command, Data::In(modes.as_mut_ptr(), modes.len())).is_ok() {
            self.is_read_only = modes[2] & 0x80 != 0;
        }
        Ok(())
    }

    /// Begins a command.
    ///
    /// # Safety
    /// The data of the command is valid until the command is done or the session is dropped. No other command in
    /// flight has this number.
    pub(super) unsafe fn begin(
        &mut self,
        number: u32,
        command: &mut [u8],
        data: Data,
    ) -> Result<(), (Errno, String)> {
        if let Some((errno, words)) = &self.failure {
            return Err((*errno, words.clone()));
        }
        let lib = self.library.clone();
        let (way, length) = match data {
            Data::None => (NO_DATA, 0),
            Data::In(_, length) => (FROM_DISK, length),
            Data::Out(_, length) => (TO_DISK, length),
        };
        let Ok(size) = c_int::try_from(length) else {
            let words = format!("{}: one command moves less than 2 GiB", self.name);
            return Err((Errno(libc::EINVAL), words));
        };
        let place = self.slot(number);
        let slot = &self.slots[number as usize];
        // SAFETY: the library copies the command. The caller promises that the data is valid, and the slot outlives
        // the session.
        let begun = unsafe {
            let task = (lib.new_task)(command.len() as c_int, command.as_mut_ptr(), way, size);
            if task.is_null() {
                slot.is_open.set(false);
                return Err((Errno(libc::ENOMEM), format!("{}: no memory for a command", self.name)));
            }
            slot.task.set(task);
            let mut sent = std::ptr::null_mut();
            match data {
                Data::In(to, _) => drop((lib.receive_into)(task, size, to)),
                Data::Out(from, length) => {
                    *slot.sent.get() = Sent { size: length, data: from };
                    sent = slot.sent.get();
                }
                Data::None => {}
            }
            (lib.begin)(self.context, self.lun, task, CALLBACK, sent, place)
        };
        if begun != 0 && self.slots[number as usize].is_open.replace(false) {
            self.free(number);
            return Err((Errno(libc::EIO), format!("{}: {}", self.name, lib.words(self.context))));
        }
        self.in_flight += 1;
        Ok(())
    }

    fn free(&self, number: u32) {
        let task = self.slots[number as usize].task.replace(std::ptr::null_mut());
        if !task.is_null() {
            // SAFETY: the command is done, and no one else uses it.
            unsafe { (self.library.free_task)(task) };
        }
    }

    /// Trims a range of blocks.
    pub(super) fn begin_trim(&mut self, number: u32, start: u64, blocks: u32) -> Result<(), (Errno, String)> {
        self.slot(number);
        self.slots[number as usize].is_open.set(false);
        let parameters = self.slots[number as usize].parameters.get();
        let mut bytes = [0; 24];
        // The length of the parameters after these two bytes, and the length of the one range descriptor in them.
        bytes[..4].copy_from_slice(&[0, 22, 0, 16]);
        bytes[8..16].copy_from_slice(&start.to_be_bytes());
        bytes[16..20].copy_from_slice(&blocks.to_be_bytes());
        let mut command = [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0];
        // SAFETY: the previous command of this slot is done, and the parameters stay in place until this one is done.
        unsafe {
            *parameters = bytes;
            self.begin(number, &mut command, Data::Out(parameters.cast::<u8>(), bytes.len()))
        }
    }

    /// How many finished commands [`Disk::next_done`] has not returned yet.
    pub(super) fn count_done(&mut self) -> usize {
        self.done.get_mut().len()
    }

    /// Returns the command that finished first, and forgets it.
    pub(super) fn next_done(&mut self) -> Option<Over> {
        let done = self.done.get_mut();
        if done.is_empty() {
            return None;
        }
        let number = done.remove(0);
        self.in_flight -= 1;
        self.free(number);
        let status = self.slots[number as usize].status.get();
        if status == CANCELLED && self.failure.is_none() {
            self.lose();
        }
        let failure = match (status, &self.failure) {
            (GOOD, _) => None,
            (_, Some(failure)) => Some(failure.clone()),
            (RESERVED, None) => {
                Some((Errno(libc::EBUSY), format!("{}: it is reserved by another initiator", self.name)))
            }
            (status, None) => Some((Errno(libc::EIO), self.complaint(status))),
        };
        let answered = self.slots[number as usize].answered.get();
        Some(Over { number, answered, failure })
    }

    /// The message about a command that the disk refused.
    fn complaint(&self, status: c_int) -> String {
        let words = self.library.words(self.context);
        match (words.is_empty(), status < CANCELLED) {
            (true, _) => format!("{}: status {status:02x}h", self.name),
            (false, true) => format!("{}: status {status:02x}h: {words}", self.name),
            (false, false) => format!("{}: {words}", self.name),
        }
    }

    /// The socket to poll, and the events to poll for.
    pub(super) fn watched(&self) -> libc::pollfd {
        // SAFETY: the session exists.
        let (fd, events) =
            unsafe { ((self.library.descriptor)(self.context), (self.library.events)(self.context)) };
        libc::pollfd { fd: if self.failure.is_some() { -1 } else { fd }, events: events as i16, revents: 0 }
    }

    /// Lets the library handle the events of the socket.
    pub(super) fn go_on(&mut self, ready: i16) {
        if self.failure.is_some() {
            return;
        }
        let before = self.count_done();
        // SAFETY: the session exists; the caller of `begin` keeps the buffers of commands in flight.
        let served = unsafe { (self.library.service)(self.context, c_int::from(ready)) };
        if served < 0 || self.link.is_torn_down.get() {
            self.lose();
        } else if self.count_done() > before {
            self.silence.hears();
        } else if (self.in_flight > 0 || self.link.status.get().is_none()) && self.silence.is_too_long() {
            let words = format!("{}: {}", self.name, self.silence.words());
            self.give_up(Errno(libc::ETIMEDOUT), words);
        }
    }

    /// Limits the wait for a silent target if it has no limit, because the job has been asked to end.
    pub(super) fn hurry(&mut self) {
        self.silence.hurry();
    }

    fn lose(&mut self) {
        let why = self.library.words(self.context);
        let (what, remedy) = match self.size {
            0 => not_logged_in(&why),
            _ => ("the connection was lost", ""),
        };
        let words = format!("{}: {what}: {why}{remedy}", self.name);
        self.give_up(Errno(libc::ENOTCONN), words);
    }

    /// Fails all commands in flight, and all later ones.
    fn give_up(&mut self, errno: Errno, words: String) {
        self.failure = Some((errno, words));
        let done = self.done.get_mut();
        for slot in self.slots.iter().filter(|slot| slot.is_open.replace(false)) {
            // (The library frees the tasks that it still holds.)
            slot.task.set(std::ptr::null_mut());
            slot.status.set(-1);
            done.push(slot.number);
        }
    }

    /// Performs a command and waits for it. Nothing else may be in flight.
    fn call(&mut self, command: &mut [u8], data: Data) -> io::Result<()> {
        let told = |(errno, words): (Errno, String)| explained(&io::Error::from(errno), words);
        // SAFETY: the data stays valid until the command is done, and `finish` waits for that.
        unsafe { self.begin(0, command, data) }.map_err(told)?;
        self.finish()
    }

    fn finish(&mut self) -> io::Result<()> {
        loop {
            if let Some(over) = self.next_done() {
                let told = |(errno, words): (Errno, String)| explained(&io::Error::from(errno), words);
                return over.failure.map_or(Ok(()), |failure| Err(told(failure)));
            }
            self.go_on_waiting();
        }
    }

    fn go_on_waiting(&mut self) {
        let mut watched = [self.watched()];
        // A signal does not end this wait, because the caller would not repeat it.
        let _ = wait(&mut watched, NAP);
        if is_asked_to_stop() {
            self.hurry();
        }
        self.go_on(watched[0].revents);
    }

    /// Flushes the disk's complete cache to stable storage.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.call(&mut [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0], Data::None)
    }

    /// Writes these blocks.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if !offset.is_multiple_of(self.block) || !(bytes.len() as u64).is_multiple_of(self.block) {
            let words = format!(
                "{}: {} bytes at {offset}: the disk has blocks of {} bytes (offset, size, bs)",
                self.name,
                bytes.len(),
                self.block
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        let mut command =
            transfer(0x8a, offset / self.block, (bytes.len() as u64 / self.block) as u32, false);
        self.call(&mut command, Data::Out(bytes.as_ptr(), bytes.len()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // This cancels all commands in flight. From now on, the library does not access any buffer. SAFETY: the session
        // exists, and slots outlive it.
        unsafe { (self.library.destroy)(self.context) };
    }
}

/// The meaning of the library's message if there is no session, and the remedy.
fn not_logged_in(why: &str) -> (&'static str, &'static str) {
    if why.contains("Authentication failure") {
        let remedy =
            "; the target wants another user or password (USER%PASSWORD@ in the URL, iscsi_password)";
        return ("the login is refused", remedy);
    }
    if why.contains("CHAP_R") {
        return (
            "the target has another password",
            "; see target_password in the URL, iscsi_target_password",
        );
    }
    if why.contains("LOGICAL_UNIT_NOT_SUPPORTED") {
        return ("the target has no disk of this number", "");
    }
    ("there is no connection", "")
}

/// Builds READ(16) or WRITE(16).
pub(super) fn transfer(code: u8, start: u64, blocks: u32, is_stable: bool) -> [u8; 16] {
    let mut command = [0; 16];
    command[0] = code;
    command[1] = if is_stable { 0x08 } else { 0 };
    command[2..10].copy_from_slice(&start.to_be_bytes());
    command[10..14].copy_from_slice(&blocks.to_be_bytes());
    command
}

/// Sleeps until one of these descriptors is ready, but no longer than `limit`.
pub(super) fn wait(watched: &mut [libc::pollfd], limit: Duration) -> io::Result<()> {
    let limit = libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos().into() };
    // SAFETY: the descriptors and the time are valid through the call, and there is no mask.
    let ready = unsafe {
        libc::ppoll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, &raw const limit, std::ptr::null())
    };
    if ready < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
