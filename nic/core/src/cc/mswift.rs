//! MSwift: Swift with the median of delays (OFAN §4, §8.3, appendix H): `docs/specs/mswift.md`.

use alloc::boxed::Box;

use super::fixed_point::{FRACTION_BITS, MAX_ACKED_BYTES, ONE, per_window, share, ticks, times, window};
use super::median::Median;
use super::{AckInfo, CongestionControl, LossCause, Now, OnPath, Path, Scheme, Time, part_bytes, settings};
use crate::link::serialisation_floor_ps;
use crate::units::{ByteSize, Ratio};

settings! {
    /// The settings of mSwift.
    pub struct MSwiftConfig {
        /// The delay is the median over this many acknowledgements; 1 makes it Swift.
        #[schemars(range(min = 1, max = 16))]
        pub samples: u8 = 16,
        /// Queue that the target delay permits, over `queue_hops` switches at the sender's rate.
        #[schemars(range(min = 0, max = 4_294_967_296_u64))]
        pub queue_bytes: ByteSize = ByteSize::new(113_000),
        /// Switches that `queue_bytes` refers to, scaled for other paths; 0: the same on all paths.
        pub queue_hops: u8 = 5,
        /// Additive increase, in packets a round trip.
        #[schemars(range(min = 0.001, max = 1_000))]
        pub ai: Ratio = Ratio::permille(1_000),
        /// Share of the excess delay by which a decrease reduces the window.
        #[schemars(range(min = 0, max = 1))]
        pub beta: Ratio = Ratio::permille(800),
        /// Maximum share of one decrease.
        #[schemars(range(min = 0, max = 0.999))]
        pub max_mdf: Ratio = Ratio::permille(500),
        /// Maximum that a small window adds to the target delay, in target delays.
        #[schemars(range(min = 0, max = 100))]
        pub flow_range: Ratio = Ratio::permille(5_000),
        /// Window in packets at which the whole `flow_range` is added. Thousandths count.
        #[schemars(range(min = 0.001, max = 1_000), extend("x-decimals" = 3))]
        pub flow_min_window: Ratio = Ratio::permille(100),
        /// Window in packets from which nothing is added. Thousandths count. By default what is in
        /// flight at the target delay.
        #[schemars(range(min = 0.001, max = 1_000_000), extend("x-decimals" = 3))]
        pub flow_max_window: Option<Ratio> = None,
        /// Minimum window in packets. A window below one packet paces packets.
        #[schemars(range(min = 0.001, max = 1))]
        pub min_window: Ratio = Ratio::permille(10),
        /// Consecutive timeouts after which the window is the least.
        #[schemars(range(min = 1, max = 255))]
        pub reset_timeouts: u8 = 5,
    }
}

/// A window that grows by a packet per round trip, or shrinks in proportion to excess delay.
#[derive(Clone, Debug)]
pub struct MSwift {
    pub(super) state: DelayWindow,
    delays: Box<Median>,
    own: MSwiftConfig,
    settings: OnPath<Settings>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct DelayWindow {
    /// In 2^-16 bytes.
    pub(super) window: u64,
    last_decrease: Option<Time>,
    /// Earliest time of the next packet, while the window is below one.
    next_at: Time,
    /// Median of the latest delays, in ticks.
    delay: u32,
    timeouts: u8,
}

/// [`MSwiftConfig`] on a path: windows in 2^-16 bytes, times in ticks, shares in 2^-16.
#[derive(Clone, Debug)]
struct Settings {
    min_window: u64,
    max_window: u64,
    ai: u64,
    beta: u64,
    max_mdf: u64,
    queue: u32,
    queue_hops: u8,
    reset_timeouts: u8,
    /// The flow-scaling term: `flow_alpha * (1 / sqrt(packets) - flow_from)`, max `flow_range`.
    flow_range: u32,
    flow_alpha: u64,
    flow_from: u64,
}

impl MSwift {
    /// Target delay in ticks over a path of `hops` switches; 0 means `queue_hops`.
    //= docs/specs/mswift.md#MSW-2 target delay
    fn target(&self, path: &Path, hops: u8) -> u32 {
        let Settings { queue, queue_hops, .. } = *self.settings;
        let queue = match (hops, queue_hops) {
            (0, _) | (_, 0) => queue,
            _ => (u64::from(queue) * u64::from(hops) / u64::from(queue_hops)).min(u64::from(u32::MAX)) as u32,
        };
        ticks(path.base_rtt_ps).saturating_add(queue).saturating_add(self.flow_term(path))
    }

