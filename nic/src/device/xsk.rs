//! AF_XDP sockets, through `xsk-rs` and libxdp.
//!
//! Rings are named as the kernel does (*fill*, *completion*, *rx*, *tx*; see the kernel's `Documentation/networking/af_xdp.rst`).
//! A socket receives only what an XDP program on the interface hands it. [`Host::open`](crate::Host::open) comes with that program; for
//! a program of your own, put [`XskDevice::fd`] into its XSKMAP.
//!
//! In `xsk-rs` it is unsafe to touch a frame that somebody else owns, or to hand it to the kernel. Here `Frames`
//! records who owns each frame, and every use of a handle checks it, so safe code cannot break the rule.

use std::{
    cell::RefCell,
    ffi::CString,
    io,
    num::NonZeroU32,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    time::Duration,
};

use xsk_rs::{
    CompQueue, FillQueue, FrameDesc, RxQueue, Socket, TxQueue, Umem,
    config::{BindFlags, Interface, LibxdpFlags, SocketConfig, UmemConfig},
};

use super::{
    Device, DeviceStats, FrameCensus, FrameId, Received,
    frames::{Frames, Place},
};
use crate::net::ethtool::{Ethtool, interface_index};

mod config;
mod error;
mod interface;
mod queues;
mod rings;
mod sys;

pub use config::{BindMode, XskConfig};
pub use error::OpenError;
pub use interface::{TakeOverError, XskInterface};

use config::{ETHERNET_HEADER, capacity};
pub(crate) use sys::any_readable;

/// Descriptors moved between `Frames` and a ring at a time. 64 of 40 bytes stay in the first-level cache.
const BATCH: usize = 64;
/// The four rings of a socket.
#[derive(Debug)]
struct Rings {
    fill: FillQueue,
    completion: CompQueue,
    rx: RxQueue,
    tx: TxQueue,
}

/// One queue of an interface: an AF_XDP socket with its own frames.
///
/// It is opened in the network namespace of the calling thread. Afterwards any one thread may use it. Where the interface has several
/// queues, packets of one connection come by all of them: [`Host::open`](crate::Host::open) takes them all.
#[derive(Debug)]
pub struct XskDevice {
    /// A cell: `xsk-rs` needs exclusive access even to count, and [`Device::audit`] counts behind a shared borrow.
    rings: RefCell<Rings>,
    umem: Umem,
    /// Descriptors as last received or written; `homes` are the original ones.
    descriptors: Box<[FrameDesc]>,
    homes: Box<[FrameDesc]>,
    frames: Frames,
    /// Frames that [`Device::transmit`] has taken. The next flush puts them into the tx ring.
    pending: Vec<FrameDesc>,
    scratch: Box<[FrameDesc; BATCH]>,
    fd: RawFd,
    config: XskConfig,
    mtu: u32,
    zero_copy: bool,
    tx_limit: u32,
    tx_reserve: u32,
    empty_receives: u32,
    /// The interface was removed. The kernel says so once, so it is kept here.
    gone: bool,
    stats: DeviceStats,
}

