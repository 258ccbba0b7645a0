//! Flowcut, NIC-only (Flowcut §II, §II-D, §IV-A, §IV-C; `docs/specs/flowcut.md`): a connection
//! leaves its path only when nothing is in flight, so that nothing is reordered.
//!
//! A *flowcut* is what goes over one path between two moments at which everything is acknowledged.
//! A path with a round-trip time that is too long, or grows too fast, is *drained*: new packets wait
//! until everything sent is acknowledged, then go over another path.

mod config;
mod rates;
mod rtt;

#[cfg(test)]
mod tests;

use self::config::Settings;
pub use self::config::{FlowcutConfig, FlowcutRule};
use self::rates::Rates;
use self::rtt::Delay;
use super::{
    AckInfo, Admission, Balancer, Ev, Features, LossCause, LossInfo, Now, Path, Publisher, Rng, Scheme, SendInfo, Time,
    draw, draw_lasting, draw_other,
};

/// Flowcut for one connection.
#[derive(Clone, Debug)]
pub struct Flowcut {
    settings: Settings,
    state: Cut,
}

/// The present flowcut: its path, the path's condition, and whether it drains.
#[derive(Clone, Debug)]
struct Cut {
    delay: Delay,
    /// Delivery rates of paths, if the connection learns its path.
    rates: Rates,
    /// Time of the last feedback, or of the drain's start.
    feedback_at: Time,
    /// When the last silent round was counted, which includes timeouts of earlier transmissions.
    round_at: Time,
    allowance_bytes: u64,
    /// While `overlapping`: the first packet of the present path.
    boundary_psn: u64,
    ev: Ev,
    phase: Phase,
    /// Consecutive timeouts of this path without feedback.
    silent_rounds: u8,
    /// Something was sent since the flowcut ended.
    active: bool,
    fresh: bool,
    /// The path was changed early: packets of the old one may be open.
    overlapping: bool,
    /// A packet was refused in this drain.
    held: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Draining,
    /// The old path failed: open packets are retransmitted one by one.
    Repairing,
}

impl Flowcut {
    /// Returns the wire bytes of new packets that may go now: `u64::MAX`, the rest of a drain's
    /// allowance, or 0. For external pausing by XOFF, XOFF with credit and XON.
    //= docs/specs/flowcut.md#FLC-30 external pausing
    pub fn allowed_bytes(&self) -> u64 {
        match self.state.phase {
            Phase::Open => u64::MAX,
            Phase::Draining => self.state.allowance_bytes,
            Phase::Repairing => 0,
        }
    }

    /// The entropy value of the present path.
    pub fn ev(&self) -> Ev {
        self.state.ev
    }

    /// Ends the flowcut: all is acknowledged, so the old path can only deliver duplicates.
    //= docs/specs/flowcut.md#FLC-3 end of a flowcut
    fn end_flowcut(&mut self, path: &Path) {
        let is_congested = !self.settings.simple && self.is_congested(path);
        let state = &mut self.state;
        state.active = false;
        state.rates.begin_round();
        //= docs/specs/flowcut.md#FLC-44 end of repair
        state.fresh |= state.phase == Phase::Draining || (state.phase == Phase::Open && is_congested);
        state.phase = Phase::Open;
        state.overlapping = false;
        if !self.settings.simple {
            state.delay.reset(&self.settings, path);
        }
    }

    /// Whether the path is congested and, if the path is learned, another one delivered more.
    fn is_congested(&self, path: &Path) -> bool {
        let Self { settings, state } = self;
        state.delay.is_congested(settings, path) && (!path.learned || state.rates.is_behind(settings.rule.ratio))
    }

    fn is_worth_leaving(&self, path: &Path, ack: &AckInfo) -> bool {
        let Self { settings, state } = self;
        //= docs/specs/flowcut.md#FLC-25 no drain near the end
        if ack.unsent_bytes < settings.tail_bytes(path, ack) {
            return false;
        }
        //= docs/specs/flowcut.md#FLC-17 comparison of paths
        let is_trial = || state.rates.is_alone() && ack.unsent_bytes / TRIAL_SHARE >= ack.in_flight_bytes;
        self.is_congested(path) || (state.delay.is_congested(settings, path) && is_trial())
    }

    //= docs/specs/flowcut.md#FLC-20 beginning to drain
    fn begin_drain(&mut self, now: Now<'_>) {
        let state = &mut self.state;
        state.phase = Phase::Draining;
        state.allowance_bytes = self.settings.credit_bytes;
        state.feedback_at = now.time;
        state.held = false;
    }

    /// Continues on the old path, since the expected acknowledgements do not arrive.
    //= docs/specs/flowcut.md#FLC-24 drain timeout
    fn resume(&mut self, path: &Path) {
        self.state.phase = Phase::Open;
        self.state.delay.reset(&self.settings, path);
    }

    /// Leaves a failed path. Open packets are retransmitted one by one over another path.
    //= docs/specs/flowcut.md#FLC-41 A dead path
    #[cold]
    fn abandon(&mut self, path: &Path) {
        let state = &mut self.state;
        state.phase = Phase::Repairing;
        state.fresh = true;
        state.overlapping = false;
        state.silent_rounds = 0;
        state.rates.on_dead();
        if !self.settings.simple {
            state.delay.reset(&self.settings, path);
        }
    }

    fn deadline(&self, path: &Path) -> Time {
        self.state.feedback_at.after(self.settings.drain_timeout_ps(path))
    }

