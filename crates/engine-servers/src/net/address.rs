//! Addresses of the ends of a connection.

use iolite_options::engines::{NetOptions, Protocol};
use iolite_os::explained;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A socket address for system calls.
#[derive(Clone, Copy)]
pub(crate) struct Address {
    storage: libc::sockaddr_storage,
    pub(super) length: libc::socklen_t,
}

impl Address {
    /// An empty address for the system to fill in.
    pub(super) fn room() -> Address {
        // SAFETY: the structure is plain data, valid as zeros.
        let storage = unsafe { MaybeUninit::zeroed().assume_init() };
        Address { storage, length: size_of::<libc::sockaddr_storage>() as libc::socklen_t }
    }

    /// From the structure of an address family.
    fn of<T>(address: T, length: usize) -> Address {
        assert!(length <= size_of::<T>() && size_of::<T>() <= size_of::<libc::sockaddr_storage>());
        let mut room = Address::room();
        // SAFETY: the storage is larger than any address, and aligned for all of them.
        unsafe { (&raw mut room.storage).cast::<T>().write(address) };
        room.length = length as libc::socklen_t;
        room
    }

    /// An IPv4 or IPv6 address with a port.
    pub(crate) fn internet(address: SocketAddr) -> Address {
        match address {
            SocketAddr::V4(v4) => {
                let address = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: in_addr(*v4.ip()),
                    sin_zero: [0; 8],
                };
                Address::of(address, size_of::<libc::sockaddr_in>())
            }
            SocketAddr::V6(v6) => {
                let address = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: in6_addr(*v6.ip()),
                    sin6_scope_id: v6.scope_id(),
                };
                Address::of(address, size_of::<libc::sockaddr_in6>())
            }
        }
    }

    fn unix(path: &Path) -> io::Result<Address> {
        let mut address =
            libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
        let bytes = path.as_os_str().as_bytes();
        if bytes.len() >= address.sun_path.len() {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        for (place, &byte) in address.sun_path.iter_mut().zip(bytes) {
            *place = byte as libc::c_char;
        }
        let head = size_of::<libc::sockaddr_un>() - address.sun_path.len();
        Ok(Address::of(address, head + bytes.len() + 1))
    }

    fn vsock(number: u32, port: u32) -> Address {
        let address = libc::sockaddr_vm {
            svm_family: libc::AF_VSOCK as libc::sa_family_t,
            svm_reserved1: 0,
            svm_port: port,
            svm_cid: number,
            svm_zero: [0; 4],
        };
        Address::of(address, size_of::<libc::sockaddr_vm>())
    }

    /// The pointer for calls that read the address.
    pub(crate) fn pointer(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    pub(super) fn pointer_mut(&mut self) -> *mut libc::sockaddr {
        (&raw mut self.storage).cast()
    }

    /// Whether both are the same address and port of an internet protocol.
    pub(super) fn is(&self, other: &Address) -> bool {
        // The family, the port, and what follows: 4 bytes of address, or the flow and 16 bytes.
        let compared = match libc::c_int::from(self.storage.ss_family) {
            libc::AF_INET => 8,
            _ => 24,
        };
        self.bytes()[..compared] == other.bytes()[..compared]
    }

    fn bytes(&self) -> &[u8; size_of::<libc::sockaddr_storage>()] {
        // SAFETY: all bytes were written, by zeros first.
        unsafe { &*(&raw const self.storage).cast() }
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").field("family", &self.storage.ss_family).finish_non_exhaustive()
    }
}

pub(super) fn in_addr(address: Ipv4Addr) -> libc::in_addr {
    libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) }
}

pub(super) fn in6_addr(address: Ipv6Addr) -> libc::in6_addr {
    libc::in6_addr { s6_addr: address.octets() }
}

/// The family of a protocol's addresses.
pub(super) fn family(protocol: Protocol) -> libc::c_int {
    match protocol {
        Protocol::Tcp | Protocol::Udp => libc::AF_INET,
        Protocol::TcpV6 | Protocol::UdpV6 => libc::AF_INET6,
        Protocol::Unix => libc::AF_UNIX,
        Protocol::Vsock => libc::AF_VSOCK,
    }
}

/// The address to listen on. `path` is that of a local socket.
pub(super) fn here(options: &NetOptions, path: &Path) -> io::Result<Address> {
    let port = options.port as u16;
    Ok(match options.protocol {
        Protocol::Tcp | Protocol::Udp => {
            let any = options.group().unwrap_or(Ipv4Addr::UNSPECIFIED.into());
            Address::internet(SocketAddr::new(any, port))
        }
        Protocol::TcpV6 | Protocol::UdpV6 => {
            let any = options.group().unwrap_or(Ipv6Addr::UNSPECIFIED.into());
            Address::internet(SocketAddr::new(any, port))
        }
        Protocol::Unix => Address::unix(path)?,
        Protocol::Vsock => Address::vsock(libc::VMADDR_CID_ANY, options.port),
    })
}

/// The possible addresses of the other end, the most likely one first. `path` is that of a local socket.
pub(super) fn there(options: &NetOptions, path: &Path) -> io::Result<Vec<Address>> {
    let v6 = match options.protocol {
        Protocol::Unix => return Ok(vec![Address::unix(path)?]),
        Protocol::Vsock => return Ok(vec![Address::vsock(machine(&options.hostname)?, options.port)]),
        Protocol::Tcp | Protocol::Udp => false,
        Protocol::TcpV6 | Protocol::UdpV6 => true,
    };
    let found = (options.hostname.as_str(), options.port as u16).to_socket_addrs();
    let found = found.map_err(|error| invalid(format!("hostname={}: {error}", options.hostname)))?;
    let usable: Vec<Address> =
        found.filter(|address| address.is_ipv6() == v6).map(Address::internet).collect();
    if usable.is_empty() {
        let version = if v6 { "IPv6" } else { "IPv4" };
        let words = format!("hostname={} has no {version} address", options.hostname);
        return Err(invalid(words));
    }
    Ok(usable)
}

/// The context ID of a virtual machine, or of its host.
fn machine(hostname: &str) -> io::Result<u32> {
    hostname.parse().map_err(|_| {
        let words =
            format!("hostname={hostname}: vsock takes the number of a machine (CID); the host's is 2");
        invalid(words)
    })
}

/// The error for unusable options.
pub(super) fn invalid(words: String) -> io::Error {
    explained(&io::Error::from_raw_os_error(libc::EINVAL), words)
}

/// Whether an address is one of IPv4.
pub(super) fn is_v4(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(_))
}
