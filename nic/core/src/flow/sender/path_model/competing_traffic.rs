//! Cross traffic (CAL-9 to 11): where falling windows leave queues full, losses govern, not marks.

use crate::Time;

#[derive(Clone, Debug, Default)]
pub(in crate::flow::sender) struct CrossTraffic {
    /// Counts since the last judgement or, while losses govern, since they do.
    observed: Observation,
    is_loss_based: bool,
    /// Rounds until what governs may change.
    rounds: u16,
    /// Wire bytes of the last round in which losses governed; 0 if long ago.
    round_bytes: u64,
    /// After a loss: when ACKs cease to count as marked, and losses to count as the same queue's.
    marked_until: Time,
    same_until: Time,
}

const _: () = assert!(size_of::<CrossTraffic>() <= 64);

#[derive(Clone, Copy, Debug, Default)]
struct Observation {
    rounds: u32,
    packets: u32,
    marked: u32,
    lost: u32,
    /// Queueing delay and wire bytes of the first round.
    delay_ps: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::flow::sender) struct RoundStats {
    pub packets: u32,
    pub marked: u32,
    pub bytes: u64,
    /// Delay beyond the least round-trip time.
    pub delay_ps: u64,
    /// Whether late packets count as marks: the network does not mark.
    pub late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::flow::sender) struct LossMode {
    /// The window, in wire bytes.
    pub window_bytes: u64,
    /// Whether marks had governed for long, not just on trial.
    pub is_first: bool,
}

impl CrossTraffic {
    pub fn is_loss_based(&self) -> bool {
        self.is_loss_based
    }

    /// Takes a round. Returns `Some` if losses govern from now on.
    pub fn on_round(&mut self, round: &RoundStats) -> Option<LossMode> {
        let observed = &mut self.observed;
        if observed.rounds == 0 {
            (observed.delay_ps, observed.bytes) = (round.delay_ps, round.bytes);
        }
        observed.rounds += 1;
        observed.packets = observed.packets.saturating_add(round.packets);
        observed.marked = observed.marked.saturating_add(round.marked);
        let has_packets = observed.packets >= OBSERVED_PACKETS || self.round_bytes > 0;
        let is_enough = has_packets && observed.rounds >= OBSERVED_ROUNDS;
        self.rounds = self.rounds.saturating_sub(1);
        match (self.is_loss_based, self.rounds) {
            (true, 0) => self.try_marks(round),
            (false, 0) if is_enough => return self.judge(round),
            _ => {}
        }
        None
    }

    /// Determines from a full observation whether cross traffic fills the queue.
    //= docs/specs/calibration.md#CAL-9 competing traffic
    fn judge(&mut self, round: &RoundStats) -> Option<LossMode> {
        let observed = core::mem::take(&mut self.observed);
        let (bad, part) = if round.late {
            (observed.marked.saturating_add(observed.lost), observed.packets / 4 * 3)
        } else {
            (observed.marked, observed.packets / 16)
        };
        if observed.packets.saturating_sub(bad) > part {
            *self = Self::default();
            return None;
        }
        // Conclusive if the window fell and the queue did not; else the next rounds decide.
        let was_cut = round.bytes <= observed.bytes / 4 * 3 || round.packets <= FEW_PACKETS;
        let others = was_cut && round.delay_ps >= observed.delay_ps / 4 * 3;
        let is_first = self.round_bytes == 0;
        let begins = LossMode { window_bytes: round.bytes.max(self.round_bytes), is_first };
        if others {
            *self = Self { is_loss_based: true, rounds: ROUNDS, ..Self::default() };
        }
        others.then_some(begins)
    }

    /// Tries marks again, for long if too many packets were lost.
    //= docs/specs/calibration.md#CAL-11 return to marks
    fn try_marks(&mut self, round: &RoundStats) {
        let many = !round.late && self.observed.lost > self.observed.packets / MANY_PART;
        let rounds = if many { PATIENCE } else { 0 };
        *self = Self { round_bytes: round.bytes, rounds, ..Self::default() };
    }

    /// Takes a loss. `rtt_ps` is the smoothed round-trip time.
    //= docs/specs/calibration.md#CAL-10 loss-based control
    pub fn on_loss(&mut self, now: Time, rtt_ps: u64) {
        self.observed.lost = self.observed.lost.saturating_add(1);
        if now >= self.same_until {
            (self.marked_until, self.same_until) = (now.after(rtt_ps / 4), now.after(rtt_ps));
        }
    }

    /// Whether an ACK counts as marked for the congestion control.
    //= docs/specs/calibration.md#CAL-10 loss-based control
    #[inline]
    pub fn marks(&self, now: Time) -> bool {
        now < self.marked_until
    }
}

