//! An AF_XDP socket with its four rings, set up in the order that drivers need: memory, rings, frames to receive into, and then the queue.

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

/// A socket and its rings.
#[derive(Debug)]
pub(super) struct Socket {
    // Rings hold the address of a frame, and in those of packets its length.
    pub(super) fill: Producer<u64>,
    pub(super) completion: Consumer<u64>,
    pub(super) rx: Consumer<libc::xdp_desc>,
    pub(super) tx: Producer<libc::xdp_desc>,
    socket: socket2::Socket,
}

impl Socket {
    /// A socket on this memory, bound to no queue.
    ///
    /// # Errors
    /// `ENOBUFS` when the memory cannot be pinned, `EPERM` without rights, `EAFNOSUPPORT` where the kernel has none.
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

    /// Binds it to a queue of the interface of that number.
    ///
    /// # Errors
    /// `EBUSY` when another socket has the queue, `EINVAL` when there is none of that number, `EOPNOTSUPP` or `EINVAL` without zero-copy.
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

    /// What the kernel counted on this socket.
    ///
    /// # Errors
    /// When its interface is gone.
    pub(super) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        // SAFETY: of numbers, and any bytes are one.
        unsafe { option(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS) }
    }

    /// Lets one kick in copy mode take `frames` frames rather than 32. Kernels before 6.17 refuse; they need more kicks.
    pub(super) fn raise_kick_budget(&self, frames: u32) -> bool {
        /// Of `linux/if_xdp.h`, from Linux 6.17; libc does not have it yet.
        const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
        set_option(&self.socket, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, frames).is_ok()
    }

    /// Tells the kernel that the tx ring has frames: sends nothing.
    pub(super) fn kick(&self) -> io::Result<Kick> {
        let Err(error) = self.socket.send_with_flags(&[], libc::MSG_DONTWAIT) else { return Ok(Kick::Done) };
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(Kick::Again),
            Some(libc::EBUSY) => Ok(Kick::Busy),
            _ => Err(error),
        }
    }

    /// Wakes the receiving side, for a fill ring that asks for it: receives nothing.
    pub(super) fn wake_receive(&self) -> io::Result<()> {
        let Err(error) = self.socket.recv_with_flags(&mut [], libc::MSG_DONTWAIT) else { return Ok(()) };
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => Ok(()),
            _ => Err(error),
        }
    }

    /// Has a zero-copy driver that sleeps look at both rings, also where sockets poll it: there sending and receiving poll what the queue
    /// receives by (its NAPI), and leave out waking what it sends by. virtio-net has another one for that, igb as well while it has few queues.
    pub(super) fn wake_all(&self) {
        let mut asked = libc::pollfd { fd: self.fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: the pointer describes one live `pollfd`. It does not wait, and what it says does not matter.
        unsafe { libc::poll(&raw mut asked, 1, 0) };
    }

    /// Whether an error waits on the socket, and takes it: `ENETDOWN` once its interface was removed.
    pub(super) fn has_failed(&self) -> bool {
        !matches!(self.socket.take_error(), Ok(None))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

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
