//! NSCC, Ultra Ethernet 1.0's network signalled congestion control, as in its public artifact.

use super::fixed_point::{FRACTION_BITS, MAX_ACKED_BYTES, MAX_WINDOW_BYTES, ONE, share, ticks, times, window};
use super::{AckInfo, CongestionControl, LossCause, Now, OnPath, Path, Scheme, Time, settings};
use crate::units::{Micros, Ratio};

settings! {
    /// The settings of [`Nscc`].
    pub struct NsccConfig {
        /// Target queueing delay. By default three quarters of the base round-trip time.
        #[schemars(range(min = 0.001, max = 1_000_000))]
        pub target_delay_us: Option<Micros> = None,
        /// Delay, in target delays, above which quick adapt sets the window to the bytes delivered.
        #[schemars(range(min = 0, max = 1_000))]
        pub quick_delay: Ratio = Ratio::permille(4_000),
        /// Quick adapt needs fewer delivered bytes than the largest window halved this many times.
        #[schemars(range(min = 0, max = 16))]
        pub quick_gate: u8 = 3,
        /// Growth in packets per round trip without delay, on the reference network.
        #[schemars(range(min = 0, max = 1_000))]
        pub proportional: Ratio = Ratio::permille(4_000),
        /// As `proportional`, on unmarked acknowledgements above the target delay.
        #[schemars(range(min = 0, max = 1_000))]
        pub fair: Ratio = Ratio::permille(5_000),
        /// Share of the acknowledged bytes that fast increase adds, on the reference network.
        #[schemars(range(min = 0, max = 1_000))]
        pub fast: Ratio = Ratio::permille(250),
        /// Delay below which a whole window of acknowledgements begins a fast increase.
        #[schemars(range(min = 0, max = 1_000_000))]
        pub fast_delay_us: Micros = Micros::new(1),
        /// Growth in packets per round trip at all times, on the reference network.
        #[schemars(range(min = 0, max = 1_000))]
        pub eta: Ratio = Ratio::permille(150),
        /// Share of the excess of the average delay by which a decrease reduces the window.
        #[schemars(range(min = 0, max = 1))]
        pub gamma: Ratio = Ratio::permille(800),
        /// Maximum share of one decrease.
        #[schemars(range(min = 0, max = 0.999))]
        pub max_decrease: Ratio = Ratio::permille(500),
        /// Acknowledgements that the average delay spans: each moves it by one part in this number.
        #[schemars(range(min = 1, max = 65_536))]
        pub average: u32 = 80,
        /// Packets acknowledged between two adjustments of the window.
        #[schemars(range(min = 0, max = 65_536))]
        pub adjust_packets: u32 = 8,
    }
}

/// A window in bytes. Four cases of mark and delay move it.
#[derive(Clone, Debug)]
pub struct Nscc {
    pub(super) state: Adaptation,
    own: NsccConfig,
    settings: OnPath<Settings>,
}

/// The window and what moves it. Before the first acknowledgement all but the window is zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Adaptation {
    /// In 2^-16 bytes.
    pub(super) window: u64,
    /// Growth that is not added yet, in 2^-16 bytes times the window's bytes.
    increase: u64,
    /// Bytes acknowledged since the last adjustment, in this quick-adapt period, since the last.
    received: u64,
    achieved: u64,
    ignored: u64,
    /// Bytes that were in flight at the last quick adapt.
    to_ignore: u64,
    in_flight: u64,
    quick_end: Time,
    last_adjust: Time,
    last_decrease: Time,
    /// Average delay in 2^-16 ticks.
    pub(super) average: u64,
    /// Bytes acknowledged in a row with hardly any delay.
    clear: u64,
    pub(super) is_fast: bool,
    lost: bool,
}

/// [`NsccConfig`] on a path: windows in 2^-16 bytes, shares in 2^-16, delays in ticks.
#[derive(Clone, Debug)]
struct Settings {
    target_ps: u64,
    target: u32,
    quick: u64,
    quick_below: u64,
    min_window: u64,
    max_window: u64,
    /// Growth per window of acknowledgements, in 2^-16 bytes.
    proportional: u64,
    fair: u64,
    fast: u64,
    fast_below: u32,
    eta: u64,
    gamma: u64,
    max_decrease: u64,
    average: u64,
    adjust_bytes: u64,
}

