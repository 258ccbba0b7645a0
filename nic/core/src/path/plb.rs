//! PLB, protective load balancing (Qureshi et al., SIGCOMM 2022): one path for as long as it is not congested, as REPS
//! (§4.1) and OFAN (§3.2, scheme 3) run it, and as Linux does. Clauses (PLB-n) are in `docs/specs/plb.md`.

#[cfg(test)]
mod tests;

use rand_core::RngCore;

use super::{AckInfo, Balancer, Ev, LossCause, LossInfo, PathConfig, Scheme, SendInfo, draw, draw_lasting};
use crate::event::Publisher;
use crate::params::{AUTO, parameters};

parameters! {
    /// The settings of [`Plb`].
    pub struct PlbConfig {
        /// Whose version gives the settings left at `auto`: that of REPS's simulator, of OFAN, or of the PLB paper and Linux.
        variant: Choice(&["reps", "ofan", "linux"]), 0, 2, 0;
        /// A round is congested when more than this share of its packets was marked or lost (`linux`: this share or more).
        /// By itself 0 (`reps`), 0.4 (`ofan`), 0.5 (`linux`).
        marked_share: Ratio, 0, 1_000, AUTO;
        /// Congested rounds in a row that change the path. By itself 2 (`reps`), 1 (`ofan`), 12 (`linux`).
        rounds: Count, 1, 255, AUTO;
        /// Congested rounds in a row that change the path where nothing is in flight. By itself 3 (`linux`), as `rounds`
        /// otherwise.
        idle_rounds: Count, 1, 255, AUTO;
        /// Length of a round measured by time. By itself the base RTT.
        round: Microseconds, 1, 1_000_000_000_000, AUTO;
        /// Acknowledged packets in a round; 0 measures it by time. By itself those of a BDP (`ofan`), 0 otherwise.
        round_packets: Count, 0, 1 << 24, AUTO;
        /// Time after a change for a timeout in which no other timeout changes the path. By itself five base RTTs (`reps`),
        /// 0 otherwise.
        timeout_hold: Microseconds, 0, 1_000_000_000_000, AUTO;
        /// Time after a timeout in which congestion does not change the path. By itself 60 s (`linux`), 0 otherwise.
        suspend: Microseconds, 0, 1_000_000_000_000_000, AUTO;
    }
}

/// One entropy value until its path stays congested, or a packet on it times out.
#[derive(Clone, Debug)]
pub struct Plb {
    state: State,
    settings: Settings,
}

impl Plb {
    /// Takes note of packets that came back, and at the end of a round of what they say.
    //= docs/specs/plb.md#PLB-2
    //= docs/specs/plb.md#PLB-3
    //= docs/specs/plb.md#PLB-4
    #[inline]
    fn count(&mut self, now_ps: u64, packets: u16, congested: u16) {
        let Self { state, settings } = self;
        state.delivered = state.delivered.saturating_add(packets.into());
        state.congested = state.congested.saturating_add(congested.into());
        if settings.ends_round(now_ps, state) {
            state.rounds = if settings.is_congested(state) { state.rounds.saturating_add(1) } else { 0 };
            (state.delivered, state.congested) = (0, 0);
            state.round_end_ps = now_ps.saturating_add(settings.round_ps);
        }
    }

    //= docs/specs/plb.md#PLB-5
    //= docs/specs/plb.md#PLB-6
    #[inline]
    fn is_congested_for_long(&self, now_ps: u64, packet: &SendInfo) -> bool {
        let Self { state, settings } = self;
        let enough = if packet.in_flight_bytes == 0 { settings.idle_rounds } else { settings.rounds };
        state.rounds >= enough && now_ps >= state.suspended_until_ps
    }

    //= docs/specs/plb.md#PLB-7
    //= docs/specs/plb.md#PLB-8
    fn on_timeout(&mut self, now_ps: u64) {
        let Self { state, settings } = self;
        state.suspended_until_ps = now_ps.saturating_add(settings.suspend_ps);
        if now_ps > state.hold_until_ps {
            state.hold_until_ps = now_ps.saturating_add(settings.timeout_hold_ps);
            state.move_away();
        }
    }
}

