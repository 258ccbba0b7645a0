//! The settings of a network in memory.

use spray_wire::{Ports, switch_view};

use super::impair::Impairments;

/// The state of a device's interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LinkState {
    /// It sends and receives.
    #[default]
    Up,
    /// Sending fails, and what is queued stays queued, as with an interface that is administratively down.
    Down,
    /// Everything fails, for good.
    Removed,
}

/// How a host's NIC puts frames on its queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Steering {
    /// By a rule for each of the transport's destination ports: each shard's frames come to its queue.
    #[default]
    Rules,
    /// By a Toeplitz hash of the source port, as NICs do by themselves: frames of every connection come to all queues.
    Hash,
}

impl Steering {
    /// The queue of a frame, of `queues`; other frames than the transport's go to the first.
    pub(super) fn queue(self, frame: &[u8], queues: usize) -> usize {
        if queues == 1 {
            return 0;
        }
        let Some(key) = self.key(frame) else { return 0 };
        key as usize % queues
    }

    fn key(self, frame: &[u8]) -> Option<u64> {
        /// The part of the Toeplitz key of Microsoft's receive-side scaling that the source port's bits meet over IPv4.
        const KEY: u64 = 0x4167_253d_43a3_8fb0;
        let (v6, port) = switch_view::udp_port(frame)?;
        match self {
            Self::Rules => Some(u64::from(port % Ports::COUNT)),
            Self::Hash => {
                let at = spray_wire::offsets::udp_src_port_offset(v6);
                let source = u16::from_be_bytes(*frame.get(at..)?.first_chunk()?);
                Some((0..16).filter(|bit| source >> (15 - bit) & 1 == 1).fold(0, |hash, bit| hash ^ (KEY << bit) >> 32))
            }
        }
    }
}

/// The settings of a [`MemoryNetwork`](super::MemoryNetwork).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Random seed.
    pub seed: u64,
    /// Receive queues of each host: devices of [`MemoryNetwork::attach_shards`](super::MemoryNetwork::attach_shards). 1 to 64.
    pub queues: u32,
    /// How frames find their queue.
    pub steering: Steering,
    /// Frames of each device.
    pub frames: u32,
    /// Bytes of each frame.
    pub frame_size: u32,
    /// Slots of each device's fill ring, and of its rx ring.
    pub rx_ring: u32,
    /// Slots of each device's tx ring.
    pub tx_ring: u32,
    /// Largest IP packet in bytes. [`Device::transmit`](crate::device::Device::transmit) panics on a longer frame.
    pub mtu: u32,
    /// Most frames that the network carries at a time. More are dropped and counted as [`NetworkStats::overflow`](super::NetworkStats::overflow).
    pub in_flight: u32,
    /// The impairments of every device, until [`MemoryNetwork::set_impairments`](super::MemoryNetwork::set_impairments).
    pub impairments: Impairments,
}

impl Default for MemoryConfig {
    /// A faultless network of devices with 1,024 frames of 4,096 bytes: 4 MiB each.
    fn default() -> Self {
        Self {
            seed: 0,
            queues: 1,
            steering: Steering::default(),
            frames: 1024,
            frame_size: 4096,
            rx_ring: 512,
            tx_ring: 512,
            mtu: 3498,
            in_flight: 65_536,
            impairments: Impairments::default(),
        }
    }
}
