//! Either device of a real network, for programs whose users choose.

use std::io;
use std::os::fd::RawFd;

use spray_core::Time;

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

/// What either device does.
macro_rules! either {
    ($nic:expr, $device:ident => $does:expr) => {
        match $nic {
            Nic::Xdp($device) => $does,
            Nic::Udp($device) => $does,
        }
    };
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
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize> {
        either!(self, device => device.receive(out, budget))
    }

    fn frame(&self, id: &FrameId, len: u32) -> &[u8] {
        either!(self, device => device.frame(id, len))
    }

    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8] {
        either!(self, device => device.frame_mut(id))
    }

    fn release(&mut self, id: FrameId) {
        either!(self, device => device.release(id));
    }

    fn allocate(&mut self) -> Option<FrameId> {
        either!(self, device => device.allocate())
    }

    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId> {
        either!(self, device => device.transmit(id, len))
    }

    fn flush(&mut self) -> io::Result<()> {
        either!(self, device => device.flush())
    }

    fn max_frame(&self) -> usize {
        either!(self, device => device.max_frame())
    }

    fn evs(&self) -> u16 {
        either!(self, device => device.evs())
    }

    fn finds_ways(&self) -> bool {
        either!(self, device => device.finds_ways())
    }

    fn ready_at(&self) -> Time {
        either!(self, device => device.ready_at())
    }

    fn stats(&self) -> DeviceStats {
        either!(self, device => device.stats())
    }

    fn census(&self) -> FrameCensus {
        either!(self, device => device.census())
    }

    fn audit(&self) -> Result<(), String> {
        either!(self, device => device.audit())
    }

    fn is_gone(&self) -> bool {
        either!(self, device => device.is_gone())
    }

    fn is_deaf(&self) -> bool {
        either!(self, device => device.is_deaf())
    }

    fn revive(&mut self) -> io::Result<()> {
        either!(self, device => device.revive())
    }

    fn heard(&self) -> u64 {
        either!(self, device => device.heard())
    }

    fn wake_fd(&self) -> Option<RawFd> {
        either!(self, device => device.wake_fd())
    }
}
