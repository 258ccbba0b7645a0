//! `reps-plus`, this project's own: REPS that recycles the entropy value of every packet an ACK stands for, explores evenly,
//! finds losses before the timer, and freezes when probes show that a path has failed. Clauses (RPP-n) are in
//! `docs/specs/reps-plus.md`.

mod buffer;
mod config;
mod freezing;
mod recall;
mod settled;
#[cfg(test)]
mod tests;

use rand_core::RngCore;

pub use self::config::RepsPlusConfig;
use self::settled::{MAX_BUFFER, Settled};
use super::known_paths::KnownPaths;
use super::reps::{MAX_TIMEOUT_PS, TICK_SHIFT};
use super::{
    AckInfo, Balancer, Ev, LossCause, LossInfo, Offers, PacketInfo, PathConfigOf, Remembered, Scheme, Section,
    SendInfo, Trailer, Transmission,
};
use crate::event::{Choice, Publisher};
use crate::units::NEVER;

/// REPS that hears more from an ACK, explores evenly, finds losses before the timer, and freezes on evidence.
///
/// Of its bytes only [`Scheme::STATE_BYTES`] belong to a connection. `settled` serves while one ACK is taken, and a NIC would
/// hold it once for all connections, as the settings; `paths` it would hold once for each destination.
#[derive(Clone, Debug)]
pub struct RepsPlus {
    state: RecycledEvs,
    settled: Settled,
    paths: KnownPaths,
    settings: Settings,
}

impl RepsPlus {
    /// Whether the connection is in freezing mode.
    pub fn is_frozen(&self) -> bool {
        self.state.is_frozen()
    }

    /// The entropy value whose packet was lost and whose path is being probed.
    pub fn suspect(&self) -> Option<Ev> {
        (self.state.probe_ps != NEVER).then_some(self.state.suspect)
    }

    /// Cached entropy values that have not been used since.
    pub fn valid_evs(&self) -> u8 {
        self.state.valid
    }

    /// The next path in turn, where the engine has told them. Otherwise the next of an even sequence, or a random value.
    //= docs/specs/reps-plus.md#RPP-8 even exploring
    #[inline]
    fn explore(&mut self, rng: &mut impl RngCore) -> Ev {
        if !self.settings.even {
            return super::draw(self.settings.evs, rng);
        }
        // Acknowledgements of a told value may all come back over the path that has failed: others are tried too.
        if self.state.probe_ps == NEVER
            && let Some(ev) = self.paths.in_turn(&mut self.state.phase)
        {
            return ev;
        }
        self.state.phase = self.state.phase.wrapping_add(GOLDEN);
        Ev::new(((u32::from(self.state.phase) * u32::from(self.settings.evs)) >> 16) as u16)
    }

    /// Caches the entropy values of the other packets that the ACK covers, as many as it shows to be unmarked.
    #[inline]
    fn cache_others(&mut self, ack: &AckInfo) {
        let Self { state, settled, settings, .. } = self;
        let mut left = if settled.echoed {
            settled.len
        } else {
            //= docs/specs/reps-plus.md#RPP-3 how many candidates count
            let marked = ack.marked_packets.saturating_sub(u16::from(ack.marked));
            ack.packets.saturating_sub(1).saturating_sub(marked).min(u16::from(u8::MAX)) as u8
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
            state.cache(ev, settings.depth);
            left -= 1;
        }
    }
}

impl Scheme for RepsPlus {
    type Config = RepsPlusConfig;

    const STATE_BYTES: usize = size_of::<RecycledEvs>();
    const OFFERS: Offers = Offers {
        reuses: true,
        sections: true,
        gap_rule: true,
        probing: true,
        packet_feedback: true,
        paths: true,
        ..Offers::NOTHING
    };

    //= docs/specs/reps-plus.md#RPP-9 where exploring begins
    fn make(own: &RepsPlusConfig, path: &PathConfigOf<impl Copy>, rng: &mut impl RngCore) -> Self {
        Self {
            state: RecycledEvs::new(super::draw_seed(path, rng)),
            settled: Settled::default(),
            paths: KnownPaths::default(),
            settings: Settings::new(own, path),
        }
    }

    fn offers(&self) -> Offers {
        let Settings { early, whole_acks, .. } = self.settings;
        Offers { sections: early, gap_rule: early, packet_feedback: whole_acks, ..Self::OFFERS }
    }

    fn adopt(&mut self, fresh: Self) {
        if fresh.settings.base_rtt_ps != self.settings.base_rtt_ps {
            // It came from the old round-trip time. The next packet sets it anew.
            self.state.ask_ps = NEVER;
        }
        self.settings = fresh.settings;
    }
}

