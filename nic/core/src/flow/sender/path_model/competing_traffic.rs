//! Queues filled by cross traffic (CAL-9 to 11): where packets stay marked although the window
//! falls, losses govern in place of marks.

use crate::Time;

#[derive(Clone, Debug, Default)]
pub(in crate::flow::sender) struct Rivals {
    /// Counts since the last judgement or, while losses govern, since they do.
    look: Look,
    govern: bool,
    /// Rounds until what governs may change.
    rounds: u16,
    /// Wire bytes of the last round in which losses governed; 0 if long ago.
    round_bytes: u64,
    /// After a loss: when ACKs cease to count as marked, and losses to count as the same queue's.
    marked_until: Time,
    same_until: Time,
}

const _: () = assert!(size_of::<Rivals>() <= 64);

#[derive(Clone, Copy, Debug, Default)]
struct Look {
    rounds: u32,
    packets: u32,
    marked: u32,
    lost: u32,
    /// Queueing delay and wire bytes of the first round.
    delay_ps: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::flow::sender) struct Outcome {
    pub packets: u32,
    pub marked: u32,
    pub bytes: u64,
    /// Delay beyond the least round-trip time.
    pub delay_ps: u64,
    /// Whether late packets stand for marks: the network does not mark.
    pub late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::flow::sender) struct Begins {
    /// The window, in wire bytes.
    pub window_bytes: u64,
    /// Whether marks had governed for long, not just on trial.
    pub anew: bool,
}

impl Rivals {
    pub fn govern(&self) -> bool {
        self.govern
    }

    /// Takes a round. Returns `Some` if losses govern from now on.
    pub fn on_round(&mut self, round: &Outcome) -> Option<Begins> {
        let look = &mut self.look;
        if look.rounds == 0 {
            (look.delay_ps, look.bytes) = (round.delay_ps, round.bytes);
        }
        look.rounds += 1;
        look.packets = look.packets.saturating_add(round.packets);
        look.marked = look.marked.saturating_add(round.marked);
        self.rounds = self.rounds.saturating_sub(1);
        match (self.govern, self.rounds) {
            (true, 0) => self.try_marks(round),
            (false, 0) if look.rounds >= LOOK_ROUNDS && (look.packets >= LOOK_PACKETS || self.round_bytes > 0) => {
                return self.judge(round);
            }
            _ => {}
        }
        None
    }

    /// Determines from a full look whether cross traffic fills the queue.
    //= docs/specs/calibration.md#CAL-9 queues that others fill
    fn judge(&mut self, round: &Outcome) -> Option<Begins> {
        let look = core::mem::take(&mut self.look);
        let (bad, part) = if round.late {
            (look.marked.saturating_add(look.lost), look.packets / 4 * 3)
        } else {
            (look.marked, look.packets / 16)
        };
        if look.packets.saturating_sub(bad) > part {
            *self = Self::default();
            return None;
        }
        // Conclusive if the window fell and the queue did not; else the next rounds decide.
        let was_cut = round.bytes <= look.bytes / 4 * 3 || round.packets <= FEW_PACKETS;
        let others = was_cut && round.delay_ps >= look.delay_ps / 4 * 3;
        let anew = self.round_bytes == 0;
        let begins = Begins { window_bytes: round.bytes.max(self.round_bytes), anew };
        if others {
            *self = Self { govern: true, rounds: ROUNDS, ..Self::default() };
        }
        others.then_some(begins)
    }

    /// Lets marks govern on trial, or for long if too many packets were lost.
    //= docs/specs/calibration.md#CAL-11 marks are tried again
    fn try_marks(&mut self, round: &Outcome) {
        let many = !round.late && self.look.lost > self.look.packets / MANY_PART;
        let rounds = if many { PATIENCE } else { 0 };
        *self = Self { round_bytes: round.bytes, rounds, ..Self::default() };
    }

    /// Takes a loss. `rtt_ps` is the smoothed round-trip time.
    //= docs/specs/calibration.md#CAL-10 losses in place of marks
    pub fn on_loss(&mut self, now: Time, rtt_ps: u64) {
        self.look.lost = self.look.lost.saturating_add(1);
        if now >= self.same_until {
            (self.marked_until, self.same_until) = (now.after(rtt_ps / 4), now.after(rtt_ps));
        }
    }

    /// Whether an ACK counts as marked for the congestion control.
    //= docs/specs/calibration.md#CAL-10 losses in place of marks
    #[inline]
    pub fn marks(&self, now: Time) -> bool {
        now < self.marked_until
    }
}

