//! Entropy values that arrive on the right queue of the peer's NIC (TRN-65).
//!
//! NICs choose the queue by a linear hash (Toeplitz): with all else equal, every bit of the hash is
//! a sum without carry of bits of the source port. If the queue is some bits of the hash, the ports
//! of one queue are an affine space over GF(2): a port, and what differs from it by sums of some
//! differences. So the peer's reports of packets that were not misrouted determine all such ports.

use rand_core::RngCore;
use spray_wire::{Ev, EvPort};

use crate::rng::Rng;

#[derive(Clone, Debug, Default)]
pub(in crate::flow::sender) struct RssQueue {
    base: u16,
    /// Differences of right ports: the one at index *i*, unless zero, has bit *i* as its highest.
    differences: [u16; 16],
    /// The number of nonzero differences.
    rank: u8,
    has_base: bool,
    mistakes: u8,
    /// Packets chosen since the last new difference.
    since: u32,
}

/// Minimum rank for use: 256 values, so that neither the start nor a false report leaves few paths.
const LEAST_RANK: u8 = 8;
/// One packet in `LEARNING`, at random since ACKs report some packets only, keeps the balancer's
/// value to learn more; one in `SETTLED` after `PATIENCE` packets without news.
const LEARNING: u32 = 16;
const SETTLED: u32 = 1024;
const PATIENCE: u32 = 65_536;
/// Contradictions without settling after which the hash counts as non-linear. A change of the NIC's
/// table causes several, since late ACKs report the old one.
const MISTAKES: u8 = 32;

impl RssQueue {
    /// Takes the report on a packet's port, unless it is outside the `evs` values.
    pub fn learn(&mut self, port: EvPort, evs: u32, misrouted: bool) {
        let (is_ours, port) = (port.ev(evs).is_some(), port.number());
        match misrouted {
            _ if self.mistakes == MISTAKES || !is_ours => {}
            true if self.has_base && self.residue(port) == 0 => {
                *self = Self { mistakes: self.mistakes + 1, ..Self::default() };
            }
            true => {}
            false if !self.has_base => (self.base, self.has_base) = (port, true),
            false => {
                let residue = self.residue(port);
                if residue != 0 {
                    self.differences[residue.ilog2() as usize] = residue;
                    self.rank += 1;
                    self.since = 0;
                }
            }
        }
    }

    /// Returns the right value that corresponds to `ev`, of `evs`. Right ones map to themselves.
    #[inline]
    pub fn choose(&mut self, ev: Ev, evs: u32, rng: &mut Rng) -> Ev {
        if self.rank < LEAST_RANK {
            return ev;
        }
        self.since = self.since.saturating_add(1);
        let is_settled = self.since >= PATIENCE;
        if is_settled {
            self.mistakes = 0;
        }
        if rng.next_u32().is_multiple_of(if is_settled { SETTLED } else { LEARNING }) {
            return ev;
        }
        let port = ev.port(evs).number();
        EvPort::new(port ^ self.residue(port)).ev(evs).unwrap_or(ev)
    }