impl Nscc {
    /// Quick adapt: under severe congestion sets the window to the few bytes delivered. Returns
    /// whether the feedback needs no further reaction, such as bad feedback on older packets.
    //= docs/specs/nscc.md#NSC-4 quick adapt
    fn quick_adapt(&mut self, now: Now<'_>, lost: bool, bad: bool, delay: u32) -> bool {
        let Self { state, settings, .. } = self;
        let mut done = bad && state.ignored < state.to_ignore;
        if !done && now.time > state.quick_end {
            let reason = state.lost || lost || u64::from(delay) > settings.quick;
            if state.quick_end != Time::ZERO && reason && state.achieved < settings.quick_below {
                let achieved = (state.achieved << FRACTION_BITS).max(settings.min_window);
                state.window = state.window.min(achieved);
                (state.to_ignore, state.ignored) = (state.in_flight, 0);
                state.lost = false;
                done = true;
            }
            state.achieved = 0;
            state.quick_end = now.after(now.path.base_rtt_ps + settings.target_ps);
        }
        if done {
            (state.increase, state.received) = (0, 0);
        }
        done
    }

    //= docs/specs/nscc.md#NSC-5 four cases
    fn increase(&mut self, per: u64, bytes: u64) {
        self.state.increase = self.state.increase.saturating_add(per.saturating_mul(bytes));
    }

    //= docs/specs/nscc.md#NSC-6 proportional increase
    fn proportional_increase(&mut self, bytes: u64, delay: u32) {
        if self.fast_increase(bytes, delay) {
            return;
        }
        let Settings { target, proportional, .. } = *self.settings;
        let room = (u64::from(target - delay) << FRACTION_BITS) / u64::from(target);
        self.increase(times(proportional, room), bytes);
    }

    //= docs/specs/nscc.md#NSC-7 fast increase
    fn fast_increase(&mut self, bytes: u64, delay: u32) -> bool {
        let Self { state, settings, .. } = self;
        let clear = delay < settings.fast_below;
        state.clear = if clear { state.clear.saturating_add(bytes) } else { 0 };
        state.is_fast = clear && (state.is_fast || state.clear > state.window >> FRACTION_BITS);
        if state.is_fast {
            state.window = state.window.saturating_add(times(bytes << FRACTION_BITS, settings.fast));
        }
        state.is_fast
    }

    //= docs/specs/nscc.md#NSC-8 multiplicative decrease
    fn decrease(&mut self, now: Now<'_>) {
        let Self { state, settings, .. } = self;
        (state.is_fast, state.clear) = (false, 0);
        let target = u64::from(settings.target) << FRACTION_BITS;
        let since_ps = now.since(state.last_decrease);
        if state.average > target && since_ps > now.path.base_rtt_ps {
            let excess = ((state.average - target) << FRACTION_BITS) / state.average;
            let cut = times(excess, settings.gamma).min(settings.max_decrease);
            state.window -= times(state.window, cut);
            state.last_decrease = now.time;
        }
    }

    /// Counts a loss; may run quick adapt. Returns whether no further reaction is needed.
    //= docs/specs/nscc.md#NSC-10 losses
    pub(super) fn adapt_to_loss(&mut self, now: Now<'_>, bytes: u32, cause: LossCause) -> bool {
        self.settings.follow(now.path, |path| Settings::new(&self.own, path));
        self.on_go_back(bytes);
        if !cause.is_trim() {
            return false;
        }
        self.state.ignored = self.state.ignored.saturating_add(bytes.into()).min(MAX_WINDOW_BYTES);
        self.average(ticks(now.path.base_rtt_ps));
        self.state.lost = true;
        self.quick_adapt(now, true, true, 0)
    }

    //= docs/specs/nscc.md#NSC-10 losses
    pub(super) fn decrease_by(&mut self, bytes: u32) {
        self.state.window = self.state.window.saturating_sub(u64::from(bytes) << FRACTION_BITS);
        self.limit();
    }

    //= docs/specs/nscc.md#NSC-9 when growth is added
    fn adjust(&mut self, now: Now<'_>) {
        let Self { state, settings, .. } = self;
        let since_ps = now.since(state.last_adjust);
        if state.received <= settings.adjust_bytes && since_ps <= now.path.base_rtt_ps {
            return;
        }
        let grown = (u128::from(state.increase) << FRACTION_BITS) / u128::from(state.window.max(1));
        state.window = state.window.saturating_add(u64::try_from(grown).unwrap_or(u64::MAX));
        if since_ps >= now.path.base_rtt_ps {
            state.window = state.window.saturating_add(settings.eta);
            state.last_adjust = now.time;
        }
        (state.increase, state.received) = (0, 0);
        self.limit();
    }

    //= docs/specs/nscc.md#NSC-3 average delay
    fn average(&mut self, delay: u32) {
        let Self { state, settings, .. } = self;
        state.average =
            state.average - state.average / settings.average + (u64::from(delay) << FRACTION_BITS) / settings.average;
    }

    //= docs/specs/nscc.md#NSC-2 delay
    fn delay(&mut self, base_rtt_ps: u64, rtt_ps: u64, marked: bool) -> u32 {
        let target = self.settings.target;
        let Some(delay_ps) = rtt_ps.checked_sub(base_rtt_ps) else {
            return (self.state.average >> FRACTION_BITS).min(u64::from(u32::MAX)) as u32;
        };
        let delay = ticks(delay_ps);
        //= docs/specs/nscc.md#NSC-3 average delay
        self.average(if !marked && delay > target { ticks(base_rtt_ps / 4) } else { delay });
        delay
    }

