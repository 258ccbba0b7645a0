//! Tests of the bitmap of penalties; clauses are those of `docs/specs/bitmap.md`.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::rng::{self, Rng};
use crate::tests::{On, path_of};

fn bitmap(evs: u16, change: impl FnOnce(&mut BitmapConfig)) -> On<Bitmap> {
    let path = Path { evs, seed: Some(5), ..path_of(1_000, 10) };
    let mut own = BitmapConfig::default();
    change(&mut own);
    let mut scheme = Bitmap::make(&own, &path, &mut rng::stream(1, 0));
    scheme.state.first = Ev::new(0);
    On { scheme, path }
}

fn sends(bitmap: &mut On<Bitmap>, count: usize) -> Vec<u16> {
    sends_with(bitmap, count, &mut rng::stream(2, 0))
}

fn sends_with(bitmap: &mut On<Bitmap>, count: usize, rng: &mut Rng) -> Vec<u16> {
    (0..count).map(|_| bitmap.scheme.next_ev(bitmap.path.at_ps(0), &SendInfo::default(), rng).index()).collect()
}

fn ack(bitmap: &mut On<Bitmap>, ev: u16, marked: bool) {
    bitmap.scheme.on_ack(
        bitmap.path.at_ps(0),
        &AckInfo { ev: Ev::new(ev), marked, packets: 1, ..AckInfo::default() },
        &mut (),
    );
}

fn loss(bitmap: &mut On<Bitmap>, ev: u16, cause: LossCause) {
    bitmap.scheme.on_loss(bitmap.path.at_ps(0), &LossInfo { ev: Ev::new(ev), cause, ..LossInfo::default() }, &mut ());
}

#[test]
fn values_take_turns_from_a_seeded_start() {
    //= docs/specs/bitmap.md#BITMAP-1 A penalty for each EV
    //= docs/specs/bitmap.md#BITMAP-2 round robin
    let config = |seed| Path { evs: 7, seed: Some(seed), ..path_of(1_000, 10) };
    let starts: Vec<u16> = (0..40)
        .map(|seed| Bitmap::make(&BitmapConfig::default(), &config(seed), &mut rng::stream(1, 0)).state.first.index())
        .collect();
    assert!((0..7).all(|ev| starts.contains(&ev)), "{starts:?}");
    let mut bitmap = bitmap(7, |_| ());
    bitmap.state.first = Ev::new(4);
    assert_eq!(sends(&mut bitmap, 7), [4, 5, 6, 0, 1, 2, 3]);
}

#[test]
fn every_round_has_a_random_start_and_uses_all_values_once() {
    //= docs/specs/bitmap.md#BITMAP-6 start of a round
    let mut bitmap = bitmap(7, |_| ());
    let mut rng = rng::stream(2, 0);
    let mut starts = Vec::new();
    for _ in 0..100 {
        let mut turn = sends_with(&mut bitmap, 7, &mut rng);
        starts.push(turn[0]);
        turn.sort_unstable();
        assert_eq!(turn, [0, 1, 2, 3, 4, 5, 6]);
    }
    assert!((0..7).all(|ev| starts.contains(&ev)), "{starts:?}");
}

#[test]
fn penalties_add_up_to_the_maximum() {
    //= docs/specs/bitmap.md#BITMAP-3 increase of a penalty
    let mut bitmap = bitmap(9, |_| ());
    ack(&mut bitmap, 2, false);
    ack(&mut bitmap, 3, true);
    ack(&mut bitmap, 3, true);
    loss(&mut bitmap, 4, LossCause::Trimmed);
    loss(&mut bitmap, 5, LossCause::SackGap);
    ack(&mut bitmap, 5, true);
    loss(&mut bitmap, 8, LossCause::Timeout);
    loss(&mut bitmap, 8, LossCause::Timeout);
    (0..20).for_each(|_| ack(&mut bitmap, 7, true));
    ack(&mut bitmap, 9, true);
    ack(&mut bitmap, u16::MAX, true);
    let penalties: Vec<u8> = (0..10).map(|ev| bitmap.state.penalty(Ev::new(ev))).collect();
    assert_eq!(penalties, [0, 0, 0, 2, 4, 5, 0, 15, 15, 0]);
}

