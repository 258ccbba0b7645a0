//! Reactive subflow spraying with precise fast loss detection: a few subflows, each in order on one path, the worst of
//! which moves to another path now and then (*Ordered Chaos*, SC 2026, the public artifact). Clauses (ORC-n) are in
//! `docs/specs/ordered-chaos.md`; the receiver's half is `loss/subflow.rs`.

use alloc::boxed::Box;
use alloc::vec;

use rand_core::RngCore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AckInfo, Balancer, Ev, LossCause, LossInfo, PacketFeedback, PacketInfo, PathConfig, Scheme, Section, Sections,
    SendInfo, Timer, Trailer, Transmission, draw, draw_lasting,
};
use crate::event::Publisher;
use crate::units::{Micros, Ratio};

#[cfg(test)]
mod tests;

/// The settings of [`OrderedChaos`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct OrderedChaosConfig {
    /// Subflows, rounded down to a power of two and to the number of entropy values. Packets go to them in turn.
    #[schemars(range(min = 1, max = 64))]
    pub subflows: u8,
    /// Time after which the subflow with the largest mean round-trip time moves to another path.
    #[schemars(range(min = 0.1, max = 1_000_000))]
    pub interval_us: Micros,
    /// By how much of itself that time differs at random, either way. Thousandths count.
    #[schemars(range(min = 0, max = 1))]
    pub jitter: Ratio,
    /// How much larger than the least the largest mean must be for a move, as a share of the least. Thousandths count.
    #[schemars(range(min = 0, max = 8))]
    pub threshold: Ratio,
    /// Whether a subflow moves too that hears nothing for two such times, each a base round-trip time at least, while
    /// something of it is in flight.
    pub silence: bool,
    /// Whether packets tell the receiver what went before them on their path, so that it can tell what is lost, and probes
    /// follow them.
    pub detection: bool,
    /// Time between probes of a subflow. By default the base round-trip time.
    #[schemars(range(min = 0.1, max = 1_000_000))]
    pub probe_us: Option<Micros>,
    /// Packets of a subflow between probes, in place of the time. 0 goes by the time.
    #[schemars(range(min = 0, max = 4_095))]
    pub probe_packets: u16,
    /// Whether a probe follows every packet that is sent again.
    pub probe_retransmissions: bool,
}

impl Default for OrderedChaosConfig {
    fn default() -> Self {
        Self {
            subflows: SUBFLOWS,
            interval_us: Micros::new(15),
            jitter: Ratio::permille(250),
            threshold: Ratio::default(),
            silence: true,
            detection: true,
            probe_us: None,
            probe_packets: 0,
            probe_retransmissions: true,
        }
    }
}

/// Reactive subflow spraying. What is kept is boxed.
#[derive(Clone, Debug)]
pub struct OrderedChaos {
    state: Box<Schedule>,
    subflows: Box<[Subflow]>,
    settings: Settings,
}

/// What is kept once; sets of subflows are bitmaps.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// The number of the next new packet.
    next_psn: u64,
    /// When the worst subflow moves.
    next_move_ps: u64,
    /// When subflows are next probed for the time.
    next_probe_ps: u64,
    /// To be probed before anything else is sent.
    due: u64,
    /// Sent something since they were last probed.
    fresh: u64,
    /// Take another path with their next packet.
    moving: u64,
    /// Of those, the ones whose path seems dead.
    fleeing: u64,
    /// Heard nothing in the last time of listening, with something in flight.
    quiet: u64,
    /// Heard something in the present one.
    heard: u64,
    /// When the present time of listening may end.
    next_quiet_ps: u64,
    /// The path with the least mean of the last interval that had any.
    best: Option<Ev>,
    /// A packet that was just sent again, to be probed before anything else is sent.
    repeated: Option<u64>,
    /// Of the packet last sent.
    section: Section,
    /// The present interval has no jitter yet.
    is_plain: bool,
}

