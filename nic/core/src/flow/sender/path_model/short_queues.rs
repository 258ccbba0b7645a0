//! Detects short queues, where the window grows faster and losses are random (CAL-13 to 15).

use crate::flow::FIRST_PACKETS;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::flow::sender) struct ShortQueues {
    /// Seven eighths of the wire bytes that the last round delivered in one base round-trip time.
    least_window_bytes: u64,
    /// Packets that the last round acknowledged; 0 before its end.
    packets: u32,
    rounds: u8,
}

const _: () = assert!(size_of::<ShortQueues>() <= 16);

#[derive(Clone, Copy, Debug)]
pub(in crate::flow::sender) struct RoundPackets {
    pub acked: u32,
    pub marked: u32,
    pub lost: u32,
}

impl ShortQueues {
    /// Takes a round, its smoothed delay, the least RTT, and the bytes delivered per base RTT.
    //= docs/specs/calibration.md#CAL-13 growth while queues are short
    pub fn on_round(&mut self, round: RoundPackets, [delay_ps, least_ps]: [u64; 2], bytes_per_rtt: u64) {
        let few = round.acked / CHANCE_PART;
        let is_uncongested = round.marked <= few && round.lost <= few + 1 && delay_ps <= least_ps / 4;
        self.rounds = if is_uncongested { self.rounds.saturating_add(1) } else { 0 };
        self.packets = round.acked;
        self.least_window_bytes = bytes_per_rtt - bytes_per_rtt / 8;
    }

    /// Whether a loss, the `lost`-th of this round, is random. `is_starting`: during slow start.
    //= docs/specs/calibration.md#CAL-14 random losses
    pub fn is_random(&self, lost: u32, is_starting: bool) -> bool {
        (is_starting || self.rounds > 0) && lost <= self.packets / CHANCE_PART + 1
    }

    /// Whether this number of marked packets in a round means several slow paths.
    //= docs/specs/calibration.md#CAL-3 slow start
    #[inline]
    pub fn are_many(&self, marked: u32) -> bool {
        let packets = if self.packets == 0 { FIRST_PACKETS as u32 } else { self.packets };
        marked.saturating_mul(MANY_PART) >= packets
    }

    /// Returns the least window, in wire bytes, after an ACK of `acked_bytes` that moved it from
    /// `before` to `after`. `is_used`: the window limits what is sent.
    #[inline]
    pub fn least_window(&self, [before, after]: [u64; 2], acked_bytes: u64, is_used: bool) -> u64 {
        if after < before {
            //= docs/specs/calibration.md#CAL-15 minimum window after marks
            self.least_window_bytes.min(before)
        } else if is_used && self.rounds >= GROWTH_ROUNDS {
            let part = if self.rounds < FAST_GROWTH_ROUNDS { GROWTH_PART } else { FAST_GROWTH_PART };
            before.saturating_add(acked_bytes / part)
        } else {
            0
        }
    }
}

/// Share of marked packets in a round that ends the start: one in three.
const MANY_PART: u32 = 3;
/// One packet of this number may be marked or lost in an uncongested round.
const CHANCE_PART: u32 = 32;
/// Uncongested rounds before the window grows faster, and its growth per acknowledged byte.
const GROWTH_ROUNDS: u8 = 3;
const GROWTH_PART: u64 = 16;
/// Uncongested rounds after which the window is far too small, as after a slow start that ended too
/// early, and its growth per acknowledged byte then.
const FAST_GROWTH_ROUNDS: u8 = 8;
const FAST_GROWTH_PART: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000_000;
    const QUIET: RoundPackets = RoundPackets { acked: 64, marked: 2, lost: 3 };
    const RTT: [u64; 2] = [250 * US, 1_000 * US];

    fn after(rounds: u32, round: RoundPackets, rtt: [u64; 2]) -> ShortQueues {
        let mut queues = ShortQueues::default();
        (0..rounds).for_each(|_| queues.on_round(round, rtt, 80_000));
        queues
    }

    #[test]
    fn a_used_window_grows_after_three_uncongested_rounds() {
        //= docs/specs/calibration.md#CAL-13 growth while queues are short
        let grown = |queues: ShortQueues, is_used| queues.least_window([100_000, 100_015], 1_600, is_used);
        let windows = [(2, 0), (3, 100_100), (7, 100_100), (8, 100_400)];
        assert!(windows.iter().all(|&(rounds, window)| grown(after(rounds, QUIET, RTT), true) == window));
        assert_eq!(grown(after(3, QUIET, RTT), false), 0);
        let congested = [
            (RoundPackets { marked: 3, ..QUIET }, RTT),
            (RoundPackets { lost: 4, ..QUIET }, RTT),
            (QUIET, [250 * US + 1, 1_000 * US]),
        ];
        for (round, rtt) in congested {
            assert_eq!(grown(after(9, round, rtt), true), 0, "{round:?} {rtt:?}");
        }
        // One congested round suffices.
        let mut queues = after(9, QUIET, RTT);
        queues.on_round(RoundPackets { marked: 3, ..QUIET }, RTT, 80_000);
        assert_eq!(grown(queues, true), 0);
    }

    #[test]
    fn few_losses_while_queues_are_short_count_as_random() {
        //= docs/specs/calibration.md#CAL-14 random losses
        assert_eq!([0, 1].map(|rounds| after(rounds, QUIET, RTT).is_random(1, false)), [false, true]);
        for is_starting in [false, true] {
            assert_eq!([3, 4].map(|lost| after(1, QUIET, RTT).is_random(lost, is_starting)), [true, false]);
            // Long queues: losses count except in slow start.
            assert_eq!(after(2, QUIET, [300 * US, 1_000 * US]).is_random(1, is_starting), is_starting);
        }
        assert_eq!([1, 2].map(|lost| ShortQueues::default().is_random(lost, true)), [true, false]);
    }

    #[test]
    fn marks_leave_a_window_of_7_8_of_the_delivered_bytes() {
        //= docs/specs/calibration.md#CAL-15 minimum window after marks
        let queues = after(1, RoundPackets { marked: 64, ..QUIET }, RTT);
        assert_eq!(queues.least_window([90_000, 60_000], 1_600, true), 70_000);
        assert_eq!(queues.least_window([65_000, 60_000], 1_600, true), 65_000, "a mark does not increase it");
    }
}
