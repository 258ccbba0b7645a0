//! What an endpoint tells its user, and the errors of its calls.

use bytes::Bytes;
use spray_core::Time;
use spray_core::event::Event;
use thiserror::Error;

use super::connection::peer::Peer;
use crate::keys::PublicKey;

/// Names a connection of one endpoint. The same value names another connection only after 2^32 others, or 2^31 where the table's size is no
/// power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub(crate) u32);

impl ConnectionId {
    /// The number that frames to this endpoint carry.
    #[must_use]
    pub fn raw(self) -> u32 {
        self.0
    }
}

/// One event of one connection's algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEntry {
    /// When it happened, by the endpoint's time.
    pub at: Time,
    /// Its connection.
    pub connection: ConnectionId,
    /// What happened.
    pub event: Event,
}

/// A message of one connection and direction, numbered from 0 in the order of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub u32);

/// An event of an endpoint. Times are by the caller's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointEvent {
    /// A connection made by [`Endpoint::connect`](crate::Endpoint::connect) is open.
    Connected {
        /// The connection.
        connection: ConnectionId,
        /// When its Accept arrived.
        at: Time,
    },
    /// A peer has connected, and proved that it receives frames sent to its address.
    Accepted {
        /// The new connection.
        connection: ConnectionId,
        /// The peer that connected.
        peer: Peer,
        /// The connection at the peer, as its [`Endpoint::connect`](crate::Endpoint::connect) returned it.
        remote: ConnectionId,
        /// When the proof arrived.
        at: Time,
    },
    /// A whole message arrived. Each message is reported once.
    Received {
        /// The connection it came on.
        connection: ConnectionId,
        /// Its number among the peer's messages.
        message: MessageId,
        /// Its bytes; none where a [`Sink`](super::Sink) took them.
        data: Bytes,
        /// The earliest send timestamp among its packets, on the *sender's* clock.
        started_at: Time,
        /// When its last packet arrived.
        completed_at: Time,
    },
    /// The peer has acknowledged a whole message.
    Delivered {
        /// The connection it went on.
        connection: ConnectionId,
        /// Its number, as `send` returned it.
        message: MessageId,
        /// When it was handed to the connection.
        started_at: Time,
        /// When the last acknowledgement arrived.
        at: Time,
    },
    /// Either side closed the connection, and everything of ours is delivered.
    Closed {
        /// The connection, now gone.
        connection: ConnectionId,
        /// When.
        at: Time,
    },
    /// The connection failed. Messages that were not reported as delivered may have arrived or not.
    Failed {
        /// The connection, now gone.
        connection: ConnectionId,
        /// Why.
        error: ConnectionError,
        /// When.
        at: Time,
    },
}

/// Why a connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// No Accept came in time. A peer whose public key is not the one that this side has for it sends none.
    #[error("the peer did not answer the connection request")]
    ConnectTimeout,
    /// No Accept came in time, and none could have: nothing hands frames to this side's AF_XDP socket.
    #[error(
        "the peer did not answer the connection request, and no answer could arrive: no XDP program on this interface steers frames into \
         the socket. Open the interface with Host::open, which comes with one, or attach your own with the socket in its XSKMAP"
    )]
    NothingArrives,
    /// The peer accepts no connections, or no more of them.
    #[error("the peer refused the connection")]
    Refused,
    /// The peer does not know our key, or has none.
    #[error("the peer and this side do not have each other's keys")]
    Key,
    /// Data stayed unacknowledged for the give-up time.
    #[error("the peer stopped acknowledging")]
    PeerUnresponsive,
    /// The same, while short frames of the peer arrive.
    #[error(
        "the peer stopped acknowledging, though it is there: packets of up to {bytes} bytes no longer arrive, as when the MTU of an \
         interface or a link on the way became smaller (`ip link` on both sides)"
    )]
    LongLost {
        /// The longest IP packet that was sent.
        bytes: u32,
    },
    /// Nothing was heard for the idle timeout.
    #[error("nothing was heard of the peer for the idle timeout")]
    IdleTimeout,
    /// The peer is there, but its part of an exchange of fresh keys did not come in time (END-46).
    #[error("the peer exchanged no fresh keys in time")]
    StaleKeys,
    /// The peer does not know the connection, as after a restart.
    #[error("the peer no longer knows the connection")]
    Reset,
    /// The peer closed while messages of ours were undelivered.
    #[error("the peer closed the connection before everything was delivered")]
    PeerClosed,
    /// The peer, or this side, gave up on the connection.
    #[error("the connection was aborted")]
    Aborted,
    /// The device's interface was removed, or its program detached.
    #[error("the interface was removed, or the XDP program detached that hands its frames over")]
    InterfaceGone,
}

/// Why an endpoint cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Full frames would not fit the interface.
    #[error(
        "frames of {needed} bytes do not fit: the device sends at most {available} (raise the MTU or lower the payload)"
    )]
    FrameTooLong {
        /// Bytes of a full data frame.
        needed: usize,
        /// Bytes that the device can send.
        available: usize,
    },
    /// The connection table's size is out of range.
    #[error("max_connections is {0}; it must be 1 to 65536")]
    MaxConnections(u32),
    /// Packets of the interface are too short to be of use.
    #[error("an MTU of {mtu} bytes is too small; needed is {needed}")]
    Mtu {
        /// The MTU.
        mtu: u32,
        /// The least one.
        needed: u32,
    },
    /// There is no entropy value.
    #[error("0 entropy values; 1 to 65535 are possible")]
    Evs,
    /// The payload does not fit the frame's 16-bit length, or is zero.
    #[error("payload_bytes is {0}; it must be 1 to 65000")]
    Payload(u32),
    /// A message could be longer than the receiver's grant, and would never complete.
    #[error("max_data_bytes is {max_data_bytes}, less than max_message_bytes ({max_message_bytes})")]
    Grant {
        /// What is granted.
        max_data_bytes: u64,
        /// The longest message.
        max_message_bytes: u64,
    },
    /// The key of a peer is none that keys can be exchanged with.
    #[error("no keys can be exchanged with the public key {0}")]
    Key(PublicKey),
    /// The operating system gives no random numbers.
    #[error("no entropy from the operating system: {0}")]
    Entropy(String),
}

/// Why a connection could not be begun.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// All slots of the connection table are taken.
    #[error("the connection table is full")]
    TableFull,
    /// The peer's address is not of the endpoint's family.
    #[error("the peer's address is not of the endpoint's IP version")]
    Family,
    /// There are keys, and none is that of the peer at this address.
    #[error("there is no key for the peer at that address")]
    Key,
    /// The operating system gives no random numbers.
    #[error("no entropy from the operating system")]
    Entropy,
    /// The flow parameters given do not suit the device.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SendError {
    /// The connection does not exist (any more).
    #[error("no such connection")]
    Unknown,
    /// `close` was called before.
    #[error("the connection is closing")]
    Closing,
    /// Too many messages wait already; try again after a `Delivered` event.
    #[error("too many messages are waiting")]
    Full,
    /// The message is longer than `max_message_bytes`.
    #[error("a message of {bytes} bytes; the longest possible has {max}")]
    Size {
        /// Its length.
        bytes: u64,
        /// The longest possible.
        max: u64,
    },
}
