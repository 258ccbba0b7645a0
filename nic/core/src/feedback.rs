//! What comes back from the network, as path choice and congestion control see it.

pub use spray_wire::Ev;

/// One acknowledgement, as path choice and congestion control see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckInfo {
    /// Entropy value of the packet that triggered the acknowledgement.
    pub ev: Ev,
    /// That packet arrived with an ECN mark.
    pub marked: bool,
    /// Data packets that this acknowledgement stands for (more than one where ACKs are coalesced).
    pub packets: u16,
    /// How many of these carried an ECN mark.
    pub marked_packets: u16,
    /// Wire bytes, headers included, that it newly acknowledges.
    pub bytes: u64,
    /// Round-trip time of the packet that triggered it, in picoseconds.
    pub rtt_ps: u64,
    /// Switches that packet passed.
    pub hops: u8,
    /// Wire bytes of that packet; those of a full one where it is not known.
    pub packet_bytes: u32,
    /// Wire bytes that stay in flight: sent, neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// Packets that stay sent and not acknowledged, those declared lost included.
    pub open_packets: u64,
    /// Payload bytes handed over and not sent yet.
    pub unsent_bytes: u64,
    /// Wire bytes that the congestion control then lets be in flight; 0 where it is the one that is told.
    pub window_bytes: u64,
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
    /// When it was last sent, in picoseconds.
    pub sent_ps: u64,
    /// It had been declared lost and was not sent again yet.
    pub was_lost: bool,
}

/// What declared a packet lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// Its retransmission timer ran out.
    #[default]
    Timeout,
    /// Packets sent well after it were acknowledged.
    SackGap,
    /// A switch trimmed it for want of queue space, and the receiver said so.
    Trimmed,
    /// What was sent behind it on the same path arrived without it, and the receiver said so.
    Missing,
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
    /// Largest round-trip time seen in about two RTTs before the loss, in picoseconds; 0 when none was.
    pub max_rtt_ps: u64,
    /// Wire bytes that stay in flight: sent, neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// When the lost transmission was made, in picoseconds.
    pub sent_ps: u64,
}
