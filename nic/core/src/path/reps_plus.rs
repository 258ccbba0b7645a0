//! `reps-plus`, this project's own: REPS that recycles the entropy value of every packet an ACK stands for, explores evenly,
//! and gives freezing up where it does not help. Clauses (RPP-n) are in `docs/specs/reps-plus.md`.

mod config;
#[cfg(test)]
mod tests;

use rand_core::RngCore;

pub use self::config::RepsPlusConfig;
use super::reps::{MAX_TIMEOUT_PS, ticks};
use super::{
    AckInfo, Balancer, EchoFeedback, Ev, LossCause, LossInfo, PacketFeedback, PacketInfo, PathConfig, Scheme, SendInfo,
};
use crate::event::{Event, Publisher};

/// REPS with three changes: what an ACK vouches for, how it explores, and when it stops freezing.
///
/// Of its bytes only [`Scheme::STATE_BYTES`] belong to a connection. `settled` serves while one ACK is taken, and a NIC would
/// hold it, as the settings, once for all connections.
#[derive(Clone, Debug)]
pub struct RepsPlus {
    state: RecycledEvs,
    settled: Settled,
    settings: Settings,
}

impl RepsPlus {
    /// Whether the connection is in freezing mode.
    pub fn is_frozen(&self) -> bool {
        self.state.flags & FROZEN != 0
    }

    /// Whether failures do not freeze it, since freezing did not help.
    pub fn is_immune(&self) -> bool {
        self.state.flags & IMMUNE != 0
    }

    /// Cached entropy values that have not been used since.
    pub fn valid_evs(&self) -> u8 {
        self.state.valid
    }

    /// The next of an even sequence, or a random one.
    //= docs/specs/reps-plus.md#RPP-8 even exploring
    #[inline]
    fn explore(&mut self, rng: &mut impl RngCore) -> Ev {
        if !self.settings.even {
            return super::draw(self.settings.evs, rng);
        }
        self.state.phase = self.state.phase.wrapping_add(GOLDEN);
        Ev::new(((u32::from(self.state.phase) * u32::from(self.settings.evs)) >> 16) as u16)
    }

    /// Caches the entropy values of the other packets that the ACK covers, as many as it shows to be unmarked.
    #[inline]
    fn cache_others(&mut self, ack: &AckInfo) {
        let Self { state, settled, settings } = self;
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

    /// Ends freezing, or immunity from it, once its time is over.
    //= docs/specs/reps-plus.md#RPP-12 thawing
    #[cold]
    fn check_time(&mut self, now_ps: u64, publisher: &mut impl Publisher) {
        if !self.state.is_past_end(now_ps) {
            return;
        }
        if self.is_frozen() {
            self.state.explore = self.settings.explore_packets;
            publisher.on_event(now_ps, Event::FreezeExited);
        }
        self.state.flags &= !(FROZEN | IMMUNE);
    }

    #[cold]
    fn on_failure(&mut self, now_ps: u64, sent_ps: u64, publisher: &mut impl Publisher) {
        if self.is_frozen() {
            return self.on_loss_while_frozen(now_ps, sent_ps, publisher);
        }
        if self.is_immune() && self.state.is_past_end(now_ps) {
            self.state.flags &= !IMMUNE;
        }
        //= docs/specs/reps-plus.md#RPP-11 freezing
        if self.is_immune() || self.state.explore > 0 {
            return;
        }
        self.state.flags |= FROZEN;
        self.state.begin(now_ps, self.settings.freezing_timeout_ps);
        self.state.losses = 0;
        publisher.on_event(now_ps, Event::FreezeEntered);
    }

    /// Takes a loss while frozen. If every packet under way carried a known value, freezing does not help.
    //= docs/specs/reps-plus.md#RPP-13 A loss despite freezing
    fn on_loss_while_frozen(&mut self, now_ps: u64, sent_ps: u64, publisher: &mut impl Publisher) {
        let state = &mut self.state;
        let settled = ticks(sent_ps).wrapping_sub(state.since.wrapping_add(self.settings.rtt_ticks)) as i32 > 0;
        if !settled || self.settings.futile_losses == 0 {
            return;
        }
        state.losses += 1;
        if state.losses < self.settings.futile_losses {
            // Losses of the same round say nothing more.
            state.since = ticks(now_ps);
            return;
        }
        //= docs/specs/reps-plus.md#RPP-14 immunity
        state.flags = state.flags & !FROZEN | IMMUNE;
        state.begin(now_ps, self.settings.freezing_timeout_ps);
        publisher.on_event(now_ps, Event::FreezeExited);
    }
}

impl Scheme for RepsPlus {
    type Config = RepsPlusConfig;

