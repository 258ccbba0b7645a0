//! What a sender learns of its path while it sends: the round-trip time without queues, and how much the path takes.
//! Clauses (CAL-n) are in `docs/specs/calibration.md`.

use rand_core::RngCore;

use super::Sender;
use crate::cc::{AnyCc, CcConfig};
use crate::feedback::AckInfo;
use crate::flow::FlowConfig;
use crate::path::{AnyBalancer, PathConfig};

/// What is known of the path, and the settings that follow from it.
#[derive(Clone, Debug)]
pub(super) struct Calibration {
    path: PathConfig,
    cc: CcConfig,
    /// Least round-trip times of the present epoch and of the one before; `u64::MAX` where there was none.
    least_ps: [u64; 2],
    epoch_start_ps: u64,
    /// Smoothed round-trip time of acknowledgements without a mark; 0 before the first.
    calm_ps: u64,
    /// The network has marked a packet.
    marks: bool,
    round: Round,
    /// Wire bytes that the best of the latest rounds delivered in one base round-trip time.
    best_bytes: u64,
    phase: Phase,
    /// `path` or `cc` has changed since balancer and congestion control got them.
    is_due: bool,
}

/// What arrived since the round began. A round lasts one smoothed round-trip time.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    start_ps: u64,
    bytes: u64,
}

/// How the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It doubles with every round. So many rounds in a row have delivered little more than the best before.
    Starting(u8),
    /// The congestion control moves it.
    Steady,
}

impl Calibration {
    pub(super) fn new(config: &FlowConfig) -> Self {
        Self {
            path: config.path,
            cc: config.cc,
            least_ps: [u64::MAX; 2],
            epoch_start_ps: 0,
            calm_ps: 0,
            marks: false,
            round: Round::default(),
            best_bytes: 0,
            phase: Phase::Starting(0),
            is_due: false,
        }
    }

    /// Takes an acknowledgement with its round-trip time, and the smoothed one.
    #[inline]
    fn on_ack(&mut self, now_ps: u64, ack: &AckInfo, smoothed_ps: u64) {
        self.take_rtt(now_ps, ack);
        if ack.marked || ack.marked_packets > 0 {
            self.marks = true;
            self.phase = Phase::Steady;
        }
        self.round.bytes += ack.bytes;
        if now_ps.saturating_sub(self.round.start_ps) >= smoothed_ps.max(1) {
            self.end_round(now_ps);
        }
    }

    /// Takes a round-trip time.
    //= docs/specs/calibration.md#CAL-1 base round-trip time
    fn take_rtt(&mut self, now_ps: u64, ack: &AckInfo) {
        if now_ps.saturating_sub(self.epoch_start_ps) >= EPOCH_PS {
            self.least_ps = [u64::MAX, self.least_ps[0]];
            self.epoch_start_ps = now_ps;
        }
        self.least_ps[0] = self.least_ps[0].min(ack.rtt_ps);
        if !ack.marked {
            let calm_ps = if self.calm_ps == 0 { ack.rtt_ps } else { self.calm_ps };
            self.calm_ps = (calm_ps - calm_ps / 16 + ack.rtt_ps / 16).max(1);
        }
    }

    /// The round-trip time without queues, as far as it is known.
    fn base_rtt_ps(&self) -> u64 {
        let least_ps = self.least_ps[0].min(self.least_ps[1]);
        if self.marks && self.calm_ps > 0 { self.calm_ps.max(least_ps) } else { least_ps }
    }

    /// Learns from what the round delivered, and begins the next one.
    //= docs/specs/calibration.md#CAL-2 rounds
    #[inline(never)]
    fn end_round(&mut self, now_ps: u64) {
        let Round { start_ps, bytes } = core::mem::replace(&mut self.round, Round { start_ps: now_ps, bytes: 0 });
        let base_rtt_ps = self.base_rtt_ps();
        if start_ps == 0 {
            // The first acknowledgement: it says how far the guess was off.
            return self.judge(base_rtt_ps, self.path.bdp_packets);
        }
        let elapsed_ps = u128::from((now_ps - start_ps).max(1));
        let bytes_per_rtt = (u128::from(bytes) * u128::from(base_rtt_ps) / elapsed_ps).min(u128::from(u64::MAX)) as u64;
        //= docs/specs/calibration.md#CAL-3 the start
        if let Phase::Starting(idle) = self.phase {
            let grew = bytes_per_rtt >= self.best_bytes + self.best_bytes / 4;
            self.phase = match idle {
                _ if grew => Phase::Starting(0),
                IDLE_ROUNDS.. => Phase::Steady,
                idle => Phase::Starting(idle + 1),
            };
            self.cc.initial_window_bytes = self.cc.initial_window_bytes.max(bytes.saturating_mul(2));
            self.is_due = true;
        }
        // An eighth is forgotten with every round, so that a path that has become slower is known as such.
        self.best_bytes = bytes_per_rtt.max(self.best_bytes - self.best_bytes / 8);
        let packet = u64::from(self.cc.packet_bytes.max(1));
        self.judge(base_rtt_ps, (self.best_bytes / packet).clamp(1, u64::from(u16::MAX)) as u32);
    }

