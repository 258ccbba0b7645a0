//! What a sender learns of its path while it sends: the round-trip time without queues, and how much the path takes.
//! Clauses (CAL-n) are in `docs/specs/calibration.md`.

use super::competing_traffic::{Outcome, Rivals};
use super::lateness::{Lateness, smoothed};
use super::short_queues::{RoundPackets, ShortQueues};
use crate::Time;
use crate::feedback::AckInfo;
use crate::flow::{FIRST_PACKETS, FlowConfig};
use crate::link::rate_bps;
use crate::loss::{RtoConfig, RttHistogram};
use crate::now::Path;

/// What acknowledgements tell of the path. What follows is in the sender's [`Path`].
#[derive(Clone, Debug)]
pub(in crate::flow::sender) struct Calibration {
    pub(in crate::flow::sender) rto: RtoConfig,
    /// The balancer sends most packets where others came back from.
    reuses: bool,
    /// Least round-trip times of the present epoch and of the one before; `u64::MAX` where there was none.
    least_ps: [u64; 2],
    epoch_start: Time,
    /// Smoothed round-trip time of all acknowledgements; 0 before the first.
    usual_ps: u64,
    /// Smoothed round-trip time of acknowledgements without a mark; 0 before the first.
    calm_ps: u64,
    pub(in crate::flow::sender) rtts: RttHistogram,
    /// The network has marked a packet, or one was late where it does not mark.
    marks: bool,
    lateness: Lateness,
    rivals: Rivals,
    round: Round,
    /// Wire bytes that the best of the latest rounds delivered in one base round-trip time.
    best_bytes: u64,
    phase: Phase,
    queues: ShortQueues,
    /// Sum of the shares of marks that the balancer sees, in 2^-16. Each time it overflows, it sees one.
    shown: u16,
    /// The path has changed since the sender was told.
    is_due: bool,
}

/// What arrived since the round began. A round lasts one smoothed round-trip time.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    start: Time,
    bytes: u64,
    packets: u32,
    marked_packets: u32,
    lost_packets: u32,
    /// A packet took long.
    is_late: bool,
}

/// How the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It grows with every round. So many rounds in a row have delivered little more than the best before.
    Starting(u8),
    /// The congestion control moves it.
    Steady,
}

impl Calibration {
    /// `reuses` says whether the balancer [reuses](crate::path::Offers::reuses) paths.
    pub(in crate::flow::sender) fn new(config: &FlowConfig, reuses: bool) -> Self {
        Self {
            rto: config.rto,
            reuses,
            least_ps: [u64::MAX; 2],
            epoch_start: Time::ZERO,
            usual_ps: 0,
            calm_ps: 0,
            rtts: RttHistogram::default(),
            marks: false,
            lateness: Lateness::new(),
            rivals: Rivals::new(),
            round: Round::default(),
            best_bytes: 0,
            phase: Phase::Starting(0),
            queues: ShortQueues::default(),
            shown: 0,
            is_due: false,
        }
    }

    /// Takes an acknowledgement, and the smoothed round-trip time; marks it where the network should have. `reports` says that a data packet
    /// triggered it. Returns whether the path has changed.
    #[inline]
    pub(in crate::flow::sender) fn learn(
        &mut self,
        now: Time,
        path: &mut Path,
        ack: &mut AckInfo,
        smoothed_ps: u64,
        reports: bool,
    ) -> bool {
        self.round.bytes += ack.bytes;
        if reports {
            if ack.marked || ack.marked_packets > 0 {
                self.lateness.end();
            }
            let least_ps = self.least_ps().min(ack.rtt_ps);
            self.usual_ps = smoothed(self.usual_ps, ack.rtt_ps);
            path.slow_rtt_ps = self.slow_rtt_ps(least_ps);
            if !self.rivals.govern() {
                self.lateness.on_ack(now, ack.packets, self.usual_ps, least_ps);
            }
            if self.lateness.is_late(ack.rtt_ps, least_ps) {
                (ack.marked, ack.marked_packets) = (true, ack.packets);
            }
            self.on_ack(now, path, ack, smoothed_ps);
        }
        reports && core::mem::take(&mut self.is_due)
    }

    /// Round-trip time from which a path is slow beside the others. Marks show full queues only, and not on every network.
    //= docs/specs/calibration.md#CAL-12 slow paths
    #[inline]
    fn slow_rtt_ps(&self, least_ps: u64) -> u64 {
        let usual_ps = self.usual_ps.saturating_sub(least_ps);
        least_ps.saturating_add(usual_ps + usual_ps / 4)
    }

    /// Whether a frame that took so long counts as marked.
    pub(in crate::flow::sender) fn is_late(&self, rtt_ps: u64) -> bool {
        self.lateness.is_late(rtt_ps, self.least_ps())
    }

