//! Power of two choices: each packet draws two labels and takes the one with fewer recent marks and losses. A simple
//! adaptive baseline (after Mitzenmacher's two choices). Clauses (P2C-n) are in `docs/specs/power-of-two.md`.

use alloc::boxed::Box;
use alloc::vec;

use rand_core::RngCore;

use super::labels::Labels;
use super::{AckInfo, Balancer, Ev, LossCause, LossInfo, Scheme, SendInfo};
use crate::event::Publisher;
use crate::now::{Now, Path};
use crate::rng::Rng;
use crate::settings::settings;
use crate::units::Micros;

settings! {
    /// The settings of [`PowerOfTwo`].
    pub struct PowerOfTwoConfig {
        /// Labels of a connection.
        #[schemars(range(min = 1, max = 1_024))]
        pub labels: u16 = LABELS,
        /// Time in which a label's score halves, rounded down to a power of two ps. By default eight base round-trip
        /// times.
        #[schemars(range(min = 0.000_001, max = 1_000_000_000))]
        pub half_life_us: Option<Micros> = None,
    }
}

/// Takes the better of two labels drawn for each packet.
#[derive(Clone, Debug)]
pub struct PowerOfTwo {
    labels: Labels,
    /// By default it follows from the path.
    half_life: Option<Micros>,
    /// How congested each label was: 0 is not at all, 255 lost a packet.
    scores: Box<[u8]>,
    /// The half-life up to which they have halved, counted from time 0.
    tick: u64,
}

impl PowerOfTwo {
    /// The scores as of now.
    //= docs/specs/power-of-two.md#P2C-4 scores halve
    fn scores(&mut self, now: Now<'_>) -> &mut [u8] {
        let half_life_ps = self.half_life.map_or(now.path.base_rtt_ps * HALF_LIFE_RTTS, Micros::ps);
        let tick = now.time.intervals(half_life_ps.max(1).ilog2());
        if tick != self.tick {
            let passed = tick.saturating_sub(self.tick).min(8) as u32;
            self.scores.iter_mut().for_each(|score| *score = score.checked_shr(passed).unwrap_or(0));
            self.tick = tick;
        }
        &mut self.scores
    }

    /// Two different labels, or the only one twice.
    //= docs/specs/power-of-two.md#P2C-2 the better of two
    fn draw_two(&self, rng: &mut Rng) -> [u16; 2] {
        let (bits, count) = (rng.next_u64(), u64::from(self.labels.count()));
        let first = (((bits >> 32) * count) >> 32) as u16;
        let second = (((bits & 0xffff_ffff) * (count - 1)) >> 32) as u16;
        let skips = second >= first && count > 1;
        [first, second + u16::from(skips)]
    }
}

impl Scheme for PowerOfTwo {
    type Config = PowerOfTwoConfig;

    /// With 64 labels.
    const STATE_BYTES: usize = size_of::<Ev>() + LABELS as usize + size_of::<u64>();

    //= docs/specs/power-of-two.md#P2C-1 labels
    fn make(own: &PowerOfTwoConfig, path: &Path, rng: &mut Rng) -> Self {
        let labels = Labels::new(path, own.labels, rng);
        let scores = vec![0; labels.count().into()].into_boxed_slice();
        Self { labels, half_life: own.half_life_us, scores, tick: 0 }
    }
}

impl Balancer for PowerOfTwo {
    //= docs/specs/power-of-two.md#P2C-2 the better of two
    fn next_ev(&mut self, now: Now<'_>, _packet: &SendInfo, rng: &mut Rng) -> Ev {
        let [first, second] = self.draw_two(rng);
        let scores = self.scores(now);
        let better = scores[usize::from(second)] < scores[usize::from(first)];
        self.labels.ev(if better { second } else { first })
    }

    //= docs/specs/power-of-two.md#P2C-3 scores
    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, _publisher: &mut dyn Publisher) {
        let Some(label) = self.labels.label(ack.ev) else { return };
        let score = &mut self.scores(now)[usize::from(label)];
        if ack.marked {
            mark(score);
        } else {
            *score -= score.div_ceil(4);
        }
    }

    //= docs/specs/power-of-two.md#P2C-3 scores
    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        let Some(label) = self.labels.label(loss.ev) else { return };
        let score = &mut self.scores(now)[usize::from(label)];
        match loss.cause {
            LossCause::Trimmed | LossCause::TrimmedLast => mark(score),
            _ => *score = u8::MAX,
        }
    }
}

fn mark(score: &mut u8) {
    *score += (u8::MAX - *score).div_ceil(4);
}