/// Minimum rounds and packets of an observation.
const OBSERVED_ROUNDS: u32 = 8;
const OBSERVED_PACKETS: u32 = 64;
/// A window of this number of packets need not have fallen.
const FEW_PACKETS: u32 = 8;
const ROUNDS: u16 = 64;
/// If one packet in `MANY_PART` is lost, windows are too small: marks govern `PATIENCE` rounds.
const MANY_PART: u32 = 4;
const PATIENCE: u16 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;

    const US: u64 = 1_000_000;
    const MARKED: RoundStats = RoundStats { packets: 8, marked: 8, bytes: 8_000, delay_ps: 900 * US, late: false };
    const LATE: RoundStats = RoundStats { marked: 2, late: true, ..MARKED };

    /// Runs up to `count` rounds; returns the first change of state, and after how many rounds it
    /// occurred.
    fn rounds(cross_traffic: &mut CrossTraffic, count: u32, round: &RoundStats) -> Option<(u32, LossMode)> {
        (1..=count).find_map(|number| Some((number, cross_traffic.on_round(round)?)))
    }

    #[test]
    fn losses_govern_while_marks_do_not_follow_the_window() {
        //= docs/specs/calibration.md#CAL-9 competing traffic
        let begins = LossMode { window_bytes: 8_000, is_first: true };
        for round in [MARKED, LATE] {
            let mut cross_traffic = CrossTraffic::default();
            assert_eq!(rounds(&mut cross_traffic, 100, &round), Some((8, begins)));
            assert!(cross_traffic.is_loss_based());
        }
        // With few packets per round it takes more rounds.
        let few = RoundStats { packets: 2, marked: 2, ..MARKED };
        assert_eq!(rounds(&mut CrossTraffic::default(), 100, &few).map(|(number, _)| number), Some(32));
        // Lost packets count where the network does not mark.
        let none = RoundStats { packets: 6, marked: 0, ..LATE };
        assert_eq!(rounds(&mut CrossTraffic::default(), 100, &none), None);
        let mut cross_traffic = CrossTraffic::default();
        (0..40).for_each(|_| cross_traffic.on_loss(at(US), 900 * US));
        assert_eq!(rounds(&mut cross_traffic, 100, &none).map(|(number, _)| number), Some(11));
    }

    #[test]
    fn marks_govern_while_they_follow_the_window() {
        //= docs/specs/calibration.md#CAL-9 competing traffic
        let unmarked = [RoundStats { marked: 7, ..MARKED }, RoundStats { marked: 1, ..LATE }];
        for round in unmarked {
            assert_eq!(rounds(&mut CrossTraffic::default(), 100, &round), None, "{round:?}");
        }
        // The queue becomes shorter with the window.
        let mut cross_traffic = CrossTraffic::default();
        let shrinking = |number: u64| RoundStats { delay_ps: (900 - 60 * number) * US, ..MARKED };
        assert!((0..12).all(|number| cross_traffic.on_round(&shrinking(number)).is_none()));
        // Marks do not reduce the window, except for the last round.
        for (packets, begins) in [(16, false), (15, true)] {
            let mut cross_traffic = CrossTraffic::default();
            let many =
                |packets: u32| RoundStats { packets, marked: packets, bytes: 1_000 * u64::from(packets), ..MARKED };
            assert_eq!(rounds(&mut cross_traffic, 7, &many(20)), None);
            assert_eq!(cross_traffic.on_round(&many(packets)).is_some(), begins, "{packets}");
        }
    }

    /// A peer may claim such counts.
    #[test]
    fn counters_saturate() {
        let most = RoundStats { packets: u32::MAX, marked: u32::MAX, ..LATE };
        let mut cross_traffic = CrossTraffic::default();
        (cross_traffic.observed.lost, cross_traffic.observed.rounds) = (u32::MAX, OBSERVED_ROUNDS);
        cross_traffic.on_loss(at(US), US);
        for _ in 0..3_000 {
            let _ = cross_traffic.on_round(&most);
        }
        assert!(cross_traffic.is_loss_based() || cross_traffic.observed.rounds <= 2 * u32::from(PATIENCE));
    }

    #[test]
    fn a_loss_marks_a_quarter_of_a_round_trip() {
        //= docs/specs/calibration.md#CAL-10 loss-based control
        let mut cross_traffic = CrossTraffic::default();
        assert!(!cross_traffic.marks(at(1_000 * US)));
        cross_traffic.on_loss(at(1_000 * US), 400 * US);
        assert!(cross_traffic.marks(at(1_099 * US)) && !cross_traffic.marks(at(1_100 * US)));
        // Further losses in that round trip belong to the same queue.
        cross_traffic.on_loss(at(1_399 * US), 400 * US);
        assert!(!cross_traffic.marks(at(1_399 * US)));
        cross_traffic.on_loss(at(1_400 * US), 400 * US);
        assert!(cross_traffic.marks(at(1_400 * US)));
    }

    #[test]
    fn marks_are_tried_every_64_rounds() {
        //= docs/specs/calibration.md#CAL-11 return to marks
        let mut cross_traffic = CrossTraffic::default();
        let _ = rounds(&mut cross_traffic, 8, &MARKED);
        let grown = RoundStats { packets: 50, marked: 50, bytes: 50_000, ..MARKED };
        assert_eq!(rounds(&mut cross_traffic, 64, &grown), None);
        assert!(!cross_traffic.is_loss_based());
        // Few packets suffice now, and the window is restored.
        let few = RoundStats { packets: 2, marked: 2, bytes: 2_000, ..MARKED };
        assert_eq!(rounds(&mut cross_traffic, 8, &few), Some((8, LossMode { window_bytes: 50_000, is_first: false })));
        // The competing traffic has ended: the next time is treated as the first.
        assert_eq!(rounds(&mut cross_traffic, 64, &grown), None);
        assert_eq!(rounds(&mut cross_traffic, 8, &RoundStats { marked: 0, ..MARKED }), None);
        assert_eq!(rounds(&mut cross_traffic, 8, &MARKED), Some((8, LossMode { window_bytes: 8_000, is_first: true })));
    }

    #[test]
    fn too_many_losses_do_not_govern() {
        //= docs/specs/calibration.md#CAL-11 return to marks
        for (round, others) in [(MARKED, 1024), (LATE, 8)] {
            let mut cross_traffic = CrossTraffic::default();
            let _ = rounds(&mut cross_traffic, 8, &round);
            (0..400).for_each(|_| cross_traffic.on_loss(at(US), US));
            let _ = rounds(&mut cross_traffic, 64, &round);
            assert_eq!(rounds(&mut cross_traffic, 2_000, &round).map(|(number, _)| number), Some(others));
        }
    }
}
