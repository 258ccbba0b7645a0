//! Devices joined in memory, without root or kernel: the caller's clock, and configured
//! impairments.
//!
//! A [`MemoryNetwork`] connects [`MemoryDevice`]s like a switch, without copies: a frame goes to
//! the device with its destination MAC address, and to all others if that is a group address. Only
//! [`MemoryNetwork::advance`] moves time, so runs repeat by seed. Handles are cheap to clone and
//! may be shared by threads. Each sender has its own generator, so that losses do not depend on how
//! threads interleave.

use spray_core::Time;
use spray_wire::Ports;
use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Device, DeviceHealth, DeviceInfo, DeviceStats, FrameCounts, FrameId, Received,
    frames::{FrameState, Frames},
    mailboxes::{Mailbox, ShardMailboxes},
};
use crate::endpoint::Shard;

mod config;
mod impair;
mod network;

pub use config::{LinkState, MemoryConfig, Steering};
pub use impair::Impairments;
pub use network::NetworkStats;

use network::{Packet, QueueNetwork};

const ETHERNET_HEADER: usize = 14;

/// A network in memory, shared by its devices.
#[derive(Debug, Clone)]
pub struct MemoryNetwork {
    shared: Shared,
    config: MemoryConfig,
}

/// The wires of each queue number; all hosts have the same number of queues.
type Shared = Arc<[Mutex<QueueNetwork>]>;

impl Default for MemoryNetwork {
    /// A network that delivers every frame at once.
    fn default() -> Self {
        Self::new(MemoryConfig::default())
    }
}

impl MemoryNetwork {
    /// Creates a network without devices, at time zero.
    #[must_use]
    pub fn new(config: MemoryConfig) -> Self {
        let queues = 0..config.queues.clamp(1, Shard::MAX as u32);
        Self { shared: queues.map(|queue| Mutex::new(QueueNetwork::new(&config, queue))).collect(), config }
    }

    /// Adds a device that receives frames sent to `mac`. Ports are numbered in the order of calls.
    /// On a network with several queues it has the first one.
    #[must_use]
    pub fn attach(&self, mac: [u8; 6]) -> MemoryDevice {
        let port = self.add(mac);
        self.device(port, 0, None)
    }

    /// Adds a host that receives frames sent to `mac`: a device for each queue, for the shards of
    /// its endpoint. Frames on the wrong queue are forwarded.
    ///
    /// # Errors
    /// When the operating system refuses pipes, which wake sleeping shards.
    pub fn attach_shards(&self, mac: [u8; 6]) -> io::Result<Vec<MemoryDevice>> {
        let (port, queues) = (self.add(mac), self.shared.len());
        let mailboxes = Arc::new(ShardMailboxes::new(queues, queues * self.config.frames as usize)?);
        let mailbox = |shard| Mailbox::new(shard, Ports::DEFAULT, Arc::clone(&mailboxes));
        Ok(Shard::all(queues)
            .enumerate()
            .map(|(queue, shard)| self.device(port, queue, Some(mailbox(shard))))
            .collect())
    }

    fn add(&self, mac: [u8; 6]) -> usize {
        // The first lock keeps the order of hosts the same for all queues.
        let mut first = lock(&self.shared[0]);
        for queue in &self.shared[1..] {
            lock(queue).attach(mac);
        }
        first.attach(mac)
    }

    fn device(&self, port: usize, queue: usize, mailbox: Option<Mailbox<Packet>>) -> MemoryDevice {
        let frame_size = self.config.frame_size as usize;
        let mut device = MemoryDevice {
            shared: Arc::clone(&self.shared),
            port,
            queue,
            steering: self.config.steering,
            mailbox,
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

    /// Moves time to `now` and delivers what is due. Has no effect if `now` is earlier than before.
    pub fn advance(&self, now: Time) {
        self.each(|network| network.advance(now)).for_each(drop);
    }

    /// Returns the network's time.
    #[must_use]
    pub fn now(&self) -> Time {
        lock(&self.shared[0]).now()
    }

    /// Returns when the next frame in flight is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        self.each(|network| network.next_due()).flatten().min()
    }

    /// Sets the impairments of frames that are sent from now on.
    pub fn set_impairments(&self, impairments: Impairments) {
        self.each(|network| network.set_impairments(None, impairments)).for_each(drop);
    }

    /// Sets the impairments of frames that one device's host sends from now on.
    pub fn set_sender_impairments(&self, sender: &MemoryDevice, impairments: Impairments) {
        self.each(|network| network.set_impairments(Some(sender.port), impairments)).for_each(drop);
    }

    /// Sets the state of the interface of the device at `port`.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn set_link(&self, port: usize, state: LinkState) {
        self.each(|network| network.set_link(port, state)).for_each(drop);
    }

