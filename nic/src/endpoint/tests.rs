//! Endpoints on an in-memory network.

mod arbitrary;
mod credit;
mod delivery;
mod early_acks;
mod edges;
mod flowcut;
mod handshake;
mod hostile;
mod in_place;
mod late;
mod next_hops;
mod reachable;
mod rekey;
mod sealed;
mod shards;

use crate::device::DeviceHealth as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use spray_core::{
    flow::FlowConfig,
    loss::RtoConfig,
    path::{BalancerKind, Path},
};
use spray_wire::{Kind, header_bytes};

use super::*;
use crate::device::{Impairments, LinkState, MemoryConfig, MemoryDevice, MemoryNetwork};

pub(crate) const US: u64 = 1_000_000;
pub(crate) const MS: u64 = 1_000_000_000;
pub(crate) const LINK_BPS: u64 = 10_000_000_000;
pub(crate) const PAYLOAD: u32 = 1000;

pub(crate) fn address(host: usize, v6: bool) -> IpAddr {
    let host = host as u16 + 1;
    if v6 {
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host))
    } else {
        IpAddr::V4(Ipv4Addr::new(10, 0, (host >> 8) as u8, host as u8))
    }
}

pub(crate) fn mac(host: usize) -> [u8; 6] {
    [2, 0, 0, 0, (host >> 8) as u8, host as u8]
}

pub(crate) fn peer(host: usize, v6: bool) -> Peer {
    Peer { address: address(host, v6), mac: mac(host) }
}

pub(crate) fn flow(v6: bool) -> FlowConfig {
    let base_rtt_ps = 20 * US;
    let header = header_bytes(v6, Kind::Data) as u32;
    let path = Path { evs: 1024, bdp_packets: 25, ..Path::new(base_rtt_ps, LINK_BPS, PAYLOAD + header) };
    FlowConfig::new(BalancerKind::Reps, path, header)
}

/// Settings for tests in real time on a busy machine: round trips of milliseconds.
pub(crate) fn slow(flow: FlowConfig) -> FlowConfig {
    let rto = RtoConfig { initial_ps: 5 * MS, min_ps: 5 * MS, max_ps: 50 * MS };
    FlowConfig { rto, give_up_ps: 500 * MS, ..flow }
}

pub(crate) fn config(host: usize, v6: bool) -> EndpointConfig {
    EndpointConfig {
        max_connections: 16,
        seed: Some(1000 + host as u64),
        handshake: HandshakeConfig { retry_ps: 100 * US, attempts: 12 },
        idle_timeout_ps: 100 * MS,
        ..EndpointConfig::new(address(host, v6), mac(host), flow(v6))
    }
}

/// Returns bytes that differ between messages and between offsets.
pub(crate) fn content(seed: usize, bytes: usize) -> Bytes {
    (0..bytes).map(|at| (at.wrapping_mul(31).wrapping_add(at >> 8).wrapping_add(seed * 7)) as u8).collect()
}

/// Endpoints, their network, and all events that they reported.
pub(crate) struct Rig {
    pub(crate) network: MemoryNetwork,
    pub(crate) endpoints: Vec<Endpoint<MemoryDevice>>,
    pub(crate) events: Vec<Vec<EndpointEvent>>,
    pub(crate) now: Time,
    pub(crate) v6: bool,
    /// Hosts that are no longer polled.
    pub(crate) stopped: Vec<bool>,
}

impl Rig {
    pub(crate) fn new(hosts: usize, v6: bool, impairments: Impairments) -> Self {
        Self::with(hosts, v6, impairments, |_, _| {})
    }

    pub(crate) fn with(
        hosts: usize,
        v6: bool,
        impairments: Impairments,
        mut change: impl FnMut(usize, &mut EndpointConfig),
    ) -> Self {
        let network =
            MemoryNetwork::new(MemoryConfig { seed: 7, frame_size: 2048, impairments, ..MemoryConfig::default() });
        let endpoints: Vec<_> = (0..hosts)
            .map(|host| {
                let mut config = config(host, v6);
                change(host, &mut config);
                Endpoint::new(network.attach(mac(host)), config).unwrap()
            })
            .collect();
        Self { network, endpoints, events: vec![Vec::new(); hosts], now: Time::ZERO, v6, stopped: vec![false; hosts] }
    }

    pub(crate) fn connect(&mut self, from: usize, to: usize) -> ConnectionId {
        let peer = peer(to, self.v6);
        self.endpoints[from].connect(self.now, peer, None).unwrap()
    }

    /// Advances to `now`; returns when something is next due.
    pub(crate) fn step(&mut self, now: Time) -> Time {
        self.now = now;
        self.network.advance(now);
        let mut next_at = Time::NEVER;
        for (host, endpoint) in self.endpoints.iter_mut().enumerate().filter(|(host, _)| !self.stopped[*host]) {
            next_at = next_at.min(endpoint.poll(now).unwrap_or(Time::NEVER));
            self.events[host].extend(std::iter::from_fn(|| endpoint.poll_event()));
        }
        next_at.min(self.network.next_due().unwrap_or(Time::NEVER)).max(now.next())
    }

    /// Steps from one due time to the next, by at least 100 ns and at most `tick_ps`, until `done`
    /// returns true or `limit_ps` has passed.
    pub(crate) fn run(&mut self, tick_ps: u64, limit_ps: u64, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now.after(limit_ps);
        while self.now < end {
            let next_at = self.step(self.now);
            if done(self) {
                return true;
            }
            self.now = next_at.clamp(self.now.after(100_000.min(tick_ps)), self.now.after(tick_ps));
        }
        false
    }

    /// Returns the messages received by a host: connection, number, bytes.
    pub(crate) fn received(&self, host: usize) -> Vec<(ConnectionId, MessageId, Bytes)> {
        let pick = |event: &EndpointEvent| match event {
            EndpointEvent::Received { connection, message, data, .. } => Some((*connection, *message, data.clone())),
            _ => None,
        };
        self.events[host].iter().filter_map(pick).collect()
    }

    pub(crate) fn delivered(&self, host: usize) -> usize {
        self.events[host].iter().filter(|event| matches!(event, EndpointEvent::Delivered { .. })).count()
    }

    pub(crate) fn failed(&self, host: usize) -> Vec<ConnectionError> {
        let pick = |event: &EndpointEvent| match event {
            EndpointEvent::Failed { error, .. } => Some(*error),
            _ => None,
        };
        self.events[host].iter().filter_map(pick).collect()
    }

    pub(crate) fn closed(&self, host: usize) -> usize {
        self.events[host].iter().filter(|event| matches!(event, EndpointEvent::Closed { .. })).count()
    }

    pub(crate) fn accepted(&self, host: usize) -> Vec<ConnectionId> {
        let pick = |event: &EndpointEvent| match event {
            EndpointEvent::Accepted { connection, .. } => Some(*connection),
            _ => None,
        };
        self.events[host].iter().filter_map(pick).collect()
    }

    /// Checks that every frame is accounted for on every device, and that endpoints hold none.
    pub(crate) fn audit(self) {
        for endpoint in self.endpoints {
            let device = endpoint.into_device();
            device.audit().unwrap();
            assert_eq!(device.frame_counts().held, 0);
        }
        self.network.audit().unwrap();
    }
}