    /// New settings are due when what is known differs by an eighth.
    //= docs/specs/calibration.md#CAL-4 what follows
    fn judge(&mut self, base_rtt_ps: u64, bdp_packets: u32) {
        let differs = |known: u64, new: u64| known.abs_diff(new) > known / 8;
        if differs(self.path.base_rtt_ps, base_rtt_ps) || differs(self.path.bdp_packets.into(), bdp_packets.into()) {
            (self.path.base_rtt_ps, self.cc.base_rtt_ps) = (base_rtt_ps, base_rtt_ps);
            self.path.bdp_packets = bdp_packets;
            self.is_due = true;
        }
    }
}

impl Sender {
    /// Learns from an acknowledgement that a data packet triggered.
    #[inline]
    pub(super) fn learn_path(&mut self, now_ps: u64, ack: &AckInfo) {
        let smoothed_ps = self.recovery.rtt.smoothed_ps();
        if let Some(calibration) = self.calibration.as_deref_mut() {
            calibration.on_ack(now_ps, ack, smoothed_ps);
        }
    }

    /// A packet was lost: the path takes no more than this.
    //= docs/specs/calibration.md#CAL-3 the start
    #[inline]
    pub(super) fn end_start(&mut self) {
        if let Some(calibration) = self.calibration.as_deref_mut() {
            calibration.phase = Phase::Steady;
        }
    }

    /// Gives balancer and congestion control the settings that follow from what was learned.
    #[inline]
    pub(super) fn calibrate(&mut self, rng: &mut impl RngCore) {
        let Some(calibration) = self.calibration.as_deref_mut().filter(|calibration| calibration.is_due) else {
            return;
        };
        calibration.is_due = false;
        let starting = calibration.phase != Phase::Steady;
        let Calibration { path, cc, .. } = calibration;
        self.balancer.adopt(AnyBalancer::new(path, rng));
        self.balancer.on_control(cc, starting);
        self.cc.adopt(AnyCc::new(cc), starting);
    }
}

/// The least round-trip time counts for one to two of these.
const EPOCH_PS: u64 = 5_000_000_000_000;
/// Rounds without a quarter more that end the start.
const IDLE_ROUNDS: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::Ev;
    use crate::path::BalancerKind;

    const US: u64 = 1_000_000;
    const PACKET: u64 = 1_000;

    fn calibration() -> Calibration {
        let cc = CcConfig::for_path(100 * US, 10_000_000_000, PACKET as u32);
        let path = PathConfig::new(BalancerKind::Reps, 100 * US, 125);
        Calibration::new(&FlowConfig::for_path(936, 64, path, cc).learning())
    }

    fn ack(rtt_ps: u64, packets: u64, marked: bool) -> AckInfo {
        AckInfo { ev: Ev::default(), marked, bytes: packets * PACKET, rtt_ps, packets: 1, ..AckInfo::default() }
    }

    /// So many rounds of 50 us with one acknowledgement each.
    fn rounds(calibration: &mut Calibration, from: u64, packets: &[u64]) {
        for (round, packets) in (from..).zip(packets) {
            calibration.on_ack(round * 50 * US, &ack(50 * US, *packets, false), 50 * US);
        }
    }

    #[test]
    fn the_window_doubles_until_rounds_bring_no_more() {
        //= docs/specs/calibration.md#CAL-3 the start
        let mut calibration = calibration();
        assert_eq!(calibration.cc.initial_window_bytes, 32 * PACKET);
        rounds(&mut calibration, 1, &[1, 32, 64, 128]);
        assert_eq!(calibration.cc.initial_window_bytes, 256 * PACKET);
        rounds(&mut calibration, 5, &[130, 130, 130]);
        assert!(matches!(calibration.phase, Phase::Starting(3)));
        rounds(&mut calibration, 8, &[130]);
        assert_eq!(calibration.phase, Phase::Steady);
        //= docs/specs/calibration.md#CAL-4 what follows
        assert_eq!((calibration.path.base_rtt_ps, calibration.path.bdp_packets), (50 * US, 128));
    }

    #[test]
    fn a_mark_ends_the_start() {
        //= docs/specs/calibration.md#CAL-3 the start
        let mut calibration = calibration();
        calibration.on_ack(50 * US, &ack(50 * US, 1, true), 50 * US);
        assert_eq!(calibration.phase, Phase::Steady);
    }

    #[test]
    fn unmarked_packets_tell_the_base_rtt_where_the_network_marks() {
        //= docs/specs/calibration.md#CAL-1 base round-trip time
        let mut calibration = calibration();
        calibration.on_ack(50 * US, &ack(20 * US, 1, false), 50 * US);
        (2..200).for_each(|round| calibration.on_ack(round * 50 * US, &ack(80 * US, 1, false), 50 * US));
        assert_eq!(calibration.base_rtt_ps(), 20 * US);
        calibration.on_ack(10_000 * US, &ack(500 * US, 1, true), 50 * US);
        assert!((79 * US..=80 * US).contains(&calibration.base_rtt_ps()), "{}", calibration.base_rtt_ps());
    }

    #[test]
    fn what_was_least_long_ago_is_forgotten() {
        //= docs/specs/calibration.md#CAL-1 base round-trip time
        let mut calibration = calibration();
        calibration.on_ack(1, &ack(20 * US, 1, false), 50 * US);
        for second in 1..=11 {
            let known_ps = calibration.base_rtt_ps();
            assert_eq!(known_ps, if second <= 10 { 20 * US } else { 90 * US }, "{second}");
            calibration.on_ack(second * 1_000_000 * US, &ack(90 * US, 1, false), 50 * US);
        }
    }
}
