//! Late packets count as marked where the network gives no marks (CAL-7, CAL-8).

use crate::Time;

#[derive(Clone, Debug)]
pub(in crate::flow::sender) struct DelayMarking {
    /// Delay from which a packet is late; [`u64::MAX`] if the network marks.
    limit_ps: u64,
    span: Span,
    state: State,
}

const _: () = assert!(size_of::<DelayMarking>() <= 64);

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    begun: Time,
    delivered: u32,
    lost: u32,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Detect losses in queues. For this number of further spans losses change nothing.
    Watching(u8),
    /// Compare the losses with those at the previous, higher limit.
    Trying(Trial),
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The previous limit, the losses of a span at it, and that span's duration.
    limit_ps: u64,
    before: u32,
    before_ps: u64,
    /// Spans of the trial, and their losses; the first, in which queues settle, does not count.
    spans: u8,
    lost: u32,
}

impl DelayMarking {
    pub fn new() -> Self {
        Self { limit_ps: LONGEST_PS, span: Span::default(), state: State::Watching(0) }
    }

    /// Records that the network marks. A trial ends, so that it restores no limit.
    pub fn end(&mut self) {
        (self.limit_ps, self.state) = (u64::MAX, State::Watching(0));
    }

    /// Whether late packets count as marks: the network does not mark.
    pub fn marks(&self) -> bool {
        self.limit_ps != u64::MAX
    }

    /// Takes a loss that was not reported by a switch.
    #[inline]
    pub fn on_loss(&mut self) {
        self.span.lost = self.span.lost.saturating_add(1);
    }

    /// Whether a packet with this round-trip time is late, given the least one.
    //= docs/specs/calibration.md#CAL-7 networks that do not mark
    #[inline]
    pub fn is_late(&self, rtt_ps: u64, least_ps: u64) -> bool {
        rtt_ps.saturating_sub(least_ps) > self.limit_ps
    }

    /// Takes an ACK of `packets`, with the smoothed and the least round-trip time.
    #[inline]
    pub fn on_ack(&mut self, now: Time, packets: u16, average_ps: u64, least_ps: u64) {
        if !self.marks() {
            return;
        }
        self.span.delivered = self.span.delivered.saturating_add(packets.into());
        let span_ps = now.since(self.span.begun);
        if self.span.delivered >= SPAN_PACKETS && span_ps >= 2 * average_ps || self.starves(span_ps) {
            self.end_span(now, average_ps.saturating_sub(least_ps), least_ps / 4);
        }
    }

    /// Restores the limit: losses are random or due to cross traffic.
    #[cold]
    pub fn give_up(&mut self, now: Time) {
        if let State::Trying(trial) = self.state {
            self.limit_ps = trial.limit_ps;
        }
        (self.state, self.span) = (State::Watching(PATIENCE), Span { begun: now, ..Span::default() });
    }

    /// Whether a span of a trial takes far longer than the one before the trial.
    #[inline]
    fn starves(&self, span_ps: u64) -> bool {
        matches!(self.state, State::Trying(trial) if span_ps / SLOWER > trial.before_ps)
    }

    /// Adapts the limit, at least `floor_ps`, to the losses and smoothed delay of the span.
    //= docs/specs/calibration.md#CAL-8 losses by queue overflow
    #[cold]
    fn end_span(&mut self, now: Time, delay_ps: u64, floor_ps: u64) {
        let Span { begun, delivered, lost } =
            core::mem::replace(&mut self.span, Span { begun: now, ..Span::default() });
        let delivered = u64::from(delivered.max(1));
        // Scaled to `SPAN_PACKETS`.
        let span_ps = (u128::from(now.since(begun)) * u128::from(SPAN_PACKETS) / u128::from(delivered)) as u64;
        let lost = (u64::from(lost) * u64::from(SPAN_PACKETS) / delivered).min(MOST_LOST) as u32;
        self.state = match self.state {
            State::Watching(0) if lost >= MANY => {
                let before = self.limit_ps;
                self.limit_ps = (before.min(delay_ps) / 2).max(floor_ps);
                State::Trying(Trial { limit_ps: before, before: lost, before_ps: span_ps, spans: 0, lost: 0 })
            }
            State::Watching(spans) => {
                self.limit_ps = (self.limit_ps + self.limit_ps / GROWTH).min(LONGEST_PS);
                State::Watching(spans.saturating_sub(1))
            }
            State::Trying(trial) if span_ps / SLOWER <= trial.before_ps => {
                let lost = if trial.spans == 0 { 0 } else { trial.lost + lost };
                match trial.spans {
                    ..TRIAL_SPANS => State::Trying(Trial { spans: trial.spans + 1, lost, ..trial }),
                    _ if lost <= trial.before * u32::from(TRIAL_SPANS) / 2 => State::Watching(0),
                    _ => return self.give_up(now),
                }
            }
            State::Trying(_) => return self.give_up(now),
        };
    }
}

