//! From what endpoints, programs and samples hold to the result of a run.

use std::collections::HashMap;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use spray_core::flow::OrderStats;
use spray_fabric::{Node, Port, PortCounters, PortOutcome};
use spray_nic::device::{Device, DeviceStats};
use spray_nic::endpoint::{ConnectionStats, Lateness};
use spray_nic::{ConnectionId, Peer};

use super::drive::Outcome;
use super::host_port::OwnLink;
use super::hosts::{Arrived, Running, Setup};
use super::rig::Rig;
use super::sample::Samples;
use super::{FlowOutcome, Happened, Losses, Report, RunError, Subject, TestbedFlow, TestbedOutcome};

/// A run that is over.
pub(super) struct Collect<'a> {
    pub setup: &'a Setup<'a>,
    pub lead_in_ps: u64,
    pub connections: &'a [ConnectionId],
    pub outcome: &'a Outcome,
}

type Hash = [u8; 32];

impl Collect<'_> {
    /// The whole outcome.
    pub fn outcome(&self, rig: &Rig, samples: Samples, losses: Losses) -> Result<TestbedOutcome, RunError> {
        let (flows, payload_verified) = self.flows();
        let mut lateness = Lateness::default();
        self.outcome.hosts.iter().for_each(|running| lateness.merge(running.endpoint.lateness()));
        let epochs = self.setup.fabric.routes.iter().skip(1);
        Ok(TestbedOutcome {
            entries: rig.program(0).entries(),
            reunion: rig.program(0).reunion(),
            flows,
            payload_verified,
            ports: self.ports(rig)?,
            samples: samples.ports,
            delivered: samples.delivered,
            log: self.log(),
            reroutes_ps: epochs.map(|epoch| epoch.valid_from_ps.saturating_sub(self.lead_in_ps)).collect(),
            end_ps: self.outcome.end_ps.saturating_sub(self.lead_in_ps),
            connections: self.connections().collect(),
            invalid_frames: self.outcome.hosts.iter().map(invalid_frames).sum(),
            losses,
            late_frames: lateness.late_frames(),
            lateness_p99_ps: lateness.quantile_ps(0.99),
            wall: self.outcome.wall,
            dilation: self.outcome.dilation,
        })
    }

    /// Every flow, and whether each message that arrived is one that was sent.
    ///
    /// A flow's connection is the one on which its message came: the earliest message from the flow's sender that has the hash
    /// of the flow's payload.
    fn flows(&self) -> (Vec<FlowOutcome>, bool) {
        let mut arrivals: Vec<Vec<(Peer, Hash, &Arrived)>> =
            self.outcome.hosts.iter().map(|running| arrivals(running)).collect();
        arrivals.iter_mut().for_each(|arrivals| arrivals.sort_by_key(|(.., arrived)| arrived.started_ps));
        let flow = |((flow, payload), connection): ((&TestbedFlow, &Bytes), &ConnectionId)| {
            let (peer, hash): (_, Hash) = (self.setup.peer(flow.src), Sha256::digest(payload).into());
            let candidates = &mut arrivals[flow.dst];
            let found =
                candidates.iter().position(|(from, arrived, _)| from.address == peer.address && *arrived == hash);
            let arrived = found.map(|index| candidates.remove(index).2);
            self.flow(flow, *connection, arrived)
        };
        let flows = self.setup.spec.flows.iter().zip(self.setup.spec.payloads).zip(self.connections);
        let flows = flows.map(flow).collect();
        // A message that is left over is none of those that were sent.
        (flows, arrivals.iter().all(Vec::is_empty))
    }

    fn flow(&self, flow: &TestbedFlow, connection: ConnectionId, arrived: Option<&Arrived>) -> FlowOutcome {
        let sender = self.outcome.hosts[flow.src].endpoint.connection_stats(connection);
        let receiver = |arrived: &Arrived| self.outcome.hosts[flow.dst].endpoint.connection_stats(arrived.connection);
        let began = if flow.waits {
            self.outcome.hosts[flow.src].book.began(connection)
        } else {
            Some(self.lead_in_ps + flow.start_ps)
        };
        FlowOutcome {
            started_ps: began.map(|at_ps| at_ps.saturating_sub(self.lead_in_ps)),
            received_ps: arrived.map(|arrived| arrived.completed_ps.saturating_sub(self.lead_in_ps)),
            retransmits: sender.map_or(0, |stats| stats.sender.retransmits),
            order: arrived.and_then(receiver).map_or(OrderStats::default(), |stats| stats.receiver.order),
            drained_ps: sender.map_or(0, |stats| stats.sender.drained_ps),
        }
    }

    fn ports(&self, rig: &Rig) -> Result<Vec<PortOutcome>, RunError> {
        let spec = self.setup.spec;
        let start_ps = spec.flows.iter().map(|flow| flow.start_ps).min().unwrap_or(0);
        let span_ps = self.outcome.end_ps.saturating_sub(self.lead_in_ps + start_ps);
        let network = spec.fabric.network;
        let of_links = network.layers();
        let layers = of_links.iter().zip(&network.links).filter(|(_, link)| matches!(link.from, Node::Switch(_)));
        let layers = layers.map(|(layer, _)| layer.clone());
        // 0 means that there was none.
        let after_lead_in = |ps: u64| if ps > 0 { ps.saturating_sub(self.lead_in_ps).max(1) } else { 0 };
        let outcome = |((number, port), layer): ((usize, &Port), String)| {
            let mut counters: PortCounters = match &self.setup.ports[number] {
                Some(port) => port.counters_until(self.outcome.end_ps),
                None => rig.program(port.switch).counters(number)?,
            };
            counters.last_link_drop_ps = after_lead_in(counters.last_link_drop_ps);
            Ok(PortOutcome {
                name: port.name.clone(),
                layer,
                uplink: matches!(port.to, Node::Switch(_)),
                rate_bps: port.rate_bps,
                queue_mean_bytes: counters.queue_mean_bytes(span_ps),
                counters,
                ..PortOutcome::default()
            })
        };
        // Hosts' own links that dropped something, as in the simulator.
        let own = |(host, link): (usize, &Option<OwnLink>)| {
            let (index, mut counters) = (network.uplink(host), link.as_ref()?.counters());
            counters.last_link_drop_ps = after_lead_in(counters.last_link_drop_ps);
            (counters.drops_link() + counters.drops_random > 0).then(|| {
                Ok(PortOutcome {
                    name: network.links[index].name.clone(),
                    layer: of_links[index].clone(),
                    rate_bps: network.links[index].rate_bps,
                    counters,
                    ..PortOutcome::default()
                })
            })
        };
        let own = self.setup.links.iter().enumerate().filter_map(own);
        self.setup.fabric.ports.iter().enumerate().zip(layers).map(outcome).chain(own).collect()
    }

    /// Statistics of all connections, senders' and receivers'.
    fn connections(&self) -> impl Iterator<Item = ConnectionStats> + '_ {
        let own = self.setup.spec.flows.iter().zip(self.connections).map(|(flow, connection)| (flow.src, *connection));
        let hosts = self.outcome.hosts.iter();
        let accepted =
            hosts.flat_map(|running| running.book.accepted.iter().map(|(connection, _)| (running.host, *connection)));
        own.chain(accepted)
            .filter_map(|(host, connection)| self.outcome.hosts[host].endpoint.connection_stats(connection))
    }

    /// What the testbed itself lost: at interfaces (`drops`), at sockets since `before`, and in the endpoints.
    ///
    /// An interface also counts what the socket behind it had no room for.
    pub fn losses(&self, drops: u64, before: &[DeviceStats]) -> Losses {
        let mut losses = Losses::default();
        let mut at_sockets = 0;
        for (running, before) in self.outcome.hosts.iter().zip(before) {
            let (stats, device) = (running.endpoint.stats(), running.endpoint.device().stats());
            let fill_empty = device.fill_empty - before.fill_empty;
            let ring_full = device.rx_dropped_ring_full - before.rx_dropped_ring_full;
            // The kernel counts a frame that found the fill ring empty in both.
            let otherwise = (device.rx_dropped - before.rx_dropped).saturating_sub(fill_empty);
            at_sockets += fill_empty + ring_full + otherwise;
            losses.rx_ring_full += ring_full;
            losses.fill_ring_empty += fill_empty;
            losses.other += otherwise;
            losses.other += stats.hold_overflow + stats.control_dropped + stats.too_early + stats.device_errors;
        }
        losses.veth = drops.saturating_sub(at_sockets);
        losses
    }

    /// What the hosts' algorithms and connections reported.
    fn log(&self) -> Vec<Report> {
        let mut flows = HashMap::new();
        for (index, (flow, connection)) in self.setup.spec.flows.iter().zip(self.connections).enumerate() {
            flows.insert((flow.src, *connection), index);
        }
        let mut log = Vec::new();
        for running in &self.outcome.hosts {
            let report = |at_ps: u64, connection: ConnectionId, what: Happened| {
                let flow = flows.get(&(running.host, connection));
                let subject = flow.map_or(Subject::Host(running.host), |flow| Subject::Flow(*flow));
                Report { at_ps: at_ps.cast_signed() - self.lead_in_ps.cast_signed(), subject, what }
            };
            let entries = running.book.log.iter();
            log.extend(entries.map(|entry| report(entry.at_ps, entry.connection, Happened::Event(entry.event))));
            let failed = running.book.failed.iter();
            log.extend(
                failed
                    .map(|(connection, error, at_ps)| report(*at_ps, *connection, Happened::Failed(error.to_string()))),
            );
        }
        log
    }
}

/// Frames that a host threw away as malformed, corrupted or forged.
fn invalid_frames(running: &Running) -> u64 {
    let stats = running.endpoint.stats();
    stats.malformed + stats.checksum + stats.wrong_cookie + stats.unknown_connection + stats.invalid
}

/// A host's messages with their senders and hashes.
fn arrivals(running: &Running) -> Vec<(Peer, Hash, &Arrived)> {
    let peer = |arrived: &Arrived| {
        let mut accepted = running.book.accepted.iter();
        accepted.find(|(connection, _)| *connection == arrived.connection).map(|(_, peer)| *peer)
    };
    let arrived = running.book.arrived.iter();
    arrived.filter_map(|arrived| Some((peer(arrived)?, Sha256::digest(&arrived.data).into(), arrived))).collect()
}
