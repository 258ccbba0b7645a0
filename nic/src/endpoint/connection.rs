//! One connection: its peer, the stage of its handshake, and its sender and receiver.

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
    admission::repeat::Repeat,
    payload::buffers::{ReceiveBuffers, SendBuffers},
    seal::Ticket,
    seal::exchange::Initiator,
    seal::generations::Seals,
};
use crate::keys::PublicKey;

/// The peer's name of a connection: its address, and its own number and cookie for the connection.
//= docs/specs/flowcut.md#FLC-6 restoring the source port
pub(crate) type PeerKey = (IpAddr, u32, u64);

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// We sent a Connect.
    Connecting,
    /// We sent an Accept, and no frame of the connection has come back yet: the Connect may be a replay.
    HalfOpen,
    /// Data goes both ways.
    Open,
    /// We sent a Close.
    Closing,
}

/// Sender, receiver and the messages being received. They exist once the peer's limits are known and its address is
/// proven.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) sending: SendHalf,
    pub(crate) receiving: ReceiveHalf,
    pub(crate) receive_buffers: ReceiveBuffers,
}

impl Flow {
    /// Memory of the allocator's for incomplete messages, and for those that the user has not taken.
    pub(crate) fn held_bytes(&self, config: &FlowConfig) -> u64 {
        let receiver = &self.receiving.receiver;
        let consumed = receiver.max_data().saturating_sub(config.max_data_bytes);
        self.receive_buffers.heap_bytes() + receiver.stats().bytes.saturating_sub(consumed)
    }
}

/// A connection's entry in the table.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    /// Its place in the table.
    pub(crate) slot: u32,
    pub(crate) peer: Peer,
    /// To which of the peer's ports frames go.
    pub(crate) port: u8,
    /// Our cookie: the peer must put it into its frames.
    pub(crate) cookie: u64,
    /// The peer's number for this connection, its cookie and its limits; zeros before its Connect or Accept.
    pub(crate) remote: Terms,
    pub(crate) stage: Stage,
    pub(crate) config: FlowConfig,
    pub(crate) flow: Option<Box<Flow>>,
    pub(crate) send_buffers: SendBuffers,
    /// Messages that the sender has not taken yet.
    pub(crate) backlog: VecDeque<u32>,
    /// Received messages that the user has not taken yet.
    pub(crate) unread: u32,
    /// `close` was called: a Close goes when everything is delivered.
    pub(crate) close_wanted: bool,
    /// Of a connection that is to close: how much was acknowledged when it was last looked at, and since when it is no more.
    pub(crate) acked: Option<(u64, Time)>,
    pub(crate) repeat: Repeat,
    /// What the server's Retry said; zeros before that.
    pub(crate) token: [u8; 16],
    /// The client's side of the key exchange, until the Accept comes.
    pub(crate) initiator: Option<Initiator>,
    /// What of the key exchange follows our Connect or Accept.
    pub(crate) exchange: Bytes,
    /// What seals the frames and opens the peer's, where the two sides have keys and have exchanged them.
    pub(crate) seals: Option<Box<Seals>>,
    #[cfg(any(test, feature = "lab"))]
    /// EVs of distinct paths that the sender gets once it exists.
    pub(crate) reachable: Box<[spray_core::path::PathEvs]>,
    /// When the peer was last heard.
    pub(crate) last_arrival: Time,
    /// When to look next at how long the peer has been silent, and at the age of the keys.
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
            repeat: Repeat::start(now),
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

    /// Our side of the handshake.
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

    /// Has the Connect to the holder of `key` carry this message of the key exchange, if there is one yet, and the tags that the server wants to see.
    pub(crate) fn tag_connect(&mut self, peers: &PeerTags, key: &PublicKey, own: IpAddr, message: &[u8]) {
        let payload = peers.payload(key, own, self.peer.address, &self.terms(), message);
        self.exchange = payload.unwrap_or_default().into();
    }

    fn terms_with_exchange(&self) -> Terms {
        Terms { exchange_bytes: self.exchange.len() as u16, ..self.terms() }
    }

    /// The next frame's number and key, where frames are sealed.
    #[inline]
    pub(crate) fn ticket(&mut self) -> Option<Ticket> {
        self.seals.as_mut().map(|seals| seals.sealer.next())
    }

    /// Has the connection looked at by then, or earlier if its keys want that.
    pub(crate) fn check_by(&mut self, at: Time) {
        let keys =
            self.seals.as_ref().filter(|_| self.stage == Stage::Open).map_or(Time::NEVER, |seals| seals.asks_at());
        self.check_at = at.min(keys);
    }

    /// Whether everything of ours is delivered.
    pub(crate) fn is_delivered(&self) -> bool {
        self.send_buffers.is_empty() && self.backlog.is_empty()
    }

    /// Whether nothing is under way in either direction.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_delivered() && self.flow.as_ref().is_none_or(|flow| flow.receive_buffers.is_empty())
    }

    /// The round-trip times that this side has measured, if it measures them.
    pub(crate) fn rtts(&self) -> Option<&RttHistogram> {
        self.flow.as_ref()?.sending.sender.rtts()
    }

    pub(crate) fn stats(&self) -> ConnectionStats {
        let Some(flow) = &self.flow else { return ConnectionStats::default() };
        let (sender, receiver) = (&flow.sending.sender, &flow.receiving.receiver);
        // A bucket's middle may lie below the least time in it.
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

    /// When something has to be done even if no frame arrives.
    pub(crate) fn deadline(&self, now: Time) -> Time {
        let handshake = self.repeat.at.min(self.check_at);
        match self.flow.as_deref() {
            Some(Flow { sending, receiving, .. }) if self.stage == Stage::Open => {
                handshake.min(receiving.deadline()).min(sending.deadline(now))
            }
            _ => handshake,
        }
    }
}
