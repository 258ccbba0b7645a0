//! The settings of one connection.

use spray_wire::Terms;

use crate::cc::{ControlConfig, CreditBound, DctcpConfig};
use crate::link::rate_bps;
use crate::loss::{ReceiverConfig, RtoConfig, SackRule};
use crate::now::Path;
use crate::path::BalancerConfig;
use crate::units::Gbps;

/// Settings of one connection, the same type for both halves. [`Sender::new`](super::Sender::new)
/// and [`Receiver::new`](super::Receiver::new) bring values into range ([`FlowConfig::clamped`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowConfig {
    /// Payload of a full packet, in bytes, 1 to 65,535. The two ends may differ.
    pub payload_bytes: u32,
    /// All headers of a data frame, Ethernet's included, in bytes: a frame is payload and header.
    pub header_bytes: u32,
    /// Maximum number of open packet sequence numbers, rounded up to a power of two, at most
    /// [`MAX_WINDOW_PACKETS`]. The lesser of both ends' values counts. It must cover the congestion
    /// window and arrivals during a retransmission: four bandwidth-delay products are ample.
    pub window_packets: u32,
    /// Data packets per ACK, 1 to 255. Above 8 REPS loses its advantage (REPS §4.5.1).
    pub ack_every: u32,
    /// Maximum number of entropy values that an ACK echoes, 1 to 16: the trigger's, then the latest
    /// others' (REPS §4.5.1). The peer must support such ACKs.
    pub ack_evs: u32,
    /// Whether marked packets are acknowledged at once, as in the published artifact.
    pub ack_marked: bool,
    /// Maximum delay of an ACK, in picoseconds; well below `rto.min_ps`.
    pub ack_delay_ps: u64,
    /// Bounds of the retransmission timeout.
    pub rto: RtoConfig,
    /// Out-of-order handling, the same at both ends.
    pub receiver: ReceiverConfig,
    /// Later transmissions that must have arrived before the gap rule declares a packet lost.
    /// `None` leaves losses to timeouts and trims, as the published artifacts do.
    pub sack_gap_packets: Option<u32>,
    /// Further condition of the gap rule: none, or time.
    pub sack_rule: SackRule,
    /// Time without progress after which a sender gives the connection up, in picoseconds.
    pub give_up_ps: u64,
    /// Message bytes granted beyond those consumed; the handshake carries the first grant. At least
    /// `max_message_bytes`, or larger messages would never complete at a receiver that consumes
    /// whole ones.
    pub max_data_bytes: u64,
    /// The largest message that a receiver accepts, in bytes.
    pub max_message_bytes: u64,
    /// DSCP of data frames, 0 to [`MAX_DATA_DSCP`](spray_wire::MAX_DATA_DSCP); others are reserved.
    pub dscp: u8,
    /// Whether the sender learns the path's round-trip time and rate; see [`FlowConfig::learning`].
    pub learns_path: bool,
    /// The balancer.
    pub balancer: BalancerConfig,
    /// The congestion control.
    pub cc: ControlConfig,
    /// The path, and the limits on it. The packet size follows from payload and headers.
    pub path: Path,
}

impl FlowConfig {
    /// Creates settings for a path with `header_bytes` of headers per packet: DCTCP, an ACK per
    /// packet, a window of four bandwidth-delay products, SACK-gap detection after
    /// [`DEFAULT_SACK_GAP_PACKETS`], messages up to 64 MiB. A
    /// [`BalancerKind`](crate::path::BalancerKind) stands for its published settings.
    pub fn new(balancer: impl Into<BalancerConfig>, path: Path, header_bytes: u32) -> Self {
        let base_rtt_ps = path.base_rtt_ps;
        let bdp_packets = path.bdp_bytes().div_ceil(path.packet_bytes.max(1).into());
        let window_packets = bdp_packets.saturating_mul(4).clamp(256, u64::from(MAX_WINDOW_PACKETS)) as u32;
        Self {
            payload_bytes: path.packet_bytes.saturating_sub(header_bytes).max(1),
            header_bytes,
            window_packets: window_packets.next_power_of_two(),
            ack_every: 1,
            ack_evs: 1,
            ack_marked: false,
            ack_delay_ps: base_rtt_ps / 2,
            rto: RtoConfig::for_path(base_rtt_ps),
            receiver: ReceiverConfig::Selective,
            sack_gap_packets: Some(DEFAULT_SACK_GAP_PACKETS),
            sack_rule: SackRule::Patient,
            give_up_ps: DEFAULT_GIVE_UP_PS,
            max_data_bytes: 128 << 20,
            max_message_bytes: 64 << 20,
            dscp: spray_wire::DSCP_DATA,
            learns_path: false,
            balancer: balancer.into(),
            cc: ControlConfig::Dctcp(DctcpConfig { marked_by_trigger: false }),
            path,
        }
    }