impl Scheme for Plb {
    const STATE_BYTES: usize = size_of::<State>();

    //= docs/specs/plb.md#PLB-1
    fn make(config: &PathConfig, rng: &mut impl RngCore) -> Self {
        let state = State { ev: draw_lasting(config, 0, rng), ..State::default() };
        Self { state, settings: Settings::new(config) }
    }
}

impl Balancer for Plb {
    #[inline]
    fn next_ev(&mut self, now_ps: u64, packet: &SendInfo, rng: &mut impl RngCore) -> Ev {
        if self.is_congested_for_long(now_ps, packet) {
            self.state.move_away();
        }
        if self.state.moves {
            self.state.moves = false;
            self.state.ev = draw(self.settings.evs, rng);
        }
        self.state.ev
    }

    #[inline]
    fn on_ack(&mut self, now_ps: u64, ack: &AckInfo, _publisher: &mut impl Publisher) {
        self.count(now_ps, ack.packets, ack.marked_packets);
    }

    fn on_loss(&mut self, now_ps: u64, loss: &LossInfo, _publisher: &mut impl Publisher) {
        if loss.cause == LossCause::Timeout {
            self.on_timeout(now_ps);
        } else {
            self.count(now_ps, 1, 1);
        }
    }
}

/// What a NIC keeps of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Feedback later than this ends a round that time measures.
    round_end_ps: u64,
    /// Timeouts up to then change nothing.
    hold_until_ps: u64,
    /// Congestion before then changes nothing.
    suspended_until_ps: u64,
    /// Packets of this round that came back.
    delivered: u32,
    /// How many of them were marked or lost.
    congested: u32,
    ev: Ev,
    /// Congested rounds in a row.
    rounds: u8,
    /// The next packet takes a new path.
    moves: bool,
}

impl State {
    fn move_away(&mut self) {
        (self.moves, self.rounds) = (true, 0);
    }
}

/// What a NIC keeps once for all connections; nothing is left at `auto`.
#[derive(Clone, Copy, Debug)]
struct Settings {
    round_ps: u64,
    timeout_hold_ps: u64,
    suspend_ps: u64,
    /// 0: rounds go by time.
    round_packets: u32,
    marked_permille: u16,
    evs: u16,
    rounds: u8,
    idle_rounds: u8,
    /// The share itself is congestion already.
    inclusive: bool,
}

impl Settings {
    //= docs/specs/plb.md#PLB-9
    fn new(config: &PathConfig) -> Self {
        let plb = &config.schemes.plb;
        let of =
            |reps: u64, ofan: u64, linux: u64| [reps, ofan, linux].get(plb.variant as usize).copied().unwrap_or(reps);
        let or = |asked: u64, own: u64| if asked == AUTO { own } else { asked };
        let rounds = or(plb.rounds, of(2, 1, 12)).clamp(1, 255) as u8;
        Self {
            round_ps: or(plb.round, config.base_rtt_ps),
            timeout_hold_ps: or(plb.timeout_hold, of(config.base_rtt_ps.saturating_mul(5), 0, 0)),
            suspend_ps: or(plb.suspend, of(0, 0, 60 * PS_PER_SECOND)),
            round_packets: or(plb.round_packets, of(0, config.bdp_packets.max(1).into(), 0)).min(1 << 24) as u32,
            marked_permille: or(plb.marked_share, of(0, 400, 500)).min(1_000) as u16,
            evs: config.ev_count(),
            rounds,
            idle_rounds: or(plb.idle_rounds, of(rounds.into(), rounds.into(), 3)).clamp(1, 255) as u8,
            inclusive: plb.variant == 2,
        }
    }

    #[inline]
    fn ends_round(&self, now_ps: u64, state: &State) -> bool {
        if self.round_packets > 0 { state.delivered >= self.round_packets } else { now_ps > state.round_end_ps }
    }

    #[inline]
    fn is_congested(&self, state: &State) -> bool {
        let (congested, limit) =
            (u64::from(state.congested) * 1_000, u64::from(state.delivered) * u64::from(self.marked_permille));
        congested > limit || (self.inclusive && congested == limit)
    }
}

const PS_PER_SECOND: u64 = 1_000_000_000_000;
