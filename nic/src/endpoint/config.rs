//! The settings of an endpoint.

use std::net::IpAddr;
use std::time::Duration;

use spray_core::cc::ControlConfig;
use spray_core::flow::FlowConfig;
use spray_core::path::BalancerConfig;
use spray_wire::Ports;

use super::{event::ConfigError, shard::Shard};
use crate::keys::Keys;
use crate::real::{self, ps};

/// Retransmission of Connect and Close frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeConfig {
    /// Time until the first retransmission in picoseconds. It doubles each time, up to eight times this.
    pub retry_ps: u64,
    /// Frames sent before giving up, the first included; at least 1.
    pub attempts: u32,
}

impl HandshakeConfig {
    /// Of a side that gives up after this time: 24 attempts take that long. Where half of the paths lose everything, two in a million
    /// connections fail: two attempts must come through.
    #[must_use]
    pub fn within(give_up: Duration) -> Self {
        Self { retry_ps: ps(give_up) / 190, attempts: 24 }
    }

    /// How long all attempts take at most, in picoseconds.
    pub(crate) fn lasts_ps(&self) -> u64 {
        self.retry_ps.saturating_mul(8 * u64::from(self.attempts))
    }
}

/// The settings of an endpoint. Its capacities never change.
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    /// The endpoint's IP address.
    pub address: IpAddr,
    /// The Ethernet address that its frames carry as their source.
    pub mac: [u8; 6],
    /// UDP ports that frames come to and go to: the same on all hosts that talk to each other.
    pub ports: Ports,
    /// Which of its host's endpoints it is.
    pub shard: Shard,
    /// Settings of connections, unless [`Endpoint::connect`](crate::Endpoint::connect) gets others.
    pub flow: FlowConfig,
    /// Rate of the host's link in bits per second, by which it grants credit to senders that ask for some.
    pub link_bps: u64,
    /// Slots of the connection table, 1 to 65,536. A Connect that finds no slot is refused.
    pub max_connections: u32,
    /// Whether to accept connections of others.
    pub accept: bool,
    /// Random seed, for runs that must repeat: cookies and tokens come from it too, so that one who knows it can forge them.
    /// `None`: from the operating system.
    pub seed: Option<u64>,
    /// Retransmission of Connect and Close.
    pub handshake: HandshakeConfig,
    /// A connection fails when its peer has been silent for this long, in picoseconds. Keep-alives go at a third of
    /// it.
    pub idle_timeout_ps: u64,
    /// Most undelivered messages of one connection. More get [`SendError::Full`](super::SendError::Full).
    pub max_queued_messages: usize,
    /// How long a frame may wait for others before the device is told to send, in picoseconds; 64 frames go at once.
    /// Telling a copying socket takes a system call, so bursts are cheaper. 0 tells it after every poll that sent.
    pub coalesce_ps: u64,
    /// With keys, connections are only with the holders of others, and every frame of theirs is sealed. Without, anybody may connect,
    /// and nothing is sealed.
    pub keys: Option<Keys>,
    /// Entries of the log of [`spray_core::event::Event`]s; 0 keeps none.
    pub event_log: usize,
}

impl EndpointConfig {
    /// A configuration with the usual limits: 64 connections, accepting, Connect tried 12 times from the flow's initial RTO on.
    #[must_use]
    pub fn new(address: IpAddr, mac: [u8; 6], flow: FlowConfig) -> Self {
        let handshake = HandshakeConfig { retry_ps: flow.rto.initial_ps, attempts: 12 };
        Self {
            address,
            mac,
            ports: Ports::DEFAULT,
            shard: Shard::WHOLE,
            flow,
            link_bps: flow.path.link_bps,
            max_connections: 64,
            accept: true,
            seed: None,
            handshake,
            idle_timeout_ps: 10_000_000_000_000,
            max_queued_messages: 1024,
            coalesce_ps: 0,
            keys: None,
            event_log: 0,
        }
    }

    /// An endpoint on a real network, or on one in memory that behaves like one: what the path is like is learned, and a peer that says
    /// nothing for 5 s is given up. `HostConfig` has one for an interface.
    ///
    /// # Errors
    /// When packets of `mtu` bytes are too short.
    pub fn real(address: IpAddr, mac: [u8; 6], mtu: u32) -> Result<Self, ConfigError> {
        let header_bytes = real::header_bytes(address.is_ipv6(), false);
        let payload_bytes =
            real::payload_bytes(mtu, header_bytes).map_err(|needed| ConfigError::Mtu { mtu, needed })?;
        let config = Self::new(address, mac, real::flow(payload_bytes, header_bytes));
        Ok(Self { link_bps: real::FIRST_BPS, ..config }.with_give_up(real::GIVE_UP))
    }

    /// How packets choose paths; a [`BalancerKind`](spray_core::path::BalancerKind) stands for its published settings.
    #[must_use]
    pub fn with_balancer(mut self, balancer: impl Into<BalancerConfig>) -> Self {
        self.flow.balancer = balancer.into();
        self
    }

    /// How congestion is controlled; a [`CcKind`](spray_core::cc::CcKind) stands for its published settings.
    #[must_use]
    pub fn with_congestion_control(mut self, control: impl Into<ControlConfig>) -> Self {
        self.flow.cc = control.into();
        self
    }

    /// Talks only to holders of the keys' peers, and seals every frame; its payload gets as much shorter as that takes.
    #[must_use]
    pub fn with_keys(mut self, keys: Keys) -> Self {
        let header_bytes = real::header_bytes(self.address.is_ipv6(), true);
        self.flow.payload_bytes = self.flow.packet_bytes().saturating_sub(header_bytes);
        self.flow.header_bytes = header_bytes;
        self.keys = Some(keys);
        self
    }

    /// How long a peer may say nothing: to a Connect, to data, or at all.
    #[must_use]
    pub fn with_give_up(mut self, time: Duration) -> Self {
        self.flow.give_up_ps = ps(time);
        self.idle_timeout_ps = ps(time);
        self.handshake = HandshakeConfig::within(time);
        self
    }

    /// A first guess at the round-trip time, for the timeout before the first acknowledgement; the connection learns it.
    #[must_use]
    pub fn with_first_rtt(mut self, time: Duration) -> Self {
        self.flow.rto = real::rto(ps(time));
        self
    }

    /// The longest message that a peer may send, in bytes. A connection's receiver holds up to twice that.
    #[must_use]
    pub fn with_max_message(mut self, bytes: u64) -> Self {
        self.flow.max_message_bytes = bytes;
        self.flow.max_data_bytes = bytes.saturating_mul(2);
        self
    }
}
