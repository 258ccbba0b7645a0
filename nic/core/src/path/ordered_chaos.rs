//! Reactive subflow spraying with precise fast loss detection (*Ordered Chaos*, SC 2026, the public artifact). A few
//! subflows each keep their order on one path, and now and then the worst one moves to another path. Clauses (ORC-n)
//! are in `docs/specs/ordered-chaos.md`; the receiver's half is `loss/subflow.rs`.

use alloc::boxed::Box;
use alloc::vec;

use super::{
    AckInfo, Balancer, Ev, Flight, LossCause, LossInfo, Offers, PacketInfo, Scheme, Section, SendInfo, Trailer,
    Transmission, draw_lasting, draw_other,
};
use crate::Time;
use crate::event::Publisher;
use crate::now::{Now, Path};
use crate::rng::Rng;
use crate::settings::settings;
use crate::units::{Micros, Ratio};
use rand_core::RngCore;

#[cfg(test)]
mod tests;

settings! {
    /// The settings of [`OrderedChaos`].
    pub struct OrderedChaosConfig {
        /// Subflows, a power of two, at most as many as there are entropy values. Packets go to them in turn.
        #[schemars(range(min = 1, max = 64))]
        pub subflows: u8 = SUBFLOWS,
        /// Time after which the subflow with the largest mean round-trip time moves to another path.
        #[schemars(range(min = 0.1, max = 1_000_000))]
        pub interval_us: Micros = Micros::new(15),
        /// Largest random change of that time, either way, as a share of it. Thousandths count.
        #[schemars(range(min = 0, max = 1), extend("x-decimals" = 3))]
        pub jitter: Ratio = Ratio::permille(250),
        /// A subflow moves only if the largest mean exceeds the least one by this share of the least. Thousandths count.
        #[schemars(range(min = 0, max = 8), extend("x-decimals" = 3))]
        pub threshold: Ratio = Ratio::default(),
        /// Whether a subflow also moves when it hears nothing for two such times while packets of it are in flight. Each
        /// of these times is a base round-trip time at least.
        pub silence: bool = true,
        /// Whether packets tell the receiver which packets went before them on their path, and trailers follow them. The
        /// receiver finds losses from this.
        pub detection: bool = true,
        /// Time between trailers of a subflow (the artifact's probes). By default the base round-trip time.
        #[schemars(range(min = 0.1, max = 1_000_000))]
        pub probe_us: Option<Micros> = None,
        /// Packets of a subflow between trailers, in place of the time. 0 goes by the time.
        #[schemars(range(min = 0, max = 4_095))]
        pub probe_packets: u16 = 0,
        /// Whether a trailer follows every packet that is sent again.
        pub probe_retransmissions: bool = true,
    }
}

/// Sends packet `p` over subflow `p` modulo their number, and moves subflows from path to path. The state is boxed.
#[derive(Clone, Debug)]
pub struct OrderedChaos {
    state: Box<Schedule>,
    subflows: Box<[Subflow]>,
    settings: Settings,
}

