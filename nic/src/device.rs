//! Devices: where frames enter and leave.
//!
//! A device owns a fixed set of equal frames (a UMEM). Every frame is in exactly one of four
//! places: the *free* list, the *fill* ring (for the kernel to receive into), *held* by the caller
//! (as a [`FrameId`]), or in the *tx* ring until its completion. [`DeviceHealth::audit`] recounts
//! them.
//!
//! Nothing allocates per frame. The kernel is notified once per [`Device::flush`].

use spray_core::summed;
use std::{io, os::fd::RawFd};

#[cfg(all(feature = "udp", feature = "xdp"))]
mod any;
mod frames;
mod generator;
mod mailboxes;
pub mod memory;
#[cfg(feature = "udp")]
pub mod udp;
#[cfg(feature = "xdp")]
pub mod xsk;

#[cfg(all(feature = "udp", feature = "xdp"))]
pub use any::AnyDevice;
pub use generator::FrameGenerator;
pub use memory::{Impairments, LinkState, MemoryConfig, MemoryDevice, MemoryNetwork, NetworkStats, Steering};
#[cfg(feature = "udp")]
pub use udp::{UdpConfig, UdpDevice, UdpError};
#[cfg(feature = "xdp")]
pub use xsk::{BindMode, BusyPoll, OpenError, TakeOverError, XskConfig, XskDevice, XskInterface};

/// A frame of one device that the caller holds.
///
/// Neither `Copy` nor `Clone`: [`Device::release`] and [`Device::transmit`] consume it. A dropped
/// one leaves its frame held, which [`FrameCounts::held`] shows.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use = "a dropped handle leaves its frame held for good; release or transmit it"]
pub struct FrameId(u32);

impl FrameId {
    /// Returns the frame's index within its device, below [`FrameCounts::total`].
    #[must_use]
    pub fn index(&self) -> usize {
        self.0 as usize
    }
}

/// A frame that arrived, now held by the caller.
#[derive(Debug, PartialEq, Eq)]
pub struct Received {
    /// The frame; give it back with [`Device::release`], or reuse it with [`Device::transmit`].
    pub frame: FrameId,
    /// Bytes of the frame, from the Ethernet header on.
    pub len: u32,
    /// Arrived on the queue of another shard, which handed it over.
    pub misrouted: bool,
}

summed! {
    /// Counters of a device since it was opened.
    pub struct DeviceStats {
        /// Frames received by the caller.
        pub rx: u64,
        /// Bytes received by the caller.
        pub rx_bytes: u64,
        /// Frames accepted for sending.
        pub tx: u64,
        /// Bytes accepted for sending.
        pub tx_bytes: u64,
        /// Frames completely sent.
        pub tx_completed: u64,
        /// Arrivals that were forwarded to other shards of the host.
        pub handed_over: u64,
        /// Arrivals dropped because the rx ring was full: the caller receives too slowly.
        pub rx_dropped_ring_full: u64,
        /// Arrivals dropped for any other reason (no frame to copy into, or longer than one).
        pub rx_dropped: u64,
        /// Times an arrival found the fill ring empty: the caller releases too slowly.
        pub fill_empty: u64,
        /// Fill descriptors that the kernel refused. More than zero is a bug in this crate.
        pub rx_invalid: u64,
        /// Send descriptors that the kernel refused. More than zero is a bug in this crate.
        pub tx_invalid: u64,
        /// Frames that the driver reported as dropped instead of sent, for example because veth's ring was full.
        pub tx_dropped: u64,
        /// Calls of [`Device::transmit`] that found the tx ring full.
        pub tx_ring_full: u64,
        /// System calls to start sending.
        pub kicks: u64,
        /// System calls that the kernel deferred (`EAGAIN`, `ENOBUFS`, or busy). Their frames stay
        /// queued.
        pub kicks_deferred: u64,
        /// System calls to wake the receiving side.
        pub wakeups: u64,
    }
}

impl DeviceStats {
    /// Returns the number of arrivals that were lost.
    #[must_use]
    pub fn rx_lost(&self) -> u64 {
        self.rx_dropped_ring_full + self.rx_dropped
    }
}

