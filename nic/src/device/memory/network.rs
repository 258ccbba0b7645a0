use spray_core::{Time, summed};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::config::{LinkState, MemoryConfig};
use super::impair::{self, Impairments};

summed! {
    /// Counters of a memory network.
    ///
    /// `sent + copies = lost + unroutable + overflow + no_buffer + in_flight + delivered`, which
    /// [`MemoryNetwork::audit`](super::MemoryNetwork::audit) checks.
    pub struct NetworkStats {
        /// Frames that devices sent.
        pub sent: u64,
        /// Further copies of frames: duplicates, and copies for a group of devices.
        pub copies: u64,
        /// Frames lost at random.
        pub lost: u64,
        /// Frames to an address that no device has.
        pub unroutable: u64,
        /// Frames beyond [`MemoryConfig::in_flight`].
        pub overflow: u64,
        /// Frames that found the fill ring empty.
        pub no_buffer: u64,
        /// Frames on their way.
        pub in_flight: u64,
        /// Frames that arrived at a device, received or not.
        pub delivered: u64,
        /// Frames duplicated at random; each is one of `copies`.
        pub duplicated: u64,
        /// Frames changed at random.
        pub corrupted: u64,
        /// Frames marked as having met congestion.
        pub marked: u64,
        /// Frames trimmed to their headers.
        pub trimmed: u64,
    }
}

#[derive(Debug)]
struct Port {
    mac: [u8; 6],
    link: LinkState,
    impairments: Impairments,
    rng: Xoshiro256PlusPlus,
    /// Frames in the device's fill ring.
    posted: usize,
    arrived: VecDeque<Packet>,
    no_buffer: u64,
    /// The destination port of its last frame, a hint for the next.
    last_to: usize,
}

/// A frame in a buffer of the network.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Packet {
    /// As long as a device's frames.
    pub(super) bytes: Box<[u8]>,
    pub(super) len: usize,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    due: Time,
    /// The order of frames that are due at the same time.
    sequence: u64,
    to: usize,
    packet: Packet,
}

#[derive(Debug)]
pub(super) struct QueueNetwork {
    seed: u64,
    now: Time,
    sequence: u64,
    in_flight_limit: usize,
    frame_size: usize,
    impairments: Impairments,
    ports: Vec<Port>,
    flights: BinaryHeap<Reverse<Flight>>,
    spare: Vec<Box<[u8]>>,
    most_spare: usize,
    stats: NetworkStats,
}

impl QueueNetwork {
    /// Creates the wires of queue number `queue` of all hosts.
    pub(super) fn new(config: &MemoryConfig, queue: u32) -> Self {
        Self {
            seed: config.seed.wrapping_add(u64::from(queue) << 32),
            now: Time::ZERO,
            sequence: 0,
            in_flight_limit: config.in_flight as usize,
            frame_size: config.frame_size as usize,
            impairments: config.impairments,
            ports: Vec::new(),
            flights: BinaryHeap::new(),
            spare: Vec::new(),
            most_spare: (config.in_flight + config.frames) as usize,
            stats: NetworkStats::default(),
        }
    }

    pub(super) fn attach(&mut self, mac: [u8; 6]) -> usize {
        let port = self.ports.len();
        self.ports.push(Port {
            mac,
            link: LinkState::Up,
            impairments: self.impairments,
            rng: Xoshiro256PlusPlus::seed_from_u64(self.seed.wrapping_add(port as u64)),
            posted: 0,
            arrived: VecDeque::new(),
            no_buffer: 0,
            last_to: 0,
        });
        port
    }

    pub(super) fn set_impairments(&mut self, sender: Option<usize>, impairments: Impairments) {
        match sender {
            Some(port) => self.ports[port].impairments = impairments,
            None => {
                self.impairments = impairments;
                self.ports.iter_mut().for_each(|port| port.impairments = impairments);
            }
        }
    }

    pub(super) fn set_link(&mut self, port: usize, state: LinkState) {
        self.ports[port].link = state;
    }

    pub(super) fn link(&self, port: usize) -> LinkState {
        self.ports[port].link
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        self.flights.peek().map(|Reverse(flight)| flight.due)
    }

    pub(super) fn post(&mut self, port: usize, frames: usize) {
        self.ports[port].posted += frames;
    }

    pub(super) fn port_frames(&self, port: usize) -> (usize, usize) {
        (self.ports[port].posted, self.ports[port].arrived.len())
    }

    pub(super) fn port_drops(&self, port: usize) -> u64 {
        self.ports[port].no_buffer
    }

    pub(super) fn pop(&mut self, port: usize) -> Option<Packet> {
        self.ports[port].arrived.pop_front()
    }

    /// Keeps a spare buffer. Forwarded frames bring buffers of other queues' networks, so any
    /// beyond a device's number are dropped.
    pub(super) fn recycle(&mut self, bytes: Box<[u8]>) {
        if self.spare.len() < self.most_spare {
            self.spare.push(bytes);
        }
    }

