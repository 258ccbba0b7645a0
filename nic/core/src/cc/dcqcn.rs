//! DCQCN, RoCE's rate control (Reunion §4; Zhu et al., SIGCOMM 2015): `docs/specs/dcqcn.md`.

use super::fixed_point::after_gap;
use super::{AckInfo, CongestionControl, LossCause, Now, OnPath, Path, Scheme, Time, part_bytes, part_rate, settings};
use crate::link::serialisation_floor_ps;
use crate::units::{ByteSize, Gbps, Micros};

settings! {
    /// The settings of [`Dcqcn`].
    pub struct DcqcnConfig {
        /// Minimum time between two congestion notifications.
        #[schemars(range(min = 0, max = 1_000_000))]
        pub cnp_interval_us: Micros = Micros::new(50),
        /// Time without a notification after which alpha decays, and interval of further decays.
        #[schemars(range(min = 0.001, max = 1_000_000))]
        pub alpha_timer_us: Micros = Micros::new(55),
        /// Time between two increases of the rate.
        #[schemars(range(min = 0.001, max = 1_000_000))]
        pub rate_timer_us: Micros = Micros::new(55),
        /// Bytes sent between two increases of the rate.
        #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
        pub counter_bytes: ByteSize = ByteSize::new(10_000_000),
        /// Increases by timer, or by bytes, that lead back to the rate before the last cut.
        #[schemars(range(min = 0, max = 1_000))]
        pub fast_recovery: u16 = 5,
        /// Alpha moves by one part in this number.
        #[schemars(range(min = 1, max = 65_536))]
        pub gain: u32 = 256,
        /// Step of additive increase. By default a thousandth of the link's rate.
        #[schemars(range(min = 0.000_001, max = 10_000))]
        pub additive_gbps: Option<Gbps> = None,
        /// Step of hyper increase. By default a hundredth of the link's rate.
        #[schemars(range(min = 0.000_001, max = 10_000))]
        pub hyper_gbps: Option<Gbps> = None,
        /// Minimum rate. By default a thousandth of the link's rate.
        #[schemars(range(min = 0.000_001, max = 10_000))]
        pub min_rate_gbps: Option<Gbps> = None,
        /// Whether a lost packet counts as a mark. In NICs it does not: only marks cut the rate,
        /// and `go-back-n` treats every late packet as lost.
        pub losses: bool = true,
        /// Wire bytes that may be in flight, at least a full packet. By default there is no limit.
        #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
        pub window_bytes: Option<ByteSize> = None,
    }
}

/// Paces at a rate. Marks cut it, at most once per interval; time and bytes sent raise it.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    pub(super) state: ReactionPoint,
    own: DcqcnConfig,
    settings: OnPath<Settings>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ReactionPoint {
    /// The present rate, and the one that recovery leads back to, in bits per second.
    pub(super) rate_bps: u64,
    pub(super) target_bps: u64,
    last_cnp: Option<Time>,
    /// When alpha and the timer's count last changed.
    alpha_at: Time,
    timer_at: Time,
    /// Bytes sent since the byte counter's last increase.
    sent_bytes: u64,
    next_at: Time,
    /// Share of marks, in 2^-30.
    pub(super) alpha: u32,
    by_timer: u32,
    by_bytes: u32,
}

#[derive(Clone, Debug)]
struct Settings {
    min_bps: u64,
    additive_bps: u64,
    hyper_bps: u64,
    cnp_interval_ps: u64,
    alpha_timer_ps: u64,
    rate_timer_ps: u64,
    byte_counter: u64,
    window_bytes: u64,
    fast_recovery: u32,
    gain: u32,
    losses: bool,
}