/// One subflow.
#[derive(Clone, Copy, Debug, Default)]
struct Subflow {
    /// Of the round-trip times in this interval, in units of 2^10 ps (1.02 ns).
    rtt_sum: u32,
    /// How many.
    samples: u16,
    ev: Ev,
    /// New packets of the present section, up to one more than a frame can tell.
    sent: u16,
    /// Packets not acknowledged.
    open: u16,
}

impl Scheme for OrderedChaos {
    type Config = OrderedChaosConfig;

    /// With the default number of subflows, 16.
    const STATE_BYTES: usize = size_of::<Schedule>() + SUBFLOWS as usize * size_of::<Subflow>();

    //= docs/specs/ordered-chaos.md#ORC-1 subflows
    fn make(own: &OrderedChaosConfig, path: &PathConfig, rng: &mut impl RngCore) -> Self {
        let settings = Settings::new(own, path);
        let mut subflows = vec![Subflow::default(); 1 << settings.log2_subflows].into_boxed_slice();
        for (stream, subflow) in subflows.iter_mut().enumerate() {
            subflow.ev = draw_lasting(path, stream as u64, rng);
        }
        Self { state: Box::new(Schedule::NEW), subflows, settings }
    }
}

impl Balancer for OrderedChaos {
    //= docs/specs/ordered-chaos.md#ORC-2 packets of a subflow
    #[inline]
    fn next_ev(&mut self, now_ps: u64, packet: &SendInfo, rng: &mut impl RngCore) -> Ev {
        let index = self.index(packet.psn);
        self.arm(now_ps, rng);
        if self.state.moving & bit(index) != 0 {
            self.take_path(index, rng);
        }
        if packet.retransmit {
            //= docs/specs/ordered-chaos.md#ORC-14 trailers of retransmissions
            self.state.section = Section::NONE;
            self.state.repeated = self.settings.probes_repeated.then_some(packet.psn);
        } else {
            self.on_new(index, packet);
        }
        self.subflows[index].ev
    }

    #[inline]
    fn on_ack(&mut self, now_ps: u64, ack: &AckInfo, _publisher: &mut impl Publisher) {
        if ack.open_packets == 0 {
            self.state.rest();
        }
        if now_ps >= self.state.next_move_ps {
            self.end_interval(now_ps);
        }
    }

    fn on_loss(&mut self, now_ps: u64, loss: &LossInfo, _publisher: &mut impl Publisher) {
        let index = self.index(loss.psn);
        if loss.cause != LossCause::Timeout {
            //= docs/specs/ordered-chaos.md#ORC-3 round-trip times
            let is_present = self.subflows[index].sample(loss.ev, now_ps.saturating_sub(loss.sent_ps));
            // What the receiver told came back over the path's other direction; the gap rule is the sender's own guess.
            if is_present && loss.cause != LossCause::SackGap {
                self.state.heard |= bit(index);
            }
        } else if self.subflows[index].ev == loss.ev {
            //= docs/specs/ordered-chaos.md#ORC-7 timeouts
            self.leave_path(index);
            self.state.fleeing |= bit(index);
        }
        if now_ps >= self.state.next_move_ps {
            self.end_interval(now_ps);
        }
    }
}

impl Sections for OrderedChaos {
    fn has_sections(&self) -> bool {
        self.settings.detects
    }

    #[inline]
    fn section(&self) -> Section {
        self.state.section
    }

    #[inline]
    fn poll_trailer(&mut self, now_ps: u64, oldest: Option<&Transmission>) -> Option<Trailer> {
        if let Some(psn) = self.state.repeated.take() {
            //= docs/specs/ordered-chaos.md#ORC-14 trailers of retransmissions
            return Some(self.ask_for(psn, self.subflows[self.index(psn)].ev, false));
        }
        if now_ps >= self.state.next_probe_ps {
            self.end_probe_interval(now_ps);
            //= docs/specs/ordered-chaos.md#ORC-15 trailers of the oldest packet
            let is_old =
                |oldest: &&Transmission| oldest.sent_ps.saturating_add(self.settings.probe_interval_ps) <= now_ps;
            if let Some(oldest) = oldest.filter(is_old) {
                return Some(self.ask_for(oldest.psn, oldest.ev, true));
            }
        }
        while self.state.due != 0 {
            let index = self.state.due.trailing_zeros() as usize;
            self.state.due &= self.state.due - 1;
            if let Some(trailer) = self.follow(index) {
                return Some(trailer);
            }
        }
        None
    }
}

