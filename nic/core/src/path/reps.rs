//! REPS, recycled entropy packet spraying (REPS §3; `docs/specs/reps.md`): an EV that comes back
//! unmarked is reused once; after a failure only EVs that worked are used.

mod config;

pub use self::config::{FailureSignal, FrozenWalk, MAX_BUFFER, PROBE_RTTS, RepsConfig, RepsRule, ThawCheck};
use super::suspicion::{Suspicion, wait_ticks};
use super::{
    AckInfo, Balancer, Ev, Features, LossCause, LossInfo, Now, Path, ProbeInfo, Rng, Scheme, SendInfo, Time, draw,
};
use crate::event::{Choice, Event, FreezeReason, Publisher};
use crate::units::{Micros, Ratio};

/// Recycled entropy packet spraying. [`Scheme::STATE_BYTES`] of its bytes are the paper's state
/// (REPS table 1), the rest is settings, 32 bytes for probes, and what forces freezing in
/// experiments.
#[derive(Clone, Debug)]
pub struct Reps {
    state: Buffer,
    /// `exitFreezingMode`.
    exit_freezing: Time,
    suspicion: Suspicion,
    /// When the suspect's lost packet was sent.
    sent_at: Time,
    /// When the timeout of that packet expires.
    expires_at: Time,
    force: Force,
    settings: Settings,
}

impl Reps {
    #[cfg(test)]
    /// Packets that explore before cached entropy values are reused (exploreCounter).
    pub fn exploring(&self) -> u16 {
        self.state.explore
    }

    #[cfg(test)]
    /// Cached entropy values that have not been reused since (numberOfValidEVs).
    pub fn valid_evs(&self) -> u8 {
        self.state.valid()
    }

    #[cfg(test)]
    /// Every entropy value in the buffer, used or not, in storage order.
    pub fn cached_evs(&self) -> &[Ev] {
        &self.state.cached[..usize::from(self.state.filled())]
    }

    /// Takes feedback that shows `ev` to be good: algorithm 1, lines 9-18, but thaws before it
    /// caches, since thawing may empty the buffer and `ev` must stay.
    fn on_good_path(&mut self, now: Now<'_>, ev: Ev, publisher: &mut dyn Publisher) {
        self.check_thaw(now, publisher);
        if ev.index() < now.path.evs {
            self.state.cache(ev, self.settings.depth);
        }
    }

    /// Leaves freezing mode if its time is over: algorithm 1, lines 15-18.
    //= docs/specs/reps.md#REPS-12 thawing
    fn check_thaw(&mut self, now: Now<'_>, publisher: &mut dyn Publisher) {
        if self.state.is_frozen()
            && self.settings.timed_exit
            && self.force != Force::Frozen
            && now.time > self.exit_freezing
        {
            self.thaw(now, publisher);
        }
    }

    /// Freezes permanently once the time of a forced freeze has come.
    //= docs/specs/reps.md#REPS-25 forced freezing
    #[cold]
    fn check_force(&mut self, now: Now<'_>, publisher: &mut dyn Publisher) {
        if let Force::After(ps) = self.force {
            self.force = Force::At(now.after(ps));
        }
        if let Force::At(at) = self.force
            && at <= now.time
        {
            if !self.state.is_frozen() {
                self.state.freeze();
                publisher.on_event(now.time, Event::FreezeEntered { reason: FreezeReason::Setting });
            }
            self.state.explore = 0;
            self.force = Force::Frozen;
        }
    }

    fn thaw(&mut self, now: Now<'_>, publisher: &mut dyn Publisher) {
        if self.settings.empty_on_thaw {
            self.state = Buffer::default();
        }
        self.state.set_frozen(false);
        self.suspicion = Suspicion::NONE;
        self.state.explore = self.settings.explore_packets.unwrap_or(now.path.bdp_packets as u16);
        publisher.on_event(now.time, Event::FreezeExited);
    }

    /// Takes a failed path, over which a packet sent at `sent_at` was lost: algorithm 1, lines 21-26.
    //= docs/specs/reps.md#REPS-10 freezing on a failure
    //= docs/specs/reps.md#REPS-11 ignored failures
    fn on_failure(&mut self, now: Now<'_>, ev: Ev, sent_at: Time, reason: FreezeReason, publisher: &mut dyn Publisher) {
        //= docs/specs/reps.md#REPS-24 without freezing
        if self.state.is_frozen() || !self.settings.freezing {
            return;
        }
        self.suspicion = Suspicion::NONE;
        if self.state.explore > 0 {
            return;
        }
        self.state.freeze();
        self.exit_freezing = now.after(self.settings.freezing_timeout_ps(now.path, now.time.since(sent_at)));
        if self.settings.probing {
            self.suspicion = Suspicion::of(now.time.after(self.settings.probe_interval_ps(now.path)), ev, 0, true);
        }
        publisher.on_event(now.time, Event::FreezeEntered { reason });
    }

