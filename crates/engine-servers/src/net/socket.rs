//! Sockets: creating, waiting, and setting their options.

use super::address::{Address, family, in_addr, in6_addr, invalid, is_v4};
use iolite_options::engines::{NetOptions, Protocol};
use iolite_os::explained;
use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// The longest wait of one call, so that the worker can check whether its job should stop.
const SLICE_MS: u16 = 10;

/// The length of the listen queue.
const BACKLOG: libc::c_int = 10;

/// Turns the result of a system call into a result.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A socket of the protocol, set up as the options ask. `sends` = this side sends.
pub(super) fn new(options: &NetOptions, sends: bool) -> io::Result<OwnedFd> {
    let kind = if options.protocol.is_udp() { libc::SOCK_DGRAM } else { libc::SOCK_STREAM };
    // SAFETY: takes nothing but integers.
    let socket = check(unsafe { libc::socket(family(options.protocol), kind | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: it was opened just now, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    if options.window_size > 0 {
        let which = if sends { libc::SO_SNDBUF } else { libc::SO_RCVBUF };
        let bytes = options.window_size;
        named("window_size", bytes, set(&socket, libc::SOL_SOCKET, which, bytes as libc::c_int))?;
    }
    if options.protocol.is_tcp() {
        if options.mss > 0 {
            let bytes = options.mss;
            named("mss", bytes, set(&socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes as libc::c_int))?;
        }
        settle_stream(&socket, options)?;
    }
    Ok(socket)
}

/// Sets the options of every TCP connection. Keepalives end it if the peer loses its power or its network.
pub(super) fn settle_stream(socket: &OwnedFd, options: &NetOptions) -> io::Result<()> {
    if !options.protocol.is_tcp() {
        return Ok(());
    }
    if options.nodelay {
        set(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    }
    set(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 20)?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10)?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 4)?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 60_000)
}

fn set<T>(socket: &impl AsRawFd, level: libc::c_int, option: libc::c_int, value: T) -> io::Result<()> {
    // SAFETY: the value outlives the call, which reads as many bytes as it has.
    let result = unsafe {
        let length = size_of::<T>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length)
    };
    check(result).map(drop)
}

/// Adds the option and its value to the error.
fn named(option: &str, value: u32, result: io::Result<()>) -> io::Result<()> {
    result
        .map_err(|error| explained(&error, format!("{option}={value}: the system does not take this value")))
}

/// Limits how long calls block.
pub(super) fn wait_in_slices(socket: &OwnedFd) -> io::Result<()> {
    let slice = libc::timeval { tv_sec: 0, tv_usec: libc::suseconds_t::from(SLICE_MS) * 1000 };
    set(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, slice)?;
    set(socket, libc::SOL_SOCKET, libc::SO_SNDTIMEO, slice)
}

/// Makes the socket count as readable only from this many bytes on; calls that do not wait can read less.
pub(super) fn is_readable_from(socket: RawFd, bytes: usize) -> io::Result<()> {
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes as libc::c_int)
}