    //= docs/specs/nscc.md#NSC-1 scaled constants
    fn limit(&mut self) {
        self.state.window = self.state.window.clamp(self.settings.min_window, self.settings.max_window);
    }
}

impl Scheme for Nscc {
    type Config = NsccConfig;

    const STATE_BYTES: usize = size_of::<Adaptation>();

    fn make(own: &NsccConfig, path: &Path) -> Self {
        let first = window(path.initial_window_bytes, path.packet_bytes.into());
        let settings = OnPath::new(path, |path| Settings::new(own, path));
        Self { state: Adaptation { window: first, ..Adaptation::default() }, own: *own, settings }
    }
}

impl CongestionControl for Nscc {
    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo) {
        self.settings.follow(now.path, |path| Settings::new(&self.own, path));
        let bytes = ack.bytes.min(MAX_ACKED_BYTES);
        let state = &mut self.state;
        state.in_flight = ack.in_flight_bytes;
        for count in [&mut state.received, &mut state.achieved, &mut state.ignored] {
            *count = count.saturating_add(bytes).min(MAX_WINDOW_BYTES);
        }
        let delay = self.delay(now.path.base_rtt_ps, ack.rtt_ps, ack.marked);
        if self.quick_adapt(now, false, ack.marked, delay) {
            self.limit();
            return;
        }
        //= docs/specs/nscc.md#NSC-5 four cases
        match (ack.marked, delay >= self.settings.target) {
            (false, true) => self.increase(self.settings.fair, bytes),
            (false, false) => self.proportional_increase(bytes, delay),
            (true, true) => self.decrease(now),
            (true, false) => {}
        }
        self.limit();
        self.adjust(now);
    }

    fn on_loss(&mut self, now: Now<'_>, bytes: u32, cause: LossCause) {
        if !self.adapt_to_loss(now, bytes, cause) {
            self.decrease_by(bytes);
        }
    }

    fn on_go_back(&mut self, bytes: u32) {
        self.state.in_flight = self.state.in_flight.saturating_sub(u64::from(bytes));
    }

    fn on_send(&mut self, _now: Now<'_>, bytes: u32) {
        self.state.in_flight = self.state.in_flight.saturating_add(u64::from(bytes));
    }

    fn window_bytes(&self, _path: &Path) -> u64 {
        self.state.window >> FRACTION_BITS
    }

    fn on_start(&mut self, path: &Path) {
        self.state.window = self.state.window.max(window(path.initial_window_bytes, path.packet_bytes.into()));
    }
}

impl Settings {
    fn new(own: &NsccConfig, path: &Path) -> Self {
        let packet_bytes = u64::from(path.packet_bytes);
        let target_ps = own.target_delay_us.map_or(path.base_rtt_ps / 4 * 3, Micros::ps);
        let target = ticks(target_ps).max(1);
        //= docs/specs/nscc.md#NSC-1 scaled constants
        let bdp = path.bdp_bytes().min(MAX_WINDOW_BYTES);
        let scaled = |bytes: u64, ratio: Ratio| {
            let product = u128::from(bdp) * u128::from(bytes) * u128::from(ratio.ppm());
            let scaled = (product << FRACTION_BITS) / u128::from(REFERENCE_BDP_BYTES * 1_000_000);
            scaled.min(u128::from(MAX_WINDOW_BYTES << FRACTION_BITS)) as u64
        };
        let delay_scale = (target_ps << FRACTION_BITS) / REFERENCE_RTT_PS;
        let max_window = window(path.max_window_bytes, packet_bytes);
        Self {
            target_ps,
            target,
            quick: own.quick_delay.of(target.into()),
            quick_below: max_window >> FRACTION_BITS >> own.quick_gate.min(16),
            min_window: packet_bytes << FRACTION_BITS,
            max_window,
            proportional: times(scaled(packet_bytes, own.proportional), delay_scale),
            fair: scaled(packet_bytes, own.fair),
            fast: scaled(1, own.fast),
            fast_below: ticks(own.fast_delay_us.ps()),
            eta: scaled(packet_bytes, own.eta),
            gamma: share(own.gamma).min(ONE),
            max_decrease: share(own.max_decrease),
            average: own.average.max(1).into(),
            adjust_bytes: u64::from(own.adjust_packets).saturating_mul(packet_bytes),
        }
    }
}

/// The network that the constants are for: 100 Gb/s and 12 us.
const REFERENCE_RTT_PS: u64 = 12_000_000;
const REFERENCE_BDP_BYTES: u64 = 150_000;
