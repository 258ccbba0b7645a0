//! The settings of connections, in `[transport]` of a scenario and of commands without one.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use spray_core::cc::{CcKind, CcSchemes};
use spray_core::flow::{DEFAULT_SACK_GAP_PACKETS, FlowConfig};
use spray_core::loss::{ReceiverKind, Receivers, RtoConfig, SackRule};
use spray_core::path::{BalancerConfig, BalancerKind, Path, Schemes};
use spray_core::units::{ByteSize, Gbps, Micros};

use crate::{Document, Error};

/// How senders and receivers work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Transport {
    /// How the path of each packet is chosen. With a list, one run for each.
    #[schemars(schema_with = "one_or_list_of::<BalancerKind>")]
    pub balancer: Vec<BalancerKind>,
    /// Congestion control.
    pub cc: CcKind,
    /// Window before the first feedback, at least a full packet. By default 1.5 BDP in whole
    /// packets; under `mswift` at most the bytes in flight at its target delay.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub initial_window_bytes: Option<ByteSize>,
    /// Largest window, at least a full packet. By default 1.5 BDP, or `initial_window_bytes` if
    /// that is more; under `fixed-rate` no limit.
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub max_window_bytes: Option<ByteSize>,
    /// IP version.
    pub ip: Ip,
    /// DSCP of data packets. Emulated switches treat all alike; a network may not. Control frames
    /// have 46.
    #[schemars(range(min = 0, max = 43))]
    pub dscp: u8,
    /// Payload of a full packet. The `xdp` engine supports at most 3382, with IPv6 3362: XDP on
    /// veth carries IP packets of at most 3,474 bytes.
    #[schemars(range(min = 64, max = 65_000))]
    pub payload_bytes: u32,
    /// Data packets per ACK.
    #[schemars(range(min = 1, max = 64))]
    pub ack_every: u32,
    /// Maximum number of entropy values echoed per ACK: that of the triggering packet, then those
    /// of the latest other acknowledged packets.
    #[schemars(range(min = 1, max = 16))]
    pub ack_evs: u32,
    /// Acknowledge a marked packet immediately, regardless of `ack_every`, as in the published
    /// simulations.
    pub ack_marked: bool,
    /// Maximum delay of an ACK that waits for more packets. By default a quarter of the base RTT.
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub ack_delay_us: Option<Micros>,
    /// Number of entropy values. By default that of the scheme's paper: 256 of `bitmap` and
    /// `mixed`, 65535 of the others.
    #[schemars(range(min = 1, max = 65_535))]
    pub evs: Option<u32>,
    /// Maximum distance from the oldest unacknowledged packet to the newest; a power of two.
    #[schemars(range(min = 256, max = 16_384))]
    pub window_packets: u32,
    /// Out-of-order handling: sender and receiver mode.
    pub receiver: ReceiverKind,
    /// With the receiver `selective`: a packet is declared lost when this many packets sent after
    /// it have arrived and `sack_rule` holds. With 0 only the retransmission timer and trimmed
    /// headers detect losses.
    #[schemars(range(min = 0, max = 16_384))]
    pub sack_gap_packets: u32,
    /// Additional condition for declaring such a packet lost.
    pub sack_rule: SackRule,
    /// Send messages in an ideal erasure code: any sufficient number of packets restores the
    /// message. The simulator only.
    pub erasure: bool,
    /// Minimum and initial retransmission timeout. By default the base RTT plus the time to drain
    /// full queues, one per switch on the path and at least four, but no more than `rto_max_us`;
    /// with `pfc` a full queue is all memory of its switch.
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub rto_min_us: Option<Micros>,
    /// Maximum retransmission timeout. By default 16 times the minimum; 0 means the minimum.
    #[schemars(range(min = 0, max = 3_600_000_000_u64))]
    pub rto_max_us: Option<Micros>,
    /// Time without progress after which a connection fails. By default 20 ms, or four times the
    /// maximum retransmission timeout if that is longer.
    #[schemars(range(min = 0.000_001, max = 3_600_000_000_u64))]
    pub give_up_us: Option<Micros>,
    /// Settings of the receivers.
    #[serde(flatten)]
    pub receivers: Receivers,
    /// Settings of the balancers.
    #[serde(flatten)]
    pub schemes: Schemes,
    /// Settings of the congestion controls.
    #[serde(flatten)]
    pub cc_schemes: CcSchemes,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            balancer: vec![BalancerKind::RepsPlus],
            cc: CcKind::Dctcp,
            initial_window_bytes: None,
            max_window_bytes: None,
            ip: Ip::V4,
            dscp: spray_wire::DSCP_DATA,
            payload_bytes: 3_000,
            ack_every: 1,
            ack_evs: 1,
            ack_marked: false,
            ack_delay_us: None,
            evs: None,
            window_packets: 4_096,
            receiver: ReceiverKind::Selective,
            sack_gap_packets: DEFAULT_SACK_GAP_PACKETS,
            sack_rule: SackRule::Patient,
            erasure: false,
            rto_min_us: None,
            rto_max_us: None,
            give_up_us: None,
            receivers: Receivers::default(),
            schemes: Schemes::default(),
            cc_schemes: CcSchemes::default(),
        }
    }
}

