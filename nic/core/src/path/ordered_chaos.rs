//! *Ordered Chaos* (SC 2026, the public artifact): a few subflows keep their order, each on one
//! path, and periodically the worst one moves. The receiver's half is `loss/section_loss.rs`.

use alloc::boxed::Box;
use alloc::vec;

use super::{
    AckInfo, Balancer, Ev, Features, Flight, LossCause, LossInfo, Now, PacketInfo, Path, Publisher, Rng, Scheme,
    Section, SendInfo, Time, Trailer, Transmission, draw_lasting, draw_other, settings,
};
use crate::units::{Micros, Ratio};
use rand_core::RngCore;

#[cfg(test)]
mod tests;

settings! {
    /// The settings of [`OrderedChaos`].
    pub struct OrderedChaosConfig {
        /// Subflows, a power of two, at most one per entropy value. Packets go to them in turn.
        #[schemars(range(min = 1, max = 64))]
        pub subflows: u8 = SUBFLOWS,
        /// Time after which the subflow with the largest mean round-trip time changes its path.
        #[schemars(range(min = 0.1, max = 1_000_000))]
        pub interval_us: Micros = Micros::new(15),
        /// Maximum random change of that time, either way, as a share of it. Thousandths count.
        #[schemars(range(min = 0, max = 1), extend("x-decimals" = 3))]
        pub jitter: Ratio = Ratio::permille(250),
        /// Excess of the largest mean over the least, as a share of it, to move. Thousandths count.
        #[schemars(range(min = 0, max = 8), extend("x-decimals" = 3))]
        pub threshold: Ratio = Ratio::default(),
        /// Whether a subflow in flight also moves after two such times (or base RTTs) of silence.
        pub silence: bool = true,
        /// Whether packets and trailers name their predecessors: the receiver then detects losses.
        pub detection: bool = true,
        /// Time between trailers of a subflow (the artifact's probes). By default the base RTT.
        #[schemars(range(min = 0.1, max = 1_000_000))]
        pub probe_us: Option<Micros> = None,
        /// Packets of a subflow between trailers, in place of the time; 0 uses the time.
        #[schemars(range(min = 0, max = 4_095))]
        pub probe_packets: u16 = 0,
        /// Whether a trailer follows every retransmission.
        pub probe_retransmissions: bool = true,
    }
}

/// Sends packet `p` over subflow `p` modulo their number, and moves subflows between paths.
#[derive(Clone, Debug)]
pub struct OrderedChaos {
    state: Box<Schedule>,
    subflows: Box<[Subflow]>,
    settings: Settings,
}

/// Pending actions and their times. Sets of subflows are bitmaps.
#[derive(Clone, Copy, Debug, Default)]
struct Schedule {
    next_psn: u64,
    next_move: Time,
    next_probe_at: Time,
    /// Subflows with a trailer that goes before anything else.
    due: u64,
    /// Subflows that sent something since their last trailer.
    fresh: u64,
    moving: u64,
    /// Moving subflows that leave a path that seems to have failed.
    fleeing: u64,
    /// Subflows with packets in flight, but without feedback in the last listening time.
    quiet: u64,
    /// Subflows with feedback in the present one.
    answered: u64,
    /// The earliest end of the present listening time.
    next_quiet: Time,
    /// The path with the least mean, in the last interval with samples.
    best: Option<Ev>,
    /// A packet that was just retransmitted: its trailer goes before anything else.
    repeated: Option<u64>,
    section: Section,
    lacks_jitter: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Subflow {
    /// Sum of the round-trip times in this interval, in units of 2^10 ps (1.02 ns).
    rtt_sum: u32,
    samples: u16,
    ev: Ev,
    /// New packets of the present section; counting stops one above what a frame can carry.
    sent: u16,
    open: u16,
}

impl Scheme for OrderedChaos {
    type Config = OrderedChaosConfig;

    /// With the default number of subflows, 16.
    const STATE_BYTES: usize = size_of::<Schedule>() + SUBFLOWS as usize * size_of::<Subflow>();

