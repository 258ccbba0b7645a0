//! AF_XDP sockets.
//!
//! Packet path: T6 and R1 of `docs/architecture.md`, next to the kernel.
//!
//! Rings are named as in the kernel (*fill*, *completion*, *rx*, *tx*; see the kernel's
//! `Documentation/networking/af_xdp.rst`). A socket receives only frames that an XDP program
//! redirects to it. [`Host::open`](crate::Host::open) has such a program; to use another, attach it
//! before opening, since drivers prepare for sockets by it, and put [`XskDevice::fd`] into its
//! XSKMAP.
//!
//! It is unsafe to access a frame that is owned by someone else, or to pass it to the kernel.
//! `Frames` records the owner of each frame and checks every use of a handle, so that safe code
//! cannot violate this.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, BorrowedFd, RawFd},
    sync::Arc,
    time::Duration,
};

use super::{
    Device, DeviceHealth, DeviceInfo, DeviceStats, FrameCounts, FrameId, Received,
    frames::{FrameState, Frames},
};
use crate::net::ethtool::{Ethtool, interface_index};

mod busy_poll;
mod config;
mod error;
mod interface;
mod queues;
mod restore;
mod ring;
mod rings;
mod rules;
mod sharing;
mod socket;
mod taken_over;
mod umem;

pub use config::{BindMode, BusyPoll, XskConfig};
pub use error::OpenError;
pub use interface::TakeOverError;
pub use queues::XskInterface;
pub use taken_over::TakenOver;

use config::{ETHERNET_HEADER, HEADROOM, capacity};
use socket::Socket;
use umem::Umem;

/// One queue of an interface: an AF_XDP socket with its own frames.
///
/// It is opened in the network namespace of the calling thread, and may then be used by any one
/// thread. With several queues, packets of a connection arrive on all of them:
/// [`Host::open`](crate::Host::open) opens all.
#[derive(Debug)]
pub struct XskDevice {
    // Fields drop in order: the kernel stops using the memory with the socket.
    socket: Socket,
    umem: Arc<Umem>,
    /// The offset of the packet in each frame, which an XDP program may have moved.
    begins: Box<[u16]>,
    frames: Frames,
    /// Frames for the tx ring, submitted by the next flush.
    pending: VecDeque<libc::xdp_desc>,
    config: XskConfig,
    mtu: u32,
    zero_copy: bool,
    /// System calls on the socket poll the driver.
    polls: bool,
    tx_limit: u32,
    tx_reserve: u32,
    empty_receives: u32,
    /// The interface was removed, which the kernel reports only once.
    gone: bool,
    stats: DeviceStats,
}

impl XskDevice {
    /// Opens a queue of an interface in this thread's network namespace, and fills its fill ring.
    ///
    /// # Errors
    /// Each [`OpenError`] states its remedy.
    pub fn open(config: &XskConfig) -> Result<Self, OpenError> {
        config.check()?;
        let mtu = Ethtool::open(&config.interface).and_then(|ethtool| ethtool.mtu()).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::ENODEV) => config.no_interface(),
                _ => config.failed("asking for the MTU", error),
            }
        })?;
        config.check_mtu(mtu)?;
        match config.mode {
            BindMode::Copy => Self::bind_patiently(config, mtu, false),
            BindMode::ZeroCopy => Self::bind_patiently(config, mtu, true),
            BindMode::Auto => match Self::bind_patiently(config, mtu, true) {
                Err(OpenError::NoZeroCopy { .. }) => Self::bind_patiently(config, mtu, false),
                other => other,
            },
        }
    }

    /// Binds, and retries a busy queue for 200 ms: the kernel releases the queue of a closed socket
    /// asynchronously.
    fn bind_patiently(config: &XskConfig, mtu: u32, zero_copy: bool) -> Result<Self, OpenError> {
        for _ in 0..20 {
            match Self::bind(config, mtu, zero_copy) {
                Err(OpenError::QueueBusy { .. }) => std::thread::sleep(Duration::from_millis(10)),
                other => return other,
            }
        }
        Self::bind(config, mtu, zero_copy)
    }

    /// Keeps the order that drivers need: many fill a zero-copy queue from the fill ring only while
    /// it is being bound.
    fn bind(config: &XskConfig, mtu: u32, zero_copy: bool) -> Result<Self, OpenError> {
        // A driver that does not report the length of its ring gets the default.
        let nic_ring = if zero_copy {
            Ethtool::open(&config.interface).and_then(|nic| nic.rings()).map_or(0, |rings| rings.rx)
        } else {
            0
        };
        let config = &config.filling(nic_ring);
        let umem = Umem::new(config.frames, config.frame_size).map_err(|error| config.umem_failed(error))?;
        let socket = Socket::new(&umem, config).map_err(|error| config.umem_failed(error))?;
        // Kernels before 6.17 refuse: there, a flush needs a system call per 32 frames.
        let _supported = socket.raise_kick_budget(config.tx_ring);
        let mut device = Self {
            socket,
            umem: Arc::new(umem),
            begins: vec![HEADROOM as u16; config.frames as usize].into(),
            frames: Frames::new(config.frames),
            pending: VecDeque::with_capacity(config.tx_ring as usize),
            config: config.clone(),
            mtu,
            zero_copy,
            polls: false,
            tx_limit: config.tx_ring.min(config.completion_ring),
            tx_reserve: config.frames / 8,
            empty_receives: 0,
            gone: false,
            stats: DeviceStats::default(),
        };
        device.refill();
        let index = interface_index(&config.interface).ok_or_else(|| config.no_interface())?;
        device.socket.bind(index, config, zero_copy).map_err(|error| config.bind_failed(error, zero_copy))?;
        device.polls = device.prefer_polling()?;
        match device.socket.kick() {
            // Some drivers accept the socket and refuse at the first kick.
            Err(error) if zero_copy && error.raw_os_error() != Some(libc::ENETDOWN) => {
                Err(config.no_zero_copy(format!("its driver takes the socket, but does not send: {error}")))
            }
            _ => Ok(device),
        }
    }

    /// Makes system calls on the socket poll the driver, if configured. A refusal is an error only
    /// for [`BusyPoll::On`].
    fn prefer_polling(&self) -> Result<bool, OpenError> {
        if !busy_poll::is_wanted(&self.config, self.zero_copy) {
            return Ok(false);
        }
        match (busy_poll::prefer(&self.fd()), self.config.busy_poll) {
            (Err(error), BusyPoll::On) => Err(self.config.failed("busy polling", error)),
            (outcome, _) => Ok(outcome.is_ok()),
        }
    }

    /// Returns whether the calling thread runs the driver's routines (busy polling).
    #[must_use]
    pub fn busy_polls(&self) -> bool {
        self.polls
    }

    /// Returns the socket's file descriptor, for the XSKMAP of the XDP program. It closes with the
    /// device.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.socket.fd()
    }

    /// Returns the queue number.
    #[must_use]
    pub fn queue(&self) -> u32 {
        self.config.queue
    }

    /// Returns the interface's name.
    #[must_use]
    pub fn interface(&self) -> &str {
        &self.config.interface
    }

    /// Returns whether the driver accesses the frames directly; otherwise the kernel copies.
    #[must_use]
    pub fn zero_copy(&self) -> bool {
        self.zero_copy
    }
}

