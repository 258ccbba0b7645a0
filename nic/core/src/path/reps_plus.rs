//! `reps-plus`, this project's REPS (`docs/specs/reps-plus.md`): recycles the EV of every packet an
//! ACK covers, explores evenly, detects losses early, and freezes on evidence from probes.

mod acked_evs;
mod buffer;
mod config;
mod freezing;
mod history;
#[cfg(test)]
mod tests;

use self::acked_evs::{AckedEvs, MAX_BUFFER};
pub use self::config::RepsPlusConfig;
use super::known_paths::{KnownPaths, Order};
use super::suspicion::{Suspicion, overdue_ps};
use super::{
    AckInfo, Balancer, Ev, Features, Flight, LossCause, LossInfo, Now, PacketInfo, Path, PathEvs, PathHistory,
    ProbeInfo, Rng, Scheme, Section, SendInfo, Time, Trailer,
};
use crate::event::{Choice, Publisher};

/// Freezes on evidence only. [`Scheme::STATE_BYTES`] belong to a connection; a NIC would share
/// `settled`, which serves while one ACK is taken, and the settings, and `paths` per destination.
#[derive(Clone, Debug)]
pub struct RepsPlus {
    state: RecycledEvs,
    settled: AckedEvs,
    paths: KnownPaths,
    settings: RepsPlusConfig,
}

impl RepsPlus {
    /// The entropy value of a lost packet with a path that is being probed.
    pub fn suspect(&self) -> Option<Ev> {
        self.state.suspicion.suspect()
    }

    #[cfg(test)]
    /// Cached entropy values that have not been reused since.
    pub fn valid_evs(&self) -> u8 {
        self.state.valid
    }

    /// Returns the next known path in turn, or else the next value of an even sequence.
    //= docs/specs/reps-plus.md#RPP-8 even exploration
    fn explore(&mut self, evs: u16) -> Ev {
        // Acknowledgements of a known path may all return over the failed one.
        if !self.state.suspicion.forbids_exploring()
            && let Some(ev) = self.paths.in_turn(&mut self.state.phase)
        {
            return ev;
        }
        self.state.next_of_set(evs)
    }

    /// Caches the value of a packet or probe that came back, unless its path is congested or slow.
    fn cache_if_good(&mut self, path: &Path, ev: Ev, is_bad: bool) {
        if !is_bad && ev.index() < path.evs {
            self.state.cache(ev, self.settings.buffer);
        }
    }

    /// Caches the values of the other packets that the ACK covers, if it shows them unmarked.
    fn cache_others(&mut self, ack: &AckInfo) {
        let Self { state, settled, settings, .. } = self;
        let mut left = if settled.echoed {
            settled.len
        } else {
            //= docs/specs/reps-plus.md#RPP-3 number of cached candidates
            match ack.marked_packets > u16::from(ack.marked) {
                true => 0,
                false => ack.packets.saturating_sub(1).min(u16::from(u8::MAX)) as u8,
            }
        };
        // One of the packets with the triggering packet's value is that packet itself.
        let mut own = !settled.echoed;
        for &ev in settled.evs.iter().take(usize::from(settled.len)) {
            if left == 0 {
                break;
            }
            if own && ev == ack.ev {
                own = false;
                continue;
            }
            state.cache(ev, settings.buffer);
            left -= 1;
        }
    }
}

impl Scheme for RepsPlus {
    type Config = RepsPlusConfig;

    const STATE_BYTES: usize = size_of::<RecycledEvs>();
    const WANTS_PATHS: bool = true;

    //= docs/specs/reps-plus.md#RPP-9 start of exploration
    fn make(own: &RepsPlusConfig, path: &Path, rng: &mut Rng) -> Self {
        Self {
            state: RecycledEvs::new(super::draw_seed(path, rng)),
            settled: AckedEvs::default(),
            paths: KnownPaths::default(),
            settings: RepsPlusConfig { buffer: own.buffer.clamp(1, MAX_BUFFER as u8), ..*own },
        }
    }
}

impl Balancer for RepsPlus {
    fn features(&self) -> Features {
        Features {
            sprays: true,
            reuses: true,
            probing: true,
            scouts: true,
            sections: true,
            gap_rule: true,
            packet_feedback: true,
            ..Features::default()
        }
    }

    fn is_frozen(&self) -> bool {
        self.state.is_frozen()
    }

