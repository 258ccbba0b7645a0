//! Devices joined in memory: without root or kernel, by a clock of the caller's, with the impairments that a test asks for.
//!
//! A [`MemoryNetwork`] joins any number of [`MemoryDevice`]s like a switch, without copying their frames: a frame goes to the device with its destination MAC
//! address, and to all others when that is a group address. Time enters only through [`MemoryNetwork::advance`], so one seed
//! gives one run. The handle is cheap to clone, and threads may share it. Each sender draws from a generator of its own, so the fate of
//! its frames does not depend on how the threads interleave.

use spray_core::Time;
use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Device, DeviceStats, FrameCensus, FrameId, Received,
    frames::{Frames, Place},
};

mod config;
mod impair;
mod network;

pub use config::{LinkState, MemoryConfig};
pub use impair::Impairments;
pub use network::NetworkStats;

use network::{Network, Packet};

/// Ethernet header bytes, which the MTU does not count.
const ETHERNET_HEADER: usize = 14;

/// A network in memory, shared by its devices.
#[derive(Debug, Clone)]
pub struct MemoryNetwork {
    shared: Arc<Mutex<Network>>,
    config: MemoryConfig,
}

impl Default for MemoryNetwork {
    /// One that carries every frame at once.
    fn default() -> Self {
        Self::new(MemoryConfig::default())
    }
}

impl MemoryNetwork {
    /// A network without devices, at time zero.
    #[must_use]
    pub fn new(config: MemoryConfig) -> Self {
        Self { shared: Arc::new(Mutex::new(Network::new(&config))), config }
    }

    /// Adds a device that receives frames sent to `mac`. Its port number is the count of devices added before it.
    #[must_use]
    pub fn attach(&self, mac: [u8; 6]) -> MemoryDevice {
        let port = self.lock().attach(mac);
        let frame_size = self.config.frame_size as usize;
        let mut device = MemoryDevice {
            shared: Arc::clone(&self.shared),
            port,
            frames: Frames::new(self.config.frames),
            memory: (0..self.config.frames).map(|_| vec![0; frame_size].into()).collect(),
            mtu: (self.config.mtu as usize).min(frame_size - ETHERNET_HEADER),
            rx_ring: self.config.rx_ring,
            tx_ring: self.config.tx_ring,
            tx_reserve: self.config.frames / 4,
            queued: Vec::with_capacity(self.config.tx_ring as usize),
            filled: Vec::with_capacity(self.config.rx_ring as usize),
            stats: DeviceStats::default(),
        };
        device.refill();
        device
    }

    /// Moves time on to `now` and delivers what is due by then. Time does not go back: an earlier `now` delivers nothing new.
    pub fn advance(&self, now: Time) {
        self.lock().advance(now);
    }

    /// The network's time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.lock().now()
    }

    /// When the next frame in flight is due; `None` when none is in flight.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        self.lock().next_due()
    }

    /// Changes the impairments of frames that any device sends from now on.
    pub fn set_impairments(&self, impairments: Impairments) {
        self.lock().set_impairments(None, impairments);
    }

    /// Changes the impairments of frames that one device sends from now on.
    pub fn set_sender_impairments(&self, sender: &MemoryDevice, impairments: Impairments) {
        self.lock().set_impairments(Some(sender.port), impairments);
    }

    /// Takes the interface of the device with port number `port` down, up, or away.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn set_link(&self, port: usize, state: LinkState) {
        self.lock().set_link(port, state);
    }

    /// The network's counters.
    #[must_use]
    pub fn stats(&self) -> NetworkStats {
        self.lock().stats()
    }

    /// Checks that every frame is counted: see [`NetworkStats`].
    ///
    /// # Errors
    /// Says which counts do not add up.
    pub fn audit(&self) -> Result<(), String> {
        self.lock().audit()
    }

    fn lock(&self) -> MutexGuard<'_, Network> {
        lock(&self.shared)
    }
}