impl Dcqcn {
    /// Takes a mark, which is a notification unless the last one is too recent.
    //= docs/specs/dcqcn.md#DQN-2 notifications
    fn on_congestion(&mut self, now: Now<'_>) {
        let Self { state, settings, .. } = self;
        if state.last_cnp.is_some_and(|last| now.since(last) < settings.cnp_interval_ps) {
            return;
        }
        //= docs/specs/dcqcn.md#DQN-3 rate decrease
        state.target_bps = state.rate_bps;
        let cut = ((u128::from(state.rate_bps) * u128::from(state.alpha)) >> (ALPHA_BITS + 1)) as u64;
        state.rate_bps = (state.rate_bps - cut).max(settings.min_bps);
        state.alpha = state.alpha - state.alpha / settings.gain + ALPHA_ONE / settings.gain;
        (state.last_cnp, state.alpha_at, state.timer_at) = (Some(now.time), now.time, now.time);
        (state.by_timer, state.by_bytes, state.sent_bytes) = (0, 0, 0);
    }

    /// Applies what timers would have done by now.
    //= docs/specs/dcqcn.md#DQN-7 lazy timers
    fn advance(&mut self, now: Now<'_>) {
        self.settings.follow(now.path, |path| Settings::new(&self.own, path));
        let Self { state, settings, .. } = self;
        if state.last_cnp.is_none() {
            return;
        }
        let alpha_ps = now.since(state.alpha_at);
        if alpha_ps >= settings.alpha_timer_ps {
            self.decay(alpha_ps);
        }
        let timer_ps = now.since(self.state.timer_at);
        if timer_ps >= self.settings.rate_timer_ps {
            self.tick(timer_ps, now.path.link_bps);
        }
    }

    //= docs/specs/dcqcn.md#DQN-4 decrease of alpha
    #[cold]
    fn decay(&mut self, since_ps: u64) {
        let Self { state, settings, .. } = self;
        let times = since_ps / settings.alpha_timer_ps;
        state.alpha_at = state.alpha_at.after(times * settings.alpha_timer_ps);
        let keep = (1u64 << KEEP_BITS) - (1u64 << KEEP_BITS) / u64::from(settings.gain);
        state.alpha = ((u128::from(state.alpha) * u128::from(power(keep, times))) >> KEEP_BITS) as u32;
    }

    //= docs/specs/dcqcn.md#DQN-5 triggers of a rate increase
    #[cold]
    fn tick(&mut self, since_ps: u64, link_bps: u64) {
        let times = since_ps / self.settings.rate_timer_ps;
        self.state.timer_at = self.state.timer_at.after(times * self.settings.rate_timer_ps);
        for _ in 0..times.min(MAX_TICKS) {
            self.state.by_timer = self.state.by_timer.saturating_add(1);
            self.increase(link_bps);
        }
    }

    //= docs/specs/dcqcn.md#DQN-6 size of a rate increase
    fn increase(&mut self, link_bps: u64) {
        let Self { state, settings, .. } = self;
        let (most, least) = (state.by_timer.max(state.by_bytes), state.by_timer.min(state.by_bytes));
        let step_bps = if least > settings.fast_recovery {
            settings.hyper_bps.saturating_mul(u64::from(least - settings.fast_recovery))
        } else if most > settings.fast_recovery {
            settings.additive_bps
        } else {
            0
        };
        state.target_bps = state.target_bps.saturating_add(step_bps).min(link_bps);
        state.rate_bps = state.rate_bps.midpoint(state.target_bps);
    }
}

impl Scheme for Dcqcn {
    type Config = DcqcnConfig;

    const STATE_BYTES: usize = size_of::<ReactionPoint>();

    fn share(own: &DcqcnConfig, count: u64) -> DcqcnConfig {
        let rate = |rate: Option<Gbps>| rate.map(|rate| part_rate(rate, count));
        DcqcnConfig {
            counter_bytes: part_bytes(own.counter_bytes, count, 1),
            additive_gbps: rate(own.additive_gbps),
            hyper_gbps: rate(own.hyper_gbps),
            min_rate_gbps: rate(own.min_rate_gbps),
            window_bytes: own.window_bytes.map(|bytes| part_bytes(bytes, count, 1)),
            ..*own
        }
    }