    fn next_choice(&self) -> Choice {
        match (self.state.reuses_buffer(), self.state.valid) {
            (true, _) => Choice::Frozen,
            (false, 0) => Choice::Explored,
            (false, _) => Choice::Recycled,
        }
    }

    //= docs/specs/reps-plus.md#RPP-6 exploring or reusing
    //= docs/specs/reps-plus.md#RPP-7 reuse with a suspect
    fn next_ev(&mut self, now: Now<'_>, packet: &SendInfo, _rng: &mut Rng) -> Ev {
        let state = &mut self.state;
        if state.check_at == Time::NEVER {
            state.check_at = now.after(overdue_ps(now.path));
        }
        let keeps = state.reuses_buffer();
        if state.valid > 0 && !(keeps && packet.retransmit) {
            return state.oldest(self.settings.buffer);
        }
        if keeps {
            //= docs/specs/reps-plus.md#RPP-19 exploration by probes
            if state.valid == 0 {
                state.suspicion.raise_scouts(state.suspicion.scouts() + 1);
            }
            return if state.is_frozen() && state.valid == 0 { state.around() } else { state.newest() };
        }
        self.explore(now.path.evs)
    }

    //= docs/specs/reps-plus.md#RPP-1 caching the trigger's EV
    //= docs/specs/reps-plus.md#RPP-5 A longer buffer
    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, publisher: &mut dyn Publisher) {
        if self.suspect().is_some() {
            self.freeze_if_confirmed(now, ack, publisher);
        }
        if ack.packets > 1 {
            self.cache_others(ack);
        }
        // The triggering packet is judged once, with the settled ones if it is among them.
        let is_slow = match self.settled.is_empty() {
            true => !self.state.is_reused(now.path, ack.rtt_ps),
            false => self.settled.is_slow(ack.ev) || ack.rtt_ps >= slow_ps(now.path),
        };
        self.settled.clear();
        self.state.losses = self.state.losses.saturating_sub(ack.packets.min(255) as u8);
        self.cache_if_good(now.path, ack.ev, ack.marked || is_slow);
    }

    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        //= docs/specs/reps-plus.md#RPP-10 a suspect
        if matches!(loss.cause, LossCause::Timeout | LossCause::SackGap) {
            self.suspect_path(now, loss);
            //= docs/specs/reps-plus.md#RPP-14 lost values
            self.state.forget(loss.ev, self.settings.buffer);
        }
    }

    fn poll_timeout(&self, _path: &Path) -> Option<Time> {
        let at = self.state.suspicion.next_at().min(self.state.check_at);
        (at != Time::NEVER).then_some(at)
    }

    //= docs/specs/reps-plus.md#RPP-16 requests for a packet
    fn poll_trailer(&mut self, now: Now<'_>, flight: &Flight) -> Option<Trailer> {
        let state = &mut self.state;
        if now.time < state.check_at || state.check_at == Time::NEVER {
            return None;
        }
        let Some(oldest) = flight.oldest else {
            state.check_at = Time::NEVER;
            return None;
        };
        let overdue_ps = overdue_ps(now.path).max(flight.rtt_ps.saturating_add(flight.rtt_ps / 4));
        let due = oldest.sent_at.after(overdue_ps);
        state.check_at = if now.time < due { due } else { now.after(overdue_ps) };
        if now.time < due || flight.window_bytes < 2 * u64::from(now.path.packet_bytes) {
            return None;
        }
        // Its own path may have failed.
        let other = if now.since(oldest.sent_at) < 2 * overdue_ps { None } else { state.latest() };
        let behind = if other.is_some() { flight.newest_psn.saturating_sub(oldest.psn).min(EXTRA_NACKS) } else { 0 };
        let (psn, section) = (oldest.psn.saturating_add(behind), Section::new(0, behind as u16));
        Some(Trailer { psn, ev: other.unwrap_or(oldest.ev), section, ack_now: true })
    }

    //= docs/specs/reps-plus.md#RPP-8 even exploration
    fn on_reachable(&mut self, now: Now<'_>, paths: &[PathEvs]) {
        let paths = if self.settings.known_paths { paths } else { &[] };
        self.paths = KnownPaths::new(paths, now.path.evs, Order::DrawnEachRound(self.state.phase.into()));
    }

    //= docs/specs/reps-plus.md#RPP-2 candidates
    fn on_packet_acked(&mut self, now: Now<'_>, packet: &PacketInfo) {
        if !packet.reported {
            return;
        }
        if self.state.is_reused(now.path, now.since(packet.sent_at)) {
            self.settled.push(packet.ev, now.path.evs);
        } else {
            self.settled.push_slow(packet.ev);
        }
    }

    //= docs/specs/reps-plus.md#RPP-4 several EVs in an ACK
    fn on_echo(&mut self, now: Now<'_>, ev: Ev, marked: bool) {
        if !self.settled.echoed {
            (self.settled.len, self.settled.echoed) = (0, true);
        }
        if !marked && !self.settled.is_slow(ev) {
            self.settled.push(ev, now.path.evs);
        }
    }

    fn poll_probe(&mut self, now: Now<'_>) -> Option<Ev> {
        self.state.suspicion.poll(now.time).or_else(|| self.scout(now))
    }

    fn has_probed(&self) -> bool {
        self.state.suspicion.has_probed()
    }

    fn on_probe_ack(&mut self, now: Now<'_>, answer: &ProbeInfo, publisher: &mut dyn Publisher) {
        self.on_answer(now, answer, publisher);
    }

    fn path_history(&self) -> Option<PathHistory> {
        self.learned()
    }

    fn restore_history(&mut self, now: Now<'_>, learned: &PathHistory) {
        self.restore(now, learned);
    }
}

