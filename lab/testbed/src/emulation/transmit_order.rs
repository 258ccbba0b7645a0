//! Order of transmission: frames of all hosts are sent in the order of virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spray_fabric::TieBreaker;

/// The progress of each host, shared by all.
//= docs/specs/emulation.md#EMU-5 order of sending
//= docs/specs/emulation.md#EMU-1 order of events
#[derive(Debug)]
pub struct TransmitOrder {
    ahead_ps: u64,
    ties: TieBreaker,
    /// By host the time before which it will send nothing; `u64::MAX` after its end.
    next_ps: Box<[AtomicU64]>,
}

/// A host's handle of [`TransmitOrder`]. Dropping it ends the host.
#[derive(Debug)]
pub struct TransmitTurn {
    turns: Arc<TransmitOrder>,
    host: usize,
    handled_ps: u64,
}

impl TransmitOrder {
    /// `ahead_ps` is the least latency of a host's link. `ties` orders frames of the same time.
    pub fn new(hosts: usize, ahead_ps: u64, ties: TieBreaker) -> Arc<Self> {
        Arc::new(Self { ahead_ps, ties, next_ps: (0..hosts).map(|_| AtomicU64::new(0)).collect() })
    }

    /// Returns the handle of `host`. No other host sends until it has been polled once.
    pub fn of(self: &Arc<Self>, host: usize) -> TransmitTurn {
        assert!(host < self.next_ps.len(), "host {host} of {}", self.next_ps.len());
        TransmitTurn { turns: Arc::clone(self), host, handled_ps: 0 }
    }
}

impl TransmitTurn {
    pub fn ties(&self) -> TieBreaker {
        self.turns.ties
    }

    /// The host has handled everything up to `now_ps`. Published by [`pass`](Self::pass).
    pub fn handled(&mut self, now_ps: u64) {
        self.handled_ps = now_ps;
    }

    /// Latest virtual time of a frame that the host may send now: none will send an earlier one.
    pub fn until_ps(&self) -> u64 {
        let Self { turns, host, handled_ps } = self;
        let next_ps = |other: usize| turns.next_ps[other].load(Ordering::Acquire);
        let others = || (0..turns.next_ps.len()).filter(|other| other != host);
        let first_ps = others().map(next_ps).min().unwrap_or(u64::MAX);
        let until_ps = first_ps.saturating_add(turns.ahead_ps);
        //= docs/specs/emulation.md#EMU-9 ties
        let place = |host: usize| (turns.ties.draw(until_ps, host as u64), host);
        let waits = others().any(|other| next_ps(other) == first_ps && place(other) < place(*host));
        until_ps.saturating_sub(waits.into()).min(handled_ps.saturating_add(turns.ahead_ps))
    }

    /// Publishes the progress; `first_ps` is the time of the next frame to be sent, or `u64::MAX`.
    pub fn pass(&self, first_ps: u64) {
        let next_ps = first_ps.saturating_sub(self.turns.ahead_ps).min(self.handled_ps);
        self.turns.next_ps[self.host].store(next_ps, Ordering::Release);
    }

    /// Time up to which the host has handled and sent everything, as published.
    pub fn done_ps(&self) -> u64 {
        self.turns.next_ps[self.host].load(Ordering::Relaxed)
    }
}

impl Drop for TransmitTurn {
    fn drop(&mut self) {
        self.turns.next_ps[self.host].store(u64::MAX, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    const AHEAD_PS: u64 = 40;
    const TIES: TieBreaker = TieBreaker::new(5);

    /// A host, its waiting frames, and their delay at its link beyond the latency.
    struct PolledHost {
        turn: TransmitTurn,
        waiting: VecDeque<u64>,
        handled_ps: u64,
        slower_ps: u64,
    }

    impl PolledHost {
        /// Handles everything up to `now_ps`, which creates a frame after each of `gaps`.
        fn handle(&mut self, gaps: &[u64], now_ps: u64) {
            let mut at_ps = self.handled_ps;
            for gap in gaps {
                at_ps += gap;
                if at_ps <= now_ps {
                    // Put on the link at this time, it leaves at least 1 ps later.
                    let first_ps =
                        (at_ps + 1 + AHEAD_PS + self.slower_ps).max(self.waiting.back().copied().unwrap_or(0));
                    self.waiting.push_back(first_ps);
                }
            }
            self.handled_ps = now_ps;
            self.turn.handled(now_ps);
            self.turn.pass(self.waiting.front().copied().unwrap_or(u64::MAX));
        }

        fn send(&mut self, number: usize, sent: &mut Vec<(u64, usize)>) {
            let until_ps = self.turn.until_ps();
            while let Some(&at_ps) = self.waiting.front().filter(|at_ps| **at_ps <= until_ps) {
                self.waiting.pop_front();
                sent.push((at_ps, number));
            }
            self.turn.pass(self.waiting.front().copied().unwrap_or(u64::MAX));
        }
    }

    proptest! {
        /// Regardless of the order of polls, frames are sent by (virtual time, draw), and all of
        /// them in the end.
        #[test]
        fn frames_are_sent_in_order_of_virtual_time(
            slower in prop::collection::vec(0u64..100, 2..5),
            steps in prop::collection::vec((0usize..5, prop::collection::vec(0u64..60, 0..6), 1u64..200), 1..120),
        ) {
            let turns = TransmitOrder::new(slower.len(), AHEAD_PS, TIES);
            let host = |(number, slower_ps): (usize, &u64)| {
                PolledHost { turn: turns.of(number), waiting: VecDeque::new(), handled_ps: 0, slower_ps: *slower_ps }
            };
            let mut hosts: Vec<PolledHost> = slower.iter().enumerate().map(host).collect();
            let mut sent = Vec::new();
            for (number, gaps, step_ps) in steps {
                let number = number % hosts.len();
                let now_ps = hosts[number].handled_ps + step_ps;
                hosts[number].handle(&gaps, now_ps);
                hosts[number].send(number, &mut sent);
            }
            hosts.iter_mut().for_each(|host| host.handle(&[], 1_000_000));
            let waiting: usize = hosts.iter().map(|host| host.waiting.len()).sum();
            let all = sent.len() + waiting;
            while (0..hosts.len()).any(|number| !hosts[number].waiting.is_empty()) {
                let before = sent.len();
                (0..hosts.len()).for_each(|number| hosts[number].send(number, &mut sent));
                prop_assert!(sent.len() > before, "some host can always send");
            }
            prop_assert_eq!(sent.len(), all);
            let place = |(at_ps, number): &(u64, usize)| (*at_ps, TIES.draw(*at_ps, *number as u64));
            prop_assert!(sent.is_sorted_by_key(place), "{:?}", sent);
        }
    }

    #[test]
    fn a_host_that_has_ended_is_not_waited_for() {
        let turns = TransmitOrder::new(2, AHEAD_PS, TIES);
        let (mut first, second) = (turns.of(0), turns.of(1));
        first.handled(1_000);
        first.pass(u64::MAX);
        assert_eq!(first.until_ps(), AHEAD_PS);
        drop(second);
        assert_eq!(first.until_ps(), 1_000 + AHEAD_PS);
    }
}