    fn make(own: &DcqcnConfig, path: &Path) -> Self {
        let settings = OnPath::new(path, |path| Settings::new(own, path));
        //= docs/specs/dcqcn.md#DQN-1 initial rate
        let state = ReactionPoint {
            rate_bps: path.link_bps,
            target_bps: path.link_bps,
            alpha: ALPHA_ONE,
            ..ReactionPoint::default()
        };
        Self { state, own: *own, settings }
    }
}

impl CongestionControl for Dcqcn {
    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo) {
        self.advance(now);
        if ack.marked || ack.marked_packets > 0 {
            self.on_congestion(now);
        }
    }

    //= docs/specs/dcqcn.md#DQN-8 losses
    fn on_loss(&mut self, now: Now<'_>, _bytes: u32, _cause: LossCause) {
        if self.settings.losses {
            self.advance(now);
            self.on_congestion(now);
        }
    }

    fn on_send(&mut self, now: Now<'_>, bytes: u32) {
        self.advance(now);
        //= docs/specs/dcqcn.md#DQN-9 pacing
        let gap_ps = serialisation_floor_ps(u64::from(bytes), self.state.rate_bps);
        self.state.next_at = after_gap(self.state.next_at, now.time, gap_ps, now.path.catch_up_packets.into());
        //= docs/specs/dcqcn.md#DQN-5 triggers of a rate increase
        self.state.sent_bytes = self.state.sent_bytes.saturating_add(u64::from(bytes));
        if self.state.sent_bytes >= self.settings.byte_counter && self.state.last_cnp.is_some() {
            self.state.sent_bytes = 0;
            self.state.by_bytes = self.state.by_bytes.saturating_add(1);
            self.increase(now.path.link_bps);
        }
    }

    fn window_bytes(&self, path: &Path) -> u64 {
        self.settings.window_bytes.max(path.packet_bytes.into())
    }

    //= docs/specs/dcqcn.md#DQN-10 a learned rate
    fn on_start(&mut self, path: &Path) {
        if self.state.last_cnp.is_none() {
            (self.state.rate_bps, self.state.target_bps) = (path.link_bps, path.link_bps);
        }
    }

    fn poll_send(&self, now: Now<'_>) -> Time {
        self.state.next_at.max(now.time)
    }
}

impl Settings {
    fn new(own: &DcqcnConfig, path: &Path) -> Self {
        let link_bps = path.link_bps;
        let share = |asked: Option<Gbps>, part: u64| asked.map_or(link_bps / part, Gbps::bps).max(1);
        Self {
            min_bps: share(own.min_rate_gbps, 1000).min(link_bps),
            additive_bps: share(own.additive_gbps, 1000),
            hyper_bps: share(own.hyper_gbps, 100),
            cnp_interval_ps: own.cnp_interval_us.ps(),
            alpha_timer_ps: own.alpha_timer_us.ps().max(1),
            rate_timer_ps: own.rate_timer_us.ps().max(1),
            byte_counter: own.counter_bytes.bytes().max(1),
            window_bytes: own.window_bytes.map_or(u64::MAX, ByteSize::bytes),
            fast_recovery: own.fast_recovery.min(1000).into(),
            gain: own.gain.clamp(1, 65_536),
            losses: own.losses,
        }
    }
}

/// `share^times`, both shares in 2^-32.
fn power(share: u64, mut times: u64) -> u64 {
    let multiply = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> KEEP_BITS) as u64;
    let (mut result, mut square) = (1u64 << KEEP_BITS, share);
    while times > 0 && result > 0 {
        if times & 1 == 1 {
            result = multiply(result, square);
        }
        square = multiply(square, square);
        times >>= 1;
    }
    result
}

const ALPHA_BITS: u32 = 30;
const ALPHA_ONE: u32 = 1 << ALPHA_BITS;
/// Alpha's decay factor is in 2^-32.
const KEEP_BITS: u32 = 32;

/// Maximum increases in a silence, 14 ms by default. Only with tiny steps is the rate still lower.
const MAX_TICKS: u64 = 256;