#[derive(Clone, Copy, Debug)]
struct RecycledEvs {
    /// Slots from `filled` were never written; the `valid` ones before `head` are unused.
    cached: [Ev; MAX_BUFFER],
    suspicion: Suspicion,
    /// When the oldest packet is checked again; [`Time::NEVER`] while nothing is in flight.
    check_at: Time,
    /// Position of exploring in the set, in 2^-16 of it, or in the list of paths.
    phase: u16,
    /// Sum of the shares of packets on slow paths, in 2^-16. Each overflow leaves a value uncached.
    surplus: u16,
    head: u8,
    valid: u8,
    filled: u8,
    /// Lost packets that had explored, less those that arrived: 16 for a loss, 1 for an arrival.
    losses: u8,
}

//= docs/specs/reps-plus.md#RPP-15 bytes of state
const _: () = assert!(size_of::<RecycledEvs>() <= 64, "the state fits a cache line");

impl RecycledEvs {
    /// Whether the path of a packet with this round-trip time is reused.
    //= docs/specs/reps-plus.md#RPP-17 slow paths
    fn is_reused(&mut self, path: &Path, rtt_ps: u64) -> bool {
        if rtt_ps >= slow_ps(path) {
            return false;
        }
        let excess_ps = rtt_ps.saturating_sub(path.slow_rtt_ps);
        if excess_ps == 0 {
            return true;
        }
        // Twice the excess, in 2^-16 of the round-trip time.
        let share = (u128::from(excess_ps) << 17) / u128::from(rtt_ps);
        let share = share.min(u128::from(u16::MAX)) as u16;
        let (surplus, is_full) = self.surplus.overflowing_add(share);
        self.surplus = surplus;
        !is_full
    }

    const fn new(phase: u16) -> Self {
        Self {
            surplus: 0,
            cached: [Ev::new(0); MAX_BUFFER],
            suspicion: Suspicion::NONE,
            check_at: Time::NEVER,
            phase,
            head: 0,
            valid: 0,
            filled: 0,
            losses: 0,
        }
    }

    fn is_frozen(&self) -> bool {
        self.suspicion.has_failed()
    }

    /// The next value of an even sequence over the whole set.
    fn next_of_set(&mut self, evs: u16) -> Ev {
        self.phase = self.phase.wrapping_add(GOLDEN);
        Ev::new(((u32::from(self.phase) * u32::from(evs)) >> 16) as u16)
    }
}

/// Round-trip time of no reuse: all queues of two tiers are full, or a link lost most of its rate.
const fn slow_ps(path: &Path) -> u64 {
    4 * path.base_rtt_ps
}

/// Packets requested besides the oldest: the NACKs that one frame triggers.
const EXTRA_NACKS: u64 = 63;

/// The golden ratio of 2^16: its multiples fill a cycle evenly and, being odd, completely.
const GOLDEN: u16 = 40_503;
