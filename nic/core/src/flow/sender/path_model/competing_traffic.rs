//! Queues that others fill: where packets stay marked however little is sent, marks tell nothing. Losses govern there.
//! Clauses (CAL-n) are in `docs/specs/calibration.md`.

use crate::Time;

/// Whether others fill the queues; 64 bytes.
#[derive(Clone, Debug)]
pub(in crate::flow::sender) struct Rivals {
    /// While marks govern: what came back since the last judgement. While losses govern: all since they do.
    look: Look,
    /// Whether losses govern.
    govern: bool,
    /// Rounds until what governs may change.
    rounds: u16,
    /// Wire bytes of the last round in which losses governed; 0 where that is long ago.
    round_bytes: u64,
    /// After a loss: until when acknowledgements count as marked, and until when further losses are of the same queue.
    marked_until: Time,
    same_until: Time,
}

const _: () = assert!(size_of::<Rivals>() <= 64);

/// What came back in some rounds.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    rounds: u32,
    packets: u32,
    marked: u32,
    lost: u32,
    /// Time in queues and wire bytes of the first of them.
    delay_ps: u64,
    bytes: u64,
}

/// What a round came to.
#[derive(Clone, Copy, Debug)]
pub(in crate::flow::sender) struct Outcome {
    /// Packets that were acknowledged, and how many of them were marked.
    pub packets: u32,
    pub marked: u32,
    /// Their wire bytes.
    pub bytes: u64,
    /// What packets take beyond the least round-trip time.
    pub delay_ps: u64,
    /// Marks are packets that took long: the network does not mark.
    pub late: bool,
}

/// Losses govern from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::flow::sender) struct Begins {
    /// The window, in wire bytes.
    pub window_bytes: u64,
    /// Marks have governed for long before, and not just been tried.
    pub anew: bool,
}

impl Rivals {
    pub(in crate::flow::sender) const fn new() -> Self {
        Self {
            look: Look { rounds: 0, packets: 0, marked: 0, lost: 0, delay_ps: 0, bytes: 0 },
            govern: false,
            rounds: 0,
            round_bytes: 0,
            marked_until: Time::ZERO,
            same_until: Time::ZERO,
        }
    }

    /// Whether losses govern.
    #[inline]
    pub(in crate::flow::sender) fn govern(&self) -> bool {
        self.govern
    }

