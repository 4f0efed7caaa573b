//! System calls about users: the user at the other end of a socket, and the permissions of a new socket.

use iolite_os::files::try_lock;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The user that this program runs as.
pub(crate) fn own() -> u32 {
    // SAFETY: no pointers are involved; the call cannot fail.
    unsafe { libc::geteuid() }
}

/// The user at the other end of a socket, at the time of the connection.
pub(crate) fn of_peer(stream: &UnixStream) -> io::Result<u32> {
    // SAFETY: the structure is plain data; the kernel fills it in, and gets its size.
    unsafe {
        let mut peer: libc::ucred = std::mem::zeroed();
        let mut size = size_of::<libc::ucred>() as libc::socklen_t;
        let result = libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        );
        if result == 0 { Ok(peer.uid) } else { Err(io::Error::last_os_error()) }
    }
}

/// Creates a Unix socket that only its owner can connect to, from its first moment. The caller must be single-threaded:
/// files created by other threads meanwhile would get the same permissions.
pub(crate) fn private_listener(path: &Path) -> io::Result<UnixListener> {
    // SAFETY: no pointers are involved; the call cannot fail.
    let before = unsafe { libc::umask(0o177) };
    let listener = UnixListener::bind(path);
    // SAFETY: as above.
    unsafe { libc::umask(before) };
    listener
}

/// Waits at most this long until a descriptor is readable. Returns whether it is.
pub(crate) fn is_readable_within(descriptor: BorrowedFd<'_>, patience: Duration) -> bool {
    let mut polled = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let milliseconds = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: there is one structure, which is valid during the call.
    unsafe { libc::poll(&raw mut polled, 1, milliseconds) == 1 }
}

/// The addresses of this machine, with loopback addresses last.
pub(crate) fn own_addresses() -> Vec<IpAddr> {
    let mut found = Vec::new();
    // SAFETY: the list is that of the call until it is given back, and each address has the type that its family says.
    unsafe {
        let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
        if libc::getifaddrs(&raw mut first) != 0 {
            return found;
        }
        let mut next = first;
        while let Some(one) = next.as_ref() {
            next = one.ifa_next;
            if one.ifa_flags & libc::IFF_UP as libc::c_uint == 0 {
                continue;
            }
            match one.ifa_addr.as_ref().map(|address| i32::from(address.sa_family)) {
                Some(libc::AF_INET) => {
                    let address = std::ptr::read_unaligned(one.ifa_addr.cast::<libc::sockaddr_in>());
                    found.push(IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()));
                }
                Some(libc::AF_INET6) => {
                    let address = std::ptr::read_unaligned(one.ifa_addr.cast::<libc::sockaddr_in6>());
                    let address = Ipv6Addr::from(address.sin6_addr.s6_addr);
                    // A link-local address needs the name of the link, which differs between machines.
                    if !address.is_unicast_link_local() {
                        found.push(IpAddr::V6(address));
                    }
                }
                _ => {}
            }
        }
        libc::freeifaddrs(first);
    }
    found.sort_by_key(|address| (address.is_loopback(), address.is_ipv6()));
    found
}

/// Locks a file until it is closed. Waits for other holders, but not for long: any user who may read a directory may lock
/// it.
///
/// # Errors
/// `WouldBlock` = another process holds the lock.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match try_lock(file) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            locked => return locked,
        }
    }
}

/// How a child has ended, without reaping it; `None` = not ended in this time.
pub(crate) fn peek_end(child: libc::pid_t, patience: Duration) -> Option<ExitStatus> {
    let until = Instant::now() + patience;
    loop {
        // SAFETY: the structure is plain data, valid as zeros, and filled in by the kernel.
        let (result, code, value) = unsafe {
            let mut found: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
            let result = libc::waitid(libc::P_PID, child as libc::id_t, &raw mut found, options);
            let ended = result == 0 && found.si_pid() == child;
            (ended, found.si_code, if ended { found.si_status() } else { 0 })
        };
        if result {
            let is_exit = code == libc::CLD_EXITED;
            return Some(ExitStatus::from_raw(if is_exit { value << 8 } else { value }));
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