    /// Takes a loss; returns whether it counts for the congestion control. `trimmed` says that a switch reported it.
    //= docs/specs/calibration.md#CAL-3 slow start
    #[inline]
    pub(in crate::flow::sender) fn on_loss(&mut self, now: Time, smoothed_ps: u64, trimmed: bool) -> bool {
        //= docs/specs/calibration.md#CAL-16 timeouts before the first acknowledgement
        if smoothed_ps == 0 && !trimmed {
            return true;
        }
        self.round.lost_packets = self.round.lost_packets.saturating_add(1);
        //= docs/specs/calibration.md#CAL-14 random losses
        let by_chance = !trimmed && self.queues.is_by_chance(self.round.lost_packets);
        if !by_chance {
            self.phase = Phase::Steady;
            self.rivals.on_loss(now, smoothed_ps);
        }
        if !trimmed && !self.rivals.govern() {
            self.lateness.on_loss();
        }
        !by_chance
    }

    /// The least window after an acknowledgement that moved it from `before` to `after`, in wire bytes.
    #[inline]
    pub(in crate::flow::sender) fn least_window(&self, before: u64, after: u64, ack: &AckInfo) -> u64 {
        if self.is_starting() || self.rivals.govern() {
            return 0;
        }
        let is_used = ack.in_flight_bytes.saturating_add(ack.bytes) > before / 2;
        self.queues.least_window([before, after], ack.bytes, is_used)
    }

    /// Whether the balancer sees that a packet was marked which took so long.
    //= docs/specs/calibration.md#CAL-17 marks passed to the balancer
    #[inline]
    pub(in crate::flow::sender) fn shows_mark(&mut self, rtt_ps: u64) -> bool {
        if !self.reuses {
            return true;
        }
        let delay_ps = rtt_ps.saturating_sub(self.least_ps());
        // Half of the delay's part of the round-trip time.
        let share = (delay_ps / (rtt_ps >> 15).max(1)).clamp(LEAST_SHOWN, 1 << 15) as u16;
        let (shown, is_full) = self.shown.overflowing_add(share);
        self.shown = shown;
        is_full
    }

    /// Whether losses govern in place of marks.
    pub(in crate::flow::sender) fn losses_govern(&self) -> bool {
        self.rivals.govern()
    }

    /// What congestion control takes for the marks of an acknowledgement: whether it is marked, and how many of its packets.
    #[inline]
    pub(in crate::flow::sender) fn signs(&self, now: Time, ack: &AckInfo) -> (bool, u16) {
        match self.rivals.govern() {
            false => (ack.marked, ack.marked_packets),
            true if self.rivals.marks(now) => (true, ack.packets),
            true => (false, 0),
        }
    }

    /// Whether the window grows with every round.
    pub(in crate::flow::sender) fn is_starting(&self) -> bool {
        self.phase != Phase::Steady
    }

    /// Takes an acknowledgement with its round-trip time, and the smoothed one.
    #[inline]
    fn on_ack(&mut self, now: Time, path: &mut Path, ack: &AckInfo, smoothed_ps: u64) {
        self.take_rtt(now, ack);
        self.round.is_late |= ack.rtt_ps >= self.base_rtt_ps().saturating_mul(LATE_RTTS);
        self.round.packets = self.round.packets.saturating_add(ack.packets.into());
        if ack.marked || ack.marked_packets > 0 {
            self.round.marked_packets = self.round.marked_packets.saturating_add(ack.marked_packets.max(1).into());
            self.marks = true;
            if !self.rivals.govern() && self.queues.are_many(self.round.marked_packets) {
                self.phase = Phase::Steady;
            }
        }
        if now.since(self.round.start) >= smoothed_ps.max(1) {
            self.end_round(now, path);
        }
    }

    /// Takes a round-trip time.
    //= docs/specs/calibration.md#CAL-1 base round-trip time
    fn take_rtt(&mut self, now: Time, ack: &AckInfo) {
        self.rtts.on_sample(ack.rtt_ps);
        if now.since(self.epoch_start) >= EPOCH_PS {
            self.least_ps = [u64::MAX, self.least_ps[0]];
            self.epoch_start = now;
        }
        self.least_ps[0] = self.least_ps[0].min(ack.rtt_ps);
        if !ack.marked {
            self.calm_ps = smoothed(self.calm_ps, ack.rtt_ps);
        }
    }

    /// The least round-trip time; [`u64::MAX`] before the first.
    fn least_ps(&self) -> u64 {
        self.least_ps[0].min(self.least_ps[1])
    }

    /// The round-trip time without queues, as far as it is known.
    fn base_rtt_ps(&self) -> u64 {
        let least_ps = self.least_ps();
        if self.marks && self.calm_ps > 0 { self.calm_ps.max(least_ps) } else { least_ps }
    }

