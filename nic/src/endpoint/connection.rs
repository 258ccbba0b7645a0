//! A connection: its peer, the stage of its handshake, its sender and its receiver.

pub(in crate::endpoint) mod deadlines;
pub(in crate::endpoint) mod peer;
pub(in crate::endpoint) mod table;

use std::collections::VecDeque;
use std::net::IpAddr;

use bytes::Bytes;
use spray_core::Time;
use spray_core::flow::FlowConfig;
use spray_core::host::{ReceiveHalf, SendHalf};
use spray_core::loss::RttHistogram;
use spray_wire::{Body, Terms};

use crate::endpoint::{
    ConnectionId, ConnectionStats, Peer,
    admission::peer_tags::PeerTags,
    admission::retransmit::Retransmit,
    payload::buffers::{ReceiveBuffers, SendBuffers},
    seal::FrameKey,
    seal::generations::Seals,
    seal::noise::Initiator,
};
use crate::keys::PublicKey;

/// The peer's name of a connection: its address, and its own number and cookie for the connection.
//= docs/specs/flowcut.md#FLC-6 restoring the source port
pub(crate) type PeerKey = (IpAddr, u32, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// We sent a Connect.
    Connecting,
    /// We sent an Accept, and no frame has arrived since: the Connect may be a replay.
    HalfOpen,
    Open,
    /// We sent a Close.
    Closing,
}

/// Sender, receiver and incomplete messages. They exist once the peer's limits are known and its
/// address is verified.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) sending: SendHalf,
    pub(crate) receiving: ReceiveHalf,
    pub(crate) receive_buffers: ReceiveBuffers,
}

impl Flow {
    /// Returns the heap memory of incomplete messages, and of messages that the user has not taken.
    pub(crate) fn held_bytes(&self, config: &FlowConfig) -> u64 {
        let receiver = &self.receiving.receiver;
        let consumed = receiver.max_data().saturating_sub(config.max_data_bytes);
        self.receive_buffers.heap_bytes() + receiver.stats().bytes.saturating_sub(consumed)
    }
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    /// Its index in the table.
    pub(crate) slot: u32,
    pub(crate) peer: Peer,
    /// The number of the peer's port.
    pub(crate) port: u8,
    /// Our cookie, which the peer's frames carry.
    pub(crate) cookie: u64,
    /// The peer's number, cookie and limits; zeros before its Connect or Accept.
    pub(crate) remote: Terms,
    pub(crate) stage: Stage,
    pub(crate) config: FlowConfig,
    pub(crate) flow: Option<Box<Flow>>,
    pub(crate) send_buffers: SendBuffers,
    /// Messages that are not submitted to the sender.
    pub(crate) backlog: VecDeque<u32>,
    /// Received messages that the user has not taken.
    pub(crate) unread: u32,
    /// `close` was called: a Close is sent when everything is delivered.
    pub(crate) close_wanted: bool,
    /// While closing: the acknowledged bytes at the last check, and since when they have not
    /// changed.
    pub(crate) acked: Option<(u64, Time)>,
    pub(crate) retransmit: Retransmit,
    /// The token of the server's Retry; zeros before.
    pub(crate) token: [u8; 16],
    /// The client's state of the key exchange, until the Accept arrives.
    pub(crate) initiator: Option<Initiator>,
    /// The message of the key exchange in our Connect or Accept.
    pub(crate) exchange: Bytes,
    /// `Some` after a key exchange.
    pub(crate) seals: Option<Box<Seals>>,
    #[cfg(any(test, feature = "lab"))]
    /// Entropy values of distinct paths, for the sender once it exists.
    pub(crate) reachable: Box<[spray_core::path::PathEvs]>,
    pub(crate) last_arrival: Time,
    /// When to check the peer's silence and the age of the keys.
    pub(crate) check_at: Time,
}

