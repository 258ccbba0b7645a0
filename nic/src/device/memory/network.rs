//! The state that the devices of a memory network share.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Impairments, LinkState, MemoryConfig, impair};

/// Counters of a memory network since it was made.
///
/// Always `sent + copies = lost + unroutable + overflow + no_buffer + in_flight + delivered`, which
/// [`MemoryNetwork::audit`](super::MemoryNetwork::audit) checks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetworkStats {
    /// Frames that devices sent.
    pub sent: u64,
    /// Further copies of frames: duplicated ones, and those sent to a group of devices.
    pub copies: u64,
    /// Frames lost at random.
    pub lost: u64,
    /// Frames to an address that no device has.
    pub unroutable: u64,
    /// Frames beyond [`MemoryConfig::in_flight`].
    pub overflow: u64,
    /// Frames that arrived at a device whose fill ring was empty.
    pub no_buffer: u64,
    /// Frames on their way.
    pub in_flight: u64,
    /// Frames that arrived at a device, whether it has received them yet or not.
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

#[derive(Debug)]
struct Port {
    mac: [u8; 6],
    link: LinkState,
    impairments: Impairments,
    rng: Xoshiro256PlusPlus,
    /// Frames in the device's fill ring that no arrival has taken yet.
    posted: usize,
    arrived: VecDeque<Vec<u8>>,
    no_buffer: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    due_ps: u64,
    /// Frames due at one time arrive in the order they were sent in.
    sequence: u64,
    to: usize,
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Network {
    seed: u64,
    now_ps: u64,
    sequence: u64,
    in_flight_limit: usize,
    frame_size: usize,
    impairments: Impairments,
    ports: Vec<Port>,
    flights: BinaryHeap<Reverse<Flight>>,
    /// Buffers of frames that have arrived, to be used again.
    spare: Vec<Vec<u8>>,
    stats: NetworkStats,
}

impl Network {
    pub(super) fn new(config: &MemoryConfig) -> Self {
        Self {
            seed: config.seed,
            now_ps: 0,
            sequence: 0,
            in_flight_limit: config.in_flight as usize,
            frame_size: config.frame_size as usize,
            impairments: config.impairments,
            ports: Vec::new(),
            flights: BinaryHeap::new(),
            spare: Vec::new(),
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

    pub(super) fn now_ps(&self) -> u64 {
        self.now_ps
    }

    pub(super) fn next_due_ps(&self) -> Option<u64> {
        self.flights.peek().map(|Reverse(flight)| flight.due_ps)
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

    pub(super) fn pop(&mut self, port: usize) -> Option<Vec<u8>> {
        self.ports[port].arrived.pop_front()
    }

    pub(super) fn recycle(&mut self, bytes: Vec<u8>) {
        self.spare.push(bytes);
    }

    pub(super) fn advance(&mut self, now_ps: u64) {
        self.now_ps = self.now_ps.max(now_ps);
        self.deliver();
    }

    /// Delivers frames that are due to their devices.
    pub(super) fn deliver(&mut self) {
        while self.next_due_ps().is_some_and(|due_ps| due_ps <= self.now_ps) {
            let Some(Reverse(Flight { to, bytes, .. })) = self.flights.pop() else { break };
            let port = &mut self.ports[to];
            if port.posted == 0 {
                port.no_buffer += 1;
                self.stats.no_buffer += 1;
                self.spare.push(bytes);
                continue;
            }
            port.posted -= 1;
            port.arrived.push_back(bytes);
            self.stats.delivered += 1;
        }
    }

    pub(super) fn send(&mut self, from: usize, frame: &[u8]) {
        self.stats.sent += 1;
        let group = frame.first().is_some_and(|first| first & 1 == 1);
        let mut receivers = 0;
        for to in 0..self.ports.len() {
            let wanted = if group { to != from } else { frame.get(..6) == Some(&self.ports[to].mac[..]) };
            if wanted {
                receivers += 1;
                self.stats.copies += u64::from(receivers > 1);
                self.carry(from, to, frame);
            }
        }
        self.stats.unroutable += u64::from(receivers == 0);
    }

    /// Takes one frame to one receiver, through the sender's impairments.
    fn carry(&mut self, from: usize, to: usize, frame: &[u8]) {
        let Impairments { loss_ppm, duplicate_ppm, .. } = self.ports[from].impairments;
        let rng = &mut self.ports[from].rng;
        if impair::chance(rng, loss_ppm) {
            self.stats.lost += 1;
            return;
        }
        let twice = impair::chance(rng, duplicate_ppm);
        self.launch(from, to, frame);
        if twice {
            self.stats.copies += 1;
            self.stats.duplicated += 1;
            self.launch(from, to, frame);
        }
    }

    fn launch(&mut self, from: usize, to: usize, frame: &[u8]) {
        if self.flights.len() >= self.in_flight_limit {
            self.stats.overflow += 1;
            return;
        }
        let mut bytes = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.frame_size));
        bytes.clear();
        bytes.extend_from_slice(frame);
        let Port { rng, impairments, .. } = &mut self.ports[from];
        impair::delay_virtually(&mut bytes, impairments.virtual_latency_ps);
        if impair::chance(rng, impairments.trim_ppm) {
            self.stats.trimmed += u64::from(impair::trim(&mut bytes));
        }
        if impair::chance(rng, impairments.mark_ppm) {
            self.stats.marked += u64::from(impair::mark(&mut bytes));
        }
        if impair::chance(rng, impairments.corrupt_ppm) {
            impair::corrupt(rng, &mut bytes);
            self.stats.corrupted += 1;
        }
        let due_ps = self.now_ps + impairments.delay_ps + impair::up_to(rng, impairments.jitter_ps);
        self.flights.push(Reverse(Flight { due_ps, sequence: self.sequence, to, bytes }));
        self.sequence += 1;
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
