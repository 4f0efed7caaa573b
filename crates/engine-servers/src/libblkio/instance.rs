//! An instance of the library: a driver that is connected to a device, with its queues and its memory.
//!
//! The workers of a process share an instance, because devices of virtio take one client at a time. Each worker has a
//! queue of its own. A driver that can add queues later gets one for each worker; another one is started with as many as
//! the device has, up to a limit.

use super::library::{Library, NAME, Raw, RawQueue, Region};
use crate::server_timeout::ServerTimeout;
use iolite_engine::{EngineConfig, EngineError, LAST_WAIT, is_asked_to_stop};
use iolite_options::engines::{BlkioProperties, LibblkioOptions};
use iolite_types::describe_errno;
use libc::{c_int, c_void};
use std::ffi::{CString, OsString};
use std::fs::DirEntry;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// The most queues of a driver that cannot add queues: a queue that nobody uses takes some kilobytes.
const MOST_QUEUES: c_int = 64;

/// The interval between two looks for the end of the job.
const LOOK: Duration = Duration::from_millis(100);

/// The remedy for too many users of a device.
const FEWER: &str =
    "lower numjobs (or iodepth with io_submit_mode=offload, whose threads have iodepth + 1 queues)";

/// What workers share an instance by.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    driver: String,
    before_connect: Vec<(&'static str, String)>,
    pre_connect: BlkioProperties,
    before_start: Vec<(&'static str, String)>,
    pre_start: BlkioProperties,
    is_polled: bool,
}

/// An instance.
pub(super) struct Instance {
    library: &'static Library,
    raw: *mut Raw,
    /// The option and its value, for messages.
    pub(super) name: String,
    /// Requests begin at multiples of this, and have a length that is a multiple.
    pub(super) alignment: u64,
    /// The longest request; 0 = any.
    pub(super) most: u64,
    needs_regions: bool,
    needs_descriptor: bool,
    region_alignment: usize,
    /// The most regions that workers may have.
    most_regions: u64,
    can_add_queues: bool,
    is_polled: bool,
    needs_plain_queue: bool,
    /// The connection to the process that serves the device. It belongs to the library.
    socket: Option<RawFd>,
    state: Mutex<State>,
    /// Held by the worker that uses the queue that is not polled, of which there is one. Counts its requests.
    pub(super) plain: Mutex<usize>,
    /// The device no longer answers.
    is_abandoned: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The queues that no worker uses.
    free: Vec<c_int>,
    /// The memory that is mapped.
    regions: Vec<Region>,
}

// SAFETY: the library may be called from any thread; calls about the instance are made one at a time, under the lock of its
// state, and each queue has one user.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

/// An error number, and words.
pub(super) type Refusal = (i32, String);

/// What the workers that want one instance know of it. The first one connects, and others wait for this lock.
type Shared = Mutex<Known>;

#[derive(Default)]
enum Known {
    /// Nobody has connected.
    #[default]
    Nothing,
    Connected(Weak<Instance>),
    /// Those who waited fail as well, at once; those who come later try again.
    Failed(Refusal),
}

/// Held by the worker that connects to a socket of this machine, so that the connection that appears meanwhile is its own.
static CONNECTING: Mutex<()> = Mutex::new(());

/// The instances of this process.
static SHARED: Mutex<Vec<(Key, Arc<Shared>)>> = Mutex::new(Vec::new());

/// What is known of the instance with this key.
fn shared(key: &Key) -> Arc<Shared> {
    let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    // (Those that nobody has or waits for.)
    all.retain(|(_, shared)| {
        let is_alive =
            |known: &Known| matches!(known, Known::Connected(instance) if instance.strong_count() > 0);
        Arc::strong_count(shared) > 1 || shared.try_lock().is_ok_and(|known| is_alive(&known))
    });
    if let Some((_, shared)) = all.iter().find(|(with, _)| with == key) {
        return shared.clone();
    }
    let made = Arc::new(Shared::default());
    all.push((key.clone(), made.clone()));
    made
}

/// Whoever comes from now on begins anew.
fn forget(failed: &Arc<Shared>) {
    let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(_, shared)| !Arc::ptr_eq(shared, failed));
}