/// Updates a smoothed round-trip time, 0 before the first, by 1/16. A sample counts at most
/// twofold, so that one much slower path does not make all seem slow. Never 0.
#[inline]
pub(in crate::flow::sender) fn smoothed(present_ps: u64, rtt_ps: u64) -> u64 {
    let present_ps = if present_ps == 0 { rtt_ps } else { present_ps };
    (present_ps - present_ps / 16 + rtt_ps.min(present_ps.saturating_mul(2)) / 16).max(1)
}

/// A queue that drains more slowly is longer than useful (RFC 8289: CoDel's target).
const LONGEST_PS: u64 = 5_000_000_000;
/// Packets of a span, and the losses in it if a queue overflows.
const SPAN_PACKETS: u32 = 512;
const MANY: u32 = 4;
/// Keeps the sums of a trial within 32 bits.
const MOST_LOST: u64 = 1 << 24;
/// Spans of the trial of a lower limit, after one in which queues settle.
const TRIAL_SPANS: u8 = 4;
/// Spans of a trial that are slower by this factor end it: cross traffic fills the queue.
const SLOWER: u64 = 2;
/// The limit grows by this part per span.
const GROWTH: u64 = 64;
/// Spans after an unsuccessful trial before the next.
const PATIENCE: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, stream};
    use crate::tests::at;
    use rand_core::RngCore;

    const US: u64 = 1_000_000;
    const LEAST_PS: u64 = 100 * US;

    /// Models a sender at a queue that holds `depth_ps`, which fills until a packet is late or
    /// lost; one packet in `random` is also lost. Returns the marking after `packets` packets, the
    /// share lost in the last half, and the longest queue in it.
    fn sender(depth_ps: u64, random: u32, packets: u32) -> (DelayMarking, f64, u64) {
        let (mut marking, mut rng): (_, Rng) = (DelayMarking::new(), stream(1, 1));
        let (mut queue_ps, mut average_ps, mut lost, mut longest_ps) = (0, 0, 0, 0);
        for number in 0..packets {
            let is_full = queue_ps > depth_ps;
            let is_lost = is_full || (random > 0 && rng.next_u32() % random == 0);
            if is_lost {
                marking.on_loss();
            }
            average_ps = smoothed(average_ps, LEAST_PS + queue_ps);
            marking.on_ack(at(u64::from(number) * 10 * US), 1, average_ps, LEAST_PS);
            let late = marking.is_late(LEAST_PS + queue_ps, LEAST_PS);
            queue_ps = if late || is_full { queue_ps * 7 / 8 } else { queue_ps + 10 * US };
            if number > packets / 2 {
                lost += u32::from(is_lost);
                longest_ps = longest_ps.max(queue_ps);
            }
        }
        (marking, f64::from(lost) / f64::from(packets / 2), longest_ps)
    }

    #[test]
    fn packets_are_late_at_5_ms_and_never_in_a_marking_network() {
        //= docs/specs/calibration.md#CAL-7 networks that do not mark
        let mut marking = DelayMarking::new();
        let late = |marking: &DelayMarking, delay_us: u64| marking.is_late(LEAST_PS + delay_us * US, LEAST_PS);
        assert!(!late(&marking, 5_000) && late(&marking, 5_001));
        marking.end();
        assert!(!late(&marking, 1_000_000));
        let (_, lost, longest_ps) = sender(40_000 * US, 0, 100_000);
        assert_eq!(lost, 0.0);
        assert!((4_000 * US..5_100 * US).contains(&longest_ps), "{longest_ps}");
    }

    #[test]
    fn a_lower_limit_that_starves_is_abandoned() {
        //= docs/specs/calibration.md#CAL-8 losses by queue overflow
        let mut marking = DelayMarking::new();
        let mut now_us = 0;
        // Competing traffic keeps the queue at 3 ms: a sender that considers this late gets a tenth
        // of the rate, and loses less.
        let mut spans = |marking: &mut DelayMarking, packets: u64| {
            (0..packets).for_each(|number| {
                let is_late = marking.is_late(LEAST_PS + 3_000 * US, LEAST_PS);
                now_us += if is_late { 200 } else { 20 };
                if number % if is_late { 500 } else { 50 } == 0 {
                    marking.on_loss();
                }
                marking.on_ack(at(now_us * US), 1, LEAST_PS + 3_000 * US, LEAST_PS);
            });
        };
        spans(&mut marking, 600);
        assert_eq!(marking.limit_ps, 1_500 * US);
        spans(&mut marking, 200);
        assert!(marking.limit_ps == LONGEST_PS && matches!(marking.state, State::Watching(PATIENCE)), "{marking:?}");
        // If the network turns out to mark, the trial has no further effect.
        let mut marking = DelayMarking::new();
        spans(&mut marking, 600);
        marking.end();
        marking.give_up(at(US));
        assert!(!marking.marks());
    }

    /// Where the network marks, no span ends: losses are counted for the lifetime of the
    /// connection.
    #[test]
    fn counters_saturate() {
        let mut marking = DelayMarking::new();
        marking.end();
        marking.span.lost = u32::MAX;
        marking.on_loss();
        assert!(!marking.marks() && marking.span.lost == u32::MAX);
        let mut marking = DelayMarking::new();
        for round in 0..20 {
            marking.span = Span { begun: at(round), delivered: u32::MAX - 1, lost: u32::MAX };
            marking.on_loss();
            marking.on_ack(at(round), 255, u64::MAX / 2, LEAST_PS);
            assert_eq!((marking.span.delivered, marking.span.lost), (u32::MAX, u32::MAX));
            marking.span.delivered = 0;
            marking.on_ack(at((round + 1) * 1_000_000 * US), SPAN_PACKETS as u16, LEAST_PS, LEAST_PS);
            assert_eq!(marking.span.delivered, 0, "the span has ended");
        }
    }

    #[test]
    fn a_limit_grows_by_1_64_per_span_of_two_round_trips() {
        let mut marking = DelayMarking { limit_ps: 640 * US, ..DelayMarking::new() };
        let mut after = |now_us: u64, gives_up: bool| {
            if gives_up {
                marking.give_up(at(now_us * US));
            }
            marking.on_ack(at(now_us * US), SPAN_PACKETS as u16, LEAST_PS, LEAST_PS);
            marking.limit_ps / US
        };
        assert_eq!(after(1_000, false), 650);
        // Abandoning a limit begins a span.
        let limits_us =
            [(2_000, true), (2_199, false), (2_200, false)].map(|(now_us, gives_up)| after(now_us, gives_up));
        assert_eq!(limits_us, [650, 650, 660]);
    }

    /// A trial of five spans, the first of which is not counted, succeeds with half the losses.
    //= docs/specs/calibration.md#CAL-8 losses by queue overflow
    #[test]
    fn a_trial_that_prevents_half_the_losses_is_kept() {
        for (lost, limit_us) in [([8, 16, 0, 0, 0], 2_500), ([90, 4, 4, 4, 4], 2_500), ([0, 4, 5, 4, 4], 5_000)] {
            let (mut marking, mut now_us) = (DelayMarking::new(), 0);
            for lost in [8].into_iter().chain(lost) {
                now_us += 20_000;
                (0..lost).for_each(|_| marking.on_loss());
                marking.on_ack(at(now_us * US), SPAN_PACKETS as u16, LEAST_PS + 9_000 * US, LEAST_PS);
            }
            assert_eq!(marking.limit_ps, limit_us * US, "{lost:?}: {marking:?}");
            assert!(matches!(marking.state, State::Watching(_)), "{marking:?}");
        }
    }

    #[test]
    fn an_overflowing_queue_is_kept_shorter() {
        //= docs/specs/calibration.md#CAL-8 losses by queue overflow
        for depth_us in [200, 1_000, 2_000, 4_000] {
            let (marking, lost, longest_ps) = sender(depth_us * US, 0, 400_000);
            assert!(marking.limit_ps < depth_us * US * 11 / 10, "{depth_us} us: {marking:?}");
            // If only losses limited the queue, one packet would be lost per number of packets that
            // fills an eighth of it.
            let of_losses = 1.0 / (depth_us as f64 / 10.0 / 8.0);
            assert!(lost < of_losses / 4.0, "{depth_us} us: {lost} lost, {of_losses}");
            assert!(longest_ps > depth_us * US / 3, "{depth_us} us: {longest_ps}");
        }
    }

    #[test]
    fn random_losses_do_not_shorten_the_queue() {
        //= docs/specs/calibration.md#CAL-8 losses by queue overflow
        let (marking, lost, _) = sender(40_000 * US, 100, 1_000_000);
        assert!((0.009..0.011).contains(&lost));
        assert!(marking.limit_ps > LONGEST_PS / 4, "{marking:?}");
    }
}
