//! Either device of a real network, for programs whose users choose.

use std::io;
use std::os::fd::RawFd;

use super::{Device, DeviceStats, FrameCensus, FrameId, Received, UdpDevice, XskInterface};

/// An interface that is taken over, or UDP sockets.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
pub enum Nic {
    /// AF_XDP sockets on all queues of an interface.
    Xdp(XskInterface),
    /// UDP sockets of the kernel.
    Udp(UdpDevice),
}

impl Nic {
    /// The interface that is taken over, if one is.
    #[must_use]
    pub fn xdp(&self) -> Option<&XskInterface> {
        match self {
            Self::Xdp(interface) => Some(interface),
            Self::Udp(_) => None,
        }
    }
}

impl Device for Nic {
    forward!(device in [Self::Xdp(device), Self::Udp(device)]);
    forward!(device in [Self::Xdp(device), Self::Udp(device)]:
        fn evs(self: &Self) -> u16;
        fn finds_ways(self: &Self) -> bool;
        fn is_gone(self: &Self) -> bool;
        fn revive(self: &mut Self) -> io::Result<()>;
        fn set_mac(self: &mut Self, mac: [u8; 6]) -> io::Result<()>;
    );
}