/// Waits until no other worker connects to a socket.
///
/// # Errors
/// The job was asked to end.
fn turn() -> Result<MutexGuard<'static, ()>, Refusal> {
    loop {
        match CONNECTING.try_lock() {
            Ok(turn) => return Ok(turn),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if is_asked_to_stop() => {
                let words = "another worker of this process waits for a device, and the job was asked to end";
                return Err((libc::ECANCELED, words.to_owned()));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

impl Instance {
    /// The instance with these options: a new one, if no worker of this process has one.
    ///
    /// # Errors
    /// The library is missing, an option is wrong, or the driver cannot connect to the device.
    pub(super) fn of(config: &EngineConfig, options: &LibblkioOptions) -> Result<Arc<Instance>, EngineError> {
        let name = match options.path() {
            "" => format!("libblkio_driver={}", options.libblkio_driver),
            path => format!("libblkio_path={path}"),
        };
        let refused = |(errno, words): Refusal| EngineError::Remote {
            engine: NAME,
            errno,
            why: format!("{name}: {words}"),
        };
        if options.libblkio_driver.is_empty() {
            let why =
                "libblkio_driver= is missing, the driver of the library (io_uring, virtio-blk-vhost-user, …)";
            return Err(EngineError::Remote { engine: NAME, errno: libc::EINVAL, why: why.to_owned() });
        }
        let library = Library::load()?;
        let key = Key::new(config, options);
        let shared = shared(&key);
        let mut known = shared.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Known::Connected(instance) => {
                if let Some(instance) = instance.upgrade() {
                    return Ok(instance);
                }
            }
            Known::Failed(refusal) => return Err(refused(refusal.clone())),
            Known::Nothing => {}
        }
        // (Whoever waits for its turn has all of its time left.)
        let turn = key.has_socket().then(turn).transpose().map_err(refused)?;
        let silence = ServerTimeout::new("libblkio_timeout", options.libblkio_timeout);
        let of_thread = key.clone();
        let started = within(silence, options.is_alone(), move || of_thread.start(library))
            .map(|started| Instance::new(library, started, &key, name.clone()));
        drop(turn);
        match started {
            Ok(instance) => {
                let instance = Arc::new(instance);
                *known = Known::Connected(Arc::downgrade(&instance));
                Ok(instance)
            }
            Err(refusal) => {
                *known = Known::Failed(refusal.clone());
                forget(&shared);
                Err(refused(refusal))
            }
        }
    }

    fn new(library: &'static Library, Started { raw, socket }: Started, key: &Key, name: String) -> Instance {
        let count = |name| int(library, raw, name).unwrap_or(0);
        let size = |name| u64::try_from(int(library, raw, name).unwrap_or(0)).unwrap_or(0);
        let queues = if key.is_polled { "num-poll-queues" } else { "num-queues" };
        Instance {
            library,
            raw,
            name,
            alignment: size("request-alignment").max(1),
            most: size("max-transfer"),
            needs_regions: truth(library, raw, "needs-mem-regions"),
            needs_descriptor: truth(library, raw, "needs-mem-region-fd"),
            region_alignment: number(library, raw, "mem-region-alignment").unwrap_or(1).max(1) as usize,
            // (The library counts the region of its own queues, which a process that serves a socket has to map too.)
            most_regions: number(library, raw, "max-mem-regions")
                .map_or(u64::MAX, |most| most.saturating_sub(key.has_socket().into())),
            can_add_queues: truth(library, raw, "can-add-queues"),
            is_polled: key.is_polled,
            needs_plain_queue: key.needs_plain_queue(),
            socket,
            state: Mutex::new(State { free: (0..count(queues)).rev().collect(), regions: Vec::new() }),
            plain: Mutex::new(0),
            is_abandoned: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The size of the device in bytes.
    pub(super) fn size(&self) -> Result<u64, Refusal> {
        let _turn = self.state();
        number(self.library, self.raw, "capacity").map_err(|errno| (errno, self.library.error()))
    }

    /// A queue for one user, with its number.
    ///
    /// # Errors
    /// All queues are in use.
    pub(super) fn take_queue(&self) -> Result<(c_int, *mut RawQueue), Refusal> {
        let mut state = self.state();
        let index = match state.free.pop() {
            Some(index) => index,
            None if self.can_add_queues => {
                // SAFETY: the instance is started, and this is the only call about it.
                let added = unsafe {
                    match self.is_polled {
                        true => (self.library.add_poll_queue)(self.raw),
                        false => (self.library.add_queue)(self.raw),
                    }
                };
                if added < 0 {
                    return Err((-added, format!("no queue can be added: {}", self.library.error())));
                }
                added
            }
            None => {
                let words = format!(
                    "the workers of this process that share the device use all of its queues; {FEWER}, or give it more \
                     (num-queues= of qemu-storage-daemon's export)"
                );
                return Err((libc::EBUSY, words));
            }
        };
        // SAFETY: the instance is started.
        let queue = unsafe {
            match self.is_polled {
                true => (self.library.poll_queue)(self.raw, index),
                false => (self.library.queue)(self.raw, index),
            }
        };
        if queue.is_null() {
            return Err((libc::ENODEV, format!("there is no queue {index}: {}", self.library.error())));
        }
        Ok((index, queue))
    }

    /// Gives a queue back, on which nothing is in flight.
    pub(super) fn give_queue_back(&self, index: c_int) {
        self.state().free.push(index);
    }

    /// The first queue that is not polled, if all workers use polled ones that take neither flushes nor trims.
    pub(super) fn plain_queue(&self) -> Option<*mut RawQueue> {
        if !self.needs_plain_queue || int(self.library, self.raw, "num-queues").unwrap_or(0) < 1 {
            return None;
        }
        // SAFETY: the instance is started, and has such a queue.
        Some(unsafe { (self.library.queue)(self.raw, 0) }).filter(|queue| !queue.is_null())
    }

    /// Memory of the kind that the driver likes, for the device to use. It begins at a page, and is zero.
    ///
    /// # Errors
    /// There is not enough memory, the device takes no more regions, or it does not answer.
    pub(super) fn allocate(&self, bytes: usize, silence: &ServerTimeout) -> Result<Region, Refusal> {
        let bytes = bytes
            .checked_next_multiple_of(self.region_alignment.max(iolite_os::memory::page_size()))
            .ok_or_else(|| (libc::ENOMEM, format!("no memory for {bytes} bytes of buffers")))?;
        let mut region = NO_REGION;
        let mut state = self.state();
        // SAFETY: the instance is started, and there is room for the region.
        let made = unsafe { (self.library.allocate)(self.raw, &raw mut region, bytes) };
        if made < 0 {
            let words = format!("no memory for {bytes} bytes of buffers: {}", self.library.error());
            return Err((-made, words));
        }
        // SAFETY: the region is the instance's own, and stays until the engine has freed it.
        let mapped = unsafe { self.offer(region, &mut state, silence) };
        if mapped.is_err() {
            // SAFETY: no request uses the region. (A process that takes it late has mapped it for itself.)
            unsafe { (self.library.free)(self.raw, &raw const region) };
        }
        mapped.map(|()| region)
    }

    /// Frees memory that no request in flight uses.
    pub(super) fn free(&self, region: &Region) {
        self.unmap(region);
        if !self.is_abandoned.load(Relaxed) {
            // SAFETY: the region is the instance's, and not mapped.
            unsafe { (self.library.free)(self.raw, ptr::from_ref(region)) };
        }
    }

    /// Lets the device use this memory of the worker. `None` = it may already, or need not be asked.
    ///
    /// # Errors
    /// The driver cannot use memory of this kind, the device takes no more regions, or it does not answer.
    pub(super) fn map(
        &self,
        start: *mut u8,
        bytes: usize,
        silence: &ServerTimeout,
    ) -> Result<Option<Region>, Refusal> {
        let mut state = self.state();
        let (first, end) = (start.addr(), start.addr().saturating_add(bytes));
        let is_within = |region: &Region| {
            let place = region.start.addr();
            first >= place && end <= place + region.length
        };
        if bytes == 0 || !self.needs_regions || state.regions.iter().any(is_within) {
            return Ok(None);
        }
        if self.needs_descriptor {
            let words =
                "the driver needs memory of its own kind for the buffers; leave mem (iomem) out".to_owned();
            return Err((libc::EINVAL, words));
        }
        let first = first - first % self.region_alignment;
        let length = (end - first).next_multiple_of(self.region_alignment);
        let region = Region { start: start.with_addr(first).cast(), length, ..NO_REGION };
        // SAFETY: the memory stays until the engine has unmapped it.
        unsafe { self.offer(region, &mut state, silence) }.map(|()| Some(region))
    }

    /// Asks the device to use this region.
    ///
    /// # Safety
    /// The region is valid until it is unmapped.
    unsafe fn offer(
        &self,
        region: Region,
        state: &mut State,
        silence: &ServerTimeout,
    ) -> Result<(), Refusal> {
        if self.is_abandoned.load(Relaxed) {
            // (Each of many workers would wait anew.)
            return Err((libc::ETIMEDOUT, "the device no longer answers".to_owned()));
        }
        let most = self.most_regions;
        if state.regions.len() as u64 >= most {
            // (A process that is asked all the same ends the connection of all workers.)
            let words = format!("the device takes the buffers of {most} workers; lower numjobs");
            return Err((libc::EBUSY, words));
        }
        let limit = silence.limit();
        self.limit_waits(limit);
        let begun = Instant::now();
        // SAFETY: the instance is started, this is the only call about it, and the caller promises the rest.
        match unsafe { (self.library.map)(self.raw, &raw const region) } {
            0.. => {
                state.regions.push(region);
                Ok(())
            }
            // (The library gives the same error number for all errors.)
            _ if limit.is_some_and(|limit| begun.elapsed() >= limit) => {
                self.abandon();
                Err((libc::ETIMEDOUT, silence.words()))
            }
            result => Err((-result, format!("the device cannot use the buffers: {}", self.library.error()))),
        }
    }

    /// The device no longer uses this memory.
    pub(super) fn unmap(&self, region: &Region) {
        let mut state = self.state();
        state.regions.retain(|mapped| mapped.start != region.start);
        if self.is_abandoned.load(Relaxed) {
            return;
        }
        self.limit_waits(Some(LAST_WAIT));
        let begun = Instant::now();
        // SAFETY: the region is mapped, and no request in flight uses it.
        unsafe { (self.library.unmap)(self.raw, ptr::from_ref(region)) };
        // (The library does not tell whether there was an answer.)
        if begun.elapsed() >= LAST_WAIT {
            self.abandon();
        }
    }

    /// Limits how long the library waits for each answer of the process that serves the device (`None` = for ever). It has
    /// no limit of its own, and waits when memory is mapped and unmapped, and when the instance is destroyed.
    fn limit_waits(&self, limit: Option<Duration>) {
        let Some(fd) = self.socket else { return };
        let limit = limit.unwrap_or_default();
        let limit = libc::timeval {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_usec: limit.subsec_micros() as libc::suseconds_t,
        };
        let length = size_of_val(&limit) as libc::socklen_t;
        for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            // SAFETY: the value is valid for reading its length. (A failure leaves the library without a limit.)
            unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, option, (&raw const limit).cast(), length) };
        }
    }

    /// Whether the process that serves the device is gone.
    pub(super) fn is_gone(&self) -> bool {
        let Some(fd) = self.socket else { return false };
        let mut watched = libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
        // SAFETY: there is one descriptor, valid through the call.
        let ready = unsafe { libc::poll(&raw mut watched, 1, 0) };
        ready > 0 && watched.revents & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) != 0
    }

    /// The device no longer answers: memory and queues stay until the process ends, because requests may be in flight that
    /// nobody waits for any more.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Relaxed);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.is_abandoned.load(Relaxed) {
            self.limit_waits(Some(LAST_WAIT));
            // SAFETY: nothing is in flight, and the instance is not used after this.
            unsafe { (self.library.destroy)(&raw mut self.raw) };
        }
    }
}

