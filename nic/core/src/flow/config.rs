//! The settings of one connection.

use spray_wire::Terms;

use crate::cc::{ControlConfig, CreditBound, DctcpConfig};
use crate::link::rate_bps;
use crate::loss::{ReceiverConfig, RtoConfig, SackRule};
use crate::now::Path;
use crate::path::BalancerConfig;
use crate::units::Gbps;

/// Settings of one connection, the same type for both of its halves.
///
/// Values out of their range are brought into it by [`FlowConfig::sanitised`], which [`Sender::new`] and
/// [`Receiver::new`] apply.
///
/// [`Sender::new`]: super::Sender::new
/// [`Receiver::new`]: super::Receiver::new
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowConfig {
    /// Payload of a full packet, in bytes, 1 to 65,535. Both ends may use different ones.
    pub payload_bytes: u32,
    /// All headers of a data frame, Ethernet's included, in bytes: a frame is payload and header.
    pub header_bytes: u32,
    /// Most packet sequence numbers open at a time, rounded up to a power of two, at most [`MAX_WINDOW_PACKETS`]. The
    /// lesser of both ends' values counts. The window must hold the congestion window and what arrives while one
    /// packet is sent again: four bandwidth-delay products are ample.
    pub window_packets: u32,
    /// Data packets for one ACK, 1 to 255. Above 8 REPS loses its edge (REPS §4.5.1).
    pub ack_every: u32,
    /// Most entropy values that an ACK echoes, 1 to 16: that of the packet that triggered it, then those of the
    /// latest other packets it covers (REPS §4.5.1). The peer must understand such ACKs.
    pub ack_evs: u32,
    /// Whether a marked packet is acknowledged at once, whatever `ack_every` says, as in the published artifact.
    pub ack_marked: bool,
    /// Longest time that a data packet waits for its ACK, in picoseconds; well below `rto.min_ps`.
    pub ack_delay_ps: u64,
    /// Bounds of the retransmission timeout.
    pub rto: RtoConfig,
    /// What becomes of packets out of order. Both ends must have the same.
    pub receiver: ReceiverConfig,
    /// So many later transmissions must have arrived before the gap rule declares a packet lost. `None` leaves losses
    /// to timeouts and trims, as the published artifacts do.
    pub sack_gap_packets: Option<u32>,
    /// What the gap rule demands besides: nothing, or time.
    pub sack_rule: SackRule,
    /// How long a sender waits without progress before it gives the connection up, in picoseconds.
    pub give_up_ps: u64,
    /// How many message bytes a receiver grants beyond those consumed. The handshake carries it as the first grant.
    /// It is at least `max_message_bytes`: where the receiver consumes whole messages, a message larger than the
    /// grant would never complete.
    pub max_data_bytes: u64,
    /// The largest message a receiver takes, in bytes.
    pub max_message_bytes: u64,
    /// DSCP of data frames, 0 to [`MAX_DATA_DSCP`](spray_wire::MAX_DATA_DSCP). Others mean something else to switches and receivers.
    pub dscp: u8,
    /// Whether the sender learns the path's base round-trip time and its rate; see [`FlowConfig::learning`].
    pub learns_path: bool,
    /// How paths are chosen.
    pub balancer: BalancerConfig,
    /// How congestion is controlled.
    pub cc: ControlConfig,
    /// What is known of the path, and the bounds that the connection keeps to on it. The size of a packet follows from payload and
    /// headers.
    pub path: Path,
}

impl FlowConfig {
    /// Settings for a path, in whose packets `header_bytes` are not payload: DCTCP, an ACK per packet, a window of four bandwidth-delay
    /// products, SACK-gap detection after [`DEFAULT_SACK_GAP_PACKETS`], messages up to 64 MiB. A
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

