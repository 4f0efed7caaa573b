//! Tests of sessions with a fake library, which calls back when the tests tell it to.

use super::*;
use iolite_engine::LAST_WAIT;
use libc::{c_char, c_uchar};

/// The state of the fake library.
#[derive(Default)]
struct Fake {
    /// The callback for reports about the connection.
    link: Option<(Callback, *mut c_void)>,
    /// Commands are not answered.
    is_silent: bool,
    has_no_memory: bool,
    /// Disks leave out optional fields.
    is_short: bool,
    /// The next service call makes a report about the connection.
    tells: bool,
}

thread_local! {
    static FAKE: UnsafeCell<Fake> = UnsafeCell::default();
}

fn fake<T>(change: impl FnOnce(&mut Fake) -> T) -> T {
    // SAFETY: the functions below are called one after the other, on the test's thread.
    FAKE.with(|fake| change(unsafe { &mut *fake.get() }))
}

/// A stand-in for sessions and commands, which is never dereferenced.
fn something<T>() -> *mut T {
    std::ptr::without_provenance_mut(8)
}

unsafe extern "C" fn create(_: *const c_char) -> *mut Context {
    something()
}
unsafe extern "C" fn one(_: *mut Context) -> c_int {
    -1
}
unsafe extern "C" fn error(_: *mut Context) -> *const c_char {
    c"gone".as_ptr()
}
unsafe extern "C" fn set_target(_: *mut Context, _: *const c_char) -> c_int {
    0
}
unsafe extern "C" fn set_number(_: *mut Context, _: c_int) -> c_int {
    0
}
unsafe extern "C" fn set_user(_: *mut Context, _: *const c_char, _: *const c_char) -> c_int {
    0
}
unsafe extern "C" fn stay_broken(_: *mut Context, _: c_int) {}
unsafe extern "C" fn connect(
    _: *mut Context,
    _: *const c_char,
    _: c_int,
    call: Callback,
    data: *mut c_void,
) -> c_int {
    fake(|fake| (fake.link, fake.tells) = (Some((call, data)), true));
    0
}
unsafe extern "C" fn connect_from(_: *mut Context, _: *mut c_char) {}
unsafe extern "C" fn service(context: *mut Context, _: c_int) -> c_int {
    if let Some((call, data)) = fake(|fake| fake.link.filter(|_| std::mem::take(&mut fake.tells))) {
        // SAFETY: the arguments are those that the caller gave.
        unsafe { call(context, GOOD, std::ptr::null_mut(), data) };
    }
    0
}
unsafe extern "C" fn new_task(_: c_int, _: *mut c_uchar, _: c_int, _: c_int) -> *mut Task {
    if fake(|fake| fake.has_no_memory) { std::ptr::null_mut() } else { something() }
}
unsafe extern "C" fn free_task(_: *mut Task) {}
unsafe extern "C" fn receive_into(_: *mut Task, length: c_int, to: *mut c_uchar) -> c_int {
    if fake(|fake| fake.is_short) {
        return 0;
    }
    // SAFETY: there is room for these bytes. All ones describe a read-only disk.
    unsafe { to.write_bytes(1, length as usize) };
    0
}
unsafe extern "C" fn begin(
    context: *mut Context,
    _: c_int,
    _: *mut Task,
    call: Callback,
    _: *mut Sent,
    data: *mut c_void,
) -> c_int {
    if !fake(|fake| fake.is_silent) {
        // SAFETY: the arguments are those that the caller gave.
        unsafe { call(context, GOOD, std::ptr::null_mut(), data) };
    }
    0
}

fn disk() -> Disk {
    made().unwrap()
}

fn made() -> io::Result<Disk> {
    let library = Library {
        create,
        destroy: one,
        error,
        set_target,
        set_kind: set_number,
        set_user,
        set_proof: set_user,
        stay_broken,
        connect_from,
        connect,
        descriptor: one,
        events: one,
        service,
        new_task,
        free_task,
        receive_into,
        begin,
    };
    let address = Address { user: None, portal: "h".into(), target: "t".into(), lun: 1 };
    let login = Login { initiator: "me", user: None, target: None, from: None };
    Disk::new(&Rc::new(library), &address, &login, ServerTimeout::new("iscsi_timeout", 60_000_000))
}

#[test]
fn a_lost_connection_ends_each_command_once() {
    let mut disk = disk();
    fake(|fake| (fake.is_silent, fake.tells) = (true, true));
    // SAFETY: it moves nothing.
    unsafe { disk.begin(0, &mut [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0], Data::None) }.unwrap();
    disk.go_on(0);
    let over = disk.next_done().unwrap();
    let (errno, words) = over.failure.expect("a command that nobody answers has not gone well");
    assert_eq!((over.number, errno, disk.in_flight), (0, Errno(libc::ENOTCONN), 0));
    assert!(words.contains("the connection was lost"), "{words}");
    assert!(disk.next_done().is_none());
}

#[test]
fn commands_that_cannot_be_made_are_errors() {
    let mut disk = disk();
    fake(|fake| fake.has_no_memory = true);
    // SAFETY: nothing is moved.
    let refused = unsafe { disk.begin(0, &mut [0; 16], Data::None) }.unwrap_err();
    assert_eq!((refused.0, disk.in_flight), (Errno(libc::ENOMEM), 0));
    // SAFETY: as above.
    let refused = unsafe { disk.begin(0, &mut [0; 16], Data::In(something(), 1 << 31)) }.unwrap_err();
    assert_eq!((refused.0, disk.count_done()), (Errno(libc::EINVAL), 0));
}

#[test]
fn disks_say_how_large_their_blocks_are() {
    fake(|fake| fake.is_short = true);
    let words = made().err().expect("nobody knows").to_string();
    assert!(words.contains("how large its blocks are"), "{words}");
}

#[test]
fn parts_of_blocks_are_not_written() {
    let mut disk = disk();
    assert!(disk.block > 7);
    assert!(disk.write(&[1; 7], 0).unwrap_err().to_string().contains("has blocks of"));
    assert!(disk.write(&[], 1).is_err());
    assert_eq!(disk.in_flight, 0);
}

#[test]
fn a_job_that_is_to_end_stops_waiting_for_its_target() {
    let mut disk = disk();
    fake(|fake| fake.is_silent = true);
    disk.silence = ServerTimeout::new("iscsi_timeout", 0);
    // SAFETY: it moves nothing.
    unsafe { disk.begin(0, &mut [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0], Data::None) }.unwrap();
    disk.hurry();
    disk.go_on(0);
    assert_eq!(disk.count_done(), 0, "it has a while");
    disk.silence.began_before(LAST_WAIT);
    disk.go_on(0);
    let (errno, words) = disk.next_done().unwrap().failure.unwrap();
    assert!(
        errno == Errno(libc::ETIMEDOUT) && words.contains("no answer in 10 s after the job was asked to end"),
        "{words}"
    );
}
