//! System calls on AF_XDP sockets that are set up.

use std::{
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

/// Has a zero-copy driver that sleeps look at both rings, also where sockets poll it: there `sendto` and `recvfrom` poll what the queue
/// receives by (its NAPI), and leave out waking what it sends by. virtio-net has another one for that, igb as well while it has few queues.
pub(super) fn wake_all(fd: RawFd) {
    let mut asked = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: the pointer describes one live `pollfd`. It does not wait, and what it says does not matter.
    unsafe { libc::poll(&raw mut asked, 1, 0) };
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
