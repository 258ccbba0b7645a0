//! What people set, and what that amounts to on a path.

use super::rtt::{ONE, fixed, ticks};
use crate::params::{AUTO, parameters};
use crate::path::{AckInfo, PathConfig};

parameters! {
    /// The settings of [`Flowcut`](super::Flowcut).
    pub struct FlowcutConfig {
        /// `paper`: the normalised round-trip time and its trend, as §II-B has them. `simple`: the published fat-tree
        /// simulator's rule, an average of round-trip times against the least one, which a drain does not reset.
        rule: Choice(&["paper", "simple"]), 0, 1, 0;
        /// Average over least round-trip time above which a path is drained (§III-C1 evaluates 1 to 7, §III-C2 takes 4).
        rtt_ratio: Ratio, 1_000, 1_000_000, 4_000;
        /// Weight of a new sample in that average (alpha of §III-C1).
        weight: Ratio, 1, 1_000, 120;
        /// Average growth of the normalised round-trip time from one acknowledgement to the next above which a path is
        /// drained, `paper` only; 0 turns it off.
        trend: Ratio, 0, 1_000_000, 50;
        /// Weight of a new sample in that average.
        trend_weight: Ratio, 1, 1_000, 120;
        /// Rate of the links, for the serialisation of a packet at each hop, `paper` only. By itself that of the sender's
        /// own link where that is known; elsewhere serialisation counts as delay.
        link_rate: Gbps, 1_000_000, 100_000_000_000_000, AUTO;
        /// No drain begins with fewer payload bytes left to send: the rest would not make up for it (§IV-C). By itself one
        /// bandwidth-delay product under `paper`, 0 under `simple`.
        tail_bytes: Bytes, 0, 1 << 40, AUTO;
        /// A drain in which nothing comes back for so long ends, and the old path is used on (§IV-A). By itself 32 base
        /// round-trip times.
        drain_timeout: Microseconds, 1_000_000, 1_000_000_000_000, AUTO;
        /// Change the path as soon as no more packets than this are open: drains are shorter, and no packet arrives more
        /// than this many ahead of one sent before it (§IV-C). 0 waits for all, so that nothing is reordered.
        resume_packets: Count, 0, 65_535, 0;
        /// Bytes that may still go over the old path during a drain: XOFF with credit (§II-B). 0 is plain XOFF.
        credit_bytes: Bytes, 0, 1 << 40, 0;
        /// Timeouts in a row with nothing coming back between them after which a path counts as dead and is left with
        /// packets open; 0 is never.
        dead_timeouts: Count, 0, 100, 3;
    }
}

/// The settings on one path, in units of arithmetic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// See [`FlowcutConfig::tail_bytes`]; `AUTO` is one bandwidth-delay product.
    tail_bytes: u64,
    pub(super) drain_timeout_ps: u64,
    pub(super) credit_bytes: u64,
    pub(super) resume_packets: u32,
    bdp_packets: u32,
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
    pub(super) fn new(config: &PathConfig) -> Self {
        let own = &config.schemes.flowcut;
        let simple = own.rule == 1;
        let timeout_ps = config.base_rtt_ps.max(1).saturating_mul(DRAIN_TIMEOUT_RTTS);
        Self {
            tail_bytes: if simple && own.tail_bytes == AUTO { 0 } else { own.tail_bytes },
            drain_timeout_ps: if own.drain_timeout == AUTO { timeout_ps } else { own.drain_timeout },
            credit_bytes: own.credit_bytes,
            resume_packets: own.resume_packets.min(u64::from(u32::MAX)) as u32,
            bdp_packets: config.bdp_packets,
            base: ticks(config.base_rtt_ps),
            ratio: fixed(own.rtt_ratio),
            weight: fixed(own.weight).min(ONE),
            trend: if own.trend == 0 { u32::MAX } else { fixed(own.trend) },
            trend_weight: fixed(own.trend_weight).min(ONE),
            kib_ps: match own.link_rate {
                AUTO => 0,
                rate_bps => (8_192_000_000_000_000 / rate_bps.max(1)).min(u64::from(u32::MAX)) as u32,
            },
            evs: config.ev_count(),
            dead_rounds: own.dead_timeouts.min(255) as u8,
            simple,
        }
    }

    /// Payload bytes below which no drain begins.
    #[inline]
    pub(super) fn tail_bytes(&self, ack: &AckInfo) -> u64 {
        match self.tail_bytes {
            AUTO => u64::from(self.bdp_packets) * u64::from(ack.packet_bytes),
            bytes => bytes,
        }
    }
}

/// Two retransmission timeouts of five base RTTs, the second backed off, and as much again: loss recovery goes first.
const DRAIN_TIMEOUT_RTTS: u64 = 32;