/// Version of the Internet Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Ip {
    /// IPv4.
    #[serde(rename = "4")]
    V4,
    /// IPv6.
    #[serde(rename = "6")]
    V6,
}

/// Returns the schema of a list that may be written as its only element.
pub fn one_or_list_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
}

/// The `[transport]` settings of a connection without a scenario, as in `spray send`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Connections {
    #[serde(default)]
    transport: Transport,
}

impl Transport {
    /// Reads the `[transport]` settings of `document`, which need not be a whole scenario.
    pub fn read(document: &Document) -> Result<Self, Error> {
        let Connections { transport } = document.read()?;
        transport.check(document)?;
        transport.check_parts(document, transport.balancer.iter().copied())?;
        if transport.erasure {
            let message = "`erasure` is an ideal code, which cannot carry real payload; allowed: false";
            return Err(document.error("transport.erasure", message));
        }
        Ok(transport)
    }

    /// Checks for contradictory settings.
    pub fn check(&self, document: &Document) -> Result<(), Error> {
        let error = |field: &str, message: &str| Err(document.error(&format!("transport.{field}"), message));
        if !self.window_packets.is_power_of_two() {
            let message = format!("`window_packets` is {}; allowed: powers of two", self.window_packets);
            return error("window_packets", &message);
        }
        if self.erasure && self.receiver != ReceiverKind::Selective {
            return error("receiver", "`erasure` includes loss recovery; allowed: `receiver = \"selective\"`");
        }
        let subflows = self.schemes.ordered_chaos.subflows;
        if !subflows.is_power_of_two() {
            let message = format!("`subflows` is {subflows}; allowed: powers of two, 1 to 64");
            return error("ordered-chaos.subflows", &message);
        }
        let windows = self.initial_window_bytes.zip(self.max_window_bytes);
        if windows.is_some_and(|(first, most)| first > most) {
            let message = "`initial_window_bytes` is above `max_window_bytes`; allowed: not above";
            return error("initial_window_bytes", message);
        }
        let own = &self.receivers.irn;
        if let Some(cap) = own.cap_packets.filter(|cap| *cap > self.window_packets) {
            let message =
                format!("`cap_packets` is {cap}; allowed: at most `window_packets`, here {}", self.window_packets);
            return error("irn.cap_packets", &message);
        }
        if own.rto_high_us.zip(own.rto_low_us).is_some_and(|(high, low)| high < low) {
            return error("irn.rto_high_us", "`rto_high_us` is below `rto_low_us`; allowed: not below");
        }
        let bounds = self.rto_max_us.zip(self.rto_min_us);
        if bounds.is_some_and(|(max, min)| max.ps() != 0 && max < min) {
            return error("rto_max_us", "`rto_max_us` is below `rto_min_us`; allowed: not below");
        }
        Ok(())
    }

    /// Checks amounts in bytes against full packets of `packet_bytes`, headers included.
    pub fn check_bytes(&self, document: &Document, packet_bytes: u32) -> Result<(), Error> {
        if packet_bytes > MAX_PACKET_BYTES {
            let (headers, most) = (packet_bytes - self.payload_bytes, MAX_PACKET_BYTES);
            let message =
                format!("`payload_bytes` and {headers} of headers are {packet_bytes}; allowed: at most {most}");
            return Err(document.error("transport.payload_bytes", message));
        }
        let CcSchemes { fixed_window, dcqcn, eqds, .. } = &self.cc_schemes;
        let amounts = [
            ("initial_window_bytes", self.initial_window_bytes, 1),
            ("max_window_bytes", self.max_window_bytes, 1),
            ("fixed-window.window_bytes", fixed_window.window_bytes, 1),
            ("dcqcn.window_bytes", dcqcn.window_bytes, 1),
            ("eqds.request_bytes", eqds.request_bytes, 4),
        ];
        for (name, bytes, packets) in amounts {
            let least = packets * u64::from(packet_bytes);
            if let Some(bytes) = bytes.map(ByteSize::bytes).filter(|bytes| *bytes < least) {
                let message = format!("`{name}` is {bytes}; allowed: from {least}, full packets: {packets}");
                return Err(document.error(&format!("transport.{name}"), message));
            }
        }
        Ok(())
    }

