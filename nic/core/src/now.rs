//! The present, as balancers and congestion controls see it: the time, and what is known of the path.

use core::ops::Deref;

use crate::Time;
use crate::link::bdp_bytes;

/// The present. Time never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// The time.
    pub time: Time,
    /// What is known of the path.
    pub path: &'a Path,
}

/// What is known of the path to a peer, and the bounds that a connection keeps to on it. A connection has one, which balancer and
/// congestion control get at each call; one that [learns](crate::flow::FlowConfig::learns_path) its path changes it while it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Round-trip time without queues, in picoseconds: 1 to 10^12, which is a second.
    pub base_rtt_ps: u64,
    /// Round-trip time from which on a packet's path is slower than the others, as far as that is known; [`u64::MAX`] where it is not.
    pub slow_rtt_ps: u64,
    /// Rate of the sender's link, in bits per second: 1 to 10^15. Where it is learned, twice the rate at which packets arrive.
    pub link_bps: u64,
    /// Wire bytes of a full packet, headers included: the step of growth and the least window. 1 to 65,535.
    pub packet_bytes: u32,
    /// Packets in one bandwidth-delay product (REPS's NUM_PKTS_BDP), at most 65,535. So many explore after freezing.
    pub bdp_packets: u32,
    /// Size of the set of entropy values, 1 to 65,535. The paper has 65,535. With few values many connections share links, which costs
    /// OPS much and REPS little (REPS §4.5.2).
    pub evs: u16,
    /// The network trims. Every other loss then means a failed path (REPS appendix A).
    pub trimming: bool,
    /// Round-trip time and rate come from the connection's own acknowledgements.
    pub learned: bool,
    /// Window before the first feedback, in wire bytes. It may exceed `max_window_bytes`; the first acknowledgement cuts it.
    pub initial_window_bytes: u64,
    /// Largest window that growth reaches, at most 2^40 wire bytes. It is the window of `fixed-rate`; there `u64::MAX` means no limit.
    pub max_window_bytes: u64,
    /// Most packets by which a paced sender that comes late makes up for it. A general-purpose kernel runs a thread late, or the thread
    /// has other things to do. 0: it is never late.
    pub catch_up_packets: u32,
    /// Seed of a connection's lasting choices, such as `ecmp`'s path, so that every engine makes the same ones. `None` draws them from
    /// the generator at hand.
    pub seed: Option<u64>,
    /// Counts the changes of what is known, for those that cache what follows from it.
    pub version: u32,
}

impl Now<'_> {
    /// The time `ps` picoseconds from now.
    #[inline]
    pub const fn after(self, ps: u64) -> Time {
        self.time.after(ps)
    }

    /// How long ago `at` was, in picoseconds; 0 for what is to come.
    #[inline]
    pub const fn since(self, at: Time) -> u64 {
        self.time.since(at)
    }
}

impl Path {
    /// The reference settings for a path: 65,535 entropy values, no trimming, and a window of at most 1.5 bandwidth-delay products (BDP).
    /// The first window is that, rounded up to whole packets.
    ///
    /// At 8.337 us and 400 Gb/s with 4,150-byte packets: BDP 416,850, largest 625,275, initial 151 x 4,150 = 626,650.
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

    /// The path with every value brought into its range.
    pub fn sanitised(self) -> Self {
        Self {
            base_rtt_ps: self.base_rtt_ps.clamp(1, MAX_RTT_PS),
            link_bps: self.link_bps.clamp(1, MAX_RATE_BPS),
            packet_bytes: self.packet_bytes.clamp(1, 65_535),
            bdp_packets: self.bdp_packets.min(MAX_BDP_PACKETS),
            evs: self.evs.max(1),
            ..self
        }
    }

    /// What one of `count` equal parts of the connection has of it: its share of the rate and of all windows.
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

    /// A time on this path.
    #[inline]
    pub const fn at(&self, time: Time) -> Now<'_> {
        Now { time, path: self }
    }

    /// Bytes of one bandwidth-delay product.
    pub const fn bdp_bytes(&self) -> u64 {
        bdp_bytes(self.base_rtt_ps, self.link_bps)
    }
}

/// What follows from settings and path. It is worked out anew when what is known of the path has changed.
#[derive(Clone, Debug)]
pub(crate) struct OnPath<T> {
    version: u32,
    value: T,
}

impl<T> OnPath<T> {
    /// What `work_out` makes of the path as it is.
    pub(crate) fn new(path: &Path, work_out: impl FnOnce(&Path) -> T) -> Self {
        Self { version: path.version, value: work_out(path) }
    }

    #[inline]
    pub(crate) fn follow(&mut self, path: &Path, work_out: impl FnOnce(&Path) -> T) {
        if self.version != path.version {
            *self = Self::new(path, work_out);
        }
    }
}

impl<T> Deref for OnPath<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

/// A second: longer than any path, and short enough for sums and shifts.
pub const MAX_RTT_PS: u64 = 1_000_000_000_000;
/// A petabit a second.
const MAX_RATE_BPS: u64 = 1_000_000_000_000_000;
/// Most packets of a bandwidth-delay product that balancers count to.
const MAX_BDP_PACKETS: u32 = 65_535;