#[test]
fn values_with_penalties_are_skipped_and_the_first_forgiven() {
    //= docs/specs/bitmap.md#BITMAP-4 skipping
    let mut one = bitmap(8, |_| ());
    for (ev, marks) in [(1, 1), (2, 2), (5, 1)] {
        (0..marks).for_each(|_| ack(&mut one, ev, true));
    }
    assert_eq!(sends(&mut one, 5), [0, 3, 4, 6, 7]);
    let left: Vec<u8> = (0..8).map(|ev| one.state.penalty(Ev::new(ev))).collect();
    assert_eq!(left, [0, 0, 2, 0, 0, 0, 0, 0]);
    let mut each = bitmap(8, |bitmap| bitmap.pardon = BitmapPardon::Each);
    [1, 2, 2, 3].iter().for_each(|&ev| ack(&mut each, ev, true));
    assert_eq!(sends(&mut each, 2), [0, 4]);
    let left: Vec<u8> = (0..8).map(|ev| each.state.penalty(Ev::new(ev))).collect();
    assert_eq!(left, [0, 0, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn the_search_is_bounded_if_all_values_have_penalties() {
    //= docs/specs/bitmap.md#BITMAP-5 maximum skips per packet
    let mut small = bitmap(4, |_| ());
    (0..4).for_each(|ev| loss(&mut small, ev, LossCause::Timeout));
    small.state.first = Ev::new(1);
    assert!(sends(&mut small, 1)[0] < 4);
    assert_eq!((0..4).map(|ev| u32::from(small.state.penalty(Ev::new(ev)))).sum::<u32>(), 4 * 15 - 1);
    let mut large = bitmap(256, |_| ());
    (0..256).for_each(|ev| ack(&mut large, ev, true));
    assert_eq!(sends(&mut large, 2), [MAX_PASSED, 2 * MAX_PASSED + 1]);
    assert_eq!((0..256).filter(|ev| large.state.penalty(Ev::new(*ev)) == 0).count(), 2);
}

#[test]
fn a_single_value_is_used_despite_penalties() {
    let mut bitmap = bitmap(1, |_| ());
    loss(&mut bitmap, 0, LossCause::Timeout);
    assert_eq!(sends(&mut bitmap, 40), [0; 40]);
}

#[test]
fn state_takes_half_a_byte_a_value() {
    assert_eq!(Bitmap::STATE_BYTES, 132);
    assert_eq!(bitmap(256, |_| ()).state.penalties.len(), 128);
    assert_eq!(bitmap(Bitmap::EVS, |_| ()).state.penalties.len() + 4, Bitmap::STATE_BYTES);
}

/// A transcription of REPS's artifact, except for the order: values in turn from a random one on,
/// where the artifact combines them by exclusive-or with a random mask, which covers a set only if
/// its size is a power of two.
struct Artifact {
    evs: usize,
    current_ev_index: usize,
    first: usize,
    ev_skip_bitmap: Vec<u32>,
}

impl Artifact {
    fn process_ev(&mut self, ev: u16, penalty: u32) {
        let Some(entry) = self.ev_skip_bitmap.get_mut(usize::from(ev)) else { return };
        *entry += penalty;
        if *entry > 15 {
            *entry = 15;
        }
    }

    fn next_entropy(&mut self, rng: &mut Rng) -> u16 {
        let mut entropy = (self.current_ev_index + self.first) % self.evs;
        let (mut flag, mut counter) = (false, 0);
        while self.ev_skip_bitmap[entropy] > 0 {
            if !flag {
                self.ev_skip_bitmap[entropy] -= 1;
            }
            flag = true;
            counter += 1;
            if counter > self.evs {
                break;
            }
            self.step(rng);
            entropy = (self.current_ev_index + self.first) % self.evs;
        }
        self.step(rng);
        entropy as u16
    }

    fn step(&mut self, rng: &mut Rng) {
        self.current_ev_index += 1;
        if self.current_ev_index == self.evs {
            self.current_ev_index = 0;
            self.first = draw(self.evs as u16, rng).index().into();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// Clauses 2 to 6: the same as REPS's artifact, draw by draw, for sets that one walk covers.
    #[test]
    fn penalties_agree_with_the_artifact(
        evs in 1..=MAX_PASSED,
        ops in prop::collection::vec((0..8u8, any::<u16>()), 1..300),
    ) {
        let mut ours = bitmap(evs, |_| ());
        let size = usize::from(evs);
        let mut theirs = Artifact { evs: size, current_ev_index: 0, first: 0, ev_skip_bitmap: [0].repeat(size) };
        let (mut our_rng, mut their_rng) = (rng::stream(9, 9), rng::stream(9, 9));
        for (op, ev) in ops {
            let ev = ev % (evs + 1);
            match op {
                0..4 => {
                    let sent = ours.scheme.next_ev(ours.path.at_ps(0), &SendInfo::default(), &mut our_rng).index();
                    prop_assert_eq!(sent, theirs.next_entropy(&mut their_rng));
                    prop_assert_eq!(&our_rng, &their_rng);
                }
                4 => ack(&mut ours, ev, false),
                5 => {
                    ack(&mut ours, ev, true);
                    theirs.process_ev(ev, 1);
                }
                6 => {
                    loss(&mut ours, ev, LossCause::Trimmed);
                    theirs.process_ev(ev, 4);
                }
                _ => {
                    loss(&mut ours, ev, LossCause::Timeout);
                    theirs.process_ev(ev, 15);
                }
            }
        }
    }
}
