//! The order of connections that have something to send: round robin, by packet.
//!
//! Packet path: T3 of `docs/architecture.md`.

use super::{Scheduler, SendHalf};
use crate::Time;
use crate::event::Publisher;
use crate::flow::Transmit;

impl Scheduler {
    /// Returns whether a connection may have something to send.
    #[inline]
    pub fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Returns the connection that has its turn after `ahead` others.
    #[inline]
    pub fn turn(&self, ahead: usize) -> Option<u32> {
        self.turns.get(ahead).copied()
    }

    /// Puts connection `number` into the queue of turns, unless it is there.
    #[inline]
    pub fn request_turn(&mut self, number: u32, half: &mut SendHalf) {
        if !core::mem::replace(&mut half.ready, true) {
            self.turns.push_back(number);
        }
    }

    /// Takes the connection with the next turn. If it still has a sending half, [`transmit`](Self::transmit) follows.
    #[inline]
    pub fn next_turn(&mut self) -> Option<u32> {
        self.turns.pop_front()
    }

    /// Returns the frame that connection `number` sends in its turn, on the port of [`SendHalf::port`]. The connection
    /// then gets another turn, behind the others. `None`: it has nothing to send.
    //= docs/specs/endpoint.md#END-15 late path selection
    #[inline]
    pub fn transmit(
        &mut self,
        now: Time,
        number: u32,
        half: &mut SendHalf,
        publisher: &mut impl Publisher,
    ) -> Option<Transmit> {
        let transmit = half.sender.poll_transmit(now, &mut self.rng, publisher);
        half.ready = transmit.is_some();
        if half.ready {
            self.turns.push_back(number);
        }
        transmit
    }
}