impl Balancer for RepsPlus {
    fn next_choice(&self) -> Choice {
        let state = &self.state;
        let has_suspect = state.probe_ps != NEVER;
        if state.explore > 0 || (state.valid == 0 && !(has_suspect && state.filled > 0)) {
            Choice::Explored
        } else if has_suspect {
            Choice::Frozen
        } else {
            Choice::Recycled
        }
    }

    //= docs/specs/reps-plus.md#RPP-6 exploring or reusing
    //= docs/specs/reps-plus.md#RPP-7 reuse beside a suspect
    #[inline]
    fn next_ev(&mut self, now_ps: u64, _packet: &SendInfo, rng: &mut impl RngCore) -> Ev {
        let state = &mut self.state;
        if state.ask_ps == NEVER {
            state.ask_ps = now_ps.saturating_add(self.settings.overdue_ps());
        }
        if state.explore > 0 {
            state.explore -= 1;
            return self.explore(rng);
        }
        if state.valid > 0 {
            return state.oldest(self.settings.depth);
        }
        if state.probe_ps != NEVER && state.filled > 0 {
            return state.walk(self.settings.depth);
        }
        self.explore(rng)
    }

    //= docs/specs/reps-plus.md#RPP-1 caching the trigger's EV
    //= docs/specs/reps-plus.md#RPP-17 slow paths
    //= docs/specs/reps-plus.md#RPP-5 A longer buffer
    #[inline]
    fn on_ack(&mut self, now_ps: u64, ack: &AckInfo, publisher: &mut impl Publisher) {
        if self.state.probe_ps != NEVER {
            self.judge(now_ps, ack, publisher);
        }
        if ack.packets > 1 {
            self.cache_others(ack);
        }
        self.settled.clear();
        if !ack.marked && ack.rtt_ps < self.settings.slow_ps() && ack.ev.index() < self.settings.evs {
            self.state.cache(ack.ev, self.settings.depth);
        }
    }

