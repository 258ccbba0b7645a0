//! What people set, and what that amounts to on a path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rtt::{ONE, fixed, ticks};
use crate::path::{AckInfo, PathConfig};
use crate::units::{ByteSize, Gbps, Micros, Ratio};

/// The settings of [`Flowcut`](super::Flowcut).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct FlowcutConfig {
    /// How the connection tells that its path is congested.
    pub rule: FlowcutRule,
    /// Average over least round-trip time above which a path is drained (§III-C1 evaluates 1 to 7, §III-C2 takes 4).
    #[schemars(range(min = 1, max = 1_000))]
    pub rtt_ratio: Ratio,
    /// Weight of a new sample in that average (alpha of §III-C1).
    #[schemars(range(min = 0.001, max = 1))]
    pub weight: Ratio,
    /// Average growth of the normalised round-trip time from one acknowledgement to the next above which a path is drained,
    /// `paper` only. 0 turns it off.
    #[schemars(range(min = 0, max = 1_000))]
    pub trend: Ratio,
    /// Weight of a new sample in that average.
    #[schemars(range(min = 0.001, max = 1))]
    pub trend_weight: Ratio,
    /// Rate of the links, for the serialisation of a packet at each hop, `paper` only. By default that of the sender's own
    /// link where that is known; elsewhere serialisation counts as delay.
    #[schemars(range(min = 0.001, max = 100_000))]
    pub link_rate_gbps: Option<Gbps>,
    /// No drain begins with fewer payload bytes left to send: the rest would not make up for it (§IV-C). By default one
    /// bandwidth-delay product under `paper`, 0 under `simple`.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub tail_bytes: Option<ByteSize>,
    /// A drain in which nothing comes back for so long ends, and the old path is used on (§IV-A). By default 32 base
    /// round-trip times.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub drain_timeout_us: Option<Micros>,
    /// Change the path as soon as no more packets than this are open: drains are shorter, and no packet arrives more than
    /// this many ahead of one sent before it (§IV-C). 0 waits for all, so that nothing is reordered.
    pub resume_packets: u16,
    /// Bytes that may still go over the old path during a drain: XOFF with credit (§II-B). 0 is plain XOFF.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
    pub credit_bytes: ByteSize,
    /// Timeouts in a row with nothing coming back between them after which a path counts as dead and is left with packets
    /// open. 0 is never.
    #[schemars(range(min = 0, max = 100))]
    pub dead_timeouts: u8,
}

/// How a connection tells that its path is congested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum FlowcutRule {
    /// The normalised round-trip time and its trend, as §II-B has them.
    #[default]
    Paper,
    /// The published fat-tree simulator's rule: an average of round-trip times against the least one, which a drain does not
    /// reset.
    Simple,
}

impl Default for FlowcutConfig {
    fn default() -> Self {
        Self {
            rule: FlowcutRule::Paper,
            rtt_ratio: Ratio::permille(4_000),
            weight: Ratio::permille(120),
            trend: Ratio::permille(50),
            trend_weight: Ratio::permille(120),
            link_rate_gbps: None,
            tail_bytes: None,
            drain_timeout_us: None,
            resume_packets: 0,
            credit_bytes: ByteSize::new(0),
            dead_timeouts: 3,
        }
    }
}

/// The settings on one path, in units of arithmetic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// See [`FlowcutConfig::tail_bytes`]: bytes, and full packets that come on top.
    tail_bytes: u64,
    tail_packets: u32,
    pub(super) drain_timeout_ps: u64,
    pub(super) credit_bytes: u64,
    pub(super) resume_packets: u32,
    /// Round-trip time of the empty network, in ticks; 0 where it is not known.
    pub(super) base: u32,
    /// What follows is in units of [`ONE`].
    pub(super) ratio: u32,
    pub(super) weight: u32,
    /// More than any trend where it is off.
    pub(super) trend: u32,
    pub(super) trend_weight: u32,
    /// Serialisation of 1,024 bytes, in ps.
    pub(super) kib_ps: u32,
    pub(super) evs: u16,
    pub(super) dead_rounds: u8,
    pub(super) simple: bool,
}

impl Settings {
    pub(super) fn new(own: &FlowcutConfig, path: &PathConfig) -> Self {
        let simple = own.rule == FlowcutRule::Simple;
        let timeout_ps = path.base_rtt_ps.max(1).saturating_mul(DRAIN_TIMEOUT_RTTS);
        let kib_ps = |rate: Gbps| (8_192_000_000_000_000 / rate.bps().max(1)).min(u64::from(u32::MAX)) as u32;
        Self {
            tail_bytes: own.tail_bytes.map_or(0, ByteSize::bytes),
            tail_packets: if simple || own.tail_bytes.is_some() { 0 } else { path.bdp_packets },
            drain_timeout_ps: own.drain_timeout_us.map_or(timeout_ps, Micros::ps),
            credit_bytes: own.credit_bytes.bytes(),
            resume_packets: own.resume_packets.into(),
            base: ticks(path.base_rtt_ps),
            ratio: fixed(own.rtt_ratio),
            weight: fixed(own.weight).min(ONE),
            trend: if own.trend == Ratio::default() { u32::MAX } else { fixed(own.trend) },
            trend_weight: fixed(own.trend_weight).min(ONE),
            kib_ps: own.link_rate_gbps.map_or(0, kib_ps),
            evs: path.ev_count(),
            dead_rounds: own.dead_timeouts,
            simple,
        }
    }

    /// Payload bytes below which no drain begins.
    #[inline]
    pub(super) fn tail_bytes(&self, ack: &AckInfo) -> u64 {
        self.tail_bytes.saturating_add(u64::from(self.tail_packets) * u64::from(ack.packet_bytes))
    }
}

/// Two retransmission timeouts of five base RTTs, the second backed off, and as much again: loss recovery goes first.
const DRAIN_TIMEOUT_RTTS: u64 = 32;