    //= docs/specs/mswift.md#MSW-3 flow scaling
    fn flow_term(&self, path: &Path) -> u32 {
        let Settings { flow_range, flow_alpha, flow_from, .. } = *self.settings;
        let root = ((u64::from(path.packet_bytes) << (3 * FRACTION_BITS)) / self.state.window).isqrt();
        match root.checked_sub(flow_from) {
            Some(above) => times(flow_alpha, above).min(u64::from(flow_range)) as u32,
            None => 0,
        }
    }

    //= docs/specs/mswift.md#MSW-4 increase
    fn grow(&mut self, path: &Path, bytes: u64) {
        let Settings { ai, max_window, .. } = *self.settings;
        let packet_bytes = u64::from(path.packet_bytes);
        let window = self.state.window;
        let growth = match window >= packet_bytes << FRACTION_BITS {
            true => per_window(bytes, packet_bytes, window),
            false => bytes << FRACTION_BITS,
        };
        self.state.window = window.saturating_add(times(growth, ai)).min(max_window);
    }

    /// Reduces the window by the share `cut`, at most once per round trip.
    //= docs/specs/mswift.md#MSW-6 one decrease a round trip
    fn shrink(&mut self, now: Now<'_>, cut: u64) {
        let window = self.state.window;
        self.state.window = (window - times(window, cut.min(ONE))).max(self.settings.min_window);
        if self.state.window < window {
            self.state.last_decrease = Some(now.time);
        }
    }

    //= docs/specs/mswift.md#MSW-6 one decrease a round trip
    fn can_decrease(&self, now: Now<'_>) -> bool {
        let rtt_ps = u64::from(self.state.delay) << 10;
        self.state.last_decrease.is_none_or(|last| now.since(last) >= rtt_ps)
    }

    fn is_below_a_packet(&self, path: &Path) -> bool {
        self.state.window < u64::from(path.packet_bytes) << FRACTION_BITS
    }
}

impl Scheme for MSwift {
    type Config = MSwiftConfig;

    const STATE_BYTES: usize = size_of::<DelayWindow>() + size_of::<Median>();

    fn share(own: &MSwiftConfig, count: u64) -> MSwiftConfig {
        MSwiftConfig { queue_bytes: part_bytes(own.queue_bytes, count, 0), ..*own }
    }

    fn make(own: &MSwiftConfig, path: &Path) -> Self {
        let (window, delay) = (first_window(own, path), ticks(path.base_rtt_ps));
        let state = DelayWindow { window, delay, ..DelayWindow::default() };
        let settings = OnPath::new(path, |path| Settings::new(own, path));
        Self { state, delays: Box::new(Median::new(own.samples)), own: *own, settings }
    }
}

impl CongestionControl for MSwift {
    //= docs/specs/mswift.md#MSW-5 decrease
    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo) {
        self.settings.follow(now.path, |path| Settings::new(&self.own, path));
        //= docs/specs/mswift.md#MSW-1 median delay
        let delay = self.delays.push(ticks(ack.rtt_ps));
        self.state.delay = delay;
        self.state.timeouts = 0;
        let target = self.target(now.path, ack.hops);
        if delay < target {
            self.grow(now.path, ack.bytes.min(MAX_ACKED_BYTES));
        } else if self.can_decrease(now) {
            let excess = (u64::from(delay - target) << FRACTION_BITS) / u64::from(delay.max(1));
            self.shrink(now, times(excess, self.settings.beta).min(self.settings.max_mdf));
        }
    }