/// What is to be done, and when. Sets of subflows are bitmaps.
#[derive(Clone, Copy, Debug, Default)]
struct Schedule {
    /// The number of the next new packet.
    next_psn: u64,
    /// When the worst subflow moves.
    next_move: Time,
    /// When trailers are next due by time.
    next_probe_at: Time,
    /// Subflows whose trailer goes before anything else.
    due: u64,
    /// Subflows that sent something since their last trailer.
    fresh: u64,
    /// Subflows that take another path with their next packet.
    moving: u64,
    /// Of those, the subflows whose path seems dead.
    fleeing: u64,
    /// Subflows that heard nothing in the last listening time, with packets in flight.
    quiet: u64,
    /// Subflows that heard something in the present one.
    heard: u64,
    /// When the present listening time may end.
    next_quiet: Time,
    /// The path with the least mean, in the last interval that had samples.
    best: Option<Ev>,
    /// A packet that was just sent again: its trailer goes before anything else.
    repeated: Option<u64>,
    /// The section of the packet last sent.
    section: Section,
    /// The present interval has no jitter added yet.
    is_plain: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Subflow {
    /// Sum of the round-trip times in this interval, in units of 2^10 ps (1.02 ns).
    rtt_sum: u32,
    /// How many there were.
    samples: u16,
    ev: Ev,
    /// New packets of the present section; counting stops one above what a frame can tell.
    sent: u16,
    /// Packets not acknowledged.
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
    fn offers(&self) -> Offers {
        Offers { sections: self.settings.detects, packet_feedback: true, ..Offers::NOTHING }
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
        if ack.open_packets == 0 {
            self.state.rest();
        }
        if now.time >= self.state.next_move {
            self.end_interval(now);
        }
    }

    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        if loss.cause == LossCause::GoneBack {
            return;
        }
        let index = self.index(loss.psn);
        if loss.cause != LossCause::Timeout {
            //= docs/specs/ordered-chaos.md#ORC-3 round-trip times
            let is_present = self.subflows[index].sample(loss.ev, now.since(loss.sent_at));
            // A NACK shows that the path carries packets. The gap rule is only the sender's guess.
            if is_present && loss.cause != LossCause::SackGap {
                self.state.heard |= bit(index);
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
            return Some(self.ask_for(psn, self.subflows[self.index(psn)].ev, false));
        }
        if now.time >= self.state.next_probe_at {
            self.end_probe_interval(now);
            //= docs/specs/ordered-chaos.md#ORC-15 trailers of the oldest packet
            let is_old = |oldest: &Transmission| now.since(oldest.sent_at) >= self.settings.probe_interval_ps(now.path);
            if let Some(oldest) = flight.oldest.filter(is_old) {
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

    //= docs/specs/ordered-chaos.md#ORC-3 round-trip times
    fn on_packet_acked(&mut self, now: Now<'_>, packet: &PacketInfo) {
        let index = self.index(packet.psn);
        let subflow = &mut self.subflows[index];
        subflow.open = subflow.open.saturating_sub(1);
        if !packet.was_lost && subflow.sample(packet.ev, now.since(packet.sent_at)) {
            self.state.heard |= bit(index);
        }
    }
}

impl OrderedChaos {
    /// The entropy values of the subflows. One that is to move has its old value until its next packet.
    pub fn evs(&self) -> impl Iterator<Item = Ev> {
        self.subflows.iter().map(|subflow| subflow.ev)
    }

    fn index(&self, psn: u64) -> usize {
        (psn & (self.subflows.len() as u64 - 1)) as usize
    }

    /// Starts the timers if they rest. Adds jitter to the present interval, which began where no generator was at
    /// hand.
    //= docs/specs/ordered-chaos.md#ORC-4 intervals
    fn arm(&mut self, now: Now<'_>, rng: &mut Rng) {
        let Self { state, settings, .. } = self;
        if state.next_probe_at == Time::NEVER {
            state.next_probe_at = now.after(settings.probe_interval_ps(now.path));
        }
        if state.next_move == Time::NEVER {
            state.next_move = now.after(settings.interval_ps);
        }
        if state.is_plain {
            state.is_plain = false;
            let jitter_ps = (u128::from(rng.next_u32()) * 2 * u128::from(settings.jitter_ps)) >> 32;
            let at = state.next_move.after(jitter_ps as u64);
            state.next_move = at.before(settings.jitter_ps);
        }
    }

    /// Counts a new packet of a subflow into its section.
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

    /// Gives a subflow another path, where its next section begins.
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

    /// Decides that a subflow takes another path with its next packet. A trailer ends its section first.
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
        self.state.is_plain = true;
    }

    /// Moves the subflows that heard nothing for two listening times.
    //= docs/specs/ordered-chaos.md#ORC-8 silent subflows
    fn end_listening(&mut self, now: Now<'_>) {
        let quiet = self.open() & !self.state.heard;
        let silent = quiet & self.state.quiet;
        (self.state.quiet, self.state.heard) = (quiet & !silent, 0);
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

    /// The subflows that have packets in flight.
    fn open(&self) -> u64 {
        let subflows = self.subflows.iter().enumerate();
        subflows.fold(0, |open, (index, subflow)| if subflow.open > 0 { open | bit(index) } else { open })
    }

    /// A trailer behind the last transmission of a packet, on its path.
    fn ask_for(&self, psn: u64, ev: Ev, ack_now: bool) -> Trailer {
        Trailer { psn, ev, section: Section::new(self.settings.log2_subflows, 0), ack_now }
    }

    /// A trailer behind the last packet of a subflow, if its section has packets.
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
        Self { next_move: Time::NEVER, next_probe_at: Time::NEVER, is_plain: true, ..Self::default() }
    }

    /// Nothing is in flight: no trailer has anything to tell.
    fn rest(&mut self) {
        (self.due, self.fresh, self.repeated, self.next_probe_at) = (0, 0, None, Time::NEVER);
    }
}

impl Subflow {
    /// Takes a round-trip time if it is of the present path. Returns whether it is.
    fn sample(&mut self, ev: Ev, rtt_ps: u64) -> bool {
        let rtt = (rtt_ps >> RTT_SHIFT).clamp(1, u64::from(u32::MAX)) as u32;
        // What does not fit any more is left out, so that the mean stays one.
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

/// [`OrderedChaosConfig`] brought into range.
#[derive(Clone, Debug)]
struct Settings {
    interval_ps: u64,
    jitter_ps: u64,
    threshold_permille: u64,
    /// By default a base round-trip time.
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

/// Subflows of a connection by default.
const SUBFLOWS: u8 = 16;
/// A second, in ps.
const MAX_INTERVAL_PS: u64 = 1_000_000_000_000;
/// A sum of 2^32 such units is 4.4 s: all the round-trip times that are counted, at 67 us each.
const RTT_SHIFT: u32 = 10;
