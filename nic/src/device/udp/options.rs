//! Options of sockets that neither quinn-udp nor socket2 has.

use std::os::fd::{AsRawFd, RawFd};
use std::{io, mem};

/// How much of what arrives may wait for us, where the kernel allows it: some milliseconds at 10 Gb/s.
const RECEIVE_BYTES: libc::c_int = 8 << 20;
/// `SK_MEMINFO_DROPS` of `linux/sock_diag.h`: the place of the count of drops in what `SO_MEMINFO` gives, and how much that is.
const DROPS: usize = 8;
const MEMORY_FIELDS: usize = 9;

/// What becomes of a frame that is longer than the MTU of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooLong {
    /// Sending it fails.
    Refused,
    /// The kernel sends it in fragments.
    Fragmented,
}

/// Makes room for what arrives: as much as we want as root, or else as much as `net.core.rmem_max` allows.
pub(super) fn make_room(socket: &impl AsRawFd) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BYTES)
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BYTES))
}

/// Says what becomes of frames that are too long. quinn-udp has the socket not learn the path's MTU.
pub(super) fn handle_too_long(socket: &impl AsRawFd, v6: bool, fate: TooLong) -> io::Result<()> {
    let refused = fate == TooLong::Refused;
    if v6 {
        let discover = if refused { libc::IPV6_PMTUDISC_DO } else { libc::IPV6_PMTUDISC_WANT };
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, refused.into())?;
        return set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, discover);
    }
    let discover = if refused { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_WANT };
    set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, discover)
}

/// The MTU of the path that a socket is connected over.
pub(super) fn mtu(socket: &impl AsRawFd, v6: bool) -> io::Result<u32> {
    let mut mtu = [0];
    match v6 {
        true => get(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU, &mut mtu)?,
        false => get(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_MTU, &mut mtu)?,
    }
    Ok(mtu[0])
}

/// Datagrams that found no room in a socket; 0 where the kernel does not tell.
pub(super) fn dropped(socket: &impl AsRawFd) -> u32 {
    let mut memory = [0; MEMORY_FIELDS];
    get(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, &mut memory).map_or(0, |()| memory[DROPS])
}

fn set(socket: &impl AsRawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = mem::size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointer and length describe a live `int`, which `setsockopt` only reads.
    let outcome = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn get<const N: usize>(fd: RawFd, level: libc::c_int, name: libc::c_int, value: &mut [u32; N]) -> io::Result<()> {
    let mut length = mem::size_of::<[u32; N]>() as libc::socklen_t;
    // SAFETY: the pointers describe live, writable integers and their length in bytes, beyond which `getsockopt` writes nothing.
    let outcome = unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut length) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
