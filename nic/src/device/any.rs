//! AF_XDP or UDP sockets, chosen at run time.
//!
//! Packet path: T6 and R1 of `docs/architecture.md`, before `xsk::queues`.

use std::io;

use super::{Device, DeviceHealth, DeviceInfo, DeviceStats, FrameCounts, FrameId, Received, UdpDevice, XskInterface};

/// An interface that is taken over, or UDP sockets.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
pub enum AnyDevice {
    /// AF_XDP sockets on all queues of an interface.
    Xdp(XskInterface),
    /// UDP sockets of the kernel.
    Udp(UdpDevice),
}

impl AnyDevice {
    /// Returns the interface that is taken over, if one is.
    #[must_use]
    pub fn xdp(&self) -> Option<&XskInterface> {
        match self {
            Self::Xdp(interface) => Some(interface),
            Self::Udp(_) => None,
        }
    }
}

macro_rules! forward {
    ($(fn $name:ident($this:ident: $This:ty $(, $argument:ident: $Type:ty)*) -> $Result:ty;)+) => {
        $(fn $name($this: $This $(, $argument: $Type)*) -> $Result {
            match $this {
                Self::Xdp(device) => device.$name($($argument),*),
                Self::Udp(device) => device.$name($($argument),*),
            }
        })+
    };
}

impl Device for AnyDevice {
    forward! {
        fn receive(self: &mut Self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize>;
        fn frame(self: &Self, id: &FrameId, len: u32) -> &[u8];
        fn frame_mut(self: &mut Self, id: &FrameId) -> &mut [u8];
        fn release(self: &mut Self, id: FrameId) -> ();
        fn allocate(self: &mut Self) -> Option<FrameId>;
        fn transmit(self: &mut Self, id: FrameId, len: u32) -> Result<(), FrameId>;
        fn flush(self: &mut Self) -> io::Result<()>;
        fn info(self: &Self) -> DeviceInfo;
    }
}

impl DeviceHealth for AnyDevice {
    forward! {
        fn stats(self: &Self) -> DeviceStats;
        fn frame_counts(self: &Self) -> FrameCounts;
        fn audit(self: &Self) -> Result<(), String>;
        fn is_gone(self: &Self) -> bool;
        fn lost_program(self: &Self) -> bool;
        fn restart(self: &mut Self) -> io::Result<()>;
        fn set_mac(self: &mut Self, mac: [u8; 6]) -> io::Result<()>;
        fn interface_rx_frames(self: &Self) -> u64;
    }
}
