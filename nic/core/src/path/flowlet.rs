//! Flowlets (Vanini et al., NSDI 2017) by a gap at the host (REPS §4.1): `docs/specs/flowlet.md`.

#[cfg(test)]
mod tests;

use super::{
    AckInfo, Balancer, Ev, LossCause, LossInfo, Now, Path, Publisher, Rng, Scheme, SendInfo, Time, draw, draw_lasting,
    settings,
};
use crate::units::Micros;

settings! {
    /// The settings of [`Flowlet`].
    pub struct FlowletConfig {
        /// What the gap is measured between: a flowlet ends after a gap of more than `gap_us`.
        pub clock: FlowletClock = FlowletClock::default(),
        /// The gap. By default half the base RTT.
        #[schemars(range(min = 0, max = 1_000_000))]
        pub gap_us: Option<Micros> = None,
        /// Minimum time between changes. By default five base RTTs for `feedback`, 0 for `packets`.
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
    settings: FlowletConfig,
}

impl Scheme for Flowlet {
    type Config = FlowletConfig;

    const STATE_BYTES: usize = size_of::<Burst>();

    //= docs/specs/flowlet.md#FLOWLET-1 the first EV
    fn make(own: &FlowletConfig, path: &Path, rng: &mut Rng) -> Self {
        Self {
            state: Burst { last_at: Time::NEVER, held_until: Time::ZERO, ev: draw_lasting(path, 0, rng) },
            settings: *own,
        }
    }
}

impl Balancer for Flowlet {
    //= docs/specs/flowlet.md#FLOWLET-2 A gap
    //= docs/specs/flowlet.md#FLOWLET-3 minimum hold time
    //= docs/specs/flowlet.md#FLOWLET-4 the clock
    fn next_ev(&mut self, now: Now<'_>, _packet: &SendInfo, rng: &mut Rng) -> Ev {
        let Self { state, settings } = self;
        let (is_first, by_feedback) = (state.last_at == Time::NEVER, settings.clock == FlowletClock::Feedback);
        let gap_ps = settings.gap_us.map_or(now.path.base_rtt_ps / 2, Micros::ps);
        if !is_first && now.since(state.last_at) > gap_ps && now.time > state.held_until {
            state.ev = draw(now.path.evs, rng);
            let hold_ps = if by_feedback { 5 * now.path.base_rtt_ps } else { 0 };
            state.held_until = now.after(settings.hold_us.map_or(hold_ps, Micros::ps));
        }
        if is_first || !by_feedback {
            state.last_at = now.time;
        }
        state.ev
    }

    fn on_ack(&mut self, now: Now<'_>, _ack: &AckInfo, _publisher: &mut dyn Publisher) {
        self.on_feedback(now);
    }

    //= docs/specs/flowlet.md#FLOWLET-5 losses
    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        if loss.cause != LossCause::Timeout {
            self.on_feedback(now);
        }
    }
}

impl Flowlet {
    fn on_feedback(&mut self, now: Now<'_>) {
        if self.settings.clock == FlowletClock::Feedback {
            self.state.last_at = now.time;
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    /// Time of the last packet or feedback; [`Time::NEVER`] before the first packet.
    last_at: Time,
    held_until: Time,
    ev: Ev,
}
