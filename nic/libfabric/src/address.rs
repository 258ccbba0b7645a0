//! Conversion of C socket addresses.
#![expect(unsafe_code, reason = "the application hands over addresses")]

use std::ffi::c_void;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

use crate::abi::{FI_SOCKADDR_IN, FI_SOCKADDR_IN6};
use crate::error::Errno;

#[derive(Clone, Copy)]
pub union Sockaddr {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl Sockaddr {
    pub fn new(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(v4) => Self {
                v4: libc::sockaddr_in {
                    sin_family: libc::AF_INET as u16,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: v4.ip().to_bits().to_be() },
                    sin_zero: [0; 8],
                },
            },
            SocketAddr::V6(v6) => Self {
                v6: libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as u16,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: v6.scope_id(),
                },
            },
        }
    }
}

/// Size of a `sockaddr` of the IP version.
pub fn bytes(is_v6: bool) -> usize {
    if is_v6 { size_of::<libc::sockaddr_in6>() } else { size_of::<libc::sockaddr_in>() }
}

pub fn format(is_v6: bool) -> u32 {
    if is_v6 { FI_SOCKADDR_IN6 } else { FI_SOCKADDR_IN }
}

/// Reads an address.
///
/// # Safety
/// Unless null, `from` points to a `sockaddr` of the length of its family.
pub unsafe fn read(from: *const c_void) -> Result<SocketAddr, Errno> {
    if from.is_null() {
        return Err(Errno::INVALID);
    }
    // SAFETY: every `sockaddr` begins with its family.
    let family = unsafe { from.cast::<u16>().read_unaligned() };
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: a `sockaddr` of this family is a `sockaddr_in`.
            let v4 = unsafe { from.cast::<libc::sockaddr_in>().read_unaligned() };
            let address = Ipv4Addr::from_bits(u32::from_be(v4.sin_addr.s_addr));
            Ok((address, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: a `sockaddr` of this family is a `sockaddr_in6`.
            let v6 = unsafe { from.cast::<libc::sockaddr_in6>().read_unaligned() };
            let (address, port) = (Ipv6Addr::from(v6.sin6_addr.s6_addr), u16::from_be(v6.sin6_port));
            Ok(SocketAddrV6::new(address, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => Err(Errno::INVALID),
    }
}

/// Writes the part of an address that fits, and its full length into `room`. Fails with
/// `FI_ETOOSMALL` if not all of it fits.
///
/// # Safety
/// `room`, unless null, is valid for reads and writes, and `to`, unless null, for writes of `*room`
/// bytes.
pub unsafe fn write(address: SocketAddr, to: *mut c_void, room: *mut usize) -> Result<(), Errno> {
    if room.is_null() {
        return Err(Errno::INVALID);
    }
    let (from, needed) = (Sockaddr::new(address), bytes(address.is_ipv6()));
    // SAFETY: writes at most `*room` bytes, as the caller promises, and reads at most `size_of::<Sockaddr>()`.
    unsafe {
        let fits = room.replace(needed);
        if !to.is_null() {
            std::ptr::copy_nonoverlapping((&raw const from).cast::<u8>(), to.cast(), needed.min(fits));
        }
        if fits < needed || to.is_null() { Err(Errno(crate::abi::FI_ETOOSMALL)) } else { Ok(()) }
    }
}

/// Resolves a host and a port. Without a host, returns the unspecified address.
pub fn look_up(node: Option<&str>, service: Option<&str>) -> Result<SocketAddr, Errno> {
    let port = service.map_or(Ok(spray_nic::Ports::DEFAULT.first()), str::parse).map_err(|_| Errno::NO_DATA)?;
    let Some(node) = node else { return Ok((Ipv4Addr::UNSPECIFIED, port).into()) };
    let mut found = (node, port).to_socket_addrs().map_err(|_| Errno::NO_DATA)?;
    found.next().ok_or(Errno::NO_DATA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for text in ["10.0.0.1:61440", "[fd00::1%3]:47592"] {
            let address: SocketAddr = text.parse().unwrap();
            let (mut space, mut room) = ([0_u64; 4], 32);
            // SAFETY: the buffer has 32 bytes, `room` is at most that, and only written bytes are
            // read.
            let read = unsafe {
                write(address, space.as_mut_ptr().cast(), &mut room).unwrap();
                let mut little = 4;
                assert_eq!(write(address, space.as_mut_ptr().cast(), &mut little), Err(Errno(257)));
                assert_eq!(write(address, std::ptr::null_mut(), &mut little), Err(Errno(257)));
                assert_eq!(little, room);
                read(space.as_ptr().cast())
            };
            assert_eq!((read, room), (Ok(address), bytes(address.is_ipv6())));
        }
        // SAFETY: a null pointer is not dereferenced, and after an unknown family nothing more is
        // read.
        assert!(unsafe { read(std::ptr::null()).is_err() && read([77_u16; 16].as_ptr().cast()).is_err() });
    }

    #[test]
    fn hosts_and_ports_are_looked_up() {
        assert_eq!(look_up(Some("10.0.0.1"), None), Ok("10.0.0.1:61440".parse().unwrap()));
        assert_eq!(look_up(None, Some("9")), Ok("0.0.0.0:9".parse().unwrap()));
        assert_eq!(look_up(Some("10.0.0.1"), Some("http")), Err(Errno::NO_DATA));
    }
}