impl XskDevice {
    /// Opens a queue of an interface in this thread's network namespace, and fills its fill ring.
    ///
    /// # Errors
    /// Each [`OpenError`] says what to do about it.
    pub fn open(config: &XskConfig) -> Result<Self, OpenError> {
        config.check()?;
        let name = CString::new(config.interface.as_str()).map_err(|_| config.no_interface())?;
        let mtu = Ethtool::open(&config.interface).and_then(|ethtool| ethtool.mtu()).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::ENODEV) => config.no_interface(),
                _ => config.failed("asking for the MTU", error),
            }
        })?;
        config.check_mtu(mtu)?;
        match config.mode {
            BindMode::Copy => Self::bind_patiently(config, &name, mtu, false),
            BindMode::ZeroCopy => Self::bind_patiently(config, &name, mtu, true),
            BindMode::Auto => match Self::bind_patiently(config, &name, mtu, true) {
                Err(OpenError::NoZeroCopy { .. }) => Self::bind_patiently(config, &name, mtu, false),
                other => other,
            },
        }
    }

    /// Binds, and waits up to 200 ms for a busy queue: the kernel releases the queue of a closed socket a little
    /// later, from a work queue.
    fn bind_patiently(config: &XskConfig, name: &CString, mtu: u32, zero_copy: bool) -> Result<Self, OpenError> {
        for _ in 0..20 {
            match Self::bind(config, name, mtu, zero_copy) {
                Err(OpenError::QueueBusy { .. }) => std::thread::sleep(Duration::from_millis(10)),
                other => return other,
            }
        }
        Self::bind(config, name, mtu, zero_copy)
    }

    fn bind(config: &XskConfig, name: &CString, mtu: u32, zero_copy: bool) -> Result<Self, OpenError> {
        let frames = NonZeroU32::new(config.frames).ok_or_else(|| OpenError::Config("no frames".into()))?;
        let (umem, mut homes) =
            Umem::new(umem_config(config)?, frames, false).map_err(|error| config.umem_failed(&error))?;
        let socket_config = socket_config(config, zero_copy)?;
        // SAFETY: the contract concerns a UMEM shared by several sockets; this one was made above and gets this one socket.
        let opened = unsafe { Socket::new(socket_config, &umem, &Interface::new(name.clone()), config.queue) };
        let (tx, rx, pair) = opened.map_err(|error| config.bind_failed(&error, zero_copy))?;
        let (fill, completion) =
            pair.expect("a UMEM that no other socket shares comes with its fill and completion rings");
        let fd = tx.fd().as_raw_fd();
        // Older kernels refuse. There a flush needs a system call for each 32 frames.
        let _supported = sys::raise_kick_budget(fd, config.tx_ring);
        let zero_copy = sys::is_zero_copy(fd).map_err(|error| config.failed("asking for the mode", error))?;
        for home in &mut homes {
            // SAFETY: the descriptor is of this UMEM, and the kernel has been given no frame yet.
            let mut data = unsafe { umem.data_mut(home) };
            data.cursor().set_pos(capacity(config) as usize);
        }
        let mut device = Self {
            rings: RefCell::new(Rings { fill, completion, rx, tx }),
            umem,
            descriptors: homes.clone().into(),
            homes: homes.into(),
            frames: Frames::new(config.frames),
            pending: Vec::with_capacity(config.tx_ring as usize),
            scratch: Box::new([FrameDesc::default(); BATCH]),
            fd,
            config: config.clone(),
            mtu,
            zero_copy,
            tx_limit: config.tx_ring.min(config.completion_ring),
            tx_reserve: config.frames / 8,
            empty_receives: 0,
            gone: false,
            stats: DeviceStats::default(),
        };
        device.refill();
        Ok(device)
    }

    /// The socket's file descriptor, for the XSKMAP of the steering program. It closes with the device.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    /// The queue of the interface.
    #[must_use]
    pub fn queue(&self) -> u32 {
        self.config.queue
    }

    /// The interface's name.
    #[must_use]
    pub fn interface(&self) -> &str {
        &self.config.interface
    }

    /// Whether the driver reads and writes our frames itself; otherwise the kernel copies.
    #[must_use]
    pub fn zero_copy(&self) -> bool {
        self.zero_copy
    }
}

impl AsFd for XskDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket in `rings` keeps the descriptor open for as long as `self` lives, which the borrow cannot outlive.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }
}

impl Device for XskDevice {
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize> {
        let budget = budget.min(out.capacity() - out.len());
        let mut received = 0;
        while received < budget {
            let batch = (budget - received).min(BATCH);
            // SAFETY: the rx ring holds frames of this UMEM only.
            let count = unsafe { self.rings.get_mut().rx.consume(&mut self.scratch[..batch]) };
            for at in 0..count {
                let descriptor = self.scratch[at];
                let index = self.index_of(&descriptor);
                self.frames.shift(index, Place::Fill, Place::Held);
                self.descriptors[index as usize] = descriptor;
                let len = descriptor.lengths().data();
                self.stats.rx_bytes += len as u64;
                out.push(Received { frame: FrameId(index), len: len as u32 });
            }
            received += count;
            if count < batch {
                break;
            }
        }
        self.stats.rx += received as u64;
        if received == 0 {
            self.check_seldom()?;
        } else {
            self.empty_receives = 0;
        }
        Ok(received)
    }

