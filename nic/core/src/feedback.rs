//! Feedback from the network to path choice and congestion control.

use crate::Time;

pub use spray_wire::Ev;

/// Entropy values of one path, used in turn: acknowledgements of each may return over another path.
/// They repeat if fewer are known.
pub type PathEvs = [Ev; 8];

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckInfo {
    /// Entropy value of the packet that triggered the acknowledgement.
    pub ev: Ev,
    /// Whether that packet arrived with an ECN mark.
    pub marked: bool,
    /// Data packets that this acknowledgement covers; more than one if ACKs are coalesced.
    pub packets: u16,
    /// The number of them that carried an ECN mark.
    pub marked_packets: u16,
    /// Wire bytes, headers included, that it newly acknowledges.
    pub bytes: u64,
    /// Round-trip time of the packet that triggered it, in picoseconds.
    pub rtt_ps: u64,
    /// Switches that the packet passed.
    pub hops: u8,
    /// Wire bytes of that packet; of a full one if the packet is unknown.
    pub packet_bytes: u32,
    /// Wire bytes in flight afterwards: sent, neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// Packets sent and not acknowledged afterwards, lost ones included.
    pub unacked_packets: u64,
    /// Payload bytes of queued messages that are not sent yet.
    pub unsent_bytes: u64,
    /// The congestion window afterwards, in wire bytes; 0 when the congestion control takes it.
    pub window_bytes: u64,
}

/// The answer to a probe.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProbeInfo {
    /// The entropy value of the probe.
    pub ev: Ev,
    /// Whether the probe was marked, or was late where the network does not mark.
    pub marked: bool,
    /// Time from the probe to its answer.
    pub rtt_ps: u64,
}

/// A packet that an acknowledgement settled, whether it triggered it or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInfo {
    /// Packet sequence number.
    pub psn: u64,
    /// Entropy value of its last transmission.
    pub ev: Ev,
    /// Bytes of the whole frame on the wire.
    pub bytes: u32,
    /// When it was last sent.
    pub sent_at: Time,
    /// Whether it was declared lost and is not retransmitted yet.
    pub was_lost: bool,
    /// Whether [`Balancer::on_ack`](crate::path::Balancer::on_ack) follows with marks and times.
    pub reported: bool,
}

/// What declared a packet lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// Its retransmission timer ran out.
    #[default]
    Timeout,
    /// Packets sent well after it were acknowledged.
    SackGap,
    /// A switch trimmed it because its queue was full, and the receiver reported that.
    Trimmed,
    /// The last port of its path trimmed it: the receiver's link, not the path, is overloaded.
    TrimmedLast,
    /// A packet sent after it arrived first, on the same path or, under `go-back-n`, on any.
    Missing,
    /// None: retransmitted because the sender goes back. Neither its path nor the network failed.
    GoBackN,
}

impl LossCause {
    /// Whether a switch trimmed the packet, anywhere on its path.
    #[inline]
    pub fn is_trim(self) -> bool {
        matches!(self, Self::Trimmed | Self::TrimmedLast)
    }
}

/// A lost packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossInfo {
    /// Packet sequence number.
    pub psn: u64,
    /// Entropy value that the lost packet carried.
    pub ev: Ev,
    /// Its wire bytes.
    pub bytes: u32,
    /// What declared it lost.
    pub cause: LossCause,
    /// Largest round-trip time in about two RTTs before the loss, in picoseconds; 0 if none.
    pub max_rtt_ps: u64,
    /// The same over one to two retransmission timeouts.
    pub max_before_timeout_ps: u64,
    /// Wire bytes in flight afterwards: sent, neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// When the lost transmission was made.
    pub sent_at: Time,
    /// When its timeout expired or will expire.
    pub expires_at: Time,
    /// Whether the gap rule declares packets lost before their timeouts.
    pub is_early: bool,
}
