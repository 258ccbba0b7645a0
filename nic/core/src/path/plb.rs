//! PLB keeps a path until it stays congested (Qureshi et al., SIGCOMM 2022; `docs/specs/plb.md`),
//! in variants of REPS (§4.1), OFAN (§3.2, scheme 3) and Linux.

#[cfg(test)]
mod tests;

use super::{
    AckInfo, Balancer, Ev, LossCause, LossInfo, Now, Path, Publisher, Rng, Scheme, SendInfo, Time, draw, draw_lasting,
    settings,
};
use crate::link::PS_PER_S;
use crate::units::{Micros, Ratio};

settings! {
    /// The settings of [`Plb`].
    pub struct PlbConfig {
        /// The variant that provides the defaults.
        pub rule: PlbRule = PlbRule::default(),
        /// Share of marked or lost packets above which a round is congested (`linux`: from which).
        /// By default 0 (`reps`), 0.4 (`ofan`), 0.5 (`linux`).
        #[schemars(range(min = 0, max = 1))]
        pub marked_share: Option<Ratio> = None,
        /// Consecutive congested rounds to change the path. By default 2, 1 (`ofan`), 12 (`linux`).
        #[schemars(range(min = 1, max = 255))]
        pub rounds: Option<u8> = None,
        /// The same while nothing is in flight. By default 3 (`linux`), otherwise as `rounds`.
        #[schemars(range(min = 1, max = 255))]
        pub idle_rounds: Option<u8> = None,
        /// Length of a round measured by time. By default the base RTT.
        #[schemars(range(min = 0.000_001, max = 1_000_000))]
        pub round_us: Option<Micros> = None,
        /// Acknowledged packets in a round; 0: by time. By default a BDP (`ofan`), otherwise 0.
        #[schemars(range(min = 0, max = 16_777_216))]
        pub round_packets: Option<u32> = None,
        /// Minimum time between changes for timeouts. By default five base RTTs (`reps`), else 0.
        #[schemars(range(min = 0, max = 1_000_000))]
        pub timeout_hold_us: Option<Micros> = None,
        /// Time after a timeout without changes for congestion. By default 60 s (`linux`), else 0.
        #[schemars(range(min = 0, max = 1_000_000_000))]
        pub suspend_us: Option<Micros> = None,
    }

    /// The variants of PLB.
    #[derive(Default)]
    pub enum PlbRule {
        /// As in the artifact of the REPS paper.
        #[default]
        Reps,
        /// OFAN's.
        Ofan,
        /// As in the PLB paper and Linux.
        Linux,
    }
}

/// Keeps an entropy value until its path stays congested or a packet on it times out.
#[derive(Clone, Debug)]
pub struct Plb {
    state: Rounds,
    settings: Settings,
}

impl Plb {
    /// Counts packets that came back, and evaluates the round when it ends.
    //= docs/specs/plb.md#PLB-2 counted packets
    //= docs/specs/plb.md#PLB-3 rounds
    //= docs/specs/plb.md#PLB-4 congested rounds
    fn count(&mut self, now: Now<'_>, packets: u16, congested: u16) {
        let Self { state, settings } = self;
        state.delivered = state.delivered.saturating_add(packets.into());
        state.congested = state.congested.saturating_add(congested.into());
        if settings.ends_round(now, state) {
            state.rounds = if settings.is_congested(state) { state.rounds.saturating_add(1) } else { 0 };
            (state.delivered, state.congested) = (0, 0);
            state.round_end = now.after(settings.round_us.map_or(now.path.base_rtt_ps, Micros::ps));
        }
    }

    //= docs/specs/plb.md#PLB-5 A new EV
    //= docs/specs/plb.md#PLB-6 moving while idle
    fn is_congested_for_long(&self, now: Now<'_>, packet: &SendInfo) -> bool {
        let Self { state, settings } = self;
        let enough = if packet.in_flight_bytes == 0 { settings.idle_rounds } else { settings.rounds };
        state.rounds >= enough && now.time >= state.suspended_until
    }