impl Connection {
    pub(crate) fn new(id: ConnectionId, peer: Peer, cookie: u64, stage: Stage, config: FlowConfig, now: Time) -> Self {
        Self {
            id,
            slot: 0,
            peer,
            port: 0,
            cookie,
            remote: Terms::default(),
            stage,
            config,
            flow: None,
            send_buffers: SendBuffers::default(),
            backlog: VecDeque::new(),
            unread: 0,
            close_wanted: false,
            acked: None,
            retransmit: Retransmit::start(now),
            token: [0; 16],
            initiator: None,
            exchange: Bytes::new(),
            seals: None,
            #[cfg(any(test, feature = "lab"))]
            reachable: Box::default(),
            last_arrival: now,
            check_at: Time::NEVER,
        }
    }

    pub(crate) fn peer_key(&self) -> PeerKey {
        (self.peer.address, self.remote.connection, self.remote.cookie)
    }

    /// Returns our terms of the handshake.
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            connection: self.id.0,
            cookie: self.cookie,
            window_packets: self.config.window_packets,
            max_payload: self.config.payload_bytes,
            max_data: self.config.max_data_bytes,
            ack_every: self.config.ack_every,
            exchange_bytes: 0,
            token: self.token,
        }
    }

    pub(crate) fn connect_frame(&self) -> Body {
        Body::Connect(self.terms_with_exchange())
    }

    pub(crate) fn accept_frame(&self) -> Body {
        Body::Accept(self.terms_with_exchange())
    }

    /// Sets the message of the key exchange and the tags of a Connect to the holder of `key`.
    pub(crate) fn tag_connect(&mut self, peers: &PeerTags, key: &PublicKey, own: IpAddr, message: &[u8]) {
        let payload = peers.payload(key, own, self.peer.address, &self.terms(), message);
        self.exchange = payload.unwrap_or_default().into();
    }

    fn terms_with_exchange(&self) -> Terms {
        Terms { exchange_bytes: self.exchange.len() as u16, ..self.terms() }
    }

    /// Returns the number and key of the next frame, if frames are sealed.
    #[inline]
    pub(crate) fn frame_key(&mut self) -> Option<FrameKey> {
        self.seals.as_mut().map(|seals| seals.sealer.next())
    }

    /// Schedules a check at `at`, or earlier if the keys need it.
    pub(crate) fn check_by(&mut self, at: Time) {
        let keys =
            self.seals.as_ref().filter(|_| self.stage == Stage::Open).map_or(Time::NEVER, |seals| seals.rekey_at());
        self.check_at = at.min(keys);
    }

    /// Returns whether all messages of the user are delivered.
    pub(crate) fn is_delivered(&self) -> bool {
        self.send_buffers.is_empty() && self.backlog.is_empty()
    }

    /// Returns whether nothing is outstanding in either direction.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_delivered() && self.flow.as_ref().is_none_or(|flow| flow.receive_buffers.is_empty())
    }

    /// Returns the measured round-trip times.
    pub(crate) fn rtts(&self) -> Option<&RttHistogram> {
        self.flow.as_ref()?.sending.sender.rtts()
    }

    pub(crate) fn stats(&self) -> ConnectionStats {
        let Some(flow) = &self.flow else { return ConnectionStats::default() };
        let (sender, receiver) = (&flow.sending.sender, &flow.receiving.receiver);
        // The middle of a histogram bucket may be below the minimum.
        let rtt_ps = |permille| sender.rtts().map_or(0, |rtts| rtts.permille_ps(permille).max(sender.rtt().min_ps()));
        ConnectionStats {
            sender: *sender.stats(),
            receiver: *receiver.stats(),
            window_bytes: sender.window_bytes(),
            in_flight_bytes: sender.in_flight_bytes(),
            payload_bytes: self.config.payload_bytes,
            rtt_min_ps: sender.rtt().min_ps(),
            rtt_smoothed_ps: sender.rtt().smoothed_ps(),
            rtt_p50_ps: rtt_ps(500),
            rtt_p99_ps: rtt_ps(990),
            limits: *sender.limits(),
        }
    }

    /// Returns when the connection is due without an arrival.
    pub(crate) fn deadline(&self, now: Time) -> Time {
        let handshake = self.retransmit.at.min(self.check_at);
        match self.flow.as_deref() {
            Some(Flow { sending, receiving, .. }) if self.stage == Stage::Open => {
                handshake.min(receiving.deadline()).min(sending.deadline(now))
            }
            _ => handshake,
        }
    }
}