/// Acknowledges at once what TCP has received.
pub(super) fn acknowledge(socket: RawFd) {
    // A hint: without it, this happens later.
    let _ = set(&socket, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
}

/// Whether the socket becomes readable within this time, or its stream ends.
pub(super) fn is_readable_within(socket: RawFd, time: Duration) -> bool {
    let mut asked = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
    let limit = libc::timespec { tv_sec: 0, tv_nsec: libc::c_long::from(time.subsec_nanos()) };
    // SAFETY: both structures outlive the call.
    unsafe { libc::ppoll(&raw mut asked, 1, &raw const limit, std::ptr::null()) > 0 }
}

/// Receives available data into the first of these parts of memory, and further data into the second. Returns the
/// number of bytes, 0 at the end of the stream, or -1 with errno.
pub(super) fn receive_parts(socket: RawFd, parts: [(*mut u8, usize); 2], waits: bool) -> isize {
    let mut places = parts.map(|(start, length)| libc::iovec { iov_base: start.cast(), iov_len: length });
    // SAFETY: the structure is plain data, valid as zeros.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = places.as_mut_ptr();
    message.msg_iovlen = places.len() as _;
    // SAFETY: the caller has that much room there, and the structures outlive the call.
    unsafe { libc::recvmsg(socket, &raw mut message, if waits { 0 } else { libc::MSG_DONTWAIT }) }
}

/// Binds the socket. Addresses of closed connections can be reused.
pub(super) fn bind(socket: &OwnedFd, address: &Address, options: &NetOptions) -> io::Result<()> {
    let is_group = options.group().is_some();
    if options.protocol.is_tcp() || is_group {
        set(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    }
    if is_group {
        // Several receivers of a group may be on one machine.
        set(socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    }
    // SAFETY: the address outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), address.pointer(), address.length) })?;
    if !options.protocol.is_udp() {
        // SAFETY: takes nothing but integers.
        check(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
    }
    Ok(())
}

/// Whether the socket is readable (or writable) within this time.
pub(super) fn is_ready(socket: &OwnedFd, events: libc::c_short, milliseconds: u16) -> io::Result<bool> {
    let mut asked = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    // SAFETY: one structure, which outlives the call.
    match unsafe { libc::poll(&raw mut asked, 1, libc::c_int::from(milliseconds)) } {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
        count => Ok(count > 0),
    }
}

/// Waits until the socket is ready, as long as `goes_on` says so.
pub(super) fn await_ready(
    socket: &OwnedFd,
    events: libc::c_short,
    goes_on: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    while !is_ready(socket, events, SLICE_MS)? {
        goes_on()?;
    }
    Ok(())
}

/// Accepts a connection.
pub(super) fn accept(listener: &OwnedFd, goes_on: &mut dyn FnMut() -> io::Result<()>) -> io::Result<OwnedFd> {
    loop {
        await_ready(listener, libc::POLLIN, goes_on)?;
        let nobody = std::ptr::null_mut();
        // SAFETY: the address of the other end is not asked for.
        match check(unsafe {
            libc::accept4(listener.as_raw_fd(), nobody, std::ptr::null_mut(), libc::SOCK_CLOEXEC)
        }) {
            // SAFETY: it was opened just now, and nothing else owns it.
            Ok(socket) => return Ok(unsafe { OwnedFd::from_raw_fd(socket) }),
            // The peer went away before its connection was accepted.
            Err(error) if is_passing(&error) => goes_on()?,
            Err(error) => return Err(error),
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::ECONNABORTED))
}

/// Connects to an address.
pub(super) fn connect(
    socket: &OwnedFd,
    address: &Address,
    goes_on: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    wait_for_calls(socket, false)?;
    loop {
        // SAFETY: the address outlives the call.
        match check(unsafe { libc::connect(socket.as_raw_fd(), address.pointer(), address.length) }) {
            Ok(_) => break,
            Err(error) => match error.raw_os_error() {
                Some(libc::EINPROGRESS | libc::EALREADY | libc::EINTR) => {
                    await_ready(socket, libc::POLLOUT, goes_on)?;
                    match pending_error(socket)? {
                        0 => break,
                        errno => return Err(io::Error::from_raw_os_error(errno)),
                    }
                }
                // The listen queue of a local socket is full.
                Some(libc::EAGAIN) => {
                    std::thread::sleep(Duration::from_millis(u64::from(SLICE_MS)));
                    goes_on()?;
                }
                _ => return Err(error),
            },
        }
    }
    wait_for_calls(socket, true)
}

/// Sets whether calls block.
fn wait_for_calls(socket: &OwnedFd, wait: bool) -> io::Result<()> {
    let not_waiting = libc::c_int::from(!wait);
    // SAFETY: FIONBIO reads one integer.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::FIONBIO, &raw const not_waiting) }).map(drop)
}

/// The pending error of the socket; 0 = none.
pub(super) fn pending_error(socket: &OwnedFd) -> io::Result<libc::c_int> {
    let mut errno: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the system writes one integer.
    check(unsafe {
        let place = (&raw mut errno).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, place, &raw mut length)
    })?;
    Ok(errno)
}

/// Bytes that the other machine has not acknowledged. With a local socket: the bytes that the peer has not received,
/// plus the kernel's overhead for them. 0 if unknown.
pub(super) fn unsent(socket: RawFd) -> libc::c_int {
    let mut left: libc::c_int = 0;
    // SAFETY: TIOCOUTQ, which is SIOCOUTQ, writes one integer.
    match unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &raw mut left) } {
        0 => left,
        _ => 0,
    }
}

/// Joins the group, to receive its datagrams.
pub(super) fn join(socket: &OwnedFd, group: IpAddr, interface: &str) -> io::Result<()> {
    match group {
        IpAddr::V4(group) => {
            let interface = in_addr(own_address(interface)?);
            let request = libc::ip_mreq { imr_multiaddr: in_addr(group), imr_interface: interface };
            set(socket, libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, request)
        }
        IpAddr::V6(group) => {
            let request = libc::ipv6_mreq {
                ipv6mr_multiaddr: in6_addr(group),
                ipv6mr_interface: interface_number(interface)?,
            };
            set(socket, libc::IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP, request)
        }
    }
}

/// Sets the interface and the hop limit of datagrams to the group.
pub(super) fn send_to_group(socket: &OwnedFd, group: IpAddr, options: &NetOptions) -> io::Result<()> {
    let NetOptions { interface, ttl, .. } = options;
    let hops = *ttl as libc::c_int;
    if is_v4(group) {
        named("ttl", *ttl, set(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_TTL, hops))?;
        if !interface.is_empty() {
            set(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, in_addr(own_address(interface)?))?;
        }
        return Ok(());
    }
    named("ttl", *ttl, set(socket, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS, hops))?;
    if !interface.is_empty() {
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, interface_number(interface)?)?;
    }
    Ok(())
}

/// The address of an interface of this machine; unspecified = the system chooses.
fn own_address(interface: &str) -> io::Result<Ipv4Addr> {
    if interface.is_empty() {
        return Ok(Ipv4Addr::UNSPECIFIED);
    }
    interface.parse().map_err(|_| {
        let words = format!("interface={interface}: multicast over IPv4 takes the address of the interface");
        invalid(words)
    })
}

/// The number of an interface of this machine; 0 = the system chooses.
fn interface_number(interface: &str) -> io::Result<libc::c_uint> {
    if interface.is_empty() {
        return Ok(0);
    }
    let name = CString::new(interface).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    // SAFETY: a terminated string.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => {
            let words = format!("interface={interface}: multicast over IPv6 takes the name of an interface");
            Err(invalid(words))
        }
        number => Ok(number),
    }
}

/// Makes "port unreachable" answers reach an unconnected socket.
pub(super) fn tell_errors(socket: &OwnedFd, protocol: Protocol) -> io::Result<()> {
    match protocol {
        Protocol::UdpV6 => set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
        _ => set(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1),
    }
}