    //= docs/specs/plb.md#PLB-7 timeouts
    //= docs/specs/plb.md#PLB-8 suspended after a timeout
    fn on_timeout(&mut self, now: Now<'_>) {
        let Self { state, settings } = self;
        state.suspended_until = now.after(settings.suspend_ps);
        if now.time > state.hold_until {
            state.hold_until =
                now.after(settings.timeout_hold_us.map_or(now.path.base_rtt_ps * settings.hold_rtts, Micros::ps));
            state.move_away();
        }
    }
}

impl Scheme for Plb {
    type Config = PlbConfig;

    const STATE_BYTES: usize = size_of::<Rounds>();

    //= docs/specs/plb.md#PLB-1 the first EV
    fn make(own: &PlbConfig, path: &Path, rng: &mut Rng) -> Self {
        let state = Rounds { ev: draw_lasting(path, 0, rng), ..Rounds::default() };
        Self { state, settings: Settings::new(own) }
    }
}

impl Balancer for Plb {
    fn next_ev(&mut self, now: Now<'_>, packet: &SendInfo, rng: &mut Rng) -> Ev {
        if self.is_congested_for_long(now, packet) {
            self.state.move_away();
        }
        if self.state.moves {
            self.state.moves = false;
            self.state.ev = draw(now.path.evs, rng);
        }
        self.state.ev
    }

    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, _publisher: &mut dyn Publisher) {
        self.count(now, ack.packets, ack.marked_packets);
    }

    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        if loss.cause == LossCause::Timeout {
            self.on_timeout(now);
        } else {
            self.count(now, 1, 1);
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    /// With rounds by time: feedback later than this ends the round.
    round_end: Time,
    /// Timeouts up to this time change nothing.
    hold_until: Time,
    /// Congestion before this time changes nothing.
    suspended_until: Time,
    delivered: u32,
    /// The number of them that were marked or lost.
    congested: u32,
    ev: Ev,
    rounds: u8,
    /// The next packet takes a new path.
    moves: bool,
}

impl Rounds {
    fn move_away(&mut self) {
        (self.moves, self.rounds) = (true, 0);
    }
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    /// Default: a base round-trip time.
    round_us: Option<Micros>,
    /// Default: `hold_rtts` base round-trip times.
    timeout_hold_us: Option<Micros>,
    hold_rtts: u64,
    suspend_ps: u64,
    /// 0 measures rounds by time. Default: a bandwidth-delay product.
    round_packets: Option<u32>,
    marked_ppm: u32,
    rounds: u8,
    idle_rounds: u8,
    /// A round with a share equal to the limit is congested too.
    inclusive: bool,
}

impl Settings {
    //= docs/specs/plb.md#PLB-9 rules
    fn new(own: &PlbConfig) -> Self {
        let (share, rounds, idle_rounds, round_packets, hold_rtts, suspend_ps) = match own.rule {
            PlbRule::Reps => (0, 2, None, Some(0), 5, 0),
            PlbRule::Ofan => (400, 1, None, None, 0, 0),
            PlbRule::Linux => (500, 12, Some(3), Some(0), 0, 60 * PS_PER_S),
        };
        let rounds = own.rounds.unwrap_or(rounds).max(1);
        Self {
            round_us: own.round_us,
            timeout_hold_us: own.timeout_hold_us,
            hold_rtts,
            suspend_ps: own.suspend_us.map_or(suspend_ps, Micros::ps),
            round_packets: own.round_packets.or(round_packets),
            marked_ppm: own.marked_share.unwrap_or(Ratio::permille(share)).ppm().min(1_000_000) as u32,
            rounds,
            idle_rounds: own.idle_rounds.or(idle_rounds).unwrap_or(rounds).max(1),
            inclusive: own.rule == PlbRule::Linux,
        }
    }

    fn ends_round(&self, now: Now<'_>, state: &Rounds) -> bool {
        match self.round_packets.unwrap_or(now.path.bdp_packets.max(1)).min(MAX_ROUND_PACKETS) {
            0 => now.time > state.round_end,
            packets => state.delivered >= packets,
        }
    }

    fn is_congested(&self, state: &Rounds) -> bool {
        let (congested, limit) =
            (u64::from(state.congested) * 1_000_000, u64::from(state.delivered) * u64::from(self.marked_ppm));
        congested > limit || (self.inclusive && congested == limit)
    }
}

/// Limits a round so that its counts do not overflow.
const MAX_ROUND_PACKETS: u32 = 1 << 24;
