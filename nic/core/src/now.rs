//! The time and the state of the path, as balancers and congestion controls see them.

use core::ops::Deref;

use crate::Time;
use crate::link::bdp_bytes;

/// The present time and path. Time never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// The time.
    pub time: Time,
    /// The path.
    pub path: &'a Path,
}

/// The properties of the path to a peer, and the connection's limits on it: passed to balancer and
/// congestion control, and changed if [learned](crate::flow::FlowConfig::learns_path).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Round-trip time without queues, in picoseconds: 1 to 10^12 (a second).
    pub base_rtt_ps: u64,
    /// Round-trip time, in picoseconds, of a slow path; [`u64::MAX`] if unknown.
    pub slow_rtt_ps: u64,
    /// Rate of the sender's link, in bits per second: 1 to 10^15. Twice the arrival rate if
    /// learned.
    pub link_bps: u64,
    /// Wire bytes of a full packet, 1 to 65,535: the step of growth and the least window.
    pub packet_bytes: u32,
    /// Packets in one bandwidth-delay product (REPS's NUM_PKTS_BDP), at most 65,535.
    pub bdp_packets: u32,
    /// The number of entropy values, 1 to 65,535 (as in the paper). With few values many
    /// connections share links, which costs OPS much and REPS little (REPS §4.5.2).
    pub evs: u16,
    /// Whether the network trims. Every other loss then indicates a failed path (REPS appendix A).
    pub trimming: bool,
    /// Whether round-trip time and rate were measured by the connection's own acknowledgements.
    pub learned: bool,
    /// Window before the first feedback, in wire bytes. The first ACK cuts it to the maximum.
    pub initial_window_bytes: u64,
    /// Maximum window, at most 2^40 wire bytes. For `fixed-rate` `u64::MAX` means no limit.
    pub max_window_bytes: u64,
    /// Packets by which a paced sender that a general-purpose kernel runs late may catch up.
    pub catch_up_packets: u32,
    /// Seed of lasting choices, equal in every engine; `None` draws them from the generator.
    pub seed: Option<u64>,
    /// Counts the changes of the path, so that derived values can be cached.
    pub version: u32,
}

impl Now<'_> {
    /// Returns the time `ps` picoseconds from now.
    #[inline]
    pub const fn after(self, ps: u64) -> Time {
        self.time.after(ps)
    }

    /// Returns the picoseconds since `at`; 0 if `at` is in the future.
    #[inline]
    pub const fn since(self, at: Time) -> u64 {
        self.time.since(at)
    }
}

impl Path {
    /// Creates the reference settings for a path: 65,535 entropy values, no trimming, a window of
    /// 1.5 bandwidth-delay products (BDP), at first rounded up to whole packets. At 8.337 us and
    /// 400 Gb/s with 4,150-byte packets: BDP 416,850, maximum 625,275, initial 151 x 4,150 =
    /// 626,650.
    //= docs/specs/dctcp.md#DCTCP-6 the first window
    pub const fn new(base_rtt_ps: u64, link_bps: u64, packet_bytes: u32) -> Self {
        let bdp_bytes = bdp_bytes(base_rtt_ps, link_bps);
        let max_window_bytes = bdp_bytes.saturating_add(bdp_bytes / 2);
        let packet = if packet_bytes == 0 { 1 } else { packet_bytes as u64 };
        let bdp_packets = bdp_bytes.div_ceil(packet);
        Self {
            base_rtt_ps,
            slow_rtt_ps: u64::MAX,
            link_bps,
            packet_bytes,
            bdp_packets: if bdp_packets > MAX_BDP_PACKETS as u64 { MAX_BDP_PACKETS } else { bdp_packets as u32 },
            evs: 65_535,
            trimming: false,
            learned: false,
            initial_window_bytes: max_window_bytes.div_ceil(packet).saturating_mul(packet),
            max_window_bytes,
            catch_up_packets: 0,
            seed: None,
            version: 0,
        }
    }

    /// Returns the path with every value brought into its range.
    pub fn clamped(self) -> Self {
        Self {
            base_rtt_ps: self.base_rtt_ps.clamp(1, MAX_RTT_PS),
            link_bps: self.link_bps.clamp(1, MAX_RATE_BPS),
            packet_bytes: self.packet_bytes.clamp(1, 65_535),
            bdp_packets: self.bdp_packets.min(MAX_BDP_PACKETS),
            evs: self.evs.max(1),
            ..self
        }
    }

    /// Returns the path of one of `count` equal parts: its share of the rate and all windows.
    pub fn share(&self, count: u16) -> Self {
        let count = u64::from(count.max(1));
        let part = |value: u64| (value / count).max(1);
        Self {
            link_bps: part(self.link_bps),
            initial_window_bytes: part(self.initial_window_bytes),
            max_window_bytes: if self.max_window_bytes == u64::MAX { u64::MAX } else { part(self.max_window_bytes) },
            ..*self
        }
    }

    /// Returns the present at `time` on this path.
    #[inline]
    pub const fn at(&self, time: Time) -> Now<'_> {
        Now { time, path: self }
    }

    /// Bytes of one bandwidth-delay product.
    pub const fn bdp_bytes(&self) -> u64 {
        bdp_bytes(self.base_rtt_ps, self.link_bps)
    }
}

/// A value derived from settings and path, recomputed when the path has changed.
#[derive(Clone, Debug)]
pub(crate) struct OnPath<T> {
    version: u32,
    value: T,
}

impl<T> OnPath<T> {
    /// Computes the value from the path as it is.
    pub(crate) fn new(path: &Path, derive: impl FnOnce(&Path) -> T) -> Self {
        Self { version: path.version, value: derive(path) }
    }

    #[inline]
    pub(crate) fn follow(&mut self, path: &Path, derive: impl FnOnce(&Path) -> T) {
        if self.version != path.version {
            *self = Self::new(path, derive);
        }
    }
}

impl<T> Deref for OnPath<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// One second: longer than any path, and short enough for sums and shifts.
pub const MAX_RTT_PS: u64 = 1_000_000_000_000;
const MAX_RATE_BPS: u64 = 1_000_000_000_000_000;
const MAX_BDP_PACKETS: u32 = 65_535;