    //= docs/specs/ordered-chaos.md#ORC-1 subflows
    fn make(own: &OrderedChaosConfig, path: &Path, rng: &mut Rng) -> Self {
        let settings = Settings::new(own, path);
        let mut subflows = vec![Subflow::default(); 1 << settings.log2_subflows].into_boxed_slice();
        for (stream, subflow) in subflows.iter_mut().enumerate() {
            subflow.ev = draw_lasting(path, stream as u64, rng);
        }
        Self { state: Box::new(Schedule::new()), subflows, settings }
    }
}

impl Balancer for OrderedChaos {
    fn features(&self) -> Features {
        Features { sections: self.settings.detects, packet_feedback: true, ..Features::default() }
    }

    //= docs/specs/ordered-chaos.md#ORC-2 packets of a subflow
    fn next_ev(&mut self, now: Now<'_>, packet: &SendInfo, rng: &mut Rng) -> Ev {
        let index = self.index(packet.psn);
        self.arm(now, rng);
        if self.state.moving & bit(index) != 0 {
            self.take_path(index, now.path.evs, rng);
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

    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, _publisher: &mut dyn Publisher) {
        if ack.unacked_packets == 0 {
            self.state.rest();
        }
        if now.time >= self.state.next_move {
            self.end_interval(now);
        }
    }

    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        if loss.cause == LossCause::GoBackN {
            return;
        }
        let index = self.index(loss.psn);
        if loss.cause != LossCause::Timeout {
            //= docs/specs/ordered-chaos.md#ORC-3 round-trip times
            let is_present = self.subflows[index].sample(loss.ev, now.since(loss.sent_at));
            // A NACK shows that the path carries packets. The gap rule is only the sender's guess.
            if is_present && loss.cause != LossCause::SackGap {
                self.state.answered |= bit(index);
            }
        } else if self.subflows[index].ev == loss.ev {
            //= docs/specs/ordered-chaos.md#ORC-7 timeouts
            self.leave_path(index);
            self.state.fleeing |= bit(index);
        }
        if now.time >= self.state.next_move {
            self.end_interval(now);
        }
    }

    fn poll_timeout(&self, _path: &Path) -> Option<Time> {
        let at = self.state.next_probe_at;
        (self.settings.detects && at != Time::NEVER).then_some(at)
    }

    fn section(&self) -> Section {
        self.state.section
    }