    fn frame(&self, id: &FrameId, len: u32) -> &[u8] {
        let index = self.frames.held(id);
        // SAFETY: the descriptor is of this UMEM and the caller holds its frame, so the kernel does not touch it; a mutable view of it
        // needs `&mut self`, so there is none now.
        let data = unsafe { self.umem.data(&self.descriptors[index as usize]) };
        &data.contents()[..len as usize]
    }

    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8] {
        let index = self.frames.held(id);
        let frame_size = self.config.frame_size as usize;
        let descriptor = &mut self.descriptors[index as usize];
        let space = frame_size - descriptor.addr() % frame_size;
        // SAFETY: the descriptor is of this UMEM and the caller holds its frame, so the kernel does not touch it; `&mut self` excludes
        // every other view of it.
        let mut data = unsafe { self.umem.data_mut(descriptor) };
        data.cursor().set_pos(space);
        let contents = data.contents_mut();
        // SAFETY: the same bytes with the lifetime of `&mut self`, which `data`, a local, cannot lend: the UMEM lives as long as `self`.
        unsafe { std::slice::from_raw_parts_mut(contents.as_mut_ptr(), contents.len()) }
    }

    fn release(&mut self, id: FrameId) {
        let index = self.frames.held(&id);
        self.frames.shift(index, Place::Held, Place::Free);
    }

    fn allocate(&mut self) -> Option<FrameId> {
        let index = self.frames.take(Place::Held)?;
        let at = index as usize;
        // The received packet may begin elsewhere within its frame, if an XDP program moved its start.
        if self.descriptors[at].addr() != self.homes[at].addr() {
            self.descriptors[at] = self.homes[at];
        }
        Some(FrameId(index))
    }

    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId> {
        assert!(len as usize <= self.max_frame(), "frame of {len} bytes, the longest is {}", self.max_frame());
        let index = self.frames.held(&id);
        if self.frames.count(Place::Tx) >= self.tx_limit {
            self.stats.tx_ring_full += 1;
            return Err(id);
        }
        let descriptor = &mut self.descriptors[index as usize];
        // SAFETY: the descriptor is of this UMEM and the caller holds its frame; `&mut self` excludes every other view of it.
        let mut data = unsafe { self.umem.data_mut(descriptor) };
        data.cursor().set_pos(len as usize);
        self.frames.shift(index, Place::Held, Place::Tx);
        self.pending.push(*descriptor);
        self.stats.tx += 1;
        self.stats.tx_bytes += u64::from(len);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.frames.count(Place::Tx) > 0 {
            self.submit();
            if let Err(error) = self.kick() {
                // An interface that is down comes back, one that was removed does not.
                self.check_interface()?;
                return Err(error);
            }
            self.reap();
        }
        self.refill();
        if self.config.need_wakeup && self.rings.get_mut().fill.needs_wakeup() {
            self.stats.wakeups += 1;
            sys::wake_receive(self.fd)?;
        }
        Ok(())
    }

    fn max_frame(&self) -> usize {
        (self.mtu + ETHERNET_HEADER).min(capacity(&self.config)) as usize
    }

    fn stats(&self) -> DeviceStats {
        // A socket whose interface is gone may give no statistics. Our own counts still hold.
        let Ok(kernel) = self.rings.borrow().tx.fd().xdp_statistics() else { return self.stats };
        DeviceStats {
            rx_dropped_ring_full: kernel.rx_ring_full(),
            rx_dropped: kernel.rx_dropped(),
            fill_empty: kernel.rx_fill_ring_empty_descs(),
            rx_invalid: kernel.rx_invalid_descs(),
            tx_invalid: kernel.tx_invalid_descs(),
            ..self.stats
        }
    }

    fn census(&self) -> FrameCensus {
        self.frames.census()
    }

    fn audit(&self) -> Result<(), String> {
        self.frames.audit()?;
        // The kernel shows a batch in rx a moment before it frees the fill slots. In between, frames are counted
        // twice.
        (0..3).find_map(|_| self.audit_rings().ok()).map_or_else(|| self.audit_rings(), Ok)
    }

    fn is_gone(&self) -> bool {
        self.gone
    }

    fn is_deaf(&self) -> bool {
        self.stats.rx == 0 && interface_index(&self.config.interface).and_then(crate::xdp::is_attached) == Some(false)
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(self.fd)
    }
}

fn umem_config(config: &XskConfig) -> Result<UmemConfig, OpenError> {
    let invalid = |error: &dyn std::error::Error| OpenError::Config(error.to_string());
    UmemConfig::builder()
        .frame_size(config.frame_size.try_into().map_err(|error| invalid(&error))?)
        .fill_queue_size(config.fill_ring.try_into().map_err(|error| invalid(&error))?)
        .comp_queue_size(config.completion_ring.try_into().map_err(|error| invalid(&error))?)
        .build()
        .map_err(|error| invalid(&error))
}

fn socket_config(config: &XskConfig, zero_copy: bool) -> Result<SocketConfig, OpenError> {
    let invalid = |error: &dyn std::error::Error| OpenError::Config(error.to_string());
    let mut flags = if zero_copy { BindFlags::XDP_ZEROCOPY } else { BindFlags::XDP_COPY };
    flags.set(BindFlags::XDP_USE_NEED_WAKEUP, config.need_wakeup);
    Ok(SocketConfig::builder()
        .rx_queue_size(config.rx_ring.try_into().map_err(|error| invalid(&error))?)
        .tx_queue_size(config.tx_ring.try_into().map_err(|error| invalid(&error))?)
        .libxdp_flags(LibxdpFlags::XSK_LIBXDP_FLAGS_INHIBIT_PROG_LOAD)
        .bind_flags(flags)
        .build())
}

#[cfg(test)]
mod tests;