impl Timer for OrderedChaos {
    #[inline]
    fn poll_timeout(&self) -> Option<u64> {
        let at_ps = self.state.next_probe_ps;
        (self.settings.detects && at_ps != NEVER).then_some(at_ps)
    }
}

impl PacketFeedback for OrderedChaos {
    //= docs/specs/ordered-chaos.md#ORC-3 round-trip times
    #[inline]
    fn on_packet_acked(&mut self, now_ps: u64, packet: &PacketInfo) {
        let index = self.index(packet.psn);
        let subflow = &mut self.subflows[index];
        subflow.open = subflow.open.saturating_sub(1);
        if !packet.was_lost && subflow.sample(packet.ev, now_ps.saturating_sub(packet.sent_ps)) {
            self.state.heard |= bit(index);
        }
    }
}

impl OrderedChaos {
    /// The entropy values of the subflows, of which one may be about to move.
    pub fn evs(&self) -> impl Iterator<Item = Ev> {
        self.subflows.iter().map(|subflow| subflow.ev)
    }

    #[inline]
    fn index(&self, psn: u64) -> usize {
        (psn & (self.subflows.len() as u64 - 1)) as usize
    }

    /// Starts the timers if they rest, and adds its jitter to an interval: there is no generator where it begins.
    //= docs/specs/ordered-chaos.md#ORC-4 intervals
    #[inline]
    fn arm(&mut self, now_ps: u64, rng: &mut impl RngCore) {
        let Self { state, settings, .. } = self;
        if state.next_probe_ps == NEVER {
            state.next_probe_ps = now_ps.saturating_add(settings.probe_interval_ps);
        }
        if state.next_move_ps == NEVER {
            state.next_move_ps = now_ps.saturating_add(settings.interval_ps);
        }
        if state.is_plain {
            state.is_plain = false;
            let jitter_ps = (u128::from(rng.next_u32()) * 2 * u128::from(settings.jitter_ps)) >> 32;
            let at_ps = state.next_move_ps.saturating_add(jitter_ps as u64);
            state.next_move_ps = at_ps.saturating_sub(settings.jitter_ps);
        }
    }

    /// Takes a new packet of a subflow into its section.
    #[inline]
    fn on_new(&mut self, index: usize, packet: &SendInfo) {
        let Self { state, subflows, settings } = self;
        let count = subflows.len() as u64;
        let subflow = &mut subflows[index];
        //= docs/specs/ordered-chaos.md#ORC-10 what a packet tells
        state.section = Section::new(settings.log2_subflows, subflow.sent);
        subflow.sent = (subflow.sent + 1).min(Section::MAX_BEHIND + 1);
        subflow.open = subflow.open.saturating_add(1);
        state.fresh |= bit(index);
        state.next_psn = packet.psn.wrapping_add(1);
        //= docs/specs/ordered-chaos.md#ORC-12 trailers at the end
        let is_last = packet.unsent_bytes <= count * u64::from(packet.bytes);
        //= docs/specs/ordered-chaos.md#ORC-13 trailers now and then
        let is_counted = settings.probe_packets != 0
            && (state.next_psn.wrapping_sub(1) >> settings.log2_subflows).wrapping_add(1) % settings.probe_packets == 0;
        if is_last || is_counted {
            state.due |= bit(index);
        }
    }

