//! An AF_XDP socket with its four rings, set up in the order that drivers need: memory, rings, fill
//! ring, then bind.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
};

use socket2::{Domain, Type};

use super::{
    XskConfig,
    ring::{Consumer, Location, Producer},
    umem::Umem,
};
use crate::sys::{check, option, set_option};

#[derive(Debug)]
pub(super) struct Socket {
    // Rings hold addresses of frames; those of packets also lengths.
    pub(super) fill: Producer<u64>,
    pub(super) completion: Consumer<u64>,
    pub(super) rx: Consumer<libc::xdp_desc>,
    pub(super) tx: Producer<libc::xdp_desc>,
    socket: socket2::Socket,
}

impl Socket {
    /// Creates a socket with this memory, not bound.
    ///
    /// # Errors
    /// `ENOBUFS` when the memory cannot be pinned, `EPERM` without privileges, `EAFNOSUPPORT`
    /// without kernel support.
    pub(super) fn new(umem: &Umem, config: &XskConfig) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::from(libc::AF_XDP), Type::RAW, None)?;
        let memory = libc::xdp_umem_reg {
            addr: umem.start(),
            len: umem.bytes(),
            chunk_size: config.frame_size,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, memory)?;
        set_option(&socket, libc::SOL_XDP, libc::XDP_UMEM_FILL_RING, config.fill_ring)?;
        set_option(&socket, libc::SOL_XDP, libc::XDP_UMEM_COMPLETION_RING, config.completion_ring)?;
        set_option(&socket, libc::SOL_XDP, libc::XDP_RX_RING, config.rx_ring)?;
        set_option(&socket, libc::SOL_XDP, libc::XDP_TX_RING, config.tx_ring)?;
        // SAFETY: of numbers, and any bytes are one.
        let all: libc::xdp_mmap_offsets = unsafe { option(&socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS) }?;
        let at = |page, slots, offsets| Location { socket: socket.as_raw_fd(), page, slots, offsets };
        Ok(Self {
            fill: Producer::map(&at(libc::XDP_UMEM_PGOFF_FILL_RING, config.fill_ring, all.fr))?,
            completion: Consumer::map(&at(libc::XDP_UMEM_PGOFF_COMPLETION_RING, config.completion_ring, all.cr))?,
            rx: Consumer::map(&at(libc::XDP_PGOFF_RX_RING as u64, config.rx_ring, all.rx))?,
            tx: Producer::map(&at(libc::XDP_PGOFF_TX_RING as u64, config.tx_ring, all.tx))?,
            socket,
        })
    }

    /// Binds it to a queue of the interface with index `interface`.
    ///
    /// # Errors
    /// `EBUSY` when another socket has the queue, `EINVAL` when there is no such queue,
    /// `EOPNOTSUPP` or `EINVAL` without zero-copy.
    pub(super) fn bind(&self, interface: u32, config: &XskConfig, zero_copy: bool) -> io::Result<()> {
        let mode = if zero_copy { libc::XDP_ZEROCOPY } else { libc::XDP_COPY };
        let wakeup = if config.need_wakeup { libc::XDP_USE_NEED_WAKEUP } else { 0 };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: mode | wakeup,
            sxdp_ifindex: interface,
            sxdp_queue_id: config.queue,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: the pointer and length describe a live `sockaddr_xdp`, which the call only reads.
        check(unsafe { libc::bind(self.fd(), (&raw const address).cast(), size_of_val(&address) as libc::socklen_t) })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Returns the kernel's counters of the socket.
    ///
    /// # Errors
    /// When its interface is gone.
    pub(super) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        // SAFETY: of numbers, and any bytes are one.
        unsafe { option(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS) }
    }

    /// Lets a kick in copy mode take `frames` frames instead of 32. Returns `false` before Linux
    /// 6.17.
    pub(super) fn raise_kick_budget(&self, frames: u32) -> bool {
        /// From `linux/if_xdp.h` of Linux 6.17; not in libc yet.
        const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
        set_option(&self.socket, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, frames).is_ok()
    }

    /// Notifies the kernel of frames in the tx ring. Sends no data itself.
    pub(super) fn kick(&self) -> io::Result<Kick> {
        let Err(error) = self.socket.send_with_flags(&[], libc::MSG_DONTWAIT) else { return Ok(Kick::Done) };
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(Kick::Again),
            Some(libc::EBUSY) => Ok(Kick::Busy),
            _ => Err(error),
        }
    }

    /// Wakes the receiving side, for a fill ring that requests it.
    pub(super) fn wake_receive(&self) -> io::Result<()> {
        let Err(error) = self.socket.recv_with_flags(&mut [], libc::MSG_DONTWAIT) else { return Ok(()) };
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => Ok(()),
            _ => Err(error),
        }
    }

    /// Wakes a sleeping zero-copy driver for both rings, also when polled: polling runs the queue's
    /// receive NAPI, which does not wake a separate one for sending (virtio-net; igb with few
    /// queues).
    pub(super) fn wake_all(&self) {
        let mut asked = libc::pollfd { fd: self.fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: the pointer describes one live `pollfd`. It does not wait, and what it says does not matter.
        unsafe { libc::poll(&raw mut asked, 1, 0) };
    }

    /// Returns and clears the socket's error: `ENETDOWN` after its interface was removed.
    pub(super) fn has_failed(&self) -> bool {
        !matches!(self.socket.take_error(), Ok(None))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kick {
    /// The kernel took all frames for which it had room.
    Done,
    /// The kernel took a batch and left more in the ring (`EAGAIN` in copy mode), or has no buffers
    /// for now.
    Again,
    /// In copy mode the driver dropped a frame; in zero-copy mode it is busy.
    Busy,
}