/// Long enough that a score averages over some round trips, short enough that a label is tried again a millisecond
/// after a loss.
const HALF_LIFE_RTTS: u64 = 8;
/// Labels of a connection by default.
const LABELS: u16 = 64;

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::rng::{Rng, stream};
    use crate::tests::{On, path_of};

    /// 8 base RTTs round down to 2^25 ps.
    const HALF_LIFE_PS: u64 = 1 << 25;

    fn balancer(labels: u16) -> (On<PowerOfTwo>, Rng) {
        let own = PowerOfTwoConfig { labels, half_life_us: None };
        let mut rng = stream(3, 3);
        let path = path_of(8_000_000, 10);
        (On { scheme: PowerOfTwo::make(&own, &path, &mut rng), path }, rng)
    }

    fn ack(balancer: &mut On<PowerOfTwo>, now_ps: u64, label: u16, marked: bool) {
        let ev = balancer.labels.ev(label);
        balancer.scheme.on_ack(balancer.path.at_ps(now_ps), &AckInfo { ev, marked, ..AckInfo::default() }, &mut ());
    }

    fn counts(balancer: &mut On<PowerOfTwo>, rng: &mut Rng, now_ps: u64) -> Vec<u32> {
        let mut counts = std::vec![0; balancer.labels.count().into()];
        for _ in 0..10_000 {
            let ev = balancer.scheme.next_ev(balancer.path.at_ps(now_ps), &SendInfo::default(), rng);
            counts[usize::from(balancer.labels.label(ev).unwrap())] += 1;
        }
        counts
    }

    #[test]
    fn with_nothing_known_all_labels_are_alike() {
        //= docs/specs/power-of-two.md#P2C-1 labels
        let (mut balancer, mut rng) = balancer(8);
        let counts = counts(&mut balancer, &mut rng, 5);
        assert!(counts.iter().all(|count| (1_100..1_400).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_better_of_two_different_labels_goes() {
        //= docs/specs/power-of-two.md#P2C-2 the better of two
        let (mut balancer, mut rng) = balancer(4);
        for label in 0..4 {
            (0..label).for_each(|_| ack(&mut balancer, 0, label, true));
        }
        // Of six pairs the best label wins three, the next two, the next one, the worst none.
        let counts = counts(&mut balancer, &mut rng, 0);
        assert_eq!(counts[3], 0);
        for (label, expected) in [(0, 5_000u32), (1, 3_333), (2, 1_667)] {
            assert!(counts[label].abs_diff(expected) < 200, "{counts:?}");
        }
        let (mut single, mut rng) = super::tests::balancer(1);
        ack(&mut single, 0, 0, true);
        assert_eq!(super::tests::counts(&mut single, &mut rng, 0), [10_000]);
    }

    #[test]
    fn a_label_that_was_lost_and_long_unused_is_clean() {
        //= docs/specs/power-of-two.md#P2C-4 scores halve
        for half_lives in [8, 255, 256, 257, 512, 1 << 16, 1 << 32] {
            let (mut balancer, mut rng) = balancer(2);
            let lost = LossInfo { ev: balancer.labels.ev(0), cause: LossCause::Timeout, ..LossInfo::default() };
            balancer.scheme.on_loss(balancer.path.at_ps(0), &lost, &mut ());
            assert_eq!(counts(&mut balancer, &mut rng, 0), [0, 10_000]);
            let counts = counts(&mut balancer, &mut rng, half_lives * HALF_LIFE_PS + 125);
            assert!(counts[0].abs_diff(counts[1]) < 400, "after {half_lives}: {counts:?}");
        }
    }

    #[test]
    fn scores_follow_the_table() {
        //= docs/specs/power-of-two.md#P2C-3 scores
        //= docs/specs/power-of-two.md#P2C-4 scores halve
        let (mut balancer, _) = balancer(4);
        let score = |balancer: &PowerOfTwo| balancer.scores[2];
        for (marked, expected) in [(true, 64), (true, 112), (false, 84), (true, 127), (false, 95), (false, 71)] {
            ack(&mut balancer, 0, 2, marked);
            assert_eq!(score(&balancer), expected);
        }
        let lost = |cause| LossInfo { ev: balancer.labels.ev(2), cause, ..LossInfo::default() };
        let (trimmed, timeout) = (lost(LossCause::Trimmed), lost(LossCause::Timeout));
        balancer.scheme.on_loss(balancer.path.at_ps(0), &trimmed, &mut ());
        assert_eq!(score(&balancer), 117);
        balancer.scheme.on_loss(balancer.path.at_ps(0), &timeout, &mut ());
        assert_eq!(score(&balancer), 255);
        for (half_lives, expected) in [(0, 255), (1, 127), (3, 31), (7, 1), (8, 0), (255, 0), (256, 0), (512, 0)] {
            balancer.scheme.on_loss(balancer.path.at_ps(HALF_LIFE_PS - 1), &timeout, &mut ());
            let On { scheme, path } = &mut balancer;
            let scores = scheme.scores(path.at_ps(HALF_LIFE_PS - 1 + half_lives * HALF_LIFE_PS));
            assert_eq!(std::mem::take(&mut scores[2]), expected, "after {half_lives}");
        }
        ack(&mut balancer, 0, 2, false);
        assert_eq!(score(&balancer), 0);
        balancer.scheme.on_ack(
            balancer.path.at_ps(0),
            &AckInfo { ev: Ev::new(60_000), marked: true, ..AckInfo::default() },
            &mut (),
        );
        assert!(balancer.scores.iter().all(|score| *score == 0), "what is no label changes nothing");
    }
}
