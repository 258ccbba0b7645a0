//! Options of sockets that neither quinn-udp nor socket2 has.

use std::ffi::c_int;
use std::io;
use std::os::fd::AsRawFd;

use crate::sys::{option, set_option};

/// How much of what arrives may wait for us, where the kernel allows it: some milliseconds at 10 Gb/s.
const RECEIVE_BYTES: c_int = 8 << 20;
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
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BYTES)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BYTES))
}

/// Says what becomes of frames that are too long. quinn-udp has the socket not learn the path's MTU.
pub(super) fn handle_too_long(socket: &impl AsRawFd, v6: bool, fate: TooLong) -> io::Result<()> {
    let refused = fate == TooLong::Refused;
    if v6 {
        let discover = if refused { libc::IPV6_PMTUDISC_DO } else { libc::IPV6_PMTUDISC_WANT };
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, c_int::from(refused))?;
        return set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, discover);
    }
    let discover = if refused { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_WANT };
    set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, discover)
}

/// Sets whether the kernel queues at the socket what ICMP answers to its datagrams. The next call then fails for each answer.
pub(super) fn queue_errors(socket: &impl AsRawFd, v6: bool, on: bool) -> io::Result<()> {
    let (level, name) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) } else { (libc::IPPROTO_IP, libc::IP_RECVERR) };
    set_option(socket, level, name, c_int::from(on))
}

/// The MTU of the path that a socket is connected over.
pub(super) fn mtu(socket: &impl AsRawFd, v6: bool) -> io::Result<u32> {
    let (level, name) = if v6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    // SAFETY: any bytes are a number.
    unsafe { option(socket, level, name) }
}

/// Datagrams that found no room in a socket; 0 where the kernel does not tell.
pub(super) fn dropped(socket: &impl AsRawFd) -> u32 {
    // SAFETY: any bytes are numbers.
    let memory = unsafe { option::<[u32; MEMORY_FIELDS]>(socket, libc::SOL_SOCKET, libc::SO_MEMINFO) };
    memory.map_or(0, |fields| fields[DROPS])
}