    /// Returns the settings of a connection that learns its path: it starts with [`FIRST_PACKETS`],
    /// and only `window_packets` and the network limit it. An unlimited window, the rate of
    /// `fixed-rate` and the first retransmission timeout are kept; other path properties are
    /// replaced.
    //= docs/specs/calibration.md#CAL-3 slow start
    //= docs/specs/calibration.md#CAL-5 initial estimates
    pub fn learning(mut self) -> Self {
        let packet_bytes = u64::from(self.packet_bytes());
        let first_bytes = FIRST_PACKETS * packet_bytes;
        self.learns_path = true;
        if let ControlConfig::FixedRate(own) = &mut self.cc {
            own.rate_gbps.get_or_insert(Gbps::from_bps(self.path.link_bps));
        }
        let unbounded = self.path.max_window_bytes == u64::MAX;
        let max_window_bytes = if unbounded { u64::MAX } else { u64::from(self.window_packets) * packet_bytes };
        self.path = Path {
            base_rtt_ps: FIRST_RTT_PS,
            link_bps: rate_bps(first_bytes, FIRST_RTT_PS),
            bdp_packets: FIRST_PACKETS as u32,
            initial_window_bytes: first_bytes.min(max_window_bytes),
            max_window_bytes,
            catch_up_packets: CATCH_UP_PACKETS,
            ..self.path
        };
        self
    }

    /// Returns the settings with every value brought into its range.
    pub fn clamped(mut self) -> Self {
        self.payload_bytes = self.payload_bytes.clamp(1, u32::from(u16::MAX));
        self.header_bytes = self.header_bytes.min(u32::from(u16::MAX));
        self.path = Path { packet_bytes: self.packet_bytes(), ..self.path }.clamped();
        self.window_packets = self.window_packets.clamp(1, MAX_WINDOW_PACKETS).next_power_of_two();
        self.ack_every = self.ack_every.clamp(1, MAX_ACK_EVERY);
        self.ack_evs = self.ack_evs.clamp(1, spray_wire::MAX_ECHOES as u32 + 1);
        if self.dscp > spray_wire::MAX_DATA_DSCP {
            self.dscp = spray_wire::DSCP_DATA;
        }
        self.give_up_ps = self.give_up_ps.max(1);
        self.sack_gap_packets = self.sack_gap_packets.map(|packets| packets.max(1));
        self
    }

    /// Returns the BDP-FC limit of packets in flight; `u32::MAX` for other receivers or paths.
    //= docs/specs/irn.md#IRN-5 BDP-FC
    pub(super) fn cap_packets(&self) -> u32 {
        let bdp_packets = if self.learns_path { u32::MAX } else { self.path.bdp_packets.max(1) };
        match self.receiver {
            ReceiverConfig::Irn(own) => own.cap_packets.unwrap_or(bdp_packets),
            ReceiverConfig::Selective | ReceiverConfig::GoBackN(_) => u32::MAX,
        }
    }

    /// Whether a connection with these settings can use a peer's limits.
    //= docs/specs/endpoint.md#END-4a invalid limits
    //= docs/specs/wire.md#WIRE-8b minimum limits
    pub fn accepts(&self, terms: &Terms) -> bool {
        (1..=MAX_WINDOW_PACKETS).contains(&terms.window_packets)
            && (1..=MAX_ACK_EVERY).contains(&terms.ack_every)
            && terms.max_payload >= self.payload_bytes.min(MIN_PAYLOAD_BYTES)
            && terms.max_data >= self.max_data_bytes.min(MIN_PAYLOAD_BYTES.into())
    }

    /// Returns the credit for a sender that sends nothing: what packet window and grant admit.
    //= docs/specs/eqds.md#EQDS-16 limit of unused credit
    pub fn credit_bound(&self) -> CreditBound {
        let packets = self.max_data_bytes.div_ceil(self.payload_bytes.max(1).into()).min(self.window_packets.into());
        CreditBound { bytes: packets.saturating_mul(self.packet_bytes().into()), retry_ps: self.rto.min_ps }
    }

    /// Wire bytes of a full packet.
    pub fn packet_bytes(&self) -> u32 {
        self.payload_bytes.saturating_add(self.header_bytes)
    }
}

/// At 800 Gb/s, 1 ms and 4 KiB packets, 3 BDPs. The records take 2 MiB.
pub const MAX_WINDOW_PACKETS: u32 = 1 << 16;

/// An ACK counts its packets in 8 bits.
const MAX_ACK_EVERY: u32 = 255;

/// Least payload to which a peer may limit packets, unless ours are smaller. Frames have about 120
/// bytes of headers: less payload would make most of the traffic headers. Every IP path carries it.
pub const MIN_PAYLOAD_BYTES: u32 = 256;

/// Packets in the initial window of a connection that learns its path. A queue on a slow path holds
/// them; 400 Gb/s carry them, at 4 KiB each, in 2.6 us.
pub const FIRST_PACKETS: u64 = 32;

/// Initial base round-trip time of a learned path: fixed, so that no wrong guess has an effect.
const FIRST_RTT_PS: u64 = 100_000_000;

/// Catch-up of a paced sender on a general-purpose kernel: a 3 ms slice at 0.5 Gb/s, 1,500 bytes.
const CATCH_UP_PACKETS: u32 = 128;

/// Messages stored from [`send_message`](super::Sender::send_message) to the event of delivery.
pub const MESSAGE_SLOTS: usize = 256;

/// Default of [`FlowConfig::sack_gap_packets`]. TCP's three would do, since the rule also waits for
/// recent round-trip times. With eight, one coalesced ACK of up to eight packets cannot decide
/// alone.
pub const DEFAULT_SACK_GAP_PACKETS: u32 = 8;

/// Default of [`FlowConfig::give_up_ps`]: five freezing timeouts (REPS §3.2: 10 ms).
pub const DEFAULT_GIVE_UP_PS: u64 = 50_000_000_000;
