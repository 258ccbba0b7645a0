//! The settings of `flowcut`.

use spray_wire::flowcut::{ONE, Rule};

use crate::now::Path;
use crate::path::AckInfo;
use crate::settings::settings;
use crate::units::{ByteSize, Gbps, Micros, Ratio};

settings! {
    /// The settings of [`Flowcut`](super::Flowcut).
    pub struct FlowcutConfig {
        /// Rule by which a path counts as congested.
        pub rule: FlowcutRule = FlowcutRule::Paper,
        /// Ratio of the average to the least RTT that drains a path (§III-C1: 1 to 7; §III-C2: 4).
        #[schemars(range(min = 1, max = 1_000))]
        pub rtt_ratio: Ratio = Ratio::permille(4_000),
        /// Weight of a new sample in that average (alpha of §III-C1).
        #[schemars(range(min = 0.001, max = 1))]
        pub weight: Ratio = Ratio::permille(120),
        /// `paper`: growth of the normalised RTT per ACK above which a path is drained; 0: never.
        #[schemars(range(min = 0, max = 1_000))]
        pub trend: Ratio = Ratio::permille(50),
        /// Weight of a new sample in that average.
        #[schemars(range(min = 0.001, max = 1))]
        pub trend_weight: Ratio = Ratio::permille(120),
        /// `paper` only: link rate, for a packet's serialisation at each hop. By default the rate
        /// of the sender's own link; if unknown, serialisation counts as delay.
        #[schemars(range(min = 0.01, max = 10_000))]
        pub link_rate_gbps: Option<Gbps> = None,
        /// Minimum unsent payload bytes for a drain to begin: fewer would not make up for its cost
        /// (§IV-C). By default one bandwidth-delay product under `paper`, 0 under `simple`.
        #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
        pub tail_bytes: Option<ByteSize> = None,
        /// A silent drain ends after this time, on its path (§IV-A). By default 32 base RTTs.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub drain_timeout_us: Option<Micros> = None,
        /// Change the path as soon as at most this many packets are open (§IV-C): drains are
        /// shorter, and no packet arrives more than this many ahead of one sent before it. 0 waits
        /// for all, so that nothing is reordered.
        pub resume_packets: u16 = 0,
        /// Bytes that may still go over the old path during a drain: XOFF with credit (§II-B).
        #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
        pub credit_bytes: ByteSize = ByteSize::new(0),
        /// Consecutive timeouts without feedback after which a path has failed; 0: never.
        #[schemars(range(min = 0, max = 100))]
        pub dead_timeouts: u8 = 3,
    }

    /// Rule by which a path counts as congested.
    #[derive(Default)]
    pub enum FlowcutRule {
        /// The normalised round-trip time and its trend (§II-B).
        #[default]
        Paper,
        /// The fat-tree artifact's: the average RTT against the least; drains do not reset it.
        Simple,
    }
}

impl FlowcutConfig {
    /// Returns when a path counts as congested.
    pub fn thresholds(&self) -> Rule {
        Rule {
            ratio: fixed(self.rtt_ratio),
            weight: fixed(self.weight).min(ONE),
            trend: if self.trend == Ratio::default() { u32::MAX } else { fixed(self.trend) },
            trend_weight: fixed(self.trend_weight).min(ONE),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Default: bandwidth-delay products of the path.
    tail_bytes: Option<u64>,
    /// Default: follows from the path.
    drain_timeout_us: Option<Micros>,
    pub(super) credit_bytes: u64,
    pub(super) resume_packets: u32,
    /// Without a trend, its threshold is unreachable.
    pub(super) rule: Rule,
    /// Serialisation of 1,024 bytes, in ps.
    pub(super) kib_ps: u32,
    pub(super) dead_rounds: u8,
    pub(super) simple: bool,
}

impl Settings {
    pub(super) fn new(own: &FlowcutConfig) -> Self {
        let simple = own.rule == FlowcutRule::Simple;
        let kib_ps = |rate: Gbps| (8_192_000_000_000_000 / rate.bps().max(1)).min(u64::from(u32::MAX)) as u32;
        Self {
            tail_bytes: own.tail_bytes.map(ByteSize::bytes).or(simple.then_some(0)),
            drain_timeout_us: own.drain_timeout_us,
            credit_bytes: own.credit_bytes.bytes(),
            resume_packets: own.resume_packets.into(),
            rule: own.thresholds(),
            kib_ps: own.link_rate_gbps.map_or(0, kib_ps),
            dead_rounds: own.dead_timeouts,
            simple,
        }
    }

    pub(super) fn tail_bytes(&self, path: &Path, ack: &AckInfo) -> u64 {
        self.tail_bytes.unwrap_or(u64::from(path.bdp_packets) * u64::from(ack.packet_bytes))
    }

    pub(super) fn drain_timeout_ps(&self, path: &Path) -> u64 {
        self.drain_timeout_us.map_or(path.base_rtt_ps * DRAIN_TIMEOUT_RTTS, Micros::ps)
    }
}

/// A ratio in units of [`ONE`], at most 65,535.
fn fixed(ratio: Ratio) -> u32 {
    u32::try_from(ratio.of(ONE.into())).unwrap_or(u32::MAX)
}

/// Loss recovery goes first: retransmission timeouts of five and ten base RTTs, and as much again.
const DRAIN_TIMEOUT_RTTS: u64 = 32;