/// A thread that panicked leaves counts off by at most one frame. The audit reports that.
fn lock(shared: &Mutex<Network>) -> MutexGuard<'_, Network> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A device of a [`MemoryNetwork`].
#[derive(Debug)]
pub struct MemoryDevice {
    shared: Arc<Mutex<Network>>,
    port: usize,
    frames: Frames,
    /// The buffer of each frame. A frame that is sent leaves its buffer to the receiver and gets another.
    memory: Box<[Box<[u8]>]>,
    mtu: usize,
    rx_ring: u32,
    tx_ring: u32,
    /// Frames kept out of the fill ring, so that a device that receives much can still send acknowledgements.
    tx_reserve: u32,
    queued: Vec<(u32, u32)>,
    filled: Vec<u32>,
    stats: DeviceStats,
}

impl MemoryDevice {
    fn refill(&mut self) {
        let mut posted = 0;
        while self.frames.count(Place::Fill) < self.rx_ring && self.frames.count(Place::Free) > self.tx_reserve {
            let Some(index) = self.frames.take(Place::Fill) else { break };
            self.filled.push(index);
            posted += 1;
        }
        lock(&self.shared).post(self.port, posted);
    }
}

impl Device for MemoryDevice {
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize> {
        let budget = budget.min(out.capacity() - out.len());
        let mut network = lock(&self.shared);
        if network.link(self.port) == LinkState::Removed {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        let mut received = 0;
        while received < budget {
            let Some(Packet { bytes, len }) = network.pop(self.port) else { break };
            let index = self.filled.pop().expect("a delivery took a posted frame, and posted frames are in `filled`");
            self.frames.shift(index, Place::Fill, Place::Held);
            network.recycle(std::mem::replace(&mut self.memory[index as usize], bytes));
            out.push(Received { frame: FrameId(index), len: len as u32 });
            self.stats.rx_bytes += len as u64;
            received += 1;
        }
        self.stats.rx += received as u64;
        Ok(received)
    }

    fn frame(&self, id: &FrameId, len: u32) -> &[u8] {
        &self.memory[self.frames.held(id) as usize][..len as usize]
    }

    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8] {
        &mut self.memory[self.frames.held(id) as usize]
    }

    fn release(&mut self, id: FrameId) {
        self.frames.release(&id);
    }

    fn allocate(&mut self) -> Option<FrameId> {
        self.frames.take(Place::Held).map(FrameId)
    }

    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId> {
        assert!(len as usize <= self.max_frame(), "frame of {len} bytes, the longest is {}", self.max_frame());
        if self.queued.len() == self.tx_ring as usize {
            self.stats.tx_ring_full += 1;
            return Err(id);
        }
        let index = self.frames.held(&id);
        self.frames.shift(index, Place::Held, Place::Tx);
        self.queued.push((index, len));
        self.stats.tx += 1;
        self.stats.tx_bytes += u64::from(len);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.queued.is_empty() {
            let mut network = lock(&self.shared);
            if network.link(self.port) != LinkState::Up {
                return Err(io::ErrorKind::NetworkDown.into());
            }
            for &(index, len) in &self.queued {
                network.send(self.port, &mut self.memory[index as usize], len as usize);
                self.frames.shift(index, Place::Tx, Place::Free);
            }
            self.stats.tx_completed += self.queued.len() as u64;
            self.stats.kicks += 1;
            self.queued.clear();
        }
        self.refill();
        Ok(())
    }

    fn is_gone(&self) -> bool {
        lock(&self.shared).link(self.port) == LinkState::Removed
    }

    fn max_frame(&self) -> usize {
        self.mtu + ETHERNET_HEADER
    }

    fn stats(&self) -> DeviceStats {
        let dropped = lock(&self.shared).port_drops(self.port);
        DeviceStats { rx_dropped: dropped, fill_empty: dropped, ..self.stats }
    }

    fn census(&self) -> FrameCensus {
        self.frames.census()
    }

    fn audit(&self) -> Result<(), String> {
        self.frames.audit()?;
        let fill = self.frames.count(Place::Fill) as usize;
        if self.filled.len() != fill {
            return Err(format!("{} frames in the fill ring, {fill} by place", self.filled.len()));
        }
        if self.queued.len() != self.frames.count(Place::Tx) as usize {
            return Err(format!(
                "{} frames in the tx ring, {} by place",
                self.queued.len(),
                self.frames.count(Place::Tx)
            ));
        }
        let (posted, waiting) = lock(&self.shared).port_frames(self.port);
        if posted + waiting != fill {
            return Err(format!("{posted} frames posted and {waiting} arrived, {fill} in the fill ring"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
