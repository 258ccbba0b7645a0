//! Credit that a host grants to its senders. One pacer serves them all.

use alloc::boxed::Box;

use spray_wire::{EvPort, Pull, PullRequest};

use super::{ReceiveHalf, Scheduler};
use crate::Time;
use crate::cc::PullPacer;
use crate::flow::{Arrival, DataOutcome};
use crate::path::draw;

impl Scheduler {
    /// Returns when [`grant`](Self::grant) has credit to grant; `None` while no sender waits for any.
    #[inline]
    pub fn grant_at(&self) -> Option<Time> {
        self.pacer.as_deref()?.poll_timeout()
    }

    /// Returns whether a sender has ever requested credit from this host.
    pub fn grants_credit(&self) -> bool {
        self.pacer.is_some()
    }

    /// Grants the next credit, if its time has come. Returns the connection that gets the pull.
    pub fn grant(&mut self, now: Time) -> Option<(u32, Pull)> {
        self.pacer.as_deref_mut()?.poll_pull(now)
    }

    /// Returns the port of a pull: that of the request, for the first pull after one, otherwise a random one.
    //= docs/specs/eqds.md#EQDS-18 Paths of requests and pulls
    pub fn pull_port(&mut self, half: &mut ReceiveHalf) -> EvPort {
        let ReceiveHalf { evs, credit, .. } = half;
        credit.requested_from.take().unwrap_or_else(|| draw(*evs, &mut self.rng).port((*evs).into()))
    }

    /// Ends a connection's share of credit.
    pub fn close(&mut self, half: &ReceiveHalf) {
        if let (Some(pacer), Some(entry)) = (self.pacer.as_deref_mut(), half.credit.entry) {
            pacer.close(entry);
        }
    }

    /// Handles a request for credit, regardless of the congestion control of this host's own senders.
    //= docs/specs/eqds.md#EQDS-15 mixed congestion controls
    pub(super) fn on_pull_request(
        &mut self,
        now: Time,
        number: u32,
        half: &mut ReceiveHalf,
        port: EvPort,
        request: &PullRequest,
    ) {
        let ReceiveHalf { receiver, credit, .. } = half;
        receiver.on_pull_request(request);
        credit.requested_from = Some(port);
        let link_bps = self.link_bps;
        let pacer = self.pacer.get_or_insert_with(|| Box::new(PullPacer::new(link_bps, credit.rate)));
        let entry = *credit.entry.get_or_insert_with(|| pacer.open(number, credit.pull_bytes, credit.bound));
        pacer.on_request(now, entry, request.pulled_bytes);
        pacer.on_target(now, entry, receiver.pull_target());
    }

    /// Accounts for a data frame, which may use credit. A trimmed frame needs credit again.
    //= docs/specs/eqds.md#EQDS-16 limit of unused credit
    #[inline]
    pub(super) fn return_credit(&mut self, now: Time, half: &ReceiveHalf, arrival: &Arrival, accept: DataOutcome) {
        let Some(pacer) = self.pacer.as_deref_mut() else { return };
        let ReceiveHalf { receiver, credit, .. } = half;
        let Some(entry) = credit.entry else { return };
        if pacer.on_arrival(now, entry, receiver.credit_back(arrival, accept)) || arrival.trimmed {
            pacer.on_target(now, entry, receiver.pull_target());
        }
    }
}
