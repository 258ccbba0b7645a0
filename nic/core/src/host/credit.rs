//! Credit that a host grants to its senders. One pacer serves them all; it is made when the first one asks.

use alloc::boxed::Box;

use spray_wire::{Body, EvPort, PullRequest};

use super::{Entry, Host, Owner, ReceiveHalf, Table};
use crate::Time;
use crate::cc::PullPacer;
use crate::flow::{Accept, Arrival};
use crate::path::draw;

impl Host {
    /// When [`Host::grant`] has credit to grant; `None` while no sender waits for any.
    #[inline]
    pub fn grant_at(&self) -> Option<Time> {
        self.pacer.as_deref()?.poll_timeout()
    }

    /// Whether a sender has ever asked this host for credit.
    pub fn grants_credit(&self) -> bool {
        self.pacer.is_some()
    }

    /// Grants the next credit, if its time has come. The pull goes over a random path, the first after a request over the request's.
    //= docs/specs/eqds.md#EQDS-18 Paths of requests and pulls
    pub fn grant<O: Owner>(&mut self, now: Time, table: &mut impl Table<O::Connection>, owner: &mut O) {
        let Some((number, pull)) = self.pacer.as_deref_mut().and_then(|pacer| pacer.poll_pull(now)) else { return };
        let Some(connection) = table.entry(number) else { return };
        let Some(ReceiveHalf { evs, credit, .. }) = connection.receiving() else { return };
        let port = credit.asked_by.take().unwrap_or_else(|| draw(*evs, &mut self.rng).port((*evs).into()));
        owner.send(now, number, connection, port, Body::Pull(pull));
    }

    /// Ends a connection's share of credit.
    pub fn close(&mut self, half: &ReceiveHalf) {
        if let (Some(pacer), Some(entry)) = (self.pacer.as_deref_mut(), half.credit.entry) {
            pacer.close(entry);
        }
    }

    /// Takes a request for credit, whatever congestion control this host's own senders have.
    //= docs/specs/eqds.md#EQDS-15 mixed congestion controls
    pub(super) fn on_pull_request<O: Owner>(
        &mut self,
        now: Time,
        number: u32,
        connection: &mut O::Connection,
        port: EvPort,
        request: &PullRequest,
        owner: &mut O,
    ) {
        let Some(ReceiveHalf { receiver, credit, .. }) = connection.receiving() else { return };
        receiver.on_pull_request(request);
        credit.asked_by = Some(port);
        let link_bps = self.link_bps;
        let pacer = self.pacer.get_or_insert_with(|| Box::new(PullPacer::new(link_bps, credit.rate)));
        let entry = *credit.entry.get_or_insert_with(|| pacer.open(number, credit.pull_bytes, credit.bound));
        pacer.on_request(now, entry, request.pulled_bytes);
        self.want_credit(now, connection, owner);
    }

    /// Tells the pacer of a data frame, which credit may have called for.
    //= docs/specs/eqds.md#EQDS-16 limit of unused credit
    #[inline]
    pub(super) fn take_back<O: Owner>(
        &mut self,
        now: Time,
        connection: &mut O::Connection,
        arrival: &Arrival,
        accept: Accept,
        owner: &mut O,
    ) {
        let Some(pacer) = self.pacer.as_deref_mut() else { return };
        let Some(ReceiveHalf { receiver, credit, .. }) = connection.receiving() else { return };
        let Some(entry) = credit.entry else { return };
        if pacer.on_arrival(now, entry, receiver.credit_back(arrival, accept)) || arrival.trimmed {
            self.want_credit(now, connection, owner);
        }
    }

    /// Tells the pacer what a sender needs: it asked, or one of its packets was trimmed or made room.
    fn want_credit<O: Owner>(&mut self, now: Time, connection: &mut O::Connection, owner: &mut O) {
        let Some(ReceiveHalf { receiver, credit, .. }) = connection.receiving() else { return };
        let (Some(pacer), Some(entry)) = (self.pacer.as_deref_mut(), credit.entry) else { return };
        pacer.on_target(now, entry, receiver.pull_target());
        if let Some(at) = pacer.poll_timeout() {
            owner.arm_grant(now, connection, at);
        }
    }
}