    /// Learns from what the round delivered, and begins the next one.
    //= docs/specs/calibration.md#CAL-2 rounds
    #[inline(never)]
    fn end_round(&mut self, now: Time, path: &mut Path) {
        let next = Round { start: now, ..Round::default() };
        let Round { start, bytes, packets, marked_packets, lost_packets, is_late } =
            core::mem::replace(&mut self.round, next);
        let base_rtt_ps = self.base_rtt_ps();
        if start == Time::ZERO {
            // The first acknowledgement takes the place of the guess, however near that was: the path takes the first window.
            return self.settle(path, base_rtt_ps, FIRST_PACKETS as u32);
        }
        let elapsed_ps = u128::from(now.since(start).max(1));
        let bytes_per_rtt = (u128::from(bytes) * u128::from(base_rtt_ps) / elapsed_ps).min(u128::from(u64::MAX)) as u64;
        //= docs/specs/calibration.md#CAL-9 competing traffic
        let (delay_ps, late) = (self.usual_ps.saturating_sub(self.least_ps()), self.lateness.marks());
        let counts = RoundPackets { acked: packets, marked: marked_packets, lost: lost_packets };
        self.queues.on_round(counts, [delay_ps, self.least_ps()], bytes_per_rtt);
        let outcome = Outcome { packets, marked: marked_packets, bytes, delay_ps, late };
        if let Some(begins) = self.rivals.on_round(&outcome) {
            self.lateness.give_up(now);
            path.initial_window_bytes = begins.window_bytes.min(path.max_window_bytes);
            self.phase = Phase::Starting(if begins.anew { 0 } else { IDLE_ROUNDS });
            self.is_due = true;
            return;
        }
        if let Phase::Starting(idle) = self.phase {
            self.grow(path, idle, bytes, bytes_per_rtt, is_late && self.reuses);
        }
        // An eighth is forgotten with every round, so that a path that has become slower is known as such.
        self.best_bytes = bytes_per_rtt.max(self.best_bytes - self.best_bytes / 8);
        let packet = u64::from(path.packet_bytes);
        self.judge(path, base_rtt_ps, (self.best_bytes / packet).clamp(1, u64::from(u16::MAX)) as u32);
    }

    /// The start goes on for another round, if this one delivered more than those before. With `careful` the window grows little.
    //= docs/specs/calibration.md#CAL-3 slow start
    //= docs/specs/calibration.md#CAL-6 conservative slow start
    fn grow(&mut self, path: &mut Path, idle: u8, bytes: u64, bytes_per_rtt: u64, careful: bool) {
        let best_bytes = self.best_bytes;
        let (more_bytes, least_gain) = if careful { (bytes / 4, best_bytes / 8) } else { (bytes, best_bytes / 4) };
        self.phase = match idle {
            _ if bytes_per_rtt >= best_bytes + least_gain => Phase::Starting(0),
            IDLE_ROUNDS.. => Phase::Steady,
            idle => Phase::Starting(idle + 1),
        };
        let window_bytes = bytes.saturating_add(more_bytes).min(path.max_window_bytes);
        path.initial_window_bytes = path.initial_window_bytes.max(window_bytes);
        self.is_due = true;
    }

    /// New settings are due when what is known differs by an eighth.
    //= docs/specs/calibration.md#CAL-4 use of the measurements
    fn judge(&mut self, path: &mut Path, base_rtt_ps: u64, bdp_packets: u32) {
        let differs = |known: u64, new: u64| known.abs_diff(new) > known / 8;
        if differs(path.base_rtt_ps, base_rtt_ps) || differs(path.bdp_packets.into(), bdp_packets.into()) {
            self.settle(path, base_rtt_ps, bdp_packets);
        }
    }

    fn settle(&mut self, path: &mut Path, base_rtt_ps: u64, bdp_packets: u32) {
        // Twice what arrived, since a rate that is all that arrived could never rise.
        let bytes = 2 * u64::from(bdp_packets).max(FIRST_PACKETS) * u64::from(path.packet_bytes);
        let (link_bps, version) = (rate_bps(bytes, base_rtt_ps), path.version.wrapping_add(1));
        *path = Path { base_rtt_ps, bdp_packets, link_bps, learned: true, version, ..*path }.sanitised();
        self.is_due = true;
    }
}

/// The least round-trip time counts for one to two of these.
const EPOCH_PS: u64 = 5_000_000_000_000;
/// A packet that takes so many base round-trip times went over a path that is far slower than others, or all queues on it are full.
const LATE_RTTS: u64 = 3;
/// The balancer sees one mark in eight at least; in 2^-16.
const LEAST_SHOWN: u64 = 1 << 13;
/// Rounds with little more that end the start.
const IDLE_ROUNDS: u8 = 3;

#[cfg(test)]
mod tests;
