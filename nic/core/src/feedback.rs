//! Feedback from the network, as path choice and congestion control see it.

use crate::Time;

pub use spray_wire::Ev;

/// Entropy values that lead over one path, used in turn: acknowledgements of each may return over another path. They repeat where fewer are
/// known.
pub type PathEvs = [Ev; 8];

/// One acknowledgement, as path choice and congestion control see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckInfo {
    /// Entropy value of the packet that triggered the acknowledgement.
    pub ev: Ev,
    /// Whether that packet arrived with an ECN mark.
    pub marked: bool,
    /// Data packets that this acknowledgement covers; more than one where ACKs are coalesced.
    pub packets: u16,
    /// How many of them carried an ECN mark.
    pub marked_packets: u16,
    /// Wire bytes, headers included, that it newly acknowledges.
    pub bytes: u64,
    /// Round-trip time of the packet that triggered it, in picoseconds.
    pub rtt_ps: u64,
    /// Switches that the packet passed.
    pub hops: u8,
    /// Wire bytes of that packet; of a full one where the packet is unknown.
    pub packet_bytes: u32,
    /// Wire bytes in flight afterwards: sent, neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// Packets sent and not acknowledged afterwards, lost ones included.
    pub open_packets: u64,
    /// Payload bytes that the user handed over and that are not sent yet.
    pub unsent_bytes: u64,
    /// The congestion window afterwards, in wire bytes; 0 when the congestion control itself takes the ACK.
    pub window_bytes: u64,
}

/// The answer to a probe, as the balancer sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProbeInfo {
    /// The entropy value that the probe went by.
    pub ev: Ev,
    /// The probe was marked, or was late where the network does not mark.
    pub marked: bool,
    /// Time from the probe to its answer.
    pub rtt_ps: u64,
}

/// One packet that an acknowledgement settled, whichever packet triggered it.
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
    /// It was declared lost and is not sent again yet.
    pub was_lost: bool,
    /// [`Balancer::on_ack`](crate::path::Balancer::on_ack) follows: the ACK tells how its packets fared.
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
    /// A switch trimmed it because its queue was full, and the receiver said so.
    Trimmed,
    /// The last port of its path trimmed it, and said so: more is sent to that host than its link carries, and the path is not to blame.
    TrimmedLast,
    /// A packet sent after it arrived first, on the same path or at a receiver that keeps nothing out of order, and the receiver said
    /// so.
    Missing,
    /// Nothing: it goes again because the sender goes back to an earlier one. Its path and the network have not failed it.
    GoneBack,
}

impl LossCause {
    /// Whether a switch trimmed the packet, wherever on its path.
    #[inline]
    pub fn is_trim(self) -> bool {
        matches!(self, Self::Trimmed | Self::TrimmedLast)
    }
}

/// One lost packet, as path choice sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossInfo {
    /// Packet sequence number.
    pub psn: u64,
    /// Entropy value that the lost packet carried.
    pub ev: Ev,
    /// Its bytes on the wire.
    pub bytes: u32,
    /// What declared it lost.
    pub cause: LossCause,
    /// Largest round-trip time seen in about two RTTs before the loss, in picoseconds; 0 if none was seen.
    pub max_rtt_ps: u64,
    /// The same of one to two retransmission timeouts.
    pub max_before_timeout_ps: u64,
    /// Wire bytes in flight afterwards: sent, neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// When the lost transmission was made.
    pub sent_at: Time,
    /// When its timeout ran out or will.
    pub expires_at: Time,
    /// Packets are declared lost before their timeouts, by the gap rule.
    pub is_early: bool,
}