    fn on_loss(&mut self, now_ps: u64, loss: &LossInfo, _publisher: &mut impl Publisher) {
        //= docs/specs/reps-plus.md#RPP-10 a suspect
        if matches!(loss.cause, LossCause::Timeout | LossCause::SackGap) {
            self.suspect_path(now_ps, loss);
            //= docs/specs/reps-plus.md#RPP-14 losses while frozen
            if self.is_frozen() {
                self.state.forget(loss.ev, self.settings.depth);
            }
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<u64> {
        let probe_ps = if self.state.probes == PROBES { NEVER } else { self.state.probe_ps };
        let at_ps = probe_ps.min(self.state.ask_ps);
        (at_ps != NEVER).then_some(at_ps)
    }

    //= docs/specs/reps-plus.md#RPP-16 asking for a packet
    fn poll_trailer(&mut self, now_ps: u64, oldest: Option<&Transmission>) -> Option<Trailer> {
        let Self { state, settings, .. } = self;
        if now_ps < state.ask_ps {
            return None;
        }
        let Some(oldest) = oldest else {
            state.ask_ps = NEVER;
            return None;
        };
        let due_ps = oldest.sent_ps.saturating_add(settings.overdue_ps());
        state.ask_ps = if now_ps < due_ps { due_ps } else { now_ps.saturating_add(settings.overdue_ps()) };
        if now_ps < due_ps {
            return None;
        }
        Some(Trailer { psn: oldest.psn, ev: oldest.ev, section: Section::new(0, 0), ack_now: true })
    }

    //= docs/specs/reps-plus.md#RPP-8 even exploring
    fn on_reachable(&mut self, _now_ps: u64, paths: &[Ev]) {
        let paths = if self.settings.known_paths { paths } else { &[] };
        self.paths = KnownPaths::new(paths, self.settings.evs, Some(self.state.phase.into()));
    }

    //= docs/specs/reps-plus.md#RPP-2 candidates
    #[inline]
    fn on_packet_acked(&mut self, now_ps: u64, packet: &PacketInfo) {
        if !packet.reported {
            return;
        }
        if now_ps.saturating_sub(packet.sent_ps) < self.settings.slow_ps() {
            self.settled.push(packet.ev, self.settings.evs);
        } else {
            self.settled.push_slow(packet.ev);
        }
    }

    //= docs/specs/reps-plus.md#RPP-4 several EVs in an ACK
    #[inline]
    fn on_echo(&mut self, _now_ps: u64, ev: Ev, marked: bool) {
        if !self.settled.echoed {
            (self.settled.len, self.settled.echoed) = (0, true);
        }
        if !marked && !self.settled.is_slow(ev) {
            self.settled.push(ev, self.settings.evs);
        }
    }

    fn poll_probe(&mut self, now_ps: u64) -> Option<Ev> {
        self.probe_suspect(now_ps)
    }

    fn has_probed(&self) -> bool {
        self.has_probed_suspect()
    }

    fn on_probe_ack(&mut self, now_ps: u64, ev: Ev, _marked: bool, publisher: &mut impl Publisher) {
        self.on_answer(now_ps, ev, publisher);
    }

    fn remember(&self, now_ps: u64) -> Option<Remembered> {
        self.learned(now_ps)
    }

    fn recall(&mut self, now_ps: u64, learned: &Remembered) {
        self.begin_with(now_ps, learned);
    }
}

/// What a NIC keeps for each connection.
#[derive(Clone, Copy, Debug)]
struct RecycledEvs {
    /// Slots from `filled` on were never written; the `valid` ones before `head` are unused.
    cached: [Ev; MAX_BUFFER],
    /// When the next probe goes, or the last one counts as unanswered; `NEVER` without a suspect.
    probe_ps: u64,
    /// When the oldest packet is looked at again; `NEVER` while nothing is in flight.
    ask_ps: u64,
    /// When freezing is over, in ticks of 2^20 ps (1.05 us), wrapping after 75 minutes.
    thaw_at: u32,
    /// The value whose packet was lost.
    suspect: Ev,
    /// Time that the answer to a probe may take, in ticks; at most 69 ms.
    wait: u16,
    /// Packets that explore before cached values are used again.
    explore: u16,
    /// Position of exploring in the set, in 2^-16 of it, or in the list of paths.
    phase: u16,
    head: u8,
    valid: u8,
    filled: u8,
    /// Probes of the suspect, or [`FROZEN`].
    probes: u8,
}

//= docs/specs/reps-plus.md#RPP-15 bytes of state
const _: () = assert!(size_of::<RecycledEvs>() <= 64, "the state fits a cache line");

impl RecycledEvs {
    const fn new(phase: u16) -> Self {
        Self {
            cached: [Ev::new(0); MAX_BUFFER],
            probe_ps: NEVER,
            ask_ps: NEVER,
            thaw_at: 0,
            suspect: Ev::new(0),
            wait: 0,
            explore: 0,
            phase,
            head: 0,
            valid: 0,
            filled: 0,
            probes: 0,
        }
    }

    #[inline]
    const fn is_frozen(&self) -> bool {
        self.probes == FROZEN
    }

    /// Time that the answer to a probe may take.
    const fn wait_ps(&self) -> u64 {
        (self.wait as u64) << TICK_SHIFT
    }
}

/// The settings in the units that the packet path needs.
#[derive(Clone, Debug)]
struct Settings {
    freezing_timeout_ps: u64,
    base_rtt_ps: u64,
    explore_packets: u16,
    evs: u16,
    depth: u8,
    whole_acks: bool,
    even: bool,
    known_paths: bool,
    early: bool,
    remember: bool,
}

impl Settings {
    fn new(own: &RepsPlusConfig, path: &PathConfigOf<impl Copy>) -> Self {
        Self {
            freezing_timeout_ps: own.freezing_timeout_us.ps().min(MAX_TIMEOUT_PS),
            base_rtt_ps: path.base_rtt_ps.clamp(1, MAX_TIMEOUT_PS),
            explore_packets: path.bdp_packets.min(u32::from(u16::MAX)) as u16,
            evs: path.ev_count(),
            depth: own.buffer.clamp(1, MAX_BUFFER as u8),
            whole_acks: own.whole_acks,
            even: own.even_exploring,
            known_paths: own.known_paths,
            early: own.early_losses,
            remember: own.remember,
        }
    }

    /// Round-trip time from which on a path is too slow to be used again: every queue of two tiers is full, or a link has lost
    /// most of its rate.
    #[inline]
    fn slow_ps(&self) -> u64 {
        4 * self.base_rtt_ps
    }

    /// Age from which on a packet's ACK is overdue.
    #[inline]
    fn overdue_ps(&self) -> u64 {
        (self.base_rtt_ps + self.base_rtt_ps / 4).max(1)
    }
}

/// Probes of a suspect that must stay unanswered.
const PROBES: u8 = 3;
/// In place of their number: they stayed unanswered.
const FROZEN: u8 = u8::MAX;

/// The golden ratio's share of 2^16. Its multiples fill a circle evenly, and since it is odd they meet each of 2^16
/// places once.
const GOLDEN: u16 = 40_503;