    /// Returns the network's counters.
    #[must_use]
    pub fn stats(&self) -> NetworkStats {
        self.each(|network| network.stats()).sum()
    }

    /// Checks that every frame is counted: see [`NetworkStats`].
    ///
    /// # Errors
    /// Returns the counters that do not add up.
    pub fn audit(&self) -> Result<(), String> {
        self.each(|network| network.audit()).collect()
    }

    fn each<T>(&self, what: impl FnMut(&mut QueueNetwork) -> T) -> impl Iterator<Item = T> {
        let mut what = what;
        self.shared.iter().map(move |network| what(&mut lock(network)))
    }
}

/// A thread that panicked may leave counters off by one frame, which the audit reports.
fn lock(shared: &Mutex<QueueNetwork>) -> MutexGuard<'_, QueueNetwork> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A device of a [`MemoryNetwork`].
#[derive(Debug)]
pub struct MemoryDevice {
    shared: Shared,
    port: usize,
    queue: usize,
    steering: Steering,
    /// The mailbox towards the other shards of its host.
    mailbox: Option<Mailbox<Packet>>,
    frames: Frames,
    /// The buffer of each frame. A sent frame passes its buffer to the receiver and gets another.
    memory: Box<[Box<[u8]>]>,
    mtu: usize,
    rx_ring: u32,
    tx_ring: u32,
    /// Frames kept out of the fill ring for sending acknowledgements.
    tx_reserve: u32,
    queued: Vec<(u32, u32)>,
    filled: Vec<u32>,
    stats: DeviceStats,
}

impl MemoryDevice {
    fn refill(&mut self) {
        let mut posted = 0;
        while self.frames.count(FrameState::Fill) < self.rx_ring
            && self.frames.count(FrameState::Free) > self.tx_reserve
        {
            let Some(index) = self.frames.take(FrameState::Fill) else { break };
            self.filled.push(index);
            posted += 1;
        }
        self.network().post(self.port, posted);
    }

    fn network(&self) -> MutexGuard<'_, QueueNetwork> {
        lock(&self.shared[self.queue])
    }

    /// Takes a packet that another shard has forwarded, and a frame for it.
    fn take_forwarded(&mut self) -> Option<(u32, Packet)> {
        let mailbox = self.mailbox.as_mut()?;
        if self.frames.count(FrameState::Free) <= self.tx_reserve {
            return None;
        }
        let index = self.frames.take(FrameState::Held)?;
        let Some(packet) = mailbox.take() else {
            self.frames.shift(index, FrameState::Held, FrameState::Free);
            return None;
        };
        Some((index, packet))
    }

    /// Puts a packet into a frame. Returns the frame's former buffer.
    fn place(&mut self, index: u32, packet: Packet, misrouted: bool, out: &mut Vec<Received>) -> Box<[u8]> {
        let Packet { bytes, len } = packet;
        self.stats.rx_bytes += len as u64;
        out.push(Received { frame: FrameId(index), len: len as u32, misrouted });
        std::mem::replace(&mut self.memory[index as usize], bytes)
    }
}

impl MemoryDevice {
    fn max_frame(&self) -> usize {
        self.mtu + ETHERNET_HEADER
    }
}