    /// Checks that no balancer of `balancers` has more subflows or labels than entropy values.
    /// A default is capped at their number instead.
    pub fn check_parts(
        &self,
        document: &Document,
        balancers: impl IntoIterator<Item = BalancerKind>,
    ) -> Result<(), Error> {
        let own = &self.schemes;
        for balancer in balancers {
            let (name, parts) = match balancer {
                BalancerKind::Subflow => ("subflow.subflows", own.subflow.subflows),
                BalancerKind::Mptcp => ("mptcp.subflows", own.mptcp.subflows),
                BalancerKind::OrderedChaos => ("ordered-chaos.subflows", own.ordered_chaos.subflows.into()),
                BalancerKind::HostDr => ("host-dr.labels", own.host_dr.labels),
                _ => continue,
            };
            let path = format!("transport.{name}");
            let evs = self.evs(&balancer.into());
            if parts > evs && document.has(&path) {
                let message = format!("`{name}` is {parts}; allowed: at most `evs`, which is {evs}");
                return Err(document.error(&path, message));
            }
        }
        Ok(())
    }

    /// Returns the configuration of a connection over `path`. Unset bounds of the retransmission
    /// timeout are those of an empty path.
    pub fn flow_config(&self, path: &ConnectionPath) -> FlowConfig {
        self.flow_config_under(self.cc, path)
    }

    /// Returns the configuration of a connection under another congestion control.
    pub fn flow_config_under(&self, control: CcKind, path: &ConnectionPath) -> FlowConfig {
        let ConnectionPath { balancer, base_rtt_ps, link_bps, payload_bytes, header_bytes, trimming } = *path;
        let known = Path::new(base_rtt_ps, link_bps, payload_bytes + header_bytes);
        let first_bytes = self.initial_window_bytes.map(ByteSize::bytes);
        let usual_bytes = known.max_window_bytes.max(first_bytes.unwrap_or(0));
        let max_window_bytes = if control == CcKind::FixedRate { u64::MAX } else { usual_bytes };
        let path = Path {
            evs: self.evs(&balancer.into()),
            trimming,
            max_window_bytes: self.max_window_bytes.map_or(max_window_bytes, ByteSize::bytes),
            initial_window_bytes: first_bytes.unwrap_or(known.initial_window_bytes),
            ..known
        };
        let mut schemes = self.schemes;
        schemes.flowcut.link_rate_gbps.get_or_insert(Gbps::from_bps(link_bps));
        let flow = FlowConfig::new(balancer.config(&schemes), path, header_bytes);
        let rto = self.rto(flow.rto.min_ps);
        FlowConfig {
            cc: control.config(&self.cc_schemes),
            window_packets: self.window_packets,
            ack_every: self.ack_every,
            ack_evs: self.ack_evs,
            ack_marked: self.ack_marked,
            ack_delay_ps: self.ack_delay_us.map_or(base_rtt_ps / 4, Micros::ps),
            rto,
            receiver: self.receiver.config(&self.receivers),
            sack_gap_packets: (self.sack_gap_packets > 0).then_some(self.sack_gap_packets),
            sack_rule: self.sack_rule,
            give_up_ps: self.give_up_ps(rto),
            dscp: self.dscp,
            ..flow
        }
    }

    /// Returns the number of entropy values under `balancer`.
    pub fn evs(&self, balancer: &BalancerConfig) -> u16 {
        let set = self.evs.map(|evs| u16::try_from(evs).expect("its range is checked as it is read"));
        set.unwrap_or(balancer.evs())
    }

    /// Returns the time without progress after which a connection with these bounds fails.
    pub fn give_up_ps(&self, rto: RtoConfig) -> u64 {
        self.give_up_us.map_or(GIVE_UP_PS.max(rto.max_ps.saturating_mul(4)), Micros::ps)
    }

    /// Returns the bounds of the retransmission timeout. `min_ps` is the default minimum.
    pub fn rto(&self, min_ps: u64) -> RtoConfig {
        let most_ps = self.rto_max_us.map(Micros::ps).filter(|max| *max > 0);
        let min_ps = self.rto_min_us.map_or(min_ps.min(most_ps.unwrap_or(u64::MAX)), Micros::ps);
        let max_ps = self.rto_max_us.map_or(min_ps.saturating_mul(16), Micros::ps).max(min_ps);
        RtoConfig { initial_ps: min_ps, min_ps, max_ps }
    }
}

/// Largest packet on the wire: the length field has 16 bits.
const MAX_PACKET_BYTES: u32 = u16::MAX as u32;

/// Default of the give-up time: two freezing timeouts (REPS §3.2).
const GIVE_UP_PS: u64 = 20_000_000_000;

/// Properties of a path from which the settings of a connection derive.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionPath {
    /// Path selection.
    pub balancer: BalancerKind,
    /// Round-trip time of a full packet and its ACK in an idle network.
    pub base_rtt_ps: u64,
    /// Rate of the sender's link, in bits per second.
    pub link_bps: u64,
    /// Payload of a full packet.
    pub payload_bytes: u32,
    /// Bytes of all headers of a data frame.
    pub header_bytes: u32,
    /// Whether switches trim data frames instead of dropping them.
    pub trimming: bool,
}
