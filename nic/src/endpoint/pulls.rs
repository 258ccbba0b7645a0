//! Credit that this host grants to those that send to it and ask for some: one pacer for all of them.

use spray_core::cc::PullPacer;
use spray_wire::{Body, PullRequest};

use super::machine::Machine;

impl Machine {
    /// A peer's sender asks for credit, whatever congestion control our own senders have.
    //= docs/specs/eqds.md#EQDS-15
    pub(crate) fn on_pull_request(&mut self, now_ps: u64, index: u32, request: PullRequest) {
        let (link_bps, eqds) = (self.config.flow.cc.link_bps, self.config.flow.cc.control.eqds());
        let Some(connection) = self.table.slot(index) else { return };
        let packet_bytes = connection.config.packet_bytes();
        let Some(flow) = connection.flow.as_deref_mut() else { return };
        flow.receiver.on_pull_request(&request);
        let pacer = self.pacer.get_or_insert_with(|| Box::new(PullPacer::new(link_bps, eqds.pull_rate)));
        let pull_bytes = eqds.pull_bytes(packet_bytes);
        let entry = *flow.pull_entry.get_or_insert_with(|| pacer.open(index, pull_bytes));
        pacer.on_request(now_ps, entry, request.pulled_bytes);
        pacer.on_target(now_ps, entry, flow.receiver.pull_target());
    }

    /// A frame was trimmed: its sender needs credit to send it again.
    pub(crate) fn on_trimmed(&mut self, now_ps: u64, index: u32) {
        if let Some(pacer) = self.pacer.as_deref_mut()
            && let Some(flow) = self.table.slot(index).and_then(|connection| connection.flow.as_deref())
            && let Some(entry) = flow.pull_entry
        {
            pacer.on_target(now_ps, entry, flow.receiver.pull_target());
        }
    }

    /// Grants the next credit, if it is due.
    pub(crate) fn poll_pull(&mut self, now_ps: u64) {
        let Some((index, pull)) = self.pacer.as_deref_mut().and_then(|pacer| pacer.poll_pull(now_ps)) else { return };
        let port = self.any_port();
        if let Some(connection) = self.table.slot(index) {
            self.outlet.push_to(connection, port, Body::Pull(pull));
        }
    }
}