    fn poll_trailer(&mut self, now: Now<'_>, flight: &Flight) -> Option<Trailer> {
        if let Some(psn) = self.state.repeated.take() {
            //= docs/specs/ordered-chaos.md#ORC-14 trailers of retransmissions
            return Some(self.trailer_for(psn, self.subflows[self.index(psn)].ev, false));
        }
        if now.time >= self.state.next_probe_at {
            self.end_probe_interval(now);
            //= docs/specs/ordered-chaos.md#ORC-15 trailers of the oldest packet
            let is_old = |oldest: &Transmission| now.since(oldest.sent_at) >= self.settings.probe_interval_ps(now.path);
            if let Some(oldest) = flight.oldest.filter(is_old) {
                return Some(self.trailer_for(oldest.psn, oldest.ev, true));
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

    //= docs/specs/ordered-chaos.md#ORC-3 round-trip times
    fn on_packet_acked(&mut self, now: Now<'_>, packet: &PacketInfo) {
        let index = self.index(packet.psn);
        let subflow = &mut self.subflows[index];
        subflow.open = subflow.open.saturating_sub(1);
        if !packet.was_lost && subflow.sample(packet.ev, now.since(packet.sent_at)) {
            self.state.answered |= bit(index);
        }
    }
}

impl OrderedChaos {
    #[cfg(test)]
    /// The entropy values of the subflows, before pending moves.
    pub fn evs(&self) -> impl Iterator<Item = Ev> {
        self.subflows.iter().map(|subflow| subflow.ev)
    }

    fn index(&self, psn: u64) -> usize {
        (psn & (self.subflows.len() as u64 - 1)) as usize
    }

    /// Starts idle timers, and adds the present interval's jitter, now that a generator is given.
    //= docs/specs/ordered-chaos.md#ORC-4 intervals
    fn arm(&mut self, now: Now<'_>, rng: &mut Rng) {
        let Self { state, settings, .. } = self;
        if state.next_probe_at == Time::NEVER {
            state.next_probe_at = now.after(settings.probe_interval_ps(now.path));
        }
        if state.next_move == Time::NEVER {
            state.next_move = now.after(settings.interval_ps);
        }
        if state.lacks_jitter {
            state.lacks_jitter = false;
            let jitter_ps = (u128::from(rng.next_u32()) * 2 * u128::from(settings.jitter_ps)) >> 32;
            let at = state.next_move.after(jitter_ps as u64);
            state.next_move = at.before(settings.jitter_ps);
        }
    }

    fn on_new(&mut self, index: usize, packet: &SendInfo) {
        let Self { state, subflows, settings } = self;
        let count = subflows.len() as u64;
        let subflow = &mut subflows[index];
        //= docs/specs/ordered-chaos.md#ORC-10 position in the section
        state.section = Section::new(settings.log2_subflows, subflow.sent);
        subflow.sent = (subflow.sent + 1).min(Section::MAX_BEHIND + 1);
        subflow.open = subflow.open.saturating_add(1);
        state.fresh |= bit(index);
        state.next_psn = packet.psn.wrapping_add(1);
        //= docs/specs/ordered-chaos.md#ORC-12 trailers at the end
        let is_last = packet.unsent_bytes <= count * u64::from(packet.bytes);
        //= docs/specs/ordered-chaos.md#ORC-13 periodic trailers
        let is_counted = settings.probe_packets != 0
            && (state.next_psn.wrapping_sub(1) >> settings.log2_subflows).wrapping_add(1) % settings.probe_packets == 0;
        if is_last || is_counted {
            state.due |= bit(index);
        }
    }

    /// Assigns a subflow another path, where its next section begins.
    //= docs/specs/ordered-chaos.md#ORC-6 moving
    fn take_path(&mut self, index: usize, evs: u16, rng: &mut Rng) {
        let (state, subflow) = (&mut self.state, &mut self.subflows[index]);
        let old = subflow.ev;
        //= docs/specs/ordered-chaos.md#ORC-9 move to the best measured path
        let known = state.best.filter(|best| state.fleeing & bit(index) != 0 && *best != old);
        if let Some(best) = known {
            subflow.ev = best;
        } else if evs > 1 {
            subflow.ev = draw_other(old, evs, rng);
        }
        subflow.sent = 0;
        state.moving &= !bit(index);
        state.fleeing &= !bit(index);
    }

    /// Makes a subflow take another path with its next packet. A trailer ends its section first.
    //= docs/specs/ordered-chaos.md#ORC-6 moving
    //= docs/specs/ordered-chaos.md#ORC-11 A trailer before a move
    fn leave_path(&mut self, index: usize) {
        self.state.moving |= bit(index);
        if self.subflows[index].open > 0 {
            self.state.due |= bit(index);
        }
    }

    /// Moves the worst subflow and the silent ones, and begins a new interval.
    //= docs/specs/ordered-chaos.md#ORC-5 the worst subflow moves
    fn end_interval(&mut self, now: Now<'_>) {
        let means = || self.subflows.iter().enumerate().filter_map(|(index, subflow)| Some((subflow.mean()?, index)));
        // Of equals the first is the worst.
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
        if self.settings.moves_silent && now.time >= self.state.next_quiet {
            self.end_listening(now);
        }
        self.state.next_move = now.after(self.settings.interval_ps);
        self.state.lacks_jitter = true;
    }

    /// Moves the subflows without feedback for two listening times.
    //= docs/specs/ordered-chaos.md#ORC-8 silent subflows
    fn end_listening(&mut self, now: Now<'_>) {
        let quiet = self.open() & !self.state.answered;
        let silent = quiet & self.state.quiet;
        (self.state.quiet, self.state.answered) = (quiet & !silent, 0);
        self.state.next_quiet = now.after(now.path.base_rtt_ps);
        self.state.fleeing |= silent;
        for index in 0..self.subflows.len() {
            if silent & bit(index) != 0 {
                self.leave_path(index);
            }
        }
    }

    /// Makes trailers due for the subflows that sent something since their last one.
    //= docs/specs/ordered-chaos.md#ORC-13 periodic trailers
    fn end_probe_interval(&mut self, now: Now<'_>) {
        let open = self.open();
        if self.settings.probe_packets == 0 {
            self.state.due |= open & self.state.fresh;
        }
        self.state.next_probe_at = match open {
            0 => Time::NEVER,
            _ => now.after(self.settings.probe_interval_ps(now.path)),
        };
    }

    fn open(&self) -> u64 {
        let subflows = self.subflows.iter().enumerate();
        subflows.fold(0, |open, (index, subflow)| if subflow.open > 0 { open | bit(index) } else { open })
    }

    /// A trailer after the last transmission of a packet, on its path.
    fn trailer_for(&self, psn: u64, ev: Ev, ack_now: bool) -> Trailer {
        Trailer { psn, ev, section: Section::new(self.settings.log2_subflows, 0), ack_now }
    }

    /// A trailer after the last packet of a subflow, if its section has packets.
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
    fn new() -> Self {
        Self { next_move: Time::NEVER, next_probe_at: Time::NEVER, lacks_jitter: true, ..Self::default() }
    }

    /// Cancels trailers, since nothing is in flight.
    fn rest(&mut self) {
        (self.due, self.fresh, self.repeated, self.next_probe_at) = (0, 0, None, Time::NEVER);
    }
}

impl Subflow {
    /// Takes a round-trip time of the present path. Returns whether it is of that path.
    fn sample(&mut self, ev: Ev, rtt_ps: u64) -> bool {
        let rtt = (rtt_ps >> RTT_SHIFT).clamp(1, u64::from(u32::MAX)) as u32;
        // On overflow a sample is left out, which preserves the mean.
        if ev == self.ev
            && let (Some(sum), Some(samples)) = (self.rtt_sum.checked_add(rtt), self.samples.checked_add(1))
        {
            (self.rtt_sum, self.samples) = (sum, samples);
        }
        ev == self.ev
    }

    /// The mean in picoseconds; `None` without samples.
    fn mean(&self) -> Option<u64> {
        (u64::from(self.rtt_sum) << RTT_SHIFT).checked_div(u64::from(self.samples))
    }
}

#[derive(Clone, Debug)]
struct Settings {
    interval_ps: u64,
    jitter_ps: u64,
    threshold_permille: u64,
    /// Default: a base round-trip time.
    probe_us: Option<Micros>,
    probe_packets: u64,
    log2_subflows: u8,
    moves_silent: bool,
    detects: bool,
    probes_repeated: bool,
}

impl Settings {
    fn new(own: &OrderedChaosConfig, path: &Path) -> Self {
        let subflows = u16::from(own.subflows).clamp(1, Section::MAX_SUBFLOWS as u16).min(path.evs);
        let interval_ps = own.interval_us.ps().clamp(1, MAX_INTERVAL_PS);
        Self {
            interval_ps,
            jitter_ps: (interval_ps / 1000).saturating_mul(own.jitter.to_permille().min(1000)),
            threshold_permille: own.threshold.to_permille().min(1 << 20),
            probe_us: own.probe_us,
            probe_packets: own.probe_packets.into(),
            log2_subflows: subflows.ilog2() as u8,
            moves_silent: own.silence,
            detects: own.detection,
            probes_repeated: own.probe_retransmissions,
        }
    }

    fn probe_interval_ps(&self, path: &Path) -> u64 {
        self.probe_us.map_or(path.base_rtt_ps, Micros::ps).clamp(1, MAX_INTERVAL_PS)
    }
}

const fn bit(index: usize) -> u64 {
    1 << (index & 63)
}

const SUBFLOWS: u8 = 16;
const MAX_INTERVAL_PS: u64 = 1_000_000_000_000;
/// A sum of 2^32 such units is 4.4 s: all the round-trip times that are counted, at 67 us each.
const RTT_SHIFT: u32 = 10;
