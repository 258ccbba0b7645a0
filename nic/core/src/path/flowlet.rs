//! Flowlet switching (Vanini et al., NSDI 2017) by the host: a new path after a gap, as REPS §4.1 runs it with a gap of
//! half an RTT. Clauses (FLOWLET-n) are in `docs/specs/flowlet.md`.

#[cfg(test)]
mod tests;

use rand_core::RngCore;

use super::{AckInfo, Balancer, Ev, LossCause, LossInfo, PathConfig, Scheme, SendInfo, draw, draw_lasting};
use crate::event::Publisher;
use crate::params::{AUTO, parameters};

parameters! {
    /// The settings of [`Flowlet`].
    pub struct FlowletConfig {
        /// What ends a flowlet by staying away for longer than the gap: feedback (REPS's simulator), or packets sent.
        clock: Choice(&["feedback", "packets"]), 0, 1, 0;
        /// The gap. By itself half the base RTT.
        gap: Microseconds, 0, 1_000_000_000_000, AUTO;
        /// Time after a change in which the path does not change again. By itself five base RTTs for `feedback`, 0 for
        /// `packets`.
        hold: Microseconds, 0, 1_000_000_000_000, AUTO;
    }
}

/// One entropy value until the connection pauses.
#[derive(Clone, Debug)]
pub struct Flowlet {
    state: State,
    settings: Settings,
}

impl Scheme for Flowlet {
    const STATE_BYTES: usize = size_of::<State>();

    //= docs/specs/flowlet.md#FLOWLET-1
    fn make(config: &PathConfig, rng: &mut impl RngCore) -> Self {
        let flowlet = &config.schemes.flowlet;
        let by_feedback = flowlet.clock == 0;
        let or = |asked: u64, own: u64| if asked == AUTO { own } else { asked };
        let settings = Settings {
            gap_ps: or(flowlet.gap, config.base_rtt_ps / 2),
            hold_ps: or(flowlet.hold, if by_feedback { config.base_rtt_ps.saturating_mul(5) } else { 0 }),
            by_feedback,
            evs: config.ev_count(),
        };
        Self { state: State { last_ps: u64::MAX, held_until_ps: 0, ev: draw_lasting(config, 0, rng) }, settings }
    }
}

impl Balancer for Flowlet {
    //= docs/specs/flowlet.md#FLOWLET-2
    //= docs/specs/flowlet.md#FLOWLET-3
    //= docs/specs/flowlet.md#FLOWLET-4
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

    //= docs/specs/flowlet.md#FLOWLET-5
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
struct State {
    /// When the clock last ticked; `u64::MAX` before the first packet.
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
