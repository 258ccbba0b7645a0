//! Events of an endpoint, and the errors of its calls.

use bytes::Bytes;
use spray_core::Time;
use spray_core::event::Event;
use thiserror::Error;

use super::connection::peer::Peer;
use crate::keys::PublicKey;

/// Identifies a connection of an endpoint. Values repeat after 2^32 connections, or 2^31 where the
/// table's size is no power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub(crate) u32);

impl ConnectionId {
    /// Returns the number that frames to this endpoint carry.
    #[must_use]
    pub fn raw(self) -> u32 {
        self.0
    }
}

/// An event of a connection's algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEntry {
    /// The time by the caller's clock.
    pub at: Time,
    /// The connection.
    pub connection: ConnectionId,
    /// The event.
    pub event: Event,
}

/// A message of one connection and direction, numbered from 0 in the order of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(pub u32);

/// An event of an endpoint. Times are by the caller's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointEvent {
    /// A connection opened by [`Endpoint::connect`](crate::Endpoint::connect) is established.
    Connected {
        /// The connection.
        connection: ConnectionId,
        /// When its Accept arrived.
        at: Time,
    },
    /// A peer has connected, and its address is verified.
    Accepted {
        /// The new connection.
        connection: ConnectionId,
        /// The peer that connected.
        peer: Peer,
        /// The connection's number at the peer.
        remote: ConnectionId,
        /// When the address was verified.
        at: Time,
    },
    /// A complete message has arrived.
    Received {
        /// The connection.
        connection: ConnectionId,
        /// Its number among the peer's messages.
        message: MessageId,
        /// Its bytes; empty with a [`Sink`](super::Sink).
        data: Bytes,
        /// The earliest send timestamp among its packets, on the *sender's* clock.
        started_at: Time,
        /// When the last missing packet arrived.
        completed_at: Time,
    },
    /// The peer has acknowledged a complete message.
    Delivered {
        /// The connection.
        connection: ConnectionId,
        /// Its number, as `send` returned it.
        message: MessageId,
        /// When it was submitted.
        started_at: Time,
        /// When the last acknowledgement arrived.
        at: Time,
    },
    /// Either side closed the connection, and all messages of the user are delivered.
    Closed {
        /// The connection, which no longer exists.
        connection: ConnectionId,
        /// The time.
        at: Time,
    },
    /// The connection failed. Messages without a `Delivered` may have arrived or not.
    Failed {
        /// The connection, which no longer exists.
        connection: ConnectionId,
        /// The cause.
        error: ConnectionError,
        /// The time.
        at: Time,
    },
}

/// Why a connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// No Accept arrived in time. A peer with another public key than the listed one sends none.
    #[error("the peer did not answer the connection request")]
    ConnectTimeout,
    /// No Accept arrived in time, and none can: no XDP program redirects frames to this AF_XDP
    /// socket.
    #[error(
        "the peer did not answer the connection request, and no answer could arrive: no XDP program on this interface steers frames into \
         the socket. Open the interface with Host::open, which comes with one, or attach your own with the socket in its XSKMAP"
    )]
    NoXdpProgram,
    /// The peer accepts no connections, or no more.
    #[error("the peer refused the connection")]
    Refused,
    /// The peer does not list our key, or has no keys.
    #[error("the peer and this side do not have each other's keys")]
    Key,
    /// Data was not acknowledged for the give-up time.
    #[error("the peer stopped acknowledging")]
    PeerUnresponsive,
    /// Data was not acknowledged for the give-up time, while short frames of the peer arrive.
    #[error(
        "the peer stopped acknowledging, though it is there: packets of up to {bytes} bytes no longer arrive, as when the MTU of an \
         interface or a link on the way became smaller (`ip link` on both sides)"
    )]
    MtuBlackHole {
        /// The longest IP packet that was sent.
        bytes: u32,
    },
    /// No frame arrived for the idle timeout.
    #[error("nothing was heard of the peer for the idle timeout")]
    IdleTimeout,
    /// The peer is alive, but an exchange of fresh keys was not completed in time (END-46).
    #[error("the peer exchanged no fresh keys in time")]
    StaleKeys,
    /// The peer has no such connection, as after a restart.
    #[error("the peer no longer knows the connection")]
    Reset,
    /// The peer closed while messages were undelivered.
    #[error("the peer closed the connection before everything was delivered")]
    PeerClosed,
    /// Either side aborted the connection.
    #[error("the connection was aborted")]
    Aborted,
    /// The device's interface was removed, or its program detached.
    #[error("the interface was removed, or the XDP program detached that hands its frames over")]
    InterfaceGone,
}

/// Why an endpoint cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Full frames do not fit the device.
    #[error(
        "frames of {needed} bytes do not fit: the device sends at most {available} (raise the MTU or lower the payload)"
    )]
    FrameTooLong {
        /// Bytes of a full data frame.
        needed: usize,
        /// The device's maximum.
        available: usize,
    },
    /// The connection table's size is out of range.
    #[error("max_connections is {0}; it must be 1 to 65536")]
    MaxConnections(u32),
    /// Packets of the interface are too short.
    #[error("an MTU of {mtu} bytes is too small; needed is {needed}")]
    Mtu {
        /// The MTU.
        mtu: u32,
        /// The minimum.
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
        /// The grant in bytes.
        max_data_bytes: u64,
        /// The longest message in bytes.
        max_message_bytes: u64,
    },
    /// The key of a peer is not valid for key exchange.
    #[error("no keys can be exchanged with the public key {0}")]
    Key(PublicKey),
    /// The operating system returns no random numbers.
    #[error("no entropy from the operating system: {0}")]
    Entropy(String),
}

/// Why a connection could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The connection table is full.
    #[error("the connection table is full")]
    TableFull,
    /// The peer's address is of another family than the endpoint's.
    #[error("the peer's address is not of the endpoint's IP version")]
    Family,
    /// There are keys, and none for the peer at this address.
    #[error("there is no key for the peer at that address")]
    Key,
    /// The operating system returns no random numbers.
    #[error("no entropy from the operating system")]
    Entropy,
    /// The flow parameters do not fit the device.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Why a message was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SendError {
    /// The connection does not exist.
    #[error("no such connection")]
    Unknown,
    /// The connection is closing.
    #[error("the connection is closing")]
    Closing,
    /// Too many messages wait; try again after a `Delivered` event.
    #[error("too many messages are waiting")]
    Full,
    /// The message is longer than `max_message_bytes`.
    #[error("a message of {bytes} bytes; the longest possible has {max}")]
    Size {
        /// Its length in bytes.
        bytes: u64,
        /// The limit in bytes.
        max: u64,
    },
}