    const STATE_BYTES: usize = size_of::<RecycledEvs>();

    //= docs/specs/reps-plus.md#RPP-9 where exploring begins
    fn make(own: &RepsPlusConfig, path: &PathConfig, rng: &mut impl RngCore) -> Self {
        Self {
            state: RecycledEvs { phase: super::draw_seed(path, rng), ..RecycledEvs::default() },
            settled: Settled::default(),
            settings: Settings::new(own, path),
        }
    }

    fn adopt(&mut self, fresh: Self) {
        self.settings = fresh.settings;
    }
}

impl Balancer for RepsPlus {
    //= docs/specs/reps-plus.md#RPP-6 exploring or reusing
    //= docs/specs/reps-plus.md#RPP-7 reuse while frozen
    #[inline]
    fn next_ev(&mut self, _now_ps: u64, _packet: &SendInfo, rng: &mut impl RngCore) -> Ev {
        let state = &mut self.state;
        if state.explore > 0 {
            state.explore -= 1;
            return self.explore(rng);
        }
        if state.valid > 0 {
            return state.oldest(self.settings.depth);
        }
        if state.flags & FROZEN != 0 && state.filled > 0 {
            return state.walk();
        }
        self.explore(rng)
    }

    //= docs/specs/reps-plus.md#RPP-1 caching the trigger's EV
    //= docs/specs/reps-plus.md#RPP-5 A longer buffer
    #[inline]
    fn on_ack(&mut self, now_ps: u64, ack: &AckInfo, publisher: &mut impl Publisher) {
        if self.state.flags & (FROZEN | IMMUNE) != 0 && !ack.marked {
            self.check_time(now_ps, publisher);
        }
        if ack.packets > 1 {
            self.cache_others(ack);
        }
        (self.settled.len, self.settled.echoed) = (0, false);
        if !ack.marked && ack.ev.index() < self.settings.evs {
            self.state.cache(ack.ev, self.settings.depth);
        }
    }

    //= docs/specs/reps-plus.md#RPP-10 what a failure is
    fn on_loss(&mut self, now_ps: u64, loss: &LossInfo, publisher: &mut impl Publisher) {
        if loss.cause != LossCause::Trimmed && loss.max_rtt_ps < self.settings.congestion_rtt_ps {
            self.on_failure(now_ps, loss.sent_ps, publisher);
        }
    }
}

impl PacketFeedback for RepsPlus {
    #[inline]
    fn tracks_packets(&self) -> bool {
        self.settings.whole_acks
    }

    //= docs/specs/reps-plus.md#RPP-2 candidates
    #[inline]
    fn on_packet_acked(&mut self, _now_ps: u64, packet: &PacketInfo) {
        self.settled.push(packet.ev, self.settings.evs);
    }
}

impl EchoFeedback for RepsPlus {
    //= docs/specs/reps-plus.md#RPP-4 several EVs in an ACK
    #[inline]
    fn on_echo(&mut self, _now_ps: u64, ev: Ev, marked: bool) {
        if !self.settled.echoed {
            self.settled = Settled { echoed: true, ..Settled::default() };
        }
        if !marked {
            self.settled.push(ev, self.settings.evs);
        }
    }
}

/// What a NIC keeps for each connection.
#[derive(Clone, Copy, Debug, Default)]
struct RecycledEvs {
    /// Slots from `filled` on were never written; the `valid` ones before `head` are unused.
    cached: [Ev; MAX_BUFFER],
    /// When freezing, or the immunity from it, is over; ticks of 2^20 ps (1.05 us), wrapping after 75 minutes.
    end: u32,
    /// When freezing began, or when the last loss despite it was counted, in ticks.
    since: u32,
    /// Packets that explore before cached values are used again.
    explore: u16,
    /// Position of exploring in the set, in 2^-16 of it.
    phase: u16,
    head: u8,
    valid: u8,
    filled: u8,
    /// Position of the walk over the buffer.
    cursor: u8,
    /// Losses despite freezing.
    losses: u8,
    flags: u8,
}

//= docs/specs/reps-plus.md#RPP-15 bytes of state
const _: () = assert!(size_of::<RecycledEvs>() < 64, "the state stays under 64 bytes");

impl RecycledEvs {
    #[inline]
    fn cache(&mut self, ev: Ev, depth: u8) {
        if let Some(slot) = self.cached.get_mut(usize::from(self.head)) {
            *slot = ev;
        }
        self.head = if self.head + 1 < depth { self.head + 1 } else { 0 };
        self.valid = (self.valid + 1).min(depth);
        self.filled = (self.filled + 1).min(depth);
    }

