//! Flowlet switching (Vanini et al., NSDI 2017) by the host: a new path after a gap, as REPS §4.1 runs it with a gap of
//! half an RTT. Clauses (FLOWLET-n) are in `docs/specs/flowlet.md`.

#[cfg(test)]
mod tests;

use rand_core::RngCore;

use super::{AckInfo, Balancer, Ev, LossCause, LossInfo, Offers, PathConfigOf, Scheme, SendInfo, draw, draw_lasting};
use crate::event::Publisher;
use crate::settings::settings;
use crate::units::Micros;

settings! {
    /// The settings of [`Flowlet`].
    pub struct FlowletConfig {
        /// What the gap is measured between: a flowlet ends when nothing of the kind came for longer than `gap_us`.
        pub clock: FlowletClock = FlowletClock::default(),
        /// The gap. By default half the base RTT.
        #[schemars(range(min = 0, max = 1_000_000))]
        pub gap_us: Option<Micros> = None,
        /// Least time between two changes of the path. By default five base RTTs for `feedback`, 0 for `packets`.
        #[schemars(range(min = 0, max = 1_000_000))]
        pub hold_us: Option<Micros> = None,
    }

    /// What a flowlet's gap is measured between.
    #[derive(Default)]
    pub enum FlowletClock {
        /// Feedback, as in REPS's artifact.
        #[default]
        Feedback,
        /// Packets sent.
        Packets,
    }
}

/// Keeps an entropy value until the connection pauses.
#[derive(Clone, Debug)]
pub struct Flowlet {
    state: Burst,
    settings: Settings,
}

impl Scheme for Flowlet {
    type Config = FlowletConfig;

    const STATE_BYTES: usize = size_of::<Burst>();
    const OFFERS: Offers = Offers::NOTHING;

    //= docs/specs/flowlet.md#FLOWLET-1 the first EV
    fn make(own: &FlowletConfig, path: &PathConfigOf<impl Copy>, rng: &mut impl RngCore) -> Self {
        let by_feedback = own.clock == FlowletClock::Feedback;
        let hold_ps = if by_feedback { path.base_rtt_ps.saturating_mul(5) } else { 0 };
        let settings = Settings {
            gap_ps: own.gap_us.map_or(path.base_rtt_ps / 2, Micros::ps),
            hold_ps: own.hold_us.map_or(hold_ps, Micros::ps),
            by_feedback,
            evs: path.ev_count(),
        };
        Self { state: Burst { last_ps: u64::MAX, held_until_ps: 0, ev: draw_lasting(path, 0, rng) }, settings }
    }

    fn adopt(&mut self, fresh: Self) {
        self.settings = fresh.settings;
    }
}

impl Balancer for Flowlet {
    //= docs/specs/flowlet.md#FLOWLET-2 A gap
    //= docs/specs/flowlet.md#FLOWLET-3 holding on
    //= docs/specs/flowlet.md#FLOWLET-4 the clock
    #[inline]
    fn next_ev(&mut self, now_ps: u64, _packet: &SendInfo, rng: &mut impl RngCore) -> Ev {
        let Self { state, settings } = self;
        let is_first = state.last_ps == u64::MAX;
        if !is_first && now_ps.saturating_sub(state.last_ps) > settings.gap_ps && now_ps > state.held_until_ps {
            state.ev = draw(settings.evs, rng);
            state.held_until_ps = now_ps.saturating_add(settings.hold_ps);
        }
        if is_first || !settings.by_feedback {
            state.last_ps = now_ps;
        }
        state.ev
    }

    #[inline]
    fn on_ack(&mut self, now_ps: u64, _ack: &AckInfo, _publisher: &mut impl Publisher) {
        self.on_feedback(now_ps);
    }

    //= docs/specs/flowlet.md#FLOWLET-5 losses
    fn on_loss(&mut self, now_ps: u64, loss: &LossInfo, _publisher: &mut impl Publisher) {
        if loss.cause != LossCause::Timeout {
            self.on_feedback(now_ps);
        }
    }
}

impl Flowlet {
    #[inline]
    fn on_feedback(&mut self, now_ps: u64) {
        if self.settings.by_feedback {
            self.state.last_ps = now_ps;
        }
    }
}

/// What a NIC keeps of a connection.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// When the last packet or feedback came, as `clock` has it; `u64::MAX` before the first packet.
    last_ps: u64,
    held_until_ps: u64,
    ev: Ev,
}

/// What a NIC keeps once for all connections.
#[derive(Clone, Copy, Debug)]
struct Settings {
    gap_ps: u64,
    hold_ps: u64,
    by_feedback: bool,
    evs: u16,
}