    /// Starts to probe the path of a lost packet, unless it probes another.
    //= docs/specs/reps.md#REPS-27 evidence by EV
    fn suspect_path(&mut self, now: Now<'_>, loss: &LossInfo) {
        if self.suspicion.suspect().is_none() && !self.state.is_frozen() && self.settings.freezing {
            self.suspicion = Suspicion::of(now.time, loss.ev, wait_ticks(now.path, loss), false);
            (self.sent_at, self.expires_at) = (loss.sent_at, loss.expires_at);
        }
    }

    /// Whether an untrimmed loss means a failed path rather than congestion (REPS appendix A).
    //= docs/specs/reps.md#REPS-15 networks that do not trim
    //= docs/specs/reps.md#REPS-16 declared losses
    fn is_failure(&self, path: &Path, loss: &LossInfo) -> bool {
        if loss.cause == LossCause::SackGap && self.settings.failure_signal != FailureSignal::AnyLoss {
            return false;
        }
        loss.max_before_timeout_ps < self.settings.congestion_rtt_ps(path)
    }

    fn probes(&self) -> bool {
        self.suspicion.suspect().is_some() && self.force != Force::Frozen
    }
}

impl Scheme for Reps {
    type Config = RepsConfig;

    /// At any depth, with a 32-bit exit time; the paper's table 1 has 25 at depth 8.
    //= docs/specs/reps.md#REPS-1 variables
    const STATE_BYTES: usize = size_of::<Buffer>() + size_of::<u32>();

    fn make(own: &RepsConfig, path: &Path, _rng: &mut Rng) -> Self {
        let force = own.force_freezing_us.map_or(Force::Never, |time| Force::After(time.ps()));
        Self {
            state: Buffer::default(),
            exit_freezing: Time::ZERO,
            suspicion: Suspicion::NONE,
            sent_at: Time::ZERO,
            expires_at: Time::ZERO,
            force,
            settings: Settings::new(own, path.trimming),
        }
    }
}

impl Balancer for Reps {
    fn features(&self) -> Features {
        Features { sprays: true, reuses: true, probing: self.settings.sends_probes(), ..Features::default() }
    }

    fn is_frozen(&self) -> bool {
        self.state.is_frozen()
    }

    fn next_choice(&self) -> Choice {
        match (self.state.explores(), self.state.is_frozen()) {
            (true, _) => Choice::Explored,
            (false, true) => Choice::Frozen,
            (false, false) => Choice::Recycled,
        }
    }

    /// ONSEND of algorithm 2.
    //= docs/specs/reps.md#REPS-5 exploration
    //= docs/specs/reps.md#REPS-6 the explore counter
    fn next_ev(&mut self, now: Now<'_>, _packet: &SendInfo, rng: &mut Rng) -> Ev {
        let state = &mut self.state;
        if state.explores() {
            state.explore = state.explore.saturating_sub(1);
            return draw(now.path.evs, rng);
        }
        if state.is_frozen() && self.settings.frozen_walk == FrozenWalk::AllSlots {
            return state.walk_all();
        }
        state.reuse(self.settings.depth)
    }