    //= docs/specs/mswift.md#MSW-7 losses
    fn on_loss(&mut self, now: Now<'_>, _bytes: u32, cause: LossCause) {
        if !self.can_decrease(now) {
            return;
        }
        self.state.timeouts = if cause == LossCause::Timeout { self.state.timeouts.saturating_add(1) } else { 0 };
        let reset = self.state.timeouts >= self.settings.reset_timeouts;
        self.shrink(now, if reset { ONE } else { self.settings.max_mdf });
    }

    //= docs/specs/mswift.md#MSW-9 windows below a packet
    fn on_send(&mut self, now: Now<'_>, _bytes: u32) {
        if self.is_below_a_packet(now.path) {
            let rtt_ps = u128::from(self.state.delay) << 10;
            let packet = u128::from(u64::from(now.path.packet_bytes) << FRACTION_BITS);
            let gap_ps = rtt_ps * packet / u128::from(self.state.window.max(1));
            self.state.next_at = now.after(u64::try_from(gap_ps).unwrap_or(u64::MAX));
        }
    }

    fn window_bytes(&self, path: &Path) -> u64 {
        (self.state.window >> FRACTION_BITS).max(path.packet_bytes.into())
    }

    fn on_start(&mut self, path: &Path) {
        self.state.window = self.state.window.max(first_window(&self.own, path));
    }

    //= docs/specs/mswift.md#MSW-9 windows below a packet
    fn poll_send(&self, now: Now<'_>) -> Time {
        if self.is_below_a_packet(now.path) { self.state.next_at.max(now.time) } else { now.time }
    }
}

impl Settings {
    fn new(own: &MSwiftConfig, path: &Path) -> Self {
        let packet_bytes = u64::from(path.packet_bytes);
        let queue = ticks(serialisation_floor_ps(own.queue_bytes.bytes(), path.link_bps));
        let flow_range = own.flow_range.of(ticks(path.base_rtt_ps).saturating_add(queue).into());
        let flow_range = flow_range.min(u64::from(u32::MAX));
        let flow_max_window = match own.flow_max_window {
            None => (target_bytes(own, path).min(1 << 50) * 1000 / packet_bytes).max(1),
            Some(packets) => packets.to_permille(),
        };
        let min_share = share(own.min_window).clamp(share(Ratio::permille(1)), ONE);
        let flow_from = root_of_inverse(flow_max_window);
        let span = root_of_inverse(own.flow_min_window.to_permille()).saturating_sub(flow_from);
        Self {
            min_window: times(packet_bytes << FRACTION_BITS, min_share).max(1),
            max_window: window(path.max_window_bytes, packet_bytes),
            ai: share(own.ai),
            beta: share(own.beta),
            max_mdf: share(own.max_mdf),
            queue,
            queue_hops: own.queue_hops,
            reset_timeouts: own.reset_timeouts,
            flow_range: flow_range as u32,
            flow_alpha: (flow_range << FRACTION_BITS).checked_div(span).unwrap_or(0),
            flow_from,
        }
    }
}

//= docs/specs/mswift.md#MSW-8 first and largest window
fn first_window(own: &MSwiftConfig, path: &Path) -> u64 {
    window(path.initial_window_bytes.min(target_bytes(own, path)), path.packet_bytes.into())
}

//= docs/specs/mswift.md#MSW-8 first and largest window
fn target_bytes(own: &MSwiftConfig, path: &Path) -> u64 {
    path.bdp_bytes().saturating_add(own.queue_bytes.bytes())
}

/// `1 / sqrt(packets)` in 2^-16, of thousandths of packets.
fn root_of_inverse(thousandths: u64) -> u64 {
    ((1000u64 << (2 * FRACTION_BITS)) / thousandths.max(1)).isqrt()
}
