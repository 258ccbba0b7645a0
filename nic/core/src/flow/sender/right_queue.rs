//! Which entropy values come to the right queue of the peer's NIC (TRN-65).
//!
//! NICs choose the queue by a hash that is linear (Toeplitz): of the source port's 16 bits, with all else the same, every bit of the hash is a sum
//! without carry. Where the queue is some bits of the hash, the ports that come to one queue are an affine space over GF(2): a port, and what
//! differs from it by sums of some differences. So the peer's telling which packets did not come astray is enough to know all such ports.

use spray_wire::{Ev, EvPort};

/// What is known of the right ports.
#[derive(Clone, Debug, Default)]
pub(super) struct RightQueue {
    /// A right port.
    base: u16,
    /// Differences of right ports: that of place *i*, if it is not zero, has bit *i* as its highest.
    differences: [u16; 16],
    /// How many there are.
    rank: u8,
    has_base: bool,
    /// Times that what seemed known was wrong.
    mistakes: u8,
    /// Packets chosen since something new was learned.
    since: u32,
}

/// Least rank by which packets go: 256 values, so that neither a beginning nor a liar leaves few paths.
const LEAST_RANK: u8 = 8;
/// One of so many packets goes by the value that the balancer chose, to learn more; and so many when nothing new was learned for so many packets.
const LEARNING: u32 = 16;
const SETTLED: u32 = 1024;
const PATIENCE: u32 = 65_536;
/// After so many mistakes the hash counts as another one.
const MISTAKES: u8 = 32;

impl RightQueue {
    /// Takes what the peer says of a packet's port.
    pub(super) fn learn(&mut self, port: EvPort, astray: bool) {
        let port = port.number();
        match astray {
            _ if self.mistakes == MISTAKES => {}
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

    /// The value to send by in place of `ev`, of `evs`: the right one that it corresponds to. Right ones stay as they are.
    #[inline]
    pub(super) fn choose(&mut self, ev: Ev, evs: u32) -> Ev {
        if self.rank < LEAST_RANK {
            return ev;
        }
        self.since = self.since.saturating_add(1);
        let every = if self.since < PATIENCE { LEARNING } else { SETTLED };
        if self.since.is_multiple_of(every) {
            return ev;
        }
        let port = ev.port(evs).number();
        EvPort::new(port ^ self.residue(port)).ev(evs).unwrap_or(ev)
    }

    /// By what a port differs from the right one that it corresponds to.
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
    use alloc::vec::Vec;
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const EVS: u32 = 65_535;

    /// The part of Microsoft's key that meets the source port, over IPv4.
    const KEY: u64 = 0x4167_253d_43a3_8fb0;

    fn toeplitz(key: u64, port: u16) -> u32 {
        (0..16).filter(|bit| port >> (15 - bit) & 1 == 1).fold(0, |hash, bit| hash ^ ((key << bit) >> 32) as u32)
    }

    /// Sends so many packets by values drawn evenly. Returns how many of the last thousand came astray, and how many ports they used.
    fn run(right: &mut RightQueue, packets: u32, is_right: impl Fn(u16) -> bool) -> (usize, usize) {
        let mut state = 1_u32;
        let mut last = Vec::new();
        for _ in 0..packets {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let ev = right.choose(Ev::new(((u64::from(state) * u64::from(EVS)) >> 32) as u16), EVS);
            let port = ev.port(EVS);
            let astray = !is_right(port.number());
            right.learn(port, astray);
            last.push((port.number(), astray));
        }
        let last = &last[last.len() - 1000..];
        let ports: HashSet<_> = last.iter().map(|(port, _)| port).collect();
        (last.iter().filter(|(_, astray)| *astray).count(), ports.len())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        //= docs/specs/transport.md#TRN-65 as many values as there are
        fn whatever_the_key_packets_come_to_the_right_queue_of_two_to_sixty_four(
            key: u64, bits in 1..=6_u32, queue: u32, rest: u32,
        ) {
            let of = |port| (toeplitz(key, port) ^ rest) & ((1 << bits) - 1);
            // Keys that leave the queue without ports are of no use to anybody.
            let queue = of((queue % EVS) as u16 + 1);
            let mut right = RightQueue::default();
            let (astray, ports) = run(&mut right, 300_000, |port| of(port) == queue);
            prop_assert!(astray <= 2 && ports > 500, "{astray} of 1,000 astray, by {ports} ports");
        }
    }

    #[test]
    fn a_table_that_changes_is_learned_anew() {
        let mut right = RightQueue::default();
        for queue in [0, 3, 1, 2] {
            let (astray, ports) = run(&mut right, 200_000, |port| toeplitz(KEY, port) & 3 == queue);
            assert!(astray <= 2 && ports > 500, "{astray} astray, {ports} ports");
        }
    }

    #[test]
    fn of_a_hash_that_is_not_linear_nothing_is_taken_for_known_for_long() {
        let mut right = RightQueue::default();
        let (astray, ports) =
            run(&mut right, 200_000, |port| (u32::from(port).wrapping_mul(0x9e37_79b9) >> 16) % 3 == 1);
        assert!((550..800).contains(&astray) && ports > 900, "as without: {astray} astray, {ports} ports");
        assert_eq!(right.mistakes, MISTAKES);
    }

    #[test]
    fn a_liar_leaves_as_many_values_as_it_takes() {
        let mut right = RightQueue::default();
        (0..8).for_each(|bit| right.learn(EvPort::new(1 << bit), false));
        assert_eq!(right.rank, 7);
        assert!((0..100).all(|ev| right.choose(Ev::new(ev), EVS) == Ev::new(ev)), "too few to go by");
        (0..100).for_each(|ev| right.learn(EvPort::new(1 << 15 | ev), false));
        let chosen: HashSet<_> = (0..u16::MAX).map(|ev| right.choose(Ev::new(ev), EVS)).collect();
        assert!(chosen.len() > 255);
    }
}