    /// A round ended. Says when losses govern from now on.
    pub(in crate::flow::sender) fn on_round(&mut self, round: &Outcome) -> Option<Begins> {
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

    /// Judges by a whole look whether others fill the queue.
    //= docs/specs/calibration.md#CAL-9 competing traffic
    fn judge(&mut self, round: &Outcome) -> Option<Begins> {
        let look = core::mem::take(&mut self.look);
        let (bad, part) = if round.late {
            (look.marked.saturating_add(look.lost), look.packets / 4 * 3)
        } else {
            (look.marked, look.packets / 16)
        };
        if look.packets.saturating_sub(bad) > part {
            *self = Self::new();
            return None;
        }
        // Unless the window became smaller and the queue did not, the next rounds tell.
        let was_cut = round.bytes <= look.bytes / 4 * 3 || round.packets <= FEW_PACKETS;
        let others = was_cut && round.delay_ps >= look.delay_ps / 4 * 3;
        let anew = self.round_bytes == 0;
        let begins = Begins { window_bytes: round.bytes.max(self.round_bytes), anew };
        if others {
            *self = Self { govern: true, rounds: ROUNDS, ..Self::new() };
        }
        others.then_some(begins)
    }

    /// Marks govern again, to see whether they tell something. Where too many packets were lost, they do for long.
    //= docs/specs/calibration.md#CAL-11 return to marks
    fn try_marks(&mut self, round: &Outcome) {
        let many = !round.late && self.look.lost > self.look.packets / MANY_PART;
        let rounds = if many { PATIENCE } else { 0 };
        *self = Self { round_bytes: round.bytes, rounds, ..Self::new() };
    }

    /// A packet was lost. `rtt_ps` is the smoothed round-trip time.
    //= docs/specs/calibration.md#CAL-10 loss-based control
    pub(in crate::flow::sender) fn on_loss(&mut self, now: Time, rtt_ps: u64) {
        self.look.lost = self.look.lost.saturating_add(1);
        if now >= self.same_until {
            (self.marked_until, self.same_until) = (now.after(rtt_ps / 4), now.after(rtt_ps));
        }
    }

    /// Whether an acknowledgement counts as marked for congestion control.
    //= docs/specs/calibration.md#CAL-10 loss-based control
    #[inline]
    pub(in crate::flow::sender) fn marks(&self, now: Time) -> bool {
        now < self.marked_until
    }
}

/// Rounds and packets of a look, at least.
const LOOK_ROUNDS: u32 = 8;
const LOOK_PACKETS: u32 = 64;
/// A window of so few packets need not have become smaller.
const FEW_PACKETS: u32 = 8;
/// Rounds for which losses govern, until marks are tried again.
const ROUNDS: u16 = 64;
/// Where one packet in so many was lost, windows are too small for losses to govern. Marks do then for so many rounds.
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
        //= docs/specs/calibration.md#CAL-9 competing traffic
        let begins = Begins { window_bytes: 8_000, anew: true };
        for round in [MARKED, LATE] {
            let mut rivals = Rivals::new();
            assert_eq!(rounds(&mut rivals, 100, &round), Some((8, begins)));
            assert!(rivals.govern());
        }
        // Few packets take more rounds.
        let few = Outcome { packets: 2, marked: 2, ..MARKED };
        assert_eq!(rounds(&mut Rivals::new(), 100, &few).map(|(number, _)| number), Some(32));
        // Lost packets count where the network does not mark.
        let none = Outcome { packets: 6, marked: 0, ..LATE };
        assert_eq!(rounds(&mut Rivals::new(), 100, &none), None);
        let mut rivals = Rivals::new();
        (0..40).for_each(|_| rivals.on_loss(at(US), 900 * US));
        assert_eq!(rounds(&mut rivals, 100, &none).map(|(number, _)| number), Some(11));
    }

    #[test]
    fn marks_govern_where_they_tell_something() {
        //= docs/specs/calibration.md#CAL-9 competing traffic
        let unmarked = [Outcome { marked: 7, ..MARKED }, Outcome { marked: 1, ..LATE }];
        for round in unmarked {
            assert_eq!(rounds(&mut Rivals::new(), 100, &round), None, "{round:?}");
        }
        // The queue becomes shorter with the window.
        let mut rivals = Rivals::new();
        let shrinking = |number: u64| Outcome { delay_ps: (900 - 60 * number) * US, ..MARKED };
        assert!((0..12).all(|number| rivals.on_round(&shrinking(number)).is_none()));
        // Marks do not make the window smaller, but for the last.
        for (packets, begins) in [(16, false), (15, true)] {
            let mut rivals = Rivals::new();
            let many = |packets: u32| Outcome { packets, marked: packets, bytes: 1_000 * u64::from(packets), ..MARKED };
            assert_eq!(rounds(&mut rivals, 7, &many(20)), None);
            assert_eq!(rivals.on_round(&many(packets)).is_some(), begins, "{packets}");
        }
    }

    /// A peer may claim as much.
    #[test]
    fn counts_end_at_their_limits() {
        let most = Outcome { packets: u32::MAX, marked: u32::MAX, ..LATE };
        let mut rivals = Rivals::new();
        (rivals.look.lost, rivals.look.rounds) = (u32::MAX, LOOK_ROUNDS);
        rivals.on_loss(at(US), US);
        for _ in 0..3_000 {
            let _ = rivals.on_round(&most);
        }
        assert!(rivals.govern() || rivals.look.rounds <= 2 * u32::from(PATIENCE));
    }

    #[test]
    fn a_loss_marks_a_quarter_of_a_round_trip() {
        //= docs/specs/calibration.md#CAL-10 loss-based control
        let mut rivals = Rivals::new();
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
        //= docs/specs/calibration.md#CAL-11 return to marks
        let mut rivals = Rivals::new();
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
        //= docs/specs/calibration.md#CAL-11 return to marks
        for (round, others) in [(MARKED, 1024), (LATE, 8)] {
            let mut rivals = Rivals::new();
            let _ = rounds(&mut rivals, 8, &round);
            (0..400).for_each(|_| rivals.on_loss(at(US), US));
            let _ = rounds(&mut rivals, 64, &round);
            assert_eq!(rounds(&mut rivals, 2_000, &round).map(|(number, _)| number), Some(others));
        }
    }
}