const NO_REGION: Region =
    Region { start: ptr::null_mut::<c_void>(), length: 0, iova: 0, offset: 0, descriptor: -1, flags: 0 };

/// A started instance on its way to the worker.
struct Started {
    raw: *mut Raw,
    /// Its connection to the process that serves the device.
    socket: Option<RawFd>,
}

// SAFETY: the library may be called from any thread.
unsafe impl Send for Started {}

/// Starts an instance on another thread, because nothing limits the time that a silent server takes.
fn within(
    mut silence: ServerTimeout,
    is_alone: bool,
    start: impl FnOnce() -> Result<Started, Refusal> + Send + 'static,
) -> Result<Started, Refusal> {
    let (tell, told) = sync_channel(1);
    // (A thread that hangs in the library stays until the process ends.)
    let thread = thread::Builder::new().name("connect".to_owned()).spawn(move || {
        let _ = tell.send(start());
    });
    thread.map_err(|error| {
        (error.raw_os_error().unwrap_or(libc::EAGAIN), format!("no thread to connect: {error}"))
    })?;
    loop {
        match told.recv_timeout(LOOK.min(silence.left())) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => return Err((libc::EIO, "the library failed".to_owned())),
            Err(RecvTimeoutError::Timeout) if silence.is_too_long() => {
                let hint = if is_alone { "; it serves one client at a time, perhaps another" } else { "" };
                return Err((libc::ETIMEDOUT, format!("{}{hint}", silence.words())));
            }
            Err(RecvTimeoutError::Timeout) if is_asked_to_stop() => silence.hurry(),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

impl Key {
    fn new(config: &EngineConfig, options: &LibblkioOptions) -> Key {
        let mut before_connect = Vec::new();
        if !options.libblkio_path.is_empty() {
            before_connect.push(("path", options.libblkio_path.clone()));
        }
        // Other drivers have no page cache in between, and no file to be opened.
        if options.libblkio_driver == "io_uring" {
            before_connect.push(("direct", config.direct.to_string()));
        }
        if options.opens_files() {
            before_connect.push(("read-only", (!config.changes_data).to_string()));
        }
        let number = |name, value: Option<u32>| value.map(|value| (name, value.to_string()));
        let sizes = [
            number("num-entries", options.libblkio_num_entries),
            number("queue-size", options.libblkio_queue_size),
        ];
        Key {
            driver: options.libblkio_driver.clone(),
            before_connect,
            pre_connect: options.libblkio_pre_connect_props.clone(),
            before_start: sizes.into_iter().flatten().collect(),
            pre_start: options.libblkio_pre_start_props.clone(),
            is_polled: options.hipri,
        }
    }

    /// Whether workers flush and trim on a queue that is not polled: the kernel does neither in a ring that is polled.
    fn needs_plain_queue(&self) -> bool {
        self.is_polled && !self.driver.starts_with("virtio-blk-")
    }

    /// Whether the driver connects to a socket of this machine.
    fn has_socket(&self) -> bool {
        self.driver == "virtio-blk-vhost-user"
    }

    fn path(&self) -> Option<&str> {
        let set = self.pre_connect.iter().rev().find(|(name, _)| name == "path").map(|(_, path)| path);
        let given = || self.before_connect.iter().find(|(name, _)| *name == "path").map(|(_, path)| path);
        set.or_else(given).map(String::as_str)
    }

    /// Connects the driver and starts it.
    fn start(&self, library: &'static Library) -> Result<Started, Refusal> {
        let driver = c_text(&self.driver)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the name ends with a zero, and there is room for the instance.
        let made = unsafe { (library.create)(driver.as_ptr(), &raw mut raw) };
        if made < 0 {
            let words = format!(
                "libblkio_driver={}: {}; libblkio 1.5 has io_uring, nvme-io_uring, virtio-blk-vhost-user, \
                 virtio-blk-vhost-vdpa and virtio-blk-vfio-pci",
                self.driver,
                library.error()
            );
            return Err((-made, words));
        }
        let socket = self.configure(library, raw);
        if socket.is_err() {
            // SAFETY: the instance exists, and is not used after this.
            unsafe { (library.destroy)(&raw mut raw) };
        }
        socket.map(|socket| Started { raw, socket })
    }

    /// Connects the driver, starts it, and gives its connection to the process that serves the device, where there is one.
    fn configure(&self, library: &Library, raw: *mut Raw) -> Result<Option<RawFd>, Refusal> {
        for (name, value) in &self.before_connect {
            set(library, raw, name, value).map_err(|refusal| about(option_of(name), refusal))?;
        }
        for (name, value) in &self.pre_connect {
            set(library, raw, name, value).map_err(|refusal| about("libblkio_pre_connect_props", refusal))?;
        }
        let before = if self.has_socket() { connections() } else { Vec::new() };
        // SAFETY: the instance exists.
        let connected = unsafe { (library.connect)(raw) };
        if connected < 0 {
            return Err(self.not_connected(-connected, &library.error()));
        }
        let path = self.path().filter(|_| self.has_socket());
        let socket = path.and_then(|path| new_connection(&before, path));
        self.ask_for_queues(library, raw)?;
        for (name, value) in &self.before_start {
            set(library, raw, name, value).map_err(|refusal| about(option_of(name), refusal))?;
        }
        for (name, value) in &self.pre_start {
            set(library, raw, name, value).map_err(|refusal| about("libblkio_pre_start_props", refusal))?;
        }
        // SAFETY: the instance is connected.
        match unsafe { (library.start)(raw) } {
            0.. => Ok(socket),
            result => Err((-result, format!("the driver cannot be started: {}", library.error()))),
        }
    }

    fn ask_for_queues(&self, library: &Library, raw: *mut Raw) -> Result<(), Refusal> {
        if self.is_polled && !truth(library, raw, "supports-poll-queues") {
            return Err((
                libc::EOPNOTSUPP,
                "hipri: the driver has no queues that are polled; leave hipri out".to_owned(),
            ));
        }
        let there_are = int(library, raw, "max-queues").unwrap_or(1).clamp(1, MOST_QUEUES);
        let least = c_int::from(self.needs_plain_queue());
        let (plain, polled) = match (self.is_polled, truth(library, raw, "can-add-queues")) {
            (false, true) => (1, 0),
            (false, false) => (there_are, 0),
            (true, true) => (least, 1),
            (true, false) => (least.min(there_are - 1), there_are - least.min(there_are - 1)),
        };
        set(library, raw, "num-queues", &plain.to_string())?;
        if polled > 0 {
            set(library, raw, "num-poll-queues", &polled.to_string())?;
        }
        Ok(())
    }

    /// Why the driver cannot connect.
    fn not_connected(&self, errno: i32, words: &str) -> Refusal {
        let remedy = match (self.driver.as_str(), errno) {
            ("virtio-blk-vhost-user", libc::ENOENT | libc::ECONNREFUSED) => {
                "; nobody serves this socket: qemu-storage-daemon --blockdev driver=file,node-name=d,filename=IMAGE --export \
                 type=vhost-user-blk,id=e,node-name=d,writable=on,addr.type=unix,addr.path=SOCKET does"
            }
            ("nvme-io_uring", _) => "; this driver needs a node such as /dev/ng0n1",
            ("io_uring", libc::ENOENT) => "; no job of this engine creates it (truncate -s 1G FILE does)",
            _ => "",
        };
        let reason = match words {
            "" => describe_errno(errno),
            words => words.to_owned(),
        };
        (errno, format!("the driver {} cannot connect: {reason}{remedy}", self.driver))
    }
}

/// The option that sets a property.
fn option_of(property: &str) -> &'static str {
    match property {
        "path" => "libblkio_path",
        "direct" => "direct",
        "num-entries" => "libblkio_num_entries",
        "queue-size" => "libblkio_queue_size",
        _ => "libblkio",
    }
}

fn about(option: &str, (errno, words): Refusal) -> Refusal {
    (errno, format!("{option}: {words}"))
}

fn c_text(value: &str) -> Result<CString, Refusal> {
    CString::new(value).map_err(|_| (libc::EINVAL, format!("\"{value}\" has a zero byte in it")))
}

fn set(library: &Library, raw: *mut Raw, name: &str, value: &str) -> Result<(), Refusal> {
    let (name, value) = (c_text(name)?, c_text(value)?);
    // SAFETY: the instance exists, and both texts end with a zero.
    match unsafe { (library.set)(raw, name.as_ptr(), value.as_ptr()) } {
        0.. => Ok(()),
        result => {
            let pair = format!("{}={}", name.to_string_lossy(), value.to_string_lossy());
            Err((-result, format!("{pair}: {}", library.error())))
        }
    }
}

/// A property that is true or false.
fn truth(library: &Library, raw: *mut Raw, name: &str) -> bool {
    let (Ok(name), mut value) = (c_text(name), false) else { return false };
    // SAFETY: the instance exists, the name ends with a zero, and there is room for the value.
    unsafe { (library.get_bool)(raw, name.as_ptr(), &raw mut value) == 0 && value }
}

/// A property that is an `int`.
fn int(library: &Library, raw: *mut Raw, name: &str) -> Option<c_int> {
    let (name, mut value) = (c_text(name).ok()?, 0);
    // SAFETY: as for `truth`.
    let got = unsafe { (library.get_int)(raw, name.as_ptr(), &raw mut value) };
    (got == 0).then_some(value)
}

/// A property that is a `uint64_t`.
fn number(library: &Library, raw: *mut Raw, name: &str) -> Result<u64, i32> {
    let (name, mut value) = (c_text(name).map_err(|(errno, _)| errno)?, 0);
    // SAFETY: as for `truth`.
    match unsafe { (library.get_u64)(raw, name.as_ptr(), &raw mut value) } {
        0.. => Ok(value),
        result => Err(-result),
    }
}

/// A Unix socket of this process that is connected to one with a name.
struct Connection {
    /// As the kernel names it: `socket:[INODE]`.
    inode: PathBuf,
    fd: RawFd,
    /// The name by which the other end was bound.
    peer: PathBuf,
}

/// All of them.
fn connections() -> Vec<Connection> {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let connection = |entry: DirEntry| {
        let fd = entry.file_name().to_str()?.parse().ok()?;
        Some(Connection { peer: peer_of(fd)?, inode: entry.path().read_link().ok()?, fd })
    };
    open.filter_map(connection).collect()
}

/// The descriptor of the connection to the socket with this path, which the library has made since then; `None` = it cannot
/// be told from others.
///
/// The name of its peer may be another path to the socket: the server may have bound it relative to its own directory, or
/// through links. If threads of other engines have connected to sockets meanwhile, those with another file name are theirs.
fn new_connection(before: &[Connection], path: &str) -> Option<RawFd> {
    let mut new = connections();
    new.retain(|new| before.iter().all(|old| old.inode != new.inode));
    if new.len() > 1 {
        let path = Path::new(path).canonicalize().unwrap_or_default();
        new.retain(|new| new.peer.file_name() == path.file_name());
    }
    match new[..] {
        [Connection { fd, .. }] => Some(fd),
        _ => None,
    }
}

/// The path to which the socket at the other end of a connection was bound.
fn peer_of(fd: RawFd) -> Option<PathBuf> {
    // SAFETY: zero is a valid value of all of it.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is valid for writing its length.
    let got = unsafe { libc::getpeername(fd, (&raw mut address).cast(), &raw mut length) };
    let path: Vec<u8> =
        address.sun_path.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    let is_named = got == 0 && i32::from(address.sun_family) == libc::AF_UNIX && !path.is_empty();
    is_named.then(|| OsString::from_vec(path).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn a_connection_is_found_by_any_path_to_its_socket() {
        let dir = tempfile::tempdir().unwrap();
        let [disk, link, other, inner] =
            ["disk.blkio", "link.blkio", "other.blkio", "inner"].map(|name| dir.path().join(name));
        std::fs::create_dir(&inner).unwrap();
        let same_name = inner.join("disk.blkio");
        let listeners = [&disk, &other, &same_name].map(|path| UnixListener::bind(path).unwrap());
        std::os::unix::fs::symlink("disk.blkio", &link).unwrap();
        let earlier = UnixStream::connect(&disk).unwrap();
        let before = connections();
        assert!(before.iter().any(|one| one.fd == earlier.as_raw_fd() && one.peer == disk));
        let found = |path: &Path| new_connection(&before, path.to_str().unwrap());
        let made = UnixStream::connect(&disk).unwrap();
        for path in [&disk, &link, &inner.join("../disk.blkio")] {
            assert_eq!(found(path), Some(made.as_raw_fd()), "{}", path.display());
        }
        // (Other tests may connect, too.)
        let _elsewhere = UnixStream::connect(&other).unwrap();
        for path in [&disk, &link, &inner.join("../disk.blkio")] {
            assert_eq!(found(path), Some(made.as_raw_fd()), "{}", path.display());
        }
        let _alike = UnixStream::connect(&same_name).unwrap();
        assert_eq!(found(&disk), None, "nobody can tell");
        drop(listeners);
    }
}