summed! {
    /// The number of frames in each of the four places.
    pub struct FrameCounts {
        /// All frames of the device.
        pub total: usize,
        /// Free to be allocated or put into the fill ring.
        pub free: usize,
        /// In the fill ring or in the kernel, not yet received by the caller.
        pub fill: usize,
        /// Held by the caller.
        pub held: usize,
        /// In the tx ring, not yet completed.
        pub tx: usize,
    }
}

/// What a device is. None of it changes.
#[derive(Clone, Copy, Debug)]
pub struct DeviceInfo {
    /// The longest frame that can be sent, in bytes from the Ethernet header on: bounded by the MTU and by the space of
    /// a frame.
    pub max_frame: usize,
    /// The number of entropy values that frames can be sent with, from 0 on.
    pub evs: u16,
    /// Whether the kernel resolves next hops, so that the Ethernet addresses of peers are not used.
    pub resolves_next_hop: bool,
    /// A file descriptor that is readable when frames arrive.
    pub wake_fd: Option<RawFd>,
}

/// No frame fits; all entropy values; next hops are the caller's; no file descriptor.
impl Default for DeviceInfo {
    fn default() -> Self {
        Self { max_frame: 0, evs: u16::MAX, resolves_next_hop: false, wake_fd: None }
    }
}

/// Sends and receives Ethernet frames in buffers of its own.
///
/// The order of calls is free, but a loop usually goes [`receive`](Self::receive), work, [`flush`](Self::flush).
///
/// # Panics
/// Every method that takes a [`FrameId`] panics if this device did not return it: the kernel may be writing to that memory.
pub trait Device: DeviceHealth {
    /// Pushes up to `budget` arrivals onto `out` and returns their number. Never blocks.
    ///
    /// Never allocates: pushes no more than `out` has room for, so reserve its capacity once.
    ///
    /// # Errors
    /// When the interface is gone.
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize>;

    /// Returns the first `len` bytes of a held frame.
    fn frame(&self, id: &FrameId, len: u32) -> &[u8];

    /// Returns the whole space of a held frame, [`DeviceInfo::max_frame`] bytes or more.
    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8];

    /// Gives a frame back, for receiving or sending something else.
    fn release(&mut self, id: FrameId);

    /// Returns a frame to write into and send; `None` when all are in use.
    fn allocate(&mut self) -> Option<FrameId>;

    /// Queues the first `len` bytes of a frame for sending at the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// Returns the frame when the tx ring is full: flush, and try again.
    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId>;

    /// Starts sending the queued frames, takes completed ones back, and refills the fill ring.
    ///
    /// # Errors
    /// When the interface is down (`ENETDOWN`; queued frames stay queued) or gone. A busy kernel is not an error.
    fn flush(&mut self) -> io::Result<()>;

    /// Returns what the device is.
    fn info(&self) -> DeviceInfo;

    #[cfg(any(test, feature = "lab"))]
    /// Returns when the device takes data, by the clock of the endpoint's caller: a device that shapes has the sender
    /// choose packets and paths no earlier. Control frames may come at any time.
    fn ready_at(&self) -> spray_core::Time {
        spray_core::Time::ZERO
    }
}

/// The state of a device and of its interface. Each method may cost a system call.
pub trait DeviceHealth {
    /// Returns the device's counters.
    fn stats(&self) -> DeviceStats;

    /// Returns how many frames are in each place, by the device's own records.
    fn frame_counts(&self) -> FrameCounts;

    /// Checks that every frame is in exactly one place. Visits every frame: for tests and for the end of a run.
    ///
    /// # Errors
    /// Returns which count is wrong.
    fn audit(&self) -> Result<(), String>;

    /// Returns whether the interface was removed or moved to another namespace, or the XDP program detached: the device
    /// will not work again. Called after an error, and periodically.
    fn is_gone(&self) -> bool {
        false
    }

    /// Returns whether the XDP program that redirects frames to this AF_XDP socket is not attached. Called when nothing
    /// arrives.
    fn lost_program(&self) -> bool {
        false
    }

    /// Restores state that the driver may have lost while its link was down: nothing has arrived since.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn restart(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Takes frames to this Ethernet address in place of the former one: that of the interface has changed.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn set_mac(&mut self, _mac: [u8; 6]) -> io::Result<()> {
        Ok(())
    }

    /// Returns the number of frames that have arrived at the interface, for all shards of the host.
    fn interface_rx_frames(&self) -> u64 {
        self.stats().rx
    }
}