    /// Uses the oldest valid value. There must be one.
    #[inline]
    fn oldest(&mut self, depth: u8) -> Ev {
        let at = if self.head >= self.valid { self.head - self.valid } else { self.head + depth - self.valid };
        self.valid -= 1;
        self.cached.get(usize::from(at)).copied().unwrap_or_default()
    }

    /// Uses the next value of the buffer, valid or not.
    fn walk(&mut self) -> Ev {
        self.cursor = if self.cursor + 1 < self.filled { self.cursor + 1 } else { 0 };
        self.cached.get(usize::from(self.cursor)).copied().unwrap_or_default()
    }

    fn begin(&mut self, now_ps: u64, length_ps: u64) {
        self.since = ticks(now_ps);
        self.end = ticks(now_ps.saturating_add(length_ps));
    }

    #[inline]
    fn is_past_end(&self, now_ps: u64) -> bool {
        ticks(now_ps).wrapping_sub(self.end) as i32 > 0
    }
}

/// Entropy values of packets that the ACK at hand covers, at most as many as the buffer holds.
#[derive(Clone, Copy, Debug, Default)]
struct Settled {
    evs: [Ev; MAX_BUFFER],
    len: u8,
    /// They are the ACK's own echoes: all of them count.
    echoed: bool,
}

impl Settled {
    #[inline]
    fn push(&mut self, ev: Ev, evs: u16) {
        if let Some(slot) = self.evs.get_mut(usize::from(self.len))
            && ev.index() < evs
        {
            *slot = ev;
            self.len += 1;
        }
    }
}

/// The settings in the units that the packet path needs.
#[derive(Clone, Debug)]
struct Settings {
    freezing_timeout_ps: u64,
    /// A loss after an RTT of at least this is congestion.
    congestion_rtt_ps: u64,
    rtt_ticks: u32,
    explore_packets: u16,
    evs: u16,
    depth: u8,
    futile_losses: u8,
    whole_acks: bool,
    even: bool,
}

impl Settings {
    fn new(own: &RepsPlusConfig, path: &PathConfig) -> Self {
        Self {
            freezing_timeout_ps: own.freezing_timeout_us.ps().min(MAX_TIMEOUT_PS),
            congestion_rtt_ps: if path.trimming { u64::MAX } else { own.congestion_rtt.of(path.base_rtt_ps).max(1) },
            rtt_ticks: ticks(path.base_rtt_ps.min(MAX_TIMEOUT_PS)),
            explore_packets: path.bdp_packets.min(u32::from(u16::MAX)) as u16,
            evs: path.ev_count(),
            depth: own.buffer.clamp(1, MAX_BUFFER as u8),
            futile_losses: own.futile_losses,
            whole_acks: own.whole_acks,
            even: own.even_exploring,
        }
    }
}

/// Most entropy values in the buffer: more than an ACK of 16 packets brings.
pub const MAX_BUFFER: usize = 20;

/// The golden ratio's share of 2^16. Its multiples fill a circle evenly, and since it is odd they meet each of 2^16
/// places once.
const GOLDEN: u16 = 40_503;

/// Bits of `RecycledEvs::flags`.
const FROZEN: u8 = 1;
const IMMUNE: u8 = 2;