impl AsFd for XskDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl XskDevice {
    fn max_frame(&self) -> usize {
        (self.mtu + ETHERNET_HEADER).min(capacity(&self.config)) as usize
    }
}

impl Device for XskDevice {
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize> {
        let budget = (budget.min(out.capacity() - out.len())) as u32;
        let mut received = self.take(out, budget);
        if received == 0 && self.polls {
            self.socket.wake_receive()?;
            received = self.take(out, budget);
        }
        if received == 0 {
            self.check_periodically()?;
        } else {
            self.empty_receives = 0;
        }
        Ok(received as usize)
    }

    fn frame(&self, id: &FrameId, len: u32) -> &[u8] {
        let index = self.frames.held(id);
        // SAFETY: the caller holds this frame, so the kernel does not touch it; a mutable view of it needs `&mut self`, so there is none now.
        unsafe { self.umem.frame(index, self.begins[index as usize].into(), len as usize) }
    }

    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8] {
        let index = self.frames.held(id);
        // SAFETY: the caller holds this frame, so the kernel does not touch it.
        unsafe { self.umem.frame_mut(index, self.begins[index as usize].into()) }
    }

    fn release(&mut self, id: FrameId) {
        self.frames.release(&id);
    }

    fn allocate(&mut self) -> Option<FrameId> {
        let index = self.frames.take(FrameState::Held)?;
        self.begins[index as usize] = HEADROOM as u16;
        Some(FrameId(index))
    }

    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId> {
        assert!(len as usize <= self.max_frame(), "frame of {len} bytes, the longest is {}", self.max_frame());
        let index = self.frames.held(&id);
        if self.frames.count(FrameState::Tx) >= self.tx_limit {
            self.stats.tx_ring_full += 1;
            return Err(id);
        }
        self.frames.shift(index, FrameState::Held, FrameState::Tx);
        let addr = self.address_of(index);
        self.pending.push_back(libc::xdp_desc { addr, len, options: 0 });
        self.stats.tx += 1;
        self.stats.tx_bytes += u64::from(len);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.frames.count(FrameState::Tx) > 0 {
            self.submit();
            if let Err(error) = self.kick() {
                // An interface that is down may come up again, unlike one that was removed.
                self.check_interface()?;
                return Err(error);
            }
            self.reap();
        }
        self.refill();
        if self.config.need_wakeup && self.socket.fill.needs_wakeup() {
            self.stats.wakeups += 1;
            self.socket.wake_receive()?;
        }
        Ok(())
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo { max_frame: self.max_frame(), wake_fd: Some(self.fd()), ..DeviceInfo::default() }
    }
}

impl DeviceHealth for XskDevice {
    fn stats(&self) -> DeviceStats {
        // The socket of a removed interface may return no statistics.
        let Ok(kernel) = self.socket.statistics() else { return self.stats };
        DeviceStats {
            rx_dropped_ring_full: kernel.rx_ring_full,
            rx_dropped: kernel.rx_dropped,
            fill_empty: kernel.rx_fill_ring_empty_descs,
            rx_invalid: kernel.rx_invalid_descs,
            tx_invalid: kernel.tx_invalid_descs,
            ..self.stats
        }
    }

    fn frame_counts(&self) -> FrameCounts {
        self.frames.frame_counts()
    }

    fn audit(&self) -> Result<(), String> {
        self.frames.audit()?;
        // The kernel publishes a batch in rx before it frees the fill slots; in between, frames are
        // counted twice.
        (0..3).find_map(|_| self.audit_rings().ok()).map_or_else(|| self.audit_rings(), Ok)
    }

    fn is_gone(&self) -> bool {
        self.gone
    }

    fn lost_program(&self) -> bool {
        self.stats.rx == 0 && interface_index(&self.config.interface).and_then(crate::xdp::is_attached) == Some(false)
    }
}

/// Returns the frame and the offset of an address of the kernel.
#[inline]
fn place_of(address: u64, frame_size: u32) -> (u32, u16) {
    ((address / u64::from(frame_size)) as u32, (address % u64::from(frame_size)) as u16)
}

#[cfg(test)]
mod tests;
