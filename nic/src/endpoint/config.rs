//! The configuration of an endpoint.

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
    /// Time until the first retransmission in picoseconds. It doubles each time, up to eight times
    /// this.
    pub retry_ps: u64,
    /// Frames sent before giving up, including the first; at least 1.
    pub attempts: u32,
}

impl HandshakeConfig {
    /// Returns a configuration that gives up after this time, with 24 attempts. On a network where
    /// half of the paths lose everything, two in a million connections fail: two attempts must
    /// arrive.
    #[must_use]
    pub fn within(give_up: Duration) -> Self {
        Self { retry_ps: ps(give_up) / 190, attempts: 24 }
    }

    /// Returns the duration of all attempts in picoseconds.
    pub(crate) fn lasts_ps(&self) -> u64 {
        self.retry_ps.saturating_mul(8 * u64::from(self.attempts))
    }
}

/// The configuration of an endpoint. Its capacities are fixed.
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    /// The endpoint's IP address.
    pub address: IpAddr,
    /// Source Ethernet address of its frames.
    pub mac: [u8; 6],
    /// UDP ports to receive at and to send to: the same on all hosts.
    pub ports: Ports,
    /// Its number among the endpoints of the host.
    pub shard: Shard,
    /// Configuration of connections for which [`Endpoint::connect`](crate::Endpoint::connect) gets
    /// no other.
    pub flow: FlowConfig,
    /// Rate of the host's link in bits per second, at which it grants credit.
    pub link_bps: u64,
    /// Slots of the connection table, 1 to 65,536. Connects are refused when it is full.
    pub max_connections: u32,
    /// Whether to accept connections.
    pub accept: bool,
    /// Random seed of repeatable runs. Cookies and tokens depend on it, so that they can be forged
    /// by anyone who has it. `None`: random numbers of the operating system.
    pub seed: Option<u64>,
    /// Retransmission of Connect and Close.
    pub handshake: HandshakeConfig,
    /// A connection fails when its peer has been silent for this long, in picoseconds. Keep-alives
    /// are sent after a third of it.
    pub idle_timeout_ps: u64,
    /// Maximum number of undelivered messages of a connection; more return
    /// [`SendError::Full`](super::SendError::Full).
    pub max_queued_messages: usize,
    /// Maximum delay of a frame before a flush, in picoseconds; 64 frames are flushed at once. A
    /// flush of a socket in copy mode takes a system call, so that bursts are cheaper. 0 flushes
    /// after every poll that sent.
    pub coalesce_ps: u64,
    /// With keys, connects only to hosts with listed keys, and seals all frames. Without, any host
    /// may connect, and no frame is sealed.
    pub keys: Option<Keys>,
    /// Capacity of the log of [`spray_core::event::Event`]s; 0 disables it.
    pub event_log: usize,
}

impl EndpointConfig {
    /// Creates a configuration with the default limits: 64 connections, accepting, 12 attempts of
    /// Connect from the flow's initial RTO on.
    #[must_use]
    pub fn new(address: IpAddr, mac: [u8; 6], flow: FlowConfig) -> Self {
        let handshake = HandshakeConfig { retry_ps: flow.rto.initial_ps, attempts: 12 };
        Self {
            address,
            mac,
            ports: Ports::DEFAULT,
            shard: Shard::SINGLE,
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

    /// Creates a configuration for a real network, or one in memory that behaves like one: path
    /// properties are measured, and a peer that is silent for 5 s is given up. `HostConfig` has one
    /// for an interface.
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

    /// Sets the balancer; a [`BalancerKind`](spray_core::path::BalancerKind) selects its published
    /// settings.
    #[must_use]
    pub fn with_balancer(mut self, balancer: impl Into<BalancerConfig>) -> Self {
        self.flow.balancer = balancer.into();
        self
    }

    /// Sets the congestion control; a [`CcKind`](spray_core::cc::CcKind) selects its published
    /// settings.
    #[must_use]
    pub fn with_congestion_control(mut self, control: impl Into<ControlConfig>) -> Self {
        self.flow.cc = control.into();
        self
    }

    /// Connects only to hosts with listed keys, and seals all frames, which shortens their payload.
    #[must_use]
    pub fn with_keys(mut self, keys: Keys) -> Self {
        let header_bytes = real::header_bytes(self.address.is_ipv6(), true);
        self.flow.payload_bytes = self.flow.packet_bytes().saturating_sub(header_bytes);
        self.flow.header_bytes = header_bytes;
        self.keys = Some(keys);
        self
    }

    /// Sets how long a peer may be silent: after a Connect, after data, or at all.
    #[must_use]
    pub fn with_give_up(mut self, time: Duration) -> Self {
        self.flow.give_up_ps = ps(time);
        self.idle_timeout_ps = ps(time);
        self.handshake = HandshakeConfig::within(time);
        self
    }

    /// Sets the round-trip time assumed before the first acknowledgement.
    #[must_use]
    pub fn with_first_rtt(mut self, time: Duration) -> Self {
        self.flow.rto = real::rto(ps(time));
        self
    }

    /// Sets the longest message of a peer, in bytes. The receiver of a connection buffers up to
    /// twice that.
    #[must_use]
    pub fn with_max_message(mut self, bytes: u64) -> Self {
        self.flow.max_message_bytes = bytes;
        self.flow.max_data_bytes = bytes.saturating_mul(2);
        self
    }
}