    /// Gives a subflow another path, where its next section begins.
    //= docs/specs/ordered-chaos.md#ORC-6 moving
    fn take_path(&mut self, index: usize, rng: &mut impl RngCore) {
        let (state, subflow) = (&mut self.state, &mut self.subflows[index]);
        let (old, evs) = (subflow.ev, self.settings.evs);
        //= docs/specs/ordered-chaos.md#ORC-9 A path known to be good
        let known = state.best.filter(|best| state.fleeing & bit(index) != 0 && *best != old);
        if let Some(best) = known {
            subflow.ev = best;
        } else if evs > 1 {
            let other = draw(evs - 1, rng);
            subflow.ev = other + Ev::from(other >= old);
        }
        subflow.sent = 0;
        state.moving &= !bit(index);
        state.fleeing &= !bit(index);
    }

    /// Decides that a subflow takes another path with its next packet; a probe ends its section first.
    //= docs/specs/ordered-chaos.md#ORC-6 moving
    //= docs/specs/ordered-chaos.md#ORC-11 A trailer before a move
    fn leave_path(&mut self, index: usize) {
        self.state.moving |= bit(index);
        if self.subflows[index].open > 0 {
            self.state.due |= bit(index);
        }
    }

    /// Moves the worst subflow and those that hear nothing, and begins to measure anew.
    //= docs/specs/ordered-chaos.md#ORC-5 the worst subflow moves
    fn end_interval(&mut self, now_ps: u64) {
        let means = || self.subflows.iter().enumerate().filter_map(|(index, subflow)| Some((subflow.mean()?, index)));
        // The first of equals.
        let worst = means().rev().max_by_key(|(mean, _)| *mean);
        if let (Some((worst, index)), Some((best, at))) = (worst, means().min()) {
            self.state.best = Some(self.subflows[at].ev);
            if worst - best >= best * self.settings.threshold_permille / 1000 {
                self.leave_path(index);
            }
        }
        for subflow in &mut self.subflows {
            (subflow.rtt_sum, subflow.samples) = (0, 0);
        }
        if self.settings.moves_silent && now_ps >= self.state.next_quiet_ps {
            self.end_listening(now_ps);
        }
        self.state.next_move_ps = now_ps.saturating_add(self.settings.interval_ps);
        self.state.is_plain = true;
    }

    /// Moves the subflows that have heard nothing for two times of listening.
    //= docs/specs/ordered-chaos.md#ORC-8 silence
    fn end_listening(&mut self, now_ps: u64) {
        let mut quiet = 0;
        for (index, subflow) in self.subflows.iter().enumerate() {
            quiet |= if subflow.open > 0 { bit(index) } else { 0 };
        }
        quiet &= !self.state.heard;
        let silent = quiet & self.state.quiet;
        (self.state.quiet, self.state.heard) = (quiet & !silent, 0);
        self.state.next_quiet_ps = now_ps.saturating_add(self.settings.listening_ps);
        self.state.fleeing |= silent;
        for index in 0..self.subflows.len() {
            if silent & bit(index) != 0 {
                self.leave_path(index);
            }
        }
    }

    /// Has the subflows probed that sent something since they last were.
    //= docs/specs/ordered-chaos.md#ORC-13 trailers now and then
    fn end_probe_interval(&mut self, now_ps: u64) {
        let mut open = 0;
        for (index, subflow) in self.subflows.iter().enumerate() {
            open |= if subflow.open > 0 { bit(index) } else { 0 };
        }
        if self.settings.probe_packets == 0 {
            self.state.due |= open & self.state.fresh;
        }
        self.state.next_probe_ps = match open {
            0 => NEVER,
            _ => now_ps.saturating_add(self.settings.probe_interval_ps),
        };
    }

    /// A probe behind the last transmission of a packet, on its path.
    fn ask_for(&self, psn: u64, ev: Ev, ack_now: bool) -> Trailer {
        Trailer { psn, ev, section: Section::new(self.settings.log2_subflows, 0), ack_now }
    }

