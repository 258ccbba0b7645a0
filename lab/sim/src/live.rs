//! Somebody at the controls of a run: what is shown, and what becomes of orders.

use spray_core::path::Balancer;
use spray_fabric::live::{HostNow, LinkNow, LinkSchedule, Operator, Order, Snapshot};
use spray_fabric::{LinkChange, Node};

use super::common::{Common, PortPlace};
use super::hosts::End;
use super::part::Part;
use super::port::Port;
use super::spec::FlowOutcome;
use super::watch::Watch;

/// The operator of a run.
pub(super) struct Controls<'o> {
    operator: &'o mut dyn Operator,
    schedule: LinkSchedule,
    shown: Snapshot,
    next_ps: u64,
    /// They want the run to end.
    pub stop: bool,
}

impl<'o> Controls<'o> {
    pub(super) fn new(common: &Common<'_>, operator: &'o mut dyn Operator) -> Self {
        let network = common.spec.network;
        let (hosts, links) = (vec![HostNow::default(); network.hosts.len()], vec![None; network.links.len()]);
        let shown = Snapshot { hosts, links, ..Snapshot::default() };
        Self { operator, schedule: LinkSchedule::new(common.spec.events), shown, next_ps: 0, stop: false }
    }

    pub(super) fn next_ps(&self) -> u64 {
        self.next_ps
    }

    /// Shows the state of the run if that is due; returns the links that change, each with its present state and those to come.
    pub(super) fn look<W: Watch>(
        &mut self,
        now_ps: u64,
        common: &Common<'_>,
        parts: &[Part<'_, W>],
    ) -> Vec<(usize, Vec<LinkChange>)> {
        if now_ps < self.next_ps {
            return Vec::new();
        }
        self.show(now_ps, common, parts);
        let answer = self.operator.look(&self.shown);
        self.next_ps = answer.next_ps.max(now_ps + 1);
        self.stop = answer.stop;
        let enter = |order: &Order| self.schedule.enter(now_ps, order);
        let mut links: Vec<usize> = answer.orders.iter().flat_map(enter).collect();
        links.sort_unstable();
        links.dedup();
        links.into_iter().map(|link| (link, self.schedule.changes(link, now_ps))).collect()
    }

    /// Shows how the run ended.
    pub(super) fn end<W: Watch>(mut self, now_ps: u64, common: &Common<'_>, parts: &[Part<'_, W>]) {
        self.shown.over = true;
        self.show(now_ps, common, parts);
        self.operator.look(&self.shown);
    }

    fn show<W: Watch>(&mut self, now_ps: u64, common: &Common<'_>, parts: &[Part<'_, W>]) {
        let shown = &mut self.shown;
        shown.now_ps = now_ps.cast_signed();
        show_hosts(shown, common, parts);
        for (link, now) in shown.links.iter_mut().enumerate() {
            *now = Some(LinkNow {
                waiting_bytes: waiting(common, parts, link, now_ps),
                counters: port(common, parts, link).counters.read(),
                state: self.schedule.state(link, now_ps),
                can_change: true,
            });
        }
    }
}

fn show_hosts<W: Watch>(shown: &mut Snapshot, common: &Common<'_>, parts: &[Part<'_, W>]) {
    shown.hosts.fill(HostNow::default());
    shown.arrived = 0;
    let flows = common.spec.flows;
    for part in parts {
        for end in &part.ends {
            let flow = &flows[end.first.flow as usize];
            let host = &mut shown.hosts[if end.receives { flow.dst } else { flow.src }];
            let own = end.own(&part.net.outcomes);
            if end.receives {
                host.received_bytes += part.bytes_received_at(end);
                shown.arrived += own.iter().filter(|outcome| outcome.received_ps.is_some()).count() as u64;
            } else {
                sender(host, end, own);
            }
        }
    }
}

/// Adds a sender to what is shown of its host.
fn sender(host: &mut HostNow, end: &End, own: &[FlowOutcome]) {
    let Some(half) = end.sending.as_deref() else {
        host.retransmits += own.iter().map(|outcome| outcome.sender.retransmits).max().unwrap_or(0);
        return;
    };
    host.retransmits += half.sender.stats().retransmits;
    host.sending += u32::from(!half.sender.is_idle());
    host.frozen += u32::from(!half.sender.is_idle() && half.sender.balancer().is_frozen());
}

/// Bytes that wait for a link.
fn waiting<W: Watch>(common: &Common<'_>, parts: &[Part<'_, W>], link: usize, now_ps: u64) -> u64 {
    let port = port(common, parts, link);
    match common.spec.network.links[link].from {
        Node::Host(host) => {
            let net = &parts[common.locate(link).part].net;
            let uplink = &net.uplinks[common.partition.place_of_host[host] as usize];
            port.bytes_in(uplink.link.free_ps().saturating_sub(now_ps))
        }
        Node::Switch(_) => port.waiting_bytes(now_ps),
    }
}

fn port<'p, W>(common: &Common<'_>, parts: &'p [Part<'_, W>], link: usize) -> &'p Port {
    let PortPlace { part, place } = common.locate(link);
    &parts[part].net.switches.ports[place]
}
