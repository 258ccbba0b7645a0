//! Socket options that quinn-udp and socket2 lack.

use std::ffi::c_int;
use std::io;
use std::os::fd::AsRawFd;

use crate::sys::{option, set_option};

/// Requested receive buffer: some milliseconds at 10 Gb/s.
const RECEIVE_BYTES: c_int = 8 << 20;
/// `SK_MEMINFO_DROPS` of `linux/sock_diag.h`: the index of the drop counter in `SO_MEMINFO`, and
/// the number of its fields.
const DROPS: usize = 8;
const MEMORY_FIELDS: usize = 9;

/// The treatment of frames longer than the path MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TooLong {
    /// Sending fails.
    Refused,
    /// The kernel sends it in fragments.
    Fragmented,
}

/// Enlarges the receive buffer: to the requested size as root, otherwise to `net.core.rmem_max`.
pub(super) fn make_room(socket: &impl AsRawFd) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BYTES)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BYTES))
}

/// Sets the treatment of long frames. quinn-udp disables path MTU discovery.
pub(super) fn handle_too_long(socket: &impl AsRawFd, v6: bool, treatment: TooLong) -> io::Result<()> {
    let refused = treatment == TooLong::Refused;
    if v6 {
        let discover = if refused { libc::IPV6_PMTUDISC_DO } else { libc::IPV6_PMTUDISC_WANT };
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, c_int::from(refused))?;
        return set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, discover);
    }
    let discover = if refused { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_WANT };
    set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, discover)
}

/// Sets whether the kernel queues ICMP errors at the socket. The next call then fails for each
/// error.
pub(super) fn queue_errors(socket: &impl AsRawFd, v6: bool, on: bool) -> io::Result<()> {
    let (level, name) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) } else { (libc::IPPROTO_IP, libc::IP_RECVERR) };
    set_option(socket, level, name, c_int::from(on))
}

/// Returns the path MTU of a connected socket.
pub(super) fn mtu(socket: &impl AsRawFd, v6: bool) -> io::Result<u32> {
    let (level, name) = if v6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    // SAFETY: any bytes are a number.
    unsafe { option(socket, level, name) }
}

/// Returns the number of datagrams dropped by a full buffer; 0 where the kernel has no counter.
pub(super) fn dropped(socket: &impl AsRawFd) -> u32 {
    // SAFETY: any bytes are numbers.
    let memory = unsafe { option::<[u32; MEMORY_FIELDS]>(socket, libc::SOL_SOCKET, libc::SO_MEMINFO) };
    memory.map_or(0, |fields| fields[DROPS])
}