    /// A probe behind the last packet of a subflow, if its section has any.
    fn follow(&mut self, index: usize) -> Option<Trailer> {
        self.state.fresh &= !bit(index);
        let subflow = &self.subflows[index];
        let behind = subflow.sent.checked_sub(1)?;
        let last = self.state.next_psn.wrapping_sub(1);
        let psn = last.wrapping_sub(self.index(last.wrapping_sub(index as u64)) as u64);
        let section = Section::new(self.settings.log2_subflows, behind);
        Some(Trailer { psn, ev: subflow.ev, section, ack_now: false })
    }
}

impl Schedule {
    const NEW: Self = Self {
        next_psn: 0,
        next_move_ps: NEVER,
        next_probe_ps: NEVER,
        due: 0,
        fresh: 0,
        moving: 0,
        fleeing: 0,
        quiet: 0,
        heard: 0,
        next_quiet_ps: 0,
        best: None,
        repeated: None,
        section: Section::NONE,
        is_plain: true,
    };

    /// Nothing is in flight: there is nothing to probe for.
    fn rest(&mut self) {
        (self.due, self.fresh, self.repeated, self.next_probe_ps) = (0, 0, None, NEVER);
    }
}

impl Subflow {
    /// Takes a round-trip time, if it is of the present path; whether it is.
    #[inline]
    fn sample(&mut self, ev: Ev, rtt_ps: u64) -> bool {
        if ev == self.ev && self.samples < u16::MAX {
            let rtt = (rtt_ps >> RTT_SHIFT).clamp(1, u64::from(u32::MAX));
            self.rtt_sum = self.rtt_sum.saturating_add(rtt as u32);
            self.samples += 1;
        }
        ev == self.ev
    }

    /// In picoseconds; none without samples.
    fn mean(&self) -> Option<u64> {
        (u64::from(self.rtt_sum) << RTT_SHIFT).checked_div(u64::from(self.samples))
    }
}

/// [`OrderedChaosConfig`] brought into range.
#[derive(Clone, Debug)]
struct Settings {
    interval_ps: u64,
    jitter_ps: u64,
    /// How long subflows are listened for at least.
    listening_ps: u64,
    threshold_permille: u64,
    probe_interval_ps: u64,
    probe_packets: u64,
    evs: u16,
    log2_subflows: u8,
    moves_silent: bool,
    detects: bool,
    probes_repeated: bool,
}

impl Settings {
    fn new(own: &OrderedChaosConfig, path: &PathConfig) -> Self {
        let evs = path.ev_count();
        let subflows = u16::from(own.subflows).clamp(1, Section::MAX_SUBFLOWS as u16).min(evs);
        let interval_ps = own.interval_us.ps().clamp(1, MAX_INTERVAL_PS);
        Self {
            interval_ps,
            jitter_ps: (interval_ps / 1000).saturating_mul(own.jitter.to_permille().min(1000)),
            listening_ps: path.base_rtt_ps.min(MAX_INTERVAL_PS),
            threshold_permille: own.threshold.to_permille().min(1 << 20),
            probe_interval_ps: own.probe_us.map_or(path.base_rtt_ps, Micros::ps).clamp(1, MAX_INTERVAL_PS),
            probe_packets: own.probe_packets.into(),
            evs,
            log2_subflows: subflows.ilog2() as u8,
            moves_silent: own.silence,
            detects: own.detection,
            probes_repeated: own.probe_retransmissions,
        }
    }
}

#[inline]
const fn bit(index: usize) -> u64 {
    1 << (index & 63)
}

/// Subflows of a connection by default.
const SUBFLOWS: u8 = 16;
/// Later than any time.
const NEVER: u64 = u64::MAX;
/// A second, in ps.
const MAX_INTERVAL_PS: u64 = 1_000_000_000_000;
/// A sum of 2^32 such units is 4.4 s: of a microsecond each, as many round-trip times as are counted.
const RTT_SHIFT: u32 = 10;