    pub(super) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.deliver();
    }

    /// Delivers frames that are due.
    pub(super) fn deliver(&mut self) {
        while self.next_due().is_some_and(|due| due <= self.now) {
            let Some(Reverse(Flight { to, packet, .. })) = self.flights.pop() else { break };
            self.arrive(to, packet);
        }
    }

    fn arrive(&mut self, to: usize, packet: Packet) {
        let port = &mut self.ports[to];
        if port.posted == 0 {
            port.no_buffer += 1;
            self.stats.no_buffer += 1;
            self.recycle(packet.bytes);
            return;
        }
        port.posted -= 1;
        port.arrived.push_back(packet);
        self.stats.delivered += 1;
    }

    /// Sends the first `len` bytes of a device's frame. May exchange the frame's buffer for
    /// another.
    pub(super) fn send(&mut self, from: usize, frame: &mut Box<[u8]>, len: usize) {
        self.stats.sent += 1;
        let is_group = len > 0 && frame[0] & 1 == 1;
        if is_group {
            let others = self.ports.len() - 1;
            self.stats.copies += others.saturating_sub(1) as u64;
            self.stats.unroutable += u64::from(others == 0);
            for to in (0..self.ports.len()).filter(|&to| to != from) {
                let mut copy = self.copy(&frame[..len]);
                self.carry(from, to, &mut copy, len);
                self.recycle(copy);
            }
            return;
        }
        match self.find(from, &frame[..len.min(6)]) {
            Some(to) => self.carry(from, to, frame, len),
            None => self.stats.unroutable += 1,
        }
    }

    /// Returns the port of a MAC address.
    fn find(&mut self, from: usize, mac: &[u8]) -> Option<usize> {
        let last = self.ports[from].last_to;
        if self.ports[last].mac == mac {
            return Some(last);
        }
        let to = self.ports.iter().position(|port| port.mac == mac)?;
        self.ports[from].last_to = to;
        Some(to)
    }

    /// Sends one frame to one receiver, through the sender's impairments.
    fn carry(&mut self, from: usize, to: usize, frame: &mut Box<[u8]>, len: usize) {
        let Impairments { loss_ppm, duplicate_ppm, .. } = self.ports[from].impairments;
        let rng = &mut self.ports[from].rng;
        if impair::chance(rng, loss_ppm) {
            self.stats.lost += 1;
            return;
        }
        let twice = impair::chance(rng, duplicate_ppm);
        let second = twice.then(|| self.copy(&frame[..len]));
        self.launch(from, to, frame, len);
        if let Some(mut second) = second {
            self.stats.copies += 1;
            self.stats.duplicated += 1;
            self.launch(from, to, &mut second, len);
            self.recycle(second);
        }
    }

    /// Puts a frame in flight without a copy: its buffer is exchanged for a spare one.
    fn launch(&mut self, from: usize, to: usize, frame: &mut Box<[u8]>, len: usize) {
        if self.flights.len() >= self.in_flight_limit {
            self.stats.overflow += 1;
            return;
        }
        let empty = self.buffer();
        let mut packet = Packet { bytes: std::mem::replace(frame, empty), len };
        let Port { rng, impairments, .. } = &mut self.ports[from];
        if impair::chance(rng, impairments.trim_ppm)
            && let Some(len) = spray_wire::switch_view::trim(packet.frame(), spray_wire::Ports::DEFAULT)
        {
            packet.len = len;
            self.stats.trimmed += 1;
        }
        if impair::chance(rng, impairments.mark_ppm) {
            self.stats.marked += u64::from(impair::mark(packet.frame()));
        }
        if impair::chance(rng, impairments.corrupt_ppm) {
            impair::corrupt(rng, packet.frame());
            self.stats.corrupted += 1;
        }
        let due = self.now.after(impairments.delay_ps + impair::up_to(rng, impairments.jitter_ps));
        if due <= self.now {
            // All frames that were due earlier are delivered.
            return self.arrive(to, packet);
        }
        self.flights.push(Reverse(Flight { due, sequence: self.sequence, to, packet }));
        self.sequence += 1;
    }

    fn copy(&mut self, frame: &[u8]) -> Box<[u8]> {
        let mut bytes = self.buffer();
        bytes[..frame.len()].copy_from_slice(frame);
        bytes
    }

    fn buffer(&mut self) -> Box<[u8]> {
        self.spare.pop().unwrap_or_else(|| vec![0; self.frame_size].into())
    }

    pub(super) fn stats(&self) -> NetworkStats {
        NetworkStats { in_flight: self.flights.len() as u64, ..self.stats }
    }

    pub(super) fn audit(&self) -> Result<(), String> {
        let stats = self.stats();
        let made = stats.sent + stats.copies;
        let ended =
            stats.lost + stats.unroutable + stats.overflow + stats.no_buffer + stats.in_flight + stats.delivered;
        if made == ended { Ok(()) } else { Err(format!("{made} frames made, {ended} accounted for: {stats:?}")) }
    }
}

impl Packet {
    fn frame(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}