/// Minimum rounds and packets of a look.
const LOOK_ROUNDS: u32 = 8;
const LOOK_PACKETS: u32 = 64;
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
    const MARKED: Outcome = Outcome { packets: 8, marked: 8, bytes: 8_000, delay_ps: 900 * US, late: false };
    const LATE: Outcome = Outcome { marked: 2, late: true, ..MARKED };

    /// What so many rounds begin, the first that begins something.
    fn rounds(rivals: &mut Rivals, count: u32, round: &Outcome) -> Option<(u32, Begins)> {
        (1..=count).find_map(|number| Some((number, rivals.on_round(round)?)))
    }

    #[test]
    fn losses_govern_while_all_is_marked_whatever_is_sent() {
        //= docs/specs/calibration.md#CAL-9 queues that others fill
        let begins = Begins { window_bytes: 8_000, anew: true };
        for round in [MARKED, LATE] {
            let mut rivals = Rivals::default();
            assert_eq!(rounds(&mut rivals, 100, &round), Some((8, begins)));
            assert!(rivals.govern());
        }
        // Few packets take more rounds.
        let few = Outcome { packets: 2, marked: 2, ..MARKED };
        assert_eq!(rounds(&mut Rivals::default(), 100, &few).map(|(number, _)| number), Some(32));
        // Lost packets count where the network does not mark.
        let none = Outcome { packets: 6, marked: 0, ..LATE };
        assert_eq!(rounds(&mut Rivals::default(), 100, &none), None);
        let mut rivals = Rivals::default();
        (0..40).for_each(|_| rivals.on_loss(at(US), 900 * US));
        assert_eq!(rounds(&mut rivals, 100, &none).map(|(number, _)| number), Some(11));
    }

    #[test]
    fn marks_govern_where_they_tell_something() {
        //= docs/specs/calibration.md#CAL-9 queues that others fill
        let unmarked = [Outcome { marked: 7, ..MARKED }, Outcome { marked: 1, ..LATE }];
        for round in unmarked {
            assert_eq!(rounds(&mut Rivals::default(), 100, &round), None, "{round:?}");
        }
        // The queue becomes shorter with the window.
        let mut rivals = Rivals::default();
        let shrinking = |number: u64| Outcome { delay_ps: (900 - 60 * number) * US, ..MARKED };
        assert!((0..12).all(|number| rivals.on_round(&shrinking(number)).is_none()));
        // Marks do not make the window smaller, but for the last.
        for (packets, begins) in [(16, false), (15, true)] {
            let mut rivals = Rivals::default();
            let many = |packets: u32| Outcome { packets, marked: packets, bytes: 1_000 * u64::from(packets), ..MARKED };
            assert_eq!(rounds(&mut rivals, 7, &many(20)), None);
            assert_eq!(rivals.on_round(&many(packets)).is_some(), begins, "{packets}");
        }
    }

    /// A peer may claim as much.
    #[test]
    fn counts_end_at_their_limits() {
        let most = Outcome { packets: u32::MAX, marked: u32::MAX, ..LATE };
        let mut rivals = Rivals::default();
        (rivals.look.lost, rivals.look.rounds) = (u32::MAX, LOOK_ROUNDS);
        rivals.on_loss(at(US), US);
        for _ in 0..3_000 {
            let _ = rivals.on_round(&most);
        }
        assert!(rivals.govern() || rivals.look.rounds <= 2 * u32::from(PATIENCE));
    }

    #[test]
    fn a_loss_marks_a_quarter_of_a_round_trip() {
        //= docs/specs/calibration.md#CAL-10 losses in place of marks
        let mut rivals = Rivals::default();
        assert!(!rivals.marks(at(1_000 * US)));
        rivals.on_loss(at(1_000 * US), 400 * US);
        assert!(rivals.marks(at(1_099 * US)) && !rivals.marks(at(1_100 * US)));
        // Others of that round trip are of the same queue.
        rivals.on_loss(at(1_399 * US), 400 * US);
        assert!(!rivals.marks(at(1_399 * US)));
        rivals.on_loss(at(1_400 * US), 400 * US);
        assert!(rivals.marks(at(1_400 * US)));
    }

    #[test]
    fn marks_are_tried_every_64_rounds() {
        //= docs/specs/calibration.md#CAL-11 marks are tried again
        let mut rivals = Rivals::default();
        let _ = rounds(&mut rivals, 8, &MARKED);
        let grown = Outcome { packets: 50, marked: 50, bytes: 50_000, ..MARKED };
        assert_eq!(rounds(&mut rivals, 64, &grown), None);
        assert!(!rivals.govern());
        // Few packets are enough now, and the window is what it was.
        let few = Outcome { packets: 2, marked: 2, bytes: 2_000, ..MARKED };
        assert_eq!(rounds(&mut rivals, 8, &few), Some((8, Begins { window_bytes: 50_000, anew: false })));
        // Others are gone: the next time is a first time.
        assert_eq!(rounds(&mut rivals, 64, &grown), None);
        assert_eq!(rounds(&mut rivals, 8, &Outcome { marked: 0, ..MARKED }), None);
        assert_eq!(rounds(&mut rivals, 8, &MARKED), Some((8, Begins { window_bytes: 8_000, anew: true })));
    }

    #[test]
    fn losses_that_are_too_many_do_not_govern() {
        //= docs/specs/calibration.md#CAL-11 marks are tried again
        for (round, others) in [(MARKED, 1024), (LATE, 8)] {
            let mut rivals = Rivals::default();
            let _ = rounds(&mut rivals, 8, &round);
            (0..400).for_each(|_| rivals.on_loss(at(US), US));
            let _ = rounds(&mut rivals, 64, &round);
            assert_eq!(rounds(&mut rivals, 2_000, &round).map(|(number, _)| number), Some(others));
        }
    }
}