    /// ONACK of algorithm 1.
    //= docs/specs/reps.md#REPS-2 marked ACKs
    //= docs/specs/reps.md#REPS-4 coalesced ACKs
    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, publisher: &mut dyn Publisher) {
        if self.force != Force::Never {
            self.check_force(now, publisher);
        }
        if self.suspicion.is_confirmed_by(now, ack) && now.time >= self.expires_at {
            let suspect = self.suspicion.suspect().unwrap_or_default();
            self.on_failure(now, suspect, self.sent_at, FreezeReason::Probes, publisher);
        }
        if !ack.marked {
            self.on_good_path(now, ack.ev, publisher);
        } else if self.settings.thaw_check == ThawCheck::AnyFeedback {
            self.check_thaw(now, publisher);
        }
    }

    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, publisher: &mut dyn Publisher) {
        if !loss.cause.is_trim() {
            if self.settings.failure_signal == FailureSignal::Probes && loss.is_early {
                self.suspect_path(now, loss);
            } else if self.is_failure(now.path, loss) {
                self.on_failure(now, loss.ev, loss.sent_at, FreezeReason::Loss(loss.cause), publisher);
            }
        } else if self.settings.thaw_check == ThawCheck::AnyFeedback {
            self.check_thaw(now, publisher);
        }
    }

    fn poll_timeout(&self, _path: &Path) -> Option<Time> {
        self.probes().then_some(self.suspicion.next_at()).filter(|at| *at != Time::NEVER)
    }

    //= docs/specs/reps.md#REPS-17 probing the lost EV
    fn poll_probe(&mut self, now: Now<'_>) -> Option<Ev> {
        if !self.probes() {
            return None;
        }
        match self.state.is_frozen() {
            true => self.suspicion.repeat(now.time, self.settings.probe_interval_ps(now.path)),
            false => self.suspicion.poll(now.time),
        }
    }

    fn has_probed(&self) -> bool {
        self.probes() && self.suspicion.has_probed()
    }

    //= docs/specs/reps.md#REPS-18 answers to probes
    fn on_probe_ack(&mut self, now: Now<'_>, answer: &ProbeInfo, publisher: &mut dyn Publisher) {
        if !self.probes() || self.suspicion.suspect() != Some(answer.ev) {
            return;
        }
        if !self.state.is_frozen() {
            if self.suspicion.on_answer() {
                self.suspicion = Suspicion::NONE;
            }
        } else if !answer.marked {
            self.thaw(now, publisher);
        }
    }

    //= docs/specs/reps.md#REPS-4a several EVs in an ACK
    fn on_echo(&mut self, now: Now<'_>, ev: Ev, marked: bool) {
        if !marked && ev.index() < now.path.evs {
            self.state.cache(ev, self.settings.depth);
        }
    }
}

/// The paper's variables. The valid slots are always the `valid` ones before the head, which needs
/// no validity bit. A send takes the oldest; the head passes used slots when none is valid.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    /// `repsBuffer[i].cachedEV`; slots from `filled` were never written.
    cached: [Ev; MAX_BUFFER as usize],
    /// `exploreCounter`, 16 bits wide so that a BDP of more than 255 packets fits.
    explore: u16,
    /// Bits 0-2 `head`, bits 3-5 the cursor of [`FrozenWalk::AllSlots`], bit 6 `isFreezingMode`.
    cursors: u8,
    /// Bits 0-3 `numberOfValidEVs`, bits 4-7 slots ever written.
    counts: u8,
}

//= docs/specs/reps.md#REPS-1a bytes of state
const _: () = assert!(Reps::STATE_BYTES <= 25, "REPS table 1: 193 bits at depth 8");

impl Buffer {
    /// Writes `ev` at the head: algorithm 1, lines 9-14.
    //= docs/specs/reps.md#REPS-3 caching an EV
    fn cache(&mut self, ev: Ev, depth: u8) {
        let head = self.head();
        let filled = self.filled() + u8::from(head == self.filled());
        let valid = (self.valid() + 1).min(depth);
        self.cached[usize::from(head & 7)] = ev;
        self.counts = filled << 4 | valid;
        self.set_head(head + 1, depth);
    }

    fn explores(&self) -> bool {
        self.explore > 0 || self.filled() == 0 || (self.valid() == 0 && !self.is_frozen())
    }

    /// GETNEXTEV of algorithm 2. At least one slot must have been written.
    //= docs/specs/reps.md#REPS-7 reusing the oldest valid EV
    //= docs/specs/reps.md#REPS-8 reuse while frozen
    fn reuse(&mut self, depth: u8) -> Ev {
        let (head, valid) = (self.head(), self.valid());
        let offset = if valid > 0 {
            self.counts -= 1;
            if head >= valid { head - valid } else { head + depth - valid }
        } else {
            // The paper's buffer is full by now. This one may not be; the walk skips empty slots.
            //= docs/specs/reps.md#REPS-9 slots never written
            let offset = if head < self.filled() { head } else { 0 };
            self.set_head(offset + 1, depth);
            offset
        };
        self.cached[usize::from(offset & 7)]
    }

    /// The artifact's walk over every written slot, with its own cursor.
    //= docs/specs/reps.md#REPS-19 the walk over all slots
    fn walk_all(&mut self) -> Ev {
        let cursor = self.cursors >> 3 & 7;
        let next = if cursor + 1 < self.filled() { cursor + 1 } else { 0 };
        self.cursors = self.cursors & !(7 << 3) | next << 3;
        self.cached[usize::from(cursor)]
    }

    fn freeze(&mut self) {
        self.set_frozen(true);
        self.cursors &= !(7 << 3);
    }