    /// The settings of a connection that learns its path: it begins with [`FIRST_PACKETS`], and only `window_packets` and the
    /// network limit what is in flight. A window of unlimited bytes stays so, and so does the rate of `fixed-rate`. Nothing else that
    /// these settings say of the path is kept, but for the first retransmission timeout.
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
    pub fn sanitised(mut self) -> Self {
        self.payload_bytes = self.payload_bytes.clamp(1, u32::from(u16::MAX));
        self.header_bytes = self.header_bytes.min(u32::from(u16::MAX));
        self.path = Path { packet_bytes: self.packet_bytes(), ..self.path }.sanitised();
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

    /// Most packets in flight by the receiver's rules; unbounded where it has none, or where the path is not known yet.
    //= docs/specs/irn.md#IRN-5 BDP-FC
    pub(super) fn cap_packets(&self) -> u32 {
        let bdp_packets = if self.learns_path { u32::MAX } else { self.path.bdp_packets.max(1) };
        match self.receiver {
            ReceiverConfig::Irn(own) => own.cap_packets.unwrap_or(bdp_packets),
            ReceiverConfig::Selective | ReceiverConfig::GoBackN(_) => u32::MAX,
        }
    }

    /// Whether a connection with these settings can do with a peer's limits.
    //= docs/specs/endpoint.md#END-4a invalid limits
    //= docs/specs/wire.md#WIRE-8b minimum limits
    pub fn accepts(&self, terms: &Terms) -> bool {
        (1..=MAX_WINDOW_PACKETS).contains(&terms.window_packets)
            && (1..=MAX_ACK_EVERY).contains(&terms.ack_every)
            && terms.max_payload >= self.payload_bytes.min(LEAST_PAYLOAD_BYTES)
            && terms.max_data >= self.max_data_bytes.min(LEAST_PAYLOAD_BYTES.into())
    }

    /// Credit that a receiver grants a sender which sends nothing: for all that packet window and flow control let it have under way.
    //= docs/specs/eqds.md#EQDS-16 limit of unused credit
    pub fn credit_bound(&self) -> CreditBound {
        let packets = self.max_data_bytes.div_ceil(self.payload_bytes.max(1).into()).min(self.window_packets.into());
        CreditBound { bytes: packets.saturating_mul(self.packet_bytes().into()), retry_ps: self.rto.min_ps }
    }

    /// Bytes of a full packet on the wire.
    pub fn packet_bytes(&self) -> u32 {
        self.payload_bytes.saturating_add(self.header_bytes)
    }
}

/// Largest window: 64 Ki packets. At 800 Gb/s, 1 ms and 4 KiB packets that is 3 BDPs; its records take 2 MiB.
pub const MAX_WINDOW_PACKETS: u32 = 1 << 16;

/// Most data packets for one ACK: what an ACK can count.
const MAX_ACK_EVERY: u32 = 255;

/// The least payload that a peer may limit packets to, unless our own are smaller. A frame's headers are some 120 bytes: with
/// less, most of what is sent at a peer's wish would be headers. Every IP path carries it.
pub const LEAST_PAYLOAD_BYTES: u32 = 256;

/// Packets in the first window of a connection that learns its path. A queue on a slow path still holds them; a path of 400 Gb/s
/// carries them, at 4 KiB each, in 2.6 us.
pub const FIRST_PACKETS: u64 = 32;

/// What a connection that learns its path takes for the base round-trip time until the first acknowledgement: 100 us. It is the same
/// whatever the user says, so that a wrong guess changes nothing.
const FIRST_RTT_PS: u64 = 100_000_000;

/// How far a paced sender on a general-purpose kernel catches up: a time slice of the kernel's, 3 ms, at 0.5 Gb/s and 1,500 bytes.
const CATCH_UP_PACKETS: u32 = 128;

/// Messages that a sender holds between [`Sender::send_message`] and the event of their delivery.
///
/// [`Sender::send_message`]: super::Sender::send_message
pub const MESSAGE_SLOTS: usize = 256;

/// Default of [`FlowConfig::sack_gap_packets`]. TCP's three would do, since the rule also waits out every round-trip
/// time seen lately. With eight, one coalesced ACK of up to eight packets cannot decide alone.
pub const DEFAULT_SACK_GAP_PACKETS: u32 = 8;

/// Default of [`FlowConfig::give_up_ps`]: 50 ms, five freezing timeouts (REPS §3.2: 10 ms to exclude a failed link).
pub const DEFAULT_GIVE_UP_PS: u64 = 50_000_000_000;
