//! From what endpoints, programs and samples hold to the result of a run.

use std::collections::HashMap;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use spray_core::event::Event;
use spray_core::path::BalancerKind;
use spray_nic::device::{Device, DeviceStats};
use spray_nic::endpoint::{ConnectionStats, Lateness};
use spray_nic::{ConnectionId, Peer};

use super::RunError;
use super::drive::Outcome;
use super::hosts::{Arrived, Running, Setup};
use super::rig::Rig;
use super::sample::Samples;
use crate::results::{
    EventKind, EventRow, FlowResult, LastDrop, PortResult, RunResult, TestbedLosses, TransportTotals, link_rows,
    reported, reroute_row,
};
use crate::workload::Flow;
use spray_fabric::Node;
use spray_fabric::PortCounters;

/// A run that is over.
pub(super) struct Collect<'a> {
    pub setup: &'a Setup<'a>,
    pub balancer: BalancerKind,
    pub lead_in_ps: u64,
    pub payloads: &'a [Bytes],
    pub connections: &'a [ConnectionId],
    pub outcome: &'a Outcome,
}

type Hash = [u8; 32];

impl Collect<'_> {
    /// The whole result.
    pub fn result(&self, rig: &Rig, samples: Samples, testbed_losses: TestbedLosses) -> Result<RunResult, RunError> {
        let scenario = self.setup.scenario;
        let (flows, payload_verified) = self.flows();
        let counters: Vec<_> = self.counters(rig)?;
        let mut lateness = Lateness::default();
        self.outcome.hosts.iter().for_each(|running| lateness.merge(running.endpoint.lateness()));
        Ok(RunResult {
            engine: "xdp".into(),
            scenario: scenario.name.clone(),
            condition: scenario.condition.clone(),
            balancer: self.balancer.to_string(),
            congestion_control: scenario.transport.cc.to_string(),
            seed: self.setup.seed,
            dilation: self.outcome.dilation,
            wall_s: self.outcome.wall.as_secs_f64(),
            ports: self.ports(&counters, &samples),
            port_samples: samples.ports,
            delivered: samples.delivered,
            events: self.events(&counters),
            transport: self.transport(),
            testbed_losses,
            late_packets: lateness.late_frames(),
            lateness_p99_us: lateness.quantile_ps(0.99) as f64 / 1e6,
            payload_verified,
            sim: None,
            recovery_us: self.last_drop(&counters).map(|last| last.after_us),
            flows,
        })
    }

    /// Scenario time in microseconds.
    fn us(&self, ps: u64) -> f64 {
        (ps as f64 - self.lead_in_ps as f64) / 1e6
    }

    fn host_name(&self, host: usize) -> &str {
        &self.setup.fabric.hosts[host].name
    }

    fn counters(&self, rig: &Rig) -> Result<Vec<PortCounters>, RunError> {
        let ports = self.setup.fabric.ports.iter().enumerate();
        Ok(ports.map(|(number, port)| rig.program(port.switch).counters(number)).collect::<Result<_, _>>()?)
    }

    /// Every flow, and whether each message that arrived is one that was sent.
    ///
    /// Which connection is whose is told by what came on it: of the messages from the flow's sender, the one with its
    /// hash, the earliest of several.
    fn flows(&self) -> (Vec<FlowResult>, bool) {
        let mut arrivals: Vec<Vec<(Peer, Hash, &Arrived)>> =
            self.outcome.hosts.iter().map(|running| arrivals(running)).collect();
        arrivals.iter_mut().for_each(|arrivals| arrivals.sort_by_key(|(.., arrived)| arrived.started_ps));
        let flow = |((flow, payload), connection): ((&Flow, &Bytes), &ConnectionId)| {
            let (peer, hash): (_, Hash) = (self.setup.peer(flow.src), Sha256::digest(payload).into());
            let candidates = &mut arrivals[flow.dst];
            let found =
                candidates.iter().position(|(from, arrived, _)| from.address == peer.address && *arrived == hash);
            let arrived = found.map(|index| candidates.remove(index).2);
            self.flow(flow, *connection, arrived)
        };
        let flows = self.setup.flows.iter().zip(self.payloads).zip(self.connections).map(flow).collect();
        // Whatever is left over arrived otherwise than it was sent.
        (flows, arrivals.iter().all(Vec::is_empty))
    }

    fn flow(&self, flow: &Flow, connection: ConnectionId, arrived: Option<&Arrived>) -> FlowResult {
        let sender = self.outcome.hosts[flow.src].endpoint.connection_stats(connection);
        let receiver = |arrived: &Arrived| self.outcome.hosts[flow.dst].endpoint.connection_stats(arrived.connection);
        let start_us = flow.start_ps as f64 / 1e6;
        let end_us = arrived.map(|arrived| self.us(arrived.completed_ps));
        FlowResult {
            flow: flow.flow,
            src: self.host_name(flow.src).into(),
            dst: self.host_name(flow.dst).into(),
            bytes: flow.bytes,
            start_us,
            end_us,
            fct_us: end_us.map(|end| end - start_us),
            retransmits: sender.map_or(0, |stats| stats.sender.retransmits),
            reordered: arrived.and_then(receiver).map_or(0, |stats| stats.receiver.reordered),
            drained_us: sender.map_or(0, |stats| stats.sender.drained_ps) as f64 / 1e6,
        }
    }

    fn ports(&self, counters: &[PortCounters], samples: &Samples) -> Vec<PortResult> {
        let peak = |name: &str| {
            let series = samples.ports.iter().find(|series| series.name == name);
            series.into_iter().flat_map(|series| &series.samples).map(|sample| sample.queue_bytes).max().unwrap_or(0)
        };
        let ports = self.setup.fabric.ports.iter().zip(counters);
        let result = |(port, counters): (&spray_fabric::Port, &PortCounters)| PortResult {
            name: port.name.clone(),
            uplink: matches!(port.to, Node::Switch(_)),
            rate_gbps: port.rate_bps as f64 / 1e9,
            peak_queue_bytes: peak(&port.name),
            ..PortResult::from(counters)
        };
        ports.map(result).collect()
    }

    /// Statistics of all connections, senders' and receivers'.
    fn connections(&self) -> impl Iterator<Item = ConnectionStats> + '_ {
        let own = self.setup.flows.iter().zip(self.connections).map(|(flow, connection)| (flow.src, *connection));
        let hosts = self.outcome.hosts.iter();
        let accepted =
            hosts.flat_map(|running| running.book.accepted.iter().map(|(connection, _)| (running.host, *connection)));
        own.chain(accepted)
            .filter_map(|(host, connection)| self.outcome.hosts[host].endpoint.connection_stats(connection))
    }

    fn transport(&self) -> TransportTotals {
        let mut totals = TransportTotals::default();
        for stats in self.connections() {
            totals.packets_sent += stats.sender.packets_sent;
            totals.retransmits += stats.sender.retransmits;
            totals.timeouts += stats.sender.timeouts;
            totals.reordered_packets += stats.receiver.reordered;
            totals.duplicates += stats.receiver.duplicates;
        }
        for running in &self.outcome.hosts {
            let stats = running.endpoint.stats();
            totals.invalid_frames +=
                stats.malformed + stats.checksum + stats.wrong_cookie + stats.unknown_connection + stats.invalid;
            let frozen = running.book.log.iter().filter(|entry| entry.event == Event::FreezeEntered);
            totals.freeze_entries += frozen.count() as u64;
        }
        totals
    }

    /// What the testbed itself lost: at interfaces (`drops`), at sockets since `before`, and in the endpoints.
    ///
    /// An interface also counts what the socket behind it had no room for.
    pub fn losses(&self, drops: u64, before: &[DeviceStats]) -> TestbedLosses {
        let mut losses = TestbedLosses::default();
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

    fn events(&self, counters: &[PortCounters]) -> Vec<EventRow> {
        let mut rows = link_rows(&self.setup.scenario.link_events);
        let epochs = self.setup.fabric.routes.iter().skip(1);
        rows.extend(epochs.map(|epoch| reroute_row(self.us(epoch.valid_from_ps))));
        let end_us = self.us(self.outcome.end_ps);
        rows.retain(|row| row.time_us <= end_us);
        rows.extend(self.last_drop(counters).map(|last| last.row()));
        rows.extend(self.log());
        rows.sort_by(|a, b| a.time_us.total_cmp(&b.time_us));
        rows
    }

    /// What the hosts' algorithms and connections reported.
    fn log(&self) -> Vec<EventRow> {
        let mut subjects = HashMap::new();
        for (flow, connection) in self.setup.flows.iter().zip(self.connections) {
            subjects
                .insert((flow.src, *connection), format!("{}->{}", self.host_name(flow.src), self.host_name(flow.dst)));
        }
        let mut rows = Vec::new();
        for running in &self.outcome.hosts {
            let subject = |connection| {
                let known = subjects.get(&(running.host, connection));
                known.cloned().unwrap_or_else(|| self.host_name(running.host).to_string())
            };
            for entry in &running.book.log {
                let Some((kind, detail)) = reported(entry.event) else { continue };
                rows.push(EventRow { time_us: self.us(entry.at_ps), kind, subject: subject(entry.connection), detail });
            }
            for (connection, error, at_ps) in &running.book.failed {
                let (kind, detail) = (EventKind::Failure, error.to_string());
                rows.push(EventRow { time_us: self.us(*at_ps), kind, subject: subject(*connection), detail });
            }
        }
        rows
    }

    fn last_drop(&self, counters: &[PortCounters]) -> Option<LastDrop> {
        let ports = self.setup.fabric.ports.iter().zip(counters);
        let dropped = ports.filter(|(_, counters)| counters.last_link_drop_ps > 0);
        let drops = dropped.map(|(port, counters)| (port.name.as_str(), self.us(counters.last_link_drop_ps)));
        let scenario = self.setup.scenario;
        LastDrop::of(&scenario.network, &scenario.link_events, drops)
    }
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