    fn head(&self) -> u8 {
        self.cursors & 7
    }

    fn set_head(&mut self, head: u8, depth: u8) {
        self.cursors = self.cursors & !7 | if head == depth { 0 } else { head };
    }

    fn is_frozen(&self) -> bool {
        self.cursors & FROZEN != 0
    }

    fn set_frozen(&mut self, frozen: bool) {
        self.cursors = self.cursors & !FROZEN | if frozen { FROZEN } else { 0 };
    }

    fn valid(&self) -> u8 {
        self.counts & 15
    }

    fn filled(&self) -> u8 {
        self.counts >> 4
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Force {
    Never,
    /// This long after the first acknowledgement.
    After(u64),
    At(Time),
    /// Frozen permanently.
    Frozen,
}

#[derive(Clone, Debug)]
struct Settings {
    /// Default: follows from the path.
    freezing_timeout_us: Option<Micros>,
    congestion_rtt: Ratio,
    /// Default: follows from the path.
    probe_us: Option<Micros>,
    /// Default: a bandwidth-delay product.
    explore_packets: Option<u16>,
    depth: u8,
    probing: bool,
    freezing: bool,
    timed_exit: bool,
    empty_on_thaw: bool,
    failure_signal: FailureSignal,
    thaw_check: ThawCheck,
    frozen_walk: FrozenWalk,
}

impl Settings {
    fn new(own: &RepsConfig, trimming: bool) -> Self {
        let paper = own.rule == RepsRule::Paper;
        let by_rule = (own.rule == RepsRule::UltraEthernet).then_some(ULTRA_ETHERNET_EXPLORE);
        Self {
            freezing_timeout_us: own.freezing_timeout_us,
            congestion_rtt: own.congestion_rtt,
            probe_us: own.probe_us,
            explore_packets: own.explore_packets.or(by_rule),
            probing: own.probing,
            depth: own.buffer.clamp(1, MAX_BUFFER),
            freezing: own.freezing,
            timed_exit: !own.probing || own.timed_exit,
            empty_on_thaw: own.empty_on_thaw.unwrap_or(!paper),
            failure_signal: own.failure_signal.unwrap_or(match paper && trimming {
                true => FailureSignal::AnyLoss,
                false if paper => FailureSignal::Probes,
                false => FailureSignal::TimeoutOnly,
            }),
            thaw_check: own.thaw_check.unwrap_or(if paper { ThawCheck::UnmarkedAck } else { ThawCheck::AnyFeedback }),
            frozen_walk: own.frozen_walk.unwrap_or(if paper { FrozenWalk::ValidFirst } else { FrozenWalk::AllSlots }),
        }
    }

    /// The minimum RTT of congestion. Where the network trims, trimming decides.
    //= docs/specs/reps.md#REPS-14 networks that trim
    fn congestion_rtt_ps(&self, path: &Path) -> u64 {
        if path.trimming || self.congestion_rtt == Ratio::default() {
            return u64::MAX;
        }
        self.congestion_rtt.of(path.base_rtt_ps).max(1)
    }

    //= docs/specs/reps.md#REPS-10 until now plus the freezing
    fn freezing_timeout_ps(&self, path: &Path, detection_ps: u64) -> u64 {
        let default_ps = || {
            FREEZING_TIMEOUT_PS
                .max(path.base_rtt_ps * FREEZING_RTTS)
                .max(detection_ps.saturating_mul(FREEZING_DETECTIONS))
        };
        self.freezing_timeout_us.map_or_else(default_ps, Micros::ps)
    }

    fn sends_probes(&self) -> bool {
        self.probing || (self.freezing && self.failure_signal == FailureSignal::Probes)
    }

    fn probe_interval_ps(&self, path: &Path) -> u64 {
        self.probe_us.map_or(path.base_rtt_ps * PROBE_RTTS, Micros::ps).max(1)
    }
}

/// About as long as routing takes to exclude a failed link (REPS §3.2).
const FREEZING_TIMEOUT_PS: u64 = 10_000_000_000;
/// Minimum base RTTs of a freeze.
const FREEZING_RTTS: u64 = 128;
/// Minimum length of a freeze, as a multiple of the time that the failure took to detect: with one
/// failed path of four or more, exploring after a freeze then costs under 1 % of the packets.
const FREEZING_DETECTIONS: u64 = 32;

/// Packets that explore after freezing in the Ultra Ethernet artifact.
const ULTRA_ETHERNET_EXPLORE: u16 = 16;

const FROZEN: u8 = 1 << 6;
