//! An AF_XDP socket with its four rings, set up in the order that drivers need: memory, rings, frames to receive into, and then the queue.

use std::{
    io, mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

use super::{
    XskConfig,
    ring::{Consumer, Location, Producer},
    umem::Umem,
};

/// A socket and its rings.
#[derive(Debug)]
pub(super) struct Socket {
    // Rings hold the address of a frame, and in those of packets its length.
    pub(super) fill: Producer<u64>,
    pub(super) completion: Consumer<u64>,
    pub(super) rx: Consumer<libc::xdp_desc>,
    pub(super) tx: Producer<libc::xdp_desc>,
    fd: OwnedFd,
}

impl Socket {
    /// A socket on this memory, bound to no queue.
    ///
    /// # Errors
    /// `ENOBUFS` when the memory cannot be pinned, `EPERM` without rights, `EAFNOSUPPORT` where the kernel has none.
    pub(super) fn new(umem: &Umem, config: &XskConfig) -> io::Result<Self> {
        // SAFETY: plain arguments; the result is checked below.
        let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above just made this descriptor, and nothing else owns it.
        let owned = unsafe { OwnedFd::from_raw_fd(fd) };
        let memory = libc::xdp_umem_reg {
            addr: umem.start(),
            len: umem.bytes(),
            chunk_size: config.frame_size,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set(fd, libc::XDP_UMEM_REG, &memory)?;
        set(fd, libc::XDP_UMEM_FILL_RING, &config.fill_ring)?;
        set(fd, libc::XDP_UMEM_COMPLETION_RING, &config.completion_ring)?;
        set(fd, libc::XDP_RX_RING, &config.rx_ring)?;
        set(fd, libc::XDP_TX_RING, &config.tx_ring)?;
        let all: libc::xdp_mmap_offsets = get(fd, libc::XDP_MMAP_OFFSETS)?;
        let at = |page, slots, offsets| Location { socket: fd, page, slots, offsets };
        let fill = libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t;
        let completion = libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t;
        Ok(Self {
            fill: Producer::map(&at(fill, config.fill_ring, all.fr))?,
            completion: Consumer::map(&at(completion, config.completion_ring, all.cr))?,
            rx: Consumer::map(&at(libc::XDP_PGOFF_RX_RING, config.rx_ring, all.rx))?,
            tx: Producer::map(&at(libc::XDP_PGOFF_TX_RING, config.tx_ring, all.tx))?,
            fd: owned,
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
        let outcome = unsafe {
            libc::bind(self.fd(), (&raw const address).cast(), mem::size_of_val(&address) as libc::socklen_t)
        };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(super) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// What the kernel counted on this socket.
    ///
    /// # Errors
    /// When its interface is gone.
    pub(super) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        get(self.fd(), libc::XDP_STATISTICS)
    }

    /// Lets one kick in copy mode take `frames` frames rather than 32. Kernels before 6.17 refuse; they need more kicks.
    pub(super) fn raise_kick_budget(&self, frames: u32) -> bool {
        /// Of `linux/if_xdp.h`, from Linux 6.17; libc does not have it yet.
        const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
        set(self.fd(), XDP_MAX_TX_SKB_BUDGET, &frames).is_ok()
    }
}

/// Sets an option of a socket, whose value is a C structure or a number.
fn set<T: Copy>(fd: RawFd, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the pointer and length describe a live value, which the call only reads.
    let outcome = unsafe {
        libc::setsockopt(fd, libc::SOL_XDP, option, (&raw const *value).cast(), mem::size_of::<T>() as libc::socklen_t)
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Asks for an option of a socket, whose value is a C structure of numbers.
fn get<T: Copy>(fd: RawFd, option: libc::c_int) -> io::Result<T> {
    let mut value = mem::MaybeUninit::<T>::zeroed();
    let mut length = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointers describe the value's space and its length, both writable.
    let outcome = unsafe { libc::getsockopt(fd, libc::SOL_XDP, option, value.as_mut_ptr().cast(), &raw mut length) };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: structures of numbers, of which any bytes are a value; what an older kernel did not write is zeros.
    Ok(unsafe { value.assume_init() })
}