    /// The difference of a port from the right one that it corresponds to.
    #[inline]
    fn residue(&self, port: u16) -> u16 {
        let mut left = port ^ self.base;
        for (bit, difference) in self.differences.iter().enumerate().rev() {
            if left >> bit & 1 == 1 {
                left ^= difference;
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;
    use std::collections::HashSet;

    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use super::*;
    use crate::path::draw;
    use crate::rng::stream;

    const EVS: u32 = 65_535;

    /// The bits of Microsoft's RSS key that are combined with the source port, over IPv4.
    const KEY: u64 = 0x4167_253d_43a3_8fb0;

    fn toeplitz(key: u64, port: u16) -> u32 {
        (0..16).filter(|bit| port >> (15 - bit) & 1 == 1).fold(0, |hash, bit| hash ^ ((key << bit) >> 32) as u32)
    }

    /// A sender of packets with uniformly drawn values, and ACKs that report one packet in `every`,
    /// `delay` packets later.
    struct Run {
        right: RssQueue,
        rng: Rng,
        every: usize,
        delay: usize,
        reports: VecDeque<(EvPort, bool)>,
    }

    impl Run {
        fn new(every: usize, delay: usize) -> Self {
            Self { right: RssQueue::default(), rng: stream(7, 7), every, delay, reports: VecDeque::new() }
        }

        /// Sends `packets` packets. Returns how many of the last thousand were misrouted, and how
        /// many ports they used.
        fn send(&mut self, packets: usize, is_right: impl Fn(u16) -> bool) -> (usize, usize) {
            let mut last = Vec::new();
            for number in 0..packets {
                let drawn = draw(EVS as u16, &mut self.rng);
                let port = self.right.choose(drawn, EVS, &mut self.rng).port(EVS);
                let misrouted = !is_right(port.number());
                if number % self.every == 0 {
                    self.reports.push_back((port, misrouted));
                }
                // Late packets are reported out of order.
                let late = self.delay.div_ceil(self.every);
                if self.reports.len() > late {
                    let at = self.rng.next_u32() as usize % (1 + late / 4);
                    let (port, misrouted) = self.reports.remove(at).unwrap();
                    self.right.learn(port, EVS, misrouted);
                }
                last.push((port.number(), misrouted));
            }
            let last = &last[last.len() - 1000..];
            let ports: HashSet<_> = last.iter().map(|(port, _)| port).collect();
            (last.iter().filter(|(_, misrouted)| *misrouted).count(), ports.len())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        //= docs/specs/transport.md#TRN-65 the remaining ports of the space are found
        fn packets_reach_the_right_queue_with_any_key(
            key: u64, bits in 1..=6_u32, queue: u32, rest: u32,
        ) {
            let of = |port| (toeplitz(key, port) ^ rest) & ((1 << bits) - 1);
            // A key that maps no port to the queue is of no use.
            let queue = of((queue % EVS) as u16 + 1);
            let (misrouted, ports) = Run::new(1, 0).send(300_000, |port| of(port) == queue);
            // One packet of 1,024 uses a random value, to learn more. The probability that more
            // than ten of 1,000 do so is 1e-8.
            prop_assert!(misrouted <= 10 && ports > 500, "{misrouted} of 1,000 misrouted, by {ports} ports");
        }
    }

    //= docs/specs/transport.md#TRN-65 by chance
    #[test]
    fn a_changed_table_is_learned_again_from_late_reports() {
        for (every, delay, changes) in [(1, 0, 40), (8, 67, 4), (4, 1000, 12)] {
            let mut run = Run::new(every, delay);
            for change in 0..changes {
                let (misrouted, ports) = run.send(200_000, |port| toeplitz(KEY, port) & 3 == change % 4);
                assert!(
                    misrouted <= 5 && ports > 800,
                    "{every}, {delay}, {change}: {misrouted} misrouted, {ports} ports"
                );
            }
        }
    }

    #[test]
    fn a_nonlinear_hash_is_not_believed_for_long() {
        let mut run = Run::new(1, 0);
        let (misrouted, ports) = run.send(200_000, |port| (u32::from(port).wrapping_mul(0x9e37_79b9) >> 16) % 3 == 1);
        assert!(
            (550..800).contains(&misrouted) && ports > 900,
            "as without learning: {misrouted} misrouted, {ports} ports"
        );
        assert_eq!(run.right.mistakes, MISTAKES);
    }

    #[test]
    fn false_reports_leave_at_least_256_values() {
        let mut right = RssQueue::default();
        (0..8).for_each(|bit| right.learn(EvPort::new(1 << bit), EVS, false));
        assert_eq!(right.rank, 7);
        let mut rng = stream(7, 7);
        assert!((0..100).all(|ev| right.choose(Ev::new(ev), EVS, &mut rng) == Ev::new(ev)), "too few reports");
        (0..100).for_each(|ev| right.learn(EvPort::new(1 << 15 | ev), EVS, false));
        let chosen: HashSet<_> = (0..u16::MAX).map(|ev| right.choose(Ev::new(ev), EVS, &mut rng)).collect();
        assert!(chosen.len() > 255);
        for evs in [256, 4096, 32_768] {
            let (mut right, base) = (RssQueue::default(), Ev::new(0).port(evs).number());
            right.learn(EvPort::new(base), evs, false);
            (8..16).for_each(|bit| right.learn(EvPort::new(base ^ 1 << bit), evs, false));
            let chosen: HashSet<_> = (0..evs as u16).map(|ev| right.choose(Ev::new(ev), evs, &mut rng)).collect();
            assert!(chosen.len() >= 256.min(evs as usize), "{} of {evs}", chosen.len());
        }
    }
}
