//! The settings of a network in memory.

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

/// The settings of a [`MemoryNetwork`](super::MemoryNetwork).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Root of all randomness.
    pub seed: u64,
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
