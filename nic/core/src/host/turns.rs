//! Whose packet goes next: connections that may have something to send take turns.

use spray_wire::Body;

use super::{Entry, Host, Owner, Table};
use crate::Time;
use crate::flow::Transmit;

impl Host {
    /// Whether a connection may have something to send.
    #[inline]
    pub fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// The connection whose turn comes after so many others.
    #[inline]
    pub fn turn(&self, ahead: usize) -> Option<u32> {
        self.turns.get(ahead).copied()
    }

    /// Gives connections their turns until one has sent a data packet or none has anything to send.
    ///
    /// A connection that sends something gets another turn, behind the others. Frames without payload do not end the round.
    //= docs/specs/endpoint.md#END-15 late path selection
    #[inline]
    pub fn transmit<O: Owner>(&mut self, now: Time, table: &mut impl Table<O::Connection>, owner: &mut O) {
        while let Some(number) = self.turns.pop_front() {
            let Some(connection) = table.entry(number) else { continue };
            let Some(half) = connection.sending() else { continue };
            let transmit = half.sender.poll_transmit(now, &mut self.rng, &mut owner.log().of(number));
            let evs = half.sender.path().evs.into();
            half.ready = transmit.is_some();
            if transmit.is_some() {
                self.turns.push_back(number);
            }
            owner.arm_sender(now, number, connection, transmit.is_some());
            match transmit {
                None => {}
                Some(Transmit::Probe { probe, ev }) => {
                    owner.send(now, number, connection, ev.port(evs), Body::Probe(probe));
                }
                Some(Transmit::PullRequest { request, ev }) => {
                    owner.send(now, number, connection, ev.port(evs), Body::PullRequest(request));
                }
                Some(Transmit::Data { data, ev }) => {
                    return owner.send_data(now, number, connection, ev.port(evs), &data);
                }
            }
        }
    }
}