    fn admit_new(&mut self, path: &Path, packet: &SendInfo) -> Admission {
        let (state, most) = (&mut self.state, u64::from(self.settings.resume_packets));
        //= docs/specs/flowcut.md#FLC-28 bound of reordering
        if state.overlapping {
            let lowest_open = packet.psn.saturating_sub(packet.unacked_packets);
            state.overlapping = lowest_open < state.boundary_psn;
            if state.overlapping && packet.unacked_packets > most {
                return Admission::Wait;
            }
        }
        if state.phase != Phase::Draining {
            return Admission::Window;
        }
        //= docs/specs/flowcut.md#FLC-27 early resumption
        if most > 0 && !state.overlapping && packet.unacked_packets <= most {
            self.end_flowcut(path);
            self.state.overlapping = true;
            self.state.boundary_psn = packet.psn;
            return Admission::Window;
        }
        //= docs/specs/flowcut.md#FLC-22 XOFF with credit
        if u64::from(packet.bytes) <= state.allowance_bytes {
            return Admission::Window;
        }
        state.held = true;
        Admission::Wait
    }

    fn draw(&self, evs: u16, rng: &mut Rng) -> Ev {
        //= docs/specs/flowcut.md#FLC-50 the published artifact's rule
        if self.settings.simple || evs == 1 {
            return draw(evs, rng);
        }
        //= docs/specs/flowcut.md#FLC-4 choice of another path
        draw_other(self.state.ev, evs, rng)
    }
}

/// A path is left on trial only while this multiple of the bytes in flight is unsent.
const TRIAL_SHARE: u64 = 32;

impl Scheme for Flowcut {
    type Config = FlowcutConfig;

    //= docs/specs/flowcut.md#FLC-60 bytes of state
    const STATE_BYTES: usize = size_of::<Cut>();

    fn make(own: &FlowcutConfig, path: &Path, rng: &mut Rng) -> Self {
        let settings = Settings::new(own);
        let state = Cut {
            delay: Delay::new(&settings, path),
            rates: Rates::default(),
            feedback_at: Time::ZERO,
            round_at: Time::ZERO,
            allowance_bytes: 0,
            boundary_psn: 0,
            //= docs/specs/flowcut.md#FLC-2 the first path
            ev: draw_lasting(path, 0, rng),
            phase: Phase::Open,
            silent_rounds: 0,
            active: false,
            fresh: false,
            overlapping: false,
            held: false,
        };
        Self { settings, state }
    }
}

impl Balancer for Flowcut {
    //= docs/specs/flowcut.md#FLC-43 lowest packet first
    fn features(&self) -> Features {
        Features { delays_packets: true, lowest_first: true, ..Features::default() }
    }

    //= docs/specs/flowcut.md#FLC-1 one path for a flowcut
    fn next_ev(&mut self, now: Now<'_>, packet: &SendInfo, rng: &mut Rng) -> Ev {
        if self.state.fresh {
            self.state.ev = self.draw(now.path.evs, rng);
            self.state.fresh = false;
            self.state.rates.begin_path();
        }
        let state = &mut self.state;
        // A request for a grant is not a packet of the flow.
        state.active |= !packet.retransmit || packet.unacked_packets > 0;
        if state.phase == Phase::Draining && !packet.retransmit {
            state.allowance_bytes = state.allowance_bytes.saturating_sub(u64::from(packet.bytes));
        }
        state.ev
    }

    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, _publisher: &mut dyn Publisher) {
        let state = &mut self.state;
        state.feedback_at = now.time;
        //= docs/specs/flowcut.md#FLC-14 ACKs of other paths
        if ack.ev == state.ev {
            state.silent_rounds = 0;
            state.delay.on_ack(&self.settings, now.path, ack);
            if now.path.learned && state.phase != Phase::Repairing {
                state.rates.on_ack(now, ack);
            }
            if state.phase == Phase::Open && self.is_worth_leaving(now.path, ack) {
                self.begin_drain(now);
            }
        }
        //= docs/specs/flowcut.md#FLC-21 end of a drain
        if ack.unacked_packets == 0 && self.state.active {
            self.end_flowcut(now.path);
        }
    }

    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        let state = &mut self.state;
        if loss.ev != state.ev {
            return;
        }
        match loss.cause {
            LossCause::Trimmed | LossCause::TrimmedLast => (state.feedback_at, state.silent_rounds) = (now.time, 0),
            //= docs/specs/flowcut.md#FLC-40 silent rounds
            LossCause::Timeout if loss.sent_at >= state.round_at => {
                state.round_at = now.time;
                state.silent_rounds = state.silent_rounds.saturating_add(1);
                //= docs/specs/flowcut.md#FLC-41 A dead path
                let was_alone = loss.in_flight_bytes == 0 && state.feedback_at <= loss.sent_at;
                let rounds = if was_alone { u8::MAX } else { state.silent_rounds };
                if (1..=rounds).contains(&self.settings.dead_rounds) {
                    self.abandon(now.path);
                }
            }
            _ => {}
        }
    }

    /// The end of a silent drain while a packet waits.
    fn poll_timeout(&self, path: &Path) -> Option<Time> {
        (self.state.held && self.is_draining()).then(|| self.deadline(path))
    }

    fn admit(&mut self, now: Now<'_>, packet: &SendInfo) -> Admission {
        if self.state.active && packet.unacked_packets == 0 {
            self.end_flowcut(now.path);
        }
        match self.state.phase {
            //= docs/specs/flowcut.md#FLC-42 repair
            Phase::Repairing if packet.in_flight_bytes == 0 => return Admission::Window,
            Phase::Repairing => return Admission::Wait,
            Phase::Draining if now.time >= self.deadline(now.path) => self.resume(now.path),
            Phase::Draining | Phase::Open => {}
        }
        //= docs/specs/flowcut.md#FLC-23 retransmissions during a drain
        if packet.retransmit { Admission::Window } else { self.admit_new(now.path, packet) }
    }

    fn is_draining(&self) -> bool {
        self.state.phase == Phase::Draining
    }
}