impl Device for MemoryDevice {
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize> {
        let (begun, end) = (out.len(), out.len() + budget.min(out.capacity() - out.len()));
        let shared = Arc::clone(&self.shared);
        let mut network = lock(&shared[self.queue]);
        if network.link(self.port) == LinkState::Removed {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        while out.len() < end
            && let Some((index, packet)) = self.take_forwarded()
        {
            network.recycle(self.place(index, packet, true, out));
        }
        while out.len() < end
            && let Some(packet) = network.pop(self.port)
        {
            let whose = self.mailbox.as_ref().and_then(|mailbox| mailbox.owner_of(&packet.bytes[..packet.len]));
            if let (Some(mailbox), Some(shard)) = (&mut self.mailbox, whose) {
                self.stats.handed_over += 1;
                // The frame that it used is available again.
                network.post(self.port, 1);
                if let Err(packet) = mailbox.forward(shard, packet) {
                    self.stats.rx_dropped_ring_full += 1;
                    network.recycle(packet.bytes);
                }
                continue;
            }
            let index = self.filled.pop().expect("a delivery took a posted frame, and posted frames are in `filled`");
            self.frames.shift(index, FrameState::Fill, FrameState::Held);
            network.recycle(self.place(index, packet, false, out));
        }
        drop(network);
        let received = out.len() - begun;
        self.stats.rx += received as u64;
        self.mailbox.iter_mut().for_each(Mailbox::wake);
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
        self.frames.take(FrameState::Held).map(FrameId)
    }

    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId> {
        assert!(len as usize <= self.max_frame(), "frame of {len} bytes, the longest is {}", self.max_frame());
        if self.queued.len() == self.tx_ring as usize {
            self.stats.tx_ring_full += 1;
            return Err(id);
        }
        let index = self.frames.held(&id);
        self.frames.shift(index, FrameState::Held, FrameState::Tx);
        self.queued.push((index, len));
        self.stats.tx += 1;
        self.stats.tx_bytes += u64::from(len);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.queued.is_empty() {
            if self.network().link(self.port) != LinkState::Up {
                return Err(io::ErrorKind::NetworkDown.into());
            }
            let shared = Arc::clone(&self.shared);
            let mut network = None;
            for &(index, len) in &self.queued {
                let frame = &mut self.memory[index as usize];
                let queue = self.steering.queue(&frame[..len as usize], shared.len());
                // Consecutive frames mostly use the same queue.
                let (_, network) = match network.take() {
                    Some((locked, guard)) if locked == queue => network.insert((queue, guard)),
                    other => {
                        drop(other);
                        network.insert((queue, lock(&shared[queue])))
                    }
                };
                network.send(self.port, frame, len as usize);
                self.frames.shift(index, FrameState::Tx, FrameState::Free);
            }
            drop(network);
            self.stats.tx_completed += self.queued.len() as u64;
            self.stats.kicks += 1;
            self.queued.clear();
        }
        self.refill();
        Ok(())
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo { max_frame: self.max_frame(), ..DeviceInfo::default() }
    }
}

impl DeviceHealth for MemoryDevice {
    fn is_gone(&self) -> bool {
        self.network().link(self.port) == LinkState::Removed
    }

    fn stats(&self) -> DeviceStats {
        let dropped = self.network().port_drops(self.port);
        DeviceStats { rx_dropped: dropped, fill_empty: dropped, ..self.stats }
    }

    fn frame_counts(&self) -> FrameCounts {
        self.frames.frame_counts()
    }

    fn audit(&self) -> Result<(), String> {
        self.frames.audit()?;
        let fill = self.frames.count(FrameState::Fill) as usize;
        if self.filled.len() != fill {
            return Err(format!("{} frames in the fill ring, {fill} by place", self.filled.len()));
        }
        if self.queued.len() != self.frames.count(FrameState::Tx) as usize {
            return Err(format!(
                "{} frames in the tx ring, {} by place",
                self.queued.len(),
                self.frames.count(FrameState::Tx)
            ));
        }
        let (posted, waiting) = self.network().port_frames(self.port);
        if posted + waiting != fill {
            return Err(format!("{posted} frames posted and {waiting} arrived, {fill} in the fill ring"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
