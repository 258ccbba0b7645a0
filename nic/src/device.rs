//! Devices: where frames enter and leave.
//!
//! A device owns a fixed set of equal frames (a UMEM). Every frame is always in exactly one of four places: the
//! *free* list, the *fill* ring (handed to the kernel to receive into), *held* by the caller (as a [`FrameId`]), or
//! in the *tx* ring awaiting its completion. [`Device::audit`] recounts them and finds a lost or doubled frame.
//!
//! Nothing allocates per frame. The kernel is told of new frames once per [`Device::flush`], not once per frame.

use spray_core::summed;
use std::{io, os::fd::RawFd};

/// Forwards methods of [`Device`] to the device that a pattern binds in `self`. Without a list of methods: those that every wrapper
/// forwards.
#[cfg(feature = "xdp")]
macro_rules! forward {
    ($device:ident in $held:tt) => {
        forward!($device in $held:
            fn receive(self: &mut Self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize>;
            fn frame(self: &Self, id: &FrameId, len: u32) -> &[u8];
            fn frame_mut(self: &mut Self, id: &FrameId) -> &mut [u8];
            fn release(self: &mut Self, id: FrameId) -> ();
            fn allocate(self: &mut Self) -> Option<FrameId>;
            fn transmit(self: &mut Self, id: FrameId, len: u32) -> Result<(), FrameId>;
            fn flush(self: &mut Self) -> io::Result<()>;
            fn max_frame(self: &Self) -> usize;
            fn stats(self: &Self) -> DeviceStats;
            fn census(self: &Self) -> FrameCensus;
            fn audit(self: &Self) -> Result<(), String>;
            fn is_deaf(self: &Self) -> bool;
            fn heard(self: &Self) -> u64;
            fn wake_fd(self: &Self) -> Option<RawFd>;
        );
    };
    ($device:ident in $held:tt:
        $(fn $name:ident($this:ident: $This:ty $(, $argument:ident: $Type:ty)*) -> $Result:ty;)+) => {
        $(fn $name($this: $This $(, $argument: $Type)*) -> $Result {
            forward!(@match $this $held $device.$name($($argument),*))
        })+
    };
    (@match $this:ident [$($held:pat),+] $call:expr) => {
        match $this { $($held => $call,)+ }
    };
}

mod bare;
mod frames;
mod mailboxes;
pub mod memory;
#[cfg(all(feature = "udp", feature = "xdp"))]
mod nic;
#[cfg(feature = "udp")]
pub mod udp;
#[cfg(feature = "xdp")]
pub mod xsk;

pub use bare::Bare;
pub use memory::{Impairments, LinkState, MemoryConfig, MemoryDevice, MemoryNetwork, NetworkStats, Steering};
#[cfg(all(feature = "udp", feature = "xdp"))]
pub use nic::Nic;
#[cfg(feature = "udp")]
pub use udp::{UdpConfig, UdpDevice, UdpError};
#[cfg(feature = "xdp")]
pub use xsk::{BindMode, BusyPoll, OpenError, TakeOverError, XskConfig, XskDevice, XskInterface};

/// A frame of one device that the caller holds.
///
/// Neither `Copy` nor `Clone`: handing it back ([`Device::release`]) or sending it ([`Device::transmit`]) consumes it. Dropping one
/// leaves the frame held for good, which [`FrameCensus::held`] shows.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use = "a dropped handle leaves its frame held for good; release or transmit it"]
pub struct FrameId(u32);

impl FrameId {
    /// The frame's index within its device, below [`FrameCensus::total`].
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
    /// It came by another shard's queue, which handed it over.
    pub astray: bool,
}

summed! {
    /// Counters of a device since it was opened.
    pub struct DeviceStats {
        /// Frames handed to the caller.
        pub rx: u64,
        /// Bytes handed to the caller.
        pub rx_bytes: u64,
        /// Frames accepted for sending.
        pub tx: u64,
        /// Bytes accepted for sending.
        pub tx_bytes: u64,
        /// Frames that came back after they were sent.
        pub tx_completed: u64,
        /// Arrivals for other shards of the host, which got them.
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
        /// System calls made to start sending.
        pub kicks: u64,
        /// System calls that the kernel put off (`EAGAIN`, `ENOBUFS`, or busy). Their frames stay queued for the next
        /// flush.
        pub kicks_deferred: u64,
        /// System calls made to wake the receiving side.
        pub wakeups: u64,
    }
}

impl DeviceStats {
    /// All arrivals that this device lost.
    #[must_use]
    pub fn rx_lost(&self) -> u64 {
        self.rx_dropped_ring_full + self.rx_dropped
    }
}

summed! {
    /// How many frames are in each of the four places.
    pub struct FrameCensus {
        /// Frames of the device.
        pub total: usize,
        /// Ready to be allocated or put into the fill ring.
        pub free: usize,
        /// In the fill ring, or received by the kernel and not yet by the caller.
        pub fill: usize,
        /// Held by the caller.
        pub held: usize,
        /// In the tx ring, or sent and not yet known to be completed.
        pub tx: usize,
    }
}

/// Sends and receives Ethernet frames in buffers of its own.
///
/// The order of calls is free, but a loop usually goes [`receive`](Self::receive), work, [`flush`](Self::flush).
///
/// # Panics
/// Every method that takes a [`FrameId`] panics if this device did not hand it out: the kernel may be writing to that memory.
pub trait Device {
    /// Pushes up to `budget` arrivals onto `out` and returns how many; never blocks.
    ///
    /// Never allocates: pushes no more than `out` has room for, so reserve its capacity once.
    ///
    /// # Errors
    /// When the interface is gone.
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize>;

    /// The first `len` bytes of a held frame.
    fn frame(&self, id: &FrameId, len: u32) -> &[u8];

    /// A held frame's whole space, [`max_frame`](Self::max_frame) bytes or more.
    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8];

    /// Gives a frame back, for receiving or sending something else.
    fn release(&mut self, id: FrameId);

    /// A frame to write into and send; `None` when all are in use.
    fn allocate(&mut self) -> Option<FrameId>;

    /// Queues the first `len` bytes of a frame for sending. The kernel is told at the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// Hands the frame back when the tx ring is full: flush, and try again.
    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId>;

    /// Starts sending the queued frames, takes completed ones back, and refills the fill ring.
    ///
    /// # Errors When the interface is down (`ENETDOWN`; queued frames stay queued) or gone. A busy kernel is not an
    /// error.
    fn flush(&mut self) -> io::Result<()>;

    /// The longest frame in bytes that can be sent. The MTU (the largest IP packet) with the Ethernet header, and a frame's
    /// space, bound it.
    fn max_frame(&self) -> usize;

    /// Entropy values that the device can send by, from the first on: connections use no others.
    fn evs(&self) -> u16 {
        u16::MAX
    }

    /// Whether the device finds the way to an IP address by itself: then peers' Ethernet addresses do not count.
    fn finds_ways(&self) -> bool {
        false
    }

    #[cfg(any(test, feature = "lab"))]
    /// From when on the device takes data, by the clock of the endpoint's caller: one that shapes what it sends has the sender
    /// choose packets and paths no earlier. Control frames may come at any time.
    fn ready_at(&self) -> spray_core::Time {
        spray_core::Time::ZERO
    }

    /// The device's counters. May cost a system call.
    fn stats(&self) -> DeviceStats;

    /// How many frames are in each place, by the device's own records.
    fn census(&self) -> FrameCensus;

    /// Proves that every frame is in exactly one place. Visits every frame: for tests and for the end of a run.
    ///
    /// # Errors
    /// Says which count is wrong.
    fn audit(&self) -> Result<(), String>;

    /// Whether the interface was removed or moved to another namespace, or the program detached that hands frames to this device: it
    /// will never work again. Asked after an error, and now and then; may cost a system call.
    fn is_gone(&self) -> bool {
        false
    }

    /// Whether no frame can arrive, since nothing hands any to this device: an AF_XDP socket without a program. Asked after a silence; may
    /// cost system calls.
    fn is_deaf(&self) -> bool {
        false
    }

    /// Tells the driver anew what it may have forgotten while its link was down: nothing arrives since then.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn revive(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Takes frames to this Ethernet address in place of the former one: the interface's has changed.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn set_mac(&mut self, _mac: [u8; 6]) -> io::Result<()> {
        Ok(())
    }

    /// Frames that have arrived at the whole interface, for whichever shard of the host.
    fn heard(&self) -> u64 {
        self.stats().rx
    }

    /// A file descriptor that becomes readable when frames arrive, for `poll` and `tokio`; `None` when there is none.
    fn wake_fd(&self) -> Option<RawFd> {
        None
    }
}
