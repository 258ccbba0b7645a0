//! System calls on AF_XDP sockets that are set up, and about interfaces.

use std::{
    ffi::CString,
    io, mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

/// The outcome of a kick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kick {
    /// The kernel took all that it had room for.
    Done,
    /// The kernel took a batch and left more in the ring (`EAGAIN` in copy mode), or it has no buffers for now.
    Again,
    /// In copy mode the driver dropped a frame. In zero-copy mode the driver is busy.
    Busy,
}

/// Tells the kernel that the tx ring has frames: `sendto` with nothing to send.
pub(super) fn kick(fd: RawFd) -> io::Result<Kick> {
    // SAFETY: a null buffer of length 0 and a null address of length 0 are valid arguments of `sendto`; the kernel reads nothing.
    let sent = unsafe { libc::sendto(fd, ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
    if sent >= 0 {
        return Ok(Kick::Done);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(Kick::Again),
        Some(libc::EBUSY) => Ok(Kick::Busy),
        _ => Err(error),
    }
}

/// Wakes the receiving side: `recvfrom` with no buffer, for a fill ring that asks for it.
pub(super) fn wake_receive(fd: RawFd) -> io::Result<()> {
    // SAFETY: a null buffer of length 0 and null address pointers are valid arguments of `recvfrom`; the kernel writes nothing.
    let got = unsafe { libc::recvfrom(fd, ptr::null_mut(), 0, libc::MSG_DONTWAIT, ptr::null_mut(), ptr::null_mut()) };
    if got >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => Ok(()),
        _ => Err(error),
    }
}

/// The MTU of an interface of this thread's network namespace, in bytes.
///
/// # Errors
/// `ENODEV` when there is no such interface.
pub(super) fn interface_mtu(name: &CString) -> io::Result<u32> {
    let mut request = interface_request(name)?;
    // SAFETY: SIOCGIFMTU reads the name, which ends in a NUL within its array, and writes the union's `int`.
    unsafe { ask_interface(libc::SIOCGIFMTU, &mut request) }?;
    // SAFETY: the ioctl above succeeded and so wrote this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    u32::try_from(mtu).map_err(io::Error::other)
}

/// `SIOCETHTOOL` of `linux/sockios.h`.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// The settings of an interface's link: `struct ethtool_cmd` of `linux/ethtool.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct LinkSettings {
    command: u32,
    modes: [u32; 2],
    speed: u16,
    rest: [u8; 6],
    packets: [u32; 2],
    speed_high: u16,
    more: [u8; 2],
    reserved: [u32; 3],
}

/// The rate of the link of an interface of this thread's network namespace, in bits per second.
///
/// # Errors
/// `ENODEV` when there is no such interface, `EOPNOTSUPP` when its driver does not tell, or there is no link.
pub(super) fn link_bps(name: &CString) -> io::Result<u64> {
    /// `ETHTOOL_GSET` of `linux/ethtool.h`, and what it says where the rate is not known.
    const GET_SETTINGS: u32 = 1;
    const UNKNOWN: u32 = u32::MAX;
    let asked = LinkSettings { command: GET_SETTINGS, ..LinkSettings::default() };
    // SAFETY: the structure is that command's.
    let settings = unsafe { ask_driver(name, asked) }?;
    match u32::from(settings.speed) | u32::from(settings.speed_high) << 16 {
        0 | UNKNOWN => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        mbps => Ok(u64::from(mbps) * 1_000_000),
    }
}

/// The number of an interface of this thread's network namespace.
pub(super) fn interface_index(name: &CString) -> Option<u32> {
    // SAFETY: the name is a live string that ends in a NUL.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index > 0).then_some(index)
}

/// Queues of an interface, by what they are for: `struct ethtool_channels` of `linux/ethtool.h`, which libc does not have.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Channels {
    command: u32,
    most: [u32; 4],
    pub(super) rx: u32,
    pub(super) tx: u32,
    other: u32,
    pub(super) combined: u32,
}

/// The queues that an interface of this thread's network namespace has now.
///
/// # Errors
/// `ENODEV` when there is no such interface, `EOPNOTSUPP` when its driver does not tell.
pub(super) fn channels(name: &CString) -> io::Result<Channels> {
    /// `ETHTOOL_GCHANNELS` of `linux/ethtool.h`.
    const GET_CHANNELS: u32 = 0x3c;
    // SAFETY: the structure is that command's.
    unsafe { ask_driver(name, Channels { command: GET_CHANNELS, ..Channels::default() }) }
}

/// Sizes of a NIC's own rings in slots: `struct ethtool_ringparam` of `linux/ethtool.h`, which libc does not have.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct NicRings {
    command: u32,
    most: [u32; 4],
    rx: u32,
    others: [u32; 3],
}

/// Slots of the receive ring that each queue of the NIC has.
///
/// # Errors
/// `ENODEV` when there is no such interface, `EOPNOTSUPP` when its driver does not tell.
pub(super) fn nic_rx_ring(name: &CString) -> io::Result<u32> {
    /// `ETHTOOL_GRINGPARAM` of `linux/ethtool.h`.
    const GET_RINGS: u32 = 0x10;
    // SAFETY: the structure is that command's.
    unsafe { ask_driver(name, NicRings { command: GET_RINGS, ..NicRings::default() }) }.map(|rings| rings.rx)
}

/// Asks an interface's driver by ethtool: the structure begins with a command, which writes the rest of it.
///
/// # Safety
/// The structure must be the one of its command, in the kernel's layout.
unsafe fn ask_driver<T: Copy>(name: &CString, mut asked: T) -> io::Result<T> {
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut asked).cast();
    // SAFETY: SIOCETHTOOL reads the name, which ends in a NUL within its array, and the command; that one writes the structure, which
    // is live and, by this function's contract, of its layout.
    unsafe { ask_interface(SIOCETHTOOL, &mut request) }?;
    Ok(asked)
}

/// A request about the interface of that name.
fn interface_request(name: &CString) -> io::Result<libc::ifreq> {
    let bytes = name.as_bytes_with_nul();
    if bytes.len() > libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    // SAFETY: `ifreq` is a plain C structure for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

/// # Safety
/// The request must hold what this ioctl reads, and be valid for what it writes.
unsafe fn ask_interface(ioctl: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: plain arguments; the result is checked below.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above just made this descriptor, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: by this function's contract; `request` outlives the call.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), ioctl, &raw mut *request) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A descriptor that is readable while any of `fds` is.
pub(crate) fn any_readable(fds: impl IntoIterator<Item = RawFd>) -> io::Result<OwnedFd> {
    // SAFETY: a plain argument; the result is checked below.
    let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above just made this descriptor, and nothing else owns it.
    let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
    for fd in fds {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: `event` is a live epoll_event, which the call only reads.
        let outcome = unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        if outcome < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(epoll)
}

/// Takes the error that waits on the socket, if one does: `ENETDOWN` once its interface was removed.
pub(super) fn pending_error(fd: RawFd) -> io::Result<()> {
    let mut error: libc::c_int = 0;
    let mut length = mem::size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointers describe a live `int` and its length, both writable.
    let outcome =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut error).cast(), &raw mut length) };
    match (outcome, error) {
        (0, 0) => Ok(()),
        (0, error) => Err(io::Error::from_raw_os_error(error)),
        _ => Err(io::Error::last_os_error()),
    }
}
